/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two selections of the store, compared: which functions changed and how certain that is. For
 * /api/v1/compare, and for jobs of the server such as a watch on a service's versions:
 *
 *     struct compared compared;
 *     struct compared_query query = {
 *         .tenant = tenant,
 *         .sides = {{"cpu{service=\"shop\",version=\"1\"}", base_from_ns, base_to_ns},
 *                   {"cpu{service=\"shop\",version=\"2\"}", from_ns, to_ns}},
 *         .options = COMPARED_OPTIONS_DEFAULT,
 *     };
 *     int r = compared_run(server, &query, &compared, &error);
 *     // compared.comparison has a row for each function; compared.table is what limits of a gate
 *     // are judged by (compare/gate/gate.h).
 *     compared_release(&compared);
 */
#pragma once

#include "compare/cause.h"
#include "server/query/context.h"

#define COMPARED_OPTIONS_DEFAULT                                                                   \
    (struct compare_options)                                                                       \
    {                                                                                              \
        .normalize = COMPARE_PER_SECOND, .false_discovery_rate = 0.05                              \
    }

struct compared_query {
    const char *tenant;
    const atomic_bool *cancelled; /* stops it; may be NULL */
    enum profile_detail names;    /* PROFILE_ORIGINAL_NAMES, or 0 for readable ones */
    struct {
        const char *query; /* in the API's form; both sides need the same type */
        int64_t from_ns, to_ns;
    } sides[COMPARE_SIDES];
    struct compare_options options;
};

struct compared_side {
    struct query_context context;
    struct store_apart apart; /* steps, and the label of hosts */
    struct profile profile;   /* without stacks where these were read in parts (compared_read) */
    struct naming naming;
    struct store_quality quality; /* of what was found */
};

struct compared {
    struct compared_side sides[COMPARE_SIDES];
    struct compare_source sources[COMPARE_SIDES];
    struct compare_table table;
    struct comparison comparison;
    struct compare_causes causes; /* of its changes */
    bool too_many;                /* functions: longer steps wouldn't help */
};

/*
 * Makes the comparison in a thread that serves no request, within the server's memory for queries.
 * -ENOENT: a side has no data. -EINVAL: a query is wrong, the types differ, or a denominator is
 * missing. -E2BIG: it takes more memory than a query may. -EAGAIN: no memory was free; try again
 * later. The caller releases `compared` in any case, and doesn't move it; it refers to the query's
 * tenant.
 */
int compared_run(struct server *server, const struct compared_query *query,
                 struct compared *compared, struct error *error);
/* The same in the handler of a request that was admitted (ADMIT_COMPARISON). */
int compared_make(struct server *server, const struct compared_query *query,
                  struct compared *compared, struct error *error);
void compared_release(struct compared *compared);
#define _cleanup_compared_ __attribute__((cleanup(compared_release)))

/* The same in the handler of a request that was admitted (ADMIT_COMPARISON): the sides come from
 * its parameters. What is too large for the memory of a query is read some services at a time. */
int compared_read(struct compared *compared, struct http_request *request, struct server *server,
                  const struct compare_options *options, struct error *error);

/* How many hosts are told apart; 0: none are. */
uint32_t compared_hosts(const struct compared *compared);

/* Cost and results of comparisons since the server started. */
struct comparisons {
    _Atomic uint64_t made, failed, changed; /* changed: with at least one certain change */
    _Atomic uint64_t judged, found;         /* functions' values, and certain changes among them */
    _Atomic uint64_t busy_ns;
};
