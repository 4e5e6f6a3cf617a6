// SPDX-License-Identifier: Apache-2.0
// Samples by ptrace: the tracing thread and its life with the processes. See ptrace_sampler.h.

#include "capture/ptrace/sampler.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "capture/perf/record_queue.h"
#include "capture/ptrace/stopped.h"
#include "capture/ptrace/tracee_asking.h"
#include "capture/ptrace/tracee_maps.h"
#include "capture/ptrace/tracee_runtime.h"
#include "capture/ptrace/tracees.h"

#define FOLLOW                                                                                     \
    (PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |         \
     PTRACE_O_TRACEEXIT)

/* Stops that are dealt with before the clock is looked at again. */
#define STOPS_AT_ONCE 64
/* Processes of one name that end without having been met are sampled at their end when they owe so
 * many periods. */
#define EXIT_PERIODS 3

struct ptrace_sampler {
    pid_t child;
    int64_t period_ns;
    pthread_t thread;
    sigset_t mask_before;
    struct sigaction action_before;
    struct record_queue queue;

    /* Results of the tracing thread. */
    sem_t seized;
    int refusal; /* why the child cannot be traced: 0 or a negative code */
    atomic_bool has_status;
    atomic_int status;
    _Atomic uint64_t unsettled_ns, refused;

    atomic_bool stop; /* what it is told */

    /* Its own. */
    struct tracees tracees;
    struct asking asking;
    struct tracee_runtimes runtimes; /* the caller adds to it */
    void *frames;                    /* of the interpreter, in the sample that is being taken */
    bool executed;                   /* the child runs its program */
    uint8_t *stack;
};

/* ---- records ---- */

static void report(void *context, const struct perf_record *record)
{
    struct ptrace_sampler *sampler = context;
    record_queue_add(&sampler->queue, record);
}

static struct perf_record record_of(const struct tracee *tracee, enum perf_kind kind)
{
    return (struct perf_record){.kind = kind,
                                .time_ns = (uint64_t)monotonic_ns(),
                                .pid = (uint32_t)tracee->process->pid,
                                .tid = (uint32_t)tracee->tid};
}

static void report_name(struct ptrace_sampler *sampler, struct tracee *tracee, const char *name,
                        bool executed)
{
    struct perf_record record = record_of(tracee, PERF_NAMED);
    snprintf(tracee->name, sizeof(tracee->name), "%s", name);
    if (tracee->tid == tracee->process->pid)
        memcpy(tracee->process->name, tracee->name, sizeof(tracee->name));
    record.path = tracee->name;
    record.executed = executed;
    report(sampler, &record);
}

static void forget_frames(struct ptrace_sampler *sampler)
{
    free(TAKE_PTR(sampler->frames));
}

/* The thread is stopped: all that a sample of it needs. False when there is nothing to report. */
static bool copy_sample(struct ptrace_sampler *sampler, struct tracee *tracee,
                        struct perf_record *ret_record)
{
    struct thread_registers registers;
    /* While the reader is behind, CPU time stays on its account. */
    if (record_queue_busy(&sampler->queue) || stopped_registers(tracee->tid, &registers) < 0)
        return false;
    if (tracee->seen_name[0] && strcmp(tracee->seen_name, tracee->name) != 0)
        report_name(sampler, tracee, tracee->seen_name, false);
    struct perf_record record = record_of(tracee, PERF_SAMPLE);
    record.has_user = true;
    record.ip = registers.value[REGISTER_IP];
    record.sp = registers.value[REGISTER_SP];
    record.fp = registers.value[REGISTER_FP];
    record.base = registers.value[REGISTER_BASE];
    record.argument = registers.value[REGISTER_ARGUMENT];
    record.stack = sampler->stack;
    record.stack_bytes = stopped_memory(tracee->tid, registers.value[REGISTER_SP], sampler->stack,
                                        PTRACE_SAMPLER_STACK_BYTES);
    const struct tracee_stack copy = {.pid = tracee->process->pid,
                                      .thread_pointer = registers.thread_pointer,
                                      .sp = record.sp,
                                      .stack = record.stack,
                                      .stack_bytes = record.stack_bytes};
    record.frames = sampler->frames =
        tracee_runtimes_read(&sampler->runtimes, &copy, &record.frame_bytes);
    /* A process that ends soon takes its list of mappings with it; later changes can wait until it
     * goes on. */
    if (!tracee->process->mapping_count)
        tracee_maps_update(tracee, &record, report, sampler);
    record.period = tracees_settle(&sampler->tracees, tracee);
    *ret_record = record;
    if (!record.period)
        forget_frames(sampler);
    return record.period > 0;
}

static void report_sample(struct ptrace_sampler *sampler, struct tracee *tracee,
                          const struct perf_record *record)
{
    tracee_maps_update(tracee, record, report, sampler);
    report(sampler, record);
    forget_frames(sampler);
}

/* ---- what happens to threads ---- */

/* A thread that has been killed meanwhile is reported as ended soon. */
static void resume(const struct ptrace_sampler *sampler, struct tracee *tracee, int signal_number)
{
    asking_resumed(&sampler->tracees, tracee);
    ptrace(PTRACE_CONT, tracee->tid, NULL, (long)signal_number);
}

/* A thread that is traced because what started it is. NULL when there are too many. */
static struct tracee *add_newborn(struct ptrace_sampler *sampler, pid_t tid)
{
    long pid = task_status_number(tid, tid, "Tgid");
    long parent_pid = task_status_number(tid, tid, "PPid");
    const struct tracee *parent = tracees_find(&sampler->tracees, (pid_t)parent_pid);
    bool process = pid <= 0 || pid == tid;
    struct tracee *tracee = tracees_add(&sampler->tracees, tid, process ? tid : (pid_t)pid,
                                        process && parent ? parent->process : NULL);
    if (!tracee)
        return NULL;
    if (process && !parent) {
        /* The previous owner of this number has ended, and /proc has the rest. */
        report_name(sampler, tracee, tracee->name, true);
        return tracee;
    }
    if (process)
        tracee_runtimes_fork(&sampler->runtimes, (pid_t)parent_pid, tid);
    struct perf_record record = record_of(tracee, PERF_STARTED);
    record.parent_pid = process ? (uint32_t)parent_pid : record.pid;
    report(sampler, &record);
    return tracee;
}

/* A child may be reported by its own first stop before its parent's. */
static void take_start(struct ptrace_sampler *sampler, struct tracee *tracee)
{
    unsigned long newborn = 0;
    if (ptrace(PTRACE_GETEVENTMSG, tracee->tid, NULL, &newborn) == 0 && newborn &&
        !tracees_find(&sampler->tracees, (pid_t)newborn))
        add_newborn(sampler, (pid_t)newborn);
    resume(sampler, tracee, 0);
}

/* All threads but one are gone, and that one has the process's number now, whichever it had. */
static void take_exec(struct ptrace_sampler *sampler, struct tracee *tracee)
{
    struct tracees *tracees = &sampler->tracees;
    struct tracee_process *process = tracee->process;
    unsigned long former = 0;
    ptrace(PTRACE_GETEVENTMSG, tracee->tid, NULL, &former);
    const struct tracee *caller = tracees_find(tracees, (pid_t)former);
    uint64_t used_ns = tracee_cpu_ns(tracees, tracee, NULL);
    uint64_t paid_ns = caller ? caller->paid_ns : used_ns;
    process->owed_ns += used_ns > paid_ns ? used_ns - paid_ns : 0;
    /* The first is the end of our own preparations, which nobody asked about. */
    if (tracee->tid == sampler->child && !sampler->executed) {
        sampler->executed = true;
        process->owed_ns = 0;
    }
    tracees_bequeath(tracees, process);
    for (size_t i = tracees->count; i-- > 0;)
        if (tracees->list[i]->process == process && tracees->list[i] != tracee)
            tracees_remove(tracees, tracees->list[i]);
    process->living = 1;
    tracee->paid_ns = used_ns;
    tracee->ending = tracee->interrupted = false;
    tracee->seen_name[0] = '\0';
    tracee_maps_forget(process);
    tracee_runtimes_forget(&sampler->runtimes, process->pid);
    struct task_stat stat = {0};
    task_stat_read(tracee->tid, tracee->tid, &stat);
    report_name(sampler, tracee, stat.name, true);
    resume(sampler, tracee, 0);
}

/* It is still there, with registers, memory and clock. */
static void take_exit(struct ptrace_sampler *sampler, struct tracee *tracee)
{
    struct perf_record record;
    bool last = tracees_end(&sampler->tracees, tracee);
    /* Its end is a bad place for a sample, but the command's own end is the last chance, and of
     * programs that are too short to be met otherwise there is no other. */
    bool wanted = tracee->process->pid == sampler->child
                      ? sampler->executed
                      : tracees_owed_ns(&sampler->tracees, tracee->process) >=
                            EXIT_PERIODS * (uint64_t)sampler->period_ns;
    bool sample = last && wanted && copy_sample(sampler, tracee, &record);
    if (sample)
        report_sample(sampler, tracee, &record);
    else if (last)
        tracees_bequeath(&sampler->tracees, tracee->process);
    resume(sampler, tracee, 0);
}

static void take_interruption(struct ptrace_sampler *sampler, struct tracee *tracee)
{
    struct perf_record record;
    int64_t begin = asking_begin_cost();
    bool sample = tracee->interrupted &&
                  asking_accepts(&sampler->asking, &sampler->tracees, tracee) &&
                  copy_sample(sampler, tracee, &record);
    tracee->interrupted = false;
    resume(sampler, tracee, 0);
    if (sample)
        report_sample(sampler, tracee, &record);
    asking_end_cost(&sampler->asking, begin);
}

static void take_stop(struct ptrace_sampler *sampler, pid_t tid, int status)
{
    int event = status >> 16, signal_number = WSTOPSIG(status);
    struct tracee *tracee = tracees_find(&sampler->tracees, tid);
    if (!tracee)
        tracee = add_newborn(sampler, tid);
    if (!tracee) {
        ptrace(PTRACE_DETACH, tid, NULL, event ? 0l : (long)signal_number);
        return;
    }
    switch (event) {
    case 0: /* a signal is about to be delivered: it is */
        resume(sampler, tracee, signal_number);
        break;
    case PTRACE_EVENT_STOP:
        if (signal_number == SIGTRAP) {
            take_interruption(sampler, tracee);
        } else { /* its process has been stopped by a signal, and stays so until SIGCONT */
            tracee->interrupted = false;
            ptrace(PTRACE_LISTEN, tid, NULL, NULL);
        }
        break;
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
    case PTRACE_EVENT_CLONE:
        take_start(sampler, tracee);
        break;
    case PTRACE_EVENT_EXEC:
        take_exec(sampler, tracee);
        break;
    case PTRACE_EVENT_EXIT:
        take_exit(sampler, tracee);
        break;
    default:
        resume(sampler, tracee, 0);
    }
}

static void take_end(struct ptrace_sampler *sampler, pid_t tid, int status)
{
    if (tid == sampler->child) {
        atomic_store(&sampler->status, status);
        atomic_store(&sampler->has_status, true);
    }
    struct tracee *tracee = tracees_find(&sampler->tracees, tid);
    if (!tracee)
        return;
    if (tracees_end(&sampler->tracees, tracee))
        tracees_bequeath(&sampler->tracees, tracee->process);
    if (tid == tracee->process->pid)
        tracee_runtimes_forget(&sampler->runtimes, tid);
    struct perf_record record = record_of(tracee, PERF_ENDED);
    report(sampler, &record);
    tracees_remove(&sampler->tracees, tracee);
}

/* ---- the tracing thread ---- */

/* False when there is nobody left. */
static bool take_stops(struct ptrace_sampler *sampler)
{
    for (int i = 0; i < STOPS_AT_ONCE; i++) {
        int status;
        /* This thread has no children, only those whom it traces. */
        pid_t tid = waitpid(-1, &status, __WALL | __WNOTHREAD | WNOHANG);
        if (tid < 0 && errno != EINTR)
            return false;
        if (tid <= 0)
            break;
        if (WIFSTOPPED(status))
            take_stop(sampler, tid, status);
        else
            take_end(sampler, tid, status);
    }
    return true;
}

static int seize(struct ptrace_sampler *sampler)
{
    struct task_stat stat;
    int r = task_stat_read(sampler->child, sampler->child, &stat);
    if (r < 0)
        return r == -ENOENT ? -ESRCH : r;
    if (ptrace(PTRACE_SEIZE, sampler->child, NULL, (long)FOLLOW) < 0)
        return -errno;
    struct tracee *child = tracees_add(&sampler->tracees, sampler->child, sampler->child, NULL);
    child->paid_ns = tracee_cpu_ns(&sampler->tracees, child, NULL);
    report_name(sampler, child, stat.name, false);
    return 0;
}

static void trace_until_end(struct ptrace_sampler *sampler)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    asking_init(&sampler->asking, sampler->period_ns);
    while (!atomic_load(&sampler->stop) && take_stops(sampler)) {
        int64_t left_ns = asking_turn(&sampler->asking, &sampler->tracees) - monotonic_ns();
        left_ns = MAX(left_ns, 0);
        struct timespec left = {.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
        sigtimedwait(&child, NULL, &left);
    }
}

/* ptrace binds to a thread. Its end frees all that it still holds without stopping them, also
 * threads that sleep too deeply to be stopped. */
static void *trace(void *context)
{
    struct ptrace_sampler *sampler = context;
    sampler->refusal = seize(sampler);
    bool seized = sampler->refusal == 0;
    sem_post(&sampler->seized);
    if (seized)
        trace_until_end(sampler);
    atomic_store(&sampler->unsettled_ns, tracees_unsettled_ns(&sampler->tracees));
    atomic_store(&sampler->refused, sampler->tracees.refused);
    record_queue_end(&sampler->queue);
    return NULL;
}

/* ---- the caller's side ---- */

static int explain(int code, struct error *error)
{
    int scope = ptrace_scope();
    if (code == -ESRCH)
        return error_set(error, code, "The command ended before it could be sampled.");
    if (code == -ENOSYS)
        return error_set(error, code,
                         "Permission denied: a system-call filter forbids ptrace, as in some "
                         "containers. Run with the capability SYS_PTRACE, or as root.");
    if (code != -EPERM && code != -EACCES)
        return error_set_errno(error, code, "Failed to trace the command");
    if (scope >= 3)
        return error_set(error, code,
                         "Permission denied: the kernel forbids all tracing until the next reboot "
                         "(kernel.yama.ptrace_scope is 3).");
    if (scope == 2)
        return error_set(error, code,
                         "Permission denied: only root can sample the command: run assay as root, "
                         "or allow it with `sysctl kernel.yama.ptrace_scope=1`.");
    return error_set(
        error, code,
        "Permission denied: another process traces the command, or a system-call filter forbids "
        "ptrace, as in some containers. Run with the capability SYS_PTRACE, or as root.");
}

/* The tracing thread leaves all signals to others but SIGCHLD, and that one nobody else may take:
 * it says that a thread has stopped. */
static int start_thread(struct ptrace_sampler *sampler)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigset_t all, child, mask;
    sigfillset(&all);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigaction(SIGCHLD, &by_default, &sampler->action_before);
    pthread_sigmask(SIG_BLOCK, &child, &sampler->mask_before);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    int r = -pthread_create(&sampler->thread, NULL, trace, sampler);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if (r < 0) {
        pthread_sigmask(SIG_SETMASK, &sampler->mask_before, NULL);
        sigaction(SIGCHLD, &sampler->action_before, NULL);
    }
    return r;
}

static void stop_thread(struct ptrace_sampler *sampler)
{
    atomic_store(&sampler->stop, true);
    record_queue_stop(&sampler->queue);
    pthread_kill(sampler->thread, SIGCHLD);
    pthread_join(sampler->thread, NULL);
    /* Pending SIGCHLDs are about processes that are no longer traced. */
    struct timespec at_once = {0};
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    while (!sigismember(&sampler->mask_before, SIGCHLD) && sigtimedwait(&child, NULL, &at_once) > 0)
        ;
    sigaction(SIGCHLD, &sampler->action_before, NULL);
    pthread_sigmask(SIG_SETMASK, &sampler->mask_before, NULL);
}

static void release(struct ptrace_sampler *sampler)
{
    tracees_release(&sampler->tracees);
    tracee_runtimes_release(&sampler->runtimes);
    record_queue_release(&sampler->queue);
    sem_destroy(&sampler->seized);
    free(sampler->stack);
    free(sampler);
}

int ptrace_sampler_new(pid_t child, unsigned frequency_hz, struct ptrace_sampler **ret_sampler,
                       struct error *error)
{
    struct ptrace_sampler *sampler = memory_zalloc(1, sizeof(*sampler));
    sampler->child = child;
    sampler->period_ns = 1000000000 / (int64_t)MIN(MAX(frequency_hz, 1u), PTRACE_SAMPLER_HZ);
    sampler->stack = memory_alloc(PTRACE_SAMPLER_STACK_BYTES);
    sem_init(&sampler->seized, 0, 0);
    record_queue_init(&sampler->queue);
    tracees_init(&sampler->tracees);
    tracee_runtimes_init(&sampler->runtimes);
    int r = start_thread(sampler);
    if (r < 0) {
        release(sampler);
        return error_set_errno(error, r, "Failed to start a thread");
    }
    while (sem_wait(&sampler->seized) < 0 && errno == EINTR)
        ;
    if (sampler->refusal < 0) {
        r = explain(sampler->refusal, error);
        stop_thread(sampler);
        release(sampler);
        return r;
    }
    *ret_sampler = sampler;
    return 0;
}

void ptrace_sampler_free(struct ptrace_sampler *sampler)
{
    if (!sampler)
        return;
    stop_thread(sampler);
    release(sampler);
}

int ptrace_sampler_read(struct ptrace_sampler *sampler, int timeout_ms, perf_record_fn callback,
                        void *context)
{
    return record_queue_read(&sampler->queue, timeout_ms, callback, context);
}

bool ptrace_sampler_exit_status(struct ptrace_sampler *sampler, int *ret_status)
{
    bool ended = atomic_load(&sampler->has_status);
    if (ended)
        *ret_status = atomic_load(&sampler->status);
    return ended;
}

void ptrace_sampler_read_runtime(struct ptrace_sampler *sampler, pid_t pid,
                                 const struct interpreter *interpreter)
{
    tracee_runtimes_add(&sampler->runtimes, pid, interpreter);
}

uint64_t ptrace_sampler_period_ns(const struct ptrace_sampler *sampler)
{
    return (uint64_t)sampler->period_ns;
}

uint64_t ptrace_sampler_unsettled_ns(struct ptrace_sampler *sampler)
{
    return atomic_load(&sampler->unsettled_ns);
}

uint64_t ptrace_sampler_refused(struct ptrace_sampler *sampler)
{
    return atomic_load(&sampler->refused);
}
