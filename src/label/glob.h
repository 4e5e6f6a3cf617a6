/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names by pattern: * is any text, ? any one byte, the rest is itself. Matching takes at most the
 * product of both lengths, which fnmatch(3) doesn't promise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool glob_matches(const char *pattern, const char *text);

/* A list of patterns. Zero-initialised is empty, and matches nothing. */
struct globs {
    char **patterns;
    size_t count, capacity;
};

void globs_release(struct globs *globs);
void globs_add(struct globs *globs, const char *pattern);
bool globs_match(const struct globs *globs, const char *text);
