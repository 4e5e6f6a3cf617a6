/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The query of a request: what it selects, within which limits, and how good its answer is. Private
 * to src/server.
 */
#pragma once

#include "io/json_write.h"
#include "profile/views/calltree.h"
#include "query/aggregate.h"
#include "query/links.h"
#include "query/quality.h"
#include "query/query.h"
#include "query/sources.h"
#include "server/handler/handler.h"

struct query_context {
    struct server *server;
    struct query query;
    struct store_selection selection; /* of the query; its type is NULL when none was given */
    struct store_limits limits;
    struct match_budget matching;
    struct query_links links;     /* only the samples of these, where there are any */
    struct query_sources sources; /* of services that several observers report */
    enum profile_detail names;    /* PROFILE_ORIGINAL_NAMES where the request asks for them, or 0 */
    bool whole; /* what takes too much memory is refused, and not cut: for exports */
};

void query_context_release(struct query_context *query_context);
#define _cleanup_query_context_ _cleanup_(query_context_release)

/* Who asks: the client of a request, or a job of the server itself. */
struct query_asker {
    const char *tenant;
    const atomic_bool *cancelled; /* stops the query; may be NULL */
    enum profile_detail names;    /* PROFILE_ORIGINAL_NAMES, or 0 for readable ones */
};

/* From a query's text and times in ns, `typed` when a type must come of it. The asker's tenant must
 * outlive the context. */
int query_context_open(struct query_context *query_context, struct server *server,
                       const struct query_asker *asker, const char *query, int64_t from_ns,
                       int64_t to_ns, bool typed, struct error *error);

/* The client of a request, whose parameter `names` is read. */
int query_asker_read(struct http_request *request, struct query_asker *ret_asker,
                     struct error *error);

/* Both. */
int query_context_init(struct query_context *query_context, struct http_request *request,
                       struct server *server, const char *query, int64_t from_ns, int64_t to_ns,
                       bool typed, struct error *error);

/* From the parameters PREFIXquery, PREFIXfrom and PREFIXto, and their defaults: everything of the
 * last hour. */
int query_context_read(struct query_context *query_context, struct http_request *request,
                       struct server *server, const char *prefix, bool typed, struct error *error);

/* As query_context_read, for a query that differs from another in what its own parameters say. */
int query_context_read_from(struct query_context *query_context, struct http_request *request,
                            struct server *server, const char *prefix, const char *query,
                            int64_t from_ns, int64_t to_ns, bool typed, struct error *error);

/* The parameter `agg`: what stands for a level. */
int query_context_aggregate(struct http_request *request, enum query_aggregate *ret_aggregate,
                            struct error *error);

/* Narrows the selection to the moment that stands for a level, where `agg` asks for one. */
int query_context_narrow(struct query_context *query_context, struct http_request *request,
                         struct error *error);

/* Both, of a query context with a type. */
int query_context_read_level(struct query_context *query_context, struct http_request *request,
                             struct server *server, struct error *error);

/* span_id and trace_id among the parameters, each any number of times. */
int query_context_read_links(struct query_context *query_context, struct http_request *request,
                             struct error *error);

/* Merges the selection into a profile that the caller has initialised, and sets its time and
 * duration to those of the data. When that takes more memory than the limit of a query, it leaves
 * out as many of the smallest subtrees as needed; the quality has their amount. */
int query_context_merge(struct query_context *query_context, struct profile *profile,
                        struct store_quality *ret_quality, struct error *error);

/* The error of a query over its memory limit, with how to make it smaller. */
int query_context_too_large(const struct query_context *query_context, struct error *error);

/* Whether to ask once more, with more memory: *r is what asking ended with, and what taking more
 * did otherwise. Nothing of an answer may have been sent. */
bool query_context_again(struct query_context *query_context, int *r, struct error *error);

/* The same of those series only that one more matcher selects. */
int query_context_merge_matching(struct query_context *query_context, const struct matcher *matcher,
                                 struct profile *profile, struct store_quality *ret_quality,
                                 struct error *error);

/*
 * Gives the whole selection to `fn`, with nothing left out: as one profile, or where that takes
 * more memory than the limit of a query, as several of some services each. Sums over stacks are the
 * same either way. `fn` may change the profile. Of the quality, the found part and the unnamed
 * share are set. -E2BIG when one service is too large.
 */
typedef int query_context_part_fn(void *context, struct profile *profile, struct error *error);
int query_context_each(struct query_context *query_context, enum profile_detail detail,
                       query_context_part_fn *fn, void *context, struct query_quality *quality,
                       struct error *error);

/* ---- the services of a selection, for what takes some of them at a time ---- */

struct service_list {
    char **names; /* sorted, each once */
    size_t count, capacity;
};
#define SERVICES_AT_ONCE 64 /* in one merge; their names are one expression */

/* Adds those that a selection has data of. */
int service_list_add(struct service_list *services, struct query_context *query_context,
                     struct error *error);
void service_list_release(struct service_list *services);
#define _cleanup_service_list_ __attribute__((cleanup(service_list_release)))

/* A selector of `count` of them from the one at `first`; the caller releases the selector. */
int service_list_select(const struct service_list *services, size_t first, size_t count,
                        struct selector *ret_selector, struct error *error);

/* Whether the query names one service. */
bool query_context_is_about_one(const struct query_context *query_context);

/* Merges, with nothing left out, the stacks that have a function of this name; `ret_total` is the
 * sum of all. The quality is that of query_context_each. */
int query_context_merge_function(struct query_context *query_context, const char *function,
                                 struct profile *profile, struct query_quality *quality,
                                 int64_t *ret_total, struct error *error);

/* As query_context_merge, with all that can be said of how good it is. */
int query_context_merge_measured(struct query_context *query_context, struct profile *profile,
                                 struct query_quality *ret_quality, struct error *error);

/* Fills what is still missing from a quality of which `found` is known. */
int query_context_measure(struct query_context *query_context, struct query_quality *quality,
                          struct error *error);

/* Of the values of a profile's first type, those whose innermost frame has no name, and all. */
void quality_count_unnamed(const struct profile *profile, double *unnamed, double *all);

/* The amount, of one of the profile's types, that a picture of it leaves out: everything under
 * "(other)" in the tree. */
void quality_note_cut(struct query_quality *quality, const struct profile *profile, unsigned type,
                      const struct calltree *tree, enum calltree_side side);

/* The parameter `names` as a detail of profiles: PROFILE_ORIGINAL_NAMES, or 0 for readable ones. */
int parameter_names(struct http_request *request, enum profile_detail *ret_names,
                    struct error *error);

/* The member "quality" of an object; `profile` may be NULL. */
void quality_write(const struct query_quality *quality, const struct profile *profile,
                   struct json_writer *json);
