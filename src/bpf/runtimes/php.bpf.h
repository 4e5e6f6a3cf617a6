/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PHP's frames in a walk. The interpreter keeps its innermost call in a variable; calls lead to
 * their callers. A call of execute_ex() evaluates the calls up to one that is marked as its first.
 * Built-in functions are calls, too, which the next execute_ex() outside of them has.
 */
#pragma once

#include "bpf/shared.h"
#include "bpf/types.bpf.h"

#define PHP_CALL_FIRST (1u << 17)
#define PHP_INSTRUCTION_BYTES 32
#define PHP_INSTRUCTION_LINE 24

static __always_inline __u64 php_line(const struct bpf_php *php, const __u8 *function, __u64 at)
{
    __u64 first = field_of(function, php->function_instructions, BPF_PYTHON_CODE_BYTES);
    __u64 count = (__u32)field_of(function, php->function_last, BPF_PYTHON_CODE_BYTES);
    __u32 line = 0;
    /* While an exception is thrown, it is an instruction of no function. */
    if (at < first || at - first >= count * PHP_INSTRUCTION_BYTES ||
        bpf_probe_read_user(&line, sizeof(line), (void *)(at + PHP_INSTRUCTION_LINE)))
        return 0;
    return line > BPF_PYTHON_UNIT_MASK ? 0 : line;
}

/* 0: it can't be read. */
static __always_inline __u64 php_word(struct walk *walk, const struct bpf_php *php, __u64 function,
                                      __u64 instruction, __u32 *ret_type)
{
    __u8 *bytes = walk->evaluation.code;
    __u32 size = php->function_bytes;
    __u64 line = 0;
    KEEP(size);
    if (function < 4096 || bpf_probe_read_user(bytes, BPF_PHP_FUNCTION_BYTES, (void *)function))
        return 0;
    __u32 type = *ret_type = bytes[0];
    if (type != BPF_PHP_BUILT_IN && type != BPF_PHP_USER && type != BPF_PHP_EVALUATED)
        return 0;
    struct bpf_code_event code = {.kind = BPF_EVENT_CODE,
                                  .pid = bpf_get_current_pid_tgid() >> 32,
                                  .address = function,
                                  .name = *(const __u64 *)(bytes + 8),
                                  .lines = *(const __u64 *)(bytes + 16),
                                  .runtime = walk->runtime};
    if (type != BPF_PHP_BUILT_IN) {
        if (size > BPF_PYTHON_CODE_BYTES || bpf_probe_read_user(bytes, size, (void *)function))
            return 0;
        code.file = field_of(bytes, php->function_file, BPF_PYTHON_CODE_BYTES);
        code.first_line = (__u32)field_of(bytes, php->function_first_line, BPF_PYTHON_CODE_BYTES);
        line = php_line(php, bytes, instruction);
    }
    __u64 hash = mix(mix(code.pid, code.address), code.file);
    hash = mix(mix(mix(hash, code.name), code.lines), code.first_line);
    code.identity = hash & BPF_PYTHON_IDENTITY_MASK;
    if (!code.identity)
        return 0;
    send_code(&code, hash);
    return BPF_FRAME_PYTHON | code.identity << BPF_PYTHON_UNIT_BITS | line;
}

__noinline int php_step(struct walk *walk)
{
    if (!walk)
        return UNWIND_END_NO_TABLE;
    struct evaluation_walk *state = &walk->evaluation;
    const struct bpf_runtime *runtime = runtime_of(walk, BPF_RUNTIME_PHP);
    if (walk->count > BPF_FRAMES_MAX)
        return UNWIND_END_LIMIT;
    if (!runtime || state->state == EVALUATION_BROKEN)
        return evaluation_leave(walk);
    const struct bpf_php *php = &runtime->php;
    if (state->state == EVALUATION_UNSEEN) {
        if (load_word(php->current, &state->frame))
            return evaluation_fail(walk);
        state->state = EVALUATION_READY;
    }
    __u64 call = state->frame;
    if (!call)
        return evaluation_leave(walk);
    if (call < 4096 || bpf_probe_read_user(state->bytes, BPF_PHP_CALL_BYTES, (void *)call))
        return evaluation_fail(walk);
    const __u64 *words = (const __u64 *)state->bytes;
    __u64 instruction = words[0], function = words[3];
    __u32 flags = (__u32)words[5], type = BPF_PHP_BUILT_IN;
    state->frame = words[6];
    if (function) {
        __u64 word = php_word(walk, php, function, instruction, &type);
        if (!word)
            return evaluation_fail(walk);
        add_frame(walk, word);
    }
    return flags & PHP_CALL_FIRST && type != BPF_PHP_BUILT_IN ? evaluation_leave(walk) : STEP_DONE;
}
