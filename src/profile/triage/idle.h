/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait for work are idle, by rules on the functions that they wait in: condition
 * variables, event loops, parked workers. A wait for a mutex never is.
 *
 * Rules are text, one per line; what follows a # is a comment:
 *
 *     STATE FUNCTION    a thread in this state, in or below this function, is idle
 *     busy FUNCTION     ... but not if this function is on its stack
 *     always-STATE FUNCTION
 *                       a thread in this state, in or below this function, is idle, whatever
 *                       "busy" says: it waits for work by taking a lock
 *     own-STATE FUNCTION
 *                       a thread that is blocked in or below this function waits for what this
 *                       state says, whatever the kernel sees, such as own-lock for a lock of the
 *                       program's own making; it is never idle
 *
 * A FUNCTION that ends with * is the beginning of a name.
 */
#pragma once

#include "base/error.h"
#include "profile/profile.h"

#define IDLE_ROOT "[idle]"
#define IDLE_RULES_MAX 4096
#define IDLE_NAME_BYTES 256
#define IDLE_FILE_BYTES_MAX (1u << 20)

struct idle_rules;

/* The rules that come with assay; never NULL, and never freed. */
const struct idle_rules *idle_rules_default(void);
extern const char idle_rules_text[];

/* The error names the line. `name` is of the file, for it. */
int idle_rules_parse(const char *text, size_t length, const char *name,
                     struct idle_rules **ret_rules, struct error *error);
void idle_rules_free(struct idle_rules *rules); /* takes NULL */

/* Whether a stack whose thread is in `state` waits for work; one below IDLE_ROOT does. */
bool idle_matches(const struct idle_rules *rules, const struct profile *profile, uint32_t node,
                  const char *state);

/* The state of a stack whose thread is blocked where the program makes its own waits; or NULL. */
const char *idle_own_state(const struct idle_rules *rules, const struct profile *profile,
                           uint32_t node);

/* Puts the stacks of idle rows (label `state`) below one root. Returns how many rows. */
size_t idle_fold(struct profile *profile, const struct idle_rules *rules);
