// SPDX-License-Identifier: Apache-2.0
// GET and POST /api/v1/control: who may capture, and at which rates.

#include "server/control/control_api.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "server/audit/audit.h"
#include "server/control/control.h"
#include "server/handler/parameters.h"

/* ---- capture on and off ---- */

struct control_order {
    char capture[8];
    bool has_sampling;
    struct sampling_wish sampling;
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
            r = handler_read_text(json, order->capture, sizeof(order->capture));
        else if (json_is(&key, "sampling"))
            r = sampling_wish_read(json, &order->sampling), order->has_sampling = true;
        else if (json_is(&key, "selector"))
            r = handler_read_text(json, order->selector, sizeof(order->selector));
        else if (json_is(&key, "reason"))
            r = handler_read_text(json, order->reason, sizeof(order->reason));
        else
            r = json_fail(json,
                          "An order has capture or sampling, selector and reason, but not \"%.*s\"",
                          (int)MIN(key.length, (size_t)40), key.data);
    return r;
}

static void respond(struct http_request *request, struct server *server)
{
    struct control *control = server->control;
    struct buffer out = {0};
    struct error error = {0};
    pthread_mutex_lock(&control->lock);
    struct control_tenant *tenant = control_tenant(control, http_request_identity(request)->tenant);
    pthread_mutex_unlock(&control->lock);
    if (control_decide_all(control, tenant, &error) < 0) {
        http_respond_failure(request, &error);
        return;
    }
    pthread_mutex_lock(&control->lock);
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

/* Gives the order; the lock is held. */
static int give(struct control *control, struct control_tenant *tenant,
                const struct control_order *order, const char *by, struct error *error)
{
    int64_t now_ns = clock_ns(CLOCK_REALTIME);
    if (order->has_sampling)
        return control_set_sampling(control, tenant, &order->sampling, order->selector, by,
                                    order->reason, now_ns, error);
    return control_set(control, tenant, !strcmp(order->capture, "on"), order->selector, by,
                       order->reason, now_ns, error);
}

/* Writes down who ordered what, and how that ended. */
static void note(struct server *server, struct http_request *request,
                 const struct control_order *order, const char *outcome)
{
    char target[AUDIT_TEXT_MAX], what[128] = "";
    if (order->has_sampling)
        sampling_wish_describe(&order->sampling, what, sizeof(what));
    snprintf(target, sizeof(target), "%s%s%s%s%s", *order->selector ? order->selector : "{}",
             *what ? " " : "", what, *order->reason ? ": " : "", order->reason);
    server_audit(server, request,
                 order->has_sampling              ? "sampling"
                 : !strcmp(order->capture, "off") ? "capture off"
                                                  : "capture on",
                 target, outcome);
}

void control_post(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct control *control = server->control;
    struct control_order order = {0};
    struct error error = {0};
    if (!handler_read_json(request, "/api/v1/control", read_order, &order))
        return;
    if (order.has_sampling == (*order.capture != 0) ||
        (*order.capture && strcmp(order.capture, "on") && strcmp(order.capture, "off"))) {
        http_respond_error(request, 400,
                           "An order requires either \"capture\":\"on\" or \"off\", or "
                           "\"sampling\" with rates and collectors.");
        return;
    }
    pthread_mutex_lock(&control->lock);
    struct control_tenant *tenant = control_tenant(control, http_request_identity(request)->tenant);
    int r = give(control, tenant, &order, handler_actor(request), &error);
    pthread_mutex_unlock(&control->lock);
    int saved = r < 0 ? 0 : control_save(control, &error);
    note(server, request, &order, r < 0 || saved < 0 ? error.text : "done");
    if (r < 0) {
        handler_respond_failure(request, &error);
        return;
    }
    if (saved < 0) {
        http_respond_error(request, 503,
                           "The order is in effect, but will be lost when the server restarts: %s",
                           error.text);
        return;
    }
    respond(request, server);
}
