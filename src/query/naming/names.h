/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names at query time: profiles are stored with addresses where the sender had no names, and
 * queries name them with the symbols available by then. An inlined function becomes a frame of its
 * own. named.h counts how much of a profile has names.
 */
#pragma once

#include "base/error.h"
#include "profile/profile.h"
#include "symbol/store/store.h"
#include "symbol/symbol.h"

#define QUERY_SYMBOLS_HINTS 256

/* A tenant's symbols, as a query uses them: each build is looked up once. For one thread at a time;
 * ready when zeroed with `store` (may be NULL) and `tenant` set. */
struct query_symbols {
    struct symbol_store *store;
    const char *tenant; /* borrowed */
    struct query_symbols_build {
        char key[SYMBOL_KEY_BYTES];
        struct symbol_source *source; /* NULL: not known */
    } * builds;
    size_t count, capacity;
    uint32_t hints[QUERY_SYMBOLS_HINTS]; /* where a mapping's build was the last time */
};
void query_symbols_release(struct query_symbols *symbols);
#define _cleanup_query_symbols_ __attribute__((cleanup(query_symbols_release)))

/* The names at a frame without one, the innermost first; none of them may be NULL. Returns their
 * number; they live until release. */
size_t query_symbols_at(struct query_symbols *symbols, const struct profile *tables, uint32_t frame,
                        struct symbol_frame names[SYMBOL_FRAMES_MAX]);

/* Called for each build with addresses whose symbols the store doesn't have; `key` as in
 * symbol/store/store.h. May be NULL. */
typedef void query_unknown_fn(void *context, const char *key, const char *file);

/* Names all addresses of `profile`. Replaces the profile if there are any. */
int query_name(struct profile *profile, struct symbol_store *store, const char *tenant,
               query_unknown_fn *unknown, void *context, struct error *error);
