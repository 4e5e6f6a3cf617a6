// SPDX-License-Identifier: Apache-2.0
// Chooses one source per service, or per pod or host of it. See sources.h.

#include "query/sources.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "label/selector.h"

/* Process time within this share of the most is as good. */
#define AS_GOOD 0.9

void query_sources_release(struct query_sources *sources)
{
    for (size_t i = 0; i < sources->count; i++) {
        free(sources->services[i].service);
        free(sources->services[i].source);
        free(sources->services[i].others);
    }
    for (size_t i = 0; i < sources->excluded_count; i++) {
        free((char *)sources->excluded[i].service);
        free((char *)sources->excluded[i].source);
        free((char *)sources->excluded[i].value);
    }
    free(sources->services);
    free(sources->excluded);
    *sources = (struct query_sources){0};
}

struct observed { /* a service by one source */
    char *service, *source;
    int64_t process_ns;
};

struct observations {
    struct observed *list;
    size_t count, capacity;
};

static void observations_release(struct observations *all)
{
    for (size_t i = 0; i < all->count; i++) {
        free(all->list[i].service);
        free(all->list[i].source);
    }
    free(all->list);
}

static int count_text(void *context, const char *text)
{
    (void)text;
    ++*(size_t *)context;
    return 0;
}

static int note(void *context, const struct labels *group, const struct store_point *points,
                size_t count)
{
    struct observations *all = context;
    const char *service = labels_get(group, LABEL_SERVICE_NAME);
    const char *source = labels_get(group, LABEL_SOURCE);
    array_reserve(all->list, all->capacity, all->count + 1);
    struct observed *observed = &all->list[all->count++];
    *observed = (struct observed){.service = memory_strdup(service ? service : ""),
                                  .source = memory_strdup(source ? source : "")};
    for (size_t i = 0; i < count; i++)
        observed->process_ns += points[i].process_ns;
    return 0;
}

static unsigned preference(const char *source)
{
    static const char *const order[] = {"scrape", "push", "agent"};
    for (unsigned i = 0; i < ARRAY_LENGTH(order); i++)
        if (!strcmp(source, order[i]))
            return i + 1;
    return 0;
}

static bool is_better(const struct observed *a, const struct observed *b)
{
    double most = (double)MAX(a->process_ns, b->process_ns);
    if ((double)MIN(a->process_ns, b->process_ns) < AS_GOOD * most)
        return a->process_ns > b->process_ns;
    return preference(a->source) > preference(b->source);
}

static int by_quality(const void *a, const void *b)
{
    return is_better(a, b) ? -1 : is_better(b, a) ? 1 : 0;
}

static void exclude(struct query_sources *sources, const struct observed *observed,
                    const char *label, const char *value)
{
    array_reserve(sources->excluded, sources->excluded_capacity, sources->excluded_count + 1);
    sources->excluded[sources->excluded_count++] =
        (struct store_exclusion){.service = memory_strdup(observed->service),
                                 .source = memory_strdup(observed->source),
                                 .label = label,
                                 .value = value ? memory_strdup(value) : NULL};
}

/* ---- pods and hosts ---- */

/* Labels that identify a process in the same way for all observers, the finest first. */
static const char *const place_labels[] = {"pod", "host"};
#define PLACE_LABELS ARRAY_LENGTH(place_labels)

struct sighting { /* a series of a service that has several sources */
    size_t observed;
    char *places[PLACE_LABELS]; /* NULL: it has no such label */
    int64_t first_ns, last_ns;
};

struct sightings {
    const struct observations *observations; /* by service, the best source first */
    const struct store_selection *selection;
    struct sighting *list;
    size_t count, capacity;
};

static void sightings_release(struct sightings *sightings)
{
    for (size_t i = 0; i < sightings->count; i++)
        for (size_t p = 0; p < PLACE_LABELS; p++)
            free(sightings->list[i].places[p]);
    free(sightings->list);
}

static size_t find_observed(const struct observations *all, const char *service, const char *source)
{
    size_t low = 0, high = all->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(all->list[middle].service, service) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < all->count && !strcmp(all->list[low].service, service); low++)
        if (!strcmp(all->list[low].source, source))
            return low;
    return SIZE_MAX;
}

static int note_sighting(void *context, const struct labels *labels, const char *type,
                         int64_t first_ns, int64_t last_ns)
{
    struct sightings *sightings = context;
    const char *service = labels_get(labels, LABEL_SERVICE_NAME);
    const char *source = labels_get(labels, LABEL_SOURCE);
    size_t observed =
        find_observed(sightings->observations, service ? service : "", source ? source : "");
    (void)type;
    if (observed == SIZE_MAX)
        return 0;
    array_reserve(sightings->list, sightings->capacity, sightings->count + 1);
    struct sighting *sighting = &sightings->list[sightings->count++];
    *sighting = (struct sighting){.observed = observed,
                                  .first_ns = MAX(first_ns, sightings->selection->from_ns),
                                  .last_ns = MIN(last_ns, sightings->selection->to_ns)};
    for (size_t p = 0; p < PLACE_LABELS; p++) {
        const char *place = labels_get(labels, place_labels[p]);
        if (place && *place)
            sighting->places[p] = memory_strdup(place);
    }
    return 0;
}

static int by_observed(const void *a, const void *b)
{
    const struct sighting *x = a, *y = b;
    return x->observed < y->observed ? -1 : x->observed > y->observed;
}

/* The finest label that all series of a service have. */
static size_t find_place_label(const struct sighting *list, size_t count)
{
    size_t p = 0;
    for (size_t i = 0; p < PLACE_LABELS && i < count; i++)
        if (!list[i].places[p]) {
            p++;
            i = SIZE_MAX; /* begin again */
        }
    return p;
}

struct place { /* one pod or host, by one source */
    const char *name;
    size_t observed;
    int64_t first_ns, last_ns;
};

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : x->observed < y->observed ? -1 : x->observed > y->observed;
}

static bool lasts_longer(const struct place *a, const struct place *b)
{
    return AS_GOOD * (double)(a->last_ns - a->first_ns) > (double)(b->last_ns - b->first_ns);
}

/* One entry per place and source, in the order of names and then of sources, best first. */
static size_t gather_places(const struct sighting *list, size_t count, size_t label,
                            struct place *places)
{
    size_t gathered = 0;
    for (size_t i = 0; i < count; i++)
        places[i] = (struct place){list[i].places[label], list[i].observed, list[i].first_ns,
                                   list[i].last_ns};
    qsort(places, count, sizeof(*places), by_place);
    for (size_t i = 0; i < count; i++) {
        if (gathered && !by_place(&places[gathered - 1], &places[i])) {
            struct place *into = &places[gathered - 1];
            into->first_ns = MIN(into->first_ns, places[i].first_ns);
            into->last_ns = MAX(into->last_ns, places[i].last_ns);
        } else {
            places[gathered++] = places[i];
        }
    }
    return gathered;
}

static size_t best_of_place(const struct place *places, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (lasts_longer(&places[i], &places[best]))
            best = i;
    return best;
}

/* Adds a source to the list, if it is not the service's first choice and not in it. */
static void note_other(struct buffer *others, const struct query_service *service,
                       const char *source)
{
    size_t length = strlen(source);
    if (!strcmp(source, service->source))
        return;
    for (const char *at = others->length ? buffer_text(others) : ""; *at;) {
        size_t next = strcspn(at, QUERY_SOURCES_SEPARATOR);
        if (next == length && !memcmp(at, source, length))
            return;
        at += next + (at[next] != 0);
    }
    buffer_printf(others, "%s%s", others->length ? QUERY_SOURCES_SEPARATOR : "", source);
}

/* Excludes, place by place, all sources but the best. False, and nothing is excluded, when one
 * source is the best everywhere, or no label tells places apart. */
static bool choose_by_place(struct query_sources *sources, struct query_service *service,
                            const struct observations *seen, const struct sighting *list,
                            size_t count)
{
    size_t label = find_place_label(list, count);
    if (!count || label == PLACE_LABELS)
        return false;
    _cleanup_free_ struct place *places = memory_zalloc(count, sizeof(*places));
    size_t place_count = gather_places(list, count, label, places);
    _cleanup_buffer_ struct buffer others = {0};
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0, end; i < place_count; i = end) {
            for (end = i + 1; end < place_count && !strcmp(places[end].name, places[i].name); end++)
                ;
            size_t best = i + best_of_place(places + i, end - i);
            if (!pass)
                note_other(&others, service, seen->list[places[best].observed].source);
            for (size_t k = i; pass && k < end; k++)
                if (k != best)
                    exclude(sources, &seen->list[places[k].observed], place_labels[label],
                            places[k].name);
        }
        if (!others.length)
            return false;
    }
    service->by = place_labels[label];
    service->others = memory_strdup(buffer_text(&others));
    return true;
}

/* ---- services ---- */

/* `list` has the sources of one service, the best first; `sightings` its series. */
static void choose(struct query_sources *sources, const struct observations *seen, size_t first,
                   size_t end, const struct sighting *sightings, size_t sighting_count)
{
    const struct observed *list = seen->list;
    array_reserve(sources->services, sources->capacity, sources->count + 1);
    struct query_service *service = &sources->services[sources->count++];
    *service = (struct query_service){.service = memory_strdup(list[first].service),
                                      .source = memory_strdup(list[first].source)};
    if (choose_by_place(sources, service, seen, sightings, sighting_count))
        return;
    for (size_t i = first + 1; i < end; i++)
        exclude(sources, &list[i], NULL, NULL);
}

static bool is_decided(const struct selector *selector)
{
    for (size_t i = 0; selector && i < selector->count; i++)
        if (!strcmp(selector->matchers[i].name, LABEL_SOURCE))
            return true;
    return false;
}

static int by_service(const void *a, const void *b)
{
    return strcmp(((const struct observed *)a)->service, ((const struct observed *)b)->service);
}

static int by_exclusion(const void *a, const void *b)
{
    return store_exclusion_compare(a, b);
}

/* Puts the observations in order, and drops those of services that have a single source. */
static void keep_disputed(struct observations *all)
{
    size_t kept = 0;
    if (all->count)
        qsort(all->list, all->count, sizeof(*all->list), by_service);
    for (size_t i = 0, end; i < all->count; i = end) {
        for (end = i + 1; end < all->count && !by_service(&all->list[end], &all->list[i]); end++)
            ;
        if (end - i == 1) {
            free(all->list[i].service);
            free(all->list[i].source);
            continue;
        }
        qsort(all->list + i, end - i, sizeof(*all->list), by_quality);
        memmove(all->list + kept, all->list + i, (end - i) * sizeof(*all->list));
        kept += end - i;
    }
    all->count = kept;
}

static void choose_all(struct query_sources *sources, const struct observations *seen,
                       struct sightings *sightings)
{
    size_t at = 0;
    if (sightings->count)
        qsort(sightings->list, sightings->count, sizeof(*sightings->list), by_observed);
    for (size_t i = 0, end; i < seen->count; i = end) {
        for (end = i + 1; end < seen->count && !by_service(&seen->list[end], &seen->list[i]); end++)
            ;
        size_t first = at;
        while (at < sightings->count && sightings->list[at].observed < end)
            at++;
        choose(sources, seen, i, end, sightings->list + first, at - first);
    }
    if (sources->excluded_count)
        qsort(sources->excluded, sources->excluded_count, sizeof(*sources->excluded), by_exclusion);
}

int query_sources_choose(struct query_sources *sources, struct store *store,
                         struct store_selection *selection, const struct store_limits *limits,
                         struct error *error)
{
    size_t known = 0;
    if (is_decided(selection->selector))
        return 0;
    int r = store_label_values(store, selection, LABEL_SOURCE, count_text, &known, error);
    if (r < 0 || known < 2)
        return r;
    static const char *const by[] = {LABEL_SERVICE_NAME, LABEL_SOURCE};
    int64_t from = MAX(selection->from_ns, (int64_t)0);
    struct store_timeseries_query query = {.step_ns =
                                               MAX(selection->to_ns - from, (int64_t)1000000000),
                                           .group_by = by,
                                           .group_count = ARRAY_LENGTH(by)};
    struct store_selection all = *selection;
    all.from_ns = from;
    _cleanup_(observations_release) struct observations seen = {0};
    _cleanup_(sightings_release) struct sightings sightings = {.observations = &seen,
                                                               .selection = selection};
    r = store_timeseries(store, &all, &query, limits, note, &seen, NULL, error);
    if (r < 0)
        return r;
    keep_disputed(&seen);
    if (seen.count)
        r = store_series(store, &all, note_sighting, &sightings, error);
    if (r < 0)
        return r;
    choose_all(sources, &seen, &sightings);
    selection->excluded = sources->excluded;
    selection->excluded_count = sources->excluded_count;
    return 0;
}
