// SPDX-License-Identifier: Apache-2.0
// Labels by context: see jfr_labels.h. Both maps are lists sorted by number; a context's labels are
// decoded when the profile first needs them.

#include "format/jfr/labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/wire.h"

#define CONTEXT_LABELS_MAX 64

/* One entry of a map: a number and what it stands for, which lies in the message. */
struct entry {
    int64_t id;
    size_t order; /* of entries with one number the last counts */
    struct wire value;
    uint32_t string; /* of the profile, once it is needed; 0: not yet */
};

struct entries {
    struct entry *list;
    size_t count, capacity;
};

struct snapshot {
    struct entries contexts, strings;
};

static void snapshot_release(struct snapshot *snapshot)
{
    free(snapshot->contexts.list);
    free(snapshot->strings.list);
}

static int read_entry(struct wire wire, struct entry *ret_entry)
{
    struct wire_field field;
    int r;
    *ret_entry = (struct entry){0};
    while ((r = wire_next(&wire, &field)) > 0) {
        if (field.number == 1 && field.type == WIRE_VARINT)
            ret_entry->id = (int64_t)field.value;
        else if (field.number == 2 && field.type == WIRE_BYTES)
            ret_entry->value = wire_of_field(&field);
    }
    return r;
}

static int by_id(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void sort(struct entries *entries)
{
    size_t kept = 0;
    if (entries->count)
        qsort(entries->list, entries->count, sizeof(*entries->list), by_id);
    for (size_t i = 0; i < entries->count; i++)
        if (i + 1 == entries->count || entries->list[i].id != entries->list[i + 1].id)
            entries->list[kept++] = entries->list[i];
    entries->count = kept;
}

static struct entry *find(const struct entries *entries, int64_t id)
{
    size_t low = 0, high = entries->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (entries->list[middle].id == id)
            return &entries->list[middle];
        if (entries->list[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* The numbers of a label; proto3 leaves zeroes out. */
static int read_pair(struct wire wire, int64_t *ret_name, int64_t *ret_value)
{
    struct wire_field field;
    int r;
    *ret_name = *ret_value = 0;
    while ((r = wire_next(&wire, &field)) > 0)
        if (field.type == WIRE_VARINT && (field.number == 1 || field.number == 2))
            *(field.number == 1 ? ret_name : ret_value) = (int64_t)field.value;
    return r;
}

/* Everything that is read later, when nothing may fail any more. */
static int check_context(const struct entry *context, struct error *error)
{
    struct wire wire = context->value;
    struct wire_field field;
    size_t count = 0;
    int64_t name, value;
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        if (field.number != 1 || field.type != WIRE_BYTES)
            continue;
        if (++count > CONTEXT_LABELS_MAX)
            return error_set(error, -E2BIG, "A context of the labels has more than %d of them.",
                             CONTEXT_LABELS_MAX);
        if ((r = read_pair(wire_of_field(&field), &name, &value)) < 0)
            break;
    }
    return r < 0 ? error_set(error, -EBADMSG, "A context of the labels is malformed.") : 0;
}

static int read_snapshot(struct snapshot *snapshot, const void *data, size_t length,
                         struct error *error)
{
    struct wire wire = wire_of(data, length);
    struct wire_field field;
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        if (field.type != WIRE_BYTES || field.number > 2)
            continue;
        struct entries *to = field.number == 1 ? &snapshot->contexts : &snapshot->strings;
        array_reserve(to->list, to->capacity, to->count + 1);
        struct entry *entry = &to->list[to->count];
        if ((r = read_entry(wire_of_field(&field), entry)) < 0)
            break;
        entry->order = to->count++;
    }
    if (r < 0)
        return error_set(error, -EBADMSG, "The labels of the recording are malformed.");
    sort(&snapshot->contexts);
    sort(&snapshot->strings);
    for (size_t i = 0; i < snapshot->contexts.count; i++)
        if ((r = check_context(&snapshot->contexts.list[i], error)) < 0)
            return r;
    return 0;
}

/* A text as a string of the profile; 0 when there is none or it is empty. */
static uint32_t use_text(struct snapshot *snapshot, struct profile *profile, int64_t id)
{
    struct entry *entry = find(&snapshot->strings, id);
    if (!entry)
        return 0;
    if (!entry->string)
        entry->string = profile_string(profile, (const char *)entry->value.at,
                                       (size_t)(entry->value.end - entry->value.at));
    return entry->string;
}

static void put_label(struct profile_label *labels, size_t *count, uint32_t key, uint32_t text)
{
    size_t at = 0;
    while (at < *count && labels[at].key != key)
        at++;
    labels[at] = (struct profile_label){.key = key, .text = text};
    *count += at == *count;
}

/* The set with its context's labels, or the same. */
static uint32_t with_context(struct snapshot *snapshot, struct profile *profile, uint32_t set,
                             uint32_t context_key)
{
    const struct entry *context = NULL;
    size_t all, count = 0;
    const struct profile_label *list = profile_labels(profile, set, &all);
    if (all > PROFILE_LABELS_MAX - CONTEXT_LABELS_MAX)
        return set;
    _cleanup_free_ struct profile_label *labels =
        memory_alloc((all + CONTEXT_LABELS_MAX) * sizeof(*labels));
    for (size_t i = 0; i < all; i++) {
        if (list[i].key == context_key && !list[i].text)
            context = find(&snapshot->contexts, list[i].number);
        else
            labels[count++] = list[i];
    }
    if (!context)
        return set;
    struct wire wire = context->value;
    struct wire_field field;
    while (wire_next(&wire, &field) > 0) {
        int64_t name, value;
        if (field.number != 1 || field.type != WIRE_BYTES)
            continue;
        read_pair(wire_of_field(&field), &name, &value);
        uint32_t key = use_text(snapshot, profile, name);
        uint32_t text = use_text(snapshot, profile, value);
        if (key && text)
            put_label(labels, &count, key, text);
    }
    return profile_label_set(profile, labels, count);
}

int jfr_labels_apply(const void *data, size_t length, struct profile *profile, struct error *error)
{
    _cleanup_(snapshot_release) struct snapshot snapshot = {0};
    int r = read_snapshot(&snapshot, data, length, error);
    if (r < 0 || !snapshot.contexts.count)
        return r;
    uint32_t sets = profile_label_set_count(profile);
    uint32_t context_key = profile_cstring(profile, "context_id");
    _cleanup_free_ uint32_t *to = memory_alloc((sets + 1u) * sizeof(*to));
    memset(to, 0xff, (sets + 1u) * sizeof(*to));
    for (size_t i = 0; i < profile->samples.count; i++) {
        uint32_t set = profile->samples.labels[i];
        if (to[set] == UINT32_MAX)
            to[set] = with_context(&snapshot, profile, set, context_key);
        profile->samples.labels[i] = to[set];
    }
    return 0;
}
