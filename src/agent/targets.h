/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes are sampled, and what their samples are called. A process is looked at when its
 * first sample comes, again when it runs another program, and now and then while it lives; the
 * labels that come out are kept for as long as samples do. One thread at a time, but for
 * targets_count().
 */
#pragma once

#include "agent/identity/containers.h"
#include "agent/identity/identity.h"
#include "agent/identity/pod_file.h"
#include "agent/identity/pods.h"
#include "agent/settings/settings.h"
#include "base/idtable.h"
#include "capture/capture.h"

/* A process and its program. A child that ends before it can be identified gets its parent's
 * identity. */
struct target {
    uint64_t number; /* of the capture's process */
    uint32_t pid;
    bool unwanted;
    char *labels;      /* name, NUL, value, NUL, ..., and an empty name */
    char *environment; /* likewise */
    char *cgroup;
    char user[64];
    struct cgroup_identity identity;
    uint64_t published; /* what the process published then */
    int64_t looked_ns;  /* when its labels were made */
    int64_t used_ns;    /* when its last sample came, nearly */
};

#define TARGETS_MAX 8192

struct targets {
    struct agent_settings *settings;
    const char *proc;      /* "/proc" but in tests */
    const char *host_root; /* where the host's files are */
    bool user_wanted;      /* by some rule */
    struct pods *pods;     /* NULL: names of pods are unknown */
    struct pod_file pod_file;
    struct target *list;
    size_t count, capacity;
    struct id_table index; /* by number */
    uint64_t dropped;      /* processes that relabelling or a rule dropped */
    uint64_t forgotten;    /* because there were too many */
};

/* `settings` outlives it. */
void targets_init(struct targets *targets, struct agent_settings *settings);
void targets_release(struct targets *targets);

/* A capture_label_fn. */
uint32_t targets_label(void *targets, const struct capture_process *process,
                       struct profile *profile);

/* The labels of a process by what is known of it; false: it is not wanted. */
bool targets_describe(struct targets *targets, const struct process_facts *facts,
                      const char *build_id, struct labels *labels);

/* A process and its service, for other threads. */
struct target_service {
    uint32_t pid;
    uint64_t hash; /* target_service_hash() of its name */
};

uint64_t target_service_hash(const char *name);

/* Replaces a list by the processes that are sampled now. Their number; the capacity grows. */
size_t targets_services(const struct targets *targets, struct target_service **list,
                        size_t *capacity);

/* Forgets those that no samples come of any more: to be called once per window. */
void targets_tidy(struct targets *targets, int64_t now_ns);
