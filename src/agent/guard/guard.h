/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget guard: given once a second what the agent has cost so far, it says how much may be
 * sampled. Pure logic: it reads no clock and changes nothing but itself.
 *
 * It takes away, in this order: the collectors, most expensive first, except the CPU clock; half of
 * the rate, repeatedly, down to one sample a second; all processes but the busiest; at last
 * everything, for a while. Each step comes back in the reverse order, one at a time, after the cost
 * was low enough for long enough; after another overrun the wait doubles.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GUARD_TYPES_MAX 8
#define GUARD_HISTORY 64 /* seconds that are remembered */

struct guard_limits {
    double cpu_share;        /* of all CPUs of the host together */
    uint64_t resident_bytes; /* of memory */
    uint64_t upload_bytes;   /* in a minute */
    int64_t patience_ns;     /* that cost is low before something comes back */
};

/* Total cost since the start. */
struct guard_cost {
    int64_t cpu_ns;          /* of the process and of its BPF programs */
    uint64_t resident_bytes; /* now */
    uint64_t upload_bytes;
    int64_t type_ns[GUARD_TYPES_MAX]; /* of that CPU time, what each collector took */
};

enum guard_reason { GUARD_FINE, GUARD_CPU, GUARD_MEMORY, GUARD_UPLOAD };

/* The permitted sampling. */
struct guard_state {
    unsigned divisor;   /* of all rates */
    unsigned types_off; /* a bit for each collector */
    bool busiest_only;
    bool rest; /* nothing at all */
};

struct guard {
    struct guard_limits limits;
    unsigned cpus;
    unsigned rate_hz;    /* of the type that has the highest */
    unsigned type_count; /* of collectors: at least 1, which is never turned off */
    unsigned unwanted;   /* a bit for each collector that is off anyway: not the guard's to turn */
    bool can_choose;     /* there is a way to sample the busiest only */

    unsigned level; /* how many steps down; 0: everything is sampled as it was asked for */
    struct guard_state state;
    enum guard_reason reason; /* of the last step down; GUARD_FINE at level 0 */
    double cpu_share;         /* of the host, over what was looked at last */
    double upload_per_minute;
    uint64_t steps_down, steps_up, caches_dropped;

    /* The moments behind it, the newest last; only those since the last step count. */
    struct {
        int64_t ns;
        struct guard_cost cost;
    } history[GUARD_HISTORY];
    size_t count;
    int64_t began_ns, changed_ns, dropped_ns;
    bool came_back;   /* the last step was one up */
    unsigned backoff; /* how many times `patience_ns` it waits now */
};

/* State for reports. */
#define GUARD_TEXT_BYTES 160
struct guard_stats {
    struct guard_limits limits;
    unsigned level, level_max;
    enum guard_reason reason;
    double cpu_share, upload_per_minute;
    uint64_t steps_down, steps_up, caches_dropped;
    bool rest, busiest_only;
    char what[GUARD_TEXT_BYTES]; /* guard_describe() */
};

enum guard_action {
    GUARD_KEEP,
    GUARD_CHANGED,     /* `state` is another one */
    GUARD_DROP_CACHES, /* memory is short: what can be fetched again goes first */
};

void guard_init(struct guard *guard, const struct guard_limits *limits, unsigned cpus,
                unsigned rate_hz, unsigned type_count, bool can_choose);

/* Other collectors: the capture is a new one, or some are off by order (`unwanted`, a bit each). */
void guard_set_types(struct guard *guard, unsigned type_count, unsigned unwanted);

/* To be called about once a second. */
enum guard_action guard_tick(struct guard *guard, int64_t now_ns, const struct guard_cost *cost);

/* The share of all CPUs that a collector may take, so that the total cost stays below where one is
 * turned off. It is never nothing: turning off is for guard_tick(). While there is everything to
 * learn, and where nothing is known yet, it is the limit. */
double guard_spare_share(const struct guard *guard, unsigned type);

/* The lowest level: nothing is sampled there. */
unsigned guard_level_max(const struct guard *guard);

struct guard_stats guard_stats(const struct guard *guard);

/* "cpu", "memory", "upload"; "" when nothing was taken away. */
const char *guard_reason_name(enum guard_reason reason);

/* Why the level is what it is, for people: "it cost 1.80% of the host's CPU, and may cost 1.00%".
 */
void guard_explain(const struct guard *guard, char *text, size_t room);
/* Describes the sampling at this level: "9 Hz (target 19), busiest processes only". */
void guard_describe(const struct guard *guard, char *text, size_t room);
