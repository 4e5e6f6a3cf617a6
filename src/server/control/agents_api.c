// SPDX-License-Identifier: Apache-2.0
// Routes for agents: reports, orders, and the list of agents.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "server/control/control.h"
#include "server/control/control_api.h"
#include "server/handler/parameters.h"
#include "server/symbols/symbols.h"

#define OFFSET_MAX_S 1e9

/* The lock is held. */
static struct fleet_agent *note(struct control *control, struct control_tenant *tenant,
                                struct agent_report *report)
{
    int64_t now_ns = clock_ns(CLOCK_REALTIME);
    struct fleet_agent *seen = &report->agent;
    seen->first_ns = seen->last_ns = now_ns;
    if (report->sent_at_s > 0)
        seen->clock_offset_s =
            fmax(-OFFSET_MAX_S, fmin(OFFSET_MAX_S, report->sent_at_s - (double)now_ns / 1e9));
    struct fleet_agent *agent = control_put_agent(control, tenant, seen);
    agent->reports++;
    for (size_t i = 0; i < report->update_count; i++)
        if (recording_update(&tenant->book, agent->id, &report->updates[i]))
            control->unsaved = true;
    return agent;
}

void agents_report(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct control *control = server->control;
    _cleanup_buffer_ struct buffer body = {0};
    _cleanup_agent_report_ struct agent_report report = {0};
    _cleanup_buffer_ struct buffer symbols = {0};
    struct buffer out = {0};
    struct error error = {0};
    const char *who = http_request_identity(request)->tenant;
    if (!parameters_known(request, "/api/v1/agents/report"))
        return;
    int r = http_request_read_all(request, &body, &error);
    if (!r)
        r = agent_report_parse(body.data, body.length, &report, &error);
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    symbols_hear_agent(server->symbols, who, report.agent.id, report.words, report.word_count,
                       &symbols);
    pthread_mutex_lock(&control->lock);
    struct control_tenant *tenant = control_tenant(control, who);
    struct fleet_agent *agent = note(control, tenant, &report);
    control_write_orders(control, tenant, agent, buffer_text(&symbols), &out);
    pthread_mutex_unlock(&control->lock);
    api_respond(request, "application/json", &out);
    buffer_release(&out);
}

/* Asked all the time by each agent: what it has is known by its version, so that there is nothing
 * to look up or to send most times. */
void agents_orders(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct control *control = server->control;
    const char *id = http_request_query(request, "agent");
    const char *known = http_request_header(request, "If-None-Match");
    struct buffer out = {0};
    char version[CONTROL_VERSION_BYTES], tag[CONTROL_VERSION_BYTES + 2];
    if (!parameters_known(request, "/api/v1/agents/orders"))
        return;
    if (!id || !agent_id_valid(id)) {
        http_respond_error(request, 400, "The parameter agent is missing.");
        return;
    }
    pthread_mutex_lock(&control->lock);
    struct control_tenant *tenant = control_tenant(control, http_request_identity(request)->tenant);
    control_version(control, tenant, version);
    snprintf(tag, sizeof(tag), "\"%s\"", version);
    bool same = known && !strcmp(known, tag);
    struct fleet_agent *agent = same ? NULL : agent_table_find(&tenant->agents, id);
    if (agent)
        control_write_orders(control, tenant, agent, "", &out);
    pthread_mutex_unlock(&control->lock);
    http_respond_header(request, "ETag", tag);
    if (same)
        http_respond_text(request, 304, "", "");
    else if (agent)
        api_respond(request, "application/json", &out);
    else
        http_respond_error(request, 404, "The agent %s has not reported yet.", id);
    buffer_release(&out);
}

void agents_list(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct control *control = server->control;
    int64_t now_ns = clock_ns(CLOCK_REALTIME);
    struct buffer out = {0};
    struct error error = {0};
    if (!parameters_known(request, "/api/v1/agents"))
        return;
    pthread_mutex_lock(&control->lock);
    struct control_tenant *tenant = control_tenant(control, http_request_identity(request)->tenant);
    pthread_mutex_unlock(&control->lock);
    if (control_decide_all(control, tenant, &error) < 0) {
        http_respond_failure(request, &error);
        return;
    }
    buffer_add_char(&out, '[');
    pthread_mutex_lock(&control->lock);
    for (size_t i = 0; i < tenant->agents.count; i++) {
        const struct control_rule *rule = control_rule_of(tenant, tenant->agents.list[i]);
        buffer_add_text(&out, i ? ",\n" : "");
        fleet_agent_write(tenant->agents.list[i], now_ns, !rule || rule->on, &out);
    }
    pthread_mutex_unlock(&control->lock);
    buffer_add_text(&out, "]\n");
    api_respond(request, "application/json", &out);
    buffer_release(&out);
}
