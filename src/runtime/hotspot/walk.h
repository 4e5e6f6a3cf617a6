/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of HotSpot in a walk in user space, by the same steps as the walk in the kernel
 * (bpf/runtimes/hotspot.bpf.h): for stacks that were copied, and threads that are stopped. The code
 * cache is read from the process, the stack from the copy.
 */
#pragma once

#include "elf/unwind/unwind.h"
#include "runtime/hotspot/codes.h"

/* A step that the walk has taken: what its frame is. */
struct hotspot_step {
    struct hotspot_mark mark;
    uint32_t unit;
    bool hidden; /* where native code calls Java */
};

struct hotspot_walk {
    const struct hotspot_process *machine;
    struct runtime_memory memory;
    struct hotspot_step *steps; /* innermost first, one for each UNWIND_FRAME_RUNTIME */
    size_t count, capacity;
};

void hotspot_walk_release(struct hotspot_walk *walk);

/* An unwind_runtime_fn; the context is a struct hotspot_walk. */
int hotspot_walk_step(void *context, unwind_read_fn read, void *read_context, bool exact,
                      struct unwind_registers *registers);

/* The identity that user space gives the code that it meets itself. */
uint64_t hotspot_mark_identity(uint32_t pid, const struct hotspot_mark *mark);
