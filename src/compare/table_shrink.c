// SPDX-License-Identifier: Apache-2.0
// Tables of more functions than fit into the memory: the windows of the smallest ones are added up.
// A function is chosen by what both sides have of it together, which says nothing about whether it
// changed.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "compare/table_parts.h"

struct size {
    uint32_t function;
    uint32_t cells;
    double value; /* of both sides */
};

static int by_value(const void *a, const void *b)
{
    const struct size *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->function < y->function ? -1 : x->function > y->function;
}

/* Of the functions that aren't coarse, the largest first. */
static struct size *sizes(const struct compare_table *table, size_t *ret_count)
{
    struct size *list = memory_alloc((table->function_count + 1) * sizeof(*list));
    size_t count = 0;
    for (size_t i = 0; i < table->function_count; i++) {
        const struct compare_function *function = &table->functions[i];
        struct size size = {.function = (uint32_t)i,
                            .cells = (uint32_t)(function[1].first_cell - function->first_cell)};
        for (size_t k = function->first_cell; k < function[1].first_cell; k++)
            size.value += fabs(table->cells[k].total);
        if (!function->coarse)
            list[count++] = size;
    }
    if (count)
        qsort(list, count, sizeof(*list), by_value);
    *ret_count = count;
    return list;
}

/* Cells are in order, so that those of one function and side become neighbours. */
static void merge_cells(struct table_builder *builder)
{
    struct compare_table *table = &builder->table;
    size_t kept = 0;
    for (size_t i = 0; i < table->cell_count; i++) {
        struct compare_cell cell = table->cells[i], *last = kept ? &table->cells[kept - 1] : NULL;
        cell.replicate = table_cell_replicate(builder, cell.function, cell.replicate);
        if (last && last->function == cell.function && last->replicate == cell.replicate) {
            last->self += cell.self;
            last->total += cell.total;
        } else {
            table->cells[kept++] = cell;
        }
    }
    table->cell_count = kept;
}

void table_shrink(struct table_builder *builder, size_t cells_max)
{
    struct compare_table *table = &builder->table;
    size_t count, cells = table->cell_count;
    if (cells <= cells_max)
        return;
    _cleanup_free_ struct size *list = sizes(table, &count);
    /* Down to two thirds, so that it isn't done again for each window that follows. */
    size_t wanted = cells_max / 3 * 2;
    while (count && cells > wanted) {
        const struct size *smallest = &list[--count];
        table->functions[smallest->function].coarse = true;
        table->coarse_count++;
        cells -= MIN(smallest->cells, cells);
    }
    merge_cells(builder);
}
