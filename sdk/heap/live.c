// SPDX-License-Identifier: Apache-2.0
// The table of sampled pointers: see live.h. Buckets of one cache line with eight pointers; each
// pointer may be in one of two buckets.

#include "heap/live.h"

#define WAYS 8
#define BUCKETS (LIVE_MAX / WAYS)
#define FILTER_FULL 255 /* counts no more, and stays: a free then looks into the table in vain */

_Atomic uint8_t live_pages[LIVE_PAGES];
_Atomic uint8_t live_filter[LIVE_FILTER];
_Atomic uint32_t live_count;

static struct {
    _Alignas(64) void *_Atomic pointers[WAYS];
} buckets[BUCKETS];
static struct live_value values[BUCKETS][WAYS];

static void add_to(_Atomic uint8_t *filter, int change)
{
    uint8_t count = atomic_load_explicit(filter, memory_order_relaxed);
    while (count != FILTER_FULL &&
           !atomic_compare_exchange_weak(filter, &count, (uint8_t)(count + change)))
        ;
}

static void filters_add(const void *pointer, int change)
{
    add_to(&live_pages[live_page(pointer)], change);
    add_to(&live_filter[live_hash(pointer)], change);
}

static uint32_t bucket_of(const void *pointer, unsigned choice)
{
    uint64_t hash = ((uintptr_t)pointer >> 4) * 0xd6e8feb86659fd93ull;
    hash ^= hash >> 32;
    return (uint32_t)(hash >> (choice ? 40 : 8)) % BUCKETS;
}

/* Where the pointer is; the caller owns it, so nobody moves it. */
static bool find(void *pointer, uint32_t *ret_bucket, unsigned *ret_way)
{
    for (unsigned choice = 0; choice < 2; choice++) {
        uint32_t bucket = bucket_of(pointer, choice);
        for (unsigned way = 0; way < WAYS; way++)
            if (atomic_load_explicit(&buckets[bucket].pointers[way], memory_order_relaxed) ==
                pointer) {
                *ret_bucket = bucket;
                *ret_way = way;
                return true;
            }
    }
    return false;
}

static bool claim(void *pointer, struct live_value value, uint32_t bucket)
{
    for (unsigned way = 0; way < WAYS; way++) {
        void *nobody = NULL;
        if (atomic_compare_exchange_strong(&buckets[bucket].pointers[way], &nobody, pointer)) {
            values[bucket][way] = value;
            return true;
        }
    }
    return false;
}

bool live_add(void *pointer, struct live_value value)
{
    struct live_value old;
    live_remove(pointer, &old);
    if (!claim(pointer, value, bucket_of(pointer, 0)) &&
        !claim(pointer, value, bucket_of(pointer, 1)))
        return false;
    filters_add(pointer, 1);
    atomic_fetch_add_explicit(&live_count, 1, memory_order_relaxed);
    return true;
}

bool live_remove(void *pointer, struct live_value *ret_value)
{
    uint32_t bucket;
    unsigned way;
    if (!find(pointer, &bucket, &way))
        return false;
    *ret_value = values[bucket][way];
    /* A program that frees twice at the same time reports it once. */
    void *expected = pointer;
    if (!atomic_compare_exchange_strong(&buckets[bucket].pointers[way], &expected, NULL))
        return false;
    filters_add(pointer, -1);
    atomic_fetch_sub_explicit(&live_count, 1, memory_order_relaxed);
    return true;
}
