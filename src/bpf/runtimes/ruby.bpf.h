/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ruby's frames in a walk. The thread's state is in a thread-local variable and has the innermost
 * control frame; control frames are an array, each caller behind its callee. A call of rb_vm_exec()
 * evaluates the frames up to one that is marked as its first. Frames of functions in C are native
 * frames, too, and are left to the native walk.
 */
#pragma once

#include "bpf/shared.h"
#include "bpf/types.bpf.h"

/* Of a thread's state, in words. */
enum { RUBY_STATE_STACK, RUBY_STATE_WORDS, RUBY_STATE_FRAME, RUBY_STATE_SIZE };
/* Of a control frame. */
enum { RUBY_FRAME_PC, RUBY_FRAME_CODE = 2, RUBY_FRAME_ENVIRONMENT = 4 };
/* Of the body of a sequence of instructions. */
enum { RUBY_CODE_INSTRUCTIONS = 1, RUBY_CODE_FILE = 8, RUBY_CODE_NAME = 10 };

#define RUBY_BODY 16 /* of a sequence: its body */
#define RUBY_STACK_WORDS_MAX (1u << 24)

/* The GNU layout of thread-local storage: a table of modules at the second word. */
static __always_inline int ruby_find_thread(struct walk *walk, const struct bpf_ruby *ruby)
{
    struct evaluation_walk *state = &walk->evaluation;
    __u64 words[RUBY_STATE_SIZE], base = THREAD_POINTER(bpf_get_current_task_btf()), thread;
    if (ruby->tls_module &&
        (load_word(base + 8, &base) || load_word(base + 16ull * ruby->tls_module, &base)))
        return -1;
    if (load_word(base + (__s64)ruby->tls_offset, &thread) || thread < 4096 ||
        bpf_probe_read_user(words, sizeof(words), (void *)thread))
        return -1;
    state->frame = words[RUBY_STATE_FRAME];
    walk->ruby.end = words[RUBY_STATE_STACK] + 8 * words[RUBY_STATE_WORDS];
    return words[RUBY_STATE_WORDS] > RUBY_STACK_WORDS_MAX ||
                   state->frame < words[RUBY_STATE_STACK] || state->frame > walk->ruby.end
               ? -1
               : 0;
}

/* 0: it can't be read. */
static __always_inline __u64 ruby_word(struct walk *walk, const struct bpf_ruby *ruby,
                                       __u64 address, __u64 pc)
{
    __u8 *bytes = walk->evaluation.code;
    const __u64 *words = (const __u64 *)bytes;
    __u64 body;
    if (load_word(address + RUBY_BODY, &body) || body < 4096 ||
        bpf_probe_read_user(bytes, BPF_RUBY_CODE_BYTES, (void *)body))
        return 0;
    struct bpf_code_event code = {
        .kind = BPF_EVENT_CODE,
        .pid = bpf_get_current_pid_tgid() >> 32,
        .address = address,
        .file = words[RUBY_CODE_FILE],
        .name = words[RUBY_CODE_NAME],
        .lines = body,
        .first_line = (__u32)field_of(bytes, ruby->code_first_line, BPF_RUBY_CODE_BYTES) >>
                      (ruby->first_line_shift & 1),
        .runtime = walk->runtime};
    __u64 hash = mix(mix(code.pid, code.address), code.file);
    hash = mix(mix(mix(hash, code.name), code.lines), code.first_line);
    code.identity = hash & BPF_PYTHON_IDENTITY_MASK;
    /* It is that of the next instruction, in words. */
    __u64 unit = (pc - words[RUBY_CODE_INSTRUCTIONS]) >> 3;
    if (!code.identity)
        return 0;
    send_code(&code, hash);
    return BPF_FRAME_PYTHON | code.identity << BPF_PYTHON_UNIT_BITS |
           (unit > BPF_PYTHON_UNIT_MASK ? BPF_PYTHON_UNIT_MASK : unit);
}

__noinline int ruby_step(struct walk *walk)
{
    if (!walk)
        return UNWIND_END_NO_TABLE;
    struct evaluation_walk *state = &walk->evaluation;
    const struct bpf_runtime *runtime = runtime_of(walk, BPF_RUNTIME_RUBY);
    if (walk->count > BPF_FRAMES_MAX)
        return UNWIND_END_LIMIT;
    if (!runtime || state->state == EVALUATION_BROKEN)
        return evaluation_leave(walk);
    const struct bpf_ruby *ruby = &runtime->ruby;
    if (state->state == EVALUATION_UNSEEN) {
        if (ruby_find_thread(walk, ruby))
            return evaluation_fail(walk);
        state->state = EVALUATION_READY;
    }
    __u64 frame = state->frame, flags;
    if (frame + ruby->frame_bytes >= walk->ruby.end)
        return evaluation_leave(walk);
    if (frame < 4096 || bpf_probe_read_user(state->bytes, BPF_RUBY_FRAME_BYTES, (void *)frame))
        return evaluation_fail(walk);
    const __u64 *words = (const __u64 *)state->bytes;
    __u64 pc = words[RUBY_FRAME_PC], code = words[RUBY_FRAME_CODE];
    if (load_word(words[RUBY_FRAME_ENVIRONMENT], &flags))
        return evaluation_fail(walk);
    state->frame = frame + ruby->frame_bytes;
    if (flags & BPF_RUBY_NATIVE)
        return STEP_DONE;
    if (pc && code) {
        __u64 word = ruby_word(walk, ruby, code, pc);
        if (!word)
            return evaluation_fail(walk);
        add_frame(walk, word);
    }
    return flags & BPF_RUBY_FINISH ? evaluation_leave(walk) : STEP_DONE;
}
