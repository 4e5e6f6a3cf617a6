/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the methods of Pyroscope's query API. Private to src/server. */
#pragma once

#include "base/idtable.h"
#include "server/handler/parameters.h"
#include "server/pyroscope/rpc.h"
#include "server/pyroscope/rpc_write.h"
#include "server/query/context.h"

#define MS_NS 1000000ll

/* One call, from its message to its answer's. */
struct call {
    struct http_request *http;
    struct server *server;
    struct rpc_request request;
    struct rpc_writer answer;
    struct labels *seen; /* label sets that are in the answer */
    size_t seen_count, seen_capacity, seen_bytes;
    struct id_table index;
};

/* For callbacks that may wait for the client: 0, or the reason to stop. */
static inline int querier_pass(struct call *call)
{
    struct buffer *out = call->answer.out;
    return buffer_pass(out) ? 0 : out->drain->failure;
}

typedef int querier_method(struct call *call, struct error *error);

/* querier_lists.c */
querier_method querier_profile_types, querier_label_names, querier_label_values, querier_series,
    querier_profile_stats, querier_analyze;
/* querier_profiles.c */
querier_method querier_merge_stacktraces, querier_merge_span, querier_merge_profile, querier_diff;
/* querier_points.c */
querier_method querier_select_series;
/* querier_heatmap.c */
querier_method querier_select_heatmap;

/* The selection of a message: their ends are inclusive, and no times mean all times. */
int querier_ask(struct call *call, const struct rpc_request *request, const char *selector,
                bool typed, struct query_context *query_context, struct error *error);

/* How long a step is, in whole milliseconds as all times of these requests: clients make one of a
 * range whose ends they have cut, and it has to fit. -EINVAL when it can't be. */
int querier_step(const struct rpc_request *request, int64_t *ret_ns, struct error *error);

/*
 * Pyroscope's points cover the step that ends with them: the first one, at the selection's
 * beginning, the step before that, and what follows the last one isn't shown. Makes a selection
 * whose steps these are, and returns what is between a step's beginning and its point.
 */
int64_t querier_points_range(struct store_selection *selection, int64_t step_ns);

/* labels=1, a list of pairs. */
void querier_put_labels(struct call *call, const struct labels *labels);

/* Sets a label that says what type it is; does nothing for another one. */
void querier_set_type_label(struct labels *labels, const char *name, const char *type);

/* The labels that the request groups by, of a series' labels and type. */
void querier_group(const struct rpc_request *request, const struct labels *labels, const char *type,
                   struct labels *ret_group);

/* All that a window holds. */
int64_t querier_sum(const struct store_profile *window);

/* One Exemplar of a list. `number` is its field in the message around it. */
void querier_put_exemplar(struct call *call, unsigned number, const struct store_exemplar *exemplar,
                          const struct labels *labels);

enum { EXEMPLARS_UNSPECIFIED, EXEMPLARS_NONE, EXEMPLARS_INDIVIDUAL, EXEMPLARS_SPAN };

/* ---- querier_stacks.c ---- */

/* Whether a message selects some stacks, or parts of them; and those of a profile with one type
 * into another one, which is new. */
bool querier_stacks_selected(const struct rpc_request *stack);
void querier_select_stacks(const struct rpc_request *stack, const struct profile *from,
                           struct profile *to);

/* ---- dot.c ---- */

/* The calls between a profile's costliest functions, for graphviz. */
void dot_write(const struct profile *profile, size_t functions, struct buffer *out);

/* ---- render.c ---- */

/* The member "metadata" of a type, as /pyroscope/render has it; `format` is single or double. */
void render_put_metadata(struct json_writer *json, const char *format, const char *type);

/* ---- protojson.c ---- */

/* A pprof message (google.v1.Profile) as JSON. -EBADMSG when it isn't one. */
int protojson_profile(const void *data, size_t length, struct buffer *out, struct error *error);
