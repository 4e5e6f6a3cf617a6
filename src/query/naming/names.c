// SPDX-License-Identifier: Apache-2.0
// Names for addresses at the time of the query: see names.h.

#include "query/naming/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "profile/rename.h"
#include "symbol/naming/naming.h"

_Static_assert(SYMBOL_FRAMES_MAX <= PROFILE_EXPANSION_MAX, "all frames of an address fit");
_Static_assert(SYMBOL_BY_ADDRESS == PROFILE_BY_ADDRESS, "the mapping's offset is passed on");

void query_symbols_release(struct query_symbols *symbols)
{
    for (size_t i = 0; i < symbols->count; i++)
        symbol_source_release(symbols->store, symbols->builds[i].source);
    free(symbols->builds);
    *symbols = (struct query_symbols){0};
}

static bool is_address(const struct profile_frame *frame)
{
    return !frame->function && frame->mapping && frame->kind != FRAME_KERNEL;
}

/* `ret_new` says whether the build was looked up for the first time. */
static const struct query_symbols_build *build_of(struct query_symbols *symbols,
                                                  const struct profile *tables, uint32_t mapping,
                                                  bool *ret_new)
{
    uint32_t *hint = &symbols->hints[mapping % QUERY_SYMBOLS_HINTS];
    char key[SYMBOL_KEY_BYTES];
    *ret_new = false;
    if (!symbol_key(profile_text(tables, tables->mappings[mapping].build_id), key))
        return NULL;
    if (*hint < symbols->count && !strcmp(symbols->builds[*hint].key, key))
        return &symbols->builds[*hint];
    for (*hint = 0; *hint < symbols->count; ++*hint)
        if (!strcmp(symbols->builds[*hint].key, key))
            return &symbols->builds[*hint];
    array_reserve(symbols->builds, symbols->capacity, symbols->count + 1);
    struct query_symbols_build *new = &symbols->builds[symbols->count++];
    strcpy(new->key, key);
    new->source = symbol_store_source(symbols->store, symbols->tenant, key);
    *ret_new = true;
    return new;
}

size_t query_symbols_at(struct query_symbols *symbols, const struct profile *tables, uint32_t id,
                        struct symbol_frame names[SYMBOL_FRAMES_MAX])
{
    const struct profile_frame *frame = &tables->frames[id];
    bool is_new;
    if (!symbols->store || !is_address(frame))
        return 0;
    const struct profile_mapping *mapping = &tables->mappings[frame->mapping];
    const struct query_symbols_build *build = build_of(symbols, tables, frame->mapping, &is_new);
    if (!build || !build->source)
        return 0;
    return symbol_source_look_up(build->source, frame->address, mapping->offset,
                                 mapping->limit - mapping->start, names, SYMBOL_FRAMES_MAX);
}

/* ---- whole profiles ---- */

/* Looks up the builds that have addresses; false when none of them is known. */
static bool prepare(struct query_symbols *symbols, const struct profile *profile,
                    query_unknown_fn *unknown, void *context)
{
    bool any = false, is_new;
    for (uint32_t i = 1; i < profile->frame_count; i++) {
        const struct profile_frame *frame = &profile->frames[i];
        const struct query_symbols_build *build =
            is_address(frame) ? build_of(symbols, profile, frame->mapping, &is_new) : NULL;
        if (!build || !is_new)
            continue;
        any |= build->source != NULL;
        if (!build->source && unknown)
            unknown(context, build->key,
                    profile_text(profile, profile->mappings[frame->mapping].file));
    }
    return any;
}

static size_t name_frame(void *context, const struct profile *from, uint32_t id, struct profile *to,
                         struct profile_frame renamed[PROFILE_EXPANSION_MAX])
{
    struct symbol_frame frames[SYMBOL_FRAMES_MAX];
    size_t count = query_symbols_at(context, from, id, frames);
    symbol_put_frames(to, frames, count, renamed);
    for (size_t i = 0; i < count; i++)
        if (renamed[i].kind == FRAME_UNKNOWN)
            renamed[i].kind = FRAME_NATIVE;
    return count ? count : 1;
}

int query_name(struct profile *profile, struct symbol_store *store, const char *tenant,
               query_unknown_fn *unknown, void *context, struct error *error)
{
    _cleanup_query_symbols_ struct query_symbols symbols = {.store = store, .tenant = tenant};
    struct profile named;
    if (!prepare(&symbols, profile, unknown, context))
        return 0;
    profile_init(&named, profile->detail);
    int r = profile_rename(profile, name_frame, &symbols, &named, error);
    if (r < 0) {
        profile_release(&named);
        return r;
    }
    profile_release(profile);
    *profile = named;
    return 0;
}
