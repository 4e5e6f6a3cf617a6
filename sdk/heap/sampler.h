/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which allocations are reported. Each thread counts bytes down to the next point of its own
 * Poisson process (chance.h); the allocation that reaches it is sampled: noted as live, and
 * reported by probe and ring. Without anybody who is interested, nothing is counted.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "heap/live.h"
#include "heap/probes.h"

#define SAMPLER_MEAN_BYTES 524288u
#define SAMPLER_MEAN_MAX (1ull << 36)
#define SAMPLER_RATE 200 /* samples per second and process, above which the mean grows */

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

struct sampler_thread {
    int64_t remaining; /* bytes to the next point */
    uint64_t mean;     /* that the point was drawn with; 0: none was drawn yet */
    uint64_t random;
    uint32_t inside;    /* our own code, or an allocator's that calls another of its functions */
    uint32_t resolving; /* dlsym() is looking for the allocator: real.h */
};
/* Static TLS: reading it never allocates. */
extern __thread struct sampler_thread sampler_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

void sampler_hit(void *pointer, size_t size);
void sampler_release(void *pointer);

/* After an allocation. */
static inline void sampler_count(void *pointer, size_t size)
{
    if (UNLIKELY((sampler_thread.remaining -= (int64_t)size) < 0))
        sampler_hit(pointer, size);
}

/* Before a release. */
static inline void sampler_forget(void *pointer)
{
    if (UNLIKELY(live_may_have(pointer)))
        sampler_release(pointer);
}

/* A reallocation releases the old pointer, which another thread may then get. If it fails, the old
 * one is as it was. */
struct sampler_moved {
    int was_live;
    struct live_value value;
};
struct sampler_moved sampler_move(void *pointer);
void sampler_keep(void *pointer, struct sampler_moved moved);
