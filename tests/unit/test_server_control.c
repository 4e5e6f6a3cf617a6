// SPDX-License-Identifier: Apache-2.0
// The order book: states, expiry, bounds, what is remembered; and reports from people who mean no
// good.

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "server/control/control.h"

#define SECOND 1000000000ll

static struct control *open_control(const char *directory)
{
    struct control *control;
    struct error error = {0};
    assert_int_equal(control_open(directory, &control, &error), 0);
    return control;
}

static struct fleet_agent *put_agent(struct control_tenant *tenant, const char *id,
                                     const char *host, int64_t now_ns)
{
    struct fleet_agent agent = {.first_ns = now_ns, .last_ns = now_ns};
    bool forgot;
    snprintf(agent.id, sizeof(agent.id), "%s", id);
    snprintf(agent.host, sizeof(agent.host), "%s", host);
    labels_set(&agent.labels, "agent", id);
    labels_set(&agent.labels, "host", host);
    return agent_table_put(&tenant->agents, &agent, &forgot);
}

static struct recording *add(struct control_tenant *tenant, const char *selector, int64_t now_ns,
                             int expected)
{
    struct recording_request wanted = {.name = "",
                                       .service = "shop",
                                       .selector = selector,
                                       .rate_hz = 999,
                                       .seconds = 10,
                                       .wait_s = 60,
                                       .by = "me"};
    struct recording *recording = NULL;
    struct error error = {0};
    int r = recording_add(&tenant->book, &tenant->agents, &wanted, now_ns, &recording, &error);
    assert_int_equal(r, expected);
    assert_true(!r || error.text[0]);
    return recording;
}

static bool update(struct control_tenant *tenant, const char *id, const char *agent,
                   const char *state, uint64_t samples)
{
    struct agent_update update = {.samples = samples};
    snprintf(update.id, sizeof(update.id), "%s", id);
    snprintf(update.state, sizeof(update.state), "%s", state);
    return recording_update(&tenant->book, agent, &update);
}

/* ---- recordings ---- */

static void states_go_forward_only(void **state)
{
    (void)state;
    struct control *control = open_control(NULL);
    struct control_tenant *tenant = control_tenant(control, "t");
    int64_t now = 1000 * SECOND;
    put_agent(tenant, "a", "h1", now);
    put_agent(tenant, "b", "h2", now);
    struct recording *recording = add(tenant, "", now, 0);
    assert_int_equal(recording->part_count, 2);
    assert_int_equal(recording_state(recording), RECORDING_PENDING);
    assert_true(update(tenant, recording->id, "a", "running", 0));
    assert_int_equal(recording_state(recording), RECORDING_RUNNING);
    assert_false(update(tenant, recording->id, "a", "running", 0)); /* nothing new */
    assert_true(update(tenant, recording->id, "a", "uploading", 7));
    assert_false(update(tenant, recording->id, "a", "running", 7));
    assert_false(update(tenant, recording->id, "a", "pending", 7));
    assert_true(update(tenant, recording->id, "b", "refused", 0));
    assert_int_equal(recording_state(recording), RECORDING_UPLOADING);
    assert_true(update(tenant, recording->id, "a", "done", 7));
    assert_int_equal(recording_state(recording), RECORDING_DONE);
    /* What is over stays so. */
    assert_false(update(tenant, recording->id, "a", "failed", 9));
    assert_false(update(tenant, recording->id, "b", "running", 9));
    assert_int_equal(recording_samples(recording), 7);
    assert_false(recording_stop(recording));
    control_close(control);
}

static void agents_speak_for_themselves_only(void **state)
{
    (void)state;
    struct control *control = open_control(NULL);
    struct control_tenant *tenant = control_tenant(control, "t");
    put_agent(tenant, "a", "h1", SECOND);
    put_agent(tenant, "b", "h2", SECOND);
    struct recording *recording = add(tenant, "{host=\"h1\"}", SECOND, 0);
    assert_int_equal(recording->part_count, 1);
    assert_false(update(tenant, recording->id, "b", "done", 3));
    assert_false(update(tenant, "r0", "a", "done", 3));
    assert_false(update(tenant, recording->id, "a", "expired", 3));
    assert_false(update(tenant, recording->id, "a", "stopped", 3));
    assert_false(update(tenant, recording->id, "a", "nonsense", 3));
    assert_int_equal(recording_state(recording), RECORDING_PENDING);
    control_close(control);
}

static void time_passes(void **state)
{
    (void)state;
    struct control *control = open_control(NULL);
    struct control_tenant *tenant = control_tenant(control, "t");
    int64_t now = 5000 * SECOND;
    put_agent(tenant, "a", "h1", now);
    put_agent(tenant, "b", "h2", now);
    struct recording *recording = add(tenant, "", now, 0);
    update(tenant, recording->id, "a", "running", 0);
    assert_false(recording_book_expire(&tenant->book, now + 59 * SECOND));
    assert_true(recording_book_expire(&tenant->book, now + 61 * SECOND));
    assert_int_equal(recording->parts[1].state, RECORDING_EXPIRED);
    assert_int_equal(recording_state(recording), RECORDING_RUNNING);
    /* Who began has its time, and some more to send what it has. */
    assert_false(recording_book_expire(&tenant->book, now + 600 * SECOND));
    assert_true(recording_book_expire(&tenant->book, now + (61 + 10 + RECORDING_LATE_S) * SECOND));
    assert_int_equal(recording_state(recording), RECORDING_EXPIRED);
    /* Nobody is asked who is silent: three reports were missed. */
    put_agent(tenant, "a", "h1", now);
    add(tenant, "{agent=\"a\"}", now + 31 * SECOND, -ENOENT);
    add(tenant, "{agent=\"a\"}", now + 29 * SECOND, 0);
    control_close(control);
}

static void stopping(void **state)
{
    (void)state;
    struct control *control = open_control(NULL);
    struct control_tenant *tenant = control_tenant(control, "t");
    struct buffer out = {0};
    put_agent(tenant, "a", "h1", SECOND);
    put_agent(tenant, "b", "h2", SECOND);
    struct recording *recording = add(tenant, "", SECOND, 0);
    update(tenant, recording->id, "a", "running", 0);
    assert_true(recording_stop(recording));
    assert_false(recording_stop(recording));
    recording_write_orders(&tenant->book, "a", &out);
    assert_non_null(strstr(buffer_text(&out), "\"stop\":true"));
    out.length = 0;
    recording_write_orders(&tenant->book, "b", &out);
    assert_string_equal(buffer_text(&out), "[]");
    assert_true(update(tenant, recording->id, "a", "done", 1));
    assert_int_equal(recording_state(recording), RECORDING_DONE);
    buffer_release(&out);
    control_close(control);
}

static void the_book_is_bounded(void **state)
{
    (void)state;
    struct control *control = open_control(NULL);
    struct control_tenant *tenant = control_tenant(control, "t");
    char first[RECORDING_ID_BYTES];
    put_agent(tenant, "a", "h1", SECOND);
    memcpy(first, add(tenant, "", SECOND, 0)->id, sizeof(first));
    for (int i = 1; i < RECORDINGS_MAX; i++)
        add(tenant, "", SECOND, 0);
    add(tenant, "", SECOND, -EBUSY);
    assert_int_equal(tenant->book.count, RECORDINGS_MAX);
    /* One that is over makes room, the oldest first. */
    update(tenant, first, "a", "done", 1);
    add(tenant, "", SECOND, 0);
    assert_null(recording_find(&tenant->book, first));
    assert_int_equal(tenant->book.count, RECORDINGS_MAX);
    for (int i = 0; i < RECORDING_PARTS_MAX + 1; i++) {
        char id[16];
        snprintf(id, sizeof(id), "many-%d", i);
        put_agent(tenant, id, "h", SECOND);
    }
    add(tenant, "{host=\"h\"}", SECOND, -EINVAL);
    add(tenant, "{host=", SECOND, -EINVAL);
    control_close(control);
}

/* ---- agents ---- */

static void the_table_is_bounded(void **state)
{
    (void)state;
    struct control *control = open_control(NULL);
    struct control_tenant *tenant = control_tenant(control, "t");
    for (int i = 0; i < AGENTS_MAX + 10; i++) {
        char id[16];
        snprintf(id, sizeof(id), "a%d", i);
        put_agent(tenant, id, "h", (i + 1) * SECOND);
    }
    assert_int_equal(tenant->agents.count, AGENTS_MAX);
    assert_int_equal(tenant->agents.forgotten, 10);
    assert_null(agent_table_find(&tenant->agents, "a0"));
    assert_null(agent_table_find(&tenant->agents, "a9"));
    assert_non_null(agent_table_find(&tenant->agents, "a10"));
    /* The same one again is no other one. */
    put_agent(tenant, "a10", "h", 9999 * SECOND);
    assert_int_equal(tenant->agents.count, AGENTS_MAX);
    control_close(control);
}

static const char good_report[] =
    "{\"agent\":\"web-1\",\"host\":\"web\",\"version\":\"1.2\",\"sent_at\":12.5,\"capture\":"
    "\"off\","
    "\"labels\":{\"region\":\"eu\",\"agent\":\"liar\"},\"status\":{\"a\":1,\"b\":\"x\\u0000y\","
    "\"c\":true,\"d\":{\"e\":-2.5,\"f\":{\"g\":1}},\"h\":[1],\"I\":1},"
    "\"recordings\":[{\"id\":\"r1\",\"state\":\"running\",\"samples\":3,\"reason\":\"because\"}]}";

static struct fleet_agent *put_large(struct control *control, struct control_tenant *tenant, int number,
                                     size_t bytes)
{
    struct fleet_agent agent = {.last_ns = number * SECOND};
    snprintf(agent.id, sizeof(agent.id), "agent%d", number);
    agent.status = memory_zalloc(bytes + 1, 1);
    memset(agent.status, ' ', bytes);
    return control_put_agent(control, tenant, &agent);
}

static void who_sends_most_loses_first(void **state)
{
    (void)state;
    struct control *control = open_control(NULL);
    control_limit_agents(control, 1u << 20);
    struct control_tenant *hog = control_tenant(control, "hog"), *small;
    for (int i = 1; i <= 1000; i++)
        put_large(control, hog, i, 16 << 10);
    assert_true(hog->agents.bytes <= 1u << 20);
    assert_in_range(hog->agents.count, 32, 63);
    assert_null(agent_table_find(&hog->agents, "agent900"));
    assert_non_null(agent_table_find(&hog->agents, "agent1000"));
    /* Another tenant, also one whose clock is behind, keeps all that it has. */
    small = control_tenant(control, "small");
    for (int i = 1; i <= 100; i++)
        assert_string_equal(put_large(control, small, i, 1 << 10)->status + 1023, " ");
    assert_int_equal(small->agents.count, 100);
    assert_true(hog->agents.bytes + small->agents.bytes <= 1u << 20);
    /* One that says less takes less, and the one that was heard last always stays. */
    put_large(control, small, 100, 0);
    assert_int_equal(small->agents.count, 100);
    control_limit_agents(control, 0);
    assert_int_equal(small->agents.count + hog->agents.count, 0);
    assert_int_equal(small->agents.bytes + hog->agents.bytes, 0);
    assert_non_null(put_large(control, hog, 1, 16 << 10)->status);
    assert_int_equal(hog->agents.count, 1);
    control_close(control);
}

static void reports_are_read(void **state)
{
    (void)state;
    _cleanup_agent_report_ struct agent_report report = {0};
    struct error error = {0};
    assert_int_equal(agent_report_parse(good_report, strlen(good_report), &report, &error), 0);
    assert_string_equal(report.agent.id, "web-1");
    assert_true(report.agent.off);
    assert_string_equal(labels_get(&report.agent.labels, "agent"), "web-1");
    assert_string_equal(labels_get(&report.agent.labels, "region"), "eu");
    assert_string_equal(report.agent.status,
                        "{\"a\":1,\"b\":\"x?y\",\"c\":true,\"d\":{\"e\":-2.5}}");
    assert_int_equal(report.update_count, 1);
    assert_int_equal(report.updates[0].samples, 3);
    assert_string_equal(report.updates[0].reason, "because");
}

/* Whatever is cut off or changed: a report or a sentence, never more. */
static void bad_reports_are_refused(void **state)
{
    (void)state;
    char text[sizeof(good_report)];
    size_t length = strlen(good_report);
    for (size_t cut = 0; cut < length; cut++) {
        struct agent_report report = {0};
        struct error error = {0};
        assert_true(agent_report_parse(good_report, cut, &report, &error) < 0);
        assert_true(error.text[0]);
    }
    for (size_t i = 0; i < length; i++)
        for (int flip = 1; flip < 256; flip <<= 1) {
            struct agent_report report = {0};
            memcpy(text, good_report, sizeof(text));
            text[i] ^= (char)flip;
            if (!agent_report_parse(text, length, &report, NULL)) {
                assert_true(agent_id_valid(report.agent.id));
                assert_true(strlen(report.agent.status ? report.agent.status : "") <=
                            AGENT_STATUS_BYTES + 2);
                agent_report_release(&report);
            }
        }
}

static void large_reports_stay_small(void **state)
{
    (void)state;
    struct buffer text = {0};
    struct agent_report report = {0};
    buffer_add_text(&text, "{\"agent\":\"a\",\"labels\":{");
    for (int i = 0; i < 200; i++)
        buffer_printf(&text, "%s\"l%d\":\"v\"", i ? "," : "", i);
    buffer_add_text(&text, "},\"status\":{");
    for (int i = 0; i < 400; i++)
        buffer_printf(&text, "%s\"k%d\":\"%0100d\"", i ? "," : "", i, i);
    buffer_add_text(&text, "}}");
    assert_int_equal(agent_report_parse(text.data, text.length, &report, NULL), 0);
    assert_true(report.agent.labels.count <= AGENT_LABELS_MAX + 2);
    assert_true(strlen(report.agent.status) <= AGENT_STATUS_BYTES + 2);
    assert_int_equal(report.agent.status[strlen(report.agent.status) - 1], '}');
    agent_report_release(&report);
    buffer_release(&text);
    assert_false(agent_id_valid(""));
    assert_false(agent_id_valid("a/b"));
    assert_false(agent_id_valid("a\"b"));
    assert_true(agent_id_valid("a-b.c:d_1"));
}

/* ---- rules ---- */

static bool may(struct control_tenant *tenant, const char *id)
{
    const struct control_rule *rule =
        control_rule_of(tenant, agent_table_find(&tenant->agents, id));
    return !rule || rule->on;
}

static void set(struct control *control, struct control_tenant *tenant, bool on,
                const char *selector, int wanted)
{
    struct error error = {0};
    int r = control_set(control, tenant, on, selector, "me", "why", SECOND, &error);
    assert_int_equal(r, wanted);
}

static void the_last_rule_counts(void **state)
{
    (void)state;
    struct control *control = open_control(NULL);
    struct control_tenant *tenant = control_tenant(control, "t");
    put_agent(tenant, "a", "h1", SECOND);
    put_agent(tenant, "b", "h2", SECOND);
    set(control, tenant, false, "{host=\"h1\"}", 0);
    assert_false(may(tenant, "a"));
    assert_true(may(tenant, "b"));
    set(control, tenant, false, "", 0);
    assert_int_equal(tenant->rule_count, 1); /* the first says nothing any more */
    assert_false(may(tenant, "b"));
    set(control, tenant, true, "{host=\"h2\"}", 0);
    assert_false(may(tenant, "a"));
    assert_true(may(tenant, "b"));
    set(control, tenant, false, "{host=\"h2\"}", 0);
    assert_false(may(tenant, "b"));
    assert_int_equal(tenant->rule_count, 2);
    set(control, tenant, true, "{}", 0);
    assert_int_equal(tenant->rule_count, 0);
    assert_true(may(tenant, "a"));
    uint64_t version = tenant->version;
    set(control, tenant, false, "{host=", -EINVAL);
    assert_int_equal(tenant->version, version);
    for (int i = 0; i < CONTROL_RULES_MAX; i++) {
        char selector[32];
        snprintf(selector, sizeof(selector), "{host=\"x%d\"}", i);
        set(control, tenant, false, selector, 0);
    }
    set(control, tenant, false, "{host=\"y\"}", -EBUSY);
    /* However many there are, everything off and on always works. */
    set(control, tenant, false, "", 0);
    assert_false(may(tenant, "a"));
    control_close(control);
}

/* Expressions that take as long as they may, for each of many agents. */
#define SLOW "{x=~\"(?:a?){250}a{250}[bc]|y\"}"
#define SLOW_AGENTS 300

static void *decide_all(void *control)
{
    struct error error = {0};
    pthread_mutex_lock(&((struct control *)control)->lock);
    struct control_tenant *tenant = control_tenant(control, "t");
    pthread_mutex_unlock(&((struct control *)control)->lock);
    while (control_decide_all(control, tenant, &error) < 0)
        assert_int_equal(error.code, -EAGAIN);
    return NULL;
}

static size_t decided(struct control *control, const struct control_tenant *tenant)
{
    size_t count = 0;
    pthread_mutex_lock(&control->lock);
    for (size_t i = 0; i < tenant->agents.count; i++)
        count += tenant->agents.list[i]->decided == tenant->version + 1;
    pthread_mutex_unlock(&control->lock);
    return count;
}

static void slow_selectors_hold_nobody_up(void **state)
{
    (void)state;
    struct control *control = open_control(NULL);
    struct control_tenant *tenant = control_tenant(control, "t");
    char value[512] = "", id[32];
    pthread_t thread;
    memset(value, 'a', sizeof(value) - 1);
    for (int i = 0; i < SLOW_AGENTS; i++) {
        snprintf(id, sizeof(id), "agent%d", i);
        labels_set(&put_agent(tenant, id, id, SECOND)->labels, "x", value);
    }
    set(control, tenant, false, "{host=\"agent7\"}", 0);
    set(control, tenant, false, SLOW, 0);
    /* While all are decided for, others see how far that is. */
    assert_int_equal(pthread_create(&thread, NULL, decide_all, control), 0);
    size_t seen = 0, between = 0, last = 0;
    while (seen < SLOW_AGENTS) {
        seen = decided(control, tenant);
        between += seen > last && seen < SLOW_AGENTS;
        last = seen;
    }
    pthread_join(thread, NULL);
    assert_true(between > 0);
    /* An expression that takes too long selects nothing, and rules before it count. */
    assert_false(may(tenant, "agent7"));
    assert_true(may(tenant, "agent8"));
    /* What was decided stays until labels or orders change. */
    struct fleet_agent *agent = agent_table_find(&tenant->agents, "agent8");
    labels_set(&agent->labels, "x", "y");
    assert_true(may(tenant, "agent8"));
    put_agent(tenant, "agent8", "agent8", SECOND);
    labels_set(&agent_table_find(&tenant->agents, "agent8")->labels, "x", "y");
    assert_false(may(tenant, "agent8"));
    add(tenant, SLOW, SECOND, -EINVAL);
    control_close(control);
}

static void order(struct control *control, struct control_tenant *tenant, const char *text,
                  const char *selector, int wanted)
{
    struct sampling_wish wish = {0};
    struct error error = {0};
    struct source source;
    struct json json;
    assert_int_equal(source_open_memory(&source, "x", text, strlen(text), 1000, &error), 0);
    json_init(&json, &source, &error);
    int r = sampling_wish_read(&json, &wish);
    json_release(&json);
    source_release(&source);
    if (r >= 0)
        r = control_set_sampling(control, tenant, &wish, selector, "me", "why", SECOND, &error);
    assert_int_equal(r < 0 ? r : 0, wanted);
}

static const char *ordered(struct control *control, struct control_tenant *tenant, const char *id)
{
    static char text[512];
    struct buffer out = {0};
    control_write_orders(control, tenant, agent_table_find(&tenant->agents, id), "", &out);
    const char *at = strstr(buffer_text(&out), "\"sampling\":");
    snprintf(text, sizeof(text), "%.*s", at ? (int)(strchr(at, '}') + 1 - at) : 0, at ? at : "");
    buffer_release(&out);
    return text;
}

static void the_last_sampling_order_applies(void **state)
{
    (void)state;
    struct control *control = open_control(NULL);
    struct control_tenant *tenant = control_tenant(control, "t");
    put_agent(tenant, "a", "h1", SECOND);
    put_agent(tenant, "b", "h2", SECOND);
    assert_string_equal(ordered(control, tenant, "a"), "");
    order(control, tenant, "{\"rate\":9}", "{host=\"h1\"}", 0);
    assert_string_equal(ordered(control, tenant, "a"),
                        "\"sampling\":{\"rate\":9,\"reason\":\"why\"}");
    assert_string_equal(ordered(control, tenant, "b"), "");
    order(control, tenant, "{\"wall\":false,\"wall_rate\":5}", "", 0);
    assert_int_equal(tenant->sampling.count, 1);
    assert_string_equal(ordered(control, tenant, "a"),
                        "\"sampling\":{\"wall\":false,\"wall_rate\":5,\"reason\":\"why\"}");
    /* One that orders nothing takes an agent out, and ends everything for all. */
    order(control, tenant, "{}", "{host=\"h2\"}", 0);
    assert_string_equal(ordered(control, tenant, "b"), "");
    order(control, tenant, "{}", "", 0);
    assert_int_equal(tenant->sampling.count, 0);
    uint64_t version = tenant->version;
    static const char *const wrong[] = {"{\"rate\":0}",       "{\"rate\":1000}", "{\"rate\":-1}",
                                        "{\"wall\":\"off\"}", "{\"speed\":9}",   "[]",
                                        "{\"wall_rate\":1e9}"};
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++)
        order(control, tenant, wrong[i], "", -EBADMSG);
    order(control, tenant, "{\"rate\":9}", "{host=", -EINVAL);
    assert_int_equal(tenant->version, version);
    for (int i = 0; i < SAMPLING_RULES_MAX; i++) {
        char selector[32];
        snprintf(selector, sizeof(selector), "{host=\"x%d\"}", i);
        order(control, tenant, "{\"rate\":9}", selector, 0);
    }
    order(control, tenant, "{\"rate\":9}", "{host=\"y\"}", -EBUSY);
    order(control, tenant, "{\"rate\":9}", "", 0); /* for everybody always works */
    assert_int_equal(tenant->sampling.count, 1);
    control_close(control);
}

/* ---- on disk ---- */

static struct control *filled(const char *directory)
{
    struct control *control = open_control(directory);
    struct control_tenant *tenant = control_tenant(control, "shop \"one\"");
    int64_t now = clock_ns(CLOCK_REALTIME);
    put_agent(tenant, "a", "h1", now);
    put_agent(tenant, "b", "h\"2", now);
    control->agents_unsaved = true;
    struct recording *recording = add(tenant, "", now, 0);
    update(tenant, recording->id, "a", "refused", 0);
    set(control, tenant, false, "{host=~\"h.*\"}", 0);
    set(control, tenant, true, "{host=\"h1\"}", 0);
    order(control, tenant, "{\"rate\":9,\"wall\":false}", "{host=\"h1\"}", 0);
    return control;
}

static void a_restart_forgets_nothing(void **state)
{
    (void)state;
    char directory[] = "/tmp/assay-control-XXXXXX", command[64];
    assert_non_null(mkdtemp(directory));
    struct control *control = filled(directory);
    char version[CONTROL_VERSION_BYTES], other[CONTROL_VERSION_BYTES];
    control_version(control, control->tenants[0], version);
    control_close(control);
    control = open_control(directory);
    struct control_tenant *tenant = control_tenant(control, "shop \"one\"");
    assert_int_equal(control->tenant_count, 1);
    assert_int_equal(tenant->agents.count, 2);
    assert_true(may(tenant, "a"));
    assert_false(may(tenant, "b"));
    assert_string_equal(tenant->rules[0].reason, "why");
    assert_int_equal(tenant->sampling.count, 1);
    assert_string_equal(ordered(control, tenant, "a"),
                        "\"sampling\":{\"rate\":9,\"wall\":false,\"reason\":\"why\"}");
    assert_int_equal(tenant->sampling.list[0].since_ns, SECOND);
    assert_int_equal(tenant->book.count, 1);
    assert_int_equal(tenant->book.list[0]->parts[0].state, RECORDING_REFUSED);
    assert_int_equal(tenant->book.list[0]->parts[1].state, RECORDING_PENDING);
    assert_string_equal(tenant->book.list[0]->parts[1].host, "h\"2");
    /* Agents have to ask again. */
    control_version(control, tenant, other);
    assert_string_not_equal(version, other);
    control_close(control);
    snprintf(command, sizeof(command), "%s/" CONTROL_FILE, directory);
    unlink(command);
    snprintf(command, sizeof(command), "%s/" CONTROL_AGENTS_FILE, directory);
    unlink(command);
    assert_int_equal(rmdir(directory), 0);
}

static void damaged_files_are_noticed(void **state)
{
    (void)state;
    struct control *control = filled(NULL);
    struct buffer orders = {0}, agents = {0};
    control_write_file(control, &orders);
    control_write_agents(control, &agents);
    control_close(control);
    const struct buffer *files[] = {&orders, &agents};
    for (size_t f = 0; f < 2; f++) {
        for (size_t cut = 0; cut + 2 < files[f]->length; cut++) {
            control = open_control(NULL);
            assert_true(control_read_file(control, files[f]->data, cut, NULL) < 0);
            control_close(control);
        }
        char *copy = memory_strndup(files[f]->data, files[f]->length);
        for (size_t i = 0; i < files[f]->length; i++) {
            control = open_control(NULL);
            copy[i] ^= 0x11;
            control_read_file(control, copy, files[f]->length, NULL);
            copy[i] ^= 0x11;
            control_close(control);
        }
        free(copy);
    }
    buffer_release(&orders);
    buffer_release(&agents);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_go_forward_only),
        cmocka_unit_test(agents_speak_for_themselves_only),
        cmocka_unit_test(time_passes),
        cmocka_unit_test(stopping),
        cmocka_unit_test(the_book_is_bounded),
        cmocka_unit_test(the_table_is_bounded),
        cmocka_unit_test(who_sends_most_loses_first),
        cmocka_unit_test(reports_are_read),
        cmocka_unit_test(bad_reports_are_refused),
        cmocka_unit_test(large_reports_stay_small),
        cmocka_unit_test(the_last_rule_counts),
        cmocka_unit_test(slow_selectors_hold_nobody_up),
        cmocka_unit_test(the_last_sampling_order_applies),
        cmocka_unit_test(a_restart_forgets_nothing),
        cmocka_unit_test(damaged_files_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
