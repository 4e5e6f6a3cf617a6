// SPDX-License-Identifier: Apache-2.0
// The API's values over time.

#include <string.h>

#include "config/quantity.h"
#include "query/maps.h"
#include "query/names.h"
#include "server/answer.h"
#include "server/api.h"

#define GROUPS_MAX 16
#define SECOND_NS 1000000000ll

struct points {
    struct buffer *out;
    const char *comma;
};

static int put_points(void *context, const struct labels *group, const struct store_point *list,
                      size_t count)
{
    struct points *points = context;
    struct buffer *out = points->out;
    buffer_printf(out, "%s{\"labels\":", points->comma);
    labels_write_json(group, out);
    buffer_add_text(out, ",\"points\":[");
    for (size_t i = 0; i < count; i++) {
        buffer_printf(out, "%s[%.3f,%lld]", i ? "," : "", (double)list[i].time_ns / 1e9,
                      (long long)list[i].value);
        if (!buffer_pass(out))
            return out->drain->failure;
    }
    buffer_add_text(out, "]}");
    points->comma = ",\n";
    return 0;
}

/* A step that is asked for, or one that gives some 60 points. */
static int read_step(struct http_request *request, const struct store_selection *selection,
                     int64_t *ret_ns, struct error *error)
{
    const char *text = http_request_query(request, "step");
    int64_t step = 0;
    uint64_t seconds = 0;
    if (!text || !*text) {
        step = (selection->to_ns - selection->from_ns) / 60 / SECOND_NS * SECOND_NS;
    } else if (!quantity_duration(text, &step)) {
        int r = question_number(request, "step", 1, 86400 * 366, &seconds, error);
        if (r < 0)
            return error_set(error, -EINVAL,
                             "step is a time such as 15s, or seconds, not \"%.40s\".", text);
        step = (int64_t)seconds * SECOND_NS;
    }
    *ret_ns = MAX(step, SECOND_NS);
    return 0;
}

void api_timeseries(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    _cleanup_question_ struct question question = {0};
    struct error error = {0};
    struct query_quality quality = {0};
    static const char *const counts[] = {"flat", "cum", NULL};
    const char *groups[GROUPS_MAX];
    unsigned count;
    struct store_timeseries_query query = {.group_by = groups};
    _cleanup_answer_ struct answer answer = {0};
    struct points points = {.out = &answer.out, .comma = ""};
    if (!parameters_known(request, "/api/v1/timeseries"))
        return;
    answer_init(&answer, request, "application/json");
    _cleanup_query_late_ struct query_late late = {
        .symbols = server->symbols ? symbols_store(server->symbols) : NULL};
    struct store_function function = {.late = query_late_match, .context = &late};
    int r = question_word(request, "count", counts, STORE_FLAT, &count, &error);
    query.count = (enum store_count)count;
    if (!r)
        r = question_read(&question, request, server, "", true, &error);
    if (!r)
        r = read_step(request, &question.selection, &query.step_ns, &error);
    for (size_t i = 0; !r && i < http_request_query_count(request); i++) {
        const char *name, *value;
        http_request_query_at(request, i, &name, &value);
        if (!strcmp(name, "function") && *value) {
            function.name = value;
            query.function = &function;
        } else if (!strcmp(name, "group_by") && *value) {
            if (query.group_count == GROUPS_MAX)
                r = error_set(&error, -EINVAL, "At most %d labels can be grouped by.", GROUPS_MAX);
            else
                groups[query.group_count++] = strcmp(value, "service") ? value : LABEL_SERVICE_NAME;
        }
    }
    buffer_add_text(&answer.out, "{\"series\":[");
    while (!r) {
        r = query_maps_timeseries(symbols_maps(server->symbols), server->store, &question.selection,
                                  &query, &question.limits, put_points, &points, &quality.found,
                                  &error);
        if (!question_again(&question, &r, &error))
            break;
    }
    if (!r)
        r = question_measure(&question, &quality, &error);
    if (!r) {
        buffer_printf(&answer.out,
                      "],\"step_seconds\":%.9g,\"type\":", (double)query.step_ns / 1e9);
        json_put_text(&answer.out, question.query.type);
        buffer_add_char(&answer.out, ',');
        quality_write(&quality, NULL, &answer.out);
        buffer_add_text(&answer.out, "}\n");
    }
    r = answer_end(&answer, r, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}
