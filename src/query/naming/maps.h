/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names from source maps and mapping files at query time: profiles are stored with minified or
 * obfuscated names, and a map for their service and version has the names of the source. A frame
 * that combines several inlined functions becomes several frames again.
 *
 * A selection is divided into one part for each service and version with maps, and the rest, which
 * has none; the results of the parts are merged.
 */
#pragma once

#include "query/graft.h"
#include "store/store.h"
#include "symbol/maps/store.h"

/* ---- names of one service and version (maps_names.c) ---- */

struct query_maps;

/* One thread at a time. */
struct query_maps *query_maps_new(struct symbol_maps *maps, const char *tenant, const char *service,
                                  const char *version);
void query_maps_free(struct query_maps *maps); /* takes NULL */

/* Adds all of `from`, which must have its lines, to `to`. */
int query_maps_rename(struct query_maps *maps, const struct profile *from, struct profile *to,
                      struct error *error);

/* The node in `graft->to` of a stack of `graft->from`, with its names; see graft.h. */
uint32_t query_maps_node(struct query_maps *maps, struct graft *graft, uint32_t node);

/* Whether a frame is of a function of that name, or of one with that inlined. */
bool query_maps_is(struct query_maps *maps, const struct profile *profile, uint32_t frame,
                   const char *function);

/* ---- answers (maps.c) ---- */

/* Merges a part of the selection; as store_merge. */
typedef int query_merge_fn(void *context, const struct store_selection *selection,
                           const struct store_limits *limits, struct profile *profile,
                           struct store_quality *ret_quality, struct error *error);

/* Merges all that is selected with `merge`, and gives it the names of maps. `maps` may be NULL. */
int query_maps_merge(struct symbol_maps *maps, struct store *store,
                     const struct store_selection *selection, const struct store_limits *limits,
                     query_merge_fn *merge, void *context, struct profile *profile,
                     struct store_quality *ret_quality, struct error *error);

/* As store_timeseries; the function asked for may be one that only a map or a symbol names. Of it
 * only the name is used. `symbols` may be NULL. */
struct query_symbols;
int query_maps_timeseries(struct symbol_maps *maps, struct query_symbols *symbols,
                          struct store *store, const struct store_selection *selection,
                          const struct store_timeseries_query *query,
                          const struct store_limits *limits, store_points_fn *fn, void *context,
                          struct store_quality *ret_quality, struct error *error);

/* As store_exemplars, of those with a function of that name (NULL: of all), with the names of maps
 * in the profile that `fn` gets, which lives until it returns. */
int query_maps_exemplars(struct symbol_maps *maps, struct query_symbols *symbols,
                         struct store *store, const struct store_selection *selection,
                         const char *function, const struct store_limits *limits,
                         store_exemplar_fn *fn, void *context, struct error *error);
