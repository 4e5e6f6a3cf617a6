// SPDX-License-Identifier: Apache-2.0
// Covered time and levels, from both stores: raw data, and rollups of ten minutes, hours and days.

#include <math.h>

#include "store/store.h"
#include "store_pair.h"
#include "unit.h"

#define INUSE "memory:inuse_space:bytes:space:bytes"
#define START_NS (TODAY_NS - 2 * DAY_NS)

struct pair {
    struct store *stores[2];
};

struct seen { /* an observed process: labels as name=value, ended by NULL */
    const char *labels[8];
    const char *type;
};

static void write_one(struct pair *pair, const struct seen *seen, int64_t at_s, int64_t length_s,
                      int64_t value)
{
    _cleanup_labels_ struct labels labels = {0};
    labels_set(&labels, LABEL_SERVICE_NAME, "web");
    for (size_t i = 0; seen->labels[i]; i++) {
        const char *equal = strchr(seen->labels[i], '=');
        labels_set_n(&labels, seen->labels[i], (size_t)(equal - seen->labels[i]), equal + 1,
                     strlen(equal + 1));
    }
    for (size_t i = 0; i < ARRAY_LENGTH(pair->stores); i++) {
        _cleanup_profile_ struct profile profile;
        profile_init(&profile, PROFILE_ALL);
        uint32_t frame = sample_frame(&profile, 1);
        struct store_row row = {.node = profile_child(&profile, 0, frame), .value = value};
        struct store_profile window = {.labels = &labels,
                                       .type = seen->type ? seen->type : CPU,
                                       .time_ns = START_NS + at_s * SECOND_NS,
                                       .duration_ns = length_s * SECOND_NS,
                                       .profile = &profile,
                                       .rows = &row,
                                       .row_count = 1};
        struct store_batch batch = {.tenant = "acme", .profiles = &window, .count = 1};
        struct error error;
        if (store_write(pair->stores[i], &batch, &error) < 0)
            fail_msg("%s", error.text);
    }
}

static void write_many(struct pair *pair, const struct seen *seen, int64_t from_s, int64_t to_s,
                       int64_t every_s, int64_t length_s, int64_t value)
{
    for (int64_t at = from_s; at < to_s; at += every_s)
        write_one(pair, seen, at, length_s, value);
}

static void near(double got, double wanted, const char *what)
{
    if (fabs(got - wanted) > 0.001 * fabs(wanted))
        fail_msg("%s is %.9g instead of %.9g", what, got, wanted);
}

/* A rate and covered seconds of [from, to), from both stores. Returns tiers of the embedded one. */
static unsigned expect(struct pair *pair, const char *type, int64_t from_s, int64_t to_s,
                       double rate, double covered_s)
{
    unsigned tiers = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(pair->stores); i++) {
        struct store_selection selection = {.tenant = "acme",
                                            .type = type,
                                            .from_ns = START_NS + from_s * SECOND_NS,
                                            .to_ns = START_NS + to_s * SECOND_NS};
        struct store_quality quality;
        struct error error;
        _cleanup_profile_ struct profile profile;
        profile_init(&profile, PROFILE_ALL);
        if (store_merge(pair->stores[i], &selection, NULL, &profile, &quality, &error) < 0)
            fail_msg("%s", error.text);
        near((double)quality.total / (double)quality.per_ns * 1e9, rate, i ? "memory" : "embedded");
        near((double)quality.covered_ns / 1e9, covered_s, "covered");
        tiers |= i ? 0 : quality.tiers;
    }
    return tiers;
}

static struct pair open_pair(void)
{
    return (struct pair){{open_embedded(), open_memory()}};
}

static void close_pair(struct pair *pair)
{
    check_is_clean(pair->stores[0]);
    store_close(pair->stores[0]);
    store_close(pair->stores[1]);
}

/* Asked of raw data, and of rollups. */
#define BOTH(pair, ...)                                                                            \
    do {                                                                                           \
        expect(pair, __VA_ARGS__);                                                                 \
        maintain((pair)->stores[0]);                                                               \
        assert_false(expect(pair, __VA_ARGS__) & 1u << STORE_RAW);                                 \
    } while (0)

static const struct seen plain = {.labels = {"host=h1", NULL}};

static void label_sets_of_a_process_share_its_time(void **state)
{
    (void)state;
    struct pair pair = open_pair();
    static const char *const endpoints[] = {"endpoint=a", "endpoint=b", "endpoint=c"};
    for (size_t i = 0; i < ARRAY_LENGTH(endpoints); i++) {
        struct seen seen = {.labels = {"host=h1", endpoints[i], LABEL_SPLIT "=endpoint", NULL}};
        write_one(&pair, &seen, 100, 10, SECOND_NS);
    }
    write_one(&pair, &plain, 100, 10, 2 * SECOND_NS); /* samples without labels */
    BOTH(&pair, CPU, 0, 86400, 0.5 * 1e9, 10);
    close_pair(&pair);
}

static void a_scrape_of_two_in_five_seconds(void **state)
{
    (void)state;
    struct pair pair = open_pair();
    write_many(&pair, &plain, 0, 3600, 5, 2, 72000000);
    expect(&pair, CPU, 0, 300, 0.036 * 1e9, 120);
    BOTH(&pair, CPU, 0, 3600, 0.036 * 1e9, 1440);
    close_pair(&pair);
}

static void hosts_add_up_whatever_each_covers(void **state)
{
    (void)state;
    struct pair pair = open_pair();
    static const struct seen second = {.labels = {"host=h2", NULL}};
    static const struct seen third = {.labels = {"host=h3", NULL}};
    write_many(&pair, &plain, 0, 600, 10, 10, SECOND_NS);
    write_many(&pair, &second, 3, 600, 60, 10, SECOND_NS); /* a sixth of the time */
    write_many(&pair, &third, 0, 600, 5, 2, SECOND_NS / 5);
    BOTH(&pair, CPU, 0, 86400, 0.3 * 1e9, 600);
    close_pair(&pair);
}

/* A process that is replaced by another isn't counted beside it. */
static void processes_that_follow_each_other(void **state)
{
    (void)state;
    struct pair pair = open_pair();
    static const struct seen before = {.labels = {"pod=a", "version=v1", NULL}};
    static const struct seen after = {.labels = {"pod=b", "version=v2", NULL}};
    write_many(&pair, &before, 0, 900, 10, 10, SECOND_NS);
    write_many(&pair, &after, 900, 1800, 10, 10, SECOND_NS);
    BOTH(&pair, CPU, 0, 1800, 0.1 * 1e9, 1800);
    close_pair(&pair);
}

/* One of two hosts stops after 20 minutes: it counts until then, and the other goes on. */
static void a_host_that_stops(void **state)
{
    (void)state;
    struct pair pair = open_pair();
    static const struct seen second = {.labels = {"host=h2", NULL}};
    write_many(&pair, &plain, 0, 3600, 10, 10, SECOND_NS);
    write_many(&pair, &second, 0, 1200, 10, 10, SECOND_NS);
    expect(&pair, CPU, 0, 1200, 0.2 * 1e9, 1200);
    expect(&pair, CPU, 1200, 3600, 0.1 * 1e9, 2400);
    BOTH(&pair, CPU, 0, 3600, (0.2 + 0.1 + 0.1) / 3 * 1e9, 3600);
    close_pair(&pair);
}

struct found {
    size_t count;
    struct store_point points[100];
};

static int keep_points(void *context, const struct labels *group, const struct store_point *points,
                       size_t count)
{
    struct found *found = context;
    (void)group;
    assert_true(count <= ARRAY_LENGTH(found->points));
    memcpy(found->points, points, count * sizeof(*points));
    found->count = count;
    return 0;
}

static void points_say_what_they_cover(void **state)
{
    (void)state;
    struct pair pair = open_pair();
    write_one(&pair, &plain, 100, 10, SECOND_NS);
    write_one(&pair, &plain, 760, 10, SECOND_NS);
    for (int rolled = 0; rolled < 2; rolled++) {
        for (size_t i = 0; i < ARRAY_LENGTH(pair.stores); i++) {
            struct store_selection selection = {
                .tenant = "acme", .type = CPU, .from_ns = START_NS, .to_ns = START_NS + HOUR_NS};
            struct store_timeseries_query query = {.step_ns = 600 * SECOND_NS};
            struct found found = {0};
            assert_int_equal(store_timeseries(pair.stores[i], &selection, &query, NULL, keep_points,
                                              &found, NULL, NULL),
                             0);
            assert_int_equal(found.count, 2);
            for (size_t k = 0; k < 2; k++) {
                assert_int_equal(found.points[k].covered_ns, 10 * SECOND_NS);
                assert_int_equal(found.points[k].per_ns, 10 * SECOND_NS);
            }
        }
        maintain(pair.stores[0]);
    }
    close_pair(&pair);
}

static void levels_are_averages(void **state)
{
    (void)state;
    struct pair pair = open_pair();
    static const struct seen first = {.labels = {"host=h1", NULL}, .type = INUSE};
    static const struct seen second = {.labels = {"host=h2", NULL}, .type = INUSE};
    write_many(&pair, &first, 0, 1200, 15, 0, 100 << 20);
    write_many(&pair, &first, 1200, 1800, 15, 0, 130 << 20);
    write_many(&pair, &second, 7, 1800, 60, 15, 7 << 20);
    expect(&pair, INUSE, 0, 600, 107 << 20, 600);
    expect(&pair, INUSE, 1200, 1800, 137 << 20, 600);
    BOTH(&pair, INUSE, 0, 1800, 117 << 20, 1800);
    close_pair(&pair);
}

/* The rate of each step of ten seconds, and how many have windows. */
static size_t rates_of(struct store *store, const char *type, int64_t to_s, double *rates)
{
    struct store_selection selection = {
        .tenant = "acme", .type = type, .from_ns = START_NS, .to_ns = START_NS + to_s * SECOND_NS};
    struct store_timeseries_query query = {.step_ns = 10 * SECOND_NS};
    struct found found = {0};
    assert_int_equal(
        store_timeseries(store, &selection, &query, NULL, keep_points, &found, NULL, NULL), 0);
    for (size_t i = 0; i < found.count; i++)
        rates[i] = (double)found.points[i].value * 1e9 / (double)found.points[i].per_ns;
    return found.count;
}

static void hosts_add_up_in_steps_shorter_than_their_pauses(void **state)
{
    (void)state;
    struct pair pair = open_pair();
    static const struct seen kinds[][2] = {
        {{.labels = {"host=h1", NULL}, .type = INUSE},
         {.labels = {"host=h2", NULL}, .type = INUSE}},
        {{.labels = {"host=h1", NULL}}, {.labels = {"host=h2", NULL}}}};
    double rates[100];
    for (int flow = 0; flow < 2; flow++) {
        int64_t length = flow ? 5 : 0, value = flow ? 5 * SECOND_NS : 1000000000;
        write_many(&pair, &kinds[flow][0], 0, 600, 60, length, value);
        write_many(&pair, &kinds[flow][1], 17, 600, 60, length, value);
        for (size_t i = 0; i < ARRAY_LENGTH(pair.stores); i++) {
            size_t count = rates_of(pair.stores[i], flow ? CPU : INUSE, 600, rates);
            assert_int_equal(count, 20);
            for (size_t k = 0; k < count; k++)
                near(rates[k], 2e9, "both hosts");
        }
    }
    /* One that ended isn't there for longer than its pauses tell. */
    write_many(&pair, &kinds[0][0], 600, 900, 60, 0, 1000000000);
    for (size_t i = 0; i < ARRAY_LENGTH(pair.stores); i++) {
        size_t count = rates_of(pair.stores[i], INUSE, 900, rates);
        assert_int_equal(count, 25);
        near(rates[19], 2e9, "both hosts");
        near(rates[20], 1e9, "one host");
    }
    close_pair(&pair);
}

static void nothing_is_known_without_durations(void **state)
{
    (void)state;
    struct pair pair = open_pair();
    write_one(&pair, &plain, 100, 0, SECOND_NS);
    for (size_t i = 0; i < ARRAY_LENGTH(pair.stores); i++) {
        struct store_selection selection = {
            .tenant = "acme", .type = CPU, .from_ns = START_NS, .to_ns = START_NS + HOUR_NS};
        struct store_quality quality;
        _cleanup_profile_ struct profile profile;
        profile_init(&profile, PROFILE_ALL);
        assert_int_equal(store_merge(pair.stores[i], &selection, NULL, &profile, &quality, NULL),
                         0);
        assert_int_equal(quality.total, SECOND_NS);
        assert_int_equal(quality.per_ns, 0);
        assert_int_equal(quality.covered_ns, 0);
    }
    close_pair(&pair);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        CASE(label_sets_of_a_process_share_its_time),
        CASE(a_scrape_of_two_in_five_seconds),
        CASE(hosts_add_up_whatever_each_covers),
        CASE(processes_that_follow_each_other),
        CASE(a_host_that_stops),
        CASE(points_say_what_they_cover),
        CASE(levels_are_averages),
        CASE(hosts_add_up_in_steps_shorter_than_their_pauses),
        CASE(nothing_is_known_without_durations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
