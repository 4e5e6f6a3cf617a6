// SPDX-License-Identifier: Apache-2.0
// From allocations to a heap profile: see heap.h.

#include "capture/heap/heap.h"

#include <string.h>

#include "base/memory.h"
#include "capture/record/vocabulary.h"

void heap_init(struct heap *heap, struct recorder *recorder)
{
    *heap = (struct heap){.recorder = recorder};
    heap_live_init(&heap->live, HEAP_LIVE_MAX, HEAP_LIVE_PROCESS_MAX);
}

void heap_release(struct heap *heap)
{
    heap_live_release(&heap->live);
}

static unsigned add_type(struct profile *profile, const char *type, const char *unit)
{
    return profile_type(profile, profile_cstring(profile, type), profile_cstring(profile, unit));
}

/* The profile that samples go to may be another than the last time. Stacks of live allocations are
 * ids of it, so these begin anew with it. */
static void follow_profile(struct heap *heap)
{
    struct profile *profile = heap->recorder->profile;
    if (heap->epoch == heap->recorder->epoch)
        return;
    heap->epoch = heap->recorder->epoch;
    heap->settled = false;
    heap->alloc_objects = add_type(profile, "alloc_objects", "count");
    heap->alloc_space = add_type(profile, "alloc_space", "bytes");
    heap->inuse_objects = add_type(profile, "inuse_objects", "count");
    heap->inuse_space = add_type(profile, "inuse_space", "bytes");
    profile->default_type = profile_cstring(profile, "inuse_space");
    heap_live_release(&heap->live);
    heap_live_init(&heap->live, HEAP_LIVE_MAX, HEAP_LIVE_PROCESS_MAX);
}

/* A sample of small allocations stands for thousands and a fraction: fractions are carried over. */
static int64_t objects(const struct heap_alloc *alloc, double *rest)
{
    double exact = (alloc->size ? (double)alloc->weight / (double)alloc->size : 1) + *rest;
    if (!(exact < 9e18)) /* whoever wrote it can't mean it */
        return 0;
    int64_t whole = (int64_t)exact;
    *rest = exact - (double)whole;
    return whole;
}

static bool is_library_frame(const struct profile *profile, uint32_t frame_id)
{
    const struct profile_frame *frame = &profile->frames[frame_id];
    if (!frame->mapping)
        return false;
    const char *file = profile_text(profile, profile->mappings[frame->mapping].file);
    const char *slash = strrchr(file, '/');
    return strcmp(slash ? slash + 1 : file, HEAP_LIBRARY) == 0;
}

size_t heap_caller_count(const struct recorder *recorder, const uint32_t *frames, size_t count)
{
    while (count && is_library_frame(recorder->profile, frames[count - 1]))
        count--;
    return count;
}

void heap_take_alloc(struct heap *heap, const struct recorder_sample *sample,
                     const struct heap_alloc *alloc)
{
    struct recorder *recorder = heap->recorder;
    struct profile *profile = recorder->profile;
    if (!profile)
        return;
    follow_profile(heap);
    uint32_t labels = recorder_labels(recorder, sample);
    if (labels == CAPTURE_UNWANTED) {
        recorder->unwanted++;
        return;
    }
    heap->allocs++;
    recorder->samples++;
    uint32_t stack = profile_stack(profile, sample->frames, sample->frame_count);
    size_t row =
        profile_sample(profile, stack, labels, 0, sample->time_ns + (uint64_t)recorder->epoch_ns);
    profile_add_value(profile, row, heap->alloc_objects, objects(alloc, &heap->alloc_rest));
    profile_add_value(profile, row, heap->alloc_space, (int64_t)MIN(alloc->weight, INT64_MAX));
    heap_live_add(&heap->live, &(struct heap_live_entry){.pointer = alloc->pointer,
                                                         .size = alloc->size,
                                                         .weight = alloc->weight,
                                                         .time_ns = sample->time_ns,
                                                         .pid = sample->pid,
                                                         .stack = stack,
                                                         .labels = labels});
}

void heap_take_free(struct heap *heap, uint32_t pid, uint64_t pointer)
{
    heap->frees++;
    /* Allocated before the recording, or inherited from a parent. */
    if (!heap_live_remove(&heap->live, pid, pointer))
        heap->live.unknown_frees++;
}

void heap_take_exec(struct heap *heap, uint32_t pid)
{
    heap_live_forget(&heap->live, pid);
}

void heap_settle(struct heap *heap)
{
    struct profile *profile = heap->recorder->profile;
    const struct heap_live_entry *entry;
    size_t at = 0;
    if (!profile)
        return;
    follow_profile(heap);
    if (heap->settled)
        return;
    heap->settled = true;
    while ((entry = heap_live_next(&heap->live, &at))) {
        struct heap_alloc alloc = {.size = entry->size, .weight = entry->weight};
        size_t row = profile_sample(profile, entry->stack, entry->labels, 0, 0);
        profile_add_value(profile, row, heap->inuse_objects, objects(&alloc, &heap->inuse_rest));
        profile_add_value(profile, row, heap->inuse_space, (int64_t)MIN(entry->weight, INT64_MAX));
    }
}
