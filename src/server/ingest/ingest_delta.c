// SPDX-License-Identifier: Apache-2.0
// Values that count from the start of a process, on their way into the store: which types of a
// profile are such, and taking steps back when a batch isn't stored.

#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "profile/unresolved.h"
#include "server/ingest/ingest.h"

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
