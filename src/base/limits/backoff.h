/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to wait before something that failed is tried again: exponential backoff with jitter, so
 * that many clients that failed together don't come back together.
 */
#pragma once

#include <stdint.h>

struct backoff {
    int64_t first_ms, longest_ms; /* bound after the first failure; it doubles up to the longest */
    int64_t asked_longest_ms;     /* bound of what a server may ask for; 0: the longest */
};

/* The bound after so many failures in a row, at least 1. */
int64_t backoff_bound_ms(const struct backoff *backoff, unsigned failures);

/* A random time from half the bound to all of it; or, when the server asked for longer (-1: it
 * didn't), that and up to a tenth more. `random` is any 64 random bits: base/random.h. */
int64_t backoff_ms(const struct backoff *backoff, unsigned failures, int64_t asked_ms,
                   uint64_t random);
