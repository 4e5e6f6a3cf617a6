/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What jit.c, which reads and finds, and jit_sampled.c, which reads within limits, share.
 */
#pragma once

#include <sys/stat.h>

#include "base/arena.h"
#include "base/idtable.h"
#include "base/limits/shares.h"
#include "symbol/jit/code.h"
#include "symbol/jit/files.h"
#include "symbol/jit/jit.h"
#include "symbol/jit/jitdump.h"
#include "symbol/jit/name.h"
#include "symbol/jit/perfmap.h"

/* A parsed file. Its names are split when they are first used. */
struct jit_source {
    struct jit_codes codes;
    struct jit_name *names; /* by text number; `name` is NULL where nobody did */
    size_t name_count;
    struct arena arena; /* of these names */
};

/*
 * With limits a file is read again from its beginning when addresses are wanted that nobody wanted
 * before. Until that is done the last pass counts, where it has something.
 */
struct jit_pass {
    struct jit_source fresh;
    bool runs;
    bool again; /* another one has to follow */
};

struct jit_process {
    struct jit_place place;
    struct perf_map map;
    struct jit_dump dump;
    int dump_fd; /* -1: none */
    struct stat dump_file;
    struct jit_source mapped, dumped;
    size_t bytes;

    /* With limits. */
    struct jit_wanted wanted;
    struct jit_pass map_pass, dump_pass;
    uint64_t round;        /* in which it was last sampled */
    uint64_t looked_round; /* in which it was looked for a dump; 0: it was not */
    uint32_t user;         /* whose share `bytes` are of */
};

struct jit_names {
    struct jit_process **list;
    size_t count, capacity;
    struct id_table index; /* by pid */
    size_t descriptors;
    struct jit_stats stats;

    struct jit_limits limits; /* memory_bytes 0: none */
    struct shares shares;     /* of memory, by user */
    struct shares lost;       /* how often something was refused to whom, in these rounds */
    uint64_t round;
};

static inline bool jit_names_limited(const struct jit_names *names)
{
    return names->limits.memory_bytes;
}

struct jit_process *jit_find_process(const struct jit_names *names, uint32_t pid);
struct jit_process *jit_get_process(struct jit_names *names, uint32_t pid);
void jit_process_free(struct jit_process *process);

void jit_source_init(struct jit_source *source, bool has_times);
void jit_source_release(struct jit_source *source);
size_t jit_source_bytes(const struct jit_source *source);

/* Looks whether there is a dump, and whether it is another one than before. The allowance is
 * jit_place_open_dump()'s. */
void jit_find_dump(struct jit_process *process, uint64_t *allowance);
/* A jit_read_fn of the process's dump. */
ssize_t jit_read_dump_file(void *process, uint64_t offset, void *buffer, size_t length);

size_t jit_descriptors_of(const struct jit_process *process);
/* Closes the process's files where there are too many open ones. */
void jit_limit_descriptors(struct jit_names *names, struct jit_process *process);
