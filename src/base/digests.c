// SPDX-License-Identifier: Apache-2.0
// Digest table: open addressing, linear probing, at most three quarters full.

#include "base/digests.h"

#include "base/memory.h"

#define FIRST_SLOTS 64

void digest_table_release(struct digest_table *table)
{
    free(table->slots);
    *table = (struct digest_table){0};
}

static void place(struct digest_table *table, struct digest_slot slot)
{
    size_t at = (size_t)slot.low;
    while (table->slots[at & table->mask].id_next)
        at++;
    table->slots[at & table->mask] = slot;
}

static void resize(struct digest_table *table, size_t slots)
{
    struct digest_table grown = {
        .slots = memory_zalloc_scattered(slots, sizeof(*grown.slots)),
        .mask = slots - 1,
        .used = table->used,
    };
    for (size_t i = 0; table->slots && i <= table->mask; i++)
        if (table->slots[i].id_next)
            place(&grown, table->slots[i]);
    free(table->slots);
    *table = grown;
}

void digest_table_reserve(struct digest_table *table, size_t count)
{
    size_t slots = FIRST_SLOTS;
    while (slots / 4 * 3 < count)
        slots *= 2;
    if (!table->slots || slots > table->mask + 1)
        resize(table, slots);
}

void digest_table_insert(struct digest_table *table, struct digest digest, uint32_t id)
{
    if (!table->slots || table->used + 1 > (table->mask + 1) / 4 * 3)
        resize(table, table->slots ? (table->mask + 1) * 2 : FIRST_SLOTS);
    place(table, (struct digest_slot){
                     .low = digest.low, .high = (uint32_t)(digest.high >> 32), .id_next = id + 1});
    table->used++;
}
