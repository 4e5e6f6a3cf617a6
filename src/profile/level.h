/* SPDX-License-Identifier: Apache-2.0 */
/* Levels are types whose values hold at a moment, as live memory does; all others add up over time.
 * docs/levels.md has the rule. */
#pragma once

#include <stdbool.h>

/* By the sample type's name, "inuse_space". */
bool level_is_sample_type(const char *sample_type);

/* By an id, "memory:inuse_space:bytes:space:bytes". */
bool level_is_type(const char *id);
