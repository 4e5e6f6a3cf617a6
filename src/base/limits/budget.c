// SPDX-License-Identifier: Apache-2.0
// An account of memory: see budget.h.

#include "base/limits/budget.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/memory.h"

#define LOOK_NS 50000000 /* at the flag that cancels */

void budget_init(struct budget *budget, size_t limit_bytes)
{
    *budget = (struct budget){.limit_bytes = limit_bytes};
    pthread_mutex_init(&budget->lock, NULL);
    pthread_cond_init(&budget->changed, NULL);
}

void budget_release(struct budget *budget)
{
    pthread_mutex_destroy(&budget->lock);
    pthread_cond_destroy(&budget->changed);
}

size_t budget_fit(const struct budget *budget, size_t bytes)
{
    return MIN(bytes, budget->limit_bytes);
}

void budget_watch_process(struct budget *budget, size_t process_limit_bytes)
{
    budget->process_limit_bytes = process_limit_bytes;
}

/* Whether the process has room for it: `untouched` is what may become resident besides. */
static bool fits_process(const struct budget *budget, size_t bytes, size_t untouched)
{
    if (!budget->process_limit_bytes || (!budget->used_bytes && bytes <= budget->limit_bytes / 3))
        return true;
    return memory_resident() + untouched + bytes <= budget->process_limit_bytes;
}

static bool take(struct budget *budget, size_t bytes, size_t untouched)
{
    if (bytes > budget->limit_bytes - budget->used_bytes || !fits_process(budget, bytes, untouched))
        return false;
    budget->used_bytes += bytes;
    budget->peak_bytes = MAX(budget->peak_bytes, budget->used_bytes);
    return true;
}

bool budget_take(struct budget *budget, size_t bytes)
{
    bytes = budget_fit(budget, bytes);
    pthread_mutex_lock(&budget->lock);
    bool taken = take(budget, bytes, budget->used_bytes);
    budget->refused += !taken;
    pthread_mutex_unlock(&budget->lock);
    return taken;
}

static bool wait_for(struct budget *budget, size_t bytes, bool more, unsigned timeout_ms,
                     const atomic_bool *cancelled)
{
    bytes = budget_fit(budget, bytes);
    int64_t until = monotonic_ns() + timeout_ms * 1000000ll, now;
    pthread_mutex_lock(&budget->lock);
    bool taken = take(budget, bytes, more ? 0 : budget->used_bytes);
    budget->waiting++;
    while (!taken && (now = monotonic_ns()) < until && !(cancelled && atomic_load(cancelled))) {
        condition_wait_until(&budget->changed, &budget->lock, MIN(until, now + LOOK_NS));
        taken = take(budget, bytes, more ? 0 : budget->used_bytes);
    }
    budget->waiting--;
    budget->refused += !taken;
    pthread_mutex_unlock(&budget->lock);
    return taken;
}

bool budget_wait(struct budget *budget, size_t bytes, unsigned timeout_ms,
                 const atomic_bool *cancelled)
{
    return wait_for(budget, bytes, false, timeout_ms, cancelled);
}

bool budget_wait_more(struct budget *budget, size_t bytes, unsigned timeout_ms,
                      const atomic_bool *cancelled)
{
    return wait_for(budget, bytes, true, timeout_ms, cancelled);
}

void budget_give(struct budget *budget, size_t bytes)
{
    pthread_mutex_lock(&budget->lock);
    budget->used_bytes -= MIN(budget->used_bytes, budget_fit(budget, bytes));
    if (budget->waiting)
        pthread_cond_broadcast(&budget->changed);
    pthread_mutex_unlock(&budget->lock);
}

struct budget_stats budget_stats(struct budget *budget)
{
    pthread_mutex_lock(&budget->lock);
    struct budget_stats stats = {.limit_bytes = budget->limit_bytes,
                                 .used_bytes = budget->used_bytes,
                                 .peak_bytes = budget->peak_bytes,
                                 .refused = budget->refused};
    pthread_mutex_unlock(&budget->lock);
    return stats;
}
