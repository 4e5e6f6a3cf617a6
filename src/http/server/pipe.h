/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded queue of bytes between a socket's thread and a handler's. It grows as bytes come, up to
 * a limit and within a budget that all pipes of a server share; it has no lock of its own.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIPE_FIRST_BYTES (16u << 10)

/* Bytes that pipes have allocated, and how many they may. A pipe's first allocation is always
 * granted: how many pipes there are is limited elsewhere. */
struct pipe_budget {
    atomic_size_t used;
    size_t limit;
};

/* Zeroes with `budget` and `limit` set are an empty pipe. */
struct pipe {
    struct pipe_budget *budget;
    size_t limit;    /* most bytes it may hold */
    size_t expected; /* bytes that somebody says will come, or 0: fewer steps of growing */
    uint8_t *data;
    size_t capacity, start, length;
};

void pipe_release(struct pipe *pipe);

/* Takes as many of the bytes as there is room for; returns how many. */
size_t pipe_put(struct pipe *pipe, const void *bytes, size_t length);

/* Takes all of them, beyond the budget if it has to be, for a sender who was allowed to send them:
 * false when the budget is exceeded twice, or the pipe's limit is. */
bool pipe_put_all(struct pipe *pipe, const void *bytes, size_t length);

/* How many bytes may come: what is free, after growing where little is. */
size_t pipe_room(struct pipe *pipe);

/* Gives at most `room` bytes; returns how many. */
size_t pipe_take(struct pipe *pipe, void *bytes, size_t room);

/* All bytes at once, where they lie, until pipe_release: NULL when there are none, or they are not
 * in one piece. */
const void *pipe_take_whole(struct pipe *pipe, size_t *ret_length);
