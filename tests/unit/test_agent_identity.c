// SPDX-License-Identifier: Apache-2.0
// Processes by their cgroups and environments: what each runtime writes, and what nobody should.

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/identity/containers.h"
#include "agent/identity/identity.h"
#include "agent/identity/pod_file.h"
#include "agent/identity/pods.h"
#include "base/memory.h"
#include "unit.h"

#define ID "3f2d1c0b9a8877665544332211ffeeddccbbaa00998877665544332211aabbcc"
#define OTHER_ID "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define UID "2f1c9a4e-8f8b-4a53-9d2e-0123456789ab"
#define UID_UNDERSCORED "2f1c9a4e_8f8b_4a53_9d2e_0123456789ab"
#define STATIC_UID "0123456789abcdef0123456789abcdef"

struct cgroup_case {
    const char *what, *content;
    const char *runtime, *container, *pod, *unit;
};

static const struct cgroup_case cases[] = {
    {"docker, cgroup 1", "12:memory:/docker/" ID "\n1:name=systemd:/docker/" ID "\n0::/\n",
     "docker", ID, "", ""},
    {"docker, cgroup 2, systemd", "0::/system.slice/docker-" ID ".scope\n", "docker", ID, "", ""},
    {"docker in a user's session",
     "0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" ID ".scope\n", "docker",
     ID, "", ""},
    {"containerd by Kubernetes, systemd",
     "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_UNDERSCORED
     ".slice/cri-containerd-" ID ".scope\n",
     "containerd", ID, UID, ""},
    {"containerd by Kubernetes, guaranteed",
     "0::/kubepods.slice/kubepods-pod" UID_UNDERSCORED ".slice/cri-containerd-" ID ".scope\n",
     "containerd", ID, UID, ""},
    {"Kubernetes, cgroupfs, cgroup 1",
     "11:cpu,cpuacct:/kubepods/besteffort/pod" UID "/" ID "\n0::/\n", "", ID, UID, ""},
    {"a static pod", "0::/kubepods/burstable/pod" STATIC_UID "/" ID "\n", "", ID, STATIC_UID, ""},
    {"kind",
     "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
     "kubelet-kubepods-burstable-pod" UID_UNDERSCORED ".slice/cri-containerd-" ID ".scope\n",
     "containerd", ID, UID, ""},
    {"one container in another",
     "0::/system.slice/docker-" OTHER_ID ".scope/kubelet/kubepods/pod" UID "/" ID "\n", "", ID, UID,
     ""},
    {"CRI-O, systemd",
     "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_UNDERSCORED
     ".slice/crio-" ID ".scope\n",
     "cri-o", ID, UID, ""},
    {"CRI-O, a folder below",
     "0::/kubepods.slice/kubepods-pod" UID_UNDERSCORED ".slice/crio-" ID ".scope/container\n",
     "cri-o", ID, UID, ""},
    {"CRI-O, cgroupfs", "0::/kubepods/pod" UID "/crio-" ID "\n", "cri-o", ID, UID, ""},
    {"CRI-O's monitor is no container",
     "0::/kubepods.slice/kubepods-pod" UID_UNDERSCORED ".slice/crio-conmon-" ID ".scope\n", "", "",
     UID, ""},
    {"Podman as root", "0::/machine.slice/libpod-" ID ".scope/container\n", "podman", ID, "", ""},
    {"Podman of a user",
     "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container\n",
     "podman", ID, "", ""},
    {"Podman, cgroupfs", "0::/libpod_parent/libpod-" ID "\n", "podman", ID, "", ""},
    {"Podman's monitor", "0::/machine.slice/libpod-conmon-" ID ".scope\n", "", "", "", ""},
    {"Podman's pod",
     "0::/machine.slice/machine-libpod_pod_" OTHER_ID ".slice/libpod-" ID ".scope\n", "podman", ID,
     "", ""},
    {"nerdctl", "0::/system.slice/nerdctl-" ID ".scope\n", "containerd", ID, "", ""},
    {"ECS", "0::/ecs/8d2f/" ID "\n", "", ID, "", ""},
    {"a service", "0::/system.slice/nginx.service\n", "", "", "", "nginx"},
    {"a service, cgroup 1",
     "4:pids:/system.slice/cron.service\n1:name=systemd:/system.slice/"
     "cron.service\n0::/system.slice/cron.service\n",
     "", "", "", "cron"},
    {"an instance", "0::/system.slice/system-postgresql.slice/postgresql@15-main.service\n", "", "",
     "", "postgresql@15-main"},
    {"escapes", "0::/system.slice/my\\x2dapp.service\n", "", "", "", "my-app"},
    {"an escaped NUL", "0::/system.slice/a\\x00b.service\n", "", "", "", "a?b"},
    {"a user's service",
     "0::/user.slice/user-1000.slice/user@1000.service/app.slice/syncthing.service\n", "", "", "",
     "syncthing"},
    {"a session", "0::/user.slice/user-1000.slice/session-3.scope\n", "", "", "", ""},
    {"a user's manager", "0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", "", "",
     "", ""},
    {"a folder within a service", "0::/system.slice/containerd.service/kubelet\n", "", "", "",
     "containerd"},
    {"outside of our namespace", "0::/../../docker-" ID ".scope\n", "docker", ID, "", ""},
    {"the root", "0::/\n", "", "", "", ""},
    {"nothing", "", "", "", "", ""},
    {"no line", "nonsense", "", "", "", ""},
    {"one colon", "0:/docker/" ID "\n", "", "", "", ""},
    {"no end of line", "0::/docker/" ID, "docker", ID, "", ""},
    {"63 digits", "0::/docker/3f2d1c0b9a8877665544332211ffeeddccbbaa00998877665544332211aabbc\n",
     "", "", "", ""},
    {"no digits", "0::/docker/zz2d1c0b9a8877665544332211ffeeddccbbaa00998877665544332211aabbcc\n",
     "", "", "", ""},
    {"a pod with a wrong dash", "0::/kubepods/pod2f1c9a4e08f8b-4a53-9d2e-0123456789ab/x\n", "", "",
     "", ""},
    {"a service without a name", "0::/system.slice/.service\n", "", "", "", ""},
    {"many slashes", "0::////system.slice////a.service////\n", "", "", "", "a"},
};

static void each_runtime(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct cgroup_identity found;
        cgroup_identify(cases[i].content, strlen(cases[i].content), &found);
        if (strcmp(found.runtime, cases[i].runtime) ||
            strcmp(found.container_id, cases[i].container) || strcmp(found.pod_uid, cases[i].pod) ||
            strcmp(found.unit, cases[i].unit))
            fail_msg("%s: \"%s\" \"%s\" \"%s\" \"%s\"", cases[i].what, found.runtime,
                     found.container_id, found.pod_uid, found.unit);
    }
}

/* Cut anywhere and with any byte flipped: whatever comes out, it comes out. */
static void damaged_cgroups(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        size_t length = strlen(cases[i].content), path_length;
        struct cgroup_identity found;
        for (size_t cut = 0; cut <= length; cut++) {
            char *copy = memory_alloc(cut + 1);
            memcpy(copy, cases[i].content, cut);
            copy = memory_resize(copy, MAX(cut, 1u), 1); /* so that a sanitizer sees its end */
            cgroup_identify(copy, cut, &found);
            const char *path = cgroup_path(copy, cut, &path_length);
            assert_true(path >= copy && path + path_length <= copy + cut);
            for (unsigned flip = 1; cut && flip < 256; flip += 37) {
                copy[cut / 2] ^= (char)flip;
                cgroup_identify(copy, cut, &found);
                copy[cut / 2] ^= (char)flip;
            }
            free(copy);
        }
    }
}

static void path_for_rules(void **state)
{
    (void)state;
    static const struct {
        const char *content, *path;
    } paths[] = {
        {"1:cpu:/a\n0::/b/c\n", "/b/c"},
        {"2:cpu:/docker/long/path\n1:name=systemd:/system.slice/x.service\n0::/\n",
         "/system.slice/x.service"},
        {"2:cpu:/docker/x\n0::/\n", "/docker/x"},
        {"0::/\n", "/"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        size_t length;
        const char *path = cgroup_path(paths[i].content, strlen(paths[i].content), &length);
        assert_int_equal(length, strlen(paths[i].path));
        assert_memory_equal(path, paths[i].path, length);
    }
}

/* ---- environment ---- */

#define ENVIRONMENT(text) text, sizeof(text) - 1

static void environment_text(const char *content, size_t length, const struct globs *allowed,
                             struct buffer *ret_text)
{
    _cleanup_labels_ struct labels labels = {0};
    environment_identify(content, length, allowed, &labels);
    ret_text->length = 0;
    labels_write(ret_text, &labels);
    buffer_text(ret_text);
}

static void environments(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        size_t length;
        const char *labels;
    } environment_cases[] = {
        {ENVIRONMENT("PATH=/bin\0OTEL_SERVICE_NAME=shop\0HOME=/root\0"), "{service_name=\"shop\"}"},
        {ENVIRONMENT("OTEL_SERVICE_NAME= shop \0"), "{service_name=\"shop\"}"},
        {ENVIRONMENT("OTEL_SERVICE_NAME=\0"), "{}"},
        {ENVIRONMENT("OTEL_SERVICE_NAMES=shop\0XOTEL_SERVICE_NAME=shop\0"), "{}"},
        {ENVIRONMENT("OTEL_RESOURCE_ATTRIBUTES=service.name=a, service.version = 1.2%2C3 ,"
                     "db.password=hunter2,cloud.region=eu-1,x\0"),
         "{region=\"eu-1\",service_name=\"a\",version=\"1.2,3\"}"},
        {ENVIRONMENT("OTEL_SERVICE_NAME=b\0OTEL_RESOURCE_ATTRIBUTES=service.name=a\0"),
         "{service_name=\"b\"}"},
        {ENVIRONMENT("OTEL_RESOURCE_ATTRIBUTES=service.name=%zz%4\0"), "{service_name=\"%zz%4\"}"},
        {ENVIRONMENT("OTEL_RESOURCE_ATTRIBUTES=service.name=a%00b\0"), "{service_name=\"a\"}"},
        {ENVIRONMENT("OTEL_RESOURCE_ATTRIBUTES=,,,=,=x,service.name=\0"), "{}"},
        {ENVIRONMENT("TEAM=red\0TEAM_KEY=secret\0API_TOKEN=x\0"), "{__meta_env_TEAM=\"red\"}"},
        {ENVIRONMENT("TEAM\0=x\0\0\0OTEL_SERVICE_NAME=z"), "{service_name=\"z\"}"},
        {ENVIRONMENT(""), "{}"},
    };
    struct globs allowed = {0};
    _cleanup_buffer_ struct buffer text = {0};
    globs_add(&allowed, "TEAM");
    for (size_t i = 0; i < ARRAY_LENGTH(environment_cases); i++) {
        environment_text(environment_cases[i].content, environment_cases[i].length, &allowed,
                         &text);
        assert_string_equal(text.data, environment_cases[i].labels);
        for (size_t cut = 0; cut < environment_cases[i].length; cut++) {
            char *copy = memory_alloc(MAX(cut, 1u));
            memcpy(copy, environment_cases[i].content, cut);
            environment_text(copy, cut, &allowed, &text);
            assert_null(strstr(text.data, "hunter2"));
            assert_null(strstr(text.data, "secret"));
            free(copy);
        }
    }
    globs_release(&allowed);
}

/* A value that is longer than any name of a service is none. */
static void long_values(void **state)
{
    (void)state;
    struct globs allowed = {0};
    _cleanup_buffer_ struct buffer content = {0}, text = {0};
    globs_add(&allowed, "*");
    buffer_add_text(&content, "OTEL_SERVICE_NAME=");
    for (int i = 0; i < 5000; i++)
        buffer_add_char(&content, 'x');
    buffer_add_char(&content, '\0');
    buffer_add_text(&content, "BIG=");
    for (int i = 0; i < 5000; i++)
        buffer_add_char(&content, 'y');
    environment_text(content.data, content.length, &allowed, &text);
    assert_string_equal(text.data, "{}");
    globs_release(&allowed);
}

/* ---- processes ---- */

static void ourselves(void **state)
{
    (void)state;
    struct globs none = {0};
    struct process_facts facts;
    process_facts_read("/proc", (uint32_t)getpid(), "given", NULL, &none, true, &facts);
    assert_false(facts.gone);
    assert_false(facts.kernel);
    assert_string_equal(path_name(facts.exe), "test_agent_identity");
    assert_true(facts.user[0]);
    process_facts_release(&facts);
    process_facts_read("/proc", (uint32_t)getpid(), "given", NULL, &none, false, &facts);
    assert_string_equal(facts.user, "");
    assert_non_null(facts.exe);
    process_facts_release(&facts);
    process_facts_read("/proc", 4000000000u, "gone", "/usr/bin/gone", &none, true, &facts);
    assert_true(facts.gone);
    assert_string_equal(facts.exe, "/usr/bin/gone");
    assert_string_equal(facts.cgroup, "");
    process_facts_release(&facts);
}

/* A file of a downward volume. */
static void labels_of_a_pod(void **state)
{
    (void)state;
    static const struct {
        const char *text, *service, *version;
    } cases[] = {
        {"app=\"shop\"\napp.kubernetes.io/version=\"1.2\"\npod-template-hash=\"abc\"\n", "shop",
         "1.2"},
        {"app.kubernetes.io/name=\"best\"\napp=\"shop\"", "best", NULL},
        {"k8s-app=\"last\"\napp=\"shop\"\nApp=\"x\"", "shop", NULL},
        {"app=\"a\\\\b\\\"c\"\n", "a\\b\"c", NULL},
        {"", NULL, NULL},
        {"app=shop\napp\napp=\napp=\"\napp=\"\"\n=\"x\"\napp=\"unfinished\\", NULL, NULL},
        {"\n\n\"\n=\n", NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        _cleanup_labels_ struct labels labels = {0};
        pod_labels_read(cases[i].text, strlen(cases[i].text), &labels);
        const char *service = labels_get(&labels, "service_name");
        const char *version = labels_get(&labels, "version");
        assert_string_equal(service ? service : "", cases[i].service ? cases[i].service : "");
        assert_string_equal(version ? version : "", cases[i].version ? cases[i].version : "");
    }
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* For the agent's own pod and no other; read again when it has changed; the last that was there. */
static void a_pods_file(void **state)
{
    (void)state;
    struct pod_file file;
    char path[] = "/tmp/assay-pod-XXXXXX";
    close(mkstemp(path));
    write_text(path, "app=\"shop\"\n");
    pod_file_init(&file, path, "/proc");
    snprintf(file.own_pod, sizeof(file.own_pod), "own");
    static const struct {
        const char *pod;
        int64_t seconds;
        const char *content, *service;
    } steps[] = {
        {"own", 1, NULL, "shop"},  {"other", 1, NULL, ""}, {"own", 2, "app=\"till\"\n", "shop"},
        {"own", 40, NULL, "till"}, {"own", 80, "", ""},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(steps); i++) {
        _cleanup_labels_ struct labels labels = {0}, said = {0};
        if (steps[i].content)
            write_text(path, steps[i].content);
        pod_file_label(&file, steps[i].pod, steps[i].seconds * 1000000000, &labels);
        const char *service = labels_get(&labels, "service_name");
        assert_string_equal(service ? service : "", steps[i].service);
        /* What the process says itself counts. */
        labels_set(&said, "service_name", "own-word");
        pod_file_label(&file, steps[i].pod, steps[i].seconds * 1000000000, &said);
        assert_string_equal(labels_get(&said, "service_name"), "own-word");
    }
    write_text(path, "app=\"kept\"\n");
    struct labels labels = {0};
    pod_file_label(&file, "own", 120 * 1000000000ll, &labels);
    unlink(path);
    labels_release(&labels);
    labels = (struct labels){0};
    pod_file_label(&file, "own", 200 * 1000000000ll, &labels);
    assert_string_equal(labels_get(&labels, "service_name"), "kept");
    labels_release(&labels);
    pod_file_release(&file);
    pod_file_init(&file, NULL, "/proc");
    pod_file_release(&file);
}

/* ---- lists of pods ---- */

static const char pod_json[] =
    "{\"kind\":\"PodList\",\"items\":[{\"metadata\":{\"name\":\"web-5f-x\",\"namespace\":\"shop\","
    "\"uid\":\"u1\",\"labels\":{\"app\":\"web\",\"a.b/c\":\"d\",\"pod-template-hash\":\"5f\"},"
    "\"ownerReferences\":[{\"kind\":\"Other\",\"name\":\"first\"},"
    "{\"kind\":\"ReplicaSet\",\"name\":\"web-5f\",\"controller\":true}]},"
    "\"spec\":{\"nodeName\":\"n1\"},"
    "\"status\":{\"containerStatuses\":[{\"name\":\"c\",\"containerID\":\"containerd://" ID
    "\"}]}},"
    "{\"metadata\":{\"name\":\"bare\",\"uid\":\"u2\"},\"status\":{\"containerStatuses\":"
    "[{\"name\":\"d\",\"containerID\":\"cri-o://" OTHER_ID "\"},{\"name\":\"waiting\"}]}}]}";

static void lists_pods(void **state)
{
    (void)state;
    struct pod_list pods = {0};
    struct error error;
    assert_int_equal(pod_list_read(&pods, pod_json, strlen(pod_json), &error), 0);
    assert_int_equal(pods.count, 2);
    const struct pod_container *web = &pods.list[0], *bare = &pods.list[1];
    assert_string_equal(web->pod, "web-5f-x");
    assert_string_equal(web->service, "web");
    assert_string_equal(web->node, "n1");
    assert_string_equal(web->workload, "web");
    assert_string_equal(web->workload_kind, "Deployment");
    assert_string_equal(web->container_id, ID);
    assert_int_equal(web->label_count, 3);
    assert_string_equal(pods.labels[web->first_label + 1].name, "__meta_pod_label_a_b_c");
    assert_string_equal(pods.labels[web->first_label + 1].value, "d");
    assert_string_equal(bare->container_id, OTHER_ID);
    assert_string_equal(bare->workload, "");
    assert_int_equal(bare->label_count, 0);
    pod_list_release(&pods);
}

/* Cut and damaged at every byte: an error or some list, and nothing else. */
static void damaged_lists(void **state)
{
    (void)state;
    _cleanup_free_ char *copy = memory_strdup(pod_json);
    for (size_t i = 0; i < strlen(pod_json); i++) {
        struct pod_list pods = {0};
        struct error error;
        pod_list_read(&pods, pod_json, i, &error);
        pod_list_release(&pods);
        pods = (struct pod_list){0};
        copy[i] = (char)(copy[i] ^ 1 << i % 7);
        pod_list_read(&pods, copy, strlen(pod_json), &error);
        pod_list_release(&pods);
        copy[i] = pod_json[i];
    }
}

/* ---- state files of runtimes ---- */

static void names_of_containers(void **state)
{
    (void)state;
    static const struct {
        const char *directory, *file, *content, *container, *pod;
    } files[] = {
        {"var/lib/docker/containers/" ID, "config.v2.json",
         "{\"State\":{\"Name\":\"x\"},\"Name\":\"/web-1\"}", "web-1", ""},
        {"run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID, "config.json",
         "{\"ociVersion\":\"1\",\"annotations\":{\"io.kubernetes.cri.container-name\":\"c\","
         "\"io.kubernetes.cri.sandbox-name\":\"p\"}}",
         "c", "p"},
        {"run/containers/storage/overlay-containers/" ID "/userdata", "config.json",
         "{\"annotations\":{\"io.kubernetes.container.name\":\"crio\","
         "\"io.kubernetes.pod.name\":\"q\"}}",
         "crio", "q"},
        {"var/lib/containers/storage/overlay-containers", "containers.json",
         "[{\"id\":\"" OTHER_ID "\",\"names\":[\"other\"]},5,"
         "{\"id\":\"" ID "\",\"names\":[\"mine\",\"second\"]}]",
         "mine", ""},
        {"var/lib/docker/containers/" ID, "config.v2.json", "{\"Name\":", "", ""},
        {"var/lib/docker/containers/" ID, "config.v2.json", "[[[{}]]]", "", ""},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        char root[] = "/tmp/assay-state-XXXXXX", command[1024], path[1024];
        assert_non_null(mkdtemp(root));
        snprintf(command, sizeof(command), "mkdir -p %s/%s", root, files[i].directory);
        assert_int_equal(system(command), 0);
        snprintf(path, sizeof(path), "%s/%s/%s", root, files[i].directory, files[i].file);
        write_text(path, files[i].content);
        _cleanup_labels_ struct labels labels = {0};
        assert_int_equal(container_label(root, ID, &labels), files[i].container[0] != '\0');
        const char *container = labels_get(&labels, "container"), *pod = labels_get(&labels, "pod");
        assert_string_equal(container ? container : "", files[i].container);
        assert_string_equal(pod ? pod : "", files[i].pod);
        snprintf(command, sizeof(command), "rm -r %s", root);
        assert_int_equal(system(command), 0);
    }
}

/* What a process publishes replaces what its environment says. */
static void published_attributes(void **state)
{
    (void)state;
    struct globs allowed = {0};
    _cleanup_labels_ struct labels labels = {0};
    static const char environment[] = "OTEL_SERVICE_NAME=old";
    environment_identify(environment, sizeof(environment), &allowed, &labels);
    environment_attribute("service.name", "new", &labels);
    environment_attribute("service.version", "", &labels);
    environment_attribute("secret", "x", &labels);
    assert_string_equal(labels_get(&labels, "service_name"), "new");
    assert_int_equal(labels.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_pods),          cmocka_unit_test(damaged_lists),
        cmocka_unit_test(names_of_containers), cmocka_unit_test(published_attributes),
        cmocka_unit_test(labels_of_a_pod),     cmocka_unit_test(a_pods_file),
        cmocka_unit_test(each_runtime),        cmocka_unit_test(damaged_cgroups),
        cmocka_unit_test(path_for_rules),      cmocka_unit_test(environments),
        cmocka_unit_test(long_values),         cmocka_unit_test(ourselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
