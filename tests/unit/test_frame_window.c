// SPDX-License-Identifier: Apache-2.0
// Sections in windows: the same rows as from whole ones, whatever is in memory and whatever the
// section says.

#include "elf/unwind/rows.h"
#include "frames.h"
#include "unit.h"

#define SECTION 0x100000
#define CODE 0x1000000
#define FUNCTIONS 3000
#define SMALLEST_SHIFT 12

/* Entries in an order that jumps about, with many CIEs, so that both are seldom in memory. */
static void make_section(struct buffer *out, bool is_debug_frame)
{
    struct frame_style style = usual_style;
    style.debug_frame = is_debug_frame;
    size_t cies[40];
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        unsigned number = i * 1237u % FUNCTIONS;
        uint8_t program[64] = {0x44, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6};
        uint8_t initial[] = {0x0c, 7, (uint8_t)(8 + 8 * (i % 40)), 0x90, 1};
        if (i % 75 == 0)
            cies[i / 75] = put_cie(out, &style, initial, sizeof(initial));
        put_fde(out, &style, cies[i * 7 % (i / 75 + 1)], SECTION, CODE + number * 64,
                CODE + number * 64 + 40 + number % 24, program, 8 + number % 50);
    }
}

static void compile(const struct buffer *bytes, struct frame_window *window, bool is_debug_frame,
                    struct unwind_rules *rules, struct unwind_rows *ret_rows)
{
    struct error error = {0};
    struct frame_section section = {.bytes = window ? window->bytes : (const uint8_t *)bytes->data,
                                    .length = bytes->length,
                                    .window = window,
                                    .address = SECTION,
                                    .is_debug_frame = is_debug_frame};
    struct unwind_code code = {CODE, CODE + (1 << 20)};
    unwind_rules_init(rules);
    assert_int_equal(unwind_rows_compile_sections(&section, 1, &code, 1, rules, ret_rows, &error),
                     0);
}

/* A file that is nothing but the section. */
struct source {
    const struct buffer *bytes;
    uint64_t fails_from;
};

static ssize_t read_source(void *context, uint64_t offset, void *to, size_t length)
{
    const struct source *source = context;
    if (offset + length > source->fails_from)
        return -EIO;
    if (offset >= source->bytes->length)
        return 0;
    length = MIN(length, source->bytes->length - offset);
    memcpy(to, source->bytes->data + offset, length);
    return (ssize_t)length;
}

static struct elf_file file_of(struct source *source)
{
    return (struct elf_file){
        .read = read_source, .context = source, .fd = -1, .size_bytes = source->bytes->length};
}

static void assert_same(const struct buffer *bytes, bool is_debug_frame, size_t blocks)
{
    _cleanup_rules_ struct unwind_rules rules, window_rules;
    _cleanup_rows_ struct unwind_rows whole = {0}, by_window = {0};
    struct error error = {0};
    struct source source = {.bytes = bytes, .fails_from = UINT64_MAX};
    struct elf_file file = file_of(&source);
    _cleanup_window_ struct frame_window window = {0};
    assert_int_equal(
        frame_window_init(&window, &file, 0, bytes->length, SMALLEST_SHIFT, blocks, &error), 0);
    compile(bytes, NULL, is_debug_frame, &rules, &whole);
    compile(bytes, &window, is_debug_frame, &window_rules, &by_window);
    assert_int_equal(whole.row_count, by_window.row_count);
    assert_int_equal(whole.bad_entries, by_window.bad_entries);
    assert_int_equal(whole.bad_programs, by_window.bad_programs);
    assert_int_equal(whole.outside, by_window.outside);
    assert_int_equal(rules.count, window_rules.count);
    assert_memory_equal(rules.rules, window_rules.rules, rules.count * sizeof(struct unwind_rule));
    if (whole.row_count)
        assert_memory_equal(whole.rows, by_window.rows, whole.row_count * sizeof(*whole.rows));
}

static void the_same_rows(void **state)
{
    (void)state;
    for (int debug_frame = 0; debug_frame < 2; debug_frame++) {
        _cleanup_buffer_ struct buffer bytes = {0};
        make_section(&bytes, debug_frame);
        assert_true(bytes.length > 20 << SMALLEST_SHIFT);
        for (size_t blocks = 1; blocks < 40; blocks += 6)
            assert_same(&bytes, debug_frame, blocks);
    }
}

static void the_same_of_damage(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer bytes = {0};
    make_section(&bytes, false);
    size_t length = bytes.length;
    uint32_t random = 12345;
    for (int i = 0; i < 60; i++) {
        for (int flips = 0; flips < 20; flips++) {
            random = random * 1664525 + 1013904223;
            bytes.data[random % length] ^= (char)(1 << (random >> 28) % 8);
        }
        bytes.length = length - random % 5000;
        assert_same(&bytes, false, 1 + (size_t)i % 5);
    }
}

static void little_is_in_memory(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer bytes = {0};
    struct error error = {0};
    make_section(&bytes, false);
    struct source source = {.bytes = &bytes, .fails_from = UINT64_MAX};
    struct elf_file file = file_of(&source);
    _cleanup_window_ struct frame_window window = {0};
    assert_int_equal(frame_window_init(&window, &file, 0, bytes.length, SMALLEST_SHIFT, 4, &error),
                     0);
    for (size_t at = 0; at + 100 < bytes.length; at += 100) {
        assert_true(frame_window_need(&window, at, 100));
        assert_memory_equal(window.bytes + at, bytes.data + at, 100);
        assert_true(window.count <= 4);
    }
    assert_int_equal(window.bytes[0], 0); /* gone */
    /* A stretch of more blocks than there may be is there as a whole. */
    assert_true(frame_window_need(&window, 10, 9 << SMALLEST_SHIFT));
    assert_memory_equal(window.bytes + 10, bytes.data + 10, 9 << SMALLEST_SHIFT);
    assert_true(frame_window_need(&window, 0, bytes.length));
    assert_memory_equal(window.bytes, bytes.data, bytes.length);
    assert_true(frame_window_need(&window, bytes.length, 0));
    assert_false(frame_window_need(&window, bytes.length, 1));
    assert_false(frame_window_need(&window, bytes.length + 1, 0));
    assert_false(frame_window_need(&window, 1, SIZE_MAX));
}

/* An order made to do harm: what is read over and over stays at last. */
static void reading_again_has_an_end(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer bytes = {0};
    struct error error = {0};
    make_section(&bytes, false);
    struct source source = {.bytes = &bytes, .fails_from = UINT64_MAX};
    struct elf_file file = file_of(&source);
    _cleanup_window_ struct frame_window window = {0};
    assert_int_equal(frame_window_init(&window, &file, 0, bytes.length, SMALLEST_SHIFT, 1, &error),
                     0);
    for (size_t i = 0; i < 100000; i++) {
        size_t at = i * 7919 % (bytes.length - 1);
        assert_true(frame_window_need(&window, at, 1));
        assert_int_equal(window.bytes[at], (uint8_t)bytes.data[at]);
    }
    assert_true(window.read_bytes <= 8 * bytes.length);
}

static void a_file_that_fails(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer bytes = {0};
    _cleanup_rules_ struct unwind_rules rules;
    _cleanup_rows_ struct unwind_rows rows = {0};
    struct error error = {0};
    make_section(&bytes, false);
    struct source source = {.bytes = &bytes, .fails_from = bytes.length / 2};
    struct elf_file file = file_of(&source);
    _cleanup_window_ struct frame_window window = {0};
    assert_int_equal(frame_window_init(&window, &file, 0, bytes.length, SMALLEST_SHIFT, 4, &error),
                     0);
    compile(&bytes, &window, false, &rules, &rows);
    assert_true(rows.bad_entries > 0 && rows.row_count > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_rows),       cmocka_unit_test(the_same_of_damage),
        cmocka_unit_test(little_is_in_memory), cmocka_unit_test(reading_again_has_an_end),
        cmocka_unit_test(a_file_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
