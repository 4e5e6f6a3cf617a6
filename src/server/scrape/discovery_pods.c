// SPDX-License-Identifier: Apache-2.0
// Pods of a Kubernetes cluster as targets: one for each port that a container declares, or one for
// a container without ports. See discovery_remote.h.

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "io/podlist.h"
#include "server/scrape/discovery_remote.h"

#define PREFIX "__meta_kubernetes_"

static void set_known(struct labels *labels, const char *name, const char *value)
{
    if (*value)
        labels_set(labels, name, value);
}

/* Prometheus's names for labels and annotations. */
static void set_pairs(struct labels *labels, const char *prefix, const struct podlist_pair *pairs,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[300];
        snprintf(name, sizeof(name), "%s", prefix);
        podlist_label_name(name, sizeof(name), pairs[i].name);
        labels_set(labels, name, pairs[i].value);
    }
}

/* The labels of all targets of a pod. */
static void set_labels(struct labels *labels, const struct podlist_pod *pod)
{
    set_known(labels, PREFIX "pod_name", pod->name);
    set_known(labels, PREFIX "namespace", pod->namespace);
    set_known(labels, PREFIX "pod_uid", pod->uid);
    set_known(labels, PREFIX "pod_node_name", pod->node);
    set_known(labels, PREFIX "pod_host_ip", pod->host_ip);
    set_known(labels, PREFIX "pod_phase", pod->phase);
    labels_set(labels, PREFIX "pod_ip", pod->ip);
    if (pod->owner.controls) {
        labels_set(labels, PREFIX "pod_controller_kind", pod->owner.kind);
        labels_set(labels, PREFIX "pod_controller_name", pod->owner.name);
    }
    set_pairs(labels, PREFIX "pod_label_", pod->labels, pod->label_count);
    set_pairs(labels, PREFIX "pod_annotation_", pod->annotations, pod->annotation_count);
}

static void add_target(struct target_groups *groups, const struct podlist_pod *pod,
                       const struct podlist_port *port, const struct labels *labels)
{
    bool six = strchr(pod->ip, ':');
    char number[8] = "";
    array_reserve(groups->list, groups->capacity, groups->count + 1);
    struct target_group *group = &groups->list[groups->count++];
    *group = (struct target_group){0};
    labels_copy(&group->labels, labels);
    labels_set(&group->labels, PREFIX "pod_container_name", port->container);
    if (port->number) {
        snprintf(number, sizeof(number), "%u", port->number);
        labels_set(&group->labels, PREFIX "pod_container_port_number", number);
        labels_set(&group->labels, PREFIX "pod_container_port_name", port->name);
        labels_set(&group->labels, PREFIX "pod_container_port_protocol", port->protocol);
    }
    struct buffer address = {0};
    buffer_printf(&address, "%s%s%s%s%s", six ? "[" : "", pod->ip, six ? "]" : "",
                  *number ? ":" : "", number);
    buffer_text(&address);
    array_reserve(group->addresses, group->capacity, 1);
    group->addresses[group->count++] = address.data;
}

static void take_pod(void *context, const struct podlist_pod *pod)
{
    struct target_groups *groups = context;
    struct labels labels = {0};
    if (!*pod->ip)
        return;
    set_labels(&labels, pod);
    for (size_t i = 0; i < pod->port_count && groups->count < REMOTE_TARGETS_MAX; i++)
        add_target(groups, pod, &pod->ports[i], &labels);
    labels_release(&labels);
}

int remote_read_pods(const char *json, size_t length, struct target_groups *groups,
                     char **ret_continue, struct error *error)
{
    return podlist_read(json, length, take_pod, groups, ret_continue, error);
}
