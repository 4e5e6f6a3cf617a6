/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives the kernel the data to walk stacks: of the processes that were sampled, their
 * mappings; of the files that they have mapped, those unwind rows that walks need. Rows come in
 * when a walk in user space has used them.
 */
#pragma once

#include "capture/bpf/sampler.h"
#include "capture/record/segments.h"

/* A file's rows in the pool. */
struct installed_file {
    const struct module *module; /* whose rows they are: `same` of all that share them */
    uint32_t number;             /* in the pool; 0: it has no rows */
};

struct installer {
    struct bpf_sampler *sampler;
    struct modules *modules;
    struct segments *segments;
    struct unwind_pool pool;
    struct installed_file *files;
    size_t file_count, file_capacity;
    struct id_table index;        /* of files, by module */
    struct bpf_mapping *mappings; /* while a list is made */
    size_t mapping_capacity;
    uint64_t refused; /* processes that found no room in the kernel */
};

void installer_init(struct installer *installer, struct bpf_sampler *sampler,
                    struct modules *modules, struct segments *segments);
void installer_release(struct installer *installer);

/* A process as the walker in user space sees it; what it looks up is loaded. */
struct installer_view {
    struct installer *installer;
    struct process *process;
};

/* An unwind_find_fn for a `struct installer_view`. */
bool installer_place(void *view, uint64_t address, struct unwind_place *ret_place);

/* Brings in what walks will need of a mapping: a file with many rows only in part. */
void installer_prepare(struct installer *installer, struct mapping *mapping);

/* Brings in what a walk in the kernel lacked at an address. */
void installer_load(struct installer *installer, struct process *process, uint64_t address);

/* Tells the kernel what a process has mapped, as of `until_ns`. */
void installer_install(struct installer *installer, struct process *process, uint64_t until_ns);
/* Updates a process that the kernel knows: its interpreter. */
void installer_describe(struct installer *installer, struct process *process);
/* A child that shares its parent's mappings, as the kernel has made it. */
void installer_share(struct installer *installer, struct process *child,
                     const struct process *parent);
/* The process has ended, or what was said of it is in doubt. */
void installer_forget(struct installer *installer, struct process *process);

/* Too little is free to tell the kernel what it may never need. */
bool installer_crowded(const struct installer *installer);
/* A table is full: everything in the kernel has to be said anew. */
bool installer_full(const struct installer *installer);
/* After the kernel has forgotten all processes and nothing of them is on its way any more. */
void installer_reset(struct installer *installer);
