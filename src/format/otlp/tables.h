/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary of an OTLP message that is being written: each table grows with the entries in
 * use, in protobuf encoding. Index 0 of each is its zero value. Private to the files otlp*.c.
 */
#pragma once

#include "base/idtable.h"
#include "format/otlp/model.h"

#define OTLP_EXTRAS 16 /* more than all the keys our writer knows */

struct otlp_table_list {
    uint32_t *data;
    size_t count, capacity;
};

struct otlp_tables {
    const struct profile *profile;
    struct buffer encoded[OTLP_STACKS + 1]; /* by enum otlp_table: entries with their tags */
    struct buffer *stream; /* gets them early, when there are many: see otlp_tables_stream */
    uint32_t counts[OTLP_STACKS + 1];
    uint32_t *strings, *functions, *mappings, *stacks; /* by the profile's id (stacks: node) */
    uint32_t *build_ids;                               /* attributes, by the profile's string */
    uint32_t *frame_locations;                         /* by frame, for those that stand alone */
    struct id_table location_index, attribute_index;
    struct otlp_table_list location_frames; /* of all locations */
    struct otlp_table_list location_ends;   /* in location_frames, by location */
    struct profile_label *attributes;       /* by index */
    size_t attribute_capacity;
    struct otlp_table_list *label_sets; /* attribute indexes of each set */
    bool *label_sets_known;
    const struct profile_label *shared; /* labels that the resource has already */
    size_t shared_count;
    struct {
        const char *text;
        uint32_t index;
    } extras[OTLP_EXTRAS]; /* strings that the profile doesn't have */
    unsigned extra_count;
    uint32_t kinds[FRAME_KINDS], folded; /* attributes */
    struct otlp_table_list group;        /* frames of one location, innermost first */
    struct buffer scratch, stack_scratch, indexes;
};

void otlp_tables_init(struct otlp_tables *tables, const struct profile *profile);
void otlp_tables_release(struct otlp_tables *tables);

uint32_t otlp_tables_string(struct otlp_tables *tables, uint32_t string);
/* `text` is a literal. */
uint32_t otlp_tables_text(struct otlp_tables *tables, const char *text);
uint32_t otlp_tables_stack(struct otlp_tables *tables, uint32_t node);

/* The attributes of a label set that are not shared by all. */
const struct otlp_table_list *otlp_tables_labels(struct otlp_tables *tables, uint32_t label_set);

/* A new attribute; `any` is an AnyValue, `key` a literal. */
uint32_t otlp_tables_attribute(struct otlp_tables *tables, const char *key,
                               const struct buffer *any);

/* From now on tables that grow large go to `out` as messages of their own. A field that is not
 * repeated may come in parts, which readers of protobuf put together; `out` has to be between two
 * fields of the request whenever something new is asked of the tables. NULL: no longer. */
void otlp_tables_stream(struct otlp_tables *tables, struct buffer *out);

/* Appends the ProfilesDictionary, of which parts may have gone already. */
void otlp_tables_write(struct otlp_tables *tables, struct buffer *out);

/* An AnyValue: one of a string, or the number. */
void otlp_put_any_text(struct buffer *out, const char *text, size_t length);
void otlp_put_any_label(struct buffer *out, const struct profile *profile,
                        const struct profile_label *label);
