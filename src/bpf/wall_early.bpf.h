/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kernels before 6.16 have no hook behind the switch, but one before it, in the context of the
 * thread that leaves the CPU. Totals are as exact there: the thread that comes is looked at when it
 * comes. But the only stack at hand is that of a wait whose length nobody knows yet. So waits are
 * chosen with one probability for all when they begin, their stacks are kept, and they are sent
 * when they end. Long waits are not seen for certain; the weights are right all the same.
 */
#pragma once

#include "bpf/wall_send.bpf.h"

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, BPF_BEGUN_MAX);
    __type(key, __u32);
    __type(value, struct bpf_sample_event);
} begun SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} arrived SEC(".maps"); /* when the CPU's thread got it, by CLOCK_MONOTONIC */

/* The current thread is about to leave the CPU, and its stack is taken. One that goes as a copy
 * only teaches user space where the code is. */
static __always_inline void begin_wait(void *ctx, struct bpf_thread *thread, __u64 time_ns)
{
    struct scratch *scratch = take_scratch();
    if (!scratch)
        return;
    begin_sample(scratch, BPF_COLLECTOR_WALL, time_ns);
    ((struct bpf_wait *)scratch->sample.detail)->rate = 0;
    if (!take_stacks(ctx, scratch, TRACING_FRAMES) &&
        !bpf_map_update_elem(&begun, &thread->tid, &scratch->sample, BPF_ANY))
        thread->flags |= BPF_THREAD_BEGUN;
    release_scratch(scratch);
}

/* The wait whose stack is kept has ended. */
static __always_inline int send_begun(struct task_struct *task, struct bpf_thread *thread,
                                      const struct bpf_wall *state, const struct spent *spent)
{
    __u32 tid = thread->tid;
    struct bpf_sample_event *sample = bpf_map_lookup_elem(&begun, &tid);
    thread->flags &= ~BPF_THREAD_BEGUN;
    if (!sample)
        return 0;
    struct bpf_wait *wait = (void *)sample->detail;
    const struct pt_regs *registers = (void *)bpf_task_pt_regs(task);
    describe_wait(sample, spent);
    wait->rate = state->chance;
    wait->flags |= BPF_WAIT_BEGUN;
    describe_object(sample, task, thread, SYSTEM_CALL_ARGUMENT(registers));
    describe_waker(sample, thread);
    int sent = !bpf_ringbuf_output(&events, sample, sizeof(*sample), BPF_RB_NO_WAKEUP);
    bpf_map_delete_elem(&begun, &tid);
    return sent;
}
