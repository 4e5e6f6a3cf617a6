// SPDX-License-Identifier: Apache-2.0
// GET /api/v1/slis.

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "query/query.h"
#include "server/handler/parameters.h"
#include "server/rules/live.h"

struct asked {
    const char *name; /* NULL: all */
    int64_t from_s, to_s;
    bool points;
};

static int read_time(struct http_request *request, const char *name, int64_t *seconds,
                     struct asked *asked, struct error *error)
{
    const char *text = http_request_query(request, name);
    int64_t ns;
    if (!text || !*text)
        return 0;
    int r = query_time(text, clock_ns(CLOCK_REALTIME), &ns, error);
    if (r < 0)
        return r;
    *seconds = ns / 1000000000;
    asked->points = true;
    return 0;
}

static void put_points(struct json_writer *json, const struct history_series *series,
                       const struct asked *asked)
{
    json_write_key(json, "points");
    json_write_array(json);
    for (size_t i = 0; series && i < series->count; i++) {
        const struct history_point *point = &series->points[i];
        if (point->time_s < asked->from_s || point->time_s >= asked->to_s)
            continue;
        json_write_array(json);
        json_write_unsigned(json, point->time_s);
        json_write_number(json, (double)point->value);
        json_write_array_end(json);
    }
    json_write_array_end(json);
}

/* `value` may be NULL: the series has ended. */
static void put_series(struct json_writer *json, const struct labels *labels, const double *value,
                       const struct history_series *series, const struct asked *asked)
{
    json_write_object(json);
    json_write_key(json, "labels");
    labels_write_json(labels, json);
    if (value)
        json_member_number(json, "value", *value);
    if (asked->points)
        put_points(json, series, asked);
    json_write_object_end(json);
}

static bool is_current(const struct sli_values *values, const struct labels *labels)
{
    for (size_t i = 0; i < values->count; i++)
        if (labels_equal(&values->list[i].labels, labels))
            return true;
    return false;
}

static void put_sli(struct json_writer *json, struct rules *rules, const struct sli_state *state,
                    size_t index, const struct asked *asked)
{
    const struct sli_rule *sli = &rules->set->slis[index];
    const struct sli_values *values = &state->values[index];
    json_write_object(json);
    json_member_text(json, "name", sli->name);
    json_member_text(json, "kind", sli_kind_names[sli->kind]);
    json_member_signed(json, "time", state->time_s[index]);
    if (*values->reason)
        json_member_text(json, "reason", values->reason);
    json_write_key(json, "series");
    json_write_array(json);
    for (size_t i = 0; i < values->count; i++)
        put_series(json, &values->list[i].labels, &values->list[i].value,
                   history_find(&rules->history, state->tenant, sli->name, &values->list[i].labels,
                                false, 0),
                   asked);
    for (size_t i = 0; asked->points && i < rules->history.count; i++) {
        const struct history_series *series = rules->history.list[i];
        if (!strcmp(series->sli, sli->name) && !strcmp(series->tenant, state->tenant) &&
            !is_current(values, &series->labels))
            put_series(json, &series->labels, NULL, series, asked);
    }
    json_write_array_end(json);
    json_write_object_end(json);
}

void slis_list(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct rules *rules = server->rules;
    _cleanup_buffer_ struct buffer out = {0};
    struct json_writer json = json_writer(&out);
    struct error error = {0};
    struct asked asked = {.name = http_request_query(request, "name"), .to_s = INT64_MAX};
    if (!parameters_known(request, "/api/v1/slis"))
        return;
    int r = read_time(request, "from", &asked.from_s, &asked, &error);
    if (!r)
        r = read_time(request, "to", &asked.to_s, &asked, &error);
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    const char *tenant = http_request_identity(request)->tenant;
    json_write_array(&json);
    pthread_mutex_lock(&rules->lock);
    for (size_t i = 0; i < rules->state_count; i++) {
        const struct sli_state *state = &rules->states[i];
        for (size_t k = 0; !strcmp(state->tenant, tenant) && k < rules->set->sli_count; k++)
            if (!asked.name || !*asked.name || !strcmp(asked.name, rules->set->slis[k].name))
                put_sli(&json, rules, state, k, &asked);
    }
    pthread_mutex_unlock(&rules->lock);
    json_write_array_end(&json);
    buffer_add_char(&out, '\n');
    api_respond(request, "application/json", &out);
}
