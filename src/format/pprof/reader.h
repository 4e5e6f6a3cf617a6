/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pprof reader's state between its parts: pprof_read.c fills it while the file streams by,
 * pprof_link.c turns ids into positions, pprof_resolve.c adds it all to a profile. Only the last
 * needs the profile; the others may run on any thread.
 */
#pragma once

#include "base/digests.h"
#include "format/pprof/pprof.h"
#include "io/wire.h"

/* Distinct byte strings, numbered from 0 in order of appearance. */
struct byte_set {
    struct buffer bytes;
    struct byte_entry {
        uint64_t offset;  /* into bytes; of stacks once linked, into stack_locations */
        uint64_t seen_at; /* stream offset of the first, for error messages */
        uint32_t length;
        uint32_t row; /* of (this stack, no labels), or ID_NONE */
    } * entries;
    size_t count, capacity;
    struct digest_table index;
};

struct raw_mapping {
    uint64_t id;
    struct profile_mapping mapping; /* file and build_id are indexes of the file's strings */
    uint32_t resolved;              /* ID_NONE: not yet */
};

struct raw_function {
    uint64_t id;
    uint64_t name, system_name, file; /* indexes of the file's strings */
    uint32_t start_line;
    uint32_t resolved; /* ID_NONE: not yet */
};

struct raw_line {
    uint64_t function; /* its id; once linked, its position + 1 */
    uint32_t line, column;
};

struct raw_location {
    uint64_t id, address;
    uint64_t mapping; /* its id; once linked, its position + 1 */
    uint32_t first_line, line_count;
    bool folded;
};

/* Meaning of a location. Separate from raw_location, because every sample uses it. */
struct location_frames {
    uint32_t first; /* the frame itself, or where several begin in `frames`, outermost first */
    uint32_t count; /* 0: not yet */
};

struct raw_row {
    uint32_t stack, labels; /* entries of the byte sets; labels counts from 1, 0: no labels */
};

struct value_type {
    uint64_t type, unit;
};

struct raw_string {
    uint64_t offset; /* into text */
    size_t length;
};

struct pprof_reader {
    bool want_labels;      /* without labels a stack's number is its row's */
    uint64_t seed;         /* of digests */
    struct source *source; /* while it is read */
    struct wire_stream stream;
    uint64_t end_offset; /* of the stream, for messages */

    struct profile *profile; /* while it is resolved */
    bool alone;              /* the profile held nothing before */
    uint32_t *string_ids;    /* the file's string table, as ids of the profile; ID_NONE: not yet */

    struct buffer text;
    struct raw_string *strings;
    size_t string_count, string_capacity;
    struct value_type types[PROFILE_TYPES_MAX];
    size_t type_count;
    struct raw_mapping *mappings;
    size_t mapping_count, mapping_capacity;
    struct raw_function *functions;
    size_t function_count, function_capacity;
    struct raw_location *locations;
    size_t location_count, location_capacity;
    struct raw_line *lines;
    size_t line_count, line_capacity;
    struct location_frames *location_frames;
    uint32_t *frames; /* of locations with more than one */
    size_t frame_count, frame_capacity;
    uint64_t frames_left; /* that stacks may still expand to */
    uint32_t *path;       /* scratch: frames of one stack */
    size_t path_capacity;
    uint32_t *stack_locations; /* of all stacks, after linking */
    size_t stack_location_count;

    struct byte_set stacks, labels;
    struct raw_row *rows;
    size_t row_count, row_capacity;
    struct id_table row_index;
    int64_t *values; /* row_count * width */
    size_t value_capacity;
    size_t width; /* values per sample; 0 until the first sample */
    struct buffer scratch, label_scratch;

    uint64_t drop_frames, keep_frames, default_type, doc_url;
    struct value_type period_type;
    int64_t time_ns, duration_ns, period;
    uint64_t *comments;
    size_t comment_count, comment_capacity;
};

int pprof_link(struct pprof_reader *reader, struct error *error);
int pprof_resolve(struct pprof_reader *reader, struct profile *profile, struct error *error);

/* The same with stacks that stay unresolved; the reader then belongs to the profile. */
int pprof_resolve_unresolved(struct pprof_reader *reader, uint64_t seed, struct profile *profile,
                             struct error *error);

/* ---- pprof_resolve.c, for pprof_unresolved.c ---- */

/* All that comes before stacks, and then the rows of stacks that are known as `nodes`. */
int pprof_resolve_head(struct pprof_reader *reader, struct profile *profile, unsigned *ret_columns,
                       struct error *error);
int pprof_resolve_rows(struct pprof_reader *reader, const unsigned *columns, const uint32_t *nodes,
                       struct error *error);
/* Fills its place in location_frames. */
int pprof_resolve_location(struct pprof_reader *reader, size_t index, struct error *error);
/* Of a file's strings; also refuses those that aren't there. */
int pprof_string(struct pprof_reader *reader, uint64_t index, const char *what,
                 struct raw_string *ret_string, struct error *error);
/* Frames that stacks of this many locations may expand to. */
uint64_t pprof_frame_budget(const struct pprof_reader *reader);
int pprof_too_many_frames(const struct byte_entry *entry, struct error *error);
void pprof_reader_free(struct pprof_reader *reader);
