// SPDX-License-Identifier: Apache-2.0
// The walk at every instruction of a Go program, which is built here: through growing stacks,
// allocation, the scheduler and the runtime's work on the thread's own stack. An instruction that
// neither calls nor returns leaves the callers as they are; a call adds one, a return takes one.

#include <limits.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "elf/go/gopclntab.h"
#include "elf/unwind/rows.h"
#include "elf/unwind/unwind.h"
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
    bool frameless; /* systemstack has no frame of its own: up to Go 1.20 */
    unsigned long steps, calls, returns, switches, across, skips;
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

static bool are_same(const struct unwind_frame *a, size_t a_count, const struct unwind_frame *b,
                     size_t b_count)
{
    bool same = a_count == b_count;
    for (size_t i = 0; same && i < a_count; i++)
        same = a[i].address == b[i].address;
    return same;
}

/* Up to Go 1.20 the caller of systemstack can't be found while that is on another stack. */
static bool lacks_caller(const struct tracer *tracer, const struct moment *with,
                         const struct moment *without)
{
    return tracer->frameless && !strcmp(name_of(tracer, with->ip), "runtime.systemstack") &&
           with->count > 2 &&
           are_same(with->frames + 2, with->count - 2, without->frames + 1, without->count - 1);
}

static void compare(struct tracer *tracer, const struct moment *before, const struct moment *now)
{
    bool call = is_call(before->code), back = before->code[0] == 0xc3;
    size_t old_count = before->count - MIN(before->count, 1u + back);
    size_t new_count = now->count - MIN(now->count, 1u + call);
    tracer->calls += call;
    tracer->returns += back;
    if (now->count > call &&
        are_same(before->frames + 1 + back, old_count, now->frames + 1 + call, new_count))
        return;
    if (lacks_caller(tracer, before, now) || lacks_caller(tracer, now, before)) {
        tracer->skips++;
        return;
    }
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

/* Builds ./stepped; nothing is downloaded. */
static bool build(const char *go)
{
    FILE *source = fopen("stepped.go", "w");
    assert_non_null(source);
    fputs(program, source);
    assert_int_equal(fclose(source), 0);
    assert_int_equal(setenv("GO", go, 1), 0);
    if (system("GOCACHE=${GOCACHE:-${HOME:+$HOME/.cache/go-build}} && "
               "env GOCACHE=${GOCACHE:-$PWD/cache} GOPATH=${GOPATH:-${HOME:-$PWD}/go} GOFLAGS= "
               "GO111MODULE=off CGO_ENABLED=0 GOTOOLCHAIN=local GOPROXY=off "
               "\"$GO\" build -o stepped stepped.go >said 2>&1") == 0)
        return true;
    if (system("cat said") != 0)
        print_message("There is no output.\n");
    print_message("%s can't build a program.\n", go);
    return false;
}

static void open_program(struct tracer *tracer)
{
    struct error error = {0};
    struct gopclntab_function function = {0};
    uint8_t first = 0;
    *tracer = (struct tracer){0};
    assert_int_equal(elf_open("stepped", &tracer->file, &error), 0);
    assert_int_equal(gopclntab_load(&tracer->file, &tracer->table, &error), 0);
    unwind_rules_init(&tracer->rules);
    assert_int_equal(unwind_rows_compile(&tracer->file, &tracer->rules, &tracer->rows, &error), 0);
    for (size_t i = 0; i < tracer->file.segment_count; i++)
        if (tracer->file.segments[i].flags & PF_X) {
            tracer->code_start = tracer->file.segments[i].address;
            tracer->code_end = tracer->code_start + tracer->file.segments[i].file_bytes;
        }
    for (uint32_t i = 0; i < tracer->table.function_count; i++)
        if (gopclntab_function(&tracer->table, i, &function) &&
            !strcmp(function.name, "runtime.systemstack"))
            break;
    assert_int_equal(elf_read_address(&tracer->file, function.start, &first, 1), 0);
    tracer->frameless = first != 0x55; /* push %rbp */
}

/* False where processes can't be traced. */
static bool step_through_all(struct tracer *tracer)
{
    int status;
    tracer->pid = start();
    assert_true(tracer->pid > 0);
    assert_int_equal(waitpid(tracer->pid, &status, 0), tracer->pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 99)
        return false;
    /* From exec to the breakpoint. */
    assert_int_equal(ptrace(PTRACE_CONT, tracer->pid, NULL, NULL), 0);
    assert_int_equal(waitpid(tracer->pid, &status, 0), tracer->pid);
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
    step_through(tracer);
    if (!WIFEXITED(status)) {
        kill(tracer->pid, SIGKILL);
        waitpid(tracer->pid, &status, 0);
    }
    return true;
}

/* `line` is "VERSION PATH". */
static void test_version(char *line)
{
    static struct tracer tracer;
    line[strcspn(line, "\n")] = '\0';
    char *go = strchr(line, ' ');
    assert_non_null(go);
    if (!build(go + 1))
        skip();
    open_program(&tracer);
    if (!step_through_all(&tracer)) {
        print_message("Processes can't be traced here.\n");
        skip();
    }
    print_message("%s: %lu steps, %lu calls, %lu returns, %lu changes of the stack, %lu walks over "
                  "one, %lu times without the caller\n",
                  line, tracer.steps, tracer.calls, tracer.returns, tracer.switches, tracer.across,
                  tracer.skips);
    assert_true(tracer.steps > 20000 && tracer.calls > 500 && tracer.returns > 500);
    assert_true(tracer.switches > 10 && tracer.across > 500);
    assert_true(tracer.frameless == (tracer.skips > 0));
    unwind_rows_release(&tracer.rows);
    unwind_rules_release(&tracer.rules);
    gopclntab_release(&tracer.table);
    elf_release(&tracer.file);
}

static void test_go_steps(void **state)
{
    (void)state;
    char line[PATH_MAX];
    unsigned versions = 0;
    FILE *found = popen("bash \"$FIXTURES/../toolchains.sh\" go", "r");
    assert_non_null(found);
    for (; fgets(line, sizeof(line), found); versions++)
        test_version(line);
    assert_int_equal(pclose(found), 0);
    if (!versions) {
        print_message("There is no Go toolchain here to build a program with.\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_go_steps, enter_folder, leave_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
