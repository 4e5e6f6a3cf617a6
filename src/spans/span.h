/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans of traces: the few facts that requests and profiles are joined by. A batch owns its texts;
 * a span names them by their place, and text 0 is "".
 *
 * A *request* is a span that does a service's work for somebody else: of kind server or consumer,
 * or one without a parent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/idtable.h"

#define SPAN_TRACE_BYTES 16
#define SPAN_ID_BYTES 8
#define SPAN_TEXT_MAX 255 /* bytes; longer texts are cut */

/* As OTLP numbers them. */
enum span_kind {
    SPAN_UNSPECIFIED,
    SPAN_INTERNAL,
    SPAN_SERVER,
    SPAN_CLIENT,
    SPAN_PRODUCER,
    SPAN_CONSUMER,
    SPAN_KINDS,
};
extern const char *const span_kind_names[SPAN_KINDS];

enum span_status { SPAN_UNSET, SPAN_OK, SPAN_ERROR, SPAN_STATUSES };
extern const char *const span_status_names[SPAN_STATUSES];

struct span {
    uint8_t trace_id[SPAN_TRACE_BYTES], span_id[SPAN_ID_BYTES];
    uint8_t parent_id[SPAN_ID_BYTES]; /* zeroes: none */
    int64_t start_ns, duration_ns;
    uint32_t service, name, method, route; /* texts of the batch */
    uint16_t code;                         /* of HTTP's answer; 0: none */
    uint8_t kind, status;
};

struct span_batch {
    struct span *list;
    size_t count, capacity;
    const char **texts; /* NUL-terminated UTF-8 */
    size_t text_count, text_capacity;
    struct id_table index; /* of the texts */
    uint64_t seed;         /* of the index; nobody outside can guess it */
    struct arena arena;
};

void span_batch_release(struct span_batch *batch);
#define _cleanup_span_batch_ __attribute__((cleanup(span_batch_release)))

/* The text's place; it is added when it is new. It is cut to SPAN_TEXT_MAX and to its first NUL;
 * one that is not UTF-8 is "(invalid)". */
uint32_t span_batch_text(struct span_batch *batch, const char *text, size_t length);

/* A zeroed span at the end of the list; valid until the next one is added. */
struct span *span_batch_add(struct span_batch *batch);

bool span_id_is_zero(const uint8_t *id, size_t length);
bool span_is_request(const struct span *span);

/* A hash of a trace's id. Tables of traces need a seed that senders can't guess. */
uint64_t span_trace_hash(const uint8_t trace_id[SPAN_TRACE_BYTES], uint64_t seed);

/* Adds copies of all spans of another batch. */
void span_batch_append(struct span_batch *to, const struct span_batch *from);

/* Empties the batch and keeps the room of its list. */
void span_batch_clear(struct span_batch *batch);

/* Its memory, besides the struct itself. */
size_t span_batch_memory(const struct span_batch *batch);
