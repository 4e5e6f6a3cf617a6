// SPDX-License-Identifier: Apache-2.0
// `assay gate bisect`: where in a series of profiles a function's growth entered. The first profile
// is good; the search compares it with others, halving the range.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/compare/gate_parts.h"
#include "cli/table.h"
#include "compare/compare.h"

struct bisect {
    struct sides_options options;
    const char *const *paths;
    const char *function; /* NULL: the one that grew most from the first to the last */
    char *chosen;
    unsigned comparisons;
    const char *undecided; /* the last one on the way that might have grown, or not */
};

/* Exact names only: a search follows one function. */
static const struct compare_row *find_row(const struct comparison *comparison, const char *name)
{
    for (size_t i = 0; i < comparison->count; i++)
        if (!strcmp(comparison->rows[i].function->name, name))
            return &comparison->rows[i];
    return NULL;
}

/* The function that grew for certain and by most; the deepest of equals is the one with most self.
 */
static const struct compare_row *most_grown(const struct comparison *comparison)
{
    const struct compare_row *best = NULL;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct compare_row *row = &comparison->rows[i];
        if (row->self.verdict == COMPARE_GREW && (!best || row->self.change > best->self.change))
            best = row;
    }
    return best;
}

/* Compares the first with another. *ret_grew: the function grew; `chosen` is set by the first. */
static int compare_with(struct bisect *bisect, size_t index, bool *ret_grew)
{
    _cleanup_sides_ struct sides sides = {0};
    _cleanup_comparison_ struct comparison comparison = {0};
    struct error error = {0};
    bisect->options.files[COMPARE_BASE] = (struct option_list){{bisect->paths[0]}, 1};
    bisect->options.files[COMPARE_NEW] = (struct option_list){{bisect->paths[index]}, 1};
    int r = sides_read(&bisect->options, "gate bisect", &sides);
    if (r)
        return r;
    bool seconds = sides.table.seconds[0] > 0 && sides.table.seconds[1] > 0;
    bool requests = sides.table.requests[0] > 0 && sides.table.requests[1] > 0;
    struct compare_options options = {.normalize = requests  ? COMPARE_PER_REQUEST
                                                   : seconds ? COMPARE_PER_SECOND
                                                             : COMPARE_PER_TOTAL,
                                      .false_discovery_rate = 0.05,
                                      .min_share = 0.001};
    if (compare(&sides.table, &options, &comparison, &error) < 0)
        return fail(&error);
    bisect->comparisons++;
    const struct compare_row *row =
        bisect->chosen ? find_row(&comparison, bisect->chosen) : most_grown(&comparison);
    if (!bisect->chosen && row)
        bisect->chosen = memory_strdup(row->function->name);
    if (row && (row->self.verdict == COMPARE_UNDECIDED || row->total.verdict == COMPARE_UNDECIDED))
        bisect->undecided = bisect->paths[index];
    *ret_grew = row && (row->self.verdict == COMPARE_GREW || row->total.verdict == COMPARE_GREW);
    return 0;
}

static int search(struct bisect *bisect, size_t count)
{
    bool grew = false;
    size_t good = 0, bad = count - 1;
    if (bisect->function)
        bisect->chosen = memory_strdup(bisect->function);
    int r = compare_with(bisect, bad, &grew);
    while (!r && grew && bad - good > 1) {
        size_t middle = good + (bad - good) / 2;
        bool grew_here;
        r = compare_with(bisect, middle, &grew_here);
        if (!r)
            *(grew_here ? &bad : &good) = middle;
    }
    if (r)
        return r;
    _cleanup_buffer_ struct buffer out = {0};
    if (grew) {
        text_escape_terminal(&out, bisect->chosen, strlen(bisect->chosen));
        buffer_printf(&out, " grew between ");
        text_escape_terminal(&out, bisect->paths[good], strlen(bisect->paths[good]));
        buffer_add_text(&out, " and ");
        text_escape_terminal(&out, bisect->paths[bad], strlen(bisect->paths[bad]));
        buffer_printf(&out, "; %u comparison%s.\n", bisect->comparisons,
                      bisect->comparisons == 1 ? "" : "s");
        if (bisect->undecided) {
            text_escape_terminal(&out, bisect->undecided, strlen(bisect->undecided));
            buffer_add_text(&out, " is undecided and counts as good; the growth may have begun "
                                  "there or before. Record longer to know.\n");
        }
    } else {
        buffer_printf(&out,
                      "No growth from the first profile to the last is certain; "
                      "%u comparison.\n",
                      bisect->comparisons);
    }
    print_buffer(&out);
    return grew ? 3 : EXIT_FINE;
}

int gate_bisect(int argc, char **argv)
{
    struct bisect bisect = {0};
    const struct option own[] = {{"Search", .kind = OPTION_GROUP},
                                 {"function", 0, OPTION_TEXT, "NAME",
                                  "follow this one (the one that grew most)", &bisect.function},
                                 {"sample-type", 't', OPTION_TEXT, "T",
                                  "which of the profiles' values to compare", &bisect.options.type},
                                 REMOTE_INPUT_OPTIONS(bisect.options.remote),
                                 {0}};
    const struct option common[] = {
        FILTER_OPTIONS(&bisect.options.filter), INPUT_OPTIONS(&bisect.options.input), {0}};
    struct command_line line = {
        .command = "gate bisect",
        .arguments = "FILE FILE...",
        .summary = "Finds where in a series of profiles, the oldest first, a function grew.\n"
                   "Exit codes: 3 when it did, 0 when no growth is certain.",
        .options = own,
        .more_options = common,
        .least = 2,
        .most = -1,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    bisect.paths = line.values;
    r = search(&bisect, (size_t)line.count);
    free(bisect.chosen);
    return r;
}
