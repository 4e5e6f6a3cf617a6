// SPDX-License-Identifier: Apache-2.0
// Naming linkage stubs by the relocations of what they jump through: see plt.h.

#include "symbol/plt.h"

#include "arch/x86_64/x86_64.h"
#include "base/memory.h"
#include "elf/cursor.h"

#define UNIT_BYTES 16

/* A stub before it has a name. */
struct raw_stub {
    uint64_t start, end;
    struct x86_64_plt_stub jump;
};

struct relocation {
    uint64_t slot;
    uint32_t symbol;
    int64_t addend;
};

struct plt_loader {
    struct elf_file *file;
    struct raw_stub *stubs;
    size_t stub_count, stub_capacity;
    struct buffer symbols;
    struct plt_stubs *result;
    bool symbols_read;
};

static void loader_release(struct plt_loader *loader)
{
    free(loader->stubs);
    buffer_release(&loader->symbols);
}

static void decode_section(struct plt_loader *loader, const struct elf_section *section,
                           const uint8_t *bytes, size_t length)
{
    /* Without room for a lazy part and a landing pad, a stub has 8 bytes. */
    bool short_stubs = !strcmp(section->name, ".plt.got");
    for (size_t at = 0; at < length;) {
        struct raw_stub stub = {.start = section->address + at};
        size_t unit = short_stubs && bytes[at] == 0xff ? UNIT_BYTES / 2 : UNIT_BYTES;
        unit = MIN(unit, length - at);
        if (x86_64_plt_stub(bytes + at, unit, stub.start, &stub.jump)) {
            stub.end = stub.start + unit;
            array_reserve(loader->stubs, loader->stub_capacity, loader->stub_count + 1);
            loader->stubs[loader->stub_count++] = stub;
        }
        at += unit;
    }
}

static void decode_sections(struct plt_loader *loader)
{
    static const char *const names[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        struct elf_section section;
        _cleanup_buffer_ struct buffer content = {0};
        if (!elf_find_section(loader->file, names[i], &section) ||
            !(section.flags & SHF_EXECINSTR) || (section.flags & SHF_COMPRESSED) ||
            section.size_bytes > UINT64_MAX - section.address ||
            elf_read_section(loader->file, &section, PLT_BYTES_MAX, &content, NULL) < 0)
            continue;
        decode_section(loader, &section, (const uint8_t *)content.data, content.length);
    }
}

/* ---- relocations ---- */

static int compare_slots(const void *left, const void *right)
{
    const struct relocation *a = left, *b = right;
    return a->slot < b->slot ? -1 : a->slot > b->slot;
}

static const struct relocation *find_slot(const struct relocation *list, size_t count,
                                          uint64_t slot)
{
    struct relocation key = {.slot = slot};
    return count ? bsearch(&key, list, count, sizeof(*list), compare_slots) : NULL;
}

static bool is_function_slot(const Elf64_Rela *entry)
{
    switch (ELF64_R_TYPE(entry->r_info)) {
    case R_X86_64_JUMP_SLOT:
    case R_X86_64_GLOB_DAT:
    case R_X86_64_IRELATIVE:
        return true;
    default:
        return false;
    }
}

static void read_symbols(struct plt_loader *loader)
{
    struct elf_section symbols, strings;
    if (loader->symbols_read)
        return;
    loader->symbols_read = true;
    if (!elf_find_section(loader->file, ".dynsym", &symbols) ||
        !elf_find_section(loader->file, ".dynstr", &strings) ||
        elf_read_section(loader->file, &symbols, PLT_RELOCATIONS_BYTES_MAX, &loader->symbols,
                         NULL) < 0 ||
        elf_read_section(loader->file, &strings, PLT_RELOCATIONS_BYTES_MAX,
                         &loader->result->strings, NULL) < 0)
        loader->symbols.length = 0;
    buffer_add_char(&loader->result->strings, '\0');
}

/* NULL when the symbol has no name. */
static const char *symbol_name(struct plt_loader *loader, uint32_t number)
{
    read_symbols(loader);
    const struct buffer *strings = &loader->result->strings;
    Elf64_Sym symbol;
    if (!number || number >= loader->symbols.length / sizeof(symbol))
        return NULL;
    memcpy(&symbol, loader->symbols.data + number * sizeof(symbol), sizeof(symbol));
    if (symbol.st_name >= strings->length || !strings->data[symbol.st_name])
        return NULL;
    return strings->data + symbol.st_name;
}

static void name_stub(struct plt_loader *loader, const struct raw_stub *raw,
                      const struct relocation *relocation)
{
    struct plt_stubs *stubs = loader->result;
    struct plt_stub stub = {
        .start = raw->start, .end = raw->end, .name = symbol_name(loader, relocation->symbol)};
    if (!stub.name && relocation->symbol)
        return;
    if (!stub.name)
        stub.resolver = (uint64_t)relocation->addend;
    if (!array_try_reserve(stubs->list, stubs->capacity, stubs->count + 1))
        return;
    stubs->list[stubs->count++] = stub;
}

/* All of a section's relocations, or only those that stubs can be for. Returns how many. */
static size_t read_relocations(struct plt_loader *loader, const char *name, bool all,
                               struct relocation **ret_list)
{
    struct elf_section section;
    _cleanup_buffer_ struct buffer content = {0};
    size_t count = 0, capacity = 0;
    if (!elf_find_section(loader->file, name, &section) || (section.flags & SHF_COMPRESSED) ||
        elf_read_section(loader->file, &section, PLT_RELOCATIONS_BYTES_MAX, &content, NULL) < 0)
        return 0;
    for (size_t at = 0; content.length - at >= sizeof(Elf64_Rela); at += sizeof(Elf64_Rela)) {
        Elf64_Rela entry;
        memcpy(&entry, content.data + at, sizeof(entry));
        if (!all && !is_function_slot(&entry))
            continue;
        if (!array_try_reserve(*ret_list, capacity, count + 1))
            break;
        (*ret_list)[count++] = (struct relocation){
            entry.r_offset, (uint32_t)ELF64_R_SYM(entry.r_info), entry.r_addend};
    }
    return count;
}

/* Stubs that say which relocation of .rela.plt is theirs. */
static void name_by_index(struct plt_loader *loader, const struct relocation *list, size_t count)
{
    for (size_t i = 0; i < loader->stub_count; i++)
        if (loader->stubs[i].jump.by_index && loader->stubs[i].jump.index < count)
            name_stub(loader, &loader->stubs[i], &list[loader->stubs[i].jump.index]);
}

/* The others; those that are not found are kept. */
static void name_by_slot(struct plt_loader *loader, struct relocation *list, size_t count)
{
    size_t kept = 0;
    if (count)
        qsort(list, count, sizeof(*list), compare_slots);
    for (size_t i = 0; i < loader->stub_count; i++) {
        const struct raw_stub *stub = &loader->stubs[i];
        const struct relocation *found =
            stub->jump.by_index ? NULL : find_slot(list, count, stub->jump.slot);
        if (found)
            name_stub(loader, stub, found);
        else if (!stub->jump.by_index)
            loader->stubs[kept++] = *stub;
    }
    loader->stub_count = kept;
}

/* ---- the whole ---- */

static int compare_stubs(const void *left, const void *right)
{
    const struct plt_stub *a = left, *b = right;
    return a->start < b->start ? -1 : a->start > b->start;
}

void plt_load(struct plt_stubs *stubs, struct elf_file *file)
{
    _cleanup_(loader_release) struct plt_loader loader = {.file = file, .result = stubs};
    if (!file->section_count || file->machine != EM_X86_64)
        return;
    decode_sections(&loader);
    if (loader.stub_count) {
        _cleanup_free_ struct relocation *list = NULL;
        size_t count = read_relocations(&loader, ".rela.plt", true, &list);
        name_by_index(&loader, list, count);
        name_by_slot(&loader, list, count);
    }
    if (loader.stub_count) {
        _cleanup_free_ struct relocation *list = NULL;
        size_t count = read_relocations(&loader, ".rela.dyn", false, &list);
        name_by_slot(&loader, list, count);
    }
    if (stubs->count)
        qsort(stubs->list, stubs->count, sizeof(*stubs->list), compare_stubs);
}

void plt_release(struct plt_stubs *stubs)
{
    free(stubs->list);
    buffer_release(&stubs->strings);
    *stubs = (struct plt_stubs){0};
}

struct plt_stub *plt_find(const struct plt_stubs *stubs, uint64_t address)
{
    size_t low = 0, high = stubs->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (stubs->list[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && address < stubs->list[low - 1].end ? &stubs->list[low - 1] : NULL;
}
