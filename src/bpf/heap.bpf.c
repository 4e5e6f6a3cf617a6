// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Heap profiles: programs at the probes otel_memory:alloc and otel_memory:free of whatever file has
// them. An allocation that was sampled there is sent with its stack, a release with its address.

#include "bpf/heap.h"
#include "bpf/chance.h"
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

/* ---- functions of an allocator that has no probes ---- */

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct bpf_heap_call);
} heap_calls SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, struct bpf_heap_pointer);
    __type(value, __u8);
} heap_sampled SEC(".maps");

/* Of something that was sampled; of everything else the kernel says nothing. */
static __always_inline void release(__u64 pointer, __u32 pid)
{
    struct bpf_heap_pointer key = {.pointer = pointer, .pid = pid};
    struct bpf_heap_free event = {
        .note = {BPF_EVENT_NOTE, BPF_COLLECTOR_HEAP, sizeof(event)},
        .pid = pid,
        .pointer = pointer,
    };
    struct bpf_heap_state *state = table(&heap_state);
    if (!pointer || bpf_map_delete_elem(&heap_sampled, &key))
        return;
    if (bpf_ringbuf_output(&events, &event, sizeof(event), wake_up()) && state)
        __sync_fetch_and_add(&state->lost_frees, 1);
}

SEC("uprobe")
int assay_release(void *ctx)
{
    const struct bpf_heap_place *place = place_of(ctx);
    struct bpf_heap_state *state = table(&heap_state);
    __u64 registers[UNWIND_REGISTERS];
    if (!place || !state)
        return 0;
    __sync_fetch_and_add(&state->releases, 1);
    if (!state->mean_bytes)
        return 0;
    LOAD_REGISTERS(ctx, registers);
    release(argument_of(&place->arguments[2], registers), bpf_get_current_pid_tgid() >> 32);
    return 0;
}

/* Allocators call their own functions: calls within calls, which are below them on the stack, are
 * not the program's. */
SEC("uprobe")
int assay_enter(void *ctx)
{
    const struct bpf_heap_place *place = place_of(ctx);
    struct bpf_heap_state *state = table(&heap_state);
    __u64 registers[UNWIND_REGISTERS], thread = bpf_get_current_pid_tgid();
    __u32 tid = (__u32)thread;
    struct bpf_heap_call call = {};
    if (!place || !state)
        return 0;
    __sync_fetch_and_add(&state->calls, 1);
    __u64 mean = state->mean_bytes;
    if (!mean)
        return 0;
    LOAD_REGISTERS(ctx, registers);
    call.stack = registers[REGISTER_SP];
    const struct bpf_heap_call *outer = bpf_map_lookup_elem(&heap_calls, &tid);
    if (outer && outer->stack > call.stack)
        return 0;
    release(argument_of(&place->arguments[2], registers), thread >> 32);
    call.size =
        argument_of(&place->arguments[0], registers) * argument_of(&place->arguments[1], registers);
    call.stored_at = argument_of(&place->arguments[3], registers);
    __u64 chance = call.size ? chance_of(call.size, mean) : 0;
    call.chance = bpf_get_prandom_u32() < chance ? chance : 0;
    bpf_map_update_elem(&heap_calls, &tid, &call, BPF_ANY);
    return 0;
}

SEC("uprobe")
int assay_return(void *ctx)
{
    struct bpf_heap_state *state = table(&heap_state);
    __u64 registers[UNWIND_REGISTERS], thread = bpf_get_current_pid_tgid();
    __u64 now_ns = bpf_ktime_get_ns();
    __u32 tid = (__u32)thread;
    __u8 there = 1;
    struct bpf_heap_call *found = bpf_map_lookup_elem(&heap_calls, &tid), call;
    if (!found || !found->stack || !state)
        return 0;
    LOAD_REGISTERS(ctx, registers);
    /* By then the return address is off the stack. */
    if (registers[REGISTER_SP] != found->stack + sizeof(__u64))
        return 0;
    call = *found;
    found->stack = 0;
    struct bpf_heap_pointer key = {.pointer = registers[REGISTER_RESULT], .pid = thread >> 32};
    if (!call.chance || is_over(now_ns))
        return 0;
    if (call.stored_at &&
        (registers[REGISTER_RESULT] ||
         bpf_probe_read_user(&key.pointer, sizeof(key.pointer), (void *)call.stored_at)))
        return 0;
    if (!key.pointer)
        return 0;
    if (bpf_map_update_elem(&heap_sampled, &key, &there, BPF_ANY)) {
        __sync_fetch_and_add(&state->refused, 1);
        return 0;
    }
    struct scratch *scratch = take_scratch();
    if (!scratch)
        return 0;
    begin_sample(scratch, BPF_COLLECTOR_HEAP, now_ns);
    __builtin_memcpy(scratch->walk.value, registers, sizeof(registers));
    scratch->walk.value[REGISTER_IP]--; /* of the call */
    scratch->walk.in_system_call = 0;
    scratch->sample.id = key.pointer;
    scratch->sample.detail[0] = call.size;
    scratch->sample.value = call.size >> 31 ? call.size : (call.size << 32) / call.chance;
    scratch->sample.detail[1] = process_started();
    if (!take_user(scratch))
        send_sample(scratch);
    release_scratch(scratch);
    return 0;
}
