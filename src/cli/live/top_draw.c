// SPDX-License-Identifier: Apache-2.0
// The lines of `assay top`: see top_view.h. Names come from any process on the machine: all of them
// are escaped, and cut to their column.

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/live/top_view.h"
#include "profile/units.h"

#define NUMBERS_COLUMNS 18 /* ">100.0%  100.0%  " and what is around */
#define BINARY_COLUMNS_MAX 32
#define WITHOUT_BINARY 48 /* screens narrower than that show no binaries */

/* Reverse video isn't a colour: it shows the cursor also without colours. */
#define REVERSE "\033[7m"
#define BOLD "\033[1m"
#define DIM "\033[2m"
#define CYAN "\033[36m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

static void add_spaces(struct buffer *out, size_t count)
{
    while (count--)
        buffer_add_char(out, ' ');
}

/* `width` columns of escaped text, from `skip` on, with spaces behind it. What is cut ends in "~".
 */
static void add_cut(struct buffer *out, const char *text, size_t skip, size_t width)
{
    _cleanup_buffer_ struct buffer escaped = {0};
    text_escape_terminal(&escaped, text, strlen(text));
    size_t columns = escaped.length ? utf8_columns(escaped.data, escaped.length) : 0;
    skip = MIN(skip, columns);
    size_t shown = MIN(columns - skip, width), at = 0;
    bool cut = columns - skip > width && width;
    for (size_t column = 0; at < escaped.length && column < skip + shown - cut; column++) {
        size_t step = utf8_sequence(escaped.data + at, escaped.length - at);
        if (column >= skip)
            buffer_add(out, escaped.data + at, step);
        at += step;
    }
    if (cut)
        buffer_add_char(out, '~');
    add_spaces(out, width - shown);
}

struct layout {
    size_t title, status, notice, heads; /* lines; SIZE_MAX: not shown */
    size_t first, rows;                  /* of the table */
    size_t keys;
};

/* On a low screen the least important lines are dropped first. */
static struct layout lay_out(const struct top_view *view, size_t rows)
{
    struct layout layout = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX, 0, 0, SIZE_MAX};
    size_t line = 0;
    if (rows >= 4)
        layout.title = line++;
    if (rows >= 6)
        layout.status = line++;
    if (rows >= 10)
        layout.notice = line++;
    if (rows >= 3)
        layout.heads = line++;
    layout.first = line;
    if (rows >= 8 || (view->typing && rows >= 2))
        layout.keys = rows - 1;
    layout.rows = rows - line - (layout.keys != SIZE_MAX);
    return layout;
}

size_t top_view_rows(const struct top_view *view, size_t screen_rows)
{
    return lay_out(view, screen_rows).rows;
}

static const char *style(const struct top_view *view, const char *sequence)
{
    return view->colour ? sequence : "";
}

/* A text in a style, at the end of a line that has room for `width` columns. */
static void add_styled(struct buffer *out, const struct top_view *view, const char *sequence,
                       const char *text, size_t width)
{
    buffer_add_text(out, style(view, sequence));
    add_cut(out, text, 0, width);
    buffer_add_text(out, style(view, PLAIN));
}

/* "assay top  this machine                                1.43 of 2 CPUs  99 Hz  BPF" */
static void draw_title(const struct top_view *view, const struct top_table *table,
                       struct screen *screen, struct buffer *out)
{
    char right[128];
    double cpus = table->duration_ns > 0 ? (double)table->whole_ns / (double)table->duration_ns : 0;
    snprintf(right, sizeof(right), "  %.2f of %u CPU%s  %u Hz  %s", cpus, view->cpus,
             view->cpus == 1 ? "" : "s", view->frequency_hz, view->backend);
    size_t left = strlen("assay top  "), needed = strlen(right);
    if (screen->columns < left + needed + 10)
        needed = 0;
    add_styled(out, view, BOLD, "assay top  ", MIN(left, screen->columns));
    if (screen->columns > left)
        add_cut(out, view->target, 0, screen->columns - left - needed);
    if (needed)
        add_styled(out, view, BOLD, right, needed);
}

void top_view_add_losses(struct buffer *out, const struct top_table *table)
{
    if (table->loss_count) {
        units_add_grouped(out, &units_terminal, (double)table->loss_count);
        buffer_printf(out, " %s", table->loss);
    } else if (table->lost) {
        units_add_grouped(out, &units_terminal, (double)table->lost);
        buffer_add_text(out, " lost");
    } else {
        buffer_add_text(out, "none lost");
    }
}

static void draw_status(const struct top_view *view, const struct top_table *table,
                        struct screen *screen, struct buffer *out)
{
    const struct top_place *place = &view->places[view->depth - 1];
    _cleanup_buffer_ struct buffer text = {0};
    if (!table->duration_ns) {
        buffer_add_text(&text, "Waiting for the first samples ...");
    } else {
        units_add_grouped(&text, &units_terminal, (double)table->samples);
        buffer_printf(&text, " sample%s of the last %.1f s, ", table->samples == 1 ? "" : "s",
                      (double)table->duration_ns / 1e9);
        top_view_add_losses(&text, table);
    }
    if (view->no_kernel)
        buffer_add_text(&text, ", without the kernel");
    if (*place->filter && !view->typing)
        buffer_printf(&text, ", only with \"%s\"", place->filter);
    const char *state = view->ended ? "  ended" : view->paused ? "  paused" : "";
    size_t room = screen->columns - MIN(screen->columns, strlen(state));
    add_styled(out, view, table->lost || table->loss_count ? YELLOW : "", buffer_text(&text), room);
    add_styled(out, view, BOLD YELLOW, state, screen->columns - room);
}

static void draw_notice(const struct top_view *view, struct screen *screen, struct buffer *out)
{
    const struct top_place *place = &view->places[view->depth - 1];
    _cleanup_buffer_ struct buffer text = {0};
    if (place->page == TOP_NEIGHBOURS)
        buffer_printf(&text, "Callers and callees of %s", place->name);
    else if (place->pid)
        buffer_add_text(&text, "Functions");
    if (text.length && place->pid)
        buffer_printf(&text, " in process %u (%s)", place->pid, place->process);
    if (!text.length && view->notice)
        buffer_add_text(&text, view->notice);
    add_styled(out, view, text.length && view->depth > 1 ? BOLD : DIM, buffer_text(&text),
               screen->columns);
}

static size_t binary_columns(size_t columns)
{
    return columns < WITHOUT_BINARY ? 0 : MIN(columns / 4, (size_t)BINARY_COLUMNS_MAX);
}

/* The width of names, beside numbers and binaries. */
static size_t name_columns(size_t columns)
{
    size_t binary = binary_columns(columns);
    size_t others = NUMBERS_COLUMNS + binary + (binary ? 2 : 0);
    return columns > others ? columns - others : 0;
}

static void draw_heads(const struct top_view *view, struct screen *screen, struct buffer *out)
{
    enum top_page page = view->places[view->depth - 1].page;
    bool processes = page == TOP_PROCESSES, self = view->order == TOP_BY_SELF || processes;
    const char *first = processes ? " SHARE%" : "  SELF%",
               *second = processes ? "    PID" : " TOTAL%";
    if (page == TOP_NEIGHBOURS)
        self = false;
    size_t room = screen->columns;
    const struct {
        const char *text;
        size_t width;
        bool sorted;
    } heads[] = {
        {first, 8, self},
        {second, 10, !self && !processes},
        {processes ? "PROCESS" : "FUNCTION", name_columns(screen->columns), false},
        {processes ? "  CPUS" : "  BINARY", room, false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(heads); i++) {
        size_t width = MIN(room, heads[i].width);
        add_styled(out, view, heads[i].sorted ? BOLD : DIM, heads[i].text, width);
        room -= width;
    }
}

static void add_percent(struct buffer *out, int64_t part, int64_t whole)
{
    double share = whole > 0 ? 100.0 * (double)part / (double)whole : 0;
    buffer_printf(out, "%5.1f%%", share);
}

/* Important rows are bold, negligible ones dim. */
static const char *share_style(const struct top_view *view, int64_t part, int64_t whole)
{
    double share = whole > 0 ? (double)part / (double)whole : 0;
    return style(view, share >= 0.1 ? BOLD : share < 0.005 ? DIM : "");
}

static void draw_numbers(const struct top_view *view, const struct top_table *table,
                         const struct top_row *row, bool selected, struct buffer *out)
{
    bool processes = view->places[view->depth - 1].page == TOP_PROCESSES;
    buffer_add_char(out, selected ? '>' : ' ');
    const char *plain = selected ? PLAIN REVERSE : style(view, PLAIN);
    buffer_add_text(out, share_style(view, row->self_ns, table->whole_ns));
    if (row->relation == TOP_ITSELF)
        add_percent(out, row->self_ns, table->whole_ns);
    else
        add_spaces(out, 6);
    buffer_add_text(out, plain);
    buffer_add_text(out, " ");
    if (processes) {
        buffer_printf(out, "%7u", row->pid);
        buffer_add_text(out, "   ");
        return;
    }
    buffer_add_text(out, share_style(view, row->total_ns, table->whole_ns));
    buffer_add_text(out, " ");
    add_percent(out, row->total_ns, table->whole_ns);
    buffer_add_text(out, plain);
    buffer_add_text(out, "   ");
}

static void draw_row(const struct top_view *view, const struct top_table *table, size_t index,
                     struct screen *screen, struct buffer *out)
{
    static const char *const relations[] = {
        [TOP_ITSELF] = "", [TOP_CALLER] = "called by ", [TOP_CALLEE] = "calls "};
    const struct top_place *place = &view->places[view->depth - 1];
    const struct top_row *row = &table->rows[index];
    bool selected = index == place->selected;
    size_t names = name_columns(screen->columns), binaries = binary_columns(screen->columns);
    const char *relation = relations[row->relation];
    if (selected)
        buffer_add_text(out, REVERSE);
    draw_numbers(view, table, row, selected, out);
    size_t related = MIN(strlen(relation), names);
    add_styled(out, view, selected ? "" : DIM, relation, related);
    if (selected)
        buffer_add_text(out, REVERSE);
    bool title = place->page == TOP_NEIGHBOURS && row->relation == TOP_ITSELF && !selected;
    if (title)
        buffer_add_text(out, style(view, BOLD));
    add_cut(out, row->name, view->name_offset, names - related);
    if (title)
        buffer_add_text(out, style(view, PLAIN));
    if (binaries) {
        char cpus[32];
        double duration_ns = (double)MAX(table->duration_ns, 1);
        snprintf(cpus, sizeof(cpus), "%4.2f", (double)row->total_ns / duration_ns);
        add_spaces(out, 2);
        if (!selected)
            buffer_add_text(out, style(view, row->kernel ? YELLOW : CYAN));
        add_cut(out, place->page == TOP_PROCESSES ? cpus : row->binary, 0, binaries);
    }
    buffer_add_text(out, selected ? PLAIN : style(view, PLAIN));
}

static const char *const help_lines[] = {
    "",
    "  Up Down PgUp PgDn Home End   select a row, and follow it",
    "  Left Right                   scroll long names",
    "  Enter     callers and callees of a function; functions of a process",
    "  Esc       back",
    "  s  t      sort by self, by total",
    "  p         by process, by function",
    "  k         hide kernel frames: their time counts for the caller",
    "  /         filter rows by name or binary; Esc clears the filter",
    "  space     pause, continue",
    "  q         quit",
    "",
    "  SELF%     share of samples in the function itself",
    "  TOTAL%    share of samples in the function or its callees",
};

static void draw_help(struct screen *screen, const struct layout *layout)
{
    for (size_t i = 0; i < layout->rows && i < ARRAY_LENGTH(help_lines); i++)
        add_cut(&screen->lines[layout->first + i], help_lines[i], 0, screen->columns);
}

static void draw_keys(const struct top_view *view, struct screen *screen, struct buffer *out)
{
    const struct top_place *place = &view->places[view->depth - 1];
    if (view->typing) {
        _cleanup_buffer_ struct buffer text = {0};
        buffer_printf(&text, "/%s_", place->filter);
        add_styled(out, view, BOLD, buffer_text(&text), screen->columns);
        return;
    }
    const char *keys =
        "q quit  Enter callers  s self  t total  p processes  k kernel  / filter  ? help";
    if (view->help)
        keys = "press any key to continue";
    else if (place->page == TOP_PROCESSES)
        keys = "q quit  Enter functions  p functions of all  / filter  space pause  ? help";
    else if (view->depth > 1)
        keys = "q quit  Esc back  Enter callers  k kernel  space pause  ? help";
    add_styled(out, view, DIM, keys, screen->columns);
}

void top_view_draw(const struct top_view *view, const struct top_table *table,
                   struct screen *screen)
{
    struct layout layout = lay_out(view, screen->rows);
    const struct top_place *place = &view->places[view->depth - 1];
    if (layout.title != SIZE_MAX)
        draw_title(view, table, screen, &screen->lines[layout.title]);
    if (layout.status != SIZE_MAX)
        draw_status(view, table, screen, &screen->lines[layout.status]);
    if (layout.notice != SIZE_MAX)
        draw_notice(view, screen, &screen->lines[layout.notice]);
    if (layout.keys != SIZE_MAX)
        draw_keys(view, screen, &screen->lines[layout.keys]);
    if (view->help) {
        draw_help(screen, &layout);
        return;
    }
    if (layout.heads != SIZE_MAX)
        draw_heads(view, screen, &screen->lines[layout.heads]);
    for (size_t i = 0; i < layout.rows && place->first + i < table->count; i++)
        draw_row(view, table, place->first + i, screen, &screen->lines[layout.first + i]);
}
