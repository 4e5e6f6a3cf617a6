/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by both readers of OTLP's traces: a span as it is sent, and its conversion. */
#pragma once

#include "spans/otlp.h"

/* A text as far as anything looks at it. */
struct span_text {
    char text[SPAN_TEXT_MAX + 1];
    size_t length;
};

/* The attributes that mean something here. */
enum span_attribute {
    SPAN_ATTRIBUTE_ROUTE,
    SPAN_ATTRIBUTE_PATH,
    SPAN_ATTRIBUTE_URL,
    SPAN_ATTRIBUTE_METHOD,
    SPAN_ATTRIBUTE_CODE,
    SPAN_ATTRIBUTE_RPC_SERVICE,
    SPAN_ATTRIBUTE_RPC_METHOD,
    SPAN_ATTRIBUTE_DESTINATION,
    SPAN_ATTRIBUTE_SERVICE, /* of a resource */
    SPAN_ATTRIBUTES,        /* none of these */
};
enum span_attribute span_attribute_of(const char *key, size_t length);

struct span_sent {
    struct span span;
    bool bad_trace, bad_span, bad_parent; /* ids of another length */
    uint64_t end_ns;
    struct span_text name, attributes[SPAN_ATTRIBUTES];
};

void span_text_set(struct span_text *to, const char *text, size_t length);
void span_text_number(struct span_text *to, int64_t number);

/* Adds the span unless it is invalid, which is counted. -E2BIG: there are too many. */
int span_sent_add(struct span_reader *reader, const struct span_sent *sent,
                  struct span_batch *batch, struct error *error);

/* Names the service of all spans from this one on: their resource may come after them. */
void span_batch_set_service(struct span_batch *batch, size_t first, const struct span_text *name);
