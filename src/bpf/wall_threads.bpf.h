/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The states of threads: who is followed, and where the time went since a thread was last looked
 * at, by the kernel's own accounts. Used by wall.bpf.c. */
#pragma once

#include "bpf/emit.bpf.h"
#include "bpf/wall.h"

const volatile struct bpf_wall_constants constants SEC(".rodata.wall") = {0};

#define CGROUP_LEVELS 32

/* Threads by number, in buckets. User space reads them. */
TABLE(threads, struct bpf_thread, BPF_THREADS_MAX);
TABLE(wall, struct bpf_wall, 1);
TABLE(wall_cpus, struct bpf_wall_cpu, BPF_WALL_CPUS);

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

static __always_inline struct bpf_wall_cpu *this_cpu(void)
{
    struct bpf_wall_cpu *all = table(&wall_cpus);
    __u32 cpu = bpf_get_smp_processor_id();
    KEEP(cpu);
    return all ? &all[cpu & (BPF_WALL_CPUS - 1)] : NULL;
}

/* The next gap between waits that are sent, exponentially distributed: in units of 2^-40 of T. */
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
    thread->flags = 0;
    bpf_probe_read_kernel_str(thread->comm, sizeof(thread->comm), task->comm);
    thread->since_ns = since_ns;
    thread->run_ns = task->se.sum_exec_runtime;
    thread->queued_ns = task->sched_info.run_delay;
    /* What it has been queued by now is added when it gets its CPU. */
    __u64 queued_ns = task->sched_info.last_queued;
    if (queued_ns && queued_ns < since_ns)
        thread->queued_ns += since_ns - queued_ns;
    thread->preempted = (__u32)task->nivcsw;
    thread->voluntary = (__u32)task->nvcsw;
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

/* The cause of a voluntary wait, by the system call that the thread is in. */
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

/* How a thread spent the time since it was last looked at, up to `now_ns`. */
struct spent {
    __u64 blocked_ns, queued_ns;
    __u32 why;   /* it was blocked: RUNNING when it was not */
    __u32 other; /* see struct bpf_wait */
    __u32 rate;  /* that it was chosen by */
};

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
    __u64 since_ns = thread->since_ns, had_run_ns = thread->run_ns;
    __u64 had_queued_ns = thread->queued_ns;
    __u32 preempted = (__u32)task->nivcsw, voluntary = (__u32)task->nvcsw;
    __u64 run_ns = task->se.sum_exec_runtime - had_run_ns;
    if ((__s64)run_ns < 0) /* more was counted while it ran */
        run_ns = 0;
    queued_ns += task->sched_info.run_delay - had_queued_ns;
    __s64 rest_ns = (__s64)(now_ns - since_ns - run_ns - queued_ns);
    __u32 why = BPF_STATE_RUNNING;
    /* Preempted alone: else it was blocked, perhaps since before it was last looked at. */
    if (preempted == thread->preempted || voluntary != thread->voluntary)
        why = thread->flags & BPF_THREAD_KERNEL ? (__u32)BPF_STATE_LOCK : blocked_state(task);
    thread->since_ns = now_ns;
    thread->run_ns = had_run_ns + run_ns;
    thread->queued_ns = had_queued_ns + queued_ns;
    thread->preempted = preempted;
    thread->voluntary = voluntary;
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
    if (why == BPF_STATE_RUNNING) { /* interrupts, and what a hypervisor took: it could have run */
        queued_ns += (__u64)rest_ns;
        rest_ns = 0;
    } else if ((__u64)rest_ns < state->min_block_ns) {
        rest_ns = 0;
    }
    thread->ns[BPF_STATE_RUNNING] += run_ns;
    thread->ns[BPF_STATE_RUNNABLE] += queued_ns;
    KEEP(why);
    why &= BPF_STATES_ROOM - 1;
    if (why >= BPF_STATES)
        return 0;
    if (rest_ns)
        thread->ns[why] += (__u64)rest_ns;
    ret_spent->why = why;
    ret_spent->blocked_ns = (__u64)rest_ns;
    ret_spent->queued_ns = queued_ns;
    ret_spent->rate = state->rate;
    __u64 waited_ns = (__u64)rest_ns + queued_ns;
    if (waited_ns > BPF_WAIT_NS_MAX)
        waited_ns = BPF_WAIT_NS_MAX;
    __s64 gap = thread->gap - (__s64)(waited_ns * ret_spent->rate);
    thread->gap = gap;
    return gap <= 0;
}
