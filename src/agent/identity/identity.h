/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identifies a process by its cgroups, its environment and its executable. All of these are written
 * by others, some by the process itself, so nothing here trusts a length or a character. Variables
 * of an environment are chosen by name, and the rest never leaves the parser.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "label/glob.h"
#include "label/labels.h"

/* ---- cgroups ---- */

#define CONTAINER_ID_BYTES 65 /* of 64 hexadecimal digits */
#define POD_UID_BYTES 37
#define UNIT_BYTES 256

struct cgroup_identity {
    const char *runtime;                   /* "docker", "containerd", "cri-o", "podman"; "" */
    char container_id[CONTAINER_ID_BYTES]; /* "": in no container */
    char pod_uid[POD_UID_BYTES];           /* with dashes, as Kubernetes shows it; "": in no pod */
    char unit[UNIT_BYTES];                 /* the systemd service without ".service"; "": none */
};

/* Of the lines of /proc/PID/cgroup, for hierarchies of both versions. */
void cgroup_identify(const char *content, size_t length, struct cgroup_identity *ret_identity);

/* The path that stands for a process in rules: of cgroup 2 where it says something, else of
 * systemd's hierarchy, else the longest. Points into `content`; *ret_length may be 0. */
const char *cgroup_path(const char *content, size_t length, size_t *ret_length);

/* ---- environment ---- */

#define ENVIRONMENT_VALUE_BYTES 1024 /* of what is taken over; longer values are left out */

/*
 * Of the content of /proc/PID/environ, into `labels`: what OTEL_SERVICE_NAME and the known keys of
 * OTEL_RESOURCE_ATTRIBUTES say, by our names for it (service_name, version, instance, namespace,
 * environment, region, pod, container), and each variable whose name is `allowed` as
 * "__meta_env_NAME".
 */
void environment_identify(const char *content, size_t length, const struct globs *allowed,
                          struct labels *labels);

/* An attribute of a resource that the process publishes: it replaces what the environment says. */
void environment_attribute(const char *key, const char *value, struct labels *labels);

/* ---- a process ---- */

struct process_facts {
    uint32_t pid;
    bool gone;     /* nothing could be read of it */
    bool kernel;   /* a thread of the kernel */
    char name[16]; /* as its main thread calls itself */
    char *exe;     /* path as it sees it; NULL: not known */
    char *cgroup;  /* path; "" when not known */
    char user[64]; /* name or number; "" when not known or not wanted */
    struct cgroup_identity identity;
    struct labels environment;
    const char *runtime, *runtime_version; /* borrowed; NULL or "": none is known */
};

void process_facts_release(struct process_facts *facts);

/* Reads /proc/PID (`proc` is "/proc" except in tests). `name` and `exe` are the fallbacks; `exe`
 * may be NULL. The owner is looked up only if requested: it is a third of the total cost. */
void process_facts_read(const char *proc, uint32_t pid, const char *name, const char *exe,
                        const struct globs *allowed, bool user_wanted,
                        struct process_facts *ret_facts);

/* The file name without its directory. */
const char *path_name(const char *path);
