/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JavaScript functions of a thread that is stopped. Frames of JavaScript have a frame pointer, and
 * their context and function at fixed distances from it: they are recognised in a copy of the
 * stack, and their functions read before the thread goes on and the garbage collector moves them.
 * The native walk says later which of them are frames.
 */
#pragma once

#include "runtime/codes.h"
#include "runtime/v8/binary.h"

#define V8_FRAMES_MAX 4096 /* of one stack */

struct v8_frame {
    struct runtime_mark mark;
    uint64_t fp; /* the frame pointer */
};

struct v8_frames {
    struct v8_frame *list; /* by fp; free() */
    size_t count;
};

/* `stack` is the copy of `bytes` bytes from the address `sp` on. */
void v8_frames_read(const struct v8_binary *binary, const struct runtime_memory *memory,
                    uint64_t sp, const uint8_t *stack, size_t bytes, struct v8_frames *ret_frames);

/* The frame with this frame pointer; NULL: it isn't one of JavaScript. */
const struct v8_frame *v8_frames_find(const struct v8_frames *frames, uint64_t fp);
