/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the two OTLP readers: they hand over messages in protobuf encoding as they come (the
 * JSON reader transcodes), and the model keeps what it needs until the dictionary is complete.
 * Samples may come before the tables they refer to, and a Profile's samples before its type, so
 * everything is held by raw index and resolved by otlp_model_finish.
 *
 * Private to the files otlp*.c.
 */
#pragma once

#include "base/arena.h"
#include "base/digests.h"
#include "base/idtable.h"
#include "format/otlp/otlp.h"
#include "io/wire.h"

#define OTLP_IDENTITY_BYTES 16          /* of struct otlp_row */
#define OTLP_INDEX_MAX 0x7fffffffu      /* indexes are int32 on the wire */
#define OTLP_MESSAGE_LIMIT (256u << 20) /* of one entry, sample or resource */

/* Field numbers of ProfilesDictionary. */
enum otlp_table {
    OTLP_MAPPINGS = 1,
    OTLP_LOCATIONS,
    OTLP_FUNCTIONS,
    OTLP_LINKS,
    OTLP_STRINGS,
    OTLP_ATTRIBUTES,
    OTLP_STACKS,
};

struct otlp_range {
    uint32_t first;
    uint32_t count;
};

/* ---- interned byte strings: raw messages and lists of attribute indexes ---- */

struct otlp_blob {
    const uint8_t *data;
    size_t length;
};

struct otlp_blobs {
    uint64_t seed;           /* so that nobody can prepare collisions */
    struct otlp_blob *items; /* item 0 is empty */
    size_t count, capacity;
    struct id_table index;
    struct arena bytes;
};

void otlp_blobs_release(struct otlp_blobs *blobs);
uint32_t otlp_blob(struct otlp_blobs *blobs, const void *data, size_t length);

/* ---- the dictionary: tables as sent, and what their entries became ---- */

struct otlp_string {
    const char *data; /* only of unresolved ones */
    size_t length;
    uint64_t hash; /* 0: not yet */
    uint32_t id;   /* in the profile; UINT32_MAX: not yet */
};

struct otlp_function {
    uint32_t name, system_name, file; /* string indexes */
    uint32_t start_line;
};

struct otlp_mapping {
    uint64_t start, limit, offset;
    uint32_t file;
    struct otlp_range attributes; /* in `indices` */
};

struct otlp_line {
    uint32_t function, line, column;
};

struct otlp_location {
    uint64_t address;
    uint32_t mapping;
    struct otlp_range lines;
    struct otlp_range attributes; /* in `indices` */
};

struct otlp_attribute {
    uint32_t key, unit;
    uint32_t value; /* blob: an AnyValue */
};

/* Meaning of an attribute by its place; plain ones are labels. */
enum otlp_role {
    OTLP_PLAIN,
    OTLP_FRAME_TYPE,
    OTLP_FOLDED,
    OTLP_BUILD_ID_GNU,
    OTLP_BUILD_ID_GO,
    OTLP_BUILD_ID_HTLHASH,
};

struct otlp_label {
    struct profile_label label;
    bool resolved;
    bool empty; /* no key or no value: not a label */
    uint8_t role;
    uint8_t means; /* of a location's: enum frame_kind, or whether it is folded */
};

struct otlp_dictionary {
    struct otlp_string *strings;
    struct otlp_function *functions;
    struct otlp_mapping *mappings;
    struct otlp_location *locations;
    struct otlp_line *lines;
    struct profile_link *links;
    struct otlp_attribute *attributes;
    struct otlp_range *stacks; /* in `indices` */
    uint32_t *indices;
    size_t string_count, function_count, mapping_count, location_count, line_count, link_count,
        attribute_count, stack_count, index_count;
    size_t string_capacity, function_capacity, mapping_capacity, location_capacity, line_capacity,
        link_capacity, attribute_capacity, stack_capacity, index_capacity;

    /* Resolved on first use; UINT32_MAX is "not yet". */
    uint32_t *function_ids, *mapping_ids, *stack_nodes, *link_ids;
    struct otlp_label *labels;          /* of attributes */
    struct otlp_range *location_frames; /* in `frames`, outermost first; empty: not yet */
    uint32_t *frames, *stack_frames;
    size_t frame_count, frame_capacity, stack_frame_capacity;

    /* The same of unresolved stacks; 0 is "not yet". */
    uint64_t *function_hashes, *mapping_hashes;
    struct otlp_range *location_digests; /* in `frame_digests`, outermost first; empty: not yet */
    struct digest *single_digests;       /* of locations that are one frame; `high` is 0 else */
    struct digest *frame_digests, *stack_digests;
    uint32_t *frame_origins; /* locations */
    size_t frame_digest_count;
};

/* ---- samples ---- */

/* A Profile's meaning, apart from its samples. Free of padding, so that it can be hashed. */
struct otlp_series {
    uint32_t resource, scope;          /* blobs: Resource and InstrumentationScope */
    uint32_t attributes;               /* blob: attribute indexes */
    uint32_t type;                     /* index into `types` */
    uint32_t period_type, period_unit; /* string indexes */
    int64_t period;
};

struct otlp_row {
    uint32_t series, stack, link;
    uint32_t attributes; /* blob: attribute indexes; up to here it is the row's identity */
    int64_t value;
    uint64_t time_ns; /* 0: a sum */
};

/* A Profile whose samples fit both layouts; its samples are in `doubtful`. */
struct otlp_undecided {
    uint32_t series;
    int weak; /* votes by less telling signs; positive for 1.10 */
    size_t start, end;
};

/* A repeated number field of a Sample, joined when it came in pieces. */
struct otlp_numbers {
    const uint8_t *data;
    size_t length;
    uint32_t fields; /* how many fields it came in */
    bool packed;
    struct buffer joined;
};

#define OTLP_PROFILE_ID_BYTES 16

struct otlp_profile_state {
    uint8_t id[OTLP_PROFILE_ID_BYTES];     /* zeroes: none */
    uint32_t series;                       /* UINT32_MAX before its first sample */
    struct profile_type type, period_type; /* string indexes */
    int64_t period;
    uint64_t time_ns, duration_ns;
    uint64_t samples;
    int votes, weak; /* for 1.10 positive, for 1.8 and 1.9 negative */
    bool decided, is_1_8;
    enum otlp_layout layout; /* when decided */
    size_t doubt_start;
};

struct otlp_model {
    struct profile *profile;
    struct otlp_summary summary;
    uint64_t offset; /* in the input, for messages; the front end keeps it up to date */
    bool alone;      /* the profile held nothing before */
    bool json;       /* names instead of numbers: samples come in the layout of 1.10 */
    bool unresolved; /* stacks are digested, and stay out of the profile */
    uint64_t seed;   /* of digests */
    uint64_t empty;  /* hash of the empty string */
    uint32_t deepest;

    struct otlp_dictionary dictionary;
    struct otlp_blobs blobs;

    struct otlp_series *series;
    struct otlp_row *rows;
    struct profile_type *types; /* string indexes */
    struct otlp_undecided *undecided;
    size_t series_count, series_capacity, row_count, row_capacity, type_count, type_capacity,
        undecided_count, undecided_capacity;
    size_t compact_at;      /* rows at which equal ones are added up */
    struct buffer doubtful; /* samples, each behind its length */
    int64_t votes;          /* of all Profiles */

    uint32_t resource, scope;             /* blobs of the messages being read */
    size_t resource_series, scope_series; /* first series of these */
    struct otlp_profile_state current;
    struct buffer field_7, field_11, field_12; /* of the Profile; their meaning depends on layout */
    struct otlp_numbers numbers[6];            /* of the Sample being read, by field number */
    struct otlp_blob last_attributes;
    uint32_t last_attributes_id;

    struct digest_table ids;   /* of Profiles that have one, with their types and times */
    uint64_t start_ns, end_ns; /* of all Profiles */
    struct profile_type period_type;
    int64_t period;
    uint32_t *comments; /* string indexes */
    size_t comment_count, comment_capacity;

    struct otlp_labels *labels;                       /* otlp_labels.c */
    uint64_t label_budget, frame_budget, byte_budget; /* see otlp_spend */
};

void otlp_model_init(struct otlp_model *model, struct profile *profile);
void otlp_model_release(struct otlp_model *model);

/* For a profile whose stacks stay unresolved; before the first message. */
void otlp_model_unresolve(struct otlp_model *model, uint64_t seed);

/* Messages in the order they come; data is copied as needed. A Profile's fields are passed one by
 * one; fields other than samples that are longer than OTLP_FIELD_LIMIT are passed as empty. */
#define OTLP_FIELD_LIMIT 65536
int otlp_dictionary_entry(struct otlp_model *model, unsigned table, const void *data, size_t length,
                          struct error *error);
void otlp_resource(struct otlp_model *model, const void *data, size_t length);
void otlp_end_resource(struct otlp_model *model);
void otlp_scope(struct otlp_model *model, const void *data, size_t length);
void otlp_end_scope(struct otlp_model *model);
void otlp_begin_profile(struct otlp_model *model);
int otlp_profile_field(struct otlp_model *model, const struct wire_field *field,
                       struct error *error);
int otlp_end_profile(struct otlp_model *model, struct error *error);
/* Says what was understood. Of unresolved stacks, the model's content goes to the profile. */
int otlp_model_finish(struct otlp_model *model, struct otlp_summary *ret_summary,
                      struct error *error);

/* Field 2 of Profile; part of otlp_profile_field. */
int otlp_sample(struct otlp_model *model, const void *data, size_t length, struct error *error);

/* The current Profile's layout is known, or taken: its doubtful samples become rows. */
int otlp_decide(struct otlp_model *model, enum otlp_layout layout, struct error *error);
int otlp_decide_rest(struct otlp_model *model, struct error *error);
uint32_t otlp_current_series(struct otlp_model *model);
void otlp_compact(struct otlp_model *model);

/* How sure is it that these are OTLP profiles in protobuf (see struct format). */
int otlp_detect(const uint8_t *bytes, size_t length);

/* ---- resolving, after the last message ---- */

void otlp_dictionary_release(struct otlp_dictionary *dictionary);
void otlp_dictionary_prepare(struct otlp_dictionary *dictionary);
void otlp_dictionary_reserve(struct otlp_dictionary *dictionary, uint64_t length);
int otlp_string_id(struct otlp_model *model, uint32_t index, const char *user, uint32_t *ret_id,
                   struct error *error);
int otlp_stack_node(struct otlp_model *model, uint32_t index, uint32_t *ret_node,
                    struct error *error);
/* The same for the unresolved stacks of all rows, which keep their index: it is checked, and
 * digested.
 */
int otlp_digest_stacks(struct otlp_model *model, struct error *error);
/* Gives the stacks to the profile, and the model with them, which is left empty. */
void otlp_give_unresolved(struct otlp_model *model);
int otlp_link_id(struct otlp_model *model, uint32_t index, uint32_t *ret_link, struct error *error);
int otlp_resolve_attribute(struct otlp_model *model, uint32_t index,
                           const struct otlp_label **ret_label, struct error *error);
static inline int otlp_attribute_label(struct otlp_model *model, uint32_t index,
                                       const struct otlp_label **ret_label, struct error *error)
{
    const struct otlp_dictionary *dictionary = &model->dictionary;
    if (unlikely(index >= dictionary->attribute_count || !dictionary->labels[index].resolved))
        return otlp_resolve_attribute(model, index, ret_label, error);
    *ret_label = &dictionary->labels[index];
    return 0;
}

/* The meaning of a function, mapping or location of the tables, whose names are indices into the
 * tables. An empty function has neither name nor file; *ret_build_id is a string of the profile. */
int otlp_function_names(const struct otlp_model *model, uint32_t index,
                        struct profile_function *ret_function, struct error *error);
int otlp_build_id(struct otlp_model *model, struct otlp_range attributes, uint32_t *ret_build_id,
                  struct error *error);
int otlp_resolve_location(struct otlp_model *model, uint32_t index, struct error *error);

/* Values of the attribute profile.frame.type; NULL for FRAME_UNKNOWN. */
extern const char *const otlp_kind_names[FRAME_KINDS];

/* An AnyValue as a label's value. 1 when there is one, 0 when it is empty, or an error. */
int otlp_any_value(struct otlp_model *model, const void *data, size_t length,
                   struct profile_label *label, struct error *error);

void otlp_labels_free(struct otlp_labels *labels);
/* The context is what a Profile's resource, scope and own attributes say. */
int otlp_label_context(struct otlp_model *model, const struct otlp_series *series,
                       uint32_t *ret_context, struct error *error);
int otlp_label_set(struct otlp_model *model, uint32_t context, uint32_t attributes,
                   uint32_t *ret_set, struct error *error);

/* References let a few bytes stand for many; an input pays for what it makes of them by its size,
 * out of `*budget`. "The stacks ask for more than an input of 30 bytes may." (-E2BIG) */
int otlp_spend(const struct otlp_model *model, uint64_t *budget, uint64_t amount, const char *what,
               struct error *error);

/* "A stack refers to entry 7 of the location table, which has 3 entries." */
int otlp_bad_index(struct error *error, const char *user, const char *table, uint64_t index,
                   size_t count);
/* "The Sample that ends at offset 123 is malformed." */
int otlp_malformed(const struct otlp_model *model, const char *what, struct error *error);
/* An index as sent; absurd ones are refused. */
int otlp_absurd_index(const struct otlp_model *model, uint64_t value, const char *what,
                      struct error *error);
static inline int otlp_index(const struct otlp_model *model, uint64_t value, const char *what,
                             uint32_t *ret_index, struct error *error)
{
    if (unlikely(value > OTLP_INDEX_MAX))
        return otlp_absurd_index(model, value, what, error);
    *ret_index = (uint32_t)value;
    return 0;
}

/* ---- locations: inline, since there are many ---- */

static inline int otlp_check_location(const struct otlp_model *model, uint32_t index,
                                      struct error *error)
{
    size_t count = model->dictionary.location_count;
    return index < count ? 0 : otlp_bad_index(error, "A stack", "location", index, count);
}

/* Properties shared by all frames of the location. */
static inline int otlp_location_base(struct otlp_model *model, const struct otlp_location *location,
                                     struct profile_frame *frame, struct error *error)
{
    *frame = (struct profile_frame){.address = location->address};
    if (location->mapping) {
        if (location->mapping >= model->dictionary.mapping_count)
            return otlp_bad_index(error, "A location", "mapping", location->mapping,
                                  model->dictionary.mapping_count);
        /* Moved by where this sender's mapping was, which may not be where the first one was. */
        const struct otlp_mapping *raw = &model->dictionary.mappings[location->mapping];
        struct profile_mapping here = {.start = raw->start, .offset = raw->offset};
        if (location->address)
            frame->address = profile_file_offset(&here, location->address);
    }
    for (uint32_t i = 0; i < location->attributes.count; i++) {
        const struct otlp_label *label;
        int r = otlp_attribute_label(
            model, model->dictionary.indices[location->attributes.first + i], &label, error);
        if (r < 0)
            return r;
        if (label->role == OTLP_FRAME_TYPE)
            frame->kind = label->means & 0x3f;
        else if (label->role == OTLP_FOLDED)
            frame->folded = label->means & 1;
    }
    return 0;
}
