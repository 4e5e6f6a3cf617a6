// SPDX-License-Identifier: Apache-2.0
// The fuzzer of what agents report and of the server's file of orders: what comes out of either is
// JSON within its limits, and a file that was read is written so that it reads the same.

#include <string.h>

#include "io/json.h"
#include "server/control/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void require_json(const char *text, size_t length)
{
    struct source source;
    struct json json;
    require(source_open_memory(&source, "fuzz", text, length, 1u << 28, NULL) == 0);
    json_init(&json, &source, NULL);
    require(json_skip(&json) >= 0 && json_end(&json) >= 0);
    json_release(&json);
    source_release(&source);
}

static void read_report(const char *text, size_t length)
{
    struct agent_report report;
    struct error error = {0};
    struct buffer out = {0};
    if (agent_report_parse(text, length, &report, &error) < 0) {
        require(error.text[0]);
        return;
    }
    require(agent_id_valid(report.agent.id));
    require(report.update_count <= AGENT_UPDATES_MAX);
    require(report.word_count <= SYMBOL_REQUEST_WORDS_MAX);
    for (size_t i = 0; i < report.word_count; i++)
        require(report.words[i].state <= SYMBOL_REQUEST_REFUSED && *report.words[i].key &&
                strspn(report.words[i].key, "0123456789abcdef") == strlen(report.words[i].key));
    require(report.agent.labels.count <= AGENT_LABELS_MAX + 2);
    require(!report.agent.status || strlen(report.agent.status) <= AGENT_STATUS_BYTES + 2);
    fleet_agent_write(&report.agent, 0, true, &out);
    require_json(out.data, out.length);
    buffer_release(&out);
    agent_report_release(&report);
}

static struct control *empty(void)
{
    struct control *control;
    require(control_open(NULL, &control, NULL) == 0);
    return control;
}

static void write_both(struct control *control, struct buffer *out)
{
    control_write_file(control, out);
    control_write_agents(control, out);
}

static void read_file(const char *text, size_t length)
{
    struct buffer orders = {0}, agents = {0}, first = {0}, second = {0};
    struct control *control = empty();
    struct error error = {0};
    if (control_read_file(control, text, length, &error) < 0) {
        require(error.text[0]);
        control_close(control);
        return;
    }
    control_write_file(control, &orders);
    control_write_agents(control, &agents);
    require_json(orders.data, orders.length);
    write_both(control, &first);
    control_close(control);
    control = empty();
    require(control_read_file(control, orders.data, orders.length, NULL) == 0);
    require(control_read_agents(control, agents.data, agents.length, NULL) == 0);
    write_both(control, &second);
    require(first.length == second.length && !memcmp(first.data, second.data, first.length));
    control_close(control);
    buffer_release(&orders);
    buffer_release(&agents);
    buffer_release(&first);
    buffer_release(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    read_report((const char *)data, length);
    read_file((const char *)data, length);
    return 0;
}
