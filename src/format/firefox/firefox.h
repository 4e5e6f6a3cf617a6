/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles of the Firefox Profiler, in parts: read.c fills these tables from JSON of either form,
 * firefox.c turns them into samples. Tables may come before or after the threads that use them, so
 * everything is held until the end of the file.
 */
#pragma once

#include "format/format.h"
#include "io/json.h"

#define FIREFOX_NONE INT64_MIN /* null, or something else than a number */

/* An array of numbers. */
struct firefox_column {
    int64_t *values;
    size_t count, capacity;
};

struct firefox_tables {
    uint32_t *strings; /* of the profile */
    size_t string_count, string_capacity;
    bool has_strings;
    struct firefox_column stack_frame, stack_prefix;
    struct firefox_column frame_function, frame_line, frame_location; /* the latter: Gecko's form */
    struct firefox_column function_name, function_file;
    /* Newer files: how far back a stack's caller is, and files in a table of their own. */
    struct firefox_column stack_prefix_offset, function_source, source_file;
    bool has_stacks, has_frames, has_functions, has_sources;
};

struct firefox_thread {
    struct firefox_tables tables; /* its own; what is missing is in the shared ones */
    struct firefox_column stack, weight;
    struct firefox_column time_ns; /* since the profile's start */
    struct firefox_column cpu;     /* since the sample before, in the units of `meta` */
    bool delta_times;
    uint32_t name, process_name; /* strings */
    uint32_t weight_unit;        /* string: "samples", "bytes", "tracing-ms"; 0: samples */
    int64_t pid, tid;            /* FIREFOX_NONE: not known */
};

struct firefox {
    struct json json;
    struct profile *profile;
    struct firefox_tables shared;
    struct firefox_thread **threads;
    size_t thread_count, thread_capacity;
    int64_t interval_ns, start_ns;
    int64_t cpu_scale; /* nanoseconds of a unit of CPU time; 0: cycles, or not known */
};

/* write.c */
int firefox_write(struct buffer *out, const struct profile *profile,
                  const struct write_options *options, struct error *error);

/* read.c */
int firefox_read_profile(struct firefox *file, unsigned depth);
void firefox_tables_release(struct firefox_tables *tables);
