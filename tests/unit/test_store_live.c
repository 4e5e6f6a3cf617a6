// SPDX-License-Identifier: Apache-2.0
// Slots that are not rolled up yet: answers come from what is added up in memory, cost nothing for
// each series, and are those of the blocks, whatever comes, goes or is joined in between.
//
// STORE_LIVE_ROUNDS is how many random lives there are (2), STORE_LIVE_SEED the first one's seed.

#include "profile/profile.h"
#include "store_pair.h"
#include "unit.h"

#define NOW_NS (TODAY_NS + 12 * HOUR_NS)

static void merge(struct store *store, int64_t from_ns, int64_t to_ns, bool raw_only,
                  struct store_quality *ret_quality)
{
    struct store_selection selection = {
        .tenant = "acme", .type = CPU, .from_ns = from_ns, .to_ns = to_ns};
    struct store_limits limits = {.raw_only = raw_only};
    struct error error;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    if (store_merge(store, &selection, &limits, &profile, ret_quality, &error) < 0)
        fail_msg("%s", error.text);
}

/* One window of each pod of a service that has two versions. */
static void write_pods(struct store *store, struct store *memory, unsigned pods, int64_t start_ns)
{
    for (unsigned pod = 0; pod < pods; pod += 8) {
        struct sample_batch batch;
        char text[32];
        sample_batch_make(&batch, pod + 1, 8, start_ns, start_ns + SECOND_NS);
        for (unsigned i = 0; i < 8; i++) {
            struct labels *labels = &batch.windows[i].labels;
            snprintf(text, sizeof(text), "pod%u", pod + i);
            labels_set(labels, "host", text);
            labels_set(labels, "service_name", "service1");
            batch.profiles[i].type = CPU;
        }
        write_batch(store, &batch);
        if (memory)
            write_batch(memory, &batch);
        sample_batch_release(&batch);
    }
}

static void series_cost_nothing(void **state)
{
    (void)state;
    test_now_ns = NOW_NS;
    struct store *store = open_embedded();
    struct store_quality few, many, all;
    write_pods(store, NULL, 16, NOW_NS - 3 * MINUTE_NS);
    merge(store, NOW_NS - HOUR_NS, NOW_NS, false, &few);
    write_pods(store, NULL, 1600, NOW_NS - 2 * MINUTE_NS);
    merge(store, NOW_NS - HOUR_NS, NOW_NS, false, &many);
    merge(store, NOW_NS - HOUR_NS, NOW_NS, true, &all);
    assert_int_equal(few.windows, 16);
    assert_int_equal(many.windows, 1616);
    assert_int_equal(all.windows, 1616);
    assert_int_equal(all.blocks, 1616);
    assert_int_equal(few.blocks, 2); /* versions */
    assert_int_equal(many.blocks, 2);
    assert_int_equal(many.total, all.total);
    store_close(store);
}

/* Ranges that begin or end within a slot's windows read the blocks, and no window counts twice. */
static void a_cut_slot_is_read(void **state)
{
    (void)state;
    test_now_ns = NOW_NS;
    struct store *store = open_embedded();
    struct store_quality whole, part;
    write_pods(store, NULL, 8, NOW_NS - 8 * MINUTE_NS);
    write_pods(store, NULL, 8, NOW_NS - 2 * MINUTE_NS);
    merge(store, NOW_NS - HOUR_NS, NOW_NS, false, &whole);
    assert_int_equal(whole.windows, 16);
    merge(store, NOW_NS - 5 * MINUTE_NS, NOW_NS, false, &part);
    assert_int_equal(part.windows, 8);
    merge(store, NOW_NS - HOUR_NS, NOW_NS - 5 * MINUTE_NS, false, &part);
    assert_int_equal(part.windows, 8);
    /* All windows are in this one, though it begins after the slot does. */
    merge(store, NOW_NS - 9 * MINUTE_NS, NOW_NS - MINUTE_NS, false, &part);
    assert_int_equal(part.windows, 16);
    assert_int_equal(part.blocks, whole.blocks);
    store_close(store);
}

/* The rollup of a slot has what memory had: values, stats and covered time. */
static void a_rollup_has_the_same(void **state)
{
    (void)state;
    test_now_ns = NOW_NS;
    struct store *store = open_embedded(), *memory = open_memory();
    struct store_quality before, after;
    int64_t from = NOW_NS - 20 * MINUTE_NS, to = NOW_NS;
    for (int64_t at = from; at < to; at += 30 * SECOND_NS)
        write_pods(store, memory, 16, at);
    merge(store, from, to, false, &before);
    assert_int_equal(before.tiers, 1 << STORE_RAW);
    assert_int_equal(before.blocks, 4); /* two slots, two versions */
    test_now_ns = NOW_NS + 15 * MINUTE_NS;
    maintain(store);
    merge(store, from, to, false, &after);
    assert_int_equal(after.tiers, 1 << STORE_TEN_MINUTES);
    assert_int_equal(before.total, after.total);
    assert_int_equal(before.rows, after.rows);
    assert_int_equal(before.duration_ns, after.duration_ns);
    assert_int_equal(before.covered_ns, after.covered_ns);
    assert_int_equal(before.per_ns, after.per_ns);
    compare_answers(store, memory, 3, 20, from, to);
    store_close(store);
    store_close(memory);
}

static void delete_some(struct store *store, struct store *memory, uint64_t *seed, int64_t from_ns)
{
    _cleanup_selector_ struct selector selector = {0};
    const char *text = selectors[1 + sample_random(seed) % 4];
    assert_int_equal(selector_parse(text, strlen(text), &selector, NULL), 0);
    struct store_selection selection = {.tenant = "acme",
                                        .selector = &selector,
                                        .from_ns = from_ns,
                                        .to_ns = from_ns + 7 * MINUTE_NS};
    struct store_deleted deleted;
    struct error error;
    if (store_delete(store, &selection, false, &deleted, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(store_delete(memory, &selection, false, &deleted, NULL), 0);
}

/* Time goes on by a minute; windows of the last minutes come in order, and now and then late. */
static void live_once(uint64_t seed)
{
    test_now_ns = TODAY_NS + 10 * HOUR_NS;
    struct store_options settings = options();
    bool small = seed % 4 == 3;
    settings.memory_limit_bytes = small ? 16u << 20 : 0;
    struct store *store = open_with(&settings), *memory = open_memory();
    int64_t from = test_now_ns - HOUR_NS;
    for (unsigned step = 0; step < 60; step++) {
        test_now_ns += MINUTE_NS;
        bool late = sample_random(&seed) % 5 == 0;
        int64_t since = late ? from : test_now_ns - MINUTE_NS;
        write_both(store, memory, seed % 1000003 + step, 1 + sample_random(&seed) % 3, since,
                   test_now_ns);
        unsigned what = sample_random(&seed) % 12;
        if (what < 3)
            maintain(store);
        else if (what == 3)
            delete_some(store, memory, &seed, test_now_ns - (int64_t)what * 5 * MINUTE_NS);
        else if (what == 4)
            store_trim(store);
        else if (what == 5) {
            store_close(store);
            store = open_with(&settings);
        }
        compare_answers(store, memory, seed + step, 3, from, test_now_ns);
        if (sample_random(&seed) % 3 == 0)
            compare_answers(store, memory, seed - step, 3, test_now_ns - 20 * MINUTE_NS,
                            test_now_ns);
    }
    check_is_clean(store);
    store_close(store);
    store_close(memory);
}

static void random_lives(void **state)
{
    const char *rounds = getenv("STORE_LIVE_ROUNDS"), *seed = getenv("STORE_LIVE_SEED");
    unsigned count = rounds ? (unsigned)atoi(rounds) : 2;
    uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    for (unsigned i = 0; i < count; i++) {
        leave_folder(state);
        enter_folder(state);
        live_once(first + i);
    }
    printf("%u answers of %u lives are the same\n", answers_compared, count);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        CASE(series_cost_nothing),
        CASE(a_cut_slot_is_read),
        CASE(a_rollup_has_the_same),
        CASE(random_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
