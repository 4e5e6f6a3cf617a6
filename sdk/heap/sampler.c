// SPDX-License-Identifier: Apache-2.0
// Sampling over bytes: see sampler.h.

#include "heap/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "capture/heap/ring.h"
#include "heap/chance.h"
#include "heap/writer.h"

__thread struct sampler_thread sampler_thread;

static _Atomic uint64_t mean_bytes = SAMPLER_MEAN_BYTES; /* now */
static uint64_t least_mean = SAMPLER_MEAN_BYTES;         /* as configured */
static uint64_t target_rate = SAMPLER_RATE;
static _Atomic uint64_t threads_seen;
static uint64_t seed;

/* The current second: when it began, and samples in it. */
static _Atomic uint64_t turn_ns;
static _Atomic uint64_t turn_samples;

/* ---- the rate ---- */

static void set_mean(uint64_t from, uint64_t to)
{
    to = to < least_mean ? least_mean : to > SAMPLER_MEAN_MAX ? SAMPLER_MEAN_MAX : to;
    atomic_compare_exchange_strong(&mean_bytes, &from, to);
}

/* Doubles the mean as often as a second brings the target number of samples, or when the table of
 * live ones is three quarters full; halves it after seconds with less than a quarter of it. */
static void adapt(void)
{
    struct timespec now;
    uint64_t mean = atomic_load_explicit(&mean_bytes, memory_order_relaxed);
    uint64_t samples = atomic_fetch_add_explicit(&turn_samples, 1, memory_order_relaxed) + 1;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    uint64_t began_ns = atomic_load_explicit(&turn_ns, memory_order_relaxed);
    if (now_ns - began_ns >= 1000000000u) {
        if (!atomic_compare_exchange_strong(&turn_ns, &began_ns, now_ns))
            return;
        atomic_store_explicit(&turn_samples, 0, memory_order_relaxed);
        uint64_t seconds = (now_ns - began_ns) / 1000000000u;
        if (samples / seconds < target_rate / 4)
            set_mean(mean, mean / 2);
    } else if (samples % target_rate == 0) {
        set_mean(mean, mean * 2);
    }
    if (atomic_load_explicit(&live_count, memory_order_relaxed) > LIVE_MAX / 4 * 3 &&
        samples % 64 == 0)
        set_mean(mean, mean * 2);
}

/* ---- samples ---- */

static void draw(struct sampler_thread *thread)
{
    if (!thread->random) {
        uint64_t number = atomic_fetch_add_explicit(&threads_seen, 1, memory_order_relaxed);
        thread->random = seed + number * 0xd1342543de82ef95ull;
        thread->random = chance_next(&thread->random) | 1;
    }
    thread->mean = atomic_load_explicit(&mean_bytes, memory_order_relaxed);
    thread->remaining = chance_gap(&thread->random, thread->mean);
}

static void report_free(void *pointer)
{
    heap_probe_free(pointer);
    if (assay_heap_alloc_switch.ring)
        writer_free(pointer);
}

static void report_alloc(void *pointer, struct live_value value)
{
    if (!live_add(pointer, value)) {
        if (assay_heap_alloc_switch.ring)
            writer_refuse(value.weight);
        return;
    }
    heap_probe_alloc(pointer, value.size, value.weight);
    if (assay_heap_alloc_switch.ring)
        writer_alloc(pointer, value.size, value.weight);
}

__attribute__((noinline)) void sampler_hit(void *pointer, size_t size)
{
    struct sampler_thread *thread = &sampler_thread;
    thread->remaining += (int64_t)size;
    if (!pointer || !size || thread->inside)
        return;
    if (!thread->mean) /* a thread's first allocation: the point may be beyond it */
        draw(thread);
    thread->remaining -= (int64_t)size;
    if (thread->remaining >= 0)
        return;
    int error = errno;
    thread->inside++;
    struct live_value value = {size, chance_weight(size, thread->mean)};
    adapt();
    draw(thread);
    /* An older sample of this address was released in a way that we didn't see. */
    struct live_value stale;
    if (live_may_have(pointer) && live_remove(pointer, &stale))
        report_free(pointer);
    report_alloc(pointer, value);
    thread->inside--;
    errno = error;
}

__attribute__((noinline)) void sampler_release(void *pointer)
{
    sampler_move(pointer);
}

__attribute__((noinline)) struct sampler_moved sampler_move(void *pointer)
{
    struct sampler_moved moved = {0};
    if (!live_may_have(pointer) || !live_remove(pointer, &moved.value))
        return moved;
    int error = errno;
    sampler_thread.inside++;
    moved.was_live = 1;
    report_free(pointer);
    sampler_thread.inside--;
    errno = error;
    return moved;
}

void sampler_keep(void *pointer, struct sampler_moved moved)
{
    int error = errno;
    sampler_thread.inside++;
    if (moved.was_live)
        report_alloc(pointer, moved.value);
    sampler_thread.inside--;
    errno = error;
}

/* ---- beginning ---- */

static uint64_t from_environment(const char *name, uint64_t least, uint64_t most,
                                 uint64_t otherwise)
{
    const char *text = secure_getenv(name);
    char *end = NULL;
    unsigned long long number =
        text && text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    return end && !*end && number >= least && number <= most ? number : otherwise;
}

/* A child draws points of its own: those of siblings would fall into the same places. */
static void start_child(void)
{
    seed = (seed ^ (uint64_t)getpid()) * 0x9e3779b97f4a7c15ull;
    sampler_thread.random = sampler_thread.mean = 0;
    sampler_thread.remaining = 0;
}

__attribute__((constructor)) static void sampler_start(void)
{
    int error = errno;
    pthread_atfork(NULL, NULL, start_child);
    sampler_thread.inside++;
    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
        seed = (uint64_t)getpid() * 0x9e3779b97f4a7c15ull ^ (uint64_t)(uintptr_t)&error;
    struct heap_ring *ring = writer_open();
    uint64_t mean = ring && ring->mean_bytes ? ring->mean_bytes : SAMPLER_MEAN_BYTES;
    uint64_t rate = ring && ring->samples_per_second ? ring->samples_per_second : SAMPLER_RATE;
    least_mean = from_environment("ASSAY_HEAP_INTERVAL", 1, SAMPLER_MEAN_MAX, mean);
    target_rate = from_environment("ASSAY_HEAP_RATE", 1, 1000000, rate);
    mean_bytes = least_mean;
    sampler_thread.inside--;
    if (ring)
        assay_heap_alloc_switch.ring = 1;
    errno = error;
}
