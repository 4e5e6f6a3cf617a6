/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up fleet that pushes profiles into a store, for bench-store. Everything follows from a
 * seed. */
#pragma once

#include "store/store.h"

#define SECOND 1000000000ll
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)
#define FLEET_BEGIN_NS (20000 * DAY)
#define FLEET_TYPE "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define FLEET_STACKS 5000 /* of a service */

struct fleet {
    unsigned services, hosts, hours, window_s, rows; /* rows of one window */
    double new_share;                                /* of rows that have a stack of their own */
    bool in_turn; /* stacks come one after the other, so that all have been there */
};
extern struct fleet fleet;

/* The clock of the store under test. */
extern _Atomic int64_t fleet_now_ns;

double cpu_seconds(void); /* of all threads */
uint32_t next_random(uint64_t *seed);

void fleet_make(void);
void fleet_release(void);

/* All series' windows of some time from fleet_now_ns on; gives CPU seconds of the store, without
 * making pushes up, and adds to rows and pushes. */
double fleet_send(struct store *store, const char *tenant, unsigned windows, uint64_t *rows,
                  uint64_t *pushes);

/* A day of many series with a window each: for queries about labels. */
void fleet_send_series(struct store *store, const char *tenant, unsigned services, unsigned series);
