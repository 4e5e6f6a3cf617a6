/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names at query time: profiles are stored with addresses where the sender had no names, and
 * queries name them with the symbols available by then. An inlined function becomes a frame of its
 * own. Also counts how much of a profile has names.
 */
#pragma once

#include "base/error.h"
#include "profile/profile.h"
#include "store/store.h"
#include "symbol/store/store.h"
#include "symbol/symbol.h"

/* Called for each build with addresses whose symbols the store doesn't have; `key` as in
 * symbol/store/store.h. May be NULL. */
typedef void query_unknown_fn(void *context, const char *key, const char *file);

/* Names the addresses of `profile` with the symbols of a tenant. Replaces the profile if there are
 * any. */
int query_name(struct profile *profile, struct symbol_store *symbols, const char *tenant,
               query_unknown_fn *unknown, void *context, struct error *error);

/* ---- frames of a store, one by one ---- */

/* A cache of symbol sources. For one thread at a time; ready when zeroed with `symbols` (may be
 * NULL) and `tenant` set. */
struct query_late {
    struct symbol_store *symbols;
    const char *tenant; /* whose they are; borrowed */
    struct query_late_source {
        char key[SYMBOL_KEY_BYTES];
        struct symbol_source *source; /* NULL: not known */
    } * sources;
    size_t count, capacity;
    const struct profile *last; /* the last mapping that was looked up, and its source */
    uint32_t last_mapping, last_index;
};
void query_late_release(struct query_late *late);
#define _cleanup_query_late_ __attribute__((cleanup(query_late_release)))

/* The names at a frame without one, the innermost first; none of them may be NULL. Returns their
 * number; they live until release. */
size_t query_late_names(struct query_late *late, const struct profile *tables, uint32_t frame,
                        struct symbol_frame names[SYMBOL_FRAMES_MAX]);

/* ---- how much has names ---- */

struct query_named {
    /* Over all frames of all samples, with the samples' values of the first type. */
    double named, all;
    struct query_nameless {
        uint32_t mapping; /* of the profile */
        double value;     /* of the samples with such a frame on their stack */
        uint64_t frames;  /* distinct */
    } * list;             /* most expensive first */
    size_t count;
};
void query_named_release(struct query_named *named);
#define _cleanup_query_named_ __attribute__((cleanup(query_named_release)))

/* Frames of the kernel and of code without a file count too, as mapping 0 or their own. */
void query_count_named(const struct profile *profile, struct query_named *ret_named);
