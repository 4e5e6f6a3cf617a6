// SPDX-License-Identifier: Apache-2.0
// The tables of all files that a profile's frames are in: see symbolizer.h.

#include "symbol/naming/symbolizer.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/idtable.h"
#include "base/memory.h"
#include "elf/vdso.h"
#include "symbol/debugfile.h"
#include "symbol/disassembly.h"
#include "symbol/gonames.h"
#include "symbol/index/build.h"
#include "symbol/kernel.h"
#include "symbol/naming/debuginfo.h"
#include "symbol/table.h"

/* A name that a file is known by: its build ID, or a path with what tells versions apart. */
struct symbol_key {
    const char *text;
    size_t length;
    struct symbolizer_file *file; /* NULL: there is nothing to be had */
};

struct symbolizer_file {
    struct symbol_table *table;
    char *path; /* where it was opened last */
    char build_id[BUILD_ID_TEXT_BYTES];
    struct debug_info info;
};

struct symbolizer {
    struct symbol_key *keys;
    size_t key_count, key_capacity;
    struct id_table index;
    struct symbolizer_file files[SYMBOLIZER_FILES_MAX];
    size_t file_count;
    struct arena arena;
    struct symbolizer_stats stats;
    symbolizer_kernel_fn *ask_kernel; /* NULL: the list is used */
    void *ask_context;
    struct kernel_symbols *kernel;
    bool kernel_tried;
    struct error kernel_error;
    struct jit_names *jit;
    bool tables_only;
    uint64_t file_limit_bytes;
    symbolizer_watch_fn *watch;
    void *watch_context;
};

void symbolizer_enter(int argc, char **argv)
{
    static const struct confined_program *const programs[] = {
        &symbol_names_program, &symbol_index_program, &symbol_index_split_program,
        &disassembly_program};
    confined_enter(argc, argv, programs, ARRAY_LENGTH(programs));
}

struct symbolizer *symbolizer_new(void)
{
    struct symbolizer *symbolizer = memory_zalloc(1, sizeof(*symbolizer));
    symbolizer->file_limit_bytes = UINT64_MAX;
    return symbolizer;
}

static void file_release(struct symbolizer_file *file)
{
    symbol_table_free(file->table);
    debug_info_release(&file->info);
    free(file->path);
}

void symbolizer_use_tables_only(struct symbolizer *symbolizer)
{
    symbolizer->tables_only = true;
}

void symbolizer_watch(struct symbolizer *symbolizer, symbolizer_watch_fn *watch, void *context)
{
    symbolizer->watch = watch;
    symbolizer->watch_context = context;
}

bool symbolizer_goes_on(struct symbolizer *symbolizer, size_t files_done, size_t files)
{
    bool goes_on =
        !symbolizer->watch || symbolizer->watch(symbolizer->watch_context, files_done, files);
    symbolizer->stats.late += !goes_on;
    return goes_on;
}

void symbolizer_limit_file(struct symbolizer *symbolizer, uint64_t limit_bytes)
{
    symbolizer->file_limit_bytes = limit_bytes;
}

void symbolizer_free(struct symbolizer *symbolizer)
{
    if (!symbolizer)
        return;
    for (size_t i = 0; i < symbolizer->file_count; i++)
        file_release(&symbolizer->files[i]);
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
                    struct symbolizer_file *file)
{
    array_reserve(symbolizer->keys, symbolizer->key_capacity, symbolizer->key_count + 1);
    symbolizer->keys[symbolizer->key_count] = (struct symbol_key){
        .text = arena_strndup(&symbolizer->arena, text->data, text->length),
        .length = text->length,
        .file = file,
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
    if (!strcmp(path, VDSO_NAME)) {
        buffer_add_text(key, path);
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

static struct symbolizer_file *load_file(struct symbolizer *symbolizer, struct elf_file *elf,
                                         const char *path, const char *build_id)
{
    if (symbolizer->file_count == SYMBOLIZER_FILES_MAX ||
        symbolizer->stats.bytes > SYMBOLIZER_BYTES_MAX) {
        symbolizer->stats.refused++;
        return NULL;
    }
    struct symbolizer_file *file = &symbolizer->files[symbolizer->file_count++];
    file->table = symbol_table_new_within(elf, path, symbolizer->file_limit_bytes);
    symbolizer->stats.too_large += file->table->too_large;
    file->path = memory_strdup(path);
    file->info.over = symbolizer->tables_only;
    snprintf(file->build_id, sizeof(file->build_id), "%s", build_id);
    symbolizer->stats.bytes += symbol_table_bytes(file->table);
    symbolizer->stats.files++;
    return file;
}

static struct symbolizer_file *open_file(struct symbolizer *symbolizer, const char *path,
                                         const char *wanted_id)
{
    _cleanup_elf_ struct elf_file elf = {.fd = -1};
    if ((strcmp(path, VDSO_NAME) ? elf_open(path, &elf, NULL) : vdso_open(&elf, NULL)) < 0) {
        symbolizer->stats.unreadable++;
        return NULL;
    }
    char build_id[BUILD_ID_TEXT_BYTES];
    build_id_text(&elf, build_id);
    if (wanted_id && strcmp(wanted_id, build_id)) {
        symbolizer->stats.mismatched++;
        return NULL;
    }
    if (!build_id[0])
        return load_file(symbolizer, &elf, path, build_id);
    _cleanup_buffer_ struct buffer text = {0};
    build_id_key(&text, build_id);
    struct symbol_key *known = find_key(symbolizer, &text);
    if (known)
        return known->file;
    struct symbolizer_file *file = load_file(symbolizer, &elf, path, build_id);
    if (file)
        add_key(symbolizer, &text, file);
    return file;
}

/* A build may come from one place now and from another later, when the first is gone. */
static void note_path(struct symbolizer_file *file, const char *path)
{
    if (!path || !strcmp(file->path, path))
        return;
    free(file->path);
    file->path = memory_strdup(path);
}

struct symbolizer_file *symbolizer_file(struct symbolizer *symbolizer, const char *path,
                                        const char *build_id)
{
    _cleanup_buffer_ struct buffer text = {0};
    struct symbol_key *key;
    if (build_id && !build_id[0])
        build_id = NULL;
    if (build_id) {
        build_id_key(&text, build_id);
        if ((key = find_key(symbolizer, &text))) {
            note_path(key->file, path);
            return key->file;
        }
        text.length = 0;
    }
    if (!path || !path_key(&text, path, build_id))
        return NULL;
    if ((key = find_key(symbolizer, &text)))
        return key->file;
    if (symbolizer->key_count >= SYMBOLIZER_PATHS_MAX) {
        symbolizer->stats.refused++;
        return NULL;
    }
    struct symbolizer_file *file = open_file(symbolizer, path, build_id);
    /* With a build ID, what was found is known by that: only failures are remembered by path. */
    if (!build_id || !file)
        add_key(symbolizer, &text, file);
    return file;
}

/* ---- queries ---- */

bool symbolizer_file_offset(const struct symbolizer_file *file, uint64_t address,
                            uint64_t *ret_offset)
{
    return elf_address_to_offset(&file->table->layout, address, ret_offset);
}

void symbolizer_want(struct symbolizer_file *file, const uint64_t *file_offsets, size_t count)
{
    uint64_t address;
    for (size_t i = 0; i < count; i++)
        if (elf_offset_to_address(&file->table->layout, file_offsets[i], &address) &&
            !go_covers(&file->table->go, address))
            debug_info_want(&file->info, address);
}

void symbolizer_look_up(struct symbolizer *symbolizer)
{
    struct debug_info *infos[SYMBOLIZER_FILES_MAX];
    struct debug_info_stats stats = {0};
    size_t count = 0;
    for (size_t i = 0; i < symbolizer->file_count; i++) {
        struct symbolizer_file *file = &symbolizer->files[i];
        if (!file->info.wanted_count)
            continue;
        file->info.path = file->path;
        file->info.build_id = file->build_id;
        infos[count++] = &file->info;
    }
    debug_info_read(infos, count, symbolizer->watch, symbolizer->watch_context, &stats);
    symbolizer->stats.late += stats.late;
    symbolizer->stats.debug_files += stats.files;
    symbolizer->stats.debug_failed += stats.failed;
    symbolizer->stats.bytes += stats.bytes;
}

/*
 * Debug information says most, but not the name of each function: of those in assembly only the
 * lines, and of those that are local to a C++ file not how the linker calls them. A symbol does.
 */
size_t symbolizer_file_frames(struct symbolizer_file *file, uint64_t file_offset,
                              struct symbol_frame ret_frames[SYMBOL_FRAMES_MAX])
{
    uint64_t address;
    struct symbol symbol = {0};
    if (!elf_offset_to_address(&file->table->layout, file_offset, &address))
        return 0;
    size_t count = debug_info_frames(&file->info, address, ret_frames);
    if (!count)
        return symbol_table_frames(file->table, address, ret_frames);
    struct symbol_frame *outermost = &ret_frames[count - 1];
    if (outermost->system_name)
        return count;
    if (symbol_table_find(file->table, address, &symbol) &&
        (symbol.system_name || !outermost->name)) {
        outermost->name = symbol.name;
        outermost->system_name = symbol.system_name;
    }
    return outermost->name ? count : 0;
}

bool symbolizer_file_find(struct symbolizer_file *file, uint64_t file_offset,
                          struct symbol *ret_symbol)
{
    return symbol_table_find_offset(file->table, file_offset, ret_symbol);
}

bool symbolizer_find(struct symbolizer *symbolizer, const char *path, const char *build_id,
                     uint64_t file_offset, struct symbol *ret_symbol)
{
    struct symbolizer_file *file = symbolizer_file(symbolizer, path, build_id);
    return file && symbolizer_file_find(file, file_offset, ret_symbol);
}

/* ---- the kernel ---- */

const char *symbolizer_kernel_reason(struct symbolizer *symbolizer)
{
    if (symbolizer->ask_kernel)
        return NULL;
    if (!symbolizer->kernel_tried) {
        symbolizer->kernel_tried = true;
        kernel_symbols_load("/proc/kallsyms", &symbolizer->kernel, &symbolizer->kernel_error);
    }
    return symbolizer->kernel ? NULL : symbolizer->kernel_error.text;
}

bool symbolizer_find_kernel(struct symbolizer *symbolizer, uint64_t address,
                            struct symbol *ret_symbol)
{
    if (symbolizer->ask_kernel)
        return symbolizer->ask_kernel(symbolizer->ask_context, address, ret_symbol);
    return !symbolizer_kernel_reason(symbolizer) &&
           kernel_symbols_find(symbolizer->kernel, address, ret_symbol);
}

void symbolizer_ask_kernel(struct symbolizer *symbolizer, symbolizer_kernel_fn *fn, void *context)
{
    symbolizer->ask_kernel = fn;
    symbolizer->ask_context = context;
}

void symbolizer_set_kernel(struct symbolizer *symbolizer, struct kernel_symbols *symbols)
{
    kernel_symbols_free(symbolizer->kernel);
    symbolizer->kernel = symbols;
    symbolizer->kernel_tried = true;
}

/* ---- code that is in no file ---- */

void symbolizer_set_jit(struct symbolizer *symbolizer, struct jit_names *jit)
{
    symbolizer->jit = jit;
}

bool symbolizer_find_jit(struct symbolizer *symbolizer, uint32_t pid, uint64_t address,
                         struct symbol_frame *ret_frame, enum frame_kind *ret_kind)
{
    return symbolizer->jit && jit_names_find(symbolizer->jit, pid, address, 0, ret_frame, ret_kind);
}

struct symbolizer_stats symbolizer_stats(const struct symbolizer *symbolizer)
{
    return symbolizer->stats;
}
