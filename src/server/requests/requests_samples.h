/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which samples belong to which request. A sample names the span that was active; its request is
 * the outermost selected span on the way from there to the root. Where a span is missing, the trace
 * decides if it has one selected request only. Private to src/server.
 */
#pragma once

#include "query/graft.h"
#include "server/query/context.h"
#include "server/requests/requests.h"

#define NO_REQUEST UINT32_MAX
#define UNKNOWN_REQUEST (UINT32_MAX - 1)

/* A selected request with samples. */
struct sampled_request {
    int64_t duration_ns;
    uint32_t trace;
    bool error;
    uint64_t samples;
};

struct request_sample {
    uint32_t node; /* of `stacks` */
    uint32_t trace, series;
    uint32_t request; /* NO_REQUEST: of none that is selected */
    uint8_t span_id[SPAN_ID_BYTES];
    int64_t value;
};

struct sample_series {
    char *service, *state;
};

/* A trace that samples name. */
struct sampled_trace {
    uint8_t id[SPAN_TRACE_BYTES];
    uint32_t only; /* its one outermost selected request; NO_REQUEST: none, or several */
    bool several, known;
};

struct sampled_span {
    uint32_t trace, request; /* NO_REQUEST: not a selected one */
    uint32_t outermost;      /* selected request that it is part of; UNKNOWN_REQUEST at first */
    uint8_t id[SPAN_ID_BYTES], parent[SPAN_ID_BYTES];
};

struct requests_samples {
    struct profile stacks;
    struct graft graft;
    struct request_sample *list;
    size_t count, capacity;
    struct sample_series *series;
    size_t series_count, series_capacity;
    struct sampled_trace *traces;
    size_t trace_count, trace_capacity;
    struct id_table trace_index;
    uint64_t trace_seed;
    struct sampled_span *spans; /* of those traces */
    size_t span_count, span_capacity;
    struct sampled_request *requests;
    size_t request_count, request_capacity;
    uint64_t all, in_band, errors;          /* selected requests, with samples or without */
    struct histogram durations;             /* of all */
    uint64_t unlinked, by_trace, ambiguous; /* samples: see requests_evidence */
    size_t memory_bytes;                    /* limit */
    int64_t longest_ns;
    struct span_read read;
};
void requests_samples_release(struct requests_samples *samples);

/* Gathers the samples of a type that name spans, and the requests that they belong to. `type` is as
 * in a query. */
int requests_samples_gather(struct requests_samples *samples, struct requests_query *query,
                            struct query_context *profiles, struct error *error);

/* Opens the query for the samples of the parameter `type`, of all services. */
int requests_profiles_open(struct requests_query *query, struct http_request *request,
                           struct query_context *profiles, struct error *error);

bool requests_sample_in_band(const struct requests_samples *samples,
                             const struct requests_band *band, const struct request_sample *sample);

/* Fills a profile, which the caller has initialised, with the samples in the band, or with those of
 * selected requests that are not in it: below their service, and above the state that their thread
 * was in. Values are divided by `requests` unless that is 0. */
int requests_profile(struct requests_samples *samples, const struct requests_query *query,
                     const char *type, bool inside, double requests, struct profile *profile,
                     struct error *error);

/* Writes "evidence": what an answer rests on. */
struct requests_evidence {
    uint64_t requests, with_samples, samples;
    int64_t value;
};
void requests_evidence_count(const struct requests_samples *samples,
                             const struct requests_band *band, bool inside,
                             struct requests_evidence *ret_evidence);
void requests_evidence_write(const struct requests_samples *samples,
                             const struct requests_query *query, struct json_writer *json);
