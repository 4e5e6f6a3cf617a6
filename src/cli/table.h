/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of results. A command fills rows once; text, CSV and JSON come from the same cells, so
 * they cannot disagree.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"

enum table_format { TABLE_TEXT, TABLE_JSON, TABLE_CSV };

enum column_kind {
    COLUMN_VALUE,   /* in the table's unit; raw integer in JSON and CSV */
    COLUMN_CHANGE,  /* the same with a sign; red above zero, blue below on a terminal */
    COLUMN_PERCENT, /* `real` */
    COLUMN_COUNT,   /* a plain integer */
    COLUMN_RATIO,   /* `real`, with two decimals; nothing where it is NAN (null in JSON) */
    COLUMN_NAME,    /* text, left-aligned */
};

struct column {
    const char *title; /* heading in text; NULL: not shown there */
    const char *key;   /* in JSON and CSV; NULL: not there */
    enum column_kind kind;
};

struct cell {
    union {
        int64_t number;
        double real;
    };
    const char *text; /* of COLUMN_NAME; copied by table_add */
    size_t length;
    bool quiet;   /* not coloured: the change is noise */
    bool unknown; /* no number: nothing, and null in JSON */
};

#define TABLE_COLUMNS_MAX 16

struct table {
    const struct column *columns;
    size_t column_count;
    const char *unit;
    struct cell *cells; /* row after row */
    size_t row_count, capacity;
    struct arena text;
};

static inline struct cell cell_number(int64_t number)
{
    return (struct cell){.number = number};
}

struct cell cell_percent(int64_t part, int64_t whole);
struct cell cell_text(const char *text);

void table_init(struct table *table, const struct column *columns, size_t column_count,
                const char *unit);
void table_release(struct table *table);
#define _cleanup_table_ __attribute__((cleanup(table_release)))

/* `cells` holds column_count cells. */
void table_add(struct table *table, const struct cell *cells);

/* Text and CSV with headings; JSON as an array of objects. `colour` is for terminals. */
void table_write(const struct table *table, enum table_format format, bool colour,
                 struct buffer *out);

/* "text", "json" or "csv"; NULL is text. False for anything else. */
bool table_format_parse(const char *name, enum table_format *ret_format);

/* Standard output is a terminal and NO_COLOR is not set. */
bool terminal_colour(void);

/* Writes the buffer to standard output. */
void print_buffer(const struct buffer *buffer);
