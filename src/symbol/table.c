// SPDX-License-Identifier: Apache-2.0
// Reading a file's symbols and unwind entries, and finding functions in them: see table.h.

#include "symbol/table.h"

#include "base/memory.h"
#include "elf/cfi/ehframe.h"
#include "elf/unwind/rows.h"
#include "profile/names/demangle.h"
#include "symbol/debugfile.h"
#include "symbol/gonames.h"
#include "symbol/minidebug.h"

/* The maximum memory of a symbol: as it is in the file, as a function, and two stretches. */
#define SYMBOL_BYTES                                                                               \
    (sizeof(Elf64_Sym) + 2 * sizeof(struct function_symbol) + 2 * sizeof(struct symbol_stretch))
#define UNPACKED_TIMES 8 /* .gnu_debugdata, with its decoder */

/* ---- where code is ---- */

/* 0: it has no code. Parca's agent uploads files whose code sections have neither bytes nor sizes:
 * each goes on to the next one's address. */
static uint64_t code_end(const struct elf_file *file, size_t index)
{
    const struct elf_section *section = &file->sections[index], *next = section + 1;
    if (!(section->flags & SHF_EXECINSTR) || !(section->flags & SHF_ALLOC))
        return 0;
    if (section->size_bytes)
        return section->size_bytes <= UINT64_MAX - section->address
                   ? section->address + section->size_bytes
                   : 0;
    bool follows = index + 1 < file->section_count && next->flags & SHF_ALLOC &&
                   next->address > section->address;
    return section->type == SHT_NOBITS && follows ? next->address : 0;
}

static void load_code(struct symbol_table *table, const struct elf_file *file)
{
    size_t room = MIN(file->section_count, SYMBOL_CODE_MAX) + file->segment_count;
    table->code = memory_zalloc(room + 1, sizeof(*table->code));
    for (size_t i = 0; i < file->section_count && table->code_count < room; i++) {
        uint64_t end = code_end(file, i);
        if (end)
            table->code[table->code_count++] = (struct symbol_code){file->sections[i].address, end};
    }
    for (size_t i = 0; !table->code_count && i < file->segment_count; i++) {
        const struct elf_segment *segment = &file->segments[i];
        if (segment->type == PT_LOAD && (segment->flags & PF_X) && segment->file_bytes)
            table->code[table->code_count++] =
                (struct symbol_code){segment->address, segment->address + segment->file_bytes};
    }
    symbol_code_sort(table->code, table->code_count);
}

/* Converts offsets to addresses after the file is closed. */
static void keep_layout(struct symbol_table *table, const struct elf_file *file)
{
    table->layout = (struct elf_file){.fd = -1, .segment_count = file->segment_count};
    table->layout.segments = memory_zalloc(file->segment_count + 1, sizeof(*file->segments));
    if (file->segment_count)
        memcpy(table->layout.segments, file->segments,
               file->segment_count * sizeof(*file->segments));
}

static int compare_entry_starts(const void *left, const void *right)
{
    const struct symbol_code *a = left, *b = right;
    return a->start < b->start ? -1 : a->start > b->start;
}

/* Whether so much may still be read, given what has been. */
static bool fits(struct symbol_table *table, uint64_t bytes)
{
    bool fits = bytes <= table->limit_bytes;
    table->too_large |= !fits;
    table->limit_bytes -= fits && table->limit_bytes != UINT64_MAX ? bytes : 0;
    return fits;
}

static bool section_fits(struct symbol_table *table, struct elf_file *file, const char *name,
                         unsigned times)
{
    struct elf_section section;
    return !elf_find_section(file, name, &section) ||
           fits(table, MIN(section.size_bytes, 1ull << 40) * times);
}

static void load_entries(struct symbol_table *table, struct elf_file *file, const char *name)
{
    struct elf_section section;
    _cleanup_buffer_ struct buffer content = {0};
    if (!elf_find_section(file, name, &section) || !section_fits(table, file, name, 1) ||
        elf_unpack_section(file, &section, UNWIND_FRAMES_BYTES_MAX, &content, NULL) < 0 ||
        !content.length)
        return;
    struct frame_section frames = {.bytes = (const uint8_t *)content.data,
                                   .length = content.length,
                                   .address = section.address,
                                   .is_debug_frame = name[1] == 'd',
                                   .open_ended = section.open_ended};
    _cleanup_free_ struct frame_reader *reader = memory_try_zalloc(1, sizeof(*reader));
    if (!reader)
        return;
    frame_reader_init(reader, &frames);
    struct frame_fde fde;
    while (frame_reader_next(reader, &fde) > 0) {
        if (!symbol_code_find(table->code, table->code_count, fde.start))
            continue;
        if (!array_try_reserve(table->entries, table->entry_capacity, table->entry_count + 1))
            break;
        table->entries[table->entry_count++] = (struct symbol_code){fde.start, fde.end};
    }
    if (table->entry_count)
        qsort(table->entries, table->entry_count, sizeof(*table->entries), compare_entry_starts);
}

/* ---- symbols ---- */

enum {
    RANK_GLOBAL,
    RANK_WEAK,
    RANK_LOCAL,
    RANK_LABEL, /* without a type: from hand-written assembly */
};

static bool rank_of(const Elf64_Sym *symbol, uint8_t *ret_rank)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info), binding = ELF64_ST_BIND(symbol->st_info);
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS)
        return false;
    if (type == STT_NOTYPE && symbol->st_size == 0)
        *ret_rank = RANK_LABEL;
    else if (type == STT_FUNC || type == STT_GNU_IFUNC)
        *ret_rank = binding == STB_LOCAL  ? RANK_LOCAL
                    : binding == STB_WEAK ? RANK_WEAK
                                          : RANK_GLOBAL;
    else
        return false;
    return true;
}

/* False if there is no memory for more. */
static bool add_symbol(struct symbol_table *table, const Elf64_Sym *symbol, struct buffer *strings)
{
    uint8_t rank;
    if (!rank_of(symbol, &rank) || symbol->st_name >= strings->length ||
        !strings->data[symbol->st_name] ||
        /* Marks that compilers and their plugins leave (.annobin_x), and no function. */
        (rank == RANK_LABEL && strings->data[symbol->st_name] == '.') ||
        !symbol_code_find(table->code, table->code_count, symbol->st_value))
        return true;
    uint64_t end;
    if (__builtin_add_overflow(symbol->st_value, symbol->st_size, &end))
        end = UINT64_MAX;
    if (!array_try_reserve(table->functions, table->function_capacity, table->function_count + 1))
        return false;
    table->functions[table->function_count++] =
        (struct function_symbol){.start = symbol->st_value,
                                 .end = end,
                                 .name = strings->data + symbol->st_name,
                                 .rank = rank};
    return true;
}

static bool find_strings(struct elf_file *file, const struct elf_section *symbols,
                         struct elf_section *ret_strings)
{
    if (!file->section_count)
        return elf_find_section(file, ".dynstr", ret_strings);
    if (!symbols->link || symbols->link >= file->section_count)
        return false;
    *ret_strings = file->sections[symbols->link];
    return ret_strings->type == SHT_STRTAB;
}

static void load_symbols(struct symbol_table *table, struct elf_file *file, const char *name)
{
    struct elf_section symbols, strings;
    _cleanup_buffer_ struct buffer content = {0};
    struct buffer *text = &table->strings[table->string_tables];
    if (table->string_tables == ARRAY_LENGTH(table->strings) ||
        !elf_find_section(file, name, &symbols) || !find_strings(file, &symbols, &strings) ||
        ((symbols.flags | strings.flags) & SHF_COMPRESSED) ||
        symbols.entry_bytes != sizeof(Elf64_Sym) ||
        !fits(table, MIN(symbols.size_bytes, 1ull << 40) / sizeof(Elf64_Sym) * SYMBOL_BYTES +
                         MIN(strings.size_bytes, 1ull << 40)) ||
        elf_read_section(file, &symbols, SYMBOLS_BYTES_MAX, &content, NULL) < 0 ||
        elf_read_section(file, &strings, SYMBOL_STRINGS_MAX, text, NULL) < 0)
        return;
    buffer_add_char(text, '\0'); /* so that every name ends */
    table->string_tables++;
    const Elf64_Sym *list = (const Elf64_Sym *)content.data;
    size_t before = table->function_count;
    for (size_t i = 1; i < content.length / sizeof(*list); i++)
        if (!add_symbol(table, &list[i], text)) {
            /* Without some of them, code would get the names of others. */
            table->function_count = before;
            break;
        }
}

struct symbol_table *symbol_table_new(struct elf_file *file, const char *path)
{
    return symbol_table_new_within(file, path, UINT64_MAX);
}

struct symbol_table *symbol_table_new_code(struct elf_file *file)
{
    struct symbol_table *table = memory_zalloc(1, sizeof(*table));
    keep_layout(table, file);
    load_code(table, file);
    return table;
}

struct symbol_table *symbol_table_new_within(struct elf_file *file, const char *path,
                                             uint64_t limit_bytes)
{
    struct symbol_table *table = memory_zalloc(1, sizeof(*table));
    table->limit_bytes = limit_bytes;
    keep_layout(table, file);
    load_code(table, file);
    load_symbols(table, file, ".symtab");
    if (!table->function_count) {
        load_symbols(table, file, ".dynsym");
        _cleanup_elf_ struct elf_file debug = {.fd = -1};
        if (path && debug_file_open(file, path, &debug) == 0) {
            table->has_debug_file = true;
            load_symbols(table, &debug, ".symtab");
        }
    }
    if (!table->has_debug_file && section_fits(table, file, ".gnu_debugdata", UNPACKED_TIMES)) {
        _cleanup_buffer_ struct buffer unpacked = {0};
        _cleanup_elf_ struct elf_file debug = {.fd = -1};
        if (minidebug_open(file, &unpacked, &debug, NULL) == 0)
            load_symbols(table, &debug, ".symtab");
    }
    plt_load(&table->stubs, file);
    if (section_fits(table, file, ".gopclntab", 1))
        gopclntab_load(file, &table->go, NULL);
    symbol_table_order(table);
    load_entries(table, file, ".eh_frame");
    if (!table->entry_count)
        load_entries(table, file, ".debug_frame");
    return table;
}

void symbol_table_free(struct symbol_table *table)
{
    if (!table)
        return;
    elf_release(&table->layout);
    free(table->functions);
    free(table->stretches);
    free(table->entries);
    free(table->code);
    for (size_t i = 0; i < ARRAY_LENGTH(table->strings); i++)
        buffer_release(&table->strings[i]);
    plt_release(&table->stubs);
    gopclntab_release(&table->go);
    arena_release(&table->readable);
    free(table);
}

size_t symbol_table_bytes(const struct symbol_table *table)
{
    size_t bytes = sizeof(*table) + table->function_capacity * sizeof(*table->functions) +
                   (table->function_count * 2 + 1) * sizeof(*table->stretches) +
                   table->entry_capacity * sizeof(*table->entries) +
                   table->code_count * sizeof(*table->code) + table->readable.total_bytes +
                   table->stubs.capacity * sizeof(*table->stubs.list) +
                   table->stubs.strings.capacity + gopclntab_bytes(&table->go);
    for (size_t i = 0; i < ARRAY_LENGTH(table->strings); i++)
        bytes += table->strings[i].capacity;
    return bytes;
}

/* ---- finding ---- */

static struct function_symbol *find_function(struct symbol_table *table, uint64_t address)
{
    size_t low = 0, high = table->stretch_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->stretches[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t function = low ? table->stretches[low - 1].function : SYMBOL_NONE;
    return function == SYMBOL_NONE ? NULL : &table->functions[function];
}

/* Made when it is first asked for: few of a file's functions ever are. */
static void make_readable(struct symbol_table *table, struct function_symbol *function)
{
    _cleanup_buffer_ struct buffer text = {0};
    size_t length = strnlen(function->name, SYMBOL_NAME_MAX + 1);
    if (length > SYMBOL_NAME_MAX) {
        function->readable = function->name = NULL;
        return;
    }
    /* .symtab has the version with the name, .dynsym hasn't. */
    char *version = length ? memchr(function->name + 1, '@', length - 1) : NULL;
    if (version)
        *version = '\0';
    function->readable = demangle(function->name, &text)
                             ? arena_strndup(&table->readable, text.data, text.length)
                             : function->name;
}

/* "function@plt". Without a symbol, the function is called as the one that chooses it. */
static void name_stub(struct symbol_table *table, struct plt_stub *stub)
{
    _cleanup_buffer_ struct buffer text = {0};
    struct function_symbol *chooser = stub->name ? NULL : find_function(table, stub->resolver);
    if (chooser && chooser->name && !chooser->readable)
        make_readable(table, chooser);
    const char *name = chooser ? chooser->name : stub->name;
    size_t length = name ? strnlen(name, SYMBOL_NAME_MAX + 1) : 0;
    if (length > SYMBOL_NAME_MAX)
        return;
    if (name)
        buffer_printf(&text, "%s@plt", name);
    else
        buffer_printf(&text, "*ABS*+0x%llx@plt", (unsigned long long)stub->resolver);
    stub->readable = stub->system = arena_strndup(&table->readable, text.data, text.length);
    text.length = 0;
    if (name && demangle(name, &text)) {
        buffer_add_text(&text, "@plt");
        stub->readable = arena_strndup(&table->readable, text.data, text.length);
    }
}

static bool find_stub(struct symbol_table *table, uint64_t address, struct symbol *ret_symbol)
{
    struct plt_stub *stub = plt_find(&table->stubs, address);
    if (!stub)
        return false;
    if (!stub->readable)
        name_stub(table, stub);
    *ret_symbol = (struct symbol){
        .name = stub->readable,
        .system_name = stub->readable == stub->system ? NULL : stub->system,
        .start = stub->start,
        .size_bytes = stub->end - stub->start,
        .distance = address - stub->start,
    };
    return true;
}

bool symbol_table_find(struct symbol_table *table, uint64_t address, struct symbol *ret_symbol)
{
    if (find_stub(table, address, ret_symbol) ||
        (go_covers(&table->go, address) && go_find(&table->go, address, ret_symbol)))
        return true;
    struct function_symbol *function = find_function(table, address);
    const struct symbol_code *entry = symbol_code_find(table->entries, table->entry_count, address);
    /* A symbol of no size may only seem to go on: another function's entry ends it. */
    if (entry && (!function || (function->guessed_end && entry->start > function->start))) {
        *ret_symbol = (struct symbol){.start = entry->start,
                                      .size_bytes = entry->end - entry->start,
                                      .distance = address - entry->start};
        return true;
    }
    if (!function)
        return go_find(&table->go, address, ret_symbol);
    if (function->name && !function->readable)
        make_readable(table, function);
    *ret_symbol = (struct symbol){
        .name = function->readable,
        .system_name = function->readable == function->name ? NULL : function->name,
        .start = function->start,
        .size_bytes = function->end - function->start,
        .distance = address - function->start,
    };
    return true;
}

bool symbol_table_find_offset(struct symbol_table *table, uint64_t offset,
                              struct symbol *ret_symbol)
{
    uint64_t address;
    return elf_offset_to_address(&table->layout, offset, &address) &&
           symbol_table_find(table, address, ret_symbol);
}

size_t symbol_table_frames(struct symbol_table *table, uint64_t address,
                           struct symbol_frame ret_frames[SYMBOL_FRAMES_MAX])
{
    struct symbol symbol;
    if (go_covers(&table->go, address))
        return go_frames(&table->go, address, ret_frames);
    if (!symbol_table_find(table, address, &symbol) || !symbol.name)
        return 0;
    ret_frames[0] = (struct symbol_frame){.name = symbol.name, .system_name = symbol.system_name};
    return 1;
}
