/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Java Flight Recorder files: what the jfr*.c files share. A recording is a row of chunks, each
 * with its own description of its types and its own constant pools. A chunk is whole in memory
 * while it is read; nothing below outlives it except what went into the profile.
 *
 * The way of a sample: jfr.c finds a chunk and walks its records; jfr_metadata.c reads the types;
 * jfr_layout.c flattens each type that is met into a list of plain reads; jfr_pool.c notes where
 * each constant lies; jfr_events.c reads events and asks jfr_stack.c for stacks and names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/idtable.h"
#include "profile/profile.h"

/* ---- bytes (jfr_input.c) ---- */

/* Reading beyond the end, or nonsense, sets `failed` and gives zeroes from then on. */
struct jfr_cursor {
    const uint8_t *at;
    const uint8_t *end;
    bool compressed; /* integers are LEB128; otherwise big-endian of fixed width */
    bool failed;
};

enum jfr_text_kind {
    JFR_TEXT_NULL,
    JFR_TEXT_EMPTY,
    JFR_TEXT_CONSTANT, /* lies in the pool of java.lang.String */
    JFR_TEXT_UTF8,
    JFR_TEXT_UTF16, /* an integer for each unit */
    JFR_TEXT_LATIN1,
};

/* A string as it lies in the chunk. */
struct jfr_text {
    enum jfr_text_kind kind;
    bool compressed;
    const uint8_t *bytes;
    size_t length; /* in bytes */
    int64_t constant;
};

size_t jfr_left(const struct jfr_cursor *cursor);
uint8_t jfr_read_byte(struct jfr_cursor *cursor);
int16_t jfr_read_short(struct jfr_cursor *cursor);
int32_t jfr_read_int(struct jfr_cursor *cursor);
int64_t jfr_read_long(struct jfr_cursor *cursor);
void jfr_skip(struct jfr_cursor *cursor, size_t count);
struct jfr_text jfr_read_text(struct jfr_cursor *cursor);

/* Appends it as UTF-8. A JFR_TEXT_CONSTANT adds nothing: see jfr_chunk_text. */
void jfr_text_add(struct buffer *out, const struct jfr_text *text);

/* ---- types (jfr_metadata.c) ---- */

/* The types whose constants are of use here; all others are read over. */
enum jfr_role {
    JFR_NO_ROLE,
    JFR_STRINGS,
    JFR_SYMBOLS,
    JFR_CLASSES,
    JFR_METHODS,
    JFR_STACK_TRACES,
    JFR_FRAME_TYPES,
    JFR_THREADS,
    JFR_THREAD_STATES,
    JFR_ROLES,
};

enum jfr_op_kind {
    JFR_STRUCT, /* no primitive: has fields; never an op */
    JFR_BYTE,
    JFR_SHORT,
    JFR_INT,
    JFR_LONG,
    JFR_FLOAT,
    JFR_DOUBLE,
    JFR_STRING,
    JFR_CONSTANT, /* the number of a constant */
    JFR_ARRAY,    /* a count, then the ops up to JFR_ARRAY_END that many times */
    JFR_ARRAY_END,
};

struct jfr_op {
    uint8_t kind;  /* enum jfr_op_kind */
    uint8_t slot;  /* where the value goes; 0: nowhere */
    uint8_t role;  /* of JFR_CONSTANT: which pool */
    uint32_t jump; /* of JFR_ARRAY: the op after its end; of JFR_ARRAY_END: the array's first op */
};

struct jfr_layout {
    uint32_t first; /* into the metadata's ops */
    uint32_t count;
    bool ready;
};

struct jfr_field {
    const char *name;
    int64_t class_id;
    bool constant;
    bool array;
};

struct jfr_class {
    int64_t id;
    const char *name;
    uint32_t first_field;
    uint32_t field_count;
    enum jfr_op_kind primitive; /* JFR_STRUCT when it is none */
    enum jfr_role role;
    struct jfr_layout layout; /* of its constants */
};

struct jfr_metadata {
    uint64_t seed; /* of the hashes, so that nobody can prepare collisions */
    struct arena text;
    const char **strings;
    size_t string_count;
    struct jfr_class *classes;
    size_t class_count, class_capacity;
    struct jfr_field *fields;
    size_t field_count, field_capacity;
    struct id_table by_id;
    bool role_taken[JFR_ROLES]; /* a role is one class's, however many have its name */
    struct jfr_op *ops;
    size_t op_count, op_capacity;
    size_t layout_steps; /* taken so far; bounded */
};

/* Reads the body of a metadata record: what follows its size and type. On failure the sentence in
 * `error` says what is wrong, not where. */
int jfr_metadata_read(struct jfr_metadata *metadata, struct jfr_cursor body, struct error *error);
void jfr_metadata_release(struct jfr_metadata *metadata);
struct jfr_class *jfr_metadata_class(const struct jfr_metadata *metadata, int64_t id);
struct jfr_class *jfr_metadata_class_by_name(const struct jfr_metadata *metadata, const char *name);

/* ---- layouts (jfr_layout.c) ---- */

#define JFR_SLOTS 32

/* Slots are numbered from 1 by whoever binds them; this one is given to the array of a stack
 * trace's frames, and only there. */
#define JFR_SLOT_FRAMES (JFR_SLOTS - 1)

/* Fields by name ("weight"), and fields of structs that lie inside ("frames.method"). The field of
 * a primitive type itself is "". */
struct jfr_binding {
    const char *path;
    uint8_t slot;
};

/* One record's bound values. */
struct jfr_values {
    uint32_t present; /* bit per slot */
    uint8_t role[JFR_SLOTS];
    bool is_text[JFR_SLOTS];
    int64_t number[JFR_SLOTS];
    struct jfr_text text[JFR_SLOTS];

    /* Called after each element of JFR_SLOT_FRAMES. */
    void (*element)(struct jfr_values *values, void *context);
    void *context;
};

static inline int64_t jfr_number(const struct jfr_values *values, unsigned slot)
{
    return values->present & 1u << slot ? values->number[slot] : 0;
}

/* Flattens a type. Types that hold themselves, nest too deep or are too large are errors. */
int jfr_layout_make(struct jfr_metadata *metadata, const struct jfr_class *class,
                    const struct jfr_binding *bindings, size_t binding_count,
                    struct jfr_layout *ret_layout, struct error *error);

/* Reads a value of that type; `values` may be NULL to read over it. Failure is the cursor's. */
void jfr_layout_run(const struct jfr_metadata *metadata, const struct jfr_layout *layout,
                    struct jfr_cursor *cursor, struct jfr_values *values);

/* ---- constants (jfr_pool.c) ---- */

struct jfr_constant {
    int64_t id;
    const uint8_t *value; /* in the chunk */
    uint32_t resolved;    /* what it became in the profile; see jfr_stack.c */
    bool is_resolved;
    bool flag; /* of methods: has a class */
};

struct jfr_pool {
    struct id_table index;
    struct jfr_constant *constants;
    size_t count, capacity;
    struct jfr_layout layout;
};

struct jfr_chunk {
    struct profile *profile;
    const uint8_t *data;
    size_t length;
    uint64_t offset; /* of `data` in the stream, for messages */
    bool compressed;
    bool unfinished; /* the JVM never closed it */
    int64_t start_ns, start_ticks;
    double ticks_per_ns;

    struct jfr_metadata metadata;
    struct jfr_pool pools[JFR_ROLES];

    /* Constants that name the same long text many times could make little input into much work:
     * all text that is decoded counts against this. */
    uint64_t text_budget;
    bool text_exhausted;
    struct buffer scratch;
    uint32_t *frames;
    size_t frame_count, frame_capacity;
};

/* Reads the body of a checkpoint record; errors as for jfr_metadata_read. */
int jfr_pools_read(struct jfr_chunk *chunk, struct jfr_cursor body, struct error *error);
void jfr_pools_release(struct jfr_chunk *chunk);
struct jfr_constant *jfr_pool_find(struct jfr_chunk *chunk, enum jfr_role role, int64_t id);

/* A cursor at a constant's value. */
struct jfr_cursor jfr_constant_value(const struct jfr_chunk *chunk,
                                     const struct jfr_constant *constant);

/* ---- stacks and names (jfr_stack.c) ---- */

/* Fields of constants, except JFR_SLOT_FRAMES. */
enum jfr_constant_slot {
    JFR_SLOT_TEXT =
        1, /* strings, symbols, frame types, thread states; a class's or method's name */
    JFR_SLOT_CLASS,
    JFR_SLOT_TRUNCATED,
    JFR_SLOT_METHOD,
    JFR_SLOT_LINE,
    JFR_SLOT_FRAME_TYPE,
    JFR_SLOT_JAVA_NAME,
    JFR_SLOT_OS_NAME,
};

extern const struct jfr_binding jfr_constant_bindings[];
extern const size_t jfr_constant_binding_count;

/* Appends the text in a slot, following it into the pools of strings or symbols. */
void jfr_chunk_text(struct jfr_chunk *chunk, const struct jfr_values *values, unsigned slot,
                    struct buffer *out);

/* The same as a string of the profile; 0 when it is empty. */
uint32_t jfr_chunk_string(struct jfr_chunk *chunk, const struct jfr_values *values, unsigned slot);

/* The profile's node of a stack trace; 0, the empty stack, when there is no such constant. */
uint32_t jfr_chunk_stack(struct jfr_chunk *chunk, int64_t id);

/* Strings of the profile, 0 when there is no such constant. Classes are named as in Java source:
 * "java.lang.String[]". */
uint32_t jfr_chunk_thread(struct jfr_chunk *chunk, int64_t id);
uint32_t jfr_chunk_class(struct jfr_chunk *chunk, int64_t id);
uint32_t jfr_chunk_thread_state(struct jfr_chunk *chunk, int64_t id);

/* ---- events (jfr_events.c) ---- */

/* The kinds of samples, in the order in which their types appear and are preferred. */
enum jfr_family {
    JFR_CPU,
    JFR_WALL,
    JFR_COUNTER, /* a hardware counter or another event that async-profiler was told to use */
    JFR_ALLOC_NEW_TLAB,
    JFR_ALLOC_SAMPLE,
    JFR_ALLOC_OUTSIDE_TLAB,
    JFR_LOCK,
    JFR_PARK,
    JFR_LIVE,
    JFR_MALLOC,
    JFR_NATIVE,
    JFR_FAMILIES,
};

/* State that lasts from chunk to chunk. */
struct jfr_recording {
    struct profile *profile;
    uint32_t thread_key, class_key, state_key, context_key, span_name_key; /* strings */
    unsigned count_type[JFR_FAMILIES];
    unsigned value_type[JFR_FAMILIES];
    bool seen[JFR_FAMILIES];
    int64_t cpu_period_ns;  /* 0: not stated */
    int64_t wall_period_ns; /* 0: not stated */
    uint32_t event;         /* string: async-profiler's `event`, 0 when not stated */
    bool async_profiler;
};

void jfr_recording_init(struct jfr_recording *recording, struct profile *profile);

/* The events of a chunk whose types and constants have been read. */
int jfr_events_read(struct jfr_recording *recording, struct jfr_chunk *chunk, struct error *error);

/* Sets the profile's period and default type from what was seen. */
void jfr_recording_finish(struct jfr_recording *recording);

/* ---- records (jfr.c) ---- */

struct jfr_record {
    uint64_t offset;        /* in the stream */
    int64_t type;           /* 0: metadata, 1: checkpoint, else a class's id */
    struct jfr_cursor body; /* what follows the size and the type */
};

/* The record at *position, which moves behind it: 1, 0 at the end, or an error. */
int jfr_next_record(const struct jfr_chunk *chunk, size_t *position, struct jfr_record *ret_record,
                    struct error *error);
