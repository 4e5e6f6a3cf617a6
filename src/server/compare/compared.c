// SPDX-License-Identifier: Apache-2.0
// Two selections, compared: see compared.h.

#include "server/compare/compared.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "server/admission/admission.h"
#include "server/compare/replicates.h"

#define FUNCTION_BYTES (sizeof(struct compare_row) + 256) /* with its name and estimates */

void compared_release(struct compared *compared)
{
    comparison_release(&compared->comparison);
    compare_causes_release(&compared->causes);
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

/* The data that was read for an answer that turned out too large. */
static void forget(struct compared *compared)
{
    compare_table_release(&compared->table);
    for (int i = 0; i < COMPARE_SIDES; i++) {
        struct compared_side *side = &compared->sides[i];
        naming_release(&side->naming);
        profile_release(&side->profile);
        side->naming = (struct naming){0};
        side->quality = (struct store_quality){0};
        profile_init(&side->profile, REPLICATES_DETAIL);
    }
}

/* `type` 0 of the profile is what is compared. */
static void describe(struct compare_source *source, const struct profile *profile,
                     const struct naming *naming, enum compare_side side, const char *label)
{
    static const char *const names[] = {"base", "new"};
    compare_source_init(source, profile, naming, 0);
    source->side = side;
    source->cluster = names[side];
    source->cluster_label = label;
}

static int read_side(struct compared *compared, enum compare_side which, struct error *error)
{
    struct compared_side *side = &compared->sides[which];
    int r = replicates_merge_planned(&side->context, &side->apart, NULL, &side->profile,
                                     &side->quality, error);
    if (!r)
        r = replicates_add_frame(&side->context, &side->apart, &side->profile, error);
    if (!r && !side->profile.samples.count)
        r = error_set(error, -ENOENT, "No profile matches the query in this time range.");
    if (r < 0)
        return r;
    naming_init(&side->naming, &side->profile);
    describe(&compared->sources[which], &side->profile, &side->naming, which, side->apart.label);
    return 0;
}

/* Cells at most: one for each function and row of what is covered. */
static size_t most_cells(const struct compared *compared)
{
    size_t most = 0;
    for (int i = 0; i < COMPARE_SIDES; i++) {
        const struct compare_source *source = &compared->sources[i];
        const struct profile_samples *samples = &source->profile->samples;
        size_t replicates = 0;
        for (size_t row = 0; row < samples->count; row++)
            replicates += samples->values[source->covered_type][row] != 0;
        most += replicates * compared->sides[i].naming.count;
    }
    return most;
}

/* A comparison has memory for both sides, and as much again for its table. */
static int begin_table(const struct compared *compared, bool whole,
                       struct table_builder **ret_builder, struct error *error)
{
    struct admissions *admissions = compared->sides[0].context.server->admissions;
    size_t cells = admit_profile_bytes(admissions) / sizeof(struct compare_cell);
    int r = whole && most_cells(compared) <= cells ? 0 : admit_rest(error);
    cells = admit_profile_bytes(admissions) / sizeof(struct compare_cell);
    if (!r)
        r = compare_table_begin(compared->sources, COMPARE_SIDES, cells, ret_builder, error);
    if (!r)
        compare_table_add(*ret_builder, compared->sources, COMPARE_SIDES);
    return r;
}

static int read_whole(struct compared *compared, struct error *error)
{
    struct table_builder *builder;
    int r = 0;
    for (int i = 0; !r && i < COMPARE_SIDES; i++)
        r = read_side(compared, (enum compare_side)i, error);
    if (!r)
        r = begin_table(compared, true, &builder, error);
    if (!r)
        compare_table_end(builder, &compared->table);
    return r;
}

/* ---- some services at a time ---- */

/* Times and requests, without stacks. */
static int read_frame(struct compared *compared, enum compare_side which, struct error *error)
{
    struct compared_side *side = &compared->sides[which];
    struct profile *profile = &side->profile;
    size_t name_length, unit_length;
    const char *name = query_type_part(side->context.query.type, 1, &name_length);
    const char *unit = query_type_part(side->context.query.type, 2, &unit_length);
    profile_type(profile, profile_string(profile, name, name_length),
                 profile_string(profile, unit, unit_length));
    int r = replicates_add_frame(&side->context, &side->apart, profile, error);
    if (r < 0)
        return r;
    naming_init(&side->naming, profile);
    describe(&compared->sources[which], profile, &side->naming, which, side->apart.label);
    return 0;
}

static int add_services(struct compared *compared, struct table_builder *builder,
                        const struct matcher *matcher, struct error *error)
{
    struct profile profiles[COMPARE_SIDES];
    struct naming namings[COMPARE_SIDES] = {0};
    struct compare_source sources[COMPARE_SIDES];
    struct store_quality qualities[COMPARE_SIDES] = {0};
    int r = 0;
    for (int i = 0; i < COMPARE_SIDES; i++)
        profile_init(&profiles[i], REPLICATES_DETAIL);
    for (int i = 0; !r && i < COMPARE_SIDES; i++) {
        struct compared_side *side = &compared->sides[i];
        r = replicates_merge_planned(&side->context, &side->apart, matcher, &profiles[i],
                                     &qualities[i], error);
    }
    for (int i = 0; !r && i < COMPARE_SIDES; i++) {
        naming_init(&namings[i], &profiles[i]);
        describe(&sources[i], &profiles[i], &namings[i], (enum compare_side)i,
                 compared->sources[i].cluster_label);
        query_quality_add(&compared->sides[i].quality, &qualities[i]);
    }
    if (!r)
        compare_table_add(builder, sources, COMPARE_SIDES);
    for (int i = 0; i < COMPARE_SIDES; i++) {
        naming_release(&namings[i]);
        profile_release(&profiles[i]);
    }
    return r;
}

/* In the end the memory of both sides is free for what is said of each function. */
static int check_functions(struct compared *compared, const struct table_builder *builder,
                           struct error *error)
{
    struct query_context *context = &compared->sides[0].context;
    size_t bytes = COMPARE_SIDES * admit_profile_bytes(context->server->admissions);
    size_t most = bytes / FUNCTION_BYTES;
    compared->too_many = compare_table_functions(builder) > most;
    if (!compared->too_many)
        return 0;
    return error_set(error, -E2BIG,
                     "The services have more than %zu functions, the limit for comparisons "
                     "(limits.query_memory). Select fewer services.",
                     most);
}

static int add_all_services(struct compared *compared, struct table_builder *builder,
                            struct error *error)
{
    _cleanup_service_list_ struct service_list services = {0};
    size_t at = 0, batch = SERVICES_AT_ONCE;
    int r = 0;
    for (int i = 0; !r && i < COMPARE_SIDES; i++)
        r = service_list_add(&services, &compared->sides[i].context, error);
    while (!r && at < services.count) {
        _cleanup_selector_ struct selector selector = {0};
        size_t count = MIN(batch, services.count - at);
        r = service_list_select(&services, at, count, &selector, error);
        if (!r)
            r = add_services(compared, builder, &selector.matchers[0], error);
        if (r == -E2BIG && count > 1) {
            batch = (count + 1) / 2;
            r = 0;
            continue;
        }
        if (!r)
            r = check_functions(compared, builder, error);
        at += count;
    }
    return r;
}

static int read_parts(struct compared *compared, struct error *error)
{
    struct table_builder *builder;
    int r = 0;
    for (int i = 0; !r && i < COMPARE_SIDES; i++)
        r = read_frame(compared, (enum compare_side)i, error);
    if (!r)
        r = begin_table(compared, false, &builder, error);
    if (r < 0)
        return r;
    r = add_all_services(compared, builder, error);
    if (r < 0)
        compare_table_abandon(builder);
    else
        compare_table_end(builder, &compared->table);
    return r;
}

/* ---- both ---- */

/* Hosts are paired, or tell how far hosts differ, only where both sides know them. */
static int plan(struct compared *compared, unsigned steps, struct error *error)
{
    struct compared_side *sides = compared->sides;
    int r = 0;
    for (int i = 0; !r && i < COMPARE_SIDES; i++)
        r = replicates_plan(&sides[i].context, steps, &sides[i].apart, error);
    if (!r && (!sides[0].apart.label || !sides[1].apart.label))
        sides[0].apart.label = sides[1].apart.label = NULL;
    return r;
}

/* Where one service is too large, longer steps make fewer rows; with fewer than these, little is
 * certain. */
static int read_sides(struct compared *compared, bool whole, struct error *error)
{
    static const unsigned steps[] = {REPLICATES_STEPS, REPLICATES_STEPS / 2, REPLICATES_STEPS / 4};
    bool one = query_context_is_about_one(&compared->sides[COMPARE_BASE].context) &&
               query_context_is_about_one(&compared->sides[COMPARE_NEW].context);
    int r = -E2BIG;
    for (size_t i = 0; r == -E2BIG && !compared->too_many && i < ARRAY_LENGTH(steps); i++) {
        forget(compared);
        r = plan(compared, steps[i], error);
        if (!r)
            r = whole || one ? read_whole(compared, error) : read_parts(compared, error);
    }
    return r;
}

/* The store has numbers of samples without the rate that they were taken at. */
static int check_rate(const char *type, enum compare_normalize normalize, struct error *error)
{
    static const char *const parts[] = {"samples", "count", NULL, "nanoseconds"};
    for (unsigned i = 0; i < ARRAY_LENGTH(parts); i++) {
        size_t length;
        const char *part = query_type_part(type, i + 1, &length);
        if (parts[i] && (length != strlen(parts[i]) || memcmp(part, parts[i], length)))
            return 0;
    }
    if (normalize == COMPARE_PER_TOTAL)
        return 0;
    return error_set(error, -EINVAL,
                     "The sampling rate of %s is not stored, and may differ between the sides: "
                     "compare times, such as process_cpu:cpu:nanoseconds, or shares "
                     "(normalize=total).",
                     type);
}

/* `whole`: the caller needs the stacks of both sides. */
static int judge(struct compared *compared, const struct compare_options *options, bool whole,
                 struct error *error)
{
    const char *types[COMPARE_SIDES];
    for (int i = 0; i < COMPARE_SIDES; i++)
        types[i] = compared->sides[i].context.query.type;
    int r = 0;
    if (strcmp(types[COMPARE_BASE], types[COMPARE_NEW]))
        r = error_set(error, -EINVAL, "Profiles of different types can't be compared: %s and %s.",
                      types[COMPARE_BASE], types[COMPARE_NEW]);
    if (!r)
        r = check_rate(types[COMPARE_BASE], options->normalize, error);
    if (!r)
        r = read_sides(compared, whole, error);
    if (!r)
        r = compare_causes_find(&compared->table, options, &compared->causes, error);
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
        r = judge(compared, options, false, error);
    return count(server->comparisons, compared, begun_ns, r);
}

/* ---- for jobs of the server ---- */

static int make(struct server *server, const struct compared_query *query,
                struct compared *compared, struct error *error)
{
    struct query_asker asker = {query->tenant, query->cancelled, query->names};
    int r = 0;
    for (int i = 0; !r && i < COMPARE_SIDES; i++)
        r = query_context_open(&compared->sides[i].context, server, &asker, query->sides[i].query,
                               query->sides[i].from_ns, query->sides[i].to_ns, true, error);
    return r < 0 ? r : judge(compared, &query->options, true, error);
}

int compared_make(struct server *server, const struct compared_query *query,
                  struct compared *compared, struct error *error)
{
    int64_t begun_ns = monotonic_ns();
    compared_init(compared);
    return count(server->comparisons, compared, begun_ns, make(server, query, compared, error));
}

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
    job->result = make(job->server, job->query, job->compared, job->error);
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
