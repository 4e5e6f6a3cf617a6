/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: spans that come in, which of them a query selects, and what profiles say about them.
 * docs/requests.md explains the terms. Private to src/server.
 */
#pragma once

#include "query/spans.h"
#include "server/handler/handler.h"
#include "spans/template.h"

#define REQUESTS_OTHER "(other)" /* routes beyond the limit */

/* Which of the selected requests are meant. */
struct requests_band {
    double above, below;    /* percentiles, 0 to 100; 0: none given */
    int64_t from_ns, to_ns; /* durations: [from, to) */
    bool errors;            /* only those that failed */
    bool whole;             /* no band was given: all requests */
};

/* A query: the requests in a time range that match a selector. */
struct requests_query {
    struct server *server;
    struct query query; /* its type is "" where none was given */
    struct match_budget matching;
    struct span_query spans;
    struct requests_band band;
};
void requests_query_release(struct requests_query *query);
#define _cleanup_requests_query_ _cleanup_(requests_query_release)

/* From the parameters query, from, to and band. Braces may be left out: service="shop". */
int requests_query_read(struct requests_query *query, struct http_request *request,
                        struct server *server, struct error *error);

/* Tells which spans are selected requests. */
struct query_spans requests_matcher(struct requests_query *query);
int requests_match(struct query_spans *matcher, const struct span *span, bool *ret_selected,
                   struct error *error);

/* Calls `fn` with each selected request of the time range, whatever the band. Non-zero ends the
 * call, which returns that. */
typedef int requests_fn(void *context, const struct span_batch *batch, const struct span *span);
int requests_each(struct requests_query *query, requests_fn *fn, void *context,
                  struct span_read *ret_read, struct error *error);

/* Turns percentiles of the band into durations, by all selected requests. */
int requests_settle(struct requests_query *query, struct error *error);

/* ---- histogram.c: durations ---- */

#define HISTOGRAM_STEPS 32 /* of an octave: each is about 3% wide */
#define HISTOGRAM_OCTAVES 64

struct histogram {
    struct histogram_octave {
        uint64_t count[HISTOGRAM_STEPS], errors[HISTOGRAM_STEPS];
    } * octaves[HISTOGRAM_OCTAVES]; /* NULL: no durations of that size */
    uint64_t count, errors;
    int64_t sum_ns, max_ns;
};
void histogram_release(struct histogram *histogram);
void histogram_add(struct histogram *histogram, int64_t duration_ns, bool error);

/* The duration below which so many percent of the requests are, within a step's width. */
int64_t histogram_percentile(const struct histogram *histogram, double percent);

/* The lower edge of the step that a duration is in. */
int64_t histogram_edge(int64_t duration_ns);

/* [{"from":ns,"to":ns,"count":n,"errors":n},...] of the steps that have any. */
void histogram_write(const struct histogram *histogram, struct json_writer *json);

void requests_band_settle(struct requests_band *band, const struct histogram *histogram);
bool requests_band_has(const struct requests_band *band, int64_t duration_ns, bool error);

/* ---- the handlers ---- */

server_handler receive_traces; /* receive_traces.c */
server_handler requests_list;  /* requests_list.c */
server_handler requests_flame; /* requests_flame.c */
