/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded store and the one in memory, given the same and compared. */
#pragma once

#include "store_samples.h"
#include "unit.h"

static inline struct store_options options(void)
{
    return (struct store_options){.directory = "data", .now = test_clock, .commit_ms = 1};
}

static inline struct store *open_with(const struct store_options *settings)
{
    struct store *store;
    struct error error;
    if (store_open_embedded(settings, &store, &error) < 0)
        fail_msg("%s", error.text);
    return store;
}

static inline struct store *open_embedded(void)
{
    struct store_options settings = options();
    return open_with(&settings);
}

static inline struct store *open_memory(void)
{
    struct store *store;
    struct store_options settings = options();
    assert_int_equal(store_open_memory(&settings, &store, NULL), 0);
    return store;
}

static inline void write_batch(struct store *store, const struct sample_batch *batch)
{
    struct error error;
    struct store_batch all = {.tenant = "acme", .profiles = batch->profiles, .count = batch->count};
    if (store_write(store, &all, &error) < 0)
        fail_msg("%s", error.text);
}

/* The same batches into both. */
static inline void write_both(struct store *a, struct store *b, uint64_t seed, unsigned batches,
                              int64_t from_ns, int64_t to_ns)
{
    for (unsigned i = 0; i < batches; i++) {
        struct sample_batch batch;
        sample_batch_make(&batch, seed * 1000 + i, 8, from_ns, to_ns);
        write_batch(a, &batch);
        write_batch(b, &batch);
        sample_batch_release(&batch);
    }
}

static inline void maintain(struct store *store)
{
    struct error error;
    int r;
    for (int i = 0; (r = store_maintain(store, NULL, &error)) == 1; i++)
        assert_true(i < 1000);
    if (r < 0)
        fail_msg("%s", error.text);
}

static const char *const selectors[] = {
    "",
    "{service_name=\"service1\"}",
    "{version=\"v0\"}",
    "{service_name=~\"service[01]\"}",
    "{host=\"host1\"}",
    "{service_name!=\"service2\",host=~\".*2\"}",
};

static unsigned answers_compared;

/* Both stores answer the same, for random ranges: whole hours and days, and anything. */
static inline void compare_answers(struct store *embedded, struct store *memory, uint64_t seed,
                                   unsigned rounds, int64_t from_ns, int64_t to_ns)
{
    static const int64_t units[] = {SECOND_NS, MINUTE_NS,   10 * MINUTE_NS,
                                    HOUR_NS,   6 * HOUR_NS, DAY_NS};
    for (unsigned i = 0; i < rounds; i++) {
        int64_t unit = units[sample_random(&seed) % ARRAY_LENGTH(units)];
        uint64_t range = (uint64_t)((to_ns - from_ns) / unit + 1);
        int64_t a = from_ns / unit * unit + (int64_t)(sample_random(&seed) % range) * unit;
        int64_t b = from_ns / unit * unit + (int64_t)(sample_random(&seed) % range) * unit;
        const char *text = selectors[sample_random(&seed) % ARRAY_LENGTH(selectors)];
        _cleanup_selector_ struct selector selector = {0};
        assert_int_equal(selector_parse(text, strlen(text), &selector, NULL), 0);
        struct store_selection selection = {.tenant = "acme",
                                            .type = CPU,
                                            .selector = &selector,
                                            .from_ns = MIN(a, b),
                                            .to_ns = MAX(a, b) + unit};
        struct store_limits limits = {.raw_only = sample_random(&seed) % 4 == 0};
        _cleanup_buffer_ struct buffer x = {0}, y = {0};
        describe_merge(embedded, &selection, &limits, &x);
        describe_merge(memory, &selection, &limits, &y);
        assert_string_equal(buffer_text(&x), buffer_text(&y));

        const char *labels[] = {NULL, "version", "host"};
        struct store_apart apart = {
            .step_ns = MAX(units[2 + sample_random(&seed) % (ARRAY_LENGTH(units) - 2)],
                           (selection.to_ns - selection.from_ns) / 1000),
            .label = labels[sample_random(&seed) % ARRAY_LENGTH(labels)]};
        struct store_timeseries_query steps = {.aligned = true,
                                               .step_ns = apart.step_ns,
                                               .group_by = &apart.label,
                                               .group_count = apart.label != NULL};
        _cleanup_buffer_ struct buffer z = {0};
        x.length = y.length = 0;
        describe_apart(embedded, &selection, &apart, limits.raw_only, &x);
        describe_apart(memory, &selection, &apart, limits.raw_only, &y);
        assert_string_equal(buffer_text(&x), buffer_text(&y));
        assert_int_equal(store_timeseries(memory, &selection, &steps, &limits,
                                          describe_apart_points, &z, NULL, NULL),
                         0);
        assert_string_equal(buffer_text(&x), buffer_text(&z));
        x.length = y.length = 0;

        const struct store_function function = {.name = "function4"};
        bool hosts = sample_random(&seed) % 4 == 0;
        const char *by[] = {hosts ? "host" : "service_name", "version"};
        struct store_timeseries_query query = {
            .step_ns = units[1 + sample_random(&seed) % (ARRAY_LENGTH(units) - 1)],
            .group_by = by,
            .group_count = sample_random(&seed) % 3,
            .groups_most = sample_random(&seed) % 3,
            .function = sample_random(&seed) % 2 ? &function : NULL,
            .count = sample_random(&seed) % 2 ? STORE_CUMULATIVE : STORE_FLAT};
        x.length = y.length = 0;
        assert_int_equal(store_timeseries(embedded, &selection, &query, &limits, describe_points,
                                          &x, NULL, NULL),
                         0);
        assert_int_equal(
            store_timeseries(memory, &selection, &query, &limits, describe_points, &y, NULL, NULL),
            0);
        assert_string_equal(buffer_text(&x), buffer_text(&y));
        x.length = y.length = 0;
        assert_int_equal(
            store_exemplars(embedded, &selection, NULL, NULL, describe_exemplar, &x, NULL), 0);
        assert_int_equal(
            store_exemplars(memory, &selection, NULL, NULL, describe_exemplar, &y, NULL), 0);
        sort_lines(&x);
        sort_lines(&y);
        assert_string_equal(buffer_text(&x), buffer_text(&y));
        answers_compared += 4;
    }
}

static inline void check_is_clean(struct store *store)
{
    struct error error;
    _cleanup_buffer_ struct buffer text = {0};
    if (store_check(store, describe_text, &text, &error) < 0)
        fail_msg("%s\n%s", error.text, buffer_text(&text));
}

static inline uint64_t windows_of(struct store *store, int64_t from_ns, int64_t to_ns)
{
    struct store_selection selection = {
        .tenant = "acme", .type = CPU, .from_ns = from_ns, .to_ns = to_ns};
    struct store_quality quality;
    struct error error;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    if (store_merge(store, &selection, NULL, &profile, &quality, &error) < 0)
        fail_msg("%s", error.text);
    return quality.windows;
}
