// SPDX-License-Identifier: Apache-2.0
// Results of a gate for people, programs, pull requests and test reports.

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "compare/gate/gate.h"
#include "io/json_write.h"

static void add_percent(struct buffer *out, double share, bool sign)
{
    if (isfinite(share))
        buffer_printf(out, sign ? "%+.2f%%" : "%.2f%%", 100 * share);
    else
        buffer_add_text(out, "unbounded");
}

static void add_time(struct buffer *out, double seconds)
{
    if (seconds < 120)
        buffer_printf(out, "%.0f s", ceil(seconds));
    else if (seconds < 7200)
        buffer_printf(out, "%.0f min", ceil(seconds / 60));
    else
        buffer_printf(out, "%.0f h", ceil(seconds / 3600));
}

/* A check as one sentence without its function, in plain text. */
static void add_sentence(struct buffer *out, const struct gate_check *check)
{
    bool relative = check->limit->kind == GATE_GROWTH || check->limit->kind == GATE_SHARE;
    if (!strcmp(check->measure, "sensitivity")) {
        buffer_add_text(out, "too few samples or too much noise: the smallest growth that would be "
                             "found is ");
        add_percent(out, check->value, false);
        buffer_add_text(out, ", and it should be ");
        add_percent(out, check->base, false);
        goto time;
    }
    if (check->limit->kind == GATE_GROWTH) {
        buffer_printf(out, "%s value changed by ", check->measure);
        if (isfinite(check->growth))
            add_percent(out, check->growth, true);
        else
            buffer_add_text(out, "more than any factor: the base value is 0");
        buffer_add_text(out, " (");
        add_percent(out, check->change_low, true);
        buffer_add_text(out, " to ");
        add_percent(out, check->change_high, true);
    } else {
        buffer_printf(out, "%s is ", gate_kind_names[check->limit->kind]);
        if (relative) {
            add_percent(out, check->value, false);
            buffer_add_text(out, " (");
            add_percent(out, check->change_low, false);
            buffer_add_text(out, " to ");
            add_percent(out, check->change_high, false);
        } else {
            buffer_printf(out, "%.4g (%.4g to %.4g", check->value, check->change_low,
                          check->change_high);
        }
    }
    buffer_add_text(out, "); the limit is ");
    if (relative)
        add_percent(out, check->limit->limit, false);
    else
        buffer_printf(out, "%.4g", check->limit->limit);
time:
    if (check->outcome != GATE_UNDECIDED || !isfinite(check->more) || !(check->more > 0))
        return;
    buffer_add_text(out, "; about ");
    if (check->more_seconds > 0) {
        add_time(out, check->more_seconds);
        buffer_add_text(out, " more on each side would settle it");
    } else {
        buffer_printf(out, "%.1f times the samples on each side would settle it", 1 + check->more);
    }
}

static const char *name_of(const struct gate_check *check)
{
    return check->function ? check->function : "(all samples)";
}

static void add_summary(struct buffer *out, const struct gate_result *result,
                        const struct comparison *comparison)
{
    buffer_printf(out, "Gate %s: %zu failed, %zu undecided, %zu functions and values compared",
                  gate_outcome_names[result->outcome], result->failed, result->undecided,
                  comparison->judged);
    if (result->outcome == GATE_UNDECIDED && isfinite(result->more_samples) &&
        result->more_samples > 0)
        buffer_printf(out, "; need %.0f more samples on each side", ceil(result->more_samples));
    buffer_add_text(out, ".");
}

void gate_write_text(const struct gate_result *result, const struct comparison *comparison,
                     struct buffer *out)
{
    for (size_t i = 0; i < result->count; i++) {
        const struct gate_check *check = &result->checks[i];
        buffer_printf(out, "%-9s  ", gate_outcome_names[check->outcome]);
        text_escape_terminal(out, name_of(check), strlen(name_of(check)));
        buffer_add_text(out, ": ");
        add_sentence(out, check);
        buffer_add_text(out, ".\n");
    }
    add_summary(out, result, comparison);
    buffer_add_char(out, '\n');
}

/* Infinity, for "unbounded" or "unknown", becomes null. */
static void write_json_check(struct json_writer *json, const struct gate_check *check)
{
    json_write_object(json);
    json_member_text(json, "outcome", gate_outcome_names[check->outcome]);
    json_member_text(json, "limit_name", check->limit->name);
    json_member_text(json, "kind", gate_kind_names[check->limit->kind]);
    if (check->function)
        json_member_text(json, "function", check->function);
    else
        json_member_null(json, "function");
    json_member_text(json, "measure", check->measure);
    json_member_number(json, "limit", check->limit->limit);
    json_member_number(json, "base", check->base);
    json_member_number(json, "new", check->value);
    json_member_number(json, "growth", check->growth);
    json_member_number(json, "low", check->change_low);
    json_member_number(json, "high", check->change_high);
    json_member_number(json, "p", check->p);
    json_member_number(json, "more_seconds", check->more_seconds);
    json_write_object_end(json);
}

void gate_write_json(const struct gate_result *result, const struct comparison *comparison,
                     struct buffer *out)
{
    struct json_writer json = json_writer(out);
    json_write_object(&json);
    json_member_text(&json, "outcome", gate_outcome_names[result->outcome]);
    json_member_unsigned(&json, "failed", result->failed);
    json_member_unsigned(&json, "undecided", result->undecided);
    json_member_unsigned(&json, "compared", comparison->judged);
    json_member_text(&json, "normalize", compare_normalize_names[comparison->options.normalize]);
    json_member_text(&json, "method", compare_method_names[comparison->method]);
    json_member_number(&json, "overdispersion", comparison->overdispersion);
    json_member_number(&json, "more_samples", result->more_samples);
    json_write_key(&json, "checks");
    json_write_array(&json);
    for (size_t i = 0; i < result->count; i++)
        write_json_check(&json, &result->checks[i]);
    json_write_array_end(&json);
    json_write_object_end(&json);
    buffer_add_char(out, '\n');
}

/* Names come from profiles: nothing in them may end a cell or become markup. */
static void add_markdown_text(struct buffer *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (strchr("\\`*_{}[]<>()#+-.!|~&@", c))
            buffer_add_char(out, '\\');
        buffer_add_char(out, c < ' ' || c == 127 ? ' ' : (char)c);
    }
}

void gate_write_markdown(const struct gate_result *result, const struct comparison *comparison,
                         struct buffer *out)
{
    static const char *const marks[] = {"✅", "❌", "❔"};
    buffer_printf(out, "### %s ", marks[result->outcome]);
    add_summary(out, result, comparison);
    buffer_add_text(out, "\n\n");
    if (result->count)
        buffer_add_text(out, "| | Function | Finding |\n|---|---|---|\n");
    for (size_t i = 0; i < result->count; i++) {
        const struct gate_check *check = &result->checks[i];
        buffer_printf(out, "| %s | ", marks[check->outcome]);
        add_markdown_text(out, name_of(check));
        buffer_add_text(out, " | ");
        add_sentence(out, check);
        buffer_add_text(out, " |\n");
    }
}

void gate_write_junit(const struct gate_result *result, const struct comparison *comparison,
                      struct buffer *out)
{
    buffer_printf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<testsuites><testsuite name=\"assay gate\" tests=\"%zu\" failures=\"%zu\" "
                  "skipped=\"%zu\">\n",
                  result->count, result->failed, result->undecided);
    for (size_t i = 0; i < result->count; i++) {
        const struct gate_check *check = &result->checks[i];
        const char *element = check->outcome == GATE_FAILED      ? "failure"
                              : check->outcome == GATE_UNDECIDED ? "skipped"
                                                                 : "system-out";
        buffer_printf(out, "<testcase classname=\"%s\" name=\"",
                      gate_kind_names[check->limit->kind]);
        text_escape_xml(out, name_of(check), strlen(name_of(check)));
        buffer_printf(out, " (%s)\"><%s", check->measure, element);
        buffer_add_text(out, check->outcome == GATE_PASSED ? ">" : " message=\"");
        add_sentence(out, check);
        if (check->outcome == GATE_PASSED)
            buffer_add_text(out, "</system-out></testcase>\n");
        else
            buffer_add_text(out, "\"/></testcase>\n");
    }
    buffer_add_text(out, "</testsuite></testsuites>\n");
    (void)comparison;
}
