// SPDX-License-Identifier: Apache-2.0
// What following context switches costs on hosts that are made up, turn by turn: never more than it
// may in any window of ten seconds, whatever the load does.

#include <math.h>
#include <string.h>

#include "capture/wall/pace.h"
#include "unit.h"

#define TURNS_PER_SECOND 10
#define TURNS_MAX 20000
#define WINDOW_TURNS (10 * TURNS_PER_SECOND)
#define LIMIT 0.003 /* of all CPUs */

/* ns: of a switch whose thread is followed, and of any other; of the edges of a slice. */
#define FOLLOWED_NS 115
#define OTHER_NS 70
#define EDGES_NS 2000000

struct host {
    struct wall_pace pace;
    unsigned cpus;
    int64_t now_ns;
    uint64_t cost_ns;
    uint64_t random;
    double spent[TURNS_MAX]; /* in each turn, of all CPUs */
    double measured[TURNS_MAX];
    unsigned turns;
};

static struct host host_of(unsigned cpus)
{
    struct host host = {.cpus = cpus, .now_ns = 1000000000000, .random = 1};
    wall_pace_init(&host.pace, cpus, LIMIT, host.now_ns, 0);
    return host;
}

static double draw(struct host *host)
{
    host->random = host->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(host->random >> 11) / 9007199254740992.0;
}

/* So many seconds with so many switches in each. */
static void run(struct host *host, double seconds, double switches)
{
    for (unsigned i = 0; i < seconds * TURNS_PER_SECOND && host->turns < TURNS_MAX; i++) {
        bool resting = host->pace.resting;
        double follow = host->pace.follow;
        double each_ns = OTHER_NS + follow * (FOLLOWED_NS - OTHER_NS);
        double cost_ns = resting ? 0 : switches / TURNS_PER_SECOND * each_ns;
        host->now_ns += WALL_PACE_TURN_NS;
        host->cost_ns += (uint64_t)cost_ns;
        wall_pace_turn(&host->pace, host->now_ns, host->cost_ns, follow, EDGES_NS, draw(host));
        if (host->pace.resting != resting) {
            host->cost_ns += EDGES_NS / 2;
            cost_ns += EDGES_NS / 2;
        }
        host->spent[host->turns] = cost_ns / (double)WALL_PACE_TURN_NS / host->cpus;
        host->measured[host->turns++] = resting ? 0 : 1;
    }
}

static double mean(const double *values, unsigned from, unsigned count)
{
    double sum = 0;
    for (unsigned i = from; i < from + count; i++)
        sum += values[i];
    return sum / count;
}

/* The most expensive window of ten seconds, wherever it begins. */
static double most(const struct host *host)
{
    double most = 0;
    for (unsigned i = 0; i + WINDOW_TURNS <= host->turns; i++)
        most = fmax(most, mean(host->spent, i, WINDOW_TURNS));
    return most;
}

static void test_calm_hosts_are_measured_all_the_time(void **state)
{
    (void)state;
    struct host host = host_of(2);
    run(&host, 600, 20000);
    assert_true(mean(host.measured, 0, host.turns) == 1);
    assert_true(host.pace.follow == 1);
}

static void test_many_switches_are_measured_in_slices(void **state)
{
    (void)state;
    struct host host = host_of(2);
    run(&host, 60, 1000);
    run(&host, 600, 100000);
    double measured = mean(host.measured, 1200, host.turns - 1200);
    /* All threads: 0.575% of the host, for half of the time. */
    assert_true(host.pace.follow == 1);
    assert_true(measured > 0.35 && measured < 0.6);
    assert_true(most(&host) < 1.4 * LIMIT);
    assert_true(mean(host.spent, 1200, host.turns - 1200) < 1.1 * LIMIT);
}

static void test_bursts_stay_within_the_limit(void **state)
{
    (void)state;
    static const double loads[] = {500e3, 5e6, 50e6};
    for (unsigned i = 0; i < 3; i++) {
        struct host host = host_of(2);
        run(&host, 60, 1000);
        run(&host, 300, loads[i]);
        /* The first turn passes before anybody knows: programs follow fewer by themselves. */
        double turn = loads[i] * FOLLOWED_NS / 1e9 / 2 / WINDOW_TURNS;
        assert_true(most(&host) < 1.6 * LIMIT + turn);
        assert_true(mean(host.spent, 1500, host.turns - 1500) < 1.2 * LIMIT + turn);
        assert_true(mean(host.measured, 600, host.turns - 600) > 0);
    }
}

static void test_waves_stay_within_the_limit(void **state)
{
    (void)state;
    for (unsigned seconds = 1; seconds <= 32; seconds *= 2) {
        struct host host = host_of(2);
        for (unsigned i = 0; i < 20; i++) {
            run(&host, seconds, 1000);
            run(&host, seconds, 500e3);
        }
        assert_true(most(&host) < 1.6 * LIMIT + 0.0003);
    }
}

static void test_calm_brings_all_back(void **state)
{
    (void)state;
    struct host host = host_of(2);
    run(&host, 120, 5e6);
    assert_true(host.pace.follow < 0.1 && host.pace.share < 0.1);
    run(&host, 400, 1000);
    assert_true(host.pace.follow == 1 && host.pace.share == 1);
    run(&host, 60, 1000);
    assert_true(mean(host.measured, host.turns - 600, 600) == 1);
}

/* What happens at random moments is measured as often as the share says, and a slice stands for its
 * own period: what waits for a slice and what runs beside it are alike. */
static void test_slices_are_a_fair_sample(void **state)
{
    (void)state;
    double sum = 0, squares = 0;
    unsigned count = 50;
    for (unsigned i = 0; i < count; i++) {
        struct host host = host_of(2);
        host.random = i + 7;
        run(&host, 60, 200e3);
        unsigned from = host.turns;
        run(&host, 300, 200e3);
        double even = 0, all = 0;
        /* An event in every seventh turn. */
        for (unsigned turn = from; turn < host.turns; turn++) {
            all += host.measured[turn];
            even += turn % 7 == 0 ? host.measured[turn] : 0;
        }
        double estimate = 7 * even / all;
        sum += estimate;
        squares += estimate * estimate;
    }
    double average = sum / count;
    double error = sqrt((squares / count - average * average) / count);
    assert_true(fabs(average - 1) < 3 * error + 0.005);
}

static void test_resumed_begins_with_little(void **state)
{
    (void)state;
    struct host host = host_of(2);
    run(&host, 30, 1000);
    wall_pace_resume(&host.pace, host.now_ns, host.cost_ns);
    unsigned from = host.turns;
    run(&host, 30, 5e6);
    assert_true(mean(host.spent, from, 10 * TURNS_PER_SECOND) < 2 * LIMIT);
}

static void test_no_limit(void **state)
{
    (void)state;
    struct host host = host_of(2);
    host.pace.cost_share = 0;
    run(&host, 60, 50e6);
    assert_true(mean(host.measured, 0, host.turns) == 1 && host.pace.follow == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calm_hosts_are_measured_all_the_time),
        cmocka_unit_test(test_many_switches_are_measured_in_slices),
        cmocka_unit_test(test_bursts_stay_within_the_limit),
        cmocka_unit_test(test_waves_stay_within_the_limit),
        cmocka_unit_test(test_calm_brings_all_back),
        cmocka_unit_test(test_slices_are_a_fair_sample),
        cmocka_unit_test(test_resumed_begins_with_little),
        cmocka_unit_test(test_no_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
