/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waits as samples: what was waited for, who ended it, and the stack of a thread that still waits.
 * Used by wall.bpf.c. */
#pragma once

#include "bpf/wall_threads.bpf.h"

#define TRACING_FRAMES 2 /* of a tracepoint: the program, and what runs it */

/* Read and write: what the descriptor is. */
static __always_inline __u32 descriptor_state(struct task_struct *task, __u64 descriptor)
{
    struct file *file = NULL;
    struct file **all = BPF_CORE_READ(task, files, fdt, fd);
    if (descriptor >= (__u64)BPF_CORE_READ(task, files, fdt, max_fds) ||
        bpf_probe_read_kernel(&file, sizeof(file), all + descriptor) || !file)
        return BPF_STATE_OTHER;
    __u32 type = BPF_CORE_READ(file, f_inode, i_mode) & 0170000;
    return type == 0140000                                         ? BPF_STATE_NETWORK
           : type == 0010000                                       ? BPF_STATE_PIPE
           : type == 0100000 || type == 0060000 || type == 0040000 ? BPF_STATE_DISK
                                                                   : BPF_STATE_OTHER;
}

static __always_inline void describe_wait(struct bpf_sample_event *sample,
                                          const struct spent *spent)
{
    struct bpf_wait *wait = (void *)sample->detail;
    sample->value = spent->blocked_ns;
    wait->queued_ns = spent->queued_ns;
    wait->rate = spent->rate;
    wait->state = wait->account = (__u8)spent->why;
    wait->other = spent->other;
}

static __always_inline void describe_object(struct bpf_sample_event *sample,
                                            struct task_struct *task,
                                            const struct bpf_thread *thread, __u64 argument)
{
    struct bpf_wait *wait = (void *)sample->detail;
    sample->id = argument;
    if (wait->account == BPF_STATE_DESCRIPTOR)
        wait->state = (__u8)descriptor_state(task, argument & 0xffffffff);
    if (thread->flags & BPF_THREAD_KERNEL) {
        wait->flags |= BPF_WAIT_KERNEL;
        sample->id = thread->kernel_lock;
    }
}

static __always_inline void describe_waker(struct bpf_sample_event *sample,
                                           const struct bpf_thread *thread)
{
    struct bpf_wait *wait = (void *)sample->detail;
    if (wait->account != BPF_STATE_LOCK || !(thread->flags & BPF_THREAD_WOKEN))
        return;
    wait->waker_tid = thread->waker_tid;
    sample->second_pid = thread->waker_pid;
    sample->second_leaf = thread->waker_leaf;
    sample->second_callers = thread->waker_callers;
}

/* Sends the wait that has just ended, with where the thread waited. */
static __always_inline void send_wait(void *ctx, struct task_struct *task,
                                      const struct bpf_thread *thread, const struct spent *spent,
                                      __u64 now_ns)
{
    struct scratch *scratch = take_scratch();
    if (!scratch)
        return;
    begin_sample(scratch, BPF_COLLECTOR_WALL, now_ns);
    describe_wait(&scratch->sample, spent);
    const struct pt_regs *registers = (void *)bpf_task_pt_regs(task);
    describe_object(&scratch->sample, task, thread, SYSTEM_CALL_ARGUMENT(registers));
    describe_waker(&scratch->sample, thread);
    if (!take_stacks(ctx, scratch, TRACING_FRAMES))
        send_sample(scratch);
    release_scratch(scratch);
}

struct sleeper_state {
    struct copy *copy;
    struct task_struct *task;
    __u64 sp;
    __u32 bytes;
};

static long copy_sleeper_page(__u32 index, void *context)
{
    struct sleeper_state *state = context;
    __u32 done = state->bytes;
    __u32 length = 4096 - ((state->sp + done) & 4095);
    KEEP(done);
    KEEP(length);
    if (!length || length > 4096 || done > BPF_COPY_BYTES - 4096)
        return 1;
    if (bpf_copy_from_user_task(state->copy->stack + done, length, (void *)(state->sp + done),
                                state->task, 0))
        return 1;
    state->bytes = done + length;
    return 0;
}

/* The beginning of a mutex of glibc, which is what a futex of one begins with. */
struct glibc_mutex {
    __u32 futex, count, owner, users, kind;
};
#define MUTEX_KINDS 0x200 /* glibc has no kind beyond these bits */
#define MUTEX_CONTENDED 2
#define MUTEX_TID 0x3fffffff

/* The owner of the lock that a thread still waits for, as far as its memory looks like one of
 * glibc's mutexes: user space asks whether there is such a thread. */
static __always_inline __u32 lock_owner(struct task_struct *task, __u64 address)
{
    struct glibc_mutex mutex = {0};
    if (address & 3 || bpf_copy_from_user_task(&mutex, sizeof(mutex), (void *)address, task, 0) ||
        !mutex.owner || mutex.kind >= MUTEX_KINDS)
        return 0;
    /* Of a mutex that inherits priority or is robust, the futex itself says who has it. */
    return mutex.futex == MUTEX_CONTENDED || (mutex.futex & MUTEX_TID) == mutex.owner ? mutex.owner
                                                                                      : 0;
}

/* Of a thread that still waits: as read_record(). */
static __always_inline int read_sleeper(struct context_scratch *scratch, struct task_struct *task,
                                        __u64 address, __u32 *ret_bytes)
{
    __u32 at_once = 4096 - (address & 4095);
    if (at_once > BPF_RECORD_AT_ONCE)
        at_once = BPF_RECORD_AT_ONCE;
    if (at_once < BPF_RECORD_HEADER)
        at_once = BPF_RECORD_HEADER;
    KEEP(at_once);
    if (at_once > BPF_RECORD_AT_ONCE ||
        bpf_copy_from_user_task(scratch->record, at_once, (void *)address, task, 0))
        return -1;
    __u32 bytes = *(volatile __u16 *)(scratch->record + BPF_RECORD_SIZE);
    if (bytes > BPF_ATTRIBUTE_BYTES)
        bytes = BPF_ATTRIBUTE_BYTES;
    *ret_bytes = bytes;
    __u32 left = BPF_RECORD_HEADER + bytes - at_once;
    if (BPF_RECORD_HEADER + bytes <= at_once)
        return 0;
    KEEP(left);
    KEEP(at_once);
    if (left > BPF_RECORD_BYTES || at_once > BPF_RECORD_AT_ONCE)
        return -1;
    return (int)bpf_copy_from_user_task(scratch->record + at_once, left,
                                        (void *)(address + at_once), task, 0);
}

static __always_inline __u64 sleeper_word(struct task_struct *task, __u64 address)
{
    __u64 word = 0;
    return address < 4096 || bpf_copy_from_user_task(&word, sizeof(word), (void *)address, task, 0)
               ? 0
               : word;
}

/* The thread's context: the same steps as context_read_thread(). */
static __always_inline int read_sleeper_context(struct context_scratch *scratch,
                                                struct bpf_sample_context *found,
                                                struct task_struct *task, __u32 number)
{
    const struct bpf_context *context = context_of(number);
    __u64 pointer = THREAD_POINTER(task);
    __u32 bytes;
    if (!context || !has_context(context, number, BPF_CONTEXT_THREAD))
        return CONTEXT_NONE;
    const struct bpf_thread_context *thread = &context->thread;
    __u64 at = pointer + (__u64)thread->offset;
    if (thread->way != BPF_CONTEXT_STATIC) {
        int glibc = thread->way == BPF_CONTEXT_GLIBC;
        __u64 vector = sleeper_word(task, pointer + 8);
        __u64 entries = sleeper_word(task, glibc ? vector - 16 : vector);
        __u64 block = sleeper_word(task, vector + (__u64)thread->module * (glibc ? 16 : 8));
        if (entries < thread->module || !block || block == ~0ull)
            return CONTEXT_NONE;
        at = block + (__u64)thread->offset;
    }
    __u64 record = sleeper_word(task, at);
    if (!record)
        return CONTEXT_NONE;
    if (record < 4096 || record & 1 || read_sleeper(scratch, task, record, &bytes))
        return CONTEXT_UNREAD;
    return take_record(scratch, found, number, bytes);
}

static __always_inline void take_sleeper_context(struct scratch *scratch, struct task_struct *task)
{
    struct bpf_sample_context *found = &scratch->sample.context;
    __u32 pid = scratch->sample.pid;
    const struct bpf_process *process = bpf_map_lookup_elem(&processes, &pid);
    if (!process || !process->context ||
        (process->started && process->started != program_of(task->group_leader)))
        return;
    __builtin_memset(found, 0, sizeof(*found));
    note_context(scratch, read_sleeper_context(&scratch->context, found, task, process->context));
}

/* ... of a thread that still waits, which is not the current one: its stack goes as a copy. False
 * when it went on meanwhile, or there is no room. */
static __always_inline int copy_sleeper(struct scratch *scratch, struct task_struct *task,
                                        const struct bpf_thread *thread, const struct spent *spent)
{
    struct user_registers *saved = (void *)bpf_task_pt_regs(task), registers;
    if (bpf_probe_read_kernel(&registers, sizeof(registers), saved) || (registers.cs & 3) != 3)
        return 1;
    __u64 arrived_ns = task->sched_info.last_arrival;
    struct bpf_sample_event *sample = &scratch->sample;
    struct bpf_wait *wait = (void *)sample->detail;
    /* A look after the deadline reports the wait up to the deadline. */
    const __u64 *until_ns = table(&deadline);
    __u64 now_ns = bpf_ktime_get_ns();
    begin_sample(scratch, BPF_COLLECTOR_WALL,
                 until_ns && *until_ns && now_ns > *until_ns ? *until_ns : now_ns);
    sample->pid = (__u32)task->tgid;
    sample->tid = (__u32)task->pid;
    bpf_probe_read_kernel_str(sample->comm, sizeof(sample->comm), task->comm);
    sample->flags = BPF_SAMPLE_USER;
    if (IN_SYSTEM_CALL(registers))
        sample->flags |= BPF_SAMPLE_SYSTEM_CALL;
    describe_wait(sample, spent);
    if (!may_copy(scratch)) /* others with the same labels stand for it */
        return 1;
    LOAD_REGISTERS(&registers, scratch->copy.event.registers);
    describe_object(sample, task, thread, scratch->copy.event.registers[REGISTER_ARGUMENT]);
    wait->flags |= BPF_WAIT_SLEEPS;
    if (wait->account == BPF_STATE_LOCK && !(wait->flags & BPF_WAIT_KERNEL))
        wait->other = lock_owner(task, sample->id);
    take_sleeper_context(scratch, task);
    struct sleeper_state state = {.copy = &scratch->copy, .task = task, .sp = registers.sp};
    bpf_loop(BPF_COPY_PAGES + 1, copy_sleeper_page, &state, 0); /* as new as reading its memory */
    if (task->sched_info.last_arrival != arrived_ns)
        return 0;
    if (settings.kernel)
        take_task_kernel(task, scratch);
    return send_copied(scratch, program_of(task->group_leader), state.sp, state.bytes,
                       BPF_RB_NO_WAKEUP) == 0;
}

static __always_inline int send_sleeper(struct task_struct *task, const struct bpf_thread *thread,
                                        const struct spent *spent)
{
    struct scratch *scratch = settings.user ? take_scratch() : NULL;
    if (!scratch)
        return 1;
    int sent = copy_sleeper(scratch, task, thread, spent);
    release_scratch(scratch);
    return sent;
}

/* The stack of the current thread, which is about to wake the one that `thread` describes. */
static __always_inline void note_waker(struct bpf_thread *thread, __u64 now_ns)
{
    struct scratch *scratch = take_scratch();
    if (!scratch)
        return;
    struct bpf_sample_event *sample = &scratch->sample;
    begin_sample(scratch, BPF_COLLECTOR_WALL, now_ns);
    if (settings.user && !take_saved_registers(scratch) &&
        walk_begin(&scratch->walk, sample->pid, now_ns)) {
        struct walk *walk = &scratch->walk;
        walk_run(walk);
        __u32 frames = walk->count - 1;
        if (walk->count &&
            (!frames || send_stack(scratch, &walk->callers, walk->hash, frames, walk->end))) {
            thread->waker_leaf = walk->leaf;
            thread->waker_callers = walk->hash;
            thread->waker_pid = sample->pid;
            thread->waker_tid = sample->tid;
            thread->flags |= BPF_THREAD_WOKEN;
        }
    }
    release_scratch(scratch);
}
