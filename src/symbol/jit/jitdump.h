/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit-PID.dump, the binary log that just-in-time compilers write for perf: a record for each piece
 * of code that was made or moved, with the time, and with source lines. The code itself and what it
 * says about unwinding are passed over without being read. See docs/formats/jit.md.
 */
#pragma once

#include <sys/types.h>

#include "symbol/jit/code.h"

#define JIT_DUMP_WINDOW_BYTES 65536
#define JIT_DUMP_MOVED_MAX 64
#define JIT_DUMP_RECORDS_MAX (16u << 20) /* of one file */
#define JIT_DUMP_BYTES_MAX (1u << 30)    /* that are really read; most of a big one is skipped */

/* Reads up to `length` bytes at `offset`; returns how many, 0 at the end, or a negative errno. */
typedef ssize_t (*jit_read_fn)(void *context, uint64_t offset, void *buffer, size_t length);

struct jit_dump {
    jit_read_fn read;
    void *context;
    uint64_t allowance; /* bytes of the file that each call may go through; 0: all there are */
    uint64_t offset;    /* of the first record that has not been read; 0 before the header */
    uint64_t records, read_bytes;
    bool ended;       /* by a record of its own, or by one that makes no sense */
    bool bad;         /* the latter */
    bool other_clock; /* times are a machine's ticks: only the order counts */

    /* Lines come before the code that they belong to. */
    uint64_t lines_of;
    uint32_t line_start, line_count;

    /* The compiler's own numbers of pieces of code, for when they move. */
    struct jit_dump_number {
        uint64_t index;
        uint32_t code;
    } * numbers;
    size_t number_count, number_capacity;
    struct id_table by_index;

    /* Former addresses of wanted code that was not kept, since it was not wanted there: wanted when
     * the file is read again. */
    uint64_t moved_from[JIT_DUMP_MOVED_MAX];
    size_t moved_count;

    uint64_t window_start;
    size_t window_length;
    uint8_t *window; /* only while it is read */
};

void jit_dump_release(struct jit_dump *dump);

/* Adds the records since the last call; 0, or 1 when the allowance ended before the file. An
 * incomplete record is left for the next call. -EBADMSG when the file isn't a jitdump, or is
 * damaged from somewhere on. */
int jit_dump_read(struct jit_dump *dump, struct jit_codes *codes);
