// SPDX-License-Identifier: Apache-2.0
// What is changed in a profile on its way into the store, beyond its labels. Each step is used by
// some senders only: ingest.h says when.

#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "profile/unresolved.h"
#include "server/ingest/ingest.h"

/* ---- secrets in names ---- */

static uint32_t redacted(struct redactor *redactor, struct profile *profile, uint32_t string,
                         struct buffer *out)
{
    const struct profile_string *text = &profile->strings[string];
    if (!string || !redactor_text(redactor, REDACT_NAME, NULL, text->data, text->length, out))
        return string;
    return profile_string(profile, out->data ? out->data : "", out->length);
}

void ingest_redact_names(struct redactor *redactor, struct profile *profile)
{
    _cleanup_buffer_ struct buffer out = {0};
    /* In place: nothing is interned by these any more, and equal functions still add up by name. */
    for (uint32_t i = 1; i < profile->function_count; i++) {
        struct profile_function *function = &profile->functions[i];
        function->name = redacted(redactor, profile, function->name, &out);
        function->system_name = redacted(redactor, profile, function->system_name, &out);
        function->file = redacted(redactor, profile, function->file, &out);
    }
    for (uint32_t i = 1; i < profile->mapping_count; i++)
        profile->mappings[i].file = redacted(redactor, profile, profile->mappings[i].file, &out);
}

/* ---- CPU time of Java's recordings ---- */

static bool runs(const struct profile *profile, uint32_t label_set)
{
    size_t count;
    const struct profile_label *labels = profile_labels(profile, label_set, &count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(profile_text(profile, labels[i].key), "state"))
            return strcmp(profile_text(profile, labels[i].text), "STATE_SLEEPING") != 0;
    return false;
}

void ingest_cpu_of_wall(struct profile *profile)
{
    uint32_t unit = profile_cstring(profile, "nanoseconds");
    unsigned wall = profile_find_type(profile, "wall/nanoseconds");
    if (wall == PROFILE_TYPES_MAX || profile->unresolved ||
        profile_find_type(profile, "cpu/nanoseconds") != PROFILE_TYPES_MAX)
        return;
    unsigned cpu = profile_type(profile, profile_cstring(profile, "cpu"), unit);
    if (cpu == PROFILE_TYPES_MAX)
        return;
    struct profile_samples *samples = &profile->samples;
    for (size_t i = 0; i < samples->count; i++)
        samples->values[cpu][i] = runs(profile, samples->labels[i]) ? samples->values[wall][i] : 0;
}

/* ---- names of scripts ---- */

void ingest_name_scripts(struct profile *profile, bool absolute)
{
    _cleanup_buffer_ struct buffer name = {0};
    profile_settle(profile);
    for (uint32_t i = 1; i < profile->function_count; i++) {
        struct profile_function *function = &profile->functions[i];
        const struct profile_string *file = &profile->strings[function->file];
        const struct profile_string *own = &profile->strings[function->name];
        if (!file->length || (file->data[0] == '/' && !absolute))
            continue;
        name.length = 0;
        buffer_add(&name, file->data, file->length);
        buffer_add_char(&name, ' ');
        buffer_add(&name, own->data, own->length);
        function->name = profile_string(profile, name.data, name.length);
    }
}

/* ---- depth ---- */

/* How deep each node is; returns the deepest. */
static uint32_t node_depths(const struct profile *profile, uint32_t **ret_depths)
{
    uint32_t *depths = memory_alloc(MAX(profile->node_count, 1u) * sizeof(*depths));
    uint32_t deepest = depths[0] = 0;
    for (uint32_t i = 1; i < profile->node_count; i++) {
        depths[i] = depths[profile->nodes[i].parent] + 1;
        deepest = MAX(deepest, depths[i]);
    }
    *ret_depths = depths;
    return deepest;
}

uint64_t ingest_cut_stacks(struct profile *profile, uint64_t limit)
{
    uint32_t *depths;
    uint64_t cut = 0;
    if (!limit || profile->unresolved) /* unresolved ones were settled if any is too deep */
        return 0;
    if (node_depths(profile, &depths) <= limit) {
        free(depths);
        return 0;
    }
    struct profile_function function = {.name = profile_cstring(profile, "[truncated]")};
    struct profile_frame frame = {.function = profile_function(profile, &function)};
    uint32_t *frames = memory_alloc((limit + 1) * sizeof(*frames));
    frames[0] = profile_frame(profile, &frame);
    /* All stacks are cut at multiples of half the limit. Those that shared their callers still
     * share them then; if each kept as much as it may, every depth would be a tree of its own. */
    uint64_t half = MAX(limit / 2, 1u);
    for (size_t i = 0; i < profile->samples.count; i++) {
        uint32_t node = profile->samples.node[i];
        if (depths[node] <= limit)
            continue;
        uint64_t off = (depths[node] - (limit - 1) + half - 1) / half * half;
        size_t kept = depths[node] > off ? depths[node] - off : 1;
        for (size_t at = kept; at; at--, node = profile->nodes[node].parent)
            frames[at] = profile->nodes[node].frame;
        profile->samples.node[i] = profile_stack(profile, frames, kept + 1);
        cut++;
    }
    free(frames);
    free(depths);
    return cut;
}

/* ---- values since the start of a process ---- */

static bool is_cumulative(const struct profile *profile, const struct ingest_source *source,
                          unsigned type)
{
    const char *name = profile_text(profile, profile->types[type].type);
    if (source->known_cumulative && delta_is_known_type(name))
        return true;
    for (const char *const *given = source->cumulative; given && *given; given++)
        if (!strcmp(*given, name))
            return true;
    return false;
}

static uint64_t add_text(uint64_t key, const char *text)
{
    return XXH3_64bits_withSeed(text, strlen(text), key);
}

void ingest_deltas(struct ingest_batch *batch, const struct ingest_source *source,
                   struct profile *profile, struct ingest_type *types)
{
    bool cumulative[PROFILE_TYPES_MAX], any = false, known = source->known_cumulative;
    uint64_t key = add_text(labels_hash(source->labels), batch->tenant);
    if (!batch->ingest->deltas)
        return;
    for (unsigned i = 0; i < profile->type_count; i++) {
        cumulative[i] = is_cumulative(profile, source, i);
        any |= cumulative[i];
        if (!cumulative[i])
            continue;
        key = add_text(key, types[i].id ? types[i].id : "");
        known &= delta_is_known_type(profile_text(profile, profile->types[i].type));
    }
    if (!any)
        return;
    profile_settle(profile);
    struct delta_step *step = deltas_apply(batch->ingest->deltas, key, cumulative, known, profile);
    step->next = batch->steps;
    batch->steps = step;
    for (unsigned i = 0; i < profile->type_count; i++) {
        if (!cumulative[i])
            continue;
        types[i].since_ns = step->since_ns;
        if (step->outcome != DELTA_KNOWN) {
            free(types[i].id);
            types[i].id = NULL;
        }
    }
}

void ingest_deltas_end(struct ingest_batch *batch, bool stored)
{
    while (batch->steps) {
        struct delta_step *step = batch->steps;
        batch->steps = step->next;
        if (stored)
            deltas_commit(batch->ingest->deltas, step);
        else
            deltas_revert(batch->ingest->deltas, step);
    }
}
