/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side of agents: which agents report and their state (agents.h), whether they may
 * capture, at which rates (sampling.h), and recordings (recordings.h). Separate by tenant, bounded,
 * and kept on disk: rules and recordings before their sender gets the answer, agents once a minute.
 *
 * Nothing ever connects to an agent. It reports every ten seconds, and asks every 0.7 seconds, with
 * the version of its orders, whether they have changed: the answer is usually empty.
 *
 * Any thread may call any of these.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "label/selector.h"
#include "server/control/agents.h"
#include "server/control/recordings.h"
#include "server/control/sampling.h"

#define CONTROL_FILE "control.json"
#define CONTROL_AGENTS_FILE "agents.json"
#define CONTROL_RULES_MAX 256  /* of a tenant */
#define CONTROL_TEXT_BYTES 257 /* of a reason, with its NUL */
#define CONTROL_NAME_BYTES 65  /* of who and which tenant, with its NUL */
#define CONTROL_VERSION_BYTES 40

/* Of all rules that match an agent, the last one counts; without any, it captures. */
struct control_rule {
    bool on;
    struct selector selector; /* over the agent's labels, with `agent` and `host` */
    char *text;               /* of the selector */
    int64_t since_ns;
    char by[CONTROL_NAME_BYTES];
    char reason[CONTROL_TEXT_BYTES];
};

struct control_tenant {
    char name[CONTROL_NAME_BYTES];
    struct agent_table agents;
    struct control_rule *rules;
    size_t rule_count, rule_capacity;
    struct sampling_rules sampling;
    struct recording_book book;
    uint64_t version; /* of all orders to any agent */
};

struct control {
    char *directory;        /* NULL: nothing is kept */
    uint64_t run;           /* of this process: versions of another one mean nothing */
    pthread_mutex_t saving; /* taken before `lock`; over the files */
    pthread_mutex_t lock;   /* over all that follows */
    struct control_tenant **tenants;
    size_t tenant_count, tenant_capacity;
    size_t agent_bytes_max; /* of the agents of all tenants: AGENTS_BYTES_MAX, or less */
    bool unsaved, agents_unsaved;
    int64_t agents_saved_ns;
};

/* An unreadable file of orders is an error: it may turn capture off. */
int control_open(const char *directory, struct control **ret_control, struct error *error);
void control_close(struct control *control); /* takes NULL */

/* The memory limit of the list of agents. */
void control_limit_agents(struct control *control, size_t bytes);

/* From time to time: lets recordings expire and saves what has changed. Failures are logged, once
 * each. */
void control_keep(struct control *control);
/* Now; returns when it is on disk. */
int control_save(struct control *control, struct error *error);

/* Of the agents of a tenant that reported since a time: how many give their CPU time, and the
 * greatest, in cores. */
size_t control_overhead(struct control *control, const char *tenant, int64_t since_ns,
                        double *ret_greatest);

/* ---- with the lock held ---- */

struct control_tenant *control_tenant(struct control *control, const char *name);
/* Takes over what `seen` has. Where there are too many agents, or too many bytes, the tenant with
 * the most bytes loses those that reported longest ago. */
struct fleet_agent *control_put_agent(struct control *control, struct control_tenant *tenant,
                                      struct fleet_agent *seen);
/* Notes that there are other orders than before. */
void control_changed(struct control *control, struct control_tenant *tenant);
void control_version(const struct control *control, const struct control_tenant *tenant,
                     char ret_text[CONTROL_VERSION_BYTES]);

/* Capture for the agents that the selector matches; "" is all of them. -EINVAL, or -EBUSY when
 * there are too many rules. */
int control_set(struct control *control, struct control_tenant *tenant, bool on,
                const char *selector, const char *by, const char *reason, int64_t now_ns,
                struct error *error);
/* Rates and collectors, likewise. */
int control_set_sampling(struct control *control, struct control_tenant *tenant,
                         const struct sampling_wish *wish, const char *selector, const char *by,
                         const char *reason, int64_t now_ns, struct error *error);
/* Notes in the agent which orders are for it, unless that is known. Selectors are a tenant's own
 * and may be made to take long: for one agent they get a few milliseconds. */
void control_decide(const struct control_tenant *tenant, struct fleet_agent *agent);
/* The rule that counts for an agent; NULL: none, it captures. */
const struct control_rule *control_rule_of(const struct control_tenant *tenant,
                                           struct fleet_agent *agent);

/* The answer to an agent: its orders as JSON, with `more` members (`,"x":...`) at the end. */
void control_write_orders(const struct control *control, const struct control_tenant *tenant,
                          struct fleet_agent *agent, const char *more, struct buffer *out);
/* {"version":...,"rules":[...],...} */
void control_write(struct control *control, struct control_tenant *tenant, int64_t now_ns,
                   struct buffer *out);

/* Without the lock: decides for all agents of a tenant, a few milliseconds at a time, so that other
 * tenants get the lock in between. -EAGAIN: that takes too long; what was decided stays. */
int control_decide_all(struct control *control, struct control_tenant *tenant, struct error *error);

/* Without the lock: stats of all tenants, for Prometheus. */
void control_write_metrics(struct control *control, struct buffer *out);

/* ---- control_file.c; with the lock held ---- */

void control_write_file(const struct control *control, struct buffer *out);
int control_read_file(struct control *control, const char *text, size_t length,
                      struct error *error);
void control_write_agents(const struct control *control, struct buffer *out);
int control_read_agents(struct control *control, const char *text, size_t length,
                        struct error *error);
