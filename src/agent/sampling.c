// SPDX-License-Identifier: Apache-2.0
// The sampling that settings and the server's order amount to: see sampling.h.

#include "agent/sampling.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "capture/capture.h"

/* The host's own rate is always permitted. */
static unsigned within(unsigned wanted, uint64_t own, uint64_t most, bool *cut)
{
    uint64_t limit = MAX(most, own);
    if (!wanted)
        return (unsigned)own;
    *cut = *cut || wanted > limit;
    return (unsigned)MIN((uint64_t)wanted, limit);
}

struct sampling sampling_within(const struct agent_settings *settings,
                                const struct sampling_order *order)
{
    struct sampling sampling = {.rate_hz = (unsigned)settings->rate_hz,
                                .wall = settings->wall,
                                .wall_rate_hz = (unsigned)settings->wall_rate_hz,
                                .heap = settings->heap,
                                .faults = settings->faults,
                                .rss = settings->rss,
                                .ordered = order->given};
    if (!order->given)
        return sampling;
    if (!settings->sampling_allowed) {
        sampling.cut = order->rate_hz || order->wall_rate_hz || order->has_wall;
        return sampling;
    }
    sampling.rate_hz =
        within(order->rate_hz, settings->rate_hz, settings->sampling_rate_max, &sampling.cut);
    sampling.wall_rate_hz = within(order->wall_rate_hz, settings->wall_rate_hz,
                                   settings->sampling_wall_rate_max, &sampling.cut);
    if (order->has_wall) {
        sampling.wall = order->wall && settings->wall;
        sampling.cut = sampling.cut || (order->wall && !settings->wall);
    }
    return sampling;
}

unsigned sampling_modes(const struct sampling *sampling)
{
    return CAPTURE_CPU | (sampling->wall ? (unsigned)(CAPTURE_WALL | CAPTURE_GOROUTINES) : 0) |
           (sampling->heap ? (unsigned)CAPTURE_HEAP : 0) |
           (sampling->faults ? (unsigned)CAPTURE_FAULTS : 0) |
           (sampling->rss ? (unsigned)CAPTURE_RSS : 0);
}

bool sampling_wants(const struct sampling *sampling, const char *collector)
{
    return !strcmp(collector, "wall") || !strcmp(collector, "goroutines") ? sampling->wall
           : !strcmp(collector, "heap")                                   ? sampling->heap
           : !strcmp(collector, "faults")                                 ? sampling->faults
           : !strcmp(collector, "rss")                                    ? sampling->rss
                                                                          : true;
}

bool sampling_same(const struct sampling *a, const struct sampling *b)
{
    return a->rate_hz == b->rate_hz && a->wall == b->wall && a->wall_rate_hz == b->wall_rate_hz &&
           a->heap == b->heap && a->faults == b->faults && a->rss == b->rss && a->ordered == b->ordered &&
           a->cut == b->cut;
}

void sampling_describe(const struct sampling *sampling, char *text, size_t room)
{
    if (sampling->wall)
        snprintf(text, room, "%u Hz, wall time at %u Hz", sampling->rate_hz,
                 sampling->wall_rate_hz);
    else
        snprintf(text, room, "%u Hz, wall time off", sampling->rate_hz);
}

void sampling_explain(const struct sampling *sampling, const struct sampling_order *order,
                      char ret_text[SAMPLING_TEXT_BYTES])
{
    char what[64];
    sampling_describe(sampling, what, sizeof(what));
    snprintf(ret_text, SAMPLING_TEXT_BYTES, "%s%s%s%s%s", what,
             !sampling->ordered ? ", by the settings" : ", ordered by the server",
             sampling->cut ? " (more than this host's limits permit)" : "",
             sampling->ordered && *order->reason ? ": " : "",
             sampling->ordered ? order->reason : "");
}
