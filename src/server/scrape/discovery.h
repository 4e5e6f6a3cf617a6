/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which targets there are: groups of addresses with labels, from the configuration itself and from
 * files that others write, JSON or YAML, as Prometheus has them. From a group's address to what is
 * scraped it is Prometheus's way, too: labels of its own, then relabelling.
 */
#pragma once

#include <sys/stat.h>

#include "config/yaml.h"
#include "label/labels.h"

#define DISCOVERY_FILES_MAX 10000
#define DISCOVERY_FILE_BYTES_MAX YAML_BYTES_MAX

struct target_group {
    char **addresses;
    size_t count, capacity;
    struct labels labels;
};

struct target_groups {
    struct target_group *list;
    size_t count, capacity;
};
void target_groups_release(struct target_groups *groups);

/* A list of {targets: [address, ...], labels: {name: value}}. A failure releases what was read
 * before it. */
int target_groups_read_yaml(const struct yaml_node *list, struct target_groups *ret_groups,
                            struct error *error);
/* The same from a file whose name ends in .json, .yml or .yaml, or from what such a file holds. */
int target_groups_read(const char *path, const char *text, size_t length,
                       struct target_groups *ret_groups, struct error *error);
int target_groups_read_file(const char *path, struct target_groups *ret_groups,
                            struct error *error);

/* ---- files that change ---- */

struct scrape_job;

struct discovery_file {
    char *path;       /* or a name for a service that knows targets, such as "http URL" */
    struct stat seen; /* when it was read last; of a service: */
    int64_t next_ns;  /* when to ask again, */
    uint64_t hash;    /* and what it said */
    struct target_groups groups;
    bool there, broken;
};

/* The content of one job's files. Zero-initialised: nothing read yet. */
struct discovery {
    char *job;
    struct discovery_file *files;
    size_t count, capacity;
    int64_t next_ns; /* when to look again */
};
void discovery_release(struct discovery *discovery);

/* Reads what is new or changed, and forgets what is gone. A file that can't be read keeps what it
 * said before, and is complained about once. True when there may be other targets now. */
bool discovery_look(struct discovery *discovery, const struct scrape_job *job);

/* ---- from addresses to targets ---- */

struct discovered {
    char *base;           /* http://host:port/prefix */
    char *query;          /* a=b&c=d, or "" */
    struct labels labels; /* of what is scraped */
};
void discovered_release(struct discovered *target);

/* 1 and a target, 0 when relabelling dropped it, or -EINVAL: no such target can be scraped. */
int discovery_target(const struct scrape_job *job, const struct target_group *group,
                     const char *address, struct discovered *ret_target, struct error *error);
