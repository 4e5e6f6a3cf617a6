// SPDX-License-Identifier: Apache-2.0
// chains MS SECTION...: runs each section for so many milliseconds of CPU time. A section is a
// chain of calls that some unwinders have trouble with; tests/capture/chains.sh says which are
// expected.

#define _GNU_SOURCE
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef NO_PLUGINS
#include <dlfcn.h>
#endif

#include "known.h"

volatile uint64_t sink;

/* ---- plain calls, and many of them ---- */

CALL void plain_leaf(void)
{
    spin(UNIT);
}
CALL void plain_d(void)
{
    plain_leaf();
    STAY;
}
CALL void plain_c(void)
{
    plain_d();
    STAY;
}
CALL void plain_b(void)
{
    plain_c();
    STAY;
}
CALL void plain_a(void)
{
    plain_b();
    STAY;
}

CALL void recurse_leaf(void)
{
    spin(20 * UNIT);
}
CALL void recurse(int depth)
{
    volatile char room[64];
    room[0] = (char)depth;
    if (depth)
        recurse(depth - 1);
    else
        recurse_leaf();
    sink += (unsigned char)room[0];
}
CALL void recurse_200(void)
{
    recurse(199);
    STAY;
}
CALL void recurse_900(void)
{
    recurse(899);
    STAY;
}

/* ---- frames of unusual shape ---- */

CALL void huge_leaf(char *room)
{
    sink += (unsigned char)room[sink & 1023];
    spin(UNIT);
}
CALL void huge_frame(void)
{
    char room[65536];
    memset(room, (int)sink, 1024);
    huge_leaf(room);
    STAY;
}
CALL void huge(void)
{
    huge_frame();
    STAY;
}

CALL void alloca_leaf(char *room)
{
    room[0] = 1;
    spin(UNIT);
}
CALL void with_alloca(size_t bytes)
{
    char *room = alloca(bytes);
    alloca_leaf(room);
    sink += (unsigned char)room[0];
}
CALL void vla_leaf(volatile int *room, int count)
{
    room[count - 1] = 1;
    spin(UNIT);
}
CALL void with_vla(int count)
{
    int room[count];
    vla_leaf(room, count);
    sink += (uint64_t)room[count - 1];
}
CALL void variable(void)
{
    with_alloca(100 + (sink & 15));
    with_vla(10 + (int)(sink & 15));
    STAY;
}

CALL void aligned_leaf(char *room)
{
    room[0] = 1;
    spin(UNIT);
}
CALL void aligned_local(void)
{
    char room[128] __attribute__((aligned(64)));
    aligned_leaf(room);
    sink += (unsigned char)room[0];
}
CALL void aligned_both(size_t bytes)
{
    char room[128] __attribute__((aligned(64)));
    char *more = alloca(bytes);
    more[0] = 2;
    aligned_leaf(room);
    sink += (unsigned char)room[0] + (unsigned char)more[0];
}
__attribute__((force_align_arg_pointer)) CALL void aligned_forced(void)
{
    char room[128];
    aligned_leaf(room);
    sink += (unsigned char)room[0];
}
CALL void aligned(void)
{
    aligned_local();
    aligned_both(60 + (sink & 15));
    aligned_forced();
    STAY;
}

/* ---- jumps ---- */

CALL uint64_t tail_leaf(uint64_t n)
{
    spin(UNIT);
    return n + 1;
}
CALL uint64_t tail_gone(uint64_t n)
{
    return tail_leaf(n * 3);
}
CALL void tail(void)
{
    sink += tail_gone(sink);
    STAY;
}

static jmp_buf back;
CALL void jump_leaf(void)
{
    spin(UNIT / 10);
    longjmp(back, 1);
}
CALL void jump_inner(void)
{
    jump_leaf();
    STAY;
}
CALL void jump(void)
{
    if (!setjmp(back))
        jump_inner();
    STAY;
}

/* ---- calls from and into other code ---- */

CALL void compare_leaf(void)
{
    spin(UNIT / 20);
}
CALL int compare(const void *left, const void *right)
{
    int a = *(const int *)left, b = *(const int *)right;
    compare_leaf();
    return (a > b) - (a < b);
}
CALL void sort_all(void)
{
    int numbers[64];
    for (int i = 0; i < 64; i++)
        numbers[i] = i * 37 % 64;
    qsort(numbers, 64, sizeof(*numbers), compare);
    sink += (uint64_t)numbers[0];
}
CALL void sort(void)
{
    sort_all();
    STAY;
}

CALL void vdso_loop(void)
{
    struct timespec now;
    for (int i = 0; i < 5000; i++)
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
}
CALL void vdso(void)
{
    vdso_loop();
    STAY;
}

/* Code that a runtime would have generated: it keeps a frame pointer and has no unwind table. */
CALL void jit_callback(void)
{
    spin(UNIT);
}
CALL void jit(void)
{
    static void (*code)(void (*)(void), uint64_t);
    static const unsigned char bytes[] = {
        0x55, 0x48, 0x89, 0xe5,       /* push %rbp; mov %rsp,%rbp */
        0x53, 0x50,                   /* push %rbx; push %rax */
        0x48, 0x89, 0xf3,             /* mov %rsi,%rbx */
        0xff, 0xd7,                   /* call *%rdi */
        0x48, 0xff, 0xcb, 0x75, 0xfb, /* dec %rbx; jnz to itself */
        0x58, 0x5b, 0x5d, 0xc3,       /* pop %rax; pop %rbx; pop %rbp; ret */
    };
    if (!code) {
        void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
            exit(9);
        memcpy(page, bytes, sizeof(bytes));
        memcpy(&code, &page, sizeof(code));
    }
    code(jit_callback, UNIT);
    STAY;
}

static ucontext_t outside, inside;
CALL void coroutine_leaf(void)
{
    spin(UNIT);
}
CALL void coroutine_body(void)
{
    for (;;) {
        coroutine_leaf();
        swapcontext(&inside, &outside);
    }
}
CALL void coroutine(void)
{
    static char stack[65536];
    if (!inside.uc_stack.ss_sp) {
        getcontext(&inside);
        inside.uc_stack.ss_sp = stack;
        inside.uc_stack.ss_size = sizeof(stack);
        makecontext(&inside, coroutine_body, 0);
    }
    swapcontext(&outside, &inside);
    STAY;
}

/* ---- signals ---- */

CALL void handler_leaf(void)
{
    spin(5 * UNIT);
}
CALL void handler(int number)
{
    handler_leaf();
    sink += (uint64_t)number;
}
CALL void interrupted_leaf(void)
{
    spin(UNIT);
}
CALL void interrupted(void)
{
    interrupted_leaf();
    STAY;
}
/* The timer runs in `interrupted` alone, so nothing else can be below a handler. */
CALL void with_signals(int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    struct itimerval on = {{0, 1000}, {0, 1000}}, off = {0};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &on, NULL);
    for (int i = 0; i < 100; i++)
        interrupted();
    setitimer(ITIMER_REAL, &off, NULL);
    signal(SIGALRM, SIG_IGN);
}
CALL void signals(void)
{
    with_signals(0);
    STAY;
}
CALL void signals_apart(void)
{
    static char room[65536];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
    sigaltstack(&stack, NULL);
    with_signals(SA_ONSTACK);
    STAY;
}

/* ---- plugins ---- */

#ifndef NO_PLUGINS
static void *open_plugin(const char *path)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        exit(9);
    }
    return handle;
}
static void *symbol(void *handle, const char *name)
{
    void *found = dlsym(handle, name);
    return found ? found : (exit(9), NULL);
}
CALL void plugin_callback(void)
{
    spin(UNIT);
}
CALL void plugin(void)
{
    static void (*entry)(void (*)(void));
    if (!entry)
        *(void **)&entry = symbol(open_plugin("./libplugin.so"), "plugin_entry");
    entry(plugin_callback);
    STAY;
}
/* Each call of the library is bound at its first use, over and over. */
CALL void lazy(void)
{
    void *handle = open_plugin("./liblazy.so");
    void (*entry)(void);
    *(void **)&entry = symbol(handle, "lazy_calls");
    entry();
    dlclose(handle);
}
#endif

/* ---- */

static const struct section {
    const char *name;
    void (*run)(void);
} sections[] = {
    {"plain", plain_a},
    {"recurse_200", recurse_200},
    {"recurse_900", recurse_900},
    {"huge", huge},
    {"variable", variable},
    {"aligned", aligned},
    {"tail", tail},
    {"jump", jump},
    {"sort", sort},
    {"vdso", vdso},
    {"jit", jit},
    {"coroutine", coroutine},
    {"signals", signals},
    {"signals_apart", signals_apart},
#ifndef NO_PLUGINS
    {"plugin", plugin},
    {"lazy", lazy},
#endif
};

CALL void run(const struct section *section, int64_t limit_ns)
{
    int64_t start = thread_cpu_ns();
    while (thread_cpu_ns() - start < limit_ns)
        section->run();
}

int main(int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        size_t at = 0;
        while (at < sizeof(sections) / sizeof(*sections) && strcmp(sections[at].name, argv[i]))
            at++;
        if (at == sizeof(sections) / sizeof(*sections))
            return 8;
        run(&sections[at], atoll(argv[1]) * 1000000);
    }
    return 0;
}
