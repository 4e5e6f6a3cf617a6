/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rollups that have outlived what they were made of: slots that no finer tier could make again, and
 * which are all that is left of their time. Lists of series, deletions and exports treat them
 * apart.
 */
#pragma once

#include "store/embedded/embedded.h"

struct time_span {
    int64_t from_ns, to_ns;
};

struct time_spans {
    struct time_span *list; /* ascending, of whole slots; neighbours are joined */
    size_t count, capacity;
};

void time_spans_release(struct time_spans *spans);
#define _cleanup_time_spans_ _cleanup_(time_spans_release)

/* Those of a rollup file's slots that meet [from, to). `list` holds the tenant's files of at least
 * that time. */
int outlived_spans(const struct file_list *list, struct file *file, int64_t from_ns, int64_t to_ns,
                   struct time_spans *ret_spans, struct error *error);
