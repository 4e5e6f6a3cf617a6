// SPDX-License-Identifier: Apache-2.0
// Which samples belong to a trace or span, and a profile of those: see links.h.

#include "query/links.h"

#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"
#include "query/graft.h"
#include "query/query.h"

#define DEFAULT_MEMORY (64u << 20)

void query_links_release(struct query_links *links)
{
    for (int i = 0; i < QUERY_LINK_KINDS; i++)
        free(links->kinds[i].ids);
    free(links->spans_of_profiles.ids);
    *links = (struct query_links){0};
}

/* Digits of `count` bytes; dashes of UUIDs are skipped. */
static bool parse_hex(const char *text, uint8_t *bytes, size_t count)
{
    size_t digits = 0;
    for (; *text; text++) {
        char c = *text;
        int digit = hex_digit(c);
        if (c == '-' && count == 16)
            continue;
        if (digit < 0 || digits == count * 2)
            return false;
        bytes[digits / 2] = (uint8_t)(bytes[digits / 2] << 4 | (unsigned)digit);
        digits++;
    }
    return digits == count * 2;
}

static int add_id(struct query_link_ids *ids, const uint8_t id[16], struct error *error)
{
    if (ids->count == QUERY_LINKS_MAX)
        return error_set(error, -E2BIG, "The query has more than %d traces or spans.",
                         QUERY_LINKS_MAX);
    array_reserve(ids->ids, ids->capacity, ids->count + 1);
    memcpy(ids->ids[ids->count++], id, 16);
    ids->sorted = false;
    return 0;
}

int query_links_add(struct query_links *links, enum query_link_kind kind, const char *text,
                    struct error *error)
{
    static const char *const what[] = {"span id, of 16 hexadecimal digits",
                                       "trace id, of 32 hexadecimal digits",
                                       "profile id, a UUID or 16 hexadecimal digits"};
    uint8_t id[16] = {0};
    if (kind != QUERY_SPAN && parse_hex(text, id, 16))
        return add_id(&links->kinds[kind], id, error);
    memset(id, 0, sizeof(id));
    if (kind != QUERY_TRACE && parse_hex(text, id, 8))
        return add_id(kind == QUERY_SPAN ? &links->kinds[kind] : &links->spans_of_profiles, id,
                      error);
    return error_set(error, -EINVAL, "\"%.60s\" is not a %s.", text, what[kind]);
}

bool query_links_any(const struct query_links *links)
{
    size_t count = links->spans_of_profiles.count;
    for (int i = 0; i < QUERY_LINK_KINDS; i++)
        count += links->kinds[i].count;
    return count > 0;
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, 16);
}

static bool has_id(struct query_link_ids *ids, const uint8_t *id, size_t length)
{
    uint8_t key[16] = {0};
    memcpy(key, id, length);
    if (!ids->sorted && ids->count)
        qsort(ids->ids, ids->count, 16, compare_ids);
    ids->sorted = true;
    return ids->count && bsearch(key, ids->ids, ids->count, 16, compare_ids);
}

static void put_u64(uint8_t bytes[8], uint64_t number)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (56 - 8 * i));
}

static int64_t time_of_id(const uint8_t id[16])
{
    uint64_t time = 0;
    for (int i = 8; i < 16; i++)
        time = time << 8 | id[i];
    return (int64_t)time;
}

static void profile_id(const struct labels *labels, int64_t time_ns, uint8_t id[16])
{
    put_u64(id, labels_hash(labels));
    put_u64(id + 8, (uint64_t)time_ns);
}

void query_profile_id(const struct labels *labels, int64_t time_ns, char ret_text[PROFILE_ID_BYTES])
{
    uint8_t id[16];
    profile_id(labels, time_ns, id);
    size_t at = 0;
    for (int i = 0; i < 16; i++)
        at += (size_t)snprintf(ret_text + at, PROFILE_ID_BYTES - at, "%s%02x",
                               i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
}

bool query_links_match(struct query_links *links, const struct store_exemplar *exemplar)
{
    struct query_link_ids *kinds = links->kinds;
    if (kinds[QUERY_SPAN].count && !has_id(&kinds[QUERY_SPAN], exemplar->link.span_id, 8))
        return false;
    if (kinds[QUERY_TRACE].count && !has_id(&kinds[QUERY_TRACE], exemplar->link.trace_id, 16))
        return false;
    return !links->spans_of_profiles.count ||
           has_id(&links->spans_of_profiles, exemplar->link.span_id, 8);
}

struct merging {
    struct query_links *links;
    struct graft graft;
    struct profile *profile;
    struct store_quality quality;
    const uint8_t *wanted; /* the id of the window that is looked for */
    size_t memory_limit;
    uint64_t last_series;
    bool too_large;
};

static void add_value(struct merging *merging, uint32_t node, int64_t value, int64_t time_ns,
                      const struct labels *labels)
{
    struct store_quality *quality = &merging->quality;
    size_t row = profile_sample(merging->profile, graft_node(&merging->graft, node), 0, 0, 0);
    profile_add_value(merging->profile, row, 0, value);
    quality->first_ns = quality->rows ? MIN(quality->first_ns, time_ns) : time_ns;
    quality->last_ns = MAX(quality->last_ns, time_ns);
    quality->total = add_saturated(quality->total, value);
    quality->windows++;
    uint64_t series = labels_hash(labels);
    if (!quality->rows++ || series != merging->last_series) /* those of a series come together */
        quality->series++;
    merging->last_series = series;
    if (!(quality->rows & 1023) && profile_memory(merging->profile) > merging->memory_limit)
        merging->too_large = true;
}

static int add_exemplar(void *context, const struct labels *labels, const struct profile *profile,
                        const struct store_exemplar *exemplar)
{
    struct merging *merging = context;
    if (!query_links_match(merging->links, exemplar))
        return 0;
    graft_from(&merging->graft, profile);
    add_value(merging, exemplar->node, exemplar->value, exemplar->time_ns, labels);
    return merging->too_large;
}

/* All samples of a window that is selected by its id; with spans or traces, only those. */
static int add_window(void *context, const struct store_profile *window)
{
    struct merging *merging = context;
    const struct query_link_ids *kinds = merging->links->kinds;
    uint8_t id[16];
    profile_id(window->labels, window->time_ns, id);
    if (memcmp(id, merging->wanted, sizeof(id)))
        return 0;
    graft_from(&merging->graft, window->profile);
    bool parts = kinds[QUERY_SPAN].count || kinds[QUERY_TRACE].count;
    for (size_t i = 0; parts && !merging->too_large && i < window->exemplar_count; i++)
        if (query_links_match(merging->links, &window->exemplars[i]))
            add_value(merging, window->exemplars[i].node, window->exemplars[i].value,
                      window->time_ns, window->labels);
    for (size_t i = 0; !parts && !merging->too_large && i < window->row_count; i++)
        add_value(merging, window->rows[i].node, window->rows[i].value, window->time_ns,
                  window->labels);
    return merging->too_large;
}

/* An id tells when its window is, so that little has to be looked at. */
static int add_windows(struct merging *merging, struct store *store,
                       const struct store_selection *selection, const struct store_limits *limits,
                       struct error *error)
{
    struct query_link_ids *ids = &merging->links->kinds[QUERY_PROFILE];
    int r = 0;
    if (ids->count && !ids->sorted)
        qsort(ids->ids, ids->count, 16, compare_ids);
    ids->sorted = true;
    for (size_t i = 0; r >= 0 && !merging->too_large && i < ids->count; i++) {
        merging->wanted = ids->ids[i];
        struct store_selection moment = *selection;
        moment.from_ns = time_of_id(merging->wanted);
        moment.to_ns = moment.from_ns + (moment.from_ns < INT64_MAX);
        if (moment.from_ns < selection->from_ns || moment.to_ns > selection->to_ns ||
            (i && !memcmp(ids->ids[i - 1], merging->wanted, 16)))
            continue;
        r = store_scan(store, &moment, limits, add_window, merging, error);
    }
    return MIN(r, 0);
}

int query_merge_links(struct store *store, const struct store_selection *selection,
                      const struct store_limits *limits, struct query_links *links,
                      struct profile *profile, struct store_quality *ret_quality,
                      struct error *error)
{
    size_t type_length, unit_length;
    const char *type = query_type_part(selection->type, 1, &type_length);
    const char *unit = query_type_part(selection->type, 2, &unit_length);
    profile_type(profile, profile_string(profile, type, type_length),
                 profile_string(profile, unit, unit_length));
    struct merging merging = {.links = links,
                              .graft = {.to = profile},
                              .profile = profile,
                              .memory_limit = limits && limits->memory_bytes ? limits->memory_bytes
                                                                             : DEFAULT_MEMORY};
    int r = add_windows(&merging, store, selection, limits, error);
    if (!r && (links->spans_of_profiles.count || !links->kinds[QUERY_PROFILE].count))
        r = store_exemplars(store, selection, NULL, limits, add_exemplar, &merging, error);
    graft_release(&merging.graft);
    if (merging.too_large)
        return error_set(error, -E2BIG, "The query exceeds its memory limit of %zu MiB.",
                         merging.memory_limit >> 20);
    merging.quality.damaged_files = store_damaged_files(store, selection);
    if (!r)
        *ret_quality = merging.quality;
    return r;
}
