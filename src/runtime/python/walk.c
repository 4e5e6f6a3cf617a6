// SPDX-License-Identifier: Apache-2.0
// Python's frames of a stopped thread: see walk.h.

#include "runtime/python/walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct reader {
    const struct python_process *python;
    const struct bpf_python *offsets;
    const struct runtime_memory *memory;
    struct python_chain *chain;
    uint64_t frame, cframe;
};

static uint64_t field(const uint8_t *bytes, size_t offset)
{
    uint64_t word = 0;
    if (offset <= BPF_PYTHON_FRAME_BYTES)
        memcpy(&word, bytes + offset, sizeof(word));
    return word;
}

static uint32_t unit_of(const struct bpf_python *offsets, const uint8_t *bytes, uint64_t code)
{
    uint64_t unit =
        offsets->frame_unit != BPF_PYTHON_NONE
            ? (uint32_t)field(bytes, offsets->frame_unit) >> (offsets->unit_shift & 1)
            : (field(bytes, offsets->frame_instruction) - code - offsets->code_instructions) >> 1;
    return (uint32_t)MIN(unit, BPF_PYTHON_UNIT_MASK);
}

enum read_frame { FRAME_MORE, FRAME_CALL_ENDS, FRAME_BROKEN };

static void end_call(struct reader *reader, uint64_t place)
{
    if (!reader->chain->count)
        return;
    struct python_frame *last = &reader->chain->frames[reader->chain->count - 1];
    last->last = true;
    last->place = place;
}

/* One frame of the call whose C frame is `cframe`, which may be 0. */
static enum read_frame read_frame(struct reader *reader, uint64_t cframe)
{
    const struct bpf_python *offsets = reader->offsets;
    struct python_chain *chain = reader->chain;
    uint8_t bytes[BPF_PYTHON_FRAME_BYTES + 8] = {0};
    struct python_frame frame = {0};
    uint64_t at = reader->frame;
    if (offsets->frame_bytes > BPF_PYTHON_FRAME_BYTES ||
        !runtime_read(reader->memory, at, bytes, offsets->frame_bytes))
        return FRAME_BROKEN;
    reader->frame = field(bytes, offsets->frame_previous);
    uint8_t entry =
        offsets->entry == BPF_PYTHON_ENTRY_EACH ? 1 : (uint8_t)field(bytes, offsets->frame_entry);
    if (offsets->entry == BPF_PYTHON_ENTRY_FRAME && entry >= BPF_PYTHON_OWNER_ENTRY) {
        end_call(reader, cframe ? cframe : at);
        return FRAME_CALL_ENDS;
    }
    uint64_t code = field(bytes, offsets->frame_code) & ~(uint64_t)offsets->tag_mask;
    if (chain->count == PYTHON_CHAIN_MAX ||
        !python_code_mark(reader->python, reader->memory, code, &frame.mark))
        return FRAME_BROKEN;
    frame.unit = unit_of(offsets, bytes, code);
    chain->frames[chain->count++] = frame;
    if (offsets->entry == BPF_PYTHON_ENTRY_FRAME || !entry)
        return FRAME_MORE;
    end_call(reader, cframe);
    return FRAME_CALL_ENDS;
}

/* The C frame of the next call, where the version has them. */
static bool enter_call(struct reader *reader, uint64_t *ret_cframe)
{
    const struct bpf_python *offsets = reader->offsets;
    *ret_cframe = 0;
    if (offsets->thread_cframe == BPF_PYTHON_NONE)
        return true;
    *ret_cframe = reader->cframe;
    if (!reader->cframe)
        return false;
    if (offsets->cframe_frame != BPF_PYTHON_NONE)
        reader->frame = runtime_read_word(reader->memory, reader->cframe + offsets->cframe_frame);
    reader->cframe = runtime_read_word(reader->memory, reader->cframe + offsets->cframe_previous);
    return true;
}

void python_chain_read(const struct python_process *python, const struct runtime_memory *memory,
                       uint64_t thread_pointer, struct python_chain *ret_chain)
{
    const struct bpf_python *offsets = &python->offsets.walk;
    struct python_chain chain = {0};
    struct reader reader = {
        .python = python, .offsets = offsets, .memory = memory, .chain = &chain};
    uint64_t thread = python_thread_state(python, memory, thread_pointer), cframe;
    *ret_chain = chain;
    if (!thread)
        return;
    chain.frames = memory_zalloc(PYTHON_CHAIN_MAX + 1, sizeof(*chain.frames));
    if (offsets->thread_cframe != BPF_PYTHON_NONE)
        reader.cframe = runtime_read_word(memory, thread + offsets->thread_cframe);
    if (offsets->cframe_frame == BPF_PYTHON_NONE)
        reader.frame = runtime_read_word(memory, thread + offsets->thread_frame);
    /* Entry frames are not kept, so calls are counted too: a forged list may have nothing else. */
    for (unsigned calls = 0; calls < PYTHON_CHAIN_MAX && enter_call(&reader, &cframe); calls++) {
        enum read_frame read = FRAME_MORE;
        while (read == FRAME_MORE && reader.frame)
            read = read_frame(&reader, cframe);
        chain.broken = read == FRAME_BROKEN;
        if (read != FRAME_CALL_ENDS)
            break;
    }
    if (chain.broken)
        chain.frames[chain.count++] = (struct python_frame){.last = true};
    struct python_frame *kept = realloc(chain.frames, MAX(chain.count, 1u) * sizeof(*kept));
    chain.frames = kept ? kept : chain.frames;
    *ret_chain = chain;
}

size_t python_chain_take(struct python_chain *chain, uint64_t low, uint64_t high,
                         const struct python_frame **ret_frames)
{
    size_t end = chain->next;
    while (end < chain->count && !chain->frames[end].last)
        end++;
    if (end == chain->count)
        return 0;
    uint64_t place = chain->frames[end].place;
    if (place && (place < low || place >= high))
        return 0;
    *ret_frames = chain->frames + chain->next;
    size_t count = end + 1 - chain->next;
    chain->next = end + 1;
    return count;
}
