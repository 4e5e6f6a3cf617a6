// SPDX-License-Identifier: Apache-2.0
// GET /api/v1/explain: an explanation as JSON, with its text.

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/memory.h"
#include "config/quantity.h"
#include "server/api/api.h"
#include "server/explain/explain.h"
#include "server/watch/watch.h"

#define MINUTE_NS 60000000000ll
#define WINDOW_DEFAULT_NS (5 * MINUTE_NS)
#define WINDOW_LEAST_NS (MINUTE_NS / 2)
#define WINDOW_MOST_NS (360 * MINUTE_NS)
#define TRACE_TEXT (2 * sizeof(((struct profile_link *)0)->trace_id) + 1)

/* ---- in words ---- */

static void write_time(int64_t ns, const char *format, struct buffer *out)
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm tm;
    char text[64] = "";
    if (gmtime_r(&seconds, &tm))
        strftime(text, sizeof(text), format, &tm);
    buffer_add_text(out, text);
}

static void write_range(int64_t from_ns, int64_t to_ns, struct buffer *out)
{
    write_time(from_ns, "%Y-%m-%d %H:%M:%S", out);
    write_time(to_ns, " to %H:%M:%S UTC", out);
}

static void write_symptom(const struct symptom *symptom, struct buffer *out)
{
    double growth = symptom->base > 0 ? symptom->value / symptom->base - 1 : NAN;
    buffer_printf(out, "%s: %.3g to %.3g %s", symptom->words, symptom->base, symptom->value,
                  symptom->unit);
    if (isfinite(growth))
        buffer_printf(out, " (%+.1f%%)", growth * 100);
}

static void write_symptoms(const struct explanation *explanation, struct buffer *out)
{
    const struct symptoms *symptoms = &explanation->symptoms;
    const struct symptom *chosen = symptoms->chosen;
    buffer_printf(out, "%s, ", explanation->service);
    write_range(explanation->from_ns, explanation->to_ns, out);
    buffer_add_text(out, chosen->rose ? "\n\nWhat rose: " : "\n\nNothing rose. ");
    write_symptom(chosen, out);
    buffer_add_text(out, ".\n");
    for (size_t i = 0; i < symptoms->count; i++)
        if (symptoms->list[i].rose && &symptoms->list[i] != chosen) {
            buffer_add_text(out, "Also: ");
            write_symptom(&symptoms->list[i], out);
            buffer_add_text(out, ".\n");
        }
    buffer_add_text(out, "Compared with the calm time ");
    write_range(chosen->base_from_ns, chosen->base_to_ns, out);
    buffer_add_text(out, ".\n");
}

static void write_growth(double growth, struct buffer *out)
{
    if (isfinite(growth))
        buffer_printf(out, "%+.1f%%", growth * 100);
    else
        buffer_add_text(out, "unbounded");
}

static const char *cause_of(const struct explanation *explanation, const struct compare_row *row)
{
    const struct comparison *comparison = &explanation->compared.comparison;
    return compare_cause_names[compare_cause(&explanation->compared.causes, comparison,
                                             (size_t)(row - comparison->rows), true)];
}

static void write_cause(const struct explanation *explanation, const struct compare_row *row,
                        struct buffer *out)
{
    const struct compare_measure *total = &row->total;
    double scale = explanation->symptoms.chosen->scale;
    const char *cause = cause_of(explanation, row);
    buffer_printf(out, "  %s: %.3g to %.3g %s, ", row->function->name, total->base * scale,
                  total->new_value * scale, explanation->symptoms.chosen->unit);
    if (total->base > 0) {
        write_growth(total->growth, out);
        buffer_add_text(out, " (");
        write_growth(total->growth_low, out);
        buffer_add_text(out, " to ");
        write_growth(total->growth_high, out);
        buffer_add_char(out, ')');
    } else {
        buffer_add_text(out, "new");
    }
    buffer_printf(out, ", p %s%.2g", total->p < 1e-4 ? "below " : "", fmax(total->p, 1e-4));
    if (!strcmp(cause, "requests"))
        buffer_add_text(out, "; there were more requests");
    else if (!strcmp(cause, "cost per request"))
        buffer_add_text(out, "; each request costs more");
    buffer_add_text(out, ".\n");
}

static void write_causes(const struct explanation *explanation, struct buffer *out)
{
    const struct compare_measure *whole = &explanation->compared.comparison.whole;
    buffer_add_char(out, '\n');
    if (explanation->cause_count && explanation->certain)
        buffer_add_text(out, "What grew, with 95% certainty over all functions:\n");
    else if (whole->verdict == COMPARE_GREW)
        buffer_add_text(out, "The service as a whole grew; no function is responsible.\n");
    else
        buffer_printf(out, "No function's growth is certain%s\n",
                      explanation->cause_count ? ". The greatest changes:" : ".");
    for (size_t i = 0; i < explanation->cause_count; i++)
        write_cause(explanation, explanation->causes[i], out);
    if (explanation->undecided)
        buffer_printf(out, "%zu function%s undecided: a longer window may tell.\n",
                      explanation->undecided, explanation->undecided == 1 ? " is" : "s are");
}

static void write_versions(const struct explanation *explanation, struct buffer *out)
{
    const struct version_list *list = &explanation->versions;
    size_t count = 0;
    const struct version_span *last = NULL;
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->spans[i].service, explanation->service)) {
            last = &list->spans[i];
            count++;
        }
    if (explanation->since) {
        buffer_printf(out, "Since version %s, first seen ", explanation->since->version);
        write_time(explanation->since->first_ns, "%Y-%m-%d %H:%M:%S UTC.\n", out);
    } else if (count == 1) {
        buffer_printf(out, "Version %s ran the whole time.\n", last->version);
    } else if (count > 1) {
        buffer_printf(out, "%zu versions ran; the growth didn't come with one of them.\n", count);
    } else {
        buffer_add_text(out, "The service has no label version.\n");
    }
}

void explain_write_text(const struct explanation *explanation, struct buffer *out)
{
    write_symptoms(explanation, out);
    write_causes(explanation, out);
    write_versions(explanation, out);
    for (size_t i = 0; i < explanation->trace_count; i++) {
        char text[TRACE_TEXT];
        hex_encode(explanation->traces[i].link.trace_id,
                   sizeof(explanation->traces[i].link.trace_id), text);
        buffer_printf(out, "%s%s", i ? ", " : "Example traces: ", text);
    }
    if (explanation->trace_count)
        buffer_add_text(out, ".\n");
}

/* ---- as JSON ---- */

static void put_number(struct json_writer *json, const char *key, double value)
{
    if (isfinite(value))
        json_member_number(json, key, value);
    else
        json_member_null(json, key);
}

static void put_seconds(struct json_writer *json, const char *key, int64_t ns)
{
    json_member_fixed(json, key, (double)ns / 1e9, 3);
}

static void put_symptoms(struct json_writer *json, const struct symptoms *symptoms)
{
    json_write_key(json, "symptoms");
    json_write_array(json);
    for (size_t i = 0; i < symptoms->count; i++) {
        const struct symptom *symptom = &symptoms->list[i];
        if (!symptom->known)
            continue;
        json_write_object(json);
        json_member_text(json, "name", symptom->name);
        json_member_text(json, "query", symptom->query);
        json_member_text(json, "unit", symptom->unit);
        json_member_number(json, "base", symptom->base);
        json_member_number(json, "value", symptom->value);
        json_member_number(json, "deviations", symptom->deviations);
        json_member_bool(json, "rose", symptom->rose);
        json_member_bool(json, "chosen", symptom == symptoms->chosen);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static void put_causes(struct json_writer *json, const struct explanation *explanation)
{
    double scale = explanation->symptoms.chosen->scale;
    json_write_key(json, "causes");
    json_write_array(json);
    for (size_t i = 0; i < explanation->cause_count; i++) {
        const struct compare_row *row = explanation->causes[i];
        json_write_object(json);
        json_member_text(json, "function", row->function->name);
        put_number(json, "base", row->total.base * scale);
        put_number(json, "value", row->total.new_value * scale);
        put_number(json, "change", row->total.change * scale);
        put_number(json, "low", row->total.low * scale);
        put_number(json, "high", row->total.high * scale);
        put_number(json, "growth", row->total.growth);
        put_number(json, "growth_low", row->total.growth_low);
        put_number(json, "growth_high", row->total.growth_high);
        put_number(json, "p", row->total.p);
        put_number(json, "base_share", row->share[COMPARE_BASE]);
        put_number(json, "share", row->share[COMPARE_NEW]);
        json_member_text(json, "cause", cause_of(explanation, row));
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static void put_version(struct json_writer *json, const struct version_span *span)
{
    json_write_object(json);
    json_member_text(json, "version", span->version);
    put_seconds(json, "first", span->first_ns);
    put_seconds(json, "last", span->last_ns);
    json_write_object_end(json);
}

static void put_versions(struct json_writer *json, const struct explanation *explanation)
{
    json_write_key(json, "versions");
    json_write_array(json);
    for (size_t i = 0; i < explanation->versions.count; i++)
        if (!strcmp(explanation->versions.spans[i].service, explanation->service))
            put_version(json, &explanation->versions.spans[i]);
    json_write_array_end(json);
    if (explanation->since) {
        json_write_key(json, "since");
        put_version(json, explanation->since);
    } else {
        json_member_null(json, "since");
    }
}

static void put_traces(struct json_writer *json, const struct explanation *explanation)
{
    json_write_key(json, "traces");
    json_write_array(json);
    for (size_t i = 0; i < explanation->trace_count; i++) {
        const struct explain_trace *trace = &explanation->traces[i];
        char text[TRACE_TEXT];
        json_write_object(json);
        hex_encode(trace->link.trace_id, sizeof(trace->link.trace_id), text);
        json_member_text(json, "trace_id", text);
        hex_encode(trace->link.span_id, sizeof(trace->link.span_id), text);
        json_member_text(json, "span_id", text);
        json_member_signed(json, "value", trace->value);
        put_seconds(json, "time", trace->time_ns);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static void respond(struct http_request *request, const struct explanation *explanation)
{
    const struct symptom *chosen = explanation->symptoms.chosen;
    struct buffer out = {0};
    _cleanup_buffer_ struct buffer text = {0}, link = {0};
    struct json_writer json = json_writer(&out);
    watch_write_comparison(&link, explanation->query, explanation->from_ns, explanation->to_ns,
                           explanation->query, chosen->base_from_ns, chosen->base_to_ns);
    explain_write_text(explanation, &text);
    json_write_object(&json);
    json_member_text(&json, "text", buffer_text(&text));
    json_member_text(&json, "service", explanation->service);
    put_seconds(&json, "from", explanation->from_ns);
    put_seconds(&json, "to", explanation->to_ns);
    put_seconds(&json, "base_from", chosen->base_from_ns);
    put_seconds(&json, "base_to", chosen->base_to_ns);
    json_member_text(&json, "symptom", chosen->name);
    json_member_bool(&json, "rose", chosen->rose);
    put_symptoms(&json, &explanation->symptoms);
    json_member_bool(&json, "certain", explanation->certain);
    put_causes(&json, explanation);
    json_member_unsigned(&json, "undecided", explanation->undecided);
    put_versions(&json, explanation);
    put_traces(&json, explanation);
    json_member_text(&json, "link", buffer_text(&link));
    json_write_object_end(&json);
    buffer_add_char(&out, '\n');
    api_respond(request, "application/json", &out);
    buffer_release(&out);
}

/* ---- the request ---- */

/* The window is around the time, and ends now at the latest. */
static int read_window(struct http_request *request, struct explanation *explanation,
                       struct error *error)
{
    const char *at = http_request_query(request, "at");
    const char *window = http_request_query(request, "window");
    int64_t now_ns = clock_ns(CLOCK_REALTIME), at_ns = now_ns, length_ns = WINDOW_DEFAULT_NS;
    int r = at && *at ? query_time(at, now_ns, &at_ns, error) : 0;
    if (r < 0)
        return r;
    if (window && *window &&
        (!quantity_duration(window, &length_ns) || length_ns < WINDOW_LEAST_NS ||
         length_ns > WINDOW_MOST_NS))
        return error_set(error, -EINVAL, "window must be a duration of 30s to 6h, such as 5m.");
    if (at_ns > now_ns)
        return error_set(error, -EINVAL, "at is in the future.");
    if (at_ns < 0)
        return error_set(error, -EINVAL, "at is before 1970.");
    explanation->to_ns = MIN(at_ns + length_ns / 2, now_ns);
    explanation->from_ns = explanation->to_ns - length_ns;
    return 0;
}

void explain_get(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct error error = {0};
    if (!parameters_known(request, "/api/v1/explain"))
        return;
    struct explanation *explanation = memory_zalloc(1, sizeof(*explanation));
    explanation->server = server;
    explanation->tenant = http_request_identity(request)->tenant;
    explanation->service = http_request_query(request, "service");
    int r = 0;
    if (!explanation->service || !*explanation->service)
        r = error_set(&error, -EINVAL, "The parameter service is required.");
    if (!r)
        r = read_window(request, explanation, &error);
    if (!r)
        r = explain_make(explanation, &error);
    if (r < 0)
        http_respond_failure(request, &error);
    else
        respond(request, explanation);
    explain_release(explanation);
    free(explanation);
}
