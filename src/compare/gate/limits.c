// SPDX-License-Identifier: Apache-2.0
// Limits of a gate, from options and from budget files: see gate.h.

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "compare/gate/gate.h"
#include "config/settings.h"

const char *const gate_kind_names[] = {"growth", "share", "cores", "per_request"};
const char *const gate_outcome_names[] = {"passed", "failed", "undecided"};

void gate_limits_release(struct gate_limits *limits)
{
    for (size_t i = 0; i < limits->count; i++) {
        free(limits->limits[i].name);
        free(limits->limits[i].pattern);
        regex_free(limits->limits[i].function);
    }
    free(limits->limits);
    *limits = (struct gate_limits){0};
}

/* Digits first, so that strtod reads no sign, space, "inf" or "nan". */
static bool parse_number(const char *text, double *ret_value, const char **ret_end)
{
    char *end;
    if (!((*text >= '0' && *text <= '9') || *text == '.'))
        return false;
    errno = 0;
    double value = strtod(text, &end);
    if (errno || end == text || !(value <= GATE_LIMIT_MAX))
        return false;
    *ret_value = value;
    *ret_end = end;
    return true;
}

bool gate_parse_share(const char *text, double *ret_share)
{
    const char *end;
    double value;
    if (!parse_number(text, &value, &end))
        return false;
    bool percent = *end == '%';
    if (end[percent] || (!percent && value >= 1))
        return false;
    *ret_share = percent ? value / 100 : value;
    return true;
}

static bool parse_limit(enum gate_kind kind, const char *text, double *ret_limit)
{
    const char *end;
    return kind == GATE_GROWTH || kind == GATE_SHARE ? gate_parse_share(text, ret_limit)
                                                     : parse_number(text, ret_limit, &end) && !*end;
}

int gate_limits_add(struct gate_limits *limits, const char *name, const char *pattern,
                    enum gate_kind kind, double limit, struct error *error)
{
    if (!(limit >= 0) || !isfinite(limit))
        return error_set(error, -EINVAL, "The limit of %s must be a number of at least 0.", name);
    if (kind == GATE_SHARE && limit > 1)
        return error_set(error, -EINVAL, "The share of %s is limited to %.4g%%, more than all.",
                         name, 100 * limit);
    if (limits->count >= GATE_LIMITS_MAX)
        return error_set(error, -E2BIG, "A gate takes at most %d limits.", GATE_LIMITS_MAX);
    struct regex *function = NULL;
    int r = pattern ? regex_new(pattern, false, name, &function, error) : 0;
    if (r < 0)
        return r;
    array_reserve(limits->limits, limits->capacity, limits->count + 1);
    limits->limits[limits->count++] =
        (struct gate_limit){.name = memory_strdup(name),
                            .pattern = pattern ? memory_strdup(pattern) : NULL,
                            .function = function,
                            .kind = kind,
                            .limit = limit};
    return 0;
}

/* One entry of `budgets`. */
static void read_budget(struct gate_limits *limits, struct problems *problems,
                        const struct yaml_node *node)
{
    static const char *const keys[] = {"max_growth", "max_share", "max_cores", "max_per_request"};
    struct settings section;
    const char *name = NULL, *function = NULL;
    size_t before = limits->count, complaints = problems->count;
    struct error error = {0};
    settings_open(&section, problems, node, "budgets");
    settings_string(&section, "name", &name);
    settings_string(&section, "function", &function);
    for (int kind = 0; kind < GATE_KINDS; kind++) {
        const char *text;
        double limit;
        if (!settings_string(&section, keys[kind], &text))
            continue;
        if (!parse_limit((enum gate_kind)kind, text, &limit)) {
            bool share = kind == GATE_GROWTH || kind == GATE_SHARE;
            problems_add(problems, node, "%s is a %s, not \"%s\"", keys[kind],
                         share ? "percentage such as 10%, or a number below 1 such as 0.1"
                               : "number such as 1.5",
                         text);
            continue;
        }
        const char *title = name ? name : function ? function : "all functions";
        if (gate_limits_add(limits, title, function, (enum gate_kind)kind, limit, &error) < 0)
            problems_add_error(problems, node, &error);
    }
    settings_close(&section);
    if (limits->count == before && problems->count == complaints)
        problems_add(problems, node,
                     "A budget needs max_growth, max_share, max_cores or max_per_request");
}

int gate_limits_read(struct gate_limits *limits, const char *path, struct buffer *ret_problems,
                     struct error *error)
{
    _cleanup_yaml_tree_ struct yaml_tree tree = {0};
    int r = yaml_tree_read_file(path, &tree, error);
    if (r < 0)
        return r;
    struct problems problems = {.file = path};
    struct settings section;
    settings_open(&section, &problems, tree.root, "the budget file");
    const struct yaml_node *list = settings_list(&section, "budgets");
    for (size_t i = 0; list && i < list->count; i++)
        read_budget(limits, &problems, list->values[i]);
    if ((!list || !list->count) && !problems.count)
        problems_add(&problems, tree.root, "The list `budgets` is missing or empty");
    settings_close(&section);
    if (problems.count) {
        buffer_add(ret_problems, problems.text.data, problems.text.length);
        r = error_set(error, -EINVAL, "%s has %zu mistake%s.", path, problems.count,
                      problems.count == 1 ? "" : "s");
    }
    problems_release(&problems);
    return r;
}
