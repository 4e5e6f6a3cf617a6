/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * JavaScript functions of V8 in a walk. V8's code, compiled or built in, has no unwind rows, and
 * always a frame pointer: frames are found as in any such code. Those of JavaScript have their
 * context and their function at fixed distances from the frame pointer, whatever compiler made
 * them; others have a number in place of the context.
 */
#pragma once

#include "bpf/shared.h"
#include "bpf/types.bpf.h"

static __always_inline int v8_is_pointer(__u64 word)
{
    return (word & 3) == 1;
}

/* A field of an object, by a tagged pointer to it. */
static __always_inline int v8_load(__u64 object, __u32 offset, __u64 *ret_word)
{
    return v8_is_pointer(object) ? load_word(object - 1 + offset, ret_word) : -1;
}

/* Finds the JavaScript function of the frame that the registers are in: false when it has none,
 * else its word is in walk->v8_word. */
__noinline int v8_find(struct walk *walk)
{
    if (!walk)
        return 0;
    const struct bpf_runtime *runtime = runtime_of(walk, BPF_RUNTIME_V8);
    __u64 fp = walk->value[REGISTER_FP], context, function, map, type, shared;
    if (!runtime || !is_known(walk, REGISTER_FP) || fp < walk->value[REGISTER_SP] || fp % 8)
        return 0;
    const struct bpf_v8 *v8 = &runtime->v8;
    if (read_word(walk, fp + (__s64)v8->frame_context, &context) || !v8_is_pointer(context) ||
        read_word(walk, fp + (__s64)v8->frame_function, &function) || v8_load(function, 0, &map) ||
        v8_load(map, v8->map_type, &type))
        return 0;
    type &= 0xffff;
    if (type < v8->function_type[0] || type > v8->function_type[1] ||
        v8_load(function, v8->function_shared, &shared))
        return 0;
    struct bpf_code_event code = {.kind = BPF_EVENT_CODE,
                                  .pid = bpf_get_current_pid_tgid() >> 32,
                                  .address = shared,
                                  .runtime = walk->runtime};
    if (v8_load(shared, v8->shared_name, &code.name) ||
        v8_load(shared, v8->shared_script, &code.file))
        return 0;
    __u64 hash = mix(mix(mix(code.pid, code.address), code.file), code.name);
    code.identity = hash & BPF_PYTHON_IDENTITY_MASK;
    if (!code.identity)
        return 0;
    send_code(&code, hash);
    walk->v8_word = BPF_FRAME_PYTHON | code.identity << BPF_PYTHON_UNIT_BITS;
    return 1;
}
