/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenTelemetry's traces (opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest), in
 * protobuf and JSON: docs/formats/otlp-traces.md says what is kept of them.
 */
#pragma once

#include "base/error.h"
#include "io/source.h"
#include "spans/span.h"
#include "spans/template.h"

#define SPANS_PER_PUSH_MAX 250000

struct span_reader {
    const struct template_rules *rules; /* of routes; may be NULL */
    uint64_t invalid;                   /* spans left out: their ids or times make no sense */
    char first_invalid[128];            /* why the first of them was */
};

/* Adds the spans of a whole request to the batch. -EBADMSG: malformed; what was added before stays.
 * -E2BIG: too many, or too much memory. */
int span_read_otlp(struct span_reader *reader, const void *data, size_t length,
                   struct span_batch *batch, struct error *error);
int span_read_otlp_json(struct span_reader *reader, struct source *source, struct span_batch *batch,
                        struct error *error);
