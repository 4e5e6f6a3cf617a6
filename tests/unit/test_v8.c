// SPDX-License-Identifier: Apache-2.0
// Readers of V8's objects, on memory that is made up: strings of every kind, names of functions,
// strings that contain themselves, and objects that move while they are read.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/v8/code.h"
#include "runtime/v8/walk.h"
#include "unit.h"

#define BASE 0x10000u
struct image {
    uint8_t bytes[8192];
    unsigned reads;
    unsigned change_after; /* reads: then the function's name is another one; 0: never */
};

enum {
    MAP_SHARED = 0x100,
    MAP_SCRIPT = 0x140,
    MAP_SCOPE = 0x180,
    MAP_FLAT = 0x1c0,
    MAP_WIDE = 0x200,
    MAP_JOINED = 0x240,
    MAP_SLICED = 0x280,
    MAP_THIN = 0x2c0,
    SHARED = 0x400,
    SCRIPT = 0x480,
    SCOPE = 0x500,
    NAME = 0x600,
    PATH = 0x640,
    OTHER = 0x680,
};
enum { SHARED_TYPE = 262, SCRIPT_TYPE = 167, SCOPE_TYPE = 261 };

static bool read_image(void *context, uint64_t address, void *buffer, size_t length)
{
    struct image *image = context;
    if (address < BASE || length > sizeof(image->bytes) ||
        address - BASE > sizeof(image->bytes) - length)
        return false;
    if (++image->reads == image->change_after)
        image->bytes[SHARED + 16] ^= 8;
    memcpy(buffer, image->bytes + (address - BASE), length);
    return true;
}

static uint64_t pointer(size_t at)
{
    return BASE + at + 1;
}

static void put(struct image *image, size_t at, uint64_t word)
{
    memcpy(image->bytes + at, &word, sizeof(word));
}

static void put_map(struct image *image, size_t at, uint16_t type)
{
    memcpy(image->bytes + at + 12, &type, sizeof(type));
}

static void put_string(struct image *image, size_t at, const char *text)
{
    uint32_t length = (uint32_t)strlen(text);
    put(image, at, pointer(MAP_FLAT));
    memcpy(image->bytes + at + 12, &length, sizeof(length));
    memcpy(image->bytes + at + 16, text, length);
}

static void put_parts(struct image *image, size_t at, size_t map, uint32_t length, uint64_t first,
                      uint64_t second)
{
    put(image, at, pointer(map));
    memcpy(image->bytes + at + 12, &length, sizeof(length));
    put(image, at + 16, first);
    put(image, at + 24, second);
}

/* Laid out as in Node.js 20: a function with a name of its own. */
static struct v8_binary make(struct image *image)
{
    memset(image, 0, sizeof(*image));
    put_map(image, MAP_SHARED, SHARED_TYPE);
    put_map(image, MAP_SCRIPT, SCRIPT_TYPE);
    put_map(image, MAP_SCOPE, SCOPE_TYPE);
    put_map(image, MAP_FLAT, 8);
    put_map(image, MAP_WIDE, 0);
    put_map(image, MAP_JOINED, 8 | 1);
    put_map(image, MAP_SLICED, 8 | 3);
    put_map(image, MAP_THIN, 8 | 5);
    put(image, SHARED, pointer(MAP_SHARED));
    put(image, SHARED + 16, pointer(SCOPE));
    put(image, SHARED + 32, pointer(SCRIPT));
    put(image, SCRIPT, pointer(MAP_SCRIPT));
    put(image, SCRIPT + 16, pointer(PATH));
    put(image, SCOPE, pointer(MAP_SCOPE));
    put(image, SCOPE + 24, 2ull << 32); /* locals: 2 words each */
    put(image, SCOPE + 32, pointer(OTHER));
    put(image, SCOPE + 32 + 32, pointer(NAME));
    put_string(image, NAME, "handler");
    put_string(image, PATH, "/srv/main.js");
    put_string(image, OTHER, "local");
    return (struct v8_binary){.walk = {.map_type = 12, .shared_name = 16, .shared_script = 32},
                              .shared_type = SHARED_TYPE,
                              .script_type = SCRIPT_TYPE,
                              .scope_type = SCOPE_TYPE,
                              .first_other_type = 128,
                              .string_length = 12,
                              .string_chars = 16,
                              .script_name = 16,
                              .scope_locals = 2,
                              .scope_first = 3};
}

static struct runtime_known read_known(struct image *image, const struct v8_binary *binary,
                                       struct runtime_codes *codes)
{
    struct runtime_memory memory = {.read = read_image, .context = image};
    struct runtime_known met = {
        .identity = 7, .pid = 1, .mark = {.address = pointer(SHARED), .file = pointer(SCRIPT)}};
    memcpy(&met.mark.name, image->bytes + SHARED + 16, sizeof(met.mark.name));
    runtime_codes_clear(codes);
    struct v8_scripts scripts = {0};
    struct v8_context context = {.binary = binary, .scripts = &scripts, .pid = 1};
    runtime_codes_take(codes, v8_code_read, &context, &memory, &met);
    v8_scripts_release(&scripts);
    return *runtime_codes_find(codes, 7);
}

static void test_names(void **state)
{
    (void)state;
    struct image *image = memory_zalloc(1, sizeof(*image));
    struct runtime_codes codes = {0};
    struct v8_binary binary = make(image);
    struct runtime_known known = read_known(image, &binary, &codes);
    assert_true(known.named);
    assert_string_equal(known.code.function, "handler");
    assert_string_equal(known.code.file, "/srv/main.js");
    /* Its name instead of its scope, and one without either. */
    put(image, SHARED + 16, pointer(OTHER));
    assert_string_equal(read_known(image, &binary, &codes).code.function, "local");
    put(image, SHARED + 16, 0);
    assert_string_equal(read_known(image, &binary, &codes).code.function, "(anonymous)");
    /* Strings of other kinds. */
    put(image, SHARED + 16, pointer(0x800));
    put_parts(image, 0x800, MAP_JOINED, 12, pointer(NAME), pointer(OTHER));
    assert_string_equal(read_known(image, &binary, &codes).code.function, "handlerlocal");
    put_parts(image, 0x800, MAP_THIN, 7, pointer(NAME), 0);
    assert_string_equal(read_known(image, &binary, &codes).code.function, "handler");
    put_parts(image, 0x800, MAP_SLICED, 4, pointer(NAME), 3ull << 32);
    assert_string_equal(read_known(image, &binary, &codes).code.function, "dler");
    put_parts(image, 0x800, MAP_WIDE, 2, 0x20ac00e9, 0);
    assert_string_equal(read_known(image, &binary, &codes).code.function, "\xc3\xa9\xe2\x82\xac");
    runtime_codes_release(&codes);
    free(image);
}

/* Where a function begins, by both layouts of a scope, in sources of every kind. */
static void test_lines(void **state)
{
    (void)state;
    enum { SOURCE = 0xa00, EXTERNAL = 0xa80, TEXT = 0xb00, MAP_EXTERNAL = 0x300 };
    struct image *image = memory_zalloc(1, sizeof(*image));
    struct runtime_codes codes = {0};
    struct v8_binary binary = make(image);
    binary.script_source = 8;
    put_map(image, MAP_EXTERNAL, 8 | 2);
    put(image, SCRIPT + 8, pointer(SOURCE));
    put_string(image, SOURCE, "one\ntwo\r\nthree\rfour()");
    assert_int_equal(read_known(image, &binary, &codes).code.first_line, 0); /* no position */
    /* Behind the name: its index, the position and the outer scope. */
    put(image, SCOPE + 72, 9ull << 32);
    put(image, SCOPE + 80, 15ull << 32);
    put(image, SCOPE + 88, 20ull << 32);
    put(image, SCOPE + 96, pointer(SCOPE));
    struct runtime_known known = read_known(image, &binary, &codes);
    assert_int_equal(known.code.first_line, 4);
    assert_int_equal(runtime_code_line(&known.code, 0), 4);
    static const struct {
        unsigned start, line;
    } places[] = {{0, 1}, {3, 1}, {4, 2}, {8, 2}, {9, 3}, {14, 3}, {15, 4}};
    for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
        put(image, SCOPE + 80, (uint64_t)places[i].start << 32);
        known = read_known(image, &binary, &codes);
        assert_int_equal(known.code.first_line, places[i].line);
    }
    put(image, SCOPE + 80, 21ull << 32); /* behind its end */
    assert_int_equal(read_known(image, &binary, &codes).code.first_line, 0);
    /* A text outside of the heap, and one without a name. */
    put(image, SCOPE + 80, 4ull << 32);
    put(image, SCRIPT + 8, pointer(EXTERNAL));
    put(image, EXTERNAL, pointer(MAP_EXTERNAL));
    memcpy(image->bytes + EXTERNAL + 12, &(uint32_t){8}, 4);
    put(image, EXTERNAL + 24, BASE + TEXT);
    memcpy(image->bytes + TEXT, "\n\n\nx=>x", 7);
    assert_int_equal(read_known(image, &binary, &codes).code.first_line, 4);
    put(image, SCOPE + 64, 0);
    known = read_known(image, &binary, &codes);
    assert_string_equal(known.code.function, "(anonymous) main.js:4");
    put(image, EXTERNAL + 24, 1); /* nothing is there */
    known = read_known(image, &binary, &codes);
    assert_true(known.named && !known.code.first_line);
    assert_string_equal(known.code.function, "(anonymous)");
    /* Before the variables, as since 13. */
    put(image, EXTERNAL + 24, BASE + TEXT);
    binary.scope_first = 5;
    put(image, SCOPE + 24, 0);
    put(image, SCOPE + 32, 2ull << 32);
    put(image, SCOPE + 40, 5ull << 32);
    assert_int_equal(read_known(image, &binary, &codes).code.first_line, 3);
    runtime_codes_release(&codes);
    free(image);
}

/* Frames on a stack: one of a function, one of something else, and words that only look like it. */
static void test_frames(void **state)
{
    (void)state;
    enum { MAP_FUNCTION = 0x340, FUNCTION = 0xc00, CONTEXT = 0xd00, FUNCTION_TYPE = 2100 };
    enum { SP = 0x7000, FP = SP + 64, OTHER_FP = SP + 160, BYTES = 256 };
    struct image *image = memory_zalloc(1, sizeof(*image));
    struct runtime_memory memory = {.read = read_image, .context = image};
    struct v8_binary binary = make(image);
    struct v8_frames frames;
    uint8_t stack[BYTES] = {0};
    binary.walk.frame_context = -8;
    binary.walk.frame_function = -16;
    binary.walk.function_shared = 24;
    binary.walk.function_type[0] = FUNCTION_TYPE;
    binary.walk.function_type[1] = FUNCTION_TYPE + 3;
    put_map(image, MAP_FUNCTION, FUNCTION_TYPE + 1);
    put(image, FUNCTION, pointer(MAP_FUNCTION));
    put(image, FUNCTION + 24, pointer(SHARED));
    const struct {
        size_t fp;
        uint64_t function;
    } made[] = {{FP, pointer(FUNCTION)}, {OTHER_FP, pointer(SHARED)}};
    for (size_t i = 0; i < ARRAY_LENGTH(made); i++) {
        uint64_t words[] = {made[i].function, pointer(CONTEXT), made[i].fp + 32, 0x400000};
        memcpy(stack + (made[i].fp - SP - 16), words, sizeof(words));
    }
    v8_frames_read(&binary, &memory, SP, stack, sizeof(stack), &frames);
    assert_int_equal(frames.count, 1);
    const struct v8_frame *frame = v8_frames_find(&frames, FP);
    assert_non_null(frame);
    assert_true(frame->mark.address == pointer(SHARED) && frame->mark.name == pointer(SCOPE) &&
                frame->mark.file == pointer(SCRIPT));
    assert_null(v8_frames_find(&frames, OTHER_FP));
    assert_null(v8_frames_find(&frames, 0));
    assert_null(v8_frames_find(&frames, UINT64_MAX));
    free(frames.list);
    /* Cut off anywhere, and with any bit turned. */
    for (size_t bytes = 0; bytes <= sizeof(stack); bytes++) {
        v8_frames_read(&binary, &memory, SP, stack, bytes, &frames);
        assert_int_equal(frames.count, bytes >= FP - SP + 16);
        free(frames.list);
    }
    for (size_t bit = 0; bit < 8 * sizeof(stack); bit++) {
        stack[bit / 8] ^= (uint8_t)(1u << bit % 8);
        image->reads = 0;
        v8_frames_read(&binary, &memory, SP, stack, sizeof(stack), &frames);
        assert_true(frames.count <= 2 && image->reads < 100);
        free(frames.list);
        stack[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(image);
}

static void test_circles(void **state)
{
    (void)state;
    struct image *image = memory_zalloc(1, sizeof(*image));
    struct runtime_codes codes = {0};
    struct v8_binary binary = make(image);
    static const size_t maps[] = {MAP_JOINED, MAP_SLICED, MAP_THIN};
    put(image, SHARED + 16, pointer(0x800));
    for (size_t i = 0; i < ARRAY_LENGTH(maps); i++) {
        put_parts(image, 0x800, maps[i], 100, pointer(0x800), pointer(0x800));
        image->reads = 0;
        assert_false(read_known(image, &binary, &codes).named);
        assert_true(image->reads < 2000);
    }
    /* A scope with more variables than there can be, and strings without an end. */
    binary = make(image);
    put(image, SCOPE + 24, ~0ull << 32);
    assert_false(read_known(image, &binary, &codes).named);
    binary = make(image);
    memset(image->bytes + NAME + 12, 0xff, 4);
    read_known(image, &binary, &codes);
    runtime_codes_release(&codes);
    free(image);
}

/* What moves while it is read has no name. */
static void test_moves(void **state)
{
    (void)state;
    struct image *image = memory_zalloc(1, sizeof(*image));
    struct runtime_codes codes = {0};
    for (unsigned after = 1; after < 40; after++) {
        struct v8_binary binary = make(image);
        image->change_after = after;
        struct runtime_known known = read_known(image, &binary, &codes);
        assert_true(!known.named || image->reads < after ||
                    !strcmp(known.code.function, "handler"));
    }
    runtime_codes_release(&codes);
    free(image);
}

static void test_garbage(void **state)
{
    (void)state;
    struct image *image = memory_zalloc(1, sizeof(*image));
    struct runtime_codes codes = {0};
    uint64_t seed = 1;
    for (unsigned round = 0; round < 5000; round++) {
        struct v8_binary binary = make(image);
        for (unsigned i = 0; i < 6; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            image->bytes[seed >> 33 & 0x7ff] = (uint8_t)(seed >> 50);
        }
        struct runtime_known known = read_known(image, &binary, &codes);
        assert_true(image->reads < 2000);
        if (known.named)
            assert_true(strlen(known.code.function) <= 3 * V8_NAME_MAX);
    }
    runtime_codes_release(&codes);
    free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),  cmocka_unit_test(test_lines),
        cmocka_unit_test(test_frames), cmocka_unit_test(test_circles),
        cmocka_unit_test(test_moves),  cmocka_unit_test(test_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
