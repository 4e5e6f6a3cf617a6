/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of a merge that keeps steps of time, and values of a label, apart (struct store_apart):
 * they are collected by node and slot, and added up whenever they have become many.
 */
#pragma once

#include <pthread.h>

#include "store/store.h"

/* Slots: a value of the label, and a step. Shared by the threads of a merge. */
struct apart_slots {
    const struct store_apart *apart;
    int64_t from_ns;
    struct profile *profile; /* of the result; used by whose turn it is */
    pthread_mutex_t lock;    /* of the values: only grows */
    char **values;           /* of the label, by group; NULL: without it */
    size_t count, capacity;
    size_t steps;
    uint32_t last_group, last_set; /* the label set of the group that was put last */
    bool has_last;
};

struct apart_cell {
    uint32_t node, slot;
    int64_t value;
};

/* Of one thread. */
struct apart_cells {
    struct apart_cell *list;
    size_t count, capacity;
    size_t sorted; /* how many there were after they were added up last */
};

int apart_slots_init(struct apart_slots *slots, const struct store_apart *apart,
                     const struct store_selection *selection, struct profile *profile,
                     struct error *error);
void apart_slots_release(struct apart_slots *slots);

/* The group of a series; -E2BIG when there are too many. */
int apart_group(struct apart_slots *slots, const struct labels *labels, uint32_t *ret_group,
                struct error *error);

/* The step that a window begins in. */
uint32_t apart_step(const struct apart_slots *slots, int64_t start_ns);

void apart_cells_release(struct apart_cells *cells);
void apart_cells_clear(struct apart_cells *cells);
void apart_cells_add(struct apart_cells *cells, const struct apart_slots *slots, uint32_t group,
                     uint32_t step, uint32_t node, int64_t value);

/* Adds them up: by slot, then by node. */
void apart_cells_settle(struct apart_cells *cells);

/* Adds a value to the result, which is the caller's to use. */
void apart_put(struct apart_slots *slots, uint32_t slot, uint32_t node, unsigned type,
               int64_t value);
