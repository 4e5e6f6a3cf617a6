// SPDX-License-Identifier: Apache-2.0
// The sampler without privilege: children with known shares, threads, forks and signals are
// sampled, and none of them behaves otherwise than alone.

#include "capture/ptrace/sampler.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "capture/ptrace/stopped.h"
#include "own_process.h"
#include "unit.h"

#define MS 1000000ll
#define NOBODY 65534
extern char **environ;

/* ---- what the subjects do ---- */

/* Told by subjects that are forks of ours. */
static struct shared {
    _Atomic int64_t cpu_ns;
    _Atomic int64_t thread_ns[4];
    _Atomic int tids[4];
} * shared;

static volatile uint64_t sink;

/* Code between two addresses that the linker knows. It asks no clock: that is where the scheduler
 * likes to take the CPU away. */
#define PLACE(name)                                                                                \
    extern char __start_code_##name[], __stop_code_##name[];                                       \
    __attribute__((noinline, noclone, section("code_" #name))) static void name(uint64_t rounds)   \
    {                                                                                              \
        for (uint64_t i = 0; i < rounds; i++)                                                      \
            sink += i * i;                                                                         \
    }
PLACE(sixty)
PLACE(thirty)
PLACE(ten)

/* About as many milliseconds of CPU time. */
static uint64_t rounds_of(uint64_t ms)
{
    static uint64_t per_ms;
    if (!per_ms) {
        const uint64_t rounds = 10000000;
        int64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        ten(rounds);
        per_ms = rounds * MS / (uint64_t)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns) + 1;
    }
    return ms * per_ms;
}

static void burn(uint64_t ms)
{
    sixty(rounds_of(ms));
}

static int known_shares(void)
{
    uint64_t rounds = rounds_of(150);
    int64_t clock[4];
    clock[0] = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    sixty(6 * rounds);
    clock[1] = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    thirty(3 * rounds);
    clock[2] = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    ten(rounds);
    clock[3] = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t i = 1; i < 4; i++)
        atomic_store(&shared->thread_ns[i], clock[i] - clock[i - 1]);
    atomic_fetch_add(&shared->cpu_ns, clock[3]);
    return 3;
}

static void *burn_in_thread(void *context)
{
    size_t i = (size_t)(uintptr_t)context;
    prctl(PR_SET_NAME, i == 2 ? "the second" : "another");
    atomic_store(&shared->tids[i], (int)gettid());
    burn(i * 200);
    atomic_store(&shared->thread_ns[i], clock_ns(CLOCK_THREAD_CPUTIME_ID));
    return NULL;
}

static int three_threads(void)
{
    pthread_t threads[4];
    for (size_t i = 1; i < 4; i++)
        pthread_create(&threads[i], NULL, burn_in_thread, (void *)(uintptr_t)i);
    for (size_t i = 1; i < 4; i++)
        pthread_join(threads[i], NULL);
    atomic_fetch_add(&shared->cpu_ns, clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    return 4;
}

static int forks(void)
{
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            burn(200);
            atomic_fetch_add(&shared->cpu_ns, clock_ns(CLOCK_PROCESS_CPUTIME_ID));
            _exit(0);
        }
        wait(NULL);
    }
    atomic_fetch_add(&shared->cpu_ns, clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    return 5;
}

static int many_short_forks(void)
{
    for (int i = 0; i < 200; i++) {
        if (fork() == 0) {
            burn(3);
            atomic_fetch_add(&shared->cpu_ns, clock_ns(CLOCK_PROCESS_CPUTIME_ID));
            _exit(0);
        }
        wait(NULL);
    }
    atomic_fetch_add(&shared->cpu_ns, clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    return 6;
}

/* Leaves what the process has used so far, which goes on counting in the next program. */
static void *exec_ourselves(void *mode)
{
    atomic_store(&shared->cpu_ns, clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    execl("/proc/self/exe", "self", mode, NULL);
    return NULL;
}

static int exec_from_a_thread(void)
{
    pthread_t threads[2];
    burn(50);
    pthread_create(&threads[0], NULL, burn_in_thread, (void *)3);
    usleep(30000);
    pthread_create(&threads[1], NULL, exec_ourselves, (void *)"subject:burn");
    pthread_join(threads[1], NULL);
    return 1;
}

static int waits_in_epoll(void)
{
    pthread_t thread;
    struct epoll_event event;
    int fd = epoll_create1(0);
    pthread_create(&thread, NULL, burn_in_thread, (void *)2);
    int r = epoll_wait(fd, &event, 1, 300);
    pthread_join(thread, NULL);
    return r == 0 ? 7 : 1;
}

static volatile sig_atomic_t alarms, deaths, ordered = 1, last_value;

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

static void on_death(int number)
{
    (void)number;
    deaths++;
}

static void on_value(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    ordered &= info->si_code == SI_QUEUE && info->si_value.sival_int == last_value + 1;
    last_value = info->si_value.sival_int;
}

/* Each letter is a change of the child that its parent was told of. */
static void stop_and_continue(FILE *out)
{
    int status;
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            burn(10);
    }
    for (int i = 0; i < 5; i++) {
        kill(child, SIGSTOP); /* the others do nothing to a group without a terminal */
        waitpid(child, &status, WUNTRACED);
        fprintf(out, "%s", WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP ? "S" : "?");
        usleep(5000);
        kill(child, SIGCONT);
        waitpid(child, &status, WCONTINUED);
        fprintf(out, "%s", WIFCONTINUED(status) ? "C" : "?");
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    fprintf(out, " %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : -1);
}

static void spawn_and_wait(FILE *out)
{
    char *const argv[] = {(char *)"self", (char *)"subject:nothing", NULL};
    pid_t pid;
    int status;
    for (int i = 0; i < 20; i++) {
        posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ); /* uses vfork */
        waitpid(pid, &status, 0);
        if (WEXITSTATUS(status) != 9)
            fprintf(out, "a child ended with %d\n", status);
    }
}

/* A program that lives on signals. What it writes is the same each time, if none is lost. */
static int signals(FILE *out)
{
    struct sigaction alarm_action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct sigaction death_action = {.sa_handler = on_death, .sa_flags = SA_NOCLDSTOP};
    struct sigaction value_action = {.sa_sigaction = on_value, .sa_flags = SA_SIGINFO};
    struct itimerval every = {{0, 1000}, {0, 1000}}, never = {0};
    sigset_t death, before;
    sigaction(SIGALRM, &alarm_action, NULL);
    sigaction(SIGRTMIN, &value_action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    while (alarms < 200)
        burn(1);
    setitimer(ITIMER_REAL, &never, NULL);
    fprintf(out, "alarms came\n");
    for (int i = 1; i <= 100; i++)
        sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i});
    fprintf(out, "values to %d%s\n", (int)last_value, ordered ? " in order" : "");
    stop_and_continue(out);
    spawn_and_wait(out);
    sigemptyset(&death);
    sigaddset(&death, SIGCHLD);
    sigaction(SIGCHLD, &death_action, NULL);
    for (int i = 0; i < 20; i++) {
        int status;
        sigprocmask(SIG_BLOCK, &death, &before);
        pid_t child = fork();
        if (!child)
            _exit(i);
        while (deaths == i)
            sigsuspend(&before);
        sigprocmask(SIG_SETMASK, &before, NULL);
        if (waitpid(child, &status, WNOHANG) != child || WEXITSTATUS(status) != i)
            fprintf(out, "the child %d ended otherwise\n", i);
    }
    fprintf(out, "deaths %d\n", (int)deaths);
    fflush(out);
    kill(getpid(), SIGUSR1); /* the end */
    return 1;
}

static int run_subject(const char *name)
{
    if (!strcmp(name, "nothing"))
        return 9;
    if (!strcmp(name, "burn")) {
        burn(400);
        dprintf(1, "%lld", (long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
        return 8;
    }
    if (!strcmp(name, "signals"))
        return signals(stdout);
    return 1;
}

/* ---- what the tests do with them ---- */

struct seen {
    uint64_t last_ns;
    uint64_t period_ns, samples, heaviest_ns;
    uint64_t sixty_ns, thirty_ns, ten_ns;
    uint64_t by_tid_ns[4];
    size_t started, ended, executed, mapped, outside, backwards;
    bool renamed;
    uint64_t ranges[64][2]; /* of the newest program */
    size_t range_count;
    struct own_process *own; /* to walk stacks with; NULL: don't */
    uint64_t walks, whole;
};

static void add_place(struct seen *seen, const struct perf_record *record)
{
    uint64_t ip = record->ip;
    if (ip >= (uintptr_t)__start_code_sixty && ip < (uintptr_t)__stop_code_sixty)
        seen->sixty_ns += record->period;
    if (ip >= (uintptr_t)__start_code_thirty && ip < (uintptr_t)__stop_code_thirty)
        seen->thirty_ns += record->period;
    if (ip >= (uintptr_t)__start_code_ten && ip < (uintptr_t)__stop_code_ten)
        seen->ten_ns += record->period;
    for (size_t i = 0; i < 4; i++)
        if (record->tid == (uint32_t)atomic_load(&shared->tids[i]))
            seen->by_tid_ns[i] += record->period;
    bool inside = false;
    for (size_t i = 0; i < seen->range_count; i++)
        inside |= ip >= seen->ranges[i][0] && ip < seen->ranges[i][1];
    seen->outside += !inside;
}

static void walk(struct seen *seen, const struct perf_record *record)
{
    struct unwind_frame frames[64];
    size_t count;
    struct unwind_input input = {.registers =
                                     unwind_registers_of(record->ip, record->sp, record->fp),
                                 .stack = record->stack,
                                 .stack_bytes = record->stack_bytes,
                                 .stack_address = record->sp,
                                 .rules = &seen->own->rules,
                                 .find = own_find,
                                 .context = seen->own};
    seen->whole += unwind_walk(&input, frames, 64, &count) == UNWIND_END_COMPLETE;
    seen->walks++;
}

static void see(void *context, const struct perf_record *record)
{
    struct seen *seen = context;
    seen->backwards += record->time_ns < seen->last_ns;
    seen->last_ns = record->time_ns;
    switch (record->kind) {
    case PERF_SAMPLE:
        seen->samples++;
        seen->period_ns += record->period;
        if (record->period > seen->heaviest_ns)
            seen->heaviest_ns = record->period;
        add_place(seen, record);
        if (seen->own)
            walk(seen, record);
        break;
    case PERF_MAPPED:
        seen->mapped++;
        if (seen->range_count < 64) {
            seen->ranges[seen->range_count][0] = record->start;
            seen->ranges[seen->range_count++][1] = record->start + record->length;
        }
        break;
    case PERF_NAMED:
        seen->renamed |= !strcmp(record->path, "the second");
        if (record->executed) {
            seen->executed++;
            seen->range_count = 0;
        }
        break;
    case PERF_STARTED:
        seen->started++;
        break;
    case PERF_ENDED:
        seen->ended++;
        break;
    case PERF_LOST:
        break;
    }
}

/* A fork that waits until the gate is closed. */
static pid_t start(int (*subject)(void), const char *program, int output, int *ret_gate)
{
    int gate[2];
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        char byte;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(gate[1]);
        while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
            ;
        if (output >= 0)
            dup2(output, 1);
        if (program)
            exec_ourselves((void *)(uintptr_t)program);
        _exit(subject());
    }
    close(gate[0]);
    *ret_gate = gate[1];
    return pid;
}

/* All of the subject's life. Returns its wait status. */
static int sample(int (*subject)(void), const char *program, int output, struct seen *seen)
{
    struct ptrace_sampler *sampler = NULL;
    struct error error = {0};
    int gate, status = -1;
    memset(shared, 0, sizeof(*shared));
    pid_t pid = start(subject, program, output, &gate);
    int r = ptrace_sampler_new(pid, 99, &sampler, &error);
    if (r < 0)
        kill(pid, SIGKILL);
    if (r < 0)
        fail_msg("%s", error.text);
    assert_false(ptrace_sampler_exit_status(sampler, &status));
    close(gate);
    while (ptrace_sampler_read(sampler, 100, see, seen) == 0)
        ;
    assert_true(ptrace_sampler_exit_status(sampler, &status));
    seen->period_ns += ptrace_sampler_unsettled_ns(sampler);
    assert_int_equal(ptrace_sampler_refused(sampler), 0);
    assert_int_equal(ptrace_sampler_period_ns(sampler), 1000000000 / 49);
    ptrace_sampler_free(sampler);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
    assert_int_equal(seen->backwards, 0);
    return status;
}

/* Tells both numbers when they are too far apart. */
static void assert_near(const char *what, double got, double expected, double tolerance)
{
    if (got < expected - tolerance || got > expected + tolerance)
        fail_msg("%s: %.4g instead of %.4g", what, got, expected);
}

/* All CPU time is in the samples. Between fork and the first instruction of a subject, and between
 * its last look at the clock and its end, there are some hundred microseconds per process. */
static void assert_all_time(const struct seen *seen, size_t processes)
{
    assert_near("CPU time in ms", (double)seen->period_ns / MS,
                (double)atomic_load(&shared->cpu_ns) / MS,
                (double)atomic_load(&shared->cpu_ns) / MS * 0.03 + 5 + (double)processes);
}

static void shares(void **state)
{
    (void)state;
    struct own_process *own = memory_zalloc(1, sizeof(*own));
    struct seen seen = {.own = own};
    assert_int_equal(own_process_init(own), 0);
    int status = sample(known_shares, NULL, -1, &seen);
    own_process_release(own);
    free(own);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    assert_all_time(&seen, 1);
    const uint64_t places[] = {0, seen.sixty_ns, seen.thirty_ns, seen.ten_ns};
    /* One sample at each end of a place can be its neighbour's, and a sampler that gets no CPU for
     * a while has heavy ones. */
    double doubt = 2 * 100 * (double)seen.heaviest_ns / (double)seen.period_ns;
    for (size_t i = 1; i < 4; i++)
        assert_near("percent", 100.0 * (double)places[i] / (double)seen.period_ns,
                    100.0 * (double)shared->thread_ns[i] / (double)shared->cpu_ns,
                    doubt > 5 ? doubt : 5);
    assert_int_equal(seen.ended, 1);
    assert_int_equal(seen.outside, 0);
    assert_near("whole stacks in percent", 100.0 * (double)seen.whole / (double)seen.walks, 100, 5);
}

static void threads(void **state)
{
    (void)state;
    struct seen seen = {0};
    int status = sample(three_threads, NULL, -1, &seen);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 4);
    assert_all_time(&seen, 1);
    /* What is left at a thread's end is another's: at most what it used since the last look. */
    double doubt = 100 + (double)seen.heaviest_ns / MS;
    for (size_t i = 1; i < 4; i++)
        assert_near("a thread's ms", (double)seen.by_tid_ns[i] / MS,
                    (double)atomic_load(&shared->thread_ns[i]) / MS, doubt);
    assert_int_equal(seen.started, 3);
    assert_int_equal(seen.ended, 4);
    assert_true(seen.renamed);
}

static void processes(void **state)
{
    (void)state;
    struct seen seen = {0};
    int status = sample(forks, NULL, -1, &seen);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    assert_all_time(&seen, 4);
    assert_int_equal(seen.started, 3);
    assert_int_equal(seen.ended, 4);
}

static void short_processes(void **state)
{
    (void)state;
    struct seen seen = {0};
    int status = sample(many_short_forks, NULL, -1, &seen);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 6);
    assert_all_time(&seen, 201);
    assert_int_equal(seen.started, 200);
    /* Each lives for a fraction of the time between looks, yet together they count in full. Where
     * in them depends on how late the looks come: shares() has that. */
    assert_true(seen.samples > 0);
}

static void read_all(int fd, struct buffer *out)
{
    ssize_t got;
    lseek(fd, 0, SEEK_SET);
    while ((got = read(fd, buffer_reserve(out, 4096), 4096)) > 0)
        out->length += (size_t)got;
    close(fd);
}

static void programs(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer said = {0};
    int fd = memfd_create("said", MFD_CLOEXEC);
    struct seen seen = {0};
    int status = sample(NULL, "subject:burn", fd, &seen);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 8);
    assert_int_equal(seen.executed, 1);
    assert_true(seen.mapped > 1);
    assert_int_equal(seen.outside, 0);
    /* What it used before its exec is not its own. */
    read_all(fd, &said);
    atomic_store(&shared->cpu_ns, atoll(buffer_text(&said)));
    assert_all_time(&seen, 1);

    /* A program too short to be met has its one sample, at its end. */
    struct seen brief = {0};
    status = sample(NULL, "subject:nothing", -1, &brief);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 9);
    assert_true(brief.samples >= 1);
    assert_int_equal(brief.outside, 0);

    /* What another thread executes goes on under the first one's number. */
    struct seen threaded = {0};
    fd = memfd_create("said", MFD_CLOEXEC);
    status = sample(exec_from_a_thread, NULL, fd, &threaded);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 8);
    assert_int_equal(threaded.executed, 1);
    assert_int_equal(threaded.outside, 0);
    said.length = 0;
    read_all(fd, &said);
    /* The time before the exec, which is long on a busy machine, may be in the samples or not. */
    int64_t used_ns = atoll(buffer_text(&said));
    int64_t after_ns = used_ns - atomic_load(&shared->cpu_ns);
    assert_true(after_ns >= 50 * MS); /* about 400 ms at the speed that was measured, then lost */
    assert_true(threaded.period_ns > (uint64_t)after_ns * 9 / 10);
    assert_true(threaded.period_ns < (uint64_t)used_ns / 100 * 103 + 6 * MS);
}

static void sleepers_are_left_alone(void **state)
{
    (void)state;
    struct seen seen = {0};
    int status = sample(waits_in_epoll, NULL, -1, &seen);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert_true(seen.samples > 3);
}

static void signals_arrive(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer alone = {0}, sampled = {0};
    int gate, status, sampled_status;
    int fd = memfd_create("alone", MFD_CLOEXEC);
    pid_t pid = start(NULL, "subject:signals", fd, &gate);
    close(gate);
    waitpid(pid, &status, 0);
    read_all(fd, &alone);
    fd = memfd_create("sampled", MFD_CLOEXEC);
    struct seen seen = {0};
    sampled_status = sample(NULL, "subject:signals", fd, &seen);
    read_all(fd, &sampled);
    assert_buffer(&alone, "alarms came\nvalues to 100 in order\nSCSCSCSCSC 9\ndeaths 20\n");
    assert_string_equal(buffer_text(&sampled), buffer_text(&alone));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
    assert_int_equal(sampled_status, status);
    assert_true(seen.samples > 0);
}

/* ---- ends, and what goes wrong ---- */

static int burn_for_ever(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, burn_in_thread, (void *)3);
    while (thread)
        burn(10);
    return 1;
}

static void death_at_any_moment(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        struct ptrace_sampler *sampler = NULL;
        struct seen seen = {0};
        int gate, status = 0;
        memset(shared, 0, sizeof(*shared));
        pid_t pid = start(burn_for_ever, NULL, -1, &gate);
        assert_int_equal(ptrace_sampler_new(pid, 49, &sampler, NULL), 0);
        close(gate);
        int64_t kill_ns = monotonic_ns() + i * MS;
        while (monotonic_ns() < kill_ns)
            ptrace_sampler_read(sampler, 1, see, &seen);
        kill(pid, SIGKILL);
        while (ptrace_sampler_read(sampler, 100, see, &seen) == 0)
            ;
        assert_true(ptrace_sampler_exit_status(sampler, &status));
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        ptrace_sampler_free(sampler);
    }
}

static void wait_for_state(pid_t pid, char wanted)
{
    struct task_stat stat = {0};
    for (int i = 0; i < 1000 && stat.state != wanted; i++) {
        usleep(10000);
        assert_int_equal(task_stat_read(pid, pid, &stat), 0);
    }
    assert_int_equal(stat.state, wanted);
}

static void processes_go_on(void **state)
{
    (void)state;
    for (int stopped = 0; stopped < 2; stopped++) {
        struct ptrace_sampler *sampler = NULL;
        struct seen seen = {0};
        int gate, status;
        memset(shared, 0, sizeof(*shared));
        pid_t pid = start(burn_for_ever, NULL, -1, &gate);
        assert_int_equal(ptrace_sampler_new(pid, 49, &sampler, NULL), 0);
        close(gate);
        while (seen.samples < 3)
            assert_int_equal(ptrace_sampler_read(sampler, 100, see, &seen), 0);
        assert_true(task_status_number(pid, pid, "TracerPid") > 0);
        if (stopped) {
            kill(pid, SIGSTOP);
            wait_for_state(pid, 't');
        }
        ptrace_sampler_free(sampler);
        assert_int_equal(task_status_number(pid, pid, "TracerPid"), 0);
        wait_for_state(pid, stopped ? 'T' : 'R');
        kill(pid, SIGCONT);
        wait_for_state(pid, 'R');
        kill(pid, SIGTERM);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    }
}

static void what_cannot_be_traced(void **state)
{
    (void)state;
    struct ptrace_sampler *sampler = NULL;
    struct error error = {0};
    pid_t pid = fork();
    if (!pid)
        _exit(0);
    siginfo_t info;
    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
    waitpid(pid, NULL, 0);
    assert_int_equal(ptrace_sampler_new(pid, 49, &sampler, &error), -ESRCH);
    assert_says(&error, "ended before");

    pid = fork();
    if (!pid) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(0);
    }
    waitpid(pid, NULL, WUNTRACED);
    assert_int_equal(ptrace_sampler_new(pid, 49, &sampler, &error), -EPERM);
    assert_says(&error, "SYS_PTRACE");
    assert_null(sampler);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* As in a container whose runtime allows no ptrace. */
static int without_ptrace(int code)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {ARRAY_LENGTH(filter), filter};
    struct ptrace_sampler *sampler = NULL;
    struct error error = {0};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        return 77;
    pid_t pid = fork();
    if (!pid) {
        pause();
        _exit(0);
    }
    int r = ptrace_sampler_new(pid, 49, &sampler, &error);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return r == -code && strstr(error.text, "system-call filter") ? 0 : 1;
}

static void forbidden_by_a_filter(void **state)
{
    (void)state;
    const int codes[] = {EPERM, ENOSYS};
    for (size_t i = 0; i < ARRAY_LENGTH(codes); i++) {
        pid_t pid = fork();
        if (!pid)
            _exit(without_ptrace(codes[i]));
        int status;
        waitpid(pid, &status, 0);
        if (WEXITSTATUS(status) == 77)
            skip_because("This kernel has no seccomp.");
        assert_int_equal(status, 0);
    }
}

static int setup(void **state)
{
    (void)state;
    rounds_of(1);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? -1 : 0;
}

static int run_again_as_nobody(void)
{
    pid_t pid = fork();
    if (!pid) {
        if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
            setresuid(NOBODY, NOBODY, NOBODY) < 0)
            _exit(77);
        exec_ourselves((void *)"nobody");
        _exit(77);
    }
    int status;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* The same tests, by a user without any privilege. */
static void without_privilege(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip_because("This user has no privilege to drop: all cases have run without.");
    int r = run_again_as_nobody();
    if (r == 77)
        skip_because("The test can't become another user here.");
    assert_int_equal(r, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares),
        cmocka_unit_test(threads),
        cmocka_unit_test(processes),
        cmocka_unit_test(short_processes),
        cmocka_unit_test(programs),
        cmocka_unit_test(sleepers_are_left_alone),
        cmocka_unit_test(signals_arrive),
        cmocka_unit_test(death_at_any_moment),
        cmocka_unit_test(processes_go_on),
        cmocka_unit_test(what_cannot_be_traced),
        cmocka_unit_test(forbidden_by_a_filter),
    };
    const struct CMUnitTest with_privilege[] = {cmocka_unit_test(without_privilege)};
    /* Without what a leak checker does at the end: it wants to trace, and is traced. */
    if (argc > 1 && !strncmp(argv[1], "subject:", 8))
        _exit(run_subject(argv[1] + 8));
    int r = cmocka_run_group_tests(tests, setup, NULL);
    if (argc == 1)
        r |= cmocka_run_group_tests(with_privilege, NULL, NULL);
    return r;
}
