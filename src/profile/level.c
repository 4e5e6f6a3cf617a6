// SPDX-License-Identifier: Apache-2.0
// Which types are levels. See level.h.

#include "profile/level.h"

#include <string.h>

#include "base/memory.h"

/* Whole names, or the beginnings of names where the last character is '_'. */
static const char *const names[] = {"inuse_",  "live",         "live_", "goroutine", "goroutines",
                                    "threads", "threadcreate", "rss",   "rss_"};

static bool is_level(const char *name, size_t length)
{
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        size_t known = strlen(names[i]);
        bool begins = names[i][known - 1] == '_' && length > known;
        if ((begins || length == known) && !memcmp(name, names[i], known))
            return true;
    }
    return false;
}

bool level_is_sample_type(const char *sample_type)
{
    return is_level(sample_type, strlen(sample_type));
}

bool level_is_type(const char *id)
{
    const char *name = strchr(id, ':');
    return name && is_level(name + 1, strcspn(name + 1, ":"));
}
