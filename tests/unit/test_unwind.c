// SPDX-License-Identifier: Apache-2.0
// The walk: every rule and every way to end on stacks made by hand, then this process's own stacks
// against the C library's unwinder.

#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>
#include <ucontext.h>

#include "own_process.h"
#include "unit.h"

/* ---- stacks made by hand ---- */

#define STACK 0x7ffc00001000ull
#define CODE 0x401000ull /* 256 bytes of code per rule */
#define BIAS 0x10000ull

struct made {
    struct unwind_rules rules;
    struct unwind_rows rows;
    uint32_t pages[2];
    struct unwind_row row[16];
    uint64_t stack[64];
    struct unwind_input input;
    struct unwind_frame frames[32];
    size_t count;
};

/* Code at CODE + 256 * n has the rule n; behind it there is none. What is mapped is two pages. */
static bool made_find(void *context, uint64_t address, struct unwind_place *ret_place)
{
    struct made *made = context;
    if (address < CODE || address >= CODE + 2 * UNWIND_PAGE_BYTES)
        return false;
    *ret_place = (struct unwind_place){.rows = &made->rows, .bias = BIAS};
    return true;
}

static void make(struct made *made, const struct unwind_rule *rules, size_t count)
{
    *made = (struct made){0};
    unwind_rules_init(&made->rules);
    for (size_t i = 0; i < count; i++)
        made->row[i] = (struct unwind_row){(unsigned short)(i * 256),
                                           unwind_rules_add(&made->rules, rules[i])};
    made->row[count] = (struct unwind_row){(unsigned short)(count * 256), UNWIND_RULE_NONE};
    made->pages[1] = (uint32_t)count + 1;
    made->rows = (struct unwind_rows){.first_page = (CODE - BIAS) >> UNWIND_PAGE_SHIFT,
                                      .page_count = 1,
                                      .row_count = (uint32_t)count + 1,
                                      .pages = made->pages,
                                      .rows = made->row};
    made->input = (struct unwind_input){.stack = (const uint8_t *)made->stack,
                                        .stack_bytes = sizeof(made->stack),
                                        .stack_address = STACK,
                                        .rules = &made->rules,
                                        .find = made_find,
                                        .context = made};
    made->input.registers = unwind_registers_of(CODE + 16, STACK, STACK + 80);
}

static enum unwind_end walk_made(struct made *made)
{
    enum unwind_end end =
        unwind_walk(&made->input, made->frames, ARRAY_LENGTH(made->frames), &made->count);
    unwind_rules_release(&made->rules);
    return end;
}

/* Rule 0 is the one to try, rule 1 ends the walk. */
static enum unwind_end walk_one(struct made *made, struct unwind_rule rule)
{
    struct unwind_rule rules[] = {rule, {.cfa = UNWIND_CFA_END}};
    struct unwind_input input = made->input;
    uint64_t stack[64];
    memcpy(stack, made->stack, sizeof(stack));
    make(made, rules, 2);
    memcpy(made->stack, stack, sizeof(stack));
    if (input.registers.known) {
        made->input.registers = input.registers;
        made->input.in_system_call = input.in_system_call;
    }
    return walk_made(made);
}

static void every_rule(void **state)
{
    (void)state;
    static const struct {
        struct unwind_rule rule;
        unsigned slot; /* of the stack, where the return address is */
    } cases[] = {
        {{.cfa = UNWIND_CFA_SP, .cfa_offset = 40}, 4},
        {{.cfa = UNWIND_CFA_FP, .cfa_offset = 16}, 11},
        {{.cfa = UNWIND_CFA_PLT, .cfa_offset = 8, .argument = 1}, 0}, /* ip & 15 is 0 */
        {{.cfa = UNWIND_CFA_PLT, .cfa_offset = 8, .argument = 0}, 1},
        {{.cfa = UNWIND_CFA_AT_SP, .cfa_offset = 16}, 29}, /* slot 2 has the address of slot 30 */
        {{.cfa = UNWIND_CFA_AT_SP, .cfa_offset = 16, .argument = 2}, 31},
        {{.cfa = UNWIND_CFA_AT_FP, .cfa_offset = -64}, 29},
        {{.cfa = UNWIND_CFA_SP, .cfa_offset = 64, .saved = UNWIND_FP_AT_CFA, .fp_slot = -3}, 7},
        {{.cfa = UNWIND_CFA_SP, .cfa_offset = 64, .saved = UNWIND_FP_AT_FP}, 7},
        {{.cfa = UNWIND_CFA_SP, .cfa_offset = 64, .saved = UNWIND_FP_AT_SP, .fp_slot = 5}, 7},
        {{.cfa = UNWIND_CFA_SP, .cfa_offset = 64, .saved = UNWIND_FP_LOST}, 7},
        {{.cfa = UNWIND_CFA_REGISTER, .argument = 10, .cfa_offset = 8}, 20},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct made made = {.input.registers = unwind_registers_of(CODE + 16, STACK, STACK + 80)};
        made.input.registers.value[10] = STACK + 160;
        made.input.registers.known |= 1 << 10;
        made.stack[2] = STACK + 30 * 8;
        made.stack[cases[i].slot] = CODE + 256 + 5;
        assert_int_equal(walk_one(&made, cases[i].rule), UNWIND_END_COMPLETE);
        assert_int_equal(made.count, 2);
        assert_true(made.frames[0].address == CODE + 16);
        assert_true(made.frames[0].flags == UNWIND_FRAME_EXACT);
        assert_true(made.frames[1].address == CODE + 256 + 5);
        assert_true(made.frames[1].flags == 0);
    }
}

static void return_addresses_are_looked_up_one_before(void **state)
{
    (void)state;
    struct made made = {0};
    made.stack[0] = CODE + 256; /* the call was rule 0's last instruction */
    made.stack[1] = CODE + 512; /* and this one's caller ended in rule 1 */
    assert_int_equal(walk_one(&made, (struct unwind_rule){.cfa = UNWIND_CFA_SP, .cfa_offset = 8}),
                     UNWIND_END_COMPLETE);
    assert_int_equal(made.count, 3);
    /* The innermost address is exact, unless it is behind a system call. */
    made = (struct made){.input.registers = unwind_registers_of(CODE + 256, STACK, 0)};
    made.stack[0] = CODE + 512;
    assert_int_equal(walk_one(&made, (struct unwind_rule){.cfa = UNWIND_CFA_SP, .cfa_offset = 8}),
                     UNWIND_END_COMPLETE);
    assert_int_equal(made.count, 1);
    made = (struct made){.input.registers = unwind_registers_of(CODE + 256, STACK, 0),
                         .input.in_system_call = true};
    made.stack[0] = CODE + 512;
    assert_int_equal(walk_one(&made, (struct unwind_rule){.cfa = UNWIND_CFA_SP, .cfa_offset = 8}),
                     UNWIND_END_COMPLETE);
    assert_int_equal(made.count, 2);
}

static void a_register_may_hold_the_return_address(void **state)
{
    (void)state;
    struct unwind_rule rule = {.cfa = UNWIND_CFA_IP_IN_REGISTER, .argument = 5};
    struct made made = {.input.registers = unwind_registers_of(CODE + 16, STACK, 0)};
    assert_int_equal(walk_one(&made, rule), UNWIND_END_UNSUPPORTED);
    made = (struct made){.input.registers = unwind_registers_of(CODE + 16, STACK, 0)};
    made.input.registers.value[5] = CODE + 300;
    made.input.registers.known |= 1 << 5;
    assert_int_equal(walk_one(&made, rule), UNWIND_END_COMPLETE);
    assert_int_equal(made.count, 2);
}

static void new_threads_come_from_nowhere(void **state)
{
    (void)state;
    struct unwind_rule rule = {.cfa = UNWIND_CFA_CLONE, .cfa_offset = 8};
    /* The one who started it returns to its caller. */
    struct made made = {.input.registers = unwind_registers_of(CODE + 16, STACK, 0)};
    made.stack[0] = CODE + 256 + 5;
    assert_int_equal(walk_one(&made, rule), UNWIND_END_COMPLETE);
    assert_int_equal(made.count, 2);
    /* The new one has no code on its stack, or no stack that could be read. */
    made = (struct made){.input.registers = unwind_registers_of(CODE + 16, STACK, 0)};
    made.stack[0] = STACK;
    assert_int_equal(walk_one(&made, rule), UNWIND_END_COMPLETE);
    assert_int_equal(made.count, 1);
    made = (struct made){.input.registers = unwind_registers_of(CODE + 16, STACK - 64, 0)};
    assert_int_equal(walk_one(&made, rule), UNWIND_END_COMPLETE);
    assert_int_equal(made.count, 1);
}

static void coroutines_begin_with_a_planted_address(void **state)
{
    (void)state;
    struct unwind_rule rules[] = {{.cfa = UNWIND_CFA_SP, .cfa_offset = 8}};
    struct made made;
    make(&made, rules, 1);
    /* Nothing from 256 on, and another function at 512. */
    made.row[2] = (struct unwind_row){512, made.row[0].rule};
    made.pages[1] = made.rows.row_count = 3;
    made.stack[0] = CODE + 512;
    assert_int_equal(walk_made(&made), UNWIND_END_COMPLETE);
    assert_int_equal(made.count, 2);
    assert_true(made.frames[1].flags & UNWIND_FRAME_EXACT);
    /* Anywhere else without rows it is no end. */
    make(&made, rules, 1);
    made.row[2] = (struct unwind_row){512, made.row[0].rule};
    made.pages[1] = made.rows.row_count = 3;
    made.stack[0] = CODE + 511;
    made.input.registers.value[6] = 1;
    assert_int_equal(walk_made(&made), UNWIND_END_NO_ROWS);
}

static void what_an_epilogue_took_back_is_in_its_register(void **state)
{
    (void)state;
    /* Saved 24 bytes below the CFA, which is only 16 above the stack pointer by now. */
    struct unwind_rule rules[] = {
        {.cfa = UNWIND_CFA_SP, .cfa_offset = 16, .saved = UNWIND_FP_AT_CFA, .fp_slot = -3},
        {.cfa = UNWIND_CFA_FP, .cfa_offset = 16},
        {.cfa = UNWIND_CFA_END},
    };
    struct made made;
    make(&made, rules, 3);
    made.stack[1] = CODE + 256 + 5;
    made.stack[11] = CODE + 512 + 5; /* above fp, STACK + 80 */
    assert_int_equal(walk_made(&made), UNWIND_END_COMPLETE);
    assert_int_equal(made.count, 3);
}

static void rbx_is_followed(void **state)
{
    (void)state;
    /* The loader's: an inner function saves rbx, its caller finds its frame by it. */
    struct unwind_rule rules[] = {
        {.cfa = UNWIND_CFA_SP, .cfa_offset = 24, .saved = 2 << 4},
        {.cfa = UNWIND_CFA_SP, .cfa_offset = 8, .saved = UNWIND_BASE_SAME << 4},
        {.cfa = UNWIND_CFA_REGISTER, .argument = 3, .cfa_offset = 16},
        {.cfa = UNWIND_CFA_END},
    };
    struct made made;
    make(&made, rules, 4);
    made.stack[1] = STACK + 240; /* rbx */
    made.stack[2] = CODE + 256 + 9;
    made.stack[3] = CODE + 512 + 9;
    made.stack[31] = CODE + 768 + 9;
    assert_int_equal(walk_made(&made), UNWIND_END_COMPLETE);
    assert_int_equal(made.count, 4);
    assert_true(made.frames[3].address == CODE + 768 + 9);
    rules[1].saved = 0; /* goes through code that doesn't track it */
    make(&made, rules, 4);
    made.stack[1] = STACK + 240;
    made.stack[2] = CODE + 256 + 9;
    made.stack[3] = CODE + 512 + 9;
    made.stack[31] = CODE + 768 + 9;
    assert_int_equal(walk_made(&made), UNWIND_END_UNSUPPORTED);
    assert_int_equal(made.count, 3);
}

static void frame_pointers_where_there_are_no_rows(void **state)
{
    (void)state;
    struct unwind_rule rules[] = {{.cfa = UNWIND_CFA_END}};
    struct made made;
    make(&made, rules, 1);
    made.input.registers = unwind_registers_of(CODE + 0x800, STACK, STACK + 80);
    made.stack[10] = STACK + 160;
    made.stack[11] = CODE + 0x900;
    made.stack[20] = 0; /* the chain's end */
    made.stack[21] = CODE + 0xa00;
    assert_int_equal(walk_made(&made), UNWIND_END_COMPLETE);
    assert_int_equal(made.count, 3);
    assert_true(made.frames[1].address == CODE + 0x900);
    assert_int_equal(made.frames[1].flags, UNWIND_FRAME_GUESSED | UNWIND_FRAME_ROWLESS);
    assert_true(made.frames[2].address == CODE + 0xa00);
    /* What is no frame pointer is not followed, and leaves no frame behind. */
    static const uint64_t bad[] = {0,          STACK - 8, STACK + 4,         UINT64_MAX - 7,
                                   1ull << 62, STACK + 8, 0x8000000000000000};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        make(&made, rules, 1);
        made.input.registers = unwind_registers_of(CODE + 0x800, STACK, bad[i]);
        made.stack[2] = 0x1234; /* no code */
        assert_int_equal(walk_made(&made), UNWIND_END_NO_ROWS);
        assert_int_equal(made.count, 1);
    }
    make(&made, rules, 1);
    made.input.registers = unwind_registers_of(CODE + 0x800, STACK, STACK + sizeof(made.stack));
    assert_int_equal(walk_made(&made), UNWIND_END_TRUNCATED);
    /* A word of 0 on the stack of code that has no frame pointers is not a thread's start. */
    make(&made, rules, 1);
    made.input.registers = unwind_registers_of(CODE + 0x800, STACK, STACK + 80);
    made.stack[11] = 0;
    assert_int_equal(walk_made(&made), UNWIND_END_NO_ROWS);
    assert_int_equal(made.count, 1);
}

static bool find_generated(void *context, uint64_t address, struct unwind_place *ret_place)
{
    (void)context;
    *ret_place = (struct unwind_place){.generated = true};
    return address >= CODE && address < CODE + 0x1000;
}

/* No thread begins in a JIT's code, whatever its registers look like. */
static void generated_code_is_no_start(void **state)
{
    (void)state;
    struct unwind_rule rules[] = {{.cfa = UNWIND_CFA_END}};
    struct made made;
    make(&made, rules, 1);
    made.input.find = find_generated;
    made.input.registers = unwind_registers_of(CODE + 0x800, STACK, STACK + 80);
    made.stack[10] = 0;
    made.stack[11] = CODE + 0x900;
    assert_int_equal(walk_made(&made), UNWIND_END_NO_ROWS);
    assert_int_equal(made.count, 2);
}

static void every_end(void **state)
{
    (void)state;
    struct unwind_rule up = {.cfa = UNWIND_CFA_SP, .cfa_offset = 16};
    struct made made = {0};
    made.stack[1] = 0; /* nobody's address */
    assert_int_equal(walk_one(&made, up), UNWIND_END_COMPLETE);
    made = (struct made){0};
    made.stack[1] = 0x1234;
    assert_int_equal(walk_one(&made, up), UNWIND_END_NO_MAPPING);
    assert_int_equal(made.count, 1);
    made = (struct made){.input.registers = unwind_registers_of(0, STACK, 0)};
    assert_int_equal(walk_one(&made, up), UNWIND_END_NO_MAPPING);
    assert_int_equal(made.count, 1);
    made = (struct made){0};
    for (size_t i = 0; i < 64; i++)
        made.stack[i] = CODE + 32; /* itself, over and over */
    assert_int_equal(walk_one(&made, up), UNWIND_END_LIMIT);
    assert_int_equal(made.count, 32);
    up.cfa_offset = 8 * 63;
    made.stack[62] = CODE + 32;
    assert_int_equal(walk_one(&made, up), UNWIND_END_TRUNCATED);
    up.cfa_offset = 0;
    assert_int_equal(walk_one(&made, up), UNWIND_END_LOOP);
    up.cfa_offset = INT32_MIN;
    assert_int_equal(walk_one(&made, up), UNWIND_END_LOOP);
    assert_int_equal(walk_one(&made, (struct unwind_rule){.cfa = UNWIND_CFA_UNSUPPORTED}),
                     UNWIND_END_UNSUPPORTED);
    assert_int_equal(walk_one(&made, (struct unwind_rule){.cfa = 77}), UNWIND_END_UNSUPPORTED);
    assert_int_equal(
        walk_one(&made, (struct unwind_rule){.cfa = UNWIND_CFA_REGISTER, .argument = 200}),
        UNWIND_END_UNSUPPORTED);
    made = (struct made){.input.registers = unwind_registers_of(CODE + 1, STACK, 0)};
    made.input.registers.known &= ~(1u << 6);
    assert_int_equal(walk_one(&made, (struct unwind_rule){.cfa = UNWIND_CFA_FP}),
                     UNWIND_END_UNSUPPORTED);
    for (int end = 0; end < UNWIND_END_KINDS; end++)
        assert_non_null(unwind_end_name((enum unwind_end)end));
    assert_string_equal(unwind_end_name(UNWIND_END_LOOP), "loop");
}

static void signals_that_lead_around_end(void **state)
{
    (void)state;
    static struct unwind_frame frames[4096];
    struct unwind_rule rule = {.cfa = UNWIND_CFA_SIGNAL, .cfa_offset = 160};
    struct made made;
    size_t count;
    make(&made, &rule, 1);
    made.stack[20] = STACK;     /* the interrupted frame's own sp is here again */
    made.stack[21] = CODE + 16; /* and so is its ip */
    assert_int_equal(unwind_walk(&made.input, frames, ARRAY_LENGTH(frames), &count),
                     UNWIND_END_LOOP);
    assert_true(count < 100);
    assert_int_equal(frames[1].flags, UNWIND_FRAME_EXACT);
    unwind_rules_release(&made.rules);
}

/* ---- this process's own ---- */

#define FRAMES 2000
#define DEEP 900

#define no_frame_pointer                                                                           \
    __attribute__((noinline, noclone, optimize("O2,omit-frame-pointer,no-optimize-sibling-calls")))

struct snapshot {
    struct unwind_frame frames[FRAMES];
    size_t count;
    enum unwind_end end;
    void *truth[FRAMES]; /* by backtrace() */
    int truth_count;
};

static struct own_process own;
static struct snapshot shot;

static int own_setup(void **state)
{
    (void)state;
    void *warm[4];
    backtrace(warm, 4); /* loads libgcc, which is then in the list of objects */
    return own_process_init(&own);
}

static int own_teardown(void **state)
{
    (void)state;
    own_process_release(&own);
    return 0;
}

/* Walks from here; frame 0 is in this function in both lists. */
static no_frame_pointer void take_snapshot(void)
{
    ucontext_t context;
    getcontext(&context);
    const greg_t *registers = context.uc_mcontext.gregs;
    uint64_t sp = (uint64_t)registers[REG_RSP];
    static uint8_t copy[1 << 20];
    struct unwind_input input = {
        .registers =
            unwind_registers_of((uint64_t)registers[REG_RIP], sp, (uint64_t)registers[REG_RBP]),
        .stack = copy,
        .stack_bytes = own_read_bytes(&own, sp, copy, sizeof(copy)),
        .stack_address = sp,
        .rules = &own.rules,
        .find = own_find,
        .read = own_read,
        .context = &own,
    };
    shot.end = unwind_walk(&input, shot.frames, FRAMES, &shot.count);
    shot.truth_count = backtrace(shot.truth, FRAMES);
    /* A sanitizer's own backtrace() is a frame more. */
    uint64_t here = own_function(&own, (uint64_t)take_snapshot);
    while (shot.truth_count && own_function(&own, (uint64_t)shot.truth[0]) != here)
        memmove(shot.truth, shot.truth + 1, (size_t)--shot.truth_count * sizeof(shot.truth[0]));
}

static void assert_snapshot_is_true(void)
{
    assert_string_equal(unwind_end_name(shot.end), "complete");
    assert_int_equal(shot.count, shot.truth_count);
    for (size_t i = 1; i < shot.count; i++)
        if (shot.frames[i].address != (uint64_t)shot.truth[i])
            fail_msg("frame %zu of %zu is %#lx, the C library's is %p", i, shot.count,
                     shot.frames[i].address, shot.truth[i]);
    assert_int_equal(shot.frames[0].flags, UNWIND_FRAME_EXACT);
    assert_true(own_function(&own, shot.frames[0].address) ==
                own_function(&own, (uint64_t)take_snapshot));
}

static unsigned frames_in(void (*function)(void))
{
    unsigned found = 0;
    for (size_t i = 0; i < shot.count; i++)
        found += own_function(&own, shot.frames[i].address - 1) ==
                 own_function(&own, (uint64_t)function);
    return found;
}

static no_frame_pointer int descend(int depth)
{
    char room[40];
    memset(room, depth, sizeof(room));
    __asm__ volatile("" : : "r"(room) : "memory");
    if (depth > 1)
        depth = descend(depth - 1) + 1;
    else
        take_snapshot();
    __asm__ volatile("" : : "r"(room) : "memory");
    return depth + room[3];
}

static void the_own_stack(void **state)
{
    (void)state;
    take_snapshot();
    assert_snapshot_is_true();
}

static void deep_recursion(void **state)
{
    (void)state;
    descend(DEEP);
    assert_snapshot_is_true();
    assert_int_equal(frames_in((void (*)(void))descend), DEEP);
}

/* Realigns its stack around room of unknown size: found by an expression. */
static no_frame_pointer int aligned(int size)
{
    char room[64] __attribute__((aligned(64)));
    char *more = __builtin_alloca((size_t)size);
    memset(room, size, sizeof(room));
    memset(more, size, (size_t)size);
    __asm__ volatile("" : : "r"(room), "r"(more) : "memory");
    int depth = descend(3);
    __asm__ volatile("" : : "r"(room), "r"(more) : "memory");
    return depth + more[size / 2];
}

static void realigned_stacks(void **state)
{
    (void)state;
    aligned(100);
    assert_snapshot_is_true();
    assert_int_equal(frames_in((void (*)(void))aligned), 1);
}

static int compare_and_look(const void *left, const void *right)
{
    take_snapshot();
    return *(const int *)left - *(const int *)right;
}

static void callbacks_from_the_library(void **state)
{
    (void)state;
    int numbers[] = {2, 1};
    qsort(numbers, 2, sizeof(numbers[0]), compare_and_look);
    assert_snapshot_is_true();
    assert_int_equal(numbers[0], 1);
}

/* A function whose very first instruction faults: one byte before it is other code, and none that
 * has rows. */
__asm__(".text\n"
        ".byte 0xcc, 0xcc, 0xcc, 0xcc\n"
        "faults_at_once:\n"
        ".cfi_startproc\n"
        "ud2\n"
        "ret\n"
        ".cfi_endproc\n"
        ".type faults_at_once, @function\n"
        ".size faults_at_once, . - faults_at_once\n");
void faults_at_once(void);

static volatile sig_atomic_t handled;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)info;
    descend(5);
    handled++;
    if (number == SIGILL)
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

static void with_handler(int number, int flags, void (*run)(void))
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags}, before;
    handled = 0;
    assert_int_equal(sigaction(number, &action, &before), 0);
    run();
    sigaction(number, &before, NULL);
    assert_int_equal(handled, 1);
    assert_snapshot_is_true();
    unsigned exact = 0;
    for (size_t i = 0; i < shot.count; i++)
        exact += shot.frames[i].flags & UNWIND_FRAME_EXACT;
    assert_int_equal(exact, 2);
}

static void raise_it(void)
{
    raise(SIGUSR1);
}

static void signal_handlers(void **state)
{
    (void)state;
    with_handler(SIGUSR1, 0, raise_it);
    with_handler(SIGILL, 0, faults_at_once);
    bool found = false;
    for (size_t i = 0; i < shot.count; i++)
        found |= shot.frames[i].address == (uint64_t)faults_at_once;
    assert_true(found);
}

static void signal_handlers_on_their_own_stack(void **state)
{
    (void)state;
    _cleanup_free_ char *room = memory_alloc(256 << 10);
    stack_t stack = {.ss_sp = room, .ss_size = 256 << 10}, before;
    assert_int_equal(sigaltstack(&stack, &before), 0);
    with_handler(SIGUSR1, SA_ONSTACK, raise_it);
    with_handler(SIGILL, SA_ONSTACK, faults_at_once);
    sigaltstack(&before, NULL);
}

static void the_vdso_has_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < own.count; i++)
        if (strstr(own.objects[i].name, "vdso")) {
            assert_true(own.objects[i].rows.row_count > 0);
            assert_int_equal(own.objects[i].rows.bad_entries, 0);
            return;
        }
    print_message("This process has no vDSO.\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule),
        cmocka_unit_test(return_addresses_are_looked_up_one_before),
        cmocka_unit_test(a_register_may_hold_the_return_address),
        cmocka_unit_test(new_threads_come_from_nowhere),
        cmocka_unit_test(coroutines_begin_with_a_planted_address),
        cmocka_unit_test(what_an_epilogue_took_back_is_in_its_register),
        cmocka_unit_test(rbx_is_followed),
        cmocka_unit_test(frame_pointers_where_there_are_no_rows),
        cmocka_unit_test(generated_code_is_no_start),
        cmocka_unit_test(every_end),
        cmocka_unit_test(signals_that_lead_around_end),
        cmocka_unit_test(the_own_stack),
        cmocka_unit_test(deep_recursion),
        cmocka_unit_test(realigned_stacks),
        cmocka_unit_test(callbacks_from_the_library),
        cmocka_unit_test(signal_handlers),
        cmocka_unit_test(signal_handlers_on_their_own_stack),
        cmocka_unit_test(the_vdso_has_rows),
    };
    return cmocka_run_group_tests(tests, own_setup, own_teardown);
}
