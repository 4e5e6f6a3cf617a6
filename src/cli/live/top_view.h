/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view of `assay top`: table, selected row, and keys. Independent of terminals and captures, so
 * tests can press keys and read the lines.
 */
#pragma once

#include "cli/live/top_window.h"
#include "cli/terminal.h"

enum top_page { TOP_FUNCTIONS, TOP_PROCESSES, TOP_NEIGHBOURS };

#define TOP_FILTER_BYTES 128
#define TOP_PLACES_MAX 32

/* A table that was opened, and where one was in it. */
struct top_place {
    enum top_page page;
    char *name, *binary; /* TOP_NEIGHBOURS: of this function */
    uint32_t pid;        /* of this process; 0: all */
    char *process;       /* what it is called, when pid is set */
    char filter[TOP_FILTER_BYTES];

    size_t selected, first; /* rows */
    bool chosen;            /* the cursor was moved, so it follows its row: */
    struct top_row mark;    /* with its own copies of name and binary */
};

struct top_view {
    /* Target; set by the caller before drawing. */
    const char *target;  /* "this machine" */
    const char *backend; /* "BPF" */
    const char *notice;  /* a sentence, or NULL */
    unsigned frequency_hz;
    unsigned cpus;
    bool colour;
    bool ended; /* nothing will come any more */

    enum top_order order;
    bool no_kernel, paused, help, typing;
    size_t name_offset; /* columns of names that are out of sight, to the left */
    struct top_place places[TOP_PLACES_MAX];
    size_t depth; /* places that are open; at least one */
};

void top_view_init(struct top_view *view);
void top_view_release(struct top_view *view);

/* Action after a key. */
enum top_action { TOP_NOTHING, TOP_DRAW, TOP_COUNT, TOP_QUIT };
/* `rows` is how many of the table fit on the screen. */
enum top_action top_view_key(struct top_view *view, const struct top_table *table, size_t rows,
                             int key);

/* The table of the place that is open. */
void top_view_count(const struct top_view *view, const struct top_window *window,
                    struct top_table *ret_table);

/* Puts the cursor on the row that it was on, wherever that is in a new table. */
void top_view_follow(struct top_view *view, const struct top_table *table, size_t rows);

/* How many rows of a table fit on a screen. */
size_t top_view_rows(const struct top_view *view, size_t screen_rows);

/* The lines of a screen that has been reset. */
void top_view_draw(const struct top_view *view, const struct top_table *table,
                   struct screen *screen);

/* "none lost", or what and how much. */
void top_view_add_losses(struct buffer *out, const struct top_table *table);
