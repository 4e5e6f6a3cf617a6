// SPDX-License-Identifier: Apache-2.0
// GET /api/v1/alerts.

#include <math.h>
#include <string.h>

#include "server/handler/parameters.h"
#include "server/rules/live.h"

static void put_alert(struct json_writer *json, const struct alert *alert)
{
    json_write_object(json);
    json_member_text(json, "id", alert->id);
    json_member_text(json, "name", alert->name);
    json_member_text(json, "state", alert_state_names[alert->state]);
    json_write_key(json, "labels");
    labels_write_json(&alert->labels, json);
    if (isfinite(alert->value))
        json_member_number(json, "value", alert->value);
    json_member_text(json, "summary", alert->summary);
    json_member_text(json, "link", alert->link);
    json_member_text(json, "runbook", alert->runbook);
    json_member_fixed(json, "since", (double)alert->since_ns / 1e9, 3);
    if (alert->fired_ns)
        json_member_fixed(json, "fired", (double)alert->fired_ns / 1e9, 3);
    if (alert->ended_ns) {
        json_member_fixed(json, "ended", (double)alert->ended_ns / 1e9, 3);
        json_member_text(json, "reason", alert->reason);
    }
    json_member_bool(json, "muted", alert->muted);
    json_member_bool(json, "inhibited", alert->inhibited);
    json_write_object_end(json);
}

void alerts_list(struct http_request *request, void *userdata)
{
    static const char *const states[] = {"all", "pending", "firing", "resolved", NULL};
    struct server *server = userdata;
    struct rules *rules = server->rules;
    _cleanup_buffer_ struct buffer out = {0};
    struct json_writer json = json_writer(&out);
    struct error error = {0};
    unsigned state;
    if (!parameters_known(request, "/api/v1/alerts"))
        return;
    const char *service = http_request_query(request, "service");
    if (parameter_word(request, "state", states, 0, &state, &error) < 0) {
        http_respond_failure(request, &error);
        return;
    }
    const char *tenant = http_request_identity(request)->tenant;
    json_write_array(&json);
    pthread_mutex_lock(&rules->lock);
    for (size_t i = rules->alerts.count; i-- > 0;) {
        const struct alert *alert = &rules->alerts.list[i];
        if (!strcmp(alert->tenant, tenant) && (!state || state == alert->state + 1u) &&
            (!service || !*service || !strcmp(service, alert_label(alert, LABEL_SERVICE_NAME))))
            put_alert(&json, alert);
    }
    pthread_mutex_unlock(&rules->lock);
    json_write_array_end(&json);
    buffer_add_char(&out, '\n');
    api_respond(request, "application/json", &out);
}
