// SPDX-License-Identifier: Apache-2.0
// From symbols in any order, with aliases, missing sizes and overlaps, to one function for each
// address: see table.h.

#include "symbol/table.h"

#include "base/memory.h"

/* ---- stretches of code ---- */

static int compare_code(const void *left, const void *right)
{
    const struct symbol_code *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

void symbol_code_sort(struct symbol_code *code, size_t count)
{
    if (count)
        qsort(code, count, sizeof(*code), compare_code);
}

const struct symbol_code *symbol_code_find(const struct symbol_code *code, size_t count,
                                           uint64_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (code[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && address < code[low - 1].end ? &code[low - 1] : NULL;
}

/* ---- aliases ---- */

/* Long enough to choose by, and short enough to do so a million times. */
#define COMPARED_BYTES 256

static size_t compared_length(const char *name)
{
    size_t length = strnlen(name, COMPARED_BYTES);
    const char *version = length ? memchr(name + 1, '@', length - 1) : NULL;
    return version ? (size_t)(version - name) : length;
}

bool symbol_name_better(const char *name, const char *other)
{
    size_t underscores = strspn(name, "_"), other_underscores = strspn(other, "_");
    /* C++ and Rust names begin with one. */
    if (underscores == 1 && (name[1] == 'Z' || name[1] == 'R'))
        underscores = 0;
    if (other_underscores == 1 && (other[1] == 'Z' || other[1] == 'R'))
        other_underscores = 0;
    if (underscores != other_underscores)
        return underscores < other_underscores;
    size_t length = compared_length(name), other_length = compared_length(other);
    if (length != other_length)
        return length < other_length;
    return strncmp(name, other, length) < 0;
}

static int compare_functions(const void *left, const void *right)
{
    const struct function_symbol *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return (int)a->rank - (int)b->rank;
}

/* One per address. The size is the largest that any alias has: assembly often sizes only one. */
static void choose_aliases(struct symbol_table *table)
{
    struct function_symbol *functions = table->functions;
    size_t kept = 0;
    for (size_t i = 0; i < table->function_count; i++) {
        struct function_symbol *last = kept ? &functions[kept - 1] : NULL;
        if (!last || last->start != functions[i].start) {
            functions[kept++] = functions[i];
            continue;
        }
        uint64_t end = MAX(last->end, functions[i].end);
        if (functions[i].rank == last->rank && symbol_name_better(functions[i].name, last->name))
            last->name = functions[i].name;
        last->end = end;
    }
    table->function_count = kept;
}

/* A symbol without a size goes on to the next one, within its section. */
static void set_ends(struct symbol_table *table)
{
    for (size_t i = 0; i < table->function_count; i++) {
        struct function_symbol *function = &table->functions[i];
        const struct symbol_code *code =
            symbol_code_find(table->code, table->code_count, function->start);
        uint64_t limit = code ? code->end : function->start + 1;
        function->guessed_end = function->end == function->start;
        if (function->guessed_end && i + 1 < table->function_count)
            limit = MIN(limit, table->functions[i + 1].start);
        function->end = function->guessed_end ? limit : MIN(function->end, limit);
    }
}

/* ---- overlaps ---- */

static void add_stretch(struct symbol_table *table, uint64_t start, uint32_t function)
{
    struct symbol_stretch stretch = {.start = start, .function = function};
    if (table->stretch_count && table->stretches[table->stretch_count - 1].start == start)
        table->stretches[table->stretch_count - 1] = stretch;
    else
        table->stretches[table->stretch_count++] = stretch;
}

struct open_functions {
    uint32_t *list; /* the one that began last at the end */
    size_t count;
};

/* Functions that end at or before an address make room for those they lie in. */
static void close_until(struct symbol_table *table, struct open_functions *open, uint64_t address)
{
    while (open->count && table->functions[open->list[open->count - 1]].end <= address) {
        uint64_t end = table->functions[open->list[--open->count]].end;
        while (open->count && table->functions[open->list[open->count - 1]].end <= end)
            open->count--;
        add_stretch(table, end, open->count ? open->list[open->count - 1] : SYMBOL_NONE);
    }
}

/* Where functions overlap, the one that begins last has the code. A symbol without a size inside a
 * function is a label of it, not a function. */
static void make_stretches(struct symbol_table *table)
{
    /* Each function begins one and ends at most one. */
    table->stretches = memory_try_zalloc(table->function_count * 2 + 1, sizeof(*table->stretches));
    _cleanup_free_ uint32_t *list = memory_try_zalloc(table->function_count + 1, sizeof(*list));
    if (!table->stretches || !list)
        return; /* no names of this file then */
    struct open_functions open = {.list = list};
    for (size_t i = 0; i < table->function_count; i++) {
        const struct function_symbol *function = &table->functions[i];
        close_until(table, &open, function->start);
        if (function->guessed_end && open.count)
            continue;
        open.list[open.count++] = (uint32_t)i;
        add_stretch(table, function->start, (uint32_t)i);
    }
    close_until(table, &open, UINT64_MAX);
}

void symbol_table_order(struct symbol_table *table)
{
    if (!table->function_count)
        return;
    qsort(table->functions, table->function_count, sizeof(*table->functions), compare_functions);
    choose_aliases(table);
    set_ends(table);
    struct function_symbol *fitting =
        memory_try_resize(table->functions, table->function_count, sizeof(*table->functions));
    if (fitting) { /* otherwise it stays larger than it has to be */
        table->functions = fitting;
        table->function_capacity = table->function_count;
    }
    make_stretches(table);
}
