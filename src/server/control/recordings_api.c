// SPDX-License-Identifier: Apache-2.0
// Recordings as an admin orders, sees and stops them.

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "server/audit/audit.h"
#include "server/control/control.h"
#include "server/control/control_api.h"
#include "server/handler/parameters.h"

#define HOSTS_MAX 100

struct recording_body {
    struct recording_request wanted;
    char name[RECORDING_NAME_BYTES], service[257], selector[2048];
    char hosts[HOSTS_MAX][AGENT_HOST_BYTES];
    const char *host_list[HOSTS_MAX];
};

static int read_hosts(struct json *json, struct recording_body *body)
{
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        size_t count = body->wanted.host_count;
        if (count == HOSTS_MAX)
            return json_fail(json, "The limit is %d hosts; use a selector for more", HOSTS_MAX);
        r = handler_read_text(json, body->hosts[count], sizeof(body->hosts[count]));
        body->host_list[count] = body->hosts[count];
        body->wanted.host_count++;
    }
    return r;
}

static int read_recording_request(struct json *json, void *context)
{
    struct recording_body *body = context;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "name"))
            r = handler_read_text(json, body->name, sizeof(body->name));
        else if (json_is(&key, "service"))
            r = handler_read_text(json, body->service, sizeof(body->service));
        else if (json_is(&key, "selector"))
            r = handler_read_text(json, body->selector, sizeof(body->selector));
        else if (json_is(&key, "hosts"))
            r = read_hosts(json, body);
        else if (json_is(&key, "rate"))
            r = json_u64(json, &body->wanted.rate_hz);
        else if (json_is(&key, "seconds"))
            r = json_u64(json, &body->wanted.seconds);
        else if (json_is(&key, "wait_seconds"))
            r = json_u64(json, &body->wanted.wait_s);
        else
            r = json_fail(json, "A recording has no field \"%.*s\"",
                          (int)MIN(key.length, (size_t)40), key.data);
    return r;
}

static void audit_start(struct server *server, struct http_request *request,
                        const struct recording_body *body, const char *outcome)
{
    char target[AUDIT_TEXT_MAX];
    snprintf(target, sizeof(target), "%s: %llu Hz for %llu s, agents %s%s%.100s", body->service,
             (unsigned long long)body->wanted.rate_hz, (unsigned long long)body->wanted.seconds,
             *body->selector ? body->selector : "{}", body->wanted.host_count ? " of " : "",
             body->wanted.host_count ? body->hosts[0] : "");
    server_audit(server, request, "recording start", target, outcome);
}

void recordings_start(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct control *control = server->control;
    struct error error = {0};
    struct buffer out = {0};
    struct recording *recording;
    _cleanup_free_ struct recording_body *body = memory_zalloc(1, sizeof(*body));
    body->wanted = (struct recording_request){.name = body->name,
                                              .service = body->service,
                                              .selector = body->selector,
                                              .hosts = body->host_list,
                                              .rate_hz = 99,
                                              .seconds = 30,
                                              .wait_s = RECORDING_WAIT_S,
                                              .by = handler_actor(request)};
    if (!handler_read_json(request, "/api/v1/recordings", read_recording_request, body))
        return;
    pthread_mutex_lock(&control->lock);
    struct control_tenant *tenant = control_tenant(control, http_request_identity(request)->tenant);
    int r = recording_add(&tenant->book, &tenant->agents, &body->wanted, clock_ns(CLOCK_REALTIME),
                          &recording, &error);
    char outcome[64] = "";
    if (!r) {
        control_changed(control, tenant);
        recording_write(recording, true, &out);
        snprintf(outcome, sizeof(outcome), "%s for %zu agents", recording->id,
                 recording->part_count);
    }
    pthread_mutex_unlock(&control->lock);
    if (!r)
        r = control_save(control, &error);
    audit_start(server, request, body, r < 0 ? error.text : outcome);
    buffer_add_char(&out, '\n');
    if (r < 0)
        handler_respond_failure(request, &error);
    else
        http_respond(request, 201, "application/json", &out);
    buffer_release(&out);
}

void recordings_list(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct control *control = server->control;
    struct buffer out = {0};
    if (!parameters_known(request, "/api/v1/recordings"))
        return;
    buffer_add_char(&out, '[');
    pthread_mutex_lock(&control->lock);
    const struct recording_book *book =
        &control_tenant(control, http_request_identity(request)->tenant)->book;
    for (size_t i = book->count; i-- > 0;) {
        recording_write(book->list[i], false, &out);
        buffer_add_text(&out, i ? ",\n" : "");
    }
    pthread_mutex_unlock(&control->lock);
    buffer_add_text(&out, "]\n");
    api_respond(request, "application/json", &out);
    buffer_release(&out);
}

static void respond_one(struct http_request *request, struct server *server, bool stop)
{
    struct control *control = server->control;
    const char *id = http_request_rest(request);
    struct error error = {0};
    struct buffer out = {0};
    bool stopped = false;
    if (!parameters_known(request, "/api/v1/recordings/*"))
        return;
    pthread_mutex_lock(&control->lock);
    struct control_tenant *tenant = control_tenant(control, http_request_identity(request)->tenant);
    struct recording *recording = recording_find(&tenant->book, id);
    if (recording && stop && (stopped = recording_stop(recording)))
        control_changed(control, tenant);
    if (recording)
        recording_write(recording, true, &out);
    pthread_mutex_unlock(&control->lock);
    int r = stopped ? control_save(control, &error) : 0;
    if (stop)
        server_audit(server, request, "recording stop", id,
                     r < 0       ? error.text
                     : stopped   ? "done"
                     : recording ? "it was finished"
                                 : "unknown id");
    buffer_add_char(&out, '\n');
    if (!recording)
        http_respond_error(request, 404, "No recording %.40s.", id);
    else if (r < 0)
        http_respond_failure(request, &error);
    else
        api_respond(request, "application/json", &out);
    buffer_release(&out);
}

void recordings_one(struct http_request *request, void *server)
{
    respond_one(request, server, false);
}

void recordings_stop(struct http_request *request, void *server)
{
    respond_one(request, server, true);
}
