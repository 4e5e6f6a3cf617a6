// SPDX-License-Identifier: Apache-2.0
// GET and POST /api/v1/control: who may capture.

#include "server/control_api.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "server/audit.h"
#include "server/question.h"

/* ---- what all three have in common ---- */

bool control_read_body(struct http_request *request, const char *pattern,
                       int (*read)(struct json *json, void *context), void *context)
{
    _cleanup_buffer_ struct buffer body = {0};
    struct error error = {0};
    struct source source;
    struct json json;
    if (!parameters_known(request, pattern))
        return false;
    if (!http_request_is_type(request, "application/json")) {
        http_respond_error(request, 415, "%s takes a body of the type application/json only.",
                           http_request_path(request));
        return false;
    }
    int r = http_request_read_all(request, &body, &error);
    if (!r)
        r = source_open_memory(&source, "the body", body.data, body.length, AGENT_REPORT_BYTES,
                               &error);
    if (!r) {
        json_init(&json, &source, &error);
        r = read(&json, context);
        if (r >= 0)
            r = json_end(&json);
        json_release(&json);
        source_release(&source);
    }
    if (r < 0)
        http_respond_failure(request, &error);
    return r >= 0;
}

int control_read_text(struct json *json, char *to, size_t room)
{
    struct json_string text;
    int r = json_string(json, &text);
    if (r < 0)
        return r;
    if (text.length >= room)
        return json_fail(json, "A text has %zu bytes, and %zu may be", text.length, room - 1);
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f)
            return json_fail(json, "A text has a control character in it");
    if (!utf8_valid(text.data, text.length))
        return json_fail(json, "A text is not UTF-8");
    memcpy(to, text.data, text.length);
    to[text.length] = 0;
    return 0;
}

void control_respond_failure(struct http_request *request, const struct error *error)
{
    if (error->code == -EBUSY)
        http_respond_error(request, 409, "%s", error->text);
    else
        http_respond_failure(request, error);
}

const char *control_actor(struct http_request *request)
{
    const struct http_identity *identity = http_request_identity(request);
    return identity->token_name ? identity->token_name : "somebody without a token";
}

/* ---- capture on and off ---- */

struct control_order {
    char capture[8];
    char selector[2048];
    char reason[CONTROL_TEXT_BYTES];
};

static int read_order(struct json *json, void *context)
{
    struct control_order *order = context;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "capture"))
            r = control_read_text(json, order->capture, sizeof(order->capture));
        else if (json_is(&key, "selector"))
            r = control_read_text(json, order->selector, sizeof(order->selector));
        else if (json_is(&key, "reason"))
            r = control_read_text(json, order->reason, sizeof(order->reason));
        else
            r = json_fail(json, "An order has capture, selector and reason, and no \"%.*s\"",
                          (int)MIN(key.length, (size_t)40), key.data);
    return r;
}

static void respond(struct http_request *request, struct server *server)
{
    struct control *control = server->control;
    struct buffer out = {0};
    pthread_mutex_lock(&control->lock);
    struct control_tenant *tenant = control_tenant(control, http_request_identity(request)->tenant);
    control_write(control, tenant, clock_ns(CLOCK_REALTIME), &out);
    pthread_mutex_unlock(&control->lock);
    api_respond(request, "application/json", &out);
    buffer_release(&out);
}

void control_get(struct http_request *request, void *server)
{
    if (parameters_known(request, "/api/v1/control"))
        respond(request, server);
}

void control_post(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct control *control = server->control;
    struct control_order order = {0};
    struct error error = {0};
    if (!control_read_body(request, "/api/v1/control", read_order, &order))
        return;
    bool on = !strcmp(order.capture, "on");
    if (!on && strcmp(order.capture, "off")) {
        http_respond_error(request, 400, "An order says \"capture\":\"on\" or \"off\".");
        return;
    }
    pthread_mutex_lock(&control->lock);
    struct control_tenant *tenant = control_tenant(control, http_request_identity(request)->tenant);
    int r = control_set(control, tenant, on, order.selector, control_actor(request), order.reason,
                        clock_ns(CLOCK_REALTIME), &error);
    pthread_mutex_unlock(&control->lock);
    char target[AUDIT_TEXT_MAX];
    snprintf(target, sizeof(target), "%s%s%s", *order.selector ? order.selector : "{}",
             *order.reason ? ": " : "", order.reason);
    int saved = r < 0 ? 0 : control_save(control, &error);
    server_audit(server, request, on ? "capture on" : "capture off", target,
                 r < 0 || saved < 0 ? error.text : "done");
    if (r < 0) {
        control_respond_failure(request, &error);
        return;
    }
    if (saved < 0) {
        http_respond_error(request, 503,
                           "Agents are told, but a restart of the server would forget it: %s",
                           error.text);
        return;
    }
    respond(request, server);
}
