// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Where threads wait. Each time that a thread gets a CPU, the kernel's own accounts say how long it
// ran since it last did, and how long it was queued; the rest it was blocked, in the system call
// that it is still in. So one program per switch, which reads no clock, keeps exact totals of each
// thread (struct bpf_thread), and some waits are sent with their stack: one of length d with
// probability 1 - exp(-d/T).
//
// The hook is behind the switch, in the context of the thread that goes on, whose stack can be
// walked there.

#include "bpf/wall_early.bpf.h"
#include "bpf/wall_send.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define LOCK_SPINS 1 /* LCB_F_SPIN, among the flags of a contended lock */

/* Many waits in a moment. */
static __always_inline void send_fewer(struct bpf_wall *state, struct bpf_wall_cpu *cpu)
{
    if (++cpu->turn_sent < state->turn_sent_max)
        return;
    cpu->turn_sent = 0;
    __u32 rate = state->rate / 2;
    state->rate = rate ? rate : 1;
    state->chance = state->chance / 2 | 1;
}

/* Many switches, and user space has not come to do anything about it. Whoever is still followed
 * stands for the others. */
static __always_inline void follow_fewer(struct bpf_wall *state, struct bpf_wall_cpu *cpu,
                                         __u64 now_ns)
{
    if (now_ns - cpu->turn_ns >= BPF_WALL_TURN_NS) {
        cpu->turn_ns = now_ns;
        cpu->turn_sent = 0;
    }
    if (++cpu->turn_switches < state->turn_switches_max || !state->turn_switches_max)
        return;
    cpu->turn_switches = 0;
    __u32 follow = state->follow / 2;
    if (follow >= BPF_FOLLOW_MIN)
        state->follow = follow;
}

/* The thread has a CPU again after `spent`, and this wait was chosen. */
static __always_inline void send_chosen(void *ctx, struct task_struct *task,
                                        struct bpf_thread *thread, struct bpf_wall *state,
                                        struct bpf_wall_cpu *cpu, const struct spent *spent,
                                        __u64 now_ns)
{
    __u64 time_ns = bpf_ktime_get_ns();
    thread->gap = draw_gap(state);
    state->clock_ns = (__s64)(time_ns - now_ns);
    if (is_over(time_ns))
        return;
    send_wait(ctx, task, thread, spent, time_ns);
    send_fewer(state, cpu);
    cpu->sent++;
    cpu->sent_ns += bpf_ktime_get_ns() - time_ns;
}

/* The main user of this CPU: not the last one, which may be a thread of the kernel that ran for a
 * moment, but the one that ran for the longest time lately. */
static __always_inline __u32 note_runner(struct bpf_wall_cpu *cpu, __u32 tgid, __u64 now_ns)
{
    __u64 ran_ns = cpu->since_ns && now_ns > cpu->since_ns ? now_ns - cpu->since_ns : 0;
    __u64 busiest_ns = cpu->busiest_ns;
    if (ran_ns >= busiest_ns) {
        cpu->busiest = cpu->tgid;
        cpu->busiest_ns = ran_ns;
    } else {
        cpu->busiest_ns = busiest_ns - (busiest_ns >> 2);
    }
    cpu->tgid = tgid;
    cpu->since_ns = now_ns;
    return cpu->busiest;
}

static __always_inline int take_switch(void *ctx, struct task_struct *task)
{
    struct bpf_wall_cpu *cpu = this_cpu();
    struct bpf_wall *state = table(&wall);
    struct bpf_thread *all = table(&threads);
    __u32 tid = (__u32)task->pid;
    if (!cpu || !state || !all)
        return 0;
    if (!tid) { /* idle: nobody waits for it */
        cpu->tgid = cpu->busiest = 0;
        cpu->since_ns = cpu->busiest_ns = 0;
        return 0;
    }
    __u64 now_ns = task->sched_info.last_arrival;
    struct spent spent = {.other = note_runner(cpu, (__u32)task->tgid, now_ns)};
    if (!task->mm || !bpf_wall_follows(state->follow, state->salt, tid))
        return 0;
    struct bpf_thread *thread = find_thread(all, tid, 1);
    if (!thread) {
        __sync_fetch_and_add(&state->refused, 1);
        return 0;
    }
    if (thread->since_ns <= BPF_THREAD_UNWANTED) {
        if (meet_thread(thread, task, state, now_ns) || !state->clock_ns)
            state->clock_ns = (__s64)(bpf_ktime_get_ns() - now_ns);
        return 0;
    }
    follow_fewer(state, cpu, now_ns);
    if (account(thread, task, state, now_ns, 0, &spent))
        send_chosen(ctx, task, thread, state, cpu, &spent, now_ns);
    if (thread->flags & BPF_THREAD_WOKEN)
        thread->flags &= ~BPF_THREAD_WOKEN;
    return 0;
}

/* A thread that is followed, and known by now; NULL: none. */
static __always_inline struct bpf_thread *find_followed(const struct task_struct *task,
                                                        const struct bpf_wall *state)
{
    struct bpf_thread *all = table(&threads);
    __u32 tid = (__u32)task->pid;
    struct bpf_thread *thread = all && task->mm && bpf_wall_follows(state->follow, state->salt, tid)
                                    ? find_thread(all, tid, 0)
                                    : NULL;
    return thread && thread->since_ns > BPF_THREAD_UNWANTED ? thread : NULL;
}

/* The hook before the switch: the thread that leaves, whose stack is at hand. */
static __always_inline void leave(void *ctx, struct task_struct *task, struct bpf_wall *state,
                                  __u64 time_ns)
{
    struct bpf_thread *thread = is_over(time_ns) ? NULL : find_followed(task, state);
    if (!thread || bpf_get_prandom_u32() > state->chance)
        return;
    begin_wait(ctx, thread, time_ns);
}

/* ... and the thread that comes, as take_switch() has it. */
static __always_inline void arrive(struct task_struct *task, struct bpf_wall_cpu *cpu,
                                   struct bpf_wall *state, __u64 time_ns)
{
    struct bpf_thread *all = table(&threads);
    __u64 now_ns = time_ns - (__u64)state->clock_ns;
    if (!task->pid) {
        cpu->tgid = cpu->busiest = 0;
        cpu->since_ns = cpu->busiest_ns = 0;
        return;
    }
    struct spent spent = {.other = note_runner(cpu, (__u32)task->tgid, now_ns)};
    if (!all || !task->mm || !bpf_wall_follows(state->follow, state->salt, (__u32)task->pid))
        return;
    struct bpf_thread *thread = find_thread(all, (__u32)task->pid, 1);
    if (!thread) {
        __sync_fetch_and_add(&state->refused, 1);
        return;
    }
    if (thread->since_ns <= BPF_THREAD_UNWANTED) {
        meet_thread(thread, task, state, now_ns);
        return;
    }
    follow_fewer(state, cpu, now_ns);
    /* Its time in the queue is added to its account only after this. */
    __u64 queued_ns = task->sched_info.last_queued;
    queued_ns = queued_ns && queued_ns < now_ns ? now_ns - queued_ns : 0;
    account(thread, task, state, now_ns, queued_ns, &spent);
    if (thread->flags & BPF_THREAD_BEGUN && !is_over(time_ns) &&
        send_begun(task, thread, state, &spent)) {
        send_fewer(state, cpu);
        cpu->sent++;
    }
    thread->flags &= ~(BPF_THREAD_WOKEN | BPF_THREAD_BEGUN);
}

SEC("tp_btf/sched_switch")
int assay_switch_early(__u64 *ctx)
{
    struct task_struct *before = (void *)ctx[1], *after = (void *)ctx[2];
    struct bpf_wall_cpu *cpu = this_cpu();
    struct bpf_wall *state = table(&wall);
    __u32 zero = 0;
    __u64 *arrived_ns = bpf_map_lookup_elem(&arrived, &zero);
    if (!cpu || !state || !arrived_ns)
        return 0;
    __u64 time_ns = bpf_ktime_get_ns();
    /* How the clocks differ: the scheduler has noted when this thread came. */
    if (*arrived_ns && before->pid)
        state->clock_ns = (__s64)(*arrived_ns - before->sched_info.last_arrival);
    *arrived_ns = time_ns;
    if (!state->clock_ns)
        return 0;
    leave(ctx, before, state, time_ns);
    arrive(after, cpu, state, time_ns);
    return 0;
}

SEC("tp_btf/sched_exit_tp")
int assay_switch(__u64 *ctx)
{
    return ctx[0] ? take_switch(ctx, bpf_get_current_task_btf()) : 0;
}

/* The waker of a wait for a lock: both are in futex(), so the waker is not an interrupt that
 * happened to come while another thread ran. The wait is sent for certain when it is long enough by
 * now. */
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
    if (waited_ns > (__s64)BPF_WAIT_NS_MAX)
        waited_ns = BPF_WAIT_NS_MAX;
    if (constants.early ? thread->flags & BPF_THREAD_BEGUN
                        : waited_ns > 0 && thread->gap <= waited_ns * (__s64)state->rate)
        note_waker(thread, now_ns);
    return 0;
}

/* The current thread is about to wait for a lock of the kernel: a mutex, a semaphore, an rwsem.
 * Those that spin are running meanwhile. */
SEC("tp_btf/contention_begin")
int assay_contention_begin(__u64 *ctx)
{
    struct bpf_thread *all = (__u32)ctx[1] & LOCK_SPINS ? NULL : table(&threads);
    struct bpf_thread *thread = all ? find_thread(all, (__u32)bpf_get_current_pid_tgid(), 0) : NULL;
    if (!thread)
        return 0;
    thread->kernel_lock = ctx[0];
    thread->flags |= BPF_THREAD_KERNEL;
    return 0;
}

SEC("tp_btf/contention_end")
int assay_contention_end(__u64 *ctx)
{
    struct bpf_thread *all = table(&threads);
    struct bpf_thread *thread = all ? find_thread(all, (__u32)bpf_get_current_pid_tgid(), 0) : NULL;
    if (thread && thread->flags & BPF_THREAD_KERNEL)
        thread->flags &= ~BPF_THREAD_KERNEL;
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
    if (!task || !all || !state || !task->mm || !state->clock_ns ||
        !bpf_wall_follows(state->follow, state->salt, (__u32)task->pid))
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
    if (!account(thread, task, state, now_ns, queued_ns, &spent))
        return 0;
    thread->gap = draw_gap(state);
    state->sleepers++;
    if (state->sleepers_left <= 0 || bpf_get_prandom_u32() > state->sleeper_chance)
        return 0; /* others with the same labels stand for it */
    state->sleepers_left--;
    if (!send_sleeper(task, thread, &spent))
        thread->gap = 0; /* the next time */
    return 0;
}

/* Of a task that is about to begin, or has become one that somebody asked for. */
static __always_inline void begin_thread(struct task_struct *task, int is_new)
{
    struct bpf_thread *all = table(&threads);
    struct bpf_wall *state = table(&wall);
    __u32 tid = (__u32)task->pid;
    struct bpf_thread *thread = all && state && bpf_wall_follows(state->follow, state->salt, tid)
                                    ? find_thread(all, tid, 1)
                                    : NULL;
    if (!thread || !state->clock_ns)
        return;
    if (!is_new && thread->since_ns > BPF_THREAD_UNWANTED)
        return;
    start_thread(thread, task, state, bpf_ktime_get_ns() - (__u64)state->clock_ns);
    if (!is_new)
        return;
    thread->run_ns = thread->queued_ns = 0;
    thread->preempted = thread->voluntary = 0;
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

/* Whether this end of a thread is told: many short ones cost too much. */
static __always_inline int is_told(const struct bpf_thread *thread, const struct bpf_wall *state)
{
    struct bpf_wall_cpu *cpu = this_cpu();
    __u64 life_ns = 0;
    for (int i = 0; i < BPF_STATES; i++)
        life_ns += thread->ns[i];
    if (!cpu || !life_ns)
        return 0;
    if (life_ns > BPF_WAIT_NS_MAX)
        return 1;
    cpu->end_gap -= (__s64)(life_ns * state->end_rate);
    if (cpu->end_gap > 0)
        return 0;
    cpu->end_gap = draw_gap(state);
    return 1;
}

static __always_inline void send_end(struct bpf_thread *thread, struct task_struct *task,
                                     struct bpf_wall *state)
{
    thread->ns[BPF_STATE_RUNNING] += task->se.sum_exec_runtime - thread->run_ns;
    if (!is_told(thread, state))
        return;
    bpf_probe_read_kernel_str(thread->comm, sizeof(thread->comm), task->comm);
    struct bpf_thread_end *end = bpf_ringbuf_reserve(&events, sizeof(*end), 0);
    if (!end) {
        __sync_fetch_and_add(&state->lost, 1);
        return;
    }
    end->note.kind = BPF_EVENT_NOTE;
    end->note.collector = BPF_COLLECTOR_WALL;
    end->note.bytes = sizeof(*end);
    end->rate = state->end_rate;
    end->unused = 0;
    __builtin_memcpy(&end->thread, thread, sizeof(*thread));
    bpf_ringbuf_submit(end, BPF_RB_NO_WAKEUP);
}

/* The end of a thread: what is still to be told of it. */
SEC("tp_btf/sched_process_exit")
int assay_wall_exit(__u64 *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct bpf_thread *all = table(&threads);
    struct bpf_wall *state = table(&wall);
    struct bpf_thread *thread = all && state ? find_thread(all, (__u32)task->pid, 0) : NULL;
    if (!thread)
        return 0;
    if (thread->since_ns > BPF_THREAD_UNWANTED &&
        bpf_wall_follows(state->follow, state->salt, (__u32)task->pid))
        send_end(thread, task, state);
    __builtin_memset(thread->ns, 0, sizeof(thread->ns));
    thread->since_ns = 0;
    thread->tid = 0;
    return 0;
}
