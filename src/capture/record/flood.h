/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether events of processes come faster than they are worth: any user can make a million of them
 * in a second, by starting processes, renaming threads or mapping code. Then nobody listens for a
 * while, and what is needed is looked up in /proc. Pure logic: it reads no clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct flood {
    unsigned limit;   /* events in a second; 0: none */
    double credit;    /* events that may come now */
    int64_t now_ns;   /* when that was */
    bool deaf;        /* nobody listens */
    int64_t until_ns; /* and until when */
    int64_t heard_ns; /* since when somebody does */
    int64_t wait_ns;  /* how long nobody did the last time */
    uint64_t times;
};

/* With what may come in a second. */
void flood_init(struct flood *flood, unsigned limit, int64_t now_ns);

/* So many have come. True when that is too many: nobody listens from now on. */
bool flood_note(struct flood *flood, uint64_t count, int64_t now_ns);

/* True when it is time to listen again, which somebody does from now on. */
bool flood_over(struct flood *flood, int64_t now_ns);
