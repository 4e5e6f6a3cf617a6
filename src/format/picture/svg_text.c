// SPDX-License-Identifier: Apache-2.0
// The text around the frames of a static picture: header, legend, tooltips.

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "format/picture/svg.h"
#include "profile/units.h"

#define COLUMN_WIDTH 6.2 /* of a proportional font at 12 pixels, on average */
#define TITLE_COLUMN_WIDTH 9.2
#define SWATCH_WIDTH 14.0
#define TOOLTIP_COLUMNS 1000

void svg_flush_text(struct svg_picture *picture)
{
    text_escape_xml(picture->out, picture->text.data, picture->text.length);
    picture->text.length = 0;
}

/* "1.20 s → 1.50 s (+300 ms, +25%)" */
static void add_comparison(struct buffer *text, double base, double value, const char *unit)
{
    units_add(text, &units_picture, base, unit);
    buffer_add_text(text, " → ");
    units_add(text, &units_picture, value, unit);
    buffer_add_text(text, " (");
    units_add_change(text, &units_picture, value - base, unit);
    buffer_add_text(text, ", ");
    units_add_growth(text, &units_picture, base, value);
    buffer_add_text(text, ")");
}

/* "name (binary), inlined", cut to a length that a tooltip can show. */
static void add_description(struct buffer *out, const struct calltree *tree,
                            const struct calltree_node *node)
{
    const struct calltree_function *function = &tree->functions[node->function];
    svg_add_cut(out, function->name, function->length, TOOLTIP_COLUMNS);
    if (function->binary[0]) {
        buffer_add_text(out, " (");
        svg_add_cut(out, function->binary, strnlen(function->binary, TOOLTIP_COLUMNS),
                    TOOLTIP_COLUMNS);
        buffer_add_text(out, ")");
    }
    if (node->inlined)
        buffer_add_text(out, ", inlined");
}

void svg_draw_tooltip(struct svg_picture *picture, uint32_t node)
{
    const struct calltree *tree = picture->tree;
    const char *unit = picture->type->unit;
    struct buffer *text = &picture->text;
    double total = (double)picture->totals[node];
    double self = (double)picture->type->self[CALLTREE_NEW][node];
    buffer_add_text(picture->out, node ? "<title>" : "<title>all");
    if (node)
        add_description(picture->out, tree, &tree->nodes[node]);
    buffer_add_text(picture->out, "&#10;");
    if (picture->base_totals)
        add_comparison(text, (double)picture->base_totals[node] * picture->scale, total, unit);
    else
        units_add(text, &units_picture, total, unit);
    buffer_add_text(text, ", ");
    units_add_percent(text, &units_picture, total / (double)picture->totals[0]);
    buffer_add_text(text, " of all");
    if (self != 0 && self != total) {
        buffer_add_text(text, "; itself ");
        units_add(text, &units_picture, self, unit);
    }
    svg_flush_text(picture);
    buffer_add_text(picture->out, "</title>");
}

/* The scratch text as one line from `x` on. */
static void draw_text(struct svg_picture *picture, double x)
{
    size_t columns = (size_t)((SVG_WIDTH - SVG_MARGIN - x) / COLUMN_WIDTH);
    buffer_printf(picture->out, "<text x=\"%.1f\" y=\"%.1f\">", x, picture->y);
    svg_add_cut(picture->out, picture->text.data, picture->text.length, columns);
    buffer_add_text(picture->out, "</text>\n");
    picture->text.length = 0;
}

static void draw_line(struct svg_picture *picture)
{
    if (!picture->text.length)
        return;
    draw_text(picture, SVG_MARGIN);
    picture->y += SVG_LINE_HEIGHT;
}

/* Adds a sentence to the line, or begins another line where it doesn't fit. */
static void flow(struct svg_picture *picture, const char *sentence, const char *separator)
{
    struct buffer *text = &picture->text;
    size_t room = (size_t)((SVG_WIDTH - 2 * SVG_MARGIN) / COLUMN_WIDTH);
    size_t used = svg_columns(text->data, text->length);
    if (used && used + strlen(separator) + svg_columns(sentence, strlen(sentence)) > room)
        draw_line(picture);
    else if (used)
        buffer_add_text(text, separator);
    buffer_add_text(text, sentence);
}

/* "cpu (nanoseconds)" */
static void add_type_name(struct svg_picture *picture)
{
    const struct calltree_type *type = picture->type;
    buffer_add_text(&picture->text, type->name[0] ? type->name : "value");
    if (type->unit[0] && strcmp(type->name, type->unit))
        buffer_printf(&picture->text, " (%s)", type->unit);
}

/* "cpu (nanoseconds): 1.20 s in all" */
static void add_total(struct svg_picture *picture)
{
    add_type_name(picture);
    buffer_add_text(&picture->text, ": ");
    if (picture->base_totals) {
        add_comparison(&picture->text, (double)picture->base_totals[0] * picture->scale,
                       (double)picture->totals[0], picture->type->unit);
    } else {
        units_add(&picture->text, &units_picture, (double)picture->totals[0], picture->type->unit);
        buffer_add_text(&picture->text, " in all");
    }
}

void svg_draw_header(struct svg_picture *picture)
{
    const struct flame_options *options = picture->options;
    const char *title = options->title ? options->title : "Flame graph";
    picture->y = 30;
    buffer_printf(picture->out,
                  "<text x=\"%.1f\" y=\"%.1f\" font-size=\"16\" font-weight=\"600\" "
                  "fill=\"#1b1f24\">",
                  SVG_MARGIN, picture->y);
    svg_add_cut(picture->out, title, strlen(title),
                (size_t)((SVG_WIDTH - 2 * SVG_MARGIN) / TITLE_COLUMN_WIDTH));
    buffer_add_text(picture->out, "</text>\n");
    picture->y += 21;

    /* Where samples are what is counted, the notes already say how many there are. */
    if (picture->base_totals || !options->note_count || strcmp(picture->type->name, "samples"))
        add_total(picture);
    for (size_t i = 0; i < options->note_count; i++)
        flow(picture, options->notes[i], " · ");
    draw_line(picture);
}

static void draw_swatch(struct svg_picture *picture, double x, struct svg_colour colour)
{
    buffer_printf(picture->out,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"11\" fill=\"%s\"/>\n", x,
                  picture->y - 9.5, SWATCH_WIDTH, colour.text);
}

static double draw_swatches(struct svg_picture *picture, double x, const struct svg_colour *colours,
                            size_t count, const char *label)
{
    for (size_t i = 0; i < count; i++, x += SWATCH_WIDTH)
        draw_swatch(picture, x, colours[i]);
    buffer_add_text(&picture->text, label);
    double width = (double)svg_columns(label, strlen(label)) * COLUMN_WIDTH;
    draw_text(picture, x + 6);
    return x + width + 22;
}

static void draw_packages_legend(struct svg_picture *picture)
{
    struct svg_colour warm[] = {svg_warm_colour(0, 0), svg_warm_colour(2, 0), svg_warm_colour(4, 0),
                                svg_warm_colour(7, 0)};
    struct svg_colour kernel = svg_kernel_colour(), plain = svg_plain_colour();
    double x = draw_swatches(picture, SVG_MARGIN, warm, ARRAY_LENGTH(warm),
                             "one hue per package or binary, or per function if neither is known");
    x = draw_swatches(picture, x, &kernel, 1, "kernel");
    draw_swatches(picture, x, &plain, 1, "missing symbols");
    picture->y += SVG_LINE_HEIGHT;
    buffer_add_text(&picture->text, "Width is ");
    add_type_name(picture);
    buffer_add_text(&picture->text, "; siblings are sorted by it, not by time.");
}

static void draw_change_legend(struct svg_picture *picture)
{
    double x = SVG_MARGIN;
    struct svg_colour ramp[2 * SVG_DIFF_STEPS + 1];
    for (int step = -SVG_DIFF_STEPS; step <= SVG_DIFF_STEPS; step++)
        ramp[step + SVG_DIFF_STEPS] = svg_diff_colour(step);
    draw_swatches(picture, x, ramp, ARRAY_LENGTH(ramp),
                  picture->options->change_count
                      ? "blue shrank, grey is not certain to have changed, red grew"
                      : "blue shrank, grey is unchanged (within 1%), red grew");
    picture->y += SVG_LINE_HEIGHT;
    flow(picture, "Width is the value in the new profile.", " ");
    char sentence[120];
    static const char *const by[] = {"Not normalised", "Normalised by total",
                                     "Normalised by duration", "Normalised by requests"};
    if (picture->options->normalize == FLAME_NORMALIZE_NONE && picture->scale == 1)
        snprintf(sentence, sizeof(sentence), "Not normalised.");
    else
        snprintf(sentence, sizeof(sentence), "%s: base values are multiplied by %.4g.",
                 by[picture->options->normalize], picture->scale);
    flow(picture, sentence, " ");
}

/* "Frames narrower than 0.1% are left out: 2.3% of the total is in them." */
static void flow_share(struct svg_picture *picture, const char *what, double share)
{
    if (share <= 0)
        return;
    _cleanup_buffer_ struct buffer sentence = {0};
    buffer_printf(&sentence, "%s are omitted: ", what);
    units_add_percent(&sentence, &units_picture, share);
    buffer_add_text(&sentence, " of the total.");
    flow(picture, buffer_text(&sentence), " ");
}

/* How much of the base is in nodes that the new profile doesn't have. */
static void flow_vanished(struct svg_picture *picture)
{
    double gone = 0, all = 0;
    for (uint32_t node = 0; node < picture->tree->node_count; node++) {
        double base = (double)picture->type->self[CALLTREE_BASE][node];
        all += base > 0 ? base : 0;
        gone += base > 0 && !picture->widths[node] ? base : 0;
    }
    if (gone <= 0)
        return;
    _cleanup_buffer_ struct buffer sentence = {0};
    units_add_percent(&sentence, &units_picture, gone / all);
    buffer_add_text(&sentence, " of the base is in removed call paths, which have no width.");
    flow(picture, buffer_text(&sentence), " ");
}

void svg_draw_footer(struct svg_picture *picture)
{
    if (picture->base_totals) {
        draw_change_legend(picture);
        flow_vanished(picture);
    } else {
        draw_packages_legend(picture);
    }
    flow_share(picture, "Frames narrower than 0.1%", picture->narrow_share);
    flow_share(picture, "Frames below a depth of 1,000", picture->deep_share);
    if (picture->options->dropped)
        flow(picture, "Small frames were folded into (other).", " ");
    if (picture->has_negative)
        flow(picture, "Negative values have no width, but are included in the numbers.", " ");
    draw_line(picture);
}
