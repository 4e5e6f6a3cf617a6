/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds whose addresses are in profiles but whose files are missing, and which agent sends each:
 * one agent at a time, so that a file that runs on thousands of hosts travels once. Agents report
 * which of the requested files they have; one of them gets a lease, which lasts as long as it
 * reports that it is sending. A refused file isn't requested again for a day.
 *
 * Separate by tenant: nobody learns from it what another tenant runs. Bounded; builds that no query
 * needed for a quarter of an hour are dropped. Any thread may call.
 */
#pragma once

#include <pthread.h>

#include "base/buffer.h"
#include "base/error.h"
#include "symbol/store/store.h"

#define SYMBOL_REQUESTS_MAX 512
#define SYMBOL_REQUESTS_SHOWN 32    /* in one answer; the others come with the next */
#define SYMBOL_REQUEST_WORDS_MAX 16 /* in one report */
#define SYMBOL_REQUEST_LEASES_MAX                                                                  \
    4 /* at a time: files that come slowly, and are indexed one by one */
#define SYMBOL_REQUEST_LEASE_S 45 /* without a word */
#define SYMBOL_REQUEST_AGE_S 900
#define SYMBOL_REQUEST_PENDING_S                                                                   \
    300 /* what no agent has said it has by then isn't expected any more */
#define SYMBOL_REQUEST_REFUSED_S 86400
#define SYMBOL_REQUEST_REFUSALS_MAX 3 /* of agents, who may each have a reason of their own */
#define SYMBOL_REQUEST_TENANT_BYTES 65
#define SYMBOL_REQUEST_AGENT_BYTES 65
#define SYMBOL_REQUEST_REASON_BYTES 200

enum symbol_request_state { SYMBOL_REQUEST_HAVE, SYMBOL_REQUEST_SENDING, SYMBOL_REQUEST_REFUSED };

/* An agent's report about one of them. */
struct symbol_request_word {
    char key[SYMBOL_KEY_BYTES]; /* as symbol_key() gives it */
    enum symbol_request_state state;
    char reason[SYMBOL_REQUEST_REASON_BYTES];
};

struct symbol_requests {
    pthread_mutex_t lock;
    struct symbol_request {
        char tenant[SYMBOL_REQUEST_TENANT_BYTES];
        char key[SYMBOL_KEY_BYTES];
        double value;             /* of samples with such an address, at the last look */
        int64_t first_s, asked_s; /* for the first and for the last time */
        char agent[SYMBOL_REQUEST_AGENT_BYTES]; /* holds the lease; "": no agent */
        int64_t leased_until_s;
        int64_t not_before_s; /* after refusals */
        unsigned refusals;
        char reason[SYMBOL_REQUEST_REASON_BYTES]; /* of the last one */
    } * list;
    size_t count, capacity;
    size_t shown; /* where the next answer begins */
    uint64_t taken, refused, expired, dropped;
};

void symbol_requests_init(struct symbol_requests *symbol_requests);
void symbol_requests_release(struct symbol_requests *symbol_requests);

/* All times are seconds of a clock that only goes forward. */
void symbol_requests_add(struct symbol_requests *symbol_requests, const char *tenant,
                         const char *key, int64_t now_s);
void symbol_requests_set_value(struct symbol_requests *symbol_requests, const char *tenant,
                               const char *key, double value);
/* The tenant has it, from whomever. */
void symbol_requests_fulfil(struct symbol_requests *symbol_requests, const char *tenant,
                            const char *key);

/* An agent's words; then, what it is to hear: ,"symbols":{"wanted":[...],"send":[...]}, or nothing
 * when that is nothing. */
void symbol_requests_hear(struct symbol_requests *symbol_requests, const char *tenant,
                          const char *agent, const struct symbol_request_word *words, size_t count,
                          int64_t now_s);
void symbol_requests_write(struct symbol_requests *symbol_requests, const char *tenant,
                           const char *agent, int64_t now_s, struct buffer *out);

/* -EBUSY: it isn't this agent's to send, or not any more. */
int symbol_requests_begin(struct symbol_requests *symbol_requests, const char *tenant,
                          const char *agent, const char *key, int64_t now_s, struct error *error);
/* The end of an upload: `failure` is NULL on success. `final`: every agent's would fail. */
void symbol_requests_end(struct symbol_requests *symbol_requests, const char *tenant,
                         const char *agent, const char *key, const char *failure, bool final,
                         int64_t now_s);

/* Why a build isn't sent, or by whom it is; false: nothing is known of that. */
bool symbol_requests_say(struct symbol_requests *symbol_requests, const char *tenant,
                         const char *key, int64_t now_s, struct buffer *ret_text);

/* Builds whose names can be expected: requested lately, and on their way. */
struct symbol_requests_pending {
    uint64_t requested, uploading;
};
struct symbol_requests_pending symbol_requests_pending(struct symbol_requests *symbol_requests,
                                                       const char *tenant, int64_t now_s);

void symbol_requests_write_metrics(struct symbol_requests *symbol_requests, int64_t now_s,
                                   struct buffer *out);
