// SPDX-License-Identifier: Apache-2.0
// Bounded queues of bytes: see pipe.h. The bytes are in a ring.

#include "http/server/pipe.h"

#include <string.h>

#include "base/memory.h"

#define TRUST 8

void pipe_release(struct pipe *pipe)
{
    if (pipe->capacity)
        atomic_fetch_sub(&pipe->budget->used, pipe->capacity);
    free(pipe->data);
    pipe->data = NULL;
    pipe->capacity = pipe->start = pipe->length = 0;
}

static void copy_out(const struct pipe *pipe, uint8_t *bytes, size_t count)
{
    size_t first = MIN(count, pipe->capacity - pipe->start);
    if (count)
        memcpy(bytes, pipe->data + pipe->start, first);
    if (count > first)
        memcpy(bytes + first, pipe->data, count - first);
}

/* Makes room for `needed` bytes in all if the limits allow; otherwise for as many as they do.
 * False: the budget has not enough, so many times over. */
static bool resize_within(struct pipe *pipe, size_t needed, unsigned times)
{
    size_t capacity = MAX(pipe->capacity, (size_t)PIPE_FIRST_BYTES);
    while (capacity < needed && capacity < pipe->limit)
        capacity *= 2;
    capacity = MIN(capacity, pipe->limit);
    if (capacity <= pipe->capacity)
        return true;
    size_t extra = capacity - pipe->capacity;
    size_t used = atomic_fetch_add(&pipe->budget->used, extra);
    if (pipe->capacity && used + extra > pipe->budget->limit * times) {
        atomic_fetch_sub(&pipe->budget->used, extra);
        return false;
    }
    uint8_t *data = memory_alloc(capacity);
    copy_out(pipe, data, pipe->length);
    free(pipe->data);
    pipe->data = data;
    pipe->capacity = capacity;
    pipe->start = 0;
    return true;
}

static bool resize(struct pipe *pipe, size_t needed)
{
    return resize_within(pipe, needed, 1);
}

/* An announced length is trusted up to a multiple of the bytes received. */
static void grow(struct pipe *pipe, size_t needed)
{
    size_t trusted = MIN(pipe->expected, TRUST * pipe->length);
    if (trusted <= needed || !resize(pipe, trusted))
        resize(pipe, needed);
}

size_t pipe_put(struct pipe *pipe, const void *bytes, size_t length)
{
    if (pipe->capacity - pipe->length < length)
        grow(pipe, pipe->length + MIN(length, pipe->limit - MIN(pipe->limit, pipe->length)));
    size_t count = MIN(length, pipe->capacity - pipe->length);
    if (!count)
        return 0;
    size_t end = (pipe->start + pipe->length) % pipe->capacity;
    size_t first = MIN(count, pipe->capacity - end);
    memcpy(pipe->data + end, bytes, first);
    if (count > first)
        memcpy(pipe->data, (const uint8_t *)bytes + first, count - first);
    pipe->length += count;
    return count;
}

bool pipe_put_all(struct pipe *pipe, const void *bytes, size_t length)
{
    size_t put = pipe_put(pipe, bytes, length);
    if (put < length && resize_within(pipe, pipe->length + length - put, 2))
        put += pipe_put(pipe, (const uint8_t *)bytes + put, length - put);
    return put == length;
}

size_t pipe_room(struct pipe *pipe)
{
    if (pipe->capacity && pipe->capacity - pipe->length < PIPE_FIRST_BYTES / 2)
        grow(pipe, pipe->length + PIPE_FIRST_BYTES / 2);
    return MAX(pipe->capacity, MIN((size_t)PIPE_FIRST_BYTES, pipe->limit)) - pipe->length;
}

size_t pipe_take(struct pipe *pipe, void *bytes, size_t room)
{
    size_t count = MIN(room, pipe->length);
    if (!count)
        return 0;
    copy_out(pipe, bytes, count);
    pipe->start = (pipe->start + count) % pipe->capacity;
    pipe->length -= count;
    return count;
}

const void *pipe_take_whole(struct pipe *pipe, size_t *ret_length)
{
    if (!pipe->length || pipe->length > pipe->capacity - pipe->start)
        return NULL;
    const uint8_t *bytes = pipe->data + pipe->start;
    *ret_length = pipe->length;
    pipe->start = pipe->length = 0;
    return bytes;
}
