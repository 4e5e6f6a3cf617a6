/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table from 128-bit digests to 32-bit ids, for keys that are long and looked up often: whole
 * stacks. 96 bits of a seeded digest stand for the key, so a lookup is one cache line and compares
 * nothing else; with ten million keys the chance that any two are taken for one is 10^-15.
 *
 * Nothing is ever deleted. Ids are at most ID_MAX.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/idtable.h"

struct digest {
    uint64_t low, high;
};

struct digest_slot {
    uint64_t low;
    uint32_t high;    /* its upper half */
    uint32_t id_next; /* id + 1; 0 is empty */
};

struct digest_table {
    struct digest_slot *slots;
    size_t mask; /* slots - 1; 0 before the first insert */
    size_t used;
};

void digest_table_release(struct digest_table *table);
/* Room for `count` ids in all without growing again. */
void digest_table_reserve(struct digest_table *table, size_t count);
void digest_table_insert(struct digest_table *table, struct digest digest, uint32_t id);

/* Bytes that the table takes. */
static inline size_t digest_table_bytes(const struct digest_table *table)
{
    return table->slots ? (table->mask + 1) * sizeof(*table->slots) : 0;
}

/* The id, or ID_NONE. */
static inline uint32_t digest_table_find(const struct digest_table *table, struct digest digest)
{
    if (!table->slots)
        return ID_NONE;
    for (size_t at = (size_t)digest.low;; at++) {
        const struct digest_slot *slot = &table->slots[at & table->mask];
        if (!slot->id_next)
            return ID_NONE;
        if (slot->low == digest.low && slot->high == (uint32_t)(digest.high >> 32))
            return slot->id_next - 1;
    }
}
