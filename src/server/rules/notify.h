/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends alerts to Alertmanager and webhooks: a thread for each receiver, which compares what the
 * receiver was told with what is so. There is no queue: a receiver that is slow or down misses
 * nothing that is still true.
 */
#pragma once

#include "server/rules/rules.h"

struct rules;
struct notifier;

struct notify_stats {
    _Atomic uint64_t sent, failed;
};

/* Holds a reference to the rules' set. */
struct notifier *notifier_start(struct rules *rules, struct rule_set *set, size_t receiver);
void notifier_stop(struct notifier *notifier); /* ends a request in progress; takes NULL */

/* Of a body: `t=SECONDS,v1=HEX`, HMAC-SHA256 of "SECONDS.BODY". */
void notify_sign(const char *secret, size_t secret_length, int64_t time_s, const char *body,
                 size_t length, char ret_signature[128]);
