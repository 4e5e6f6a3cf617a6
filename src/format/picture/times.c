// SPDX-License-Identifier: Apache-2.0
// When samples were taken: see times.h.

#include "format/picture/times.h"

#include <string.h>

#include "base/memory.h"
#include "profile/level.h"

#define NO_STATE (-1)

void flame_times_init(struct flame_times *times, struct calltree *tree,
                      const struct profile *profile, unsigned type)
{
    struct error ignored = {0};
    *times = (struct flame_times){0};
    if (!profile->samples.time_ns || profile->samples.count > FLAME_TIMES_MAX ||
        type >= profile->type_count ||
        level_is_sample_type(profile_text(profile, profile->types[type].type)) ||
        timeline_init(&times->timeline, profile, (int)type, &ignored) < 0 || !times->timeline.timed)
        return;
    const struct timeline *timeline = &times->timeline;
    uint32_t *nodes = memory_zalloc(timeline->sample_count + 1, sizeof(*nodes));
    for (size_t i = 0; i < timeline->sample_count; i++)
        nodes[i] = timeline->samples[i].node;
    calltree_follow(tree, profile, nodes, timeline->sample_count);
    times->there = true;
}

void flame_times_release(struct flame_times *times)
{
    timeline_release(&times->timeline);
}

static void write_threads(struct json_writer *json, const struct timeline *timeline)
{
    const struct profile *profile = timeline->profile;
    json_write_key(json, "threads");
    json_write_array(json);
    /* Threads without samples of this type are left out; samples come thread by thread. */
    for (size_t i = 0; i < timeline->thread_count && buffer_pass(json->out); i++) {
        const struct timeline_thread *thread = &timeline->threads[i];
        if (!thread->count)
            continue;
        json_write_object(json);
        json_member_text(json, "name", profile_text(profile, thread->name));
        json_member_text(json, "process", profile_text(profile, thread->process_name));
        json_member_signed(json, "pid", thread->pid);
        json_member_signed(json, "tid", thread->tid);
        json_member_unsigned(json, "samples", thread->count);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

/* Microseconds since the sample before in the thread, or since the start. */
static void write_after(struct json_writer *json, const struct timeline *timeline)
{
    int64_t before_us = 0;
    json_write_key(json, "after");
    json_write_array(json);
    for (size_t i = 0; i < timeline->sample_count && buffer_pass(json->out); i++) {
        const struct timeline_sample *sample = &timeline->samples[i];
        int64_t at_us = sample->time_ns / 1000;
        if (!i || sample->thread != timeline->samples[i - 1].thread)
            before_us = 0;
        json_write_signed(json, at_us - before_us);
        before_us = at_us;
    }
    json_write_array_end(json);
}

/* Each label set's place in `states`. */
static int *states_of(const struct calltree *tree, const struct profile *profile)
{
    uint32_t sets = profile_label_set_count(profile);
    int *states = memory_zalloc(sets + 1u, sizeof(*states));
    unsigned first = 0;
    while (first < tree->type_count && !tree->types[first].is_state)
        first++;
    for (uint32_t set = 0; set < sets; set++) {
        size_t count;
        const struct profile_label *labels = profile_labels(profile, set, &count);
        states[set] = NO_STATE;
        for (size_t i = 0; i < count; i++) {
            if (strcmp(profile_text(profile, labels[i].key), CALLTREE_STATE_LABEL) != 0)
                continue;
            for (unsigned type = first; type < tree->type_count; type++)
                if (!strcmp(tree->types[type].name, profile_text(profile, labels[i].text)))
                    states[set] = (int)(type - first);
        }
    }
    return states;
}

static void write_states(struct json_writer *json, const struct calltree *tree,
                         const struct timeline *timeline)
{
    if (!tree->type_count || !tree->types[tree->type_count - 1].is_state)
        return;
    _cleanup_free_ int *states = states_of(tree, timeline->profile);
    json_write_key(json, "state");
    json_write_array(json);
    for (size_t i = 0; i < timeline->sample_count && buffer_pass(json->out); i++)
        json_write_signed(json, states[timeline->samples[i].labels]);
    json_write_array_end(json);
}

void flame_times_write(struct json_writer *json, const struct calltree *tree,
                       const struct flame_times *times)
{
    const struct timeline *timeline = &times->timeline;
    if (!times->there)
        return;
    json_write_line(json);
    json_write_key(json, "times");
    json_write_object(json);
    json_write_key(json, "start");
    json_write_digits(json, (double)timeline->start_ns / 1e9, 16);
    write_threads(json, timeline);
    json_write_key(json, "node");
    json_write_array(json);
    for (size_t i = 0; i < timeline->sample_count && buffer_pass(json->out); i++)
        json_write_unsigned(json, tree->followed[i]);
    json_write_array_end(json);
    write_after(json, timeline);
    json_write_key(json, "value");
    json_write_array(json);
    for (size_t i = 0; i < timeline->sample_count && buffer_pass(json->out); i++)
        json_write_signed(json, timeline->samples[i].value);
    json_write_array_end(json);
    write_states(json, tree, timeline);
    json_write_object_end(json);
}
