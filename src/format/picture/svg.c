// SPDX-License-Identifier: Apache-2.0
// A flame graph as a static picture, for documents and printers: root at the bottom, white
// background, and all that hovering shows is text in the file. See docs/formats/svg.md.

#include "format/picture/svg.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "format/picture/pictures.h"
#include "profile/units.h"

#define GRAPH_WIDTH (SVG_WIDTH - 2 * SVG_MARGIN)
#define ROW_HEIGHT 18.0
#define FRAME_HEIGHT 17.0
#define COLUMN_WIDTH 6.63 /* of the widest common monospaced font at 11 pixels */

/* No width can be negative: sums of what is positive, which are the totals of most profiles. */
static void measure(struct svg_picture *picture)
{
    const struct calltree *tree = picture->tree;
    const int64_t *self = picture->type->self[CALLTREE_NEW];
    int64_t *widths = memory_zalloc(tree->node_count, sizeof(*widths));
    for (uint32_t node = tree->node_count; node-- > 0;) {
        picture->has_negative |= self[node] < 0;
        widths[node] = add_saturated(widths[node], MAX(self[node], 0));
        if (node) {
            int64_t *parent = &widths[tree->nodes[node].parent];
            *parent = add_saturated(*parent, widths[node]);
        }
    }
    picture->widths = widths;
}

static void place_children(struct svg_picture *picture, struct svg_box parent,
                           const uint32_t *children, size_t count)
{
    double whole = (double)picture->widths[0], x = parent.x, end = parent.x + parent.width;
    for (size_t i = 0; i < count; i++) {
        /* Sums that met the end of the range are less than their parts. */
        double width = fmin((double)picture->widths[children[i]] / whole, fmax(end - x, 0));
        if (width < SVG_SHARE_MIN) {
            picture->narrow_share += width;
        } else if (parent.depth + 1 >= SVG_DEPTH_MAX) {
            picture->deep_share += width;
        } else {
            array_reserve(picture->boxes, picture->box_capacity, picture->box_count + 1);
            picture->boxes[picture->box_count++] = (struct svg_box){
                .node = children[i], .depth = parent.depth + 1, .x = x, .width = width};
        }
        x += width;
    }
}

/* The array of boxes is also the queue of those whose children are still to be placed. */
static void lay_out(struct svg_picture *picture)
{
    if (!picture->widths[0])
        return;
    _cleanup_free_ uint32_t *first, *children;
    calltree_children(picture->tree, picture->widths, &first, &children);
    array_reserve(picture->boxes, picture->box_capacity, 1);
    picture->boxes[picture->box_count++] = (struct svg_box){.width = 1};
    for (size_t i = 0; i < picture->box_count; i++) {
        struct svg_box box = picture->boxes[i];
        picture->rows = MAX(picture->rows, box.depth + 1);
        place_children(picture, box, children + first[box.node],
                       first[box.node + 1] - first[box.node]);
    }
}

static struct svg_colour colour_of(const struct svg_picture *picture, uint32_t node)
{
    const struct flame_change *change =
        picture->changes && node ? picture->changes[picture->tree->nodes[node].function] : NULL;
    /* The root is not a function: nobody judged its change. */
    if (change ? !change->total.certain : !node && picture->options->change_count)
        return svg_diff_colour(0);
    if (picture->base_totals) {
        double after =
            (double)picture->type->self[CALLTREE_NEW][node] + (double)picture->totals[node];
        double before =
            (double)picture->type->self[CALLTREE_BASE][node] + (double)picture->base_totals[node];
        return svg_diff_colour(svg_diff_step(before * picture->scale, after));
    }
    if (!node)
        return svg_plain_colour();
    return svg_frame_colour(&picture->tree->functions[picture->tree->nodes[node].function]);
}

static void draw_label(struct svg_picture *picture, const struct svg_box *box, double x, double y,
                       size_t columns)
{
    _cleanup_buffer_ struct buffer label = {0};
    if (box->node) {
        const struct calltree *tree = picture->tree;
        const struct calltree_function *function =
            &tree->functions[tree->nodes[box->node].function];
        svg_add_label(&label, function->name, function->length, columns);
    } else {
        buffer_add_text(&picture->text, "all, ");
        units_add(&picture->text, &units_picture, (double)picture->totals[0], picture->type->unit);
        svg_add_cut(&label, picture->text.data, picture->text.length, columns);
        picture->text.length = 0;
    }
    if (!label.length)
        return;
    buffer_printf(picture->out, "<text x=\"%.2f\" y=\"%.1f\">", x, y);
    buffer_add(picture->out, label.data, label.length);
    buffer_add_text(picture->out, "</text>");
}

static void draw_box(struct svg_picture *picture, const struct svg_box *box, double bottom)
{
    struct buffer *out = picture->out;
    double x = SVG_MARGIN + box->x * GRAPH_WIDTH, width = box->width * GRAPH_WIDTH;
    double y = bottom - (box->depth + 1) * ROW_HEIGHT;
    /* A hair's breadth between neighbours, but never at the cost of a thin frame. */
    double gap = width > 3 ? 0.6 : width * 0.2;
    buffer_add_text(out, "<g>");
    svg_draw_tooltip(picture, box->node);
    buffer_printf(out, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.0f\"%s fill=\"%s\"/>",
                  x, y, width - gap, FRAME_HEIGHT, width > 8 ? " rx=\"2\"" : "",
                  colour_of(picture, box->node).text);
    if (width > 8)
        draw_label(picture, box, x + 4, y + 12.5, (size_t)((width - 8) / COLUMN_WIDTH));
    buffer_add_text(out, "</g>\n");
}

/* Where the frames end, or the text in their place. */
static double frames_bottom(const struct svg_picture *picture)
{
    return picture->box_count ? picture->y - 6 + picture->rows * ROW_HEIGHT : picture->y + 18;
}

static void draw_frames(struct svg_picture *picture)
{
    if (!picture->box_count) {
        buffer_printf(picture->out, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", SVG_MARGIN,
                      picture->y + 8, "Nothing to draw: no sample has a value.");
        return;
    }
    double bottom = frames_bottom(picture);
    buffer_add_text(picture->out,
                    "<g id=\"frames\" font-size=\"11\" fill=\"#1b1f24\" font-family=\"ui-monospace,"
                    "SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',"
                    "monospace\">\n");
    for (size_t i = 0; i < picture->box_count && buffer_pass(picture->out); i++)
        draw_box(picture, &picture->boxes[i], bottom);
    buffer_add_text(picture->out, "</g>\n");
}

/* The height is known when what is around the frames has been drawn, so that is done twice. */
static void measure_height(struct svg_picture *picture)
{
    _cleanup_buffer_ struct buffer nowhere = {0};
    picture->out = &nowhere;
    svg_draw_header(picture);
    picture->y = frames_bottom(picture) + 22;
    svg_draw_footer(picture);
}

static void draw(struct svg_picture *picture, struct buffer *out)
{
    measure_height(picture);
    const char *title = picture->options->title ? picture->options->title : "Flame graph";
    buffer_printf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                  "viewBox=\"0 0 %.0f %.0f\" role=\"img\" font-size=\"12\" fill=\"#57606a\" "
                  "font-family=\"system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,"
                  "sans-serif\">\n<title>",
                  SVG_WIDTH, picture->y, SVG_WIDTH, picture->y);
    text_escape_xml(out, title, strlen(title));
    buffer_add_text(out, "</title>\n<style>#frames g:hover rect{stroke:#1b1f24;stroke-width:1}"
                         "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
    picture->out = out;
    svg_draw_header(picture);
    draw_frames(picture);
    picture->y = frames_bottom(picture) + 22;
    svg_draw_footer(picture);
    buffer_add_text(out, "</svg>\n");
}

int svg_draw(struct buffer *out, struct calltree *tree, const struct flame_options *options,
             struct error *error)
{
    if (options->default_type >= tree->type_count)
        return error_set(error, -EINVAL, "Nothing to draw: the profile has no such sample type.");
    struct svg_picture picture = {
        .tree = tree,
        .options = options,
        .type = &tree->types[options->default_type],
        .scale = flame_scale(options, options->default_type),
        .totals = calltree_totals(tree, options->default_type, CALLTREE_NEW),
    };
    if (tree->has_base) {
        picture.base_totals = calltree_totals(tree, options->default_type, CALLTREE_BASE);
        picture.changes = flame_changes(tree, options);
    }
    measure(&picture);
    lay_out(&picture);
    draw(&picture, out);
    free(picture.totals);
    free(picture.base_totals);
    free(picture.changes);
    free(picture.widths);
    free(picture.boxes);
    buffer_release(&picture.text);
    return 0;
}

static int svg_write(struct buffer *out, const struct profile *profile,
                     const struct write_options *options, struct error *error)
{
    return picture_write(out, profile, options, svg_draw, error);
}

const struct format format_svg = {
    .name = "svg",
    .summary = "static flame graph for documents and printers",
    .extensions = ".svg",
    .write = svg_write,
};
