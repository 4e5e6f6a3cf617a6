// SPDX-License-Identifier: Apache-2.0
// `assay diff`: what changed between two profiles, as a table or a picture.

#include "profile/views/diff.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/compare/sides.h"
#include "cli/file/diff_lines.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/table.h"
#include "compare/cause.h"
#include "compare/compare.h"
#include "compare/picture/changes.h"
#include "format/picture/pictures.h"
#include "io/json_write.h"
#include "profile/filter.h"
#include "profile/level.h"
#include "profile/units.h"

struct diff_options {
    struct input_options input;
    struct filter_options filter;
    uint64_t top;
    bool cumulative;
    const char *type, *format, *output, *normalize, *lines;
    double requests[2];
    struct remote_inputs remote;
};

/* Whether the changes are real. `comparison` has no rows when that can't be judged. */
struct judgement {
    struct compare_source sources[2];
    struct compare_table table;
    struct comparison comparison;
    struct compare_causes causes;
    struct id_table by_name; /* positions of the table's functions */
};

struct diff_command {
    struct diff_options *options;
    const char *paths[2]; /* base, new */
    struct profile profiles[2];
    struct naming namings[2];
    struct diff_side sides[2];
    unsigned parts[2];                    /* profiles that each side was added up from */
    enum diff_normalize asked, normalize; /* the latter of the table's type */
    bool per_request;                     /* instead */
    enum table_format format;
    struct judgement judgement;
};

static void diff_command_release(struct diff_command *comparison)
{
    for (int i = 0; i < 2; i++) {
        profile_release(&comparison->profiles[i]);
        naming_release(&comparison->namings[i]);
    }
    compare_table_release(&comparison->judgement.table);
    comparison_release(&comparison->judgement.comparison);
    compare_causes_release(&comparison->judgement.causes);
    id_table_release(&comparison->judgement.by_name);
}

/* A file, a selection, or all profiles of a baseline added up. */
static int read_side(struct diff_options *options, const char *path, enum compare_side side,
                     struct profile *profile, unsigned *ret_parts)
{
    unsigned parts = 1;
    *ret_parts = 1;
    if (!remote_input_is(path))
        return input_read(&options->input, &path, 1, profile, NULL);
    int r = remote_input_count(&options->remote, path, &parts);
    for (unsigned part = 0; !r && part < parts; part++)
        r = remote_input_read(&options->remote, path, part, side, options->input.expansion_limit,
                              profile);
    *ret_parts = parts;
    return r;
}

static int load(struct diff_command *comparison)
{
    struct diff_options *options = comparison->options;
    size_t found = 0;
    for (int i = 0; i < 2; i++) {
        struct profile *profile = &comparison->profiles[i];
        struct error error = {0};
        profile_init(profile, input_filter_detail(&options->filter) | PROFILE_TIMES |
                                  (options->lines ? PROFILE_LINES : 0));
        int r = read_side(options, comparison->paths[i], (enum compare_side)i, profile,
                          &comparison->parts[i]);
        if (!r && profile_prune(profile, &error) < 0)
            return fail(&error);
        if (!r)
            r = input_filter(&options->filter, "diff", profile);
        if (r)
            return r;
        if (options->lines)
            found += diff_lines_of(profile, options->lines);
        if (options->lines && i && !found) {
            log_error("No stack of either profile has a function \"%s\".", options->lines);
            return EXIT_FAILED;
        }
        naming_init(&comparison->namings[i], profile);
        comparison->sides[i].profile = profile;
        comparison->sides[i].naming = &comparison->namings[i];
    }
    return 0;
}

/* The new profile says which type; the base must have the same, or it is compared with nothing. */
static int choose_type(struct diff_command *comparison)
{
    const struct profile *base = &comparison->profiles[0], *new_profile = &comparison->profiles[1];
    unsigned type;
    int r = sides_type(new_profile, comparison->options->type, comparison->paths[1], &type);
    if (r)
        return r;
    comparison->sides[1].type = type;
    comparison->sides[0].type = PROFILE_TYPES_MAX;
    if (type >= new_profile->type_count)
        return 0;
    const char *name = profile_text(new_profile, new_profile->types[type].type);
    const char *unit = profile_text(new_profile, new_profile->types[type].unit);
    for (unsigned i = 0; i < base->type_count; i++)
        if (!strcmp(profile_text(base, base->types[i].type), name) &&
            !strcmp(profile_text(base, base->types[i].unit), unit))
            comparison->sides[0].type = i;
    if (comparison->sides[0].type == PROFILE_TYPES_MAX && base->type_count) {
        log_error("%s has no sample type %s/%s as %s does; choose a common one with --sample-type.",
                  comparison->paths[0], name, unit, comparison->paths[1]);
        return EXIT_FAILED;
    }
    return 0;
}

static const char *const normalize_names[] = {"total", "duration", "none", "requests"};

static void add_heading(const struct diff_command *comparison, const struct diff *diff,
                        size_t shown, struct buffer *out)
{
    const struct profile *profile = &comparison->profiles[1];
    const struct profile_type *type = profile->types + comparison->sides[1].type;
    const double *requests = comparison->judgement.table.requests;
    const char *name = profile->type_count ? profile_text(profile, type->type) : "";
    const char *unit = profile->type_count ? profile_text(profile, type->unit) : "";
    if (comparison->format == TABLE_JSON) {
        struct json_writer json = json_writer(out);
        json_write_object(&json);
        json_member_text(&json, "type", name);
        json_member_text(&json, "unit", unit);
        json_member_text(&json, "normalize",
                         comparison->per_request ? "requests"
                                                 : normalize_names[comparison->normalize]);
        json_member_text(&json, "requests",
                         requests[0] > 0 && requests[1] > 0 ? "known" : "unknown");
        json_member_number(&json, "scale", diff->scale);
        json_member_signed(&json, "base_total", diff->base_total);
        json_member_signed(&json, "new_total", diff->new_total);
        json_write_key(&json, "rows");
        return;
    }
    if (comparison->format != TABLE_TEXT)
        return;
    text_escape_terminal(out, name, strlen(name));
    buffer_add_text(out, ": ");
    units_add(out, &units_terminal, (double)diff->base_total, unit);
    buffer_add_text(out, " in the base, ");
    units_add(out, &units_terminal, (double)diff->new_total, unit);
    buffer_add_text(out, " in the new profile");
    if (comparison->per_request)
        buffer_printf(out, "; %.0f and %.0f requests, base values are scaled by %.4g to equal them",
                      requests[0], requests[1], diff->scale);
    else if (comparison->normalize == DIFF_ABSOLUTE)
        buffer_add_text(out, "; not normalized");
    else
        buffer_printf(out, "; base values are scaled by %.4g to equal %s", diff->scale,
                      comparison->normalize == DIFF_BY_TOTAL ? "totals" : "durations");
    if (shown < diff->count)
        buffer_printf(out, "; %zu of %zu functions", shown, diff->count);
    buffer_add_char(out, '\n');
}

static bool is_level(const struct diff_command *comparison)
{
    const struct diff_side *side = &comparison->sides[1];
    return side->type < side->profile->type_count &&
           level_is_sample_type(profile_text(side->profile, side->profile->types[side->type].type));
}

/* The observations of both sides; none where a side has no samples. */
static int observe(struct diff_command *comparison)
{
    struct judgement *judgement = &comparison->judgement;
    struct error error = {0};
    for (int i = 0; i < 2; i++) {
        const struct diff_side *side = &comparison->sides[i];
        if (side->type >= side->profile->type_count)
            return 0;
        compare_source_init(&judgement->sources[i], side->profile, side->naming, side->type);
        judgement->sources[i].side = i ? COMPARE_NEW : COMPARE_BASE;
        judgement->sources[i].cluster = i ? "new" : "base";
        if (is_level(comparison) && judgement->sources[i].covered_type >= side->profile->type_count)
            judgement->sources[i].factor = 1.0 / MAX(comparison->parts[i], 1u);
    }
    return compare_table_build(judgement->sources, 2, &judgement->table, &error) < 0 ? fail(&error)
                                                                                     : 0;
}

/* Replaces the sum over several snapshots of a level by their average. */
static void average_levels(struct diff_command *comparison)
{
    const struct judgement *judgement = &comparison->judgement;
    for (int i = 0; judgement->table.level && i < 2; i++)
        sides_divide(&comparison->profiles[i], comparison->sides[i].type,
                     judgement->table.seconds[i] / judgement->sources[i].factor);
}

/* Judges what the table shows, with the same normalisation. */
static int judge(struct diff_command *comparison)
{
    static const enum compare_normalize normalize[] = {[DIFF_BY_TOTAL] = COMPARE_PER_TOTAL,
                                                       [DIFF_BY_DURATION] = COMPARE_PER_SECOND,
                                                       [DIFF_ABSOLUTE] = COMPARE_RAW};
    struct judgement *judgement = &comparison->judgement;
    struct error error = {0};
    const double *values = judgement->table.value;
    if (!(values[0] > 0) || !(values[1] > 0))
        return 0;
    sides_set_requests(&judgement->table, comparison->options->requests);
    if (comparison->options->requests[0] > 0 && !comparison->options->normalize)
        comparison->per_request = true;
    struct compare_options options = {.normalize = comparison->per_request
                                                       ? COMPARE_PER_REQUEST
                                                       : normalize[comparison->normalize],
                                      .false_discovery_rate = 0.05};
    if (compare_causes_find(&judgement->table, &options, &judgement->causes, &error) < 0 ||
        compare(&judgement->table, &options, &judgement->comparison, &error) < 0)
        return fail(&error);
    for (size_t i = 0; i < judgement->comparison.count; i++) {
        const struct compare_function *function = &judgement->table.functions[i];
        id_table_insert(&judgement->by_name, XXH3_64bits(function->name, function->length),
                        (uint32_t)i);
    }
    return 0;
}

/* The verdict on a function's flat value, or with --cum on the cumulative one. */
struct judged {
    const struct compare_measure *measure;
    enum compare_cause cause;
};

static struct judged judged(const struct diff_command *comparison, const struct naming_entry *entry)
{
    static const struct compare_measure unknown = {.p = 1, .verdict = COMPARE_TOO_FEW};
    const struct judgement *judgement = &comparison->judgement;
    struct id_probe probe = id_probe_start(XXH3_64bits(entry->name, entry->length));
    uint32_t id;
    while ((id = id_table_next(&judgement->by_name, &probe)) != ID_NONE) {
        const struct compare_row *row = &judgement->comparison.rows[id];
        if (row->function->length == entry->length &&
            !memcmp(row->function->name, entry->name, entry->length)) {
            bool total = comparison->options->cumulative;
            return (struct judged){
                total ? &row->total : &row->self,
                compare_cause(&judgement->causes, &judgement->comparison, id, total)};
        }
    }
    return (struct judged){&unknown, COMPARE_CAUSE_UNKNOWN};
}

/* A bound of a change in the units that the table shows: those of the new profile. */
static int64_t bound(const struct diff_command *comparison, double value)
{
    const struct judgement *judgement = &comparison->judgement;
    if (!isfinite(value))
        return 0;
    double scaled = value * changes_exposure(&judgement->table, &judgement->comparison);
    return scaled >= 9.2e18 ? INT64_MAX : scaled <= -9.2e18 ? INT64_MIN : llround(scaled);
}

/* Seconds more of each side that would settle an undecided change; 0: it is decided, or unknown. */
static int64_t needed(const struct compare_measure *measure)
{
    bool known = measure->verdict == COMPARE_UNDECIDED && measure->more_seconds > 0;
    return known ? (int64_t)fmin(ceil(measure->more_seconds), 1e15) : 0;
}

/* With a limit, the widest growth and the greatest shrinkage share it: both ends matter. */
static size_t pick_rows(const struct diff *diff, uint64_t limit, size_t *ret_head)
{
    if (!limit || limit >= diff->count) {
        *ret_head = diff->count;
        return diff->count;
    }
    *ret_head = (size_t)(limit + 1) / 2;
    return (size_t)limit;
}

static void print_table(const struct diff_command *comparison, const struct diff *diff)
{
    static const struct column columns[] = {
        {"change", "flat_change", COLUMN_CHANGE},
        {"change%", "flat_change_percent", COLUMN_PERCENT},
        {"base", "base_flat", COLUMN_VALUE},
        {"new", "new_flat", COLUMN_VALUE},
        {"low", "low", COLUMN_CHANGE},
        {"high", "high", COLUMN_CHANGE},
        {NULL, "p", COLUMN_PERCENT},
        {"verdict", "verdict", COLUMN_NAME},
        {NULL, "more_seconds", COLUMN_COUNT},
        {NULL, "cause", COLUMN_NAME},
        {"cum change", "cum_change", COLUMN_CHANGE},
        {NULL, "base_cum", COLUMN_VALUE},
        {NULL, "new_cum", COLUMN_VALUE},
        {"function", "function", COLUMN_NAME},
        {NULL, "file", COLUMN_NAME},
        {NULL, "binary", COLUMN_NAME},
    };
    const struct profile *profile = &comparison->profiles[1];
    const char *unit = profile->type_count
                           ? profile_text(profile, profile->types[comparison->sides[1].type].unit)
                           : "";
    size_t head, shown = pick_rows(diff, comparison->options->top, &head);
    _cleanup_table_ struct table table = {0};
    _cleanup_buffer_ struct buffer out = {0};
    table_init(&table, columns, ARRAY_LENGTH(columns), unit);
    int64_t whole = diff->new_total ? diff->new_total : diff->base_total;
    int64_t undecided = 0;
    for (size_t i = 0; i < shown; i++) {
        const struct diff_row *row = &diff->rows[i < head ? i : diff->count - (shown - i)];
        if (comparison->options->lines && !diff_lines_is_line(row->entry->name))
            continue;
        struct judged found = judged(comparison, row->entry);
        const struct compare_measure *measure = found.measure;
        struct cell cells[] = {cell_number(row->flat_change),
                               cell_percent(row->flat_change, whole),
                               cell_number(row->base_flat),
                               cell_number(row->new_flat),
                               cell_number(bound(comparison, measure->low)),
                               cell_number(bound(comparison, measure->high)),
                               {.real = measure->p},
                               cell_text(compare_verdict_names[measure->verdict]),
                               cell_number(needed(measure)),
                               cell_text(compare_cause_names[found.cause]),
                               cell_number(row->cumulative_change),
                               cell_number(row->base_cumulative),
                               cell_number(row->new_cumulative),
                               {.text = row->entry->name, .length = row->entry->length},
                               cell_text(row->entry->file),
                               cell_text(row->entry->binary)};
        undecided = MAX(undecided, needed(measure));
        bool real = measure->verdict == COMPARE_GREW || measure->verdict == COMPARE_SHRANK;
        cells[4].unknown = !isfinite(measure->low);
        cells[5].unknown = !isfinite(measure->high);
        cells[0].quiet = cells[4].quiet = cells[5].quiet = !real;
        table_add(&table, cells);
    }
    add_heading(comparison, diff, shown, &out);
    table_write(&table, comparison->format, terminal_colour(), &out);
    if (comparison->format == TABLE_JSON)
        buffer_add_text(&out, "}\n");
    if (comparison->format == TABLE_TEXT && undecided) {
        buffer_add_text(&out, "About ");
        units_add(&out, &units_terminal, (double)undecided * 1e9, "nanoseconds");
        buffer_add_text(&out, " more on each side would settle the undecided changes.\n");
    }
    print_buffer(&out);
}

/* Each type of the tree has its own totals, so its own factor. */
static void type_scales(const struct diff_command *comparison, const struct calltree *tree,
                        double *scales)
{
    for (unsigned i = 0; i < tree->type_count; i++) {
        struct diff_side sides[2] = {comparison->sides[0], comparison->sides[1]};
        for (int side = 0; side < 2; side++) {
            sides[side].type = PROFILE_TYPES_MAX;
            const struct profile *profile = &comparison->profiles[side];
            for (unsigned k = 0; k < profile->type_count; k++)
                if (!strcmp(profile_text(profile, profile->types[k].type), tree->types[i].name) &&
                    !strcmp(profile_text(profile, profile->types[k].unit), tree->types[i].unit))
                    sides[side].type = k;
        }
        scales[i] = diff_scale(&sides[0], &sides[1], comparison->asked);
    }
}

static double request_scale(const struct diff_command *comparison)
{
    const double *requests = comparison->judgement.table.requests;
    return requests[0] > 0 ? requests[1] / requests[0] : 1;
}

static int draw(const struct diff_command *comparison)
{
    const char *output = comparison->options->output;
    const struct format *format;
    int r = output_format("diff", NULL, output, &format);
    if (r)
        return r;
    if (format != &format_svg && format != &format_html)
        return options_wrong("diff", "-o requires a file that ends in .html or .svg.");
    static const enum flame_normalize normalize[] = {
        FLAME_NORMALIZE_TOTAL, FLAME_NORMALIZE_DURATION, FLAME_NORMALIZE_NONE};
    _cleanup_calltree_ struct calltree tree;
    _cleanup_buffer_ struct buffer content = {0};
    double scales[PROFILE_TYPES_MAX];
    struct error error = {0};
    calltree_init(&tree);
    /* The new side first, so that its types keep their order. */
    r = calltree_add(&tree, &comparison->profiles[1], CALLTREE_NEW, &error);
    if (!r)
        r = calltree_add(&tree, &comparison->profiles[0], CALLTREE_BASE, &error);
    if (r < 0)
        return fail(&error);
    const struct judgement *judgement = &comparison->judgement;
    if (comparison->per_request)
        for (unsigned i = 0; i < tree.type_count; i++)
            scales[i] = request_scale(comparison);
    else
        type_scales(comparison, &tree, scales);
    _cleanup_free_ struct flame_change *changes = NULL;
    size_t change_count = 0;
    if (judgement->comparison.count)
        changes = changes_list(&judgement->table, &judgement->comparison, &judgement->causes,
                               &change_count);
    _cleanup_buffer_ struct buffer title = {0};
    buffer_printf(&title, "%s against %s", path_base(input_name(comparison->paths[1])),
                  path_base(input_name(comparison->paths[0])));
    _cleanup_buffer_ struct buffer base_note = {0}, new_note = {0};
    buffer_printf(&base_note, "Base: %s.", input_name(comparison->paths[0]));
    buffer_printf(&new_note, "New: %s.", input_name(comparison->paths[1]));
    const char *notes[] = {buffer_text(&base_note), buffer_text(&new_note)};
    struct flame_options options = {.title = buffer_text(&title),
                                    .notes = notes,
                                    .note_count = ARRAY_LENGTH(notes),
                                    .default_type = comparison->sides[1].type,
                                    .normalize = comparison->per_request
                                                     ? FLAME_NORMALIZE_REQUESTS
                                                     : normalize[comparison->normalize],
                                    .scale = scales,
                                    .changes = changes,
                                    .change_count = change_count};
    r = format == &format_html ? html_draw(&content, &tree, &options, &error)
                               : svg_draw(&content, &tree, &options, &error);
    if (!r)
        r = file_write_atomic(output, content.data, content.length, &error);
    return r < 0 ? fail(&error) : EXIT_FINE;
}

static int run(struct diff_command *comparison)
{
    int r = load(comparison);
    if (!r)
        r = choose_type(comparison);
    if (r)
        return r;
    comparison->normalize =
        diff_resolve(&comparison->sides[0], &comparison->sides[1], comparison->asked);
    if (comparison->asked == DIFF_BY_DURATION && !is_level(comparison) &&
        (!comparison->profiles[0].duration_ns || !comparison->profiles[1].duration_ns)) {
        log_error("%s has no duration; use --normalize total or none.",
                  comparison->paths[comparison->profiles[0].duration_ns ? 1 : 0]);
        return EXIT_FAILED;
    }
    r = observe(comparison);
    if (!r)
        r = judge(comparison);
    if (r)
        return r;
    average_levels(comparison);
    if (comparison->options->output)
        return draw(comparison);
    _cleanup_diff_ struct diff diff = {0};
    double scale =
        comparison->per_request
            ? request_scale(comparison)
            : diff_scale(&comparison->sides[0], &comparison->sides[1], comparison->normalize);
    diff_functions(&comparison->sides[0], &comparison->sides[1], scale,
                   comparison->options->cumulative ? RANK_BY_CUMULATIVE : RANK_BY_FLAT, &diff);
    print_table(comparison, &diff);
    return EXIT_FINE;
}

int command_diff(int argc, char **argv)
{
    struct diff_options options = {.top = 20};
    const struct option own[] = {
        {"Output", .kind = OPTION_GROUP},
        {"normalize", 0, OPTION_TEXT, "BY",
         "duration: per second (default), total: shares, requests or none", &options.normalize},
        {"top", 'n', OPTION_COUNT, "N", "number of rows to show (20); 0 for all", &options.top},
        {"cum", 'c', OPTION_FLAG, NULL, "sort by the change of cumulative values",
         &options.cumulative},
        {"sample-type", 't', OPTION_TEXT, "T", "sample type to compare", &options.type},
        {"lines", 0, OPTION_TEXT, "FUNCTION", "compare the lines of this function", &options.lines},
        {"base-requests", 0, OPTION_NUMBER, "N", "requests that the base served",
         &options.requests[0]},
        {"new-requests", 0, OPTION_NUMBER, "N", "requests that the new side served",
         &options.requests[1]},
        {"format", 'f', OPTION_TEXT, "F", "text, json or csv", &options.format},
        {"output", 'o', OPTION_TEXT, "OUT", "draw OUT.html or OUT.svg instead of a table",
         &options.output},
        REMOTE_INPUT_OPTIONS(options.remote),
        {0}};
    const struct option common[] = {
        FILTER_OPTIONS(&options.filter), INPUT_OPTIONS(&options.input), {0}};
    struct command_line line = {
        .command = "diff",
        .arguments = "BASE NEW",
        .summary =
            "Shows what changed from one profile to another, largest increase first. In\npictures, "
            "red is growth, blue is shrinkage, grey is not certain to have changed; width is "
            "the\nnew value.",
        .options = own,
        .more_options = common,
        .least = 0,
        .most = 2,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    _cleanup_(diff_command_release) struct diff_command comparison = {.options = &options,
                                                                      .asked = DIFF_DEFAULT};
    if (!table_format_parse(options.format, &comparison.format))
        return options_wrong("diff", "--format must be text, json or csv, not \"%s\".",
                             options.format);
    if (!(options.requests[0] >= 0) || !(options.requests[1] >= 0) ||
        !(options.requests[0] > 0) != !(options.requests[1] > 0))
        return options_wrong("diff",
                             "--base-requests and --new-requests are numbers above 0, and go "
                             "together.");
    bool known = !options.normalize;
    for (size_t i = 0; options.normalize && i < ARRAY_LENGTH(normalize_names); i++)
        if (!strcmp(options.normalize, normalize_names[i])) {
            comparison.per_request = !strcmp(options.normalize, "requests");
            comparison.asked = comparison.per_request ? DIFF_DEFAULT : (enum diff_normalize)i;
            known = true;
        }
    if (!known)
        return options_wrong("diff",
                             "--normalize must be total, duration, requests or none, not \"%s\".",
                             options.normalize);
    char *texts[2] = {NULL, NULL};
    int given = 0;
    for (int i = 0; i < 2; i++) {
        struct buffer text = {0};
        buffer_printf(&text, "query:%s", options.remote.query[i] ? options.remote.query[i] : "");
        texts[i] = memory_strdup(buffer_text(&text));
        buffer_release(&text);
        comparison.paths[i] = options.remote.query[i] ? texts[i]
                              : given < line.count    ? line.values[given++]
                                                      : NULL;
    }
    if (!comparison.paths[0] || !comparison.paths[1] || given < line.count)
        r = options_wrong("diff", "A diff needs a base and a new profile: two files, or "
                                  "--base-query and --new-query.");
    else
        r = run(&comparison);
    remote_inputs_close(&options.remote);
    for (int i = 0; i < 2; i++)
        free(texts[i]);
    return r;
}
