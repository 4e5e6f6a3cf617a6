// SPDX-License-Identifier: Apache-2.0
// Packing what a program was split into: see split_package.h.

#include "symbol/index/split_package.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/idtable.h"
#include "base/memory.h"
#include "elf/dwarf/unit.h"
#include "symbol/index/splits.h"

#define INDEX_VERSION 5
#define ALIGNMENT 16

/* The sections that a unit can have a part of, by their numbers in a package's index. */
static const struct column {
    enum debug_section section;
    uint32_t number;
    const char *name;
} columns[] = {
    {DEBUG_INFO, 1, ".debug_info.dwo"},         {DEBUG_ABBREV, 3, ".debug_abbrev.dwo"},
    {DEBUG_LINE, 4, ".debug_line.dwo"},         {DEBUG_STR_OFFSETS, 6, ".debug_str_offsets.dwo"},
    {DEBUG_RNGLISTS, 8, ".debug_rnglists.dwo"},
};
enum { COLUMNS = ARRAY_LENGTH(columns), INFO = 0 };

struct part {
    uint32_t offset, length;
};

struct packed_unit {
    uint64_t id;
    struct part parts[COLUMNS];
};

struct package {
    uint16_t machine;
    struct buffer content[COLUMNS];
    struct packed_unit *units;
    size_t unit_count, unit_capacity;

    struct buffer strings;
    struct id_table string_index; /* of starts in `strings`, which is below 4 GiB */
};

static void package_release(struct package *package)
{
    for (int i = 0; i < COLUMNS; i++)
        buffer_release(&package->content[i]);
    free(package->units);
    buffer_release(&package->strings);
    id_table_release(&package->string_index);
}

static int refuse_size(struct error *error)
{
    return error_set(error, -E2BIG,
                     "The split units exceed 4 GiB of one kind, the limit of a package.");
}

/* ---- strings ---- */

static int keep_string(struct package *package, const char *text, uint32_t *ret_offset,
                       struct error *error)
{
    size_t length = strlen(text) + 1;
    uint64_t hash = XXH3_64bits(text, length);
    struct id_probe probe = id_probe_start(hash);
    while ((*ret_offset = id_table_next(&package->string_index, &probe)) != ID_NONE)
        if (!strcmp(package->strings.data + *ret_offset, text))
            return 0;
    if (length > ID_MAX - package->strings.length)
        return refuse_size(error);
    *ret_offset = (uint32_t)package->strings.length;
    buffer_add(&package->strings, text, length);
    id_table_insert(&package->string_index, hash, *ret_offset);
    return 0;
}

/* A table of where strings are, with each in its new place. What is no string is an empty one. The
 * header that DWARF 5 has stays. */
static int move_strings(struct package *package, const struct debug_sections *sections,
                        unsigned version, struct buffer *to, struct error *error)
{
    struct debug_bytes table = sections->list[DEBUG_STR_OFFSETS];
    bool wide = version >= 5 && debug_number(table, 0, 4) == UINT32_MAX;
    size_t header = version < 5 ? 0 : wide ? 16 : 8, width = wide ? 8 : 4;
    header = MIN(header, table.length);
    buffer_add(to, table.bytes, header);
    for (size_t at = header; at + width <= table.length; at += width) {
        const char *text = debug_string(sections, DEBUG_STR, debug_number(table, at, width));
        uint32_t offset;
        int r = keep_string(package, text ? text : "", &offset, error);
        if (r < 0)
            return r;
        uint64_t moved = offset;
        buffer_add(to, &moved, width);
    }
    return 0;
}

/* ---- units ---- */

static int add_part(struct package *package, size_t column, const struct debug_sections *sections,
                    const struct debug_unit *unit, struct part *ret_part, struct error *error)
{
    struct buffer *to = &package->content[column];
    struct debug_bytes from = sections->list[columns[column].section];
    uint64_t start = to->length;
    int r = 0;
    if (column == INFO)
        from = debug_bytes_part(from, unit->offset, unit->end - unit->offset);
    if (from.length > UINT32_MAX - start)
        return refuse_size(error);
    if (columns[column].section == DEBUG_STR_OFFSETS)
        r = move_strings(package, sections, unit->version, to, error);
    else if (from.length)
        buffer_add(to, from.bytes, from.length);
    *ret_part = (struct part){(uint32_t)start, (uint32_t)(to->length - start)};
    return r;
}

static int add_unit(struct package *package, uint64_t id, const struct debug_sections *sections,
                    const struct debug_unit *unit, struct error *error)
{
    struct packed_unit packed = {.id = id};
    for (size_t i = 0; i < COLUMNS; i++) {
        int r = add_part(package, i, sections, unit, &packed.parts[i], error);
        if (r < 0)
            return r;
    }
    array_reserve(package->units, package->unit_capacity, package->unit_count + 1);
    package->units[package->unit_count++] = packed;
    return 0;
}

static bool find_unit(const struct debug_sections *sections, uint64_t id,
                      struct debug_unit *ret_unit)
{
    struct debug_abbreviation_cache cache = {0};
    struct debug_bytes info = sections->list[DEBUG_INFO];
    bool found = false;
    for (uint64_t at = 0, next; !found && at < info.length; at = next) {
        if (debug_unit_read(ret_unit, &cache, sections, info, at, NULL, &next) < 0)
            break;
        found = ret_unit->id == id;
    }
    debug_abbreviation_cache_release(&cache);
    return found;
}

/* A file that can't be read is as good as none. */
static int add_split(struct package *package, uint64_t id, struct debug_bytes bytes,
                     struct error *error)
{
    struct debug_sections sections = {0};
    struct debug_unit unit;
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    int r = 0;
    if (elf_open_foreign_memory(bytes.bytes, bytes.length, &file, NULL) < 0)
        return 0;
    if (debug_sections_load(&sections, &file, true, UINT32_MAX, NULL) == 0 &&
        find_unit(&sections, id, &unit)) {
        package->machine = file.machine;
        r = add_unit(package, id, &sections, &unit, error);
    }
    debug_sections_release(&sections);
    return r;
}

/* ---- the file ---- */

static void add_number(struct buffer *to, uint32_t number)
{
    buffer_add(to, &number, sizeof(number));
}

/* Slots by the low half of an id, and steps by the high half, as readers go. */
static void write_index(const struct package *package, struct buffer *to)
{
    uint32_t slots = 2;
    while (slots < package->unit_count * 3 / 2)
        slots *= 2;
    uint64_t *ids = memory_zalloc(slots, sizeof(*ids));
    uint32_t *rows = memory_zalloc(slots, sizeof(*rows));
    for (size_t i = 0; i < package->unit_count; i++) {
        uint64_t id = package->units[i].id;
        uint32_t slot = (uint32_t)id & (slots - 1);
        uint32_t step = ((uint32_t)(id >> 32) & (slots - 1)) | 1;
        while (rows[slot])
            slot = (slot + step) & (slots - 1);
        ids[slot] = id;
        rows[slot] = (uint32_t)i + 1;
    }
    add_number(to, INDEX_VERSION);
    add_number(to, COLUMNS);
    add_number(to, (uint32_t)package->unit_count);
    add_number(to, slots);
    buffer_add(to, ids, slots * sizeof(*ids));
    buffer_add(to, rows, slots * sizeof(*rows));
    free(ids);
    free(rows);
    for (size_t i = 0; i < COLUMNS; i++)
        add_number(to, columns[i].number);
    for (size_t unit = 0; unit < package->unit_count; unit++)
        for (size_t i = 0; i < COLUMNS; i++)
            add_number(to, package->units[unit].parts[i].offset);
    for (size_t unit = 0; unit < package->unit_count; unit++)
        for (size_t i = 0; i < COLUMNS; i++)
            add_number(to, package->units[unit].parts[i].length);
}

struct writer {
    struct buffer *file, names, headers;
};

static void align(struct buffer *file)
{
    static const char zeros[ALIGNMENT];
    buffer_add(file, zeros, -file->length % ALIGNMENT);
}

static void add_section(struct writer *writer, const char *name, uint32_t type,
                        const struct buffer *content)
{
    Elf64_Shdr header = {.sh_name = (uint32_t)writer->names.length, .sh_type = type};
    buffer_add(&writer->names, name, strlen(name) + 1);
    align(writer->file);
    header.sh_offset = writer->file->length;
    header.sh_size = content->length;
    header.sh_addralign = 1;
    buffer_add(writer->file, content->data, content->length);
    buffer_add(&writer->headers, &header, sizeof(header));
}

static void write_file(const struct package *package, struct buffer *file)
{
    struct writer writer = {.file = file};
    _cleanup_buffer_ struct buffer index = {0};
    Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_REL,
        .e_machine = package->machine,
        .e_version = EV_CURRENT,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = COLUMNS + 4,
        .e_shstrndx = COLUMNS + 3};
    Elf64_Shdr none = {0};
    buffer_add(file, &header, sizeof(header));
    buffer_add(&writer.headers, &none, sizeof(none));
    buffer_add_char(&writer.names, '\0');
    for (size_t i = 0; i < COLUMNS; i++)
        add_section(&writer, columns[i].name, SHT_PROGBITS, &package->content[i]);
    add_section(&writer, ".debug_str.dwo", SHT_PROGBITS, &package->strings);
    write_index(package, &index);
    add_section(&writer, ".debug_cu_index", SHT_PROGBITS, &index);
    /* Its own name is among the names, before they are written. */
    const char *own = ".shstrtab";
    struct buffer names = {0};
    buffer_add(&names, writer.names.data, writer.names.length);
    buffer_add(&names, own, strlen(own) + 1);
    add_section(&writer, own, SHT_STRTAB, &names);
    align(file);
    header.e_shoff = file->length;
    buffer_add(file, writer.headers.data, writer.headers.length);
    memcpy(file->data, &header, sizeof(header));
    buffer_release(&names);
    buffer_release(&writer.names);
    buffer_release(&writer.headers);
}

int split_package_write(const void *splits, size_t length, struct buffer *ret_file,
                        size_t *ret_units, struct error *error)
{
    struct package package = {0};
    const struct debug_bytes all = {splits, length};
    struct cursor cursor = cursor_of(splits, length);
    uint64_t count = cursor_u64(&cursor);
    int r = 0;
    buffer_add_char(&package.strings, '\0');
    for (uint64_t i = 0; i < count && r >= 0; i++) {
        struct index_split split = {cursor_u64(&cursor), cursor_u64(&cursor), cursor_u64(&cursor)};
        if (cursor.bad)
            break;
        struct debug_bytes file = debug_bytes_part(all, split.offset, split.length);
        if (file.length)
            r = add_split(&package, split.id, file, error);
    }
    if (r >= 0)
        write_file(&package, ret_file);
    *ret_units = package.unit_count;
    package_release(&package);
    return r;
}

/* ---- from files ---- */

static int pack_collected(int splits, struct split_package *package, struct error *error)
{
    _cleanup_buffer_ struct buffer file = {0};
    struct stat status;
    size_t packed = 0;
    if (fstat(splits, &status) < 0 || status.st_size <= 0)
        return error_set(error, -EIO, "Failed to read the split units.");
    void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, splits, 0);
    if (bytes == MAP_FAILED)
        return error_set_errno(error, -errno, "Failed to read the split units");
    int r = split_package_write(bytes, (size_t)status.st_size, &file, &packed, error);
    munmap(bytes, (size_t)status.st_size);
    package->absent = package->units - MIN(packed, package->units);
    if (r < 0 || !packed)
        return r;
    package->fd = memfd_create("package", MFD_CLOEXEC);
    if (package->fd < 0 || file_write_all(package->fd, file.data, file.length) < 0 ||
        lseek(package->fd, 0, SEEK_SET) < 0)
        return error_set(error, -EIO, "Not enough space for a package of the split units.");
    package->bytes = file.length;
    return 0;
}

int split_package_make(const struct symbol_index_input *input, struct split_package *ret_package,
                       struct error *error)
{
    int splits = -1;
    *ret_package = (struct split_package){.fd = -1};
    int r = symbol_index_collect_splits(input, &splits, &ret_package->units, error);
    ret_package->absent = ret_package->units;
    if (r >= 0 && splits >= 0)
        r = pack_collected(splits, ret_package, error);
    if (splits >= 0)
        close(splits);
    return r;
}

void split_package_release(struct split_package *package)
{
    if (package->fd >= 0)
        close(package->fd);
    package->fd = -1;
}
