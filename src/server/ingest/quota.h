/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a sender may send per second: requests, bytes and samples, each with a burst of some
 * seconds' worth. The content of a push is known only after reading it, so a push may overdraw;
 * then the next ones are refused until the debt is paid. The table has a fixed size: new senders
 * replace the one with the oldest push. Any thread may call any of these.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct quota_limits {
    uint64_t requests, bytes, samples; /* per second; 0: any number */
    int64_t burst_ns;
    bool per_tenant; /* all senders of a tenant together */
};

struct quotas;
struct quotas *quotas_new(const struct quota_limits *limits);
void quotas_free(struct quotas *quotas); /* takes NULL */

/* Other limits from now on; balances stay, as far as the new bursts allow. */
void quotas_set(struct quotas *quotas, const struct quota_limits *limits);

/* Whether the sender may send now; if not, *ret_wait_ms says when, and *ret_what is what it has
 * used up: "bytes". */
bool quotas_allow(struct quotas *quotas, const char *tenant, const char *sender, int64_t now_ms,
                  int64_t *ret_wait_ms, const char **ret_what);

/* The content of a push that was admitted. */
void quotas_charge(struct quotas *quotas, const char *tenant, const char *sender, uint64_t bytes,
                   uint64_t samples, int64_t now_ms);
