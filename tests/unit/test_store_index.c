// SPDX-License-Identifier: Apache-2.0
// What the embedded store answers from memory, and with two threads: series and labels after
// everything that can happen to them, as the store in memory has them; and merges that are the same
// whoever makes them.

#include <pthread.h>
#include <sched.h>

#include "store/file/catalog.h"
#include "store/store.h"
#include "store_pair.h"
#include "unit.h"

/* Without times: the embedded store gives those of the range's days. */
static int describe_name(void *context, const struct labels *labels, const char *type,
                         int64_t first_ns, int64_t last_ns)
{
    assert_true(first_ns > 0 && first_ns <= last_ns);
    labels_write(context, labels);
    buffer_printf(context, " %s\n", type);
    return 0;
}

static void describe_labels(struct store *store, const struct store_selection *selection,
                            struct buffer *out)
{
    static const char *const names[] = {"service_name", "version", "host", "none", ""};
    assert_int_equal(store_series(store, selection, describe_name, out, NULL), 0);
    sort_lines(out);
    buffer_add_text(out, "names\n");
    assert_int_equal(store_label_names(store, selection, describe_text, out, NULL), 0);
    buffer_add_text(out, "types\n");
    assert_int_equal(store_types(store, selection, describe_text, out, NULL), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        buffer_printf(out, "values of %s\n", names[i]);
        assert_int_equal(store_label_values(store, selection, names[i], describe_text, out, NULL),
                         0);
    }
}

/* For ranges of whole hours, and for all: a block is known to the hour. */
static void compare_labels(struct store *embedded, struct store *memory, uint64_t seed)
{
    static const char *const more[] = {
        "",
        "{host=\"\"}",
        "{none=\"x\"}",
        "{none!=\"x\",host!=\"host0\"}",
        "{service_name=\"service1\",version=\"v1\",host=\"host2\"}",
        "{host=~\"host[12]\",version!~\"v0|v7\"}",
        "{service_name=~\".+\",none=~\".*\"}",
        "{version=\"v9\"}",
    };
    for (unsigned i = 0; i < 60; i++) {
        int64_t from = TODAY_NS - 2 * DAY_NS + (sample_random(&seed) % 60) * HOUR_NS;
        const char *text = more[sample_random(&seed) % ARRAY_LENGTH(more)];
        _cleanup_selector_ struct selector selector = {0};
        assert_int_equal(selector_parse(text, strlen(text), &selector, NULL), 0);
        struct store_selection selection = {
            .tenant = "acme",
            .selector = &selector,
            .type = sample_random(&seed) % 3 ? NULL : ALLOC,
            .from_ns = i ? from : 1,
            .to_ns = i ? from + (1 + sample_random(&seed) % 30) * HOUR_NS : INT64_MAX / 2};
        if (sample_random(&seed) % 2)
            selection.selector = NULL;
        _cleanup_buffer_ struct buffer x = {0}, y = {0};
        describe_labels(embedded, &selection, &x);
        describe_labels(memory, &selection, &y);
        assert_string_equal(buffer_text(&x), buffer_text(&y));
    }
}

static void labels_follow_everything(void **state)
{
    (void)state;
    struct store *embedded = open_embedded(), *memory = open_memory();
    int64_t from = TODAY_NS - 2 * DAY_NS, now = test_now_ns;
    compare_labels(embedded, memory, 1);
    write_both(embedded, memory, 1, 4, from, now);
    compare_labels(embedded, memory, 2);
    write_both(embedded, memory, 2, 6, from, now); /* after the spans were read */
    compare_labels(embedded, memory, 3);
    maintain(embedded);
    compare_labels(embedded, memory, 4);
    write_both(embedded, memory, 3, 3, from, now);
    compare_labels(embedded, memory, 5);
    _cleanup_selector_ struct selector selector = {0};
    assert_int_equal(selector_parse("{host=\"host1\"}", 14, &selector, NULL), 0);
    struct store_selection some = {
        .tenant = "acme", .selector = &selector, .from_ns = from, .to_ns = TODAY_NS + 3 * HOUR_NS};
    struct store_deleted deleted;
    assert_int_equal(store_delete(embedded, &some, false, &deleted, NULL), 0);
    assert_true(deleted.windows > 0);
    assert_int_equal(store_delete(memory, &some, false, &deleted, NULL), 0);
    compare_labels(embedded, memory, 6);
    write_both(embedded, memory, 4, 3, from, now);
    compare_labels(embedded, memory, 7);
    store_close(embedded);
    embedded = open_embedded();
    compare_labels(embedded, memory, 8);
    write_both(embedded, memory, 5, 3, from, now);
    maintain(embedded);
    compare_labels(embedded, memory, 9);
    store_close(embedded);
    store_close(memory);
}

/* Until they are compacted, windows are blocks, and known to the second: memory can't tell whether
 * there is one between the first and the last, and the database is asked. */
static void ranges_within_an_hour(void **state)
{
    (void)state;
    struct store *store = open_embedded();
    for (int minute = 5; minute <= 55; minute += 50) {
        struct sample_batch batch;
        sample_batch_make(&batch, 3, 1, TODAY_NS, TODAY_NS + HOUR_NS);
        batch.profiles[0].time_ns = TODAY_NS + minute * MINUTE_NS;
        write_batch(store, &batch);
        sample_batch_release(&batch);
    }
    struct store_selection selection = {.tenant = "acme"};
    static const struct {
        int from, to;
        bool there;
    } ranges[] = {{0, 5, false}, {5, 6, true}, {6, 55, false}, {50, 60, true}, {56, 90, false}};
    for (size_t i = 0; i < ARRAY_LENGTH(ranges); i++) {
        selection.from_ns = TODAY_NS + ranges[i].from * MINUTE_NS;
        selection.to_ns = TODAY_NS + ranges[i].to * MINUTE_NS;
        _cleanup_buffer_ struct buffer text = {0};
        assert_int_equal(store_series(store, &selection, describe_name, &text, NULL), 0);
        assert_int_equal(text.length > 0, ranges[i].there);
        text.length = 0;
        assert_int_equal(store_label_values(store, &selection, "host", describe_text, &text, NULL),
                         0);
        assert_int_equal(text.length > 0, ranges[i].there);
    }
    store_close(store);
}

/* The index gives what going through all series would, for any number of labels and values. */
static void the_index_selects_as_matching_does(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{a=\"1\"}",          "{a=\"1\",b=\"2\"}", "{b!=\"2\"}",          "{b=\"\"}",
        "{c=~\"1.*\"}",       "{c!~\"1.*\"}",      "{a=\"9\"}",           "{z=\"\",a=~\"[12]\"}",
        "{a=\"1\",a!=\"1\"}", "{z=~\".+\"}",       "{a=~\"|3\",b=\"4\"}", "{}",
    };
    struct catalog catalog;
    uint64_t seed = 5;
    catalog_init(&catalog);
    for (unsigned i = 0; i < 3000; i++) {
        _cleanup_labels_ struct labels labels = {0};
        char value[16];
        labels_set(&labels, "service_name", "x");
        for (const char *name = "a\0b\0c\0"; *name; name += 2) {
            snprintf(value, sizeof(value), "%u", sample_random(&seed) % (*name == 'c' ? 2000 : 6));
            if (sample_random(&seed) % 4)
                labels_set(&labels, name, value);
        }
        const char *type = sample_random(&seed) % 2 ? CPU : ALLOC;
        uint32_t id = catalog_series(&catalog, &labels, type);
        assert_int_equal(catalog_series(&catalog, &labels, type), id);
        assert_true(labels_equal(&catalog.series[id].labels, &labels));
        assert_string_equal(catalog.series[id].type, type);
    }
    for (size_t i = 0; i < 2 * ARRAY_LENGTH(texts); i++) {
        _cleanup_selector_ struct selector selector = {0};
        const char *text = texts[i / 2], *type = i % 2 ? CPU : NULL;
        assert_int_equal(selector_parse(text, strlen(text), &selector, NULL), 0);
        size_t count, at = 0;
        _cleanup_free_ uint32_t *ids = NULL;
        assert_int_equal(catalog_select(&catalog, NULL, type, &selector, NULL, &ids, &count, NULL),
                         0);
        for (uint32_t id = 0; id < catalog.series_count; id++)
            if ((!type || !strcmp(catalog.series[id].type, type)) &&
                selector_matches(&selector, &catalog.series[id].labels)) {
                assert_true(at < count);
                assert_int_equal(ids[at++], id);
            }
        assert_int_equal(at, count);
    }
    catalog_release(&catalog);
}

struct slow_query {
    struct catalog catalog;
    pthread_rwlock_t lock;
    struct match_budget budget;
    struct selector selector;
    atomic_bool begun;
    int result;
};

static void *run_slow_query(void *userdata)
{
    struct slow_query *query = userdata;
    uint32_t *ids = NULL;
    size_t count;
    atomic_store(&query->begun, true);
    query->result = catalog_select(&query->catalog, &query->lock, NULL, &query->selector,
                                   &query->budget, &ids, &count, NULL);
    free(ids);
    return NULL;
}

/* Whoever adds a series doesn't wait for a query's expressions, and those end when nobody waits for
 * the result. Were they run with the lock, they would be through before they can be cancelled. */
static void expressions_run_unlocked(void **state)
{
    (void)state;
    static struct slow_query query;
    atomic_bool cancelled = false;
    const char *text = "{a=~\".*x.*[yz]\"}";
    char value[200];
    memset(value, 'x', sizeof(value));
    catalog_init(&query.catalog);
    pthread_rwlock_init(&query.lock, NULL);
    query.budget = (struct match_budget){.limit_ns = INT64_MAX, .cancelled = &cancelled};
    assert_int_equal(selector_parse(text, strlen(text), &query.selector, NULL), 0);
    for (unsigned i = 0; i < 20000; i++) {
        _cleanup_labels_ struct labels labels = {0};
        snprintf(value + 180, 20, "%u", i);
        labels_set(&labels, "service_name", "x");
        labels_set(&labels, "a", value);
        catalog_series(&query.catalog, &labels, CPU);
    }
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_slow_query, &query), 0);
    while (!atomic_load(&query.begun))
        sched_yield();
    while (!atomic_load(&query.budget.used_ns)) /* expressions have begun */
        sched_yield();
    pthread_rwlock_wrlock(&query.lock);
    pthread_rwlock_unlock(&query.lock);
    atomic_store(&cancelled, true);
    pthread_join(thread, NULL);
    assert_int_equal(query.result, -ECANCELED);
    selector_release(&query.selector);
    pthread_rwlock_destroy(&query.lock);
    catalog_release(&query.catalog);
}

/* In the order that rows come in. */
static void describe_exactly(struct store *store, const struct store_selection *selection,
                             const struct store_limits *limits, struct buffer *out)
{
    struct store_quality quality;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    assert_int_equal(store_merge(store, selection, limits, &profile, &quality, NULL), 0);
    for (size_t row = 0; row < profile.samples.count; row++) {
        buffer_printf(out, "%u", profile.samples.node[row]);
        describe_stack(&profile, profile.samples.node[row], out);
        buffer_printf(out, " %lld\n", (long long)profile.samples.values[0][row]);
    }
    describe_quality(&quality, out);
    buffer_printf(out, "series %llu blocks %llu cut %lld tiers %u\n",
                  (unsigned long long)quality.series, (unsigned long long)quality.blocks,
                  (long long)quality.cut, quality.tiers);
}

static void two_threads_merge_as_one_does(void **state)
{
    (void)state;
    struct store *store = open_embedded(), *memory = open_memory();
    uint64_t seed = 11;
    write_both(store, memory, 21, 40, TODAY_NS - 2 * DAY_NS, test_now_ns);
    for (unsigned i = 0; i < 80; i++) {
        if (i == 40)
            maintain(store);
        int64_t from = TODAY_NS - 2 * DAY_NS + (sample_random(&seed) % 3000) * MINUTE_NS;
        struct store_selection selection = {.tenant = "acme",
                                            .type = CPU,
                                            .from_ns = from,
                                            .to_ns = from +
                                                     (1 + sample_random(&seed) % 3000) * MINUTE_NS};
        struct store_limits limits = {.smallest_share = i % 3 ? 0.01 : 0};
        _cleanup_buffer_ struct buffer x = {0}, y = {0};
        describe_exactly(store, &selection, &limits, &x);
        limits.single_thread = true;
        describe_exactly(store, &selection, &limits, &y);
        assert_string_equal(buffer_text(&x), buffer_text(&y));
    }
    store_close(store);
    store_close(memory);
}

static void both_threads_stop(void **state)
{
    (void)state;
    struct store *store = open_embedded(), *memory = open_memory();
    write_both(store, memory, 22, 20, TODAY_NS - 2 * DAY_NS, test_now_ns);
    struct store_selection selection = {
        .tenant = "acme", .type = CPU, .from_ns = TODAY_NS - 2 * DAY_NS, .to_ns = test_now_ns};
    atomic_bool yes = true;
    const struct store_limits told = {.cancelled = &yes}, small = {.memory_bytes = 4096};
    for (unsigned i = 0; i < 20; i++) {
        _cleanup_profile_ struct profile a, b, c;
        profile_init(&a, PROFILE_ALL);
        profile_init(&b, PROFILE_ALL);
        profile_init(&c, PROFILE_ALL);
        assert_int_equal(store_merge(store, &selection, &told, &a, NULL, NULL), -ECANCELED);
        assert_int_equal(store_merge(store, &selection, &small, &b, NULL, NULL), -E2BIG);
        assert_int_equal(store_merge(store, &selection, NULL, &c, NULL, NULL), 0);
    }
    store_close(store);
    store_close(memory);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        CASE(labels_follow_everything),           CASE(ranges_within_an_hour),
        CASE(the_index_selects_as_matching_does), CASE(expressions_run_unlocked),
        CASE(two_threads_merge_as_one_does),      CASE(both_threads_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
