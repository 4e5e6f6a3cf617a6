/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often each sender may do something: a token bucket per key, or a number per window. The table
 * has a fixed size; a sender that hasn't been seen for longest makes room for a new one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;
struct rates;

struct rates *rates_new(double per_second, double burst);
/* So many in each window, which begins with the first. */
struct rates *rates_new_windows(unsigned most, int64_t window_ms);
void rates_free(struct rates *rates);

/* Whether the sender may ask now; if not, *ret_wait_ms is when. Any thread may call it. */
bool rates_allow(struct rates *rates, const char *key, int64_t now_ms, int64_t *ret_wait_ms);

/* Which key an address has: for IPv6 its /64, of which one sender has all addresses. */
void rates_network(const struct sockaddr *address, char *ret_text, size_t room);
