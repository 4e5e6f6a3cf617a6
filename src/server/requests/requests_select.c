// SPDX-License-Identifier: Apache-2.0
// Which requests a query selects, and all of them in a time range.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "config/quantity.h"
#include "server/requests/requests.h"

#define HOUR_NS 3600000000000ll

void requests_query_release(struct requests_query *query)
{
    query_release(&query->query);
}

static int parse_query(const char *text, struct query *query, struct error *error)
{
    _cleanup_buffer_ struct buffer braces = {0};
    size_t first = strcspn(text, "{=!\"`");
    if (!text[first] || text[first] == '{') /* a type alone, or before the braces */
        return query_parse(text, query, error);
    buffer_printf(&braces, "{%s}", text);
    return query_parse(buffer_text(&braces), query, error);
}

/* p99, 250ms, or nothing at the open end of a range. */
static bool parse_bound(const char *text, double *percentile, int64_t *duration_ns)
{
    if (!*text)
        return true;
    if (*text == 'p')
        return text_to_double(text + 1, percentile) && *percentile > 0 && *percentile <= 100;
    return quantity_duration(text, duration_ns);
}

static int parse_band(const char *text, struct requests_band *band, struct error *error)
{
    char low[32], high[32] = "";
    *band = (struct requests_band){.to_ns = INT64_MAX, .whole = !text || !*text};
    if (band->whole)
        return 0;
    if (!strcmp(text, "errors")) {
        band->errors = true;
        return 0;
    }
    const char *dash = strchr(text, '-');
    size_t length = dash ? (size_t)(dash - text) : strlen(text);
    if (length && !dash && text[length - 1] == '+')
        length--;
    snprintf(low, sizeof(low), "%.*s", (int)MIN(length, sizeof(low)), text);
    if (dash)
        snprintf(high, sizeof(high), "%s", dash + 1);
    if (length < sizeof(low) && parse_bound(low, &band->above, &band->from_ns) &&
        parse_bound(high, &band->below, &band->to_ns) && (*low || *high))
        return 0;
    return error_set(error, -EINVAL,
                     "\"%.60s\" is not a band of requests; use p99, p50-p90, 250ms, 100ms-1s or "
                     "errors.",
                     text);
}

static int read_time(struct http_request *request, const char *name, int64_t now_ns,
                     int64_t *time_ns, struct error *error)
{
    const char *text = http_request_query(request, name);
    return text && *text ? query_time(text, now_ns, time_ns, error) : 0;
}

int requests_query_read(struct requests_query *query, struct http_request *request,
                        struct server *server, struct error *error)
{
    int64_t now_ns = clock_ns(CLOCK_REALTIME);
    const char *text = http_request_query(request, "query");
    *query = (struct requests_query){
        .server = server,
        .spans = {.tenant = http_request_identity(request)->tenant,
                  .from_ns = now_ns - HOUR_NS,
                  .to_ns = now_ns + 1,
                  .cancelled = http_request_cancel_flag(request)},
        .matching = {.limit_ns = MATCH_BUDGET_NS, .cancelled = http_request_cancel_flag(request)}};
    int r = parse_query(text ? text : "", &query->query, error);
    if (!r)
        r = read_time(request, "from", now_ns, &query->spans.from_ns, error);
    if (!r)
        r = read_time(request, "to", now_ns, &query->spans.to_ns, error);
    if (!r && query->spans.from_ns >= query->spans.to_ns)
        r = error_set(error, -EINVAL, "The time range ends before it begins.");
    if (!r)
        r = parse_band(http_request_query(request, "band"), &query->band, error);
    if (!r && !server->spans)
        r = error_set(error, -ENOTSUP, "This server doesn't keep spans (spans.enabled).");
    return r;
}

struct query_spans requests_matcher(struct requests_query *query)
{
    return (struct query_spans){.selector = &query->query.selector, .budget = &query->matching};
}

int requests_match(struct query_spans *matcher, const struct span *span, bool *ret_selected,
                   struct error *error)
{
    *ret_selected = false;
    return span_is_request(span) ? query_spans_match(matcher, span, ret_selected, error) : 0;
}

/* ---- all requests of a time range ---- */

struct walk {
    struct requests_query *query;
    struct query_spans matcher;
    requests_fn *fn;
    void *context;
    struct error *error;
};

static int walk_block(void *context, const struct span_batch *batch)
{
    struct walk *walk = context;
    const struct span_query *spans = &walk->query->spans;
    query_spans_begin(&walk->matcher, batch);
    for (size_t i = 0; i < batch->count; i++) {
        const struct span *span = &batch->list[i];
        bool selected;
        if (span->start_ns < spans->from_ns || span->start_ns >= spans->to_ns)
            continue;
        int r = requests_match(&walk->matcher, span, &selected, walk->error);
        if (!r && selected)
            r = walk->fn(walk->context, batch, span);
        if (r)
            return r;
    }
    return 0;
}

int requests_each(struct requests_query *query, requests_fn *fn, void *context,
                  struct span_read *ret_read, struct error *error)
{
    struct walk walk = {.query = query,
                        .matcher = requests_matcher(query),
                        .fn = fn,
                        .context = context,
                        .error = error};
    int r =
        span_index_read(query->server->spans, &query->spans, walk_block, &walk, ret_read, error);
    query_spans_release(&walk.matcher);
    return r;
}

static int add_duration(void *context, const struct span_batch *batch, const struct span *span)
{
    (void)batch;
    histogram_add(context, span->duration_ns, span->status == SPAN_ERROR);
    return 0;
}

int requests_settle(struct requests_query *query, struct error *error)
{
    struct histogram durations = {0};
    struct span_read read;
    if (query->band.above == 0 && query->band.below == 0)
        return 0;
    int r = requests_each(query, add_duration, &durations, &read, error);
    requests_band_settle(&query->band, &durations);
    histogram_release(&durations);
    return r;
}
