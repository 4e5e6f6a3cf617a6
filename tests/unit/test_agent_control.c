// SPDX-License-Identifier: Apache-2.0
// The agent's switch: what signals, the file and the server say, what of it is kept, and orders
// that are none.

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/control_parts.h"
#include "base/file.h"

static char folder[] = "/tmp/assay-switch-XXXXXX";
static char off_file[64], state_file[64];
static struct agent_settings settings;
static struct agent agent;

static int prepare(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(off_file, sizeof(off_file), "%s/off", folder);
    snprintf(state_file, sizeof(state_file), "%s/control", folder);
    settings = (struct agent_settings){.data = folder, .off_file = off_file};
    agent = (struct agent){.settings = &settings};
    agent_control_catch_signals();
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    unlink(state_file);
    unlink(off_file);
    return rmdir(folder);
}

static struct agent_control *open_control(void)
{
    struct agent_control *control;
    struct error error = {0};
    assert_int_equal(agent_control_open(&agent, &control, &error), 0);
    return control;
}

static struct agent_control *again(struct agent_control *control)
{
    agent_control_stop(control);
    agent_control_free(control);
    return open_control();
}

static void three_ways(void **state)
{
    (void)state;
    char reason[AGENT_CONTROL_REASON_BYTES];
    struct agent_control *control = open_control();
    assert_false(agent_control_off(control));
    raise(SIGUSR1);
    assert_true(agent_control_off(control));
    control = again(control);
    assert_true(agent_control_off(control));
    /* Each takes back what it said itself. */
    file_write_atomic(off_file, "", 0, NULL);
    raise(SIGUSR2);
    assert_true(agent_control_off(control));
    agent_control_reason(control, reason);
    assert_non_null(strstr(reason, off_file));
    unlink(off_file);
    assert_false(agent_control_off(control));
    control_server_says(control, true, "an incident\nagent other");
    assert_true(agent_control_off(control));
    char id[CONTROL_ID_BYTES];
    memcpy(id, control->id, sizeof(id));
    control = again(control);
    assert_true(agent_control_off(control));
    assert_string_equal(control->id, id); /* and nothing in a reason becomes another line */
    agent_control_reason(control, reason);
    assert_string_equal(reason, "turned off by the server: an incident agent other");
    raise(SIGUSR2);
    assert_true(agent_control_off(control));
    control_server_says(control, false, "");
    assert_false(agent_control_off(control));
    control = again(control);
    assert_false(agent_control_off(control));
    agent_control_free(control);
}

static const char orders[] =
    "{\"version\":\"12-ab\",\"report_seconds\":10,\"capture\":\"off\",\"reason\":\"why\","
    "\"recordings\":[{\"id\":\"r1\",\"name\":\"n\",\"service\":\"s\",\"rate\":999,\"seconds\":5,"
    "\"state\":\"pending\",\"stop\":false},{\"id\":\"r2\",\"name\":\"n\",\"service\":\"s\","
    "\"rate\":9,\"seconds\":5,\"state\":\"running\",\"stop\":false}]}";

static struct recording_job *job(struct agent_control *control, const char *id)
{
    for (size_t i = 0; i < CONTROL_JOBS_MAX; i++)
        if (!strcmp(control->jobs[i].order.id, id))
            return &control->jobs[i];
    return NULL;
}

static void orders_are_taken(void **state)
{
    (void)state;
    struct agent_control *control = open_control();
    struct buffer out = {0};
    assert_int_equal(control_take_orders(control, orders, strlen(orders), NULL), 0);
    assert_true(agent_control_off(control));
    assert_string_equal(control->version, "If-None-Match: \"12-ab\"");
    /* The settings allow none, and nobody here has begun the other. */
    assert_int_equal(job(control, "r1")->state, JOB_REFUSED);
    assert_int_equal(job(control, "r2")->state, JOB_FAILED);
    struct json_writer json = json_writer(&out);
    jobs_write(control, &json);
    assert_non_null(strstr(buffer_text(&out), "\"id\":\"r1\",\"state\":\"refused\""));
    /* Who knows of it asks no more, and it is forgotten. */
    static const char on[] = "{\"version\":\"1\",\"capture\":\"on\",\"recordings\":[]}";
    assert_int_equal(control_take_orders(control, on, strlen(on), NULL), 0);
    assert_false(agent_control_off(control));
    assert_null(job(control, "r1"));
    buffer_release(&out);
    agent_control_free(control);
}

static void samples_as_ordered(void **state)
{
    (void)state;
    static const char order[] =
        "{\"version\":\"1\",\"capture\":\"on\",\"sampling\":{\"rate\":500,\"wall\":true,"
        "\"wall_rate\":5,\"colour\":[1],\"reason\":\"an\\nincident\"},\"recordings\":[]}";
    static const char none[] = "{\"version\":\"2\",\"capture\":\"on\",\"recordings\":[]}";
    struct sampling_order wanted;
    char text[SAMPLING_TEXT_BYTES];
    struct agent_control *control = open_control();
    settings.rate_hz = settings.wall_rate_hz = 19;
    settings.sampling_allowed = true;
    settings.sampling_rate_max = settings.sampling_wall_rate_max = 99;
    agent_control_sampling(control, &wanted);
    assert_false(wanted.given);
    struct sampling sampling = sampling_within(&settings, &wanted);
    assert_true(sampling.rate_hz == 19 && !sampling.wall && !sampling.ordered && !sampling.cut);
    assert_int_equal(control_take_orders(control, order, strlen(order), NULL), 0);
    control = again(control); /* it is kept */
    agent_control_sampling(control, &wanted);
    assert_true(wanted.given && wanted.has_wall && wanted.wall);
    assert_string_equal(wanted.reason, "an incident");
    /* Never above this host's limits: not the rate, and not a collector that is off here. */
    sampling = sampling_within(&settings, &wanted);
    assert_int_equal(sampling.rate_hz, 99);
    assert_int_equal(sampling.wall_rate_hz, 5);
    assert_true(!sampling.wall && sampling.cut && sampling.ordered);
    sampling_explain(&sampling, &wanted, text);
    assert_string_equal(text, "99 Hz, wall time off, ordered by the server (more than this host's "
                              "limits permit): an incident");
    settings.rate_hz = 200; /* what the host does by itself is permitted */
    settings.wall = true;
    sampling = sampling_within(&settings, &wanted);
    assert_true(sampling.rate_hz == 200 && sampling.wall);
    settings.sampling_allowed = false;
    sampling = sampling_within(&settings, &wanted);
    assert_true(sampling.rate_hz == 200 && sampling.wall_rate_hz == 19 && sampling.cut);
    assert_int_equal(control_take_orders(control, none, strlen(none), NULL), 0);
    control = again(control);
    agent_control_sampling(control, &wanted);
    assert_false(wanted.given);
    settings.wall = false;
    agent_control_free(control);
}

static void a_damaged_order_is_none(void **state)
{
    (void)state;
    static const char *const wrong[] = {"sampling \n", "sampling x on 5 \n", "sampling 9 on\n",
                                        "sampling 5000 on 5 \n", "sampling 9 maybe 5 \n"};
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
        struct sampling_order wanted;
        char file[128];
        snprintf(file, sizeof(file), "agent a-1\n%s", wrong[i]);
        assert_int_equal(file_write_atomic(state_file, file, strlen(file), NULL), 0);
        struct agent_control *control = open_control();
        agent_control_sampling(control, &wanted);
        assert_false(wanted.given);
        agent_control_free(control);
    }
}

static void hanging_up_is_noticed_once(void **state)
{
    (void)state;
    assert_false(agent_control_reload());
    raise(SIGHUP);
    assert_true(agent_control_reload());
    assert_false(agent_control_reload());
}

static void limits_hold(void **state)
{
    (void)state;
    struct agent_control *control = open_control();
    settings.recordings = true;
    settings.recording_rate_max = 99;
    settings.recording_seconds_max = 4;
    settings.recordings_max = 1;
    static const char *const wrong[] = {"\"rate\":100,\"seconds\":4", "\"rate\":99,\"seconds\":5",
                                        "\"rate\":0,\"seconds\":4", "\"rate\":9,\"seconds\":0"};
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
        char text[256];
        snprintf(text, sizeof(text),
                 "{\"version\":\"1\",\"recordings\":[{\"id\":\"x%zu\",\"service\":\"s\",%s,"
                 "\"state\":\"pending\"}]}",
                 i, wrong[i]);
        assert_int_equal(control_take_orders(control, text, strlen(text), NULL), 0);
        text[0] = 0;
        snprintf(text, sizeof(text), "x%zu", i);
        assert_int_equal(job(control, text)->state, JOB_REFUSED);
    }
    settings.recordings = false;
    agent_control_stop(control);
    agent_control_free(control);
}

static void orders_that_are_none(void **state)
{
    (void)state;
    struct agent_control *control = open_control();
    size_t length = strlen(orders);
    for (size_t cut = 0; cut < length; cut++) {
        assert_true(control_take_orders(control, orders, cut, NULL) < 0);
        assert_false(agent_control_off(control));
    }
    char *copy = memory_strdup(orders);
    for (size_t i = 0; i < length; i++) {
        copy[i] ^= 0x21;
        control_take_orders(control, copy, length, NULL);
        copy[i] ^= 0x21;
    }
    free(copy);
    static const char *const wrong[] = {
        "",
        "null",
        "[]",
        "{\"version\":\"\\r\\nX: y\"}",
        "{\"version\":\"1\",\"recordings\":[{\"id\":\"../../x\"}]}",
        "{\"version\":\"1\",\"recordings\":[{\"id\":\"\"}]}",
        "{\"version\":\"1\",\"recordings\":[{\"id\":\"r1\",\"rate\":-1}]}"};
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++)
        assert_true(control_take_orders(control, wrong[i], strlen(wrong[i]), NULL) < 0);
    agent_control_stop(control);
    agent_control_free(control);
}

static void write_proc(const char *pid, const char *name, const char *content, size_t length)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s/%s", folder, pid, name);
    assert_int_equal(file_write_atomic(path, content, length, NULL), 0);
}

static void make_proc(const char *pid)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, pid);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/%s/exe", folder, pid);
    assert_int_equal(symlink("/proc/self/exe", path), 0);
    write_proc(pid, "cgroup", "0::/\n", 5);
}

static void remove_proc(const char *pid)
{
    static const char *const names[] = {"exe", "cgroup", "environ", ""};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/%s/%s", folder, pid, names[i]);
        remove(path);
    }
}

static void *publish(void *argument)
{
    static const char environment[] = "OTEL_SERVICE_NAME=shop";
    usleep(250000);
    write_proc(argument, "environ", environment, sizeof(environment));
    return NULL;
}

/* The environment of a process that starts another program is empty for a moment. */
static void processes_are_found(void **state)
{
    (void)state;
    pthread_t thread;
    pid_t pids[RECORDING_PIDS_MAX];
    size_t count = 0;
    struct error error = {0};
    struct label_policy_options limits = label_policy_defaults();
    struct agent_control *control = open_control();
    struct recording_job job = {.control = control, .order = {.service = "shop"}};
    settings.label_rules.policy = label_policy_new(&limits);
    settings.label_rules.redactor = redactor_new();
    targets_init(&job.targets, &settings);
    job.targets.proc = folder;
    make_proc("4242");
    assert_int_equal(pthread_create(&thread, NULL, publish, (void *)"4242"), 0);
    assert_int_equal(recording_find_pids(&job, pids, &count, &error), 0);
    assert_int_equal(count, 1);
    assert_int_equal(pids[0], 4242);
    pthread_join(thread, NULL);
    /* What a process publishes about itself is known to the continuous profile alone. */
    make_proc("77");
    struct target_service known[] = {{.pid = 77, .hash = target_service_hash("published")},
                                     {.pid = 78, .hash = target_service_hash("published")}};
    agent.services = known;
    agent.service_count = ARRAY_LENGTH(known);
    snprintf(job.order.service, sizeof(job.order.service), "published");
    assert_int_equal(recording_find_pids(&job, pids, &count, &error), 0);
    assert_int_equal(count, 1); /* the other one has ended */
    assert_int_equal(pids[0], 77);
    agent.services = NULL;
    agent.service_count = 0;
    atomic_store(&job.stop, true);
    assert_int_equal(recording_find_pids(&job, pids, &count, &error), -ESRCH);
    assert_non_null(strstr(error.text, "published"));
    targets_release(&job.targets);
    label_policy_free(settings.label_rules.policy);
    redactor_free(settings.label_rules.redactor);
    settings.label_rules.policy = NULL;
    settings.label_rules.redactor = NULL;
    remove_proc("77");
    remove_proc("4242");
    agent_control_free(control);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_ways),
        cmocka_unit_test(orders_are_taken),
        cmocka_unit_test(samples_as_ordered),
        cmocka_unit_test(a_damaged_order_is_none),
        cmocka_unit_test(hanging_up_is_noticed_once),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(orders_that_are_none),
        cmocka_unit_test(processes_are_found),
    };
    return cmocka_run_group_tests(tests, prepare, tidy);
}
