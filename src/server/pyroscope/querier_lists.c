// SPDX-License-Identifier: Apache-2.0
// Pyroscope's lists: types, label names and values, series; and what a query would read.

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "io/wire.h"
#include "query/types.h"
#include "server/admission/admission.h"
#include "server/api/series_list.h"
#include "server/pyroscope/querier.h"

#define SERVICE_ALIAS "__service_name__"

/* Of some labels only there are fewer sets than series. What is known takes memory, of which there
 * is some for each query. */
static bool seen_before(struct call *call, const struct labels *labels)
{
    uint64_t hash = labels_hash(labels);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&call->index, &probe)) != ID_NONE)
        if (labels_equal(&call->seen[id], labels))
            return true;
    array_reserve(call->seen, call->seen_capacity, call->seen_count + 1);
    call->seen[call->seen_count] = (struct labels){0};
    labels_copy(&call->seen[call->seen_count], labels);
    call->seen_bytes += sizeof(*labels) + labels_memory(&call->seen[call->seen_count]);
    id_table_insert(&call->index, hash, (uint32_t)call->seen_count++);
    return false;
}

static int put_name(void *context, const char *text)
{
    struct call *call = context;
    rpc_put_text(&call->answer, 1, NULL, text);
    return querier_pass(call);
}

/* ---- texts of more than one list ---- */

struct texts {
    struct call *call;
    struct arena arena;
    char **list; /* in any order, some more than once */
    size_t count, capacity, bytes;
    bool once; /* there is only one list, which is in order */
};

static void texts_release(struct texts *texts)
{
    free(texts->list);
    arena_release(&texts->arena);
}

static int keep_text(void *context, const char *text)
{
    struct texts *texts = context;
    size_t length = strlen(text);
    array_reserve(texts->list, texts->capacity, texts->count + 1);
    texts->list[texts->count++] = arena_strndup(&texts->arena, text, length);
    texts->bytes += length + 1 + sizeof(*texts->list);
    return texts->bytes > admit_profile_bytes(texts->call->server->admissions) ? -E2BIG : 0;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_texts(struct texts *texts)
{
    size_t kept = 0;
    if (texts->count)
        qsort(texts->list, texts->count, sizeof(*texts->list), compare_texts);
    for (size_t i = 0; i < texts->count; i++)
        if (!i || strcmp(texts->list[i], texts->list[kept - 1]) != 0)
            texts->list[kept++] = texts->list[i];
    texts->count = kept;
}

/* ---- what is listed ---- */

/* All matchers have to hold: one text of them. -ENOENT when they ask for two types. */
static int join_matchers(const struct rpc_texts *matchers, struct buffer *text, struct error *error)
{
    _cleanup_query_ struct query all = {0};
    int r = 0;
    for (size_t i = 0; !r && i < matchers->count; i++) {
        _cleanup_query_ struct query one = {0};
        r = query_parse(matchers->list[i], &one, error);
        if (!r && *all.type && *one.type && strcmp(all.type, one.type))
            r = -ENOENT;
        if (!r && *one.type)
            strcpy(all.type, one.type);
        for (size_t k = 0; !r && k < one.selector.count; k++)
            r = selector_add(&all.selector, one.selector.matchers[k].kind,
                             one.selector.matchers[k].name, one.selector.matchers[k].value, error);
    }
    buffer_add_text(text, all.type);
    selector_write(text, &all.selector);
    return r;
}

typedef int list_fn(struct call *call, struct query_context *query_context, struct texts *texts,
                    struct error *error);

/* Once with the request's selection, or for each type that the selector wants, where it says
 * something of types without naming one. */
static int for_types(struct call *call, list_fn *fn, struct texts *texts, struct error *error)
{
    const struct rpc_texts *matchers = &call->request.matchers;
    _cleanup_query_context_ struct query_context query_context = {0};
    _cleanup_buffer_ struct buffer text = {0};
    _cleanup_(texts_release) struct texts types = {.call = call};
    int r = join_matchers(matchers, &text, error);
    if (!r)
        r = querier_ask(call, &call->request, buffer_text(&text), false, &query_context, error);
    if (r == -ENOENT) /* a type that isn't there: nothing has it */
        return 0;
    texts->once = r < 0 || !query_types_selected(&query_context.query.selector);
    if (texts->once)
        return r < 0 ? r : fn(call, &query_context, texts, error);
    struct selector wanted = query_context.query.selector;
    struct selector rest = {0};
    for (size_t i = 0; !r && i < wanted.count; i++)
        r = selector_add(&rest, wanted.matchers[i].kind, wanted.matchers[i].name,
                         wanted.matchers[i].value, error);
    query_types_settle(&rest);
    query_context.selection.selector = &rest;
    if (!r)
        r = store_types(call->server->store, &query_context.selection, keep_text, &types, error);
    for (size_t i = 0; !r && i < types.count; i++) {
        query_context.selection.type = types.list[i];
        if (query_type_matches(&wanted, query_context.selection.type))
            r = fn(call, &query_context, texts, error);
    }
    selector_release(&rest);
    return r;
}

static int put_type(void *context, const char *id)
{
    static const struct {
        const char *key;
        unsigned number;
    } parts[] = {
        {"name", 2}, {"sampleType", 4}, {"sampleUnit", 5}, {"periodType", 6}, {"periodUnit", 7}};
    struct call *call = context;
    struct rpc_writer *answer = &call->answer;
    size_t length, mark = rpc_begin(answer, 1, NULL);
    rpc_put_text(answer, 1, "ID", id);
    for (unsigned i = 0; i < ARRAY_LENGTH(parts); i++) {
        const char *part = query_type_part(id, i, &length);
        rpc_put_bytes(answer, parts[i].number, parts[i].key, part, length);
    }
    rpc_end(answer, mark);
    return 0;
}

static int types_of(struct call *call, struct query_context *query_context, struct texts *texts,
                    struct error *error)
{
    (void)texts;
    return store_types(call->server->store, &query_context->selection, put_type, call, error);
}

static int names_of(struct call *call, struct query_context *query_context, struct texts *texts,
                    struct error *error)
{
    size_t before = texts->count;
    int r =
        store_label_names(call->server->store, &query_context->selection, keep_text, texts, error);
    if (r < 0 || texts->count == before)
        return r;
    for (size_t i = 0; i < QUERY_TYPE_LABELS; i++) /* every series has these */
        keep_text(texts, query_type_labels[i]);
    return keep_text(texts, SERVICE_ALIAS);
}

static int keep_part(void *context, const char *id)
{
    struct texts *texts = context;
    struct labels one = {0};
    querier_set_type_label(&one, texts->call->request.name, id);
    int r = one.count ? keep_text(texts, one.list[0].value) : 0;
    labels_release(&one);
    return r;
}

static int values_of(struct call *call, struct query_context *query_context, struct texts *texts,
                     struct error *error)
{
    const char *name = call->request.name;
    struct store *store = call->server->store;
    size_t length;
    if (query_type_value("", name, &length))
        return store_types(store, &query_context->selection, keep_part, texts, error);
    if (!strcmp(name, SERVICE_ALIAS))
        name = LABEL_SERVICE_NAME;
    if (texts->once)
        return store_label_values(store, &query_context->selection, name, put_name, call, error);
    return store_label_values(store, &query_context->selection, name, keep_text, texts, error);
}

static int put_series(void *context, const struct labels *labels, const char *type,
                      int64_t first_ns, int64_t last_ns)
{
    struct call *call = context;
    const struct rpc_texts *wanted = &call->request.label_names;
    struct labels all = {0}, shown = {0};
    (void)first_ns;
    (void)last_ns;
    labels_copy(&all, labels);
    const char *service = labels_get(labels, LABEL_SERVICE_NAME);
    labels_set(&all, SERVICE_ALIAS, service ? service : "");
    for (size_t i = 0; i < QUERY_TYPE_LABELS; i++)
        querier_set_type_label(&all, query_type_labels[i], type);
    for (size_t i = 0; i < wanted->count; i++) {
        const char *value = labels_get(&all, wanted->list[i]);
        labels_set(&shown, wanted->list[i], value ? value : "");
    }
    const struct labels *set = wanted->count ? &shown : &all;
    if (set->count && !(wanted->count && seen_before(call, set))) {
        size_t mark = rpc_begin(&call->answer, 2, NULL);
        querier_put_labels(call, set);
        rpc_end(&call->answer, mark);
    }
    labels_release(&all);
    labels_release(&shown);
    return call->seen_bytes > admit_profile_bytes(call->server->admissions) ? -E2BIG : 0;
}

static int series_of(struct call *call, struct query_context *query_context, struct texts *texts,
                     struct error *error)
{
    (void)texts;
    return series_list(call->server->store, &query_context->selection, call->answer.out, put_series,
                       call, error);
}

static int list(struct call *call, const char *key, list_fn *fn, struct error *error)
{
    _cleanup_(texts_release) struct texts texts = {.call = call};
    rpc_open(&call->answer);
    rpc_list(&call->answer, key);
    int r = for_types(call, fn, &texts, error);
    sort_texts(&texts);
    for (size_t i = 0; !r && i < texts.count; i++)
        r = put_name(call, texts.list[i]);
    if (r == -E2BIG && error->code != r)
        error_set(error, r,
                  "The list exceeds the memory limit of one query; select fewer labels or a "
                  "shorter time range, or use one matcher.");
    rpc_list_end(&call->answer);
    rpc_close(&call->answer);
    return r;
}

int querier_profile_types(struct call *call, struct error *error)
{
    return list(call, "profileTypes", types_of, error);
}

int querier_label_names(struct call *call, struct error *error)
{
    return list(call, "names", names_of, error);
}

int querier_label_values(struct call *call, struct error *error)
{
    if (!*call->request.name)
        return error_set(error, -EINVAL, "The request has no label name.");
    return list(call, "names", values_of, error);
}

int querier_series(struct call *call, struct error *error)
{
    int r = admit_rest(error);
    return r < 0 ? r : list(call, "labelsSet", series_of, error);
}

/* ---- what is there at all ---- */

struct extent {
    int64_t first_ns, last_ns;
    uint64_t series;
};

static int extend(void *context, const struct labels *labels, const char *type, int64_t first_ns,
                  int64_t last_ns)
{
    struct extent *extent = context;
    (void)labels;
    (void)type;
    extent->first_ns = extent->series++ ? MIN(extent->first_ns, first_ns) : first_ns;
    extent->last_ns = MAX(extent->last_ns, last_ns);
    return 0;
}

int querier_profile_stats(struct call *call, struct error *error)
{
    struct extent extent = {0};
    struct store_selection selection = {.tenant = http_request_identity(call->http)->tenant,
                                        .to_ns = INT64_MAX};
    int r = store_series(call->server->store, &selection, extend, &extent, error);
    rpc_open(&call->answer);
    rpc_put_bool(&call->answer, 1, "dataIngested", extent.series != 0);
    rpc_put_i64(&call->answer, 2, "oldestProfileTime", extent.first_ns / MS_NS);
    rpc_put_i64(&call->answer, 3, "newestProfileTime", extent.last_ns / MS_NS);
    rpc_close(&call->answer);
    return r;
}

static int no_points(void *context, const struct labels *group, const struct store_point *points,
                     size_t count)
{
    (void)context;
    (void)group;
    (void)points;
    (void)count;
    return 0;
}

/* An estimate of the bytes to read: the share of rows of the whole store's bytes. */
static int analyze(struct call *call, struct query_context *query_context, struct extent *extent,
                   struct store_quality *quality, uint64_t *ret_bytes, struct error *error)
{
    struct store *store = call->server->store;
    struct store_stats stats;
    int r = store_series(store, &query_context->selection, extend, extent, error);
    if (!r)
        r = store_stats(store, &stats, error);
    if (r < 0 || !query_context->selection.type || !extent->series)
        return r;
    struct store_selection there = query_context->selection;
    there.from_ns = MAX(there.from_ns, extent->first_ns);
    there.to_ns = MIN(there.to_ns, extent->last_ns + 1);
    struct store_timeseries_query query = {
        .step_ns = MAX(there.to_ns - there.from_ns, (int64_t)1000000000)};
    if (there.to_ns > there.from_ns)
        r = store_timeseries(store, &there, &query, &query_context->limits, no_points, NULL,
                             quality, error);
    if (!r && stats.rows)
        *ret_bytes =
            (uint64_t)((double)stats.bytes[STORE_RAW] * (double)quality->rows / (double)stats.rows);
    return r;
}

int querier_analyze(struct call *call, struct error *error)
{
    _cleanup_query_context_ struct query_context query_context = {0};
    struct rpc_writer *answer = &call->answer;
    struct store_quality quality = {0};
    struct extent extent = {0};
    uint64_t bytes = 0;
    int r = querier_ask(call, &call->request, call->request.label_selector, false, &query_context,
                        error);
    if (!r)
        r = analyze(call, &query_context, &extent, &quality, &bytes, error);
    if (r < 0)
        return r;
    rpc_open(answer);
    rpc_list(answer, "queryScopes");
    size_t mark = rpc_begin(answer, 1, NULL);
    rpc_put_text(answer, 1, "componentType", "store");
    rpc_put_i64(answer, 2, "componentCount", 1);
    rpc_put_i64(answer, 3, "blockCount", (int64_t)quality.blocks);
    rpc_put_i64(answer, 4, "seriesCount", (int64_t)extent.series);
    rpc_put_i64(answer, 5, "profileCount", (int64_t)quality.windows);
    rpc_put_i64(answer, 6, "sampleCount", (int64_t)quality.rows);
    rpc_put_i64(answer, 8, "profileBytes", (int64_t)bytes);
    rpc_end(answer, mark);
    rpc_list_end(answer);
    mark = rpc_begin(answer, 2, "queryImpact");
    rpc_put_i64(answer, 2, "totalBytesInTimeRange", (int64_t)bytes);
    rpc_put_i64(answer, 3, "totalQueriedSeries", (int64_t)extent.series);
    rpc_put_bool(answer, 4, "deduplicationNeeded", false);
    rpc_end(answer, mark);
    rpc_close(answer);
    return 0;
}
