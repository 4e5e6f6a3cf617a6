// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What the sampler is measured beside: programs for the same perf events that do nothing, or take
// stacks by the kernel's own frame-pointer walk and do nothing, or little, with them.

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define FRAMES_MAX 127 /* the kernel's own limit unless raised */

/* What a whole sampler says of a sample. */
struct record {
    __u64 time_ns, id;
    __u32 cpu, bytes;
    char comm[16];
    __u64 user[FRAMES_MAX];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct record);
} scratch SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_STACK_TRACE);
    __uint(max_entries, 16384);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, FRAMES_MAX * sizeof(__u64));
} stack_ids SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4 << 20);
} events SEC(".maps");

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

/* Of the user stacks that get_stack and sampler took: for the loader to tell. */
__u64 samples = 0, frames = 0;

SEC("perf_event")
int empty(void *ctx)
{
    return 0;
}

static __always_inline __u32 take(void *ctx, struct record *record)
{
    long bytes = bpf_get_stack(ctx, record->user, sizeof(record->user), BPF_F_USER_STACK);
    if (bytes <= 0)
        return 0;
    samples++;
    frames += bytes / 8;
    return bytes;
}

/* The kernel's walk and nothing else. */
SEC("perf_event")
int get_stack(void *ctx)
{
    __u32 zero = 0;
    struct record *record = bpf_map_lookup_elem(&scratch, &zero);
    if (record)
        take(ctx, record);
    return 0;
}

/* A whole sampler around it, as short as can be: user space is told all, at times of its own. */
SEC("perf_event")
int sampler(void *ctx)
{
    __u32 zero = 0;
    struct record *record = bpf_map_lookup_elem(&scratch, &zero);
    if (!record)
        return 0;
    record->time_ns = bpf_ktime_get_ns();
    record->id = bpf_get_current_pid_tgid();
    record->cpu = bpf_get_smp_processor_id();
    bpf_get_current_comm(record->comm, sizeof(record->comm));
    __u32 bytes = record->bytes = take(ctx, record);
    if (bytes <= sizeof(record->user))
        bpf_ringbuf_output(&events, record, __builtin_offsetof(struct record, user) + bytes,
                           BPF_RB_NO_WAKEUP);
    return 0;
}

/* Another, that counts: each pair of stacks is counted in the kernel. */
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
