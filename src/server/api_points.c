// SPDX-License-Identifier: Apache-2.0
// The API's values over time, and samples that belong to traces.

#include <string.h>

#include "config/quantity.h"
#include "profile/naming.h"
#include "query/maps.h"
#include "query/names.h"
#include "server/api.h"

#define GROUPS_MAX 16
#define EXEMPLARS_DEFAULT 100
#define EXEMPLARS_MAX 100000
#define SECOND_NS 1000000000ll

struct points {
    struct buffer out;
    const char *comma;
    uint64_t limit, count;
    struct query_links *links; /* only exemplars of these */
    struct query_late late;
};

static struct query_late late_names(struct server *server)
{
    return (struct query_late){.symbols = server->symbols ? symbols_store(server->symbols) : NULL};
}

static int put_points(void *context, const struct labels *group, const struct store_point *list,
                      size_t count)
{
    struct points *points = context;
    buffer_printf(&points->out, "%s{\"labels\":", points->comma);
    labels_write_json(group, &points->out);
    buffer_add_text(&points->out, ",\"points\":[");
    for (size_t i = 0; i < count; i++)
        buffer_printf(&points->out, "%s[%.3f,%lld]", i ? "," : "", (double)list[i].time_ns / 1e9,
                      (long long)list[i].value);
    buffer_add_text(&points->out, "]}");
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
    struct points points = {.comma = ""};
    if (!parameters_known(request, "/api/v1/timeseries"))
        return;
    _cleanup_query_late_ struct query_late late = late_names(server);
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
    buffer_add_text(&points.out, "{\"series\":[");
    if (!r)
        r = query_maps_timeseries(symbols_maps(server->symbols), server->store, &question.selection,
                                  &query, &question.limits, put_points, &points, &quality.found,
                                  &error);
    if (!r)
        r = question_measure(&question, &quality, &error);
    if (r < 0) {
        http_respond_failure(request, &error);
    } else {
        buffer_printf(&points.out,
                      "],\"step_seconds\":%.9g,\"type\":", (double)query.step_ns / 1e9);
        json_put_text(&points.out, question.query.type);
        buffer_add_char(&points.out, ',');
        quality_write(&quality, NULL, &points.out);
        buffer_add_text(&points.out, "}\n");
        api_respond(request, "application/json", &points.out);
    }
    buffer_release(&points.out);
}

static void put_hex(struct buffer *out, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "%02x", bytes[i]);
}

static int put_exemplar(void *context, const struct labels *labels, const struct profile *profile,
                        const struct store_exemplar *exemplar)
{
    struct points *points = context;
    struct buffer *out = &points->out;
    if (points->links && !query_links_match(points->links, exemplar))
        return 0;
    if (points->count++ >= points->limit)
        return 1;
    buffer_printf(out, "%s{\"time\":%.3f,\"value\":%lld,\"trace_id\":\"", points->comma,
                  (double)exemplar->time_ns / 1e9, (long long)exemplar->value);
    put_hex(out, exemplar->link.trace_id, sizeof(exemplar->link.trace_id));
    buffer_add_text(out, "\",\"span_id\":\"");
    put_hex(out, exemplar->link.span_id, sizeof(exemplar->link.span_id));
    buffer_add_text(out, "\",\"labels\":");
    labels_write_json(labels, out);
    /* The innermost frame first. */
    buffer_add_text(out, ",\"stack\":[");
    struct symbol_frame names[SYMBOL_FRAMES_MAX];
    const char *comma = "";
    for (uint32_t node = exemplar->node; node; node = profile->nodes[node].parent) {
        const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
        size_t count = 1;
        names[0].name = NULL;
        if (frame->function)
            names[0].name = profile_text(profile, profile->functions[frame->function].name);
        else
            count = MAX(query_late_names(&points->late, profile, profile->nodes[node].frame, names),
                        (size_t)1);
        for (size_t i = 0; i < count; i++, comma = ",") {
            buffer_add_text(out, comma);
            if (names[i].name)
                json_put_text(out, names[i].name);
            else
                buffer_printf(out, "\"0x%llx\"", (unsigned long long)frame->address);
        }
    }
    buffer_add_text(out, "]}");
    points->comma = ",\n";
    return 0;
}

void api_exemplars(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    _cleanup_question_ struct question question = {0};
    struct error error = {0};
    struct points points = {.comma = "", .limit = EXEMPLARS_DEFAULT};
    const char *name = http_request_query(request, "function");
    if (!parameters_known(request, "/api/v1/exemplars"))
        return;
    points.late = late_names(server);
    struct store_function function = {
        .name = name, .late = query_late_match, .context = &points.late};
    int r = question_number(request, "limit", 1, EXEMPLARS_MAX, &points.limit, &error);
    if (!r)
        r = question_read(&question, request, server, "", true, &error);
    if (!r)
        r = question_read_links(&question, request, &error);
    points.links = query_links_any(&question.links) ? &question.links : NULL;
    buffer_add_text(&points.out, "{\"exemplars\":[");
    if (!r)
        r = query_maps_exemplars(symbols_maps(server->symbols), server->store, &question.selection,
                                 name && *name ? &function : NULL, &question.limits, put_exemplar,
                                 &points, &error);
    if (r < 0) {
        http_respond_failure(request, &error);
    } else {
        buffer_add_text(&points.out, "],");
        api_put_unit(&points.out, question.query.type);
        buffer_printf(&points.out, ",\"more\":%s}\n", r > 0 ? "true" : "false");
        api_respond(request, "application/json", &points.out);
    }
    query_late_release(&points.late);
    buffer_release(&points.out);
}
