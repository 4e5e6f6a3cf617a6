/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kubernetes's lists of pods (PodList), as a kubelet and the API server send them. One pod at a
 * time is held, with the fields that an agent labels containers by and a server finds targets by.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define PODLIST_TEXT_BYTES_MAX 1024 /* longer texts are cut */
#define PODLIST_PAIRS_MAX 64        /* labels, and annotations, of a pod */
#define PODLIST_PORTS_MAX 64        /* of a pod */
#define PODLIST_CONTAINERS_MAX 256  /* of a pod, in its spec and in its status each */

struct podlist_pair {
    const char *name, *value;
};

struct podlist_port {
    const char *container, *name, *protocol;
    uint16_t number; /* 0: the container declares no port */
};

struct podlist_container {
    const char *name, *id; /* "containerd://0123..."; "": it doesn't run */
};

/* No text is NULL. */
struct podlist_pod {
    const char *name, *namespace, *uid, *node, *ip, *host_ip, *phase;
    struct {
        const char *kind, *name;
        bool controls;
    } owner; /* the one that controls the pod, or else the first */
    struct podlist_pair *labels, *annotations;
    size_t label_count, annotation_count;
    struct podlist_port *ports; /* of the spec's containers; at least one for each container */
    size_t port_count;
    struct podlist_container *containers; /* of the status, initial ones included */
    size_t container_count;
};

/* Calls `take` with each pod, which lives until it returns. `ret_continue` (may be NULL) is the
 * token for the rest of the list, to be freed; "" at the end of it. */
typedef void podlist_take_fn(void *context, const struct podlist_pod *pod);
int podlist_read(const char *text, size_t length, podlist_take_fn *take, void *context,
                 char **ret_continue, struct error *error);

/* Writes `key` after what is in `name`, with "_" for what isn't a letter or a digit, as names of
 * labels need it. Longer ones are cut. */
void podlist_label_name(char *name, size_t room, const char *key);
