/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Python's frames in a walk: the same steps as src/runtime/python/walk.c. The thread's state is
 * found by its thread-specific data; from there frames lead to their callers. The native walk says
 * which part of the C stack a call of the evaluation function has, and frames are taken from the
 * chain up to the one that this call began with.
 *
 * The interrupted thread is the only one that changes its chain, so what is read here is what it
 * was at the moment of the sample.
 */
#pragma once

#include "bpf/shared.h"
#include "bpf/types.bpf.h"

/* The thread's state, and its innermost frame. */
static __always_inline int python_find_thread(struct walk *walk, const struct bpf_python *python)
{
    struct evaluation_walk *state = &walk->evaluation;
    struct python_walk *own = &walk->python;
    __u64 at = THREAD_POINTER(bpf_get_current_task_btf()) + (__s64)python->tsd_offset;
    __u64 thread;
    if (load_word(at, &thread))
        return -1;
    if (python->tsd_indirect && load_word(thread + (__s64)python->tsd_second, &thread))
        return -1;
    if (!thread) /* one that has never run Python */
        return -1;
    own->cframe = 0;
    if (python->thread_cframe != BPF_PYTHON_NONE &&
        load_word(thread + python->thread_cframe, &own->cframe))
        return -1;
    if (python->cframe_frame == BPF_PYTHON_NONE)
        return load_word(thread + python->thread_frame, &state->frame);
    return 0;
}

/* Before a call's frames: false when this call has none, since it has just begun or is about to
 * end. [low, high) is its part of the C stack. */
static __always_inline int python_enter(struct walk *walk, const struct bpf_python *python)
{
    struct evaluation_walk *state = &walk->evaluation;
    if (python->thread_cframe == BPF_PYTHON_NONE)
        return 1;
    __u64 cframe = walk->python.cframe;
    if (cframe < state->low || cframe >= state->high)
        return 0;
    if (python->cframe_frame != BPF_PYTHON_NONE &&
        load_word(cframe + python->cframe_frame, &state->frame))
        return 0;
    return !load_word(cframe + python->cframe_previous, &walk->python.cframe);
}

static __always_inline __u64 python_word(struct walk *walk, const struct bpf_python *python,
                                         __u64 address)
{
    struct evaluation_walk *state = &walk->evaluation;
    __u32 bytes = python->code_bytes;
    KEEP(bytes);
    if (bytes > BPF_PYTHON_CODE_BYTES || address < 4096 ||
        bpf_probe_read_user(state->code, bytes, (void *)address))
        return 0;
#define CODE(offset) field_of(state->code, python->offset, BPF_PYTHON_CODE_BYTES)
    if (CODE(code_type_at) != python->code_type)
        return 0;
    struct bpf_code_event code = {.kind = BPF_EVENT_CODE,
                                  .pid = bpf_get_current_pid_tgid() >> 32,
                                  .address = address,
                                  .file = CODE(code_file),
                                  .name = CODE(code_name),
                                  .lines = CODE(code_lines),
                                  .first_line = (__u32)CODE(code_first_line),
                                  .runtime = walk->runtime};
#undef CODE
    __u64 hash = mix(mix(code.pid, address), code.file);
    hash = mix(mix(mix(hash, code.name), code.lines), code.first_line);
    code.identity = hash & BPF_PYTHON_IDENTITY_MASK;
    if (!code.identity)
        return 0;
    send_code(&code, hash);
    __u64 unit;
    if (python->frame_unit != BPF_PYTHON_NONE)
        unit = (__u32)field_of(state->bytes, python->frame_unit, BPF_PYTHON_FRAME_BYTES) >>
               (python->unit_shift & 1);
    else
        unit = (field_of(state->bytes, python->frame_instruction, BPF_PYTHON_FRAME_BYTES) -
                address - python->code_instructions) >>
               1;
    if (unit > BPF_PYTHON_UNIT_MASK) /* not begun: -1 */
        unit = BPF_PYTHON_UNIT_MASK;
    return BPF_FRAME_PYTHON | code.identity << BPF_PYTHON_UNIT_BITS | unit;
}

/* The frames added in this call belong to an outer one: this one has no frames yet, or no longer.
 */
static __always_inline int python_undo(struct walk *walk)
{
    struct python_walk *own = &walk->python;
    walk->count = own->saved_count;
    walk->hash = own->saved_hash;
    walk->leaf = own->saved_leaf;
    walk->evaluation.frame = own->saved_frame;
    return evaluation_leave(walk);
}

/* One more frame of the call of the evaluation function that is pending. */
__noinline int python_step(struct walk *walk)
{
    if (!walk)
        return UNWIND_END_NO_TABLE;
    struct evaluation_walk *state = &walk->evaluation;
    const struct bpf_runtime *runtime = runtime_of(walk, BPF_RUNTIME_PYTHON);
    const struct bpf_python *python = runtime ? &runtime->python : NULL;
    if (walk->count > BPF_FRAMES_MAX)
        return UNWIND_END_LIMIT;
    if (!python || state->state == EVALUATION_BROKEN)
        return evaluation_leave(walk);
    if (state->state == EVALUATION_UNSEEN) {
        if (python_find_thread(walk, python))
            return evaluation_fail(walk);
        state->state = EVALUATION_READY;
    }
    if (state->pending == 1) {
        if (!python_enter(walk, python))
            return evaluation_leave(walk);
        state->pending = 2;
        walk->python.saved_count = walk->count;
        walk->python.saved_hash = walk->hash;
        walk->python.saved_leaf = walk->leaf;
        walk->python.saved_frame = state->frame;
    }
    __u64 frame = state->frame;
    __u32 bytes = python->frame_bytes;
    KEEP(bytes);
    if (!frame)
        return evaluation_leave(walk);
    if (bytes > BPF_PYTHON_FRAME_BYTES || frame < 4096 ||
        bpf_probe_read_user(state->bytes, bytes, (void *)frame))
        return evaluation_fail(walk);
#define FRAME(offset) field_of(state->bytes, python->offset, BPF_PYTHON_FRAME_BYTES)
    state->frame = FRAME(frame_previous);
    __u8 entry = python->entry != BPF_PYTHON_ENTRY_EACH ? (__u8)FRAME(frame_entry) : 1;
    if (python->entry == BPF_PYTHON_ENTRY_FRAME && entry >= BPF_PYTHON_OWNER_ENTRY) {
        int ours = frame >= state->low && frame < state->high;
        return ours || python->thread_cframe != BPF_PYTHON_NONE ? evaluation_leave(walk)
                                                                : python_undo(walk);
    }
    __u64 word = python_word(walk, python, FRAME(frame_code) & ~(__u64)python->tag_mask);
#undef FRAME
    if (!word)
        return evaluation_fail(walk);
    add_frame(walk, word);
    return python->entry != BPF_PYTHON_ENTRY_FRAME && entry ? evaluation_leave(walk) : STEP_DONE;
}
