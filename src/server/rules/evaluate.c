// SPDX-License-Identifier: Apache-2.0
// Values of SLIs: see evaluate.h. All but the unnamed share are sums of time series by group.

#include "server/rules/evaluate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "profile/level.h"
#include "query/covered.h"
#include "query/naming/maps.h"
#include "query/naming/names.h"
#include "query/trend.h"
#include "server/admission/admission.h"
#include "server/compare/replicates.h"
#include "server/control/control.h"
#include "server/ingest/ingest.h"
#include "server/query/context.h"
#include "server/query/rates.h"
#include "server/symbols/symbols.h"
#include "store/store.h"

#define GROWTH_STEPS 24
#define HOUR_NS 3.6e12

void sli_values_release(struct sli_values *values)
{
    for (size_t i = 0; i < values->count; i++)
        labels_release(&values->list[i].labels);
    free(values->list);
    *values = (struct sli_values){0};
}

static void put(struct sli_values *values, const struct labels *labels, double value)
{
    if (values->count >= SLI_VALUES_MAX) {
        values->left_out++;
        return;
    }
    array_reserve(values->list, values->capacity, values->count + 1);
    struct sli_value *added = &values->list[values->count++];
    *added = (struct sli_value){.value = value};
    labels_copy(&added->labels, labels);
}

static void explain(struct sli_values *values, const char *reason)
{
    if (!*values->reason)
        snprintf(values->reason, sizeof(values->reason), "%s", reason);
}

/* ---- sums by group ---- */

struct group {
    struct labels labels;
    double value, rate; /* the sum; by covered time */
    struct trend_point points[GROWTH_STEPS + 1];
    size_t point_count;
};

struct groups {
    struct group *list;
    size_t count, capacity;
    int64_t step_ns; /* of points; 0: none are kept */
    int64_t from_ns;
    uint64_t left_out;
};

static void groups_release(struct groups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        labels_release(&groups->list[i].labels);
    free(groups->list);
}

static const struct group *group_of(const struct groups *groups, const struct labels *labels)
{
    for (size_t i = 0; i < groups->count; i++)
        if (labels_equal(&groups->list[i].labels, labels))
            return &groups->list[i];
    return NULL;
}

#define GROUPS_MAX 20000 /* of processes, for a quantile */

static int note_group(void *context, const struct labels *labels, const struct store_point *points,
                      size_t count)
{
    struct groups *groups = context;
    struct store_point sum = {0};
    if (groups->count >= GROUPS_MAX) {
        groups->left_out++;
        return 0;
    }
    array_reserve(groups->list, groups->capacity, groups->count + 1);
    struct group *group = &groups->list[groups->count++];
    memset(group, 0, sizeof(*group));
    labels_copy(&group->labels, labels);
    for (size_t i = 0; i < count; i++) {
        double rate = covered_rate(points[i].value, points[i].per_ns);
        sum.value += points[i].value;
        sum.per_ns += points[i].per_ns;
        if (groups->step_ns && !isnan(rate) && group->point_count <= GROWTH_STEPS)
            group->points[group->point_count++] = (struct trend_point){
                .time = (double)(points[i].time_ns - groups->from_ns) / HOUR_NS, .value = rate};
    }
    group->value = (double)sum.value;
    group->rate = covered_rate(sum.value, sum.per_ns);
    return 0;
}

struct evaluation {
    struct server *server;
    const char *tenant;
    const struct sli_rule *sli;
    int64_t from_ns, to_ns;
    struct sli_values *values;
    struct error *error;
    int result;
};

struct asked {
    const char *query, *function;
    const char *extra; /* one more label to group by; NULL: none */
    int64_t step_ns;   /* 0: the whole window */
    bool requests;     /* those that the same series count */
};

static int sum_groups(const struct evaluation *evaluation, const struct asked *asked,
                      char type[QUERY_TYPE_BYTES], struct groups *groups, struct error *error)
{
    struct server *server = evaluation->server;
    const struct sli_rule *sli = evaluation->sli;
    _cleanup_query_context_ struct query_context context = {0};
    _cleanup_query_symbols_ struct query_symbols symbols = {
        .store = server->symbols ? symbols_store(server->symbols) : NULL,
        .tenant = evaluation->tenant};
    struct query_asker asker = {evaluation->tenant, &server->stopping, 0};
    const char *by[RULES_BY_MAX + 1];
    int64_t length = evaluation->to_ns - evaluation->from_ns;
    struct store_function function = {.name = asked->function};
    struct store_timeseries_query query = {.step_ns = asked->step_ns ? asked->step_ns : length,
                                           .group_by = by,
                                           .function = asked->function ? &function : NULL,
                                           .count = STORE_CUMULATIVE};
    for (size_t i = 0; i < sli->by_count; i++)
        by[query.group_count++] = sli->by[i];
    if (asked->extra)
        by[query.group_count++] = asked->extra;
    groups->step_ns = asked->step_ns;
    groups->from_ns = evaluation->from_ns;
    int r = query_context_open(&context, server, &asker, asked->query, evaluation->from_ns,
                               evaluation->to_ns, true, error);
    if (!r)
        admit_limits(server->admissions, &context.limits);
    if (!r && asked->requests) {
        r = replicates_requests_type(server->store, &context.selection, type, error);
        context.selection.type = type;
        if (!r && !*type)
            return -ENODATA;
    } else if (!r) {
        snprintf(type, QUERY_TYPE_BYTES, "%s", context.query.type);
    }
    return r < 0 ? r
                 : query_maps_timeseries(server->symbols ? symbols_maps(server->symbols) : NULL,
                                         &symbols, server->store, &context.selection, &query,
                                         &context.limits, note_group, groups, NULL, error);
}

/* Times are in seconds. */
static double unit_of(const char *type)
{
    size_t length;
    const char *unit = query_type_part(type, 2, &length);
    return length == 11 && !memcmp(unit, "nanoseconds", 11) ? 1e-9 : 1;
}

static void check_labels(const struct evaluation *evaluation, const struct groups *groups)
{
    for (size_t i = 0; i < evaluation->sli->by_count; i++) {
        char reason[256];
        size_t have = 0;
        for (size_t k = 0; k < groups->count; k++)
            have += labels_get(&groups->list[k].labels, evaluation->sli->by[i]) != NULL;
        if (have || !groups->count)
            continue;
        snprintf(reason, sizeof(reason), "No series that the query selects has the label %.128s.",
                 evaluation->sli->by[i]);
        explain(evaluation->values, reason);
    }
}

/* ---- kinds ---- */

static int rate_or_level(struct evaluation *evaluation)
{
    const struct sli_rule *sli = evaluation->sli;
    struct groups groups = {0};
    char type[QUERY_TYPE_BYTES] = "";
    struct asked asked = {.query = sli->query, .function = sli->function};
    int r = sum_groups(evaluation, &asked, type, &groups, evaluation->error);
    if (!r && (sli->kind == SLI_LEVEL) != level_is_type(type))
        r = error_set(evaluation->error, -EINVAL, "%s is %s level: use the kind %s.", type,
                      level_is_type(type) ? "a" : "not a",
                      sli_kind_names[level_is_type(type) ? SLI_LEVEL : SLI_RATE]);
    for (size_t i = 0; !r && i < groups.count; i++) {
        if (isnan(groups.list[i].rate))
            explain(evaluation->values, "The profiles have no duration, so there is no rate.");
        else
            put(evaluation->values, &groups.list[i].labels,
                groups.list[i].rate * unit_of(type) / sli->limit);
    }
    if (!r)
        check_labels(evaluation, &groups);
    groups_release(&groups);
    return r;
}

static int cost(struct evaluation *evaluation)
{
    const struct sli_rule *sli = evaluation->sli;
    struct groups groups = {0};
    char type[QUERY_TYPE_BYTES] = "";
    struct asked asked = {.query = sli->query, .function = sli->function};
    if (!(evaluation->server->core_hour > 0))
        return error_set(evaluation->error, -EINVAL,
                         "The server's settings have no price (cost.core_hour).");
    int r = sum_groups(evaluation, &asked, type, &groups, evaluation->error);
    if (!r)
        r = rates_check_cpu(type, evaluation->error);
    for (size_t i = 0; !r && i < groups.count; i++) {
        if (isnan(groups.list[i].rate))
            explain(evaluation->values, "The profiles have no duration, so there is no rate.");
        else
            put(evaluation->values, &groups.list[i].labels,
                groups.list[i].rate * 1e-9 * evaluation->server->core_hour / sli->limit);
    }
    if (!r)
        check_labels(evaluation, &groups);
    groups_release(&groups);
    return r;
}

/* A part divided by a whole of the same labels. A part that is missing is 0 where `missing` is. */
static void divide(struct evaluation *evaluation, const struct groups *part,
                   const struct groups *whole, bool level, double factor, const char *zero)
{
    for (size_t i = 0; i < whole->count; i++) {
        const struct group *of = &whole->list[i];
        const struct group *group = group_of(part, &of->labels);
        if (!(of->value > 0))
            explain(evaluation->values, zero);
        else
            put(evaluation->values, &of->labels,
                (group ? level ? group->rate : group->value : 0) * factor / of->value);
    }
}

static int share(struct evaluation *evaluation)
{
    const struct sli_rule *sli = evaluation->sli;
    struct groups whole = {0}, part = {0};
    char type[QUERY_TYPE_BYTES] = "";
    struct asked asked = {.query = sli->query};
    int r = sum_groups(evaluation, &asked, type, &whole, evaluation->error);
    asked.function = sli->function;
    if (!r)
        r = sum_groups(evaluation, &asked, type, &part, evaluation->error);
    if (!r) {
        divide(evaluation, &part, &whole, false, 1, "The total is zero.");
        check_labels(evaluation, &whole);
    }
    groups_release(&whole);
    groups_release(&part);
    return r;
}

static int per_request(struct evaluation *evaluation)
{
    const struct sli_rule *sli = evaluation->sli;
    struct groups requests = {0}, cost = {0};
    char type[QUERY_TYPE_BYTES] = "", counted[QUERY_TYPE_BYTES] = "";
    struct asked asked = {.query = sli->query, .function = sli->function};
    int r = sum_groups(evaluation, &asked, type, &cost, evaluation->error);
    asked = (struct asked){.query = sli->query, .requests = true};
    if (!r)
        r = sum_groups(evaluation, &asked, counted, &requests, evaluation->error);
    if (r == -ENODATA)
        r = error_set(evaluation->error, -ENOENT,
                      "The service counts no requests (a type requests/count).");
    if (!r) {
        divide(evaluation, &cost, &requests, false, unit_of(type), "There were no requests.");
        check_labels(evaluation, &cost);
    }
    groups_release(&requests);
    groups_release(&cost);
    return r;
}

/* A level is its average, of everything else its sum: memory in use by memory allocated. */
static int ratio(struct evaluation *evaluation)
{
    const struct sli_rule *sli = evaluation->sli;
    struct groups whole = {0}, part = {0};
    char type[QUERY_TYPE_BYTES] = "", of[QUERY_TYPE_BYTES] = "";
    struct asked asked = {.query = sli->query};
    int r = sum_groups(evaluation, &asked, type, &part, evaluation->error);
    asked.query = sli->of;
    if (!r)
        r = sum_groups(evaluation, &asked, of, &whole, evaluation->error);
    if (!r) {
        for (size_t i = 0; level_is_type(of) && i < whole.count; i++)
            whole.list[i].value = whole.list[i].rate;
        divide(evaluation, &part, &whole, level_is_type(type), unit_of(type) / unit_of(of),
               "The divisor of the ratio is zero.");
        check_labels(evaluation, &whole);
    }
    groups_release(&whole);
    groups_release(&part);
    return r;
}

static int growth(struct evaluation *evaluation)
{
    struct groups groups = {0};
    char type[QUERY_TYPE_BYTES] = "";
    int64_t step = (evaluation->to_ns - evaluation->from_ns) / GROWTH_STEPS;
    struct asked asked = {.query = evaluation->sli->query, .step_ns = MAX(step, 1000000000ll)};
    int r = sum_groups(evaluation, &asked, type, &groups, evaluation->error);
    if (!r && !level_is_type(type))
        r = error_set(evaluation->error, -EINVAL, "%s is not a level, so it has no growth.", type);
    for (size_t i = 0; !r && i < groups.count; i++) {
        struct trend trend;
        if (trend_of(groups.list[i].points, groups.list[i].point_count, &trend))
            put(evaluation->values, &groups.list[i].labels, trend.slope);
        else
            explain(evaluation->values, "There are too few snapshots in the window.");
    }
    groups_release(&groups);
    return r;
}

/* ---- quantiles ---- */

struct process {
    struct labels labels; /* without that of the process */
    double value;
};

static int by_labels_and_value(const void *a, const void *b)
{
    const struct process *x = a, *y = b;
    int order = labels_compare(&x->labels, &y->labels);
    return order ? order : x->value < y->value ? -1 : x->value > y->value;
}

/* Between the two nearest values. */
static double quantile_of(const struct process *list, size_t count, double quantile)
{
    double at = quantile * (double)(count - 1);
    size_t below = (size_t)at;
    double rest = at - (double)below;
    return below + 1 < count ? list[below].value * (1 - rest) + list[below + 1].value * rest
                             : list[below].value;
}

static int quantile(struct evaluation *evaluation)
{
    const struct sli_rule *sli = evaluation->sli;
    struct groups groups = {0};
    char type[QUERY_TYPE_BYTES] = "";
    struct asked asked = {.query = sli->query, .function = sli->function, .extra = sli->per};
    int r = sum_groups(evaluation, &asked, type, &groups, evaluation->error);
    struct process *list = memory_zalloc(groups.count + 1, sizeof(*list));
    size_t count = 0;
    for (size_t i = 0; !r && i < groups.count; i++) {
        const struct group *group = &groups.list[i];
        if (isnan(group->rate) || !labels_get(&group->labels, sli->per))
            continue;
        labels_copy(&list[count].labels, &group->labels);
        labels_remove(&list[count].labels, sli->per);
        list[count++].value = group->rate * unit_of(type) / sli->limit;
    }
    if (count)
        qsort(list, count, sizeof(*list), by_labels_and_value);
    else if (groups.count)
        explain(evaluation->values, "No series has the label of processes that per names.");
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from; to < count && labels_equal(&list[to].labels, &list[from].labels); to++)
            ;
        put(evaluation->values, &list[from].labels,
            quantile_of(list + from, to - from, sli->quantile));
    }
    for (size_t i = 0; i < count; i++)
        labels_release(&list[i].labels);
    free(list);
    groups_release(&groups);
    return r;
}

/* ---- what is not in time series ---- */

static int unnamed(struct evaluation *evaluation)
{
    _cleanup_query_context_ struct query_context context = {0};
    _cleanup_profile_ struct profile profile;
    struct query_asker asker = {evaluation->tenant, &evaluation->server->stopping, 0};
    struct labels none = {0};
    double without = 0, all = 0;
    profile_init(&profile, 0);
    int r = query_context_open(&context, evaluation->server, &asker, evaluation->sli->query,
                               evaluation->from_ns, evaluation->to_ns, true, evaluation->error);
    if (!r)
        r = query_context_merge(&context, &profile, &(struct store_quality){0}, evaluation->error);
    if (r < 0)
        return r;
    quality_count_unnamed(&profile, &without, &all);
    if (all > 0)
        put(evaluation->values, &none, without / all);
    return 0;
}

static int overhead(struct evaluation *evaluation)
{
    struct labels none = {0};
    double greatest = 0;
    size_t count = evaluation->server->control
                       ? control_overhead(evaluation->server->control, evaluation->tenant,
                                          evaluation->from_ns, &greatest)
                       : 0;
    if (count)
        put(evaluation->values, &none, greatest);
    else
        explain(evaluation->values, "No agent has reported its CPU time.");
    return 0;
}

static int upload_success(struct evaluation *evaluation)
{
    struct labels none = {0};
    double share = evaluation->server->ingest
                       ? senders_success(evaluation->server->ingest->senders, evaluation->tenant,
                                         evaluation->from_ns)
                       : NAN;
    if (isnan(share))
        explain(evaluation->values, "There were no pushes in the window.");
    else
        put(evaluation->values, &none, share);
    return 0;
}

static void run(void *userdata)
{
    static int (*const kinds[SLI_KINDS])(struct evaluation *) = {
        [SLI_SHARE] = share,
        [SLI_RATE] = rate_or_level,
        [SLI_PER_REQUEST] = per_request,
        [SLI_LEVEL] = rate_or_level,
        [SLI_GROWTH] = growth,
        [SLI_QUANTILE] = quantile,
        [SLI_RATIO] = ratio,
        [SLI_UNNAMED] = unnamed,
        [SLI_AGENT_OVERHEAD] = overhead,
        [SLI_COST] = cost,
        [SLI_UPLOAD_SUCCESS] = upload_success,
    };
    struct evaluation *evaluation = userdata;
    evaluation->result = kinds[evaluation->sli->kind](evaluation);
}

int sli_evaluate(struct server *server, const char *tenant, const struct sli_rule *sli,
                 int64_t now_ns, struct sli_values *ret_values, struct error *error)
{
    struct error own = {0};
    struct sli_values values = {0};
    struct evaluation evaluation = {.server = server,
                                    .tenant = tenant,
                                    .sli = sli,
                                    .from_ns = now_ns - sli->window_ns,
                                    .to_ns = now_ns,
                                    .values = &values,
                                    .error = &own};
    if (!admissions_run_job(server->admissions, ADMIT_QUERY, &server->stopping, run, &evaluation))
        evaluation.result = error_set(&own, -EAGAIN, "No memory is free for a query.");
    if (evaluation.result == -EAGAIN || evaluation.result == -ECANCELED) {
        sli_values_release(&values);
        return error_set(error, evaluation.result, "%s", own.text);
    }
    if (evaluation.result < 0)
        explain(&values,
                evaluation.result == -ENOENT && !*own.text ? "There is no data." : own.text);
    else if (!values.count)
        explain(&values, "No profile matches the query in the window.");
    *ret_values = values;
    return 0;
}
