// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The sampler: at each tick of a perf event, who runs and by which calls it got there. Stacks go to
// user space once, samples as small events; and what is known of a process ends with it.

#include "bpf/emit.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(max_entries, BPF_CGROUPS_MAX);
    __type(key, __u64);
    __type(value, struct bpf_cgroup);
} cgroups SEC(".maps");

static __always_inline void take_tick(struct bpf_perf_event_data *ctx, struct scratch *scratch,
                                      __u64 now_ns)
{
    begin_sample(scratch, BPF_COLLECTOR_CPU, now_ns);
    if (!take_interrupted(ctx, scratch))
        send_sample(scratch);
}

SEC("perf_event")
int assay_sample(struct bpf_perf_event_data *ctx)
{
    __u64 id = bpf_get_current_pid_tgid();
    if (!(__u32)id) /* the idle task */
        return 0;
    if (settings.filter && !is_target(id >> 32))
        return 0;
    __u64 now_ns = bpf_ktime_get_ns();
    struct scratch *scratch = is_over(now_ns) ? NULL : take_scratch();
    if (!scratch)
        return 0;
    if (is_narrowed() && !is_target(id >> 32))
        COUNT(scratch, BPF_COUNT_LEFT_OUT);
    else
        take_tick(ctx, scratch, now_ns);
    release_scratch(scratch);
    return 0;
}

/* Counts what a cgroup starts. Whether it is too much to be followed. */
static __always_inline int is_storm(__u32 pid)
{
    __u64 id = bpf_get_current_cgroup_id();
    struct bpf_cgroup *cgroup = bpf_map_lookup_elem(&cgroups, &id);
    if (!cgroup) {
        struct bpf_cgroup first = {.forks = 1, .pid = pid};
        bpf_map_update_elem(&cgroups, &id, &first, BPF_NOEXIST);
        return 0;
    }
    cgroup->forks++;
    cgroup->pid = pid;
    return cgroup->left_alone;
}

static __always_inline void count_full(void)
{
    __u64 *full = table(&fork_full);
    if (full)
        __sync_fetch_and_add(full, 1);
}

/* A child begins with its parent's mappings, and is asked for when its parent is. The parent is who
 * runs. */
SEC("tp_btf/sched_process_fork")
int assay_fork(__u64 *ctx)
{
    struct task_struct *child = (void *)ctx[1];
    __u32 parent_pid = bpf_get_current_pid_tgid() >> 32, pid = (__u32)child->tgid;
    int left_alone = is_storm(parent_pid);
    if (pid == parent_pid)
        return 0;
    if ((settings.filter || is_narrowed()) && is_target(parent_pid)) {
        __u32 sampled = BPF_TARGET_SAMPLED;
        if (bpf_map_update_elem(&targets, &pid, &sampled, BPF_ANY))
            count_full();
    }
    if (left_alone)
        return 0;
    struct bpf_process *known = bpf_map_lookup_elem(&processes, &parent_pid);
    if (!known) {
        bpf_map_delete_elem(&processes, &pid);
        return 0;
    }
    struct bpf_process copy = *known;
    copy.started = program_of(child);
    if (bpf_map_update_elem(&processes, &pid, &copy, BPF_ANY))
        count_full();
    return 0;
}

/* Another program in the same process. */
SEC("raw_tp/sched_process_exec")
int assay_exec(struct bpf_raw_tracepoint_args *ctx)
{
    __u32 pid = (__u32)BPF_CORE_READ((struct task_struct *)ctx->args[0], tgid);
    bpf_map_delete_elem(&processes, &pid);
    __u32 *state = settings.filter ? bpf_map_lookup_elem(&targets, &pid) : NULL;
    if (state && *state != BPF_TARGET_SAMPLED)
        *state = BPF_TARGET_SAMPLED;
    return 0;
}

/* The last of a process: until here, ending it takes time that belongs to it. */
SEC("tp_btf/sched_process_free")
int assay_free(__u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0];
    __u32 pid = (__u32)task->tgid;
    if ((__u32)task->pid != pid)
        return 0;
    bpf_map_delete_elem(&processes, &pid);
    if (settings.filter || is_narrowed())
        bpf_map_delete_elem(&targets, &pid);
    return 0;
}
