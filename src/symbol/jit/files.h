/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a process's compilers write about their code: its own /tmp, under its own number, which
 * are other ones than ours in a container. Both are remembered, so that the files can still be read
 * when the process is gone.
 *
 * Anybody can put anything into /tmp. Only a regular file that belongs to root or to the process's
 * user and has no second name is opened; links are not followed, and nothing is waited for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Instead of a descriptor. */
enum { JIT_FOLDER_OURS = -1, JIT_FOLDER_NONE = -2 };

struct jit_place {
    uint32_t pid;
    uint32_t inner_pid;              /* as the process itself counts */
    uid_t real_user, effective_user; /* who may own the files, beside root */
    int folder;                      /* its /tmp, or one of the above */
    bool alive;
    uint64_t started; /* when, in the kernel's ticks; 0: not known */
    bool renewed;     /* it is another process than it was before the last update */
};

void jit_place_init(struct jit_place *place, uint32_t pid);
void jit_place_release(struct jit_place *place);

/* Looks at the process again. Of one that is gone, what was known stays. */
void jit_place_update(struct jit_place *place);

/* A descriptor, or a negative errno. */
int jit_place_open_map(const struct jit_place *place);
/* The dump is found by the executable mapping that compilers make of it for that purpose: only
 * while the process is there. As much of its list of mappings is read as `*allowance` has bytes,
 * which are taken off. */
int jit_place_open_dump(const struct jit_place *place, uint64_t *allowance);
