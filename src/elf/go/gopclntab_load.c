// SPDX-License-Identifier: Apache-2.0
// Finding Go's table of functions in a file, and the module data that belongs to it: the runtime's
// own record of where the code starts and where inline trees are. See gopclntab.h.

#include "base/allowance.h"
#include "base/memory.h"
#include "elf/go/gopclntab.h"

#define SEARCH_PIECE (1u << 20)
#define SEARCH_BYTES_MAX (512ull << 20) /* of segments that are searched for one thing */
#define CANDIDATES_MAX 64               /* of what looks like it at first sight */
#define TREE_BYTES_MAX (64u << 10)      /* of the last inline tree, whose end isn't recorded */

/* ---- searching ---- */

/* Checks whether `address` looks right; true ends the search. */
typedef bool (*search_fn)(void *context, uint64_t address);

struct search {
    struct elf_file *file;
    uint64_t word, mask; /* what is looked for, at multiples of 8 */
    search_fn found;
    void *context;
    uint64_t bytes_left;
    unsigned candidates_left;
};

static bool search_segment(struct search *search, const struct elf_segment *segment,
                           uint64_t *buffer)
{
    uint64_t at = 0;
    while (segment->file_bytes - at >= 8 && search->bytes_left) {
        size_t length = (size_t)MIN(segment->file_bytes - at, SEARCH_PIECE) & ~(size_t)7;
        uint64_t start = segment->address + at;
        if (elf_read_address(search->file, start, buffer, length) < 0)
            return false;
        for (size_t i = 0; i < length / 8; i++)
            if ((buffer[i] & search->mask) == search->word) {
                if (!search->candidates_left--)
                    return search->bytes_left = 0, false;
                if (search->found(search->context, start + i * 8))
                    return true;
            }
        search->bytes_left -= MIN(search->bytes_left, length);
        at += length;
    }
    return false;
}

static bool search_file(struct elf_file *file, uint64_t word, uint64_t mask, bool writable_only,
                        search_fn found, void *context)
{
    _cleanup_free_ uint64_t *buffer = memory_alloc(SEARCH_PIECE);
    struct search search = {file, word, mask, found, context, SEARCH_BYTES_MAX, CANDIDATES_MAX};
    for (size_t i = 0; i < file->segment_count; i++) {
        const struct elf_segment *segment = &file->segments[i];
        if (segment->type == PT_LOAD && !(segment->flags & PF_X) && segment->address % 8 == 0 &&
            (!writable_only || (segment->flags & PF_W)) && search_segment(&search, segment, buffer))
            return true;
    }
    return false;
}

/* ---- the table ---- */

static uint64_t bytes_behind(const struct elf_file *file, uint64_t address)
{
    for (size_t i = 0; i < file->segment_count; i++) {
        const struct elf_segment *segment = &file->segments[i];
        if (segment->type == PT_LOAD && address >= segment->address &&
            address - segment->address < segment->file_bytes)
            return segment->file_bytes - (address - segment->address);
    }
    return 0;
}

/* Everything in the segment from an address on, up to the limit. */
static int read_from(struct elf_file *file, uint64_t address, uint64_t limit,
                     struct buffer *ret_content)
{
    uint64_t offset;
    if (!elf_address_to_offset(file, address, &offset))
        return -ENODATA;
    return elf_read_some(file, offset, MIN(bytes_behind(file, address), limit), ret_content);
}

struct table_search {
    struct elf_file *file;
    struct gopclntab *table;
};

static bool try_table(void *context, uint64_t address)
{
    static const uint32_t magics[] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};
    struct table_search *search = context;
    _cleanup_buffer_ struct buffer content = {0};
    uint32_t magic, known = 0;
    uint64_t counts[2];
    if (elf_read_address(search->file, address, &magic, sizeof(magic)) < 0 ||
        elf_read_address(search->file, address + 8, counts, sizeof(counts)) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(magics); i++)
        known |= magics[i] == magic;
    /* A glance, before a lot is read. */
    return known && counts[0] && counts[0] < bytes_behind(search->file, address) / 8 &&
           read_from(search->file, address, GOPCLNTAB_BYTES_MAX, &content) == 0 &&
           gopclntab_parse(&content, &(struct gopclntab_place){.address = address}, search->table,
                           NULL) == 0;
}

/* Linkers that make one section of several leave no name to the table. */
static bool looks_like_go(struct elf_file *file)
{
    struct elf_section section;
    _cleanup_buffer_ struct buffer text = {0};
    return elf_find_section(file, ".go.buildinfo", &section) || elf_go_build_id(file, &text);
}

static int find_table(struct elf_file *file, struct gopclntab *ret_table, struct error *error)
{
    static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        struct elf_section section;
        _cleanup_buffer_ struct buffer content = {0};
        if (!elf_find_section(file, names[i], &section) || section.type == SHT_NOBITS)
            continue;
        if (!memory_allows(section.size_bytes))
            return error_set(error, -E2BIG, "The section %s is too large to be read here.",
                             section.name);
        int r = elf_read_section(file, &section, GOPCLNTAB_BYTES_MAX, &content, error);
        if (r < 0)
            return r;
        return gopclntab_parse(&content, &(struct gopclntab_place){.address = section.address},
                               ret_table, error);
    }
    struct table_search search = {file, ret_table};
    /* The first 8 bytes but for the version: two zeros, the quantum, the size of a pointer. */
    if (looks_like_go(file) &&
        search_file(file, 0x08010000fffffff0, 0xfffffffffffffff0, false, try_table, &search))
        return 0;
    return error_set(error, -ENOENT, "This file contains no Go code.");
}

/* ---- module data ---- */

/* In words of 8 bytes. From Go 1.20 on, two counters' addresses are before `functions`. */
enum {
    MODULE_HEADER = 0,
    MODULE_LIST = 16, /* of functions: address, length */
    MODULE_FIRST = 20,
    MODULE_TEXT = 22,
    MODULE_FUNCTIONS_1_18 = 38,
    MODULE_FUNCTIONS_1_20 = 40,
    MODULE_WORDS = 41,
};

struct module_search {
    struct elf_file *file;
    struct gopclntab *table;
    const struct elf_section *relocations; /* NULL: the words are in their places */
    uint64_t functions;
};

/* The addresses that the loader will put into a program at another place than it was linked for. */
struct relocations {
    struct elf_file *file;
    struct elf_section section;
    struct buffer piece;
    uint64_t read; /* bytes of the section */
    size_t next;   /* in the piece */
};

static bool next_relocation(struct relocations *relocations, Elf64_Rela *ret_entry)
{
    struct buffer *piece = &relocations->piece;
    do {
        if (piece->length - relocations->next < sizeof(*ret_entry)) {
            uint64_t size = MIN(relocations->section.size_bytes, SEARCH_BYTES_MAX);
            uint64_t want = MIN(size - relocations->read, SEARCH_PIECE / 24 * 24);
            piece->length = relocations->next = 0;
            if (elf_read_some(relocations->file, relocations->section.offset + relocations->read,
                              want, piece) < 0 ||
                piece->length < sizeof(*ret_entry))
                return false;
            relocations->read += piece->length;
        }
        memcpy(ret_entry, piece->data + relocations->next, sizeof(*ret_entry));
        relocations->next += sizeof(*ret_entry);
    } while (ELF64_R_TYPE(ret_entry->r_info) != R_X86_64_RELATIVE);
    return true;
}

static void relocate(struct elf_file *file, const struct elf_section *section, uint64_t address,
                     uint64_t words[MODULE_WORDS])
{
    struct relocations relocations = {.file = file, .section = *section};
    Elf64_Rela entry;
    while (next_relocation(&relocations, &entry))
        if (entry.r_offset >= address && (entry.r_offset - address) / 8 < MODULE_WORDS)
            words[(entry.r_offset - address) / 8] = (uint64_t)entry.r_addend;
    buffer_release(&relocations.piece);
}

static bool is_module(struct module_search *search, const uint64_t words[MODULE_WORDS])
{
    struct gopclntab *table = search->table;
    uint64_t list =
        table->address + (uint64_t)(table->functions.bytes - (const uint8_t *)table->content.data);
    uint32_t first;
    memcpy(&first, table->functions.bytes, sizeof(first));
    if (words[MODULE_HEADER] != table->address || words[MODULE_LIST] != list ||
        words[MODULE_LIST + 1] != (uint64_t)table->function_count + 1 ||
        words[MODULE_FIRST] != words[MODULE_TEXT] + first)
        return false;
    table->text = words[MODULE_TEXT];
    search->functions =
        words[table->layout == GOPCLNTAB_1_18 ? MODULE_FUNCTIONS_1_18 : MODULE_FUNCTIONS_1_20];
    return true;
}

static bool try_module(void *context, uint64_t address)
{
    struct module_search *search = context;
    uint64_t words[MODULE_WORDS];
    if (elf_read_address(search->file, address, words, sizeof(words)) < 0)
        return false;
    if (search->relocations)
        relocate(search->file, search->relocations, address, words);
    return is_module(search, words);
}

/* It has a section of its own from Go 1.26 on: all that debug files have of it. */
static bool find_module_by_section(struct module_search *search)
{
    struct elf_section section;
    uint64_t words[MODULE_WORDS];
    return elf_find_section(search->file, ".go.module", &section) && section.type != SHT_NOBITS &&
           section.size_bytes >= sizeof(words) &&
           elf_read(search->file, section.offset, words, sizeof(words)) == 0 &&
           is_module(search, words);
}

/* Some linkers leave zeros where the loader will write. */
static bool find_module_by_relocations(struct module_search *search)
{
    static const char *const names[] = {".rela.dyn", ".rela"};
    unsigned candidates = CANDIDATES_MAX;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        struct relocations relocations = {.file = search->file};
        Elf64_Rela entry;
        bool found = false;
        if (!elf_find_section(search->file, names[i], &relocations.section) ||
            relocations.section.type != SHT_RELA)
            continue;
        search->relocations = &relocations.section;
        while (!found && candidates && next_relocation(&relocations, &entry))
            if ((uint64_t)entry.r_addend == search->table->address) {
                candidates--;
                found = try_module(search, entry.r_offset);
            }
        buffer_release(&relocations.piece);
        if (found)
            return true;
    }
    return false;
}

/* Where function data is; 0 when that is not known. Sets where the code starts. */
static uint64_t find_module(struct elf_file *file, struct gopclntab *table)
{
    struct module_search search = {.file = file, .table = table};
    bool found = find_module_by_section(&search) ||
                 search_file(file, table->address, UINT64_MAX, true, try_module, &search) ||
                 find_module_by_relocations(&search);
    return found ? search.functions : 0;
}

/* ---- inline trees ---- */

static void load_trees(struct elf_file *file, struct gopclntab *table, uint64_t functions)
{
    uint64_t last = 0;
    bool any = false;
    uint64_t inside = functions - table->address;
    if (functions >= table->address && inside < table->content.length) {
        table->trees = (struct gopclntab_part){(const uint8_t *)table->content.data + inside,
                                               table->content.length - inside};
        return;
    }
    for (uint32_t i = 0; i < table->function_count; i++) {
        struct gopclntab_function function;
        if (gopclntab_function(table, i, &function) && function.has_tree) {
            last = MAX(last, function.tree);
            any = true;
        }
    }
    if (!any || read_from(file, functions, MIN(last + TREE_BYTES_MAX, GOPCLNTAB_INLINES_MAX),
                          &table->inlines) < 0)
        return;
    table->trees =
        (struct gopclntab_part){(const uint8_t *)table->inlines.data, table->inlines.length};
}

static int load(struct elf_file *file, struct gopclntab *table, struct error *error)
{
    if (file->machine != EM_X86_64)
        return error_set(error, -ENOENT, "Only Go code for x86-64 is supported.");
    int r = find_table(file, table, error);
    if (r < 0 || table->layout < GOPCLNTAB_1_18)
        return r;
    uint64_t functions = find_module(file, table);
    if (functions)
        load_trees(file, table, functions);
    if (!table->text)
        return error_set(error, -EBADMSG,
                         "Go's table of functions doesn't contain the start of the code, and the "
                         "module data was not found.");
    return 0;
}

int gopclntab_load(struct elf_file *file, struct gopclntab *ret_table, struct error *error)
{
    struct gopclntab table = {0};
    int r = load(file, &table, error);
    if (r < 0)
        gopclntab_release(&table);
    else
        *ret_table = table;
    return r;
}
