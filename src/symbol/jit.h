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
#define JIT_DESCRIPTORS_MAX 128      /* of files and folders that are kept open */

struct jit_names;

struct jit_figures {
    uint64_t processes;
    uint64_t maps, dumps; /* files that something was read from */
    uint64_t codes;       /* pieces of code that have a name */
    uint64_t refused;     /* what was left out because of a limit */
    uint64_t bytes;
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

/*
 * The function at an address of a process, at a time (CLOCK_MONOTONIC; 0 for the last that was
 * there). The file and line are those of the address, where they are known. The pointers live as
 * long as `names`. False when there is no name.
 */
bool jit_names_find(struct jit_names *names, uint32_t pid, uint64_t address, uint64_t time_ns,
                    struct symbol_frame *ret_frame, enum frame_kind *ret_kind);

struct jit_figures jit_names_figures(const struct jit_names *names);
