/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of Arrow's reader. */
#pragma once

#include "io/arrow/arrow.h"
#include "io/arrow/flat.h"

/* A message of the stream: its metadata's table, and the bytes that follow it. */
enum arrow_message_kind { ARROW_SCHEMA = 1, ARROW_DICTIONARY_BATCH = 2, ARROW_RECORD_BATCH = 3 };

struct arrow_message {
    enum arrow_message_kind kind;
    struct flat_table header;
    struct arrow_bytes body;
};

static inline uint64_t arrow_word(const uint8_t *bytes, unsigned width)
{
    uint64_t value = 0;
    for (unsigned i = width; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

int arrow_malformed(struct error *error);

/* ---- schema.c ---- */

int arrow_read_schema(struct arrow_stream *stream, const struct flat_table *schema,
                      struct error *error);
struct arrow_dictionary *arrow_find_dictionary(struct arrow_stream *stream, int64_t id);

/* ---- batch.c ---- */

/* A column of that field, or the whole schema, from a record batch. */
int arrow_read_batch(struct arrow_stream *stream, const struct arrow_field *field,
                     const struct flat_table *batch, struct arrow_bytes body,
                     struct arrow_array *ret_array, struct error *error);
