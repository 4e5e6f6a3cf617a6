// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What the sampler is measured beside: programs for the same perf events that do nothing, or take
// stacks by the kernel's own frame-pointer walk. Only stacks are taken, nothing else is looked at.

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define FRAMES_MAX 127 /* the kernel's own limit unless raised */

struct stacks {
    __u64 user[FRAMES_MAX], kernel[FRAMES_MAX];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct stacks);
} scratch SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_STACK_TRACE);
    __uint(max_entries, 16384);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, FRAMES_MAX * sizeof(__u64));
} stack_ids SEC(".maps");

struct key {
    __u32 pid;
    int user, kernel;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, struct key);
    __type(value, __u64);
} counts SEC(".maps");

/* Of the user stacks that stack_user and stack_both took: for the loader to tell. */
__u64 samples = 0, frames = 0;

SEC("perf_event")
int empty(void *ctx)
{
    return 0;
}

static __always_inline int take(void *ctx, int kernel_too)
{
    __u32 zero = 0;
    struct stacks *own = bpf_map_lookup_elem(&scratch, &zero);
    if (!own)
        return 0;
    long bytes = bpf_get_stack(ctx, own->user, sizeof(own->user), BPF_F_USER_STACK);
    if (kernel_too)
        bpf_get_stack(ctx, own->kernel, sizeof(own->kernel), 0);
    if (bytes > 0) {
        samples++;
        frames += bytes / 8;
    }
    return 0;
}

SEC("perf_event")
int stack_user(void *ctx)
{
    return take(ctx, 0);
}

SEC("perf_event")
int stack_both(void *ctx)
{
    return take(ctx, 1);
}

/* A bare sampler, whole: each pair of stacks is counted in the kernel. */
SEC("perf_event")
int stack_id(struct bpf_perf_event_data *ctx)
{
    struct key key = {.pid = bpf_get_current_pid_tgid() >> 32};
    __u64 one = 1;
    if (!key.pid)
        return 0;
    key.user = bpf_get_stackid(ctx, &stack_ids, BPF_F_USER_STACK);
    key.kernel = bpf_get_stackid(ctx, &stack_ids, 0);
    __u64 *count = bpf_map_lookup_elem(&counts, &key);
    if (count)
        __sync_fetch_and_add(count, 1);
    else
        bpf_map_update_elem(&counts, &key, &one, BPF_NOEXIST);
    return 0;
}
