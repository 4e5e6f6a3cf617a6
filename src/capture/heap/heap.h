/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heap profiles: sampled allocations and their releases, from whichever source, become
 * alloc_objects/count, alloc_space/bytes, inuse_objects/count and inuse_space/bytes of the
 * recorder's profile. The first two are flows, added as they come; the others are what is live when
 * heap_settle is called. Live allocations stay from one profile to the next. One thread at a time.
 */
#pragma once

#include "capture/heap/kept.h"
#include "capture/heap/live.h"
#include "capture/record/recorder.h"

struct heap {
    struct recorder *recorder;
    struct heap_live live;
    struct kept kept; /* stacks and labels of live sites */
    bool forgets;     /* what ended processes held doesn't count any more: an agent's */
    uint32_t epoch;   /* of the recorder's profile that the ids below are of */
    bool settled;     /* what is live has been added to it */
    unsigned alloc_objects, alloc_space, inuse_objects, inuse_space;
    double alloc_rest, inuse_rest; /* of objects: samples stand for fractions of one */
    uint64_t allocs, frees;        /* events */
    uint32_t sites_left;           /* after those that hold nothing went the last time */
    uint64_t forgotten;            /* processes whose live memory was given up: heap_distrust */
};

void heap_init(struct heap *heap, struct recorder *recorder);
void heap_release(struct heap *heap);

#define HEAP_LIBRARY "libassay_heap.so"
/* How many of the frames, outermost first, are callers of the allocator: without the library's own.
 */
size_t heap_caller_count(const struct recorder *recorder, const uint32_t *frames, size_t count);

struct heap_alloc {
    uint64_t pointer, size;
    uint64_t weight;   /* bytes that it stands for */
    uint64_t identity; /* of the process and its program, where the source knows it; or 0 */
};
/* `sample` has the stack of the call, without the allocator's own frames. */
void heap_take_alloc(struct heap *heap, const struct recorder_sample *sample,
                     const struct heap_alloc *alloc);
void heap_take_free(struct heap *heap, uint32_t pid, uint64_t pointer);
/* The process's memory is gone: it runs another program. */
void heap_take_exec(struct heap *heap, uint32_t pid);

/* Releases of the process were lost: what it holds is not known any more, and begins anew. */
void heap_distrust(struct heap *heap, uint32_t pid);
/* Nothing is seen for a while: nothing that is live now is known to be later. */
void heap_forget_all(struct heap *heap);

/* Adds what is live now to the profile, once for each profile. */
void heap_settle(struct heap *heap);
