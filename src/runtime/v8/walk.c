// SPDX-License-Identifier: Apache-2.0
// JavaScript functions of a stopped thread: see walk.h.

#include "runtime/v8/walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/v8/object.h"

#define FRAME_BYTES_MAX (8ull << 20)
#define FIRST_PAGE 4096u

struct reader {
    struct v8_objects objects;
    uint64_t map; /* of the last object that was a function */
};

static uint64_t word_at(const uint8_t *bytes, size_t offset)
{
    uint64_t word;
    memcpy(&word, bytes + offset, sizeof(word));
    return word;
}

static bool is_pointer(uint64_t word)
{
    return (word & 3) == 1 && word > FIRST_PAGE;
}

static bool is_function(struct reader *reader, uint64_t map)
{
    const struct bpf_v8 *walk = &reader->objects.binary->walk;
    uint16_t type;
    if (map == reader->map)
        return true;
    if (!is_pointer(map) ||
        !runtime_read(reader->objects.memory, map - 1 + walk->map_type, &type, sizeof(type)))
        return false;
    if (type < walk->function_type[0] || type > walk->function_type[1])
        return false;
    reader->map = map;
    return true;
}

static bool read_mark(struct reader *reader, uint64_t function, struct runtime_mark *ret_mark)
{
    const struct v8_binary *binary = reader->objects.binary;
    const struct bpf_v8 *walk = &binary->walk;
    uint8_t bytes[BPF_V8_BYTES];
    if (!runtime_read(reader->objects.memory, function - 1, bytes, sizeof(bytes)) ||
        !is_function(reader, word_at(bytes, 0)))
        return false;
    uint64_t shared = word_at(bytes, walk->function_shared);
    if (!is_pointer(shared) || v8_type_of(&reader->objects, shared) != binary->shared_type ||
        !runtime_read(reader->objects.memory, shared - 1, bytes, sizeof(bytes)))
        return false;
    *ret_mark = (struct runtime_mark){.address = shared,
                                      .name = word_at(bytes, walk->shared_name),
                                      .file = word_at(bytes, walk->shared_script)};
    return true;
}

void v8_frames_read(const struct v8_binary *binary, const struct runtime_memory *memory,
                    uint64_t sp, const uint8_t *stack, size_t bytes, struct v8_frames *ret_frames)
{
    const struct bpf_v8 *walk = &binary->walk;
    struct reader reader = {.objects = {.binary = binary, .memory = memory}};
    struct v8_frames frames = {0};
    size_t capacity = 0;
    size_t below = (size_t)MAX(-walk->frame_context, -walk->frame_function);
    for (size_t at = below; at + 16 <= bytes && frames.count < V8_FRAMES_MAX; at += 8) {
        uint64_t fp = sp + at, caller = word_at(stack, at);
        uint64_t context = word_at(stack, at + (size_t)(ptrdiff_t)walk->frame_context);
        uint64_t function = word_at(stack, at + (size_t)(ptrdiff_t)walk->frame_function);
        struct v8_frame frame = {.fp = fp};
        if (caller <= fp || caller - fp > FRAME_BYTES_MAX || caller % 8 || !is_pointer(context) ||
            !is_pointer(function) || word_at(stack, at + 8) <= FIRST_PAGE ||
            !read_mark(&reader, function, &frame.mark))
            continue;
        array_reserve(frames.list, capacity, frames.count + 1);
        frames.list[frames.count++] = frame;
    }
    *ret_frames = frames;
}

const struct v8_frame *v8_frames_find(const struct v8_frames *frames, uint64_t fp)
{
    size_t low = 0, high = frames->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (frames->list[middle].fp < fp)
            low = middle + 1;
        else
            high = middle;
    }
    return low < frames->count && frames->list[low].fp == fp ? &frames->list[low] : NULL;
}
