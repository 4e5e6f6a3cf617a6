// SPDX-License-Identifier: Apache-2.0
// Which samples belong to a trace or span, and a profile of those: see links.h.

#include "query/links.h"

#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

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
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                : 16;
        if (c == '-' && count == 16)
            continue;
        if (digit > 15 || digits == count * 2)
            return false;
        bytes[digits / 2] = (uint8_t)(bytes[digits / 2] << 4 | digit);
        digits++;
    }
    return digits == count * 2;
}

static int add_id(struct query_link_ids *ids, const uint8_t id[16], struct error *error)
{
    if (ids->count == QUERY_LINKS_MAX)
        return error_set(error, -E2BIG, "More than %d traces or spans are asked for at once.",
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
    return error_set(error, -EINVAL, "\"%.60s\" is no %s.", text, what[kind]);
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

static void profile_id(const struct store_exemplar *exemplar, uint8_t id[16])
{
    uint64_t hash = XXH3_64bits(&exemplar->link, sizeof(exemplar->link));
    for (int i = 0; i < 8; i++) {
        id[i] = (uint8_t)(hash >> (56 - 8 * i));
        id[8 + i] = (uint8_t)((uint64_t)exemplar->time_ns >> (56 - 8 * i));
    }
}

void query_profile_id(const struct store_exemplar *exemplar, char ret_text[PROFILE_ID_BYTES])
{
    uint8_t id[16];
    profile_id(exemplar, id);
    size_t at = 0;
    for (int i = 0; i < 16; i++)
        at += (size_t)snprintf(ret_text + at, PROFILE_ID_BYTES - at, "%s%02x",
                               i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
}

bool query_links_match(struct query_links *links, const struct store_exemplar *exemplar)
{
    struct query_link_ids *kinds = links->kinds;
    uint8_t id[16];
    if (kinds[QUERY_SPAN].count && !has_id(&kinds[QUERY_SPAN], exemplar->link.span_id, 8))
        return false;
    if (kinds[QUERY_TRACE].count && !has_id(&kinds[QUERY_TRACE], exemplar->link.trace_id, 16))
        return false;
    if (!kinds[QUERY_PROFILE].count && !links->spans_of_profiles.count)
        return true;
    profile_id(exemplar, id);
    return has_id(&kinds[QUERY_PROFILE], id, 16) ||
           has_id(&links->spans_of_profiles, exemplar->link.span_id, 8);
}

struct merging {
    struct query_links *links;
    struct graft graft;
    struct profile *profile;
    struct store_quality quality;
    size_t memory_limit;
    uint64_t last_series;
    bool too_large;
};

static int add_exemplar(void *context, const struct labels *labels, const struct profile *profile,
                        const struct store_exemplar *exemplar)
{
    struct merging *merging = context;
    struct store_quality *quality = &merging->quality;
    if (!query_links_match(merging->links, exemplar))
        return 0;
    graft_from(&merging->graft, profile);
    size_t row =
        profile_sample(merging->profile, graft_node(&merging->graft, exemplar->node), 0, 0, 0);
    profile_add_value(merging->profile, row, 0, exemplar->value);
    quality->first_ns =
        quality->rows ? MIN(quality->first_ns, exemplar->time_ns) : exemplar->time_ns;
    quality->last_ns = MAX(quality->last_ns, exemplar->time_ns);
    quality->total = add_saturated(quality->total, exemplar->value);
    quality->windows++;
    uint64_t series = labels_hash(labels);
    if (!quality->rows++ || series != merging->last_series) /* those of a series come together */
        quality->series++;
    merging->last_series = series;
    if (!(quality->rows & 1023) && profile_memory(merging->profile) > merging->memory_limit)
        merging->too_large = true;
    return merging->too_large;
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
    int r = store_exemplars(store, selection, NULL, limits, add_exemplar, &merging, error);
    graft_release(&merging.graft);
    if (merging.too_large)
        return error_set(error, -E2BIG, "The samples asked for take more than %zu MiB of memory.",
                         merging.memory_limit >> 20);
    if (!r)
        *ret_quality = merging.quality;
    return r;
}
