// SPDX-License-Identifier: Apache-2.0
// What the agent keeps of lists of pods: see pods.h.

#include <string.h>

#include "agent/identity/pods.h"
#include "base/memory.h"
#include "io/podlist.h"

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

static const char *keep(struct pod_list *pods, const char *text)
{
    return *text ? arena_strndup(&pods->arena, text, strlen(text)) : "";
}

static void take_labels(struct pod_list *pods, const struct podlist_pod *from,
                        struct pod_container *pod)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < from->label_count; i++) {
        const char *key = from->labels[i].name, *value = keep(pods, from->labels[i].value);
        size_t rank = pod_service_rank(key, strlen(key));
        char name[128] = POD_LABEL_PREFIX;
        if (pod_is_version(key, strlen(key))) {
            pod->version = value;
        } else if (rank < best) {
            pod->service = value;
            best = rank;
        }
        podlist_label_name(name, sizeof(name), key);
        array_reserve(pods->labels, pods->label_capacity, pods->label_count + 1);
        pods->labels[pods->label_count++] = (struct pod_label){keep(pods, name), value};
    }
}

/* A Deployment owns a ReplicaSet whose name is its own and the hash of its template. */
static void take_owner(struct pod_list *pods, const struct podlist_pod *from,
                       struct pod_container *pod)
{
    const char *name = from->owner.name, *hash = "";
    for (size_t i = 0; i < from->label_count; i++)
        if (!strcmp(from->labels[i].name, "pod-template-hash"))
            hash = from->labels[i].value;
    size_t length = strlen(name), suffix = strlen(hash);
    pod->workload = keep(pods, name);
    pod->workload_kind = keep(pods, from->owner.kind);
    if (!strcmp(from->owner.kind, "ReplicaSet") && suffix && length > suffix + 1 &&
        name[length - suffix - 1] == '-' && !strcmp(name + length - suffix, hash)) {
        pod->workload = arena_strndup(&pods->arena, name, length - suffix - 1);
        pod->workload_kind = "Deployment";
    }
}

/* "containerd://0123...": what follows the slashes. */
static const char *id_of(const char *text)
{
    const char *at = strstr(text, "://");
    return at ? at + 3 : text;
}

static void take_pod(void *context, const struct podlist_pod *from)
{
    struct pod_list *pods = context;
    struct pod_container pod = {.pod_uid = keep(pods, from->uid),
                                .pod = keep(pods, from->name),
                                .namespace = keep(pods, from->namespace),
                                .service = "",
                                .version = "",
                                .node = keep(pods, from->node),
                                .first_label = pods->label_count};
    take_labels(pods, from, &pod);
    take_owner(pods, from, &pod);
    pod.label_count = pods->label_count - pod.first_label;
    for (size_t i = 0; i < from->container_count && pods->count < POD_CONTAINERS_MAX; i++) {
        pod.container = keep(pods, from->containers[i].name);
        pod.container_id = keep(pods, id_of(from->containers[i].id));
        if (!*pod.container_id)
            continue;
        array_reserve(pods->list, pods->capacity, pods->count + 1);
        pods->list[pods->count++] = pod;
    }
}

int pod_list_read(struct pod_list *pods, const char *json, size_t length, struct error *error)
{
    return podlist_read(json, length, take_pod, pods, NULL, error);
}
