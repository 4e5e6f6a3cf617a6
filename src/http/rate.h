/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often each sender may ask: a token bucket per key. The table has a fixed size; a sender that
 * hasn't asked for longest makes room for a new one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rates;

struct rates *rates_new(double per_second, double burst);
void rates_free(struct rates *rates);

/* Whether the sender may ask now; if not, *ret_wait_ms is when. Any thread may call it. */
bool rates_allow(struct rates *rates, const char *key, int64_t now_ms, int64_t *ret_wait_ms);
