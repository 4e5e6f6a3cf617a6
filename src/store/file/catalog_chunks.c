// SPDX-License-Identifier: Apache-2.0
// Chunks of a catalog's tables on disk. Commits write entries row by row, because senders wait for
// them; maintenance writes joined chunks by columns, which are smaller and faster to read.

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include "base/memory.h"
#include "store/block/planes.h"
#include "store/block/varint.h"
#include "store/file/catalog.h"

#define COMPRESS_FROM 4096 /* bytes */
#define CHUNK_BYTES_MAX (1u << 30)
#define COLUMNS_FROM 1024 /* entries: each column has a price of its own */
#define COLUMNS_MOST (1u << 22)
#define FIELDS_MAX 6

enum form { FORM_PLAIN, FORM_ZSTD, FORM_COLUMNS };

static const unsigned field_counts[] = {
    [TABLE_FUNCTIONS] = 4, [TABLE_MAPPINGS] = 5, [TABLE_FRAMES] = 6, [TABLE_NODES] = 2};

/* ---- entries as numbers: all tables' but the strings' ---- */

static void take_fields(const struct catalog *catalog, enum catalog_table table,
                        const struct tree *tree, uint32_t id, uint64_t *fields)
{
    if (table == TABLE_FUNCTIONS) {
        const struct profile_function *function = &catalog->tables.functions[id];
        fields[0] = function->name;
        fields[1] = function->system_name;
        fields[2] = function->file;
        fields[3] = function->start_line;
    } else if (table == TABLE_MAPPINGS) {
        const struct profile_mapping *mapping = &catalog->tables.mappings[id];
        fields[0] = mapping->start;
        fields[1] = mapping->limit;
        fields[2] = mapping->offset;
        fields[3] = mapping->file;
        fields[4] = mapping->build_id;
    } else if (table == TABLE_FRAMES) {
        const struct profile_frame *frame = &catalog->tables.frames[id];
        fields[0] = frame->address;
        fields[1] = frame->function;
        fields[2] = frame->mapping;
        fields[3] = frame->line;
        fields[4] = frame->column;
        fields[5] = frame->kind << 2 | frame->inlined << 1 | frame->folded;
    } else {
        fields[0] = id - tree->nodes[id].parent;
        fields[1] = tree->nodes[id].frame;
    }
}

static bool add_function(struct profile *tables, const uint64_t *fields)
{
    if (fields[0] >= tables->string_count || fields[1] >= tables->string_count ||
        fields[2] >= tables->string_count || fields[3] > UINT32_MAX)
        return false;
    profile_append_function(tables, &(struct profile_function){.name = (uint32_t)fields[0],
                                                               .system_name = (uint32_t)fields[1],
                                                               .file = (uint32_t)fields[2],
                                                               .start_line = (uint32_t)fields[3]});
    return true;
}

static bool add_mapping(struct profile *tables, const uint64_t *fields)
{
    if (fields[3] >= tables->string_count || fields[4] >= tables->string_count)
        return false;
    uint32_t id = tables->mapping_count;
    return profile_mapping(tables, &(struct profile_mapping){.start = fields[0],
                                                             .limit = fields[1],
                                                             .offset = fields[2],
                                                             .file = (uint32_t)fields[3],
                                                             .build_id = (uint32_t)fields[4]}) ==
           id;
}

static bool add_frame(struct profile *tables, const uint64_t *fields)
{
    if (fields[1] >= tables->function_count || fields[2] >= tables->mapping_count ||
        fields[3] > UINT32_MAX || fields[4] >= 1 << 24 || fields[5] >> 2 >= FRAME_KINDS)
        return false;
    profile_append_frame(tables, &(struct profile_frame){.address = fields[0],
                                                         .function = (uint32_t)fields[1],
                                                         .mapping = (uint32_t)fields[2],
                                                         .line = (uint32_t)fields[3],
                                                         .column = fields[4] & 0xffffff,
                                                         .kind = fields[5] >> 2 & 0x3f,
                                                         .inlined = fields[5] >> 1 & 1,
                                                         .folded = fields[5] & 1});
    return true;
}

/* One entry, checked, added; false when it can't be one. */
static bool add_entry(struct catalog *catalog, enum catalog_table table, struct tree *tree,
                      const uint64_t *fields)
{
    switch (table) {
    case TABLE_FUNCTIONS:
        return add_function(&catalog->tables, fields);
    case TABLE_MAPPINGS:
        return add_mapping(&catalog->tables, fields);
    case TABLE_FRAMES:
        return add_frame(&catalog->tables, fields);
    default:
        if (!fields[0] || fields[0] > tree->count || fields[1] >= catalog->tables.frame_count)
            return false;
        tree_append(tree, tree->count - (uint32_t)fields[0], (uint32_t)fields[1]);
        return true;
    }
}

/* ---- entry by entry ---- */

static void pack_entries(const struct catalog *catalog, enum catalog_table table,
                         const struct tree *tree, uint32_t first, uint32_t count,
                         struct buffer *out)
{
    uint64_t fields[FIELDS_MAX];
    buffer_add_varint(out, count);
    for (uint32_t id = first; id < first + count; id++) {
        if (table == TABLE_STRINGS) {
            const struct profile_string *text = &catalog->tables.strings[id];
            buffer_add_varint(out, text->length);
            buffer_add(out, text->data, text->length);
            continue;
        }
        take_fields(catalog, table, tree, id, fields);
        for (unsigned k = 0; k < field_counts[table]; k++)
            buffer_add_varint(out, fields[k]);
    }
}

static bool unpack_entries(struct catalog *catalog, enum catalog_table table, struct tree *tree,
                           size_t count, struct cursor *cursor)
{
    uint64_t fields[FIELDS_MAX];
    for (size_t i = 0; i < count; i++) {
        if (table == TABLE_STRINGS) {
            uint64_t length = cursor_varint(cursor);
            const char *text = cursor_bytes(cursor, length);
            if (!text)
                return false;
            profile_append_string(&catalog->tables, text, length);
            continue;
        }
        for (unsigned k = 0; k < field_counts[table]; k++)
            fields[k] = cursor_varint(cursor);
        if (cursor->failed || !add_entry(catalog, table, tree, fields))
            return false;
    }
    return true;
}

/* ---- by columns ---- */

struct column { /* of a table's entries: one field */
    const struct catalog *catalog;
    enum catalog_table table;
    uint32_t first;
    unsigned field;
};

static uint64_t column_number(const void *context, size_t index)
{
    const struct column *column = context;
    uint64_t fields[FIELDS_MAX];
    take_fields(column->catalog, column->table, NULL, column->first + (uint32_t)index, fields);
    return fields[column->field];
}

static void pack_columns(struct plane_codec *codec, const struct catalog *catalog,
                         enum catalog_table table, uint32_t first, uint32_t count,
                         struct buffer *out)
{
    struct column column = {.catalog = catalog, .table = table, .first = first};
    for (; column.field < field_counts[table]; column.field++)
        planes_pack(codec, column_number, &column, count, out);
}

static bool unpack_columns(struct plane_codec *codec, struct catalog *catalog,
                           enum catalog_table table, size_t count, struct cursor *cursor)
{
    struct planes columns[FIELDS_MAX] = {0};
    uint64_t fields[FIELDS_MAX];
    bool good = true;
    for (unsigned k = 0; good && k < field_counts[table]; k++)
        good = planes_open(codec, cursor, count, PLANES_MAX, &columns[k]);
    for (size_t i = 0; good && i < count; i++) {
        for (unsigned k = 0; k < field_counts[table]; k++)
            fields[k] = planes_number(&columns[k], i);
        good = add_entry(catalog, table, NULL, fields);
    }
    for (unsigned k = 0; k < FIELDS_MAX; k++)
        planes_release(&columns[k]);
    return good;
}

/*
 * Nodes: most follow their parent at once. A run is a node and those after it that do; its length
 * and how far back its first node's parent is are two columns. The frames that occur, ascending, as
 * differences, are another, and each node's frame, as an index into these, is the last.
 */

struct node_columns {
    uint32_t *lengths, *backs, *frames, *indexes;
    size_t runs, frame_count, count;
};

static void node_columns_release(struct node_columns *columns)
{
    free(columns->lengths);
    free(columns->backs);
    free(columns->frames);
    free(columns->indexes);
}

static uint64_t list_number(const void *context, size_t index)
{
    return ((const uint32_t *)context)[index];
}

static void find_runs(const struct tree *tree, uint32_t first, struct node_columns *columns)
{
    size_t lengths = 0, backs = 0;
    for (uint32_t id = first; id < first + columns->count; id++) {
        uint32_t back = id - tree->nodes[id].parent;
        if (back == 1 && columns->runs) {
            columns->lengths[columns->runs - 1]++;
            continue;
        }
        array_reserve(columns->lengths, lengths, columns->runs + 1);
        array_reserve(columns->backs, backs, columns->runs + 1);
        columns->lengths[columns->runs] = 0;
        columns->backs[columns->runs++] = back - 1;
    }
}

static void find_frames(const struct tree *tree, uint32_t first, uint32_t frame_count,
                        struct node_columns *columns)
{
    _cleanup_free_ uint32_t *place = memory_zalloc(frame_count, sizeof(*place));
    for (size_t i = 0; i < columns->count; i++)
        place[tree->nodes[first + i].frame] = 1;
    columns->frames = memory_zalloc(MIN(columns->count, (size_t)frame_count), sizeof(uint32_t));
    for (uint32_t frame = 0, last = 0; frame < frame_count; frame++)
        if (place[frame]) {
            place[frame] = (uint32_t)columns->frame_count;
            columns->frames[columns->frame_count++] = frame - last;
            last = frame;
        }
    columns->indexes = memory_zalloc(columns->count, sizeof(uint32_t));
    for (size_t i = 0; i < columns->count; i++)
        columns->indexes[i] = place[tree->nodes[first + i].frame];
}

static void pack_nodes(struct plane_codec *codec, const struct tree *tree, uint32_t frame_count,
                       uint32_t first, uint32_t count, struct buffer *out)
{
    _cleanup_(node_columns_release) struct node_columns columns = {.count = count};
    find_runs(tree, first, &columns);
    find_frames(tree, first, frame_count, &columns);
    buffer_add_varint(out, columns.runs);
    planes_pack(codec, list_number, columns.lengths, columns.runs, out);
    planes_pack(codec, list_number, columns.backs, columns.runs, out);
    buffer_add_varint(out, columns.frame_count);
    planes_pack(codec, list_number, columns.frames, columns.frame_count, out);
    planes_pack(codec, list_number, columns.indexes, count, out);
}

/* The frames that occur; NULL when there is one among them that can't be. */
static uint32_t *unpack_frames(struct plane_codec *codec, struct cursor *cursor, size_t most,
                               uint32_t frame_count, size_t *ret_count)
{
    uint64_t count = cursor_varint(cursor), frame = 0;
    _cleanup_planes_ struct planes gaps = {0};
    if (!count || count > most || !planes_open(codec, cursor, count, 4, &gaps))
        return NULL;
    uint32_t *frames = memory_zalloc(count, sizeof(*frames));
    for (size_t i = 0; i < count; i++) {
        frame += planes_number(&gaps, i);
        if (frame >= frame_count) {
            free(frames);
            return NULL;
        }
        frames[i] = (uint32_t)frame;
    }
    *ret_count = count;
    return frames;
}

static bool unpack_nodes(struct plane_codec *codec, struct tree *tree, uint32_t frame_count,
                         size_t count, struct cursor *cursor)
{
    _cleanup_planes_ struct planes lengths = {0}, backs = {0}, indexes = {0};
    uint64_t runs = cursor_varint(cursor);
    size_t distinct;
    if (!runs || runs > count || !planes_open(codec, cursor, runs, 4, &lengths) ||
        !planes_open(codec, cursor, runs, 4, &backs))
        return false;
    _cleanup_free_ uint32_t *frames = unpack_frames(codec, cursor, count, frame_count, &distinct);
    if (!frames || !planes_open(codec, cursor, count, 4, &indexes))
        return false;
    array_reserve(tree->nodes, tree->capacity, tree->count + count);
    size_t done = 0;
    for (size_t run = 0; run < runs; run++) {
        uint64_t length = planes_number(&lengths, run) + 1, back = planes_number(&backs, run) + 1;
        if (length > count - done || back > tree->count)
            return false;
        uint32_t parent = tree->count - (uint32_t)back;
        for (size_t end = done + length; done < end; done++) {
            uint64_t index = planes_number(&indexes, done);
            if (index >= distinct)
                return false;
            tree->nodes[tree->count] =
                (struct profile_node){.parent = parent, .frame = frames[index]};
            parent = tree->count++;
        }
    }
    return done == count;
}

/* ---- chunks: a byte that says how it is stored, the content, a checksum ---- */

static void seal(struct buffer *out, size_t start)
{
    uint64_t checksum = XXH3_64bits(out->data + start, out->length - start);
    buffer_add(out, &checksum, sizeof(checksum));
}

void catalog_pack(const struct catalog *catalog, enum catalog_table table, uint32_t service,
                  uint32_t first, uint32_t count, struct buffer *out)
{
    const struct tree *tree = table == TABLE_NODES ? &catalog->services[service].tree : NULL;
    size_t start = out->length;
    buffer_add_char(out, FORM_PLAIN);
    pack_entries(catalog, table, tree, first, count, out);
    seal(out, start);
}

void catalog_pack_zstd(const struct catalog *catalog, enum catalog_table table, uint32_t service,
                       uint32_t first, uint32_t count, struct buffer *out)
{
    _cleanup_buffer_ struct buffer content = {0};
    const struct tree *tree = table == TABLE_NODES ? &catalog->services[service].tree : NULL;
    pack_entries(catalog, table, tree, first, count, &content);
    size_t start = out->length, room = ZSTD_compressBound(content.length);
    char *packed = buffer_reserve(out, room + 1);
    size_t got = content.length < COMPRESS_FROM
                     ? content.length
                     : ZSTD_compress(packed + 1, room, content.data, content.length, 1);
    bool smaller = !ZSTD_isError(got) && got < content.length;
    buffer_add_char(out, smaller ? FORM_ZSTD : FORM_PLAIN);
    if (smaller)
        out->length += got;
    else
        buffer_add(out, content.data, content.length);
    seal(out, start);
}

void catalog_pack_joined(const struct catalog *catalog, enum catalog_table table, uint32_t service,
                         uint32_t first, uint32_t count, struct buffer *out)
{
    if (table == TABLE_STRINGS || table == TABLE_MAPPINGS || count < COLUMNS_FROM ||
        count > COLUMNS_MOST) {
        catalog_pack_zstd(catalog, table, service, first, count, out);
        return;
    }
    struct plane_codec codec = {0};
    size_t start = out->length;
    buffer_add_char(out, FORM_COLUMNS);
    buffer_add_varint(out, count);
    if (table == TABLE_NODES)
        pack_nodes(&codec, &catalog->services[service].tree, catalog->tables.frame_count, first,
                   count, out);
    else
        pack_columns(&codec, catalog, table, first, count, out);
    seal(out, start);
    plane_codec_release(&codec);
}

static int inflate(const uint8_t *data, size_t length, struct buffer *content)
{
    unsigned long long size = ZSTD_getFrameContentSize(data, length);
    if (size > CHUNK_BYTES_MAX)
        return -EBADMSG;
    char *out = buffer_reserve(content, size + 1);
    if (ZSTD_decompress(out, size, data, length) != size)
        return -EBADMSG;
    content->length = size;
    return 0;
}

static bool unpack_joined(struct catalog *catalog, enum catalog_table table, struct tree *tree,
                          size_t count, struct cursor *cursor)
{
    if (table == TABLE_STRINGS || table == TABLE_MAPPINGS || !count || count > COLUMNS_MOST)
        return false;
    struct plane_codec codec = {0};
    bool good = table == TABLE_NODES
                    ? unpack_nodes(&codec, tree, catalog->tables.frame_count, count, cursor)
                    : unpack_columns(&codec, catalog, table, count, cursor);
    plane_codec_release(&codec);
    return good;
}

int catalog_unpack(struct catalog *catalog, enum catalog_table table, uint32_t service,
                   uint32_t first, const void *data, size_t length)
{
    _cleanup_buffer_ struct buffer content = {0};
    const uint8_t *bytes = data;
    uint64_t checksum;
    if (first != catalog_count(catalog, table, service) || length < 1 + sizeof(checksum))
        return -EBADMSG;
    length -= sizeof(checksum);
    memcpy(&checksum, bytes + length, sizeof(checksum));
    if (checksum != XXH3_64bits(bytes, length) || bytes[0] > FORM_COLUMNS)
        return -EBADMSG;
    struct cursor cursor = cursor_over(bytes + 1, length - 1);
    if (bytes[0] == FORM_ZSTD) {
        if (inflate(bytes + 1, length - 1, &content) < 0)
            return -EBADMSG;
        cursor = cursor_over(content.data, content.length);
    }
    uint64_t count = cursor_varint(&cursor);
    struct tree *tree = table == TABLE_NODES ? &catalog->services[service].tree : NULL;
    if (cursor.failed || count > PROFILE_IDS_MAX - first)
        return -EBADMSG;
    bool good = bytes[0] == FORM_COLUMNS ? unpack_joined(catalog, table, tree, count, &cursor)
                                         : count <= cursor_left(&cursor) &&
                                               unpack_entries(catalog, table, tree, count, &cursor);
    return good && !cursor_left(&cursor) ? 0 : -EBADMSG;
}
