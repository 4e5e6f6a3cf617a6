// SPDX-License-Identifier: Apache-2.0
// `assay report`: who costs what in a profile.

#include "cli/file/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "io/json_write.h"
#include "profile/filter.h"
#include "profile/units.h"

struct report_options {
    struct input_options input;
    struct filter_options filter;
    struct group_options group;
    uint64_t top;
    bool tree, cumulative;
    const char *callers, *callees, *lines, *assembly, *type, *format;
    double least_percent;
    struct report_sources sources;
};

static void add_type_name(struct buffer *out, const struct report *report)
{
    const struct profile *profile = report->profile;
    if (!profile->type_count)
        return;
    const struct profile_string *type = &profile->strings[profile->types[report->type].type];
    text_escape_terminal(out, type->data, type->length);
}

void report_begin(struct report *report, const char *heading, const char *key, const char *what)
{
    struct buffer *out = report->out;
    const struct profile *profile = report->profile;
    if (report->format == TABLE_JSON) {
        const struct profile_string none = {.data = ""};
        const struct profile_string *type =
            profile->type_count ? &profile->strings[profile->types[report->type].type] : &none;
        struct json_writer json = json_writer(out);
        json_write_object(&json);
        json_write_key(&json, "type");
        json_write_bytes(&json, type->data, type->length);
        json_member_text(&json, "unit", report_unit(report));
        if (key)
            json_member_text(&json, key, what);
        json_member_signed(&json, "total", report->whole);
        if (*heading)
            json_write_raw(&json, heading, strlen(heading));
        json_write_key(&json, "rows");
    } else if (report->format == TABLE_TEXT) {
        buffer_add_text(out, heading);
    }
}

void report_end(struct report *report)
{
    if (report->format == TABLE_JSON)
        buffer_add_text(report->out, "}\n");
}

/* "cpu.pb.gz: cpu, 12.3s in total" and what the filters left of it. */
static void add_heading(struct report *report, const struct ranking *ranking, size_t shown,
                        struct buffer *heading)
{
    if (report->format == TABLE_JSON) {
        struct json_writer json = json_writer(heading);
        json_member_signed(&json, "shown", ranking->total);
        json_member_unsigned(&json, "functions", ranking->count);
        return;
    }
    text_escape_terminal(heading, report->title, strlen(report->title));
    buffer_add_text(heading, ": ");
    add_type_name(heading, report);
    buffer_add_text(heading, ", ");
    units_add(heading, &units_terminal, (double)report->whole, report_unit(report));
    buffer_add_text(heading, " in total");
    if (ranking->absolute != report->whole) {
        buffer_add_text(heading, ", ");
        units_add(heading, &units_terminal, (double)ranking->total, report_unit(report));
        buffer_add_text(heading, " (");
        units_add_percent(heading, &units_terminal, (double)ranking->total / (double)report->whole);
        buffer_add_text(heading, ") after filters");
    }
    if (shown < ranking->count)
        buffer_printf(heading, "; %zu of %zu functions", shown, ranking->count);
    buffer_add_char(heading, '\n');
}

/* The type of an event, whatever was said behind its name ("cycles:u"). False: there is none. */
static bool find_event(const struct profile *profile, const char *name, unsigned *ret_type)
{
    size_t length = strlen(name);
    for (unsigned i = 0; i < profile->type_count; i++) {
        const char *text = profile_text(profile, profile->types[i].type);
        if (!strncmp(text, name, length) && (!text[length] || text[length] == ':')) {
            *ret_type = i;
            return true;
        }
    }
    return false;
}

/* Values of the functions themselves, by entry of the naming. The caller frees it. */
static int64_t *flat_values(const struct report *report, unsigned type)
{
    _cleanup_ranking_ struct ranking ranking = {0};
    int64_t *values = memory_zalloc(report->naming->count + 1, sizeof(*values));
    rank_functions(report->profile, report->naming, type, RANK_BY_FLAT, &ranking);
    for (size_t i = 0; i < ranking.count; i++)
        values[ranking.rows[i].entry] = ranking.rows[i].flat;
    return values;
}

/* Instructions per cycle of each function's own code, by entry; NAN where there were no cycles.
 * NULL: the profile doesn't have both. The caller frees it. */
static double *find_ipc(const struct report *report)
{
    unsigned cycles, instructions;
    if ((!find_event(report->profile, "cycles", &cycles) &&
         !find_event(report->profile, "cpu-cycles", &cycles)) ||
        !find_event(report->profile, "instructions", &instructions))
        return NULL;
    _cleanup_free_ int64_t *spent = flat_values(report, cycles);
    _cleanup_free_ int64_t *done = flat_values(report, instructions);
    double *ipc = memory_zalloc(report->naming->count + 1, sizeof(*ipc));
    for (uint32_t i = 0; i < report->naming->count; i++)
        ipc[i] = spent[i] > 0 ? (double)done[i] / (double)spent[i] : NAN;
    return ipc;
}

static void report_top(struct report *report, enum rank_order order)
{
    /* The last one is there where cycles and instructions are. */
    static const struct column columns[] = {
        {"flat", "flat", COLUMN_VALUE},          {"flat%", "flat_percent", COLUMN_PERCENT},
        {"sum%", NULL, COLUMN_PERCENT},          {"cum", "cum", COLUMN_VALUE},
        {"cum%", "cum_percent", COLUMN_PERCENT}, {"ipc", "ipc", COLUMN_RATIO},
        {"function", "function", COLUMN_NAME},   {NULL, "file", COLUMN_NAME},
        {NULL, "binary", COLUMN_NAME},
    };
    _cleanup_ranking_ struct ranking ranking = {0};
    _cleanup_table_ struct table table = {0};
    _cleanup_free_ double *ipc = find_ipc(report);
    struct column shown_columns[ARRAY_LENGTH(columns)];
    memcpy(shown_columns, columns, sizeof(columns));
    if (!ipc)
        shown_columns[5].title = shown_columns[5].key = NULL;
    rank_functions(report->profile, report->naming, report->type, order, &ranking);
    table_init(&table, shown_columns, ARRAY_LENGTH(columns), report_unit(report));
    int64_t sum = 0;
    size_t shown = report->limit ? MIN(report->limit, ranking.count) : ranking.count;
    for (size_t i = 0; i < shown; i++) {
        const struct rank_row *row = &ranking.rows[i];
        const struct naming_entry *entry = &report->naming->entries[row->entry];
        sum = add_saturated(sum, row->flat);
        struct cell cells[] = {cell_number(row->flat),
                               cell_percent(row->flat, report->whole),
                               cell_percent(sum, report->whole),
                               cell_number(row->cumulative),
                               cell_percent(row->cumulative, report->whole),
                               {.real = ipc ? ipc[row->entry] : NAN},
                               {.text = entry->name, .length = entry->length},
                               cell_text(entry->file),
                               cell_text(entry->binary)};
        table_add(&table, cells);
    }
    _cleanup_buffer_ struct buffer heading = {0};
    add_heading(report, &ranking, shown, &heading);
    report_begin(report, buffer_text(&heading), NULL, NULL);
    table_write(&table, report->format, report->colour, report->out);
    report_end(report);
}

/* The functions that are called exactly so, or else all that the expression matches. */
static int choose_functions(const struct report *report, const char *text, const char *option,
                            bool **ret_chosen)
{
    const struct naming *naming = report->naming;
    _cleanup_free_ bool *chosen = memory_zalloc(naming->count, sizeof(bool));
    size_t length = strlen(text);
    bool any = false;
    for (uint32_t i = 0; i < naming->count; i++)
        any |= chosen[i] =
            naming->entries[i].length == length && !memcmp(naming->entries[i].name, text, length);
    if (!any) {
        struct error error = {0};
        _cleanup_regex_ struct regex *pattern = NULL;
        if (regex_new(text, false, option, &pattern, &error) < 0)
            return options_wrong("report", "%s", error.text);
        for (uint32_t i = 0; i < naming->count; i++)
            any |= chosen[i] =
                regex_matches(pattern, naming->entries[i].name, naming->entries[i].length);
    }
    if (!any) {
        log_error("%s: no function matches \"%s\".", report->title, text);
        return EXIT_FAILED;
    }
    *ret_chosen = TAKE_PTR(chosen);
    return 0;
}

static void report_neighbours(struct report *report, const bool *chosen, const char *name,
                              enum rank_direction direction)
{
    const struct column columns[] = {
        {"value", "value", COLUMN_VALUE},
        {"%", "percent", COLUMN_PERCENT},
        {direction == RANK_CALLERS ? "caller" : "callee", "function", COLUMN_NAME},
        {NULL, "file", COLUMN_NAME},
        {NULL, "binary", COLUMN_NAME},
    };
    _cleanup_ranking_ struct ranking ranking = {0};
    _cleanup_table_ struct table table = {0};
    int64_t self;
    rank_neighbours(report->profile, report->naming, report->type, chosen, direction, &ranking,
                    &self);
    table_init(&table, columns, ARRAY_LENGTH(columns), report_unit(report));
    if (direction == RANK_CALLEES) {
        struct cell cells[] = {cell_number(self), cell_percent(self, report->whole),
                               cell_text("(self)"), cell_text(""), cell_text("")};
        table_add(&table, cells);
    }
    size_t shown = report->limit ? MIN(report->limit, ranking.count) : ranking.count;
    for (size_t i = 0; i < shown; i++) {
        const struct rank_row *row = &ranking.rows[i];
        static const struct naming_entry root = {
            .name = "(none)", .length = 6, .file = "", .binary = ""};
        const struct naming_entry *entry =
            row->entry == RANK_ROOT ? &root : &report->naming->entries[row->entry];
        struct cell cells[] = {cell_number(row->cumulative),
                               cell_percent(row->cumulative, report->whole),
                               {.text = entry->name, .length = entry->length},
                               cell_text(entry->file),
                               cell_text(entry->binary)};
        table_add(&table, cells);
    }
    _cleanup_buffer_ struct buffer heading = {0};
    if (report->format == TABLE_TEXT) {
        text_escape_terminal(&heading, report->title, strlen(report->title));
        buffer_printf(&heading, ": %s of ", direction == RANK_CALLERS ? "callers" : "callees");
        text_escape_terminal(&heading, name, strlen(name));
        buffer_add_text(&heading, ", by ");
        add_type_name(&heading, report);
        buffer_add_char(&heading, '\n');
    }
    report_begin(report, buffer_text(&heading),
                 direction == RANK_CALLERS ? "callers_of" : "callees_of", name);
    table_write(&table, report->format, report->colour, report->out);
    report_end(report);
}

static int run_view(struct report *report, const struct report_options *options)
{
    const struct {
        const char *text, *option;
    } chosen_by[] = {{options->callers, "--callers"},
                     {options->callees, "--callees"},
                     {options->lines, "--lines"},
                     {options->assembly, "--asm"}};
    for (size_t i = 0; i < ARRAY_LENGTH(chosen_by); i++) {
        if (!chosen_by[i].text)
            continue;
        _cleanup_free_ bool *chosen = NULL;
        int r = choose_functions(report, chosen_by[i].text, chosen_by[i].option, &chosen);
        if (r)
            return r;
        if (options->assembly)
            return report_asm(report, chosen, chosen_by[i].text);
        if (options->lines)
            report_lines(report, chosen);
        else
            report_neighbours(report, chosen, chosen_by[i].text,
                              options->callers ? RANK_CALLERS : RANK_CALLEES);
        return 0;
    }
    if (options->tree)
        report_tree(report);
    else
        report_top(report, options->cumulative ? RANK_BY_CUMULATIVE : RANK_BY_FLAT);
    return 0;
}

int64_t report_total(const struct profile *profile, unsigned type)
{
    int64_t total = 0;
    for (size_t row = 0; type < profile->type_count && row < profile->samples.count; row++)
        total = add_saturated(total, magnitude(profile->samples.values[type][row]));
    return total;
}

static int run_report(struct report_options *options, const struct command_line *line)
{
    struct report report = {.limit = options->top, .least_percent = options->least_percent};
    if (!table_format_parse(options->format, &report.format))
        return options_wrong("report", "--format must be text, json or csv, not \"%s\".",
                             options->format);
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, input_filter_detail(&options->filter) |
                               (options->lines ? PROFILE_LINES : 0) |
                               (options->assembly ? PROFILE_ADDRESSES : 0) |
                               profile_group_detail(&options->group.keys));
    int r = input_read(&options->input, line->values, line->count, &profile, NULL);
    if (!r)
        r = input_type(&profile, options->type, line->values[0], &report.type);
    if (r)
        return r;
    struct error error = {0};
    if (profile_prune(&profile, &error) < 0)
        return fail(&error);
    report.whole = report_total(&profile, report.type);
    r = input_filter(&options->filter, "report", &profile);
    if (r)
        return r;
    bool tables = !options->tree && !options->callers && !options->callees && !options->lines &&
                  !options->assembly;
    input_group_apply(&options->group, &profile, tables ? PROFILE_GROUP_ONLY : PROFILE_GROUP_ROOTS);
    _cleanup_naming_ struct naming naming;
    naming_init(&naming, &profile);
    _cleanup_buffer_ struct buffer out = {0};
    report.title = line->count > 1 ? "all files" : input_name(line->values[0]);
    report.profile = &profile;
    report.naming = &naming;
    report.colour = terminal_colour();
    report.out = &out;
    report.sources = &options->sources;
    r = run_view(&report, options);
    print_buffer(&out);
    return r;
}

int command_report(int argc, char **argv)
{
    struct report_options options = {.top = 20, .least_percent = 0.5};
    const struct option views[] = {
        {"Views", .kind = OPTION_GROUP},
        {"top", 'n', OPTION_COUNT, "N", "number of rows to show (20); 0 for all", &options.top},
        {"cum", 'c', OPTION_FLAG, NULL, "sort by cumulative value", &options.cumulative},
        {"tree", 0, OPTION_FLAG, NULL, "the call tree", &options.tree},
        {"min", 0, OPTION_NUMBER, "PERCENT", "smallest share shown in the tree (0.5)",
         &options.least_percent},
        {"callers", 0, OPTION_TEXT, "FN", "callers of FN", &options.callers},
        {"callees", 0, OPTION_TEXT, "FN", "callees of FN", &options.callees},
        {"lines", 0, OPTION_TEXT, "FN", "the lines of FN, with the source if available",
         &options.lines},
        {"asm", 0, OPTION_TEXT, "FN", "the instructions of FN, if its binary is on this machine",
         &options.assembly},
        GROUP_OPTION(&options.group),
        {"source-path", 0, OPTION_LIST, "DIR",
         "directory where sources of --lines and --asm are looked for first",
         &options.sources.folders},
        {"debuginfod", 0, OPTION_TEXT, "URL", "debuginfod server for these sources",
         &options.sources.debuginfod},
        {"token-file", 0, OPTION_TEXT, "FILE", "its token; default: $ASSAY_TOKEN",
         &options.sources.token_file},
        {"ca", 0, OPTION_TEXT, "FILE", "certificate authorities to trust instead of the system's",
         &options.sources.ca},
        {"sample-type", 't', OPTION_TEXT, "T", "sample type to report", &options.type},
        {"format", 'f', OPTION_TEXT, "F", "text, json or csv", &options.format},
        {0}};
    const struct option common[] = {
        FILTER_OPTIONS(&options.filter), INPUT_OPTIONS(&options.input), {0}};
    struct command_line line = {
        .command = "report",
        .arguments = "FILE...",
        .summary = "Shows the most expensive functions of a profile. FILE can be in any format "
                   "that\nassay reads, and - is standard input; several files are added up.",
        .notes = "FN is the exact name of a function, or else a regular expression.",
        .options = views,
        .more_options = common,
        .least = 1,
        .most = -1,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    if (options.tree + !!options.callers + !!options.callees + !!options.lines +
            !!options.assembly >
        1)
        return options_wrong(
            "report", "--tree, --callers, --callees, --lines and --asm are mutually exclusive.");
    r = input_group(&options.group, "report");
    if (!r)
        r = run_report(&options, &line);
    profile_group_release(&options.group.keys);
    report_sources_release(&options.sources);
    return r;
}
