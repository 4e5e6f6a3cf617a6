/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of frames. Frames of one function are one entry, whatever their line or address:
 * reports, trees and pictures all count by these entries. A function is its name, as in pprof;
 * an address without a name is `binary+0x1234`, so that its samples still add up.
 */
#pragma once

#include "profile/profile.h"

struct naming_entry {
    const char *name; /* never empty; not escaped */
    size_t length;
    const char *file;   /* source file of the first frame seen, or "" */
    const char *binary; /* last path component of its mapping's file, or "" */
    uint32_t start_line;
    bool unnamed; /* an address without a function */
};

struct naming {
    struct naming_entry *entries;
    uint32_t count;
    uint32_t *of_frame; /* frame id -> entry; frame 0 (none) has no entry: NAMING_NONE */
    struct arena text;
};

#define NAMING_NONE UINT32_MAX

/* Names every frame of `profile`, which must outlive the naming and not change. */
void naming_init(struct naming *naming, const struct profile *profile);
void naming_release(struct naming *naming);
#define _cleanup_naming_ __attribute__((cleanup(naming_release)))

/* The last component of a path, without copying. */
const char *path_base(const char *path);
