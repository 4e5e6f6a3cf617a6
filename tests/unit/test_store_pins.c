// SPDX-License-Identifier: Apache-2.0
// Pins: retention leaves the raw days of a range in place, the disk limit takes them last and says
// which pins it dropped.

#include "store/store.h"
#include "store_pair.h"
#include "unit.h"

#define DAY(n) "data/acme/raw-default-2024-" n ".assay"

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static size_t count_lost(struct store *store, struct buffer *ids)
{
    ids->length = 0;
    assert_int_equal(store_lost_pins(store, describe_text, ids, NULL), 0);
    return ids->length;
}

static void pin(struct store *store, const char *tenant, int64_t from_ns, int64_t to_ns)
{
    struct store_pin pin = {.id = "p1", .tenant = tenant, .from_ns = from_ns, .to_ns = to_ns};
    assert_int_equal(store_set_pins(store, &pin, 1, NULL), 0);
}

static void write_days(struct store *store, int days)
{
    struct sample_batch batch;
    for (int day = 0; day < days; day++) {
        sample_batch_make(&batch, 900 + (uint64_t)day, 8, TODAY_NS - day * DAY_NS,
                          TODAY_NS - day * DAY_NS + HOUR_NS);
        struct store_batch all = {.tenant = "acme", .profiles = batch.profiles, .count = 8};
        assert_int_equal(store_write(store, &all, NULL), 0);
        sample_batch_release(&batch);
    }
}

static void retention_leaves_pinned_days(void **state)
{
    (void)state;
    struct store *store = open_embedded();
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    write_days(store, 4);
    maintain(store);
    assert_true(exists(DAY("10-01")) && exists(DAY("10-02")) && exists(DAY("10-03")));
    /* Of another tenant: keeps nothing here. Half a day pins the whole. */
    pin(store, "acme", TODAY_NS - 2 * DAY_NS + HOUR_NS, TODAY_NS - 2 * DAY_NS + 2 * HOUR_NS);
    test_now_ns = TODAY_NS + 20 * DAY_NS; /* raw data is kept for 14 */
    maintain(store);
    assert_false(exists(DAY("10-01")));
    assert_true(exists(DAY("10-02")));
    assert_false(exists(DAY("10-03")));
    _cleanup_buffer_ struct buffer ids = {0};
    assert_int_equal(count_lost(store, &ids), 0);
    /* What is kept can be queried as raw data. */
    struct store_selection selection = {.tenant = "acme",
                                        .type = CPU,
                                        .from_ns = TODAY_NS - 2 * DAY_NS,
                                        .to_ns = TODAY_NS - 2 * DAY_NS + 57 * MINUTE_NS};
    struct store_quality quality;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    assert_int_equal(store_merge(store, &selection, NULL, &profile, &quality, NULL), 0);
    assert_true(quality.windows > 0);
    assert_true(quality.tiers & 1u << STORE_RAW);
    pin(store, "other", TODAY_NS - 2 * DAY_NS, TODAY_NS);
    maintain(store);
    assert_false(exists(DAY("10-02")));
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    store_close(store);
}

static uint64_t all_bytes(struct store *store, uint64_t *ret_raw)
{
    struct store_stats stats;
    uint64_t bytes = 0;
    assert_int_equal(store_stats(store, &stats, NULL), 0);
    for (unsigned tier = 0; tier < STORE_TIERS; tier++)
        bytes += stats.bytes[tier];
    *ret_raw = stats.bytes[STORE_RAW];
    return bytes;
}

static void the_disk_limit_takes_pinned_days_last(void **state)
{
    (void)state;
    uint64_t raw;
    struct store *store = open_embedded();
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    write_days(store, 5);
    maintain(store);
    store_close(store);
    store = open_embedded();
    struct store_options settings = options();
    settings.disk_limit_bytes = all_bytes(store, &raw) - raw / 4;
    store_close(store);
    store = open_with(&settings);
    /* The oldest is pinned, so those after it go. */
    pin(store, "acme", TODAY_NS - 4 * DAY_NS, TODAY_NS - 4 * DAY_NS + HOUR_NS);
    maintain(store);
    _cleanup_buffer_ struct buffer ids = {0}, problems = {0};
    assert_true(exists(DAY("09-30")));
    assert_false(exists(DAY("10-01")));
    assert_int_equal(count_lost(store, &ids), 0);
    /* All of the past has to go: the pin is lost, and that is said. */
    store_close(store);
    settings.disk_limit_bytes = 1000;
    store = open_with(&settings);
    pin(store, "acme", TODAY_NS - 4 * DAY_NS, TODAY_NS - 4 * DAY_NS + HOUR_NS);
    maintain(store);
    assert_false(exists(DAY("09-30")));
    assert_true(count_lost(store, &ids) > 0);
    assert_non_null(strstr(buffer_text(&ids), "p1"));
    assert_int_equal(store_problems(store, describe_text, &problems, NULL), 0);
    assert_non_null(strstr(buffer_text(&problems), "dropped pins: p1"));
    /* It stays lost when it is set again. */
    pin(store, "acme", TODAY_NS - 4 * DAY_NS, TODAY_NS - 4 * DAY_NS + HOUR_NS);
    assert_true(count_lost(store, &ids) > 0);
    store_close(store);
}

static void a_store_in_memory_has_no_pins(void **state)
{
    (void)state;
    struct store *store = open_memory();
    struct store_pin pin = {.id = "p1", .tenant = "acme", .from_ns = 0, .to_ns = 1};
    struct error error = {0};
    assert_int_equal(store_set_pins(store, &pin, 1, &error), -ENOTSUP);
    assert_says(&error, "pins");
    store_close(store);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        CASE(retention_leaves_pinned_days),
        CASE(the_disk_limit_takes_pinned_days_last),
        CASE(a_store_in_memory_has_no_pins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
