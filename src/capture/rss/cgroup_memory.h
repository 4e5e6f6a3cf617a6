/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cgroups of processes use, and what they may: the smallest limit of a cgroup and those
 * above it. Of cgroup 2, or of the memory hierarchy of cgroup 1.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUP_MEMORY_PATH_BYTES 512
#define CGROUP_MEMORY_MAX 1024

struct cgroup_memory {
    char path[CGROUP_MEMORY_PATH_BYTES]; /* below the root, as /proc/PID/cgroup has it */
    uint64_t used, limit;                /* limit 0: there is none */
    int64_t read_ns;
    bool there; /* what was read last */
};

struct cgroup_memories {
    char root[CGROUP_MEMORY_PATH_BYTES]; /* where it is mounted; "": nowhere */
    bool second;                         /* cgroup 2 */
    struct cgroup_memory *list;
    size_t count, capacity;
};

/* Finds the mount in `mounts`, a file like /proc/self/mounts. */
void cgroup_memories_init(struct cgroup_memories *cgroups, const char *mounts);
void cgroup_memories_release(struct cgroup_memories *cgroups);

/* The cgroup of a process by its file /proc/PID/cgroup, whose content this is: an index, or -1 where
 * none counts its memory, for the root, and beyond CGROUP_MEMORY_MAX. */
int cgroup_memories_find(struct cgroup_memories *cgroups, const char *content, size_t length);

/* Reads it again if that was before `since_ns`. */
const struct cgroup_memory *cgroup_memories_read(struct cgroup_memories *cgroups, int index,
                                                 int64_t since_ns, int64_t now_ns);
