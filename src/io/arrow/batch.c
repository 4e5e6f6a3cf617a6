// SPDX-License-Identifier: Apache-2.0
// A batch of an Arrow stream: its metadata lists a node for each field, nested ones after the field
// that holds them, and the buffers that each takes by its type. Buffers are in the message's body,
// each compressed by itself or not at all.

#include <string.h>

#include "base/memory.h"
#include "io/arrow/internal.h"
#include "io/lz4.h"
#include "io/source.h"

#define STRUCT_BYTES 16 /* of nodes and buffers: two numbers of 8 bytes */
#define VIEW_BYTES 16
#define ROWS_MAX ((uint64_t)INT32_MAX)
#define NOT_COMPRESSED UINT64_MAX

enum batch_fields { BATCH_LENGTH, BATCH_NODES, BATCH_BUFFERS, BATCH_COMPRESSION, BATCH_VARIADIC };
enum codec { CODEC_LZ4, CODEC_ZSTD, CODEC_NONE };

struct batch {
    struct arrow_stream *stream;
    struct flat_vector nodes, buffers, variadic;
    size_t node, buffer, variadic_at; /* the next of each */
    struct arrow_bytes body;
    enum codec codec;
};

static int decompress_zstd(struct batch *batch, struct arrow_bytes from, struct buffer *out,
                           struct error *error)
{
    size_t limit = batch->stream->limit_bytes;
    struct source source;
    int r = source_open_memory(&source, "an Arrow buffer", from.data, from.length, limit, error);
    if (r < 0)
        return r;
    r = source_need_all(&source, limit, error);
    if (!r)
        buffer_add(out, source_data(&source), source_available(&source));
    source_release(&source);
    return r;
}

static int decompress(struct batch *batch, struct arrow_bytes from, uint64_t wanted,
                      struct arrow_bytes *ret_bytes, struct error *error)
{
    struct arrow_stream *stream = batch->stream;
    _cleanup_buffer_ struct buffer out = {0};
    if (wanted > stream->limit_bytes)
        return error_set(error, -E2BIG, "The Arrow data expands to more than its limit.");
    int r = batch->codec == CODEC_ZSTD
                ? decompress_zstd(batch, from, &out, error)
                : lz4_decompress(from.data, from.length, (size_t)wanted, &out, error);
    if (!r)
        r = source_check_memory(error);
    if (r < 0)
        return r;
    if (out.length != wanted)
        return arrow_malformed(error);
    uint8_t *kept = arena_alloc(&stream->arena, out.length + 1);
    if (out.length)
        memcpy(kept, out.data, out.length);
    stream->limit_bytes -= out.length;
    *ret_bytes = (struct arrow_bytes){kept, out.length};
    return 0;
}

static int next_buffer(struct batch *batch, struct arrow_bytes *ret_bytes, struct error *error)
{
    if (batch->buffer == batch->buffers.count)
        return arrow_malformed(error);
    size_t at = STRUCT_BYTES * batch->buffer++;
    uint64_t offset = (uint64_t)flat_element(&batch->buffers, at, 8);
    uint64_t length = (uint64_t)flat_element(&batch->buffers, at + 8, 8);
    if (offset > batch->body.length || length > batch->body.length - offset)
        return arrow_malformed(error);
    struct arrow_bytes bytes = {batch->body.data + offset, (size_t)length};
    *ret_bytes = bytes;
    if (!length || batch->codec == CODEC_NONE)
        return 0;
    if (length < 8)
        return arrow_malformed(error);
    uint64_t wanted = arrow_word(bytes.data, 8);
    bytes = (struct arrow_bytes){bytes.data + 8, bytes.length - 8};
    if (wanted == NOT_COMPRESSED) {
        *ret_bytes = bytes;
        return 0;
    }
    return decompress(batch, bytes, wanted, ret_bytes, error);
}

/* A buffer that has so many items at least, each of that many bytes. */
static int next_items(struct batch *batch, uint64_t count, uint64_t item_bytes,
                      const uint8_t **ret_data, struct error *error)
{
    struct arrow_bytes bytes;
    uint64_t needed;
    int r = next_buffer(batch, &bytes, error);
    if (r < 0)
        return r;
    if (__builtin_mul_overflow(count, item_bytes, &needed) || needed > bytes.length)
        return arrow_malformed(error);
    *ret_data = bytes.data;
    return 0;
}

/* Which values are null: no buffer at all, if none is. */
static int next_validity(struct batch *batch, struct arrow_array *array, uint64_t nulls,
                         struct error *error)
{
    struct arrow_bytes bytes;
    int r = next_buffer(batch, &bytes, error);
    if (r < 0 || !nulls || !bytes.length)
        return r < 0 ? r : !nulls ? 0 : arrow_malformed(error);
    if (bytes.length < (array->length + 7) / 8)
        return arrow_malformed(error);
    array->valid = bytes.data;
    return 0;
}

/* Offsets are one more than values, or none at all for no values. */
static int next_offsets(struct batch *batch, struct arrow_array *array, struct error *error)
{
    uint64_t count = array->length ? array->length + 1 : 0;
    return next_items(batch, count, array->field->width, &array->data, error);
}

static int read_texts(struct batch *batch, struct arrow_array *array, uint64_t count,
                      struct error *error)
{
    if (count > batch->buffers.count - batch->buffer)
        return arrow_malformed(error);
    array->texts = arena_alloc(&batch->stream->arena, (size_t)(count + 1) * sizeof(*array->texts));
    for (uint64_t i = 0; i < count; i++) {
        int r = next_buffer(batch, &array->texts[i], error);
        if (r < 0)
            return r;
    }
    array->text_count = (unsigned)count;
    return 0;
}

static int read_views(struct batch *batch, struct arrow_array *array, struct error *error)
{
    int r = next_items(batch, array->length, VIEW_BYTES, &array->data, error);
    if (r < 0)
        return r;
    if (batch->variadic_at == batch->variadic.count)
        return arrow_malformed(error);
    uint64_t count = (uint64_t)flat_element(&batch->variadic, 8 * batch->variadic_at++, 8);
    return read_texts(batch, array, count, error);
}

/* The buffers of a value by its type, behind the one that says which are null. */
static int read_values(struct batch *batch, struct arrow_array *array, struct error *error)
{
    const struct arrow_field *field = array->field;
    int r;
    switch (field->kind) {
    case ARROW_BOOL:
        return next_items(batch, (array->length + 7) / 8, 1, &array->data, error);
    case ARROW_INTEGER:
    case ARROW_FIXED:
        return next_items(batch, array->length, field->width, &array->data, error);
    case ARROW_TEXT:
        r = next_offsets(batch, array, error);
        return r < 0 ? r : read_texts(batch, array, 1, error);
    case ARROW_TEXT_VIEW:
        return read_views(batch, array, error);
    case ARROW_LIST:
        return next_offsets(batch, array, error);
    case ARROW_LIST_VIEW:
        r = next_items(batch, array->length, field->width, &array->data, error);
        return r < 0 ? r : next_items(batch, array->length, field->width, &array->sizes, error);
    default:
        return 0;
    }
}

static int read_dictionary_index(struct batch *batch, struct arrow_array *array,
                                 struct error *error)
{
    const struct arrow_field *field = array->field;
    const struct arrow_dictionary *found = arrow_find_dictionary(batch->stream, field->dictionary);
    if (!found || !found->values)
        return error_set(error, -EBADMSG,
                         "The Arrow column \"%.*s\" needs a dictionary that hasn't come.",
                         (int)MIN(field->name_length, (size_t)60), field->name);
    array->values = found->values;
    return next_items(batch, array->length, field->index_width, &array->data, error);
}

static int read_array(struct batch *batch, const struct arrow_field *field,
                      struct arrow_array *ret_array, struct error *error);

/* Children of structures and of fixed lists have a length that follows from their parent's. */
static bool has_room(const struct arrow_array *array)
{
    uint64_t factor = array->field->kind == ARROW_FIXED_LIST ? array->field->width : 1;
    if (array->field->kind == ARROW_RUNS)
        return array->children[0].length == array->children[1].length;
    if (array->field->kind != ARROW_STRUCT && array->field->kind != ARROW_FIXED_LIST)
        return true;
    for (unsigned i = 0; i < array->field->child_count; i++)
        if (array->children[i].length < array->length * factor)
            return false;
    return true;
}

static int read_children(struct batch *batch, struct arrow_array *array, struct error *error)
{
    unsigned count = array->field->child_count;
    array->children = arena_alloc(&batch->stream->arena, (count + 1) * sizeof(*array->children));
    for (unsigned i = 0; i < count; i++) {
        int r = read_array(batch, &array->field->children[i], &array->children[i], error);
        if (r < 0)
            return r;
    }
    return has_room(array) ? 0 : arrow_malformed(error);
}

static int read_array(struct batch *batch, const struct arrow_field *field,
                      struct arrow_array *ret_array, struct error *error)
{
    struct arrow_array *array = ret_array;
    *array = (struct arrow_array){.field = field};
    if (batch->node == batch->nodes.count)
        return arrow_malformed(error);
    size_t at = STRUCT_BYTES * batch->node++;
    array->length = (uint64_t)flat_element(&batch->nodes, at, 8);
    uint64_t nulls = (uint64_t)flat_element(&batch->nodes, at + 8, 8);
    if (array->length > ROWS_MAX)
        return arrow_malformed(error);
    bool has_validity =
        field->has_dictionary || (field->kind != ARROW_NULL && field->kind != ARROW_RUNS);
    int r = has_validity ? next_validity(batch, array, nulls, error) : 0;
    if (r < 0)
        return r;
    if (field->has_dictionary)
        return read_dictionary_index(batch, array, error);
    r = read_values(batch, array, error);
    return r < 0 ? r : read_children(batch, array, error);
}

int arrow_read_batch(struct arrow_stream *stream, const struct arrow_field *field,
                     const struct flat_table *table, struct arrow_bytes body,
                     struct arrow_array *ret_array, struct error *error)
{
    struct flat_table compression;
    struct batch batch = {.stream = stream,
                          .nodes = flat_vector(table, BATCH_NODES, STRUCT_BYTES),
                          .buffers = flat_vector(table, BATCH_BUFFERS, STRUCT_BYTES),
                          .variadic = flat_vector(table, BATCH_VARIADIC, 8),
                          .body = body,
                          .codec = CODEC_NONE};
    uint64_t rows = (uint64_t)flat_number(table, BATCH_LENGTH, 8, 0);
    if (flat_child(table, BATCH_COMPRESSION, &compression)) {
        batch.codec = (enum codec)flat_number(&compression, 0, 1, 0);
        if (batch.codec != CODEC_LZ4 && batch.codec != CODEC_ZSTD)
            return error_set(error, -ENOTSUP, "Unknown compression of Arrow data.");
    }
    if (rows > ROWS_MAX)
        return arrow_malformed(error);
    if (field != &stream->schema)
        return read_array(&batch, field, ret_array, error);
    *ret_array = (struct arrow_array){.field = field, .length = rows};
    return read_children(&batch, ret_array, error);
}
