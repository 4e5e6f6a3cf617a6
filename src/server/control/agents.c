// SPDX-License-Identifier: Apache-2.0
// The table of agents: see agents.h. Reports are read in agents_report.c.

#include "server/control/agents.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "base/text.h"
#include "server/handler/handler.h"

#define SILENT_NS (AGENT_INTERVAL_S * AGENT_MISSED * 1000000000ll)

bool agent_id_valid(const char *id)
{
    size_t length = strlen(id);
    return length && length < AGENT_ID_BYTES &&
           strspn(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._:") ==
               length;
}

void fleet_agent_release(struct fleet_agent *agent)
{
    labels_release(&agent->labels);
    free(agent->status);
    *agent = (struct fleet_agent){0};
}

size_t fleet_agent_bytes(const struct fleet_agent *agent)
{
    return sizeof(*agent) + (agent->status ? strlen(agent->status) + 1 : 0) +
           agent->labels.capacity * sizeof(*agent->labels.list) +
           agent->labels.arena.total_bytes;
}

void agent_table_release(struct agent_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        fleet_agent_release(table->list[i]);
        free(table->list[i]);
    }
    free(table->list);
    free(table->hashes);
    *table = (struct agent_table){0};
}

static uint64_t hash_of(const char *id)
{
    return XXH3_64bits(id, strlen(id));
}

struct fleet_agent *agent_table_find(const struct agent_table *table, const char *id)
{
    uint64_t hash = hash_of(id);
    for (size_t i = 0; i < table->count; i++)
        if (table->hashes[i] == hash && !strcmp(table->list[i]->id, id))
            return table->list[i];
    return NULL;
}

bool agent_table_forget_oldest(struct agent_table *table, const struct fleet_agent *keep)
{
    size_t oldest = SIZE_MAX;
    for (size_t i = 0; i < table->count; i++)
        if (table->list[i] != keep &&
            (oldest == SIZE_MAX || table->list[i]->last_ns < table->list[oldest]->last_ns))
            oldest = i;
    if (oldest == SIZE_MAX)
        return false;
    table->bytes -= fleet_agent_bytes(table->list[oldest]);
    fleet_agent_release(table->list[oldest]);
    free(table->list[oldest]);
    table->list[oldest] = table->list[--table->count];
    table->hashes[oldest] = table->hashes[table->count];
    table->forgotten++;
    return true;
}

struct fleet_agent *agent_table_put(struct agent_table *table, struct fleet_agent *seen,
                                    bool *ret_forgot)
{
    struct fleet_agent *known = agent_table_find(table, seen->id);
    *ret_forgot = false;
    if (known) {
        seen->first_ns = known->first_ns;
        if (labels_equal(&seen->labels, &known->labels)) {
            seen->decided = known->decided;
            seen->rule = known->rule;
            seen->sampling_rule = known->sampling_rule;
        }
        seen->reports = known->reports;
        table->bytes -= fleet_agent_bytes(known);
        fleet_agent_release(known);
    } else {
        *ret_forgot = table->count >= AGENTS_MAX && agent_table_forget_oldest(table, NULL);
        array_reserve(table->list, table->capacity, table->count + 1);
        array_reserve(table->hashes, table->hash_capacity, table->count + 1);
        known = memory_zalloc(1, sizeof(*known));
        table->hashes[table->count] = hash_of(seen->id);
        table->list[table->count++] = known;
    }
    *known = *seen;
    *seen = (struct fleet_agent){0};
    table->bytes += fleet_agent_bytes(known);
    return known;
}

bool agent_is_selected(const struct fleet_agent *agent, const struct selector *selector,
                       struct matching *matching)
{
    struct error ignored = {0};
    for (size_t i = 0; i < selector->count; i++) {
        const struct matcher *matcher = &selector->matchers[i];
        const char *value = labels_get(&agent->labels, matcher->name);
        bool matches = false;
        if (matching_test(matching, matcher, value ? value : "", &matches, &ignored) < 0 ||
            !matches)
            return false;
    }
    return true;
}

bool agent_silent(const struct fleet_agent *agent, int64_t now_ns)
{
    return now_ns - agent->last_ns > SILENT_NS;
}

void fleet_agent_write(const struct fleet_agent *agent, int64_t now_ns, bool wanted,
                       struct buffer *out)
{
    struct json_writer json = json_writer(out);
    const char *status = agent->status ? agent->status : "null";
    json_write_object(&json);
    json_member_text(&json, "agent", agent->id);
    json_member_text(&json, "host", agent->host);
    json_member_text(&json, "version", agent->version);
    json_write_key(&json, "labels");
    labels_write_json(&agent->labels, &json);
    json_member_fixed(&json, "first", (double)agent->first_ns / 1e9, 3);
    json_member_fixed(&json, "last", (double)agent->last_ns / 1e9, 3);
    json_member_bool(&json, "silent", agent_silent(agent, now_ns));
    json_member_unsigned(&json, "reports", agent->reports);
    json_member_fixed(&json, "clock_offset_seconds", agent->clock_offset_s, 3);
    json_write_key(&json, "status");
    json_write_raw(&json, status, strlen(status)); /* it was checked when it came */
    json_member_text(&json, "capture", agent->off ? "off" : "on");
    json_member_text(&json, "capture_wanted", wanted ? "on" : "off");
    json_write_object_end(&json);
}
