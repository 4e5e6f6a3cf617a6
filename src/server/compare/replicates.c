// SPDX-License-Identifier: Apache-2.0
// Replicates of a selection: see replicates.h.

#include "server/compare/replicates.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "compare/table.h"
#include "query/naming/maps.h"
#include "server/admission/admission.h"

#define SECOND_NS 1000000000ll
#define HOUR_NS (3600 * SECOND_NS)

/* Lengths that divide each other or a day, so that rollups fit into them. */
static const int64_t steps_s[] = {1,    2,    5,    10,   20,    30,    60,    120,   300,  600,
                                  1200, 1800, 3600, 7200, 10800, 14400, 21600, 43200, 86400};

static int64_t choose_step(int64_t range_ns, unsigned steps, int64_t least_ns)
{
    int64_t wanted = MAX(range_ns / steps, least_ns);
    for (size_t i = 0; i < ARRAY_LENGTH(steps_s); i++)
        if (steps_s[i] * SECOND_NS >= wanted)
            return steps_s[i] * SECOND_NS;
    int64_t day = 86400 * SECOND_NS;
    return (wanted + day - 1) / day * day;
}

static int count_value(void *context, const char *value)
{
    size_t *count = context;
    *count += *value != 0;
    return 0;
}

static bool is_one_service(const struct query_context *query_context)
{
    const struct selector *selector = query_context->selection.selector;
    for (size_t i = 0; selector && i < selector->count; i++)
        if (selector->matchers[i].kind == MATCH_EQUAL &&
            !strcmp(selector->matchers[i].name, LABEL_SERVICE_NAME))
            return true;
    return false;
}

/* The label that names hosts, if it has several values that can be kept apart. */
static int choose_label(struct query_context *query_context, const char **ret_label,
                        struct error *error)
{
    static const char *const names[] = {"host", "host.name", "hostname", "instance"};
    const struct store_selection *selection = &query_context->selection;
    int64_t range = selection->to_ns - selection->from_ns;
    *ret_label = NULL;
    if (range > HOUR_NS && !(is_one_service(query_context) && range <= 24 * HOUR_NS))
        return 0;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        size_t count = 0;
        int r = store_label_values(query_context->server->store, selection, names[i], count_value,
                                   &count, error);
        if (r < 0)
            return r;
        if (count > 1 && count <= STORE_APART_VALUES_MAX)
            *ret_label = names[i];
        if (count)
            return 0;
    }
    return 0;
}

/* ---- what is covered ---- */

struct covered {
    struct profile *profile;
    const char *label;
    unsigned type;
};

static uint32_t label_set(struct profile *profile, const char *label, const char *value)
{
    if (!label || !value || !*value)
        return 0;
    struct profile_label one = {.key = profile_cstring(profile, label),
                                .text = profile_cstring(profile, value)};
    return profile_label_set(profile, &one, 1);
}

static int add_covered(void *context, const struct labels *group, const struct store_point *points,
                       size_t count)
{
    struct covered *covered = context;
    uint32_t set = label_set(covered->profile, covered->label,
                             covered->label ? labels_get(group, covered->label) : NULL);
    for (size_t i = 0; i < count; i++) {
        if (points[i].per_ns <= 0)
            continue;
        size_t row = profile_sample(covered->profile, 0, set, 0,
                                    (uint64_t)MAX(points[i].time_ns, (int64_t)1));
        profile_add_value(covered->profile, row, covered->type, points[i].per_ns);
    }
    return 0;
}

static int skip_points(void *context, const struct labels *group, const struct store_point *points,
                       size_t count)
{
    (void)context, (void)group, (void)points, (void)count;
    return 0;
}

/* A window counts where it begins: steps must be longer than windows are. */
static int fit_step(struct query_context *query_context, unsigned steps, int64_t *step_ns,
                    struct error *error)
{
    struct store_selection *selection = &query_context->selection;
    int64_t range = selection->to_ns - selection->from_ns;
    struct store_timeseries_query query = {.step_ns = choose_step(range, steps, 10 * SECOND_NS),
                                           .aligned = true};
    struct store_quality quality = {0};
    int r = store_timeseries(query_context->server->store, selection, &query,
                             &query_context->limits, skip_points, NULL, &quality, error);
    if (r < 0)
        return r;
    if (!quality.windows)
        return error_set(error, -ENOENT, "No profile matches the query in this time range.");
    int64_t length = quality.duration_ns / (int64_t)quality.windows;
    /* Data may be there for a part of the range only. */
    range = MIN(range, quality.last_ns - quality.first_ns + length);
    *step_ns = choose_step(range, steps, MAX(10 * SECOND_NS, length > SECOND_NS ? 2 * length : 0));
    /* Whole slots of rollups, in case raw data is gone. */
    int64_t slot = *step_ns > HOUR_NS ? 24 * HOUR_NS : HOUR_NS;
    selection->from_ns = MAX(selection->from_ns, quality.first_ns / slot * slot);
    selection->to_ns = MIN(selection->to_ns, (quality.last_ns / slot + 1) * slot);
    return 0;
}

/* ---- requests ---- */

static int find_requests(void *context, const char *type)
{
    char *found = context;
    size_t length;
    const char *name = query_type_part(type, 1, &length);
    if (length != 8 || memcmp(name, "requests", 8))
        return 0;
    const char *unit = query_type_part(type, 2, &length);
    if (length == 5 && !memcmp(unit, "count", 5) && strlen(type) < QUERY_TYPE_BYTES)
        strcpy(found, type);
    return 0;
}

int replicates_requests_type(struct store *store, const struct store_selection *selection,
                             char ret_type[QUERY_TYPE_BYTES], struct error *error)
{
    struct store_selection any = *selection;
    any.type = NULL;
    *ret_type = 0;
    return store_types(store, &any, find_requests, ret_type, error);
}

/* Requests that a series of the same labels counts, by step and host. */
static int add_requests(struct query_context *query_context, const struct store_apart *apart,
                        struct profile *profile, struct error *error)
{
    char type[QUERY_TYPE_BYTES] = "";
    struct store_selection selection = query_context->selection;
    struct store *store = query_context->server->store;
    int r = replicates_requests_type(store, &selection, type, error);
    if (r < 0 || !*type)
        return r;
    _cleanup_profile_ struct profile counted;
    struct store_limits limits = query_context->limits;
    profile_init(&counted, REPLICATES_DETAIL);
    limits.apart = apart;
    selection.type = type;
    r = store_merge(store, &selection, &limits, &counted, NULL, error);
    if (r < 0)
        return r;
    unsigned column = profile_type(profile, profile_cstring(profile, "requests"),
                                   profile_cstring(profile, "count"));
    for (size_t row = 0; row < counted.samples.count; row++) {
        size_t count;
        const struct profile_label *labels =
            profile_labels(&counted, counted.samples.labels[row], &count);
        uint32_t set =
            label_set(profile, apart->label, count ? profile_text(&counted, labels[0].text) : NULL);
        size_t to = profile_sample(profile, 0, set, 0, counted.samples.time_ns[row]);
        profile_add_value(profile, to, column, counted.samples.values[0][row]);
    }
    return 0;
}

int replicates_plan(struct query_context *query_context, unsigned steps,
                    struct store_apart *ret_apart, struct error *error)
{
    struct store_selection *selection = &query_context->selection;
    struct store_apart apart = {0};
    int64_t now = clock_ns(CLOCK_REALTIME);
    if (selection->to_ns > now && now > selection->from_ns)
        selection->to_ns = now;
    if (selection->to_ns <= selection->from_ns)
        return error_set(error, -EINVAL, "The time range is empty.");
    admit_limits(query_context->server->admissions, &query_context->limits);
    int r = fit_step(query_context, steps, &apart.step_ns, error);
    if (!r)
        r = choose_label(query_context, &apart.label, error);
    if (!r)
        *ret_apart = apart;
    return r;
}

int replicates_merge_planned(struct query_context *query_context, const struct store_apart *apart,
                             const struct matcher *matcher, struct profile *profile,
                             struct store_quality *ret_quality, struct error *error)
{
    query_context->whole = true;
    query_context->limits.apart = apart;
    int r = matcher
                ? query_context_merge_matching(query_context, matcher, profile, ret_quality, error)
                : query_context_merge(query_context, profile, ret_quality, error);
    query_context->limits.apart = NULL;
    return r;
}

int replicates_add_frame(struct query_context *query_context, const struct store_apart *apart,
                         struct profile *profile, struct error *error)
{
    struct covered covered = {.profile = profile,
                              .label = apart->label,
                              .type = profile_type(profile,
                                                   profile_cstring(profile, COMPARE_COVERED_TYPE),
                                                   profile_cstring(profile, COMPARE_COVERED_UNIT))};
    struct store_timeseries_query query = {.step_ns = apart->step_ns,
                                           .aligned = true,
                                           .group_by = (const char *const *)&apart->label,
                                           .group_count = apart->label != NULL};
    int r = store_timeseries(query_context->server->store, &query_context->selection, &query,
                             &query_context->limits, add_covered, &covered, NULL, error);
    return r < 0 ? r : add_requests(query_context, apart, profile, error);
}

int replicates_merge(struct query_context *query_context, struct profile *profile,
                     struct store_quality *ret_quality, const char **ret_label, struct error *error)
{
    struct store_apart apart;
    int r = replicates_plan(query_context, REPLICATES_STEPS, &apart, error);
    if (!r)
        r = replicates_merge_planned(query_context, &apart, NULL, profile, ret_quality, error);
    if (!r)
        r = replicates_add_frame(query_context, &apart, profile, error);
    if (!r && !profile->samples.count)
        r = error_set(error, -ENOENT, "No profile matches the query in this time range.");
    if (!r)
        *ret_label = apart.label;
    return r;
}
