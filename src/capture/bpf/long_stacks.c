// SPDX-License-Identifier: Apache-2.0
// Putting long stacks together: see long_stacks.h.

#include "capture/bpf/long_stacks.h"

#include <string.h>

#include "base/memory.h"

#define LONG_STACKS_MAX 4096
#define LONG_STACK_BYTES ((size_t)BPF_COPY_PARTS_MAX * BPF_COPY_BYTES)

void long_stacks_release(struct long_stacks *stacks)
{
    for (size_t i = 0; i < stacks->count; i++)
        free(stacks->list[i].data);
    free(stacks->list);
    *stacks = (struct long_stacks){0};
}

static struct long_stack *find(const struct long_stacks *stacks,
                               const struct bpf_sample_event *sample)
{
    for (size_t i = 0; i < stacks->count; i++)
        if (stacks->list[i].cpu == sample->cpu && stacks->list[i].collector == sample->collector)
            return &stacks->list[i];
    return NULL;
}

static struct long_stack *get(struct long_stacks *stacks, const struct bpf_sample_event *sample)
{
    struct long_stack *stack = find(stacks, sample);
    if (stack || stacks->count == LONG_STACKS_MAX)
        return stack;
    array_reserve(stacks->list, stacks->capacity, stacks->count + 1);
    stack = &stacks->list[stacks->count++];
    *stack = (struct long_stack){
        .cpu = sample->cpu, .collector = sample->collector, .data = memory_alloc(LONG_STACK_BYTES)};
    return stack;
}

/* Whether an event has the bytes that follow those that are there. */
static bool continues(const struct long_stack *stack, const struct bpf_copy_event *event)
{
    return stack->tid && stack->tid == event->sample.tid &&
           stack->time_ns == event->sample.time_ns &&
           stack->address + stack->bytes == event->stack_address &&
           event->stack_bytes <= LONG_STACK_BYTES - stack->bytes;
}

static void append(struct long_stack *stack, const struct bpf_copy_event *event)
{
    memcpy(stack->data + stack->bytes, event + 1, event->stack_bytes);
    stack->bytes += event->stack_bytes;
}

void long_stacks_take(struct long_stacks *stacks, const struct bpf_copy_event *part)
{
    struct long_stack *stack = get(stacks, &part->sample);
    if (!stack || part->stack_bytes > LONG_STACK_BYTES)
        return;
    if (!continues(stack, part)) {
        stack->time_ns = part->sample.time_ns;
        stack->tid = part->sample.tid;
        stack->address = part->stack_address;
        stack->bytes = 0;
    }
    append(stack, part);
}

const uint8_t *long_stacks_join(struct long_stacks *stacks, const struct bpf_copy_event *copy,
                                uint64_t *ret_address, size_t *ret_bytes)
{
    struct long_stack *stack = find(stacks, &copy->sample);
    if (!stack || !continues(stack, copy)) {
        *ret_address = copy->stack_address;
        *ret_bytes = copy->stack_bytes;
        return (const uint8_t *)(copy + 1);
    }
    append(stack, copy);
    stack->tid = 0; /* it is complete */
    *ret_address = stack->address;
    *ret_bytes = stack->bytes;
    return stack->data;
}
