// SPDX-License-Identifier: Apache-2.0
// Readers of Python's structures, on memory that is made up: tables of lines, strings, chains that
// lead in circles, and objects that change while they are read.

#include <string.h>

#include "runtime/frames.h"
#include "runtime/python/code.h"
#include "runtime/python/lines.h"
#include "runtime/python/walk.h"
#include "unit.h"

/* ---- a process ---- */

#define BASE 0x10000u
struct image {
    uint8_t bytes[8192];
    unsigned reads;
    unsigned change_after; /* reads: then the code object is another one; 0: never */
};

static bool read_image(void *context, uint64_t address, void *buffer, size_t length)
{
    struct image *image = context;
    if (address < BASE || address - BASE > sizeof(image->bytes) - length)
        return false;
    if (++image->reads == image->change_after)
        image->bytes[72] ^= 1;
    memcpy(buffer, image->bytes + (address - BASE), length);
    return true;
}

static void put(struct image *image, size_t at, uint64_t word)
{
    memcpy(image->bytes + at, &word, sizeof(word));
}

static void put_text(struct image *image, size_t at, const char *text, uint32_t state)
{
    put(image, at + 16, strlen(text));
    put(image, at + 32, state);
    memcpy(image->bytes + at + 48, text, strlen(text) + 1);
}

enum { CODE = 0, FRAME = 512, CFRAME = 640, THREAD = 704, NAME = 1024, PATH = 1280, LINES = 1536 };
#define ASCII_TEXT 0x65u /* interned, one byte each, compact, ASCII */
#define CODE_TYPE 0x4444

/* 3.11: one frame of one function. */
static struct python_process make(struct image *image)
{
    struct python_binary binary = {.major = 3, .minor = 11};
    struct runtime_memory memory = {.read = read_image, .context = image};
    struct python_process python = {0};
    const char *reason;
    assert_true(python_offsets_get(&binary, &memory, 0, &python.offsets, &reason));
    python.offsets.walk.code_type = CODE_TYPE;
    put(image, CODE + 8, CODE_TYPE);
    put(image, CODE + 72, 7); /* first line */
    put(image, CODE + 112, BASE + PATH);
    put(image, CODE + 120, BASE + NAME);
    put(image, CODE + 128, BASE + NAME);
    put(image, CODE + 136, BASE + LINES);
    put_text(image, NAME, "Class.method", ASCII_TEXT);
    put_text(image, PATH, "/srv/app/main.py", ASCII_TEXT);
    put(image, LINES + 16, 2);
    memcpy(image->bytes + LINES + 32, "\xe9\x04", 2); /* two units, two lines on */
    put(image, FRAME + 32, BASE + CODE);
    put(image, FRAME + 56, BASE + CODE + 184 + 2);
    image->bytes[FRAME + 68] = 1;
    put(image, CFRAME + 8, BASE + FRAME);
    put(image, THREAD + 56, BASE + CFRAME);
    python.offsets.walk.tsd_offset = 0;
    put(image, THREAD - 8, BASE + THREAD);
    return python;
}

static void test_names(void **state)
{
    (void)state;
    struct image image = {0};
    struct runtime_memory memory = {.read = read_image, .context = &image};
    struct python_process python = make(&image);
    struct python_chain chain;
    python_chain_read(&python, &memory, BASE + THREAD - 8, &chain);
    assert_int_equal(chain.count, 1);
    assert_false(chain.broken);
    struct runtime_codes codes = {0};
    struct runtime_known met = {.identity = runtime_code_identity(1, &chain.frames[0].mark),
                                .pid = 1,
                                .mark = chain.frames[0].mark};
    runtime_codes_take(&codes, python_code_read, &python, &memory, &met);
    const struct runtime_known *known = runtime_codes_find(&codes, met.identity);
    assert_true(known->named);
    assert_string_equal(known->code.function, "main.py:Class.method");
    assert_string_equal(known->code.file, "/srv/app/main.py");
    assert_int_equal(runtime_code_line(&known->code, chain.frames[0].unit), 9);
    assert_int_equal(runtime_code_line(&known->code, BPF_PYTHON_UNIT_MASK), known->code.first_line);
    /* The same identity of another object. */
    met.mark.address++;
    runtime_codes_take(&codes, python_code_read, &python, &memory, &met);
    assert_true(runtime_codes_find(&codes, met.identity)->ambiguous);
    /* Of an interpreter that isn't known. */
    met.identity ^= 2;
    runtime_codes_take(&codes, python_code_read, NULL, &memory, &met);
    assert_false(runtime_codes_find(&codes, met.identity)->named);
    runtime_codes_release(&codes);
    free(chain.frames);
}

static void test_function_names(void **state)
{
    static const char *const cases[][2] = {
        {"/srv/app/main.py", "main.py:f"},
        {"/usr/lib/python3.11/json/__init__.py", "json/__init__.py:f"},
        {"/srv/a/__main__.py", "a/__main__.py:f"},
        {"json/__init__.py", "json/__init__.py:f"},
        {"/__init__.py", "__init__.py:f"},
        {"__init__.py", "__init__.py:f"},
        {"<string>", "<string>:f"},
        {"/", ":f"},
        {"", ":f"},
    };
    struct arena arena = {0};
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        assert_string_equal(python_function_name(&arena, cases[i][0], "f"), cases[i][1]);
    arena_release(&arena);
}

/* Whenever it changes, either nothing was wrong yet or nothing is said. */
static void test_change(void **state)
{
    (void)state;
    unsigned named = 0, refused = 0;
    for (unsigned after = 1; after < 40; after++) {
        struct image image = {0};
        struct runtime_memory memory = {.read = read_image, .context = &image};
        struct python_process python = make(&image);
        struct runtime_mark mark;
        struct runtime_code code;
        struct arena arena = {0};
        assert_true(python_code_mark(&python, &memory, BASE + CODE, &mark));
        image.reads = 0;
        image.change_after = after;
        if (python_code_read(&python, &memory, &mark, &arena, &code)) {
            assert_int_equal(image.bytes[72], 7); /* it had not changed by then */
            named++;
        } else {
            assert_int_not_equal(image.bytes[72], 7);
            refused++;
        }
        arena_release(&arena);
    }
    assert_true(named && refused);
}

static void test_circle(void **state)
{
    (void)state;
    struct image image = {0};
    struct runtime_memory memory = {.read = read_image, .context = &image};
    struct python_process python = make(&image);
    struct python_chain chain;
    put(&image, FRAME + 48, BASE + FRAME);
    image.bytes[FRAME + 68] = 0;
    python_chain_read(&python, &memory, BASE + THREAD - 8, &chain);
    assert_true(chain.count <= PYTHON_CHAIN_MAX + 1 && chain.broken);
    assert_true(image.reads < 4 * PYTHON_CHAIN_MAX);
    free(chain.frames);
    image.bytes[FRAME + 68] = 1;
    put(&image, CFRAME + 16, BASE + CFRAME);
    python_chain_read(&python, &memory, BASE + THREAD - 8, &chain);
    assert_true(chain.count <= PYTHON_CHAIN_MAX);
    free(chain.frames);
}

/* A call takes its frames only if they are on its part of the C stack. */
static void test_take(void **state)
{
    (void)state;
    struct python_frame frames[] = {
        {.unit = 0}, {.last = true, .place = 100}, {.last = true, .place = 300}};
    struct python_chain chain = {.frames = frames, .count = 3};
    const struct python_frame *taken;
    assert_int_equal(python_chain_take(&chain, 10, 50, &taken), 0);
    assert_int_equal(python_chain_take(&chain, 50, 200, &taken), 2);
    assert_ptr_equal(taken, frames);
    assert_int_equal(python_chain_take(&chain, 200, 250, &taken), 0);
    assert_int_equal(python_chain_take(&chain, 250, 400, &taken), 1);
    assert_int_equal(python_chain_take(&chain, 400, 500, &taken), 0);
}

static void test_lines(void **state)
{
    (void)state;
    struct runtime_line lines[PYTHON_LINES_MAX];
    /* Before 3.10: 4 bytes of line 10, 6 of line 12, the rest of line 11. */
    size_t count = python_lines_decode(9, (const uint8_t *)"\x04\x02\x06\xff", 4, 10, lines);
    assert_int_equal(count, 3);
    assert_true(lines[0].end == 2 && lines[0].line == 10);
    assert_true(lines[1].end == 5 && lines[1].line == 12);
    assert_int_equal(lines[2].line, 11);
    /* 3.10: 4 bytes of line 12, 2 of none, 2 of line 11. */
    count = python_lines_decode(10, (const uint8_t *)"\x04\x02\x02\x80\x02\xff", 6, 10, lines);
    assert_int_equal(count, 3);
    assert_true(lines[0].end == 2 && lines[0].line == 12);
    assert_true(lines[1].end == 3 && lines[1].line == 0);
    assert_true(lines[2].end == 4 && lines[2].line == 11);
    /* Cut off anywhere. */
    const uint8_t table[] = {0xf2, 0x43, 0x02, 0x01, 0x01, 0xe8, 0x03, 0xd1, 1, 2, 0x80, 9, 0xf8};
    for (size_t length = 0; length <= sizeof(table); length++)
        assert_true(python_lines_decode(12, table, length, 1, lines) <= length);
}

static void test_hidden(void **state)
{
    (void)state;
    enum {
        O = RUNTIME_FRAME_OTHER,
        P = RUNTIME_FRAME_PROGRAM,
        E = RUNTIME_FRAME_EVALUATE,
        I = RUNTIME_FRAME_INTERPRETER,
        S = RUNTIME_FRAME_START,
        H = RUNTIME_FRAME_HIDDEN
    };
    const struct {
        uint8_t before[10], after[10];
    } cases[] = {
        /* a built-in function, a library between two functions, the program's start */
        {{I, P, E, I, O, P, E, I, S, S}, {I, P, H, H, O, P, H, H, H, H}},
        /* embedded in another program */
        {{P, E, I, O, O, S, S, S, S, S}, {P, H, H, O, O, S, S, S, S, S}},
        /* a thread that runs no Python now */
        {{I, I, S, S, O, O, O, O, O, O}, {I, I, S, S, O, O, O, O, O, O}},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        uint8_t kinds[10];
        memcpy(kinds, cases[i].before, sizeof(kinds));
        runtime_frames_hide(kinds, ARRAY_LENGTH(kinds));
        assert_memory_equal(kinds, cases[i].after, sizeof(kinds));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),  cmocka_unit_test(test_function_names),
        cmocka_unit_test(test_change), cmocka_unit_test(test_circle),
        cmocka_unit_test(test_take),   cmocka_unit_test(test_lines),
        cmocka_unit_test(test_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
