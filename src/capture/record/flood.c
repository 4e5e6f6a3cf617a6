// SPDX-License-Identifier: Apache-2.0
// Too many events: see flood.h.

#include "capture/record/flood.h"

#include "base/memory.h"

/* Nobody listens for so long, and twice as long each time that it goes on right after that. */
#define WAIT_NS 5000000000ll
#define WAIT_MAX_NS 80000000000ll
#define QUIET_NS 10000000000ll

void flood_init(struct flood *flood, unsigned limit, int64_t now_ns)
{
    *flood = (struct flood){.limit = limit, .credit = limit, .now_ns = now_ns, .heard_ns = now_ns};
}

bool flood_note(struct flood *flood, uint64_t count, int64_t now_ns)
{
    if (!flood->limit || flood->deaf)
        return false;
    flood->credit += (double)(now_ns - flood->now_ns) / 1e9 * flood->limit;
    flood->credit = MIN(flood->credit, (double)flood->limit) - (double)count;
    flood->now_ns = now_ns;
    if (flood->credit >= 0)
        return false;
    bool again = flood->wait_ns && now_ns - flood->heard_ns < QUIET_NS;
    flood->wait_ns = again ? MIN(flood->wait_ns * 2, WAIT_MAX_NS) : WAIT_NS;
    flood->until_ns = now_ns + flood->wait_ns;
    flood->deaf = true;
    flood->times++;
    return true;
}

bool flood_over(struct flood *flood, int64_t now_ns)
{
    if (!flood->deaf || now_ns < flood->until_ns)
        return false;
    flood->deaf = false;
    flood->heard_ns = flood->now_ns = now_ns;
    /* Little, to see soon whether it goes on. */
    flood->credit = flood->limit / 4.0;
    return true;
}
