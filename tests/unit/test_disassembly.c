// SPDX-License-Identifier: Apache-2.0
// Disassembly: lengths and targets of instructions, bytes that are none, and answers of a child
// that are wrong.

#include "arch/x86_64/disassemble.h"
#include "symbol/disassembly.h"
#include "unit.h"

/* push %rbp; mov %rsp,%rbp; call +0; jne -7 (the call); two bytes that are no instruction; ret */
static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xe8, 0x00, 0x00,
                               0x00, 0x00, 0x75, 0xf9, 0x06, 0x07, 0xc3};

static void instructions_and_targets(void **state)
{
    (void)state;
    static const struct {
        uint8_t length;
        uint64_t target;
        const char *text;
    } expected[] = {
        {1, 0, "pushq %rbp"},
        {3, 0, "movq %rsp, %rbp"},
        {5, 0x1009, "callq 0x1009"},
        {2, 0x1004, "jne 0x1004"},
        {1, 0, ".byte 0x06"},
        {1, 0, ".byte 0x07"},
        {1, 0, "retq"},
    };
    struct disassembly made;
    struct error error = {0};
    assert_int_equal(disassembly_make(code, sizeof(code), 0x1000, &made, &error), 0);
    assert_int_equal(made.count, ARRAY_LENGTH(expected));
    uint64_t address = 0x1000;
    for (size_t i = 0; i < made.count; i++) {
        assert_int_equal(made.instructions[i].address, address);
        assert_int_equal(made.instructions[i].length, expected[i].length);
        assert_int_equal(made.instructions[i].target, expected[i].target);
        assert_string_equal(made.instructions[i].text, expected[i].text);
        address += expected[i].length;
    }
    disassembly_release(&made);
}

static void add_up(void *context, const struct x86_64_line *line)
{
    size_t *sum = context;
    assert_true(line->length >= 1 && line->length <= 15);
    assert_true(line->text[0] && strlen(line->text) < sizeof(line->text));
    *sum += line->length;
}

/* Any bytes are covered exactly, also where an instruction goes on behind the end. */
static void any_bytes(void **state)
{
    (void)state;
    uint8_t bytes[4096];
    uint64_t random = 88172645463325252u;
    for (size_t round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof(bytes); i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            bytes[i] = (uint8_t)random;
        }
        for (size_t length = 0; length <= 32; length++) {
            size_t sum = 0;
            assert_true(x86_64_disassemble(bytes, length, UINT64_MAX - 8, add_up, &sum));
            assert_int_equal(sum, length);
        }
        size_t sum = 0;
        assert_true(x86_64_disassemble(bytes, sizeof(bytes), round, add_up, &sum));
        assert_int_equal(sum, sizeof(bytes));
    }
}

static void limits(void **state)
{
    (void)state;
    struct disassembly made;
    struct error error = {0};
    assert_int_equal(disassembly_make(code, 0, 0, &made, &error), -E2BIG);
    size_t most = DISASSEMBLY_BYTES_MAX;
    uint8_t *bytes = memory_alloc(most + 1);
    /* The most output for its bytes: none of them is an instruction. */
    memset(bytes, 0x06, most + 1);
    assert_int_equal(disassembly_make(bytes, most + 1, 0, &made, &error), -E2BIG);
    assert_non_null(strstr(error.text, "1048577"));
    assert_int_equal(disassembly_make(bytes, most, 0, &made, &error), 0);
    assert_int_equal(made.count, most);
    disassembly_release(&made);
    free(bytes);
}

/* One piece: an 8-byte target, the length, the text's length, the text and its NUL. */
static void add_piece(struct buffer *answer, uint8_t length, uint8_t text_length, const char *text)
{
    buffer_add(answer, &(uint64_t){0}, 8);
    buffer_add_char(answer, (char)length);
    buffer_add_char(answer, (char)text_length);
    buffer_add(answer, text, strlen(text) + 1);
}

static int read_answer(struct buffer *answer, size_t length)
{
    struct disassembly made;
    struct error error = {0};
    int r = disassembly_read(answer, length, 0, &made, &error);
    if (r == 0)
        disassembly_release(&made);
    else
        assert_true(error.text[0]);
    buffer_release(answer);
    return r;
}

static void wrong_answers(void **state)
{
    (void)state;
    struct buffer answer = {0};
    add_piece(&answer, 2, 3, "nop");
    add_piece(&answer, 1, 4, "retq");
    size_t whole = answer.length;
    assert_int_equal(read_answer(&answer, 3), 0);
    for (size_t cut = 0; cut < whole; cut++) {
        add_piece(&answer, 2, 3, "nop");
        add_piece(&answer, 1, 4, "retq");
        answer.length = cut;
        assert_int_equal(read_answer(&answer, 3), -EBADMSG);
    }
    static const struct {
        uint8_t length, text_length;
        size_t of;
    } wrong[] = {{0, 3, 2}, {3, 3, 2}, {1, 3, 2}, {2, 4, 2}, {2, 2, 2}, {2, 255, 2}};
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
        add_piece(&answer, wrong[i].length, wrong[i].text_length, "nop");
        assert_int_equal(read_answer(&answer, wrong[i].of), -EBADMSG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(instructions_and_targets),
                                       cmocka_unit_test(any_bytes), cmocka_unit_test(limits),
                                       cmocka_unit_test(wrong_answers)};
    return cmocka_run_group_tests_name("disassembly", tests, NULL, NULL);
}
