// SPDX-License-Identifier: Apache-2.0
// The budget guard on hosts that are made up: a second costs what the rate, the types and the load
// of that second make of it.

#include <string.h>

#include "agent/guard/guard.h"
#include "base/memory.h"
#include "unit.h"

#define SECOND_NS 1000000000ll
#define MIB (1ull << 20)

static const struct guard_limits usual = {.cpu_share = 0.01,
                                          .resident_bytes = 128 * MIB,
                                          .upload_bytes = MIB,
                                          .patience_ns = 60 * SECOND_NS};

struct host {
    struct guard guard;
    int64_t now_ns;
    struct guard_cost cost;
    double load;             /* CPU share of the host that sampling all at full rate takes */
    double busiest;          /* of that, the part of the busiest processes */
    double still;            /* that is spent in any case */
    double types[8];         /* of the load, each type's part */
    uint64_t upload_bytes;   /* in a second, at the full rate */
    uint64_t dropped_caches; /* how often the guard wanted that */
    unsigned changes;
};

static struct host host_of(unsigned cpus, unsigned rate_hz, unsigned types, bool can_choose)
{
    struct host host = {.now_ns = 1000 * SECOND_NS, .busiest = 0.5, .types = {1}};
    guard_init(&host.guard, &usual, cpus, rate_hz, types, can_choose);
    host.cost.resident_bytes = 40 * MIB;
    return host;
}

static enum guard_action second(struct host *host)
{
    const struct guard_state *state = &host->guard.state;
    for (unsigned i = 0; i < host->guard.type_count; i++) {
        double part = state->types_off & 1u << i || state->rest
                          ? 0
                          : host->load * host->types[i] / state->divisor *
                                (state->busiest_only ? host->busiest : 1);
        int64_t took = (int64_t)(part * host->guard.cpus * SECOND_NS);
        host->cost.type_ns[i] += took;
        host->cost.cpu_ns += took;
    }
    host->cost.cpu_ns += (int64_t)(host->still * host->guard.cpus * SECOND_NS);
    host->cost.upload_bytes += state->rest ? 0 : host->upload_bytes / state->divisor;
    host->now_ns += SECOND_NS;
    enum guard_action action = guard_tick(&host->guard, host->now_ns, &host->cost);
    host->dropped_caches += action == GUARD_DROP_CACHES;
    host->changes += action == GUARD_CHANGED;
    return action;
}

static void seconds(struct host *host, unsigned count)
{
    while (count--)
        second(host);
}

/* What it cost of the host in the seconds that follow. */
static double share_of(struct host *host, unsigned count)
{
    int64_t before = host->cost.cpu_ns;
    seconds(host, count);
    return (double)(host->cost.cpu_ns - before) / (double)(count * SECOND_NS) / host->guard.cpus;
}

static void test_within_budget_nothing_happens(void **state)
{
    (void)state;
    struct host host = host_of(4, 19, 1, true);
    host.load = 0.008;
    seconds(&host, 3600);
    assert_int_equal(host.guard.level, 0);
    assert_int_equal(host.changes, 0);
    assert_string_equal(guard_reason_name(host.guard.reason), "");
}

/* A start costs more: within the first half minute's budget that is fine. */
static void test_learning(void **state)
{
    (void)state;
    struct host host = host_of(2, 19, 1, true);
    host.load = 0.005;
    second(&host);
    host.cost.cpu_ns += (int64_t)(0.1 * 2 * SECOND_NS);
    seconds(&host, 60);
    assert_int_equal(host.changes, 0);
    /* Later the same is too much. */
    host.cost.cpu_ns += (int64_t)(0.1 * 2 * SECOND_NS);
    seconds(&host, 20);
    assert_int_equal(host.guard.steps_down, 1);
}

static void test_rate_first(void **state)
{
    (void)state;
    struct host host = host_of(2, 19, 1, true);
    seconds(&host, 60);
    host.load = 0.017;
    seconds(&host, 30);
    assert_int_equal(host.guard.level, 1);
    assert_int_equal(host.guard.state.divisor, 2);
    assert_int_equal(host.guard.reason, GUARD_CPU);
    assert_false(host.guard.state.busiest_only);
    assert_true(share_of(&host, 600) <= 0.01);
    char text[GUARD_TEXT_BYTES];
    guard_describe(&host.guard, text, sizeof(text));
    assert_string_equal(text, "9 Hz (target 19)");
}

/* Whatever the load, the limit holds, and no longer than some seconds pass before it does. */
static void test_held_at_any_load(void **state)
{
    (void)state;
    for (double load = 0.002; load < 20; load *= 1.3) {
        struct host host = host_of(64, 19, 1, true);
        host.still = 0.0005;
        seconds(&host, 60);
        host.load = load;
        int64_t before = host.cost.cpu_ns;
        unsigned passed = 0;
        while (passed++ < 90 && share_of(&host, 1) > 0.01)
            ;
        assert_true(passed <= 30);
        assert_true(share_of(&host, 600) <= 0.01);
        /* Beyond all: each step costs at most what ten seconds may, or the one second it takes to
         * see it. */
        assert_true(host.cost.cpu_ns - before < (int64_t)(64 * SECOND_NS * (0.01 * 800 + load)));
    }
}

static void test_order_of_steps(void **state)
{
    (void)state;
    struct host host = host_of(1, 4, 3, true);
    host.types[0] = 0.2;
    host.types[1] = 0.5;
    host.types[2] = 0.3;
    host.busiest = 0.9;
    seconds(&host, 60);
    /* Each time just as much that one step is due. */
    struct guard_state states[16];
    size_t count = 0;
    for (unsigned i = 0; i < 1000 && !host.guard.state.rest; i++) {
        const struct guard_state *now = &host.guard.state;
        double on = 0;
        for (unsigned type = 0; type < 3; type++)
            on += now->types_off & 1u << type ? 0 : host.types[type];
        host.load = 0.012 * now->divisor / on / (now->busiest_only ? host.busiest : 1);
        if (second(&host) == GUARD_CHANGED && count < ARRAY_LENGTH(states))
            states[count++] = host.guard.state;
    }
    assert_int_equal(count, 6);
    assert_int_equal(guard_level_max(&host.guard), 6);
    assert_int_equal(states[0].types_off, 1u << 1); /* the most expensive */
    assert_int_equal(states[1].types_off, 1u << 1 | 1u << 2);
    assert_int_equal(states[1].divisor, 1);
    assert_int_equal(states[2].divisor, 2);
    assert_int_equal(states[3].divisor, 4);
    assert_false(states[3].busiest_only);
    assert_true(states[4].busiest_only && !states[4].rest);
    assert_true(states[5].rest);
    for (size_t i = 3; i < count; i++)
        assert_int_equal(states[i].divisor, 4);

    /* And back, the same way. */
    host.load = 0;
    for (unsigned level = 6; level-- > 0;) {
        unsigned waited = 0;
        while (host.guard.level > level && waited++ < 5000)
            second(&host);
        assert_int_equal(host.guard.level, level);
    }
    assert_int_equal(host.guard.state.types_off, 0);
    assert_int_equal(host.guard.state.divisor, 1);
    assert_false(host.guard.state.busiest_only);
    assert_int_equal(host.guard.reason, GUARD_FINE);
    assert_int_equal(host.guard.steps_up, 6);
}

/* A collector is given up before the rate is, and before all is spent: at once when the load is
 * sudden, and not at all when it is the start's. */
static void test_collectors_first(void **state)
{
    (void)state;
    struct host host = host_of(2, 19, 2, true);
    host.types[0] = 0.5;
    host.types[1] = 0.5;
    host.load = 0.02; /* the first seconds */
    seconds(&host, 4);
    assert_int_equal(host.guard.level, 0);
    host.load = 0.005;
    seconds(&host, 60);
    assert_int_equal(host.guard.level, 0);
    host.load = 0.0085; /* within the limit, but there is more to come */
    seconds(&host, 15);
    assert_int_equal(host.guard.state.types_off, 1u << 1);
    assert_int_equal(host.guard.state.divisor, 1);

    host = host_of(2, 19, 2, true);
    host.types[0] = 0.2;
    host.types[1] = 0.8;
    host.load = 0.002;
    seconds(&host, 60);
    host.load = 0.014;
    double spent = share_of(&host, 10);
    assert_int_equal(host.guard.state.types_off, 1u << 1);
    assert_int_equal(host.guard.state.divisor, 1);
    assert_true(spent < 0.0075);
}

/* One that is off by order is not the guard's: the next step is the rate's. */
static void test_unwanted_collectors(void **state)
{
    (void)state;
    struct host host = host_of(2, 16, 3, true);
    unsigned levels = guard_level_max(&host.guard);
    guard_set_types(&host.guard, 3, ~0u);
    assert_int_equal(guard_level_max(&host.guard), levels - 2);
    host.load = 0.02;
    seconds(&host, 60);
    assert_int_equal(host.guard.state.types_off, 0);
    assert_true(host.guard.state.divisor > 1);
    guard_set_types(&host.guard, 3, 1u << 2);
    assert_int_equal(guard_level_max(&host.guard), levels - 1);
    guard_set_types(&host.guard, 3, 0);
    assert_int_equal(guard_level_max(&host.guard), levels);
}

/* Who can't choose processes goes from the lowest rate to rest. */
static void test_without_choice(void **state)
{
    (void)state;
    struct host host = host_of(1, 19, 1, false);
    host.load = 5;
    seconds(&host, 120);
    assert_int_equal(guard_level_max(&host.guard), 5);
    assert_true(host.guard.state.rest);
    assert_false(host.guard.state.busiest_only);
}

/* A load that is always too much for one level more must not make it go up and down all the time.
 */
static void test_no_flapping(void **state)
{
    (void)state;
    struct host host = host_of(2, 19, 1, true);
    seconds(&host, 60);
    host.load = 0.018;
    seconds(&host, 30);
    assert_int_equal(host.guard.level, 1);
    unsigned before = host.changes;
    seconds(&host, 3600); /* half of it is more than what would let it come back */
    assert_int_equal(host.changes, before);

    /* One that looks lower than it is: what comes back has to go again, and waits longer each time.
     */
    struct host liar = host_of(2, 19, 1, true);
    seconds(&liar, 60);
    for (unsigned i = 0; i < 3600; i++) {
        liar.load = liar.guard.level ? 0.001 : 0.03;
        second(&liar);
    }
    assert_true(liar.guard.steps_down >= 3);
    assert_true(liar.changes < 40);
    assert_true(liar.guard.backoff > 1);
}

static void test_comes_back_slowly(void **state)
{
    (void)state;
    struct host host = host_of(2, 19, 1, true);
    seconds(&host, 60);
    host.load = 0.05;
    seconds(&host, 60);
    unsigned level = host.guard.level;
    assert_true(level >= 3);
    host.load = 0.001;
    seconds(&host, 20);
    assert_int_equal(host.guard.level, level);
    seconds(&host, 40);
    assert_true(host.guard.level >= level - 1);
    seconds(&host, 60 * (level + 1));
    assert_int_equal(host.guard.level, 0);
    assert_int_equal(host.guard.steps_up, level);
}

static void test_memory(void **state)
{
    (void)state;
    struct host host = host_of(2, 19, 1, true);
    seconds(&host, 60);
    host.cost.resident_bytes = 120 * MIB;
    second(&host);
    /* First the caches, and some time to see what that was good for. */
    assert_int_equal(host.dropped_caches, 1);
    assert_int_equal(host.guard.level, 0);
    host.cost.resident_bytes = 90 * MIB;
    seconds(&host, 120);
    assert_int_equal(host.guard.level, 0);
    host.cost.resident_bytes = 125 * MIB;
    seconds(&host, 10);
    assert_int_equal(host.dropped_caches, 2);
    assert_int_equal(host.guard.level, 1);
    assert_int_equal(host.guard.reason, GUARD_MEMORY);
    char text[GUARD_TEXT_BYTES];
    guard_explain(&host.guard, text, sizeof(text));
    assert_non_null(strstr(text, "125.0 MiB"));
    /* As long as it stays, so do the steps. */
    seconds(&host, 300);
    assert_true(host.guard.state.rest);
    host.cost.resident_bytes = 60 * MIB;
    seconds(&host, 60 * 40);
    assert_int_equal(host.guard.level, 0);
}

static void test_upload(void **state)
{
    (void)state;
    struct host host = host_of(2, 19, 1, true);
    seconds(&host, 60);
    host.upload_bytes = MIB / 40; /* 1.5 MiB a minute */
    seconds(&host, 120);
    assert_int_equal(host.guard.reason, GUARD_UPLOAD);
    assert_int_equal(host.guard.level, 1);
    uint64_t before = host.cost.upload_bytes;
    seconds(&host, 600);
    assert_true(host.cost.upload_bytes - before <= 10 * MIB);
}

/* The clock may stand still or jump: nothing is divided by zero, nothing goes out of bounds. */
static void test_odd_clocks(void **state)
{
    (void)state;
    struct host host = host_of(2, 19, 1, true);
    for (unsigned i = 0; i < 200; i++) {
        guard_tick(&host.guard, host.now_ns, &host.cost);
        host.cost.cpu_ns += i;
    }
    host.now_ns += 86400 * SECOND_NS;
    seconds(&host, 100);
    assert_int_equal(host.guard.level, 0);
    host.now_ns += 3600 * SECOND_NS;
    host.cost.cpu_ns += (int64_t)(0.005 * 2 * 3600) * SECOND_NS;
    seconds(&host, 30);
    assert_true(host.guard.level <= guard_level_max(&host.guard));
}

/* A rate that somebody changes meanwhile never leads beyond the last level. */
static void test_other_rate(void **state)
{
    (void)state;
    struct host host = host_of(1, 999, 1, true);
    host.load = 50;
    seconds(&host, 200);
    assert_true(host.guard.state.rest);
    host.guard.rate_hz = 2;
    seconds(&host, 600);
    host.load = 0;
    seconds(&host, 60 * 400);
    assert_int_equal(host.guard.level, 0);
    assert_int_equal(host.guard.state.divisor, 1);
}

/* Collectors get what all else leaves, before one is turned off. */
static void test_spare_share(void **state)
{
    (void)state;
    struct host host = host_of(2, 19, 2, true);
    assert_true(guard_spare_share(&host.guard, 1) == usual.cpu_share);
    host.load = 0.001;
    host.types[0] = 0;
    host.types[1] = 1;
    host.still = 0.004;
    seconds(&host, 10); /* all is to be learned */
    assert_true(guard_spare_share(&host.guard, 1) == usual.cpu_share);
    seconds(&host, 60);
    assert_int_equal(host.guard.level, 0);
    assert_true(guard_spare_share(&host.guard, 1) > 0.00199);
    assert_true(guard_spare_share(&host.guard, 1) < 0.00201);
    /* Its own cost doesn't matter; whatever it is, what is left is the same. */
    host.load = 0.002;
    seconds(&host, 20);
    assert_true(guard_spare_share(&host.guard, 1) > 0.00199);
    assert_true(guard_spare_share(&host.guard, 1) < 0.00201);
    host.load = 0.0001;
    host.still = 0.0065; /* more than is kept free for all */
    seconds(&host, 20);
    assert_int_equal(host.guard.level, 0);
    assert_true(guard_spare_share(&host.guard, 1) > 0.00049);
    assert_true(guard_spare_share(&host.guard, 1) < 0.00051);
    assert_true(guard_spare_share(&host.guard, GUARD_TYPES_MAX) == usual.cpu_share);
}

/* Where a starved agent looks again after longer than the span that is measured. */
static void test_late_tick(void **state)
{
    char text[GUARD_TEXT_BYTES];
    (void)state;
    struct host host = host_of(2, 19, 1, true);
    seconds(&host, 1);
    host.now_ns += 14 * SECOND_NS;
    host.cost.cpu_ns += 660000000; /* of 600 ms in the first half minute */
    assert_int_equal(second(&host), GUARD_CHANGED);
    guard_explain(&host.guard, text, sizeof(text));
    assert_string_equal(text, "CPU 1.1%, limit 1%");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_within_budget_nothing_happens),
        cmocka_unit_test(test_learning),
        cmocka_unit_test(test_rate_first),
        cmocka_unit_test(test_held_at_any_load),
        cmocka_unit_test(test_order_of_steps),
        cmocka_unit_test(test_collectors_first),
        cmocka_unit_test(test_unwanted_collectors),
        cmocka_unit_test(test_without_choice),
        cmocka_unit_test(test_no_flapping),
        cmocka_unit_test(test_comes_back_slowly),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_upload),
        cmocka_unit_test(test_odd_clocks),
        cmocka_unit_test(test_other_rate),
        cmocka_unit_test(test_spare_share),
        cmocka_unit_test(test_late_tick),
    };
    return cmocka_run_group_tests_name("agent_guard", tests, NULL, NULL);
}
