/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The book of recordings: "999 Hz, service X, 60 s", asked of some agents, each of which begins,
 * refuses, or is not heard of in time. A recording's profiles are stored as all others, with the
 * labels `recording` and `recording_name`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/control/agents.h"

#define RECORDINGS_MAX 100       /* of a tenant; those that ended first are forgotten first */
#define RECORDING_PARTS_MAX 1000 /* agents of one */
#define RECORDING_ID_BYTES 24    /* with its NUL */
#define RECORDING_NAME_BYTES 65  /* with its NUL */
#define RECORDING_RATE_MAX 10000
#define RECORDING_SECONDS_MAX 3600
#define RECORDING_WAIT_S 60 /* that agents have to begin, unless said otherwise */
#define RECORDING_WAIT_MAX_S 3600
#define RECORDING_LATE_S 600 /* after its end, when an agent is not waited for any more */

/* Of an agent's part; the order of the first four is the order in time. */
enum recording_state {
    RECORDING_PENDING,   /* the agent hasn't said anything about it */
    RECORDING_RUNNING,   /* it captures */
    RECORDING_UPLOADING, /* all is captured, not all is sent */
    RECORDING_DONE,
    RECORDING_REFUSED, /* by the agent, which says why */
    RECORDING_FAILED,  /* it began, and something stood in the way */
    RECORDING_STOPPED, /* before it began */
    RECORDING_EXPIRED, /* the agent wasn't heard of in time */
    RECORDING_STATES,
};
const char *recording_state_name(enum recording_state state);
/* RECORDING_STATES: unknown name. */
enum recording_state recording_state_parse(const char *name);

struct recording_part {
    char agent[AGENT_ID_BYTES];
    char *host, *reason;
    enum recording_state state;
    uint64_t samples;
};

struct recording {
    char id[RECORDING_ID_BYTES];
    char name[RECORDING_NAME_BYTES];
    char by[65];
    char *service, *selector;
    uint64_t rate_hz, seconds;
    int64_t created_ns, expires_ns; /* until which agents may begin */
    bool stopped;
    struct recording_part *parts;
    size_t part_count;
};

/* By time, the newest last. */
struct recording_book {
    struct recording **list;
    size_t count, capacity;
};

/* A requested recording. The caller owns the texts. */
struct recording_request {
    const char *name; /* "": one is made up */
    const char *service;
    const char *selector; /* "": any agent */
    const char *const *hosts;
    size_t host_count; /* 0: any */
    uint64_t rate_hz, seconds, wait_s;
    const char *by;
};

void recording_free(struct recording *recording);
void recording_book_release(struct recording_book *book);

/* For those agents that match and are not silent. -EINVAL, -ENOENT (no agent), -E2BIG (too many
 * agents), -EBUSY (too many recordings). Points into the book, valid while nothing is added. */
int recording_add(struct recording_book *book, const struct agent_table *agents,
                  const struct recording_request *wanted, int64_t now_ns, struct recording **ret,
                  struct error *error);
struct recording *recording_find(const struct recording_book *book, const char *id);

/* Cancels pending parts and ends running ones. False: the recording had ended already. */
bool recording_stop(struct recording *recording);
/* Applies expiry. True: something has changed. */
bool recording_book_expire(struct recording_book *book, int64_t now_ns);

/* Applies an agent's report about its part. Steps back, and reports about parts of other agents,
 * have no effect. True: something has changed. */
bool recording_update(struct recording_book *book, const char *agent,
                      const struct agent_update *update);

bool recording_state_over(enum recording_state state);
/* Of all parts together. */
enum recording_state recording_state(const struct recording *recording);
uint64_t recording_samples(const struct recording *recording);

/* [{"id":...},...]: what an agent has to do with. */
void recording_write_orders(const struct recording_book *book, const char *agent,
                            struct buffer *out);
/* The whole object. */
void recording_write(const struct recording *recording, bool with_parts, struct buffer *out);

/* What each agent of a recording did, as a member `key` of an object. */
struct json_writer;
void recording_write_parts(const struct recording *recording, const char *key,
                           struct json_writer *json);
