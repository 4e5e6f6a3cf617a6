// SPDX-License-Identifier: Apache-2.0
// Answers with the names of maps, put together from parts of a selection: see maps.h.

#include "query/naming/maps.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "label/selector.h"
#include "query/covered.h"
#include "query/naming/function.h"
#include "query/quality.h"

#define LABEL_VERSION "version"

/* ---- parts ---- */

/* A service's version with maps; `rest`: the service's other versions. */
struct part {
    const char *service, *version; /* in the arena */
    bool rest;
};

struct parts {
    struct part *list;
    size_t count, capacity;
    struct arena arena;
};

static void parts_release(struct parts *parts)
{
    free(parts->list);
    arena_release(&parts->arena);
}

static bool is_last(const struct parts *parts, const char *service, const char *version)
{
    const struct part *last = parts->count ? &parts->list[parts->count - 1] : NULL;
    return last && !strcmp(last->service, service) && !strcmp(last->version, version);
}

static const char *keep(struct parts *parts, const char *text)
{
    return arena_strndup(&parts->arena, text, strlen(text));
}

static void add_part(struct parts *parts, const char *service, const char *version, bool rest)
{
    array_reserve(parts->list, parts->capacity, parts->count + 1);
    parts->list[parts->count++] = (struct part){
        .service = keep(parts, service), .version = keep(parts, version), .rest = rest};
}

/* They come by service and version. */
static int add_mapped(void *context, const struct symbol_maps_entry *entry)
{
    struct parts *parts = context;
    if (!is_last(parts, entry->service, entry->version))
        add_part(parts, entry->service, entry->version, false);
    return 0;
}

struct texts {
    struct buffer text; /* each ends with a 0 */
};

static int add_text(void *context, const char *text)
{
    struct texts *texts = context;
    buffer_add(&texts->text, text, strlen(text) + 1);
    return 0;
}

static bool has_text(const struct texts *texts, const char *text)
{
    for (size_t at = 0; at < texts->text.length; at += strlen(texts->text.data + at) + 1)
        if (!strcmp(texts->text.data + at, text))
            return true;
    return false;
}

/* A selector with some matchers more, all borrowed. */
static struct selector narrow(const struct selector *selector, const struct matcher *more,
                              size_t count)
{
    struct selector narrowed = {.count = (selector ? selector->count : 0) + count};
    narrowed.matchers = memory_zalloc(narrowed.count + 1, sizeof(*narrowed.matchers));
    if (selector && selector->count)
        memcpy(narrowed.matchers, selector->matchers, selector->count * sizeof(*narrowed.matchers));
    if (count)
        memcpy(narrowed.matchers + narrowed.count - count, more, count * sizeof(*more));
    return narrowed;
}

/* Which of the services and versions with maps are selected at all. */
static int find_parts(struct symbol_maps *maps, struct store *store,
                      const struct store_selection *selection, struct parts *parts,
                      struct error *error)
{
    struct texts services = {0};
    struct parts mapped = {0};
    int r = 0;
    symbol_maps_list(maps, selection->tenant, add_mapped, &mapped);
    if (mapped.count)
        r = store_label_values(store, selection, LABEL_SERVICE_NAME, add_text, &services, error);
    for (size_t i = 0; !r && i < mapped.count;) {
        const char *service = mapped.list[i].service;
        struct texts versions = {0};
        struct matcher own = {MATCH_EQUAL, LABEL_SERVICE_NAME, service, NULL};
        struct selector narrowed = narrow(selection->selector, &own, 1);
        struct store_selection there = *selection;
        size_t before = parts->count;
        there.selector = &narrowed;
        bool selected = has_text(&services, service);
        if (selected)
            r = store_label_values(store, &there, LABEL_VERSION, add_text, &versions, error);
        for (; i < mapped.count && !strcmp(mapped.list[i].service, service); i++)
            if (!r && selected &&
                (!*mapped.list[i].version || has_text(&versions, mapped.list[i].version)))
                add_part(parts, service, mapped.list[i].version, false);
        if (parts->count > before)
            add_part(parts, service, "", true);
        free(narrowed.matchers);
        buffer_release(&versions.text);
    }
    buffer_release(&services.text);
    parts_release(&mapped);
    return r;
}

/* Selects a part: `at` is its number; the count of parts selects everything else. */
static struct selector select_part(const struct store_selection *selection,
                                   const struct parts *parts, size_t at)
{
    struct matcher *more = memory_zalloc(parts->count + 2, sizeof(*more));
    size_t count = 0;
    if (at < parts->count) {
        const struct part *part = &parts->list[at];
        more[count++] = (struct matcher){MATCH_EQUAL, LABEL_SERVICE_NAME, part->service, NULL};
        if (!part->rest)
            more[count++] = (struct matcher){MATCH_EQUAL, LABEL_VERSION, part->version, NULL};
    }
    for (size_t i = 0; i < parts->count; i++) {
        const struct part *other = &parts->list[i];
        if (at == parts->count && other->rest)
            more[count++] =
                (struct matcher){MATCH_NOT_EQUAL, LABEL_SERVICE_NAME, other->service, NULL};
        else if (at < parts->count && parts->list[at].rest && !other->rest &&
                 !strcmp(other->service, parts->list[at].service))
            more[count++] = (struct matcher){MATCH_NOT_EQUAL, LABEL_VERSION, other->version, NULL};
    }
    struct selector selector = narrow(selection->selector, more, count);
    free(more);
    return selector;
}

/* ---- merging ---- */

struct merging {
    struct symbol_maps *maps;
    const struct store_limits *limits;
    query_merge_fn *merge;
    void *context;
    struct profile *profile;
    struct store_quality quality;
};

/* With lines, which tell functions apart that the same name was given; the answer keeps them only
 * where it wants to. */
static int merge_mapped(struct merging *merging, const struct store_selection *selection,
                        const struct part *part, const struct store_limits *limits,
                        struct store_quality *ret_quality, struct error *error)
{
    _cleanup_profile_ struct profile raw;
    profile_init(&raw, merging->profile->detail | PROFILE_LINES);
    int r = merging->merge(merging->context, selection, limits, &raw, ret_quality, error);
    if (r < 0)
        return r;
    struct query_maps *names =
        query_maps_new(merging->maps, selection->tenant, part->service, part->version);
    r = query_maps_rename(names, &raw, merging->profile, error);
    query_maps_free(names);
    return r;
}

static int merge_part(struct merging *merging, const struct store_selection *selection,
                      const struct parts *parts, size_t at, struct error *error)
{
    struct store_selection own = *selection;
    struct store_limits limits = *merging->limits;
    struct store_quality quality = {0};
    struct selector selector = select_part(selection, parts, at);
    size_t taken = profile_memory(merging->profile);
    int r = 0;
    own.selector = &selector;
    if (limits.memory_bytes && taken >= limits.memory_bytes)
        r = error_set(error, -E2BIG, "The answer exceeds the memory limit of %zu MiB.",
                      limits.memory_bytes >> 20);
    else if (limits.memory_bytes)
        limits.memory_bytes -= taken;
    limits.more = NULL; /* of which the other parts' share would have to be taken */
    if (!r && at < parts->count && !parts->list[at].rest)
        r = merge_mapped(merging, &own, &parts->list[at], &limits, &quality, error);
    else if (!r)
        r = merging->merge(merging->context, &own, &limits, merging->profile, &quality, error);
    if (!r)
        query_quality_add(&merging->quality, &quality);
    free(selector.matchers);
    return r;
}

int query_maps_merge(struct symbol_maps *maps, struct store *store,
                     const struct store_selection *selection, const struct store_limits *limits,
                     query_merge_fn *merge, void *context, struct profile *profile,
                     struct store_quality *ret_quality, struct error *error)
{
    _cleanup_(parts_release) struct parts parts = {0};
    struct merging merging = {
        .maps = maps, .limits = limits, .merge = merge, .context = context, .profile = profile};
    int r = maps ? find_parts(maps, store, selection, &parts, error) : 0;
    if (!r && !parts.count)
        return merge(context, selection, limits, profile, ret_quality, error);
    for (size_t at = parts.count + 1; !r && at-- > 0;)
        r = merge_part(&merging, selection, &parts, at, error);
    if (!r)
        *ret_quality = merging.quality;
    return r;
}

/* ---- values over time ---- */

struct group {
    struct labels labels;
    struct store_point *points;
    size_t count;
};

struct groups {
    struct group *list;
    size_t count, capacity;
    size_t bytes, limit_bytes; /* 0: none */
};

static void groups_release(struct groups *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        labels_release(&groups->list[i].labels);
        free(groups->list[i].points);
    }
    free(groups->list);
}

static int keep_group(void *context, const struct labels *labels, const struct store_point *points,
                      size_t count)
{
    struct groups *groups = context;
    array_reserve(groups->list, groups->capacity, groups->count + 1);
    struct group *group = &groups->list[groups->count++];
    *group = (struct group){.points = memory_zalloc(count + 1, sizeof(*points)), .count = count};
    labels_copy(&group->labels, labels);
    if (count)
        memcpy(group->points, points, count * sizeof(*points));
    groups->bytes += sizeof(*group) + labels_memory(&group->labels) + count * sizeof(*points);
    return groups->limit_bytes && groups->bytes > groups->limit_bytes ? -E2BIG : 0;
}

static int by_labels(const void *a, const void *b)
{
    return labels_compare(&((const struct group *)a)->labels, &((const struct group *)b)->labels);
}

/* Both are in the order of time. */
static void add_points(struct group *to, const struct group *from)
{
    struct store_point *sum = memory_zalloc(to->count + from->count + 1, sizeof(*sum));
    size_t count = 0, a = 0, b = 0;
    while (a < to->count || b < from->count) {
        bool first =
            b == from->count || (a < to->count && to->points[a].time_ns <= from->points[b].time_ns);
        bool second =
            a == to->count || (b < from->count && from->points[b].time_ns <= to->points[a].time_ns);
        sum[count] = first ? to->points[a] : from->points[b];
        if (first && second) {
            covered_add_point(&sum[count], &from->points[b]);
            sum[count].value = add_saturated(sum[count].value, from->points[b].value);
            sum[count].windows += from->points[b].windows;
        }
        a += first;
        b += second;
        count++;
    }
    free(to->points);
    to->points = sum;
    to->count = count;
}

static int give_groups(struct groups *groups, store_points_fn *fn, void *context)
{
    int r = 0;
    if (groups->count)
        qsort(groups->list, groups->count, sizeof(*groups->list), by_labels);
    for (size_t i = 0; !r && i < groups->count;) {
        struct group *group = &groups->list[i++];
        while (i < groups->count && labels_equal(&groups->list[i].labels, &group->labels))
            add_points(group, &groups->list[i++]);
        r = fn(context, &group->labels, group->points, group->count);
    }
    return r;
}

/* `names` and `symbols` may be NULL. */
static int timeseries_of(struct store *store, const struct store_selection *selection,
                         const struct store_timeseries_query *query, struct query_maps *names,
                         struct query_symbols *symbols, const struct store_limits *limits,
                         store_points_fn *fn, void *context, struct store_quality *ret_quality,
                         struct error *error)
{
    _cleanup_query_function_ struct query_function function = {0};
    struct store_timeseries_query asked = *query;
    if (query->function) {
        const struct query_function_names wanted = {
            .name = query->function->name, .symbols = symbols, .maps = names};
        int r = query_function_find(store, &wanted, selection, query, limits, &function, error);
        if (r < 0)
            return r;
        asked.function = &function.found;
    }
    return store_timeseries(store, selection, &asked, limits, fn, context, ret_quality, error);
}

int query_maps_timeseries(struct symbol_maps *maps, struct query_symbols *symbols,
                          struct store *store, const struct store_selection *selection,
                          const struct store_timeseries_query *query,
                          const struct store_limits *limits, store_points_fn *fn, void *context,
                          struct store_quality *ret_quality, struct error *error)
{
    _cleanup_(parts_release) struct parts parts = {0};
    _cleanup_(groups_release) struct groups groups = {.limit_bytes = limits->memory_bytes};
    struct store_quality sum = {0};
    struct store_timeseries_query of_part = *query;
    of_part.groups_most = 0; /* which groups are greatest is known when all parts are added up */
    int r = maps && query->function ? find_parts(maps, store, selection, &parts, error) : 0;
    if (!r && !parts.count)
        return timeseries_of(store, selection, query, NULL, symbols, limits, fn, context,
                             ret_quality, error);
    for (size_t at = 0; !r && at <= parts.count; at++) {
        struct store_selection own = *selection;
        struct store_quality quality = {0};
        struct query_maps *names = NULL;
        struct selector selector = select_part(selection, &parts, at);
        own.selector = &selector;
        if (at < parts.count && !parts.list[at].rest)
            names = query_maps_new(maps, selection->tenant, parts.list[at].service,
                                   parts.list[at].version);
        r = timeseries_of(store, &own, &of_part, names, symbols, limits, keep_group, &groups,
                          &quality, error);
        query_quality_add(&sum, &quality);
        query_maps_free(names);
        free(selector.matchers);
    }
    if (!r && ret_quality)
        *ret_quality = sum;
    if (groups.bytes > groups.limit_bytes && groups.limit_bytes)
        return error_set(error, -E2BIG,
                         "The values exceed the memory limit of %zu MiB; use longer steps, or "
                         "group by fewer labels.",
                         groups.limit_bytes >> 20);
    return r < 0 ? r : give_groups(&groups, fn, context);
}

/* ---- exemplars ---- */

#define NAMED_BYTES_MAX (8u << 20) /* of stacks that were given already */
#define NAMED_SHARE 4              /* and of what the query may take */

struct exemplars {
    struct query_maps *names;
    const char *function;
    store_exemplar_fn *fn;
    void *context;
    struct profile named;
    size_t named_bytes_max;
    struct graft graft;
};

static void start_anew(struct exemplars *exemplars)
{
    graft_release(&exemplars->graft);
    profile_release(&exemplars->named);
    profile_init(&exemplars->named, PROFILE_ALL);
    exemplars->graft = (struct graft){.to = &exemplars->named};
}

static bool has_function(const struct profile *profile, uint32_t node, const char *function)
{
    for (; node; node = profile->nodes[node].parent) {
        uint32_t id = profile->frames[profile->nodes[node].frame].function;
        if (id && !strcmp(profile_text(profile, profile->functions[id].name), function))
            return true;
    }
    return false;
}

static int name_exemplar(void *context, const struct labels *labels, const struct profile *profile,
                         const struct store_exemplar *exemplar)
{
    struct exemplars *exemplars = context;
    struct store_exemplar named = *exemplar;
    if (profile_memory(&exemplars->named) > exemplars->named_bytes_max)
        start_anew(exemplars);
    graft_from(&exemplars->graft, profile);
    named.node = query_maps_node(exemplars->names, &exemplars->graft, exemplar->node);
    if (exemplars->function && !has_function(&exemplars->named, named.node, exemplars->function))
        return 0;
    return exemplars->fn(exemplars->context, labels, &exemplars->named, &named);
}

static int name_exemplars(struct symbol_maps *maps, struct store *store,
                          const struct store_selection *selection, const struct part *part,
                          const char *function, const struct store_limits *limits,
                          store_exemplar_fn *fn, void *context, struct error *error)
{
    struct exemplars exemplars = {
        .function = function, .fn = fn, .context = context, .named_bytes_max = NAMED_BYTES_MAX};
    if (limits->memory_bytes)
        exemplars.named_bytes_max =
            MIN(exemplars.named_bytes_max, limits->memory_bytes / NAMED_SHARE);
    exemplars.names = query_maps_new(maps, selection->tenant, part->service, part->version);
    profile_init(&exemplars.named, PROFILE_ALL);
    exemplars.graft.to = &exemplars.named;
    int r = store_exemplars(store, selection, NULL, limits, name_exemplar, &exemplars, error);
    graft_release(&exemplars.graft);
    profile_release(&exemplars.named);
    query_maps_free(exemplars.names);
    return r;
}

/* Of what has no maps. */
static int plain_exemplars(struct store *store, const struct store_selection *selection,
                           const char *name, struct query_symbols *symbols,
                           const struct store_limits *limits, store_exemplar_fn *fn, void *context,
                           struct error *error)
{
    _cleanup_query_function_ struct query_function function = {0};
    struct store_limits raw = *limits;
    raw.raw_only = true; /* as store_exemplars reads */
    const struct query_function_names wanted = {.name = name, .symbols = symbols};
    int r = name ? query_function_find(store, &wanted, selection, NULL, &raw, &function, error) : 0;
    return r < 0 ? r
                 : store_exemplars(store, selection, name ? &function.found : NULL, limits, fn,
                                   context, error);
}

int query_maps_exemplars(struct symbol_maps *maps, struct query_symbols *symbols,
                         struct store *store, const struct store_selection *selection,
                         const char *function, const struct store_limits *limits,
                         store_exemplar_fn *fn, void *context, struct error *error)
{
    _cleanup_(parts_release) struct parts parts = {0};
    int r = maps ? find_parts(maps, store, selection, &parts, error) : 0;
    if (!r && !parts.count)
        return plain_exemplars(store, selection, function, symbols, limits, fn, context, error);
    for (size_t at = 0; !r && at <= parts.count; at++) {
        struct store_selection own = *selection;
        struct selector selector = select_part(selection, &parts, at);
        own.selector = &selector;
        r = at < parts.count && !parts.list[at].rest
                ? name_exemplars(maps, store, &own, &parts.list[at], function, limits, fn, context,
                                 error)
                : plain_exemplars(store, &own, function, symbols, limits, fn, context, error);
        free(selector.matchers);
    }
    return r;
}
