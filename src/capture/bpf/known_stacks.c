// SPDX-License-Identifier: Apache-2.0
// Stacks of BPF's samples, by hash: see known_stacks.h.

#include "capture/bpf/known_stacks.h"

#include <string.h>

#include "base/memory.h"

static struct known_stack *find_stack(struct known_stacks *stacks, uint64_t hash)
{
    struct id_probe probe = id_probe_start(hash_word(hash));
    uint32_t id;
    while ((id = id_table_next(&stacks->index, &probe)) != ID_NONE)
        if (stacks->list[id].hash == hash)
            return &stacks->list[id];
    return NULL;
}

void known_stacks_take(struct known_stacks *stacks, const struct bpf_stack_event *event)
{
    if (!event->count || find_stack(stacks, event->hash))
        return;
    struct known_stack stack = {.hash = event->hash,
                                .count = event->count,
                                .end = (uint8_t)MIN(event->end, UNWIND_END_KINDS - 1)};
    uint64_t *words = arena_alloc(&stacks->arena, event->count * sizeof(*words));
    memcpy(words, event + 1, event->count * sizeof(*words));
    stack.words = words;
    stack.frames = arena_alloc(&stacks->arena, event->count * sizeof(uint32_t));
    stack.room = event->count;
    array_reserve(stacks->list, stacks->capacity, stacks->count + 1);
    id_table_insert(&stacks->index, hash_word(stack.hash), (uint32_t)stacks->count);
    stacks->list[stacks->count++] = stack;
}

/* Of native code. */
static uint32_t user_frame(struct known_stacks *stacks, uint32_t pid, uint64_t word)
{
    if (word & BPF_FRAME_RAW)
        return recorder_address_frame(stacks->recorder,
                                      processes_find(&stacks->recorder->processes, pid),
                                      word & ~BPF_FRAME_RAW);
    return recorder_segment_frame(stacks->recorder, (uint32_t)(word >> BPF_FRAME_SEGMENT_SHIFT),
                                  word & BPF_FRAME_OFFSET_MASK);
}

static enum runtime_frame kind_of(const struct known_stacks *stacks, uint64_t word)
{
    const struct segments *segments = &stacks->recorder->segments;
    uint32_t segment = (uint32_t)(word >> BPF_FRAME_SEGMENT_SHIFT);
    if (BPF_IS_PYTHON(word))
        return RUNTIME_FRAME_PROGRAM;
    if (word & BPF_FRAME_RAW || !segment || segment >= segments->count)
        return RUNTIME_FRAME_OTHER;
    return module_frame_kind(segments->list[segment].module, word & BPF_FRAME_OFFSET_MASK);
}

/* All that a word stands for, outermost first: up to HOTSPOT_INLINED_MAX. */
static size_t user_frames(struct known_stacks *stacks, uint32_t pid, uint64_t word,
                          uint32_t *ret_frames)
{
    if (BPF_IS_PYTHON(word))
        return recorder_runtime_frames(stacks->recorder, word, ret_frames);
    *ret_frames = user_frame(stacks, pid, word);
    return 1;
}

/* Which frames of a user stack are shown. */
static void choose_frames(const struct known_stacks *stacks, const struct known_stack *stack,
                          uint8_t kinds[BPF_FRAMES_MAX])
{
    bool evaluates = false;
    for (uint32_t i = 0; i < stack->count; i++) {
        kinds[i] = (uint8_t)kind_of(stacks, stack->words[i]);
        evaluates |= kinds[i] == RUNTIME_FRAME_EVALUATE;
    }
    if (evaluates && !stacks->recorder->interpreter_frames)
        runtime_frames_hide(kinds, stack->count);
}

/* With room for inlined methods. `left` words follow, and have one frame at least. A stack with
 * more than fit loses its outermost ones. */
static void append_frames(struct known_stacks *stacks, struct known_stack *stack,
                          const uint32_t *frames, uint32_t count, uint32_t left)
{
    uint32_t needed = stack->shown + count + left;
    if (needed > stack->room && stack->room < BPF_FRAMES_MAX) {
        uint32_t room = MIN(needed + needed / 2, (uint32_t)BPF_FRAMES_MAX);
        uint32_t *moved = arena_alloc(&stacks->arena, room * sizeof(*moved));
        memcpy(moved, stack->frames, stack->shown * sizeof(*moved));
        stack->frames = moved;
        stack->room = room;
    }
    if (stack->shown + count > stack->room) {
        uint32_t excess = MIN(stack->shown, stack->shown + count - stack->room);
        memmove(stack->frames, stack->frames + excess,
                (stack->shown - excess) * sizeof(*stack->frames));
        stack->shown -= excess;
    }
    count = MIN(count, stack->room - stack->shown);
    memcpy(stack->frames + stack->shown, frames, count * sizeof(*frames));
    stack->shown += count;
}

/* The frames of a stack in the profile of now. */
static void resolve(struct known_stacks *stacks, struct known_stack *stack, uint32_t pid,
                    bool kernel)
{
    bool fits = !stack->has_raw || stack->pid == pid;
    if (stack->epoch == stacks->recorder->epoch && fits)
        return;
    stack->epoch = stacks->recorder->epoch;
    stack->pid = pid;
    stack->shown = 0;
    uint8_t kinds[BPF_FRAMES_MAX] = {0};
    if (!kernel)
        choose_frames(stacks, stack, kinds);
    for (uint32_t i = stack->count; i-- > 0;) {
        uint64_t word = stack->words[i];
        uint32_t frames[HOTSPOT_INLINED_MAX];
        size_t count = 1;
        stack->has_raw |= !kernel && word & BPF_FRAME_RAW;
        if (kinds[i] == RUNTIME_FRAME_HIDDEN)
            continue;
        if (kernel)
            frames[0] = recorder_kernel_frame(stacks->recorder, word - 1);
        else
            count = user_frames(stacks, pid, word, frames);
        append_frames(stacks, stack, frames, (uint32_t)count, i);
    }
}

size_t known_stacks_add(struct known_stacks *stacks, const struct bpf_sample_event *event,
                        bool kernel, uint32_t *frames)
{
    uint64_t leaf = kernel ? event->kernel_leaf : event->user_leaf;
    uint64_t callers = kernel ? event->kernel_callers : event->user_callers;
    size_t count = 0;
    struct known_stack *stack = callers ? find_stack(stacks, callers) : NULL;
    if (stack) {
        resolve(stacks, stack, event->pid, kernel);
        memcpy(frames, stack->frames, stack->shown * sizeof(*frames));
        count = stack->shown;
    } else if (callers) {
        stacks->unknown++;
        frames[count++] = recorder_mark(stacks->recorder, "[unknown]");
    }
    if (!kernel && !stacks->recorder->interpreter_frames &&
        kind_of(stacks, leaf) == RUNTIME_FRAME_EVALUATE)
        return count;
    if (!kernel)
        return count + user_frames(stacks, event->pid, leaf, frames + count);
    frames[count++] = recorder_kernel_frame(stacks->recorder, leaf);
    return count;
}

size_t known_stacks_add_second(struct known_stacks *stacks, const struct bpf_sample_event *event,
                               uint32_t *frames)
{
    struct bpf_sample_event other = {.pid = event->second_pid,
                                     .user_leaf = event->second_leaf,
                                     .user_callers = event->second_callers};
    return known_stacks_add(stacks, &other, false, frames);
}

size_t known_stacks_native(struct known_stacks *stacks, const struct bpf_sample_event *event,
                           uint32_t *frames)
{
    const struct known_stack *stack =
        event->user_callers ? find_stack(stacks, event->user_callers) : NULL;
    size_t count = 0;
    for (uint32_t i = stack ? stack->count : 0; i-- > 0;)
        if (!BPF_IS_PYTHON(stack->words[i]))
            frames[count++] = user_frame(stacks, event->pid, stack->words[i]);
    if (!BPF_IS_PYTHON(event->user_leaf))
        frames[count++] = user_frame(stacks, event->pid, event->user_leaf);
    return count;
}

void known_stacks_clear(struct known_stacks *stacks)
{
    stacks->count = 0;
    id_table_clear(&stacks->index);
    arena_release(&stacks->arena);
}

void known_stacks_release(struct known_stacks *stacks)
{
    free(stacks->list);
    id_table_release(&stacks->index);
    arena_release(&stacks->arena);
}
