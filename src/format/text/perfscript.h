/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of `perf script` output, taken apart. Private to the perf-script reader. All text
 * points into the line that was given.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_text {
    const char *at;
    size_t length;
};

/* `comm pid/tid [cpu] time: period event: rest` */
struct perf_header {
    struct perf_text comm;
    struct perf_text event; /* without its colon; empty when it is not printed */
    struct perf_text rest;  /* a tracepoint's fields, or the frame of a sample without a stack */
    int64_t pid, tid;       /* a single number is the thread's; the other is then -1 */
    uint64_t time_ns, period;
    bool has_time, has_period;
    bool is_record; /* a side-band event (PERF_RECORD_MMAP and the like), no sample */
};

bool perf_parse_header(const char *line, size_t length, struct perf_header *ret_header);

/* `address symbol+0xoffset (file)` or `address symbol (inlined)` */
struct perf_frame {
    uint64_t address;
    struct perf_text symbol; /* without the offset; empty when unknown */
    struct perf_text file;   /* the binary; empty when unknown */
    bool inlined;
};

bool perf_parse_frame(const char *line, size_t length, struct perf_frame *ret_frame);

/* `file:line` below a frame, of `perf script -F +srcline`; 0 when perf doesn't know it. */
bool perf_parse_source_line(const char *line, size_t length, struct perf_text *ret_file,
                            uint32_t *ret_line);

/* Meaning of an event's period. */
struct perf_event {
    struct perf_text name; /* without modifiers: "cycles" of "cycles:uP" */
    bool is_clock;         /* its period is nanoseconds of CPU time */
    bool is_tracepoint;    /* every event is one occurrence */
};

struct perf_event perf_parse_event(struct perf_text event);
