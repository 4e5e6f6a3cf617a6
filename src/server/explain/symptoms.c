// SPDX-License-Identifier: Apache-2.0
// Symptoms: see symptoms.h.

#include "server/explain/symptoms.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "label/quote.h"
#include "server/query/rates.h"

#define CALM_STEPS 6
#define SPREAD_LEAST 0.03   /* of the median: rates vary by that much anyway */
#define RISE_LEAST 0.05     /* likewise */
#define TO_DEVIATION 1.4826 /* from the median absolute deviation */
#define DEVIATIONS_LEAST 3.0
#define DEVIATIONS_MOST 50.0
#define SECONDS 1e-9
#define MIB (1.0 / 1048576)

/* Those that come first are looked at first where several rose alike. `least` is what matters. */
static const struct {
    const char *name, *words, *unit, *type, *state;
    double scale, least;
} kinds[SYMPTOMS] = {
    {"cpu", "CPU time", "cores", "cpu", NULL, SECONDS, 0.02},
    {"run queue", "time in the run queue", "threads", "wall", "runnable", SECONDS, 0.05},
    {"locks", "time spent waiting for locks", "threads", "wall", "lock", SECONDS, 0.05},
    {"contention", "contention of mutexes", "threads", "mutex_delay", NULL, SECONDS, 0.05},
    {"disk", "time spent waiting for disks", "threads", "wall", "disk", SECONDS, 0.05},
    {"heap", "memory in use", "MiB", "inuse_space", NULL, MIB, 1},
    {"rss", "resident memory", "MiB", "rss", NULL, MIB, 1},
    {"allocations", "allocations", "MiB/s", "alloc_space", NULL, MIB, 0.1},
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Sorts. */
static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

size_t symptoms_calm(const double *rates, size_t count, size_t most, double *ret_median,
                     double *ret_spread, size_t *ret_first)
{
    double known[SYMPTOM_STEPS_MAX], best = INFINITY;
    size_t have = 0, run = 0, length = 0;
    for (size_t i = 0; i < count && have < SYMPTOM_STEPS_MAX; i++)
        if (!isnan(rates[i]))
            known[have++] = rates[i];
    if (!have)
        return 0;
    double middle = median(known, have);
    for (size_t i = 0; i < have; i++)
        known[i] = fabs(known[i] - middle);
    *ret_median = middle;
    *ret_spread = median(known, have) * TO_DEVIATION;
    for (size_t i = 0; i < count; i++) {
        run = isnan(rates[i]) ? 0 : run + 1;
        size_t wanted = MIN(run, most);
        if (!wanted || wanted < length)
            continue;
        double distance = 0;
        for (size_t k = 0; k < wanted; k++)
            distance += fabs(rates[i - k] - middle) / (double)wanted;
        if (wanted == length && distance > best)
            continue;
        length = wanted;
        best = distance;
        *ret_first = i + 1 - wanted;
    }
    return length;
}

static void judge(struct symptom *symptom, const double *rates, size_t count, double least,
                  int64_t first_ns, int64_t step_ns)
{
    double spread = 0;
    size_t first = 0, length = 0;
    symptom->value = rates[count - 1];
    /* What is nearest to the window may have begun to rise. */
    if (count > 2)
        length = symptoms_calm(rates, count - 2, CALM_STEPS, &symptom->base, &spread, &first);
    if (!length && count > 1)
        length = symptoms_calm(rates, count - 1, CALM_STEPS, &symptom->base, &spread, &first);
    symptom->known = length && !isnan(symptom->value);
    if (!symptom->known)
        return;
    double rise = symptom->value - symptom->base;
    double deviation = fmax(spread, SPREAD_LEAST * fabs(symptom->base));
    symptom->deviations = deviation > 0
                              ? fmax(fmin(rise / deviation, DEVIATIONS_MOST), -DEVIATIONS_MOST)
                          : rise > 0 ? DEVIATIONS_MOST
                                     : 0;
    symptom->rose = rise >= least && rise >= RISE_LEAST * fabs(symptom->base) &&
                    symptom->deviations >= DEVIATIONS_LEAST;
    symptom->base_from_ns = first_ns + (int64_t)first * step_ns;
    symptom->base_to_ns = symptom->base_from_ns + (int64_t)length * step_ns;
}

static void write_query(struct buffer *out, const char *type, const char *service,
                        const char *state)
{
    buffer_printf(out, "%s{service_name=", type);
    label_write_quoted(out, service);
    if (state) {
        buffer_add_text(out, ",state=");
        label_write_quoted(out, state);
    }
    buffer_add_char(out, '}');
}

/* Steps of the window's length that end with the window. */
struct steps {
    double rates[SYMPTOM_STEPS_MAX], values[SYMPTOM_STEPS_MAX]; /* NAN: nothing is known */
};

static int read_steps(struct query_context *context, int64_t step_ns, struct steps *steps,
                      struct error *error)
{
    struct rate_groups groups = {.most = 1};
    struct store_timeseries_query query = {.step_ns = step_ns};
    int64_t from_ns = context->selection.from_ns;
    int r = rate_groups_read(context, &query, &groups, NULL, error);
    for (size_t i = 0; i < SYMPTOM_STEPS_MAX; i++)
        steps->rates[i] = steps->values[i] = NAN;
    for (size_t i = 0; !r && groups.count && i < groups.list[0].count; i++) {
        const struct rate_point *point = &groups.list[0].points[i];
        int64_t at = (point->time_ns - from_ns) / step_ns;
        if (at < 0 || at >= SYMPTOM_STEPS_MAX)
            continue;
        steps->rates[at] = point->rate;
        steps->values[at] = point->value;
    }
    rate_groups_release(&groups);
    return r;
}

/* Threads that are never in a state have no series of it: there it is 0 where others are known. */
static void take_share(struct steps *part, const struct steps *whole)
{
    for (size_t i = 0; i < SYMPTOM_STEPS_MAX; i++) {
        double share = isnan(part->values[i]) || !(whole->values[i] > 0)
                           ? 0
                           : part->values[i] / whole->values[i];
        part->rates[i] = share * whole->rates[i];
    }
}

struct looking {
    struct server *server;
    const struct query_asker *asker;
    const char *service;
    int64_t from_ns, to_ns;
};

/* -ENOENT: a type that the service doesn't have. */
static int read_query(const struct looking *looking, const char *type, const char *state,
                      struct steps *steps, char ret_type[QUERY_TYPE_BYTES], struct error *error)
{
    _cleanup_query_context_ struct query_context context = {0};
    _cleanup_buffer_ struct buffer query = {0};
    int64_t step_ns = looking->to_ns - looking->from_ns;
    write_query(&query, type, looking->service, state);
    int r = query_context_open(&context, looking->server, looking->asker, buffer_text(&query),
                               looking->to_ns - SYMPTOM_STEPS_MAX * step_ns, looking->to_ns, true,
                               error);
    if (!r)
        r = read_steps(&context, step_ns, steps, error);
    if (!r)
        memcpy(ret_type, context.query.type, QUERY_TYPE_BYTES);
    return r == -EINVAL ? -ENOENT : r;
}

static int look(struct symptom *symptom, size_t kind, const struct looking *looking,
                struct error *error)
{
    _cleanup_buffer_ struct buffer query = {0};
    struct steps steps, part;
    struct error own = {0};
    const char *state = kinds[kind].state;
    int64_t step_ns = looking->to_ns - looking->from_ns;
    int r = read_query(looking, kinds[kind].type, NULL, &steps, symptom->type, &own);
    if (!r && state) {
        r = read_query(looking, symptom->type, state, &part, symptom->type, &own);
        if (!r)
            take_share(&part, &steps);
        steps = part;
    }
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return error_set(error, r, "%s", own.text);
    for (size_t i = 0; i < SYMPTOM_STEPS_MAX; i++)
        steps.rates[i] *= kinds[kind].scale;
    write_query(&query, symptom->type, looking->service, state);
    symptom->query = memory_strdup(buffer_text(&query));
    if (state) {
        query.length = 0;
        write_query(&query, symptom->type, looking->service, NULL);
        symptom->whole = memory_strdup(buffer_text(&query));
    }
    judge(symptom, steps.rates, SYMPTOM_STEPS_MAX, kinds[kind].least,
          looking->to_ns - SYMPTOM_STEPS_MAX * step_ns, step_ns);
    return 0;
}

int symptoms_find(struct server *server, const char *tenant, const char *service, int64_t from_ns,
                  int64_t to_ns, struct symptoms *ret_symptoms, struct error *error)
{
    struct query_asker asker = {tenant, &server->stopping, 0};
    struct looking looking = {server, &asker, service, from_ns, to_ns};
    struct symptoms *found = ret_symptoms;
    bool any = false;
    *found = (struct symptoms){.count = SYMPTOMS};
    for (size_t i = 0; i < SYMPTOMS; i++) {
        struct symptom *symptom = &found->list[i];
        symptom->name = kinds[i].name;
        symptom->words = kinds[i].words;
        symptom->unit = kinds[i].unit;
        symptom->scale = kinds[i].scale;
        int r = look(symptom, i, &looking, error);
        if (r < 0)
            return r;
        any |= symptom->query && !isnan(symptom->value);
        if (!symptom->known)
            continue;
        const struct symptom *best = found->chosen;
        if (!best || (symptom->rose && (!best->rose || symptom->deviations > best->deviations)))
            found->chosen = symptom;
    }
    if (!found->chosen)
        return error_set(error, -ENOENT, "%.200s has no profiles %s this window.", service,
                         any ? "before" : "in");
    return 0;
}

void symptoms_release(struct symptoms *symptoms)
{
    for (size_t i = 0; i < symptoms->count; i++) {
        free(symptoms->list[i].query);
        free(symptoms->list[i].whole);
    }
    *symptoms = (struct symptoms){0};
}
