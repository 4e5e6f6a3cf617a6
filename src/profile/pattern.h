/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions from users and from profiles: PCRE2 with match limits, so that no pattern
 * can hold the program up. A match that meets the limit counts as no match.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct pattern;

/* `what` names the option in the error message: "--focus". */
int pattern_new(const char *expression, const char *what, struct pattern **ret_pattern,
                struct error *error);
void pattern_free(struct pattern *pattern);
#define _cleanup_pattern_ __attribute__((cleanup(pattern_free_pointer)))
static inline void pattern_free_pointer(struct pattern **pattern)
{
    pattern_free(*pattern);
}

bool pattern_matches(const struct pattern *pattern, const char *text, size_t length);
