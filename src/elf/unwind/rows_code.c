// SPDX-License-Identifier: Apache-2.0
// Functions without call frame information: see rows_code.h.

#include "elf/unwind/rows_code.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "arch/x86_64/code.h"
#include "base/allowance.h"
#include "base/memory.h"

#define SYMBOLS_BYTES_MAX (64u << 20)
#define CODE_BYTES_MAX (16u << 20) /* that are analysed of one file */

struct function {
    uint64_t start, end; /* end == start: not known */
};

struct functions {
    struct function *list;
    size_t count, capacity;
    bool with_v8;
};

static int by_start(const void *left, const void *right)
{
    const struct function *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->end > b->end ? -1 : a->end < b->end;
}

/* Hand-written assembly may lack a function's type and size. */
static bool is_function(const Elf64_Sym *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    return symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE &&
           (type == STT_FUNC || type == STT_GNU_IFUNC ||
            (type == STT_NOTYPE && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL));
}

/* The rare paths of a function, which compilers put elsewhere: these begin in the middle of it. */
static bool is_part(const struct buffer *names, uint32_t name)
{
    return name < names->length &&
           memmem(names->data + name, strnlen(names->data + name, names->length - name), ".cold",
                  strlen(".cold"));
}

/* V8's code in its own binary keeps frame pointers, and much of it is entered by a jump, with no
 * return address on top of the stack: its code tells nothing, and its frame pointer all. */
#define V8_CODE "v88internal7Isolate18embedded_blob_code"
static bool is_v8_builtin(const struct buffer *names, uint32_t name)
{
    static const char prefix[] = "Builtins_";
    return names->length > sizeof(prefix) && name < names->length - sizeof(prefix) &&
           !memcmp(names->data + name, prefix, sizeof(prefix) - 1);
}

/* False if there is not enough memory. */
static bool list_symbols(struct elf_file *file, const char *name, const char *strings,
                         const struct code_rows *rows, struct functions *functions)
{
    struct elf_section section, string_section;
    _cleanup_buffer_ struct buffer content = {0}, names = {0};
    if (!elf_find_section(file, name, &section) || section.type == SHT_NOBITS ||
        !elf_find_section(file, strings, &string_section))
        return true;
    if (!memory_allows(section.size_bytes + string_section.size_bytes))
        return true;
    int r = elf_read_section(file, &section, SYMBOLS_BYTES_MAX, &content, NULL);
    if (!r)
        r = elf_read_section(file, &string_section, SYMBOLS_BYTES_MAX, &names, NULL);
    if (r < 0 || !names.length)
        return r != -ENOMEM;
    functions->with_v8 |= memmem(names.data, names.length, V8_CODE, strlen(V8_CODE)) != NULL;
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= content.length; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        memcpy(&symbol, content.data + at, sizeof(symbol));
        uint64_t end;
        if (!is_function(&symbol) || is_part(&names, symbol.st_name) ||
            is_v8_builtin(&names, symbol.st_name) ||
            __builtin_add_overflow(symbol.st_value, symbol.st_size, &end) ||
            !rows->free_bytes(rows->context, symbol.st_value, symbol.st_value + 1))
            continue;
        if (!array_try_reserve(functions->list, functions->capacity, functions->count + 1))
            return false;
        functions->list[functions->count++] = (struct function){symbol.st_value, end};
    }
    memory_allow_again(content.capacity);
    memory_allow_again(names.capacity);
    return true;
}

struct putting {
    const struct code_rows *rows;
    uint64_t start;
};

static void put(void *context, uint32_t offset, uint32_t length, const struct unwind_rule *rule)
{
    const struct putting *putting = context;
    putting->rows->put(putting->rows->context, putting->start + offset, length, rule);
}

int code_rows_compile(struct elf_file *file, const struct code_rows *rows)
{
    struct functions functions = {0};
    uint64_t left = CODE_BYTES_MAX;
    uint8_t *code = memory_try_alloc(X86_64_FUNCTION_BYTES_MAX);
    bool listed = list_symbols(file, ".symtab", ".strtab", rows, &functions);
    if (listed && !functions.count)
        listed = list_symbols(file, ".dynsym", ".dynstr", rows, &functions);
    if (!code || !listed) {
        free(code);
        free(functions.list);
        return -ENOMEM;
    }
    if (functions.count)
        qsort(functions.list, functions.count, sizeof(*functions.list), by_start);
    for (size_t i = 0; i < functions.count; i++) {
        const struct function *function = &functions.list[i];
        if (i && function[-1].start == function->start)
            continue;
        /* Without a size, it is a label: the code is looked at as what has no symbols is. */
        if (function->end == function->start && function->start != file->entry)
            continue;
        uint64_t end = function->end > function->start
                           ? function->end
                           : function->start + X86_64_FUNCTION_BYTES_MAX;
        for (size_t k = i + 1; k < functions.count && functions.list[k].start < end; k++)
            if (functions.list[k].start > function->start)
                end = functions.list[k].start;
        uint64_t bytes = rows->free_bytes(rows->context, function->start, end);
        if (!bytes || bytes > X86_64_FUNCTION_BYTES_MAX || bytes > left ||
            elf_read_address(file, function->start, code, bytes) < 0)
            continue;
        left -= bytes;
        struct putting putting = {rows, function->start};
        if (!x86_64_code_rules(code, bytes, function->start == file->entry, put, &putting))
            put(&putting, 0, (uint32_t)bytes,
                &(struct unwind_rule){.cfa = (uint8_t)x86_64_code_unknown(code, bytes)});
    }
    free(code);
    free(functions.list);
    return !functions.with_v8;
}
