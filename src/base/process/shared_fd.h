/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file descriptor that several threads hold: it is closed when the last of them lets it go.
 * References may be taken and given back from any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"

struct shared_fd {
    atomic_uint users;
    int fd;
};

/* Takes `fd` over. */
static inline struct shared_fd *shared_fd_new(int fd)
{
    struct shared_fd *shared = memory_zalloc(1, sizeof(*shared));
    atomic_init(&shared->users, 1);
    shared->fd = fd;
    return shared;
}

/* Both take NULL. */
static inline struct shared_fd *shared_fd_ref(struct shared_fd *shared)
{
    if (shared)
        atomic_fetch_add(&shared->users, 1);
    return shared;
}

static inline void shared_fd_unref(struct shared_fd *shared)
{
    if (!shared || atomic_fetch_sub(&shared->users, 1) != 1)
        return;
    close(shared->fd);
    free(shared);
}
