// SPDX-License-Identifier: Apache-2.0
// The server's answer to samples whose stacks are ids: an Arrow stream with a column of these
// ids, for which the agent then sends the frames.

#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "format/parca/internal.h"
#include "io/source.h"

/* The messages' metadata, FlatBuffers that never change but for a few numbers. A schema of one
 * column, "stacktrace_id", of bytes; and a batch of it. */
/* clang-format off */
static const uint8_t schema_metadata[] = {
    16, 0, 0, 0, 0, 0, 10, 0, 12, 0, 6, 0, 5, 0, 8, 0, 10, 0, 0, 0,
    0, 1, 4, 0, 12, 0, 0, 0, 8, 0, 8, 0, 0, 0, 4, 0, 8, 0, 0, 0,
    4, 0, 0, 0, 1, 0, 0, 0, 20, 0, 0, 0, 16, 0, 20, 0, 8, 0, 0, 0,
    7, 0, 12, 0, 0, 0, 16, 0, 16, 0, 0, 0, 0, 0, 0, 4, 16, 0, 0, 0,
    36, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 13, 0, 0, 0, 115, 116, 97, 99,
    107, 116, 114, 97, 99, 101, 95, 105, 100, 0, 0, 0, 4, 0, 4, 0, 4, 0, 0, 0,
};
static const uint8_t batch_metadata[] = {
    20, 0, 0, 0, 0, 0, 0, 0, 12, 0, 22, 0, 6, 0, 5, 0, 8, 0, 12, 0,
    12, 0, 0, 0, 0, 3, 4, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 10, 0, 24, 0, 12, 0, 4, 0, 8, 0, 10, 0, 0, 0, 76, 0, 0, 0,
    16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
};
/* clang-format on */
enum batch_numbers {
    AT_BODY_LENGTH = 32,
    AT_ROWS = 64,
    AT_OFFSETS_LENGTH = 104, /* of the buffer of offsets, which is the first */
    AT_TEXT_OFFSET = 112,
    AT_TEXT_LENGTH = 120,
    AT_NODE_LENGTH = 136,
};

#define MARKER 0xffffffffu
#define ID_BYTES_MAX 256

/* The agent reads one message in answer, of at most 32 MiB unless it is told otherwise. */
#define REPLY_BYTES_MAX ((32u << 20) - 1024)

struct ids {
    struct buffer text;
    uint32_t *ends; /* in `text` */
    size_t count, capacity;
    struct id_table table;
};

static void ids_release(struct ids *ids)
{
    buffer_release(&ids->text);
    free(ids->ends);
    id_table_release(&ids->table);
}

static void put_number(struct buffer *out, uint64_t value, size_t width)
{
    for (size_t i = 0; i < width; i++)
        buffer_add_char(out, (char)(value >> (8 * i)));
}

static void put_padding(struct buffer *out, size_t length)
{
    for (; length % 8; length++)
        buffer_add_char(out, 0);
}

static void put_metadata(struct buffer *out, const uint8_t *bytes, size_t length)
{
    put_number(out, MARKER, 4);
    put_number(out, length, 4);
    buffer_add(out, bytes, length);
}

static void patch(struct buffer *out, size_t at, uint64_t value)
{
    for (size_t i = 0; i < 8; i++)
        out->data[at + i] = (char)(value >> (8 * i));
}

static size_t padded(size_t length)
{
    return (length + 7) & ~(size_t)7;
}

static void put_ids(const struct ids *ids, struct buffer *out)
{
    size_t offsets = 4 * (ids->count + 1), metadata = 0;
    put_metadata(out, schema_metadata, sizeof(schema_metadata));
    put_metadata(out, batch_metadata, sizeof(batch_metadata));
    metadata = out->length - sizeof(batch_metadata);
    patch(out, metadata + AT_BODY_LENGTH, padded(offsets) + padded(ids->text.length));
    patch(out, metadata + AT_ROWS, ids->count);
    patch(out, metadata + AT_OFFSETS_LENGTH, offsets);
    patch(out, metadata + AT_TEXT_OFFSET, padded(offsets));
    patch(out, metadata + AT_TEXT_LENGTH, ids->text.length);
    patch(out, metadata + AT_NODE_LENGTH, ids->count);
    put_number(out, 0, 4);
    for (size_t i = 0; i < ids->count; i++)
        put_number(out, ids->ends[i], 4);
    put_padding(out, offsets);
    buffer_add(out, ids->text.data, ids->text.length);
    put_padding(out, ids->text.length);
    put_number(out, MARKER, 4);
    put_number(out, 0, 4);
}

static void add_id(struct ids *ids, const char *text, size_t length)
{
    uint64_t hash = XXH3_64bits(text, length);
    struct id_probe probe = id_probe_start(hash);
    uint32_t found;
    while ((found = id_table_next(&ids->table, &probe)) != ID_NONE) {
        uint32_t first = found ? ids->ends[found - 1] : 0;
        if (ids->ends[found] - first == length &&
            (!length || !memcmp(ids->text.data + first, text, length)))
            return;
    }
    buffer_add(&ids->text, text, length);
    array_reserve(ids->ends, ids->capacity, ids->count + 1);
    id_table_insert(&ids->table, hash, (uint32_t)ids->count);
    ids->ends[ids->count++] = (uint32_t)ids->text.length;
}

static int add_ids(struct ids *ids, const struct parca_input *input,
                   const struct arrow_array *column, struct error *error)
{
    const char *text;
    size_t length;
    for (uint64_t row = 0, end; row < column->length; row = end) {
        end = arrow_run_end(column, row);
        if (!arrow_text(arrow_cell(column, row), &text, &length))
            continue;
        if (length > ID_BYTES_MAX)
            return error_set(error, -E2BIG, "A stack's id is %zu bytes; the limit is %d.", length,
                             ID_BYTES_MAX);
        add_id(ids, text, length);
        if (ids->count > input->row_limit ||
            ids->text.length + sizeof(*ids->ends) * ids->count > REPLY_BYTES_MAX)
            return error_set(error, -E2BIG,
                             "The samples have more than %zu stacks, too many to ask for; send "
                             "samples more often.",
                             ids->count - 1);
        if (!(row % 4096) && source_check_memory(error) < 0)
            return error->code;
    }
    return source_check_memory(error);
}

int64_t parca_ask(const struct parca_input *input, struct buffer *out, struct error *error)
{
    _cleanup_arrow_ struct arrow_stream stream = {0};
    _cleanup_(ids_release) struct ids ids = {0};
    const struct arrow_array *batch;
    int r =
        arrow_open(&stream, input->samples, input->samples_length, input->expansion_limit, error);
    while (!r && (r = arrow_next(&stream, &batch, error)) > 0) {
        const struct arrow_array *column = arrow_child(batch, "stacktrace_id");
        r = 0;
        if (!arrow_child(batch, "stacktrace") && column)
            r = add_ids(&ids, input, column, error);
    }
    if (r < 0)
        return r;
    if (ids.count)
        put_ids(&ids, out);
    return (int64_t)ids.count;
}
