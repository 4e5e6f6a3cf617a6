/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /tmp/perf-PID.map, the text in which most just-in-time compilers list their code:
 *
 *     7f3a64006180 180 JS:*fib /srv/hot.js:1:13
 *
 * It grows while the process runs and is read from where the last reading ended. Lines that are
 * none are passed over. See docs/formats/jit.md.
 */
#pragma once

#include "symbol/jit/code.h"

#define PERF_MAP_BYTES_MAX (512u << 20) /* of one file; a big application's has 50 MiB */
#define PERF_MAP_TAIL 64

#define PERF_MAP_LEAST_BYTES 65536 /* that are read at once: more than any line has */

struct perf_map {
    uint64_t allowance;       /* bytes that each call may read; 0: all there are */
    uint64_t offset;          /* of the first line that has not been read */
    bool in_line;             /* the offset is inside a line that is too long to be one */
    char tail[PERF_MAP_TAIL]; /* what comes before the offset: another file has something else */
    size_t tail_length;
};

/*
 * Adds the content that is new since the last call; all of it where it is another file by now.
 * `final`: the process has ended, so a last line without an end is whole. 0, 1 when the allowance
 * ended before the file, or a negative errno.
 */
int perf_map_read(struct perf_map *map, int fd, bool final, struct jit_codes *codes);

/* Adds the whole lines of a piece, and with `final` what is behind the last. Returns how many bytes
 * are done with; the rest wants more. */
size_t perf_map_parse(struct perf_map *map, const char *bytes, size_t length, bool final,
                      struct jit_codes *codes);
