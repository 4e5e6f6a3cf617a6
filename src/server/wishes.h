/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds that profiles have addresses of and nobody has sent, and which agent is to send each: one
 * at a time, so that a file that runs on thousands of hosts travels once. Agents say which of what
 * is wanted they have; one of them gets a lease, which lasts as long as it goes on saying that it
 * sends. What was refused isn't asked for again for a day.
 *
 * Apart by tenant: nobody learns from it what another one runs. Bounded; what nobody asked for in a
 * quarter of an hour is forgotten. Any thread may call.
 */
#pragma once

#include <pthread.h>

#include "base/buffer.h"
#include "base/error.h"
#include "symbol/store.h"

#define WISHES_MAX 512
#define WISHES_SHOWN 32   /* in one answer; the others come with the next */
#define WISH_WORDS_MAX 16 /* in one report */
#define WISH_LEASES_MAX 4 /* at a time: files that come slowly, and are indexed one by one */
#define WISH_LEASE_S 45   /* without a word */
#define WISH_AGE_S 900
#define WISH_REFUSED_S 86400
#define WISH_REFUSALS_MAX 3 /* of agents, who may each have a reason of their own */
#define WISH_TENANT_BYTES 65
#define WISH_AGENT_BYTES 65
#define WISH_REASON_BYTES 200

enum wish_state { WISH_HAVE, WISH_SENDING, WISH_REFUSED };

/* What an agent says of one of them. */
struct wish_word {
    char key[SYMBOL_KEY_BYTES]; /* as symbol_key() gives it */
    enum wish_state state;
    char reason[WISH_REASON_BYTES];
};

struct wishes {
    pthread_mutex_t lock;
    struct wish {
        char tenant[WISH_TENANT_BYTES];
        char key[SYMBOL_KEY_BYTES];
        double value; /* of samples with such an address, at the last look */
        int64_t asked_s;
        char agent[WISH_AGENT_BYTES]; /* who is to send it; "": nobody */
        int64_t leased_until_s;
        int64_t not_before_s; /* after refusals */
        unsigned refusals;
        char reason[WISH_REASON_BYTES]; /* of the last one */
    } * list;
    size_t count, capacity;
    size_t shown; /* where the next answer begins */
    uint64_t taken, refused, expired, dropped;
};

void wishes_init(struct wishes *wishes);
void wishes_release(struct wishes *wishes);

/* All times are seconds of a clock that only goes forward. */
void wishes_add(struct wishes *wishes, const char *tenant, const char *key, int64_t now_s);
void wishes_set_value(struct wishes *wishes, const char *tenant, const char *key, double value);
/* It came, from whomever. */
void wishes_fulfil(struct wishes *wishes, const char *key);

/* An agent's words; then, what it is to hear: ,"symbols":{"wanted":[...],"send":[...]}, or nothing
 * when that is nothing. */
void wishes_hear(struct wishes *wishes, const char *tenant, const char *agent,
                 const struct wish_word *words, size_t count, int64_t now_s);
void wishes_write(struct wishes *wishes, const char *tenant, const char *agent, int64_t now_s,
                  struct buffer *out);

/* -EBUSY: it isn't this agent's to send, or not any more. */
int wishes_begin(struct wishes *wishes, const char *tenant, const char *agent, const char *key,
                 int64_t now_s, struct error *error);
/* How that ended: `failure` is NULL when it was taken. `final`: nobody's would be. */
void wishes_end(struct wishes *wishes, const char *tenant, const char *agent, const char *key,
                const char *failure, bool final, int64_t now_s);

/* Why a build isn't sent, or by whom it is; false: nothing is known of that. */
bool wishes_say(struct wishes *wishes, const char *tenant, const char *key, int64_t now_s,
                struct buffer *ret_text);

void wishes_write_metrics(struct wishes *wishes, int64_t now_s, struct buffer *out);
