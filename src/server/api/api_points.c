// SPDX-License-Identifier: Apache-2.0
// The API's values over time.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "config/quantity.h"
#include "profile/level.h"
#include "query/covered.h"
#include "query/naming/maps.h"
#include "query/naming/names.h"
#include "server/api/api.h"
#include "server/handler/answer.h"
#include "server/symbols/symbols.h"

#define GROUPS_MAX 16
#define GROUPS_USUAL 500 /* that are listed; the rest are added up */
#define SECOND_NS 1000000000ll

struct points {
    struct json_writer json;
    bool level;
    enum query_aggregate aggregate;
    int64_t from_ns, step_ns; /* of steps that consist of moments */
    const struct store_quality *found;
};

static int put_points(void *context, const struct labels *group, const struct store_point *list,
                      size_t count)
{
    struct points *points = context;
    struct json_writer *json = &points->json;
    static const struct labels none;
    json_write_line(json);
    json_write_object(json);
    json_write_key(json, "labels");
    labels_write_json(group ? group : &none, json);
    if (!group)
        json_member_number(json, "rest", (double)points->found->rest_groups);
    json_write_key(json, "points");
    json_write_array(json);
    for (size_t i = 0; i < count; i++) {
        double rate = covered_rate(list[i].value, list[i].per_ns);
        json_write_array(json);
        json_write_fixed(json, (double)list[i].time_ns / 1e9, 3);
        if (points->level && list[i].per_ns)
            json_write_fixed(json, rate, 0);
        else
            json_write_signed(json, list[i].value);
        json_write_number(json, list[i].per_ns ? rate : (double)NAN);
        json_write_number(json, (double)list[i].covered_ns / 1e9);
        json_write_array_end(json);
        if (!buffer_pass(json->out))
            return json->out->drain->failure;
    }
    json_write_array_end(json);
    json_write_object_end(json);
    return 0;
}

/* Points of moments, of which one stands for a step. */
static int put_moments(void *context, const struct labels *group, const struct store_point *list,
                       size_t count)
{
    struct points *points = context;
    _cleanup_free_ struct store_point *chosen = memory_zalloc(count + 1, sizeof(*chosen));
    count = query_aggregate_points(points->aggregate, points->from_ns, points->step_ns, list, count,
                                   chosen);
    return put_points(context, group, chosen, count);
}

/* Divides steps into moments for requests of the last or the greatest value of a level. */
static int divide_steps(struct query_context *query_context, struct store_timeseries_query *query,
                        struct points *points, struct error *error)
{
    points->level = level_is_type(query_context->query.type);
    points->from_ns = query_context->selection.from_ns;
    points->step_ns = query->step_ns;
    if (points->aggregate == QUERY_AVERAGE)
        return 0;
    if (!points->level)
        return error_set(error, -EINVAL,
                         "agg is for levels, such as memory in use; values of \"%s\" add up.",
                         query_context->query.type);
    return query_aggregate_moment(query_context->server->store, &query_context->selection,
                                  query->step_ns, &query_context->limits, &query->step_ns, error);
}

/* ---- how values vary within a step ---- */

/* Pieces that windows of usual lengths divide evenly. Longer ranges have rollups for theirs. */
static int64_t piece_length(int64_t range_ns, int64_t step_ns, const struct store_quality *found)
{
    static const int64_t seconds[] = {10, 30, 60, 600, 3600, 86400};
    int64_t window = found->windows ? found->duration_ns / (int64_t)found->windows : 0;
    int64_t least = range_ns <= 2 * 86400 * SECOND_NS    ? 10 * SECOND_NS
                    : range_ns <= 60 * 86400 * SECOND_NS ? 600 * SECOND_NS
                                                         : 3600 * SECOND_NS;
    for (size_t i = 0; i < ARRAY_LENGTH(seconds); i++) {
        int64_t piece = seconds[i] * SECOND_NS;
        bool even =
            window <= piece / 10 || (window <= piece && piece % MAX(window, (int64_t)1) == 0);
        if (piece >= least && even && (piece >= 60 * SECOND_NS || step_ns <= 60 * SECOND_NS) &&
            step_ns % piece == 0)
            return piece < step_ns ? piece : 0;
    }
    return 0;
}

struct variation {
    int64_t from_ns, step_ns, piece_ns;
    struct variation_step {
        double least, most; /* per covered second of a piece */
        bool known;
    } * steps;
    size_t count;
};

/* Pieces without a window are unknown, and not 0. */
static int note_pieces(void *context, const struct labels *group, const struct store_point *points,
                       size_t count)
{
    struct variation *variation = context;
    (void)group;
    for (size_t i = 0; i < count; i++) {
        size_t at = (size_t)((points[i].time_ns - variation->from_ns) / variation->step_ns);
        if (at >= variation->count)
            continue;
        struct variation_step *step = &variation->steps[at];
        double rate = covered_rate(points[i].value, points[i].per_ns);
        if (isnan(rate))
            continue;
        step->least = step->known ? MIN(step->least, rate) : rate;
        step->most = step->known ? MAX(step->most, rate) : rate;
        step->known = true;
    }
    return 0;
}

static void put_variation(struct json_writer *json, const struct variation *variation)
{
    json_write_key(json, "variation");
    json_write_object(json);
    json_member_number(json, "piece_seconds", (double)variation->piece_ns / 1e9);
    json_write_key(json, "points");
    json_write_array(json);
    for (size_t i = 0; i < variation->count && buffer_pass(json->out); i++) {
        const struct variation_step *step = &variation->steps[i];
        if (!step->known)
            continue;
        int64_t time_ns = variation->from_ns + (int64_t)i * variation->step_ns;
        json_write_array(json);
        json_write_fixed(json, (double)time_ns / 1e9, 3);
        json_write_number(json, step->least);
        json_write_number(json, step->most);
        json_write_array_end(json);
    }
    json_write_array_end(json);
    json_write_object_end(json);
}

/* The lowest and the highest value per second within each step, of the whole selection: a spike
 * that is shorter than a step is still seen. */
static int add_variation(struct query_context *query_context,
                         const struct store_timeseries_query *query,
                         const struct store_quality *found, struct json_writer *json,
                         struct error *error)
{
    const struct store_selection *selection = &query_context->selection;
    int64_t range = selection->to_ns - selection->from_ns;
    struct variation variation = {.from_ns = selection->from_ns, .step_ns = query->step_ns};
    variation.piece_ns = query->function ? 0 : piece_length(range, query->step_ns, found);
    if (!variation.piece_ns || range / variation.piece_ns > STORE_POINTS_MAX - 1)
        return 0;
    variation.count = (size_t)((range + query->step_ns - 1) / query->step_ns);
    variation.steps = memory_zalloc(variation.count + 1, sizeof(*variation.steps));
    struct store_timeseries_query pieces = {.step_ns = variation.piece_ns};
    struct store_selection whole = *selection;
    if (variation.piece_ns >= 600 * SECOND_NS) { /* which rollups can answer */
        whole.from_ns = (whole.from_ns + pieces.step_ns - 1) / pieces.step_ns * pieces.step_ns;
        whole.to_ns = whole.to_ns / pieces.step_ns * pieces.step_ns;
    }
    int r = store_timeseries(query_context->server->store, &whole, &pieces, &query_context->limits,
                             note_pieces, &variation, NULL, error);
    if (!r)
        put_variation(json, &variation);
    free(variation.steps);
    return r;
}

#define POINTS 300

static int64_t usual_step(int64_t range_ns)
{
    static const int64_t seconds[] = {86400, 43200, 21600, 14400, 7200, 3600, 1800, 1200,
                                      600,   240,   120,   60,    30,   15,   10,   5};
    for (size_t i = 0; i < ARRAY_LENGTH(seconds); i++)
        if (range_ns / (seconds[i] * SECOND_NS) >= POINTS)
            return seconds[i] * SECOND_NS;
    return SECOND_NS;
}

/* The requested step, or the longest round one that gives at least 300 points. */
static int read_step(struct http_request *request, const struct store_selection *selection,
                     int64_t *ret_ns, struct error *error)
{
    const char *text = http_request_query(request, "step");
    int64_t step = 0;
    uint64_t seconds = 0;
    if (!text || !*text) {
        step = usual_step(selection->to_ns - selection->from_ns);
    } else if (!quantity_duration(text, &step)) {
        int r = parameter_number(request, "step", 1, 86400 * 366, &seconds, error);
        if (r < 0)
            return error_set(error, -EINVAL,
                             "step must be a duration such as 15s, or seconds, not \"%.40s\".",
                             text);
        step = (int64_t)seconds * SECOND_NS;
    }
    *ret_ns = MAX(step, SECOND_NS);
    return 0;
}

void api_timeseries(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    _cleanup_query_context_ struct query_context query_context = {0};
    struct error error = {0};
    struct query_quality quality = {0};
    static const char *const counts[] = {"flat", "cum", NULL};
    const char *groups[GROUPS_MAX];
    unsigned count;
    struct store_timeseries_query query = {.group_by = groups};
    _cleanup_answer_ struct answer answer = {0};
    struct points points = {.json = json_writer(&answer.out), .found = &quality.found};
    uint64_t limit = GROUPS_USUAL;
    struct json_writer *json = &points.json;
    if (!parameters_known(request, "/api/v1/timeseries"))
        return;
    answer_init(&answer, request, "application/json");
    _cleanup_query_symbols_ struct query_symbols symbols = {
        .store = server->symbols ? symbols_store(server->symbols) : NULL,
        .tenant = http_request_identity(request)->tenant};
    struct store_function function = {0};
    int r = parameter_word(request, "count", counts, STORE_FLAT, &count, &error);
    query.count = (enum store_count)count;
    if (!r)
        r = query_context_aggregate(request, &points.aggregate, &error);
    if (!r)
        r = query_context_read(&query_context, request, server, "", true, &error);
    if (!r)
        r = read_step(request, &query_context.selection, &query.step_ns, &error);
    if (!r)
        r = parameter_number(request, "limit", 1, STORE_GROUPS_MAX, &limit, &error);
    query.groups_most = limit;
    for (size_t i = 0; !r && i < http_request_query_count(request); i++) {
        const char *name, *value;
        http_request_query_at(request, i, &name, &value);
        if (!strcmp(name, "function") && *value) {
            function.name = value;
            query.function = &function;
        } else if (!strcmp(name, "group_by") && *value) {
            if (query.group_count == GROUPS_MAX)
                r = error_set(&error, -EINVAL, "The limit of group_by is %d labels.", GROUPS_MAX);
            else
                groups[query.group_count++] = strcmp(value, "service") ? value : LABEL_SERVICE_NAME;
        }
    }
    if (!r)
        r = divide_steps(&query_context, &query, &points, &error);
    json_write_object(json);
    json_write_key(json, "series");
    json_write_array(json);
    while (!r) {
        r = query_maps_timeseries(symbols_maps(server->symbols), &symbols, server->store,
                                  &query_context.selection, &query, &query_context.limits,
                                  points.aggregate == QUERY_AVERAGE ? put_points : put_moments,
                                  &points, &quality.found, &error);
        if (!query_context_again(&query_context, &r, &error))
            break;
    }
    if (!r)
        r = query_context_measure(&query_context, &quality, &error);
    covered_settle_total(query_context.query.type, &quality.found);
    query.step_ns = points.step_ns;
    if (!r) {
        json_write_array_end(json);
        json_member_number(json, "step_seconds", (double)query.step_ns / 1e9);
        json_member_text(json, "type", query_context.query.type);
        quality_write(&quality, NULL, json);
        r = add_variation(&query_context, &query, &quality.found, json, &error);
        json_write_object_end(json);
        buffer_add_char(&answer.out, '\n');
    }
    r = answer_end(&answer, r, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}
