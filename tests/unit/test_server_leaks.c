// SPDX-License-Identifier: Apache-2.0
// The leak watch over simulated processes, whose truth is known.

#include "server/watch/leaks.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "server/admission/admission.h"
#include "server/compare/compared.h"
#include "server/watch/watch.h"
#include "store/store.h"
#include "unit.h"

#define SECOND 1000000000ll
#define MINUTE (60 * SECOND)
#define START (1700000000 * SECOND / 86400 / SECOND * 86400 * SECOND + 12 * 60 * MINUTE)
#define INUSE "memory:inuse_space:bytes:space:bytes"
#define RSS "memory:rss:bytes:space:bytes"
#define MIB 1048576.0

struct fixture {
    struct server server;
    struct admissions admissions;
    struct comparisons comparisons;
    struct watch *watch;
    uint64_t random;
};

static const struct watch_limit limits[] = {{"leaky", 1024u << 20}};

static void fixture_open(struct fixture *fixture, uint64_t seed)
{
    static const struct store_class keep = {.name = "default"};
    struct watch_options options = WATCH_OPTIONS_DEFAULT;
    struct store_options store = {.classes = &keep, .class_count = 1};
    struct error error = {0};
    options.limits = limits;
    options.limit_count = 1;
    *fixture = (struct fixture){.random = seed};
    admissions_init(&fixture->admissions, 64u << 20);
    atomic_store(&fixture->admissions.query_memory_bytes, 8u << 20);
    fixture->server.admissions = &fixture->admissions;
    fixture->server.comparisons = &fixture->comparisons;
    assert_int_equal(store_open_memory(&store, &fixture->server.store, &error), 0);
    if (watch_open(&fixture->server, &options, NULL, &fixture->watch, &error) < 0)
        fail_msg("%s", error.text);
}

static void fixture_close(struct fixture *fixture)
{
    assert_int_equal(atomic_load(&fixture->watch->stats.failed), 0);
    assert_int_equal(budget_stats(&fixture->admissions.memory).used_bytes, 0);
    watch_close(fixture->watch);
    store_close(fixture->server.store);
    admissions_release(&fixture->admissions);
}

/* 1, more or less by up to a part. */
static double jitter(struct fixture *fixture, double part)
{
    fixture->random = fixture->random * 6364136223846793005ull + 1442695040888963407ull;
    return 1 + part * ((double)((fixture->random >> 33) % 2001) / 1000 - 1);
}

static uint32_t frame(struct profile *profile, const char *name)
{
    uint32_t function = profile_function(
        profile, &(struct profile_function){.name = profile_cstring(profile, name)});
    return profile_frame(profile, &(struct profile_frame){.function = function});
}

/* What a process holds, so many minutes after its start, in MiB. */
struct shape {
    double leak;     /* a minute */
    double cache;    /* fills in tens of minutes */
    double sawtooth; /* is emptied every 37 minutes */
    double steady;   /* with noise */
};

static void write_snapshot(struct fixture *fixture, const char *service, const char *pod,
                           const char *type, int64_t time_ns, double minutes,
                           const struct shape *shape)
{
    _cleanup_profile_ struct profile profile;
    struct labels labels = {0};
    const struct {
        const char *site;
        double held;
    } sites[] = {{"remember", 2 + shape->leak * minutes},
                 {"cache_fill", shape->cache * (1 - exp(-minutes / 20))},
                 {"batch_add", 1 + shape->sawtooth * fmod(minutes, 37) / 37},
                 {"serve", shape->steady}};
    struct store_row rows[ARRAY_LENGTH(sites)];
    profile_init(&profile, PROFILE_ALL);
    for (size_t i = 0; i < ARRAY_LENGTH(sites); i++) {
        uint32_t frames[] = {frame(&profile, "main"), frame(&profile, "handle"),
                             frame(&profile, sites[i].site), frame(&profile, "operator new")};
        double held = sites[i].held * jitter(fixture, i == 3 ? 0.2 : 0.03);
        rows[i] = (struct store_row){profile_stack(&profile, frames, 4), (int64_t)(held * MIB)};
    }
    labels_set(&labels, "service_name", service);
    if (pod)
        labels_set(&labels, "pod", pod);
    struct store_profile written = {.labels = &labels,
                                    .type = type,
                                    .time_ns = time_ns,
                                    .profile = &profile,
                                    .rows = rows,
                                    .row_count = ARRAY_LENGTH(rows)};
    struct store_batch batch = {.tenant = "t", .profiles = &written, .count = 1};
    struct error error = {0};
    assert_int_equal(store_write(fixture->server.store, &batch, &error), 0);
    labels_release(&labels);
}

/* A process from one minute to another. */
static void write_process(struct fixture *fixture, const char *service, const char *pod,
                          const char *type, int from, int to, const struct shape *shape)
{
    for (int minute = from; minute < to; minute++)
        write_snapshot(fixture, service, pod, type, START + minute * MINUTE,
                       (double)(minute - from), shape);
}

static const struct watch_tenant *tenant_of(const struct fixture *fixture)
{
    return watch_book_tenant(&fixture->watch->book, "t");
}

static size_t say_findings(const struct fixture *fixture)
{
    const struct watch_tenant *tenant = tenant_of(fixture);
    size_t open = 0;
    for (size_t i = 0; i < tenant->finding_count; i++) {
        const struct watch_finding *finding = &tenant->findings[i];
        open += !finding->closed;
        print_message("%s %s: %.2f MiB/h (%.2f to %.2f), %s\n", finding->service,
                      finding->function, finding->slope / MIB, finding->slope_low / MIB,
                      finding->slope_high / MIB, watch_close_names[finding->closed]);
    }
    return open;
}

/* A leak beside a cache that plateaus and a sawtooth, through a restart; and services without. */
static void one_leak_is_one_finding(void **state)
{
    (void)state;
    static const struct shape leaky = {1, 200, 50, 30}, sound = {0, 300, 80, 60};
    struct fixture fixture;
    fixture_open(&fixture, 1);
    write_process(&fixture, "leaky", NULL, INUSE, 0, 190, &leaky);
    write_process(&fixture, "leaky", NULL, INUSE, 190, 361, &leaky);
    for (int i = 0; i < 3; i++) {
        char service[16];
        snprintf(service, sizeof(service), "sound%d", i);
        write_process(&fixture, service, NULL, INUSE, 0, 100 + 50 * i, &sound);
        write_process(&fixture, service, NULL, INUSE, 100 + 50 * i, 361, &sound);
    }
    for (int minute = 30; minute <= 361; minute += 10)
        watch_round(fixture.watch, START + minute * MINUTE);
    assert_int_equal(say_findings(&fixture), 1);
    assert_int_equal(tenant_of(&fixture)->finding_count, 1);
    const struct watch_finding *finding = &tenant_of(&fixture)->findings[0];
    assert_int_equal(finding->kind, WATCH_LEAK);
    assert_string_equal(finding->service, "leaky");
    assert_string_equal(finding->function, "remember");
    assert_true(fabs(finding->slope / MIB - 60) < 2);
    assert_true(finding->slope_low / MIB < 60.5 && finding->slope_high / MIB > 59.5);
    assert_true(finding->slope_low / MIB > 50 && finding->slope_high / MIB < 70);
    assert_true(fabs(finding->site_bytes / MIB - 170) < 15);
    assert_int_equal((int)(finding->limit_bytes / MIB), 1024);
    fixture_close(&fixture);
}

/* Each process climbs; the number of them doesn't count. A process that ends takes it away. */
static void processes_are_told_apart(void **state)
{
    (void)state;
    static const struct shape leaky = {0.2, 20, 5, 30}, sound = {0, 50, 5, 40};
    struct fixture fixture;
    fixture_open(&fixture, 2);
    for (int i = 0; i < 6; i++) {
        char pod[16];
        snprintf(pod, sizeof(pod), "pod%d", i);
        write_process(&fixture, "shop", pod, INUSE, 20 * i, 361, &leaky);
        write_process(&fixture, "grows", pod, INUSE, 50 * i, 361, &sound);
    }
    watch_round(fixture.watch, START + 361 * MINUTE);
    assert_int_equal(say_findings(&fixture), 1);
    assert_string_equal(tenant_of(&fixture)->findings[0].service, "shop");
    assert_string_equal(tenant_of(&fixture)->findings[0].function, "remember");
    assert_true(fabs(tenant_of(&fixture)->findings[0].slope / MIB - 12) < 1);
    fixture_close(&fixture);
}

/* It closes when the process no longer climbs, and when there is no more data. */
static void leaks_close(void **state)
{
    (void)state;
    static const struct shape leaky = {1, 200, 50, 30}, sound = {0, 200, 50, 30};
    struct fixture fixture;
    fixture_open(&fixture, 3);
    write_process(&fixture, "fixed", NULL, INUSE, 0, 361, &leaky);
    write_process(&fixture, "fixed", NULL, INUSE, 361, 900, &sound);
    write_process(&fixture, "gone", NULL, INUSE, 0, 361, &leaky);
    watch_round(fixture.watch, START + 361 * MINUTE);
    assert_int_equal(say_findings(&fixture), 2);
    for (int minute = 600; minute <= 900; minute += 30)
        watch_round(fixture.watch, START + minute * MINUTE);
    watch_round(fixture.watch, START + 361 * MINUTE + 25 * 60 * MINUTE);
    say_findings(&fixture);
    const struct watch_tenant *tenant = tenant_of(&fixture);
    for (size_t i = 0; i < tenant->finding_count; i++)
        assert_int_equal(tenant->findings[i].closed, strcmp(tenant->findings[i].service, "gone")
                                                         ? WATCH_GONE
                                                         : WATCH_NO_DATA);
    fixture_close(&fixture);
}

/* Resident memory is a finding where no heap explains it. */
static void resident_memory(void **state)
{
    (void)state;
    static const struct shape leaky = {1, 0, 0, 30};
    struct fixture fixture;
    fixture_open(&fixture, 4);
    write_process(&fixture, "both", NULL, INUSE, 0, 361, &leaky);
    write_process(&fixture, "both", NULL, RSS, 0, 361, &leaky);
    write_process(&fixture, "alone", NULL, RSS, 0, 361, &leaky);
    watch_round(fixture.watch, START + 361 * MINUTE);
    assert_int_equal(say_findings(&fixture), 2);
    for (size_t i = 0; i < 2; i++) {
        const struct watch_finding *finding = &tenant_of(&fixture)->findings[i];
        assert_string_equal(finding->type, strcmp(finding->service, "both") ? RSS : INUSE);
    }
    fixture_close(&fixture);
}

/* Services of the usual noise for a day, looked at every half hour: no finding at all. */
static void sound_services_have_no_findings(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 5);
    for (int i = 0; i < 10; i++) {
        char service[16];
        struct shape shape = {0, 100 * i, 20 * i, 50 + 20 * i};
        snprintf(service, sizeof(service), "sound%d", i);
        write_process(&fixture, service, NULL, INUSE, -10 * i, 720, &shape);
    }
    for (int minute = 30; minute <= 720; minute += 30)
        watch_round(fixture.watch, START + minute * MINUTE);
    say_findings(&fixture);
    assert_int_equal(tenant_of(&fixture)->finding_count, 0);
    assert_true(atomic_load(&fixture.watch->stats.leak_looks) >= 220);
    fixture_close(&fixture);
}

/* ---- trends ---- */

static void trends(void **state)
{
    (void)state;
    struct trend_point points[200] = {0};
    struct trend trend;
    assert_false(trend_of(points, 0, &trend));
    for (size_t i = 0; i < 200; i++)
        points[i] = (struct trend_point){(double)(i % 50), 3 * (double)(i % 50), (uint32_t)(i / 50)};
    assert_false(trend_of(points, TREND_BLOCK_POINTS_MIN - 1, &trend));
    assert_true(trend_of(points, 200, &trend));
    assert_true(fabs(trend.slope - 3) < 1e-9 && fabs(trend.low - 3) < 1e-9);
    assert_true(trend_climbs(&trend, 2.9));
    assert_false(trend_climbs(&trend, 3.1));
    for (size_t i = 0; i < 200; i++) /* all equal, and all at once */
        points[i] = (struct trend_point){0, 5, 0};
    assert_true(trend_of(points, 200, &trend));
    assert_false(trend_climbs(&trend, 0));
    for (size_t i = 0; i < 50; i++) /* falls */
        points[i] = (struct trend_point){(double)i, 100 - (double)i, 0};
    assert_true(trend_of(points, 50, &trend));
    assert_false(trend_climbs(&trend, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_leak_is_one_finding),
        cmocka_unit_test(processes_are_told_apart),
        cmocka_unit_test(leaks_close),
        cmocka_unit_test(resident_memory),
        cmocka_unit_test(sound_services_have_no_findings),
        cmocka_unit_test(trends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
