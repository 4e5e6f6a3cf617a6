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

/* The beginning of an object, by a tagged pointer to it, into walk->v8.bytes. */
static __always_inline int v8_load(struct walk *walk, __u64 object)
{
    if (!v8_is_pointer(object) || object < 4096)
        return -1;
    return (int)bpf_probe_read_user(walk->v8.bytes, BPF_V8_BYTES, (void *)(object - 1));
}

/* Whether objects with this map are functions. Nearly all have the same two or three. */
static __always_inline int v8_is_function(struct walk *walk, const struct bpf_v8 *v8, __u64 map)
{
    __u64 type;
    if (map == walk->v8.map)
        return 1;
    if (!v8_is_pointer(map) || load_word(map - 1 + v8->map_type, &type))
        return 0;
    type &= 0xffff;
    if (type < v8->function_type[0] || type > v8->function_type[1])
        return 0;
    walk->v8.map = map;
    return 1;
}

/* Finds the JavaScript function of the frame that the registers are in: false when it has none,
 * else its word is in walk->v8.word. */
__noinline int v8_find(struct walk *walk)
{
    if (!walk)
        return 0;
    const struct bpf_runtime *runtime = runtime_of(walk, BPF_RUNTIME_V8);
    __u64 fp = walk->value[REGISTER_FP], context, function;
    if (!runtime || !is_known(walk, REGISTER_FP) || fp < walk->value[REGISTER_SP] || fp % 8)
        return 0;
    const struct bpf_v8 *v8 = &runtime->v8;
    if (read_word(walk, fp + (__s64)v8->frame_context, &context) || !v8_is_pointer(context) ||
        read_word(walk, fp + (__s64)v8->frame_function, &function) || v8_load(walk, function) ||
        !v8_is_function(walk, v8, *(const __u64 *)walk->v8.bytes))
        return 0;
#define FIELD(offset) field_of(walk->v8.bytes, v8->offset, BPF_V8_BYTES)
    struct bpf_code_event code = {.kind = BPF_EVENT_CODE,
                                  .pid = bpf_get_current_pid_tgid() >> 32,
                                  .address = FIELD(function_shared),
                                  .runtime = walk->runtime};
    if (v8_load(walk, code.address))
        return 0;
    code.name = FIELD(shared_name);
    code.file = FIELD(shared_script);
#undef FIELD
    __u64 hash = mix(mix(mix(code.pid, code.address), code.file), code.name);
    code.identity = hash & BPF_PYTHON_IDENTITY_MASK;
    if (!code.identity)
        return 0;
    send_code(&code, hash);
    walk->v8.word = BPF_FRAME_PYTHON | code.identity << BPF_PYTHON_UNIT_BITS;
    return 1;
}
