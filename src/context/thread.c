// SPDX-License-Identifier: Apache-2.0
// Finding threads' contexts: see thread.h. The numbers of relocations are x86-64's.

#include "context/thread.h"

#include <string.h>

#include "base/memory.h"

#define RELOCATIONS_MAX (1u << 20) /* of each table; large programs have some 100,000 */
#define RELOCATIONS_AT_ONCE 512
#define MODULES_MAX 65536
#define BLOCK_BYTES_MAX (1u << 28)
#define SYMBOLS_MAX (1u << 20)
#define NAMES_BYTES_MAX (32u << 20)

/* ---- in the file ---- */

/* The block of an executable ends at the thread pointer, as far as its alignment lets it. */
static bool executable_offset(const struct elf_file *file, uint64_t symbol, int64_t *ret_offset)
{
    const struct elf_segment *segment = elf_find_segment(file, PT_TLS);
    if (!segment || symbol >= segment->memory_bytes || segment->memory_bytes > BLOCK_BYTES_MAX)
        return false;
    uint64_t alignment = segment->alignment ? segment->alignment : 1;
    if (alignment & (alignment - 1))
        return false;
    uint64_t end = segment->address + segment->memory_bytes;
    uint64_t distance = segment->memory_bytes + (-end & (alignment - 1));
    *ret_offset = (int64_t)symbol - (int64_t)distance;
    return true;
}

static bool match(const Elf64_Rela *relocation, const struct elf_symbol *symbol,
                  struct thread_variable *variable)
{
    uint32_t type = (uint32_t)ELF64_R_TYPE(relocation->r_info);
    uint32_t number = (uint32_t)ELF64_R_SYM(relocation->r_info);
    bool named = number == symbol->number;
    /* Within a library that binds its own symbols, the addend says which it is. */
    bool ours = !number && (uint64_t)relocation->r_addend == symbol->address;
    if (type == R_X86_64_TLSDESC && (named || ours))
        variable->access = THREAD_ACCESS_DESCRIPTOR;
    else if (type == R_X86_64_TPOFF64 && (named || ours))
        variable->access = THREAD_ACCESS_DISTANCE;
    else if (type == R_X86_64_DTPMOD64 && named)
        variable->access = THREAD_ACCESS_NUMBERS;
    else if (type == R_X86_64_DTPMOD64 && !number)
        variable->access = THREAD_ACCESS_MODULE;
    else
        return false;
    variable->slot = relocation->r_offset;
    variable->offset = (int64_t)symbol->address;
    return true;
}

/* A way that names the variable counts more than one that names its module. */
static bool find_slot(struct elf_file *file, uint64_t address, uint64_t bytes,
                      const struct elf_symbol *symbol, struct thread_variable *variable)
{
    Elf64_Rela some[RELOCATIONS_AT_ONCE];
    uint64_t count = MIN(bytes / sizeof(*some), RELOCATIONS_MAX);
    bool found = false;
    for (uint64_t at = 0; at < count; at += RELOCATIONS_AT_ONCE) {
        size_t now = (size_t)MIN(count - at, RELOCATIONS_AT_ONCE);
        if (elf_read_address(file, address + at * sizeof(*some), some, now * sizeof(*some)) < 0)
            return found;
        for (size_t i = 0; i < now; i++) {
            struct thread_variable candidate = *variable;
            if (!match(&some[i], symbol, &candidate))
                continue;
            if (found && candidate.access == THREAD_ACCESS_MODULE)
                continue;
            *variable = candidate;
            found = true;
            if (candidate.access != THREAD_ACCESS_MODULE)
                return true;
        }
    }
    return found;
}

/* Static executables have no dynamic symbols unless their linker was asked for them. */
static bool find_static_symbol(struct elf_file *file, struct elf_symbol *ret_symbol)
{
    struct elf_section symbols, strings;
    _cleanup_buffer_ struct buffer names = {0};
    Elf64_Sym some[RELOCATIONS_AT_ONCE];
    if (!elf_find_section(file, ".symtab", &symbols) ||
        !elf_find_section(file, ".strtab", &strings) ||
        elf_read_section(file, &strings, NAMES_BYTES_MAX, &names, NULL) < 0)
        return false;
    uint64_t count = MIN(symbols.size_bytes / sizeof(*some), SYMBOLS_MAX);
    for (uint64_t at = 0; at < count; at += RELOCATIONS_AT_ONCE) {
        size_t now = (size_t)MIN(count - at, RELOCATIONS_AT_ONCE);
        if (elf_read(file, symbols.offset + at * sizeof(*some), some, now * sizeof(*some)) < 0)
            return false;
        for (size_t i = 0; i < now; i++)
            if (ELF64_ST_TYPE(some[i].st_info) == STT_TLS && some[i].st_shndx != SHN_UNDEF &&
                some[i].st_name < names.length &&
                names.length - some[i].st_name >= sizeof(THREAD_CONTEXT_SYMBOL) &&
                !memcmp(names.data + some[i].st_name, THREAD_CONTEXT_SYMBOL,
                        sizeof(THREAD_CONTEXT_SYMBOL))) {
                *ret_symbol = (struct elf_symbol){.address = some[i].st_value,
                                                  .size_bytes = some[i].st_size,
                                                  .is_thread_local = true};
                return true;
            }
    }
    return false;
}

bool thread_variable_find(struct elf_file *file, struct thread_variable *ret_variable)
{
    struct elf_symbol symbol;
    struct elf_dynamic dynamic;
    struct thread_variable variable = {.access = THREAD_ACCESS_STATIC};
    if (!elf_find_segment(file, PT_TLS))
        return false;
    bool executable = elf_kind_of(file) != ELF_KIND_SHARED && elf_kind_of(file) != ELF_KIND_OTHER;
    bool found =
        elf_dynamic_symbol(file, THREAD_CONTEXT_SYMBOL, &symbol) ||
        (executable && !elf_find_segment(file, PT_INTERP) && find_static_symbol(file, &symbol));
    if (!found || !symbol.is_thread_local || symbol.address > BLOCK_BYTES_MAX)
        return false;
    if (executable) {
        if (!executable_offset(file, symbol.address, &variable.offset))
            return false;
    } else if (!elf_dynamic(file, &dynamic) ||
               (!find_slot(file, dynamic.relocations, dynamic.relocation_bytes, &symbol,
                           &variable) &&
                !find_slot(file, dynamic.lazy_relocations, dynamic.lazy_relocation_bytes, &symbol,
                           &variable))) {
        return false;
    }
    *ret_variable = variable;
    return true;
}

/* ---- in the process ---- */

/* The resolver of a descriptor whose argument is a distance, in glibc and in musl: it returns the
 * argument. */
static bool is_static_descriptor(const struct runtime_memory *memory, uint64_t function)
{
    static const uint8_t mark[] = {0xf3, 0x0f, 0x1e, 0xfa};
    static const uint8_t load[] = {0x48, 0x8b, 0x40, 0x08, 0xc3};
    uint8_t code[sizeof(mark) + sizeof(load)];
    if (!runtime_read(memory, function, code, sizeof(code)))
        return false;
    return !memcmp(code, load, sizeof(load)) ||
           (!memcmp(code, mark, sizeof(mark)) && !memcmp(code + sizeof(mark), load, sizeof(load)));
}

static bool set_static(int64_t distance, struct bpf_thread_context *ret_context)
{
    /* Blocks are below the thread pointer. */
    if (distance >= 0 || distance < -(int64_t)BLOCK_BYTES_MAX)
        return false;
    *ret_context = (struct bpf_thread_context){.way = BPF_CONTEXT_STATIC, .offset = distance};
    return true;
}

static bool set_module(uint64_t module, uint64_t offset, bool musl,
                       struct bpf_thread_context *ret_context)
{
    if (!module || module > MODULES_MAX || offset > BLOCK_BYTES_MAX)
        return false;
    *ret_context = (struct bpf_thread_context){.way = musl ? BPF_CONTEXT_MUSL : BPF_CONTEXT_GLIBC,
                                               .module = (unsigned)module,
                                               .offset = (int64_t)offset};
    return true;
}

bool thread_variable_attach(const struct thread_variable *variable, uint64_t bias, bool musl,
                            const struct runtime_memory *memory,
                            struct bpf_thread_context *ret_context)
{
    uint64_t slots[2] = {0}, numbers[2];
    bool pair =
        variable->access == THREAD_ACCESS_DESCRIPTOR || variable->access == THREAD_ACCESS_NUMBERS;
    if (variable->access == THREAD_ACCESS_STATIC)
        return set_static(variable->offset, ret_context);
    if (!runtime_read(memory, variable->slot + bias, slots, pair ? 16 : 8))
        return false;
    switch (variable->access) {
    case THREAD_ACCESS_DISTANCE:
        return set_static((int64_t)slots[0], ret_context);
    case THREAD_ACCESS_NUMBERS:
        return set_module(slots[0], slots[1], musl, ret_context);
    case THREAD_ACCESS_MODULE:
        return set_module(slots[0], (uint64_t)variable->offset, musl, ret_context);
    default:
        if (is_static_descriptor(memory, slots[0]))
            return set_static((int64_t)slots[1], ret_context);
        return runtime_read(memory, slots[1], numbers, sizeof(numbers)) &&
               set_module(numbers[0], numbers[1], musl, ret_context);
    }
}

uint64_t thread_context_record(const struct bpf_thread_context *context,
                               const struct runtime_memory *memory, uint64_t thread_pointer)
{
    if (context->way == BPF_CONTEXT_STATIC)
        return runtime_read_word(memory, thread_pointer + (uint64_t)context->offset);
    bool glibc = context->way == BPF_CONTEXT_GLIBC;
    uint64_t vector = runtime_read_word(memory, thread_pointer + 8);
    uint64_t entries = vector ? runtime_read_word(memory, glibc ? vector - 16 : vector) : 0;
    if (entries < context->module)
        return 0;
    uint64_t block =
        runtime_read_word(memory, vector + (uint64_t)context->module * (glibc ? 16 : 8));
    return block && block != UINT64_MAX
               ? runtime_read_word(memory, block + (uint64_t)context->offset)
               : 0;
}
