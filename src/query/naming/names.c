// SPDX-License-Identifier: Apache-2.0
// Names for addresses at the time of the query, and how many have any: see names.h.

#include "query/naming/names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "profile/rename.h"
#include "symbol/naming/naming.h"
#include "symbol/symbol.h"

_Static_assert(SYMBOL_FRAMES_MAX <= PROFILE_EXPANSION_MAX, "all frames of an address fit");
_Static_assert(SYMBOL_BY_ADDRESS == PROFILE_BY_ADDRESS, "the mapping's offset is passed on");

struct symbol_sources {
    struct symbol_store *symbols;
    const char *tenant;
    struct symbol_source **list; /* by mapping; NULL: not known */
    uint32_t mapping_count;
};

static void sources_release(struct symbol_sources *sources)
{
    for (uint32_t i = 0; sources->list && i < sources->mapping_count; i++)
        symbol_source_release(sources->symbols, sources->list[i]);
    free(sources->list);
}

static bool is_address(const struct profile_frame *frame)
{
    return !frame->function && frame->mapping && frame->kind != FRAME_KERNEL;
}

/* Finds what is known of the files that have addresses; false when that is nothing. */
static bool prepare(struct symbol_sources *sources, const struct profile *profile,
                    query_unknown_fn *unknown, void *context)
{
    _cleanup_free_ bool *asked = memory_zalloc(profile->mapping_count + 1, sizeof(*asked));
    bool any = false;
    sources->mapping_count = profile->mapping_count;
    sources->list = memory_zalloc(profile->mapping_count + 1, sizeof(*sources->list));
    for (uint32_t i = 1; i < profile->frame_count; i++) {
        uint32_t mapping = profile->frames[i].mapping;
        char key[SYMBOL_KEY_BYTES];
        if (!is_address(&profile->frames[i]) || asked[mapping])
            continue;
        asked[mapping] = true;
        if (!symbol_key(profile_text(profile, profile->mappings[mapping].build_id), key))
            continue;
        sources->list[mapping] = symbol_store_source(sources->symbols, sources->tenant, key);
        any |= sources->list[mapping] != NULL;
        if (!sources->list[mapping] && unknown)
            unknown(context, key, profile_text(profile, profile->mappings[mapping].file));
    }
    return any;
}

static size_t name_frame(void *context, const struct profile *from, uint32_t id, struct profile *to,
                         struct profile_frame renamed[PROFILE_EXPANSION_MAX])
{
    struct symbol_sources *sources = context;
    const struct profile_frame *frame = &from->frames[id];
    const struct profile_mapping *mapping = &from->mappings[frame->mapping];
    struct symbol_frame frames[SYMBOL_FRAMES_MAX];
    if (!is_address(frame) || !sources->list[frame->mapping])
        return 1;
    size_t count =
        symbol_source_look_up(sources->list[frame->mapping], frame->address, mapping->offset,
                              mapping->limit - mapping->start, frames, SYMBOL_FRAMES_MAX);
    symbol_put_frames(to, frames, count, renamed);
    for (size_t i = 0; i < count; i++)
        if (renamed[i].kind == FRAME_UNKNOWN)
            renamed[i].kind = FRAME_NATIVE;
    return count ? count : 1;
}

int query_name(struct profile *profile, struct symbol_store *symbols, const char *tenant,
               query_unknown_fn *unknown, void *context, struct error *error)
{
    _cleanup_(sources_release) struct symbol_sources sources = {.symbols = symbols,
                                                                .tenant = tenant};
    struct profile named;
    if (!prepare(&sources, profile, unknown, context))
        return 0;
    profile_init(&named, profile->detail);
    int r = profile_rename(profile, name_frame, &sources, &named, error);
    if (r < 0) {
        profile_release(&named);
        return r;
    }
    profile_release(profile);
    *profile = named;
    return 0;
}

/* ---- frames of a store, one by one ---- */

void query_late_release(struct query_late *late)
{
    for (size_t i = 0; i < late->count; i++)
        symbol_source_release(late->symbols, late->sources[i].source);
    free(late->sources);
    *late = (struct query_late){0};
}

/* A store has few files with addresses at a time, and frames of one come in a row. */
static struct symbol_source *late_source(struct query_late *late, const struct profile *tables,
                                         uint32_t mapping)
{
    char key[SYMBOL_KEY_BYTES];
    size_t at = 0;
    if (late->count && late->last == tables && late->last_mapping == mapping)
        return late->sources[late->last_index].source;
    if (!symbol_key(profile_text(tables, tables->mappings[mapping].build_id), key))
        return NULL;
    while (at < late->count && strcmp(late->sources[at].key, key))
        at++;
    if (at == late->count) {
        array_reserve(late->sources, late->capacity, late->count + 1);
        struct query_late_source *new = &late->sources[late->count++];
        strcpy(new->key, key);
        new->source = symbol_store_source(late->symbols, late->tenant, key);
    }
    late->last = tables;
    late->last_mapping = mapping;
    late->last_index = (uint32_t)at;
    return late->sources[at].source;
}

size_t query_late_names(struct query_late *late, const struct profile *tables, uint32_t id,
                        struct symbol_frame names[SYMBOL_FRAMES_MAX])
{
    const struct profile_frame *frame = &tables->frames[id];
    if (!late->symbols || !is_address(frame))
        return 0;
    const struct profile_mapping *mapping = &tables->mappings[frame->mapping];
    struct symbol_source *source = late_source(late, tables, frame->mapping);
    return source ? symbol_source_look_up(source, frame->address, mapping->offset,
                                          mapping->limit - mapping->start, names, SYMBOL_FRAMES_MAX)
                  : 0;
}

/* ---- how much has names ---- */

void query_named_release(struct query_named *named)
{
    free(named->list);
    *named = (struct query_named){0};
}

static int by_value(const void *a, const void *b)
{
    const struct query_nameless *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? 1 : -1;
    return (x->mapping > y->mapping) - (x->mapping < y->mapping);
}

/* One walk down each sample's stack; a mapping counts once for each. */
static void count_stacks(const struct profile *profile, struct query_named *named,
                         struct query_nameless *of_mapping)
{
    _cleanup_free_ size_t *seen = memory_zalloc(profile->mapping_count + 1, sizeof(*seen));
    for (size_t i = 0; i < profile->samples.count; i++) {
        double value = fabs((double)profile->samples.values[0][i]);
        for (uint32_t node = profile->samples.node[i]; node; node = profile->nodes[node].parent) {
            const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
            named->all += value;
            if (frame->function) {
                named->named += value;
                continue;
            }
            if (seen[frame->mapping] == i + 1)
                continue;
            seen[frame->mapping] = i + 1;
            of_mapping[frame->mapping].value += value;
        }
    }
}

void query_count_named(const struct profile *profile, struct query_named *ret_named)
{
    struct query_named named = {0};
    size_t count = profile->mapping_count ? profile->mapping_count : 1;
    struct query_nameless *list = memory_zalloc(count, sizeof(*list));
    if (profile->type_count)
        count_stacks(profile, &named, list);
    for (uint32_t i = 1; i < profile->frame_count; i++)
        if (!profile->frames[i].function)
            list[profile->frames[i].mapping].frames++;
    for (uint32_t i = 0; i < count; i++)
        list[i].mapping = i;
    qsort(list, count, sizeof(*list), by_value);
    while (named.count < count && list[named.count].value > 0)
        named.count++;
    named.list = list;
    *ret_named = named;
}
