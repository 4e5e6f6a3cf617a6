// SPDX-License-Identifier: Apache-2.0
// A file's tables: adding to them, and chunks of them both ways.

#include "store/catalog.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include "base/memory.h"
#include "profile/loose.h"
#include "store/varint.h"

#define COMPRESS_FROM 4096 /* what commits add is small, and joined and compressed later */
#define CHUNK_BYTES_MAX (1u << 30)

void catalog_init(struct catalog *catalog)
{
    *catalog = (struct catalog){0};
    profile_init(&catalog->tables, PROFILE_ALL);
    for (unsigned i = 0; i < CATALOG_TABLES; i++)
        catalog->kept[i] = 1;
}

void catalog_release(struct catalog *catalog)
{
    for (size_t i = 0; i < catalog->service_count; i++) {
        free(catalog->services[i].name);
        tree_release(&catalog->services[i].tree);
    }
    label_index_release(&catalog->index);
    free(catalog->services);
    free(catalog->series);
    id_table_release(&catalog->service_index);
    id_table_release(&catalog->series_index);
    digest_table_release(&catalog->frames);
    digest_table_release(&catalog->functions);
    digest_table_release(&catalog->mappings);
    profile_release(&catalog->tables);
    *catalog = (struct catalog){0};
}

size_t catalog_memory(const struct catalog *catalog)
{
    size_t bytes = digest_table_bytes(&catalog->frames) + digest_table_bytes(&catalog->functions) +
                   digest_table_bytes(&catalog->mappings) +
                   (catalog->tables.tables ? profile_memory(&catalog->tables) : 0);
    for (size_t i = 0; i < catalog->service_count; i++)
        bytes += sizeof(catalog->services[i]) + tree_memory(&catalog->services[i].tree);
    if (catalog->series_index.slots)
        bytes += (catalog->series_index.mask + 1) * sizeof(uint64_t);
    return bytes + catalog->series_capacity * sizeof(*catalog->series) +
           label_index_memory(&catalog->index);
}

uint32_t catalog_count(const struct catalog *catalog, enum catalog_table table, uint32_t service)
{
    switch (table) {
    case TABLE_STRINGS:
        return catalog->tables.string_count;
    case TABLE_FUNCTIONS:
        return catalog->tables.function_count;
    case TABLE_MAPPINGS:
        return catalog->tables.mapping_count;
    case TABLE_FRAMES:
        return catalog->tables.frame_count;
    case TABLE_NODES:
        break;
    }
    return catalog->services[service].tree.count;
}

uint32_t catalog_service(struct catalog *catalog, const char *name)
{
    uint64_t hash = XXH3_64bits(name, strlen(name));
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&catalog->service_index, &probe)) != ID_NONE)
        if (!strcmp(catalog->services[id].name, name))
            return id;
    id = (uint32_t)catalog->service_count++;
    array_reserve(catalog->services, catalog->service_capacity, catalog->service_count);
    catalog->services[id] =
        (struct catalog_service){.name = memory_strdup(name), .loaded = true, .kept = 1};
    tree_init(&catalog->services[id].tree);
    id_table_insert(&catalog->service_index, hash, id);
    return id;
}

static uint64_t series_hash(const struct labels *labels, const char *type)
{
    return labels_hash(labels) ^ XXH3_64bits(type, strlen(type));
}

uint32_t catalog_find_series(const struct catalog *catalog, const struct labels *labels,
                             const char *type)
{
    uint64_t hash = series_hash(labels, type);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&catalog->series_index, &probe)) != ID_NONE)
        if (catalog->series[id].hash == hash && labels_equal(&catalog->series[id].labels, labels) &&
            !strcmp(catalog->series[id].type, type))
            break;
    return id;
}

uint32_t catalog_series(struct catalog *catalog, const struct labels *labels, const char *type)
{
    uint32_t id = catalog_find_series(catalog, labels, type);
    if (id != ID_NONE)
        return id;
    uint64_t hash = series_hash(labels, type);
    id = (uint32_t)catalog->series_count++;
    array_reserve(catalog->series, catalog->series_capacity, catalog->series_count);
    const char *service = labels_get(labels, LABEL_SERVICE_NAME);
    catalog->series[id] = (struct catalog_series){
        .hash = hash, .service = catalog_service(catalog, service ? service : "")};
    catalog_index_series(catalog, id, labels, type);
    id_table_insert(&catalog->series_index, hash, id);
    return id;
}

/* ---- chunks: a byte that says whether zstd was used, the content, a checksum ---- */

static void seal(const struct buffer *content, struct buffer *out)
{
    size_t start = out->length;
    buffer_add_char(out, 0);
    if (content->length >= COMPRESS_FROM) {
        size_t room = ZSTD_compressBound(content->length);
        char *packed = buffer_reserve(out, room);
        size_t got = ZSTD_compress(packed, room, content->data, content->length, 1);
        if (!ZSTD_isError(got) && got < content->length) {
            out->data[start] = 1;
            out->length += got;
        }
    }
    if (!out->data[start])
        buffer_add(out, content->data, content->length);
    uint64_t checksum = XXH3_64bits(out->data + start, out->length - start);
    buffer_add(out, &checksum, sizeof(checksum));
}

static int unseal(const uint8_t *data, size_t length, struct buffer *content)
{
    uint64_t checksum;
    if (length < 1 + sizeof(checksum))
        return -EBADMSG;
    length -= sizeof(checksum);
    memcpy(&checksum, data + length, sizeof(checksum));
    if (checksum != XXH3_64bits(data, length) || data[0] > 1)
        return -EBADMSG;
    if (!data[0]) {
        buffer_add(content, data + 1, length - 1);
        return 0;
    }
    unsigned long long size = ZSTD_getFrameContentSize(data + 1, length - 1);
    if (size > CHUNK_BYTES_MAX)
        return -EBADMSG;
    char *out = buffer_reserve(content, size + 1);
    if (ZSTD_decompress(out, size, data + 1, length - 1) != size)
        return -EBADMSG;
    content->length = size;
    return 0;
}

static void pack_entry(const struct catalog *catalog, enum catalog_table table,
                       const struct tree *tree, uint32_t id, struct buffer *out)
{
    const struct profile *tables = &catalog->tables;
    if (table == TABLE_STRINGS) {
        buffer_add_varint(out, tables->strings[id].length);
        buffer_add(out, tables->strings[id].data, tables->strings[id].length);
    } else if (table == TABLE_FUNCTIONS) {
        const struct profile_function *function = &tables->functions[id];
        buffer_add_varint(out, function->name);
        buffer_add_varint(out, function->system_name);
        buffer_add_varint(out, function->file);
        buffer_add_varint(out, function->start_line);
    } else if (table == TABLE_MAPPINGS) {
        const struct profile_mapping *mapping = &tables->mappings[id];
        buffer_add_varint(out, mapping->start);
        buffer_add_varint(out, mapping->limit);
        buffer_add_varint(out, mapping->offset);
        buffer_add_varint(out, mapping->file);
        buffer_add_varint(out, mapping->build_id);
    } else if (table == TABLE_FRAMES) {
        const struct profile_frame *frame = &tables->frames[id];
        buffer_add_varint(out, frame->address);
        buffer_add_varint(out, frame->function);
        buffer_add_varint(out, frame->mapping);
        buffer_add_varint(out, frame->line);
        buffer_add_varint(out, frame->column);
        buffer_add_varint(out, frame->kind << 2 | frame->inlined << 1 | frame->folded);
    } else {
        buffer_add_varint(out, id - tree->nodes[id].parent);
        buffer_add_varint(out, tree->nodes[id].frame);
    }
}

void catalog_pack(const struct catalog *catalog, enum catalog_table table, uint32_t service,
                  uint32_t first, uint32_t count, struct buffer *out)
{
    _cleanup_buffer_ struct buffer content = {0};
    const struct tree *tree = table == TABLE_NODES ? &catalog->services[service].tree : NULL;
    buffer_add_varint(&content, count);
    for (uint32_t id = first; id < first + count; id++)
        pack_entry(catalog, table, tree, id, &content);
    seal(&content, out);
}

/* One entry, checked, added; false when it can't be the one that `id` is. */
static bool unpack_symbol(struct profile *tables, enum catalog_table table, uint32_t id,
                          struct cursor *cursor)
{
    uint32_t got;
    if (table == TABLE_STRINGS) {
        uint64_t length = cursor_varint(cursor);
        const char *text = cursor_bytes(cursor, length);
        if (!text)
            return false;
        got = profile_string(tables, text, length);
    } else if (table == TABLE_FUNCTIONS) {
        uint64_t name = cursor_varint(cursor), system_name = cursor_varint(cursor),
                 file = cursor_varint(cursor), line = cursor_varint(cursor);
        if (name >= tables->string_count || system_name >= tables->string_count ||
            file >= tables->string_count || line > UINT32_MAX)
            return false;
        got = profile_function(tables,
                               &(struct profile_function){.name = (uint32_t)name,
                                                          .system_name = (uint32_t)system_name,
                                                          .file = (uint32_t)file,
                                                          .start_line = (uint32_t)line});
    } else if (table == TABLE_MAPPINGS) {
        struct profile_mapping mapping = {.start = cursor_varint(cursor)};
        mapping.limit = cursor_varint(cursor);
        mapping.offset = cursor_varint(cursor);
        uint64_t file = cursor_varint(cursor), build_id = cursor_varint(cursor);
        if (file >= tables->string_count || build_id >= tables->string_count)
            return false;
        mapping.file = (uint32_t)file;
        mapping.build_id = (uint32_t)build_id;
        got = profile_mapping(tables, &mapping);
    } else {
        struct profile_frame frame = {.address = cursor_varint(cursor)};
        uint64_t function = cursor_varint(cursor), mapping = cursor_varint(cursor),
                 line = cursor_varint(cursor), column = cursor_varint(cursor),
                 flags = cursor_varint(cursor);
        if (function >= tables->function_count || mapping >= tables->mapping_count ||
            line > UINT32_MAX || column >= 1 << 24 || flags >> 2 >= FRAME_KINDS)
            return false;
        frame.function = (uint32_t)function;
        frame.mapping = (uint32_t)mapping;
        frame.line = (uint32_t)line;
        frame.column = (uint32_t)column & 0xffffff;
        frame.kind = flags >> 2 & 0x3f;
        frame.inlined = flags >> 1 & 1;
        frame.folded = flags & 1;
        got = profile_frame(tables, &frame);
    }
    return !cursor->failed && got == id;
}

static bool unpack_node(struct catalog *catalog, struct tree *tree, struct cursor *cursor)
{
    uint64_t back = cursor_varint(cursor), frame = cursor_varint(cursor);
    if (cursor->failed || !back || back > tree->count || frame >= catalog->tables.frame_count)
        return false;
    tree_append(tree, (uint32_t)(tree->count - back), (uint32_t)frame);
    return true;
}

int catalog_unpack(struct catalog *catalog, enum catalog_table table, uint32_t service,
                   uint32_t first, const void *data, size_t length)
{
    _cleanup_buffer_ struct buffer content = {0};
    if (first != catalog_count(catalog, table, service) || unseal(data, length, &content) < 0)
        return -EBADMSG;
    struct cursor cursor = cursor_over(content.data, content.length);
    uint64_t count = cursor_varint(&cursor);
    if (cursor.failed || count > cursor_left(&cursor) || count > PROFILE_IDS_MAX - first)
        return -EBADMSG;
    for (uint64_t i = 0; i < count; i++)
        if (table == TABLE_NODES
                ? !unpack_node(catalog, &catalog->services[service].tree, &cursor)
                : !unpack_symbol(&catalog->tables, table, first + (uint32_t)i, &cursor))
            return -EBADMSG;
    return cursor_left(&cursor) ? -EBADMSG : 0;
}

void catalog_pack_labels(const struct labels *labels, struct buffer *out)
{
    buffer_add_varint(out, labels->count);
    for (size_t i = 0; i < labels->count; i++) {
        const char *text[] = {labels->list[i].name, labels->list[i].value};
        for (unsigned k = 0; k < 2; k++) {
            buffer_add_varint(out, strlen(text[k]));
            buffer_add(out, text[k], strlen(text[k]));
        }
    }
}

int catalog_unpack_labels(const void *data, size_t length, struct labels *labels)
{
    struct cursor cursor = cursor_over(data, length);
    uint64_t count = cursor_varint(&cursor);
    for (uint64_t i = 0; i < count && !cursor.failed; i++) {
        uint64_t name_length = cursor_varint(&cursor);
        const char *name = cursor_bytes(&cursor, name_length);
        uint64_t value_length = cursor_varint(&cursor);
        const char *value = cursor_bytes(&cursor, value_length);
        if (name && value)
            labels_set_n(labels, name, name_length, value, value_length);
    }
    return cursor.failed || cursor_left(&cursor) || labels->count != count ? -EBADMSG : 0;
}

static uint64_t row_checksum(const struct catalog_row *row, const void *labels, size_t length)
{
    _cleanup_buffer_ struct buffer all = {0};
    buffer_add_varint(&all, (uint64_t)row->id);
    buffer_add_varint(&all, (uint64_t)row->service);
    buffer_add(&all, row->type, strlen(row->type) + 1);
    buffer_add(&all, labels, length);
    return XXH3_64bits(all.data, all.length);
}

void catalog_pack_row(const struct catalog_row *row, const struct labels *labels,
                      struct buffer *out)
{
    size_t start = out->length;
    catalog_pack_labels(labels, out);
    uint64_t checksum = row_checksum(row, out->data + start, out->length - start);
    buffer_add(out, &checksum, sizeof(checksum));
}

int catalog_unpack_row(const struct catalog_row *row, const void *data, size_t length, bool plain,
                       struct labels *labels)
{
    uint64_t checksum;
    if (length > sizeof(checksum)) {
        size_t content = length - sizeof(checksum);
        memcpy(&checksum, (const uint8_t *)data + content, sizeof(checksum));
        if (checksum == row_checksum(row, data, content))
            return catalog_unpack_labels(data, content, labels);
    }
    return plain ? catalog_unpack_labels(data, length, labels) : -EBADMSG;
}

bool *catalog_function_nodes(const struct catalog *catalog, uint32_t service,
                             const struct store_function *function, bool cumulative)
{
    const struct tree *tree = &catalog->services[service].tree;
    return function_nodes(&catalog->tables, tree->nodes, tree->count, function, cumulative);
}

/* ---- digests of stacks ---- */

void stack_finder_init(struct stack_finder *finder, const struct profile *from, uint64_t seed)
{
    *finder = (struct stack_finder){
        .from = from,
        .seed = seed,
        .string = memory_zalloc(from->string_count, sizeof(*finder->string)),
        .function = memory_zalloc(from->function_count, sizeof(*finder->function)),
        .mapping = memory_zalloc(from->mapping_count, sizeof(*finder->mapping)),
        .frame = memory_zalloc(from->frame_count, sizeof(*finder->frame)),
        .node = memory_zalloc(from->node_count, sizeof(*finder->node)),
    };
}

void stack_finder_release(struct stack_finder *finder)
{
    free(finder->string);
    free(finder->function);
    free(finder->mapping);
    free(finder->frame);
    free(finder->node);
    *finder = (struct stack_finder){0};
}

static uint64_t string_hash(struct stack_finder *finder, uint32_t string)
{
    if (!finder->string[string]) {
        const struct profile_string *text = &finder->from->strings[string];
        finder->string[string] = loose_string_hash(text->data, text->length, finder->seed);
    }
    return finder->string[string];
}

static uint64_t function_hash(struct stack_finder *finder, uint32_t id)
{
    if (!finder->function[id]) {
        const struct profile_function *function = &finder->from->functions[id];
        finder->function[id] = loose_function_hash(
            (struct loose_function){.name = string_hash(finder, function->name),
                                    .system_name = string_hash(finder, function->system_name),
                                    .file = string_hash(finder, function->file),
                                    .start_line = function->start_line},
            string_hash(finder, 0), finder->seed);
    }
    return finder->function[id];
}

static uint64_t mapping_hash(struct stack_finder *finder, uint32_t id)
{
    if (!finder->mapping[id]) {
        const struct profile_mapping *mapping = &finder->from->mappings[id];
        uint64_t name = string_hash(finder, mapping->build_id ? mapping->build_id : mapping->file);
        finder->mapping[id] = loose_mapping_hash(mapping, name, finder->seed);
    }
    return finder->mapping[id];
}

static struct digest frame_digest(struct stack_finder *finder, uint32_t id)
{
    if (!finder->frame[id].high) {
        const struct profile_frame *frame = &finder->from->frames[id];
        finder->frame[id] = loose_frame_digest(frame, function_hash(finder, frame->function),
                                               mapping_hash(finder, frame->mapping), finder->seed);
    }
    return finder->frame[id];
}

struct digest stack_finder_digest(struct stack_finder *finder, uint32_t node)
{
    /* Parents first: climb to one that is known, and come back. The path is in the tree itself, so
     * climbing again for each step would be quadratic; depths are bounded by STORE_DEPTH_MAX. */
    uint32_t path[64];
    while (node && !finder->node[node].high) {
        unsigned depth = 0;
        for (uint32_t at = node; at && !finder->node[at].high; at = finder->from->nodes[at].parent)
            path[depth++ % 64] = at;
        for (unsigned i = 0; i < 64 && depth; i++) {
            uint32_t at = path[--depth % 64];
            finder->node[at] =
                loose_digest_below(finder->node[finder->from->nodes[at].parent],
                                   frame_digest(finder, finder->from->nodes[at].frame));
        }
    }
    return finder->node[node];
}
