// SPDX-License-Identifier: Apache-2.0
// Readers of HotSpot's structures, on memory that is made up: compressed numbers and lines, scopes
// that lead in circles or out of their bytes, tables without an end, and code that changes.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/hotspot/codes.h"
#include "runtime/hotspot/scopes.h"
#include "unit.h"

/* ---- compressed streams ---- */

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[6];
        size_t length;
        bool new_numbers, good;
        uint32_t number;
    } cases[] = {
        {{0}, 1, false, true, 0},
        {{191}, 1, false, true, 191},
        {{192, 0}, 2, false, true, 192},
        {{192, 1}, 2, false, true, 256},
        {{255, 255, 255, 255, 255}, 5, false, true, 51130559},
        {{192}, 1, false, false, 0}, /* cut */
        {{0}, 0, false, false, 0},
        {{1}, 1, true, true, 0},
        {{191}, 1, true, true, 190},
        {{192, 1}, 2, true, true, 191},
        {{0}, 1, true, false, 0}, /* no byte is 0 */
        {{200, 0}, 2, true, false, 0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        size_t at = 0;
        uint32_t number = 77;
        bool good = hotspot_number_read(cases[i].bytes, cases[i].length, &at, cases[i].new_numbers,
                                        &number);
        assert_int_equal(good, cases[i].good);
        if (good)
            assert_int_equal(number, cases[i].number);
        assert_true(at <= cases[i].length);
    }
}

static void test_lines(void **state)
{
    (void)state;
    /* 0: line 10 (escaped), 4: line 11, 5: line 8 (escaped, backwards). */
    static const uint8_t table[] = {0xff, 0, 20, 4 << 3 | 1, 0xff, 2, 5, 0};
    struct hotspot_line *lines = memory_zalloc(HOTSPOT_LINES_MAX, sizeof(*lines));
    size_t count = hotspot_lines_decode(table, sizeof(table), false, lines);
    assert_int_equal(count, 3);
    struct hotspot_method method = {.lines = lines, .line_count = (uint32_t)count};
    assert_int_equal(hotspot_method_line(&method, 0), 10);
    assert_int_equal(hotspot_method_line(&method, 3), 10);
    assert_int_equal(hotspot_method_line(&method, 4), 11);
    assert_int_equal(hotspot_method_line(&method, 9), 8);
    /* Cut anywhere, it has fewer lines. */
    for (size_t length = 0; length < sizeof(table); length++)
        assert_true(hotspot_lines_decode(table, length, false, lines) <= 3);
    /* More lines than a method can have. */
    uint8_t *many = memory_alloc(3 * HOTSPOT_LINES_MAX);
    memset(many, 1 << 3 | 1, 3 * HOTSPOT_LINES_MAX);
    assert_int_equal(hotspot_lines_decode(many, 3 * HOTSPOT_LINES_MAX, false, lines),
                     HOTSPOT_LINES_MAX);
    free(many);
    free(lines);
}

static void test_scopes(void **state)
{
    (void)state;
    /* At 1: outermost, method 1, bytecode 4. At 4: inlined into it, method 2, bytecode 0. At 7: its
     * outer scope is behind it. At 10: a method that isn't there. At 13: cut. */
    uint8_t scopes[] = {0, 0, 1, 5, 1, 2, 1, 9, 1, 1, 1, 3, 1, 1};
    uint64_t metadata[] = {0x1000, 0x2000};
    struct hotspot_debug debug = {.scopes = scopes,
                                  .scopes_bytes = sizeof(scopes),
                                  .metadata = metadata,
                                  .metadata_count = 2};
    struct hotspot_debug_scope scope;
    assert_true(hotspot_debug_scope(&debug, 1, &scope));
    assert_int_equal(scope.outer, 0);
    assert_int_equal(scope.method, 0x1000);
    assert_int_equal(scope.index, 4);
    assert_true(hotspot_debug_scope(&debug, 4, &scope));
    assert_int_equal(scope.outer, 1);
    assert_int_equal(scope.method, 0x2000);
    assert_int_equal(scope.index, 0);
    assert_false(hotspot_debug_scope(&debug, 0, &scope));
    assert_false(hotspot_debug_scope(&debug, 7, &scope));
    assert_false(hotspot_debug_scope(&debug, 10, &scope));
    assert_false(hotspot_debug_scope(&debug, 13, &scope));
    assert_false(hotspot_debug_scope(&debug, 4000000000u, &scope));
}

/* ---- a process ---- */

#define BASE 0x10000u
struct image {
    uint8_t bytes[65536];
    unsigned reads;
    unsigned change_after; /* reads: then the method's name is another one; 0: never */
    size_t change_at;
};

static bool read_image(void *context, uint64_t address, void *buffer, size_t length)
{
    struct image *image = context;
    if (address < BASE || length > sizeof(image->bytes) ||
        address - BASE > sizeof(image->bytes) - length)
        return false;
    if (++image->reads == image->change_after)
        image->bytes[image->change_at] ^= 8;
    memcpy(buffer, image->bytes + (address - BASE), length);
    return true;
}

static void put(struct image *image, size_t at, uint64_t value, size_t length)
{
    memcpy(image->bytes + at, &value, length);
}

static void put_symbol(struct image *image, size_t at, const char *text)
{
    put(image, at, strlen(text), 2);
    memcpy(image->bytes + at + 6, text, strlen(text));
}

enum {
    METHOD = 0x100,
    CONST = 0x200,
    POOL = 0x400,
    TAGS = 0x600,
    KLASS = 0x700,
    CLASS_NAME = 0x800,
    METHOD_NAME = 0x900,
    FILE_NAME = 0xa00,
    NMETHOD = 0x1000,
    SCOPES = 0x2000,
    STUB_NAME = 0x3000,
};

/* Laid out as in 17. */
static struct hotspot_process make(struct image *image)
{
    struct hotspot_process machine = {.major = 17};
    uint64_t *value = machine.structs.value;
    for (unsigned i = 0; i < HOTSPOT_FIELDS; i++)
        value[i] = HOTSPOT_NONE;
    value[HOTSPOT_METHOD_CONST] = 8;
    value[HOTSPOT_CONST_CONSTANTS] = 8;
    value[HOTSPOT_CONST_SIZE] = 24;
    value[HOTSPOT_CONST_FLAGS] = 28;
    value[HOTSPOT_CONST_CODE_SIZE] = 32;
    value[HOTSPOT_CONST_NAME] = 34;
    value[HOTSPOT_CONST_BYTES] = 48;
    value[HOTSPOT_POOL_TAGS] = 8;
    value[HOTSPOT_POOL_HOLDER] = 24;
    value[HOTSPOT_POOL_LENGTH] = 60;
    value[HOTSPOT_POOL_SOURCE] = 54;
    value[HOTSPOT_POOL_BYTES] = 72;
    value[HOTSPOT_CLASS_NAME] = 24;
    value[HOTSPOT_SYMBOL_LENGTH] = 0;
    value[HOTSPOT_SYMBOL_BODY] = 6;
    value[HOTSPOT_COMPILED_SCOPES] = 120;
    value[HOTSPOT_NMETHOD_PCS] = 268;
    value[HOTSPOT_NMETHOD_DEPENDENCIES] = 272;
    value[HOTSPOT_NMETHOD_METADATA] = 260;
    machine.walk.nmethod_method = 112;
    machine.walk.nmethod_compile_id = 304;
    put(image, METHOD + 8, BASE + CONST, 8);
    put(image, CONST + 8, BASE + POOL, 8);
    put(image, CONST + 24, 16, 4); /* words */
    put(image, CONST + 28, 1, 2);  /* has lines, */
    put(image, CONST + 32, 8, 2);  /* behind 8 bytes of code */
    put(image, CONST + 34, 3, 2);
    static const uint8_t lines[] = {0xff, 0, 20, 4 << 3 | 1, 0};
    memcpy(image->bytes + CONST + 56, lines, sizeof(lines));
    put(image, POOL + 8, BASE + TAGS, 8);
    put(image, POOL + 24, BASE + KLASS, 8);
    put(image, POOL + 60, 8, 4);
    put(image, POOL + 54, 4, 2);
    put(image, POOL + 72 + 8 * 3, BASE + METHOD_NAME, 8);
    put(image, POOL + 72 + 8 * 4, BASE + FILE_NAME, 8);
    image->bytes[TAGS + 4 + 3] = image->bytes[TAGS + 4 + 4] = 1;
    put(image, KLASS + 24, BASE + CLASS_NAME, 8);
    put_symbol(image, CLASS_NAME, "shop/Till");
    put_symbol(image, METHOD_NAME, "sell");
    put_symbol(image, FILE_NAME, "Till.java");
    /* A compiled method: up to offset 16 bytecode 0, up to 32 the same inlined into itself. */
    put(image, NMETHOD + 112, BASE + METHOD, 8);
    put(image, NMETHOD + 304, 5, 4);
    put(image, NMETHOD + 120, BASE + SCOPES, 8);
    put(image, NMETHOD + 260, SCOPES - NMETHOD - 8, 4);
    put(image, NMETHOD + 268, SCOPES - NMETHOD + 16, 4);
    put(image, NMETHOD + 272, SCOPES - NMETHOD + 16 + 4 * 16, 4);
    put(image, SCOPES - 8, BASE + METHOD, 8);
    static const uint8_t scopes[] = {0, 0, 1, 1, 1, 1, 5};
    memcpy(image->bytes + SCOPES, scopes, sizeof(scopes));
    static const int32_t pcs[4][4] = {
        {-1, 0, 0, 0}, {16, 1, 0, 0}, {32, 4, 0, 0}, {99999, 0, 0, 0}};
    memcpy(image->bytes + SCOPES + 16, pcs, sizeof(pcs));
    strcpy((char *)image->bytes + STUB_NAME, "StubRoutines (1)");
    return machine;
}

static void test_codes(void **state)
{
    (void)state;
    struct image *image = memory_zalloc(1, sizeof(*image));
    struct hotspot_process machine = make(image);
    struct runtime_memory memory = {.read = read_image, .context = image};
    struct hotspot_codes codes = {0};
    struct hotspot_frame frames[HOTSPOT_INLINED_MAX];
    struct hotspot_mark interpreted = {
        .address = BASE + METHOD, .file = BASE + CONST, .kind = BPF_HOTSPOT_INTERPRETED};
    hotspot_codes_take(&codes, &machine, &memory, 1, 11, &interpreted);
    assert_int_equal(hotspot_codes_frames(&codes, hotspot_codes_find(&codes, 11), 4, frames), 1);
    assert_string_equal(frames[0].function, "shop.Till.sell");
    assert_string_equal(frames[0].file, "Till.java");
    assert_int_equal(frames[0].line, 11);
    assert_int_equal(
        hotspot_codes_frames(&codes, hotspot_codes_find(&codes, 11), BPF_PYTHON_UNIT_MASK, frames),
        1);
    assert_int_equal(frames[0].line, 0);
    struct hotspot_mark compiled = {
        .address = BASE + NMETHOD, .file = BASE + METHOD, .lines = 5, .kind = BPF_HOTSPOT_COMPILED};
    hotspot_codes_take(&codes, &machine, &memory, 1, 12, &compiled);
    const struct hotspot_known *known = hotspot_codes_find(&codes, 12);
    assert_int_equal(hotspot_codes_frames(&codes, known, 3, frames), 1);
    assert_int_equal(frames[0].line, 10);
    assert_int_equal(hotspot_codes_frames(&codes, known, 20, frames), 2);
    assert_int_equal(frames[0].line, 11);
    assert_true(frames[0].inlined);
    assert_int_equal(frames[1].line, 10);
    assert_int_equal(hotspot_codes_frames(&codes, known, 500, frames), 2);
    struct hotspot_mark stub = {
        .address = BASE, .name = BASE + STUB_NAME, .kind = BPF_HOTSPOT_STUB};
    hotspot_codes_take(&codes, &machine, &memory, 1, 13, &stub);
    assert_int_equal(hotspot_codes_frames(&codes, hotspot_codes_find(&codes, 13), 0, frames), 1);
    assert_string_equal(frames[0].function, "[StubRoutines (1)]");
    /* Code that was replaced before it was read. */
    struct hotspot_mark gone = compiled;
    gone.lines = 6;
    hotspot_codes_take(&codes, &machine, &memory, 1, 14, &gone);
    assert_int_equal(hotspot_codes_frames(&codes, hotspot_codes_find(&codes, 14), 0, frames), 0);
    /* Another piece of code with the same identity. */
    hotspot_codes_take(&codes, &machine, &memory, 2, 12, &compiled);
    assert_int_equal(hotspot_codes_frames(&codes, hotspot_codes_find(&codes, 12), 0, frames), 0);
    /* A process that is gone. */
    hotspot_codes_take(&codes, NULL, &memory, 1, 15, &compiled);
    assert_int_equal(hotspot_codes_frames(&codes, hotspot_codes_find(&codes, 15), 0, frames), 0);
    hotspot_codes_release(&codes);
    free(image);
}

/* A name counts only if it is a constant of the right kind, and the method is the same before and
 * after. */
static void test_changes(void **state)
{
    (void)state;
    struct image *image = memory_zalloc(1, sizeof(*image));
    struct arena arena = {0};
    struct hotspot_method method;
    struct runtime_memory memory = {.read = read_image, .context = image};
    struct hotspot_process machine = make(image);
    assert_true(hotspot_method_read(&machine, &memory, BASE + METHOD, &arena, &method));
    image->bytes[TAGS + 4 + 3] = 7;
    assert_false(hotspot_method_read(&machine, &memory, BASE + METHOD, &arena, &method));
    machine = make(image);
    image->bytes[METHOD_NAME + 7] = 1; /* a control character */
    assert_false(hotspot_method_read(&machine, &memory, BASE + METHOD, &arena, &method));
    machine = make(image);
    image->change_at = METHOD + 9;
    for (unsigned after = 2; after < 20; after++) {
        machine = make(image);
        image->reads = 0;
        image->change_after = after;
        bool read = hotspot_method_read(&machine, &memory, BASE + METHOD, &arena, &method);
        assert_true(!read || image->reads < after);
    }
    arena_release(&arena);
    free(image);
}

/* Whatever bytes a process has there, reading ends and stays in its limits. */
static void test_garbage(void **state)
{
    (void)state;
    struct image *image = memory_zalloc(1, sizeof(*image));
    struct runtime_memory memory = {.read = read_image, .context = image};
    struct hotspot_process machine = make(image);
    struct image *good = memory_alloc(sizeof(*good));
    *good = *image;
    uint64_t seed = 1;
    for (unsigned round = 0; round < 3000; round++) {
        *image = *good;
        for (unsigned i = 0; i < 6; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            image->bytes[seed >> 33 & 0x3fff] = (uint8_t)(seed >> 50);
        }
        struct hotspot_codes codes = {0};
        struct hotspot_frame frames[HOTSPOT_INLINED_MAX];
        struct hotspot_mark mark = {.address = BASE + NMETHOD,
                                    .file = BASE + METHOD,
                                    .lines = 5,
                                    .kind = BPF_HOTSPOT_COMPILED};
        hotspot_codes_take(&codes, &machine, &memory, 1, 1, &mark);
        for (uint32_t unit = 0; unit < 64; unit += 7)
            hotspot_codes_frames(&codes, hotspot_codes_find(&codes, 1), unit, frames);
        assert_true(image->reads < 100000);
        hotspot_codes_release(&codes);
    }
    free(good);
    free(image);
}

/* ---- the machine's tables ---- */

static void test_tables_without_end(void **state)
{
    (void)state;
    struct image *image = memory_zalloc(1, sizeof(*image));
    struct runtime_memory memory = {.read = read_image, .context = image};
    struct hotspot_binary binary;
    struct hotspot_process machine;
    const char *reason;
    /* Every number is 0x10: entries of 16 bytes that never end, inside of the image. */
    for (unsigned i = 0; i < HOTSPOT_SYMBOLS; i++)
        binary.symbols[i] = BASE + 0x8000 + 8 * i;
    for (size_t i = 0; i < sizeof(image->bytes); i += 8)
        put(image, i, 0x10008, 8);
    for (unsigned i = 0; i < HOTSPOT_SYMBOLS; i++)
        put(image, 0x8000 + 8 * i, 0, 8);
    put(image, 0x8000 + 8 * HOTSPOT_SYMBOL_STRUCTS, BASE, 8);
    put(image, 0x8000 + 8 * HOTSPOT_SYMBOL_STRUCT_STRIDE, 16, 8);
    assert_int_equal(hotspot_attach(&binary, 0, &memory, &machine, &reason), HOTSPOT_NOT_YET);
    assert_true(image->reads < 100000);
    put(image, 0x8000 + 8 * HOTSPOT_SYMBOL_STRUCT_STRIDE, 1, 8);
    assert_int_equal(hotspot_attach(&binary, 0, &memory, &machine, &reason), HOTSPOT_NOT_YET);
    free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_tables_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
