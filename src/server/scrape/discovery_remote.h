/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets that other services know: lists by HTTP in the form of target files, names in DNS, and
 * pods of a Kubernetes cluster. Keys and labels are Prometheus's.
 */
#pragma once

#include "server/scrape/scrape_config.h"

#define REMOTE_TARGETS_MAX 50000 /* of one source */

/* Asks, and waits for the answer for up to a few seconds. */
int remote_look(const struct scrape_remote *remote, struct target_groups *ret_groups,
                struct error *error);

/* Adds the pods of a PodList; `ret_continue` is the token for the rest of them, "" at the end, and
 * to be freed. */
int remote_read_pods(const char *json, size_t length, struct target_groups *groups,
                     char **ret_continue, struct error *error);

/* Another for other groups. */
uint64_t target_groups_hash(const struct target_groups *groups);
