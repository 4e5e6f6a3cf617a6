// SPDX-License-Identifier: Apache-2.0
// `assay report --lines FN`: cost by source line, beside the source where it can be read.

#include <string.h>

#include "base/text.h"
#include "cli/file/report.h"

#define CONTEXT_LINES 3

/* Tabs would break the alignment; what else is odd is escaped when printed. */
static struct cell source_cell(const struct source_text *source, uint32_t line,
                               struct buffer *scratch)
{
    scratch->length = 0;
    if (line && line <= source->count)
        for (size_t i = 0; i < source->lengths[line - 1]; i++) {
            char c = source->lines[line - 1][i];
            if (c == '\t')
                buffer_add_text(scratch, "    ");
            else if (c != '\r')
                buffer_add_char(scratch, c);
        }
    return (struct cell){.text = buffer_text(scratch), .length = scratch->length};
}

static void add_line(struct report *report, struct table *table, const struct line_row *row,
                     const struct source_text *source, struct buffer *scratch)
{
    const struct naming_entry *entry = &report->naming->entries[row->entry];
    struct cell cells[] = {cell_number(row->flat),
                           cell_percent(row->flat, report->whole),
                           cell_number(row->cumulative),
                           cell_percent(row->cumulative, report->whole),
                           cell_number(row->line),
                           {.text = entry->name, .length = entry->length},
                           cell_text(profile_text(report->profile, row->file)),
                           source_cell(source, row->line, scratch)};
    table_add(table, cells);
}

/* For each function a build that it is of, a string, or 0. The caller frees it. */
static uint32_t *find_builds(const struct report *report)
{
    const struct profile *profile = report->profile;
    uint32_t *builds = memory_zalloc(report->naming->count, sizeof(*builds));
    for (uint32_t i = 1; i < profile->frame_count; i++) {
        uint32_t entry = report->naming->of_frame[i];
        uint32_t build_id = profile->mappings[profile->frames[i].mapping].build_id;
        if (entry != NAMING_NONE && !builds[entry])
            builds[entry] = build_id;
    }
    return builds;
}

/* The source of one function in one file; none, and why, when it can't be the one of these rows. */
static const struct source_text *find_source(struct report *report, const struct line_row *rows,
                                             size_t count, uint32_t build, struct buffer *ret_why)
{
    static const struct source_text none;
    const struct source_text *source =
        report_sources_find(report->sources, profile_text(report->profile, rows[0].file),
                            profile_text(report->profile, build));
    uint32_t last = rows[count - 1].line;
    ret_why->length = 0;
    buffer_add(ret_why, source->why.data, source->why.length);
    if (!source->count || source->count >= last)
        return source;
    buffer_printf(ret_why,
                  "the file found has %zu lines, but the profile refers to line %u: it is a "
                  "different version",
                  source->count, last);
    return &none;
}

/* One function in one file: rows[first..end). */
static void add_function(struct report *report, struct table *table, const struct line_row *rows,
                         size_t count, const struct source_text *source, struct buffer *scratch)
{
    bool annotate = report->format == TABLE_TEXT && source->count;
    for (size_t i = 0; i < count; i++) {
        if (annotate) {
            /* The lines around, so that the hot ones can be read in their place. */
            uint32_t from = rows[i].line > CONTEXT_LINES ? rows[i].line - CONTEXT_LINES : 1;
            if (i && from <= rows[i - 1].line + CONTEXT_LINES)
                from = rows[i - 1].line + CONTEXT_LINES + 1;
            for (uint32_t line = from; line < rows[i].line && line <= source->count; line++) {
                struct line_row quiet = {
                    .entry = rows[i].entry, .file = rows[i].file, .line = line};
                add_line(report, table, &quiet, source, scratch);
            }
        }
        add_line(report, table, &rows[i], source, scratch);
        uint32_t next = i + 1 < count ? rows[i + 1].line : UINT32_MAX;
        for (uint32_t k = 1; annotate && k <= CONTEXT_LINES; k++) {
            uint32_t line = rows[i].line + k;
            if (line >= next || line > source->count)
                break;
            struct line_row quiet = {.entry = rows[i].entry, .file = rows[i].file, .line = line};
            add_line(report, table, &quiet, source, scratch);
        }
    }
}

void report_lines(struct report *report, const bool *chosen)
{
    static const struct column text_columns[] = {
        {"flat", NULL, COLUMN_VALUE}, {NULL, NULL, COLUMN_PERCENT},  {"cum", NULL, COLUMN_VALUE},
        {NULL, NULL, COLUMN_PERCENT}, {"line", NULL, COLUMN_COUNT},  {NULL, NULL, COLUMN_NAME},
        {NULL, NULL, COLUMN_NAME},    {"source", NULL, COLUMN_NAME},
    };
    static const struct column data_columns[] = {
        {NULL, "flat", COLUMN_VALUE}, {NULL, "flat_percent", COLUMN_PERCENT},
        {NULL, "cum", COLUMN_VALUE},  {NULL, "cum_percent", COLUMN_PERCENT},
        {NULL, "line", COLUMN_COUNT}, {NULL, "function", COLUMN_NAME},
        {NULL, "file", COLUMN_NAME},  {NULL, "source", COLUMN_NAME},
    };
    const struct column *columns = report->format == TABLE_TEXT ? text_columns : data_columns;
    _cleanup_buffer_ struct buffer scratch = {0}, why = {0};
    size_t count;
    _cleanup_free_ struct line_row *rows =
        rank_lines(report->profile, report->naming, report->type, chosen, &count);
    _cleanup_free_ uint32_t *builds = find_builds(report);
    _cleanup_table_ struct table all = {0};
    table_init(&all, columns, ARRAY_LENGTH(text_columns), report_unit(report));
    for (size_t first = 0, end; first < count; first = end) {
        end = first + 1;
        while (end < count && rows[end].entry == rows[first].entry &&
               rows[end].file == rows[first].file)
            end++;
        const struct source_text *source =
            find_source(report, rows + first, end - first, builds[rows[first].entry], &why);
        if (report->format != TABLE_TEXT) {
            add_function(report, &all, rows + first, end - first, source, &scratch);
            continue;
        }
        _cleanup_table_ struct table one = {0};
        table_init(&one, columns, ARRAY_LENGTH(text_columns), report_unit(report));
        add_function(report, &one, rows + first, end - first, source, &scratch);
        const struct naming_entry *entry = &report->naming->entries[rows[first].entry];
        const struct profile_string *file = &report->profile->strings[rows[first].file];
        buffer_add_text(report->out, first ? "\n" : "");
        text_escape_terminal(report->out, entry->name, entry->length);
        buffer_add_text(report->out, " in ");
        if (file->length)
            text_escape_terminal(report->out, file->data, file->length);
        else
            buffer_add_text(report->out, "an unknown file");
        buffer_add_char(report->out, '\n');
        if (why.length) {
            buffer_add_text(report->out, "No source: ");
            text_escape_terminal(report->out, why.data, why.length);
            buffer_add_text(report->out, ".\n");
        }
        table_write(&one, TABLE_TEXT, report->colour, report->out);
    }
    if (report->format != TABLE_TEXT) {
        report_begin(report, "", NULL, NULL);
        table_write(&all, report->format, false, report->out);
        report_end(report);
    }
}
