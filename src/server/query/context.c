// SPDX-License-Identifier: Apache-2.0
// From a request's parameters to a selection of the store, and how good its answer is.

#include "server/query/context.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "profile/naming.h"
#include "profile/views/rank.h"
#include "query/covered.h"
#include "query/naming/maps.h"
#include "query/types.h"
#include "server/admission/admission.h"
#include "server/handler/parameters.h"
#include "server/symbols/symbols.h"

#define HOUR_NS 3600000000000ll

void query_context_release(struct query_context *query_context)
{
    query_release(&query_context->query);
    query_links_release(&query_context->links);
    query_sources_release(&query_context->sources);
}

/* The selector's type holds, or the answer is empty: series have no such label. */
static int settle_type(struct query_context *query_context, struct error *error)
{
    struct query *query = &query_context->query;
    query_context->selection.type = query->type;
    if (!query_types_selected(&query->selector))
        return 0;
    bool fits = query_type_matches(&query->selector, query->type);
    query_types_settle(&query->selector);
    return fits ? 0 : selector_add(&query->selector, MATCH_EQUAL, "__name__", "-", error);
}

int query_asker_read(struct http_request *request, struct query_asker *ret_asker,
                     struct error *error)
{
    ret_asker->tenant = http_request_identity(request)->tenant;
    ret_asker->cancelled = http_request_cancel_flag(request);
    return parameter_names(request, &ret_asker->names, error);
}

int query_context_init(struct query_context *query_context, struct http_request *request,
                       struct server *server, const char *query, int64_t from_ns, int64_t to_ns,
                       bool typed, struct error *error)
{
    struct query_asker asker = {0};
    *query_context = (struct query_context){0};
    int r = query_asker_read(request, &asker, error);
    return r < 0 ? r
                 : query_context_open(query_context, server, &asker, query, from_ns, to_ns, typed,
                                      error);
}

int query_context_open(struct query_context *query_context, struct server *server,
                       const struct query_asker *asker, const char *query, int64_t from_ns,
                       int64_t to_ns, bool typed, struct error *error)
{
    *query_context = (struct query_context){.server = server, .names = asker->names};
    int r = query_parse(query, &query_context->query, error);
    if (!r && typed)
        r = query_leave_recordings(&query_context->query, error);
    if (r < 0)
        return r;
    if (from_ns >= to_ns)
        return error_set(error, -EINVAL, "The time range ends before it begins.");
    query_context->matching =
        (struct match_budget){.limit_ns = MATCH_BUDGET_NS, .cancelled = asker->cancelled};
    query_context->selection = (struct store_selection){.tenant = asker->tenant,
                                                        .selector = &query_context->query.selector,
                                                        .from_ns = from_ns,
                                                        .to_ns = to_ns,
                                                        .matching = &query_context->matching};
    query_context->limits =
        (struct store_limits){.cancelled = asker->cancelled,
                              .memory_bytes = admit_profile_bytes(server->admissions),
                              .admitted = true};
    if (typed || *query_context->query.type)
        r = query_resolve(&query_context->query, server->store, &query_context->selection, error);
    if (r < 0)
        query_release(&query_context->query);
    else if (*query_context->query.type)
        r = settle_type(query_context, error);
    if (!r && typed)
        r = query_sources_choose(&query_context->sources, server->store, &query_context->selection,
                                 &query_context->limits, error);
    return r;
}

static const char *parameter(struct http_request *request, const char *prefix, const char *name)
{
    char whole[64];
    snprintf(whole, sizeof(whole), "%s%s", prefix, name);
    const char *value = http_request_query(request, whole);
    return value && *value ? value : NULL;
}

int query_context_read_from(struct query_context *query_context, struct http_request *request,
                            struct server *server, const char *prefix, const char *query,
                            int64_t from_ns, int64_t to_ns, bool typed, struct error *error)
{
    const char *own_query = parameter(request, prefix, "query");
    const char *from = parameter(request, prefix, "from"), *to = parameter(request, prefix, "to");
    if (!to)
        to = parameter(request, prefix, "until");
    int64_t now = clock_ns(CLOCK_REALTIME);
    int r = 0;
    *query_context = (struct query_context){0};
    if (from)
        r = query_time(from, now, &from_ns, error);
    if (!r && to)
        r = query_time(to, now, &to_ns, error);
    return r < 0 ? r
                 : query_context_init(query_context, request, server, own_query ? own_query : query,
                                      from_ns, to_ns, typed, error);
}

int query_context_read(struct query_context *query_context, struct http_request *request,
                       struct server *server, const char *prefix, bool typed, struct error *error)
{
    int64_t now = clock_ns(CLOCK_REALTIME);
    /* A window that began this very moment belongs to "now". */
    return query_context_read_from(query_context, request, server, prefix, "", now - HOUR_NS,
                                   now + 1, typed, error);
}

int query_context_aggregate(struct http_request *request, enum query_aggregate *ret_aggregate,
                            struct error *error)
{
    static const char *const words[] = {"average", "last", "max", NULL};
    unsigned index;
    int r = parameter_word(request, "agg", words, QUERY_AVERAGE, &index, error);
    if (!r)
        *ret_aggregate = (enum query_aggregate)index;
    return r;
}

int query_context_narrow(struct query_context *query_context, struct http_request *request,
                         struct error *error)
{
    enum query_aggregate aggregate = QUERY_AVERAGE;
    int r = query_context_aggregate(request, &aggregate, error);
    return r < 0 ? r
                 : query_aggregate_narrow(aggregate, query_context->server->store,
                                          &query_context->selection, &query_context->limits, error);
}

int query_context_read_level(struct query_context *query_context, struct http_request *request,
                             struct server *server, struct error *error)
{
    int r = query_context_read(query_context, request, server, "", true, error);
    return r < 0 ? r : query_context_narrow(query_context, request, error);
}

int query_context_read_links(struct query_context *query_context, struct http_request *request,
                             struct error *error)
{
    int r = 0;
    for (size_t i = 0; !r && i < http_request_query_count(request); i++) {
        const char *name, *value;
        http_request_query_at(request, i, &name, &value);
        if (!strcmp(name, "span_id"))
            r = query_links_add(&query_context->links, QUERY_SPAN, value, error);
        else if (!strcmp(name, "trace_id"))
            r = query_links_add(&query_context->links, QUERY_TRACE, value, error);
    }
    return r;
}

int query_context_too_large(const struct query_context *query_context, struct error *error)
{
    uint64_t limit = query_context->limits.memory_bytes;
    char size[48] = "the memory limit of one query";
    if (limit)
        snprintf(size, sizeof(size), "%llu MiB", (unsigned long long)(limit >> 20));
    return error_set(error, -E2BIG,
                     "The answer would exceed %s (limits.query_memory). Select a shorter time "
                     "range, or fewer series, as with cpu{service_name=\"x\"}.",
                     size);
}

/* All of the selection or a part of it. */
static int merge_selected(void *context, const struct store_selection *selection,
                          const struct store_limits *limits, struct profile *profile,
                          struct store_quality *ret_quality, struct error *error)
{
    struct query_context *query_context = context;
    struct store *store = query_context->server->store;
    return query_links_any(&query_context->links)
               ? query_merge_links(store, selection, limits, &query_context->links, profile,
                                   ret_quality, error)
               : store_merge(store, selection, limits, profile, ret_quality, error);
}

static int merge_within(struct query_context *query_context, const struct store_limits *limits,
                        struct profile *profile, struct store_quality *ret_quality,
                        struct error *error)
{
    return query_maps_merge(symbols_maps(query_context->server->symbols),
                            query_context->server->store, &query_context->selection, limits,
                            merge_selected, query_context, profile, ret_quality, error);
}

/* Leaves out less than these parts of the whole, one after the other, until the rest fits. */
static int merge_large(struct query_context *query_context, struct profile *profile,
                       struct store_quality *ret_quality, struct error *error)
{
    static const double shares[] = {1.0 / (1 << 20), 1.0 / (1 << 17), 1.0 / (1 << 15),
                                    1.0 / (1 << 13), 1.0 / (1 << 11), 1.0 / (1 << 9)};
    enum profile_detail detail = profile->detail;
    int r = -E2BIG;
    for (size_t i = 0; r == -E2BIG && i < ARRAY_LENGTH(shares); i++) {
        struct store_limits limits = query_context->limits;
        if (shares[i] <= limits.smallest_share)
            continue;
        limits.smallest_share = shares[i];
        profile_release(profile);
        profile_init(profile, detail);
        *ret_quality = (struct store_quality){0};
        r = merge_within(query_context, &limits, profile, ret_quality, error);
    }
    return r;
}

bool query_context_again(struct query_context *query_context, int *r, struct error *error)
{
    if (*r != -E2BIG || !admit_is_part())
        return false;
    *r = admit_rest(error);
    admit_limits(query_context->server->admissions, &query_context->limits);
    return *r == 0;
}

bool query_context_is_about_one(const struct query_context *query_context)
{
    const struct selector *selector = &query_context->query.selector;
    for (size_t i = 0; i < selector->count; i++)
        if (selector->matchers[i].kind == MATCH_EQUAL &&
            !strcmp(selector->matchers[i].name, LABEL_SERVICE_NAME))
            return true;
    return false;
}

static int merge_first(struct query_context *query_context, struct profile *profile,
                       struct store_quality *ret_quality, struct error *error)
{
    /* A query about more than one service will need it all, and needn't find that out. */
    int r = query_context_is_about_one(query_context) ? 0 : admit_rest(error);
    if (r < 0)
        return r;
    admit_limits(query_context->server->admissions, &query_context->limits);
    profile->detail |= query_context->names;
    r = merge_within(query_context, &query_context->limits, profile, ret_quality, error);
    if (!query_context_again(query_context, &r, error))
        return r;
    enum profile_detail detail = profile->detail;
    profile_release(profile);
    profile_init(profile, detail);
    *ret_quality = (struct store_quality){0};
    return merge_within(query_context, &query_context->limits, profile, ret_quality, error);
}

int query_context_merge(struct query_context *query_context, struct profile *profile,
                        struct store_quality *ret_quality, struct error *error)
{
    int r = merge_first(query_context, profile, ret_quality, error);
    if (r == -E2BIG && !query_context->whole && !query_links_any(&query_context->links))
        r = merge_large(query_context, profile, ret_quality, error);
    if (r == -E2BIG) {
        admit_limits(query_context->server->admissions, &query_context->limits);
        return query_context_too_large(query_context, error);
    }
    if (!r)
        r = symbols_name(query_context->server->symbols, query_context->selection.tenant, profile,
                         error);
    if (r < 0)
        return r;
    profile->time_ns = ret_quality->first_ns;
    profile->duration_ns = covered_duration(query_context->selection.type, ret_quality);
    if (!query_context->limits.apart) /* steps have covered times of their own */
        covered_settle(query_context->selection.type, profile, ret_quality);
    return 0;
}

int query_context_merge_matching(struct query_context *query_context, const struct matcher *matcher,
                                 struct profile *profile, struct store_quality *ret_quality,
                                 struct error *error)
{
    const struct selector *asked = query_context->selection.selector;
    _cleanup_free_ struct matcher *matchers = memory_zalloc(asked->count + 1, sizeof(*matchers));
    if (asked->count)
        memcpy(matchers, asked->matchers, asked->count * sizeof(*matchers));
    matchers[asked->count] = *matcher;
    struct selector narrowed = {.matchers = matchers, .count = asked->count + 1};
    query_context->selection.selector = &narrowed;
    int r = query_context_merge(query_context, profile, ret_quality, error);
    query_context->selection.selector = asked;
    return r;
}

int query_context_measure(struct query_context *query_context, struct query_quality *quality,
                          struct error *error)
{
    quality->sources = query_context->sources.count ? &query_context->sources : NULL;
    struct symbols *symbols = query_context->server->symbols;
    if (symbols) {
        struct symbol_requests_pending pending =
            symbol_requests_pending(symbols_requests(symbols), query_context->selection.tenant,
                                    monotonic_ns() / 1000000000);
        quality->symbols_requested = pending.requested;
        quality->symbols_uploading = pending.uploading;
    }
    return query_quality_measure(query_context->server->store, &query_context->selection,
                                 &query_context->limits, clock_ns(CLOCK_REALTIME), quality, error);
}

int query_context_merge_measured(struct query_context *query_context, struct profile *profile,
                                 struct query_quality *ret_quality, struct error *error)
{
    int r = query_context_merge(query_context, profile, &ret_quality->found, error);
    return r < 0 ? r : query_context_measure(query_context, ret_quality, error);
}

int parameter_names(struct http_request *request, enum profile_detail *ret_names,
                    struct error *error)
{
    static const char *const words[] = {"readable", "original", NULL};
    unsigned index;
    int r = parameter_word(request, "names", words, 0, &index, error);
    if (!r)
        *ret_names = index ? PROFILE_ORIGINAL_NAMES : 0;
    return r;
}

void quality_count_unnamed(const struct profile *profile, double *unnamed, double *all)
{
    _cleanup_naming_ struct naming naming = {0};
    if (!profile->type_count)
        return;
    naming_init(&naming, profile);
    for (size_t i = 0; i < profile->samples.count; i++) {
        uint32_t frame = profile->nodes[profile->samples.node[i]].frame;
        double value = (double)magnitude(profile->samples.values[0][i]);
        uint32_t entry = naming.of_frame[frame];
        *all += value;
        if (entry != NAMING_NONE && naming.entries[entry].unnamed)
            *unnamed += value;
    }
}

static double unnamed_share(const struct profile *profile)
{
    double unnamed = 0, all = 0;
    quality_count_unnamed(profile, &unnamed, &all);
    return all > 0 ? unnamed / all : 0;
}

void quality_note_cut(struct query_quality *quality, const struct profile *profile, unsigned type,
                      const struct calltree *tree, enum calltree_side side)
{
    unsigned drawn = calltree_type_of(tree, profile, type);
    if (!quality->found.cut && !quality->has_unnamed) {
        quality->has_unnamed = true; /* of all that was merged, drawn or not */
        quality->unnamed_share = unnamed_share(profile);
    }
    quality->found.cut = drawn < tree->type_count ? calltree_folded(tree, drawn, side) : 0;
}

/* Unknown numbers are null: 0 would be a count. */
static void put_unless(struct json_writer *json, const char *key, bool known, double value)
{
    if (known)
        json_member_number(json, key, value);
    else
        json_member_null(json, key);
}

/* Sources that are used for some pods or hosts of a service. */
static void put_other_sources(struct json_writer *json, const struct query_service *service)
{
    if (!service->by)
        return;
    json_member_text(json, "by", service->by);
    json_write_key(json, "others");
    json_write_array(json);
    for (const char *at = service->others; *at;) {
        size_t length = strcspn(at, QUERY_SOURCES_SEPARATOR);
        json_write_bytes(json, at, length);
        at += length + (at[length] != 0);
    }
    json_write_array_end(json);
}

/* Services that several observers report: the one that is used, and those that are not. */
static void put_sources(struct json_writer *json, const struct query_sources *sources)
{
    json_write_key(json, "sources");
    json_write_array(json);
    for (size_t i = 0; sources && i < sources->count; i++) {
        const struct query_service *service = &sources->services[i];
        const char *last = NULL;
        json_write_object(json);
        json_member_text(json, "service", service->service);
        json_member_text(json, "source", service->source);
        put_other_sources(json, service);
        json_write_key(json, "unused");
        json_write_array(json);
        for (size_t k = 0; k < sources->excluded_count; k++) {
            const struct store_exclusion *excluded = &sources->excluded[k];
            if (strcmp(excluded->service, service->service) ||
                (last && !strcmp(excluded->source, last)))
                continue;
            json_write_text(json, excluded->source);
            last = excluded->source;
        }
        json_write_array_end(json);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static void put_found(struct json_writer *json, const struct store_quality *found)
{
    json_member_unsigned(json, "samples", found->rows);
    json_member_unsigned(json, "windows", found->windows);
    json_member_unsigned(json, "series", found->series);
    json_member_fixed(json, "first", (double)found->first_ns / 1e9, 3);
    json_member_fixed(json, "last", (double)found->last_ns / 1e9, 3);
    json_member_number(json, "duration_seconds", (double)found->duration_ns / 1e9);
    json_member_signed(json, "total", found->total);
    json_member_signed(json, "cut", found->cut);
    json_member_unsigned(json, "damaged_blocks", found->damaged_blocks);
    json_member_unsigned(json, "damaged_files", found->damaged_files);
}

void quality_write(const struct query_quality *quality, const struct profile *profile,
                   struct json_writer *json)
{
    const struct store_quality *found = &quality->found;
    json_write_key(json, "quality");
    json_write_object(json);
    put_found(json, found);
    json_member_unsigned(json, "capped_labels", quality->capped_labels);
    put_unless(json, "hosts", quality->hosts, (double)quality->hosts);
    put_unless(json, "windows_covered", quality->covered >= 0, quality->covered);
    put_unless(json, "covered_seconds", found->covered_ns, (double)found->covered_ns / 1e9);
    put_unless(json, "per_seconds", found->per_ns, (double)found->per_ns / 1e9);
    put_sources(json, quality->sources);
    put_unless(json, "dropped", quality->has_dropped, (double)quality->dropped);
    /* Frames under "(other)" have names, too, which this profile doesn't contain. */
    bool whole = profile && !found->cut;
    put_unless(json, "unnamed_share", whole || quality->has_unnamed,
               quality->has_unnamed ? quality->unnamed_share
               : whole              ? unnamed_share(profile)
                                    : 0);
    json_member_unsigned(json, "symbols_requested", quality->symbols_requested);
    json_member_unsigned(json, "symbols_uploading", quality->symbols_uploading);
    json_write_object_end(json);
}
