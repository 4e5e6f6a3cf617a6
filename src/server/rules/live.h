/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules at work: a thread of the server that evaluates them at regular times, and what came of it.
 * Private to src/server and `assay rules`.
 */
#pragma once

#include <pthread.h>

#include "server/rules/alerts.h"
#include "server/rules/evaluate.h"
#include "server/rules/history.h"
#include "server/rules/notify.h"

/* The last value of a tenant's SLI. */
struct sli_state {
    char *tenant;
    struct sli_values *values; /* by SLI of the rules */
    int64_t *time_s;           /* of each; 0: not evaluated */
};

struct rules_stats {
    _Atomic uint64_t rounds, evaluations, failed, late; /* late: rounds whose time was skipped */
    _Atomic uint64_t busy_ns;
};

struct rules {
    struct server *server;
    char *directory;       /* NULL: nothing is kept */
    pthread_mutex_t round; /* held over a round and a change of the rules; taken first */
    pthread_mutex_t lock;  /* over all that follows */
    struct rule_set *set;  /* NULL: no rules */
    struct sli_state *states;
    size_t state_count, state_capacity;
    struct history history;
    struct alerts alerts;
    pthread_mutex_t saving; /* over the file of alerts; taken before `lock` */
    struct notifier *notifiers[RULES_RECEIVERS_MAX]; /* only while `running` */
    struct notify_stats notify_stats;
    int64_t last_ns;  /* the time that was evaluated last */
    int64_t saved_ns; /* when the history was, by the monotonic clock */
    bool rests;       /* keeps its share of a core */
    struct rules_stats stats;
    pthread_t thread;
    bool running;
};

/* Reads what was kept. */
int rules_open(struct server *server, const char *directory, struct rules **ret_rules,
               struct error *error);
/* Takes over the reference; NULL: no rules. */
void rules_set(struct rules *rules, struct rule_set *set);
int rules_start(struct rules *rules, struct error *error);
void rules_close(struct rules *rules); /* waits for the thread; takes NULL */

/* Evaluates everything as of the latest time that is due; false: none is. */
bool rules_round(struct rules *rules, int64_t now_ns);

/* Of all tenants, or of one. */
void rules_write_metrics(struct rules *rules, const char *tenant, struct buffer *out);

/* The owner of a service by the rules; false: there is none. */
bool rules_owner(struct rules *rules, const char *service, struct buffer *out);

/* Now, if they have changed; failures are tried again in the next round. */
void rules_save_alerts(struct rules *rules);

/* ---- alerts_evaluate.c ---- */

/* States of alerts, after the SLIs of a time were evaluated. */
void rules_alerts(struct rules *rules, int64_t time_ns);

/* ---- slis_api.c, alerts_api.c ---- */

server_handler slis_list, alerts_list;
