// SPDX-License-Identifier: Apache-2.0
// The tables of all files that a profile's frames are in: see symbolizer.h.

#include "symbol/symbolizer.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/idtable.h"
#include "base/memory.h"
#include "symbol/kernel.h"
#include "symbol/table.h"

/* A name that a file is known by: its build ID, or a path with what tells versions apart. */
struct symbol_key {
    const char *text;
    size_t length;
    struct symbol_table *table; /* NULL: there is nothing to be had */
};

struct symbolizer {
    struct symbol_key *keys;
    size_t key_count, key_capacity;
    struct id_table index;
    struct symbol_table *tables[SYMBOLIZER_FILES_MAX];
    size_t table_count;
    struct arena arena;
    struct symbolizer_figures figures;
    struct kernel_symbols *kernel;
    bool kernel_tried;
    struct error kernel_error;
};

struct symbolizer *symbolizer_new(void)
{
    return memory_zalloc(1, sizeof(struct symbolizer));
}

void symbolizer_free(struct symbolizer *symbolizer)
{
    if (!symbolizer)
        return;
    for (size_t i = 0; i < symbolizer->table_count; i++)
        symbol_table_free(symbolizer->tables[i]);
    kernel_symbols_free(symbolizer->kernel);
    id_table_release(&symbolizer->index);
    free(symbolizer->keys);
    arena_release(&symbolizer->arena);
    free(symbolizer);
}

/* ---- keys ---- */

static uint64_t hash_text(const char *text, size_t length)
{
    uint64_t hash = length;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3ull;
    return hash_word(hash);
}

static struct symbol_key *find_key(struct symbolizer *symbolizer, const struct buffer *text)
{
    struct id_probe probe = id_probe_start(hash_text(text->data, text->length));
    uint32_t id;
    while ((id = id_table_next(&symbolizer->index, &probe)) != ID_NONE) {
        struct symbol_key *key = &symbolizer->keys[id];
        if (key->length == text->length && !memcmp(key->text, text->data, text->length))
            return key;
    }
    return NULL;
}

static void add_key(struct symbolizer *symbolizer, const struct buffer *text,
                    struct symbol_table *table)
{
    array_reserve(symbolizer->keys, symbolizer->key_capacity, symbolizer->key_count + 1);
    symbolizer->keys[symbolizer->key_count] = (struct symbol_key){
        .text = arena_strndup(&symbolizer->arena, text->data, text->length),
        .length = text->length,
        .table = table,
    };
    id_table_insert(&symbolizer->index, hash_text(text->data, text->length),
                    (uint32_t)symbolizer->key_count++);
}

static void build_id_key(struct buffer *key, const char *build_id)
{
    buffer_printf(key, "id %s", build_id);
}

/* A file that is replaced gets another inode, one that is written over another time. */
static bool path_key(struct buffer *key, const char *path, const char *build_id)
{
    struct stat found;
    if (build_id) {
        buffer_printf(key, "bad %s %s", build_id, path);
        return true;
    }
    if (stat(path, &found) < 0)
        return false;
    buffer_printf(key, "path %llu %llu %lld %lld.%09ld %s", (unsigned long long)found.st_dev,
                  (unsigned long long)found.st_ino, (long long)found.st_size,
                  (long long)found.st_mtim.tv_sec, (long)found.st_mtim.tv_nsec, path);
    return true;
}

/* ---- files ---- */

/* Its own build ID as text; empty when it has none. */
static void read_build_id(struct elf_file *file, char ret_text[2 * ELF_BUILD_ID_MAX + 1])
{
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t length = 0;
    ret_text[0] = '\0';
    if (elf_build_id(file, id, &length))
        for (size_t i = 0; i < length; i++)
            snprintf(ret_text + 2 * i, 3, "%02x", id[i]);
}

static struct symbol_table *load_table(struct symbolizer *symbolizer, struct elf_file *file,
                                       const char *path)
{
    if (symbolizer->table_count == SYMBOLIZER_FILES_MAX ||
        symbolizer->figures.bytes > SYMBOLIZER_BYTES_MAX) {
        symbolizer->figures.refused++;
        return NULL;
    }
    struct symbol_table *table = symbol_table_new(file, path);
    symbolizer->figures.bytes += symbol_table_bytes(table);
    symbolizer->figures.files++;
    return symbolizer->tables[symbolizer->table_count++] = table;
}

static struct symbol_table *open_table(struct symbolizer *symbolizer, const char *path,
                                       const char *wanted_id)
{
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    if (elf_open(path, &file, NULL) < 0) {
        symbolizer->figures.unreadable++;
        return NULL;
    }
    char build_id[2 * ELF_BUILD_ID_MAX + 1];
    read_build_id(&file, build_id);
    if (wanted_id && strcmp(wanted_id, build_id)) {
        symbolizer->figures.mismatched++;
        return NULL;
    }
    if (!build_id[0])
        return load_table(symbolizer, &file, path);
    _cleanup_buffer_ struct buffer text = {0};
    build_id_key(&text, build_id);
    struct symbol_key *known = find_key(symbolizer, &text);
    if (known)
        return known->table;
    struct symbol_table *table = load_table(symbolizer, &file, path);
    if (table)
        add_key(symbolizer, &text, table);
    return table;
}

static struct symbol_table *table_of(struct symbolizer *symbolizer, const char *path,
                                     const char *build_id)
{
    _cleanup_buffer_ struct buffer text = {0};
    struct symbol_key *key;
    if (build_id) {
        build_id_key(&text, build_id);
        if ((key = find_key(symbolizer, &text)))
            return key->table;
        text.length = 0;
    }
    if (!path || !path_key(&text, path, build_id))
        return NULL;
    if ((key = find_key(symbolizer, &text)))
        return key->table;
    if (symbolizer->key_count >= SYMBOLIZER_PATHS_MAX) {
        symbolizer->figures.refused++;
        return NULL;
    }
    struct symbol_table *table = open_table(symbolizer, path, build_id);
    /* With a build ID, what was found is known by that: only failures are remembered by path. */
    if (!build_id || !table)
        add_key(symbolizer, &text, table);
    return table;
}

bool symbolizer_find(struct symbolizer *symbolizer, const char *path, const char *build_id,
                     uint64_t file_offset, struct symbol *ret_symbol)
{
    if (build_id && !build_id[0])
        build_id = NULL;
    struct symbol_table *table = table_of(symbolizer, path, build_id);
    return table && symbol_table_find_offset(table, file_offset, ret_symbol);
}

/* ---- the kernel ---- */

const char *symbolizer_kernel_reason(struct symbolizer *symbolizer)
{
    if (!symbolizer->kernel_tried) {
        symbolizer->kernel_tried = true;
        kernel_symbols_load("/proc/kallsyms", &symbolizer->kernel, &symbolizer->kernel_error);
    }
    return symbolizer->kernel ? NULL : symbolizer->kernel_error.text;
}

bool symbolizer_find_kernel(struct symbolizer *symbolizer, uint64_t address,
                            struct symbol *ret_symbol)
{
    return !symbolizer_kernel_reason(symbolizer) &&
           kernel_symbols_find(symbolizer->kernel, address, ret_symbol);
}

struct symbolizer_figures symbolizer_figures(const struct symbolizer *symbolizer)
{
    return symbolizer->figures;
}
