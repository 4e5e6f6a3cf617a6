// SPDX-License-Identifier: Apache-2.0
// The targets of `assay record`, and the end of a recording: see record.h.

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "capture/heap/preload.h"
#include "cli/input.h"
#include "cli/live/record.h"

#define PRIORITY_RAISED (-20)
#define READ_EVERY_MS 100
/* After a request to end, a command has this long before the recording is written without it. */
#define END_GRACE_NS 5000000000ll
#define KILL_GRACE_NS 2000000000ll

/* ---- the command ---- */

/* What lets it go: allocations are written to the ring, or seen by the library's probes. */
enum go { GO, GO_BY_PROBES };

static int start_command(char *const argv[], struct target *target)
{
    int gate[2], failure[2];
    if (pipe2(gate, O_CLOEXEC) < 0)
        return -errno;
    int r = pipe2(failure, O_CLOEXEC) < 0 ? -errno : 0;
    pid_t pid = r < 0 ? -1 : fork();
    if (pid < 0)
        return r < 0 ? r : -errno;
    if (!pid) {
        char byte;
        ssize_t got;
        close(gate[1]);
        while ((got = read(gate[0], &byte, 1)) < 0 && errno == EINTR)
            ;
        if (got != 1) /* the recorder is gone */
            _exit(126);
        if (target->preload)
            heap_preload_enter(target->preload, byte == GO_BY_PROBES);
        execvp(argv[0], argv);
        int code = errno;
        file_write_all(failure[1], &code, sizeof(code));
        _exit(code == ENOENT ? 127 : 126);
    }
    close(gate[0]);
    close(failure[1]);
    target->command = pid;
    target->gate = gate[1];
    target->failure = failure[0];
    return 0;
}

static void add_pid(struct target *target, pid_t pid)
{
    array_reserve(target->pids, target->pid_capacity, target->pid_count + 1);
    target->pids[target->pid_count++] = pid;
}

/* The process of a thread; 0 for an unknown thread. */
static pid_t process_of(uint64_t tid)
{
    char path[64];
    _cleanup_buffer_ struct buffer content = {0};
    int pid;
    snprintf(path, sizeof(path), "/proc/%llu/status", (unsigned long long)tid);
    if (file_read(path, 65536, &content, NULL) < 0)
        return 0;
    const char *line = strstr(buffer_text(&content), "\nTgid:");
    return line && sscanf(line + 6, "%d", &pid) == 1 ? (pid_t)pid : 0;
}

/* Their processes are recorded; the others' samples are left out at the end. */
static int open_threads(const char *tids, struct target *target, struct error *error)
{
    for (const char *at = tids; *at || at == tids;) {
        size_t length = strcspn(at, ",");
        uint64_t tid;
        if (!text_to_u64(at, length, &tid) || !tid || tid > INT32_MAX)
            return error_set(error, -EINVAL, "--tid requires thread ids, not \"%s\".", tids);
        pid_t pid = process_of(tid);
        if (!pid)
            return error_set(error, -ESRCH, "There is no thread %llu.", (unsigned long long)tid);
        bool known = false;
        for (size_t i = 0; i < target->pid_count; i++)
            known |= target->pids[i] == pid;
        if (!known)
            add_pid(target, pid);
        at += length + (at[length] == ',');
    }
    return 0;
}

int target_open(const struct record_options *options, char *const argv[], struct target *target,
                struct error *error)
{
    target->machine = options->all;
    if (options->all || options->cgroup)
        return 0;
    if (options->tids)
        return open_threads(options->tids, target, error);
    if (!options->pids) {
        int r = start_command(argv, target);
        if (r < 0)
            return error_set_errno(error, r, "Failed to start %s", argv[0]);
        add_pid(target, target->command);
        return 0;
    }
    for (const char *at = options->pids; *at || at == options->pids;) {
        size_t length = strcspn(at, ",");
        uint64_t pid;
        if (!text_to_u64(at, length, &pid) || !pid || pid > INT32_MAX)
            return error_set(error, -EINVAL, "--pid requires process ids, not \"%s\".",
                             options->pids);
        add_pid(target, (pid_t)pid);
        at += length + (at[length] == ',');
    }
    return 0;
}

void target_abandon(struct target *target)
{
    if (!target->command)
        return;
    kill(target->command, SIGKILL);
    waitpid(target->command, NULL, 0);
}

void target_release(struct target *target)
{
    free(target->pids);
}

/* ---- priority ---- */

void target_raise_priority(struct target *target)
{
    errno = 0;
    target->priority = getpriority(PRIO_PROCESS, 0);
    if (errno || target->priority > 0 || geteuid() != 0)
        return;
    target->raised = setpriority(PRIO_PROCESS, 0, PRIORITY_RAISED) == 0;
}

void target_restore_priority(struct target *target)
{
    if (target->raised)
        setpriority(PRIO_PROCESS, 0, target->priority);
    target->raised = false;
}

/* ---- signals ---- */

static volatile sig_atomic_t signal_count, asked_to_end;
static volatile pid_t passed_to; /* 0: nobody */

/* The terminal sends Ctrl-C to the command, too; all else reaches us alone. */
static void take_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    int before = errno;
    signal_count++;
    if (number == SIGTERM || number == SIGHUP)
        asked_to_end = 1;
    if (passed_to && info->si_code != SI_KERNEL)
        kill(passed_to, number);
    errno = before;
}

void target_take_signals(const struct target *target)
{
    static const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    struct sigaction before,
        action = {.sa_sigaction = take_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    passed_to = target->command;
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
        /* nohup means it; a shell that ignores Ctrl-C for its background jobs doesn't. */
        if (numbers[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 &&
            before.sa_handler == SIG_IGN)
            continue;
        sigaction(numbers[i], &action, NULL);
    }
}

unsigned target_signals(void)
{
    return (unsigned)signal_count;
}

bool target_is_interrupted(const struct target *target)
{
    static int64_t asked_ns;
    if (!target->command || signal_count > 1)
        return signal_count > 0;
    if (asked_to_end && !asked_ns)
        asked_ns = monotonic_ns();
    return asked_ns && monotonic_ns() - asked_ns >= END_GRACE_NS;
}

/* ---- CPU time ---- */

/* Of all children that have ended and were waited for, and of theirs. */
static struct cpu_time children_cpu(void)
{
    struct rusage used;
    if (getrusage(RUSAGE_CHILDREN, &used) < 0)
        return (struct cpu_time){0};
    int64_t user_ns = used.ru_utime.tv_sec * 1000000000ll + used.ru_utime.tv_usec * 1000ll;
    int64_t kernel_ns = used.ru_stime.tv_sec * 1000000000ll + used.ru_stime.tv_usec * 1000ll;
    return (struct cpu_time){.all_ns = user_ns + kernel_ns, .kernel_ns = kernel_ns};
}

/* Of a process with all its threads and the children that it has waited for; false when it is
 * gone. */
static bool process_cpu(pid_t pid, struct cpu_time *sum)
{
    char path[64];
    _cleanup_buffer_ struct buffer content = {0};
    unsigned long long times[4];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (file_read(path, 65536, &content, NULL) < 0)
        return false;
    /* Behind the name, which may have anything in it: the 14th to the 17th word. */
    const char *at = strrchr(buffer_text(&content), ')');
    if (!at || sscanf(at + 1, "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu %llu %llu",
                      &times[0], &times[1], &times[2], &times[3]) != 4)
        return false;
    int64_t tick_ns = 1000000000 / sysconf(_SC_CLK_TCK);
    sum->all_ns += (int64_t)(times[0] + times[1] + times[2] + times[3]) * tick_ns;
    sum->kernel_ns += (int64_t)(times[1] + times[3]) * tick_ns;
    return true;
}

/* Of this machine: neither idle nor stolen. */
static struct cpu_time machine_cpu(void)
{
    unsigned long long user, nice, system, idle, waiting, irq, softirq;
    _cleanup_buffer_ struct buffer content = {0};
    if (file_read("/proc/stat", 1 << 20, &content, NULL) < 0 ||
        sscanf(buffer_text(&content), "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice,
               &system, &idle, &waiting, &irq, &softirq) != 7)
        return (struct cpu_time){.all_ns = -1};
    int64_t tick_ns = 1000000000 / sysconf(_SC_CLK_TCK);
    return (struct cpu_time){.all_ns = (int64_t)(user + nice + system + irq + softirq) * tick_ns,
                             .kernel_ns = (int64_t)(system + irq + softirq) * tick_ns};
}

/* Of all processes; all_ns is -1 when one is gone. */
static struct cpu_time all_cpu(const struct target *target)
{
    struct cpu_time sum = {0};
    if (target->machine)
        return machine_cpu();
    for (size_t i = 0; i < target->pid_count; i++)
        if (!process_cpu(target->pids[i], &sum))
            return (struct cpu_time){.all_ns = -1};
    return sum;
}

/* ---- beginning and end ---- */

void target_begin(struct target *target, const struct capture *capture)
{
    if (target->command) {
        char go = capture_backend(capture) == CAPTURE_BPF ? GO_BY_PROBES : GO;
        file_write_all(target->gate, &go, 1);
        close(target->gate);
    } else {
        target->cpu_before = all_cpu(target);
    }
    target->began_ns = monotonic_ns();
}

void target_measure(struct target *target, int64_t duration_ns)
{
    struct cpu_time cpu = target->ended ? children_cpu() : all_cpu(target);
    int64_t passed_ns = monotonic_ns() - target->began_ns;
    if (cpu.all_ns < 0 || target->cpu_before.all_ns < 0)
        return;
    /* We may be late: what was used in the time before is then estimated. */
    target->cpu_estimated = passed_ns > duration_ns + duration_ns / 10;
    double part = passed_ns > duration_ns ? (double)duration_ns / (double)passed_ns : 1;
    target->cpu.all_ns = (int64_t)((double)(cpu.all_ns - target->cpu_before.all_ns) * part);
    target->cpu.kernel_ns =
        (int64_t)((double)(cpu.kernel_ns - target->cpu_before.kernel_ns) * part);
}

bool target_has_ended(struct target *target, struct capture *capture)
{
    if (target->command && !target->ended)
        target->ended = capture_child_ended(capture, target->command, &target->status);
    return target->ended;
}

bool target_failed(const struct target *target, const char *name)
{
    int code = 0;
    struct error error = {0};
    if (!target->command || read(target->failure, &code, sizeof(code)) != sizeof(code))
        return false;
    error_set_errno(&error, -code, "Failed to run %s", name);
    fail(&error);
    return true;
}

static int exit_code(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int target_wait(struct target *target, struct capture *capture)
{
    int64_t ending_ns = 0;
    struct error error = {0};
    if (!target->command)
        return 0;
    while (!target_has_ended(target, capture)) {
        if (!ending_ns && target_signals() > 1) {
            ending_ns = monotonic_ns();
            kill(target->command, SIGTERM);
        }
        if (ending_ns && monotonic_ns() - ending_ns > KILL_GRACE_NS)
            kill(target->command, SIGKILL);
        /* Sampling has ended, but ptrace's events still have to be handled. */
        if (capture_read(capture, READ_EVERY_MS, false, &error) < 0)
            usleep(READ_EVERY_MS * 1000);
    }
    return exit_code(target->status);
}
