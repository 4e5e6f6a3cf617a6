/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the SVG writer: svg.c lays out and draws frames, svg_text.c writes around them,
 * svg_label.c and svg_colour.c choose names and colours. Private to them. */
#pragma once

#include "base/buffer.h"
#include "format/picture/flamedata.h"

/* In pixels. */
#define SVG_WIDTH 1200.0
#define SVG_MARGIN 16.0
#define SVG_LINE_HEIGHT 19.0

#define SVG_SHARE_MIN 0.001 /* narrower frames are left out */
#define SVG_DEPTH_MAX 1000u /* deeper ones too */

struct svg_box {
    uint32_t node;
    uint32_t depth;
    double x, width; /* as shares of the whole */
};

struct svg_picture {
    struct buffer *out;
    const struct calltree *tree;
    const struct flame_options *options;
    const struct calltree_type *type;
    double scale;                        /* of base values */
    int64_t *totals, *base_totals;       /* the latter NULL unless two profiles are compared */
    const struct flame_change **changes; /* by function; NULL without a base */
    int64_t *widths;                     /* totals without what is negative: no width can be */
    struct svg_box *boxes;               /* callers before callees */
    size_t box_count, box_capacity;
    uint32_t rows;
    double narrow_share, deep_share; /* of the whole, in frames that are left out */
    bool has_negative;
    double y;           /* where the next line of text stands */
    struct buffer text; /* a line or a tooltip in the making, not yet escaped */
};

/* Title, totals and notes above the frames; moves picture->y below them. */
void svg_draw_header(struct svg_picture *picture);

/* The legend and what was left out, below the frames. */
void svg_draw_footer(struct svg_picture *picture);

/* A frame's <title>: its name and values. */
void svg_draw_tooltip(struct svg_picture *picture, uint32_t node);

/* Appends the scratch text, escaped, and empties it. */
void svg_flush_text(struct svg_picture *picture);

/* Appends the longest form of a name that fits into the columns, escaped: the whole name, then
 * without arguments, then without leading scopes, then cut; nothing when there is no room. */
void svg_add_label(struct buffer *out, const char *name, size_t length, size_t columns);

/* Appends the text, escaped and cut with an ellipsis after this many columns. */
void svg_add_cut(struct buffer *out, const char *text, size_t length, size_t columns);

/* Columns in a fixed-width font, of the text as it is shown: escapes count. */
size_t svg_columns(const char *text, size_t length);

/* A colour as "#rrggbb". */
struct svg_colour {
    char text[8];
};

struct svg_colour svg_frame_colour(const struct calltree_function *function);
struct svg_colour svg_warm_colour(unsigned hue, int shade);
struct svg_colour svg_kernel_colour(void);
struct svg_colour svg_plain_colour(void);

#define SVG_DIFF_STEPS 8

/* From -SVG_DIFF_STEPS (vanished) over 0 (unchanged) to SVG_DIFF_STEPS (new). */
int svg_diff_step(double before, double after);
struct svg_colour svg_diff_colour(int step);
