/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of a thread that is stopped, by the same steps as the walk in the kernel
 * (bpf/runtimes/python.bpf.h): first the chain is read, call by call of the evaluation function,
 * while the thread is stopped; later each native frame of that function takes the frames of its
 * call.
 */
#pragma once

#include "runtime/python/code.h"

#define PYTHON_CHAIN_MAX 4096

struct python_frame {
    struct runtime_mark mark;
    uint32_t unit;  /* the instruction, as in bpf/runtimes/runtime.h */
    bool last;      /* the outermost frame of its call */
    uint64_t place; /* of the last: something of the call on the C stack; 0: nothing is known */
};

struct python_chain {
    struct python_frame *frames; /* innermost first; free() */
    size_t count;
    bool broken; /* it goes on, and can't be read: the last frame stands for that, without a mark */
    size_t next; /* of the frames that have not been taken */
};

/* Of a thread that doesn't run, by its thread pointer. */
void python_chain_read(const struct python_process *python, const struct runtime_memory *memory,
                       uint64_t thread_pointer, struct python_chain *ret_chain);

/* The frames of the next call, which has [low, high) of the C stack: their number from chain->next
 * on. 0: a call without frames. Innermost calls first. */
size_t python_chain_take(struct python_chain *chain, uint64_t low, uint64_t high,
                         const struct python_frame **ret_frames);
