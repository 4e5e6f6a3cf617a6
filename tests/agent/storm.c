// SPDX-License-Identifier: Apache-2.0
// Hostile programs for an agent to hold its budget against: storm KIND COUNT SECONDS [BYTES].
// Files go to a /tmp of its own, which ends with it; so do all its processes.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FIRST_UID 61000
#define LINES_PER_WRITE 4096

static double seconds;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void check(int ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    _exit(1);
}

// A child that does its thing until the storm is over.
static void start(void (*work)(long), long number)
{
    pid_t pid = fork();
    check(pid >= 0, "fork");
    if (pid)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    work(number);
    _exit(0);
}

// ---- processes ----

static void fork_loop(long number)
{
    (void)number;
    for (volatile unsigned long round = 0;; round++) {
        if (round % 256 == 0 && now() > seconds)
            return;
        pid_t pid = vfork();
        if (!pid)
            _exit(0);
        if (pid > 0)
            waitpid(pid, NULL, 0);
    }
}

// Processes under one pid, by turns of two programs' worth of time: each lives for a moment.
static void same_pid_loop(long number)
{
    pid_t wanted = (pid_t)(30000 + number);
    volatile unsigned long sink = 0;
    while (now() < seconds) {
        struct clone_args args = {
            .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&wanted, .set_tid_size = 1};
        long pid = syscall(SYS_clone3, &args, sizeof(args));
        if (!pid) {
            for (int i = 0; i < 200000; i++)
                sink += (unsigned long)i;
            _exit(0);
        }
        if (pid > 0)
            waitpid((pid_t)pid, NULL, 0);
        else
            wanted++; // somebody else has it
    }
}

static void *thread_loop(void *unused)
{
    volatile unsigned long sink = 0;
    char name[16];
    for (unsigned round = 0; now() < seconds; round++) {
        snprintf(name, sizeof(name), "hostile-%u", round);
        prctl(PR_SET_NAME, name);
        for (int i = 0; i < 100000; i++)
            sink += (unsigned long)i;
        usleep(1000);
    }
    return unused;
}

static void threads(long count)
{
    pthread_attr_t small;
    pthread_t thread;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    long started = 0;
    while (started < count && !pthread_create(&thread, &small, thread_loop, NULL))
        started++;
    check(started == count, "pthread_create");
    puts("ready");
    fflush(stdout);
    thread_loop(NULL);
}

// ---- memory ----

// Code in no file that runs for some microseconds each time that it is called.
static void (*make_code(void))(void)
{
    static const unsigned char loop[] = {0xb9, 0x00, 0x00, 0x01, 0x00, // mov $0x10000, %ecx
                                         0xff, 0xc9,                   // dec %ecx
                                         0x75, 0xfc,                   // jnz
                                         0xc3};
    unsigned char *code =
        mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(code != MAP_FAILED, "mmap");
    for (int i = 0; i < 1 << 20; i += 64)
        memcpy(code + i, loop, sizeof(loop));
    return (void (*)(void))code;
}

static void map_loop(long count)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    check(fd >= 0, "/proc/self/exe");
    char *room =
        mmap(NULL, (size_t)count * 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(room != MAP_FAILED, "mmap");
    void (*code)(void) = make_code();
    for (long i = 0; i < count; i++)
        if (mmap(room + 2 * (size_t)i * page, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
                 fd, 0) == MAP_FAILED)
            break;
    puts("ready");
    fflush(stdout);
    for (size_t i = 0; now() < seconds; i++) {
        for (int call = 0; call < 20; call++)
            code();
        size_t at = i % (size_t)count * 2 * page;
        munmap(room + at, page);
        mmap(room + at, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
    }
}

// ---- maps of code ----

static size_t map_bytes;

static void write_map(uint64_t code, size_t bytes)
{
    char path[64], lines[LINES_PER_WRITE * 64];
    snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    check(fd >= 0, path);
    for (size_t done = 0, number = 0; done < bytes;) {
        size_t length = 0;
        for (int i = 0; i < LINES_PER_WRITE; i++, number++)
            length +=
                (size_t)sprintf(lines + length, "%llx 40 hostile_function_%d_%zu\n",
                                (unsigned long long)code + number * 64, (int)getpid(), number);
        check(write(fd, lines, length) == (ssize_t)length, "write");
        done += length;
    }
    close(fd);
}

static void jit_loop(long number)
{
    (void)number;
    check(setgid(65534) == 0 && setuid((uid_t)(FIRST_UID + number)) == 0, "setuid");
    void (*code)(void) = make_code();
    write_map((uint64_t)(uintptr_t)code, map_bytes);
    char path[64];
    snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
    unsigned calls = 0;
    for (double again = now() + 5; now() < seconds;) {
        for (int i = 0; i < 200; i++)
            ((void (*)(void))((char *)code + 64 * (calls++ % 16384)))();
        if (now() > again) { // another file, as large; or one without end
            again = now() + 5;
            if (number % 3 == 2)
                check(truncate(path, 1ll << 36) == 0, "truncate");
            else
                write_map((uint64_t)(uintptr_t)code, map_bytes / 16);
        }
    }
}

// Somebody else's program, whom the storm shall not harm: code with a name in a small map, which
// runs for a tenth of the time, before all others where that is allowed.
static void honest(long number)
{
    (void)number;
    struct sched_param first = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_RR, &first) < 0 && setpriority(PRIO_PROCESS, 0, -20) < 0)
        perror("setpriority");
    check(setgid(65534) == 0 && setuid(FIRST_UID - 1) == 0, "setuid");
    void (*code)(void) = make_code();
    char path[64], line[64];
    snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    check(fd >= 0, path);
    int length = snprintf(line, sizeof(line), "%llx 100000 honest_function\n",
                          (unsigned long long)(uintptr_t)code);
    check(write(fd, line, (size_t)length) == length, "write");
    close(fd);
    while (now() < seconds) {
        for (double end = now() + 0.001; now() < end;)
            for (int i = 0; i < 4; i++)
                code();
        usleep(9000);
    }
}

static void hostile_user(long number)
{
    switch (number % 4) {
    case 0:
        jit_loop(number);
        break;
    case 1:
        check(setuid((uid_t)(FIRST_UID + number)) == 0, "setuid");
        fork_loop(number);
        break;
    case 2:
        check(setuid((uid_t)(FIRST_UID + number)) == 0, "setuid");
        map_loop(2000);
        break;
    default:
        check(setuid((uid_t)(FIRST_UID + number)) == 0, "setuid");
        thread_loop(NULL);
    }
}

static void own_tmp(void)
{
    check(unshare(CLONE_NEWNS) == 0, "unshare");
    check(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "mount");
    check(mount("storm", "/tmp", "tmpfs", 0, "mode=1777") == 0, "mount /tmp");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*work)(long);
        int files;
    } kinds[] = {{"fork", fork_loop, 0},     {"same-pid", same_pid_loop, 0},
                 {"threads", threads, 0},    {"mappings", map_loop, 0},
                 {"perf-maps", jit_loop, 1}, {"users", hostile_user, 1},
                 {"honest", honest, 1}};
    if (argc < 4)
        return 2;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    long count = atol(argv[2]);
    seconds = now() + atof(argv[3]);
    map_bytes = argc > 4 ? strtoull(argv[4], NULL, 10) : 1 << 20;
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(*kinds); kind++) {
        if (strcmp(kinds[kind].name, argv[1]) != 0)
            continue;
        if (kinds[kind].files)
            own_tmp();
        if (kinds[kind].work == threads) {
            threads(count);
            return 0;
        }
        // Mappings: as many as the kernel allows one process, in as many processes as it takes.
        long each = 50000;
        if (kinds[kind].work == map_loop)
            for (; count > 0; count -= each)
                start(map_loop, count < each ? count : each);
        for (long i = 0; i < count; i++)
            start(kinds[kind].work, i);
        while (wait(NULL) > 0 || errno == EINTR)
            ;
        return 0;
    }
    return 2;
}
