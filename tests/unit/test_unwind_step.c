// SPDX-License-Identifier: Apache-2.0
// The walk at every single instruction: a child is stepped through lazy binding and its stubs, the
// vDSO, a signal handler, realigned stacks and the C library's own code, while calls and returns
// are counted along. The walk must find exactly those callers, each time.

#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <wchar.h>

#include "own_process.h"
#include "unit.h"

#define STEPS_MAX 200000
#define DEPTH_MAX 256
#define SIGNAL_RSP_SLOT 168 /* from a handler's first rsp to where the interrupted one is kept */

/* ---- what the child does ---- */

struct shared {
    volatile int done;
    void *callers[DEPTH_MAX]; /* of stepped(), by backtrace() */
    int caller_count;
    volatile long sink;
};
static struct shared *shared;

static __attribute__((noinline)) void on_signal(int number)
{
    char text[32];
    snprintf(text, sizeof(text), "%d", number);
    shared->sink += text[0];
}

static __attribute__((noinline)) int by_value(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

static __attribute__((noinline, noclone)) long descend(int depth)
{
    return depth ? descend(depth - 1) * 3 + depth : shared->sink;
}

static __attribute__((noinline)) void realign(int size)
{
    char room[64] __attribute__((aligned(64)));
    char *more = __builtin_alloca((size_t)size);
    snprintf(room, sizeof(room), "%d", size);
    memset(more, room[0], (size_t)size);
    shared->sink += more[size / 2];
}

/* The first call of each library function goes through lazy binding. */
static __attribute__((noinline, optimize("no-optimize-sibling-calls"))) void stepped(void)
{
    int numbers[] = {5, 3, 9, 1, 7};
    struct timespec now;
    char text[64];
    shared->caller_count = backtrace(shared->callers, DEPTH_MAX);
    __asm__ volatile("int3");
    clock_gettime(CLOCK_MONOTONIC, &now);
    shared->sink += now.tv_nsec;
    qsort(numbers, ARRAY_LENGTH(numbers), sizeof(numbers[0]), by_value);
    snprintf(text, sizeof(text), "%.3f %s %d", 1.5, "text", numbers[0]);
    shared->sink += (long)strtod(text, NULL) + strcspn(text, "x") + (long)wcslen(L"wide");
    shared->sink += descend(20);
    realign(40);
    free(strdup(text));
    raise(SIGUSR1);
    shared->sink += getenv("HOME") != NULL;
    shared->done = 1;
    _exit(0);
}

static __attribute__((noreturn)) void run_child(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
        _exit(99);
    stepped();
    _exit(1);
}

/* ---- calls and returns, counted along ---- */

struct entry {
    uint64_t slot; /* the entry is gone when the stack pointer is above this */
    uint64_t address;
    bool exact;
};

struct tracer {
    struct own_process process;
    struct entry entries[DEPTH_MAX];
    size_t depth;
    struct user_regs_struct registers;
    unsigned long steps, whole, cut, signals;
    unsigned long in_loader, in_vdso, in_stubs;
};

static void push(struct tracer *tracer, uint64_t slot, uint64_t address, bool exact)
{
    assert_true(tracer->depth < DEPTH_MAX);
    tracer->entries[tracer->depth++] = (struct entry){slot, address, exact};
}

/* What one instruction, or the start of a handler, did to the stack of callers. */
static void follow(struct tracer *tracer, const struct user_regs_struct *before, bool in_handler)
{
    const struct user_regs_struct *now = &tracer->registers;
    uint64_t top = 0;
    while (tracer->depth && tracer->entries[tracer->depth - 1].slot < now->rsp)
        tracer->depth--;
    assert_true(own_read(&tracer->process, now->rsp, &top));
    if (in_handler) {
        tracer->signals++;
        push(tracer, now->rsp + SIGNAL_RSP_SLOT, before->rip, true);
        push(tracer, now->rsp, top, false);
    } else if (now->rsp == before->rsp - 8 && top > before->rip && top <= before->rip + 15 &&
               now->rip != top) {
        push(tracer, now->rsp, top, false);
    }
}

static struct unwind_registers all_registers(const struct user_regs_struct *from)
{
    return (struct unwind_registers){.value = {from->rax, from->rdx, from->rcx, from->rbx,
                                               from->rsi, from->rdi, from->rbp, from->rsp, from->r8,
                                               from->r9, from->r10, from->r11, from->r12, from->r13,
                                               from->r14, from->r15, from->rip},
                                     .known = (1u << UNWIND_REGISTERS) - 1};
}

/* Where the steps went, to know that what should be tried was. */
static void count_step(struct tracer *tracer)
{
    const struct own_process *process = &tracer->process;
    uint64_t ip = tracer->registers.rip;
    for (size_t i = 0; i < process->count; i++) {
        const struct own_object *object = &process->objects[i];
        if (ip < object->start || ip >= object->end)
            continue;
        uint16_t rule = unwind_rows_find(&object->rows, ip - object->bias);
        tracer->in_stubs += process->rules.rules[rule].cfa == UNWIND_CFA_PLT;
        tracer->in_loader += strstr(object->name, "/ld-linux") != NULL;
        tracer->in_vdso += strstr(object->name, "vdso") != NULL;
    }
}

static void check_walk(struct tracer *tracer)
{
    static uint8_t stack[8192];
    static struct unwind_frame frames[DEPTH_MAX * 2];
    struct own_process *process = &tracer->process;
    uint64_t from = tracer->registers.rsp - 128; /* the red zone too */
    struct unwind_input input = {.registers = all_registers(&tracer->registers),
                                 .stack = stack,
                                 .stack_bytes = own_read_bytes(process, from, stack, sizeof(stack)),
                                 .stack_address = from,
                                 .rules = &process->rules,
                                 .find = own_find,
                                 .read = own_read,
                                 .context = process};
    size_t count;
    enum unwind_end end = unwind_walk(&input, frames, ARRAY_LENGTH(frames), &count);
    size_t expected = 1 + tracer->depth + (size_t)shared->caller_count - 1;
    for (size_t i = 1; i < MIN(count, expected); i++) {
        bool counted = i <= tracer->depth;
        struct entry entry = counted ? tracer->entries[tracer->depth - i] : (struct entry){0};
        uint64_t address = counted ? entry.address : (uint64_t)shared->callers[i - tracer->depth];
        if (frames[i].address != address || !(frames[i].flags & UNWIND_FRAME_EXACT) == entry.exact)
            fail_msg("step %lu at %#llx: frame %zu of %zu is %#lx instead of %#lx", tracer->steps,
                     tracer->registers.rip, i, expected, frames[i].address, address);
    }
    if (end == UNWIND_END_COMPLETE && count == expected)
        tracer->whole++;
    else if (end == UNWIND_END_UNSUPPORTED && count < expected)
        tracer->cut++;
    else
        fail_msg("step %lu at %#llx: %zu frames instead of %zu, %s", tracer->steps,
                 tracer->registers.rip, count, expected, unwind_end_name(end));
}

/* Steps the child until it is done; it is stopped, at the start of what is to be stepped. */
static void step_through(struct tracer *tracer, pid_t child)
{
    int status, deliver = 0;
    assert_int_equal(ptrace(PTRACE_GETREGS, child, NULL, &tracer->registers), 0);
    while (!shared->done && tracer->steps < STEPS_MAX) {
        struct user_regs_struct before = tracer->registers;
        check_walk(tracer);
        count_step(tracer);
        tracer->steps++;
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, (void *)(intptr_t)deliver), 0);
        assert_true(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
        assert_int_equal(ptrace(PTRACE_GETREGS, child, NULL, &tracer->registers), 0);
        follow(tracer, &before, deliver);
        deliver = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    }
}

static void every_instruction(void **state)
{
    (void)state;
    static struct tracer tracer;
    void *warm[2];
    int status;
    backtrace(warm, 2);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    assert_int_equal(own_process_init(&tracer.process), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
        run_child();
    tracer.process.pid = child;
    assert_true(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 99) {
        own_process_release(&tracer.process);
        print_message("This process may not trace its child.\n");
        skip();
    }
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
    /* Frame 0 of backtrace()'s is in stepped() itself; a sanitizer's own is one more before it. */
    uint64_t here = own_function(&tracer.process, (uint64_t)stepped);
    while (shared->caller_count &&
           own_function(&tracer.process, (uint64_t)shared->callers[0]) != here)
        memmove(shared->callers, shared->callers + 1,
                (size_t)--shared->caller_count * sizeof(shared->callers[0]));
    assert_true(shared->caller_count > 2);
    step_through(&tracer, child);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    own_process_release(&tracer.process);
    print_message("%lu instructions: %lu whole stacks, %lu cut short; %lu in the loader, %lu in "
                  "stubs, %lu in the vDSO\n",
                  tracer.steps, tracer.whole, tracer.cut, tracer.in_loader, tracer.in_stubs,
                  tracer.in_vdso);
    assert_true(shared->done);
    assert_int_equal(tracer.signals, 1);
    assert_true(tracer.whole > 5000);
    assert_int_equal(tracer.cut, 0);
    assert_true(tracer.in_vdso > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_instruction)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
