// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Where threads wait. Each time that a thread gets a CPU, the kernel's own accounts say how long it
// ran since it last did, and how long it was queued; the rest it was blocked, in the system call
// that it is still in. So one program per switch, which reads no clock, keeps exact totals of each
// thread (struct bpf_thread), and some waits are sent with their stack: one of length d with
// probability 1 - exp(-d/T).
//
// The hook is behind the switch, in the context of the thread that goes on, whose stack can be
// walked there.

#include "bpf/wall.h"
#include "bpf/emit.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct bpf_wall_constants constants SEC(".rodata.wall") = {0};

#define CGROUP_LEVELS 32
#define TRACING_FRAMES 2 /* of a tracepoint: the program, and what runs it */

/* Threads by number, in buckets. User space reads them. */
TABLE(threads, struct bpf_thread, BPF_THREADS_MAX);
TABLE(wall, struct bpf_wall, 1);

/* The place of a thread, or a free one. */
static __always_inline struct bpf_thread *find_thread(struct bpf_thread *all, __u32 tid, int add)
{
    __u32 bucket = tid * BPF_THREAD_WAYS;
    KEEP(bucket);
    struct bpf_thread *first = &all[bucket & (BPF_THREADS_MAX - 1) & ~(BPF_THREAD_WAYS - 1)];
    if (first[0].tid == tid)
        return &first[0];
    for (int i = 1; i < BPF_THREAD_WAYS; i++)
        if (first[i].tid == tid)
            return &first[i];
    if (!add)
        return NULL;
    for (int i = 0; i < BPF_THREAD_WAYS; i++)
        if (!first[i].tid && !__sync_val_compare_and_swap(&first[i].tid, 0, tid))
            return &first[i];
    return NULL;
}

/* The next gap between waits that are sent, exponentially distributed: in units of 2^-32 of T. */
static __always_inline __s64 draw_gap(const struct bpf_wall *state)
{
    __u32 random = bpf_get_prandom_u32(), at = random >> 16, between = random & 0xffff;
    KEEP(at);
    at &= BPF_GAPS - 1;
    __u64 low = state->gaps[at], high = state->gaps[at + 1];
    return (__s64)(low + ((high - low) * between >> 16));
}

/* By the kernel's own hierarchy, cgroup 2. */
static __always_inline int is_in_cgroup(struct task_struct *task)
{
    struct cgroup *cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);
    struct cgroup___old *old = (void *)cgroup;
    int level = BPF_CORE_READ(cgroup, level);
    for (int i = 0; i < CGROUP_LEVELS && i <= level; i++) {
        struct cgroup *ancestor = NULL;
        __u64 id = 0;
        if (bpf_core_field_exists(cgroup->ancestors)) {
            bpf_probe_read_kernel(&ancestor, sizeof(ancestor), &cgroup->ancestors[i]);
            id = BPF_CORE_READ(ancestor, kn, id);
        } else {
            bpf_probe_read_kernel(&id, sizeof(id), &old->ancestor_ids[i]);
        }
        if (id == constants.cgroup)
            return 1;
    }
    return 0;
}

/* Whether somebody asked for a thread. */
static __always_inline int is_wanted(struct task_struct *task)
{
    return constants.cgroup  ? is_in_cgroup(task)
           : settings.filter ? is_target((__u32)task->tgid)
                             : 1;
}

static __always_inline void start_thread(struct bpf_thread *thread, struct task_struct *task,
                                         const struct bpf_wall *state, __u64 since_ns)
{
    thread->tgid = (__u32)task->tgid;
    bpf_probe_read_kernel_str(thread->comm, sizeof(thread->comm), task->comm);
    thread->since_ns = since_ns;
    thread->run_ns = task->se.sum_exec_runtime;
    thread->queued_ns = task->sched_info.run_delay;
    /* What it has been queued by now is added when it gets its CPU. */
    __u64 queued_ns = task->sched_info.last_queued;
    if (queued_ns && queued_ns < since_ns)
        thread->queued_ns += since_ns - queued_ns;
    thread->preempted = task->nivcsw;
    thread->voluntary = task->nvcsw;
    thread->gap = draw_gap(state);
}

/* A thread is seen for the first time, or nobody asked for it until now. */
static __always_inline int meet_thread(struct bpf_thread *thread, struct task_struct *task,
                                       const struct bpf_wall *state, __u64 now_ns)
{
    /* A thread that nobody asked for may have been moved to the cgroup. */
    __u64 groups = (__u64)task->cgroups;
    if (thread->since_ns == BPF_THREAD_UNWANTED &&
        (!constants.cgroup || thread->unwanted_groups == groups))
        return 0;
    if (!is_wanted(task)) {
        thread->since_ns = BPF_THREAD_UNWANTED;
        thread->unwanted_groups = groups;
        return 0;
    }
    start_thread(thread, task, state, now_ns);
    return 1;
}

/* What a thread that left the CPU by itself waits for, by the system call that it is in. */
static __always_inline __u32 blocked_state(struct task_struct *task)
{
    const struct pt_regs *registers = (void *)bpf_task_pt_regs(task);
    __u64 call = SYSTEM_CALL(registers);
    if (BPF_CORE_READ_BITFIELD(task, in_iowait))
        return BPF_STATE_DISK;
    if (call >= BPF_SYSTEM_CALLS)
        return call == NO_SYSTEM_CALL ? BPF_STATE_DISK /* a page fault */ : BPF_STATE_OTHER;
    KEEP(call);
    __u32 state = constants.system_call_states[call & (BPF_SYSTEM_CALLS - 1)];
    return state ? state : BPF_STATE_OTHER;
}

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

/* How a thread spent the time since it was last looked at, up to `now_ns`. */
struct spent {
    __u64 blocked_ns, queued_ns;
    __u32 why; /* it was blocked: RUNNING when it was not */
};

static __always_inline void describe_wait(struct bpf_sample_event *sample,
                                          const struct spent *spent, __u32 rate)
{
    struct bpf_wait *wait = (void *)sample->detail;
    sample->value = spent->blocked_ns;
    wait->queued_ns = spent->queued_ns;
    wait->rate = rate;
    wait->state = wait->account = (__u8)spent->why;
}

static __always_inline void describe_object(struct bpf_sample_event *sample,
                                            struct task_struct *task, __u64 argument)
{
    struct bpf_wait *wait = (void *)sample->detail;
    sample->id = argument;
    if (wait->account == BPF_STATE_DESCRIPTOR)
        wait->state = (__u8)descriptor_state(task, argument & 0xffffffff);
}

static __always_inline void describe_waker(struct bpf_sample_event *sample,
                                           const struct bpf_thread *thread)
{
    struct bpf_wait *wait = (void *)sample->detail;
    if (wait->account != BPF_STATE_LOCK || !thread->waker_tid)
        return;
    wait->waker_tid = thread->waker_tid;
    sample->second_pid = thread->waker_pid;
    sample->second_leaf = thread->waker_leaf;
    sample->second_callers = thread->waker_callers;
}

/* Sends the wait that has just ended, with where the thread waited. */
static __always_inline void send_wait(void *ctx, struct task_struct *task,
                                      const struct bpf_thread *thread, const struct spent *spent,
                                      __u32 rate, __u64 now_ns)
{
    struct scratch *scratch = take_scratch();
    if (!scratch)
        return;
    begin_sample(scratch, BPF_COLLECTOR_WALL, now_ns);
    describe_wait(&scratch->sample, spent, rate);
    const struct pt_regs *registers = (void *)bpf_task_pt_regs(task);
    describe_object(&scratch->sample, task, SYSTEM_CALL_ARGUMENT(registers));
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

/* ... of a thread that still waits, which is not the current one: its stack goes as a copy. False
 * when it went on meanwhile, or there is no room. */
static __always_inline int copy_sleeper(struct scratch *scratch, struct task_struct *task,
                                        const struct spent *spent, __u32 rate)
{
    struct user_registers *saved = (void *)bpf_task_pt_regs(task), registers;
    if (bpf_probe_read_kernel(&registers, sizeof(registers), saved) || (registers.cs & 3) != 3)
        return 1;
    __u64 arrived_ns = task->sched_info.last_arrival;
    struct bpf_sample_event *sample = &scratch->sample;
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
    describe_wait(sample, spent, rate);
    if (!may_copy(scratch)) /* others with the same labels stand for it */
        return 1;
    LOAD_REGISTERS(&registers, scratch->copy.event.registers);
    describe_object(sample, task, scratch->copy.event.registers[REGISTER_ARGUMENT]);
    struct sleeper_state state = {.copy = &scratch->copy, .task = task, .sp = registers.sp};
    bpf_loop(BPF_COPY_PAGES + 1, copy_sleeper_page, &state, 0);
    if (task->sched_info.last_arrival != arrived_ns)
        return 0;
    if (settings.kernel)
        take_task_kernel(task, scratch);
    return send_copied(scratch, task->group_leader->start_time, state.sp, state.bytes,
                       BPF_RB_NO_WAKEUP) == 0;
}

static __always_inline int send_sleeper(struct task_struct *task, const struct spent *spent,
                                        __u32 rate)
{
    struct scratch *scratch = settings.user ? take_scratch() : NULL;
    if (!scratch)
        return 1;
    int sent = copy_sleeper(scratch, task, spent, rate);
    release_scratch(scratch);
    return sent;
}

/* Takes time off that is beyond the deadline. */
static __always_inline void cut(__u64 *over_ns, __u64 *ns)
{
    __u64 off_ns = *over_ns < *ns ? *over_ns : *ns;
    *over_ns -= off_ns;
    *ns -= off_ns;
}

/* Adds it to the thread's totals. True when this wait is to be sent. */
static __always_inline int account(struct bpf_thread *thread, struct task_struct *task,
                                   struct bpf_wall *state, __u64 now_ns, __u64 queued_ns,
                                   struct spent *ret_spent)
{
    __u64 run_ns = task->se.sum_exec_runtime - thread->run_ns;
    if ((__s64)run_ns < 0) /* more was counted while it ran */
        run_ns = 0;
    queued_ns += task->sched_info.run_delay - thread->queued_ns;
    __s64 rest_ns = (__s64)(now_ns - thread->since_ns - run_ns - queued_ns);
    __u32 why = BPF_STATE_RUNNING;
    /* Preempted alone: else it was blocked, perhaps since before it was last looked at. */
    if (task->nivcsw == thread->preempted || task->nvcsw != thread->voluntary)
        why = blocked_state(task);
    __u64 since_ns = thread->since_ns;
    thread->since_ns = now_ns;
    thread->run_ns += run_ns;
    thread->queued_ns += queued_ns;
    thread->preempted = task->nivcsw;
    thread->voluntary = task->nvcsw;
    if (rest_ns < 0)
        rest_ns = 0;
    const __u64 *until_ns = table(&deadline);
    if (until_ns && *until_ns && now_ns + (__u64)state->clock_ns > *until_ns) {
        __u64 over_ns = now_ns + (__u64)state->clock_ns - *until_ns;
        if (over_ns >= now_ns - since_ns)
            return 0;
        cut(&over_ns, (__u64 *)&rest_ns);
        cut(&over_ns, &queued_ns);
        cut(&over_ns, &run_ns);
    }
    if (why != BPF_STATE_RUNNING && (__u64)rest_ns < constants.min_block_ns)
        rest_ns = 0;
    if (why == BPF_STATE_RUNNING) { /* interrupts, and what a hypervisor took: it could have run */
        queued_ns += (__u64)rest_ns;
        rest_ns = 0;
    }
    thread->ns[BPF_STATE_RUNNING] += run_ns;
    thread->ns[BPF_STATE_RUNNABLE] += queued_ns;
    KEEP(why);
    why &= BPF_STATES_ROOM - 1;
    if (why >= BPF_STATES)
        return 0;
    thread->ns[why] += (__u64)rest_ns;
    ret_spent->why = why;
    ret_spent->blocked_ns = why == BPF_STATE_RUNNING ? 0 : (__u64)rest_ns;
    ret_spent->queued_ns = queued_ns;
    thread->gap -= (__s64)((ret_spent->blocked_ns + queued_ns) * state->rate);
    if (thread->gap > 0)
        return 0;
    thread->gap = draw_gap(state);
    return 1;
}

SEC("tp_btf/sched_exit_tp")
int assay_switch(__u64 *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct bpf_thread *all = table(&threads);
    struct bpf_wall *state = table(&wall);
    __u32 tid = (__u32)task->pid;
    if (!ctx[0] || !tid || !all || !state || !task->mm)
        return 0;
    struct bpf_thread *thread = find_thread(all, tid, 1);
    __u64 now_ns = task->sched_info.last_arrival;
    if (!thread) {
        __sync_fetch_and_add(&state->refused, 1);
        return 0;
    }
    if (thread->since_ns <= BPF_THREAD_UNWANTED) {
        if (meet_thread(thread, task, state, now_ns) || !state->clock_ns)
            state->clock_ns = (__s64)(bpf_ktime_get_ns() - now_ns);
        return 0;
    }
    struct spent spent = {0};
    if (account(thread, task, state, now_ns, 0, &spent)) {
        __u64 time_ns = bpf_ktime_get_ns();
        state->clock_ns = (__s64)(time_ns - now_ns);
        if (!is_over(time_ns))
            send_wait(ctx, task, thread, &spent, state->rate, time_ns);
    }
    if (thread->waker_tid)
        thread->waker_tid = 0;
    return 0;
}

/* The stack of the current thread, which is about to wake the one that `thread` describes. */
static __always_inline void note_waker(void *ctx, struct bpf_thread *thread, __u64 now_ns)
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
        }
    }
    release_scratch(scratch);
}

/* Who ends a wait for a lock: both are in futex(), so the waker is not an interrupt that happened
 * to come while another thread ran. The wait is sent for certain when it is long enough by now. */
SEC("tp_btf/sched_waking")
int assay_waking(__u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0], *current = bpf_get_current_task_btf();
    if (!task->mm || !current->mm || blocked_state(current) != BPF_STATE_LOCK ||
        blocked_state(task) != BPF_STATE_LOCK)
        return 0;
    struct bpf_thread *all = table(&threads);
    struct bpf_wall *state = table(&wall);
    struct bpf_thread *thread = all && state ? find_thread(all, (__u32)task->pid, 0) : NULL;
    if (!thread || thread->since_ns <= BPF_THREAD_UNWANTED)
        return 0;
    __u64 now_ns = bpf_ktime_get_ns();
    __s64 waited_ns = (__s64)(now_ns - (__u64)state->clock_ns - thread->since_ns -
                              (task->se.sum_exec_runtime - thread->run_ns));
    if (waited_ns > 0 && thread->gap <= waited_ns * (__s64)state->rate)
        note_waker(ctx, thread, now_ns);
    return 0;
}

/* Looks at all threads, so that those that wait since long are known too, and what they wait for
 * is counted up to now. */
SEC("iter.s/task")
int assay_threads(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct bpf_thread *all = table(&threads);
    struct bpf_wall *state = table(&wall);
    if (!task || !all || !state || !task->mm || !state->clock_ns)
        return 0;
    struct bpf_thread *thread = find_thread(all, (__u32)task->pid, 1);
    __u64 now_ns = bpf_ktime_get_ns() - (__u64)state->clock_ns;
    if (!thread)
        return 0;
    if (thread->since_ns <= BPF_THREAD_UNWANTED) {
        meet_thread(thread, task, state, now_ns);
        return 0;
    }
    bpf_probe_read_kernel_str(thread->comm, sizeof(thread->comm), task->comm);
    if (now_ns <= thread->since_ns)
        return 0;
    if (task->on_cpu) { /* the kernel's account of it is behind by up to a tick */
        const __u64 *until_ns = table(&deadline);
        __u64 end_ns = until_ns && *until_ns ? *until_ns - (__u64)state->clock_ns : now_ns;
        if (end_ns < now_ns)
            now_ns = end_ns > thread->since_ns ? end_ns : thread->since_ns;
        __u64 run_ns = now_ns - thread->since_ns;
        thread->ns[BPF_STATE_RUNNING] += run_ns;
        thread->run_ns += run_ns;
        thread->since_ns = now_ns;
        return 0;
    }
    struct spent spent = {0};
    __u64 queued_ns = task->sched_info.last_queued;
    queued_ns = queued_ns && queued_ns < now_ns ? now_ns - queued_ns : 0;
    if (account(thread, task, state, now_ns, queued_ns, &spent) &&
        !send_sleeper(task, &spent, state->rate))
        thread->gap = 0; /* the next time */
    return 0;
}

/* Of a task that is about to begin, or has become one that somebody asked for. */
static __always_inline void begin_thread(struct task_struct *task, int is_new)
{
    struct bpf_thread *all = table(&threads);
    struct bpf_wall *state = table(&wall);
    struct bpf_thread *thread = all && state ? find_thread(all, (__u32)task->pid, 1) : NULL;
    if (!thread || !state->clock_ns)
        return;
    if (!is_new && thread->since_ns > BPF_THREAD_UNWANTED)
        return;
    start_thread(thread, task, state, bpf_ktime_get_ns() - (__u64)state->clock_ns);
    if (!is_new)
        return;
    thread->run_ns = thread->queued_ns = thread->preempted = thread->voluntary = 0;
}

/* A child is asked for when its parent is, by pid: what the sampler's own program notes. */
SEC("tp_btf/sched_process_fork")
int assay_wall_fork(__u64 *ctx)
{
    struct task_struct *child = (void *)ctx[1];
    __u32 parent_pid = bpf_get_current_pid_tgid() >> 32;
    if (constants.cgroup ? is_in_cgroup(child) : !settings.filter || is_target(parent_pid))
        begin_thread(child, 1);
    return 0;
}

SEC("tp_btf/sched_process_exec")
int assay_wall_exec(__u64 *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    if (is_wanted(task))
        begin_thread(task, 0);
    return 0;
}

/* The end of a thread: what is still to be told of it. */
SEC("tp_btf/sched_process_exit")
int assay_wall_exit(__u64 *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct bpf_thread *all = table(&threads);
    struct bpf_thread *thread = all ? find_thread(all, (__u32)task->pid, 0) : NULL;
    if (!thread)
        return 0;
    if (thread->since_ns > BPF_THREAD_UNWANTED) {
        thread->ns[BPF_STATE_RUNNING] += task->se.sum_exec_runtime - thread->run_ns;
        thread->note.kind = BPF_EVENT_NOTE;
        thread->note.collector = BPF_COLLECTOR_WALL;
        thread->note.bytes = sizeof(*thread);
        bpf_probe_read_kernel_str(thread->comm, sizeof(thread->comm), task->comm);
        struct bpf_wall *state = table(&wall);
        if (bpf_ringbuf_output(&events, thread, sizeof(*thread), BPF_RB_NO_WAKEUP) && state)
            __sync_fetch_and_add(&state->lost, 1);
    }
    __builtin_memset(thread->ns, 0, sizeof(thread->ns));
    thread->since_ns = 0;
    thread->tid = 0;
    return 0;
}
