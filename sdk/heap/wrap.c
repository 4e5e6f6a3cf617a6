// SPDX-License-Identifier: Apache-2.0
// malloc and its family, as programs see them: the allocator's own function, and the sampler beside
// it. With nobody interested that is a load and a branch.

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "heap/real.h"
#include "heap/sampler.h"

#define EXPORT __attribute__((visibility("default")))

static inline void *counted(void *pointer, size_t size)
{
    if (UNLIKELY(heap_is_wanted()))
        sampler_count(pointer, size);
    return pointer;
}

EXPORT void *malloc(size_t size)
{
    if (UNLIKELY(!real_ready()))
        return real_early(size, 16);
    if (!UNLIKELY(heap_is_wanted()))
        return real.malloc(size);
    void *pointer = real.malloc(size);
    sampler_count(pointer, size);
    return pointer;
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (UNLIKELY(!real_ready()))
        return __builtin_mul_overflow(count, size, &bytes) ? NULL : real_early(bytes, 16);
    if (!UNLIKELY(heap_is_wanted()))
        return real.calloc(count, size);
    void *pointer = real.calloc(count, size);
    if (pointer)
        sampler_count(pointer, count * size);
    return pointer;
}

EXPORT void free(void *pointer)
{
    if (UNLIKELY(real_is_early(pointer)))
        return;
    sampler_forget(pointer);
    if (UNLIKELY(!real_ready()))
        return;
    real.free(pointer);
}

/* Moves what was allocated before there was an allocator. */
static void *move_early(void *pointer, size_t size)
{
    size_t old = real_early_size(pointer);
    void *moved = malloc(size);
    if (moved)
        memcpy(moved, pointer, old < size ? old : size);
    return moved;
}

EXPORT void *realloc(void *pointer, size_t size)
{
    if (UNLIKELY(!real_ready() || real_is_early(pointer)))
        return pointer ? move_early(pointer, size) : real_early(size, 16);
    struct sampler_moved moved = {0};
    if (UNLIKELY(live_may_have(pointer)))
        moved = sampler_move(pointer);
    void *result = real.realloc(pointer, size);
    if (UNLIKELY(!result && size && moved.was_live))
        sampler_keep(pointer, moved);
    return counted(result, size);
}

EXPORT void *reallocarray(void *pointer, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(pointer, bytes);
}

EXPORT int posix_memalign(void **ret_pointer, size_t alignment, size_t size)
{
    if (UNLIKELY(!real_ready() || !real.posix_memalign))
        return ENOMEM;
    int r = real.posix_memalign(ret_pointer, alignment, size);
    if (!r)
        counted(*ret_pointer, size);
    return r;
}

static void *unavailable(void)
{
    errno = ENOMEM;
    return NULL;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    if (UNLIKELY(!real_ready()))
        return real_early(size, alignment);
    return real.aligned_alloc ? counted(real.aligned_alloc(alignment, size), size) : unavailable();
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    if (UNLIKELY(!real_ready()))
        return real_early(size, alignment);
    return real.memalign ? counted(real.memalign(alignment, size), size) : unavailable();
}

EXPORT void *valloc(size_t size)
{
    return real_ready() && real.valloc ? counted(real.valloc(size), size) : unavailable();
}

EXPORT void *pvalloc(size_t size)
{
    return real_ready() && real.pvalloc ? counted(real.pvalloc(size), size) : unavailable();
}
