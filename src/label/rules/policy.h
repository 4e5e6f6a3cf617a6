/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits on labels: which names are allowed, how long and how many they may be, and how many
 * different values a name may have. Labels beyond the limits are dropped, cut or replaced by
 * "other", but the profile is kept; each change is counted by reason.
 *
 * It is done in two steps, because redaction belongs between: names outside the allow-list are
 * dropped before redaction reads values, and values are cut only after redaction has seen them
 * whole, or half a secret could stay.
 *
 * service_name is never dropped, though its values count like any label's. Names that start with
 * "__" are the program's own and not subject to the allow-list. Threads can share a policy.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "label/glob.h"
#include "label/labels.h"
#include "label/rules/cardinality.h"

/* Replaces values above the limit. */
#define LABEL_OTHER "other"

enum label_reason {
    LABEL_NOT_ALLOWED,     /* dropped: the allow-list doesn't have it */
    LABEL_NAME_INVALID,    /* dropped: the name is not UTF-8 or has control characters */
    LABEL_NAME_TOO_LONG,   /* dropped */
    LABEL_TOO_MANY,        /* dropped: the last ones by name */
    LABEL_TOO_MANY_NAMES,  /* dropped: the tenant has too many different names */
    LABEL_VALUE_INVALID,   /* what is not UTF-8 in it was replaced */
    LABEL_VALUE_TOO_LONG,  /* cut */
    LABEL_TOO_MANY_VALUES, /* became "other" */
    LABEL_REASONS,
};

struct label_policy_options {
    struct globs allow; /* empty: all names */
    size_t name_bytes;  /* of a name, at most */
    size_t value_bytes; /* of a value, at most */
    size_t count;       /* labels of a series, at most */
    struct cardinality_limits cardinality;
    struct globs unlimited; /* names whose values are not counted */
};

/* 1,024 and 2,048 bytes, 30 labels, as Pyroscope has it; 10,000 values of a name, 500 names of a
 * tenant, 500,000 values of all (some 20 MB at the very most), seen within the last 24 to 48
 * hours. */
struct label_policy_options label_policy_defaults(void);
void label_policy_options_release(struct label_policy_options *options);

struct label_policy;

/* Takes over the globs in `options`. */
struct label_policy *label_policy_new(struct label_policy_options *options);
void label_policy_free(struct label_policy *policy);

/* First step. Returns a set of bits, 1 << reason, for what was done. */
unsigned label_policy_names(struct label_policy *policy, struct labels *labels);

/* Second step. `now_ns` is any clock that goes forward. */
unsigned label_policy_values(struct label_policy *policy, const char *tenant, int64_t now_ns,
                             struct labels *labels);

/* How often each was done, and what it is called in metrics: "not_allowed". */
void label_policy_counts(const struct label_policy *policy, uint64_t ret_counts[LABEL_REASONS]);
const char *label_reason_name(enum label_reason reason);

/* For /metrics: see cardinality_each. */
struct cardinality *label_policy_cardinality(struct label_policy *policy);
