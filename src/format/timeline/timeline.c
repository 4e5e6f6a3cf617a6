// SPDX-License-Identifier: Apache-2.0
// From rows to threads and their samples in the order of time: see timeline.h.

#include "format/timeline/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define THREADS_MAX 65536

void timeline_release(struct timeline *timeline)
{
    naming_release(&timeline->naming);
    free(timeline->threads);
    free(timeline->samples);
}

/* A label's number, whichever way it was written down. */
static int64_t number_of(const struct profile *profile, const struct profile_label *label)
{
    if (!label->text)
        return label->number;
    int64_t value = 0;
    for (const char *at = profile_text(profile, label->text); *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *at - '0', &value))
            return 0;
    return value;
}

static struct timeline_thread describe(const struct profile *profile, uint32_t set)
{
    struct timeline_thread thread = {0};
    size_t count;
    const struct profile_label *labels = profile_labels(profile, set, &count);
    uint32_t command = 0;
    for (size_t i = 0; i < count; i++) {
        const char *key = profile_text(profile, labels[i].key);
        if (!strcmp(key, "pid") || !strcmp(key, "process_id") || !strcmp(key, "process.pid"))
            thread.pid = number_of(profile, &labels[i]);
        else if (!strcmp(key, "tid") || !strcmp(key, "thread_id") || !strcmp(key, "thread.id"))
            thread.tid = number_of(profile, &labels[i]);
        else if (!strcmp(key, "thread") || !strcmp(key, "thread.name"))
            thread.name = labels[i].text;
        else if (!strcmp(key, "process") || !strcmp(key, "process.executable.name"))
            thread.process_name = labels[i].text;
        else if (!strcmp(key, "comm"))
            command = labels[i].text;
    }
    if (!thread.name)
        thread.name = command;
    return thread;
}

/* Threads with an id are what it says, whatever they are called at the time. */
static bool is_same(const struct timeline_thread *a, const struct timeline_thread *b)
{
    if (a->pid != b->pid || a->tid != b->tid)
        return false;
    return a->tid || (a->name == b->name && a->process_name == b->process_name);
}

static int find_threads(struct timeline *timeline, uint32_t *thread_of, struct error *error)
{
    const struct profile *profile = timeline->profile;
    struct id_table index = {0};
    int r = 0;
    for (uint32_t set = 0; set < profile_label_set_count(profile) && !r; set++) {
        struct timeline_thread thread = describe(profile, set);
        uint64_t hash = hash_word((uint64_t)thread.pid ^ hash_word((uint64_t)thread.tid));
        if (!thread.tid)
            hash ^= hash_word((uint64_t)thread.name << 32 | thread.process_name);
        struct id_probe probe = id_probe_start(hash);
        uint32_t found;
        while ((found = id_table_next(&index, &probe)) != ID_NONE)
            if (is_same(&timeline->threads[found], &thread))
                break;
        if (found == ID_NONE) {
            if (timeline->thread_count == THREADS_MAX) {
                r = error_set(error, -E2BIG, "The profile has more than %d threads.", THREADS_MAX);
                break;
            }
            array_reserve(timeline->threads, timeline->thread_capacity, timeline->thread_count + 1);
            found = (uint32_t)timeline->thread_count++;
            timeline->threads[found] = thread;
            id_table_insert(&index, hash, found);
        }
        thread_of[set] = found;
    }
    id_table_release(&index);
    return r;
}

static int compare_samples(const void *left, const void *right)
{
    const struct timeline_sample *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

static void collect(struct timeline *timeline, const uint32_t *thread_of)
{
    const struct profile_samples *rows = &timeline->profile->samples;
    uint64_t earliest = UINT64_MAX;
    timeline->samples = memory_zalloc(rows->count + 1, sizeof(*timeline->samples));
    for (size_t i = 0; i < rows->count; i++) {
        int64_t value = rows->values[timeline->type][i];
        if (value <= 0)
            continue;
        uint64_t time = rows->time_ns ? MIN(rows->time_ns[i], (uint64_t)INT64_MAX) : 0;
        if (time)
            earliest = MIN(earliest, time);
        timeline->samples[timeline->sample_count++] =
            (struct timeline_sample){.thread = thread_of[rows->labels[i]],
                                     .node = rows->node[i],
                                     .labels = rows->labels[i],
                                     .time_ns = (int64_t)time,
                                     .value = value};
    }
    timeline->timed = earliest != UINT64_MAX;
    timeline->start_ns = timeline->timed ? (int64_t)earliest : timeline->profile->time_ns;
    for (size_t i = 0; i < timeline->sample_count && timeline->timed; i++)
        if (timeline->samples[i].time_ns)
            timeline->samples[i].time_ns -= timeline->start_ns;
    if (timeline->sample_count)
        qsort(timeline->samples, timeline->sample_count, sizeof(*timeline->samples),
              compare_samples);
}

/* A value that is an amount of time lasts as long, anything else a millisecond. */
static int64_t length_of(const struct timeline *timeline, const struct timeline_sample *sample)
{
    return strcmp(timeline_unit(timeline), "nanoseconds") ? 1000000 : sample->value;
}

static void fill_threads(struct timeline *timeline)
{
    struct timeline_sample *samples = timeline->samples;
    int64_t now = 0;
    for (size_t i = 0; i < timeline->sample_count; i++) {
        struct timeline_thread *thread = &timeline->threads[samples[i].thread];
        if (!thread->count)
            thread->first = i, now = 0;
        thread->count++;
        if (!timeline->timed)
            samples[i].time_ns = now;
        now = add_saturated(now, length_of(timeline, &samples[i]));
    }
    for (size_t i = 0; i < timeline->sample_count; i++) {
        bool last = i + 1 == timeline->sample_count || samples[i + 1].thread != samples[i].thread;
        samples[i].until_ns =
            last ? add_saturated(samples[i].time_ns, length_of(timeline, &samples[i]))
                 : samples[i + 1].time_ns;
    }
}

int timeline_init(struct timeline *timeline, const struct profile *profile, int type,
                  struct error *error)
{
    *timeline = (struct timeline){.profile = profile};
    timeline->type = type >= 0 ? (unsigned)type : profile_default_type(profile);
    if (timeline->type >= profile->type_count)
        return error_set(error, -EINVAL, "The profile has no samples.");
    naming_init(&timeline->naming, profile);
    _cleanup_free_ uint32_t *thread_of =
        memory_zalloc((size_t)profile_label_set_count(profile) + 1, sizeof(*thread_of));
    int r = find_threads(timeline, thread_of, error);
    if (r < 0)
        return r;
    collect(timeline, thread_of);
    fill_threads(timeline);
    return 0;
}
