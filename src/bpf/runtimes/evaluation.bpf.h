/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interpreters with an evaluation function: Python, PHP and Ruby. Each call of that function
 * evaluates some frames of the interpreter's own chain. When the native walk reaches it, the
 * interpreter's step adds the frames of that call, one at a time; then the native walk goes on.
 */
#pragma once

#include "bpf/shared.h"
#include "bpf/types.bpf.h"

enum { EVALUATION_ABSENT, EVALUATION_UNSEEN, EVALUATION_READY, EVALUATION_BROKEN };

#define BEGIN_EVALUATION(state, runtime)                                                           \
    do {                                                                                           \
        (state)->evaluate[0] = (runtime)->evaluate[0];                                             \
        (state)->evaluate[1] = (runtime)->evaluate[1];                                             \
        (state)->cold[0] = (runtime)->cold[0];                                                     \
        (state)->cold[1] = (runtime)->cold[1];                                                     \
    } while (0)

static __always_inline void evaluation_begin(struct walk *walk)
{
    struct evaluation_walk *state = &walk->evaluation;
    const struct bpf_runtime *runtime;
    state->kind = 0;
    state->state = EVALUATION_ABSENT;
    state->pending = 0;
    state->segment = state->shown = 0;
    state->evaluate[0] = state->evaluate[1] = state->cold[0] = state->cold[1] = 0;
    if ((runtime = runtime_of(walk, BPF_RUNTIME_PYTHON)))
        BEGIN_EVALUATION(state, &runtime->python);
    else if ((runtime = runtime_of(walk, BPF_RUNTIME_PHP)))
        BEGIN_EVALUATION(state, &runtime->php);
    else if ((runtime = runtime_of(walk, BPF_RUNTIME_RUBY)))
        BEGIN_EVALUATION(state, &runtime->ruby);
    else
        return;
    state->kind = runtime->kind;
    state->state = EVALUATION_UNSEEN;
}

static __always_inline int is_in(const __u64 range[2], __u64 address)
{
    return address >= range[0] && address < range[1];
}

/* Ruby's other part is a function that the evaluation function calls, not a piece of it. */
static __always_inline int evaluates_at(const struct walk *walk, __u64 address)
{
    const struct evaluation_walk *state = &walk->evaluation;
    return is_in(state->evaluate, address) ||
           (state->kind != BPF_RUNTIME_RUBY && is_in(state->cold, address));
}

/* Native frames of the interpreter outside of an evaluation: those through which its functions call
 * each other. Deep recursion has several for each function, and there is no room for them. */
static __always_inline int evaluation_hides(const struct walk *walk, __u32 segment, __u64 address)
{
    const struct evaluation_walk *state = &walk->evaluation;
    if (settings.interpreter)
        return 0;
    return (state->segment && segment == state->segment) ||
           (state->kind == BPF_RUNTIME_RUBY && is_in(state->cold, address));
}

/* The frames of a call are done: its native frame follows, and the native walk goes on. */
static __always_inline int evaluation_leave(struct walk *walk)
{
    struct evaluation_walk *state = &walk->evaluation;
    state->pending = 0;
    if (walk->count > BPF_FRAMES_MAX)
        return UNWIND_END_LIMIT;
    /* The innermost one tells user space what the stack is of. */
    if (!state->shown || settings.interpreter)
        add_frame(walk, state->native);
    state->shown = 1;
    return state->result;
}

static __always_inline int evaluation_fail(struct walk *walk)
{
    walk->evaluation.state = EVALUATION_BROKEN;
    add_frame(walk, BPF_PYTHON_UNREAD | walk->evaluation.kind);
    return evaluation_leave(walk);
}

/* The evaluation function of an interpreter: its native frame, as if it had just been called,
 * follows the frames that it evaluates. */
static __always_inline int begin_evaluation(struct walk *walk, const struct bpf_mapping *mapping,
                                            __u64 low, int result)
{
    struct evaluation_walk *state = &walk->evaluation;
    state->pending = 1;
    state->low = low;
    state->high = result == STEP_DONE ? walk->value[REGISTER_SP] : ~0ull;
    state->native = (__u64)mapping->segment << BPF_FRAME_SEGMENT_SHIFT |
                    ((state->evaluate[0] - mapping->offset) & BPF_FRAME_OFFSET_MASK);
    state->result = result;
    state->segment = mapping->segment;
    return STEP_DONE;
}

#include "bpf/runtimes/php.bpf.h"
#include "bpf/runtimes/python.bpf.h"
#include "bpf/runtimes/ruby.bpf.h"

/* One more frame of the call that is pending. */
static __always_inline int evaluation_step(struct walk *walk)
{
    if (walk->evaluation.kind == BPF_RUNTIME_PHP)
        return php_step(walk);
    if (walk->evaluation.kind == BPF_RUNTIME_RUBY)
        return ruby_step(walk);
    return python_step(walk);
}
