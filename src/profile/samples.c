// SPDX-License-Identifier: Apache-2.0
// The model's rows and sample types: finding or adding a row, adding a type's column, merging.

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/text.h"
#include "profile/tables.h"
#include "profile/unresolved.h"

unsigned profile_type(struct profile *profile, uint32_t type, uint32_t unit)
{
    for (unsigned i = 0; i < profile->type_count; i++)
        if (profile->types[i].type == type && profile->types[i].unit == unit)
            return i;
    if (profile->type_count == PROFILE_TYPES_MAX)
        return PROFILE_TYPES_MAX;
    array_reserve(profile->types, profile->tables->type_capacity, profile->type_count + 1u);
    profile->types[profile->type_count] = (struct profile_type){.type = type, .unit = unit};
    profile->samples.values[profile->type_count] =
        memory_zalloc(profile->samples.capacity, sizeof(int64_t));
    return profile->type_count++;
}

unsigned profile_default_type(const struct profile *profile)
{
    if (profile->default_type)
        for (unsigned i = 0; i < profile->type_count; i++)
            if (profile->types[i].type == profile->default_type)
                return i;
    return profile->type_count ? profile->type_count - 1 : 0;
}

unsigned profile_find_type(const struct profile *profile, const char *name)
{
    /* Names of types may hold slashes themselves ("cpu_core/cycles/" of perf). */
    for (unsigned i = 0; i < profile->type_count; i++) {
        const struct profile_string *type = &profile->strings[profile->types[i].type];
        if (strlen(name) < type->length || memcmp(name, type->data, type->length))
            continue;
        const char *rest = name + type->length;
        if (!*rest ||
            (*rest == '/' && !strcmp(rest + 1, profile_text(profile, profile->types[i].unit))))
            return i;
    }
    uint64_t index;
    if (text_to_u64(name, strlen(name), &index) && index < profile->type_count)
        return (unsigned)index;
    return PROFILE_TYPES_MAX;
}

static void make_room(struct profile *profile, size_t capacity)
{
    struct profile_samples *samples = &profile->samples;
    samples->node = memory_resize(samples->node, capacity, sizeof(*samples->node));
    samples->labels = memory_resize(samples->labels, capacity, sizeof(*samples->labels));
    if (samples->link)
        samples->link = memory_resize(samples->link, capacity, sizeof(*samples->link));
    if (samples->time_ns)
        samples->time_ns = memory_resize(samples->time_ns, capacity, sizeof(*samples->time_ns));
    for (unsigned i = 0; i < profile->type_count; i++)
        samples->values[i] = memory_resize(samples->values[i], capacity, sizeof(int64_t));
    /* A column that a type adds later starts as all zeroes up to the capacity. */
    for (unsigned i = 0; i < profile->type_count; i++)
        memset(samples->values[i] + samples->capacity, 0,
               (capacity - samples->capacity) * sizeof(int64_t));
    samples->capacity = capacity;
}

static size_t add_row(struct profile *profile, uint32_t node, uint32_t labels, uint32_t link,
                      uint64_t time_ns)
{
    struct profile_samples *samples = &profile->samples;
    if (samples->count == samples->capacity)
        make_room(profile, samples->capacity ? samples->capacity + samples->capacity / 2 : 64);
    if (link && !samples->link)
        samples->link = memory_zalloc(samples->capacity, sizeof(*samples->link));
    if (time_ns && !samples->time_ns)
        samples->time_ns = memory_zalloc(samples->capacity, sizeof(*samples->time_ns));
    size_t row = samples->count++;
    samples->node[row] = node;
    samples->labels[row] = labels;
    if (samples->link)
        samples->link[row] = link;
    if (samples->time_ns)
        samples->time_ns[row] = time_ns;
    return row;
}

size_t profile_sample(struct profile *profile, uint32_t node, uint32_t labels, uint32_t link,
                      uint64_t time_ns)
{
    struct profile_samples *samples = &profile->samples;
    struct id_table *index = &profile->tables->sample_index;
    if (time_ns && profile->detail & PROFILE_TIMES)
        return add_row(profile, node, labels, link, time_ns);
    uint64_t hash =
        hash_word(hash_word(((uint64_t)node << 32 | labels) ^ profile->tables->seed) + link);
    struct id_probe probe = id_probe_start(hash);
    uint32_t row;
    while ((row = id_table_next(index, &probe)) != ID_NONE)
        if (samples->node[row] == node && samples->labels[row] == labels &&
            (samples->link ? samples->link[row] : 0) == link)
            return row;
    row = (uint32_t)add_row(profile, node, labels, link, 0);
    id_table_insert(index, hash, row);
    return row;
}

void profile_reserve_rows(struct profile *profile, size_t count)
{
    if (profile->samples.capacity < count)
        make_room(profile, count);
}

size_t profile_append_sample(struct profile *profile, uint32_t stack, uint32_t labels,
                             uint32_t link)
{
    return add_row(profile, stack, labels, link, 0);
}
