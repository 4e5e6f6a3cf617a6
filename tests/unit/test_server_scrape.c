// SPDX-License-Identifier: Apache-2.0
// What is scraped when: settings, groups of targets, relabelling, files that change, the spread
// over an interval; and how much senders may send.

#include <math.h>
#include <sys/stat.h>

#include "base/log.h"
#include "server/ingest/quota.h"
#include "server/scrape/discovery_remote.h"
#include "server/scrape/scrape.h"
#include "server/server.h"
#include "unit.h"

/* ---- settings ---- */

struct read {
    struct yaml_tree tree;
    struct problems problems;
    struct scrape_jobs *jobs;
};

static void read_text(struct read *read, const char *text)
{
    struct error error = {0};
    struct settings settings;
    *read = (struct read){.problems.file = "c.yaml"};
    if (yaml_tree_read("c.yaml", text, strlen(text), &read->tree, &error) < 0)
        fail_msg("%s", error.text);
    settings_open(&settings, &read->problems, read->tree.root, "the configuration");
    read->jobs = scrape_jobs_read(&settings);
    settings_close(&settings);
}

static void read_release(struct read *read)
{
    scrape_jobs_unref(read->jobs);
    problems_release(&read->problems);
    yaml_tree_release(&read->tree);
}

static const struct scrape_profile *profile_of(const struct scrape_job *job, const char *path)
{
    for (size_t i = 0; i < job->profile_count; i++)
        if (!strcmp(job->profiles[i].path, path))
            return &job->profiles[i];
    return NULL;
}

static void defaults(void **state)
{
    (void)state;
    struct read read;
    read_text(&read, "scrape_configs: [{job_name: shop, static_configs: [{targets: ['h:1']}]}]");
    assert_int_equal(read.problems.count, 0);
    assert_int_equal(read.jobs->count, 1);
    const struct scrape_job *job = &read.jobs->list[0];
    assert_string_equal(job->scheme, "http");
    assert_int_equal(job->interval_ns, 15000000000ll);
    assert_int_equal(job->timeout_ns, 10000000000ll);
    assert_int_equal(job->profile_count, 5);
    assert_string_equal(job->profiles[0].name, "process_cpu");
    assert_int_equal(job->profiles[0].seconds, 14);
    assert_false(job->profiles[0].cumulative);
    const struct scrape_profile *memory = profile_of(job, "/debug/pprof/allocs");
    assert_true(memory && memory->cumulative && !memory->seconds);
    assert_false(profile_of(job, "/debug/pprof/goroutine")->cumulative);
    read_release(&read);
    read_text(&read, "");
    assert_int_equal(read.jobs->count, 0);
    read_release(&read);
}

static void all_keys(void **state)
{
    (void)state;
    struct read read;
    read_text(&read, "global: {scrape_interval: 30s, scrape_timeout: 5s}\n"
                     "scrape_configs:\n"
                     "- job_name: shop\n"
                     "  tenant: red\n"
                     "  scheme: https\n"
                     "  params: {debug: ['0'], x: a b}\n"
                     "  basic_auth: {username: u, password_file: p}\n"
                     "  tls_config: {ca_file: ca, cert_file: c, key_file: k, server_name: n,"
                     " insecure_skip_verify: true}\n"
                     "  profiling_config:\n"
                     "    path_prefix: /app\n"
                     "    pprof_config:\n"
                     "      process_cpu: {seconds: 5}\n"
                     "      memory: {delta: true}\n"
                     "      goroutine: {enabled: false}\n"
                     "      godeltaprof_mutex: {enabled: true}\n"
                     "      own: {path: /debug/own}\n"
                     "  relabel_configs: [{source_labels: [__address__], target_label: a}]\n"
                     "  static_configs: [{targets: [h:1, h:2], labels: {env: prod}}]\n"
                     "  file_sd_configs: [{files: [a.json, b*.yml], refresh_interval: 1m}]\n");
    if (read.problems.count)
        fail_msg("%s", buffer_text(&read.problems.text));
    const struct scrape_job *job = &read.jobs->list[0];
    assert_string_equal(job->tenant, "red");
    assert_int_equal(job->interval_ns, 30000000000ll);
    assert_int_equal(job->timeout_ns, 5000000000ll);
    assert_string_equal(job->user, "u");
    assert_string_equal(job->password_file, "p");
    assert_string_equal(job->server_name, "n");
    assert_true(job->insecure && job->redirects);
    assert_int_equal(job->file_count, 2);
    assert_int_equal(job->refresh_ns, 60000000000ll);
    assert_int_equal(profile_of(job, "/debug/pprof/profile")->seconds, 5);
    assert_int_equal(profile_of(job, "/debug/pprof/allocs")->seconds, 29);
    assert_false(profile_of(job, "/debug/pprof/allocs")->cumulative);
    assert_null(profile_of(job, "/debug/pprof/goroutine"));
    assert_string_equal(profile_of(job, "/debug/pprof/delta_mutex")->name, "mutex");
    assert_false(profile_of(job, "/debug/pprof/delta_mutex")->cumulative);
    assert_string_equal(profile_of(job, "/debug/own")->name, "own");
    assert_null(profile_of(job, "/debug/fgprof"));
    read_release(&read);
}

static void complaints(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"scrape_configs: [{}]", "requires a job_name"},
        {"scrape_configs: [{job_name: a}, {job_name: a}]", "Two jobs have the name \"a\""},
        {"scrape_configs: [{job_name: a, metrics_path: /x}]", "metrics_path"},
        {"scrape_configs: [{job_name: a, scheme: ftp}]", "scheme"},
        {"scrape_configs: [{job_name: a, scrape_interval: 1ms}]", "scrape_interval"},
        {"scrape_configs: [{job_name: a, basic_auth: {password: x}}]", "requires a username"},
        {"scrape_configs: [{job_name: a, basic_auth: {username: x, password: y, "
         "password_file: z}}]",
         "not both"},
        {"scrape_configs: [{job_name: a, basic_auth: {username: x}, bearer_token: t}]",
         "can't be used together"},
        {"scrape_configs: [{job_name: a, bearer_token: t, bearer_token_file: f}]", "Only one of"},
        {"scrape_configs: [{job_name: a, authorization: {type: Bearer}}]", "requires either"},
        {"scrape_configs: [{job_name: a, tls_config: {cert_file: x}}]", "both cert_file"},
        {"scrape_configs: [{job_name: a, static_configs: [{targets: ['http://x/']}]}]",
         "can't scrape \"http://x/\""},
        {"scrape_configs: [{job_name: a, static_configs: [{targets: [[x]]}]}]",
         "a group of targets must be"},
        {"scrape_configs: [{job_name: a, static_configs: [{adresses: [x]}]}]",
         "a group of targets must be"},
        {"scrape_configs: [{job_name: a, file_sd_configs: [{}]}]", "requires files"},
        {"scrape_configs: [{job_name: a, relabel_configs: [{action: keep, regex: '('}]}]", ":1:"},
        {"scrape_configs: [{job_name: a, params: {x: {y: z}}}]", "parameter's value"},
        {"scrape_configs: [{job_name: a, profiling_config: {pprof_config: {own: {}}}}]",
         "requires a path"},
        {"scrape_configs: [{job_name: a, profiling_config: {pprof_config: {memory: {on: 1}}}}]",
         "\"on\""},
        {"scrape_configs: {job_name: a}", "scrape_configs"},
        {"global: {evaluation: 1s}", "evaluation"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct read read;
        read_text(&read, cases[i].text);
        if (!read.problems.count || !strstr(buffer_text(&read.problems.text), cases[i].says))
            fail_msg("%s: \"%s\" doesn't say \"%s\"", cases[i].text,
                     buffer_text(&read.problems.text), cases[i].says);
        read_release(&read);
    }
}

/* ---- targets ---- */

static void targets(void **state)
{
    (void)state;
    struct read read;
    read_text(&read,
              "scrape_configs:\n"
              "- job_name: shop\n"
              "  params: {a: [x y, z]}\n"
              "  profiling_config: {path_prefix: app/}\n"
              "  static_configs: [{targets: ['h:1', 'drop:1', 'other:1'], labels: {env: prod, "
              "__meta_zone: z1}}]\n"
              "  relabel_configs:\n"
              "  - {source_labels: [__address__], regex: 'drop:.*', action: drop}\n"
              "  - {source_labels: [__address__], regex: 'other:(.*)', target_label: __address__, "
              "replacement: '[::1]:$1'}\n"
              "  - {source_labels: [__address__], regex: '\\[.*', target_label: __scheme__, "
              "replacement: https}\n"
              "  - {source_labels: [__address__], regex: '\\[.*', target_label: __param_a, "
              "replacement: q}\n"
              "  - {source_labels: [__address__], regex: '\\[.*', target_label: service_name, "
              "replacement: till}\n"
              "  - {source_labels: [__meta_zone], target_label: zone}\n");
    assert_int_equal(read.problems.count, 0);
    const struct scrape_job *job = &read.jobs->list[0];
    const struct target_group *group = &job->groups.list[0];
    struct discovered target;
    struct error error = {0};
    _cleanup_buffer_ struct buffer text = {0};

    assert_int_equal(discovery_target(job, group, "h:1", &target, &error), 1);
    assert_string_equal(target.base, "http://h:1/app");
    assert_string_equal(target.query, "a=x%20y&a=z");
    labels_write(&text, &target.labels);
    assert_buffer(&text, "{env=\"prod\",instance=\"h:1\",job=\"shop\",service_name=\"shop\","
                         "zone=\"z1\"}");
    discovered_release(&target);

    assert_int_equal(discovery_target(job, group, "drop:1", &target, &error), 0);

    assert_int_equal(discovery_target(job, group, "other:1", &target, &error), 1);
    assert_string_equal(target.base, "https://[::1]:1/app");
    assert_string_equal(target.query, "a=q&a=z");
    assert_string_equal(labels_get(&target.labels, "service_name"), "till");
    assert_string_equal(labels_get(&target.labels, "instance"), "[::1]:1");
    discovered_release(&target);

    static const char *const bad[] = {"", "a/b", "a b", "u@h", ":80", "h?x", "h\n"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        assert_int_equal(discovery_target(job, group, bad[i], &target, &error), -EINVAL);
    assert_says(&error, "host:port");
    read_release(&read);
}

static void write_file(const char *path, const char *text)
{
    char temporary[64];
    snprintf(temporary, sizeof(temporary), "%s.new", path);
    FILE *file = fopen(temporary, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(rename(temporary, path), 0);
}

static const char groups_json[] =
    "[{\"targets\":[\"a:1\",\"b\\u002f:1\"],\"labels\":{\"x\":\"\\ud83d\\ude00\",\"y\":\"2\"}},\n"
    "\t{\"targets\":[]}]";
static const char groups_yaml[] = "- targets: [a:1, b:2]\n  labels: {x: 1}\n- targets:\n";

static void group_files(void **state)
{
    (void)state;
    struct target_groups groups;
    struct error error = {0};
    write_file("a.json", groups_json);
    assert_int_equal(target_groups_read_file("a.json", &groups, &error), 0);
    assert_int_equal(groups.count, 2);
    assert_string_equal(groups.list[0].addresses[1], "b/:1");
    assert_string_equal(labels_get(&groups.list[0].labels, "x"), "\xf0\x9f\x98\x80");
    target_groups_release(&groups);
    write_file("a.yml", groups_yaml);
    assert_int_equal(target_groups_read_file("a.yml", &groups, &error), 0);
    assert_int_equal(groups.count, 2);
    assert_int_equal(groups.list[0].count, 2);
    assert_string_equal(labels_get(&groups.list[0].labels, "x"), "1");
    target_groups_release(&groups);
    write_file("empty.yaml", "");
    assert_int_equal(target_groups_read_file("empty.yaml", &groups, &error), 0);
    assert_int_equal(groups.count, 0);
    write_file("a.txt", "[]");
    assert_int_equal(target_groups_read_file("a.txt", &groups, &error), -EINVAL);
    assert_int_equal(target_groups_read_file("none.json", &groups, &error), -ENOENT);
    assert_says(&error, "none.json");

    static const char *const bad[] = {"{}",
                                      "[1]",
                                      "[{\"targets\":1}]",
                                      "[{\"targets\":[{}]}]",
                                      "[{\"labels\":[]}]",
                                      "[{\"labels\":{\"a\":1}}]",
                                      "[{\"other\":1}]",
                                      "[] x"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        write_file("bad.json", bad[i]);
        assert_true(target_groups_read_file("bad.json", &groups, &error) < 0);
        assert_says(&error, "bad.json");
    }
    /* Cut off anywhere, a file is whole or an error. */
    for (size_t length = 0; length < sizeof(groups_json) - 1; length++) {
        char text[sizeof(groups_json)];
        snprintf(text, sizeof(text), "%.*s", (int)length, groups_json);
        write_file("cut.json", text);
        assert_true(target_groups_read_file("cut.json", &groups, &error) < 0);
    }
    for (size_t length = 0; length < sizeof(groups_yaml) - 1; length++) {
        char text[sizeof(groups_yaml)];
        snprintf(text, sizeof(text), "%.*s", (int)length, groups_yaml);
        write_file("cut.yml", text);
        if (!target_groups_read_file("cut.yml", &groups, &error))
            target_groups_release(&groups);
    }
}

static size_t addresses(const struct discovery *discovery)
{
    size_t count = 0;
    for (size_t i = 0; i < discovery->count; i++)
        for (size_t k = 0; k < discovery->files[i].groups.count; k++)
            count += discovery->files[i].groups.list[k].count;
    return count;
}

static void files_change(void **state)
{
    (void)state;
    struct read read;
    struct discovery discovery = {0};
    read_text(&read, "scrape_configs: [{job_name: a, file_sd_configs: [{files: [t*.json, "
                     "t1.json, u.yml]}]}]");
    const struct scrape_job *job = &read.jobs->list[0];
    assert_false(discovery_look(&discovery, job));
    write_file("t1.json", "[{\"targets\":[\"a:1\"]}]");
    assert_true(discovery_look(&discovery, job));
    assert_int_equal(discovery.count, 1); /* though two patterns find it */
    assert_int_equal(addresses(&discovery), 1);
    assert_false(discovery_look(&discovery, job));
    write_file("u.yml", "- targets: [b:1, c:1]\n");
    write_file("t1.json", "[{\"targets\":[\"a:1\",\"a:2\"]}]");
    assert_true(discovery_look(&discovery, job));
    assert_int_equal(addresses(&discovery), 4);
    /* What can't be read stays as it was, until it is good again. */
    log_set_level(LOG_ERROR);
    write_file("t1.json", "[{\"targets\":");
    assert_false(discovery_look(&discovery, job));
    assert_int_equal(addresses(&discovery), 4);
    assert_true(discovery.files[0].broken || discovery.files[1].broken);
    write_file("t1.json", "[]");
    assert_true(discovery_look(&discovery, job));
    assert_int_equal(addresses(&discovery), 2);
    assert_int_equal(unlink("u.yml"), 0);
    assert_true(discovery_look(&discovery, job));
    assert_int_equal(addresses(&discovery), 0);
    assert_int_equal(discovery.count, 1);
    discovery_release(&discovery);
    read_release(&read);
}

/* ---- pods ---- */

static const char pods_json[] =
    "{\"metadata\":{\"continue\":\"abc\"},\"items\":[{\"metadata\":{\"name\":\"web-1\","
    "\"labels\":{\"a.b/c\":\"d\"}},\"spec\":{\"nodeName\":\"n\",\"containers\":["
    "{\"name\":\"one\",\"ports\":[{\"containerPort\":6060,\"name\":\"pprof\"},{\"containerPort\":"
    "99999}]},"
    "{\"name\":\"two\"}]},\"status\":{\"podIP\":\"fd00::1\"}},"
    "{\"metadata\":{\"name\":\"no-ip\"},\"spec\":{\"containers\":[{\"name\":\"x\"}]}}]}";

static void pods(void **state)
{
    (void)state;
    struct target_groups groups = {0};
    struct error error;
    char *next = NULL;
    assert_int_equal(remote_read_pods(pods_json, strlen(pods_json), &groups, &next, &error), 0);
    assert_string_equal(next, "abc");
    assert_int_equal(groups.count, 2);
    assert_string_equal(groups.list[0].addresses[0], "[fd00::1]:6060");
    assert_string_equal(groups.list[1].addresses[0], "[fd00::1]");
    assert_string_equal(
        labels_get(&groups.list[0].labels, "__meta_kubernetes_pod_container_port_name"), "pprof");
    assert_string_equal(labels_get(&groups.list[1].labels, "__meta_kubernetes_pod_label_a_b_c"),
                        "d");
    assert_string_equal(labels_get(&groups.list[1].labels, "__meta_kubernetes_pod_container_name"),
                        "two");
    uint64_t hash = target_groups_hash(&groups);
    labels_set(&groups.list[1].labels, "x", "y");
    assert_true(target_groups_hash(&groups) != hash);
    target_groups_release(&groups);
    free(next);
}

/* Cut and damaged at every byte. */
static void damaged_pods(void **state)
{
    (void)state;
    _cleanup_free_ char *copy = memory_strdup(pods_json);
    for (size_t i = 0; i < strlen(pods_json); i++) {
        for (int cut = 0; cut < 2; cut++) {
            struct target_groups groups = {0};
            struct error error;
            char *next = NULL;
            copy[i] = (char)(pods_json[i] ^ 1 << i % 7);
            remote_read_pods(cut ? pods_json : copy, cut ? i : strlen(pods_json), &groups, &next,
                             &error);
            target_groups_release(&groups);
            free(next);
            copy[i] = pods_json[i];
        }
    }
}

/* ---- times ---- */

static void spread(void **state)
{
    (void)state;
    const int64_t interval = 15000000000ll;
    unsigned buckets[15] = {0};
    for (uint64_t i = 1; i <= 15000; i++) {
        uint64_t hash = hash_word(i);
        int64_t now = (int64_t)(hash_word(i + 77777) >> 2);
        int64_t slot = scrape_slot_ns(hash, interval, now);
        assert_true(slot >= now && slot < now + interval);
        /* From there on it is the same moment of each interval. */
        assert_int_equal(scrape_slot_ns(hash, interval, slot), slot);
        assert_int_equal(scrape_slot_ns(hash, interval, slot + 1), slot + interval);
        assert_int_equal(scrape_slot_ns(hash, interval, slot + interval / 2), slot + interval);
        buckets[slot % interval / 1000000000]++;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(buckets); i++)
        assert_in_range(buckets[i], 800, 1200); /* 1000 each, by a hash that never changes */
    assert_int_equal(scrape_slot_ns(5, 10, 0), 5);
    assert_int_equal(scrape_slot_ns(5, 10, 5), 5);
    assert_int_equal(scrape_slot_ns(5, 10, 6), 15);
}

/* ---- how much ---- */

static void quotas(void **state)
{
    (void)state;
    struct quota_limits limits = {.requests = 2, .bytes = 1000, .burst_ns = 2000000000};
    struct quotas *quotas = quotas_new(&limits);
    const char *what = NULL;
    int64_t wait;
    for (int i = 0; i < 4; i++)
        assert_true(quotas_allow(quotas, "t", "a", 0, &wait, &what));
    assert_false(quotas_allow(quotas, "t", "a", 0, &wait, &what));
    assert_string_equal(what, "requests");
    assert_int_equal(wait, 500);
    assert_true(quotas_allow(quotas, "t", "b", 0, &wait, &what)); /* another sender */
    assert_true(quotas_allow(quotas, "u", "a", 0, &wait, &what)); /* another tenant */
    assert_true(quotas_allow(quotas, "t", "a", 500, &wait, &what));
    /* A push may overdraw; then it has to be made up for. */
    quotas_charge(quotas, "t", "b", 5000, 1 << 30, 0);
    assert_false(quotas_allow(quotas, "t", "b", 1000, &wait, &what));
    assert_string_equal(what, "bytes");
    assert_int_equal(wait, 2000);
    assert_true(quotas_allow(quotas, "t", "b", 3000, &wait, &what));
    /* A clock that goes back gives nothing and takes nothing. */
    assert_true(quotas_allow(quotas, "t", "b", 10, &wait, &what));
    /* Other limits: of samples now, by tenant. */
    limits = (struct quota_limits){.samples = 10, .burst_ns = 1000000000, .per_tenant = true};
    quotas_set(quotas, &limits);
    quotas_charge(quotas, "t", "b", 1 << 30, 30, 5000);
    assert_false(quotas_allow(quotas, "t", "c", 5000, &wait, &what));
    assert_string_equal(what, "samples");
    assert_int_equal(wait, 2000);
    limits = (struct quota_limits){0};
    quotas_set(quotas, &limits);
    for (int i = 0; i < 100000; i++)
        assert_true(quotas_allow(quotas, "t", "c", 5000, &wait, &what));
    quotas_free(quotas);
    /* More senders than there is room for. */
    limits = (struct quota_limits){.requests = 1, .burst_ns = 1000000000};
    quotas = quotas_new(&limits);
    for (int i = 0; i < 20000; i++) {
        char name[24];
        snprintf(name, sizeof(name), "%d", i);
        assert_true(quotas_allow(quotas, "t", name, i, &wait, &what));
    }
    quotas_free(quotas);
}

/* ---- the server's own settings ---- */

static struct server_options server_settings(const char *text, struct read *read)
{
    struct server_options options;
    struct settings settings;
    struct error error = {0};
    *read = (struct read){0};
    if (yaml_tree_read("c.yaml", text, strlen(text), &read->tree, &error) < 0)
        fail_msg("%s", error.text);
    server_options_defaults(&options);
    settings_open(&settings, &read->problems, read->tree.root, "the configuration");
    server_options_read(&options, &settings);
    settings_close(&settings);
    return options;
}

static void retention(void **state)
{
    (void)state;
    struct read read;
    struct server_options options = server_settings("retention: {raw: 3d, day: 0}", &read);
    assert_int_equal(read.problems.count, 0);
    assert_int_equal(options.class_count, 1);
    assert_string_equal(options.classes[0].name, "default");
    assert_int_equal(options.classes[0].days[STORE_RAW], 3);
    assert_int_equal(options.classes[0].days[STORE_TEN_MINUTES], 30);
    assert_int_equal(options.classes[0].days[STORE_DAY], 0);
    server_options_release(&options);
    read_release(&read);

    options = server_settings("retention:\n- {name: long, services: [till, shop], raw: 90d}\n"
                              "- {name: short, services: [batch], raw: 1d, hour: 36h}\n",
                              &read);
    assert_int_equal(read.problems.count, 0);
    assert_int_equal(options.class_count, 3);
    assert_string_equal(options.classes[0].services[1], "shop");
    assert_null(options.classes[0].services[2]);
    assert_string_equal(options.classes[1].services[0], "batch");
    assert_null(options.classes[1].services[1]);
    assert_int_equal(options.classes[0].days[STORE_RAW], 90);
    assert_int_equal(options.classes[1].days[STORE_HOUR], 2);
    assert_string_equal(options.classes[2].name, "default");
    assert_null(options.classes[2].services);
    server_options_release(&options);
    read_release(&read);

    static const char *const bad[] = {
        "retention: [{services: [a]}]",
        "retention: [{name: a/b, services: [a]}]",
        "retention: [{name: a, services: [a]}, {name: a, services: [b]}]",
        "retention: [{raw: 1d}, {name: a, services: [b]}]",
        "retention: [{name: a, services: [a], weeks: 3}]",
        "retention: [{name: a, services: {a: b}}]",
        "retention: 3d",
        "rate_limits: {bytes: 1MiB, per: planet}",
        "rate_limits: {rows: 3}",
        "limits: {depth: 100000}",
        "in_memory: perhaps",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        options = server_settings(bad[i], &read);
        if (!read.problems.count)
            fail_msg("%s is taken", bad[i]);
        server_options_release(&options);
        read_release(&read);
    }
    options = server_settings("rate_limits: {per: tenant, bytes: 1MiB, requests: 5, samples: 7, "
                              "burst: 1m}\nin_memory: true\nlimits: {depth: 64}",
                              &read);
    assert_int_equal(read.problems.count, 0);
    assert_true(options.rate.per_tenant && options.in_memory);
    assert_int_equal(options.rate.bytes, 1 << 20);
    assert_int_equal(options.limits.depth, 64);
    server_options_release(&options);
    read_release(&read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods),
        cmocka_unit_test(damaged_pods),
        cmocka_unit_test(defaults),
        cmocka_unit_test(all_keys),
        cmocka_unit_test(complaints),
        cmocka_unit_test(targets),
        cmocka_unit_test_setup_teardown(group_files, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(files_change, enter_folder, leave_folder),
        cmocka_unit_test(spread),
        cmocka_unit_test(quotas),
        cmocka_unit_test(retention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
