/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules: service level indicators (SLIs), which the server evaluates at regular times, as a file in
 * YAML sets them (docs/rules.md). Private to src/server and `assay rules`.
 */
#pragma once

#include <stdatomic.h>

#include "config/settings.h"
#include "label/labels.h"

#define RULES_NAME_BYTES 65 /* of an SLI or alert, with its NUL */
#define RULES_SLIS_MAX 200
#define RULES_BY_MAX 4 /* labels that an SLI keeps apart */

enum sli_kind {
    SLI_SHARE,          /* of a function and what it calls */
    SLI_RATE,           /* per second: cores, lock waits, allocations */
    SLI_PER_REQUEST,    /* per request that the service counts */
    SLI_LEVEL,          /* an average: heaps, goroutines */
    SLI_GROWTH,         /* of a level, per hour */
    SLI_QUANTILE,       /* over processes, of their rates or levels */
    SLI_RATIO,          /* of two queries */
    SLI_UNNAMED,        /* share of values whose innermost frame has no name */
    SLI_AGENT_OVERHEAD, /* CPU of agents, in cores */
    SLI_UPLOAD_SUCCESS, /* share of pushes that were stored */
    SLI_KINDS,
};
extern const char *const sli_kind_names[SLI_KINDS];

struct sli_rule {
    const char *name;
    enum sli_kind kind;
    const char *query, *of; /* of: what a ratio divides by */
    const char *function;   /* NULL: all */
    int64_t window_ns;
    const char *by[RULES_BY_MAX];
    size_t by_count;
    const char *per; /* the label of processes, for quantiles */
    double quantile, limit;
    uint32_t line;
};

/* What a file says. Read only, once it has been read. */
struct rule_set {
    atomic_uint references;
    struct yaml_tree tree; /* holds all texts */
    int64_t interval_ns, delay_ns;
    struct sli_rule *slis;
    size_t sli_count;
};

/* Everything that is wrong is added to `problems`, one line each; the result is NULL then. */
struct rule_set *rule_set_read(const char *path, struct problems *problems);
struct rule_set *rule_set_ref(struct rule_set *rules);
void rule_set_unref(struct rule_set *rules); /* takes NULL */

/* -1: there is none. */
int rule_set_find(const struct rule_set *rules, const char *sli);
