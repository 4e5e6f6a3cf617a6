// SPDX-License-Identifier: Apache-2.0
// Finding the allocator: see real.h.

#include "heap/real.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "heap/sampler.h"

struct real real;
_Alignas(64) char real_arena[REAL_ARENA_BYTES];
static _Atomic size_t arena_used;

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* Threads that get here at the same time find the same. */
bool real_resolve(void)
{
    if (sampler_thread.resolving)
        return false;
    sampler_thread.resolving = 1;
    struct real found = {
        .malloc = next("malloc"),
        .calloc = next("calloc"),
        .realloc = next("realloc"),
        .free = next("free"),
        .posix_memalign = next("posix_memalign"),
        .aligned_alloc = next("aligned_alloc"),
        .memalign = next("memalign"),
        .valloc = next("valloc"),
        .pvalloc = next("pvalloc"),
    };
    if (!found.malloc || !found.calloc || !found.realloc || !found.free) {
        static const char text[] = "libassay_heap: found no malloc() to call.\n";
        ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
        (void)ignored;
        abort();
    }
    real.calloc = found.calloc;
    real.realloc = found.realloc;
    real.free = found.free;
    real.posix_memalign = found.posix_memalign;
    real.aligned_alloc = found.aligned_alloc;
    real.memalign = found.memalign;
    real.valloc = found.valloc;
    real.pvalloc = found.pvalloc;
    /* Last, since it says that the others are there. */
    __atomic_store_n(&real.malloc, found.malloc, __ATOMIC_RELEASE);
    sampler_thread.resolving = 0;
    return true;
}

void *real_early(size_t size, size_t alignment)
{
    size_t mask = (alignment > 16 ? alignment : 16) - 1;
    size_t used = atomic_load(&arena_used), from;
    do {
        from = (used + mask) & ~mask;
        if (mask >= 64 || size > REAL_ARENA_BYTES || from > REAL_ARENA_BYTES - size)
            return NULL;
    } while (!atomic_compare_exchange_weak(&arena_used, &used, from + size));
    return real_arena + from;
}

size_t real_early_size(const void *pointer)
{
    return (size_t)(real_arena + REAL_ARENA_BYTES - (const char *)pointer);
}
