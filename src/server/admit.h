/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for what others send. It is taken from the server's account before reading begins, by the
 * length that is known, and while reading shows that it takes more; what finds none left is
 * refused. Private to src/server.
 */
#pragma once

#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"

struct admission {
    struct memory_meter meter; /* of the thread, from begin to end */
    struct budget *budget;
    const atomic_bool *cancelled;
    size_t taken_bytes;
    bool too_large; /* it needs more than there is in all */
};

/* False when there isn't so much within a moment: nothing was taken. */
bool admission_begin(struct admission *admission, struct budget *budget, size_t bytes,
                     unsigned wait_ms, const atomic_bool *cancelled);
void admission_end(struct admission *admission);

/* One of several things has been read: of what was noted since `before`, only so much is kept. */
static inline size_t admission_noted(void)
{
    return memory_meter ? memory_meter->used_bytes : 0;
}
void admission_kept(size_t before, size_t bytes);

/* ---- queries ---- */

#define ADMIT_STARTERS 6 /* queries at once that have begun with a part of what they may take */

struct server;
struct store_limits;

/* What each profile that the query of this thread merges may take by now. */
size_t admit_profile_bytes(struct server *server);

/* Sets what it may take, and how the store asks for more when that is to be had at once. */
void admit_limits(struct server *server, struct store_limits *limits);

/* Whether it may take more, and taking all of that: -EAGAIN when there isn't so much within some
 * seconds. Not with a lock held. */
bool admit_is_part(void);
int admit_rest(struct error *error);

/* ---- pushes ---- */

/* Why reading ended: what it says when there wasn't enough memory is replaced by why, with another
 * code if it may be tried again. `r` otherwise. */
int admission_explain(int r, struct error *error);
