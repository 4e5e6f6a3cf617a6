// SPDX-License-Identifier: Apache-2.0
// GET /api/v1/compare: which functions changed between two selections, and how certain that is; and
// GET /api/v1/replicates: a selection as a file for `assay gate`.

#include "server/compare/compare_api.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "format/format.h"
#include "server/api/api.h"
#include "server/compare/compared.h"
#include "server/compare/replicates.h"
#include "server/handler/answer.h"
#include "server/handler/parameters.h"

#define LIMIT_DEFAULT 1000
#define LIMIT_MAX 100000

/* Values that JSON has no number for are null: unbounded, or unknown. */
static void put_number(struct json_writer *json, const char *key, double value)
{
    if (isfinite(value))
        json_member_number(json, key, value);
    else
        json_member_null(json, key);
}

/* Values in the unit of the type per second, share or request, as `normalize` says. */
static void put_measure(struct json_writer *json, const char *key,
                        const struct compare_measure *measure, const char *cause)
{
    json_write_key(json, key);
    json_write_object(json);
    put_number(json, "base", measure->base);
    put_number(json, "new", measure->new_value);
    put_number(json, "change", measure->change);
    put_number(json, "low", measure->low);
    put_number(json, "high", measure->high);
    put_number(json, "growth", measure->growth);
    put_number(json, "growth_low", measure->growth_low);
    put_number(json, "growth_high", measure->growth_high);
    put_number(json, "p", measure->p);
    json_member_text(json, "verdict", compare_verdict_names[measure->verdict]);
    if (measure->verdict == COMPARE_UNDECIDED && measure->more_seconds > 0)
        put_number(json, "more_seconds", measure->more_seconds);
    if (cause)
        json_member_text(json, "cause", cause);
    json_write_object_end(json);
}

static bool is_change(const struct compare_measure *measure)
{
    return measure->verdict == COMPARE_GREW || measure->verdict == COMPARE_SHRANK;
}

/* Why a row's value changed; NULL: it is not certain that it did. */
static const char *cause_of(const struct compared *compared, const struct compare_row *row,
                            bool total)
{
    const struct comparison *comparison = &compared->comparison;
    if (!is_change(total ? &row->total : &row->self))
        return NULL;
    size_t index = (size_t)(row - comparison->rows);
    return compare_cause_names[compare_cause(&compared->causes, comparison, index, total)];
}

static unsigned rank_of(const struct compare_row *row)
{
    if (is_change(&row->self) || is_change(&row->total))
        return 0;
    return row->self.verdict == COMPARE_UNDECIDED || row->total.verdict == COMPARE_UNDECIDED ? 1
                                                                                             : 2;
}

/* Changes first, then what is undecided, then the rest; each by the size of the change. */
static int by_importance(const void *a, const void *b)
{
    const struct compare_row *x = *(const struct compare_row *const *)a;
    const struct compare_row *y = *(const struct compare_row *const *)b;
    unsigned first = rank_of(x), second = rank_of(y);
    if (first != second)
        return first < second ? -1 : 1;
    double left = fabs(x->total.change), right = fabs(y->total.change);
    if (left != right)
        return left > right ? -1 : 1;
    return strcmp(x->function->name, y->function->name);
}

static void put_side(struct json_writer *json, const struct compared *compared,
                     enum compare_side side)
{
    const struct compare_table *table = &compared->table;
    json_write_object(json);
    put_number(json, "seconds", table->level ? NAN : table->seconds[side]);
    /* Of a level: what makes a value the average over the steps. */
    double steps = table->level ? table->seconds[side] : 1;
    put_number(json, "exposure", compared->comparison.exposure[side] / steps);
    put_number(json, "samples", table->samples[side]);
    put_number(json, "requests", table->requests[side] > 0 ? table->requests[side] : NAN);
    json_member_unsigned(json, "windows", table->window_count[side]);
    json_write_object_end(json);
}

/* More calls or slower ones: only requests tell. */
static const char *cause(const struct compared *compared)
{
    const struct compare_table *table = &compared->table;
    if (!(table->requests[0] > 0) || !(table->requests[1] > 0))
        return "unknown";
    return compared->comparison.options.normalize == COMPARE_PER_REQUEST ? "cost per request"
                                                                         : "known";
}

static int write_compared(struct http_request *request, const struct compared *compared,
                          uint64_t limit, struct error *error)
{
    const struct comparison *comparison = &compared->comparison;
    _cleanup_answer_ struct answer answer = {0};
    _cleanup_free_ const struct compare_row **rows =
        memory_alloc((comparison->count + 1) * sizeof(*rows));
    for (size_t i = 0; i < comparison->count; i++)
        rows[i] = &comparison->rows[i];
    if (comparison->count)
        qsort(rows, comparison->count, sizeof(*rows), by_importance);
    answer_init(&answer, request, "application/json");
    struct json_writer json = json_writer(&answer.out);
    json_write_object(&json);
    json_member_text(&json, "type", compared->sides[COMPARE_NEW].context.query.type);
    json_member_text(&json, "normalize", compare_normalize_names[comparison->options.normalize]);
    json_member_text(&json, "method", compare_method_names[comparison->method]);
    put_number(&json, "overdispersion", comparison->overdispersion);
    put_number(&json, "level", comparison->level);
    json_member_unsigned(&json, "hosts", compared_hosts(compared));
    json_member_unsigned(&json, "judged", comparison->judged);
    json_member_unsigned(&json, "found", comparison->found);
    json_member_text(&json, "requests", cause(compared));
    json_write_key(&json, "base");
    put_side(&json, compared, COMPARE_BASE);
    json_write_key(&json, "new");
    put_side(&json, compared, COMPARE_NEW);
    put_measure(&json, "whole", &comparison->whole, NULL);
    json_member_unsigned(&json, "function_count", comparison->count);
    json_member_unsigned(&json, "coarse", compared->table.coarse_count);
    json_write_key(&json, "functions");
    json_write_array(&json);
    for (size_t i = 0; i < MIN(comparison->count, limit) && buffer_pass(&answer.out); i++) {
        json_write_object(&json);
        json_write_key(&json, "function");
        json_write_bytes(&json, rows[i]->function->name, rows[i]->function->length);
        put_measure(&json, "self", &rows[i]->self, cause_of(compared, rows[i], false));
        put_measure(&json, "total", &rows[i]->total, cause_of(compared, rows[i], true));
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    json_write_object_end(&json);
    buffer_add_char(&answer.out, '\n');
    return answer_end(&answer, 0, error);
}

void compare_verdicts(struct http_request *request, void *server)
{
    static const char *const words[] = {"total", "duration", "none", "requests", NULL};
    static const enum compare_normalize normalize[] = {COMPARE_PER_TOTAL, COMPARE_PER_SECOND,
                                                       COMPARE_RAW, COMPARE_PER_REQUEST};
    struct compare_options options = COMPARED_OPTIONS_DEFAULT;
    struct compared compared;
    struct error error = {0};
    uint64_t limit = LIMIT_DEFAULT;
    unsigned asked;
    if (!parameters_known(request, "/api/v1/compare"))
        return;
    int r = parameter_word(request, "normalize", words, 1, &asked, &error);
    if (!r)
        r = parameter_number(request, "limit", 1, LIMIT_MAX, &limit, &error);
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    options.normalize = normalize[asked];
    r = compared_read(&compared, request, server, &options, &error);
    if (!r)
        r = write_compared(request, &compared, limit, &error);
    if (r < 0)
        http_respond_failure(request, &error);
    compared_release(&compared);
}

void compare_replicates(struct http_request *request, void *server)
{
    _cleanup_query_context_ struct query_context context = {0};
    _cleanup_profile_ struct profile profile;
    struct store_quality quality = {0};
    struct error error = {0};
    const char *label;
    profile_init(&profile, REPLICATES_DETAIL);
    if (!parameters_known(request, "/api/v1/replicates"))
        return;
    int r = query_context_read(&context, request, server, "", true, &error);
    if (!r)
        r = replicates_merge(&context, &profile, &quality, &label, &error);
    if (!r)
        r = api_write_format(request, &profile, &format_otlp, context.query.type, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}
