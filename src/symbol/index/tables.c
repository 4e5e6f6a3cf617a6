// SPDX-License-Identifier: Apache-2.0
// The tables of a symbol index while it is made: strings, functions, files, nodes.

#include <xxhash.h>

#include "profile/names/demangle.h"
#include "symbol/index/builder.h"

#define STRING_BYTES_MAX 65536
#define STRINGS_BYTES_MAX 0xf0000000u

void index_tables_init(struct index_tables *tables, uint64_t base)
{
    *tables = (struct index_tables){.base = base};
    buffer_add_char(&tables->strings, '\0');
    array_reserve(tables->functions, tables->function_capacity, 1);
    tables->functions[tables->function_count++] = (struct symbol_index_function){0};
    array_reserve(tables->files, tables->file_capacity, 1);
    tables->files[tables->file_count++] = 0;
}

void index_tables_release(struct index_tables *tables)
{
    buffer_release(&tables->strings);
    buffer_release(&tables->text);
    buffer_release(&tables->nodes);
    id_table_release(&tables->string_index);
    id_table_release(&tables->function_index);
    id_table_release(&tables->file_index);
    id_table_release(&tables->readable_index);
    free(tables->functions);
    free(tables->files);
    free(tables->readable);
    free(tables->node_groups);
}

/* ---- strings ---- */

static uint32_t intern(struct index_tables *tables, const char *text, size_t length)
{
    uint64_t hash = XXH3_64bits(text, length);
    struct id_probe probe = id_probe_start(hash);
    uint32_t offset;
    while ((offset = id_table_next(&tables->string_index, &probe)) != ID_NONE)
        if (tables->strings.length - offset > length &&
            !memcmp(tables->strings.data + offset, text, length) &&
            !tables->strings.data[offset + length])
            return offset;
    if (tables->strings.length > STRINGS_BYTES_MAX) {
        tables->is_full = true;
        return 0;
    }
    offset = (uint32_t)tables->strings.length;
    buffer_add(&tables->strings, text, length);
    buffer_add_char(&tables->strings, '\0');
    id_table_insert(&tables->string_index, hash, offset);
    return offset;
}

uint32_t index_string(struct index_tables *tables, const char *text)
{
    size_t length = text ? strnlen(text, STRING_BYTES_MAX + 1) : 0;
    return !length || length > STRING_BYTES_MAX ? 0 : intern(tables, text, length);
}

/* ---- functions ---- */

uint32_t index_function(struct index_tables *tables, uint32_t name, uint32_t system_name,
                        uint32_t start_line)
{
    if (!name)
        return 0;
    struct symbol_index_function function = {.name = name,
                                             .system_name = system_name == name ? 0 : system_name,
                                             .start_line = start_line};
    uint64_t hash = hash_word(((uint64_t)name << 32 | function.system_name) ^
                              hash_word((uint64_t)start_line + 1));
    struct id_probe probe = id_probe_start(hash);
    uint32_t number;
    while ((number = id_table_next(&tables->function_index, &probe)) != ID_NONE)
        if (!memcmp(&tables->functions[number], &function, sizeof(function)))
            return number;
    array_reserve(tables->functions, tables->function_capacity, tables->function_count + 1);
    number = (uint32_t)tables->function_count++;
    tables->functions[number] = function;
    id_table_insert(&tables->function_index, hash, number);
    return number;
}

/* The readable form of a linkage name; 0 when it has none. */
static uint32_t readable_name(struct index_tables *tables, uint32_t system_name)
{
    uint64_t hash = hash_word(system_name);
    struct id_probe probe = id_probe_start(hash);
    uint32_t i;
    while ((i = id_table_next(&tables->readable_index, &probe)) != ID_NONE)
        if (tables->readable[i].system_name == system_name)
            return tables->readable[i].name;
    tables->text.length = 0;
    uint32_t name = demangle(tables->strings.data + system_name, &tables->text)
                        ? intern(tables, tables->text.data, tables->text.length)
                        : 0;
    array_reserve(tables->readable, tables->readable_capacity, tables->readable_count + 1);
    tables->readable[tables->readable_count] = (struct readable_name){system_name, name};
    id_table_insert(&tables->readable_index, hash, (uint32_t)tables->readable_count++);
    return name;
}

uint32_t index_linked_function(struct index_tables *tables, const char *linkage_name,
                               const char *otherwise, uint32_t start_line)
{
    uint32_t system_name = index_string(tables, linkage_name);
    uint32_t name = system_name ? readable_name(tables, system_name) : 0;
    if (!name)
        name = index_string(tables, otherwise);
    return index_function(tables, name ? name : system_name, system_name, start_line);
}

/* ---- files ---- */

/* Adds the parts of a path, without "." and with ".." worked out as far as names go: links are the
 * build machine's and not looked at. */
static void add_path(struct buffer *text, const char *path, bool absolute)
{
    for (const char *at = path; *at && text->length < STRING_BYTES_MAX;) {
        size_t length = strcspn(at, "/");
        const char *slash = text->length ? memrchr(text->data, '/', text->length) : NULL;
        size_t last = slash ? (size_t)(slash - text->data) + 1 : 0;
        bool is_up = text->length - last == 2 && !memcmp(text->data + last, "..", 2);
        if (length == 2 && !memcmp(at, "..", 2) && !is_up && (text->length || absolute)) {
            text->length = slash ? last - 1 : 0;
        } else if (length && !(length == 1 && *at == '.')) {
            if (text->length || absolute)
                buffer_add_char(text, '/');
            buffer_add(text, at, length);
        }
        at += length + (at[length] == '/');
    }
}

uint32_t index_file(struct index_tables *tables, const char *compiler_folder, const char *folder,
                    const char *name)
{
    const char *parts[] = {compiler_folder, folder, name};
    size_t first = 0;
    if (!name || !name[0])
        return 0;
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        if (parts[i] && parts[i][0] == '/')
            first = i;
    tables->text.length = 0;
    bool absolute = parts[first] && parts[first][0] == '/';
    for (size_t i = first; i < ARRAY_LENGTH(parts); i++)
        if (parts[i])
            add_path(&tables->text, parts[i], absolute);
    if (!tables->text.length || tables->text.length > STRING_BYTES_MAX)
        return 0;
    uint32_t text = intern(tables, tables->text.data, tables->text.length);
    uint64_t hash = hash_word(text);
    struct id_probe probe = id_probe_start(hash);
    uint32_t number;
    while ((number = id_table_next(&tables->file_index, &probe)) != ID_NONE)
        if (tables->files[number] == text)
            return number;
    array_reserve(tables->files, tables->file_capacity, tables->file_count + 1);
    number = (uint32_t)tables->file_count++;
    tables->files[number] = text;
    id_table_insert(&tables->file_index, hash, number);
    return number;
}

/* ---- nodes ---- */

static void add_number(struct buffer *bytes, uint64_t value)
{
    char *out = buffer_reserve(bytes, 10);
    size_t length = 0;
    for (; value >= 0x80; value >>= 7)
        out[length++] = (char)(value | 0x80);
    out[length++] = (char)value;
    bytes->length += length;
}

static uint32_t start_node(struct index_tables *tables)
{
    if (tables->node_count == UINT32_MAX - 1 || tables->nodes.length > UINT32_MAX - 64) {
        tables->is_full = true;
        return 0;
    }
    if (tables->node_count % SYMBOL_INDEX_NODES_PER_GROUP == 0) {
        array_reserve(tables->node_groups, tables->node_group_capacity,
                      tables->node_group_count + 1);
        tables->node_groups[tables->node_group_count++] = (uint32_t)tables->nodes.length;
        tables->last_file = tables->last_line = 0;
        tables->last_start = tables->base;
    }
    return ++tables->node_count;
}

uint32_t index_add_root(struct index_tables *tables, uint32_t function, uint64_t start)
{
    uint32_t node = start_node(tables);
    if (!node)
        return 0;
    add_number(&tables->nodes, 0);
    add_number(&tables->nodes, function);
    add_number(&tables->nodes, symbol_index_fold((int64_t)(start - tables->last_start)));
    tables->last_start = start;
    return node;
}

uint32_t index_add_inlined(struct index_tables *tables, uint32_t parent, uint32_t function,
                           uint32_t file, uint32_t line)
{
    uint32_t node = start_node(tables);
    if (!node)
        return 0;
    add_number(&tables->nodes, node - parent);
    add_number(&tables->nodes, function);
    add_number(&tables->nodes, symbol_index_fold((int32_t)(file - tables->last_file)));
    add_number(&tables->nodes, symbol_index_fold((int32_t)(line - tables->last_line)));
    tables->last_file = file;
    tables->last_line = line;
    tables->inlined_count++;
    return node;
}
