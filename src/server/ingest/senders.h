/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts of accepted and refused data by sender, with the reason: a row per tenant and sender (a
 * token's name, or an address). Any thread may call any of these. A full table drops the row with
 * the oldest push.
 */
#pragma once

#include <stdint.h>

#include "base/buffer.h"

#define SENDERS_MAX 2000
#define SENDER_TEXT_BYTES 128
#define SENDER_MINUTES 64       /* that are kept one by one */
#define SENDER_TENANTS_MAX 1000 /* whose minutes are kept */

enum ingest_refusal {
    REFUSED_MALFORMED,   /* what was sent can't be read, or its parameters can't */
    REFUSED_UNSUPPORTED, /* a format or an encoding that isn't known */
    REFUSED_TOO_LARGE,   /* a body, what it expands to, samples, series or depth */
    REFUSED_TOO_OLD,
    REFUSED_RELABELLED, /* the rules dropped all of it */
    REFUSED_BROKEN_OFF, /* the sender went away or was too slow */
    REFUSED_STORE,      /* full, read-only or failing */
    REFUSED_RATE,       /* over its quota */
    INGEST_REFUSALS,
};
const char *ingest_refusal_name(enum ingest_refusal reason);
enum ingest_refusal ingest_refusal_of(int code);

struct sender {
    char tenant[SENDER_TEXT_BYTES], name[SENDER_TEXT_BYTES], agent[SENDER_TEXT_BYTES];
    int64_t first_ns, last_ns; /* pushes seen, refused ones too */
    int64_t skew_ns;           /* of its clock when that was last corrected */
    uint64_t pushes, repeats, windows, rows, exemplars, corrected;
    uint64_t cut;    /* samples whose stack was too deep */
    uint64_t capped; /* series of which labels were over the limits of different names or values */
    uint64_t refused[INGEST_REFUSALS];
};

struct senders;
struct senders *senders_new(void);
void senders_free(struct senders *senders);

/* Adds the counters of `seen` to the row of its tenant and name. */
void senders_add(struct senders *senders, const struct sender *seen);

/* The share of a tenant's pushes that were accepted since a time, to the minute and at most an hour
 * ago; NAN: there were none. */
double senders_success(struct senders *senders, const char *tenant, int64_t since_ns);

/* Sums over all that were ever added. */
struct sender senders_total(struct senders *senders);

/* The tenant's rows as a JSON array, the latest first. */
void senders_write(struct senders *senders, const char *tenant, struct buffer *out);
