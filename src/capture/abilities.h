/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Abilities of this kernel and this user, tested by trying them: for `assay doctor`, and for error
 * messages. Each answer comes with its consequence for assay and, if possible, the exact command
 * that fixes it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum ability_state { ABILITY_OK, ABILITY_LIMITED, ABILITY_NO };

#define ABILITY_TEXT_BYTES 256
#define ABILITIES_MAX 32

struct ability {
    const char *name; /* stays the same: programs may look for it */
    enum ability_state state;
    char found[ABILITY_TEXT_BYTES];
    char meaning[ABILITY_TEXT_BYTES]; /* a sentence: which command works how */
    char fix[ABILITY_TEXT_BYTES];     /* a command, or what to do where none does it; "": nothing */
};

/* What works, and by which means. */
struct ability_command {
    const char *command; /* "record -- CMD" */
    bool works;
    char means[ABILITY_TEXT_BYTES]; /* "by BPF, with kernel frames"; or why not */
};

enum { ABILITY_RECORD_COMMAND, ABILITY_RECORD_PID, ABILITY_RECORD_ALL, ABILITY_STACKS };
#define ABILITY_COMMANDS (ABILITY_STACKS + 1)

struct abilities {
    struct ability list[ABILITIES_MAX];
    size_t count;
    struct ability_command commands[ABILITY_COMMANDS];
};

/* Takes some tenths of a second, starts and ends child processes, and leaves nothing behind but
 * the cache's directory. */
void abilities_find(struct abilities *ret_abilities);

/* "ok", "limited" or "no" */
const char *ability_state_name(enum ability_state state);

/* The one with this name; NULL when there is none. */
const struct ability *abilities_get(const struct abilities *abilities, const char *name);
