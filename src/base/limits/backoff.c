// SPDX-License-Identifier: Apache-2.0
// Exponential backoff: see backoff.h.

#include "base/limits/backoff.h"

#include "base/memory.h"

int64_t backoff_bound_ms(const struct backoff *backoff, unsigned failures)
{
    int64_t bound = MIN(backoff->first_ms, backoff->longest_ms);
    for (unsigned i = 1; i < failures && bound < backoff->longest_ms; i++)
        bound = MIN(bound * 2, backoff->longest_ms);
    return bound;
}

int64_t backoff_ms(const struct backoff *backoff, unsigned failures, int64_t asked_ms,
                   uint64_t random)
{
    int64_t bound = backoff_bound_ms(backoff, failures);
    int64_t wait = bound / 2 + (int64_t)(random % (uint64_t)(bound - bound / 2 + 1));
    int64_t most = backoff->asked_longest_ms ? backoff->asked_longest_ms : backoff->longest_ms;
    asked_ms = MIN(asked_ms, most);
    if (asked_ms <= wait)
        return wait;
    return asked_ms + (int64_t)(random % (uint64_t)(asked_ms / 10 + 1));
}
