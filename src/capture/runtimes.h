/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interpreters and virtual machines of the processes that run on this machine now, and what assay
 * sees of each: for `assay doctor`. Every process is looked at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/abilities.h"

#define RUNTIMES_MAX 256 /* that differ; more are counted as `refused` */

struct found_runtime {
    char name[16];    /* as in the label `runtime`: "python"; or of one that is not read: "perl" */
    char version[32]; /* "3.11.2", or "" */
    char *binary;     /* the path, as the process has it */
    uint32_t processes; /* that have it, */
    uint32_t pid;       /* and one of them */
    enum ability_state state;
    char meaning[192]; /* a sentence: what is shown, or why nothing is */
};

struct found_runtimes {
    struct found_runtime *list; /* by name, version and state */
    size_t count;
    uint32_t processes;  /* that were looked at, */
    uint32_t unreadable; /* those whose memory this user may not read, */
    uint32_t refused;    /* and those beyond RUNTIMES_MAX */
};

/* `bpf`: recordings use BPF; else only what other backends read counts. */
void found_runtimes_find(bool bpf, struct found_runtimes *ret_runtimes);
void found_runtimes_release(struct found_runtimes *runtimes);
