/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinding of the stacks that `perf record --call-graph dwarf` copies. It needs the recorded
 * binaries, so only commands on a user's own machine do it, never a server: a program that wants it
 * registers a walker. Without one such samples have their innermost frame only, and the source's
 * warning says so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_WALK_REGISTERS                                                                        \
    17 /* by DWARF number of x86-64; the last is the instruction pointer                           \
        */
#define PERF_WALK_FRAMES_MAX 1024

/* A file mapping of the recorded process. The texts live as long as the reader. */
struct perf_walk_place {
    const char *path;
    const char *build_id; /* lower-case hexadecimal; "": not known */
    uint32_t number;      /* of the file: equal ones have equal path and build ID */
    uint64_t start, offset;
    uint64_t inode; /* 0: not known */
    bool generated; /* code in no file */
};

struct perf_walk_request {
    uint64_t registers[PERF_WALK_REGISTERS];
    uint32_t known; /* a bit for each register */
    const uint8_t *stack;
    size_t stack_bytes;
    /* False when the process has nothing mapped there. */
    bool (*find)(void *context, uint64_t address, struct perf_walk_place *ret_place);
    void *context;
};

struct perf_walk_frame {
    uint64_t address; /* of the call, not behind it */
};

enum perf_walk_end { PERF_WALK_COMPLETE, PERF_WALK_TRUNCATED, PERF_WALK_UNKNOWN };

struct perf_walker {
    void *(*start)(void); /* for one recording */
    void (*stop)(void *walker);
    /* Frames from the innermost outwards. */
    enum perf_walk_end (*walk)(void *walker, const struct perf_walk_request *request,
                               struct perf_walk_frame *ret_frames, size_t limit, size_t *ret_count);
    /* The running kernel's build ID, for recordings of this machine without one; "": not known. */
    const char *(*running_kernel)(void *walker);
};

/* NULL: no unwinding, as at the start. To be called before other threads read. */
void perf_data_set_walker(const struct perf_walker *walker);
