/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the pods of this node, from the kubelet's list: a cgroup has only ids. A thread reads
 * the list every half minute, so that lookups never wait.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "label/labels.h"

/* One container of a pod. */
struct pod_container {
    const char *pod_uid, *container_id; /* the id without its runtime */
    const char *pod, *namespace, *container;
    const char *service; /* what the pod's labels call it, or "" */
    const char *version; /* likewise */
};

#define POD_CONTAINERS_MAX 8192

struct pod_list {
    struct pod_container *list;
    size_t count, capacity;
    struct arena arena;
};

/* How good a label is as a service's name: the smallest number is the best, SIZE_MAX means
 * unsuitable. And whether it is the version. */
size_t pod_service_rank(const char *key, size_t length);
bool pod_is_version(const char *key, size_t length);

/* The kubelet's answer to GET /pods. */
int pod_list_read(struct pod_list *pods, const char *json, size_t length, struct error *error);
void pod_list_release(struct pod_list *pods);

struct pods;

/* `url` is that of the kubelet's read-only port, such as http://127.0.0.1:10255. */
int pods_start(const char *url, struct pods **ret_pods, struct error *error);
void pods_stop(struct pods *pods); /* takes NULL */

/* Sets the labels pod, namespace, container, service_name and version if they are known and not
 * set. False: the container isn't on the list. */
bool pods_label(struct pods *pods, const char *pod_uid, const char *container_id,
                struct labels *labels);
