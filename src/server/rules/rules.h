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
    SLI_COST,           /* of CPU time: money per hour */
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

/* ---- alerts (docs/alerts.md) ---- */

#define RULES_ALERTS_MAX 200
#define RULES_INHIBITORS_MAX 8
#define RULES_OWNERS_MAX 1000
#define RULES_MAINTENANCE_MAX 1000
#define RULES_RECEIVERS_MAX 8
#define RULES_SECRET_BYTES 4096

struct regex;

struct alert_rule {
    const char *name, *severity, *runbook;
    int sli;             /* -1: findings */
    unsigned findings;   /* bit per enum watch_kind */
    double above, below; /* NAN: no such limit */
    int64_t for_ns, resolve_ns, no_data_ns;
    double objective;  /* NAN: every value counts by itself; else the share that must be good */
    double fast, slow; /* burn rates */
    const char *inhibited_by[RULES_INHIBITORS_MAX];
    size_t inhibitor_count;
};

struct owner_rule {
    struct regex *service;
    const char *owner;
};

struct maintenance {
    struct regex *service; /* NULL: all */
    int64_t from_ns, to_ns;
    const char *reason;
};

enum receiver_kind { RECEIVER_ALERTMANAGER, RECEIVER_WEBHOOK };

struct receiver {
    enum receiver_kind kind;
    const char *url;
    char *secret; /* of a webhook; NULL: not signed */
    size_t secret_length;
};

struct notify_rules {
    const char *external_url; /* before paths of links; "" */
    struct receiver receivers[RULES_RECEIVERS_MAX];
    size_t receiver_count;
    int64_t group_wait_ns, group_interval_ns, repeat_ns;
};

/* The contents of a file of rules; constant after it was read. */
struct rule_set {
    atomic_uint references;
    struct yaml_tree tree; /* holds all texts */
    int64_t interval_ns, delay_ns;
    struct sli_rule *slis;
    size_t sli_count;
    struct alert_rule *alerts;
    size_t alert_count;
    struct owner_rule *owners;
    size_t owner_count;
    struct maintenance *maintenance;
    size_t maintenance_count;
    struct notify_rules notify;
};

/* Everything that is wrong is added to `problems`, one line each; the result is NULL then. */
struct rule_set *rule_set_read(const char *path, struct problems *problems);
struct rule_set *rule_set_ref(struct rule_set *rules);
void rule_set_unref(struct rule_set *rules); /* takes NULL */

/* ---- alerts_read.c ---- */

void alert_rules_read(struct rule_set *rules, struct settings *settings);
void alert_rules_release(struct rule_set *rules);
/* Whether an entry of the list of allowed URLs permits a URL. */
bool notify_allows(const char *entry, const char *url);

/* -1: there is none. */
int rule_set_find(const struct rule_set *rules, const char *sli);
