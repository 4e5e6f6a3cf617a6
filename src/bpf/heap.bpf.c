// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Heap profiles: programs at the probes otel_memory:alloc and otel_memory:free of whatever file has
// them. An allocation that was sampled there is sent with its stack, a release with its address.

#include "bpf/heap.h"
#include "bpf/emit.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

TABLE(heap_places, struct bpf_heap_place, BPF_HEAP_PLACES);
TABLE(heap_state, struct bpf_heap_state, 1);

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, BPF_HEAP_PROCESSES_MAX);
    __type(key, __u32);
    __type(value, struct bpf_heap_process);
} heap_processes SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, BPF_HEAP_USERS_MAX);
    __type(key, __u32);
    __type(value, struct bpf_heap_user);
} heap_users SEC(".maps");

/* The value of an argument, by the registers. */
static __always_inline __u64 argument_of(const struct bpf_heap_argument *argument,
                                         const __u64 *registers)
{
    __u32 number = argument->number, bits = argument->bytes * 8;
    __u64 value = 0;
    if (argument->kind == BPF_HEAP_CONSTANT)
        return (__u64)argument->offset;
    KEEP(number);
    if (number >= UNWIND_REGISTERS)
        return 0;
    value = registers[number];
    if (argument->kind == BPF_HEAP_MEMORY &&
        bpf_probe_read_user(&value, sizeof(value), (void *)(value + (__u64)argument->offset)))
        return 0;
    if (!bits || bits >= 64)
        return value;
    value <<= (64 - bits) & 63;
    return argument->is_signed ? (__u64)((__s64)value >> ((64 - bits) & 63))
                               : value >> ((64 - bits) & 63);
}

static __always_inline const struct bpf_heap_place *place_of(void *ctx)
{
    struct bpf_heap_place *places = table(&heap_places);
    __u64 at = bpf_get_attach_cookie(ctx);
    KEEP(at);
    return places ? &places[at & (BPF_HEAP_PLACES - 1)] : NULL;
}

static __always_inline struct bpf_heap_process *process_of(__u32 pid)
{
    struct bpf_heap_process *process = bpf_map_lookup_elem(&heap_processes, &pid);
    if (process)
        return process;
    struct bpf_heap_process fresh = {};
    bpf_map_update_elem(&heap_processes, &pid, &fresh, BPF_NOEXIST);
    return bpf_map_lookup_elem(&heap_processes, &pid);
}

static __always_inline struct bpf_heap_user *current_user(void)
{
    __u32 id = (__u32)bpf_get_current_uid_gid();
    struct bpf_heap_user *user = bpf_map_lookup_elem(&heap_users, &id);
    if (user)
        return user;
    struct bpf_heap_user fresh = {};
    bpf_map_update_elem(&heap_users, &id, &fresh, BPF_NOEXIST);
    return bpf_map_lookup_elem(&heap_users, &id);
}

static __always_inline int is_beyond(unsigned long long *turn_ns, unsigned int *events,
                                     __u64 now_ns, __u32 limit)
{
    if (now_ns - *turn_ns >= BPF_HEAP_TURN_NS) {
        *turn_ns = now_ns;
        *events = 0;
    }
    return __sync_fetch_and_add(events, 1) >= limit;
}

/* Whether an event of the process is one too many: it may have `times` as many as the limit. The
 * ring is the samples', too, so a user can't have more by having more processes. */
static __always_inline int is_excess(struct bpf_heap_process *process, __u64 now_ns, __u32 times)
{
    struct bpf_heap_state *state = table(&heap_state);
    if (!state || !state->events_max)
        return 0;
    __u32 limit = state->events_max * times;
    if (is_beyond(&process->turn_ns, &process->events, now_ns, limit))
        return 1;
    struct bpf_heap_user *user = current_user();
    if (user && is_beyond(&user->turn_ns, &user->events, now_ns, limit * BPF_HEAP_USER_TIMES))
        return 1;
    return is_beyond(&state->turn_ns, &state->events, now_ns, limit * BPF_HEAP_TOTAL_TIMES);
}

static __always_inline int is_wanted(__u32 pid)
{
    const struct bpf_heap_state *state = table(&heap_state);
    return !state || !state->targets_only || is_target(pid);
}

SEC("uprobe")
int assay_alloc(void *ctx)
{
    const struct bpf_heap_place *place = place_of(ctx);
    __u64 now_ns = bpf_ktime_get_ns(), program = process_started();
    __u32 pid = bpf_get_current_pid_tgid() >> 32;
    if (!is_wanted(pid))
        return 0;
    struct bpf_heap_process *process = process_of(pid);
    if (!place || !process || is_over(now_ns) || process->unwanted == program)
        return 0;
    if (is_excess(process, now_ns, 1)) {
        struct bpf_heap_state *state = table(&heap_state);
        if (state)
            __sync_fetch_and_add(&state->refused, 1);
        return 0;
    }
    struct scratch *scratch = take_scratch();
    if (!scratch)
        return 0;
    begin_sample(scratch, BPF_COLLECTOR_HEAP, now_ns);
    LOAD_REGISTERS(ctx, scratch->walk.value);
    scratch->walk.in_system_call = 0;
    __builtin_memcpy(scratch->registers, scratch->walk.value, sizeof(scratch->registers));
    scratch->sample.id = argument_of(&place->arguments[0], scratch->registers);
    scratch->sample.detail[0] = argument_of(&place->arguments[1], scratch->registers);
    scratch->sample.value = argument_of(&place->arguments[2], scratch->registers);
    scratch->sample.detail[1] = program;
    if (!take_user(scratch))
        send_sample(scratch);
    release_scratch(scratch);
    return 0;
}

SEC("uprobe")
int assay_free(void *ctx)
{
    const struct bpf_heap_place *place = place_of(ctx);
    __u64 registers[UNWIND_REGISTERS];
    __u32 pid = bpf_get_current_pid_tgid() >> 32;
    if (!is_wanted(pid))
        return 0;
    struct bpf_heap_process *process = process_of(pid);
    if (!place || !process || process->unwanted == process_started())
        return 0;
    LOAD_REGISTERS(ctx, registers);
    struct bpf_heap_free event = {
        .note = {BPF_EVENT_NOTE, BPF_COLLECTOR_HEAP, sizeof(event)},
        .pid = pid,
        .pointer = argument_of(&place->arguments[0], registers),
    };
    if (is_excess(process, bpf_ktime_get_ns(), 4) ||
        bpf_ringbuf_output(&events, &event, sizeof(event), wake_up())) {
        struct bpf_heap_state *state = table(&heap_state);
        __sync_fetch_and_add(&process->lost, 1);
        if (state)
            __sync_fetch_and_add(&state->lost_frees, 1);
    }
    return 0;
}
