// SPDX-License-Identifier: Apache-2.0
// `assay gate`: fails a pipeline when a change is certainly over its limit.

#include "compare/gate/gate.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/compare/gate_parts.h"
#include "cli/output.h"
#include "cli/table.h"
#include "compare/picture/changes.h"
#include "format/picture/pictures.h"

enum { EXIT_GATE_FAILED = 3, EXIT_GATE_UNDECIDED = 4 };

struct gate_command {
    struct sides_options sides;
    const char *max_growth, *max_share, *function, *budget, *min_share, *undecided;
    const char *normalize, *format, *output, *page;
    double rate;
    struct gate_limits limits;
    struct gate_options options;
};

static int parse_percent(const char *option, const char *text, double fallback, double *ret_value)
{
    *ret_value = fallback;
    if (!text || gate_parse_share(text, ret_value))
        return 0;
    return options_wrong("gate",
                         "%s takes a percentage such as 5%%, or a number below 1 such as 0.05, "
                         "not \"%s\".",
                         option, text);
}

static int add_limits(struct gate_command *command)
{
    double growth, share;
    struct error error = {0};
    int r = parse_percent("--max-growth", command->max_growth, 0.05, &growth);
    if (!r)
        r = parse_percent("--max-share", command->max_share, 1, &share);
    if (r)
        return r;
    if (command->function && !command->max_share && !command->max_growth)
        return options_wrong("gate", "--function needs --max-share or --max-growth.");
    /* The usual limit holds unless others were given. */
    if (command->max_growth || (!command->max_share && !command->budget))
        r = gate_limits_add(&command->limits, "--max-growth", command->function, GATE_GROWTH,
                            growth, &error);
    if (!r && command->max_share) {
        if (!command->function)
            return options_wrong("gate", "--max-share needs --function.");
        r = gate_limits_add(&command->limits, "--max-share", command->function, GATE_SHARE, share,
                            &error);
    }
    if (r < 0)
        return options_wrong("gate", "%s", error.text);
    if (!command->budget)
        return 0;
    _cleanup_buffer_ struct buffer problems = {0};
    if (gate_limits_read(&command->limits, command->budget, &problems, &error) < 0) {
        fputs(buffer_text(&problems), stderr);
        return fail(&error);
    }
    return 0;
}

/* Requests are known when they were given or the profiles count them. */
static int choose_normalize(struct gate_command *command, const struct compare_table *table)
{
    bool requests = !table->level && table->requests[0] > 0 && table->requests[1] > 0;
    bool seconds = table->seconds[0] > 0 && table->seconds[1] > 0;
    command->options.normalize = requests  ? COMPARE_PER_REQUEST
                                 : seconds ? COMPARE_PER_SECOND
                                           : COMPARE_PER_TOTAL;
    if (!command->normalize)
        return 0;
    for (int i = 0; i < COMPARE_NORMALIZES; i++)
        if (!strcmp(command->normalize, compare_normalize_names[i])) {
            command->options.normalize = (enum compare_normalize)i;
            return 0;
        }
    return options_wrong("gate", "--normalize is duration, total, requests or none, not \"%s\".",
                         command->normalize);
}

/* How the page makes the base comparable: as the gate does. */
static double page_scale(const struct compare_table *table, enum compare_normalize normalize,
                         enum flame_normalize *ret_normalize)
{
    const double *of = normalize == COMPARE_PER_REQUEST  ? table->requests
                       : normalize == COMPARE_PER_SECOND ? table->seconds
                                                         : table->value;
    if (normalize == COMPARE_RAW || (table->level && normalize == COMPARE_PER_SECOND)) {
        *ret_normalize = FLAME_NORMALIZE_NONE; /* levels are averages already */
        return 1;
    }
    *ret_normalize = normalize == COMPARE_PER_REQUEST  ? FLAME_NORMALIZE_REQUESTS
                     : normalize == COMPARE_PER_SECOND ? FLAME_NORMALIZE_DURATION
                                                       : FLAME_NORMALIZE_TOTAL;
    if (table->level) /* shares of averages */
        return of[1] / table->seconds[1] / (of[0] / table->seconds[0]);
    return of[1] / of[0];
}

static int draw_page(const struct gate_command *command, struct sides *sides,
                     const struct comparison *comparison)
{
    _cleanup_free_ struct flame_change *changes = NULL;
    _cleanup_compare_causes_ struct compare_causes causes = {0};
    size_t change_count;
    _cleanup_calltree_ struct calltree tree;
    _cleanup_buffer_ struct buffer content = {0};
    struct error error = {0};
    int r = 0;
    const struct compare_table *table = &sides->table;
    calltree_init(&tree);
    for (size_t i = 0; table->level && i < sides->count; i++)
        sides_divide(&sides->files[i].profile, sides->sources[i].type,
                     table->seconds[sides->sources[i].side]);
    for (size_t i = sides->count; !r && i-- > 0;)
        r = calltree_add(&tree, &sides->files[i].profile,
                         sides->sources[i].side == COMPARE_NEW ? CALLTREE_NEW : CALLTREE_BASE,
                         &error);
    double scales[PROFILE_TYPES_MAX];
    enum flame_normalize normalize;
    double scale = page_scale(table, command->options.normalize, &normalize);
    for (unsigned i = 0; i < PROFILE_TYPES_MAX; i++)
        scales[i] = scale;
    if (!r)
        r = compare_causes_find(table, &comparison->options, &causes, &error);
    changes = changes_list(table, comparison, &causes, &change_count);
    const struct compare_source *last = &sides->sources[sides->count - 1];
    struct flame_options options = {
        .title = "New against base",
        .default_type = r < 0 ? 0 : calltree_type_of(&tree, last->profile, last->type),
        .normalize = normalize,
        .scale = scales,
        .changes = changes,
        .change_count = change_count};
    if (!r)
        r = html_draw(&content, &tree, &options, &error);
    if (!r)
        r = file_write_atomic(command->page, content.data, content.length, &error);
    return r < 0 ? fail(&error) : 0;
}

typedef void gate_writer(const struct gate_result *, const struct comparison *, struct buffer *);

static gate_writer *find_writer(const char *name)
{
    static const struct {
        const char *name;
        gate_writer *write;
    } writers[] = {{"text", gate_write_text},
                   {"json", gate_write_json},
                   {"markdown", gate_write_markdown},
                   {"junit", gate_write_junit}};
    for (size_t i = 0; i < ARRAY_LENGTH(writers); i++)
        if (!name || !strcmp(name, writers[i].name))
            return writers[i].write;
    return NULL;
}

static int report(const struct gate_command *command, const struct gate_result *result,
                  const struct comparison *comparison)
{
    _cleanup_buffer_ struct buffer out = {0};
    struct error error = {0};
    find_writer(command->format)(result, comparison, &out);
    if (!command->output)
        print_buffer(&out);
    else if (file_write_atomic(command->output, out.data, out.length, &error) < 0)
        return fail(&error);
    return 0;
}

static int judge(struct gate_command *command)
{
    _cleanup_sides_ struct sides sides = {0};
    _cleanup_gate_result_ struct gate_result result = {0};
    struct comparison comparisons[COMPARE_NORMALIZES] = {0};
    struct error error = {0};
    int r = sides_read(&command->sides, "gate", &sides);
    if (!r)
        r = choose_normalize(command, &sides.table);
    if (r)
        return r;
    if (gate_judge(&sides.table, &command->options, &command->limits, sides.unit, comparisons,
                   &result, &error) < 0)
        r = fail(&error);
    if (!r)
        r = report(command, &result, &comparisons[command->options.normalize]);
    if (!r && command->page)
        r = draw_page(command, &sides, &comparisons[command->options.normalize]);
    for (int i = 0; i < COMPARE_NORMALIZES; i++)
        comparison_release(&comparisons[i]);
    if (r || result.outcome == GATE_PASSED)
        return r;
    if (result.outcome == GATE_FAILED)
        return EXIT_GATE_FAILED;
    if (!command->undecided)
        return EXIT_GATE_UNDECIDED;
    return !strcmp(command->undecided, "pass") ? EXIT_FINE : EXIT_GATE_FAILED;
}

static int check_words(const struct gate_command *command)
{
    const struct sides_options *sides = &command->sides;
    for (int side = 0; side < COMPARE_SIDES; side++)
        if (!sides->files[side].count && !sides->remote.query[side])
            return options_wrong("gate", "A gate needs --base FILE and --new FILE, or selections "
                                         "with --base-query and --new-query.");
    if (command->undecided && strcmp(command->undecided, "pass") &&
        strcmp(command->undecided, "fail"))
        return options_wrong("gate", "--undecided is pass or fail, not \"%s\".",
                             command->undecided);
    if (!find_writer(command->format))
        return options_wrong("gate", "--format is text, json, markdown or junit, not \"%s\".",
                             command->format);
    if (!(command->rate > 0 && command->rate < 0.5))
        return options_wrong("gate", "--fdr is above 0 and below 0.5.");
    for (int side = 0; side < COMPARE_SIDES; side++)
        if (!(sides->requests[side] >= 0) || sides->requests[side] > 1e18)
            return options_wrong("gate", "--base-requests and --new-requests are numbers above 0.");
    if (!(sides->requests[0] > 0) != !(sides->requests[1] > 0))
        return options_wrong("gate", "--base-requests and --new-requests go together.");
    return 0;
}

int command_gate(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "bisect"))
        return gate_bisect(argc - 1, argv + 1);
    struct gate_command command = {.rate = 0.05};
    struct sides_options *sides = &command.sides;
    const struct option own[] = {
        {"Sides (each option may be given several times)", .kind = OPTION_GROUP},
        {"base", 'b', OPTION_LIST, "FILE", "a profile of the good state, or baseline:NAME",
         &sides->files[COMPARE_BASE]},
        {"new", 'n', OPTION_LIST, "FILE", "a profile of the state to compare with it",
         &sides->files[COMPARE_NEW]},
        REMOTE_INPUT_OPTIONS(sides->remote),
        {"Values", .kind = OPTION_GROUP},
        {"base-requests", 0, OPTION_NUMBER, "N", "requests that the base served",
         &sides->requests[COMPARE_BASE]},
        {"new-requests", 0, OPTION_NUMBER, "N", "requests that the new side served",
         &sides->requests[COMPARE_NEW]},
        {"sample-type", 't', OPTION_TEXT, "T", "which of the profiles' values to compare",
         &sides->type},
        {"normalize", 0, OPTION_TEXT, "BY",
         "duration, total, requests or none (requests if known, else duration)",
         &command.normalize},
        {"Limits", .kind = OPTION_GROUP},
        {"max-growth", 0, OPTION_TEXT, "SHARE", "most that a function may grow (5%)",
         &command.max_growth},
        {"function", 0, OPTION_TEXT, "RE", "the limits hold for functions that match",
         &command.function},
        {"max-share", 0, OPTION_TEXT, "SHARE", "most that they may hold of the total",
         &command.max_share},
        {"budget", 0, OPTION_TEXT, "FILE", "limits from a YAML file", &command.budget},
        {"min-share", 0, OPTION_TEXT, "SHARE", "functions below it are not judged for growth (1%)",
         &command.min_share},
        {"fdr", 0, OPTION_NUMBER, "RATE", "false-discovery rate (0.05)", &command.rate},
        {"undecided", 0, OPTION_TEXT, "WORD", "pass or fail, instead of exit code 4",
         &command.undecided},
        {"Output", .kind = OPTION_GROUP},
        {"format", 'f', OPTION_TEXT, "F", "text, json, markdown or junit", &command.format},
        {"output", 'o', OPTION_TEXT, "FILE", "write the report there", &command.output},
        {"page", 0, OPTION_TEXT, "FILE", "also write the difference as a page, FILE.html",
         &command.page},
        {0}};
    const struct option common[] = {
        FILTER_OPTIONS(&sides->filter), INPUT_OPTIONS(&sides->input), {0}};
    struct command_line line = {
        .command = "gate",
        .arguments = "--base FILE --new FILE",
        .summary = "Compares profiles and fails when a function certainly grew beyond its limit.\n"
                   "Exit codes: 0 passed, 3 failed, 4 undecided, 2 wrong usage, 1 another error.",
        .notes = "FILE can also be baseline:NAME or query:SELECTION of the server at --url.\n"
                 "`assay gate bisect` finds where in a series of profiles a change entered.",
        .options = own,
        .more_options = common,
        .least = 0,
        .most = 0,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    r = check_words(&command);
    if (!r)
        r = parse_percent("--min-share", command.min_share, 0.01, &command.options.min_share);
    if (!r && command.options.min_share >= 1)
        r = options_wrong("gate", "--min-share is below 100%%, not \"%s\".", command.min_share);
    if (!r)
        r = add_limits(&command);
    command.options.false_discovery_rate = command.rate;
    if (!r)
        r = judge(&command);
    gate_limits_release(&command.limits);
    return r;
}
