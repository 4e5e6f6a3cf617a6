// SPDX-License-Identifier: Apache-2.0
// Pyroscope's older reads over plain HTTP: /pyroscope/render and its relatives.

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "profile/level.h"
#include "query/covered.h"
#include "server/admission/admission.h"
#include "server/handler/answer.h"
#include "server/pyroscope/flamebearer.h"
#include "server/pyroscope/pyroscope.h"
#include "server/pyroscope/querier.h"

#define SECOND_NS 1000000000ll
#define TIMELINE_POINTS 1500
#define DOT_FUNCTIONS 100

/* ---- what it is ---- */

void render_put_metadata(struct json_writer *json, const char *format, const char *type)
{
    size_t length;
    const char *sample = query_type_part(type, 1, &length);
    bool cpu = length == 3 && !memcmp(sample, "cpu", 3);
    static const char *const objects[] = {"inuse_objects", "alloc_objects", "goroutine",
                                          "goroutines", "samples"};
    bool counted = false;
    for (size_t i = 0; i < ARRAY_LENGTH(objects); i++)
        counted |= strlen(objects[i]) == length && !memcmp(objects[i], sample, length);
    size_t unit_length;
    const char *unit = query_type_part(type, 2, &unit_length);
    json_write_key(json, "metadata");
    json_write_object(json);
    json_member_text(json, "format", format);
    json_member_text(json, "spyName", "");
    json_member_unsigned(json, "sampleRate", cpu ? 1000000000 : 100);
    json_write_key(json, "units");
    if (cpu || counted)
        json_write_text(json, cpu ? "samples" : "objects");
    else
        json_write_bytes(json, unit, unit_length);
    json_write_key(json, "name");
    json_write_bytes(json, sample, length);
    json_write_object_end(json);
}

/* ---- values over time ---- */

struct timeline {
    int64_t start_ns, step_ns; /* the first sample's step, on the clock's grid of such steps */
    int64_t first_ns;          /* where the steps that are read begin */
    int64_t *values;           /* of all groups */
    size_t count;
    bool grouped, averaged, level;
    struct buffer groups;    /* an object with a timeline for each group */
    struct json_writer json; /* writes it */
    size_t groups_bytes_max;
};

static void timeline_release(struct timeline *timeline)
{
    free(timeline->values);
    buffer_release(&timeline->groups);
}

/* How long a step is, for some 1500 of them: a round number, and 15 seconds at least. */
static int64_t timeline_step_ns(int64_t length_ns)
{
    static const struct {
        int64_t most_ms, step_seconds;
    } rounded[] = {{17500, 15},        {25000, 20},          {45000, 30},
                   {90000, 60},        {210000, 120},        {450000, 300},
                   {750000, 600},      {1050000, 900},       {1500000, 1200},
                   {2700000, 1800},    {5400000, 3600},      {9000000, 7200},
                   {16200000, 10800},  {32400000, 21600},    {86400000, 43200},
                   {604800000, 86400}, {1814400000, 604800}, {3628799999, 2592000}};
    int64_t ms = (length_ns / TIMELINE_POINTS + MS_NS - 1) / MS_NS;
    for (size_t i = 0; i < ARRAY_LENGTH(rounded); i++)
        if (ms <= rounded[i].most_ms)
            return rounded[i].step_seconds * SECOND_NS;
    return 365 * 86400 * SECOND_NS;
}

static void put_timeline(const struct timeline *timeline, const int64_t *values,
                         struct json_writer *json)
{
    json_write_object(json);
    json_member_signed(json, "startTime", timeline->start_ns / SECOND_NS);
    json_write_key(json, "samples");
    json_write_array(json);
    for (size_t i = 0; i < timeline->count; i++)
        json_write_signed(json, values[i]);
    json_write_array_end(json);
    json_member_signed(json, "durationDelta", timeline->step_ns / SECOND_NS);
    json_member_null(json, "watermarks");
    json_write_object_end(json);
}

/* A level holds between two snapshots. */
static void hold(struct timeline *timeline, int64_t *values, int64_t from, int64_t to)
{
    if (from < 0 || (to - from) * timeline->step_ns > COVERED_PAUSE_NS)
        return;
    for (int64_t i = from + 1; i < to; i++) {
        values[i] = values[from];
        timeline->values[i] = add_saturated(timeline->values[i], values[i]);
    }
}

static int put_points(void *context, const struct labels *group, const struct store_point *points,
                      size_t count)
{
    struct timeline *timeline = context;
    _cleanup_free_ int64_t *values = memory_zalloc(timeline->count + 1, sizeof(*values));
    int64_t before = -1;
    for (size_t i = 0; i < count; i++) {
        int64_t slot = (points[i].time_ns - timeline->first_ns) / timeline->step_ns;
        if (slot < 0 || slot >= (int64_t)timeline->count)
            continue;
        int64_t value = points[i].value;
        if (timeline->level && points[i].per_ns)
            value = llround(covered_rate(value, points[i].per_ns));
        else if (timeline->averaged && points[i].windows)
            value /= (int64_t)points[i].windows;
        else if (!timeline->averaged)
            value = llround(covered_used(&points[i]));
        values[slot] = value;
        if (timeline->level)
            hold(timeline, values, before, slot);
        before = slot;
        timeline->values[slot] = add_saturated(timeline->values[slot], value);
    }
    if (timeline->grouped) {
        json_write_key(&timeline->json, group->count ? group->list[0].value : "*");
        put_timeline(timeline, values, &timeline->json);
    }
    return timeline->groups.length > timeline->groups_bytes_max ? -E2BIG : 0;
}

/* The members "timeline" and "groups": the latter by a label, if the request has one. */
static int write_timeline(struct query_context *query_context, const char *group_by, bool averaged,
                          struct json_writer *json, struct error *error)
{
    struct store_selection selection = query_context->selection;
    int64_t step = timeline_step_ns(selection.to_ns - selection.from_ns);
    int64_t start = selection.from_ns / step * step, end = selection.to_ns / step * step;
    _cleanup_(timeline_release) struct timeline timeline = {
        .start_ns = start,
        .step_ns = step,
        .count = (size_t)MIN((end - start) / step, (int64_t)STORE_POINTS_MAX),
        .grouped = group_by != NULL,
        .averaged = averaged,
        .level = level_is_type(query_context->query.type),
        .groups_bytes_max = admit_profile_bytes(query_context->server->admissions) / 4};
    timeline.json = json_writer(&timeline.groups);
    json_write_object(&timeline.json);
    timeline.values = memory_zalloc(timeline.count + 1, sizeof(*timeline.values));
    struct store_timeseries_query query = {.step_ns = step,
                                           .group_by = &group_by,
                                           .group_count = group_by != NULL,
                                           .moments = averaged};
    struct store_quality quality;
    int r = 0;
    if (timeline.count) {
        /* One point for each sample, wherever in its step on the grid that is. */
        selection.to_ns = selection.from_ns + (int64_t)(timeline.count - 1) * step + MS_NS;
        querier_points_range(&selection, step);
        timeline.first_ns = selection.from_ns;
        r = store_timeseries(query_context->server->store, &selection, &query,
                             &query_context->limits, put_points, &timeline, &quality, error);
    }
    if (r == -E2BIG && timeline.groups.length > timeline.groups_bytes_max)
        error_set(error, r, "The answer has too many groups; group by another label.");
    json_write_object_end(&timeline.json);
    json_write_key(json, "timeline");
    put_timeline(&timeline, timeline.values, json);
    json_write_key(json, "groups");
    if (group_by)
        json_write_raw(json, timeline.groups.data, timeline.groups.length);
    else
        json_write_null(json);
    return r;
}

/* ---- pictures ---- */

static int read_nodes(struct http_request *request, uint64_t *nodes, struct error *error)
{
    int r = parameter_number(request, "maxNodes", 0, FLAMEBEARER_NODES_MAX, nodes, error);
    return r < 0 ? r
                 : parameter_number(request, "max-nodes", 0, FLAMEBEARER_NODES_MAX, nodes, error);
}

/* The calls between functions, for graphviz; nothing where there is nothing. */
static int render_dot(struct query_context *query_context, uint64_t nodes, struct error *error,
                      struct answer *answer)
{
    _cleanup_profile_ struct profile profile;
    struct store_quality quality;
    profile_init(&profile, 0);
    int r = query_context_merge(query_context, &profile, &quality, error);
    answer->content_type = "text/plain; charset=utf-8";
    if (!r && profile.samples.count)
        dot_write(&profile, nodes ? nodes : DOT_FUNCTIONS, &answer->out);
    return r;
}

static int render_json(struct query_context *query_context, uint64_t nodes, const char *group_by,
                       bool averaged, struct buffer *out, struct error *error)
{
    _cleanup_calltree_ struct calltree tree;
    _cleanup_profile_ struct profile profile;
    _cleanup_buffer_ struct buffer timeline = {0};
    struct json_writer json = json_writer(out), members = json_writer(&timeline);
    struct store_quality quality;
    calltree_init(&tree);
    profile_init(&profile, 0);
    int r = query_context_merge(query_context, &profile, &quality, error);
    if (!r)
        r = calltree_add(&tree, &profile, CALLTREE_NEW, error);
    if (!r)
        r = write_timeline(query_context, group_by, averaged, &members, error);
    if (r < 0)
        return r;
    _cleanup_flamebearer_ struct flamebearer flame;
    flamebearer_init(&flame, &tree, (int64_t)nodes);
    json_write_object(&json);
    json_member_unsigned(&json, "version", 1);
    flamebearer_write_render(&flame, &json);
    render_put_metadata(&json, "single", query_context->query.type);
    json_write_raw(&json, timeline.data, timeline.length);
    json_member_null(&json, "heatmap");
    json_write_object_end(&json);
    buffer_add_char(out, '\n');
    return 0;
}

void render(struct http_request *request, void *server)
{
    _cleanup_query_context_ struct query_context query_context = {0};
    struct error error = {0};
    _cleanup_answer_ struct answer answer = {0};
    const char *format = http_request_query(request, "format");
    const char *group_by = http_request_query(request, "groupBy");
    static const char *const aggregations[] = {"sum", "avg", NULL};
    unsigned aggregation = 0;
    uint64_t nodes = 0;
    answer_init(&answer, request, "application/json");
    int r = read_nodes(request, &nodes, &error);
    if (!r)
        r = parameter_word(request, "aggregation", aggregations, 0, &aggregation, &error);
    if (!r)
        r = query_context_read(&query_context, request, server, "", true, &error);
    if (!r && format && !strcmp(format, "dot"))
        r = render_dot(&query_context, nodes, &error, &answer);
    else if (!r)
        r = render_json(&query_context, nodes, group_by && *group_by ? group_by : NULL, aggregation,
                        &answer.out, &error);
    r = answer_end(&answer, r, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}

void render_diff(struct http_request *request, void *server)
{
    static const char *const names[2][3] = {{"leftQuery", "leftFrom", "leftUntil"},
                                            {"rightQuery", "rightFrom", "rightUntil"}};
    _cleanup_calltree_ struct calltree tree;
    struct error error = {0};
    _cleanup_answer_ struct answer answer = {0};
    struct json_writer json = json_writer(&answer.out);
    answer_init(&answer, request, "application/json");
    char type[QUERY_TYPE_BYTES] = "";
    uint64_t nodes = 0;
    calltree_init(&tree);
    int r = read_nodes(request, &nodes, &error);
    for (int side = 1; side >= 0 && !r; side--) {
        _cleanup_query_context_ struct query_context query_context = {0};
        _cleanup_profile_ struct profile profile;
        struct store_quality quality;
        const char *texts[3];
        int64_t times[2] = {0}, now = clock_ns(CLOCK_REALTIME);
        profile_init(&profile, 0);
        for (int i = 0; i < 3; i++)
            if (!(texts[i] = http_request_query(request, names[side][i])))
                r = error_set(&error, -EINVAL, "The parameter %s is missing.", names[side][i]);
        for (int i = 0; i < 2 && !r; i++)
            r = query_time(texts[i + 1], now, &times[i], &error);
        if (!r)
            r = query_context_init(&query_context, request, server, texts[0], times[0], times[1],
                                   true, &error);
        if (!r && *type && strcmp(type, query_context.query.type))
            r = error_set(&error, -EINVAL, "Profiles of different types can't be compared.");
        if (!r)
            r = query_context_merge(&query_context, &profile, &quality, &error);
        if (!r)
            r = calltree_add(&tree, &profile, side ? CALLTREE_NEW : CALLTREE_BASE, &error);
        if (!r)
            strcpy(type, query_context.query.type);
    }
    if (!r) {
        _cleanup_flamebearer_ struct flamebearer flame;
        flamebearer_init(&flame, &tree, (int64_t)nodes);
        json_write_object(&json);
        json_member_unsigned(&json, "version", 1);
        flamebearer_write_render(&flame, &json);
        render_put_metadata(&json, "double", type);
        flamebearer_write_ticks(&flame, &json);
        json_write_object_end(&json);
        buffer_add_char(json.out, '\n');
    }
    r = answer_end(&answer, r, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}

static int put_text(void *context, const char *text)
{
    json_write_text(context, text);
    return 0;
}

void render_label_values(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    const char *label = http_request_query(request, "label");
    struct store_selection selection = {.tenant = http_request_identity(request)->tenant,
                                        .to_ns = INT64_MAX};
    struct error error = {0};
    struct buffer out = {0};
    struct json_writer json = json_writer(&out);
    json_write_array(&json);
    int r = !label || !*label ? error_set(&error, -EINVAL, "The parameter label is missing.")
            : !strcmp(label, "__name__") || !strcmp(label, "__profile_type__")
                ? store_types(server->store, &selection, put_text, &json, &error)
                : store_label_values(server->store, &selection, label, put_text, &json, &error);
    json_write_array_end(&json);
    buffer_add_char(&out, '\n');
    if (r < 0)
        http_respond_failure(request, &error);
    else
        http_respond(request, 200, "application/json", &out);
    buffer_release(&out);
}
