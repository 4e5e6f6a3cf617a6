/* SPDX-License-Identifier: Apache-2.0 */
/* Timed waits, all of them on the monotonic clock: a wall clock that is set back would stall a wait
 * on CLOCK_REALTIME by as much. tests/check/layers.py refuses any other timed wait. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "base/clock.h"

static inline struct timespec condition_time(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

/* Waits until `until_ns` of monotonic_ns(); 0 or ETIMEDOUT. Any condition variable will do,
 * whatever attributes it was made with. */
static inline int condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock,
                                       int64_t until_ns)
{
    struct timespec until = condition_time(until_ns);
    return pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &until);
}

static inline int condition_wait_for(pthread_cond_t *condition, pthread_mutex_t *lock,
                                     int64_t wait_ns)
{
    return condition_wait_until(condition, lock, monotonic_ns() + wait_ns);
}

/* As the first, for the writer's side of a lock; 0 or ETIMEDOUT. */
static inline int condition_write_lock_until(pthread_rwlock_t *lock, int64_t until_ns)
{
    struct timespec until = condition_time(until_ns);
    return pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &until);
}
