// SPDX-License-Identifier: Apache-2.0
// Pods of a Kubernetes cluster as targets: one for each port that a container declares, or one for
// a container without ports. See discovery_remote.h.

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "io/json.h"
#include "server/scrape/discovery_remote.h"

#define PORTS_MAX 64       /* of a pod */
#define ANNOTATIONS_MAX 64 /* labels and annotations each */
#define PREFIX "__meta_kubernetes_"

struct port {
    char container[256], name[64], protocol[16];
    uint64_t number; /* 0: the container declares none */
};

struct pod {
    struct labels labels; /* of all its targets */
    char ip[64];
    struct port ports[PORTS_MAX];
    size_t port_count;
};

/* Longer texts are cut. */
static int read_text(struct json *json, char *text, size_t room)
{
    struct json_string value;
    int r = json_kind(json);
    if (r != JSON_STRING)
        return MIN(r, 0);
    if ((r = json_string(json, &value)) < 0)
        return r;
    size_t length = MIN(value.length, room - 1);
    memcpy(text, value.data, length);
    text[length] = '\0';
    return 0;
}

static int read_label(struct json *json, struct pod *pod, const char *name)
{
    char text[1024] = "";
    int r = read_text(json, text, sizeof(text));
    if (!r)
        labels_set(&pod->labels, name, text);
    return r;
}

/* Of labels or annotations: Prometheus's names for them. */
static int read_map(struct json *json, struct pod *pod, const char *kind)
{
    struct json_string key;
    char name[300], text[1024];
    int r = json_kind(json);
    if (r != JSON_OBJECT)
        return MIN(r, 0);
    json_object(json);
    for (size_t count = 0; (r = json_next_key(json, &key)) > 0; count++) {
        size_t used = (size_t)snprintf(name, sizeof(name), PREFIX "pod_%s_", kind);
        for (size_t i = 0; i < key.length && used + 1 < sizeof(name); i++)
            name[used++] = isalnum((unsigned char)key.data[i]) ? key.data[i] : '_';
        name[used] = '\0';
        text[0] = '\0';
        if (count < ANNOTATIONS_MAX && read_text(json, text, sizeof(text)) == 0)
            labels_set(&pod->labels, name, text);
    }
    return r;
}

static int read_owners(struct json *json, struct pod *pod)
{
    struct json_string key;
    int r = json_kind(json);
    if (r != JSON_ARRAY)
        return MIN(r, 0);
    json_array(json);
    while ((r = json_next_element(json)) > 0) {
        char kind[128] = "", name[256] = "";
        bool controls = false;
        json_object(json);
        while ((r = json_next_key(json, &key)) > 0)
            if (json_is(&key, "kind"))
                read_text(json, kind, sizeof(kind));
            else if (json_is(&key, "name"))
                read_text(json, name, sizeof(name));
            else if (json_is(&key, "controller") && json_kind(json) == JSON_BOOL)
                json_bool(json, &controls);
        if (controls) {
            labels_set(&pod->labels, PREFIX "pod_controller_kind", kind);
            labels_set(&pod->labels, PREFIX "pod_controller_name", name);
        }
    }
    return r;
}

static int read_metadata(struct json *json, struct pod *pod)
{
    struct json_string key;
    int r;
    json_object(json);
    while ((r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "name"))
            read_label(json, pod, PREFIX "pod_name");
        else if (json_is(&key, "namespace"))
            read_label(json, pod, PREFIX "namespace");
        else if (json_is(&key, "uid"))
            read_label(json, pod, PREFIX "pod_uid");
        else if (json_is(&key, "labels"))
            read_map(json, pod, "label");
        else if (json_is(&key, "annotations"))
            read_map(json, pod, "annotation");
        else if (json_is(&key, "ownerReferences"))
            read_owners(json, pod);
    return r;
}

static int read_port(struct json *json, struct pod *pod)
{
    struct json_string key;
    struct port port = {.protocol = "TCP"};
    int64_t number = 0;
    int r;
    json_object(json);
    while ((r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "name"))
            read_text(json, port.name, sizeof(port.name));
        else if (json_is(&key, "protocol"))
            read_text(json, port.protocol, sizeof(port.protocol));
        else if (json_is(&key, "containerPort") && json_kind(json) == JSON_NUMBER)
            json_i64(json, &number);
    if (r == 0 && number > 0 && number < 65536 && pod->port_count < PORTS_MAX) {
        port.number = (uint64_t)number;
        pod->ports[pod->port_count++] = port;
    }
    return r;
}

static int read_containers(struct json *json, struct pod *pod)
{
    struct json_string key;
    int r = json_kind(json);
    if (r != JSON_ARRAY)
        return MIN(r, 0);
    json_array(json);
    while ((r = json_next_element(json)) > 0) {
        size_t first = pod->port_count;
        char name[256] = "";
        json_object(json);
        while ((r = json_next_key(json, &key)) > 0)
            if (json_is(&key, "name")) {
                read_text(json, name, sizeof(name));
            } else if (json_is(&key, "ports") && json_kind(json) == JSON_ARRAY) {
                json_array(json);
                while ((r = json_next_element(json)) > 0)
                    read_port(json, pod);
            }
        if (first == pod->port_count && first < PORTS_MAX)
            pod->ports[pod->port_count++] = (struct port){0};
        for (size_t i = first; i < pod->port_count; i++)
            memcpy(pod->ports[i].container, name, sizeof(name));
    }
    return r;
}

static int read_status(struct json *json, struct pod *pod)
{
    struct json_string key;
    int r;
    json_object(json);
    while ((r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "podIP"))
            read_text(json, pod->ip, sizeof(pod->ip));
        else if (json_is(&key, "hostIP"))
            read_label(json, pod, PREFIX "pod_host_ip");
        else if (json_is(&key, "phase"))
            read_label(json, pod, PREFIX "pod_phase");
    return r;
}

static int read_spec(struct json *json, struct pod *pod)
{
    struct json_string key;
    int r;
    json_object(json);
    while ((r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "nodeName"))
            read_label(json, pod, PREFIX "pod_node_name");
        else if (json_is(&key, "containers"))
            read_containers(json, pod);
    return r;
}

static void add_pod(const struct pod *pod, struct target_groups *groups)
{
    bool six = strchr(pod->ip, ':');
    for (size_t i = 0; *pod->ip && i < pod->port_count && groups->count < REMOTE_TARGETS_MAX; i++) {
        const struct port *port = &pod->ports[i];
        char number[24], address[128];
        snprintf(number, sizeof(number), "%llu", (unsigned long long)port->number);
        snprintf(address, sizeof(address), "%s%s%s%s%s", six ? "[" : "", pod->ip, six ? "]" : "",
                 port->number ? ":" : "", port->number ? number : "");
        array_reserve(groups->list, groups->capacity, groups->count + 1);
        struct target_group *group = &groups->list[groups->count++];
        *group = (struct target_group){0};
        array_reserve(group->addresses, group->capacity, 1);
        group->addresses[group->count++] = memory_strdup(address);
        labels_copy(&group->labels, &pod->labels);
        labels_set(&group->labels, PREFIX "pod_ip", pod->ip);
        labels_set(&group->labels, PREFIX "pod_container_name", port->container);
        if (!port->number)
            continue;
        labels_set(&group->labels, PREFIX "pod_container_port_number", number);
        labels_set(&group->labels, PREFIX "pod_container_port_name", port->name);
        labels_set(&group->labels, PREFIX "pod_container_port_protocol", port->protocol);
    }
}

static int read_pod(struct json *json, struct target_groups *groups)
{
    struct pod *pod = memory_zalloc(1, sizeof(*pod));
    struct json_string key;
    int r;
    json_object(json);
    while ((r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "metadata"))
            read_metadata(json, pod);
        else if (json_is(&key, "spec"))
            read_spec(json, pod);
        else if (json_is(&key, "status"))
            read_status(json, pod);
    if (r == 0)
        add_pod(pod, groups);
    labels_release(&pod->labels);
    free(pod);
    return r;
}

int remote_read_pods(const char *text, size_t length, struct target_groups *groups,
                     char **ret_continue, struct error *error)
{
    struct source source;
    struct json_string key;
    char next[4096] = "";
    int r = source_open_memory(&source, "the list of pods", text, length, length + 1, error);
    if (r < 0)
        return r;
    struct json json;
    json_init(&json, &source, error);
    json_object(&json);
    while ((r = json_next_key(&json, &key)) > 0)
        if (json_is(&key, "metadata")) {
            json_object(&json);
            while ((r = json_next_key(&json, &key)) > 0)
                if (json_is(&key, "continue"))
                    read_text(&json, next, sizeof(next));
        } else if (json_is(&key, "items") && json_kind(&json) == JSON_ARRAY) {
            json_array(&json);
            while ((r = json_next_element(&json)) > 0)
                read_pod(&json, groups);
        }
    if (r >= 0)
        r = json_end(&json);
    json_release(&json);
    source_release(&source);
    if (r < 0)
        return r;
    *ret_continue = memory_strdup(next);
    return 0;
}
