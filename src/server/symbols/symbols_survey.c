// SPDX-License-Identifier: Apache-2.0
// Which services lack names, and whose: see symbols.h.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "label/labels.h"
#include "query/covered.h"
#include "query/naming/named.h"
#include "query/query.h"
#include "query/sources.h"
#include "server/symbols/symbols.h"

#define SERVICES_MAX 1000
#define MISSING_MAX 1000 /* of one service */
#define SHORT_TYPE "cpu"

void symbols_survey_release(struct symbols_survey *survey)
{
    for (size_t i = 0; i < survey->service_count; i++) {
        free(survey->services[i].tenant);
        free(survey->services[i].name);
        free(survey->services[i].type);
    }
    for (size_t i = 0; i < survey->missing_count; i++) {
        free(survey->missing[i].build_id);
        free(survey->missing[i].file);
    }
    free(survey->services);
    free(survey->missing);
    *survey = (struct symbols_survey){0};
}

static void add_missing(struct symbols_survey *survey, size_t service,
                        const struct profile *profile, const struct query_nameless *nameless)
{
    const struct profile_mapping *mapping = &profile->mappings[nameless->mapping];
    array_reserve(survey->missing, survey->missing_capacity, survey->missing_count + 1);
    survey->missing[survey->missing_count++] = (struct symbols_missing){
        .service = service,
        .build_id =
            memory_strdup(nameless->mapping ? profile_text(profile, mapping->build_id) : ""),
        .file = memory_strdup(nameless->mapping ? profile_text(profile, mapping->file) : ""),
        .value = nameless->value,
        .frames = nameless->frames};
}

static void add_service(struct symbols_survey *survey, const char *tenant, const char *name,
                        const char *type, const struct profile *profile,
                        const struct store_quality *quality)
{
    _cleanup_query_named_ struct query_named named = {0};
    query_count_named(profile, &named);
    array_reserve(survey->services, survey->service_capacity, survey->service_count + 1);
    survey->services[survey->service_count] =
        (struct symbols_service){.tenant = memory_strdup(tenant),
                                 .name = memory_strdup(name),
                                 .type = memory_strdup(type),
                                 .named_share = named.all > 0 ? named.named / named.all : 1,
                                 .total = (double)quality->total};
    for (size_t i = 0; i < named.count && i < MISSING_MAX; i++)
        add_missing(survey, survey->service_count, profile, &named.list[i]);
    survey->service_count++;
}

static int by_value(const void *a, const void *b)
{
    const struct symbols_missing *x = a, *y = b;
    return (x->value < y->value) - (x->value > y->value);
}

struct names {
    struct buffer text;
    size_t count;
    bool cut;
};

static int add_name(void *context, const char *text)
{
    struct names *names = context;
    names->cut = names->count == SERVICES_MAX;
    if (names->cut)
        return 1;
    buffer_add(&names->text, text, strlen(text) + 1);
    names->count++;
    return 0;
}

/* One service's samples of the type. A service without any is not an error. */
static int survey_service(struct symbols *symbols, struct store *store,
                          const struct store_selection *all, const struct query *query,
                          const char *text, const char *name, const struct store_limits *limits,
                          struct symbols_survey *survey, struct error *error)
{
    _cleanup_query_ struct query own = {0};
    _cleanup_(query_sources_release) struct query_sources sources = {0};
    _cleanup_profile_ struct profile profile;
    struct store_selection selection = *all;
    struct store_quality quality = {0};
    profile_init(&profile, 0);
    int r = query_parse(text, &own, error);
    if (!r)
        r = query_leave_recordings(&own, error);
    if (!r)
        r = selector_add(&own.selector, MATCH_EQUAL, LABEL_SERVICE_NAME, name, error);
    if (!r) {
        selection.type = query->type;
        selection.selector = &own.selector;
        r = query_sources_choose(&sources, store, &selection, limits, error);
    }
    if (!r)
        r = store_merge(store, &selection, limits, &profile, &quality, error);
    if (!r)
        covered_settle(query->type, &profile, &quality);
    if (!r && quality.windows)
        r = symbols_name(symbols, all->tenant, &profile, error);
    if (!r && quality.windows)
        add_service(survey, all->tenant, name, query->type, &profile, &quality);
    return r;
}

int symbols_survey_add(struct symbols *symbols, struct store *store, const char *tenant,
                       const char *text, int64_t from_ns, int64_t to_ns,
                       const struct store_limits *limits, struct symbols_survey *survey,
                       struct error *error)
{
    _cleanup_query_ struct query query = {0};
    struct names names = {0};
    int r = query_parse(text, &query, error);
    if (!r && !*query.type)
        strcpy(query.type, SHORT_TYPE);
    struct match_budget matching = {.limit_ns = MATCH_BUDGET_NS, .cancelled = limits->cancelled};
    struct store_selection selection = {.tenant = tenant,
                                        .selector = &query.selector,
                                        .from_ns = from_ns,
                                        .to_ns = to_ns,
                                        .matching = &matching};
    if (!r)
        r = query_resolve(&query, store, &selection, error);
    if (r == -ENOENT)
        return 0; /* nothing lacks a name there */
    selection.type = query.type;
    if (!r)
        r = store_label_values(store, &selection, LABEL_SERVICE_NAME, add_name, &names, error);
    r = r > 0 ? 0 : r;
    for (size_t at = 0; !r && at < names.text.length; at += strlen(names.text.data + at) + 1)
        r = survey_service(symbols, store, &selection, &query, text, names.text.data + at, limits,
                           survey, error);
    survey->cut |= names.cut;
    buffer_release(&names.text);
    if (survey->missing_count)
        qsort(survey->missing, survey->missing_count, sizeof(*survey->missing), by_value);
    return r;
}
