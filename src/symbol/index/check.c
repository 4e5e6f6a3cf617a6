// SPDX-License-Identifier: Apache-2.0
// Everything in a symbol index at once, before it is kept: see index.h.

#include <xxhash.h>

#include "symbol/index/decode.h"

static int damaged(struct error *error, const char *what)
{
    return error_set(error, -EBADMSG,
                     "The symbol index is damaged (%s). Rebuild it from its binary.", what);
}

static int check_rows(const struct symbol_index *index, struct error *error)
{
    uint64_t count = 0;
    int64_t last = -1;
    for (uint32_t group = 0; group < index->group_count; group++) {
        struct symbol_index_rows rows;
        bool more = symbol_index_rows_start(index, group, &rows);
        if (!more)
            return damaged(error, "a group of rows");
        for (; more; more = symbol_index_rows_next(&rows), count++) {
            if (rows.row.address <= last || rows.row.node > index->header->node_count ||
                (rows.row.file && rows.row.file >= index->file_count))
                return damaged(error, "a row");
            last = rows.row.address;
        }
        if (rows.cursor.bad || rows.cursor.at != rows.stop)
            return damaged(error, "a group of rows");
    }
    return count == index->header->row_count ? 0 : damaged(error, "the number of rows");
}

static int check_nodes(const struct symbol_index *index, struct error *error)
{
    struct symbol_index_nodes nodes = {0};
    for (uint32_t i = 1; i <= index->header->node_count; i++) {
        const struct symbol_index_node *node = symbol_index_node_find(index, i, &nodes);
        if (!node || node->function >= index->function_count ||
            (node->file && node->file >= index->file_count))
            return damaged(error, "a function's place");
    }
    return 0;
}

static int check_strings(const struct symbol_index *index, struct error *error)
{
    const struct symbol_index_function *functions =
        (const struct symbol_index_function *)(const void *)index->parts[SYMBOL_INDEX_FUNCTIONS];
    const uint32_t *files = (const uint32_t *)(const void *)index->parts[SYMBOL_INDEX_FILES];
    uint64_t length = index->header->parts[SYMBOL_INDEX_STRINGS].length;
    for (uint32_t i = 0; i < index->function_count; i++)
        if (functions[i].name >= length || functions[i].system_name >= length)
            return damaged(error, "a function's name");
    for (uint32_t i = 0; i < index->file_count; i++)
        if (files[i] >= length)
            return damaged(error, "a file's name");
    return 0;
}

int symbol_index_check(const struct symbol_index *index, struct error *error)
{
    const struct symbol_index_header *header = index->header;
    if (XXH3_64bits(index->bytes + sizeof(*header), index->length - sizeof(*header)) !=
        header->content_checksum)
        return damaged(error, "its checksum");
    int r = check_rows(index, error);
    if (r >= 0)
        r = check_nodes(index, error);
    return r < 0 ? r : check_strings(index, error);
}
