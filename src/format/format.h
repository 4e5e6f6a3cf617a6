/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats: one file per format, one row each in the table in format.c. Reading is by content
 * (detect), writing by name or file extension.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "io/source.h"
#include "profile/profile.h"

#define FORMAT_SNIFF_BYTES 4096
#define FORMAT_CERTAIN 3

struct write_options {
    int type;          /* sample type for formats that hold one; -1: the profile's default */
    const char *title; /* for pictures; may be NULL */
};

/*
 * Reading in two halves, for formats that are read a lot: `collect` takes in the stream on any
 * thread, `resolve` adds what it found to a profile, which is one thread's at a time. `resolve` may
 * be called once. `discard` takes NULL.
 */
struct format_phases {
    void *(*collect)(struct source *source, enum profile_detail detail, struct error *error);
    int (*resolve)(void *collected, struct profile *profile, struct error *error);
    void (*discard)(void *collected);
};

struct format {
    const char *name;
    const char *summary;    /* one line, for --help */
    const char *extensions; /* of files to write, space-separated, the longest match wins */
    bool text; /* input may be UTF-16, or begin with a byte order mark: see source_decode_text() */
    bool addresses; /* input has addresses where others have names: see input_read() */
    bool gzip;      /* output is gzip-compressed unless written with another extension */
    enum profile_detail detail; /* what a written file can hold; more need not be read */

    /*
     * How sure is it that a stream starting with these bytes (at most FORMAT_SNIFF_BYTES, fewer at
     * the end of the stream) is of this format: 0 no, 1 perhaps, 2 likely, 3 certain.
     */
    int (*detect)(const uint8_t *bytes, size_t length);

    /*
     * Adds a stream's samples to `profile` (which may hold others already). On failure returns a
     * negative code with a sentence that names the offset or line, without the file's name: the
     * caller puts it in front; `profile` then holds an unspecified part and is only good for
     * releasing. NULL: read in phases, or not at all.
     */
    int (*read)(struct source *source, struct profile *profile, struct error *error);
    const struct format_phases *phases; /* errors as those of read */

    /* Reads into an empty profile and leaves its stacks unresolved, with digests of that seed: see
     * profile/unresolved.h. Otherwise as read. NULL: cannot. */
    int (*read_unresolved)(struct source *source, uint64_t seed, struct profile *profile,
                           struct error *error);

    /* Appends the whole file to `out`, which may have a drain: then it goes in pieces, and a writer
     * ends early, without an error of its own, when the drain wants no more. NULL: cannot be
     * written. */
    int (*write)(struct buffer *out, const struct profile *profile,
                 const struct write_options *options, struct error *error);
};

/* All formats, by index from 0; NULL after the last. */
const struct format *format_at(size_t index);

const struct format *format_by_name(const char *name);

/* The name that is most like a word, of formats that are read or of those that are written; NULL
 * when none is. */
const char *format_meant(const char *word, bool to_write);

/* The format to write for a file name: by its longest matching extension. */
const struct format *format_by_extension(const char *path);

/* The format of what the source holds, by content. Consumes nothing. */
int format_detect(struct source *source, const struct format **ret_format, struct error *error);

/* "a ZIP archive; unpack it": what a file is that no format takes, and what to do about it; NULL
 * when nobody knows. */
const char *format_foreign(const uint8_t *bytes, size_t length);

/* The same of a directory; NULL when the path is something else. */
const char *format_foreign_directory(const char *path);

static inline bool format_readable(const struct format *format)
{
    return format->read || format->phases;
}

struct read_options {
    const struct format *format; /* NULL: detect */
    uint64_t expansion_limit;    /* 0: the default, 4 GiB */

    /* Called before each file of format_read_files; may be NULL. */
    void (*progress)(void *context, const char *path, size_t index, size_t count);
    void *progress_context;

    /* Called after each file of which a part was left out, with a sentence; may be NULL. */
    void (*warn)(void *context, const char *name, const char *warning);
    void *warn_context;

    /* Set to true when a file has addresses where others have names; may be NULL. */
    bool *ret_addresses;
};

/* Opens, detects and reads a file (or "-") into `profile`; errors begin with the file's name.
 * `options` may be NULL. */
int format_read_file(const char *path, const struct read_options *options, struct profile *profile,
                     const struct format **ret_format, struct error *error);

/* Many files into one profile, in the order given, with the first half of reading on other threads
 * where the machine has them. *ret_format is the last file's. */
int format_read_files(const char *const *paths, size_t count, const struct read_options *options,
                      struct profile *profile, const struct format **ret_format,
                      struct error *error);

/* The same from memory, for servers and fuzzers. */
int format_read_memory(const char *name, const void *data, size_t length,
                       const struct read_options *options, struct profile *profile,
                       const struct format **ret_format, struct error *error);

/* Writes `profile` to `path` ("-" is standard output) atomically, compressed as the format and
 * the extension (.gz) say. */
int format_write_file(const char *path, const struct format *format, const struct profile *profile,
                      const struct write_options *options, struct error *error);

/* gzip at a level that is quick and small. */
int format_compress_gzip(const struct buffer *content, struct buffer *ret_compressed);

/* One declaration per format; see the files of the same names. */
extern const struct format format_pprof, format_otlp, format_otlp_json, format_folded,
    format_perf_script, format_speedscope, format_gperftools_cpu, format_gperftools_heap,
    format_cpuprofile, format_heapprofile, format_stackprof, format_flamebearer, format_jfr,
    format_perf_data, format_chrome_trace, format_firefox, format_callgrind, format_massif,
    format_heaptrack, format_pstats, format_austin, format_bpftrace, format_dtrace,
    format_macos_sample, format_autofdo, format_autofdo_gcc, format_svg, format_html;
