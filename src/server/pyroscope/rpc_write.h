/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the message of an answer, as protobuf or as the JSON that protobuf defines for it: each
 * field by its number and its name. In JSON, 64-bit numbers are texts. Private to src/server.
 */
#pragma once

#include "io/json_write.h"

struct rpc_writer {
    struct buffer *out;
    bool is_json;
    struct json_writer json; /* writes to `out`, where the message is JSON */
};

static inline struct rpc_writer rpc_writer(struct buffer *out, bool is_json)
{
    return (struct rpc_writer){.out = out, .is_json = is_json, .json = json_writer(out)};
}

/* The whole message. */
void rpc_open(struct rpc_writer *writer);
void rpc_close(struct rpc_writer *writer);

/* A message in a message, whose bytes stay in the buffer until its end; without a name, an element
 * of a list. Returns a mark for rpc_end(). */
size_t rpc_begin(struct rpc_writer *writer, uint32_t number, const char *name);
void rpc_end(struct rpc_writer *writer, size_t mark);

/* Around the elements of a repeated field. */
void rpc_list(struct rpc_writer *writer, const char *name);
void rpc_list_end(struct rpc_writer *writer);

/* Fields; without a name, elements of a list. */
void rpc_put_text(struct rpc_writer *writer, uint32_t number, const char *name, const char *text);
void rpc_put_bytes(struct rpc_writer *writer, uint32_t number, const char *name, const char *text,
                   size_t length);
void rpc_put_i64(struct rpc_writer *writer, uint32_t number, const char *name, int64_t value);
void rpc_put_bool(struct rpc_writer *writer, uint32_t number, const char *name, bool value);
void rpc_put_double(struct rpc_writer *writer, uint32_t number, const char *name, double value);
/* Packed numbers. */
void rpc_put_doubles(struct rpc_writer *writer, uint32_t number, const char *name,
                     const double *values, size_t count);
void rpc_put_counts(struct rpc_writer *writer, uint32_t number, const char *name,
                    const uint32_t *values, size_t count);
/* Of an enum: its number and its word. */
void rpc_put_word(struct rpc_writer *writer, uint32_t number, const char *name, unsigned value,
                  const char *word);
