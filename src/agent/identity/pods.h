/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the pods of this node, from the kubelet's list or the API server's: a cgroup has only
 * ids. A thread reads the list every half minute, so that lookups never wait.
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
    const char *node;
    const char *workload, *workload_kind; /* "web", "Deployment"; or "" */
    size_t first_label, label_count;      /* of the pod's, in the list */
};

/* A label of a pod: its name is POD_LABEL_PREFIX and the name with "_" for what isn't a letter or a
 * digit. */
#define POD_LABEL_PREFIX "__meta_pod_label_"
struct pod_label {
    const char *name, *value;
};

#define POD_CONTAINERS_MAX 8192

struct pod_list {
    struct pod_container *list;
    size_t count, capacity;
    struct pod_label *labels;
    size_t label_count, label_capacity;
    struct arena arena;
};

/* How good a label is as a service's name: the smallest number is the best, SIZE_MAX means
 * unsuitable. And whether it is the version. */
size_t pod_service_rank(const char *key, size_t length);
bool pod_is_version(const char *key, size_t length);

/* A PodList: the kubelet's answer to GET /pods, and the API server's to GET /api/v1/pods. */
int pod_list_read(struct pod_list *pods, const char *json, size_t length, struct error *error);
void pod_list_release(struct pod_list *pods);

struct pods;

/* URLs without a path; NULL: not asked. They are asked in this order until one answers. */
struct pods_options {
    const char *kubelet;    /* https://127.0.0.1:10250, or its read-only port */
    const char *api_server; /* https://kubernetes.default.svc */
    const char *read_only;  /* http://127.0.0.1:10255 */
    const char *node;       /* NULL: the host's name */
    const char *token_file; /* of a service account, for https; NULL: none */
    const char *ca_file;    /* NULL: the system's authorities */
    bool insecure;          /* any certificate will do: a kubelet's is often its own */
};
int pods_start(const struct pods_options *options, struct pods **ret_pods, struct error *error);
void pods_stop(struct pods *pods); /* takes NULL */

/* How many containers of pods are known. */
size_t pods_count(struct pods *pods); /* takes NULL */

/* Sets the labels pod, namespace, container, service_name, version, node, workload and
 * workload_kind if they are known and not set, and those of the pod. False: the container isn't on
 * the list. */
bool pods_label(struct pods *pods, const char *pod_uid, const char *container_id,
                struct labels *labels);
