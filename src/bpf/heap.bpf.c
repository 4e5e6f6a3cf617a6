// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Heap profiles: programs at the probes otel_memory:alloc and otel_memory:free of whatever file has
// them. An allocation that was sampled there is sent with its stack, a release with its address.

#include "bpf/heap.h"
#include "bpf/emit.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

TABLE(heap_places, struct bpf_heap_place, BPF_HEAP_PLACES);
TABLE(heap_lost_frees, __u64, 1);

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

SEC("uprobe")
int assay_alloc(void *ctx)
{
    const struct bpf_heap_place *place = place_of(ctx);
    __u64 now_ns = bpf_ktime_get_ns();
    if (!place || is_over(now_ns))
        return 0;
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
    if (!place)
        return 0;
    LOAD_REGISTERS(ctx, registers);
    struct bpf_heap_free event = {
        .note = {BPF_EVENT_NOTE, BPF_COLLECTOR_HEAP, sizeof(event)},
        .pid = bpf_get_current_pid_tgid() >> 32,
        .pointer = argument_of(&place->arguments[0], registers),
    };
    if (bpf_ringbuf_output(&events, &event, sizeof(event), wake_up())) {
        __u64 *lost = table(&heap_lost_frees);
        if (lost)
            __sync_fetch_and_add(lost, 1);
    }
    return 0;
}
