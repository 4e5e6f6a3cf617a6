// SPDX-License-Identifier: Apache-2.0
// Which switches are followed: see pace.h.

#include "capture/wall/pace.h"

#include <math.h>

#define SECOND_NS 1e9
/* The parts are set by this much measured time, or by less that has cost a lot. */
#define MEASURED_NS 1e9
#define MUCH_NS 2e8 /* of what may be spent, as the time that it takes to get it */
/* Slices are so long that beginning and ending them takes this part of what may be spent. */
#define SLICE_NS 250e6
#define SLICE_NS_MAX 4e9
#define EDGES_SHARE 0.25
/* Fewer threads save little, since programs run at each switch all the same, and few threads are a
 * bad sample. So slices come first, down to this part of the time. */
#define SHARE_EASY 0.1
#define CALM_NS 20000000000ll /* before more threads are followed again */
/* Unspent time is kept for so long; the debt is limited to so much. */
#define SAVED_NS 1e9
#define OWED_NS 2e9

void wall_pace_init(struct wall_pace *pace, unsigned cpus, double cost_share, int64_t now_ns,
                    uint64_t cost_ns)
{
    *pace = (struct wall_pace){.cpus = cpus,
                               .cost_share = cost_share,
                               .follow = 1,
                               .share = 1,
                               .slice_ns = (int64_t)SLICE_NS,
                               .cost_ns = cost_ns,
                               .turned_ns = now_ns,
                               .calm_ns = now_ns};
}

/* The CPU time that programs may take in so much time. */
static double allowed(const struct wall_pace *pace, double passed_ns)
{
    return pace->cost_share * pace->cpus * passed_ns;
}

/* A new period, with its slice somewhere. */
static void plan(struct wall_pace *pace, int64_t now_ns, double chance)
{
    double length_ns = (double)pace->slice_ns / pace->share;
    pace->period_ns = now_ns + (int64_t)length_ns;
    pace->begin_ns = now_ns + (int64_t)(chance * (length_ns - (double)pace->slice_ns));
    pace->end_ns = pace->begin_ns + pace->slice_ns;
}

/* Sets the parts, by what measuring costs. */
static void set_parts(struct wall_pace *pace, int64_t now_ns)
{
    double cost = pace->measured_cost_ns / (pace->measured_ns * pace->cpus);
    double fits = pace->cost_share / fmax(cost, 1e-9), before = pace->share;
    pace->measured_ns = pace->measured_cost_ns = 0;
    pace->share = fmin(fmax(fits, WALL_PACE_SHARE_MIN), 1);
    if (pace->share > before) /* halfway, since load comes and goes */
        pace->share = fmin(sqrt(pace->share * before) * 1.01, 1);
    if (fits < SHARE_EASY && pace->follow > WALL_PACE_FOLLOW_MIN) {
        pace->follow = fmax(pace->follow * fmax(fits / SHARE_EASY, 0.25), WALL_PACE_FOLLOW_MIN);
        pace->calm_ns = now_ns;
    } else if (fits > 2 * SHARE_EASY && pace->follow < 1 && now_ns - pace->calm_ns > CALM_NS) {
        pace->follow = fmin(2 * pace->follow, 1);
        pace->calm_ns = now_ns;
    }
}

static void choose(struct wall_pace *pace, int64_t now_ns, double chance)
{
    double most_ns = fmax(OWED_NS, 2 * (double)pace->slice_ns / pace->share);
    if (pace->debt_ns > allowed(pace, most_ns))
        pace->paying = true;
    if (pace->paying) {
        pace->resting = pace->debt_ns > 0;
        if (pace->resting)
            return;
        pace->paying = false;
        pace->period_ns = 0;
    }
    if (pace->share >= 1) {
        pace->resting = false;
        pace->period_ns = 0;
        return;
    }
    if (now_ns >= pace->period_ns)
        plan(pace, now_ns, chance);
    pace->resting = now_ns < pace->begin_ns || now_ns >= pace->end_ns;
}

static void set_resting(struct wall_pace *pace, int64_t now_ns, double chance)
{
    bool before = pace->resting;
    int64_t period_ns = pace->period_ns;
    choose(pace, now_ns, chance);
    if (before || !pace->resting)
        return;
    if (pace->paying)
        pace->until_ns = now_ns + (int64_t)(pace->debt_ns / allowed(pace, 1));
    else
        pace->until_ns = period_ns == pace->period_ns ? period_ns : now_ns;
}

void wall_pace_turn(struct wall_pace *pace, int64_t now_ns, uint64_t cost_ns, double follow,
                    int64_t edges_ns, double chance)
{
    double passed_ns = (double)(now_ns - pace->turned_ns);
    if (follow < pace->follow)
        pace->calm_ns = now_ns;
    pace->follow = follow;
    if (pace->cost_share <= 0 || now_ns - pace->turned_ns < WALL_PACE_TURN_NS)
        return;
    double spent_ns = cost_ns > pace->cost_ns ? (double)(cost_ns - pace->cost_ns) : 0;
    pace->cost_ns = cost_ns;
    pace->turned_ns = now_ns;
    pace->debt_ns =
        fmax(pace->debt_ns + spent_ns - allowed(pace, passed_ns), -allowed(pace, SAVED_NS));
    if (!pace->resting) {
        pace->measured_ns += passed_ns;
        pace->measured_cost_ns += spent_ns;
    }
    double slice_ns = (double)edges_ns * pace->share / allowed(pace, EDGES_SHARE);
    pace->slice_ns = (int64_t)fmin(fmax(slice_ns, SLICE_NS), SLICE_NS_MAX);
    double share = pace->share;
    if (pace->measured_ns >= MEASURED_NS ||
        pace->measured_cost_ns > allowed(pace, MUCH_NS + passed_ns))
        set_parts(pace, now_ns);
    if (pace->share < share / 2) /* the rest of this slice is not for this load */
        pace->period_ns = 0;
    set_resting(pace, now_ns, chance);
}

void wall_pace_resume(struct wall_pace *pace, int64_t now_ns, uint64_t cost_ns)
{
    double follow = pace->follow;
    wall_pace_init(pace, pace->cpus, pace->cost_share, now_ns, cost_ns);
    pace->follow = follow;
    pace->share = pace->cost_share > 0 ? WALL_PACE_SHARE_MIN : 1;
}
