/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the probes otel_memory:alloc and otel_memory:free in the files that processes have mapped,
 * and attaches the programs of heap.bpf.c to them: in one process, or in all that have the file
 * mapped, those that start later included. One thread at a time.
 */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/idtable.h"
#include "bpf/heap.h"
#include "capture/bpf/probes.h"
#include "capture/record/modules.h"
#include "capture/record/processes.h"

struct bpf_link;

#define HEAP_FILES_MAX 64        /* that are attached for all processes */
#define HEAP_FILES_OF_USER_MAX 8 /* of one user but root */
#define HEAP_FILES_LOOKED_MAX 16384

/* A file with probes. */
struct heap_file {
    int fd; /* keeps it, and is the way to it */
    uint64_t device, inode;
    uint32_t owner;
    int free_link, alloc_link; /* -1: not attached now */
    unsigned first, count;     /* of its places */
    int64_t seen_ns;
};

struct heap_attach {
    struct bpf_probes *probes;
    struct bpf_heap_place *places;
    struct bpf_link *links[BPF_HEAP_PLACES]; /* of one process */
    bool taken[BPF_HEAP_PLACES];             /* entries of `places` that are in use */
    unsigned allocs;                         /* probes of allocations that are attached */
    struct heap_file files[HEAP_FILES_MAX];
    size_t file_count;
    struct id_table looked; /* files without probes */
    struct {
        uint64_t device, inode;
    } * looked_list;
    size_t looked_count, looked_capacity;
    size_t modules_seen;
    DIR *proc;
    FILE *maps; /* of the process that is being looked at; NULL: of none */
    pid_t maps_pid;
    unsigned maps_lines;
    uint64_t maps_device, maps_inode; /* of the last line */
    bool off;                         /* nothing is attached */
    bool first_round;                 /* of all processes is over */
    int64_t turn_ns;
    uint64_t refused; /* files beyond the limits */
};

void heap_attach_init(struct heap_attach *attach, struct bpf_probes *probes,
                      struct bpf_heap_place *places);
void heap_attach_release(struct heap_attach *attach);

/* To the files of one process, in it alone. The error says how to get the probes. */
int heap_attach_process(struct heap_attach *attach, pid_t pid, struct error *error);

/* To a file, in whichever processes map it from now on. */
int heap_attach_file(struct heap_attach *attach, const char *path, struct error *error);

/* Before the programs are loaded: they are for all processes. */
int heap_attach_choose_all(struct bpf_probes *probes, struct error *error);

/* For all processes: looks at what was mapped since the last turn, and at a few processes that have
 * not been sampled. */
void heap_attach_turn(struct heap_attach *attach, const struct modules *modules,
                      const struct processes *processes, int64_t now_ns);

/* Detaches all of them, so that nobody has to pay; or attaches them again. */
void heap_attach_set(struct heap_attach *attach, bool on);
