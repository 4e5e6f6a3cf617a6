/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alerts: what rules make of SLIs and findings, with their states, which outlive the server in one
 * file that is replaced as a whole (docs/formats/alerts.md). With the lock of struct rules held.
 */
#pragma once

#include "label/labels.h"
#include "server/rules/rules.h"

#define ALERTS_MAX 1000                 /* of all tenants; those that resolved first make room */
#define ALERTS_KEPT_NS 86400000000000ll /* after they resolved */
#define ALERTS_FILE "alerts.json"
#define ALERT_ID_BYTES 20
#define ALERT_TEXT_BYTES 4097

enum alert_state { ALERT_PENDING, ALERT_FIRING, ALERT_RESOLVED, ALERT_STATES };
extern const char *const alert_state_names[ALERT_STATES];

struct alert {
    char id[ALERT_ID_BYTES];
    char *tenant, *name;
    struct labels labels; /* of the series or finding; with severity and owner */
    enum alert_state state;
    int64_t since_ns;                        /* when its condition began to hold */
    int64_t fired_ns, ended_ns;              /* 0: not yet */
    int64_t pending_ns, quiet_ns, absent_ns; /* how long it held, didn't, and wasn't known */
    double value;
    char *summary, *link, *runbook;
    const char *reason; /* why it resolved: constant; "" */
    bool muted;         /* by a maintenance window */
    bool inhibited;     /* by another alert */
    bool seen;          /* in this round */
};

/* The last notification of a group of alerts that a webhook accepted. */
struct alert_group {
    char *url, *tenant, *service, *version;
    uint64_t sent;      /* a hash of the alerts that were firing; 0: none */
    int64_t sent_ns;    /* when; 0: never */
    int64_t changed_ns; /* since when others are; 0: none */
};
#define ALERT_GROUPS_MAX 2000

struct alerts {
    struct alert *list;
    size_t count, capacity;
    struct alert_group *groups;
    size_t group_count, group_capacity;
    uint64_t dropped; /* for want of room */
    uint64_t version; /* of what receivers get */
    int64_t last_ns;  /* the time of the last round */
    bool unsaved;
};
void alerts_release(struct alerts *alerts);

/* One thing that an alert may be about. */
struct alert_candidate {
    const char *tenant;
    const struct alert_rule *rule;
    const struct labels *labels;
    const char *severity; /* instead of the rule's; NULL: that */
    bool active;          /* its condition holds */
    double value;
    const char *summary, *link;
};

/*
 * A round: begin, a call for each candidate, end. Time that passed counts at most as two intervals,
 * so that a clock that was set makes nothing fire. What is not among the candidates is not known:
 * it stays as it is for the rule's no_data, unless `known` says that all there is was given.
 */
void alerts_begin(struct alerts *alerts, int64_t time_ns, int64_t interval_ns,
                  int64_t *ret_elapsed_ns);
void alerts_note(struct alerts *alerts, const struct rule_set *rules,
                 const struct alert_candidate *candidate, int64_t time_ns, int64_t elapsed_ns);
void alerts_end(struct alerts *alerts, const struct rule_set *rules, int64_t time_ns,
                int64_t elapsed_ns);

/* Whether receivers are told of it. */
bool alert_is_sent(const struct alert *alert);

/* The value of a label, "" when it isn't there. */
const char *alert_label(const struct alert *alert, const char *name);

struct alert_group *alerts_group(struct alerts *alerts, const char *url, const struct alert *alert);

/* ---- alerts_file.c ---- */

void alerts_write(const struct alerts *alerts, struct buffer *out);
int alerts_read(struct alerts *alerts, const char *text, size_t length, struct error *error);
