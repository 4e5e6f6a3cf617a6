// SPDX-License-Identifier: Apache-2.0
// C++'s operators new and delete, for allocators that have their own (jemalloc, tcmalloc,
// mimalloc): what those allocate never passes malloc. libstdc++'s call malloc, which must not count
// again.
//
// A library that is loaded later brings its C++ runtime along, where RTLD_NEXT doesn't look. Then
// new is malloc, as in that runtime.

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "heap/real.h"
#include "heap/sampler.h"

#define EXPORT __attribute__((visibility("default")))
#define MISSING ((void *)1) /* looked for, and not there */

/* The C++ compiler's names: size_t is m, align_val_t is St11align_val_t, nothrow_t is St9nothrow_t.
 */
static void *lookup(void *_Atomic *place, const char *name)
{
    void *found = atomic_load_explicit(place, memory_order_acquire);
    if (__builtin_expect(!found, 0)) {
        sampler_thread.inside++;
        found = dlsym(RTLD_NEXT, name);
        sampler_thread.inside--;
        if (!found)
            found = MISSING;
        atomic_store_explicit(place, found, memory_order_release);
    }
    return found == MISSING ? NULL : found;
}

/* Out of memory, without a C++ runtime in sight: the one that the caller has throws. */
static void *throw_by(const char *name, size_t size)
{
    void *runtime = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void *(*function)(size_t) = runtime ? (void *(*)(size_t))dlsym(runtime, name) : NULL;
    if (!function)
        abort();
    return function(size);
}

/* libstdc++'s new has called malloc, which has counted. (A flag would stay set when new throws.) */
static inline void *counted(void *pointer, size_t size, int64_t remaining)
{
    if (sampler_thread.remaining == remaining)
        sampler_count(pointer, size);
    return pointer;
}

/* new(size): PARAMETERS and ARGUMENTS are those of this variant, FALLBACK allocates without it. */
#define NEW(name, parameters, types, arguments, fallback)                                          \
    EXPORT void *name parameters;                                                                  \
    EXPORT void *name parameters                                                                   \
    {                                                                                              \
        static void *_Atomic place;                                                                \
        void *(*function)types = (void *(*)types)lookup(&place, #name);                            \
        if (!function)                                                                             \
            return fallback;                                                                       \
        if (!UNLIKELY(heap_is_wanted()))                                                           \
            return function arguments;                                                             \
        int64_t remaining = sampler_thread.remaining;                                              \
        return counted(function arguments, size, remaining);                                       \
    }

#define DELETE(name, parameters, types, arguments)                                                 \
    EXPORT void name parameters;                                                                   \
    EXPORT void name parameters                                                                    \
    {                                                                                              \
        static void *_Atomic place;                                                                \
        void(*function) types = (void(*) types)lookup(&place, #name);                              \
        if (!function) {                                                                           \
            free(pointer);                                                                         \
            return;                                                                                \
        }                                                                                          \
        if (real_is_early(pointer))                                                                \
            return;                                                                                \
        sampler_forget(pointer);                                                                   \
        function arguments;                                                                        \
    }

static void *plain(size_t size, const char *name)
{
    void *pointer = malloc(size ? size : 1);
    return pointer || !name ? pointer : throw_by(name, size);
}

static void *aligned(size_t size, size_t alignment, const char *name)
{
    void *pointer = NULL;
    if (posix_memalign(&pointer, alignment > sizeof(void *) ? alignment : sizeof(void *),
                       size ? size : 1) == 0)
        return pointer;
    return name ? throw_by(name, SIZE_MAX / 2) : NULL;
}

NEW(_Znwm, (size_t size), (size_t), (size), plain(size, "_Znwm"))
NEW(_Znam, (size_t size), (size_t), (size), plain(size, "_Znam"))
NEW(_ZnwmRKSt9nothrow_t, (size_t size, const void *nothrow), (size_t, const void *),
    (size, nothrow), plain(size, NULL))
NEW(_ZnamRKSt9nothrow_t, (size_t size, const void *nothrow), (size_t, const void *),
    (size, nothrow), plain(size, NULL))
NEW(_ZnwmSt11align_val_t, (size_t size, size_t alignment), (size_t, size_t), (size, alignment),
    aligned(size, alignment, "_Znwm"))
NEW(_ZnamSt11align_val_t, (size_t size, size_t alignment), (size_t, size_t), (size, alignment),
    aligned(size, alignment, "_Znam"))
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, const void *nothrow),
    (size_t, size_t, const void *), (size, alignment, nothrow), aligned(size, alignment, NULL))
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, const void *nothrow),
    (size_t, size_t, const void *), (size, alignment, nothrow), aligned(size, alignment, NULL))

DELETE(_ZdlPv, (void *pointer), (void *), (pointer))
DELETE(_ZdaPv, (void *pointer), (void *), (pointer))
DELETE(_ZdlPvm, (void *pointer, size_t size), (void *, size_t), (pointer, size))
DELETE(_ZdaPvm, (void *pointer, size_t size), (void *, size_t), (pointer, size))
DELETE(_ZdlPvRKSt9nothrow_t, (void *pointer, const void *nothrow), (void *, const void *),
       (pointer, nothrow))
DELETE(_ZdaPvRKSt9nothrow_t, (void *pointer, const void *nothrow), (void *, const void *),
       (pointer, nothrow))
DELETE(_ZdlPvSt11align_val_t, (void *pointer, size_t alignment), (void *, size_t),
       (pointer, alignment))
DELETE(_ZdaPvSt11align_val_t, (void *pointer, size_t alignment), (void *, size_t),
       (pointer, alignment))
DELETE(_ZdlPvmSt11align_val_t, (void *pointer, size_t size, size_t alignment),
       (void *, size_t, size_t), (pointer, size, alignment))
DELETE(_ZdaPvmSt11align_val_t, (void *pointer, size_t size, size_t alignment),
       (void *, size_t, size_t), (pointer, size, alignment))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *pointer, size_t alignment, const void *nothrow),
       (void *, size_t, const void *), (pointer, alignment, nothrow))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *pointer, size_t alignment, const void *nothrow),
       (void *, size_t, const void *), (pointer, alignment, nothrow))
