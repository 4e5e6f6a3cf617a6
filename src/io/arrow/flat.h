/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FlatBuffers, as Arrow describes its messages in them: tables of fields by number. Every position
 * is checked against the buffer; a field that is missing or out of bounds has its default.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flat_table {
    const uint8_t *bytes; /* of the whole buffer */
    size_t length;
    size_t at;                 /* of the table */
    size_t layout, layout_end; /* of its vtable's offsets of fields */
    size_t end;                /* of its own fields */
};

struct flat_vector {
    const uint8_t *bytes;
    size_t length;
    size_t at;    /* of the first element */
    size_t count; /* all of them are in the buffer */
};

/* The buffer's root table. False: damaged. */
bool flat_root(const uint8_t *bytes, size_t length, struct flat_table *ret_table);

/* A number of 1, 2, 4 or 8 bytes, with its sign. */
int64_t flat_number(const struct flat_table *table, unsigned field, size_t width,
                    int64_t otherwise);

/* False: the field is missing, or damaged. */
bool flat_child(const struct flat_table *table, unsigned field, struct flat_table *ret_table);

/* Text is empty where it is missing, and not terminated. */
const char *flat_text(const struct flat_table *table, unsigned field, size_t *ret_length);

/* Elements of that many bytes; none where the field is missing or damaged. Of tables the elements
 * are 4 bytes. */
struct flat_vector flat_vector(const struct flat_table *table, unsigned field, size_t width);
bool flat_element_table(const struct flat_vector *vector, size_t index,
                        struct flat_table *ret_table);
int64_t flat_element(const struct flat_vector *vector, size_t at, size_t width);
