/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rose in a service at a time: rates of CPU time, waits and memory in a window against those
 * in the windows before it, of which the calmest are the base of a comparison. Private to
 * src/server.
 */
#pragma once

#include "query/query.h"
#include "server/handler/handler.h"

#define SYMPTOMS 8
#define SYMPTOM_STEPS_MAX 48

struct symptom {
    const char *name;  /* "cpu", "run queue", ... */
    const char *words; /* "CPU time" */
    const char *unit;  /* of values: "cores", "threads", "MiB", "MiB/s" */
    double scale;      /* from the type's unit per second, or of a level, to that */
    bool known;        /* there are profiles */
    char type[QUERY_TYPE_BYTES];
    char *query;        /* of the service; owned */
    char *whole;        /* of a state: without it; owned. NULL: none */
    double base, value; /* the median of the windows before, and this window, in the unit */
    double deviations;  /* robust standard deviations between them */
    bool rose;          /* by enough to matter */
    int64_t base_from_ns, base_to_ns; /* the calmest windows before; empty: there are none */
};

struct symptoms {
    struct symptom list[SYMPTOMS];
    size_t count;
    const struct symptom
        *chosen; /* what rose most; the first one that is known where nothing did */
};

/* In the handler of a request that was admitted for queries. -ENOENT: the service has no profiles
 * in the window, or none before it. */
int symptoms_find(struct server *server, const char *tenant, const char *service, int64_t from_ns,
                  int64_t to_ns, struct symptoms *ret_symptoms, struct error *error);
void symptoms_release(struct symptoms *symptoms);

/* Of `count` rates of windows in a row, NAN where there is none: the run of at most `most` known
 * ones that is nearest to their median, the latest of equals. Its length, 0 without any. */
size_t symptoms_calm(const double *rates, size_t count, size_t most, double *ret_median,
                     double *ret_spread, size_t *ret_first);
