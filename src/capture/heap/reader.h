/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reading side of the ring (ring.h). Processes that we record write it, and may write anything:
 * a record is copied before it is looked at, and every field is checked. One thread at a time.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "capture/heap/ring.h"

struct heap_reader {
    int fd; /* of the ring's memory; -1: none */
    struct heap_ring *ring;
    uint64_t tail;
    int64_t stalled_ns; /* since when a claimed record is not published; 0: none is */
    uint64_t damaged;
    struct heap_record record;       /* the last one, */
    char text[HEAP_STACK_BYTES + 1]; /* and what followed it, with a zero behind */
};

int heap_reader_init(struct heap_reader *reader, uint64_t mean_bytes, uint64_t samples_per_second,
                     struct error *error);
/* Writers stop. Takes one that was never initialised but for fd = -1. */
void heap_reader_release(struct heap_reader *reader);

/* The next record into `record` and `text`; false when there is none yet. `record.bytes` of what
 * follows are there. */
bool heap_reader_next(struct heap_reader *reader);

/* One line of /proc/PID/maps, zero-terminated: false unless it is executable memory. */
struct heap_map {
    uint64_t start, end, offset;
    uint64_t device, inode;
    const char *path; /* points into the line */
};
bool heap_map_parse(char *line, struct heap_map *ret_map);
