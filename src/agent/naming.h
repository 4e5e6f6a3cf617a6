/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for a window's frames. Most frames of a window were in the last one, too: what they are
 * called is remembered, so that binaries are only opened for what is new, and within limits of
 * memory. Names come from symbol tables; debug information is left to the server, which has it for
 * all hosts. One thread at a time, but for namer_stats() and namer_excess().
 *
 * Addresses that only this host could ever name get no farther: code of JITs and of the kernel goes
 * by its name, or as [jit] and [kernel].
 */
#pragma once

#include <stdatomic.h>

#include "profile/profile.h"
#include "symbol/jit/jit.h"

#define NAMER_EXCESS_MAX 16

struct namer;

struct namer_stats {
    uint64_t frames;    /* that were asked for */
    uint64_t unnamed;   /* of them, those without a name */
    uint64_t found;     /* of them, those that had to be looked for */
    uint64_t postponed; /* times that a large file was left for the next time */
    uint64_t too_large; /* times that a file's tables were left out for their size */
};

struct namer *namer_new(void);
void namer_free(struct namer *namer);

/* Called before a file is opened for the first time: the callback may wait for its budget, and
 * return false to leave large files for the next time. */
void namer_set_pause(struct namer *namer, bool (*pause)(void *context), void *context);

/* A mapping's file, by its number in the profile. */
struct named_file {
    const char *path; /* where it can be opened now; NULL: nowhere */
    const char *key;  /* what tells it from all others; NULL: its frames stay addresses */
};

/* Adds all of `from` to `to`, which is empty, with names. Frames of files stay addresses where
 * `files` is NULL. */
int namer_name(struct namer *namer, const struct profile *from, const struct named_file *files,
               struct profile *to, struct error *error);

/* Gives back all that can be looked up again. */
void namer_forget(struct namer *namer);

struct namer_stats namer_stats(const struct namer *namer);

/* Users who lost names of their JITs' code in the last minutes, for want of a larger share. From
 * any thread; returns how many of at most `room`. */
size_t namer_excess(struct namer *namer, struct jit_excess *ret_list, size_t room);
