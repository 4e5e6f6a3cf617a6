/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code that is in no file: what just-in-time compilers write about their code into
 * /tmp/perf-PID.map and jit-PID.dump (docs/formats/jit.md).
 *
 * In a profile such code is in a mapping that is called "[jit PID]", from 0 to the end with offset
 * 0, so that a frame's address is the process's own. Used by one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "symbol/symbol.h"

#define JIT_MAPPING_NAME_BYTES 32

/* "[jit 1234]". */
void jit_mapping_name(char text[JIT_MAPPING_NAME_BYTES], uint32_t pid);
/* Whether the text is such a name, and of which process. */
bool jit_mapping_pid(const char *text, uint32_t *ret_pid);

#define JIT_PROCESSES_MAX 4096
#define JIT_BYTES_MAX (512ull << 20) /* of all processes; checked before each is read */
#define JIT_DESCRIPTORS_MAX 128      /* of files and directories that are kept open */

struct jit_names;

struct jit_stats {
    uint64_t processes;
    uint64_t maps, dumps; /* files that something was read from */
    uint64_t codes;       /* pieces of code that have a name */
    uint64_t refused;     /* what was left out because of a limit */
    uint64_t bytes;
};

/* For whoever looks at all processes of a machine all the time, and can't trust them. */
struct jit_limits {
    uint64_t memory_bytes;  /* of all users together (base/limits/shares.h) */
    uint64_t process_bytes; /* of one process */
    uint64_t read_bytes;    /* of files, in each jit_names_load_sampled() */
};

/* A user who wants more than his share. */
struct jit_excess {
    uint32_t user;
    uint64_t count; /* times that names of his processes were left out or forgotten */
};

struct jit_names *jit_names_new(void);
void jit_names_free(struct jit_names *names);

/*
 * Reads what a process's compilers have written since the last time. To be called when its code is
 * first met, so that its files are known when it is gone; when it ends; and before names are asked
 * for. True when there was something new.
 */
bool jit_names_load(struct jit_names *names, uint32_t pid);

/* The same for all processes that have such a mapping in a profile, from mapping number `first` on:
 * with the number of those that were there the last time, only for new ones; with 0 for all. */
void jit_names_load_mappings(struct jit_names *names, const struct profile *profile,
                             uint32_t first);

/* From now on only names of addresses that were sampled are kept, within these limits. For a
 * `names` that is new. */
void jit_names_limit(struct jit_names *names, const struct jit_limits *limits);
/*
 * Looks for the names of all addresses in a profile that are code of no file. What the limits leave
 * for a user's processes is read; large files take several calls. Small files come first. Processes
 * that are not in the profile are forgotten after some calls.
 */
void jit_names_load_sampled(struct jit_names *names, const struct profile *profile);
/* Gives all memory back. Limits stay, and which users lost names. */
void jit_names_forget(struct jit_names *names);
/* Users who lost names in the last calls, those with the most first. Returns how many. */
size_t jit_names_excess(const struct jit_names *names, struct jit_excess *ret_list, size_t room);

/*
 * The function at an address of a process, at a time (CLOCK_MONOTONIC; 0 for the last that was
 * there). The file and line are those of the address, where they are known. The pointers live as
 * long as `names`; with limits, until names are loaded again. False when there is no name.
 */
bool jit_names_find(struct jit_names *names, uint32_t pid, uint64_t address, uint64_t time_ns,
                    struct symbol_frame *ret_frame, enum frame_kind *ret_kind);

struct jit_stats jit_names_stats(const struct jit_names *names);
