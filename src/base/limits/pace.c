// SPDX-License-Identifier: Apache-2.0
// CPU time that is saved up and paid back: see pace.h.

#include "base/limits/pace.h"

#include "base/memory.h"

void pace_init(struct pace *pace, double share, int64_t now_ns)
{
    *pace = (struct pace){.share = share, .now_ns = now_ns};
}

void pace_spend(struct pace *pace, int64_t cpu_ns)
{
    pace->credit_ns -= MAX(cpu_ns, (int64_t)0);
}

void pace_earn(struct pace *pace, int64_t cpu_ns)
{
    pace->credit_ns += MAX(cpu_ns, (int64_t)0);
}

int64_t pace_owed_ns(struct pace *pace, int64_t now_ns)
{
    int64_t saved_max_ns = (int64_t)(pace->share * (double)PACE_SAVED_NS);
    int64_t earned_ns = (int64_t)(pace->share * (double)(now_ns - pace->now_ns));
    pace->credit_ns = MIN(pace->credit_ns + MAX(earned_ns, (int64_t)0), saved_max_ns);
    pace->now_ns = now_ns;
    if (pace->credit_ns >= 0 || pace->share <= 0)
        return 0;
    return (int64_t)((double)-pace->credit_ns / pace->share);
}
