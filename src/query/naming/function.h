/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function as a store can look for it: by the name that its frames are stored with, and by those
 * frames that only symbols or maps give its name. These are found by a query of their own before
 * the one that filters by them, so that a store needs to know nothing about symbols.
 */
#pragma once

#include "base/arena.h"
#include "query/naming/maps.h"
#include "query/naming/names.h"
#include "store/store.h"

#define QUERY_FUNCTION_FRAMES_MAX (1u << 18)

struct query_function {
    struct store_function found; /* what calls of the store take; valid until release */
    struct store_frame *frames;
    size_t count, capacity;
    struct arena texts;
};
void query_function_release(struct query_function *function);
#define _cleanup_query_function_ __attribute__((cleanup(query_function_release)))

/* The function, and the sources of names. `symbols` and `maps` may be NULL; with maps, only
 * the names that these give count. */
struct query_function_names {
    const char *name; /* borrowed until release */
    struct query_symbols *symbols;
    struct query_maps *maps;
};

/* `query` as for store_frames. -E2BIG: the function has too many frames. */
int query_function_find(struct store *store, const struct query_function_names *names,
                        const struct store_selection *selection,
                        const struct store_timeseries_query *query,
                        const struct store_limits *limits, struct query_function *ret_function,
                        struct error *error);
