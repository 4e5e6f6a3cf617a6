/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agents of a tenant: who they are, when they were last heard of, and what they said of
 * themselves then. Reports are written by others: texts are cut, numbers are checked, and what is
 * kept of one agent is bounded. A full table forgets who was heard of longest ago.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "label/labels.h"
#include "label/selector.h"
#include "server/symbols/requests.h"

#define AGENTS_MAX 5000        /* of a tenant */
#define AGENTS_MAX_ALL 20000   /* of all tenants */
#define AGENTS_BYTES_MAX (64u << 20)
#define AGENT_ID_BYTES 65      /* with its NUL */
#define AGENT_HOST_BYTES 256   /* with its NUL */
#define AGENT_VERSION_BYTES 33 /* with its NUL */
#define AGENT_LABELS_MAX 32
#define AGENT_STATUS_BYTES (16u << 10)
#define AGENT_REPORT_BYTES (64u << 10) /* as sent */
#define AGENT_INTERVAL_S 10            /* between reports */
#define AGENT_MISSED 3                 /* reports, after which an agent is silent */
#define AGENT_UPDATES_MAX 32           /* recordings that one report speaks of */

struct fleet_agent {
    char id[AGENT_ID_BYTES];
    char host[AGENT_HOST_BYTES];
    char version[AGENT_VERSION_BYTES];
    struct labels labels;      /* `agent` and `host` among them */
    char *status;              /* a JSON object, as the agent's own /status; NULL: not known */
    int64_t first_ns, last_ns; /* reports, since 1970, by our clock */
    double clock_offset_s;     /* how far its clock is ahead of ours, with the way between */
    bool off;                  /* it says that it doesn't capture */
    uint64_t reports;
    /* The orders for it: see control_decide(). */
    uint64_t decided; /* as of this version of the tenant's orders, plus 1; 0: not yet */
    size_t rule, sampling_rule; /* their places; SIZE_MAX: none */
};

struct agent_table {
    struct fleet_agent **list;
    uint64_t *hashes; /* of the ids */
    size_t count, capacity, hash_capacity;
    size_t bytes; /* of memory that the agents take */
    uint64_t forgotten;
};

/* An agent's report about one of its orders. */
struct agent_update {
    char id[24];
    char state[16];
    char reason[257];
    uint64_t samples;
};

struct agent_report {
    struct fleet_agent agent;
    double sent_at_s; /* by its clock; 0: it doesn't say */
    struct agent_update updates[AGENT_UPDATES_MAX];
    size_t update_count;
    struct symbol_request_word words[SYMBOL_REQUEST_WORDS_MAX]; /* of builds that were asked for */
    size_t word_count;
};

void agent_report_release(struct agent_report *report);
#define _cleanup_agent_report_ _cleanup_(agent_report_release)

/* -EBADMSG or -EINVAL with a sentence for the sender. `ret` is untouched then. */
int agent_report_parse(const char *text, size_t length, struct agent_report *ret_report,
                       struct error *error);

/* Letters, digits, and -._: only. */
bool agent_id_valid(const char *id);

void fleet_agent_release(struct fleet_agent *agent);
/* The memory that it takes. */
size_t fleet_agent_bytes(const struct fleet_agent *agent);
void agent_table_release(struct agent_table *table);
struct fleet_agent *agent_table_find(const struct agent_table *table, const char *id);

/* Takes over what `seen` has. *ret_forgot: another one made room for it. */
struct fleet_agent *agent_table_put(struct agent_table *table, struct fleet_agent *seen,
                                    bool *ret_forgot);
/* Removes the agent with the oldest report but `keep`, which may be NULL; false: there is none. */
bool agent_table_forget_oldest(struct agent_table *table, const struct fleet_agent *keep);

/* Whether a selector of agents selects it. An expression that takes too many steps, or that the
 * budget has nothing left for, matches nothing. */
bool agent_is_selected(const struct fleet_agent *agent, const struct selector *selector,
                       struct matching *matching);

bool agent_silent(const struct fleet_agent *agent, int64_t now_ns);

/* The whole object, "capture_wanted" last. */
void fleet_agent_write(const struct fleet_agent *agent, int64_t now_ns, bool wanted,
                       struct buffer *out);
