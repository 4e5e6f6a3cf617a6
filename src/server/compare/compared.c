// SPDX-License-Identifier: Apache-2.0
// Two selections, compared: see compared.h.

#include "server/compare/compared.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "server/admission/admission.h"
#include "server/compare/replicates.h"

void compared_release(struct compared *compared)
{
    comparison_release(&compared->comparison);
    compare_table_release(&compared->table);
    for (int i = 0; i < COMPARE_SIDES; i++) {
        query_context_release(&compared->sides[i].context);
        naming_release(&compared->sides[i].naming);
        profile_release(&compared->sides[i].profile);
    }
}

static void compared_init(struct compared *compared)
{
    *compared = (struct compared){0};
    for (int i = 0; i < COMPARE_SIDES; i++)
        profile_init(&compared->sides[i].profile, REPLICATES_DETAIL);
}

uint32_t compared_hosts(const struct compared *compared)
{
    return compared->sources[0].cluster_label ? compared->table.cluster_count : 0;
}

static int read_side(struct compared *compared, enum compare_side which, struct error *error)
{
    static const char *const names[] = {"base", "new"};
    struct compared_side *side = &compared->sides[which];
    struct compare_source *source = &compared->sources[which];
    const char *label;
    int r = replicates_merge(&side->context, &side->profile, &side->quality, &label, error);
    if (r < 0)
        return r;
    naming_init(&side->naming, &side->profile);
    compare_source_init(source, &side->profile, &side->naming, 0);
    source->side = which;
    source->cluster = names[which];
    source->cluster_label = label;
    return 0;
}

/* Hosts are paired, or tell how far hosts differ, only where both sides know them. */
static void agree_on_hosts(struct compared *compared)
{
    bool both = compared->sources[0].cluster_label && compared->sources[1].cluster_label;
    for (int i = 0; i < COMPARE_SIDES; i++)
        if (!both)
            compared->sources[i].cluster_label = NULL;
}

static int judge(struct compared *compared, const struct compare_options *options,
                 struct error *error)
{
    const char *types[COMPARE_SIDES];
    for (int i = 0; i < COMPARE_SIDES; i++)
        types[i] = compared->sides[i].context.query.type;
    int r = 0;
    if (strcmp(types[COMPARE_BASE], types[COMPARE_NEW]))
        r = error_set(error, -EINVAL, "Profiles of different types can't be compared: %s and %s.",
                      types[COMPARE_BASE], types[COMPARE_NEW]);
    for (int i = 0; !r && i < COMPARE_SIDES; i++)
        r = read_side(compared, (enum compare_side)i, error);
    if (r < 0)
        return r;
    agree_on_hosts(compared);
    r = compare_table_build(compared->sources, COMPARE_SIDES, &compared->table, error);
    return r < 0 ? r : compare(&compared->table, options, &compared->comparison, error);
}

static int count(struct comparisons *stats, const struct compared *compared, int64_t begun_ns,
                 int r)
{
    const struct comparison *comparison = &compared->comparison;
    atomic_fetch_add(&stats->busy_ns, (uint64_t)(monotonic_ns() - begun_ns));
    atomic_fetch_add(r < 0 ? &stats->failed : &stats->made, 1);
    if (r >= 0) {
        atomic_fetch_add(&stats->changed, comparison->found > 0);
        atomic_fetch_add(&stats->judged, comparison->judged);
        atomic_fetch_add(&stats->found, comparison->found);
    }
    return r;
}

int compared_read(struct compared *compared, struct http_request *request, struct server *server,
                  const struct compare_options *options, struct error *error)
{
    struct query_context *base = &compared->sides[COMPARE_BASE].context;
    struct query_context *new_side = &compared->sides[COMPARE_NEW].context;
    const char *query = http_request_query(request, "query");
    int64_t begun_ns = monotonic_ns();
    compared_init(compared);
    int r = query_context_read(new_side, request, server, "", true, error);
    if (!r)
        r = query_context_read_from(base, request, server, "base_", query ? query : "",
                                    new_side->selection.from_ns, new_side->selection.to_ns, true,
                                    error);
    if (!r)
        r = judge(compared, options, error);
    return count(server->comparisons, compared, begun_ns, r);
}

/* ---- for jobs of the server ---- */

struct job {
    struct server *server;
    const struct compared_query *query;
    struct compared *compared;
    struct error *error;
    int result;
};

static void run(void *context)
{
    struct job *job = context;
    const struct compared_query *query = job->query;
    struct query_asker asker = {query->tenant, query->cancelled, query->names};
    int r = 0;
    for (int i = 0; !r && i < COMPARE_SIDES; i++)
        r = query_context_open(&job->compared->sides[i].context, job->server, &asker,
                               query->sides[i].query, query->sides[i].from_ns,
                               query->sides[i].to_ns, true, job->error);
    job->result = r < 0 ? r : judge(job->compared, &query->options, job->error);
}

int compared_run(struct server *server, const struct compared_query *query,
                 struct compared *compared, struct error *error)
{
    struct job job = {server, query, compared, error, 0};
    int64_t begun_ns = monotonic_ns();
    compared_init(compared);
    if (!admissions_run_job(server->admissions, ADMIT_COMPARISON, query->cancelled, run, &job))
        job.result = error_set(error, -EAGAIN,
                               "No memory is free for a comparison; try again "
                               "later.");
    return count(server->comparisons, compared, begun_ns, job.result);
}
