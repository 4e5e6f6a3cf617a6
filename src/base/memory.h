/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation and ownership. Linux overcommits, so malloc seldom fails before the kernel ends the
 * process; where it does, these end it with a sentence, after they have waited a second for a large
 * one. What protects a server from hostile input
 * is the limit on each queue, map and request, not a check of every malloc.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

void *memory_alloc(size_t size_bytes) __attribute__((malloc, alloc_size(1), returns_nonnull));
void *memory_zalloc(size_t count, size_t size_bytes)
    __attribute__((malloc, alloc_size(1, 2), returns_nonnull));

/* As memory_zalloc, asking the kernel for huge pages where that pays: for tables that are read all
 * over the place, most of a random access is the walk of the page tables. */
void *memory_zalloc_scattered(size_t count, size_t size_bytes)
    __attribute__((malloc, alloc_size(1, 2), returns_nonnull));
void *memory_resize(void *pointer, size_t count, size_t size_bytes)
    __attribute__((alloc_size(2, 3), returns_nonnull));
char *memory_strdup(const char *text) __attribute__((malloc, returns_nonnull));
char *memory_strndup(const char *text, size_t length) __attribute__((malloc, returns_nonnull));

/*
 * The same for memory whose size comes from input, such as a file's section: NULL if there is not
 * so much, also without the reserve (see below). The caller does without that input.
 */
void *memory_try_alloc(size_t size_bytes) __attribute__((malloc, alloc_size(1)));
void *memory_try_zalloc(size_t count, size_t size_bytes) __attribute__((malloc, alloc_size(1, 2)));
void *memory_try_resize(void *pointer, size_t count, size_t size_bytes)
    __attribute__((alloc_size(2, 3)));

/* How often these have given NULL. Unchanged over a piece of work: none of its input was left out
 * for want of memory. */
uint64_t memory_refusals(void);

/* Room for `needed` elements in a growing array: doubles *capacity as needed. */
void *memory_grow(void *array, size_t *capacity, size_t needed, size_t element_bytes);

/* array_reserve(a, cap, n): makes room for n elements of *a; `cap` is a size_t lvalue. */
#define array_reserve(array, capacity, needed)                                                     \
    do {                                                                                           \
        if ((size_t)(needed) > (capacity))                                                         \
            (array) = memory_grow((array), &(capacity), (needed), sizeof(*(array)));               \
    } while (0)

/* False if there is not so much memory; the array is as it was then. */
void *memory_try_grow(void *array, size_t *capacity, size_t needed, size_t element_bytes);
#define array_try_reserve(array, capacity, needed)                                                 \
    ({                                                                                             \
        bool has_ = (size_t)(needed) <= (capacity);                                                \
        void *grown_ =                                                                             \
            has_ ? NULL : memory_try_grow((array), &(capacity), (needed), sizeof(*(array)));       \
        if (grown_)                                                                                \
            (array) = grown_;                                                                      \
        has_ || grown_;                                                                            \
    })

/*
 * Memory that a thread allocates while it reads untrusted input: arrays and blocks of at least
 * 64 KiB, as they grow. Freed memory isn't subtracted, so this is an upper bound, for short pieces
 * of work. Allocations never fail; readers ask memory_full() now and then, and stop.
 */
struct memory_meter {
    size_t used_bytes, granted_bytes;
    bool (*more)(struct memory_meter *meter); /* raises what is granted, or says that it can't */
    bool full;                                /* it couldn't */
};
extern _Thread_local struct memory_meter *memory_meter; /* the thread's; NULL: nobody counts */

/*
 * Memory set aside for a shortage. When an allocation fails, the reserve is given back to the
 * kernel and the allocation is tried again, so that the request at hand ends in an orderly way
 * instead of ending the process; a metered thread is told that its memory is full. Until the
 * reserve has been taken again, nothing new should begin. It is address space alone: its pages are
 * never touched.
 */
void memory_reserve(size_t bytes); /* at the start; 0: no reserve */

/* Takes the reserve again if it was given back. False: there is still a shortage. */
bool memory_reserved(void);

/* Allocations that failed at first since the start. */
uint64_t memory_shortages(void);

/* Resident memory of this process, by the kernel's account, pages of files included. 0 when it
 * isn't known. Costs some microseconds. */
size_t memory_resident(void);

#define MEMORY_NOTED_BYTES (64u << 10)

/* For objects that a library allocates, as ZSTD_createDCtx() does: memory_create(CALL) makes the
 * call, once more without the reserve if it returns NULL, and never gives NULL. */
void memory_shortage(void);
void memory_require(const void *made);
#define memory_create(call)                                                                        \
    ({                                                                                             \
        __typeof__(call) made_ = (call);                                                           \
        if (!made_) {                                                                              \
            memory_shortage();                                                                     \
            made_ = (call);                                                                        \
            memory_require(made_);                                                                 \
        }                                                                                          \
        made_;                                                                                     \
    })

void memory_note(size_t bytes);

static inline bool memory_full(void)
{
    return memory_meter && memory_meter->full;
}

static inline void cleanup_free_pointer(void *pointer)
{
    free(*(void **)pointer);
}
#define _cleanup_(function) __attribute__((cleanup(function)))
#define _cleanup_free_ _cleanup_(cleanup_free_pointer)

/* Hands ownership over: gives the pointer's value and leaves NULL behind. */
#define TAKE_PTR(pointer)                                                                          \
    ({                                                                                             \
        __typeof__(pointer) taken_ = (pointer);                                                    \
        (pointer) = NULL;                                                                          \
        taken_;                                                                                    \
    })

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
