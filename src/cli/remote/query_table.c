// SPDX-License-Identifier: Apache-2.0
// Turns answers of the API into tables: which list of the document is rows, and which members of
// its elements are columns.

#include "cli/remote/query_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/number.h"
#include "base/text.h"
#include "io/json.h"
#include "profile/level.h"
#include "profile/units.h"

enum field_kind {
    FIELD_TEXT,
    FIELD_NUMBER,  /* as its column says */
    FIELD_DECIMAL, /* a fraction, or null */
    FIELD_PERCENT, /* a share */
    FIELD_TIME,    /* unix seconds, shown as a date */
    FIELD_LABELS,  /* an object: a="b", c="d" */
    FIELD_SUM,     /* an object of numbers: their sum */
    FIELD_STACK,   /* a list of texts, the innermost first */
    FIELD_POINTS,  /* [[time,value],...]: a row each, in the two columns from here on */
};

struct view {
    const char *subject;
    const char *list; /* key of the rows; NULL: the document is the list */
    const char *heading;
    struct column columns[8];
    enum field_kind kinds[8];
};

static const struct view views[] = {
    {"types",
     NULL,
     NULL,
     {{"type", "id", COLUMN_NAME},
      {"sample", "sample_type", COLUMN_NAME},
      {"unit", "sample_unit", COLUMN_NAME}},
     {0}},
    {"labels", NULL, NULL, {{"label", "", COLUMN_NAME}}, {0}},
    {"values", NULL, NULL, {{"value", "", COLUMN_NAME}}, {0}},
    {"series",
     NULL,
     NULL,
     {{"first", "first", COLUMN_NAME},
      {"last", "last", COLUMN_NAME},
      {"type", "type", COLUMN_NAME},
      {"labels", "labels", COLUMN_NAME}},
     {FIELD_TIME, FIELD_TIME, FIELD_TEXT, FIELD_LABELS}},
    {"top",
     "functions",
     NULL,
     {{"flat", "flat", COLUMN_VALUE},
      {"cum", "cum", COLUMN_VALUE},
      {"function", "function", COLUMN_NAME},
      {"file", "file", COLUMN_NAME}},
     {FIELD_NUMBER, FIELD_NUMBER}},
    {"callers",
     "callers",
     "Called by",
     {{"cum", "cum", COLUMN_VALUE},
      {"caller", "function", COLUMN_NAME},
      {"file", "file", COLUMN_NAME}},
     {FIELD_NUMBER}},
    {"callers",
     "callees",
     "Calls",
     {{"cum", "cum", COLUMN_VALUE},
      {"callee", "function", COLUMN_NAME},
      {"file", "file", COLUMN_NAME}},
     {FIELD_NUMBER}},
    {"diff",
     "functions",
     NULL,
     {{"flat", "flat_change", COLUMN_CHANGE},
      {"cum", "cum_change", COLUMN_CHANGE},
      {"was", "base_cum", COLUMN_VALUE},
      {"is", "new_cum", COLUMN_VALUE},
      {"function", "function", COLUMN_NAME}},
     {FIELD_NUMBER, FIELD_NUMBER, FIELD_NUMBER, FIELD_NUMBER}},
    {"cost",
     "rows",
     NULL,
     {{"cores", "cores", COLUMN_NAME},
      {"share", "share", COLUMN_NAME},
      {"core hours", "core_hours", COLUMN_NAME},
      {"cost", "cost", COLUMN_NAME},
      {"per hour", "per_hour", COLUMN_NAME},
      {"name", "name", COLUMN_NAME}},
     {FIELD_DECIMAL, FIELD_PERCENT, FIELD_DECIMAL, FIELD_DECIMAL, FIELD_DECIMAL}},
    {"cost function",
     "rows",
     NULL,
     {{"own cores", "own_cores", COLUMN_NAME},
      {"own cost", "own_cost", COLUMN_NAME},
      {"cores", "cores", COLUMN_NAME},
      {"share", "share", COLUMN_NAME},
      {"cost", "cost", COLUMN_NAME},
      {"function", "name", COLUMN_NAME}},
     {FIELD_DECIMAL, FIELD_DECIMAL, FIELD_DECIMAL, FIELD_PERCENT, FIELD_DECIMAL}},
    {"whatif", NULL, NULL, {{0}}, {0}},
    {"timeseries",
     "series",
     NULL,
     {{"labels", "labels", COLUMN_NAME},
      {"time", "points", COLUMN_NAME},
      {"value", "value", COLUMN_VALUE},
      {"per second", "rate", COLUMN_NAME},
      {"covered", "covered", COLUMN_NAME}},
     {FIELD_LABELS, FIELD_POINTS, FIELD_NUMBER, FIELD_TEXT, FIELD_TEXT}},
    {"exemplars",
     "exemplars",
     NULL,
     {{"time", "time", COLUMN_NAME},
      {"value", "value", COLUMN_VALUE},
      {"trace", "trace_id", COLUMN_NAME},
      {"span", "span_id", COLUMN_NAME},
      {"stack", "stack", COLUMN_NAME}},
     {FIELD_TIME, FIELD_NUMBER, FIELD_TEXT, FIELD_TEXT, FIELD_STACK}},
    {"requests",
     "routes",
     NULL,
     {{"requests", "requests", COLUMN_COUNT},
      {"errors", "errors", COLUMN_COUNT},
      {"p50", "p50", COLUMN_VALUE},
      {"p99", "p99", COLUMN_VALUE},
      {"max", "max", COLUMN_VALUE},
      {"service", "service", COLUMN_NAME},
      {"method", "method", COLUMN_NAME},
      {"route", "route", COLUMN_NAME}},
     {FIELD_NUMBER, FIELD_NUMBER, FIELD_NUMBER, FIELD_NUMBER, FIELD_NUMBER}},
    {"senders",
     NULL,
     NULL,
     {{"pushes", "pushes", COLUMN_COUNT},
      {"samples", "samples", COLUMN_COUNT},
      {"refused", "refused", COLUMN_COUNT},
      {"last", "last", COLUMN_NAME},
      {"sender", "sender", COLUMN_NAME},
      {"agent", "agent", COLUMN_NAME}},
     {FIELD_NUMBER, FIELD_NUMBER, FIELD_SUM, FIELD_TIME, FIELD_TEXT, FIELD_TEXT}},
};

bool query_table_known(const char *subject)
{
    for (size_t i = 0; i < ARRAY_LENGTH(views); i++)
        if (!strcmp(views[i].subject, subject))
            return true;
    return false;
}

/* ---- what stands around the rows ---- */

struct answer {
    char unit[128];
    double samples, windows, series, hosts, covered, dropped, unnamed; /* below 0: not said */
    double requested, uploading;                                       /* symbols: the same */
    double flat, cum, total;
    bool level;            /* docs/levels.md */
    struct buffer text;    /* the answer in a sentence */
    struct buffer sources; /* a line for each service that several observers report */
};

static int read_number(struct json *json, double *value)
{
    return json_kind(json) == JSON_NUMBER ? json_double(json, value) : json_skip(json);
}

/* Adds the texts of a list. */
static int read_texts(struct json *json, struct buffer *out)
{
    struct json_string text;
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0)
        if ((r = json_string(json, &text)) >= 0) {
            buffer_add_text(out, out->length ? " and " : "");
            buffer_add(out, text.data, text.length);
        }
    return r;
}

/* "shop: values of agent; push is left out." or "shop: by host, values of agent, or else push." */
static int read_source(struct json *json, struct buffer *out)
{
    _cleanup_buffer_ struct buffer service = {0}, source = {0}, by = {0}, others = {0},
                                   unused = {0};
    struct json_string key, text;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        struct buffer *to = json_is(&key, "service")  ? &service
                            : json_is(&key, "source") ? &source
                            : json_is(&key, "by")     ? &by
                                                      : NULL;
        if (to && (r = json_string(json, &text)) >= 0)
            buffer_add(to, text.data, text.length);
        else if (json_is(&key, "others"))
            r = read_texts(json, &others);
        else if (json_is(&key, "unused"))
            r = read_texts(json, &unused);
    }
    text_escape_terminal(out, service.data, service.length);
    if (others.length)
        buffer_printf(out, ": by %s, values of %s, or else %s.\n", buffer_text(&by),
                      buffer_text(&source), buffer_text(&others));
    else
        buffer_printf(out, ": values of %s; %s is left out.\n", buffer_text(&source),
                      buffer_text(&unused));
    return r;
}

static int read_sources(struct json *json, struct buffer *out)
{
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0)
        r = read_source(json, out);
    return r;
}

static int read_quality(struct json *json, struct answer *answer)
{
    const struct {
        const char *key;
        double *value;
    } members[] = {{"samples", &answer->samples},
                   {"windows", &answer->windows},
                   {"series", &answer->series},
                   {"hosts", &answer->hosts},
                   {"windows_covered", &answer->covered},
                   {"dropped", &answer->dropped},
                   {"unnamed_share", &answer->unnamed},
                   {"symbols_requested", &answer->requested},
                   {"symbols_uploading", &answer->uploading}};
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "sources"))
            r = read_sources(json, &answer->sources);
        for (size_t i = 0; i < ARRAY_LENGTH(members); i++)
            if (json_is(&key, members[i].key)) {
                r = read_number(json, members[i].value);
                break;
            }
    }
    return r;
}

/* A type's third part is its unit. */
static void unit_of_type(const struct json_string *type, char unit[128])
{
    const char *at = type->data, *end = type->data + type->length;
    for (int i = 0; i < 2 && at; i++) {
        at = memchr(at, ':', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    const char *stop = at ? memchr(at, ':', (size_t)(end - at)) : NULL;
    if (stop)
        snprintf(unit, 128, "%.*s", (int)MIN(stop - at, 127), at);
}

static int read_around(struct json *json, struct answer *answer)
{
    struct json_string key, text;
    if (json_kind(json) != JSON_OBJECT)
        return 0;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "type") && (r = json_string(json, &text)) >= 0) {
            _cleanup_buffer_ struct buffer type = {0};
            buffer_add(&type, text.data, text.length);
            answer->level = level_is_type(buffer_text(&type));
            unit_of_type(&text, answer->unit);
        } else if (json_is(&key, "unit") && (r = json_string(json, &text)) >= 0) {
            snprintf(answer->unit, sizeof(answer->unit), "%.*s", (int)MIN(text.length, 127ul),
                     text.data);
        } else if (json_is(&key, "text") && (r = json_string(json, &text)) >= 0) {
            buffer_add(&answer->text, text.data, text.length);
        } else if (json_is(&key, "quality"))
            r = read_quality(json, answer);
        else if (json_is(&key, "flat"))
            r = read_number(json, &answer->flat);
        else if (json_is(&key, "cum"))
            r = read_number(json, &answer->cum);
        else if (json_is(&key, "total"))
            r = read_number(json, &answer->total);
    }
    return r;
}

/* ---- rows ---- */

struct rows {
    const struct view *view;
    struct table *table;
    struct cell cells[8];
    struct buffer texts[8]; /* of the cells */
    size_t columns;
    bool level;
};

static void format_time(double seconds, struct buffer *out)
{
    time_t whole = (time_t)seconds;
    struct tm tm;
    char text[32];
    if (!gmtime_r(&whole, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
        return;
    buffer_add_text(out, text);
}

static int read_labels(struct json *json, struct buffer *out)
{
    struct json_string key, text;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        buffer_add_text(out, out->length ? ", " : "");
        buffer_add(out, key.data, key.length);
        if ((r = json_string(json, &text)) >= 0) {
            buffer_add_text(out, "=\"");
            buffer_add(out, text.data, text.length);
            buffer_add_char(out, '"');
        }
    }
    return r;
}

static int read_sum(struct json *json, int64_t *sum)
{
    struct json_string key;
    int64_t value;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if ((r = json_i64(json, &value)) >= 0)
            *sum = add_saturated(*sum, value);
    return r;
}

static int read_stack(struct json *json, struct buffer *out)
{
    struct json_string text;
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0)
        if ((r = json_string(json, &text)) >= 0) {
            buffer_add_text(out, out->length ? " < " : "");
            buffer_add(out, text.data, text.length);
        }
    return r;
}

static void add_row(struct rows *rows)
{
    for (size_t i = 0; i < rows->columns; i++)
        if (rows->view->columns[i].kind == COLUMN_NAME)
            rows->cells[i].text = buffer_text(&rows->texts[i]),
            rows->cells[i].length = rows->texts[i].length;
    table_add(rows->table, rows->cells);
}

/* The third and fourth number of a point: per covered second, in cores where that is CPU time, and
 * covered seconds. */
static int read_rate(struct rows *rows, struct json *json, size_t column)
{
    double rate = 0, covered = 0;
    struct buffer *text = &rows->texts[column + 2];
    int r = json_next_element(json);
    text->length = rows->texts[column + 3].length = 0;
    if (r > 0 && !json_null(json) && (r = json_double(json, &rate)) >= 0 && !rows->level)
        buffer_printf(text, "%.6g", strcmp(rows->table->unit, "nanoseconds") ? rate : rate / 1e9);
    if (r >= 0 && (r = json_next_element(json)) > 0 && (r = json_double(json, &covered)) >= 0)
        buffer_printf(&rows->texts[column + 3], "%.6g s", covered);
    return r;
}

/* Whole numbers beyond 2^53 aren't told apart in a double. */
static int read_points(struct rows *rows, struct json *json, size_t column)
{
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        double seconds = 0;
        int64_t value = 0;
        if (json_array(json) < 0 || json_next_element(json) <= 0 ||
            json_double(json, &seconds) < 0 || json_next_element(json) <= 0 ||
            json_i64(json, &value) < 0 || read_rate(rows, json, column) < 0 ||
            (r = json_leave(json)) < 0)
            return json_fail(json, "A point is not a time and a value");
        rows->texts[column].length = 0;
        format_time(seconds, &rows->texts[column]);
        rows->cells[column + 1] = cell_number(value);
        add_row(rows);
    }
    return r;
}

static int read_cell(struct rows *rows, struct json *json, size_t column)
{
    struct buffer *text = &rows->texts[column];
    struct json_string string;
    double seconds = 0;
    int64_t number = 0;
    int r = 0;
    switch (rows->view->kinds[column]) {
    case FIELD_TEXT:
        if ((r = json_string(json, &string)) >= 0)
            buffer_add(text, string.data, string.length);
        if (!text->length && !strcmp(rows->view->columns[column].key, "function"))
            buffer_add_text(text, "(no caller)");
        break;
    case FIELD_NUMBER:
        r = json_i64(json, &number);
        break;
    case FIELD_DECIMAL:
    case FIELD_PERCENT:
        if (json_null(json))
            break;
        if ((r = json_double(json, &seconds)) >= 0 && rows->view->kinds[column] == FIELD_PERCENT)
            buffer_printf(text, "%.1f%%", seconds * 100);
        else if (r >= 0)
            buffer_printf(text, "%.3f", seconds);
        break;
    case FIELD_SUM:
        r = read_sum(json, &number);
        break;
    case FIELD_TIME:
        if ((r = json_double(json, &seconds)) >= 0)
            format_time(seconds, text);
        break;
    case FIELD_LABELS:
        r = read_labels(json, text);
        break;
    case FIELD_STACK:
        r = read_stack(json, text);
        break;
    case FIELD_POINTS:
        r = read_points(rows, json, column);
        break;
    }
    rows->cells[column] = cell_number(number);
    return r;
}

/* Which has no labels. */
static int read_rest(struct rows *rows, struct json *json)
{
    int64_t groups = 0;
    int r = json_i64(json, &groups);
    rows->texts[0].length = 0;
    buffer_printf(&rows->texts[0], "(%lld more)", (long long)groups);
    return r;
}

static int read_row(struct rows *rows, struct json *json)
{
    struct json_string key, text;
    bool points = false;
    for (size_t i = 0; i < rows->columns; i++) {
        rows->texts[i].length = 0;
        rows->cells[i] = cell_number(0);
    }
    if (json_kind(json) == JSON_STRING) {
        int r = json_string(json, &text);
        if (r < 0)
            return r;
        buffer_add(&rows->texts[0], text.data, text.length);
        add_row(rows);
        return 0;
    }
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "rest") && rows->view->kinds[0] == FIELD_LABELS)
            r = read_rest(rows, json);
        for (size_t i = 0; i < rows->columns; i++)
            if (json_is(&key, rows->view->columns[i].key)) {
                points |= rows->view->kinds[i] == FIELD_POINTS;
                r = read_cell(rows, json, i);
                break;
            }
    }
    if (r >= 0 && !points)
        add_row(rows);
    return r;
}

static int read_rows(struct rows *rows, struct json *json)
{
    struct json_string key;
    const char *list = rows->view->list;
    int r = list ? json_object(json) : 1;
    while (list && r >= 0 && (r = json_next_key(json, &key)) > 0 && !json_is(&key, list)) {
    }
    if (r <= 0)
        return r < 0 ? r : json_fail(json, "The answer has no %s", list);
    r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0)
        r = read_row(rows, json);
    return r;
}

/* ---- the whole ---- */

/* Runs one pass over the answer. */
static int pass(const struct buffer *answer, int (*fn)(struct json *, void *), void *context,
                struct error *error)
{
    struct source source;
    int r = source_open_memory(&source, "answer", answer->data, answer->length, 1ull << 31, error);
    if (r < 0)
        return r;
    struct json json;
    json_init(&json, &source, error);
    r = fn(&json, context);
    json_release(&json);
    source_release(&source);
    return r < 0 ? r : 0;
}

static int around_pass(struct json *json, void *context)
{
    return read_around(json, context);
}

static int rows_pass(struct json *json, void *context)
{
    return read_rows(context, json);
}

static int write_view(const struct view *view, const struct buffer *answer,
                      const struct answer *around, enum table_format format, bool colour,
                      struct buffer *out, struct error *error)
{
    _cleanup_table_ struct table table;
    struct rows rows = {.view = view, .table = &table, .level = around->level};
    while (rows.columns < ARRAY_LENGTH(view->columns) && view->columns[rows.columns].title)
        rows.columns++;
    table_init(&table, view->columns, rows.columns, around->unit);
    int r = pass(answer, rows_pass, &rows, error);
    for (size_t i = 0; i < ARRAY_LENGTH(rows.texts); i++)
        buffer_release(&rows.texts[i]);
    if (r < 0)
        return r;
    if (format == TABLE_TEXT && !*view->columns[0].key) { /* a list of words wants no heading */
        for (size_t i = 0; i < table.row_count; i++) {
            text_escape_terminal(out, table.cells[i].text, table.cells[i].length);
            buffer_add_char(out, '\n');
        }
        return 0;
    }
    if (view->heading && format == TABLE_TEXT)
        buffer_printf(out, "%s%s:\n", out->length ? "\n" : "", view->heading);
    table_write(&table, format, colour, out);
    return 0;
}

static void put_count(struct buffer *out, const char *before, double count, const char *what)
{
    if (count < 0)
        return;
    buffer_add_text(out, before);
    units_add_grouped(out, &units_terminal, count);
    buffer_printf(out, " %s%s", what, count == 1 || what[strlen(what) - 1] == 's' ? "" : "s");
}

/* "410 samples in 7 windows of 7 series on 1 host; 93.1% of the time is covered." */
static void put_quality(struct buffer *out, const struct answer *around)
{
    if (around->samples < 0)
        return;
    buffer_add_char(out, '\n');
    put_count(out, "", around->samples, "sample");
    put_count(out, " in ", around->windows, "window");
    put_count(out, " of ", around->series, "series");
    put_count(out, " on ", around->hosts, "host");
    put_count(out, ", and ", around->dropped, "dropped");
    if (around->covered >= 0) {
        buffer_add_text(out, "; ");
        units_add_percent(out, &units_terminal, around->covered);
        buffer_add_text(out, " of the range is covered");
    }
    if (around->unnamed > 0) {
        buffer_add_text(out, "; ");
        units_add_percent(out, &units_terminal, around->unnamed);
        buffer_add_text(out, " is unresolved");
    }
    if (around->unnamed > 0 && around->requested + around->uploading > 0)
        buffer_printf(out, "; names pending: symbols of %.0f binaries requested, %.0f uploading",
                      around->requested, around->uploading);
    buffer_add_text(out, ".\n");
    buffer_add(out, around->sources.data, around->sources.length);
}

int query_table_write(const char *subject, const struct buffer *answer, enum table_format format,
                      bool colour, struct buffer *out, struct error *error)
{
    struct answer around = {.unit = "",
                            .samples = -1,
                            .windows = -1,
                            .series = -1,
                            .hosts = -1,
                            .covered = -1,
                            .dropped = -1,
                            .unnamed = -1,
                            .requested = -1,
                            .uploading = -1,
                            .cum = -1};
    int r = pass(answer, around_pass, &around, error);
    if (!r && format == TABLE_TEXT && around.cum >= 0) {
        buffer_add_text(out, "flat ");
        units_add(out, &units_terminal, around.flat, around.unit);
        buffer_add_text(out, ", including callees ");
        units_add(out, &units_terminal, around.cum, around.unit);
        buffer_add_text(out, " of ");
        units_add(out, &units_terminal, around.total, around.unit);
        buffer_add_char(out, '\n');
    }
    if (!r && format == TABLE_TEXT && around.text.length) {
        text_escape_terminal(out, around.text.data, around.text.length);
        buffer_add_char(out, '\n');
    }
    for (size_t i = 0; !r && i < ARRAY_LENGTH(views); i++)
        if (!strcmp(views[i].subject, subject) && views[i].columns[0].title)
            r = write_view(&views[i], answer, &around, format, colour, out, error);
    if (!r && format == TABLE_TEXT)
        put_quality(out, &around);
    buffer_release(&around.text);
    buffer_release(&around.sources);
    return r;
}
