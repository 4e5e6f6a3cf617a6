/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model. A profile is tables of strings, functions, mappings and frames, a stack tree of
 * {parent, frame} nodes in which a child's id is always greater than its parent's, and samples
 * {node, labels, link, time, values}. Every codec reads into it and writes from it.
 *
 * Everything is interned: equal things have equal ids, so merging is adding to what is there. Ids
 * are 32-bit indexes; id 0 of every table means "none" (the empty string, no function, no mapping,
 * no frame, the root of the tree, no labels, no link). Readers add straight into a profile that
 * may already hold others: that is how several files are merged.
 *
 * A profile owns all its memory. Pointers into it are valid until the next call that adds to it.
 * One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/idtable.h"
#include "base/number.h"

/* Limits that hold for any input. Ids are 32 bits wide, and each table is kept well below that. */
#define PROFILE_TYPES_MAX 256
#define PROFILE_LABELS_MAX 65536 /* labels of one sample */
#define PROFILE_IDS_MAX 0x7fffffffu

/* How much a profile keeps. What a command doesn't need is dropped on the way in, which makes
 * frames and samples equal that would differ, and the profile smaller. */
enum profile_detail {
    PROFILE_LINES = 1 << 0,     /* line and column of frames with a function */
    PROFILE_ADDRESSES = 1 << 1, /* address of frames with a function; others always keep it */
    PROFILE_LABELS = 1 << 2,
    PROFILE_LINKS = 1 << 3,
    PROFILE_TIMES = 1 << 4, /* one row per event instead of one per stack */
    PROFILE_ALL = (1 << 5) - 1,
    PROFILE_ORIGINAL_NAMES = 1 << 5, /* functions are called as their source did: see readable.h */
};

struct profile_string {
    const char *data; /* NUL-terminated; may contain NULs and invalid UTF-8 */
    size_t length;
};

struct profile_function {
    uint32_t name;        /* string; for people */
    uint32_t system_name; /* string; as the linker or the runtime knows it, 0 when not given */
    uint32_t file;        /* string */
    uint32_t start_line;
};

/* The start, limit and offset of a mapping whose frames have addresses as the linker gave them,
 * because nobody told where the file was mapped: see symbol_source_look_up(). */
#define PROFILE_BY_ADDRESS UINT64_MAX

struct profile_mapping {
    uint64_t start; /* where it was mapped in the process that was seen first */
    uint64_t limit;
    uint64_t offset;   /* of `start` in the file */
    uint32_t file;     /* string */
    uint32_t build_id; /* string, as the profile gave it (hex for GNU build IDs) */
};

enum frame_kind { /* OTLP's profile.frame.type */
                  FRAME_UNKNOWN,
                  FRAME_NATIVE,
                  FRAME_KERNEL,
                  FRAME_JVM,
                  FRAME_CPYTHON,
                  FRAME_PHP,
                  FRAME_RUBY,
                  FRAME_PERL,
                  FRAME_V8JS,
                  FRAME_DOTNET,
                  FRAME_BEAM,
                  FRAME_GO,
                  FRAME_KINDS,
};

/* One line of a stack. A frame is symbolic (function != 0) or an address. A frame with `inlined`
 * set was inlined into its parent in the tree and shares the parent's address. */
struct profile_frame {
    uint64_t address; /* offset in the mapping's file; without a mapping, as it was */
    uint32_t function;
    uint32_t mapping;
    uint32_t line;
    uint32_t column : 24; /* largest value: unknown or beyond */
    uint32_t kind : 6;    /* enum frame_kind */
    uint32_t inlined : 1;
    uint32_t folded : 1; /* pprof: identical code folding made the function ambiguous */
};

struct profile_node {
    uint32_t parent; /* always smaller than this node's id; 0 is the root */
    uint32_t frame;
};

struct profile_label {
    uint32_t key;    /* string */
    uint32_t text;   /* string; 0: the label is a number */
    int64_t number;  /* 0 when text is set */
    uint32_t unit;   /* string, for numbers; may be 0 */
    uint32_t unused; /* keeps the struct free of padding, so that it can be hashed */
};

struct profile_link {
    uint8_t trace_id[16];
    uint8_t span_id[8];
};

struct profile_type {
    uint32_t type; /* string: "cpu" */
    uint32_t unit; /* string: "nanoseconds" */
};

/* Samples are columns. Rows without a time are unique by (node, labels, link). */
struct profile_samples {
    size_t count;
    size_t capacity;
    uint32_t *node;
    uint32_t *labels;                   /* label set */
    uint32_t *link;                     /* NULL when no sample has one */
    uint64_t *time_ns;                  /* since the epoch; NULL when no sample has one */
    int64_t *values[PROFILE_TYPES_MAX]; /* one column per type */
};

struct profile {
    enum profile_detail detail;
    uint64_t serial; /* of profile_init: no two profiles of a process have the same */

    struct profile_string *strings;
    struct profile_function *functions;
    struct profile_mapping *mappings;
    struct profile_frame *frames;
    struct profile_node *nodes;
    struct profile_link *links;
    struct profile_type *types; /* from 0 on: there is no "none" among types */
    struct profile_samples samples;
    uint32_t string_count, function_count, mapping_count, frame_count, node_count, link_count;
    unsigned type_count;

    uint32_t default_type; /* string: name of the type to show first; 0: the last */
    struct profile_type period_type;
    int64_t period;
    int64_t time_ns; /* start, since the epoch; 0: unknown */
    int64_t duration_ns;
    uint32_t drop_frames; /* string: pprof's regular expressions for boring frames */
    uint32_t keep_frames;
    uint32_t doc_url;
    uint32_t *comments; /* strings */
    size_t comment_count;
    uint64_t source_count; /* profiles that were merged into this one */

    struct profile_tables *tables; /* indexes and label sets; private to src/profile */
    struct unresolved_stacks
        *unresolved; /* NULL, or what samples name instead of nodes: see unresolved.h */
};

void profile_init(struct profile *profile, enum profile_detail detail);
void profile_release(struct profile *profile);
#define _cleanup_profile_ __attribute__((cleanup(profile_release)))

/* Bytes held, by our own accounting. */
size_t profile_memory(const struct profile *profile);

/*
 * Interning: each returns the id of an equal thing, adding it when it is new. Indexes in what is
 * passed must be valid ids of this profile; readers check what comes from outside.
 */
uint32_t profile_string(struct profile *profile, const char *text, size_t length);
uint32_t profile_cstring(struct profile *profile, const char *text);

/* Functions get readable names (readable.h), and keep the original as system_name where there is no
 * other. With PROFILE_ORIGINAL_NAMES it is the other way round: names that were made readable
 * become the original again. */
uint32_t profile_function(struct profile *profile, const struct profile_function *function);

/* Mappings are the same when build ID (or, without one, file name) and offset are the same, so
 * that runs of one program at different addresses add up; the first's addresses are kept. */
uint32_t profile_mapping(struct profile *profile, const struct profile_mapping *mapping);
uint32_t profile_frame(struct profile *profile, const struct profile_frame *frame);
uint32_t profile_child(struct profile *profile, uint32_t parent, uint32_t frame);

/* Adding to the end of a table what is known to be new, because the table was interned once: for
 * tables that are kept and read back. Indexes are made when something is interned again, so what
 * is only read never has any. */
void profile_append_string(struct profile *profile, const char *text, size_t length);
void profile_append_function(struct profile *profile, const struct profile_function *function);
void profile_append_frame(struct profile *profile, const struct profile_frame *frame);

/* The node of a whole stack, outermost caller first. Known stacks cost one hash. */
uint32_t profile_stack(struct profile *profile, const uint32_t *frames, size_t count);

/* The same for a stack that is likely new, as those of an empty profile's reader are: without the
 * hash of the whole. */
uint32_t profile_path(struct profile *profile, const uint32_t *frames, size_t count);

/* Room for as many more as a reader is about to add: tables that grow step by step are copied at
 * each. Nodes can't be known before; stacks are. */
void profile_reserve(struct profile *profile, size_t strings, size_t functions, size_t frames,
                     size_t stacks, size_t samples);

/* A set of labels. `labels` is sorted and made unique in place; count <= PROFILE_LABELS_MAX. */
uint32_t profile_label_set(struct profile *profile, struct profile_label *labels, size_t count);
uint32_t profile_link(struct profile *profile, const struct profile_link *link);

/* The type's index, added when new; PROFILE_TYPES_MAX when there are too many. */
unsigned profile_type(struct profile *profile, uint32_t type, uint32_t unit);

/* The row for such a sample, added with zero values when new. A row with a time is always new. */
size_t profile_sample(struct profile *profile, uint32_t node, uint32_t labels, uint32_t link,
                      uint64_t time_ns);

/* values[type][row] += value, stopping at the ends of the range. */
static inline void profile_add_value(struct profile *profile, size_t row, unsigned type,
                                     int64_t value)
{
    int64_t *cell = &profile->samples.values[type][row];
    *cell = add_saturated(*cell, value);
}

/* How far a runaway input has come: true when a table nears its limit. Readers ask now and then
 * and stop with -E2BIG. */
bool profile_full(const struct profile *profile);

/* Properties of a source; combined over all sources: the earliest start, the sum of
 * durations, the longest period. */
void profile_note_source(struct profile *profile, int64_t time_ns, int64_t duration_ns);
void profile_note_period(struct profile *profile, uint32_t type, uint32_t unit, int64_t period);
void profile_add_comment(struct profile *profile, uint32_t text);

/* Reading. */
static inline const char *profile_text(const struct profile *profile, uint32_t string)
{
    return profile->strings[string].data;
}
const struct profile_label *profile_labels(const struct profile *profile, uint32_t label_set,
                                           size_t *ret_count);
uint32_t profile_label_set_count(const struct profile *profile);

/* The type to show first: the profile's default, or else its last. */
unsigned profile_default_type(const struct profile *profile);

/* By "cpu", "cpu/nanoseconds" or an index; PROFILE_TYPES_MAX when there is none. */
unsigned profile_find_type(const struct profile *profile, const char *name);

/* The address a frame had in its process, undoing the move to file offsets. */
static inline uint64_t profile_frame_address(const struct profile *profile,
                                             const struct profile_frame *frame)
{
    const struct profile_mapping *mapping = &profile->mappings[frame->mapping];
    return frame->mapping ? frame->address - mapping->offset + mapping->start : frame->address;
}

/* The inverse, for readers. */
static inline uint64_t profile_file_offset(const struct profile_mapping *mapping, uint64_t address)
{
    return address - mapping->start + mapping->offset;
}

/* Adds all of `source` to `profile`: tables are interned anew, rows add up. -E2BIG when together
 * they have too many sample types. */
int profile_merge(struct profile *profile, const struct profile *source, struct error *error);
