/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record that readers outside of the process see through `otel_thread_ctx_v1`, byte for byte,
 * and the table of requests. Readers and this library share nothing else.
 */
#ifndef ASSAY_RECORD_H
#define ASSAY_RECORD_H

#include <stdint.h>

#define ASSAY_RECORD_BYTES 640
#define ASSAY_RECORD_HEADER 28
#define ASSAY_ATTRIBUTE_BYTES (ASSAY_RECORD_BYTES - ASSAY_RECORD_HEADER)

struct assay_record {
    unsigned char trace_id[16];
    unsigned char span_id[8];
    unsigned char valid; /* 1; anything else while it is written */
    unsigned char flags;
    uint16_t attribute_bytes;
    unsigned char
        attributes[ASSAY_ATTRIBUTE_BYTES]; /* {key, length, value}..., the last one wins */
} __attribute__((aligned(8)));

/* Each row is written by many threads and read from outside; the process context says where. */
#define ASSAY_ROUTES_MAX 256
#define ASSAY_ROUTE_BYTES 96
#define ASSAY_REQUESTS_VERSION 1
struct assay_requests {
    char signature[8]; /* "ASSAYREQ" */
    uint32_t version;
    uint32_t count; /* rows in use */
    struct {
        char name[ASSAY_ROUTE_BYTES];
        uint64_t requests, failed, duration_ns;
        uint64_t unused; /* two lines of the cache */
    } rows[ASSAY_ROUTES_MAX];
};

#endif
