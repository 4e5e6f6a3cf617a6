// SPDX-License-Identifier: Apache-2.0
// Batches of export files both ways, and the records they are in: see export_file.h.

#include "store/transfer/export_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "store/block/varint.h"
#include "store/embedded/embedded.h"

#define RECORD_BATCH 'B'
#define RECORD_END 'E'
#define READ_BYTES (64u << 10)

void export_batch_init(struct export_batch *batch, const char *tenant, enum store_tier tier)
{
    *batch = (struct export_batch){.tenant = memory_strdup(tenant), .tier = tier};
    catalog_init(&batch->catalog);
}

void export_batch_release(struct export_batch *batch)
{
    for (size_t i = 0; i < batch->series_count; i++) {
        block_rows_release(&batch->series[i].rows);
        free(batch->series[i].exemplars);
    }
    free(batch->series);
    if (batch->tenant)
        catalog_release(&batch->catalog);
    free(batch->tenant);
    *batch = (struct export_batch){0};
}

struct export_series *export_batch_series(struct export_batch *batch, const struct labels *labels,
                                          const char *type)
{
    uint32_t id = catalog_series(&batch->catalog, labels, type);
    if (id >= batch->series_count) {
        array_reserve(batch->series, batch->series_capacity, id + 1ul);
        batch->series[id] = (struct export_series){0};
        batch->series_count = id + 1ul;
    }
    return &batch->series[id];
}

/* ---- encoding ---- */

static void add_bytes(struct buffer *out, const void *data, size_t length)
{
    buffer_add_varint(out, length);
    buffer_add(out, data, length);
}

static void add_table(struct buffer *out, const struct catalog *catalog, enum catalog_table table)
{
    _cleanup_buffer_ struct buffer chunk = {0};
    uint32_t count = catalog_count(catalog, table, 0);
    if (count > 1)
        catalog_pack_zstd(catalog, table, 0, 1, count - 1, &chunk);
    add_bytes(out, chunk.data, chunk.length);
}

static void add_exemplars(struct buffer *out, const struct export_series *series)
{
    buffer_add_varint(out, series->exemplar_count);
    for (size_t i = 0; i < series->exemplar_count; i++) {
        const struct export_exemplar *exemplar = &series->exemplars[i];
        buffer_add_signed(out, exemplar->start_ns);
        buffer_add_signed(out, exemplar->exemplar.time_ns);
        buffer_add_varint(out, exemplar->exemplar.node);
        buffer_add_signed(out, exemplar->exemplar.value);
        buffer_add(out, &exemplar->exemplar.link, sizeof(exemplar->exemplar.link));
    }
}

void export_batch_encode(struct export_batch *batch, struct block_codec *codec, struct buffer *out)
{
    struct block_rows sorted = {0};
    const struct catalog *catalog = &batch->catalog;
    add_bytes(out, batch->tenant, strlen(batch->tenant));
    buffer_add_varint(out, batch->tier);
    add_bytes(out, catalog->services[0].name, strlen(catalog->services[0].name));
    for (unsigned table = TABLE_STRINGS; table <= TABLE_NODES; table++)
        add_table(out, catalog, table);
    buffer_add_varint(out, batch->series_count);
    for (size_t i = 0; i < batch->series_count; i++) {
        _cleanup_buffer_ struct buffer labels = {0}, block = {0};
        catalog_pack_labels(&catalog->series[i].labels, &labels);
        add_bytes(out, labels.data, labels.length);
        add_bytes(out, catalog->series[i].type, strlen(catalog->series[i].type));
        block_rows_sort(&batch->series[i].rows, &sorted);
        block_encode(codec, &sorted, 0, sorted.window_count, &block);
        add_bytes(out, block.data, block.length);
        add_exemplars(out, &batch->series[i]);
    }
    block_rows_release(&sorted);
}

/* ---- decoding ---- */

/* A text without a NUL in it, to be freed; NULL when it isn't one. */
static char *take_text(struct cursor *cursor, size_t most)
{
    uint64_t length = cursor_varint(cursor);
    const char *text = length <= most ? cursor_bytes(cursor, length) : NULL;
    return text && !memchr(text, 0, length) ? memory_strndup(text, length) : NULL;
}

static bool take_table(struct cursor *cursor, struct catalog *catalog, enum catalog_table table)
{
    uint64_t length = cursor_varint(cursor);
    const void *chunk = cursor_bytes(cursor, length);
    return chunk && (!length || !catalog_unpack(catalog, table, 0, 1, chunk, length));
}

static bool take_exemplars(struct cursor *cursor, struct export_series *series, uint32_t nodes)
{
    uint64_t count = cursor_varint(cursor);
    if (cursor->failed || count > cursor_left(cursor) / sizeof(struct profile_link))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        struct export_exemplar exemplar = {.start_ns = cursor_signed(cursor)};
        exemplar.exemplar.time_ns = cursor_signed(cursor);
        uint64_t node = cursor_varint(cursor);
        exemplar.exemplar.value = cursor_signed(cursor);
        const void *link = cursor_bytes(cursor, sizeof(exemplar.exemplar.link));
        if (!link || node >= nodes)
            return false;
        exemplar.exemplar.node = (uint32_t)node;
        memcpy(&exemplar.exemplar.link, link, sizeof(exemplar.exemplar.link));
        array_reserve(series->exemplars, series->exemplar_capacity, series->exemplar_count + 1);
        series->exemplars[series->exemplar_count++] = exemplar;
    }
    return true;
}

static bool take_block(struct cursor *cursor, struct block_codec *codec, uint32_t nodes,
                       struct block_rows *rows)
{
    struct block_view view;
    uint64_t length = cursor_varint(cursor);
    const void *block = cursor_bytes(cursor, length);
    return block && !block_open(codec, block, length, &view) && view.window_count &&
           (!view.dictionary_count || view.dictionary[view.dictionary_count - 1] < nodes) &&
           !block_decode(&view, 0, view.window_count, rows);
}

static bool take_series(struct cursor *cursor, struct block_codec *codec,
                        struct export_batch *batch)
{
    _cleanup_labels_ struct labels labels = {0};
    struct catalog *catalog = &batch->catalog;
    uint32_t nodes = catalog->services[0].tree.count;
    uint64_t length = cursor_varint(cursor);
    const void *packed = cursor_bytes(cursor, length);
    if (!packed || catalog_unpack_labels(packed, length, &labels) < 0)
        return false;
    const char *service = labels_get(&labels, LABEL_SERVICE_NAME);
    _cleanup_free_ char *type = take_text(cursor, 1024);
    if (!type || !service || strcmp(service, catalog->services[0].name))
        return false;
    size_t known = batch->series_count;
    struct export_series *series = export_batch_series(batch, &labels, type);
    if (batch->series_count == known) /* twice */
        return false;
    if (!take_block(cursor, codec, nodes, &series->rows) || !take_exemplars(cursor, series, nodes))
        return false;
    batch->windows += series->rows.window_count;
    batch->rows += series->rows.row_count;
    return true;
}

int export_batch_decode(const void *data, size_t length, struct block_codec *codec,
                        struct export_batch *ret_batch)
{
    struct cursor cursor = cursor_over(data, length);
    *ret_batch = (struct export_batch){0};
    _cleanup_free_ char *tenant = take_text(&cursor, STORE_TENANT_BYTES_MAX);
    uint64_t tier = cursor_varint(&cursor);
    _cleanup_free_ char *service = take_text(&cursor, STORE_SERIES_BYTES_MAX);
    if (!tenant || !service || tier >= STORE_TIERS)
        return -EBADMSG;
    export_batch_init(ret_batch, tenant, (enum store_tier)tier);
    catalog_service(&ret_batch->catalog, service);
    for (unsigned table = TABLE_STRINGS; table <= TABLE_NODES; table++)
        if (!take_table(&cursor, &ret_batch->catalog, table))
            return -EBADMSG;
    uint64_t count = cursor_varint(&cursor);
    for (uint64_t i = 0; i < count; i++)
        if (cursor.failed || !take_series(&cursor, codec, ret_batch))
            return -EBADMSG;
    return cursor.failed || !count || cursor_left(&cursor) ? -EBADMSG : 0;
}

/* ---- the identity of what is in it ---- */

struct sum {
    uint64_t low, high;
};

static void sum_add(struct sum *sum, const void *data, size_t length)
{
    XXH128_hash_t hash = XXH3_128bits(data, length);
    sum->low += hash.low64;
    sum->high += hash.high64;
}

static void add_window(struct sum *sum, const struct digest *stacks, const struct buffer *series,
                       const struct block_rows *rows, const struct block_window *window)
{
    struct sum content = {0};
    for (uint32_t i = 0; i < window->row_count; i++) {
        uint64_t row[3] = {stacks[rows->nodes[window->first_row + i]].low,
                           stacks[rows->nodes[window->first_row + i]].high,
                           (uint64_t)rows->values[window->first_row + i]};
        sum_add(&content, row, sizeof(row));
    }
    XXH128_hash_t name = XXH3_128bits(series->data, series->length);
    uint64_t whole[] = {name.low64,
                        name.high64,
                        (uint64_t)window->start_ns,
                        (uint64_t)window->duration_ns,
                        (uint64_t)window->first_ns,
                        (uint64_t)window->last_ns,
                        window->windows,
                        window->raw_rows,
                        content.low,
                        content.high};
    sum_add(sum, whole, sizeof(whole));
}

static void add_exemplar(struct sum *sum, const struct digest *stacks,
                         const struct export_exemplar *exemplar)
{
    uint64_t whole[5 + 3] = {stacks[exemplar->exemplar.node].low,
                             stacks[exemplar->exemplar.node].high, (uint64_t)exemplar->start_ns,
                             (uint64_t)exemplar->exemplar.time_ns,
                             (uint64_t)exemplar->exemplar.value};
    memcpy(whole + 5, &exemplar->exemplar.link, sizeof(exemplar->exemplar.link));
    sum_add(sum, whole, sizeof(whole));
}

/* Digests of all stacks by content. The finder wants a profile's nodes: it is given the tree's. */
static struct digest *digest_stacks(const struct catalog *catalog)
{
    const struct tree *tree = &catalog->services[0].tree;
    struct digest *digests = memory_zalloc(tree->count, sizeof(*digests));
    struct profile view = catalog->tables;
    struct stack_finder finder;
    view.nodes = tree->nodes;
    view.node_count = tree->count;
    stack_finder_init(&finder, &view, 0);
    for (uint32_t i = 0; i < tree->count; i++)
        digests[i] = stack_finder_digest(&finder, i);
    stack_finder_release(&finder);
    return digests;
}

void export_batch_id(const struct export_batch *batch, char text[EXPORT_ID_BYTES])
{
    _cleanup_free_ struct digest *stacks = digest_stacks(&batch->catalog);
    struct sum sum = {.low = batch->tier};
    sum_add(&sum, batch->tenant, strlen(batch->tenant));
    for (size_t i = 0; i < batch->series_count; i++) {
        const struct export_series *series = &batch->series[i];
        _cleanup_buffer_ struct buffer name = {0};
        catalog_pack_labels(&batch->catalog.series[i].labels, &name);
        buffer_add_text(&name, batch->catalog.series[i].type);
        for (size_t w = 0; w < series->rows.window_count; w++)
            add_window(&sum, stacks, &name, &series->rows, &series->rows.windows[w]);
        for (size_t k = 0; k < series->exemplar_count; k++)
            add_exemplar(&sum, stacks, &series->exemplars[k]);
    }
    snprintf(text, EXPORT_ID_BYTES, "import-%016llx%016llx", (unsigned long long)sum.high,
             (unsigned long long)sum.low);
}

/* ---- records ---- */

static int write_record(struct export_writer *writer, char kind, const void *content, size_t length)
{
    _cleanup_buffer_ struct buffer head = {0};
    buffer_add_char(&head, kind);
    buffer_add_varint(&head, length);
    XXH3_state_t *state = XXH3_createState();
    XXH3_64bits_reset_withSeed(state, writer->chain);
    XXH3_64bits_update(state, head.data, head.length);
    XXH3_64bits_update(state, content, length);
    uint64_t checksum = writer->chain = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    writer->bytes += head.length + length + sizeof(checksum);
    int r = writer->sink(writer->context, head.data, head.length);
    if (!r && length)
        r = writer->sink(writer->context, content, length);
    return r ? r : writer->sink(writer->context, &checksum, sizeof(checksum));
}

int export_writer_begin(struct export_writer *writer)
{
    static const char head[] = EXPORT_MAGIC "\x02";
    _Static_assert(EXPORT_VERSION == 2, "the head says which");
    writer->bytes = sizeof(head) - 1;
    return writer->sink(writer->context, head, sizeof(head) - 1);
}

int export_writer_batch(struct export_writer *writer, const struct buffer *content,
                        const struct export_batch *batch)
{
    writer->batches++;
    writer->windows += batch->windows;
    writer->rows += batch->rows;
    return write_record(writer, RECORD_BATCH, content->data, content->length);
}

int export_writer_end(struct export_writer *writer)
{
    _cleanup_buffer_ struct buffer content = {0};
    buffer_add_varint(&content, writer->batches);
    buffer_add_varint(&content, writer->windows);
    buffer_add_varint(&content, writer->rows);
    return write_record(writer, RECORD_END, content.data, content.length);
}

static int cut_off(const struct export_reader *reader, struct error *error)
{
    return error_set(error, -ENODATA,
                     "The file ends after %llu batches without an end record: it is truncated. The "
                     "batches before are stored.",
                     (unsigned long long)reader->batches);
}

static int damaged(const struct export_reader *reader, struct error *error)
{
    return error_set(
        error, -EBADMSG,
        "The file is damaged after its %lluth batch, at byte %llu; the batches before are stored.",
        (unsigned long long)reader->batches, (unsigned long long)reader->bytes);
}

/* All of it, or what went wrong. Memory is taken as bytes come, whatever length was claimed. */
static int read_bytes(struct export_reader *reader, struct buffer *out, uint64_t length,
                      struct error *error)
{
    while (length) {
        size_t room = (size_t)MIN(length, (uint64_t)READ_BYTES);
        ssize_t got = reader->source(reader->context, buffer_reserve(out, room), room);
        if (got < 0)
            return error_set_errno(error, (int)got, "Failed to read the file");
        if (!got)
            return cut_off(reader, error);
        out->length += (size_t)got;
        reader->bytes += (size_t)got;
        length -= (uint64_t)got;
    }
    return 0;
}

int export_reader_begin(struct export_reader *reader, struct error *error)
{
    _cleanup_buffer_ struct buffer head = {0};
    int r = read_bytes(reader, &head, strlen(EXPORT_MAGIC) + 1, error);
    if (r == -ENODATA || (!r && memcmp(head.data, EXPORT_MAGIC, strlen(EXPORT_MAGIC))))
        return error_set(error, -EBADMSG, "Not an export file of assay store export.");
    if (r < 0)
        return r;
    unsigned version = (unsigned char)head.data[strlen(EXPORT_MAGIC)];
    if (version != EXPORT_VERSION)
        return error_set(error, -ENOTSUP, "The export has format %u; this program reads format %d.",
                         version, EXPORT_VERSION);
    return 0;
}

static bool end_fits(const struct export_reader *reader, const struct buffer *content)
{
    struct cursor cursor = cursor_over(content->data, content->length);
    uint64_t batches = cursor_varint(&cursor), windows = cursor_varint(&cursor),
             rows = cursor_varint(&cursor);
    return !cursor.failed && !cursor_left(&cursor) && batches == reader->batches &&
           windows == reader->windows && rows == reader->rows;
}

int export_reader_next(struct export_reader *reader, struct buffer *content, struct error *error)
{
    _cleanup_buffer_ struct buffer head = {0}, sum = {0};
    int r = read_bytes(reader, &head, 2, error);
    while (!r && head.data[head.length - 1] & 0x80 && head.length <= VARINT_BYTES_MAX)
        r = read_bytes(reader, &head, 1, error);
    if (r < 0)
        return r;
    struct cursor cursor = cursor_over(head.data + 1, head.length - 1);
    uint64_t length = cursor_varint(&cursor), checksum;
    if ((head.data[0] != RECORD_BATCH && head.data[0] != RECORD_END) || cursor.failed ||
        length > EXPORT_RECORD_BYTES_MAX)
        return damaged(reader, error);
    content->length = 0;
    if ((r = read_bytes(reader, content, length, error)) < 0 ||
        (r = read_bytes(reader, &sum, sizeof(checksum), error)) < 0)
        return r;
    memcpy(&checksum, sum.data, sizeof(checksum));
    XXH3_state_t *state = XXH3_createState();
    XXH3_64bits_reset_withSeed(state, reader->chain);
    XXH3_64bits_update(state, head.data, head.length);
    XXH3_64bits_update(state, content->data, content->length);
    reader->chain = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    if (checksum != reader->chain)
        return damaged(reader, error);
    if (head.data[0] == RECORD_BATCH)
        return 1;
    return end_fits(reader, content) ? 0 : damaged(reader, error);
}

void export_reader_count(struct export_reader *reader, const struct export_batch *batch)
{
    reader->batches++;
    reader->windows += batch->windows;
    reader->rows += batch->rows;
}
