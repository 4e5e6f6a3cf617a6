// SPDX-License-Identifier: Apache-2.0
// The messages of an Arrow stream: see arrow.h. Each is a marker, the length of its metadata, the
// metadata, and a body whose length the metadata has.

#include <string.h>

#include "base/memory.h"
#include "io/arrow/internal.h"

#define MARKER 0xffffffffu
#define VERSION_5 4 /* and 4, which has the same layout but for unions */

enum message_fields { MESSAGE_VERSION, MESSAGE_KIND, MESSAGE_HEADER, MESSAGE_BODY_LENGTH };
enum dictionary_batch_fields { BATCH_ID, BATCH_DATA, BATCH_IS_DELTA };

int arrow_malformed(struct error *error)
{
    return error_set(error, -EBADMSG, "The Arrow data is malformed or incomplete.");
}

/* 1, 0 at the end, which may be said or just be there. */
static int next_message(struct arrow_stream *stream, struct arrow_message *ret_message,
                        struct error *error)
{
    struct flat_table message;
    size_t left = (size_t)(stream->end - stream->at);
    if (!left)
        return 0;
    if (left >= 8 && arrow_word(stream->at, 4) == MARKER) {
        stream->at += 4;
        left -= 4;
    }
    if (left < 4)
        return arrow_malformed(error);
    size_t length = arrow_word(stream->at, 4);
    stream->at += 4;
    left -= 4;
    if (!length)
        return 0;
    if (length > left || !flat_root(stream->at, length, &message) ||
        !flat_child(&message, MESSAGE_HEADER, &ret_message->header))
        return arrow_malformed(error);
    if (flat_number(&message, MESSAGE_VERSION, 2, 0) > VERSION_5)
        return error_set(error, -ENOTSUP, "The Arrow data has a version that is not supported.");
    uint64_t body = (uint64_t)flat_number(&message, MESSAGE_BODY_LENGTH, 8, 0);
    if (body > left - length)
        return arrow_malformed(error);
    ret_message->kind = (enum arrow_message_kind)flat_number(&message, MESSAGE_KIND, 1, 0);
    ret_message->body = (struct arrow_bytes){stream->at + length, (size_t)body};
    stream->at += length + body;
    return 1;
}

int arrow_open(struct arrow_stream *stream, const void *bytes, size_t length, size_t limit_bytes,
               struct error *error)
{
    struct arrow_message message;
    *stream = (struct arrow_stream){.at = bytes, .limit_bytes = limit_bytes};
    stream->end = length ? stream->at + length : stream->at;
    int r = next_message(stream, &message, error);
    if (r < 0)
        return r;
    if (!r || message.kind != ARROW_SCHEMA)
        return error_set(error, -EBADMSG, "The Arrow data has no schema.");
    return arrow_read_schema(stream, &message.header, error);
}

void arrow_close(struct arrow_stream *stream)
{
    arena_release(&stream->arena);
    free(stream->dictionaries);
    *stream = (struct arrow_stream){0};
}

static int read_dictionary(struct arrow_stream *stream, const struct arrow_message *message,
                           struct error *error)
{
    struct flat_table data;
    int64_t id = flat_number(&message->header, BATCH_ID, 8, 0);
    struct arrow_dictionary *dictionary = arrow_find_dictionary(stream, id);
    if (!dictionary || !flat_child(&message->header, BATCH_DATA, &data))
        return arrow_malformed(error);
    if (flat_number(&message->header, BATCH_IS_DELTA, 1, 0))
        return error_set(error, -ENOTSUP, "Arrow dictionaries that grow are not supported.");
    struct arrow_array *values = arena_alloc(&stream->arena, sizeof(*values));
    int r = arrow_read_batch(stream, dictionary->field, &data, message->body, values, error);
    if (!r)
        dictionary->values = values;
    return r;
}

int arrow_next(struct arrow_stream *stream, const struct arrow_array **ret_batch,
               struct error *error)
{
    struct arrow_message message;
    int r;
    while ((r = next_message(stream, &message, error)) > 0) {
        if (message.kind == ARROW_DICTIONARY_BATCH) {
            if ((r = read_dictionary(stream, &message, error)) < 0)
                return r;
        } else if (message.kind == ARROW_RECORD_BATCH) {
            struct arrow_array *batch = arena_alloc(&stream->arena, sizeof(*batch));
            r = arrow_read_batch(stream, &stream->schema, &message.header, message.body, batch,
                                 error);
            *ret_batch = batch;
            return r < 0 ? r : 1;
        } else {
            return arrow_malformed(error);
        }
    }
    return r;
}
