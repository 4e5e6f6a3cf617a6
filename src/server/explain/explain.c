// SPDX-License-Identifier: Apache-2.0
// Explanations: see explain.h.

#include "server/explain/explain.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "label/quote.h"
#include "query/naming/maps.h"
#include "query/naming/names.h"
#include "server/query/rates.h"
#include "server/symbols/symbols.h"

#define FALSE_DISCOVERIES 0.05
#define SHARE_LEAST 0.005 /* of the service; smaller functions are not judged */
#define GROWTH_LEAST 0.02 /* smaller growth explains nothing */
#define UNCERTAIN_MOST 3
#define EXEMPLARS_MOST 20000
#define VERSIONS_GROUPS 1000

/* ---- causes ---- */

static int by_change(const void *a, const void *b)
{
    const struct compare_row *x = *(const struct compare_row *const *)a;
    const struct compare_row *y = *(const struct compare_row *const *)b;
    if (x->total.change != y->total.change)
        return x->total.change > y->total.change ? -1 : 1;
    return strcmp(x->function->name, y->function->name);
}

/* Those that grew for certain, or else those that seem to have grown. */
static size_t list_grown(struct explanation *explanation, bool certain)
{
    const struct comparison *comparison = &explanation->compared.comparison;
    size_t grown = 0;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct compare_measure *total = &comparison->rows[i].total;
        if (total->growth >= GROWTH_LEAST && total->change > 0 &&
            (total->verdict == COMPARE_GREW) == certain)
            explanation->causes[grown++] = &comparison->rows[i];
    }
    if (grown)
        qsort(explanation->causes, grown, sizeof(*explanation->causes), by_change);
    return MIN(grown, (size_t)CAUSE_CANDIDATES_MAX);
}

static void find_causes(struct explanation *explanation)
{
    const struct compared *compared = &explanation->compared;
    const struct comparison *comparison = &compared->comparison;
    const bool known[CAUSE_CANDIDATES_MAX] = {0};
    struct cause_side sides[COMPARE_SIDES];
    explanation->causes = memory_alloc((comparison->count + 1) * sizeof(*explanation->causes));
    for (size_t i = 0; i < comparison->count; i++)
        explanation->undecided += comparison->rows[i].total.verdict == COMPARE_UNDECIDED &&
                                  comparison->rows[i].total.change > 0;
    size_t grown = list_grown(explanation, true), most = CAUSES_MAX;
    explanation->certain = grown > 0;
    if (!grown && explanation->symptoms.chosen->rose) {
        grown = list_grown(explanation, false);
        most = UNCERTAIN_MOST;
    }
    for (int i = 0; i < COMPARE_SIDES; i++)
        sides[i] = (struct cause_side){.profile = &compared->sides[i].profile,
                                       .naming = &compared->sides[i].naming,
                                       .exposure = comparison->exposure[i]};
    explanation->cause_count = MIN(causes_keep(sides, explanation->causes, known, grown), most);
}

static int compare_query(struct explanation *explanation, const char *text, struct error *error)
{
    const struct symptom *symptom = explanation->symptoms.chosen;
    struct compared_query query = {
        .tenant = explanation->tenant,
        .cancelled = &explanation->server->stopping,
        .sides = {{text, symptom->base_from_ns, symptom->base_to_ns},
                  {text, explanation->from_ns, explanation->to_ns}},
        .options = {.normalize = COMPARE_PER_SECOND,
                    .false_discovery_rate = FALSE_DISCOVERIES,
                    .min_share = SHARE_LEAST},
    };
    explanation->made = true; /* even a failure has to be released */
    explanation->query = text;
    return compared_make(explanation->server, &query, &explanation->compared, error);
}

/* A state that wasn't there in the calm time has no base: then all states are compared. */
static int compare_symptom(struct explanation *explanation, struct error *error)
{
    const struct symptom *symptom = explanation->symptoms.chosen;
    struct error own = {0};
    int r = compare_query(explanation, symptom->query, &own);
    if (r == -ENOENT && symptom->whole) {
        compared_release(&explanation->compared);
        r = compare_query(explanation, symptom->whole, &own);
    }
    if (r < 0)
        return error_set(error, r, "%s", own.text);
    find_causes(explanation);
    return 0;
}

/* ---- since which version ---- */

struct version_share {
    const struct version_span *span;
    double part, whole;
};

static int sum_by_version(struct explanation *explanation, const char *function,
                          struct rate_groups *groups, struct error *error)
{
    static const char *const by[] = {"version"};
    const struct symptom *symptom = explanation->symptoms.chosen;
    _cleanup_query_context_ struct query_context context = {0};
    struct query_asker asker = {explanation->tenant, &explanation->server->stopping, 0};
    struct store_function wanted = {.name = function};
    struct store_timeseries_query query = {.step_ns = explanation->to_ns - symptom->base_from_ns,
                                           .group_by = by,
                                           .group_count = 1,
                                           .function = function ? &wanted : NULL,
                                           .count = STORE_CUMULATIVE};
    int r = query_context_open(&context, explanation->server, &asker, explanation->query,
                               symptom->base_from_ns, explanation->to_ns, true, error);
    groups->most = VERSIONS_GROUPS;
    return r < 0 ? r : rate_groups_read(&context, &query, groups, NULL, error);
}

static double value_of(const struct rate_groups *groups, const char *version)
{
    for (size_t i = 0; i < groups->count; i++) {
        const char *found = labels_get(&groups->list[i].labels, "version");
        if (found && !strcmp(found, version))
            return groups->list[i].value;
    }
    return 0;
}

/* Versions of the service begin at *ret_first of the list. */
static size_t own_versions(const struct explanation *explanation, size_t *ret_first)
{
    const struct version_list *list = &explanation->versions;
    size_t first = 0, count = 0;
    while (first < list->count && strcmp(list->spans[first].service, explanation->service) != 0)
        first++;
    while (first + count < list->count &&
           !strcmp(list->spans[first + count].service, explanation->service))
        count++;
    *ret_first = first;
    return count;
}

/*
 * The version from which on a function has the share that it has now, and not the one that it had:
 * all versions from it on are on one side of the middle, and all before it on the other.
 */
static int find_since(struct explanation *explanation, struct error *error)
{
    const struct symptom *symptom = explanation->symptoms.chosen;
    int r =
        version_list_read(&explanation->versions, explanation->server->store, explanation->tenant,
                          symptom->base_from_ns, explanation->to_ns, error);
    size_t first = 0, count = own_versions(explanation, &first), since = 0;
    if (r < 0 || count < 2 || !explanation->cause_count || !explanation->certain)
        return r;
    const struct compare_row *cause = explanation->causes[0];
    const struct version_span *spans = &explanation->versions.spans[first];
    _cleanup_rate_groups_ struct rate_groups whole = {0}, part = {0};
    double middle = (cause->share[COMPARE_BASE] + cause->share[COMPARE_NEW]) / 2;
    if (cause->share[COMPARE_NEW] < cause->share[COMPARE_BASE] * (1 + GROWTH_LEAST))
        return 0; /* everything grew alike: no share tells versions apart */
    r = sum_by_version(explanation, NULL, &whole, error);
    if (!r)
        r = sum_by_version(explanation, cause->function->name, &part, error);
    if (r < 0)
        return r;
    for (size_t i = count; i-- > 0;) {
        double all = value_of(&whole, spans[i].version);
        double share = all > 0 ? value_of(&part, spans[i].version) / all : 0;
        if (share < middle) {
            since = i + 1;
            break;
        }
    }
    for (size_t i = 0; i < since; i++) { /* one that had it before isn't where it began */
        double all = value_of(&whole, spans[i].version);
        if (all > 0 && value_of(&part, spans[i].version) / all >= middle)
            return 0;
    }
    if (since > 0 && since < count)
        explanation->since = &spans[since];
    return 0;
}

/* ---- traces ---- */

struct gathering {
    struct explanation *explanation;
    size_t seen;
};

static int gather(void *context, const struct labels *labels, const struct profile *profile,
                  const struct store_exemplar *exemplar)
{
    static const uint8_t none[sizeof(exemplar->link.trace_id)];
    struct gathering *gathering = context;
    struct explanation *explanation = gathering->explanation;
    struct explain_trace *traces = explanation->traces;
    size_t at = explanation->trace_count;
    (void)labels;
    (void)profile;
    if (++gathering->seen > EXEMPLARS_MOST)
        return 1;
    if (!memcmp(exemplar->link.trace_id, none, sizeof(none)))
        return 0;
    for (size_t i = 0; i < explanation->trace_count; i++)
        if (!memcmp(traces[i].link.trace_id, exemplar->link.trace_id, sizeof(none)))
            at = i;
    if (at < explanation->trace_count && traces[at].value >= exemplar->value)
        return 0;
    if (at == EXPLAIN_TRACES) {
        if (traces[--at].value >= exemplar->value)
            return 0;
    } else if (at == explanation->trace_count) {
        explanation->trace_count++;
    }
    for (; at && traces[at - 1].value < exemplar->value; at--)
        traces[at] = traces[at - 1];
    traces[at] = (struct explain_trace){exemplar->link, exemplar->value, exemplar->time_ns};
    return 0;
}

static int find_traces(struct explanation *explanation, struct error *error)
{
    struct server *server = explanation->server;
    struct gathering gathering = {explanation, 0};
    _cleanup_query_context_ struct query_context context = {0};
    struct query_asker asker = {explanation->tenant, &server->stopping, 0};
    _cleanup_query_symbols_ struct query_symbols symbols = {
        .store = server->symbols ? symbols_store(server->symbols) : NULL,
        .tenant = explanation->tenant};
    const char *function = explanation->cause_count ? explanation->causes[0]->function->name : NULL;
    int r = query_context_open(&context, server, &asker, explanation->query, explanation->from_ns,
                               explanation->to_ns, true, error);
    if (!r)
        r = query_maps_exemplars(server->symbols ? symbols_maps(server->symbols) : NULL, &symbols,
                                 server->store, &context.selection, function, &context.limits,
                                 gather, &gathering, error);
    return MIN(r, 0);
}

/* ---- all of it ---- */

int explain_make(struct explanation *explanation, struct error *error)
{
    int r = symptoms_find(explanation->server, explanation->tenant, explanation->service,
                          explanation->from_ns, explanation->to_ns, &explanation->symptoms, error);
    if (!r)
        r = compare_symptom(explanation, error);
    if (!r)
        r = find_since(explanation, error);
    return r < 0 ? r : find_traces(explanation, error);
}

void explain_release(struct explanation *explanation)
{
    version_list_release(&explanation->versions);
    free(explanation->causes);
    if (explanation->made)
        compared_release(&explanation->compared);
    symptoms_release(&explanation->symptoms);
}
