/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limited amount that many owners draw on, none of whom is trusted. An owner may hold as much as
 * is still free: one that wants all gets half, n such owners get an (n + 1)th each, and whoever
 * comes next finds that much. Pure logic; one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idtable.h"

#define SHARES_OWNERS_MAX 4096 /* beyond them, all others are one */

struct share {
    uint32_t owner;
    uint64_t held;
    uint64_t refused; /* times that it wanted more than it may have */
};

struct shares {
    uint64_t total, held;
    struct share *list; /* [0]: all owners beyond the limit */
    size_t count, capacity;
    struct id_table index;
};

void shares_init(struct shares *shares, uint64_t total);
void shares_release(struct shares *shares);

/* False, and counted, when the owner would hold more than is free then. */
bool shares_take(struct shares *shares, uint32_t owner, uint64_t amount);
/* Takes as much of the amount as the owner may have, and returns that: it was used before anybody
 * could ask. */
uint64_t shares_charge(struct shares *shares, uint32_t owner, uint64_t amount);
/* Counts that the owner wanted more than it may have by other rules. */
void shares_refuse(struct shares *shares, uint32_t owner);
void shares_give(struct shares *shares, uint32_t owner, uint64_t amount);

/* The amount that the owner can still take. */
uint64_t shares_left(const struct shares *shares, uint32_t owner);

/* All begin anew: nobody holds anything, and what was refused is forgotten. */
void shares_clear(struct shares *shares);
/* Forgets owners that hold nothing, and what was refused to them. */
void shares_tidy(struct shares *shares);
