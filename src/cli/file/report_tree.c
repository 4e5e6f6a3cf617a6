// SPDX-License-Identifier: Apache-2.0
// `assay report --tree`: the call tree by function, the most expensive branch first.

#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/file/report.h"
#include "profile/units.h"
#include "profile/views/calltree.h"

#define INDENT_MAX 60 /* deeper frames stay in this column, with their depth in front */

/* One node of the walk: a depth-first order without recursion, as stacks can be very deep. */
struct step {
    uint32_t node;
    uint32_t depth;
    uint32_t repeats; /* how many nodes of the same function this row stands for */
};

static void name_with_indent(const struct calltree *tree, const struct step *step,
                             struct buffer *out)
{
    out->length = 0;
    for (uint32_t i = 0; i < MIN(step->depth, (uint32_t)INDENT_MAX); i++)
        buffer_add_text(out, i % 2 ? "  " : "\xc2\xb7 ");
    if (step->depth > INDENT_MAX)
        buffer_printf(out, "[%u] ", step->depth);
    if (step->node) {
        const struct calltree_function *function =
            &tree->functions[tree->nodes[step->node].function];
        buffer_add(out, function->name, function->length);
    } else {
        buffer_add_text(out, "all");
    }
    if (tree->nodes[step->node].inlined)
        buffer_add_text(out, " (inlined)");
    if (step->repeats > 1)
        buffer_printf(out, " \xc3\x97%u", step->repeats);
}

static void add_node(struct report *report, const struct calltree *tree, const struct step *step,
                     const int64_t *totals, const int64_t *self, struct table *table,
                     struct buffer *scratch)
{
    static const struct calltree_function root = {.name = "", .file = "", .binary = ""};
    const struct calltree_function *function =
        step->node ? &tree->functions[tree->nodes[step->node].function] : &root;
    name_with_indent(tree, step, scratch);
    struct cell cells[] = {
        cell_number(totals[step->node]), cell_percent(totals[step->node], report->whole),
        cell_number(self[step->node]),   {.text = buffer_text(scratch), .length = scratch->length},
        cell_number(step->depth),        {.text = function->name, .length = function->length},
        cell_text(function->file),       cell_text(function->binary)};
    table_add(table, cells);
}

/* A function that only calls itself is one row of text, with how often: the step ends at the
 * innermost node of the run. */
static void skip_recursion(const struct calltree *tree, const uint32_t *first,
                           const uint32_t *children, const int64_t *self, struct step *step)
{
    while (step->node && !self[step->node] && first[step->node + 1] - first[step->node] == 1) {
        uint32_t child = children[first[step->node]];
        if (tree->nodes[child].function != tree->nodes[step->node].function)
            break;
        step->node = child;
        step->repeats++;
    }
}

static void walk(struct report *report, const struct calltree *tree, const int64_t *totals,
                 const int64_t *self, struct table *table, size_t *ret_omitted)
{
    uint32_t *first, *children;
    calltree_children(tree, totals, &first, &children);
    _cleanup_free_ struct step *stack = memory_alloc(tree->node_count * sizeof(*stack));
    _cleanup_buffer_ struct buffer scratch = {0};
    size_t height = 0, omitted = 0;
    double least = report->least_percent / 100 * (double)report->whole;
    stack[height++] = (struct step){0};
    while (height) {
        struct step step = stack[--height];
        step.repeats = 1;
        if (report->format == TABLE_TEXT)
            skip_recursion(tree, first, children, self, &step);
        add_node(report, tree, &step, totals, self, table, &scratch);
        for (uint32_t i = first[step.node + 1]; i-- > first[step.node];) {
            uint32_t child = children[i];
            if ((double)magnitude(totals[child]) < least)
                omitted++;
            else
                stack[height++] = (struct step){.node = child, .depth = step.depth + 1};
        }
    }
    free(first);
    free(children);
    *ret_omitted = omitted;
}

void report_tree(struct report *report)
{
    static const struct column columns[] = {
        {"total", "total", COLUMN_VALUE}, {"total%", "total_percent", COLUMN_PERCENT},
        {"self", "self", COLUMN_VALUE},   {"call tree", NULL, COLUMN_NAME},
        {NULL, "depth", COLUMN_COUNT},    {NULL, "function", COLUMN_NAME},
        {NULL, "file", COLUMN_NAME},      {NULL, "binary", COLUMN_NAME},
    };
    _cleanup_calltree_ struct calltree tree;
    _cleanup_table_ struct table table = {0};
    struct error error = {0};
    calltree_init(&tree);
    if (calltree_add(&tree, report->profile, CALLTREE_NEW, &error) < 0) {
        log_error("%s", error.text);
        return;
    }
    table_init(&table, columns, ARRAY_LENGTH(columns), report_unit(report));
    size_t omitted = 0;
    if (tree.type_count) {
        _cleanup_free_ int64_t *totals = calltree_totals(&tree, report->type, CALLTREE_NEW);
        walk(report, &tree, totals, tree.types[report->type].self[CALLTREE_NEW], &table, &omitted);
    }
    report_begin(report, "", NULL, NULL);
    table_write(&table, report->format, report->colour, report->out);
    report_end(report);
    if (report->format == TABLE_TEXT && omitted)
        buffer_printf(report->out, "%zu branches below %g%% are hidden (see --min).\n", omitted,
                      report->least_percent);
}
