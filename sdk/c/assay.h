/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libassay: lets profilers outside of the process see which request a thread works on.
 *
 * The library publishes the context of each thread as OpenTelemetry describes it for readers
 * outside of the process: the thread context (`otel_thread_ctx_v1`) and the process context
 * (OTEL_CTX). `assay record` and `assay agent` read both, and so does every other reader of that
 * specification. Nothing is sent anywhere, and nothing waits: beginning and ending a span takes
 * nanoseconds.
 *
 *     static int route;
 *
 *     assay_init("shop", "1.4.2");
 *     route = assay_key("http.route");
 *     ...
 *     struct assay_span span;
 *     assay_begin(&span);
 *     assay_set(route, "/user/{id}");
 *     ... the thread works ...
 *     assay_end(&span);
 *
 * All functions can be called by any thread. None may be called from a signal's handler.
 */
#ifndef ASSAY_H
#define ASSAY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASSAY_TRACE_ID_BYTES 16
#define ASSAY_SPAN_ID_BYTES 8
#define ASSAY_SAMPLED 1 /* a trace flag of W3C */

/* State that a span restores at its end, in the caller's memory. Its fields are the library's. */
struct assay_span {
    unsigned char before[28];
    unsigned int order;
    void *thread;
};

/* ---- the process ---- */

/* Publishes the name and the version of the service; NULL leaves one out. 0, or a negative errno:
 * the system lets nobody publish, and spans work all the same. A process that forks publishes anew
 * in the child. */
int assay_init(const char *service, const char *version);
/* Another attribute of the process, such as "deployment.environment.name". NULL removes it. 0, or a
 * negative errno: -E2BIG beyond 64 attributes or 256 bytes of text. */
int assay_set_resource(const char *key, const char *value);

/* ---- spans ---- */

/* Begins a span within the thread's current one, or a new trace without one. Ids are random. */
void assay_begin(struct assay_span *span);
/* ... in the trace that a caller began elsewhere. NULL or an id of zeros begins a new trace. */
void assay_begin_trace(struct assay_span *span, const unsigned char trace_id[ASSAY_TRACE_ID_BYTES],
                       unsigned flags);
/* ... with the ids that a tracer of your own gave it. */
void assay_attach(struct assay_span *span, const unsigned char trace_id[ASSAY_TRACE_ID_BYTES],
                  const unsigned char span_id[ASSAY_SPAN_ID_BYTES], unsigned flags);
/* Ends it: the thread goes on in the one before, with the attributes that this had. Spans that were
 * begun within it and are not ended yet end with it. It must be called by the thread that began
 * the span; by another, it does nothing and returns -EPERM. */
int assay_end(struct assay_span *span);

/* The number of an attribute, which is registered with its first use: up to 255 bytes of text.
 * Or -E2BIG beyond 256 attributes, -EINVAL. */
int assay_key(const char *name);
/* Sets an attribute of the current span, until it ends. Outside of spans it belongs to the thread.
 * 0 or a negative errno: -E2BIG when the value is longer than 255 bytes or all values together are
 * longer than the record's room for 612 bytes. */
int assay_set(int key, const char *value);

/* The thread's current ids; false outside of spans. */
int assay_current(unsigned char trace_id[ASSAY_TRACE_ID_BYTES],
                  unsigned char span_id[ASSAY_SPAN_ID_BYTES]);
/* The current span as the header `traceparent` of W3C, with its terminating zero; or an empty text
 * outside of spans. */
#define ASSAY_TRACEPARENT_BYTES 56
void assay_traceparent(char text[ASSAY_TRACEPARENT_BYTES]);
/* Begins a span in the trace that such a header names. A header that is not valid begins a new
 * trace, and -EINVAL is returned. */
int assay_begin_traceparent(struct assay_span *span, const char *text);

/* ---- requests ---- */

/* Counters of finished requests, which the agent reads: requests per second without any span being
 * stored. A route is registered with its first use: "GET /user/{id}", up to 95 bytes; or -E2BIG
 * beyond 256 routes, -EINVAL. */
int assay_route(const char *name);
/* Counts one that took so long; `failed`: its answer was an error. */
void assay_count(int route, uint64_t duration_ns, int failed);

#ifdef __cplusplus
}
#endif

#endif
