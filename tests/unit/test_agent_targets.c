// SPDX-License-Identifier: Apache-2.0
// From settings and facts to labels: whose word counts, who is sampled, what is forgotten.

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/targets.h"
#include "base/clock.h"
#include "base/memory.h"
#include "unit.h"

#define ID "3f2d1c0b9a8877665544332211ffeeddccbbaa00998877665544332211aabbcc"

static const char configuration[] =
    "external_labels: {host: h1, region: eu}\n"
    "environment: [TEAM]\n"
    "rules:\n"
    "  - match: {name: 'web*'}\n"
    "    labels: {service_name: front, version: '7'}\n"
    "  - match: {exe: [/opt/*, tool], user: alice}\n"
    "    labels: {service_name: tools}\n"
    "  - match: {cgroup: '/noise*'}\n"
    "    drop: true\n"
    "  - match: {container: '3f2d*', env: {KIND: 'canary*'}}\n"
    "    labels: {track: canary}\n"
    "relabel_configs:\n"
    "  - {source_labels: [__meta_env_TEAM], target_label: team}\n"
    "  - {source_labels: [service_name], regex: secret-.*, action: drop}\n";

struct fixture {
    struct agent_settings settings;
    struct targets targets;
};

static void read_settings(struct agent_settings *settings, const char *text,
                          struct problems *problems)
{
    struct yaml_tree tree;
    struct error error = {0};
    assert_int_equal(yaml_tree_read("test", text, strlen(text), &tree, &error), 0);
    agent_settings_read(settings, tree.root, problems);
    yaml_tree_release(&tree);
}

static int set_up(void **state)
{
    struct fixture *fixture = memory_zalloc(1, sizeof(*fixture));
    struct problems problems = {.file = "test"};
    read_settings(&fixture->settings, configuration, &problems);
    if (problems.count)
        print_error("%s", buffer_text(&problems.text));
    assert_int_equal(problems.count, 0);
    targets_init(&fixture->targets, &fixture->settings);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    targets_release(&fixture->targets);
    agent_settings_release(&fixture->settings);
    free(fixture);
    return 0;
}

struct process_case {
    const char *name, *exe, *cgroup, *user, *environment;
    bool kernel;
    const char *labels; /* NULL: not wanted */
};

static const struct process_case process_cases[] = {
    /* A rule comes before what the program says of itself. */
    {"web1", "/usr/bin/web", "", "", "OTEL_SERVICE_NAME=own", false,
     "{host=\"h1\",region=\"eu\",service_name=\"front\",version=\"7\"}"},
    {"x", "/usr/bin/tool", "", "alice", "", false,
     "{host=\"h1\",region=\"eu\",service_name=\"tools\",version=\"0123456789ab\"}"},
    {"x", "/opt/a/b", "", "alice", "", false,
     "{host=\"h1\",region=\"eu\",service_name=\"tools\",version=\"0123456789ab\"}"},
    {"x", "/opt/a/b", "", "bob", "", false,
     "{host=\"h1\",region=\"eu\",service_name=\"b\",version=\"0123456789ab\"}"},
    {"x", "/bin/x", "0::/noise/1\n", "", "", false, NULL},
    /* The environment comes before where it runs. */
    {"x", "/bin/x", "0::/system.slice/nginx.service\n", "",
     "OTEL_RESOURCE_ATTRIBUTES=service.name=shop,service.version=1.2,cloud.region=us", false,
     "{host=\"h1\",region=\"us\",service_name=\"shop\",version=\"1.2\"}"},
    {"x", "/bin/x", "0::/system.slice/nginx.service\n", "", "", false,
     "{host=\"h1\",region=\"eu\",service_name=\"nginx\",version=\"0123456789ab\"}"},
    /* In a container it is not the unit that counts. */
    {"x", "/bin/x", "0::/a.service/docker/" ID "\n", "", "", false,
     "{container=\"3f2d1c0b9a88\",host=\"h1\",region=\"eu\",service_name=\"x\",version="
     "\"0123456789ab\"}"},
    {"x", "/bin/x", "0::/docker/" ID "\n", "", "KIND=canary-2", false,
     "{container=\"3f2d1c0b9a88\",host=\"h1\",region=\"eu\",service_name=\"x\",track=\"canary\","
     "version=\"0123456789ab\"}"},
    {"x", "/bin/x", "", "", "TEAM=red", false,
     "{host=\"h1\",region=\"eu\",service_name=\"x\",team=\"red\",version=\"0123456789ab\"}"},
    {"x", "/bin/x", "", "", "OTEL_SERVICE_NAME=secret-thing", false, NULL},
    {"kworker/0:1", NULL, "", "", "", true,
     "{host=\"h1\",region=\"eu\",service_name=\"kernel\",version=\"0123456789ab\"}"},
    {"only-a-name", NULL, "", "", "", false,
     "{host=\"h1\",region=\"eu\",service_name=\"only-a-name\",version=\"0123456789ab\"}"},
    {"m", "/memfd:x-91173221a7ea", "", "", "", false,
     "{host=\"h1\",region=\"eu\",service_name=\"m\",version=\"0123456789ab\"}"},
};

static void whose_word_counts(void **state)
{
    struct fixture *fixture = *state;
    _cleanup_buffer_ struct buffer text = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(process_cases); i++) {
        const struct process_case *given = &process_cases[i];
        struct process_facts facts = {.pid = 1, .kernel = given->kernel};
        _cleanup_labels_ struct labels labels = {0};
        size_t length;
        snprintf(facts.name, sizeof(facts.name), "%s", given->name);
        snprintf(facts.user, sizeof(facts.user), "%s", given->user);
        facts.exe = given->exe ? memory_strdup(given->exe) : NULL;
        cgroup_identify(given->cgroup, strlen(given->cgroup), &facts.identity);
        const char *path = cgroup_path(given->cgroup, strlen(given->cgroup), &length);
        facts.cgroup = memory_strndup(path, length);
        environment_identify(given->environment, strlen(given->environment),
                             &fixture->settings.variables, &facts.environment);
        bool wanted = targets_describe(&fixture->targets, &facts, "0123456789abcdef", &labels);
        text.length = 0;
        labels_write(&text, &labels);
        assert_int_equal(wanted, given->labels != NULL);
        if (wanted)
            assert_string_equal(buffer_text(&text), given->labels);
        process_facts_release(&facts);
    }
}

static const char *label_of(const struct profile *profile, uint32_t set, const char *key)
{
    size_t count;
    const struct profile_label *labels = profile_labels(profile, set, &count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(profile_text(profile, labels[i].key), key))
            return profile_text(profile, labels[i].text);
    return NULL;
}

/* What ended before anybody could look was where it came from, but not what it came from. */
static void short_lives(void **state)
{
    struct fixture *fixture = *state;
    _cleanup_profile_ struct profile profile;
    char folder[] = "/tmp/assay-proc-XXXXXX", path[128];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/77", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/77/cgroup", folder);
    FILE *file = fopen(path, "w");
    fputs("0::/system.slice/batch.service\n", file);
    fclose(file);
    fixture->targets.proc = folder;
    profile_init(&profile, PROFILE_LABELS);
    struct capture_process parent = {
        .pid = 77, .number = 5, .name = "sh", .program = "/bin/sh", .build_id = "aa"};
    struct capture_process child = {.pid = 78,
                                    .number = 6,
                                    .parent = 5,
                                    .name = "sort",
                                    .program = "/bin/sort",
                                    .build_id = "bb"};
    struct capture_process orphan = child;
    orphan.number = 7;
    orphan.parent = 4;
    uint32_t set = targets_label(&fixture->targets, &parent, &profile);
    assert_string_equal(label_of(&profile, set, "service_name"), "batch");
    assert_string_equal(label_of(&profile, set, "version"), "aa");
    set = targets_label(&fixture->targets, &child, &profile);
    assert_string_equal(label_of(&profile, set, "service_name"), "batch");
    assert_string_equal(label_of(&profile, set, "version"), "bb");
    set = targets_label(&fixture->targets, &orphan, &profile);
    assert_string_equal(label_of(&profile, set, "service_name"), "sort");
    unlink(path);
    snprintf(path, sizeof(path), "%s/77", folder);
    rmdir(path);
    rmdir(folder);
}

static void forgetting(void **state)
{
    struct fixture *fixture = *state;
    struct targets *targets = &fixture->targets;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_LABELS);
    targets->proc = "/nowhere";
    for (uint64_t i = 1; i <= TARGETS_MAX + 10; i++)
        targets_label(targets,
                      &(struct capture_process){.pid = 1, .number = i, .name = "n", .build_id = ""},
                      &profile);
    assert_in_range(targets->count, 1, TARGETS_MAX);
    assert_int_equal(targets->forgotten, TARGETS_MAX);
    targets_tidy(targets, monotonic_ns());
    assert_int_equal(targets->count, 10);
    targets_tidy(targets, monotonic_ns() + 3600 * 1000000000ll);
    assert_int_equal(targets->count, 0);
    targets_label(targets,
                  &(struct capture_process){.pid = 1, .number = 3, .name = "n", .build_id = ""},
                  &profile);
    assert_int_equal(targets->count, 1);
}

static void selection(void **state)
{
    (void)state;
    struct problems problems = {.file = "test"};
    struct agent_settings settings;
    struct process_facts facts = {.name = "b", .exe = (char *)"/bin/b", .cgroup = (char *)"/x"};
    read_settings(&settings, "select: [{name: a}, {user: root, cgroup: '/x*'}]\n", &problems);
    assert_int_equal(problems.count, 0);
    assert_int_equal(settings.select_count, 2);
    assert_false(target_matches(&settings.select[0], &facts));
    assert_false(target_matches(&settings.select[1], &facts));
    strcpy(facts.user, "root");
    assert_true(target_matches(&settings.select[1], &facts));
    agent_settings_release(&settings);
}

static const char pod_text[] =
    "{\"kind\":\"PodList\",\"items\":[{\"status\":{\"containerStatuses\":[{\"name\":\"web\","
    "\"containerID\":\"containerd://" ID "\",\"ready\":true},{\"name\":\"new\"}]},"
    "\"metadata\":{\"name\":\"shop-7d9-x2\",\"namespace\":\"prod\",\"uid\":\"u-1\",\"labels\":{"
    "\"app\":\"old-name\",\"app.kubernetes.io/name\":\"shop\",\"k8s-app\":\"z\"}},"
    "\"spec\":{\"x\":[1,{}]}},{\"metadata\":{\"name\":\"p2\",\"uid\":null},\"status\":{}}]}";

static void names_of_pods(void **state)
{
    (void)state;
    struct pod_list pods = {0};
    struct error error = {0};
    assert_int_equal(pod_list_read(&pods, pod_text, strlen(pod_text), &error), 0);
    assert_int_equal(pods.count, 1);
    assert_string_equal(pods.list[0].container_id, ID);
    assert_string_equal(pods.list[0].pod, "shop-7d9-x2");
    assert_string_equal(pods.list[0].namespace, "prod");
    assert_string_equal(pods.list[0].container, "web");
    assert_string_equal(pods.list[0].service, "shop");
    pod_list_release(&pods);
    /* Cut or flipped, it is refused or read, and nothing else. */
    for (size_t i = 0; i < strlen(pod_text); i++) {
        char *copy = memory_strndup(pod_text, i);
        assert_true(pod_list_read(&pods, copy, i, &error) < 0);
        free(copy);
        pod_list_release(&pods);
        copy = memory_strdup(pod_text);
        copy[i] ^= 0x15;
        pod_list_read(&pods, copy, strlen(pod_text), &error);
        free(copy);
        pod_list_release(&pods);
    }
}

static void complaints(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "rate: 0\n",
        "rate: 100000\n",
        "symbolize: sometimes\n",
        "rules: [{labels: {a: b}}]\n",
        "rules: [{match: {name: {x: y}}}]\n",
        "rules: [{match: {env: {A: [1]}}}]\n",
        "select: [{colour: red}]\n",
        "external_labels: {a: [b]}\n",
        "server: {adress: x}\n",
        "nonsense: 1\n",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
        struct problems problems = {.file = "test"};
        struct agent_settings settings;
        read_settings(&settings, wrong[i], &problems);
        if (!problems.count)
            fail_msg("nobody complained about: %s", wrong[i]);
        problems_release(&problems);
        agent_settings_release(&settings);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whose_word_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(short_lives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(forgetting, set_up, tear_down),
        cmocka_unit_test(selection),
        cmocka_unit_test(names_of_pods),
        cmocka_unit_test(complaints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
