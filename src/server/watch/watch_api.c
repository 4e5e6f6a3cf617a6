// SPDX-License-Identifier: Apache-2.0
// /api/v1/marks and /api/v1/findings.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "label/quote.h"
#include "query/query.h"
#include "server/handler/parameters.h"
#include "server/watch/watch.h"

/* ---- marks ---- */

static void put_mark(struct json_writer *json, const struct watch_mark *mark)
{
    json_write_object(json);
    json_member_fixed(json, "time", (double)mark->time_ns / 1e9, 3);
    json_member_text(json, "service", mark->service);
    json_member_text(json, "version", mark->version);
    json_member_text(json, "text", mark->text);
    json_member_text(json, "by", mark->by);
    json_write_object_end(json);
}

static int read_time(struct http_request *request, const char *name, int64_t now_ns,
                     int64_t *time_ns, struct error *error)
{
    const char *text = http_request_query(request, name);
    return text && *text ? query_time(text, now_ns, time_ns, error) : 0;
}

void marks_list(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct watch_book *book = &server->watch->book;
    _cleanup_buffer_ struct buffer out = {0};
    struct json_writer json = json_writer(&out);
    struct error error = {0};
    int64_t from_ns = 0, to_ns = INT64_MAX, now_ns = clock_ns(CLOCK_REALTIME);
    if (!parameters_known(request, "/api/v1/marks"))
        return;
    const char *service = http_request_query(request, "service");
    int r = read_time(request, "from", now_ns, &from_ns, &error);
    if (!r)
        r = read_time(request, "to", now_ns, &to_ns, &error);
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    json_write_array(&json);
    pthread_mutex_lock(&book->lock);
    const struct watch_tenant *tenant =
        watch_book_tenant(book, http_request_identity(request)->tenant);
    for (size_t i = 0; i < tenant->mark_count; i++) {
        const struct watch_mark *mark = &tenant->marks[i];
        bool meant = !service || !*service || !*mark->service || !strcmp(mark->service, service);
        if (meant && mark->time_ns >= from_ns && mark->time_ns < to_ns)
            put_mark(&json, mark);
    }
    pthread_mutex_unlock(&book->lock);
    json_write_array_end(&json);
    buffer_add_char(&out, '\n');
    api_respond(request, "application/json", &out);
}

struct mark_body {
    char service[WATCH_NAME_BYTES], version[WATCH_NAME_BYTES], text[WATCH_MARK_TEXT_BYTES];
    double time; /* NAN: now */
};

static int read_mark(struct json *json, void *context)
{
    struct mark_body *body = context;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "time"))
            r = json_double(json, &body->time);
        else if (json_is(&key, "service"))
            r = handler_read_text(json, body->service, sizeof(body->service));
        else if (json_is(&key, "version"))
            r = handler_read_text(json, body->version, sizeof(body->version));
        else if (json_is(&key, "text"))
            r = handler_read_text(json, body->text, sizeof(body->text));
        else
            r = json_fail(json, "A mark has no field \"%.*s\"", (int)MIN(key.length, (size_t)40),
                          key.data);
    return r;
}

static int check_mark(const struct mark_body *body, int64_t now_ns, struct error *error)
{
    if (!*body->text && !*body->version)
        return error_set(error, -EINVAL, "A mark needs a `text` or a `version`.");
    if (*body->version && !*body->service)
        return error_set(error, -EINVAL, "A mark with a `version` needs a `service`.");
    if (!isnan(body->time) && !(body->time >= 0 && body->time <= (double)now_ns / 1e9 + 86400))
        return error_set(error, -EINVAL,
                         "The `time` of a mark is in seconds since 1970 and at most a day ahead.");
    return 0;
}

void marks_post(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct watch_book *book = &server->watch->book;
    struct mark_body body = {.time = NAN};
    struct error error = {0};
    _cleanup_buffer_ struct buffer out = {0};
    int64_t now_ns = clock_ns(CLOCK_REALTIME);
    if (!handler_read_json(request, "/api/v1/marks", read_mark, &body))
        return;
    struct watch_mark mark = {.time_ns = isnan(body.time) ? now_ns : (int64_t)(body.time * 1e9),
                              .service = body.service,
                              .version = body.version,
                              .text = body.text,
                              .by = (char *)handler_actor(request)};
    int r = check_mark(&body, now_ns, &error);
    if (!r) {
        pthread_mutex_lock(&book->lock);
        struct watch_tenant *tenant =
            watch_book_tenant(book, http_request_identity(request)->tenant);
        if (!watch_mark_add(book, tenant, &mark))
            r = error_set(&error, -EINVAL,
                          "There are %d marks, all later than this one; the oldest go first.",
                          WATCH_MARKS_MAX);
        pthread_mutex_unlock(&book->lock);
    }
    if (!r)
        r = watch_book_save(book, &error);
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    struct json_writer json = json_writer(&out);
    put_mark(&json, &mark);
    buffer_add_char(&out, '\n');
    http_respond(request, 201, "application/json", &out);
}

/* ---- findings ---- */

/* A part of an address, or a whole value of a parameter. */
static void add_encoded(struct buffer *out, const char *text)
{
    for (; *text; text++)
        if ((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
            (*text >= '0' && *text <= '9') || strchr("-_.~", *text))
            buffer_add_char(out, *text);
        else
            buffer_printf(out, "%%%02X", (unsigned char)*text);
}

static void add_range(struct buffer *out, const char *query, const char *prefix, int64_t from_ns,
                      int64_t to_ns)
{
    buffer_printf(out, "%squery=", prefix);
    add_encoded(out, query);
    buffer_printf(out, "&%sfrom=%lld&%sto=%lld", prefix, (long long)(from_ns / 1000000000), prefix,
                  (long long)((to_ns + 999999999) / 1000000000));
}

void watch_write_comparison(struct buffer *out, const char *query, int64_t from_ns, int64_t to_ns,
                            const char *base_query, int64_t base_from_ns, int64_t base_to_ns)
{
    buffer_add_text(out, "/compare?");
    add_range(out, query, "", from_ns, to_ns);
    buffer_add_char(out, '&');
    add_range(out, base_query, "base_", base_from_ns, base_to_ns);
}

static void write_query(struct buffer *query, const struct watch_finding *finding,
                        const char *version)
{
    buffer_printf(query, "%s{service_name=", finding->type);
    label_write_quoted(query, finding->service);
    if (*version) {
        buffer_add_text(query, ",version=");
        label_write_quoted(query, version);
    }
    buffer_add_char(query, '}');
}

void watch_write_link(struct buffer *out, const struct watch_finding *finding)
{
    _cleanup_buffer_ struct buffer query = {0}, base = {0};
    write_query(&query, finding, finding->version);
    write_query(&base, finding, finding->base_version);
    watch_write_comparison(out, buffer_text(&query), finding->from_ns, finding->to_ns,
                           buffer_text(&base), finding->base_from_ns, finding->base_to_ns);
}

static void put_number(struct json_writer *json, const char *key, double value)
{
    if (isfinite(value))
        json_member_number(json, key, value);
    else
        json_member_null(json, key);
}

/* Memory that climbs, and when it meets the limit at that rate. */
static void put_leak(struct json_writer *json, const struct watch_finding *finding)
{
    put_number(json, "bytes_per_hour", finding->slope);
    put_number(json, "bytes_per_hour_low", finding->slope_low);
    put_number(json, "bytes_per_hour_high", finding->slope_high);
    put_number(json, "site_bytes", finding->site_bytes);
    put_number(json, "process_bytes", finding->process_bytes);
    double left = finding->limit_bytes - finding->process_bytes;
    put_number(json, "limit_bytes", finding->limit_bytes > 0 ? finding->limit_bytes : INFINITY);
    put_number(json, "seconds_to_limit",
               finding->limit_bytes > 0 ? fmax(left, 0) / finding->slope * 3600 : INFINITY);
}

static void put_finding(struct json_writer *json, const struct watch_finding *finding)
{
    _cleanup_buffer_ struct buffer link = {0};
    watch_write_link(&link, finding);
    json_write_object(json);
    json_member_text(json, "id", finding->id);
    json_member_text(json, "kind", watch_kind_names[finding->kind]);
    json_member_text(json, "state", finding->closed ? "closed" : "open");
    json_member_text(json, "service", finding->service);
    json_member_text(json, "version", finding->version);
    json_member_text(json, "base_version", finding->base_version);
    json_member_text(json, "type", finding->type);
    json_member_text(json, "function", finding->function);
    json_member_text(json, "unit", finding->unit);
    if (finding->kind == WATCH_LEAK) {
        put_leak(json, finding);
    } else {
        put_number(json, "growth", finding->growth);
        put_number(json, "growth_low", finding->growth_low);
        put_number(json, "growth_high", finding->growth_high);
    }
    put_number(json, "base_share", finding->base_share);
    put_number(json, "share", finding->share);
    json_member_fixed(json, "opened", (double)finding->opened_ns / 1e9, 3);
    json_member_fixed(json, "seen", (double)finding->seen_ns / 1e9, 3);
    if (finding->closed) {
        json_member_fixed(json, "closed", (double)finding->closed_ns / 1e9, 3);
        json_member_text(json, "reason", watch_close_names[finding->closed]);
    }
    json_member_text(json, "link", buffer_text(&link));
    json_write_object_end(json);
}

void findings_list(struct http_request *request, void *userdata)
{
    static const char *const states[] = {"all", "open", "closed", NULL};
    struct server *server = userdata;
    struct watch_book *book = &server->watch->book;
    _cleanup_buffer_ struct buffer out = {0};
    struct json_writer json = json_writer(&out);
    struct error error = {0};
    unsigned state;
    if (!parameters_known(request, "/api/v1/findings"))
        return;
    const char *service = http_request_query(request, "service");
    if (parameter_word(request, "state", states, 0, &state, &error) < 0) {
        http_respond_failure(request, &error);
        return;
    }
    json_write_array(&json);
    pthread_mutex_lock(&book->lock);
    const struct watch_tenant *tenant =
        watch_book_tenant(book, http_request_identity(request)->tenant);
    for (size_t i = tenant->finding_count; i-- > 0;) {
        const struct watch_finding *finding = &tenant->findings[i];
        bool meant = !service || !*service || !strcmp(finding->service, service);
        if (meant && (!state || (state == 2) == (finding->closed != WATCH_OPEN)))
            put_finding(&json, finding);
    }
    pthread_mutex_unlock(&book->lock);
    json_write_array_end(&json);
    buffer_add_char(&out, '\n');
    api_respond(request, "application/json", &out);
}
