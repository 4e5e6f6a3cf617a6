// SPDX-License-Identifier: Apache-2.0
// From a binary's bytes to its symbol index, in the child: see index_build.h and index_builder.h.

#include <dwarf.h>

#include "symbol/debugfile.h"
#include "symbol/index/builder.h"
#include "symbol/index/splits.h"

#define SECTION_BYTES_MAX (4ull << 30)
/* How many times over the line tables may be run, and entries be read again for their contexts. */
#define WORK_FACTOR 8
#define WORK_FLOOR (16u << 20)

struct files {
    struct elf_file file, debug, shared, package;
};

/* ---- opening ---- */

static int open_part(const struct symbol_index_bytes *bytes, const char *what,
                     struct elf_file *ret_file, struct error *error)
{
    if (!bytes->length)
        return 0;
    int r = elf_open_foreign_memory(bytes->bytes, bytes->length, ret_file, error);
    if (r < 0) {
        error_prefix(error, "%s", what);
    } else if (ret_file->sections_damaged) {
        r = error_set(error, -EBADMSG,
                      "%s has malformed section headers: it is truncated or damaged.", what);
        elf_release(ret_file);
    }
    return r;
}

static int check_pair(struct elf_file *file, struct elf_file *debug, struct error *error)
{
    char own[BUILD_ID_TEXT_BYTES], other[BUILD_ID_TEXT_BYTES];
    build_id_text(file, own);
    build_id_text(debug, other);
    if (strcmp(own, other) != 0 && own[0] && other[0])
        return error_set(
            error, -EINVAL,
            "The debug file belongs to a different binary: its build ID is %s, the binary's is %s.",
            other, own);
    return 0;
}

static int open_files(const struct symbol_index_content *content, struct files *files,
                      struct error *error)
{
    int r = open_part(&content->file, "The binary", &files->file, error);
    if (r >= 0)
        r = open_part(&content->debug, "The debug file", &files->debug, error);
    if (r >= 0)
        r = open_part(&content->shared, "The shared debug file", &files->shared, error);
    if (r >= 0)
        r = open_part(&content->package, "The package of split units", &files->package, error);
    if (r >= 0 && content->debug.length)
        r = check_pair(&files->file, &files->debug, error);
    return r;
}

static void close_files(struct files *files)
{
    elf_release(&files->file);
    elf_release(&files->debug);
    elf_release(&files->shared);
    elf_release(&files->package);
}

static bool has_debug_info(struct elf_file *file)
{
    struct elf_section section;
    return (elf_find_section(file, ".debug_info", &section) ||
            elf_find_section(file, ".zdebug_info", &section)) &&
           section.type != SHT_NOBITS;
}

static int load_sections(struct index_builder *builder, const struct symbol_index_content *content,
                         struct files *files, struct error *error)
{
    bool separate = content->debug.length && has_debug_info(&files->debug);
    int r = debug_sections_load(&builder->main.sections, separate ? &files->debug : &files->file,
                                false, SECTION_BYTES_MAX, error);
    if (r >= 0 && content->shared.length)
        r = debug_sections_load(&builder->shared.sections, &files->shared, false, SECTION_BYTES_MAX,
                                error);
    if (r >= 0 && content->package.length)
        r = debug_sections_load(&builder->package, &files->package, true, SECTION_BYTES_MAX, error);
    const struct debug_sections *main = &builder->main.sections;
    uint64_t info = main->list[DEBUG_INFO].length + builder->package.list[DEBUG_INFO].length +
                    content->splits.length;
    builder->context_budget =
        (info + builder->shared.sections.list[DEBUG_INFO].length) * WORK_FACTOR + WORK_FLOOR;
    builder->lines.budget = (uint64_t)main->list[DEBUG_LINE].length * WORK_FACTOR + WORK_FLOOR;
    builder->ranges.budget = info + main->list[DEBUG_RANGES].length +
                             main->list[DEBUG_RNGLISTS].length +
                             builder->package.list[DEBUG_RNGLISTS].length + WORK_FLOOR;
    return r;
}

static void builder_release(struct index_builder *builder)
{
    index_tables_release(&builder->tables);
    index_rows_release(&builder->rows);
    symbol_table_free(builder->symbols);
    symbol_table_free(builder->debug_symbols);
    debug_abbreviation_cache_release(&builder->abbreviations);
    debug_sections_release(&builder->main.sections);
    debug_sections_release(&builder->shared.sections);
    debug_sections_release(&builder->package);
    debug_lines_release(&builder->lines);
    free(builder->main.starts);
    free(builder->shared.starts);
    free(builder->contexts.list);
    free(builder->other_contexts.list);
    free(builder->ranges.list);
    free(builder->scopes);
    free(builder->claims);
    free(builder->stretches);
    free(builder->files);
    free(builder->named);
    free(builder->chains);
    id_table_release(&builder->named_index);
    id_table_release(&builder->chain_index);
}

/* ---- units ---- */

static void read_unit(struct index_builder *builder)
{
    index_read_functions(builder);
    index_add_unit_rows(builder);
    if (builder->stretch_count)
        builder->sources |= SYMBOL_INDEX_FROM_FUNCTIONS;
}

static bool read_packed_unit(struct index_builder *builder)
{
    struct debug_bytes parts[DEBUG_SECTION_COUNT];
    struct debug_sections sections = builder->package;
    uint64_t next;
    if (!debug_package_find(&builder->package, builder->program.id, parts))
        return false;
    for (int kind = 0; kind < DEBUG_SECTION_COUNT; kind++)
        if (parts[kind].length)
            sections.list[kind] = parts[kind];
    if (debug_unit_read(&builder->unit, &builder->abbreviations, &sections, parts[DEBUG_INFO], 0,
                        &builder->program, &next) < 0)
        return false;
    read_unit(builder);
    return true;
}

/* The .dwo file of a unit, out of all of them in one. */
static struct symbol_index_bytes find_split(const struct symbol_index_bytes *splits, uint64_t id)
{
    struct cursor cursor = cursor_of(splits->bytes, splits->length);
    uint64_t count = cursor_u64(&cursor);
    const struct debug_bytes all = {splits->bytes, splits->length};
    for (uint64_t i = 0; i < count && !cursor.bad; i++) {
        struct index_split split = {cursor_u64(&cursor), cursor_u64(&cursor), cursor_u64(&cursor)};
        struct debug_bytes found = debug_bytes_part(all, split.offset, split.length);
        if (split.id == id && !cursor.bad && found.length)
            return (struct symbol_index_bytes){found.bytes, found.length};
    }
    return (struct symbol_index_bytes){0};
}

/* Names by where entries are in memory don't outlive that memory. */
static void forget_names(struct index_builder *builder)
{
    id_table_clear(&builder->named_index);
    builder->named_count = 0;
    builder->contexts.unit = builder->other_contexts.unit = NULL;
    debug_abbreviation_cache_release(&builder->abbreviations);
}

static bool read_split_unit(struct index_builder *builder, const struct symbol_index_bytes *splits)
{
    struct symbol_index_bytes bytes = find_split(splits, builder->program.id);
    struct debug_sections sections = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    bool found = false;
    if (!bytes.length || elf_open_foreign_memory(bytes.bytes, bytes.length, &file, NULL) < 0 ||
        debug_sections_load(&sections, &file, true, SECTION_BYTES_MAX, NULL) < 0) {
        debug_sections_release(&sections);
        return false;
    }
    struct debug_bytes info = sections.list[DEBUG_INFO];
    uint64_t next;
    for (uint64_t at = 0; !found && at < info.length; at = next) {
        if (debug_unit_read(&builder->unit, &builder->abbreviations, &sections, info, at,
                            &builder->program, &next) < 0)
            break;
        found = builder->unit.id == builder->program.id;
    }
    if (found) {
        builder->package.total_bytes += sections.total_bytes;
        read_unit(builder);
    }
    forget_names(builder);
    builder->unit = builder->program;
    debug_sections_release(&sections);
    return found;
}

/* Not of a file's types, and not what several units share. */
static bool has_code(const struct index_builder *builder, const struct debug_unit *unit)
{
    if (unit->type != DW_UT_compile && unit->type != DW_UT_skeleton)
        return false;
    if (unit->tag == DW_TAG_partial_unit || unit->tag == DW_TAG_type_unit)
        return false;
    return unit->language != DW_LANG_Go || !(builder->sources & SYMBOL_INDEX_FROM_GO);
}

static bool is_wanted(struct index_builder *builder, const struct debug_unit *unit)
{
    struct debug_range_list *ranges = &builder->ranges;
    if (!builder->wanted)
        return true;
    ranges->count = 0;
    debug_ranges_add(unit, &unit->low_value, &unit->high, &unit->ranges, ranges);
    for (size_t i = 0; i < ranges->count; i++)
        if (index_next_wanted(builder, ranges->list[i].start) < ranges->list[i].end)
            return true;
    return false;
}

static void read_units(struct index_builder *builder, const struct symbol_index_bytes *splits)
{
    struct index_file_units *main = &builder->main;
    index_list_units(main);
    index_list_units(&builder->shared);
    for (size_t i = 0; i < main->count; i++) {
        struct debug_unit *unit = &builder->unit;
        uint64_t next;
        if (debug_unit_read(unit, &builder->abbreviations, &main->sections,
                            main->sections.list[DEBUG_INFO], main->starts[i], NULL, &next) < 0 ||
            !has_code(builder, unit) || !is_wanted(builder, unit))
            continue;
        builder->unit_count++;
        builder->program = *unit;
        if (unit->split_name.form) {
            if (read_packed_unit(builder) || read_split_unit(builder, splits))
                continue;
            builder->missing_units++;
        }
        read_unit(builder);
    }
}

/* ---- the whole ---- */

static uint64_t first_code(const struct symbol_table *symbols)
{
    return symbols->code_count ? symbols->code[0].start : 0;
}

static bool has_section(struct elf_file *file, const char *name)
{
    struct elf_section section;
    return elf_find_section(file, name, &section) && section.type != SHT_NOBITS;
}

static void note_sources(struct index_builder *builder, const struct index_groups *groups,
                         struct files *files, bool has_debug)
{
    bool symbols = has_section(&files->file, ".symtab") ||
                   (has_debug && has_section(&files->debug, ".symtab"));
    if (groups->line_bytes)
        builder->sources |= SYMBOL_INDEX_FROM_LINES;
    if (builder->tables.inlined_count)
        builder->sources |= SYMBOL_INDEX_FROM_INLINES;
    if (builder->symbols->function_count || builder->debug_symbols) {
        if (symbols)
            builder->sources |= SYMBOL_INDEX_FROM_SYMBOLS;
        else if (has_section(&files->file, ".gnu_debugdata"))
            builder->sources |= SYMBOL_INDEX_FROM_PACKED;
        if (has_section(&files->file, ".dynsym"))
            builder->sources |= SYMBOL_INDEX_FROM_DYNAMIC;
    }
    if (builder->symbols->entry_count)
        builder->sources |= SYMBOL_INDEX_FROM_UNWIND;
}

static void make(struct index_builder *builder, const struct symbol_index_content *content,
                 struct files *files, struct buffer *ret_index)
{
    struct index_groups groups = {0};
    if (!builder->wanted)
        index_add_go(builder);
    read_units(builder, &content->splits);
    index_merge(builder, &groups);
    note_sources(builder, &groups, files, content->debug.length != 0);
    index_write(builder, &groups, &files->file, ret_index);
    free(groups.list);
    buffer_release(&groups.bytes);
}

int symbol_index_make(const struct symbol_index_content *content, struct buffer *ret_index,
                      struct error *error)
{
    struct files files = {
        .file = {.fd = -1}, .debug = {.fd = -1}, .shared = {.fd = -1}, .package = {.fd = -1}};
    _cleanup_free_ struct index_builder *builder = memory_zalloc(1, sizeof(*builder));
    int r = open_files(content, &files, error);
    if (r >= 0)
        r = load_sections(builder, content, &files, error);
    if (r >= 0) {
        builder->wanted = content->wanted;
        builder->wanted_count = content->wanted_count;
        builder->symbols = content->wanted ? symbol_table_new_code(&files.file)
                                           : symbol_table_new(&files.file, NULL);
        if (content->debug.length && !content->wanted)
            builder->debug_symbols = symbol_table_new(&files.debug, NULL);
        index_tables_init(&builder->tables, first_code(builder->symbols));
        make(builder, content, &files, ret_index);
        if (builder->tables.is_full)
            r = error_set(error, -E2BIG, "The binary has more names than a symbol index can hold.");
    }
    builder_release(builder);
    close_files(&files);
    return r;
}

int symbol_index_list_splits(const struct symbol_index_content *content, struct buffer *ret_list,
                             struct error *error)
{
    struct files files = {
        .file = {.fd = -1}, .debug = {.fd = -1}, .shared = {.fd = -1}, .package = {.fd = -1}};
    _cleanup_free_ struct index_builder *builder = memory_zalloc(1, sizeof(*builder));
    int r = open_files(content, &files, error);
    if (r >= 0)
        r = load_sections(builder, content, &files, error);
    const struct debug_sections *sections = &builder->main.sections;
    struct debug_bytes info = sections->list[DEBUG_INFO];
    uint64_t next;
    for (uint64_t at = 0; r >= 0 && at < info.length; at = next) {
        struct debug_unit unit;
        if (debug_unit_read(&unit, &builder->abbreviations, sections, info, at, NULL, &next) < 0)
            break;
        const char *name = debug_value_string(&unit, &unit.split_name, NULL);
        const char *folder = debug_value_string(&unit, &unit.folder, NULL);
        if (!name || !name[0])
            continue;
        buffer_add(ret_list, &unit.id, sizeof(unit.id));
        buffer_add(ret_list, folder ? folder : "", folder ? strlen(folder) + 1 : 1);
        buffer_add(ret_list, name, strlen(name) + 1);
    }
    builder_release(builder);
    close_files(&files);
    return r;
}
