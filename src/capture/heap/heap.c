// SPDX-License-Identifier: Apache-2.0
// From allocations to a heap profile: see heap.h.

#include "capture/heap/heap.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "capture/record/vocabulary.h"

#define LABELS_MAX 64                     /* of one row */
#define SITES_MIN 512                     /* that are worth a look for those that hold nothing */
#define KEPT_BYTES_MAX ((size_t)24 << 20) /* of stacks and labels that live sites have */

void heap_init(struct heap *heap, struct recorder *recorder)
{
    *heap = (struct heap){.recorder = recorder};
    heap_live_init(&heap->live, HEAP_LIVE_MAX, HEAP_LIVE_PROCESS_MAX);
    kept_init(&heap->kept);
}

void heap_release(struct heap *heap)
{
    heap_live_release(&heap->live);
    kept_release(&heap->kept);
}

static unsigned add_type(struct profile *profile, const char *type, const char *unit)
{
    return profile_type(profile, profile_cstring(profile, type), profile_cstring(profile, unit));
}

/* The profile that samples go to may be another than the last time. */
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
    if (heap->recorder->no_cpu)
        profile->default_type = profile_cstring(profile, "inuse_space");
}

/* How many allocations a sample stands for: small ones for thousands and a fraction. */
static double exact_objects(const struct heap_alloc *alloc)
{
    double exact = alloc->size ? (double)alloc->weight / (double)alloc->size : 1;
    return exact < 9e18 ? exact : 0; /* whoever wrote it can't mean it */
}

/* Fractions are carried over. */
static int64_t whole_objects(double exact, double *rest)
{
    exact += *rest;
    int64_t whole = exact > 0 && exact < 9e18 ? (int64_t)exact : 0;
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

/* ---- what is live ---- */

/* Stacks of sites that hold nothing any more go. */
static void compact(struct heap *heap)
{
    struct kept before = heap->kept;
    struct heap_live *live = &heap->live;
    heap_live_compact(live);
    kept_init(&heap->kept);
    for (uint32_t i = 0; i < live->site_count; i++) {
        struct heap_live_site *site = &live->sites[i];
        site->stack = kept_stack_out(&before, &heap->kept.profile, site->stack);
        site->labels = kept_labels_out(&before, &heap->kept.profile, site->labels);
    }
    heap_live_reindex(live);
    heap->sites_left = live->site_count;
    kept_release(&before);
}

/* The process of an allocation. Another one or another program under its pid begins anew. */
static uint32_t take_process(struct heap *heap, uint32_t pid, uint64_t identity)
{
    struct heap_live *live = &heap->live;
    const struct process *seen = processes_find(&heap->recorder->processes, pid);
    uint32_t id = heap_live_process(live, pid);
    if (id != HEAP_LIVE_NONE && live->processes[id].identity != identity) {
        heap_live_forget(live, id);
        id = heap_live_process(live, pid);
    }
    if (id == HEAP_LIVE_NONE)
        return id;
    live->processes[id].identity = identity;
    live->processes[id].number = seen ? seen->number : 0;
    return id;
}

static void add_live(struct heap *heap, const struct recorder_sample *sample,
                     const struct heap_alloc *alloc, uint32_t labels)
{
    struct profile *profile = heap->recorder->profile;
    uint32_t process = take_process(heap, sample->pid, alloc->identity);
    if (profile_memory(&heap->kept.profile) > KEPT_BYTES_MAX &&
        heap->live.site_count / 2 > heap->sites_left + SITES_MIN)
        compact(heap);
    uint32_t site = HEAP_LIVE_NONE;
    if (process != HEAP_LIVE_NONE && profile_memory(&heap->kept.profile) <= KEPT_BYTES_MAX)
        site =
            heap_live_site(&heap->live, process,
                           kept_stack_in(&heap->kept, profile, sample->frames, sample->frame_count),
                           kept_labels_in(&heap->kept, profile, labels));
    if (site == HEAP_LIVE_NONE)
        heap_live_refuse(&heap->live, process, alloc->weight);
    else
        heap_live_add(&heap->live, site,
                      &(struct heap_live_sample){.pointer = alloc->pointer,
                                                 .weight = alloc->weight,
                                                 .objects = exact_objects(alloc),
                                                 .time_ns = (int64_t)sample->time_ns});
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
    size_t row = profile_sample(profile, stack, labels, sample->context ? sample->context->link : 0,
                                sample->time_ns + (uint64_t)recorder->epoch_ns);
    profile_add_value(profile, row, heap->alloc_objects,
                      whole_objects(exact_objects(alloc), &heap->alloc_rest));
    profile_add_value(profile, row, heap->alloc_space, (int64_t)MIN(alloc->weight, INT64_MAX));
    add_live(heap, sample, alloc, labels);
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
    uint32_t process = heap_live_find_process(&heap->live, pid);
    if (process != HEAP_LIVE_NONE)
        heap_live_forget(&heap->live, process);
}

void heap_distrust(struct heap *heap, uint32_t pid)
{
    uint32_t process = heap_live_find_process(&heap->live, pid);
    if (process == HEAP_LIVE_NONE)
        return;
    heap->forgotten++;
    heap_live_forget(&heap->live, process);
}

void heap_forget_all(struct heap *heap)
{
    for (uint32_t i = 0; i < heap->live.process_count; i++)
        if (heap->live.processes[i].pid)
            heap_live_forget(&heap->live, i);
}

/* Processes that have ended, or run other programs. */
static void forget_ended(struct heap *heap)
{
    struct heap_live *live = &heap->live;
    for (uint32_t i = 0; i < live->process_count; i++) {
        struct heap_live_process *process = &live->processes[i];
        if (!process->pid)
            continue;
        const struct process *seen = processes_find(&heap->recorder->processes, process->pid);
        if (!seen || seen->number != process->number)
            heap_live_forget(live, i);
    }
}

static uint32_t labels_of(struct heap *heap, const struct heap_live_site *site)
{
    struct recorder *recorder = heap->recorder;
    uint32_t pid = heap->live.processes[site->process].pid;
    if (!heap->forgets)
        return kept_labels_out(&heap->kept, recorder->profile, site->labels);
    /* As they are now, and as the process's other samples have them. */
    return recorder_labels(recorder, &(struct recorder_sample){.pid = pid, .tid = pid, .comm = ""});
}

/* ---- by age ---- */

/* Of a recording: what is live for long stands out from what is live at any moment. */
static const struct {
    const char *name;
    int64_t below_ns;
} ages[] = {
    {"0-1s", 1000000000ll},     {"1s-10s", 10000000000ll},   {"10s-1m", 60000000000ll},
    {"1m-10m", 600000000000ll}, {"10m-1h", 3600000000000ll}, {"1h+", INT64_MAX},
};
struct held {
    uint64_t bytes;
    double objects;
};

static size_t age_of(int64_t passed_ns)
{
    size_t age = 0;
    while (age + 1 < ARRAY_LENGTH(ages) && passed_ns >= ages[age].below_ns)
        age++;
    return age;
}

static uint32_t with_age(struct profile *profile, uint32_t set, size_t age)
{
    struct profile_label list[LABELS_MAX];
    size_t count = 0;
    const struct profile_label *own = profile_labels(profile, set, &count);
    count = MIN(count, (size_t)LABELS_MAX - 1);
    memcpy(list, own, count * sizeof(*own));
    list[count++] = (struct profile_label){.key = profile_cstring(profile, "age"),
                                           .text = profile_cstring(profile, ages[age].name)};
    return profile_label_set(profile, list, count);
}

static void add_held(struct heap *heap, uint32_t stack, uint32_t labels, uint64_t bytes,
                     double objects)
{
    struct profile *profile = heap->recorder->profile;
    size_t row = profile_sample(profile, stack, labels, 0, 0);
    profile_add_value(profile, row, heap->inuse_objects, whole_objects(objects, &heap->inuse_rest));
    profile_add_value(profile, row, heap->inuse_space, (int64_t)MIN(bytes, (uint64_t)INT64_MAX));
}

static void settle_by_age(struct heap *heap)
{
    const struct heap_live *live = &heap->live;
    struct profile *profile = heap->recorder->profile;
    int64_t now_ns = monotonic_ns();
    size_t at = 0;
    const struct heap_live_entry *entry;
    struct held(*held)[ARRAY_LENGTH(ages)] =
        memory_zalloc(MAX(live->site_count, 1u), sizeof(*held));
    while ((entry = heap_live_next(live, &at))) {
        struct held *sum = &held[entry->site][age_of(now_ns - heap_live_time_ns(live, entry))];
        sum->bytes += entry->weight;
        sum->objects += (double)entry->objects;
    }
    for (uint32_t i = 0; i < live->site_count; i++)
        for (size_t age = 0; live->sites[i].count && age < ARRAY_LENGTH(ages); age++)
            if (held[i][age].bytes)
                add_held(heap, kept_stack_out(&heap->kept, profile, live->sites[i].stack),
                         with_age(profile, labels_of(heap, &live->sites[i]), age),
                         held[i][age].bytes, held[i][age].objects);
    free(held);
}

void heap_settle(struct heap *heap)
{
    struct profile *profile = heap->recorder->profile;
    if (!profile)
        return;
    if (heap->forgets)
        forget_ended(heap);
    if (heap->forgets && !heap->live.used) /* an agent's profiles are of other things, too */
        return;
    follow_profile(heap);
    if (heap->settled)
        return;
    heap->settled = true;
    if (!heap->forgets) {
        settle_by_age(heap);
        return;
    }
    for (uint32_t i = 0; i < heap->live.site_count; i++) {
        const struct heap_live_site *site = &heap->live.sites[i];
        uint32_t labels = site->count ? labels_of(heap, site) : CAPTURE_UNWANTED;
        if (labels == CAPTURE_UNWANTED)
            continue;
        add_held(heap, kept_stack_out(&heap->kept, profile, site->stack), labels, site->bytes,
                 site->objects);
    }
}
