// SPDX-License-Identifier: Apache-2.0
// The kernel's own list of its functions: see kernel.h.

#include "symbol/kernel.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/memory.h"
#include "profile/names/demangle.h"
#include "symbol/table.h"

#define PAGE_BYTES 4096ull

struct kernel_function {
    uint64_t start, end;
    const char *name;
    const char *readable; /* as in struct function_symbol */
    uint32_t module;      /* 0 is the kernel itself */
    uint8_t rank;
};

/* Data ends functions too, but isn't kept. */
#define RANK_DATA 3

struct kernel_symbols {
    struct kernel_function *functions; /* by start, one per address */
    size_t count, capacity;
    const char **modules; /* [0] is NULL */
    size_t module_count, module_capacity;
    struct arena arena;
};

/* ---- reading ---- */

static uint8_t rank_of(char type)
{
    switch (type) {
    case 'T':
        return 0;
    case 'W':
    case 'w':
        return 1;
    case 't':
        return 2;
    default:
        return RANK_DATA;
    }
}

/* A module's symbols stand together, so the last one seen is nearly always it. */
static uint32_t module_number(struct kernel_symbols *symbols, const char *name, size_t length)
{
    const char *last = symbols->modules[symbols->module_count - 1];
    if (last && strlen(last) == length && !memcmp(last, name, length))
        return (uint32_t)symbols->module_count - 1;
    array_reserve(symbols->modules, symbols->module_capacity, symbols->module_count + 1);
    symbols->modules[symbols->module_count] = arena_strndup(&symbols->arena, name, length);
    return (uint32_t)symbols->module_count++;
}

static bool parse_hex(const char **at, const char *end, uint64_t *ret_value)
{
    uint64_t value = 0;
    const char *start = *at;
    for (; *at < end && **at != ' '; ++*at) {
        int digit = hex_digit(**at);
        if (digit < 0)
            return false;
        value = value << 4 | (unsigned)digit;
    }
    *ret_value = value;
    return *at > start && *at - start <= 16;
}

/* "ffffffff81000000 T name", and for a module's "\t[module]". Other lines are passed over. */
static void parse_line(struct kernel_symbols *symbols, const char *line, const char *end)
{
    uint64_t address;
    if (!parse_hex(&line, end, &address) || end - line < 4 || line[2] != ' ')
        return;
    char type = line[1];
    line += 3;
    const char *tab = memchr(line, '\t', (size_t)(end - line));
    size_t length = (size_t)((tab ? tab : end) - line);
    /* Absolute symbols are not addresses of memory. */
    if (type == 'A' || type == 'a' || !length || length > SYMBOL_NAME_MAX)
        return;
    uint32_t module = 0;
    if (tab && end - tab > 3 && tab[1] == '[' && end[-1] == ']')
        module = module_number(symbols, tab + 2, (size_t)(end - tab) - 3);
    uint8_t rank = rank_of(type);
    array_reserve(symbols->functions, symbols->capacity, symbols->count + 1);
    symbols->functions[symbols->count++] = (struct kernel_function){
        .start = address,
        .name = rank == RANK_DATA
                    ? NULL
                    : kernel_function_name(arena_strndup(&symbols->arena, line, length)),
        .module = module,
        .rank = rank,
    };
}

static int compare_functions(const void *left, const void *right)
{
    const struct kernel_function *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return (int)a->rank - (int)b->rank;
}

static void choose_aliases(struct kernel_symbols *symbols)
{
    struct kernel_function *functions = symbols->functions;
    size_t kept = 0;
    for (size_t i = 0; i < symbols->count; i++) {
        struct kernel_function *last = kept ? &functions[kept - 1] : NULL;
        if (!last || last->start != functions[i].start)
            functions[kept++] = functions[i];
        else if (last->name && functions[i].name && last->rank == functions[i].rank &&
                 symbol_name_better(functions[i].name, last->name))
            *last = functions[i];
    }
    symbols->count = kept;
}

/* Each function's end, and then only functions. */
static void set_ends(struct kernel_symbols *symbols)
{
    size_t kept = 0;
    for (size_t i = 0; i < symbols->count; i++) {
        struct kernel_function function = symbols->functions[i];
        uint64_t page_end = (function.start | (PAGE_BYTES - 1)) + 1;
        uint64_t far =
            page_end > UINT64_MAX - PAGE_BYTES || !page_end ? UINT64_MAX : page_end + PAGE_BYTES;
        const struct kernel_function *next =
            i + 1 < symbols->count ? &symbols->functions[i + 1] : NULL;
        function.end = !next                             ? far
                       : next->module != function.module ? MIN(next->start, far)
                                                         : next->start;
        if (function.rank != RANK_DATA)
            symbols->functions[kept++] = function;
    }
    symbols->count = kept;
}

static bool all_hidden(const struct kernel_symbols *symbols)
{
    for (size_t i = 0; i < symbols->count; i++)
        if (symbols->functions[i].rank != RANK_DATA && symbols->functions[i].start)
            return false;
    return true;
}

int kernel_symbols_parse(const char *text, size_t length, struct kernel_symbols **ret_symbols,
                         struct error *error)
{
    struct kernel_symbols *symbols = memory_zalloc(1, sizeof(*symbols));
    array_reserve(symbols->modules, symbols->module_capacity, 1);
    symbols->modules[symbols->module_count++] = NULL;
    for (const char *at = text, *end = text + length; at < end;) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        line_end = line_end ? line_end : end;
        parse_line(symbols, at, line_end);
        at = line_end + (line_end < end);
    }
    if (!symbols->count) {
        kernel_symbols_free(symbols);
        return error_set(error, -ENODATA, "The kernel's symbol list is empty.");
    }
    if (all_hidden(symbols)) {
        kernel_symbols_free(symbols);
        return error_set(error, -EPERM,
                         "The kernel hides the addresses of its functions from this user: run as "
                         "root, with kernel.kptr_restrict set to 0 or 1.");
    }
    qsort(symbols->functions, symbols->count, sizeof(*symbols->functions), compare_functions);
    choose_aliases(symbols);
    set_ends(symbols);
    *ret_symbols = symbols;
    return 0;
}

int kernel_symbols_load(const char *path, struct kernel_symbols **ret_symbols, struct error *error)
{
    _cleanup_buffer_ struct buffer text = {0};
    int r = file_read(path, KERNEL_TEXT_MAX, &text, error);
    return r < 0 ? r : kernel_symbols_parse(buffer_text(&text), text.length, ret_symbols, error);
}

void kernel_symbols_free(struct kernel_symbols *symbols)
{
    if (!symbols)
        return;
    free(symbols->functions);
    free(symbols->modules);
    arena_release(&symbols->arena);
    free(symbols);
}

/* ---- finding ---- */

bool kernel_symbols_find(struct kernel_symbols *symbols, uint64_t address,
                         struct symbol *ret_symbol)
{
    size_t low = 0, high = symbols->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (symbols->functions[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || address >= symbols->functions[low - 1].end)
        return false;
    struct kernel_function *function = &symbols->functions[low - 1];
    if (!function->readable) {
        _cleanup_buffer_ struct buffer text = {0};
        function->readable = demangle(function->name, &text)
                                 ? arena_strndup(&symbols->arena, text.data, text.length)
                                 : function->name;
    }
    *ret_symbol = (struct symbol){
        .name = function->readable,
        .system_name = function->readable == function->name ? NULL : function->name,
        .module = symbols->modules[function->module],
        .start = function->start,
        .size_bytes = function->end - function->start,
        .distance = address - function->start,
    };
    return true;
}

size_t kernel_symbols_count(const struct kernel_symbols *symbols)
{
    return symbols->count;
}
