/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash map of this code base: an open-addressing table from a hash to 32-bit ids. The things
 * themselves live in the caller's arrays; the caller compares candidates, so there are no
 * callbacks and no copies of keys.
 *
 *     struct id_probe probe = id_probe_start(hash);
 *     uint32_t id;
 *     while ((id = id_table_next(table, &probe)) != ID_NONE)
 *         if (same(things[id], key))
 *             return id;
 *     id_table_insert(table, hash, new_id);
 *
 * Ids are at most ID_MAX. Deletion is not supported: nothing that is interned goes away.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ID_NONE UINT32_MAX
#define ID_MAX (UINT32_MAX - 2)

struct id_table {
    uint64_t *slots; /* tag << 32 | id + 1; 0 is empty */
    size_t mask;     /* slots - 1; 0 before the first insert */
    size_t used;
};

/* The tag is the high half of the hash. It also gives the position, so that growing needs no hash
 * from the caller: 32 bits are plenty for both. */
struct id_probe {
    uint32_t tag;
    uint32_t step;
};

void id_table_release(struct id_table *table);
void id_table_clear(struct id_table *table);

/* Room for `count` ids without growing again. */
void id_table_reserve(struct id_table *table, size_t count);
void id_table_insert(struct id_table *table, uint64_t hash, uint32_t id);

static inline struct id_probe id_probe_start(uint64_t hash)
{
    return (struct id_probe){.tag = (uint32_t)(hash >> 32)};
}

/* The next id whose hash agrees in its high half, or ID_NONE. */
static inline uint32_t id_table_next(const struct id_table *table, struct id_probe *probe)
{
    if (!table->slots)
        return ID_NONE;
    for (;;) {
        uint64_t slot = table->slots[((size_t)probe->tag + probe->step) & table->mask];
        if (!slot)
            return ID_NONE;
        probe->step++;
        if (slot >> 32 == probe->tag)
            return (uint32_t)slot - 1;
    }
}

/* A good mix of one word, for keys that are already small numbers. */
static inline uint64_t hash_word(uint64_t word)
{
    word ^= word >> 32;
    word *= 0xd6e8feb86659fd93ull;
    word ^= word >> 32;
    word *= 0xd6e8feb86659fd93ull;
    word ^= word >> 32;
    return word;
}
