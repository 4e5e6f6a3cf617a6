// SPDX-License-Identifier: Apache-2.0
// Recognising Ruby in files, and attaching to processes: see binary.h.

#include "runtime/ruby/binary.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/part.h"

#define RELOCATIONS_BYTES_MAX (32u << 20)
#define INSTRUCTIONS_BYTES_MIN                                                                     \
    8192 /* of the function with all instructions: real ones have 20 KiB */
#define MODULES_MAX 4096
#define THREAD_BYTES_MAX (1u << 20)

/* Where versions have what is read of a sequence of instructions, and the size of a frame. */
static const struct {
    uint8_t minor;
    uint16_t frame_bytes, first_line_shift, lines;
} layouts[] = {
    {1, 64, 1, 120},
    {2, 64, 0, 112},
    {3, 56, 0, 112},
    {4, 56, 0, 112},
};

static void find_version(struct elf_file *file, struct ruby_binary *binary)
{
    struct elf_symbol symbol;
    char text[16] = "";
    unsigned major, minor;
    if (!elf_dynamic_symbol(file, "ruby_version", &symbol) || !symbol.size_bytes ||
        elf_read_address(file, symbol.address, text,
                         (size_t)MIN(symbol.size_bytes, (uint64_t)sizeof(text) - 1)) < 0)
        return;
    text[strspn(text, "0123456789.")] = '\0';
    if (sscanf(text, "%3u.%3u", &major, &minor) != 2 || major > 255 || minor > 255)
        return;
    binary->major = (uint8_t)major;
    binary->minor = (uint8_t)minor;
    snprintf(binary->version, sizeof(binary->version), "%s", text);
}

/* Whether a relocation's symbol is this thread-local variable. */
static bool is_variable(struct elf_file *file, const struct elf_section *symbols, uint64_t number,
                        uint64_t value)
{
    Elf64_Sym symbol;
    return number && number < symbols->size_bytes / sizeof(symbol) &&
           elf_read(file, symbols->offset + number * sizeof(symbol), &symbol, sizeof(symbol)) ==
               0 &&
           ELF64_ST_TYPE(symbol.st_info) == STT_TLS && symbol.st_value == value;
}

/* Libraries have a relocation for the number of their module. */
static void find_module_slot(struct elf_file *file, uint64_t variable, struct ruby_binary *binary)
{
    struct elf_section section, symbols;
    _cleanup_buffer_ struct buffer content = {0};
    if (!elf_find_section(file, ".rela.dyn", &section) || !elf_dynamic_symbols(file, &symbols) ||
        elf_read_section(file, &section, RELOCATIONS_BYTES_MAX, &content, NULL) < 0)
        return;
    for (size_t at = 0; at + sizeof(Elf64_Rela) <= content.length; at += sizeof(Elf64_Rela)) {
        Elf64_Rela relocation;
        memcpy(&relocation, content.data + at, sizeof(relocation));
        if (ELF64_R_TYPE(relocation.r_info) == R_X86_64_DTPMOD64 &&
            is_variable(file, &symbols, ELF64_R_SYM(relocation.r_info), variable)) {
            binary->module_slot = relocation.r_offset;
            return;
        }
    }
}

/* Without one, the variable is in the executable, whose variables are right below the thread
 * pointer. */
static bool find_variable(struct elf_file *file, struct ruby_binary *binary)
{
    struct elf_symbol variable;
    const struct elf_segment *storage = elf_find_segment(file, PT_TLS);
    if (!storage || !elf_dynamic_symbol(file, "ruby_current_ec", &variable) ||
        storage->memory_bytes > THREAD_BYTES_MAX || variable.address > storage->memory_bytes)
        return false;
    find_module_slot(file, variable.address, binary);
    uint64_t alignment = MAX(storage->alignment, (uint64_t)1);
    if (alignment > 4096 || (alignment & (alignment - 1)))
        return false;
    uint64_t size = (storage->memory_bytes + alignment - 1) & ~(alignment - 1);
    binary->walk.tls_offset =
        binary->module_slot ? (int)variable.address : (int)variable.address - (int)size;
    return true;
}

bool ruby_binary_find(struct elf_file *file, struct ruby_binary *ret_binary)
{
    struct elf_symbol evaluate;
    if (!elf_dynamic_symbol(file, "rb_vm_exec", &evaluate) || !evaluate.size_bytes ||
        evaluate.address > UINT64_MAX - evaluate.size_bytes)
        return false;
    struct ruby_binary binary = {
        .walk = {.evaluate = {evaluate.address, evaluate.address + evaluate.size_bytes}}};
    if (!elf_address_to_offset(file, evaluate.address, &binary.evaluate_offset))
        return false;
    find_version(file, &binary);
    const uint64_t function[2] = {evaluate.address, evaluate.address + evaluate.size_bytes};
    uint64_t callee[2] = {0, 0};
    runtime_find_callee(file, function, INSTRUCTIONS_BYTES_MIN, callee);
    binary.walk.cold[0] = callee[0];
    binary.walk.cold[1] = callee[1];
    for (size_t i = 0; i < ARRAY_LENGTH(layouts); i++) {
        if (binary.major != 3 || binary.minor != layouts[i].minor || !binary.walk.cold[0] ||
            !find_variable(file, &binary))
            continue;
        binary.walk.frame_bytes = layouts[i].frame_bytes;
        binary.walk.first_line_shift = layouts[i].first_line_shift;
        binary.walk.code_first_line = 88;
        binary.code_lines = layouts[i].lines;
        binary.code_line_count = (uint16_t)(layouts[i].lines + 16);
        binary.code_line_index = (uint16_t)(layouts[i].lines + 24);
    }
    *ret_binary = binary;
    return true;
}

enum ruby_attach ruby_attach(const struct ruby_binary *binary, uint64_t bias,
                             const struct runtime_memory *memory, struct ruby_binary *ret_ruby,
                             const char **ret_reason)
{
    struct ruby_binary ruby = *binary;
    if (!ruby.walk.frame_bytes) {
        *ret_reason = "this version of Ruby is not supported (3.1 to 3.4 are)";
        return RUBY_REFUSED;
    }
    for (unsigned i = 0; i < 2; i++) {
        ruby.walk.evaluate[i] += bias;
        ruby.walk.cold[i] += bias;
    }
    if (ruby.module_slot) {
        uint64_t module = runtime_read_word(memory, ruby.module_slot + bias);
        if (!module || module > MODULES_MAX) {
            *ret_reason = "the dynamic linker has not placed Ruby's thread-local variables";
            return RUBY_NOT_YET;
        }
        ruby.walk.tls_module = (unsigned)module;
    }
    *ret_ruby = ruby;
    return RUBY_ATTACHED;
}
