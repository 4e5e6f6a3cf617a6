// SPDX-License-Identifier: Apache-2.0
// Stacks of a running process: see snapshot.h.

#include "capture/ptrace/snapshot.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "capture/ptrace/stopped.h"

#define KERNEL_THREAD 0x00200000u /* the flag in /proc/PID/stat */
#define PAGE_BYTES 4096u
/* How long a lost SIGCHLD can delay us. */
#define LOOK_EVERY_MS 20

const char *snapshot_state_name(char state)
{
    switch (state) {
    case 'R':
        return "running";
    case 'S':
        return "sleeping";
    case 'D':
        return "disk sleep";
    case 'T':
        return "stopped";
    case 't':
        return "traced";
    case 'Z':
        return "zombie";
    case 'X':
        return "dead";
    case 'I':
        return "idle";
    default:
        return "unknown";
    }
}

/* ---- what /proc knows ---- */

static int read_stat(pid_t pid, struct snapshot_thread *thread, unsigned *ret_flags)
{
    struct task_stat stat;
    int r = task_stat_read(pid, thread->tid, &stat);
    if (r < 0)
        return r;
    memcpy(thread->name, stat.name, sizeof(thread->name));
    thread->state = stat.state;
    *ret_flags = stat.flags;
    return 0;
}

static int compare_threads(const void *a, const void *b)
{
    const struct snapshot_thread *x = a, *y = b;
    return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static int list_threads(struct snapshot *snapshot)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)snapshot->pid);
    DIR *folder = opendir(path);
    if (!folder)
        return errno == ENOENT ? -ESRCH : -errno;
    struct dirent *entry;
    while ((entry = readdir(folder))) {
        int tid = atoi(entry->d_name);
        if (tid <= 0)
            continue;
        if (snapshot->count == SNAPSHOT_THREADS_MAX) {
            snapshot->refused++;
            continue;
        }
        array_reserve(snapshot->threads, snapshot->capacity, snapshot->count + 1);
        snapshot->threads[snapshot->count++] = (struct snapshot_thread){.tid = tid};
    }
    closedir(folder);
    if (snapshot->count)
        qsort(snapshot->threads, snapshot->count, sizeof(*snapshot->threads), compare_threads);
    return snapshot->count ? 0 : -ESRCH;
}

static bool has_ended(const struct snapshot_thread *thread)
{
    return thread->state == 'Z' || thread->state == 'X';
}

/* A main thread that has ended takes the process's entries in /proc with it. */
static pid_t find_living(const struct snapshot *snapshot)
{
    unsigned flags;
    for (size_t i = 0; i < snapshot->count; i++) {
        struct snapshot_thread thread = {.tid = snapshot->threads[i].tid};
        if (read_stat(snapshot->pid, &thread, &flags) == 0 && !has_ended(&thread))
            return thread.tid;
    }
    return snapshot->pid;
}

/* ---- stopping and copying ---- */

/* State of the tracing thread. */
struct tracer {
    struct snapshot *snapshot;
    const struct interpreter *interpreter; /* of the process; NULL: none */
    uint64_t *ends;                        /* of readable memory, ascending */
    size_t end_count, end_capacity;
    uint8_t *copy; /* SNAPSHOT_STACK_BYTES, touched before anybody is stopped */
    uint64_t copied_bytes;
    size_t read;       /* threads */
    pid_t refused_tid; /* the first that may not be traced */
    int refusal;       /* and why; 0: none */
};

static void list_memory(struct tracer *tracer)
{
    char path[64], line[4600];
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)tracer->snapshot->living_tid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        uint64_t start, end;
        char readable;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %c", &start, &end, &readable) != 3 ||
            readable != 'r')
            continue;
        array_reserve(tracer->ends, tracer->end_capacity, tracer->end_count + 1);
        tracer->ends[tracer->end_count++] = end;
    }
    if (file)
        fclose(file);
}

/* Bytes from the stack pointer to the end of its mapping, or what may be copied of them. The
 * mapping may have grown downwards since it was listed, so that its start says nothing. */
static size_t stack_room(const struct tracer *tracer, uint64_t sp)
{
    uint64_t left = SNAPSHOT_BYTES_MAX - MIN(tracer->copied_bytes, SNAPSHOT_BYTES_MAX);
    uint64_t room = MIN((uint64_t)SNAPSHOT_STACK_BYTES, MAX(left, (uint64_t)PAGE_BYTES));
    size_t low = 0, high = tracer->end_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (tracer->ends[middle] <= sp)
            low = middle + 1;
        else
            high = middle;
    }
    return (size_t)(low < tracer->end_count ? MIN(room, tracer->ends[low] - sp) : room);
}

/* 1 once it has stopped, 0 when it doesn't in time, -ESRCH when it has ended. */
static int wait_for_stop(pid_t tid, int *ret_status)
{
    int64_t limit_ns = monotonic_ns() + SNAPSHOT_WAIT_MS * 1000000ll;
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    for (;;) {
        pid_t waited = waitpid(tid, ret_status, __WALL | WNOHANG);
        if (waited == tid)
            return WIFSTOPPED(*ret_status) ? 1 : -ESRCH;
        if (waited < 0 && errno != EINTR)
            return -ESRCH;
        if (monotonic_ns() >= limit_ns)
            return 0;
        sigtimedwait(&child, NULL, &(struct timespec){.tv_nsec = LOOK_EVERY_MS * 1000000});
    }
}

/* The thread is stopped: registers and stack, and it goes on. */
static void copy_and_release(struct tracer *tracer, struct snapshot_thread *thread, int status)
{
    struct thread_registers registers;
    size_t got = 0;
    thread->read = stopped_registers(thread->tid, &registers) == 0;
    if (thread->read)
        got = stopped_memory(thread->tid, registers.value[REGISTER_SP], tracer->copy,
                             stack_room(tracer, registers.value[REGISTER_SP]));
    if (thread->read && tracer->interpreter && tracer->interpreter->kind == BPF_RUNTIME_PYTHON) {
        struct runtime_memory memory = runtime_reader_of(&tracer->snapshot->interpreters.reader,
                                                         (uint32_t)tracer->snapshot->living_tid);
        python_chain_read(&tracer->interpreter->python, &memory, registers.thread_pointer,
                          &thread->python);
        thread->holds_lock =
            python_holds_lock(&tracer->interpreter->python, &memory, registers.thread_pointer);
    }
    if (thread->read && tracer->interpreter && tracer->interpreter->kind == BPF_RUNTIME_V8) {
        struct runtime_memory memory = runtime_reader_of(&tracer->snapshot->interpreters.reader,
                                                         (uint32_t)tracer->snapshot->living_tid);
        v8_frames_read(&tracer->interpreter->v8, &memory, registers.value[REGISTER_SP],
                       tracer->copy, got, &thread->scripts);
    }
    /* A signal that came first is what it stopped for: it must not be lost. */
    long signal_number = status >> 16 ? 0 : WSTOPSIG(status);
    ptrace(PTRACE_DETACH, thread->tid, NULL, signal_number);
    if (!thread->read)
        return;
    tracer->read++;
    memcpy(thread->registers.value, registers.value, sizeof(registers.value));
    thread->registers.known = (1u << UNWIND_REGISTERS) - 1;
    thread->in_system_call = registers.in_system_call;
    thread->stack_bytes = got;
    thread->stack = memory_alloc(MAX(thread->stack_bytes, 1u));
    memcpy(thread->stack, tracer->copy, thread->stack_bytes);
    tracer->copied_bytes += thread->stack_bytes;
}

/* -ESRCH: the thread has ended. */
static int read_thread(struct tracer *tracer, struct snapshot_thread *thread)
{
    struct snapshot *snapshot = tracer->snapshot;
    unsigned flags;
    int r = read_stat(snapshot->pid, thread, &flags), status;
    if (r < 0)
        return -ESRCH;
    if (has_ended(thread))
        return thread->tid == snapshot->pid ? 0 : -ESRCH;
    if (ptrace(PTRACE_SEIZE, thread->tid, NULL, NULL) < 0) {
        if (errno != ESRCH && !tracer->refusal) {
            tracer->refusal = -errno;
            tracer->refused_tid = thread->tid;
        }
        return errno == ESRCH ? -ESRCH : 0;
    }
    int64_t started_ns = monotonic_ns();
    if (ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL) < 0)
        return -ESRCH;
    r = wait_for_stop(thread->tid, &status);
    if (r <= 0)
        return r; /* what has not stopped is released when the tracing thread ends */
    copy_and_release(tracer, thread, status);
    snapshot->longest_stop_ns = MAX(snapshot->longest_stop_ns, monotonic_ns() - started_ns);
    return 0;
}

static void *trace(void *context)
{
    struct tracer *tracer = context;
    struct snapshot *snapshot = tracer->snapshot;
    size_t kept = 0;
    for (size_t i = 0; i < snapshot->count; i++)
        if (read_thread(tracer, &snapshot->threads[i]) == 0)
            snapshot->threads[kept++] = snapshot->threads[i];
    snapshot->count = kept;
    return NULL;
}

/* ptrace binds to a thread, and its end frees all that it still holds, also threads that sleep too
 * deeply to be stopped: they must not stop later on, when nobody waits for them any more. */
static int trace_in_thread(struct tracer *tracer)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL}, action_before;
    sigset_t child, mask_before;
    pthread_t thread;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigaction(SIGCHLD, &by_default, &action_before);
    pthread_sigmask(SIG_BLOCK, &child, &mask_before);
    int r = -pthread_create(&thread, NULL, trace, tracer);
    if (!r)
        pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
    sigaction(SIGCHLD, &action_before, NULL);
    return r;
}

/* ---- why not ---- */

static int explain_refusal(const struct tracer *tracer, struct error *error)
{
    const struct snapshot *snapshot = tracer->snapshot;
    int pid = snapshot->pid, code = tracer->refusal, scope = ptrace_scope();
    long by = task_status_number(snapshot->pid, tracer->refused_tid, "TracerPid");
    long user = task_status_number(snapshot->pid, snapshot->pid, "Uid");
    if (by > 0)
        return error_set(error, code,
                         "The process %d (%s) is already traced by the process %ld, such as a "
                         "debugger: stop that one first.",
                         pid, snapshot->name, by);
    if (code != -EPERM && code != -EACCES)
        return error_set_errno(error, code, "Failed to trace the process %d (%s)", pid,
                               snapshot->name);
    if (geteuid() && user >= 0 && user != (long)geteuid())
        return error_set(error, code,
                         "The process %d (%s) belongs to another user: run assay as that user or "
                         "as root.",
                         pid, snapshot->name);
    if (scope >= 3)
        return error_set(error, code,
                         "The process %d (%s) cannot be read: the kernel forbids all tracing until "
                         "the next reboot (kernel.yama.ptrace_scope is 3).",
                         pid, snapshot->name);
    if (geteuid() && scope)
        return error_set(error, code,
                         "Only root can read the process %d (%s): run assay as root, or allow it "
                         "with `sysctl kernel.yama.ptrace_scope=0`.",
                         pid, snapshot->name);
    return error_set(error, code,
                     "Permission denied: cannot trace the process %d (%s). Run assay as root, and "
                     "in a container with the capability SYS_PTRACE.",
                     pid, snapshot->name);
}

static int no_such_process(pid_t pid, struct error *error)
{
    return error_set(error, -ESRCH, "No process %d.", (int)pid);
}

/* Finds the process, and says no to those that have no stacks to read. */
static int open_process(struct snapshot *snapshot, pid_t pid, struct error *error)
{
    struct snapshot_thread main_thread = {0};
    unsigned flags;
    long leader = task_status_number(pid, pid, "Tgid");
    if (leader <= 0)
        return no_such_process(pid, error);
    snapshot->pid = main_thread.tid = (pid_t)leader;
    if (read_stat(snapshot->pid, &main_thread, &flags) < 0)
        return no_such_process(pid, error);
    memcpy(snapshot->name, main_thread.name, sizeof(snapshot->name));
    if (flags & KERNEL_THREAD)
        return error_set(error, -ENOTSUP,
                         "The process %d (%s) is a kernel thread, whose stack assay cannot read.",
                         (int)snapshot->pid, snapshot->name);
    if (snapshot->pid == getpid())
        return error_set(error, -EINVAL, "assay cannot read its own stacks.");
    int r = list_threads(snapshot);
    if (r == -ESRCH)
        return no_such_process(pid, error);
    if (r < 0)
        return error_set_errno(error, r, "Failed to list the threads of the process %d", (int)pid);
    snapshot->living_tid = find_living(snapshot);
    return 0;
}

/* ---- walking ---- */

/* A thread's frames, and what they are. */
struct frame_list {
    struct snapshot *snapshot;
    struct process *process;
    struct snapshot_frame *frames;
    uint8_t *kinds; /* enum runtime_frame */
    size_t count, frame_capacity, kind_capacity;
};

static struct snapshot_frame *add_frame(struct frame_list *list, enum runtime_frame kind)
{
    array_reserve(list->frames, list->frame_capacity, list->count + 1);
    array_reserve(list->kinds, list->kind_capacity, list->count + 1);
    list->kinds[list->count] = (uint8_t)kind;
    struct snapshot_frame *frame = &list->frames[list->count++];
    *frame = (struct snapshot_frame){0};
    return frame;
}

static void add_native(struct frame_list *list, uint64_t address)
{
    struct snapshot_frame *frame = add_frame(list, RUNTIME_FRAME_OTHER);
    frame->address = frame->offset = address;
    const struct mapping *mapping = process_find(list->process, address);
    if (mapping) {
        frame->module = mapping->module;
        if (mapping->module)
            frame->offset = address - mapping->start + mapping->offset;
    }
    list->kinds[list->count - 1] =
        (uint8_t)(interpreter_evaluates(list->process->interpreter, address)
                      ? RUNTIME_FRAME_EVALUATE
                  : frame->module ? frame->module->frame_kind
                                  : RUNTIME_FRAME_OTHER);
}

/* The frames that a call of the evaluation function evaluates: all threads run again, so names are
 * good only if the code objects are still what they were. Returns whether there are any. */
static bool add_python(struct frame_list *list, struct snapshot_thread *thread, uint64_t address,
                       uint64_t low, uint64_t high)
{
    struct interpreters *interpreters = &list->snapshot->interpreters;
    const struct python_frame *frames;
    if (!interpreter_evaluates(list->process->interpreter, address) &&
        !interpreter_evaluates_anywhere(list->process->interpreter))
        return false;
    size_t count = python_chain_take(&thread->python, low, high, &frames);
    for (size_t i = 0; i < count; i++) {
        const struct runtime_known *known =
            interpreters_code(interpreters, list->process, &frames[i].mark);
        bool named = known && known->named && !known->ambiguous;
        if (named && frames[i].unit < known->code.first_unit)
            continue;
        *add_frame(list, RUNTIME_FRAME_PROGRAM) = (struct snapshot_frame){
            .runtime = SNAPSHOT_PYTHON,
            .function = named ? known->code.function : NULL,
            .file = named ? known->code.file : NULL,
            .line = named ? runtime_code_line(&known->code, frames[i].unit) : 0};
    }
    return count > 0;
}

/* The JavaScript function of a frame in V8's code. False: it has none. */
static bool add_script(struct frame_list *list, struct snapshot_thread *thread,
                       const struct unwind_frame *walked, uint64_t address, bool innermost)
{
    const struct v8_frame *script =
        walked->flags & UNWIND_FRAME_ROWLESS ? v8_frames_find(&thread->scripts, walked->fp) : NULL;
    if (!script)
        return false;
    /* V8's own code around a function says nothing, but for what runs now. */
    const struct mapping *mapping = process_find(list->process, address);
    if (mapping && mapping->module && (innermost || list->snapshot->interpreter_frames))
        add_native(list, address);
    const struct runtime_known *known =
        interpreters_code(&list->snapshot->interpreters, list->process, &script->mark);
    bool named = known && known->named && !known->ambiguous;
    *add_frame(list, RUNTIME_FRAME_OTHER) =
        (struct snapshot_frame){.runtime = SNAPSHOT_SCRIPT,
                                .function = named ? known->code.function : NULL,
                                .file = named && known->code.file[0] ? known->code.file : NULL,
                                .line = named ? known->code.first_line : 0};
    return true;
}

/* The frame of a virtual machine's step. */
static void add_java(struct frame_list *list, const struct hotspot_step *step)
{
    struct hotspot_frame frames[HOTSPOT_INLINED_MAX];
    if (step->hidden && !list->snapshot->interpreter_frames)
        return;
    size_t count =
        interpreters_step_frames(&list->snapshot->interpreters, list->process, step, frames);
    for (size_t i = 0; i < count; i++)
        *add_frame(list, RUNTIME_FRAME_OTHER) =
            (struct snapshot_frame){.runtime = SNAPSHOT_JAVA,
                                    .function = frames[i].function,
                                    .file = frames[i].file[0] ? frames[i].file : NULL,
                                    .line = frames[i].line};
    if (!count)
        *add_frame(list, RUNTIME_FRAME_OTHER) = (struct snapshot_frame){.runtime = SNAPSHOT_JAVA};
}

static void walk(struct snapshot *snapshot, struct process *process, struct snapshot_thread *thread,
                 struct unwind_frame *walked)
{
    struct unwind_input input = {.registers = thread->registers,
                                 .stack = thread->stack,
                                 .stack_bytes = thread->stack_bytes,
                                 .stack_address = thread->registers.value[REGISTER_SP],
                                 .rules = &snapshot->modules.rules,
                                 .find = process_place,
                                 .context = process,
                                 .in_system_call = thread->in_system_call};
    struct hotspot_walk runtime;
    interpreters_walk(&snapshot->interpreters, process, &input, &runtime);
    thread->end = unwind_walk(&input, walked, SNAPSHOT_FRAMES_MAX, &thread->frame_count);
    struct frame_list list = {.snapshot = snapshot, .process = process};
    size_t steps = 0;
    for (size_t i = 0; i < thread->frame_count; i++) {
        bool exact = walked[i].flags & UNWIND_FRAME_EXACT && (i || !thread->in_system_call);
        /* A handler returns to the start of the code that ends signals; nobody called it. */
        if (i && i + 1 < thread->frame_count &&
            (walked[i + 1].flags & (UNWIND_FRAME_EXACT | UNWIND_FRAME_PLANTED)) ==
                UNWIND_FRAME_EXACT)
            exact = true;
        if (walked[i].flags & UNWIND_FRAME_RUNTIME && steps < runtime.count) {
            add_java(&list, &runtime.steps[steps++]);
            continue;
        }
        if (add_script(&list, thread, &walked[i], walked[i].address - !exact, !list.count))
            continue;
        uint64_t high = i + 1 < thread->frame_count ? walked[i + 1].sp : UINT64_MAX;
        bool evaluates = add_python(&list, thread, walked[i].address - !exact, walked[i].sp, high);
        add_native(&list, walked[i].address - !exact);
        if (evaluates)
            list.kinds[list.count - 1] = RUNTIME_FRAME_EVALUATE;
    }
    hotspot_walk_release(&runtime);
    if (process->interpreter && !snapshot->interpreter_frames)
        runtime_frames_hide(list.kinds, list.count);
    thread->frame_count = 0;
    for (size_t i = 0; i < list.count; i++)
        if (list.kinds[i] != RUNTIME_FRAME_HIDDEN)
            list.frames[thread->frame_count++] = list.frames[i];
    thread->frames = list.frames;
    free(list.kinds);
    free(TAKE_PTR(thread->stack));
}

static void walk_all(struct snapshot *snapshot, struct process *process)
{
    _cleanup_free_ struct unwind_frame *walked =
        memory_zalloc(SNAPSHOT_FRAMES_MAX, sizeof(*walked));
    for (size_t i = 0; i < snapshot->count; i++)
        if (snapshot->threads[i].read)
            walk(snapshot, process, &snapshot->threads[i], walked);
}

int snapshot_take(struct snapshot *snapshot, pid_t pid, bool interpreter_frames,
                  struct error *error)
{
    *snapshot = (struct snapshot){.pid = pid, .interpreter_frames = interpreter_frames};
    interpreters_init(&snapshot->interpreters);
    modules_init(&snapshot->modules);
    processes_init(&snapshot->processes, &snapshot->modules);
    int r = open_process(snapshot, pid, error);
    if (r < 0)
        return r;
    /* Before anybody is stopped: unwind rows take their time, and a process that ends soon takes
     * its list of mappings with it. */
    struct process *process = processes_get(&snapshot->processes, (uint32_t)snapshot->living_tid);
    process_catch_up(&snapshot->processes, process);
    interpreters_look(&snapshot->interpreters, process, monotonic_ns());
    struct tracer tracer = {.snapshot = snapshot, .interpreter = process->interpreter};
    tracer.copy = memory_alloc(SNAPSHOT_STACK_BYTES);
    memset(tracer.copy, 1, SNAPSHOT_STACK_BYTES);
    list_memory(&tracer);
    r = trace_in_thread(&tracer);
    free(tracer.copy);
    free(tracer.ends);
    if (r < 0)
        return error_set_errno(error, r, "Failed to start a thread");
    if (!tracer.read && tracer.refusal)
        return explain_refusal(&tracer, error);
    if (!snapshot->count || (snapshot->count == 1 && has_ended(&snapshot->threads[0])))
        return error_set(error, -ESRCH, "The process %d (%s) has ended.", (int)snapshot->pid,
                         snapshot->name);
    walk_all(snapshot, process);
    return 0;
}

void snapshot_release(struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->count; i++) {
        free(snapshot->threads[i].frames);
        free(snapshot->threads[i].stack);
        free(snapshot->threads[i].python.frames);
        free(snapshot->threads[i].scripts.list);
    }
    free(snapshot->threads);
    processes_release(&snapshot->processes);
    modules_release(&snapshot->modules);
    interpreters_release(&snapshot->interpreters);
}
