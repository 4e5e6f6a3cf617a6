/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampled allocations that have not been freed: which pointers a free has to report. Any thread may
 * call all of it at any time, a signal handler too: there is no lock. A pointer belongs to one
 * thread at a time, from its allocation until its release, so nobody adds and removes the same one
 * at once.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_MAX 131072 /* pointers; what doesn't fit is not sampled, and counted */
#define LIVE_FILTER 65536u
#define LIVE_PAGES 65536u

struct live_value {
    uint64_t size, weight;
};

/* How many pointers of the table are in each page, and how many have each hash. A free reads one
 * byte, that of its page, and all but one in a hundred find 0 there; the others read a second one.
 * Bytes of neighbouring pages share a cache line, so that 256 KiB of a heap use one. Only sampled
 * allocations write. */
extern _Atomic uint8_t live_pages[LIVE_PAGES] __attribute__((visibility("hidden")));
extern _Atomic uint8_t live_filter[LIVE_FILTER] __attribute__((visibility("hidden")));
extern _Atomic uint32_t live_count __attribute__((visibility("hidden")));

static inline uint32_t live_hash(const void *pointer)
{
    return (uint32_t)(((uintptr_t)pointer >> 4) * 0x9e3779b97f4a7c15ull >> 48);
}

static inline uint32_t live_page(const void *pointer)
{
    return (uint32_t)((uintptr_t)pointer >> 12) % LIVE_PAGES;
}

static inline bool live_may_have(const void *pointer)
{
    return atomic_load_explicit(&live_count, memory_order_relaxed) &&
           atomic_load_explicit(&live_pages[live_page(pointer)], memory_order_relaxed) &&
           atomic_load_explicit(&live_filter[live_hash(pointer)], memory_order_relaxed);
}

/* False when there is no room. A pointer that is there already is replaced: its release was not
 * seen. */
bool live_add(void *pointer, struct live_value value);
/* False when the pointer is not there. */
bool live_remove(void *pointer, struct live_value *ret_value);
