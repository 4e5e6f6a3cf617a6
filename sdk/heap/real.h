/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator behind us: what the program would call without this library, be that glibc,
 * jemalloc, mimalloc or tcmalloc. It is looked up at the first call. dlsym() itself may allocate:
 * the few bytes that it needs before there is an allocator come from a static arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct real {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
};
extern struct real real __attribute__((visibility("hidden")));

/* Looks the allocator up. False while dlsym() is doing so on this thread. */
bool real_resolve(void);
static inline bool real_ready(void)
{
    return __builtin_expect(real.malloc != NULL, 1) || real_resolve();
}

#define REAL_ARENA_BYTES 16384
extern char real_arena[REAL_ARENA_BYTES] __attribute__((visibility("hidden")));

static inline bool real_is_early(const void *pointer)
{
    return (size_t)((const char *)pointer - real_arena) < REAL_ARENA_BYTES;
}
/* Zeroed memory of the arena; NULL when it is used up. It is never reused. */
void *real_early(size_t size, size_t alignment);
/* At most this much can be read behind a pointer into the arena. */
size_t real_early_size(const void *pointer);
