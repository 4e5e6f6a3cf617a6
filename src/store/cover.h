/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Covered time: how long the windows of a selection observed something, and what its values are
 * divided by to become rates, or averages of levels. docs/covered-time.md defines the terms; no
 * other code computes them.
 *
 * Windows are added while they are read. Those of one process, that is of series that differ only
 * in labels of samples, are united per part; a part is what a slot of ten minutes and a step of the
 * query have in common. Rollups store the result for a slot, and add it as it is.
 */
#pragma once

#include "base/idtable.h"
#include "store/block/block.h"
#include "store/store.h"

#define COVER_SLOT_NS 600000000000ll

struct cover {
    int64_t covered_ns;       /* of the wall clock, in [begin, end) */
    int64_t begin_ns, end_ns; /* of the first and the last window */
    int64_t process_ns;       /* summed over processes */
    int64_t per_ns;     /* a value divided by this is a rate; for levels, a second per snapshot.
                           0: no window has a duration */
    int64_t present_ns; /* how long processes were there, in [from, to) */
    int64_t from_ns, to_ns;
    int64_t used_ns; /* value / per_ns * used_ns: what was used, also in pauses between windows, if
                        a tenth of the time is covered; a single window stands for itself */
};

struct cover_cell; /* windows of a process in a part */
struct cover_part; /* processes of a group in a part */
struct cover_stay; /* a process of a group in a part, and at which rate */

struct covering {
    int64_t from_ns, to_ns, step_ns; /* of the query; without steps 0 */
    struct cover_cell *cells;
    size_t cell_count, cell_capacity;
    struct id_table cell_index;
    struct cover_part *parts;
    size_t part_count, part_capacity;
    struct id_table part_index;
    struct cover_stay *stays; /* where steps are shorter than slots */
    size_t stay_count, stay_capacity;
    size_t span_bytes;

    /* the series whose windows are added */
    uint64_t series, process;
    uint32_t group;
    uint32_t cell; /* of the window before; ID_NONE: none */
    bool level;
    bool shared; /* groups may have parts of one process */
    int64_t last_start_ns, last_end_ns;
};

void covering_init(struct covering *covering, const struct store_selection *selection,
                   int64_t step_ns);
void covering_release(struct covering *covering);
size_t covering_memory(const struct covering *covering);

/* A process by the labels of a series: the hash of those that its samples didn't bring. */
uint64_t cover_process(const struct labels *labels);

/* The windows that follow are of this series and count for this group; those of COVER_WITNESS say
 * that its process was observed, and have no value (witness.h). */
#define COVER_WITNESS (UINT32_MAX - 1)
void covering_series(struct covering *covering, uint32_t group, const struct labels *labels,
                     const char *type);
void covering_window(struct covering *covering, const struct block_window *window);

/* Where the windows of a series have got to: later ones are added after other series'. */
struct cover_series {
    uint64_t process;
    uint32_t group, cell;
    bool level;
    int64_t last_start_ns, last_end_ns;
};
void covering_leave(const struct covering *covering, struct cover_series *ret_series);
void covering_resume(struct covering *covering, const struct cover_series *series);

/* A window of a rollup. */
void covering_slot(struct covering *covering, uint32_t group, const struct block_window *window);

/* All windows of the processes added so far are here: they become parts. A process is covered for
 * every group that has a series of it whenever any of its series is. */
void covering_settle(struct covering *covering);

/* The same without an end: `ret_parts` has the parts, and windows can be added to `covering`. */
void covering_settle_copy(const struct covering *covering, struct covering *ret_parts);

/* Adds the parts of another; both are settled. */
void covering_join(struct covering *covering, const struct covering *other);

/* The parts of all windows are here: a process is present, too, in steps between its windows, where
 * these are at most a slot apart and the group has windows of others. */
void covering_fill_pauses(struct covering *covering);

/* Of one group, or of all of them together. */
#define COVER_ALL UINT32_MAX
struct cover covering_total(const struct covering *covering, uint32_t group);

/* The cover of a group, which must have one part, as a slot's window has it. */
void covering_fill_slot(const struct covering *covering, uint32_t group,
                        struct block_window *window);

/* Calls `fn` for each step of each group that has windows, in no order. */
typedef void cover_step_fn(void *context, uint32_t group, int64_t step_ns,
                           const struct cover *cover);
void covering_steps(const struct covering *covering, cover_step_fn *fn, void *context);
