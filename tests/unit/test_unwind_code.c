// SPDX-License-Identifier: Apache-2.0
// Unwind rules from code: of small functions, byte by byte, of all functions of this program and
// its C library against what their compilers say, and of a large program without tables.

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch/x86_64/code.h"
#include "base/memory.h"
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
    assert_rule(&rules, 3, UNWIND_CFA_LOST, 0);
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

/* ---- from the middle of functions ---- */

static void note_at(void *context, uint32_t offset, uint32_t length, const struct unwind_rule *rule)
{
    struct rules *rules = context;
    assert_true(offset >= rules->length && offset + length <= ROOM);
    for (rules->length = offset + length; offset < rules->length; offset++)
        rules->at[offset] = *rule;
}

static bool region_rules(const char *code, size_t length, size_t offset, enum x86_64_start start,
                         struct rules *ret_rules)
{
    struct x86_64_region *region = x86_64_region_new(ROOM);
    uint8_t functions[ROOM] = {0};
    struct x86_64_code all = {(const uint8_t *)code, length, functions};
    uint64_t steps = 1000;
    *ret_rules = (struct rules){0};
    /* 0xcc in these cases comes before another function. */
    for (size_t i = 1; i < length; i++)
        functions[i] = (uint8_t)code[i - 1] == 0xcc;
    assert_true(x86_64_region_set(region, &all));
    bool found = x86_64_region_rules(region, offset, start, &steps, note_at, ret_rules);
    x86_64_region_free(region);
    return found;
}
#define REGION(code, offset, start, rules)                                                         \
    region_rules(code, sizeof(code) - 1, offset, start, rules)

static void from_anywhere(void **state)
{
    (void)state;
    struct rules rules;
    /* push %rbx; push %rbp; nop; pop %rbp; pop %rbx; ret */
    static const char pushes[] = "\x53\x55\x90\x5d\x5b\xc3";
    for (size_t from = 0; from < sizeof(pushes) - 1; from++) {
        assert_true(REGION(pushes, from, X86_64_START_ANYWHERE, &rules));
        assert_rule(&rules, 5, UNWIND_CFA_SP, 8);
        if (from > 2)
            continue;
        assert_rule(&rules, 2, UNWIND_CFA_SP, 24);
        assert_int_equal(UNWIND_SAVED_FP(rules.at[2].saved), UNWIND_FP_AT_CFA);
        assert_int_equal(rules.at[2].fp_slot, -3);
    }
    /* Two returns that disagree; nothing that returns; a return below the start. */
    static const char differ[] = "\x74\x01\x5b\x5b\x74\x01\xc3\x5b\xc3";
    assert_false(REGION(differ, 0, X86_64_START_ANYWHERE, &rules));
    static const char never[] = "\x53\xe8\0\0\0\0\xcc\x53\x5b\xc3";
    assert_false(REGION(never, 0, X86_64_START_ANYWHERE, &rules));
    /* But where it is called, nothing is on its stack. */
    assert_true(REGION(never, 0, X86_64_START_FUNCTION, &rules));
    assert_rule(&rules, 1, UNWIND_CFA_SP, 16);
    assert_int_equal(rules.length, 6);
    assert_true(REGION(never, 0, X86_64_START_PROGRAM, &rules));
    assert_rule(&rules, 1, UNWIND_CFA_END, 0);
    /* push %rbx; push %rax; ret: takes what it has put there itself */
    assert_false(REGION("\x53\x50\xc3", 0, X86_64_START_FUNCTION, &rules));
}

static void aligned_stacks(void **state)
{
    (void)state;
    struct rules rules;
    /* push %rbp; mov %rsp,%r12; and $-64,%rsp; sub $64,%rsp; nop; mov %r12,%rsp; pop %rbp; ret */
    assert_true(REGION("\x55\x49\x89\xe4\x48\x83\xe4\xc0\x48\x83\xec\x40\x90\x4c\x89\xe4\x5d\xc3",
                       0, X86_64_START_ANYWHERE, &rules));
    assert_rule(&rules, 12, UNWIND_CFA_REGISTER, 16);
    assert_int_equal(rules.at[12].argument, 12);
    assert_int_equal(rules.at[12].fp_slot, -2);
    assert_rule(&rules, 16, UNWIND_CFA_SP, 16);
    assert_rule(&rules, 17, UNWIND_CFA_SP, 8);
    /* push %rbx; mov %rsp,%rax; sub $64,%rsp; and $-32,%rsp; mov %rax,0x20(%rsp); push %rdx;
     * pop %rdx; mov 0x20(%rsp),%rsp; pop %rbx; ret */
    assert_true(
        REGION("\x53\x48\x89\xe0\x48\x83\xec\x40\x48\x83\xe4\xe0\x48\x89\x44\x24\x20\x52\x5a"
               "\x48\x8b\x64\x24\x20\x5b\xc3",
               0, X86_64_START_ANYWHERE, &rules));
    assert_rule(&rules, 17, UNWIND_CFA_AT_SP, 0x20);
    assert_int_equal(rules.at[17].argument, 2);
    assert_rule(&rules, 18, UNWIND_CFA_AT_SP, 0x28);
    assert_rule(&rules, 24, UNWIND_CFA_SP, 16);
    /* and $-32,%rsp; mov 0x20(%rsp),%rsp; push %rbx; ret: takes what it has put there itself */
    rules = RULES("\x48\x83\xe4\xe0\x48\x8b\x64\x24\x20\x53\xc3");
    assert_int_equal(rules.at[9].cfa, UNWIND_CFA_LOST);
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

/* Without being told where functions begin. */
static size_t compare_from_middle(struct comparison *comparison, struct x86_64_region *region,
                                  const uint8_t *code, uint32_t length)
{
    size_t found = 0;
    uint64_t steps = 1u << 20;
    struct x86_64_code all = {code, length, NULL};
    assert_true(x86_64_region_set(region, &all));
    for (uint32_t offset = 0, i = 0; offset < length; i++) {
        struct x86_64_instruction instruction;
        if (!x86_64_decode(code + offset, length - offset, &instruction))
            break;
        if (i % 16 == 0)
            found += x86_64_region_rules(region, offset, X86_64_START_ANYWHERE, &steps, compare,
                                         comparison);
        offset += instruction.length;
    }
    return found;
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
    struct comparison comparison = {.rows = &rows, .rules = &rules}, middle = comparison;
    struct x86_64_region *region = x86_64_region_new(X86_64_FUNCTION_BYTES_MAX);
    size_t from_middle = 0;
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
        middle.start = comparison.start;
        from_middle += compare_from_middle(&middle, region, code, function->length);
    }
    x86_64_region_free(region);
    printf("# from the middle: %zu times, %zu of %zu rows differ\n", from_middle, middle.different,
           middle.compared);
    printf("# %s: %zu of %zu functions followed, %zu of %zu rows differ\n", path, followed, tried,
           comparison.different, comparison.compared);
    assert_true(tried > least);
    assert_true(followed > tried / 100 * 95);
    assert_true(comparison.compared > tried);
    /* Two of glibc's assembly functions push registers that their CFI doesn't mention. */
    assert_true(comparison.different <= 16);
    /* A call that never returns looks as if it did. */
    assert_true(from_middle > tried);
    assert_true(middle.different <= middle.compared / 1000);
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

/* ---- whole files ---- */

#define CODE_START 0x1000
#define CODE_BYTES (3u << 20) /* many windows of it */

static void put_bytes(int fd, const void *bytes, size_t length, off_t at)
{
    assert_int_equal(pwrite(fd, bytes, length, at), length);
}

/* A program with nothing but code: no sections, no symbols, no call frame information. */
static int bare_program(const void *code, size_t length)
{
    int fd = memfd_create("program", MFD_CLOEXEC);
    Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof(header),
        .e_ehsize = sizeof(header),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 1};
    Elf64_Phdr segment = {.p_type = PT_LOAD,
                          .p_flags = PF_R | PF_X,
                          .p_offset = CODE_START,
                          .p_vaddr = CODE_START,
                          .p_paddr = CODE_START,
                          .p_filesz = length,
                          .p_memsz = length,
                          .p_align = CODE_START};
    assert_true(fd >= 0);
    put_bytes(fd, &header, sizeof(header), 0);
    put_bytes(fd, &segment, sizeof(segment), sizeof(header));
    put_bytes(fd, code, length, CODE_START);
    return fd;
}

/* All functions of a large one have rules, also those that lie across what is read at a time. */
static void large_programs(void **state)
{
    (void)state;
    /* push %rbx; sub $16,%rsp; mov 8(%rsp),%rax; jne behind it; add $16,%rsp; pop %rbx; ret */
    static const uint8_t function[] = {0x53, 0x48, 0x83, 0xec, 0x10, 0x48, 0x8b, 0x44, 0x24, 0x08,
                                       0x75, 0x00, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3, 0xcc};
    uint8_t *code = memory_zalloc(CODE_BYTES, 1);
    size_t count = CODE_BYTES / sizeof(function);
    for (size_t i = 0; i < count; i++)
        memcpy(code + i * sizeof(function), function, sizeof(function));
    struct elf_file file;
    struct unwind_rules rules;
    struct unwind_rows rows = {0};
    unwind_rules_init(&rules);
    assert_int_equal(elf_open_fd(bare_program(code, CODE_BYTES), &file, NULL), 0);
    assert_int_equal(unwind_rows_compile(&file, &rules, &rows, NULL), 0);
    static const struct {
        uint32_t offset;
        int cfa_offset;
    } wanted[] = {{0, 8}, {1, 16}, {5, 32}, {12, 32}, {16, 16}, {17, 8}};
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < ARRAY_LENGTH(wanted); k++) {
            uint64_t at = CODE_START + i * sizeof(function) + wanted[k].offset;
            const struct unwind_rule *rule = &rules.rules[unwind_rows_find(&rows, at)];
            assert_int_equal(rule->cfa, UNWIND_CFA_SP);
            assert_int_equal(rule->cfa_offset, wanted[k].cfa_offset);
        }
    unwind_rows_release(&rows);
    unwind_rules_release(&rules);
    elf_release(&file);
    free(code);
}

static enum unwind_cfa cfa_at(const struct unwind_rows *rows, const struct unwind_rules *rules,
                              uint64_t offset)
{
    return rules->rules[unwind_rows_find(rows, CODE_START + offset)].cfa;
}

/* Where the stack pointer is lost, fp counts only if the code sets it up: else it is the caller's,
 * and a walk by it would leave the caller out. */
static void lost_stack_pointers(void **state)
{
    (void)state;
    static const uint8_t code[] = {/* 0: push %rbx; mov %rsp,%rbx; sub %rdi,%rsp; dec %rcx; jne; mov
                                      %rbx,%rsp; pop %rbx; ret */
                                   0x53, 0x48, 0x89, 0xe3, 0x48, 0x29, 0xfc, 0x48, 0xff, 0xc9, 0x75,
                                   0xfb, 0x48, 0x89, 0xdc, 0x5b, 0xc3, 0xcc, 0xcc, 0xcc,
                                   /* 20: jumps in a circle, as code that is entered by jumps may */
                                   0x90, 0xeb, 0xfd, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
                                   /* 28: push %rbp; mov %rsp,%rbp; and what the first does */
                                   0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x89, 0xe3, 0x48, 0x29, 0xfc,
                                   0x48, 0xff, 0xc9, 0x75, 0xfb, 0x48, 0x89, 0xdc, 0x5b, 0x5d, 0xc3,
                                   0xcc};
    struct elf_file file;
    struct unwind_rules rules;
    struct unwind_rows rows = {0};
    unwind_rules_init(&rules);
    assert_int_equal(elf_open_fd(bare_program(code, sizeof(code)), &file, NULL), 0);
    assert_int_equal(unwind_rows_compile(&file, &rules, &rows, NULL), 0);
    assert_int_equal(cfa_at(&rows, &rules, 7), UNWIND_CFA_LOST);
    assert_int_equal(cfa_at(&rows, &rules, 20), UNWIND_CFA_NONE);
    assert_int_equal(cfa_at(&rows, &rules, 39), UNWIND_CFA_NONE);
    unwind_rows_release(&rows);
    unwind_rules_release(&rules);
    elf_release(&file);
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
        cmocka_unit_test(from_anywhere),
        cmocka_unit_test(aligned_stacks),
        cmocka_unit_test(agrees_with_compilers),
        cmocka_unit_test(large_programs),
        cmocka_unit_test(lost_stack_pointers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
