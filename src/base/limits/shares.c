// SPDX-License-Identifier: Apache-2.0
// A limited amount, shared fairly: see shares.h.

#include "base/limits/shares.h"

#include <stdlib.h>

#include "base/memory.h"

void shares_init(struct shares *shares, uint64_t total)
{
    *shares = (struct shares){.total = total};
    array_reserve(shares->list, shares->capacity, 1);
    shares->list[shares->count++] = (struct share){.owner = UINT32_MAX};
}

void shares_release(struct shares *shares)
{
    free(shares->list);
    id_table_release(&shares->index);
    *shares = (struct shares){0};
}

static struct share *find(const struct shares *shares, uint32_t owner)
{
    struct id_probe probe = id_probe_start(hash_word(owner));
    uint32_t id;
    while ((id = id_table_next(&shares->index, &probe)) != ID_NONE)
        if (shares->list[id].owner == owner)
            return &shares->list[id];
    return NULL;
}

static struct share *get(struct shares *shares, uint32_t owner)
{
    struct share *share = find(shares, owner);
    if (share)
        return share;
    if (shares->count > SHARES_OWNERS_MAX)
        return &shares->list[0];
    array_reserve(shares->list, shares->capacity, shares->count + 1);
    id_table_insert(&shares->index, hash_word(owner), (uint32_t)shares->count);
    share = &shares->list[shares->count++];
    *share = (struct share){.owner = owner};
    return share;
}

static uint64_t left_of(const struct shares *shares, uint64_t held)
{
    uint64_t all = shares->held + held; /* what it takes counts twice: as held, and as not free */
    return all >= shares->total ? 0 : (shares->total - all) / 2;
}

uint64_t shares_left(const struct shares *shares, uint32_t owner)
{
    const struct share *share = find(shares, owner);
    return left_of(shares, share ? share->held : 0);
}

bool shares_take(struct shares *shares, uint32_t owner, uint64_t amount)
{
    struct share *share = get(shares, owner);
    if (amount > left_of(shares, share->held)) {
        share->refused++;
        return false;
    }
    share->held += amount;
    shares->held += amount;
    return true;
}

uint64_t shares_charge(struct shares *shares, uint32_t owner, uint64_t amount)
{
    struct share *share = get(shares, owner);
    amount = MIN(amount, left_of(shares, share->held));
    share->held += amount;
    shares->held += amount;
    return amount;
}

void shares_refuse(struct shares *shares, uint32_t owner)
{
    get(shares, owner)->refused++;
}

void shares_clear(struct shares *shares)
{
    for (size_t i = 0; i < shares->count; i++)
        shares->list[i].held = 0;
    shares->list[0].refused = shares->held = 0;
    shares_tidy(shares);
}

void shares_give(struct shares *shares, uint32_t owner, uint64_t amount)
{
    struct share *share = get(shares, owner);
    amount = MIN(amount, share->held);
    share->held -= amount;
    shares->held -= amount;
}

void shares_tidy(struct shares *shares)
{
    size_t kept = 1;
    for (size_t i = 1; i < shares->count; i++)
        if (shares->list[i].held)
            shares->list[kept++] = shares->list[i];
    shares->count = kept;
    id_table_clear(&shares->index);
    for (size_t i = 1; i < kept; i++)
        id_table_insert(&shares->index, hash_word(shares->list[i].owner), (uint32_t)i);
}
