// SPDX-License-Identifier: Apache-2.0
// Globs: see glob.h. On a mismatch only the last star is tried again, one byte further.

#include "label/glob.h"

#include "base/memory.h"

bool glob_matches(const char *pattern, const char *text)
{
    const char *star = NULL, *retry = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            retry = text;
        } else if (*pattern && (*pattern == '?' || *pattern == *text)) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

void globs_release(struct globs *globs)
{
    for (size_t i = 0; i < globs->count; i++)
        free(globs->patterns[i]);
    free(globs->patterns);
    *globs = (struct globs){0};
}

void globs_add(struct globs *globs, const char *pattern)
{
    array_reserve(globs->patterns, globs->capacity, globs->count + 1);
    globs->patterns[globs->count++] = memory_strdup(pattern);
}

bool globs_match(const struct globs *globs, const char *text)
{
    for (size_t i = 0; i < globs->count; i++)
        if (glob_matches(globs->patterns[i], text))
            return true;
    return false;
}
