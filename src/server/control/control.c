// SPDX-License-Identifier: Apache-2.0
// Capture rules, the orders for agents, and when they are saved: see control.h.

#include "server/control/control.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "io/json_write.h"
#include "server/handler/handler.h"

#define FILE_BYTES_MAX (256u << 20)
#define SAVE_AGENTS_NS 60000000000ll
#define DECIDE_NS 5000000ll        /* of CPU time, for the selectors that one agent is tested by */
#define DECIDE_TURN_NS 5000000ll   /* with the lock held */
#define DECIDE_PAUSE_NS 1000000ll  /* for others that want it */
#define DECIDE_ALL_NS 5000000000ll /* for the agents of a tenant */

/* ---- tenants ---- */

struct control_tenant *control_tenant(struct control *control, const char *name)
{
    for (size_t i = 0; i < control->tenant_count; i++)
        if (!strcmp(control->tenants[i]->name, name))
            return control->tenants[i];
    struct control_tenant *tenant = memory_zalloc(1, sizeof(*tenant));
    snprintf(tenant->name, sizeof(tenant->name), "%s", name);
    array_reserve(control->tenants, control->tenant_capacity, control->tenant_count + 1);
    control->tenants[control->tenant_count++] = tenant;
    return tenant;
}

static void rule_release(struct control_rule *rule)
{
    selector_release(&rule->selector);
    free(rule->text);
}

static void tenant_free(struct control_tenant *tenant)
{
    agent_table_release(&tenant->agents);
    for (size_t i = 0; i < tenant->rule_count; i++)
        rule_release(&tenant->rules[i]);
    free(tenant->rules);
    sampling_rules_release(&tenant->sampling);
    recording_book_release(&tenant->book);
    free(tenant);
}

/* Of all tenants, by what the agents take, the one that is above the limits most; NULL: they hold. */
static struct control_tenant *too_large(struct control *control)
{
    struct control_tenant *largest = NULL;
    size_t bytes = 0, count = 0;
    for (size_t i = 0; i < control->tenant_count; i++) {
        struct control_tenant *tenant = control->tenants[i];
        bytes += tenant->agents.bytes;
        count += tenant->agents.count;
        if (!largest || tenant->agents.bytes > largest->agents.bytes)
            largest = tenant;
    }
    return count > AGENTS_MAX_ALL || bytes > control->agent_bytes_max ? largest : NULL;
}

void control_limit_agents(struct control *control, size_t bytes)
{
    struct control_tenant *tenant;
    pthread_mutex_lock(&control->lock);
    control->agent_bytes_max = MIN(bytes, (size_t)AGENTS_BYTES_MAX);
    while ((tenant = too_large(control)) && agent_table_forget_oldest(&tenant->agents, NULL))
        control->agents_unsaved = true;
    pthread_mutex_unlock(&control->lock);
}

struct fleet_agent *control_put_agent(struct control *control, struct control_tenant *tenant,
                                      struct fleet_agent *seen)
{
    bool forgot;
    struct fleet_agent *agent = agent_table_put(&tenant->agents, seen, &forgot);
    struct control_tenant *largest;
    control->agents_unsaved = true;
    while ((largest = too_large(control)) && agent_table_forget_oldest(&largest->agents, agent))
        ;
    return agent;
}

void control_changed(struct control *control, struct control_tenant *tenant)
{
    tenant->version++;
    control->unsaved = true;
}

void control_version(const struct control *control, const struct control_tenant *tenant,
                     char ret_text[CONTROL_VERSION_BYTES])
{
    snprintf(ret_text, CONTROL_VERSION_BYTES, "%llx-%llx", (unsigned long long)control->run,
             (unsigned long long)tenant->version);
}

/* ---- rules ---- */

static void remove_rule(struct control_tenant *tenant, size_t position)
{
    rule_release(&tenant->rules[position]);
    memmove(tenant->rules + position, tenant->rules + position + 1,
            (--tenant->rule_count - position) * sizeof(*tenant->rules));
}

/* A rule for all agents replaces those before it; a rule that turns on what is on has no effect. */
static void tidy_rules(struct control_tenant *tenant)
{
    for (size_t i = tenant->rule_count; i-- > 0;)
        if (!tenant->rules[i].selector.count) {
            while (i--)
                remove_rule(tenant, 0);
            break;
        }
    while (tenant->rule_count && tenant->rules[0].on)
        remove_rule(tenant, 0);
}

int control_set(struct control *control, struct control_tenant *tenant, bool on,
                const char *selector, const char *by, const char *reason, int64_t now_ns,
                struct error *error)
{
    struct control_rule rule = {.on = on, .since_ns = now_ns};
    struct buffer text = {0};
    int r = selector_parse(selector, strlen(selector), &rule.selector, error);
    if (r < 0)
        return r;
    selector_write(&text, &rule.selector);
    rule.text = memory_strndup(buffer_text(&text), text.length);
    buffer_release(&text);
    snprintf(rule.by, sizeof(rule.by), "%s", by);
    snprintf(rule.reason, sizeof(rule.reason), "%s", reason);
    for (size_t i = tenant->rule_count; i-- > 0;)
        if (!strcmp(tenant->rules[i].text, rule.text))
            remove_rule(tenant, i);
    if (rule.selector.count && tenant->rule_count >= CONTROL_RULES_MAX) {
        rule_release(&rule);
        return error_set(
            error, -EBUSY,
            "The limit of %d rules is reached; turn capture on or off for all agents first.",
            CONTROL_RULES_MAX);
    }
    array_reserve(tenant->rules, tenant->rule_capacity, tenant->rule_count + 1);
    tenant->rules[tenant->rule_count++] = rule;
    tidy_rules(tenant);
    control_changed(control, tenant);
    return 0;
}

int control_set_sampling(struct control *control, struct control_tenant *tenant,
                         const struct sampling_wish *wish, const char *selector, const char *by,
                         const char *reason, int64_t now_ns, struct error *error)
{
    int r = sampling_rules_add(&tenant->sampling, wish, selector, by, reason, now_ns, error);
    if (!r)
        control_changed(control, tenant);
    return r;
}

void control_decide(const struct control_tenant *tenant, struct fleet_agent *agent)
{
    struct match_budget budget = {.limit_ns = DECIDE_NS};
    struct matching matching;
    if (agent->decided == tenant->version + 1)
        return;
    agent->rule = agent->sampling_rule = SIZE_MAX;
    matching_begin(&matching, &budget);
    for (size_t i = tenant->rule_count; i-- > 0 && agent->rule == SIZE_MAX;)
        if (agent_is_selected(agent, &tenant->rules[i].selector, &matching))
            agent->rule = i;
    for (size_t i = tenant->sampling.count; i-- > 0 && agent->sampling_rule == SIZE_MAX;)
        if (agent_is_selected(agent, &tenant->sampling.list[i].selector, &matching))
            agent->sampling_rule = i;
    agent->decided = tenant->version + 1;
}

const struct control_rule *control_rule_of(const struct control_tenant *tenant,
                                           struct fleet_agent *agent)
{
    control_decide(tenant, agent);
    return agent->rule == SIZE_MAX ? NULL : &tenant->rules[agent->rule];
}

static const struct sampling_rule *sampling_rule_of(const struct control_tenant *tenant,
                                                    struct fleet_agent *agent)
{
    control_decide(tenant, agent);
    return agent->sampling_rule == SIZE_MAX ? NULL : &tenant->sampling.list[agent->sampling_rule];
}

int control_decide_all(struct control *control, struct control_tenant *tenant, struct error *error)
{
    int64_t began_ns = monotonic_ns(), turn_ns = began_ns;
    size_t at = 0;
    bool more = true;
    while (more && monotonic_ns() - began_ns < DECIDE_ALL_NS) {
        pthread_mutex_lock(&control->lock);
        turn_ns = monotonic_ns();
        while (at < tenant->agents.count && monotonic_ns() - turn_ns < DECIDE_TURN_NS)
            control_decide(tenant, tenant->agents.list[at++]);
        more = at < tenant->agents.count;
        pthread_mutex_unlock(&control->lock);
        if (more)
            nanosleep(&(struct timespec){.tv_nsec = DECIDE_PAUSE_NS}, NULL);
    }
    return more ? error_set(error, -EAGAIN,
                            "The selectors of orders take too long to match; use simpler ones.")
                : 0;
}

/* ---- as JSON ---- */

void control_write_orders(const struct control *control, const struct control_tenant *tenant,
                          struct fleet_agent *agent, const char *more, struct buffer *out)
{
    const struct control_rule *rule = control_rule_of(tenant, agent);
    char version[CONTROL_VERSION_BYTES];
    control_version(control, tenant, version);
    struct json_writer json = json_writer(out);
    json_write_object(&json);
    json_member_text(&json, "version", version);
    json_member_unsigned(&json, "report_seconds", AGENT_INTERVAL_S);
    json_member_text(&json, "capture", rule && !rule->on ? "off" : "on");
    json_member_text(&json, "reason", rule ? rule->reason : "");
    const struct sampling_rule *sampling = sampling_rule_of(tenant, agent);
    if (sampling && !sampling_wish_empty(&sampling->wish)) {
        json_write_key(&json, "sampling");
        json_write_object(&json);
        sampling_wish_members(&sampling->wish, &json);
        json_member_text(&json, "reason", sampling->reason);
        json_write_object_end(&json);
    }
    json_write_key(&json, "recordings");
    recording_write_orders(&tenant->book, agent->id, out);
    buffer_printf(out, "%s}\n", more);
}

static void write_rule(const struct control_rule *rule, struct json_writer *json)
{
    json_write_object(json);
    json_member_text(json, "capture", rule->on ? "on" : "off");
    json_member_fixed(json, "since", (double)rule->since_ns / 1e9, 3);
    json_member_text(json, "selector", rule->text);
    json_member_text(json, "by", rule->by);
    json_member_text(json, "reason", rule->reason);
    json_write_object_end(json);
}

void control_write(struct control *control, struct control_tenant *tenant, int64_t now_ns,
                   struct buffer *out)
{
    size_t silent = 0, off = 0, wanted_off = 0, waiting = 0;
    char version[CONTROL_VERSION_BYTES];
    control_version(control, tenant, version);
    for (size_t i = 0; i < tenant->agents.count; i++) {
        struct fleet_agent *agent = tenant->agents.list[i];
        const struct control_rule *rule = control_rule_of(tenant, agent);
        bool to_be_off = rule && !rule->on;
        silent += agent_silent(agent, now_ns);
        off += agent->off;
        wanted_off += to_be_off;
        waiting += to_be_off && !agent->off;
    }
    struct json_writer json = json_writer(out);
    json_write_object(&json);
    json_member_text(&json, "version", version);
    json_write_key(&json, "rules");
    json_write_array(&json);
    for (size_t i = 0; i < tenant->rule_count; i++)
        write_rule(&tenant->rules[i], &json);
    json_write_array_end(&json);
    json_write_key(&json, "sampling");
    sampling_rules_write(&tenant->sampling, false, &json);
    json_write_key(&json, "agents");
    json_write_object(&json);
    json_member_unsigned(&json, "known", tenant->agents.count);
    json_member_unsigned(&json, "silent", silent);
    json_member_unsigned(&json, "off", off);
    json_member_unsigned(&json, "wanted_off", wanted_off);
    json_member_unsigned(&json, "not_off_yet", waiting);
    json_write_object_end(&json);
    json_write_object_end(&json);
    buffer_add_char(out, '\n');
}

void control_write_metrics(struct control *control, struct buffer *out)
{
    size_t known = 0, silent = 0, off = 0, sampling = 0, states[RECORDING_STATES] = {0};
    int64_t now_ns = clock_ns(CLOCK_REALTIME);
    pthread_mutex_lock(&control->lock);
    for (size_t i = 0; i < control->tenant_count; i++) {
        const struct control_tenant *tenant = control->tenants[i];
        known += tenant->agents.count;
        sampling += tenant->sampling.count;
        for (size_t k = 0; k < tenant->agents.count; k++) {
            silent += agent_silent(tenant->agents.list[k], now_ns);
            off += tenant->agents.list[k]->off;
        }
        for (size_t k = 0; k < tenant->book.count; k++)
            states[recording_state(tenant->book.list[k])]++;
    }
    pthread_mutex_unlock(&control->lock);
    buffer_printf(out,
                  "# HELP assay_agents Known agents, by state.\n# TYPE assay_agents "
                  "gauge\nassay_agents{state=\"reporting\"} %zu\nassay_agents{state=\"silent\"} "
                  "%zu\n# HELP assay_agents_off Agents with capture turned off.\n# TYPE "
                  "assay_agents_off gauge\nassay_agents_off %zu\n# HELP assay_sampling_orders "
                  "Orders for rates and collectors.\n# TYPE assay_sampling_orders "
                  "gauge\nassay_sampling_orders %zu\n# HELP assay_recordings Known "
                  "recordings, by state.\n# TYPE assay_recordings gauge\n",
                  known - silent, silent, off, sampling);
    for (unsigned i = 0; i < RECORDING_STATES; i++)
        buffer_printf(out, "assay_recordings{state=\"%s\"} %zu\n", recording_state_name(i),
                      states[i]);
}

/* ---- on disk ---- */

static int save(struct control *control, const char *name, bool agents, struct error *error)
{
    _cleanup_buffer_ struct buffer path = {0};
    _cleanup_buffer_ struct buffer text = {0};
    pthread_mutex_lock(&control->lock);
    if (agents) {
        control_write_agents(control, &text);
        control->agents_unsaved = false;
        control->agents_saved_ns = monotonic_ns();
    } else {
        control_write_file(control, &text);
        control->unsaved = false;
    }
    pthread_mutex_unlock(&control->lock);
    buffer_printf(&path, "%s/%s", control->directory, name);
    int r = file_write_atomic(buffer_text(&path), text.data, text.length, error);
    if (r < 0) {
        pthread_mutex_lock(&control->lock);
        *(agents ? &control->agents_unsaved : &control->unsaved) = true;
        pthread_mutex_unlock(&control->lock);
    }
    return r;
}

int control_save(struct control *control, struct error *error)
{
    if (!control->directory)
        return 0;
    pthread_mutex_lock(&control->saving);
    int r = save(control, CONTROL_FILE, false, error);
    pthread_mutex_unlock(&control->saving);
    return r;
}

void control_keep(struct control *control)
{
    struct error error = {0};
    int64_t now_ns = clock_ns(CLOCK_REALTIME);
    pthread_mutex_lock(&control->lock);
    for (size_t i = 0; i < control->tenant_count; i++)
        if (recording_book_expire(&control->tenants[i]->book, now_ns))
            control_changed(control, control->tenants[i]);
    bool orders = control->unsaved && control->directory;
    bool agents = control->agents_unsaved && control->directory &&
                  monotonic_ns() - control->agents_saved_ns > SAVE_AGENTS_NS;
    pthread_mutex_unlock(&control->lock);
    pthread_mutex_lock(&control->saving);
    /* A disk that is full is the store's to complain about; what is unsaved is tried again. */
    if (orders && save(control, CONTROL_FILE, false, &error) < 0)
        log_debug("%s", error.text);
    if (agents && save(control, CONTROL_AGENTS_FILE, true, &error) < 0)
        log_debug("%s", error.text);
    pthread_mutex_unlock(&control->saving);
}

static int load(struct control *control, const char *name,
                int (*read)(struct control *, const char *, size_t, struct error *),
                struct error *error)
{
    _cleanup_buffer_ struct buffer path = {0};
    _cleanup_buffer_ struct buffer text = {0};
    buffer_printf(&path, "%s/%s", control->directory, name);
    if (access(buffer_text(&path), F_OK) < 0 && errno == ENOENT)
        return 0;
    int r = file_read(path.data, FILE_BYTES_MAX, &text, error);
    if (!r)
        r = read(control, text.data, text.length, error);
    if (r < 0)
        error_prefix(error, "Failed to read the file %s", buffer_text(&path));
    return r;
}

int control_open(const char *directory, struct control **ret_control, struct error *error)
{
    struct control *control = memory_zalloc(1, sizeof(*control));
    pthread_mutex_init(&control->lock, NULL);
    pthread_mutex_init(&control->saving, NULL);
    control->run = random_bits();
    control->agent_bytes_max = AGENTS_BYTES_MAX;
    control->agents_saved_ns = monotonic_ns();
    control->directory = directory ? memory_strdup(directory) : NULL;
    struct error minor = {0}, found = {0};
    int r = directory ? load(control, CONTROL_FILE, control_read_file, &found) : 0;
    if (r < 0)
        error_set(error, r, "%s Repair it, or move it away: then all agents capture.", found.text);
    if (!r && directory && load(control, CONTROL_AGENTS_FILE, control_read_agents, &minor) < 0)
        log_warning("Failed to load the known agents: %s", minor.text);
    control->unsaved = control->agents_unsaved = false;
    if (r < 0) {
        free(control->directory);
        control->directory = NULL;
        control_close(control);
        return r;
    }
    *ret_control = control;
    return 0;
}

void control_close(struct control *control)
{
    struct error error = {0};
    if (!control)
        return;
    if (control->directory && (control->unsaved && control_save(control, &error) < 0))
        log_warning("%s", error.text);
    if (control->directory && control->agents_unsaved &&
        save(control, CONTROL_AGENTS_FILE, true, &error) < 0)
        log_warning("%s", error.text);
    for (size_t i = 0; i < control->tenant_count; i++)
        tenant_free(control->tenants[i]);
    free(control->tenants);
    free(control->directory);
    pthread_mutex_destroy(&control->lock);
    pthread_mutex_destroy(&control->saving);
    free(control);
}

/* ---- what agents cost ---- */

static bool read_cpu(const char *status, double *ret_cores)
{
    struct error error = {0};
    struct source source;
    struct json json;
    struct json_string key;
    bool found = false;
    if (source_open_memory(&source, "a status", status, strlen(status), AGENT_STATUS_BYTES,
                           &error) < 0)
        return false;
    json_init(&json, &source, &error);
    int r = json_object(&json);
    while (r >= 0 && !found && (r = json_next_key(&json, &key)) > 0) {
        found = json_is(&key, "cpu_share");
        r = found ? json_double(&json, ret_cores) : json_skip(&json);
    }
    json_release(&json);
    source_release(&source);
    return found && r >= 0;
}

size_t control_overhead(struct control *control, const char *name, int64_t since_ns,
                        double *ret_greatest)
{
    size_t count = 0;
    *ret_greatest = 0;
    pthread_mutex_lock(&control->lock);
    const struct control_tenant *tenant = control_tenant(control, name);
    for (size_t i = 0; i < tenant->agents.count; i++) {
        const struct fleet_agent *agent = tenant->agents.list[i];
        double cores;
        if (agent->last_ns < since_ns || !agent->status || !read_cpu(agent->status, &cores))
            continue;
        *ret_greatest = MAX(*ret_greatest, cores);
        count++;
    }
    pthread_mutex_unlock(&control->lock);
    return count;
}
