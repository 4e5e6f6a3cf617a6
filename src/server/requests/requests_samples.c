// SPDX-License-Identifier: Apache-2.0
// Joins samples and requests: first the samples that name spans, then the spans of their traces.

#include "server/requests/requests_samples.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "query/naming/maps.h"
#include "server/admission/admission.h"
#include "server/symbols/symbols.h"

#define BEFORE_NS (120 * 1000000000ll)  /* windows begin before the requests that they are of */
#define LONGEST_NS (600 * 1000000000ll) /* of a request, to look for the samples at its end */
#define PARENTS_MAX 1000                /* on the way to the root */
#define STATE_LABEL "state"

void requests_samples_release(struct requests_samples *samples)
{
    for (size_t i = 0; i < samples->series_count; i++) {
        free(samples->series[i].service);
        free(samples->series[i].state);
    }
    free(samples->series);
    free(samples->list);
    free(samples->traces);
    free(samples->spans);
    free(samples->requests);
    id_table_release(&samples->trace_index);
    histogram_release(&samples->durations);
    graft_release(&samples->graft);
    profile_release(&samples->stacks);
}

static size_t memory_of(const struct requests_samples *samples)
{
    return profile_memory(&samples->stacks) + samples->capacity * sizeof(*samples->list) +
           samples->trace_capacity * sizeof(*samples->traces) +
           samples->span_capacity * sizeof(*samples->spans) +
           samples->request_capacity * sizeof(*samples->requests);
}

static int check_memory(const struct requests_samples *samples, struct error *error)
{
    if (memory_of(samples) <= samples->memory_bytes)
        return 0;
    return error_set(error, -E2BIG,
                     "The samples and spans of these requests exceed the memory limit of one query "
                     "(limits.query_memory). Select a shorter time range.");
}

/* ---- samples ---- */

static uint32_t find_trace(const struct requests_samples *samples,
                           const uint8_t id[SPAN_TRACE_BYTES])
{
    struct id_probe probe = id_probe_start(span_trace_hash(id, samples->trace_seed));
    uint32_t trace;
    while ((trace = id_table_next(&samples->trace_index, &probe)) != ID_NONE)
        if (!memcmp(samples->traces[trace].id, id, SPAN_TRACE_BYTES))
            break;
    return trace;
}

static uint32_t add_trace(struct requests_samples *samples, const uint8_t id[SPAN_TRACE_BYTES])
{
    uint32_t trace = find_trace(samples, id);
    if (trace != ID_NONE)
        return trace;
    array_reserve(samples->traces, samples->trace_capacity, samples->trace_count + 1);
    trace = (uint32_t)samples->trace_count++;
    samples->traces[trace] = (struct sampled_trace){.only = NO_REQUEST};
    memcpy(samples->traces[trace].id, id, SPAN_TRACE_BYTES);
    id_table_insert(&samples->trace_index, span_trace_hash(id, samples->trace_seed), trace);
    return trace;
}

/* Samples of a series come together. */
static uint32_t add_series(struct requests_samples *samples, const struct labels *labels)
{
    const char *service = labels_get(labels, LABEL_SERVICE_NAME);
    const char *state = labels_get(labels, STATE_LABEL);
    service = service ? service : "";
    state = state ? state : "";
    const struct sample_series *last =
        samples->series_count ? &samples->series[samples->series_count - 1] : NULL;
    if (last && !strcmp(last->service, service) && !strcmp(last->state, state))
        return (uint32_t)samples->series_count - 1;
    array_reserve(samples->series, samples->series_capacity, samples->series_count + 1);
    samples->series[samples->series_count] =
        (struct sample_series){.service = memory_strdup(service), .state = memory_strdup(state)};
    return (uint32_t)samples->series_count++;
}

struct gathering {
    struct requests_samples *samples;
    struct error *error;
};

static int gather_sample(void *context, const struct labels *labels, const struct profile *profile,
                         const struct store_exemplar *exemplar)
{
    struct gathering *gathering = context;
    struct requests_samples *samples = gathering->samples;
    /* Without a trace, nobody can say where its span belongs. */
    if (span_id_is_zero(exemplar->link.trace_id, SPAN_TRACE_BYTES)) {
        samples->unlinked++;
        return 0;
    }
    graft_from(&samples->graft, profile);
    struct request_sample sample = {.node = graft_node(&samples->graft, exemplar->node),
                                    .trace = add_trace(samples, exemplar->link.trace_id),
                                    .series = add_series(samples, labels),
                                    .request = NO_REQUEST,
                                    .value = exemplar->value};
    memcpy(sample.span_id, exemplar->link.span_id, SPAN_ID_BYTES);
    array_reserve(samples->list, samples->capacity, samples->count + 1);
    samples->list[samples->count++] = sample;
    return samples->count & 1023 ? 0 : check_memory(samples, gathering->error);
}

static int gather_samples(struct requests_samples *samples, struct query_context *profiles,
                          struct error *error)
{
    struct gathering gathering = {samples, error};
    struct server *server = profiles->server;
    struct store_selection selection = profiles->selection;
    selection.from_ns -= BEFORE_NS;
    if (__builtin_add_overflow(selection.to_ns, BEFORE_NS + MIN(samples->longest_ns, LONGEST_NS),
                               &selection.to_ns))
        selection.to_ns = INT64_MAX;
    samples->graft.to = &samples->stacks;
    int r = query_maps_exemplars(symbols_maps(server->symbols), NULL, server->store, &selection,
                                 NULL, &profiles->limits, gather_sample, &gathering, error);
    graft_release(&samples->graft);
    return MIN(r, 0);
}

/* ---- requests and spans ---- */

struct joining {
    struct requests_samples *samples;
    struct requests_query *query;
    struct query_spans matcher;
    struct error *error;
};

static uint32_t add_request(struct requests_samples *samples, const struct span *span,
                            uint32_t trace)
{
    array_reserve(samples->requests, samples->request_capacity, samples->request_count + 1);
    samples->requests[samples->request_count] = (struct sampled_request){
        .duration_ns = span->duration_ns, .trace = trace, .error = span->status == SPAN_ERROR};
    return (uint32_t)samples->request_count++;
}

static int join_span(struct joining *joining, const struct span *span)
{
    struct requests_samples *samples = joining->samples;
    const struct requests_query *query = joining->query;
    bool selected = false;
    int r = 0;
    if (span->start_ns >= query->spans.from_ns && span->start_ns < query->spans.to_ns)
        r = requests_match(&joining->matcher, span, &selected, joining->error);
    if (r < 0)
        return r;
    if (selected) {
        bool failed = span->status == SPAN_ERROR;
        samples->all++;
        samples->errors += failed;
        samples->in_band += requests_band_has(&query->band, span->duration_ns, failed);
        histogram_add(&samples->durations, span->duration_ns, failed);
    }
    uint32_t trace = find_trace(samples, span->trace_id);
    if (trace == ID_NONE)
        return 0;
    samples->traces[trace].known = true;
    struct sampled_span kept = {.trace = trace,
                                .request =
                                    selected ? add_request(samples, span, trace) : NO_REQUEST,
                                .outermost = UNKNOWN_REQUEST};
    memcpy(kept.id, span->span_id, SPAN_ID_BYTES);
    memcpy(kept.parent, span->parent_id, SPAN_ID_BYTES);
    array_reserve(samples->spans, samples->span_capacity, samples->span_count + 1);
    samples->spans[samples->span_count++] = kept;
    return samples->span_count & 1023 ? 0 : check_memory(samples, joining->error);
}

static int join_block(void *context, const struct span_batch *batch)
{
    struct joining *joining = context;
    int r = 0;
    query_spans_begin(&joining->matcher, batch);
    for (size_t i = 0; !r && i < batch->count; i++)
        r = join_span(joining, &batch->list[i]);
    return r;
}

/* Spans of a request start later than it, and those that it is part of earlier. */
static int join_spans(struct requests_samples *samples, struct requests_query *query,
                      struct error *error)
{
    struct joining joining = {
        .samples = samples, .query = query, .matcher = requests_matcher(query), .error = error};
    struct span_query spans = query->spans;
    spans.from_ns -= LONGEST_NS;
    if (__builtin_add_overflow(spans.to_ns, LONGEST_NS, &spans.to_ns))
        spans.to_ns = INT64_MAX;
    int r =
        span_index_read(query->server->spans, &spans, join_block, &joining, &samples->read, error);
    query_spans_release(&joining.matcher);
    return r;
}

static int by_id(const void *a, const void *b)
{
    const struct sampled_span *x = a, *y = b;
    if (x->trace != y->trace)
        return x->trace < y->trace ? -1 : 1;
    return memcmp(x->id, y->id, SPAN_ID_BYTES);
}

static struct sampled_span *find_span(const struct requests_samples *samples, uint32_t trace,
                                      const uint8_t id[SPAN_ID_BYTES])
{
    struct sampled_span key = {.trace = trace};
    memcpy(key.id, id, SPAN_ID_BYTES);
    return samples->span_count
               ? bsearch(&key, samples->spans, samples->span_count, sizeof(key), by_id)
               : NULL;
}

/* The outermost selected request that the span is part of. Each span of the way keeps its answer,
 * so that deep traces don't cost their depth for each sample. */
static uint32_t outermost(const struct requests_samples *samples, uint32_t trace,
                          const uint8_t id[SPAN_ID_BYTES])
{
    struct sampled_span *way[PARENTS_MAX];
    struct sampled_span *span = find_span(samples, trace, id);
    uint32_t request = NO_REQUEST;
    size_t depth = 0;
    while (span && span->outermost == UNKNOWN_REQUEST && depth < PARENTS_MAX) {
        way[depth++] = span;
        span->outermost = NO_REQUEST; /* where parents form a circle, the way ends */
        span = find_span(samples, trace, span->parent);
    }
    if (span && span->outermost != UNKNOWN_REQUEST)
        request = span->outermost;
    while (depth-- > 0) {
        if (request == NO_REQUEST)
            request = way[depth]->request;
        way[depth]->outermost = request;
    }
    return request;
}

/* Traces with one selected request own all samples that they name. */
static void find_only_requests(struct requests_samples *samples)
{
    for (size_t i = 0; i < samples->span_count; i++) {
        const struct sampled_span *span = &samples->spans[i];
        struct sampled_trace *trace = &samples->traces[span->trace];
        if (span->request == NO_REQUEST)
            continue;
        uint32_t request = outermost(samples, span->trace, span->id);
        if (trace->only != NO_REQUEST && trace->only != request)
            trace->several = true;
        trace->only = request;
    }
}

static void attribute(struct requests_samples *samples)
{
    for (size_t i = 0; i < samples->count; i++) {
        struct request_sample *sample = &samples->list[i];
        const struct sampled_trace *trace = &samples->traces[sample->trace];
        sample->request = outermost(samples, sample->trace, sample->span_id);
        if (sample->request == NO_REQUEST && trace->only != NO_REQUEST) {
            samples->ambiguous += trace->several;
            samples->by_trace += !trace->several;
            sample->request = trace->several ? NO_REQUEST : trace->only;
        }
        samples->unlinked += !trace->known;
        if (sample->request != NO_REQUEST)
            samples->requests[sample->request].samples++;
    }
}

int requests_samples_gather(struct requests_samples *samples, struct requests_query *query,
                            struct query_context *profiles, struct error *error)
{
    profile_init(&samples->stacks, PROFILE_ALL & ~PROFILE_TIMES);
    samples->memory_bytes = profiles->limits.memory_bytes;
    samples->longest_ns = LONGEST_NS;
    samples->trace_seed = random_bits();
    int r = gather_samples(samples, profiles, error);
    if (!r)
        r = join_spans(samples, query, error);
    if (r < 0)
        return r;
    if (samples->span_count)
        qsort(samples->spans, samples->span_count, sizeof(*samples->spans), by_id);
    find_only_requests(samples);
    attribute(samples);
    return 0;
}
