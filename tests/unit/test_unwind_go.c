// SPDX-License-Identifier: Apache-2.0
// The walk at every instruction of a Go program, which is built here: through growing stacks,
// allocation, the scheduler and the runtime's work on the thread's own stack. An instruction that
// neither calls nor returns leaves the callers as they are; a call adds one, a return takes one.

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "elf/gopclntab.h"
#include "elf/rows.h"
#include "elf/unwind.h"
#include "unit.h"

#define STEPS_MAX 120000
#define FRAMES_MAX 512

static const char program[] =
    "package main\n"
    "import (\"runtime\"; \"time\")\n"
    "func init() { runtime.LockOSThread() }\n"
    "var sink int\n"
    "//go:noinline\n"
    "func descend(n int) int {\n"
    "\tvar room [64]int\n"
    "\troom[n&63] = n\n"
    "\tif n == 0 { return sink }\n"
    "\treturn descend(n-1) + room[sink&63]\n"
    "}\n"
    "func fail() {\n"
    "\tdefer func() { recover() }()\n"
    "\tpanic(\"on purpose\")\n"
    "}\n"
    "func main() {\n"
    "\truntime.Breakpoint()\n"
    "\tvar kept [][]byte\n"
    "\tfor i := 0; i < 12; i++ { kept = append(kept, make([]byte, 8192<<(i&3))) }\n"
    "\tsink += len(kept) + int(time.Now().Unix())\n"
    "\tnames := map[string]int{}\n"
    "\tfor i := 0; i < 20; i++ { names[string(rune('a'+i))] = i }\n"
    "\tfail()\n"
    "\tsink += len(names) + descend(20)\n"
    "\tdone := make(chan int)\n"
    "\tgo func() { done <- descend(5) }()\n"
    "\tsink += <-done\n"
    "}\n";

struct tracer {
    pid_t pid;
    struct elf_file file;
    struct gopclntab table;
    struct unwind_rules rules;
    struct unwind_rows rows;
    uint64_t code_start, code_end;
    unsigned long steps, calls, returns, switches, across;
};

static bool in_program(const struct tracer *tracer, uint64_t address)
{
    return address >= tracer->code_start && address < tracer->code_end;
}

static bool find(void *context, uint64_t address, struct unwind_place *ret_place)
{
    const struct tracer *tracer = context;
    *ret_place = (struct unwind_place){.rows = &tracer->rows};
    return in_program(tracer, address);
}

static bool read_bytes(const struct tracer *tracer, uint64_t address, void *bytes, size_t length)
{
    struct iovec local = {bytes, length}, remote = {(void *)(uintptr_t)address, length};
    return process_vm_readv(tracer->pid, &local, 1, &remote, 1, 0) == (ssize_t)length;
}

static bool read_word(void *context, uint64_t address, uint64_t *ret_word)
{
    return read_bytes(context, address, ret_word, sizeof(*ret_word));
}

static const char *name_of(const struct tracer *tracer, uint64_t address)
{
    struct gopclntab_function function;
    return gopclntab_find(&tracer->table, address, &function) ? function.name : "?";
}

/* What is known after an instruction. */
struct moment {
    bool good; /* in the program, so that the next one can be compared */
    uint64_t ip;
    uint8_t code[3];
    struct unwind_frame frames[FRAMES_MAX];
    size_t count;
};

static void look(struct tracer *tracer, struct moment *moment)
{
    struct user_regs_struct registers;
    assert_int_equal(ptrace(PTRACE_GETREGS, tracer->pid, NULL, &registers), 0);
    struct unwind_input input = {
        .registers = unwind_registers_of(registers.rip, registers.rsp, registers.rbp),
        .rules = &tracer->rules,
        .find = find,
        .read = read_word,
        .context = tracer};
    moment->ip = registers.rip;
    moment->good = in_program(tracer, moment->ip);
    if (!moment->good)
        return;
    enum unwind_end end = unwind_walk(&input, moment->frames, FRAMES_MAX, &moment->count);
    if (end != UNWIND_END_COMPLETE)
        fail_msg("at %#lx in %s: %s after %zu frames", moment->ip, name_of(tracer, moment->ip),
                 unwind_end_name(end), moment->count);
    assert_true(read_bytes(tracer, moment->ip, moment->code, sizeof(moment->code)));
    for (size_t i = 1; i < moment->count; i++)
        tracer->across +=
            tracer->rules.rules[unwind_rows_find(&tracer->rows, moment->frames[i].address - 1)]
                .cfa == UNWIND_CFA_OTHER_STACK;
}

static bool is_call(const uint8_t code[3])
{
    size_t prefix = code[0] == 0x41;
    return code[0] == 0xe8 || (code[prefix] == 0xff && (code[prefix + 1] >> 3 & 7) == 2);
}

/* These go on on another stack, which has its own callers. */
static bool switches_stack(const char *name)
{
    return !strcmp(name, "gogo") || !strcmp(name, "runtime.gogo") ||
           !strcmp(name, "runtime.mcall") || !strcmp(name, "runtime.morestack");
}

static void compare(struct tracer *tracer, const struct moment *before, const struct moment *now)
{
    bool call = is_call(before->code), back = before->code[0] == 0xc3;
    const struct unwind_frame *old = before->frames + 1 + back, *new = now->frames + 1 + call;
    size_t old_count = before->count - MIN(before->count, 1u + back);
    size_t new_count = now->count - MIN(now->count, 1u + call);
    bool same = old_count == new_count && now->count > call;
    for (size_t i = 0; same && i < old_count; i++)
        same = old[i].address == new[i].address;
    tracer->calls += call;
    tracer->returns += back;
    if (same)
        return;
    if (!switches_stack(name_of(tracer, before->ip)))
        fail_msg("from %#lx in %s (%zu frames) to %#lx in %s (%zu frames)", before->ip,
                 name_of(tracer, before->ip), before->count, now->ip, name_of(tracer, now->ip),
                 now->count);
    tracer->switches++;
}

/* The other threads run freely; this one is the main goroutine's. */
static void step_through(struct tracer *tracer)
{
    struct moment *before = memory_zalloc(1, sizeof(*before));
    struct moment *now = memory_zalloc(1, sizeof(*now));
    int status = 0, deliver = 0;
    for (; tracer->steps < STEPS_MAX; tracer->steps++) {
        look(tracer, now);
        if (before->good && now->good && !deliver)
            compare(tracer, before, now);
        struct moment *swap = before;
        before = now;
        now = swap;
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, tracer->pid, NULL, (void *)(intptr_t)deliver),
                         0);
        if (waitpid(tracer->pid, &status, __WALL) != tracer->pid || !WIFSTOPPED(status))
            break;
        deliver = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    }
    free(before);
    free(now);
}

static pid_t start(void)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    setenv("GOMAXPROCS", "1", 1);
    setenv("GODEBUG", "asyncpreemptoff=1", 1);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
        execl("./stepped", "./stepped", NULL);
    _exit(99);
}

/* Nothing is downloaded. */
static bool build(void)
{
    FILE *source = fopen("stepped.go", "w");
    assert_non_null(source);
    fputs(program, source);
    assert_int_equal(fclose(source), 0);
    if (system("command -v go >/dev/null 2>&1") != 0) {
        print_message("There is no Go toolchain here to build a program with.\n");
        return false;
    }
    if (system("GOCACHE=${GOCACHE:-${HOME:+$HOME/.cache/go-build}} && "
               "env GOCACHE=${GOCACHE:-$PWD/cache} GOPATH=${GOPATH:-${HOME:-$PWD}/go} GOFLAGS= "
               "GO111MODULE=off CGO_ENABLED=0 GOTOOLCHAIN=local GOPROXY=off "
               "go build -o stepped stepped.go >said 2>&1") == 0)
        return true;
    system("cat said");
    print_message("The Go toolchain can't build a program.\n");
    return false;
}

static void test_go_steps(void **state)
{
    (void)state;
    static struct tracer tracer;
    struct error error = {0};
    int status;
    if (!build())
        skip();
    assert_int_equal(elf_open("stepped", &tracer.file, &error), 0);
    assert_int_equal(gopclntab_load(&tracer.file, &tracer.table, &error), 0);
    unwind_rules_init(&tracer.rules);
    assert_int_equal(unwind_rows_compile(&tracer.file, &tracer.rules, &tracer.rows, &error), 0);
    for (size_t i = 0; i < tracer.file.segment_count; i++)
        if (tracer.file.segments[i].flags & PF_X) {
            tracer.code_start = tracer.file.segments[i].address;
            tracer.code_end = tracer.code_start + tracer.file.segments[i].file_bytes;
        }
    tracer.pid = start();
    assert_true(tracer.pid > 0);
    assert_int_equal(waitpid(tracer.pid, &status, 0), tracer.pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 99) {
        print_message("Processes can't be traced here.\n");
        skip();
    }
    /* From exec to the breakpoint. */
    assert_int_equal(ptrace(PTRACE_CONT, tracer.pid, NULL, NULL), 0);
    assert_int_equal(waitpid(tracer.pid, &status, 0), tracer.pid);
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
    step_through(&tracer);
    if (!WIFEXITED(status)) {
        kill(tracer.pid, SIGKILL);
        waitpid(tracer.pid, &status, 0);
    }
    print_message(
        "%lu steps, %lu calls, %lu returns, %lu changes of the stack, %lu walks over one\n",
        tracer.steps, tracer.calls, tracer.returns, tracer.switches, tracer.across);
    assert_true(tracer.steps > 20000 && tracer.calls > 500 && tracer.returns > 500);
    assert_true(tracer.switches > 10 && tracer.across > 500);
    unwind_rows_release(&tracer.rows);
    unwind_rules_release(&tracer.rules);
    gopclntab_release(&tracer.table);
    elf_release(&tracer.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_go_steps, enter_folder, leave_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
