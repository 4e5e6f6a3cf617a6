// SPDX-License-Identifier: Apache-2.0
// Comparisons that a job of the server makes, without a request: two versions of a service.

#include "server/compare/compared.h"

#include <errno.h>

#include "sample_profile.h"
#include "server/admission/admission.h"
#include "store/store.h"
#include "unit.h"

#define SECOND 1000000000ll
#define START (1700000000 * SECOND / 86400 * 86400)
#define WINDOWS 60
#define CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

/* A window of 10 s: 40 functions, of which `slow` takes twice the time. */
static void write_window(struct store *store, const char *version, int window, int slow)
{
    _cleanup_profile_ struct profile profile;
    struct labels labels = {0};
    struct store_row rows[40];
    profile_init(&profile, PROFILE_ALL);
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%d", i);
        uint32_t function = profile_function(
            &profile, &(struct profile_function){.name = profile_cstring(&profile, name)});
        uint32_t frame = profile_frame(&profile, &(struct profile_frame){.function = function});
        int64_t noise = (window * 7 + i * 13) % 5 - 2;
        rows[i] = (struct store_row){profile_stack(&profile, &frame, 1),
                                     (20 + noise) * (i == slow ? 2 : 1) * 10000000};
    }
    labels_set(&labels, "service_name", "shop");
    labels_set(&labels, "version", version);
    struct store_profile written = {.labels = &labels,
                                    .type = CPU,
                                    .time_ns = START + window * 10 * SECOND,
                                    .duration_ns = 10 * SECOND,
                                    .profile = &profile,
                                    .rows = rows,
                                    .row_count = 40};
    struct store_batch batch = {.tenant = "t", .profiles = &written, .count = 1};
    struct error error = {0};
    assert_int_equal(store_write(store, &batch, &error), 0);
    labels_release(&labels);
}

struct fixture {
    struct server server;
    struct admissions admissions;
    struct comparisons comparisons;
};

static void fixture_open(struct fixture *fixture)
{
    static const struct store_class keep = {.name = "default"};
    struct store_options options = {.classes = &keep, .class_count = 1};
    struct error error = {0};
    *fixture = (struct fixture){0};
    admissions_init(&fixture->admissions, 64u << 20);
    atomic_store(&fixture->admissions.query_memory_bytes, 8u << 20);
    fixture->server.admissions = &fixture->admissions;
    fixture->server.comparisons = &fixture->comparisons;
    assert_int_equal(store_open_memory(&options, &fixture->server.store, &error), 0);
    for (int i = 0; i < WINDOWS; i++) {
        write_window(fixture->server.store, "1", i, -1);
        write_window(fixture->server.store, "2", i, 7);
    }
}

static void fixture_close(struct fixture *fixture)
{
    store_close(fixture->server.store);
    admissions_release(&fixture->admissions);
}

static struct compared_query versions(const char *base, const char *now)
{
    return (struct compared_query){
        .tenant = "t",
        .sides = {{base, START, START + WINDOWS * 10 * SECOND},
                  {now, START, START + WINDOWS * 10 * SECOND}},
        .options = COMPARED_OPTIONS_DEFAULT,
    };
}

#define VERSION(v) "cpu{service=\"shop\",version=\"" v "\"}"

static void a_job_compares_versions(void **state)
{
    (void)state;
    struct fixture fixture;
    struct compared compared;
    struct error error = {0};
    fixture_open(&fixture);
    struct compared_query query = versions(VERSION("1"), VERSION("2"));
    if (compared_run(&fixture.server, &query, &compared, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(compared.comparison.method, COMPARE_BY_WINDOWS);
    size_t grew = 0;
    for (size_t i = 0; i < compared.comparison.count; i++) {
        const struct compare_row *row = &compared.comparison.rows[i];
        if (row->total.verdict != COMPARE_GREW)
            continue;
        assert_string_equal(row->function->name, "f7");
        assert_true(row->total.growth > 0.9 && row->total.growth < 1.1);
        grew++;
    }
    assert_int_equal(grew, 1);
    compared_release(&compared);
    assert_int_equal(atomic_load(&fixture.comparisons.made), 1);
    assert_int_equal(atomic_load(&fixture.comparisons.changed), 1);
    /* The memory is given back. */
    assert_int_equal(budget_stats(&fixture.admissions.memory).used_bytes, 0);

    query = versions(VERSION("1"), VERSION("1"));
    assert_int_equal(compared_run(&fixture.server, &query, &compared, &error), 0);
    assert_int_equal(compared.comparison.found, 0);
    compared_release(&compared);
    fixture_close(&fixture);
}

static void a_job_that_cannot_compare(void **state)
{
    (void)state;
    struct fixture fixture;
    struct error error = {0};
    fixture_open(&fixture);
    static const struct {
        const char *base, *now;
        int code;
    } cases[] = {{VERSION("1"), VERSION("3"), -ENOENT},
                 {VERSION("0"), VERSION("2"), -ENOENT},
                 {"cpu{", VERSION("2"), -EINVAL},
                 {VERSION("1"), "nothing_like_this{}", -ENOENT}};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct compared compared;
        struct compared_query query = versions(cases[i].base, cases[i].now);
        error = (struct error){0};
        int r = compared_run(&fixture.server, &query, &compared, &error);
        if (r != cases[i].code)
            fail_msg("%s against %s: %d: %s", cases[i].now, cases[i].base, r, error.text);
        assert_true(*error.text);
        compared_release(&compared);
    }
    /* Nobody counted requests. */
    struct compared compared;
    struct compared_query query = versions(VERSION("1"), VERSION("2"));
    query.options.normalize = COMPARE_PER_REQUEST;
    assert_int_equal(compared_run(&fixture.server, &query, &compared, &error), -EINVAL);
    compared_release(&compared);

    atomic_bool cancelled = true;
    query.options.normalize = COMPARE_PER_SECOND;
    query.cancelled = &cancelled;
    assert_true(compared_run(&fixture.server, &query, &compared, &error) < 0);
    compared_release(&compared);
    assert_int_equal(atomic_load(&fixture.comparisons.made), 0);
    assert_int_equal(atomic_load(&fixture.comparisons.failed), ARRAY_LENGTH(cases) + 2);
    assert_int_equal(budget_stats(&fixture.admissions.memory).used_bytes, 0);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_compares_versions),
        cmocka_unit_test(a_job_that_cannot_compare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
