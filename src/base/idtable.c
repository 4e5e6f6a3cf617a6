// SPDX-License-Identifier: Apache-2.0
// Open-addressing id table, linear probing, at most three quarters full.

#include "base/idtable.h"

#include <string.h>

#include "base/memory.h"

void id_table_release(struct id_table *table)
{
    free(table->slots);
    *table = (struct id_table){0};
}

void id_table_clear(struct id_table *table)
{
    if (table->slots)
        memset(table->slots, 0, (table->mask + 1) * sizeof(*table->slots));
    table->used = 0;
}

static void place(struct id_table *table, uint64_t slot)
{
    size_t position = slot >> 32;
    while (table->slots[position & table->mask])
        position++;
    table->slots[position & table->mask] = slot;
}

void id_table_reserve(struct id_table *table, size_t count)
{
    size_t slots = 64;
    while (slots / 4 * 3 < count)
        slots *= 2;
    if (table->slots && slots <= table->mask + 1)
        return;
    struct id_table grown = {
        .slots = memory_zalloc_scattered(slots, sizeof(*grown.slots)),
        .mask = slots - 1,
        .used = table->used,
    };
    for (size_t i = 0; table->slots && i <= table->mask; i++)
        if (table->slots[i])
            place(&grown, table->slots[i]);
    free(table->slots);
    *table = grown;
}

void id_table_insert(struct id_table *table, uint64_t hash, uint32_t id)
{
    if (!table->slots || table->used + 1 > (table->mask + 1) / 4 * 3)
        id_table_reserve(table, table->used + 1);
    place(table, (hash >> 32) << 32 | ((uint64_t)id + 1));
    table->used++;
}
