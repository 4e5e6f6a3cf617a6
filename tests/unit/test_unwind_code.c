// SPDX-License-Identifier: Apache-2.0
// Unwind rules from code: of small functions, byte by byte, and of all functions of this program
// and its C library against what their compilers say.

#include <string.h>
#include <unistd.h>

#include "arch/x86_64/code.h"
#include "elf/unwind/rows.h"
#include "unit.h"

#define ROOM 64

struct rules {
    struct unwind_rule at[ROOM];
    uint32_t length;
};

static void note(void *context, uint32_t offset, uint32_t length, const struct unwind_rule *rule)
{
    struct rules *rules = context;
    assert_int_equal(offset, rules->length);
    assert_true(offset + length <= ROOM);
    while (rules->length < offset + length)
        rules->at[rules->length++] = *rule;
}

static struct rules rules_of(const char *code, size_t length)
{
    struct rules rules = {0};
    assert_true(x86_64_code_rules((const uint8_t *)code, length, false, note, &rules));
    assert_int_equal(rules.length, length);
    return rules;
}
#define RULES(code) rules_of(code, sizeof(code) - 1)

static void assert_rule(const struct rules *rules, uint32_t offset, unsigned cfa, int cfa_offset)
{
    assert_int_equal(rules->at[offset].cfa, cfa);
    assert_int_equal(rules->at[offset].cfa_offset, cfa_offset);
}

static void pushes_and_pops(void **state)
{
    (void)state;
    /* push %rbp; push %r12; sub $0x20,%rsp; call; add $0x20,%rsp; pop %r12; pop %rbp; ret */
    struct rules rules =
        RULES("\x55\x41\x54\x48\x83\xec\x20\xe8\0\0\0\0\x48\x83\xc4\x20\x41\x5c\x5d\xc3");
    assert_rule(&rules, 0, UNWIND_CFA_SP, 8);
    assert_rule(&rules, 1, UNWIND_CFA_SP, 16);
    assert_rule(&rules, 3, UNWIND_CFA_SP, 24);
    assert_rule(&rules, 7, UNWIND_CFA_SP, 56);
    assert_int_equal(UNWIND_SAVED_FP(rules.at[7].saved), UNWIND_FP_AT_CFA);
    assert_int_equal(rules.at[7].fp_slot, -2);
    assert_rule(&rules, 16, UNWIND_CFA_SP, 24);
    assert_rule(&rules, 19, UNWIND_CFA_SP, 8);
    assert_int_equal(UNWIND_SAVED_FP(rules.at[19].saved), UNWIND_FP_SAME);
}

static void frame_pointers(void **state)
{
    (void)state;
    /* push %rbp; mov %rsp,%rbp; and $-32,%rsp; sub %rax,%rsp; leave; ret */
    struct rules rules = RULES("\x55\x48\x89\xe5\x48\x83\xe4\xe0\x48\x29\xc4\xc9\xc3");
    assert_rule(&rules, 4, UNWIND_CFA_SP, 16);
    assert_rule(&rules, 8, UNWIND_CFA_FP, 16);
    assert_rule(&rules, 11, UNWIND_CFA_FP, 16);
    assert_rule(&rules, 12, UNWIND_CFA_SP, 8);
}

static void paths(void **state)
{
    (void)state;
    /* push %rbx; je 1f; pop %rbx; ret; 1: nop; pop %rbx; ret */
    struct rules rules = RULES("\x53\x74\x02\x5b\xc3\x90\x5b\xc3");
    assert_rule(&rules, 4, UNWIND_CFA_SP, 8);
    assert_rule(&rules, 5, UNWIND_CFA_SP, 16);
    /* A switch: push %rbx; jmp *%rax; nop; inc %eax; pop %rbx; ret */
    rules = RULES("\x53\xff\xe0\x90\xff\xc0\x5b\xc3");
    assert_rule(&rules, 4, UNWIND_CFA_SP, 16);
    assert_rule(&rules, 3, UNWIND_CFA_UNSUPPORTED, 0);
    /* A thread's first code: xor %ebp,%ebp; pop %rdi; call *%r9 */
    rules = RULES("\x31\xed\x5f\x41\xff\xd1\xf4");
    assert_rule(&rules, 2, UNWIND_CFA_END, 0);
}

static void what_cannot_be_followed(void **state)
{
    (void)state;
    static const struct {
        const char *code;
        size_t length;
    } cases[] = {
        {"\x53\xc3", 2},             /* push %rbx; ret */
        {"\x74\x01\x53\x90\xc3", 5}, /* je 1f; push %rbx; 1: nop; ret */
        {"\x06\xc3", 2},             /* not an instruction */
        {"\x48\x81\xec\x01", 4},     /* cut off */
        {"", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct rules rules = {0};
        assert_false(x86_64_code_rules((const uint8_t *)cases[i].code, cases[i].length, false, note,
                                       &rules));
        assert_int_equal(rules.length, 0);
    }
}

/* Distances that no stack has. */
static void far_distances(void **state)
{
    (void)state;
    /* lea 0x80000000(%rsp),%rsp, twice; leave; ret */
    struct rules rules = {0};
    static const char code[] = "\x48\x8d\xa4\x24\0\0\0\x80\x48\x8d\xa4\x24\0\0\0\x80\xc9\xc3";
    if (x86_64_code_rules((const uint8_t *)code, sizeof(code) - 1, false, note, &rules))
        assert_int_not_equal(rules.at[16].cfa, UNWIND_CFA_SP);
}

/* Whatever the bytes are, decoding stays within them. */
static void any_bytes(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int round = 0; round < 20000; round++) {
        uint8_t code[24];
        for (size_t i = 0; i < sizeof(code); i++)
            code[i] =
                (uint8_t)((random = random * 6364136223846793005ull + 1442695040888963407ull) >>
                          56);
        struct x86_64_instruction instruction;
        size_t room = (size_t)(random >> 40) % sizeof(code);
        if (x86_64_decode(code, room, &instruction))
            assert_in_range(instruction.length, 1, room);
        struct rules rules = {0};
        if (x86_64_code_rules(code, room, false, note, &rules))
            assert_int_equal(rules.length, room);
    }
}

struct comparison {
    const struct unwind_rows *rows;
    const struct unwind_rules *rules;
    uint64_t start;
    size_t compared, different;
};

/* Where both say it by the stack pointer. */
static void compare(void *context, uint32_t offset, uint32_t length, const struct unwind_rule *rule)
{
    struct comparison *comparison = context;
    const uint32_t ends[] = {offset, offset + length - 1};
    for (int i = 0; i < 2; i++) {
        uint16_t number = unwind_rows_find(comparison->rows, comparison->start + ends[i]);
        const struct unwind_rule *theirs = &comparison->rules->rules[number];
        if (rule->cfa != UNWIND_CFA_SP || theirs->cfa != UNWIND_CFA_SP)
            continue;
        comparison->compared++;
        comparison->different += rule->cfa_offset != theirs->cfa_offset;
    }
}

static void compare_file(const char *path, size_t least)
{
    struct elf_file file;
    struct error error = {0};
    struct unwind_rules rules;
    struct unwind_rows rows = {0};
    assert_int_equal(elf_open(path, &file, &error), 0);
    unwind_rules_init(&rules);
    assert_int_equal(unwind_rows_compile(&file, &rules, &rows, &error), 0);
    struct comparison comparison = {.rows = &rows, .rules = &rules};
    static uint8_t code[X86_64_FUNCTION_BYTES_MAX];
    size_t followed = 0, tried = 0;
    for (uint32_t i = 0; i < rows.function_count; i++) {
        const struct unwind_function *function = &rows.functions[i];
        comparison.start = (rows.first_page << UNWIND_PAGE_SHIFT) + function->start;
        uint16_t first = unwind_rows_find(&rows, comparison.start);
        /* Rare paths of another function begin with something on the stack. */
        if (function->length > sizeof(code) || rules.rules[first].cfa != UNWIND_CFA_SP ||
            rules.rules[first].cfa_offset != 8 ||
            elf_read_address(&file, comparison.start, code, function->length) < 0)
            continue;
        tried++;
        followed += x86_64_code_rules(code, function->length, false, compare, &comparison);
    }
    printf("# %s: %zu of %zu functions followed, %zu of %zu rows differ\n", path, followed, tried,
           comparison.different, comparison.compared);
    assert_true(tried > least);
    assert_true(followed > tried / 100 * 95);
    assert_true(comparison.compared > tried);
    /* Two of glibc's assembly functions push registers that their CFI doesn't mention. */
    assert_true(comparison.different <= 16);
    unwind_rows_release(&rows);
    unwind_rules_release(&rules);
    elf_release(&file);
}

static void agrees_with_compilers(void **state)
{
    (void)state;
    compare_file("/proc/self/exe", 100);
    if (access("/lib/x86_64-linux-gnu/libc.so.6", R_OK) == 0)
        compare_file("/lib/x86_64-linux-gnu/libc.so.6", 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pushes_and_pops),
        cmocka_unit_test(frame_pointers),
        cmocka_unit_test(paths),
        cmocka_unit_test(what_cannot_be_followed),
        cmocka_unit_test(far_distances),
        cmocka_unit_test(any_bytes),
        cmocka_unit_test(agrees_with_compilers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
