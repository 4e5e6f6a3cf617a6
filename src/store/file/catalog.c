// SPDX-License-Identifier: Apache-2.0
// A file's tables: adding to them, rows of series both ways, digests of stacks.

#include "store/file/catalog.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "profile/unresolved.h"
#include "store/block/varint.h"

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
    plain_frames_release(&catalog->plain);
    profile_release(&catalog->tables);
    *catalog = (struct catalog){0};
}

size_t catalog_memory(const struct catalog *catalog)
{
    size_t bytes = digest_table_bytes(&catalog->frames) + digest_table_bytes(&catalog->functions) +
                   digest_table_bytes(&catalog->mappings) + plain_frames_memory(&catalog->plain) +
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

uint64_t catalog_series_hash(const struct labels *labels, const char *type)
{
    return labels_hash(labels) ^ XXH3_64bits(type, strlen(type));
}

uint32_t catalog_find_series(const struct catalog *catalog, const struct labels *labels,
                             const char *type)
{
    uint64_t hash = catalog_series_hash(labels, type);
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
    uint64_t hash = catalog_series_hash(labels, type);
    id = (uint32_t)catalog->series_count++;
    array_reserve(catalog->series, catalog->series_capacity, catalog->series_count);
    const char *service = labels_get(labels, LABEL_SERVICE_NAME);
    catalog->series[id] = (struct catalog_series){
        .hash = hash, .service = catalog_service(catalog, service ? service : "")};
    catalog_index_series(catalog, id, labels, type);
    id_table_insert(&catalog->series_index, hash, id);
    return id;
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

int catalog_unpack_row(const struct catalog_row *row, const void *data, size_t length,
                       struct labels *labels)
{
    uint64_t checksum;
    if (length > sizeof(checksum)) {
        size_t content = length - sizeof(checksum);
        memcpy(&checksum, (const uint8_t *)data + content, sizeof(checksum));
        if (checksum == row_checksum(row, data, content))
            return catalog_unpack_labels(data, content, labels);
    }
    return -EBADMSG;
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
        finder->string[string] = unresolved_string_hash(text->data, text->length, finder->seed);
    }
    return finder->string[string];
}

static uint64_t function_hash(struct stack_finder *finder, uint32_t id)
{
    if (!finder->function[id]) {
        const struct profile_function *function = &finder->from->functions[id];
        finder->function[id] = unresolved_function_hash(
            (struct unresolved_function){.name = string_hash(finder, function->name),
                                         .system_name = string_hash(finder, function->system_name),
                                         .file = string_hash(finder, function->file),
                                         .start_line = function->start_line},
            finder->seed);
    }
    return finder->function[id];
}

static uint64_t mapping_hash(struct stack_finder *finder, uint32_t id)
{
    if (!finder->mapping[id]) {
        const struct profile_mapping *mapping = &finder->from->mappings[id];
        uint64_t name = string_hash(finder, mapping->build_id ? mapping->build_id : mapping->file);
        finder->mapping[id] = unresolved_mapping_hash(mapping, name, finder->seed);
    }
    return finder->mapping[id];
}

static struct digest frame_digest(struct stack_finder *finder, uint32_t id)
{
    if (!finder->frame[id].high) {
        const struct profile_frame *frame = &finder->from->frames[id];
        finder->frame[id] =
            unresolved_frame_digest(frame, function_hash(finder, frame->function),
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
                unresolved_digest_below(finder->node[finder->from->nodes[at].parent],
                                        frame_digest(finder, finder->from->nodes[at].frame));
        }
    }
    return finder->node[node];
}
