// SPDX-License-Identifier: Apache-2.0
// Lists of pods, as the kubelet and the API server write them: see pods.h.

#include <ctype.h>
#include <string.h>

#include "agent/identity/pods.h"
#include "base/memory.h"
#include "io/json.h"

#define ANSWER_BYTES_MAX (32u << 20)

/* Names of pod labels for the service, the best first. */
static const char *const service_labels[] = {"app.kubernetes.io/name", "app", "k8s-app",
                                             "app.kubernetes.io/component"};
static const char version_label[] = "app.kubernetes.io/version";

size_t pod_service_rank(const char *key, size_t length)
{
    for (size_t i = 0; i < ARRAY_LENGTH(service_labels); i++)
        if (strlen(service_labels[i]) == length && !memcmp(service_labels[i], key, length))
            return i;
    return SIZE_MAX;
}

bool pod_is_version(const char *key, size_t length)
{
    return strlen(version_label) == length && !memcmp(version_label, key, length);
}

/* ---- the list ---- */

void pod_list_release(struct pod_list *pods)
{
    free(pods->list);
    free(pods->labels);
    arena_release(&pods->arena);
    *pods = (struct pod_list){0};
}

static const char *keep(struct pod_list *pods, const struct json_string *text)
{
    return arena_strndup(&pods->arena, text->data, strnlen(text->data, MIN(text->length, 1024)));
}

static int read_text(struct json *json, struct pod_list *pods, const char **ret_text)
{
    struct json_string text;
    int r = json_kind(json);
    if (r != JSON_STRING)
        return MIN(r, 0);
    if ((r = json_string(json, &text)) == 0)
        *ret_text = keep(pods, &text);
    return r;
}

/* The label's name as relabelling can use it, and its value. */
static void keep_label(struct pod_list *pods, const char *key, const char *value)
{
    char name[128] = POD_LABEL_PREFIX;
    size_t used = strlen(name);
    for (; *key && used + 1 < sizeof(name); key++)
        name[used++] = isalnum((unsigned char)*key) ? *key : '_';
    array_reserve(pods->labels, pods->label_capacity, pods->label_count + 1);
    pods->labels[pods->label_count++] =
        (struct pod_label){arena_strndup(&pods->arena, name, used), value};
}

static int read_labels(struct json *json, struct pod_list *pods, struct pod_container *pod)
{
    struct json_string key;
    size_t best = SIZE_MAX;
    int r = json_kind(json);
    if (r != JSON_OBJECT)
        return MIN(r, 0);
    json_object(json);
    while ((r = json_next_key(json, &key)) > 0) {
        const char *name = keep(pods, &key), *value = "";
        size_t rank = pod_service_rank(name, strlen(name));
        if (read_text(json, pods, &value) < 0)
            break;
        if (pod_is_version(name, strlen(name))) {
            pod->version = value;
        } else if (rank < best) {
            pod->service = value;
            best = rank;
        }
        if (pods->label_count - pod->first_label < POD_LABELS_MAX)
            keep_label(pods, name, value);
    }
    return r;
}

/* A Deployment owns a ReplicaSet whose name is its own and the hash of its template. */
static void take_owner(struct pod_list *pods, struct pod_container *pod, const char *kind,
                       const char *name, const char *hash)
{
    size_t length = strlen(name), suffix = strlen(hash);
    pod->workload = name;
    pod->workload_kind = kind;
    if (!strcmp(kind, "ReplicaSet") && suffix && length > suffix + 1 &&
        name[length - suffix - 1] == '-' && !strcmp(name + length - suffix, hash)) {
        pod->workload = arena_strndup(&pods->arena, name, length - suffix - 1);
        pod->workload_kind = "Deployment";
    }
}

/* The first owner that controls the pod, or else the first one. */
static int read_owners(struct json *json, struct pod_list *pods, struct pod_container *pod)
{
    struct json_string key;
    bool controlled = false;
    int r = json_kind(json);
    if (r != JSON_ARRAY)
        return MIN(r, 0);
    json_array(json);
    while ((r = json_next_element(json)) > 0) {
        const char *kind = "", *name = "";
        bool controls = false;
        json_object(json);
        while ((r = json_next_key(json, &key)) > 0) {
            if (json_is(&key, "kind"))
                read_text(json, pods, &kind);
            else if (json_is(&key, "name"))
                read_text(json, pods, &name);
            else if (json_is(&key, "controller") && json_kind(json) == JSON_BOOL)
                json_bool(json, &controls);
        }
        if (r == 0 && *name && (!*pod->workload || (controls && !controlled))) {
            pod->workload_kind = kind;
            pod->workload = name;
            controlled = controls;
        }
    }
    return r;
}

static int read_metadata(struct json *json, struct pod_list *pods, struct pod_container *pod)
{
    struct json_string key;
    const char *hash = "";
    int r;
    json_object(json);
    while ((r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "uid"))
            read_text(json, pods, &pod->pod_uid);
        else if (json_is(&key, "name"))
            read_text(json, pods, &pod->pod);
        else if (json_is(&key, "namespace"))
            read_text(json, pods, &pod->namespace);
        else if (json_is(&key, "labels"))
            read_labels(json, pods, pod);
        else if (json_is(&key, "ownerReferences"))
            read_owners(json, pods, pod);
    }
    for (size_t i = pod->first_label; i < pods->label_count; i++)
        if (!strcmp(pods->labels[i].name, POD_LABEL_PREFIX "pod_template_hash"))
            hash = pods->labels[i].value;
    take_owner(pods, pod, pod->workload_kind, pod->workload, hash);
    return r;
}

/* "containerd://0123...": what follows the slashes. */
static const char *id_of(const char *text)
{
    const char *at = strstr(text, "://");
    return at ? at + 3 : text;
}

static int read_containers(struct json *json, struct pod_list *pods)
{
    struct json_string key;
    int r = json_kind(json);
    if (r != JSON_ARRAY)
        return MIN(r, 0);
    json_array(json);
    while ((r = json_next_element(json)) > 0) {
        struct pod_container found = {.container_id = "", .container = ""};
        json_object(json);
        while ((r = json_next_key(json, &key)) > 0) {
            if (json_is(&key, "name"))
                read_text(json, pods, &found.container);
            else if (json_is(&key, "containerID"))
                read_text(json, pods, &found.container_id);
        }
        found.container_id = id_of(found.container_id);
        if (r == 0 && *found.container_id && pods->count < POD_CONTAINERS_MAX) {
            array_reserve(pods->list, pods->capacity, pods->count + 1);
            pods->list[pods->count++] = found;
        }
    }
    return r;
}

static int read_pod(struct json *json, struct pod_list *pods)
{
    struct pod_container pod = {.pod_uid = "",
                                .pod = "",
                                .namespace = "",
                                .service = "",
                                .version = "",
                                .node = "",
                                .workload = "",
                                .workload_kind = "",
                                .first_label = pods->label_count};
    struct json_string key, inner;
    size_t first = pods->count;
    int r;
    json_object(json);
    while ((r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "metadata")) {
            read_metadata(json, pods, &pod);
        } else if (json_is(&key, "spec")) {
            json_object(json);
            while ((r = json_next_key(json, &inner)) > 0)
                if (json_is(&inner, "nodeName"))
                    read_text(json, pods, &pod.node);
        } else if (json_is(&key, "status")) {
            json_object(json);
            while ((r = json_next_key(json, &inner)) > 0)
                if (json_is(&inner, "containerStatuses") ||
                    json_is(&inner, "initContainerStatuses"))
                    read_containers(json, pods);
        }
    }
    pod.label_count = pods->label_count - pod.first_label;
    /* Fields that the containers share may come after them. */
    for (size_t i = first; i < pods->count; i++) {
        struct pod_container *container = &pods->list[i];
        pod.container = container->container;
        pod.container_id = container->container_id;
        *container = pod;
    }
    return r;
}

int pod_list_read(struct pod_list *pods, const char *json_text, size_t length, struct error *error)
{
    struct source source;
    struct json_string key;
    int r =
        source_open_memory(&source, "the list of pods", json_text, length, ANSWER_BYTES_MAX, error);
    if (r < 0)
        return r;
    struct json json;
    json_init(&json, &source, error);
    json_object(&json);
    while ((r = json_next_key(&json, &key)) > 0)
        if (json_is(&key, "items") && json_kind(&json) == JSON_ARRAY) {
            json_array(&json);
            while ((r = json_next_element(&json)) > 0)
                read_pod(&json, pods);
        }
    if (r >= 0)
        r = json_end(&json);
    json_release(&json);
    source_release(&source);
    return MIN(r, 0);
}
