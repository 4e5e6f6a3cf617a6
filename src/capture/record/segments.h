/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments: what processes map from one place of one file. They are numbered, the same for all
 * processes and in the kernel's tables, so that a frame can be said without its process.
 */
#pragma once

#include "capture/record/processes.h"

struct segment {
    struct module *module;
    uint64_t start, end; /* where it was mapped in the process that was seen first */
    uint64_t offset;     /* of `start` in the file */
    uint32_t mapping;    /* in the profile of this epoch */
    uint32_t epoch;
};

#define SEGMENTS_MAX 16384

struct segments {
    struct segment *list; /* from 1 on: 0 is code of no file */
    size_t count, capacity;
    struct id_table index;
    uint64_t refused;
};

void segments_init(struct segments *segments);
void segments_release(struct segments *segments);
void segments_clear(struct segments *segments);

/* The number of a mapping's segment, added if it is new; 0 for code of no file, and beyond the
 * limit. Remembered in the mapping. */
uint32_t segments_of(struct segments *segments, struct mapping *mapping);
