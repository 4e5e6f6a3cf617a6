// SPDX-License-Identifier: Apache-2.0
// /api/v1/views, /api/v1/notes and /api/v1/pins.

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "query/query.h"
#include "server/handler/parameters.h"
#include "server/saved/saved.h"

#define DAY_SECONDS 86400.0

static const char *const addresses[SAVED_KINDS] = {
    [SAVED_VIEW] = "/api/v1/views", [SAVED_NOTE] = "/api/v1/notes", [SAVED_PIN] = "/api/v1/pins"};

/* ---- answers ---- */

static void put_time(struct json_writer *json, const char *name, int64_t time_ns)
{
    json_member_fixed(json, name, (double)time_ns / 1e9, 3);
}

static void put_item(struct json_writer *json, const struct saved_item *item)
{
    static const char *const texts[SAVED_KINDS] = {
        [SAVED_VIEW] = "name", [SAVED_NOTE] = "text", [SAVED_PIN] = "reason"};
    json_write_object(json);
    json_member_text(json, "id", item->id);
    json_member_text(json, texts[item->kind], item->text);
    if (item->kind == SAVED_VIEW)
        json_member_text(json, "address", item->address);
    if (item->kind == SAVED_NOTE)
        json_member_text(json, "service", item->service);
    if (item->kind != SAVED_VIEW) {
        put_time(json, "from", item->from_ns);
        put_time(json, "to", item->to_ns);
    }
    if (item->kind == SAVED_PIN) {
        put_time(json, "expires", item->expires_ns);
        if (item->dropped_ns)
            put_time(json, "dropped", item->dropped_ns);
        else
            json_member_null(json, "dropped");
        json_member_text(json, "why", item->why);
    }
    json_member_text(json, "by", item->by);
    put_time(json, "saved", item->saved_ns);
    json_write_object_end(json);
}

static struct saved_tenant *tenant_of(struct saved *saved, struct http_request *request)
{
    return saved_tenant(saved, http_request_identity(request)->tenant);
}

static void put_items(struct json_writer *json, const struct saved_tenant *tenant,
                      enum saved_kind kind, int64_t from_ns, int64_t to_ns, const char *service)
{
    json_write_array(json);
    for (size_t i = 0; i < tenant->count; i++) {
        const struct saved_item *item = &tenant->items[i];
        bool meant = !service || !*service || !*item->service || !strcmp(item->service, service);
        if (item->kind == kind && meant &&
            (kind == SAVED_VIEW || (item->from_ns < to_ns && from_ns < item->to_ns)))
            put_item(json, item);
    }
    json_write_array_end(json);
}

static void list(struct http_request *request, struct server *server, enum saved_kind kind)
{
    struct saved *saved = server->saved;
    _cleanup_buffer_ struct buffer out = {0};
    struct json_writer json = json_writer(&out);
    struct error error = {0};
    int64_t from_ns = INT64_MIN, to_ns = INT64_MAX, now_ns = clock_ns(CLOCK_REALTIME);
    if (!parameters_known(request, addresses[kind]))
        return;
    const char *from = http_request_query(request, "from"), *to = http_request_query(request, "to");
    int r = from && *from ? query_time(from, now_ns, &from_ns, &error) : 0;
    if (!r && to && *to)
        r = query_time(to, now_ns, &to_ns, &error);
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    pthread_mutex_lock(&saved->lock);
    const struct saved_tenant *tenant = tenant_of(saved, request);
    if (kind == SAVED_PIN) {
        json_write_object(&json);
        json_write_key(&json, "pins");
    }
    put_items(&json, tenant, kind, from_ns, to_ns, http_request_query(request, "service"));
    if (kind == SAVED_PIN) {
        json_member_unsigned(&json, "bytes", pins_bytes(server, tenant, NULL));
        json_member_unsigned(&json, "limit_bytes", saved->limits.bytes);
        json_write_object_end(&json);
    }
    pthread_mutex_unlock(&saved->lock);
    buffer_add_char(&out, '\n');
    api_respond(request, "application/json", &out);
}

void views_list(struct http_request *request, void *server)
{
    list(request, server, SAVED_VIEW);
}

void notes_list(struct http_request *request, void *server)
{
    list(request, server, SAVED_NOTE);
}

void pins_list(struct http_request *request, void *server)
{
    list(request, server, SAVED_PIN);
}

/* ---- bodies ---- */

struct item_body {
    enum saved_kind kind;
    char name[SAVED_NAME_BYTES], text[SAVED_TEXT_BYTES], address[SAVED_ADDRESS_BYTES];
    char service[SAVED_NAME_BYTES];
    double from, to, expires; /* seconds; NAN: missing */
};

/* Seconds since 1970, or any form that queries take, as "now-1h". */
static int read_time(struct json *json, double *seconds)
{
    char text[64];
    struct error error = {0};
    int64_t time_ns;
    if (json_kind(json) != JSON_STRING)
        return json_double(json, seconds);
    int r = handler_read_text(json, text, sizeof(text));
    if (r < 0)
        return r;
    if (query_time(text, clock_ns(CLOCK_REALTIME), &time_ns, &error) < 0)
        return json_fail(json, "%s", error.text);
    *seconds = (double)time_ns / 1e9;
    return 0;
}

static int read_body(struct json *json, void *context)
{
    struct item_body *body = context;
    bool view = body->kind == SAVED_VIEW, pin = body->kind == SAVED_PIN;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (view && json_is(&key, "name"))
            r = handler_read_text(json, body->name, sizeof(body->name));
        else if (view && json_is(&key, "address"))
            r = handler_read_text(json, body->address, sizeof(body->address));
        else if (!view && json_is(&key, pin ? "reason" : "text"))
            r = handler_read_text(json, body->text, sizeof(body->text));
        else if (!view && !pin && json_is(&key, "service"))
            r = handler_read_text(json, body->service, sizeof(body->service));
        else if (!view && json_is(&key, "from"))
            r = read_time(json, &body->from);
        else if (!view && json_is(&key, "to"))
            r = read_time(json, &body->to);
        else if (pin && json_is(&key, "expires"))
            r = read_time(json, &body->expires);
        else
            r = json_fail(json, "A %s has no field \"%.*s\"", saved_kind_names[body->kind],
                          (int)MIN(key.length, (size_t)40), key.data);
    return r;
}

/* A page of this server, and nothing that a browser takes for another host. */
static bool is_page(const char *address)
{
    if (*address != '/' || address[1] == '/')
        return false;
    for (const char *at = address; *at; at++)
        if ((unsigned char)*at <= ' ' || *at == '\\' || *at == 0x7f)
            return false;
    return true;
}

static int check_range(const struct item_body *body, int64_t now_ns, struct error *error)
{
    double latest = (double)now_ns / 1e9 + DAY_SECONDS;
    if (!(body->from >= 0 && body->from < body->to && body->to <= latest))
        return error_set(error, -EINVAL,
                         "A %s needs `from` and a later `to`, in seconds since 1970 and at most a "
                         "day ahead.",
                         saved_kind_names[body->kind]);
    return 0;
}

static int check_body(const struct item_body *body, int64_t now_ns, struct error *error)
{
    double now = (double)now_ns / 1e9;
    if (body->kind == SAVED_VIEW) {
        if (!*body->name || !is_page(body->address))
            return error_set(error, -EINVAL,
                             "A view needs a `name` and an `address` that begins with / and has "
                             "no spaces.");
        return 0;
    }
    if (!*body->text)
        return error_set(error, -EINVAL, "A %s needs a `%s`.", saved_kind_names[body->kind],
                         body->kind == SAVED_PIN ? "reason" : "text");
    int r = check_range(body, now_ns, error);
    if (!r && body->kind == SAVED_PIN &&
        !(body->expires > now && body->expires <= now + SAVED_PIN_DAYS_MAX * DAY_SECONDS))
        r = error_set(error, -EINVAL,
                      "A pin needs a time in `expires`, in seconds since 1970, within the next %d "
                      "days.",
                      SAVED_PIN_DAYS_MAX);
    return r;
}

static int64_t time_of(double seconds)
{
    return isnan(seconds) ? 0 : (int64_t)(seconds * 1e9);
}

/* The lock is held. */
static int check_quota(struct server *server, const struct saved_tenant *tenant,
                       const struct saved_item *pin, struct error *error)
{
    uint64_t bytes = pins_bytes(server, tenant, pin), limit = server->saved->limits.bytes;
    if (bytes <= limit)
        return 0;
    return error_set(error, -EDQUOT,
                     "With this pin, pins would keep %llu MiB, and the quota is %llu MiB; delete "
                     "a pin or choose a shorter range. A pin keeps whole days.",
                     (unsigned long long)(bytes >> 20), (unsigned long long)(limit >> 20));
}

/* ---- changes ---- */

/* A pin that the store doesn't keep. */
static void forget(struct saved *saved, const char *tenant, const char *id)
{
    struct error ignored = {0};
    pthread_mutex_lock(&saved->lock);
    saved_remove(saved, saved_tenant(saved, tenant), SAVED_PIN, id, &ignored);
    pthread_mutex_unlock(&saved->lock);
}

/* A change counts when it is on disk, a pin when the store knows it. */
static int settle(struct server *server, enum saved_kind kind, struct error *error)
{
    int r = kind == SAVED_PIN ? pins_apply(server, error) : 0;
    return r < 0 ? r : saved_save(server->saved, error);
}

static void respond_failure(struct http_request *request, const struct error *error)
{
    if (error->code == -EDQUOT)
        http_respond_error(request, 413, "%s", error->text);
    else if (error->code == -ENOTSUP)
        http_respond_error(request, 501, "%s", error->text);
    else
        http_respond_failure(request, error);
}

static void post(struct http_request *request, struct server *server, enum saved_kind kind)
{
    struct saved *saved = server->saved;
    struct item_body body = {.kind = kind, .from = NAN, .to = NAN, .expires = NAN};
    struct saved_item *added;
    char id[SAVED_ID_BYTES];
    struct error error = {0};
    _cleanup_buffer_ struct buffer out = {0};
    struct json_writer json = json_writer(&out);
    int64_t now_ns = clock_ns(CLOCK_REALTIME);
    if (!handler_read_json(request, addresses[kind], read_body, &body))
        return;
    struct saved_item item = {.kind = kind,
                              .text = kind == SAVED_VIEW ? body.name : body.text,
                              .address = body.address,
                              .service = body.service,
                              .by = (char *)handler_actor(request),
                              .saved_ns = now_ns,
                              .from_ns = time_of(body.from),
                              .to_ns = time_of(body.to),
                              .expires_ns = time_of(body.expires)};
    int r = check_body(&body, now_ns, &error);
    if (!r) {
        pthread_mutex_lock(&saved->lock);
        struct saved_tenant *tenant = tenant_of(saved, request);
        if (kind == SAVED_PIN)
            r = check_quota(server, tenant, &item, &error);
        if (!r)
            r = saved_add(saved, tenant, &item, &added, &error);
        if (!r) {
            put_item(&json, added);
            memcpy(id, added->id, sizeof(id));
        }
        pthread_mutex_unlock(&saved->lock);
    }
    if (!r && kind == SAVED_PIN && (r = pins_apply(server, &error)) < 0)
        forget(saved, http_request_identity(request)->tenant, id);
    if (!r)
        r = saved_save(saved, &error);
    if (kind == SAVED_PIN)
        server_audit(server, request, "pin", body.text, r < 0 ? error.text : "done");
    if (r < 0) {
        respond_failure(request, &error);
        return;
    }
    buffer_add_char(&out, '\n');
    http_respond(request, 201, "application/json", &out);
}

static void delete_one(struct http_request *request, struct server *server, enum saved_kind kind)
{
    static const char *const patterns[SAVED_KINDS] = {[SAVED_VIEW] = "/api/v1/views/*",
                                                      [SAVED_NOTE] = "/api/v1/notes/*",
                                                      [SAVED_PIN] = "/api/v1/pins/*"};
    struct saved *saved = server->saved;
    struct error error = {0};
    const char *id = http_request_rest(request);
    if (!parameters_known(request, patterns[kind]))
        return;
    pthread_mutex_lock(&saved->lock);
    int r = saved_remove(saved, tenant_of(saved, request), kind, id, &error);
    pthread_mutex_unlock(&saved->lock);
    if (!r)
        r = settle(server, kind, &error);
    if (kind == SAVED_PIN)
        server_audit(server, request, "pin delete", id, r < 0 ? error.text : "done");
    if (r < 0)
        respond_failure(request, &error);
    else
        http_respond_text(request, 200, "application/json", "{}\n");
}

void views_post(struct http_request *request, void *server)
{
    post(request, server, SAVED_VIEW);
}

void views_delete(struct http_request *request, void *server)
{
    delete_one(request, server, SAVED_VIEW);
}

void notes_post(struct http_request *request, void *server)
{
    post(request, server, SAVED_NOTE);
}

void notes_delete(struct http_request *request, void *server)
{
    delete_one(request, server, SAVED_NOTE);
}

void pins_post(struct http_request *request, void *server)
{
    post(request, server, SAVED_PIN);
}

void pins_delete(struct http_request *request, void *server)
{
    delete_one(request, server, SAVED_PIN);
}
