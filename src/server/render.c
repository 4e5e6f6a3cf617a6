// SPDX-License-Identifier: Apache-2.0
// Pyroscope's older reads over plain HTTP: /pyroscope/render and its relatives.

#include <string.h>

#include "base/clock.h"
#include "server/answer.h"
#include "server/flamebearer.h"
#include "server/question.h"

#define SECOND_NS 1000000000ll
#define TIMELINE_POINTS 240

static void put_metadata(struct buffer *out, const char *format, const char *type)
{
    size_t length;
    const char *sample = query_type_part(type, 1, &length);
    bool cpu = length == 3 && !memcmp(sample, "cpu", 3);
    buffer_printf(out,
                  "\"metadata\":{\"format\":\"%s\",\"spyName\":\"\",\"sampleRate\":%d,\"units\":",
                  format, cpu ? 1000000000 : 100);
    static const char *const objects[] = {"inuse_objects", "alloc_objects", "goroutine",
                                          "goroutines", "samples"};
    bool counted = false;
    for (size_t i = 0; i < ARRAY_LENGTH(objects); i++)
        counted |= strlen(objects[i]) == length && !memcmp(objects[i], sample, length);
    const char *unit = query_type_part(type, 2, &length);
    if (cpu || counted)
        buffer_add_text(out, cpu ? "\"samples\"" : "\"objects\"");
    else
        buffer_printf(out, "\"%.*s\"", (int)length, unit);
    sample = query_type_part(type, 1, &length);
    buffer_printf(out, ",\"name\":\"%.*s\"}", (int)length, sample);
}

struct timeline {
    int64_t from_ns, step_ns;
    int64_t values[TIMELINE_POINTS + 1];
    size_t count;
};

static int put_points(void *context, const struct labels *group, const struct store_point *points,
                      size_t count)
{
    struct timeline *timeline = context;
    (void)group;
    for (size_t i = 0; i < count; i++) {
        int64_t slot = (points[i].time_ns - timeline->from_ns) / timeline->step_ns;
        if (slot >= 0 && slot < (int64_t)timeline->count)
            timeline->values[slot] = points[i].value;
    }
    return 0;
}

static int write_timeline(struct question *question, struct buffer *out, struct error *error)
{
    const struct store_selection *selection = &question->selection;
    int64_t length = selection->to_ns - selection->from_ns;
    struct timeline timeline = {.from_ns = selection->from_ns};
    timeline.step_ns = MAX(15 * SECOND_NS, (length / TIMELINE_POINTS / SECOND_NS + 1) * SECOND_NS);
    timeline.count = (size_t)MIN(length / timeline.step_ns + 1, (int64_t)TIMELINE_POINTS + 1);
    struct store_timeseries_query query = {.step_ns = timeline.step_ns};
    struct store_quality quality;
    int r = store_timeseries(question->server->store, selection, &query, &question->limits,
                             put_points, &timeline, &quality, error);
    buffer_printf(out, "\"timeline\":{\"startTime\":%lld,\"samples\":[",
                  (long long)(timeline.from_ns / SECOND_NS));
    for (size_t i = 0; i < timeline.count; i++)
        buffer_printf(out, "%s%lld", i ? "," : "", (long long)timeline.values[i]);
    buffer_printf(out, "],\"durationDelta\":%lld,\"watermarks\":null}",
                  (long long)(timeline.step_ns / SECOND_NS));
    return r;
}

static int read_nodes(struct http_request *request, uint64_t *nodes, struct error *error)
{
    int r = question_number(request, "maxNodes", 0, FLAMEBEARER_NODES_MAX, nodes, error);
    return r < 0 ? r
                 : question_number(request, "max-nodes", 0, FLAMEBEARER_NODES_MAX, nodes, error);
}

void render(struct http_request *request, void *server)
{
    _cleanup_question_ struct question question = {0};
    _cleanup_calltree_ struct calltree tree;
    _cleanup_profile_ struct profile profile;
    struct store_quality quality;
    struct error error = {0};
    _cleanup_buffer_ struct buffer timeline = {0};
    _cleanup_answer_ struct answer answer = {0};
    struct buffer *out = &answer.out;
    answer_init(&answer, request, "application/json");
    uint64_t nodes = 0;
    calltree_init(&tree);
    profile_init(&profile, 0);
    int r = read_nodes(request, &nodes, &error);
    if (!r)
        r = question_read(&question, request, server, "", true, &error);
    if (!r)
        r = question_merge(&question, &profile, &quality, &error);
    if (!r)
        r = calltree_add(&tree, &profile, CALLTREE_NEW, &error);
    if (!r)
        r = write_timeline(&question, &timeline, &error);
    if (!r) {
        _cleanup_flamebearer_ struct flamebearer flame;
        flamebearer_init(&flame, &tree, (int64_t)nodes);
        buffer_add_text(out, "{\"version\":1,\"flamebearer\":{");
        flamebearer_write_render(&flame, out);
        buffer_add_text(out, "},");
        put_metadata(out, "single", question.query.type);
        buffer_add_char(out, ',');
        buffer_add(out, timeline.data, timeline.length);
        buffer_add_text(out, ",\"groups\":null,\"heatmap\":null}\n");
    }
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
    struct buffer *out = &answer.out;
    answer_init(&answer, request, "application/json");
    char type[QUERY_TYPE_BYTES] = "";
    uint64_t nodes = 0;
    calltree_init(&tree);
    int r = read_nodes(request, &nodes, &error);
    for (int side = 1; side >= 0 && !r; side--) {
        _cleanup_question_ struct question question = {0};
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
            r = question_init(&question, request, server, texts[0], times[0], times[1], true,
                              &error);
        if (!r && *type && strcmp(type, question.query.type))
            r = error_set(&error, -EINVAL, "Profiles of different types can't be compared.");
        if (!r)
            r = question_merge(&question, &profile, &quality, &error);
        if (!r)
            r = calltree_add(&tree, &profile, side ? CALLTREE_NEW : CALLTREE_BASE, &error);
        if (!r)
            strcpy(type, question.query.type);
    }
    if (!r) {
        _cleanup_flamebearer_ struct flamebearer flame;
        flamebearer_init(&flame, &tree, (int64_t)nodes);
        buffer_add_text(out, "{\"version\":1,\"flamebearer\":{");
        flamebearer_write_render(&flame, out);
        buffer_add_text(out, "},");
        put_metadata(out, "double", type);
        buffer_printf(out, ",\"leftTicks\":%lld,\"rightTicks\":%lld}\n", (long long)flame.left,
                      (long long)flame.right);
    }
    r = answer_end(&answer, r, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}

static int put_text(void *context, const char *text)
{
    struct buffer *out = context;
    buffer_add_text(out, out->length > 1 ? "," : "");
    json_put_text(out, text);
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
    buffer_add_char(&out, '[');
    int r = !label ? error_set(&error, -EINVAL, "The parameter label is missing.")
            : !strcmp(label, "__name__") || !strcmp(label, "__profile_type__")
                ? store_types(server->store, &selection, put_text, &out, &error)
                : store_label_values(server->store, &selection, label, put_text, &out, &error);
    buffer_add_text(&out, "]\n");
    if (r < 0)
        http_respond_failure(request, &error);
    else
        http_respond(request, 200, "application/json", &out);
    buffer_release(&out);
}
