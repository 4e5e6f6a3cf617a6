// SPDX-License-Identifier: Apache-2.0
// Deleting what should never have been stored: exact in every tier, gone from the files, finished
// after a crash, and refused in words where rollups can't be taken apart.

#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/file.h"
#include "store/store.h"
#include "store_pair.h"
#include "unit.h"

#define SECRET "decrypt_payroll_of_eve"
#define USER "eve@example.org"

/* A window of service0 with a stack that only it has, on a host that others have too. */
static void write_secret(struct store *store, int64_t time_ns)
{
    struct profile profile;
    struct labels labels = {0};
    profile_init(&profile, PROFILE_ALL);
    uint32_t function = profile_function(
        &profile, &(struct profile_function){.name = profile_cstring(&profile, SECRET),
                                             .file = profile_cstring(&profile, SECRET ".c")});
    uint32_t frames[] = {sample_frame(&profile, 4),
                         profile_frame(&profile, &(struct profile_frame){.function = function})};
    struct store_row row = {.node = profile_stack(&profile, frames, 2), .value = 5};
    struct store_exemplar exemplar = {.node = row.node, .value = 1, .time_ns = time_ns};
    labels_set(&labels, "service_name", "service0");
    labels_set(&labels, "version", "v0");
    labels_set(&labels, "user", USER);
    struct store_profile window = {.labels = &labels,
                                   .type = CPU,
                                   .time_ns = time_ns,
                                   .duration_ns = SECOND_NS,
                                   .profile = &profile,
                                   .rows = &row,
                                   .row_count = 1,
                                   .exemplars = &exemplar,
                                   .exemplar_count = 1};
    struct store_batch batch = {.tenant = "acme", .profiles = &window, .count = 1};
    assert_int_equal(store_write(store, &batch, NULL), 0);
    labels_release(&labels);
    profile_release(&profile);
}

/* How many of the directory's files hold the text. */
static unsigned files_with(const char *text)
{
    unsigned count = 0;
    DIR *listing = opendir("data/acme");
    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        char path[512];
        struct buffer content = {0};
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "data/acme/%s", entry->d_name);
        assert_int_equal(file_read(path, 1u << 30, &content, NULL), 0);
        count += memmem(content.data, content.length, text, strlen(text)) != NULL;
        buffer_release(&content);
    }
    if (listing)
        closedir(listing);
    return count;
}

static struct store_selection select_user(struct selector *selector)
{
    static const char text[] = "{user=\"" USER "\"}";
    assert_int_equal(selector_parse(text, strlen(text), selector, NULL), 0);
    return (struct store_selection){.tenant = "acme",
                                    .selector = selector,
                                    .from_ns = TODAY_NS - 100 * DAY_NS,
                                    .to_ns = TODAY_NS + 100 * DAY_NS};
}

static void names_are_gone_from_every_file(void **state)
{
    (void)state;
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    struct store *store = open_embedded(), *memory = open_memory();
    int64_t from = TODAY_NS - 2 * DAY_NS;
    write_both(store, memory, 60, 20, from, test_now_ns);
    for (int i = 0; i < 5; i++)
        write_secret(store, from + i * 11 * HOUR_NS);
    maintain(store);
    write_secret(store, test_now_ns - MINUTE_NS);
    /* In raw, ten-minute, hour and day files; some may be in logs. */
    assert_true(files_with(SECRET) >= 4);
    assert_true(files_with(USER) >= 3);
    _cleanup_selector_ struct selector selector = {0};
    struct store_selection selection = select_user(&selector);
    struct store_deleted deleted;
    struct error error;
    if (store_delete(store, &selection, false, &deleted, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(deleted.windows, 6);
    assert_int_equal(deleted.rows, 6);
    assert_false(deleted.pending);
    assert_int_equal(files_with(SECRET), 0);
    assert_int_equal(files_with(USER), 0);
    check_is_clean(store);
    compare_answers(store, memory, 61, 60, from, test_now_ns);
    /* What comes next is stored by the new ids. */
    write_both(store, memory, 62, 10, from, test_now_ns);
    compare_answers(store, memory, 63, 40, from, test_now_ns);
    maintain(store);
    compare_answers(store, memory, 64, 40, from, test_now_ns);
    store_close(store);
    store = open_embedded();
    compare_answers(store, memory, 65, 40, from, test_now_ns);
    check_is_clean(store);
    assert_int_equal(files_with(SECRET), 0);
    store_close(store);
    store_close(memory);
}

/* A deletion that ends in a crash somewhere is finished by maintenance. */
static void a_crash_leaves_work_and_no_harm(void **state)
{
    (void)state;
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    struct store *memory = open_memory();
    int64_t from = TODAY_NS - DAY_NS;
    for (unsigned round = 0; round < 7; round++) {
        struct store *store = open_embedded();
        write_both(store, memory, 70 + round, 4, from, test_now_ns);
        write_secret(store, from + round * HOUR_NS);
        maintain(store);
        store_close(store);
        pid_t child = fork();
        if (!child) {
            struct selector selector = {0};
            struct store_selection selection = select_user(&selector);
            struct store_deleted deleted;
            store = open_embedded();
            alarm(20);
            store_delete(store, &selection, false, &deleted, NULL);
            _exit(0);
        }
        usleep(round * 15000);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        store = open_embedded();
        maintain(store);
        /* Whether the windows were gone or not: the second time they are. */
        _cleanup_selector_ struct selector selector = {0};
        struct store_selection selection = select_user(&selector);
        struct store_deleted deleted;
        struct error error;
        if (store_delete(store, &selection, false, &deleted, &error) < 0)
            fail_msg("%s", error.text);
        maintain(store);
        compare_answers(store, memory, 80 + round, 8, from, test_now_ns);
        check_is_clean(store);
        assert_int_equal(files_with(SECRET), 0);
        store_close(store);
    }
    store_close(memory);
}

/* A range that begins before there is any data was refused once. */
static void labels_can_be_deleted_as_long_as_there_is_raw_data(void **state)
{
    (void)state;
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    struct store *store = open_embedded(), *memory = open_memory();
    int64_t from = TODAY_NS - DAY_NS;
    write_both(store, memory, 90, 20, from, test_now_ns);
    maintain(store);
    _cleanup_selector_ struct selector selector = {0};
    assert_int_equal(selector_parse("{host=\"host1\"}", 14, &selector, NULL), 0);
    struct store_selection selection = {.tenant = "acme",
                                        .selector = &selector,
                                        .from_ns = TODAY_NS - 30 * DAY_NS,
                                        .to_ns = test_now_ns};
    struct store_deleted a, b;
    assert_int_equal(store_delete(store, &selection, false, &a, NULL), 0);
    assert_int_equal(store_delete(memory, &selection, false, &b, NULL), 0);
    assert_int_equal(a.windows, b.windows);
    compare_answers(store, memory, 91, 40, from, test_now_ns);
    store_close(store);
    store_close(memory);
}

static void rollups_lose_what_they_can(void **state)
{
    (void)state;
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    struct store *store = open_embedded(), *memory = open_memory();
    int64_t from = TODAY_NS - 2 * DAY_NS;
    write_both(store, memory, 95, 30, from, TODAY_NS);
    write_secret(store, from + HOUR_NS + 30 * SECOND_NS);
    write_secret(memory, from + HOUR_NS + 30 * SECOND_NS);
    maintain(store);
    test_now_ns = TODAY_NS + 20 * DAY_NS; /* raw data expires */
    maintain(store);
    struct store_stats stats;
    assert_int_equal(store_stats(store, &stats, NULL), 0);
    assert_int_equal(stats.files[STORE_RAW], 0);
    _cleanup_selector_ struct selector host = {0}, service = {0}, nobody = {0};
    assert_int_equal(selector_parse("{host=\"host1\"}", 14, &host, NULL), 0);
    assert_int_equal(selector_parse("{service_name=\"service0\"}", 25, &service, NULL), 0);
    assert_int_equal(selector_parse("{service_name=\"x\",host=\"host1\"}", 31, &nobody, NULL), 0);
    struct store_selection selection = {
        .tenant = "acme", .selector = &host, .from_ns = from, .to_ns = TODAY_NS - DAY_NS};
    struct store_deleted deleted;
    struct error error;
    uint64_t before = windows_of(store, from, TODAY_NS);
    assert_int_equal(store_delete(store, &selection, true, &deleted, &error), -ENOTSUP);
    assert_int_equal(store_delete(store, &selection, false, &deleted, &error), -ENOTSUP);
    assert_says(&error, "rollups without raw data");
    assert_true(deleted.left_windows > 0 && !deleted.windows);
    assert_int_equal(windows_of(store, from, TODAY_NS), before);
    /* No series of theirs can be meant: that is no failure. */
    selection.selector = &nobody;
    assert_int_equal(store_delete(store, &selection, false, &deleted, &error), 0);
    /* Part of a slot can't be taken out; the rest is. */
    selection.selector = &service;
    selection.from_ns = from + HOUR_NS + SECOND_NS;
    selection.to_ns = from + 20 * HOUR_NS;
    assert_int_equal(store_delete(store, &selection, false, &deleted, &error), -ENOTSUP);
    selection.from_ns = from;
    selection.to_ns = TODAY_NS - DAY_NS;
    assert_int_equal(store_delete(store, &selection, false, &deleted, &error), 0);
    assert_int_equal(store_delete(memory, &selection, false, &deleted, &error), 0);
    struct store_selection day = {
        .tenant = "acme", .type = CPU, .from_ns = from, .to_ns = TODAY_NS};
    _cleanup_buffer_ struct buffer x = {0}, y = {0};
    describe_merge(store, &day, NULL, &x);
    describe_merge(memory, &day, NULL, &y);
    assert_string_equal(buffer_text(&x), buffer_text(&y));
    maintain(store);
    day.to_ns = TODAY_NS - DAY_NS; /* the coarsest tiers agree */
    x.length = y.length = 0;
    describe_merge(store, &day, NULL, &x);
    describe_merge(memory, &day, NULL, &y);
    assert_string_equal(buffer_text(&x), buffer_text(&y));
    check_is_clean(store);
    store_close(store);
    store_close(memory);
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
}

static int count_series(void *context, const struct labels *labels, const char *type,
                        int64_t first_ns, int64_t last_ns)
{
    unsigned *counts = context;
    (void)type;
    (void)first_ns;
    (void)last_ns;
    counts[labels_get(labels, "host") != NULL]++;
    return 0;
}

static void series_are_raw_ones_where_there_is_raw_data(void **state)
{
    (void)state;
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    struct store *store = open_embedded(), *memory = open_memory();
    write_both(store, memory, 97, 30, TODAY_NS - 3 * DAY_NS, test_now_ns);
    maintain(store);
    struct store_selection selection = {
        .tenant = "acme", .from_ns = TODAY_NS - 90 * DAY_NS, .to_ns = TODAY_NS + DAY_NS};
    unsigned embedded[2] = {0}, raw[2] = {0};
    assert_int_equal(store_series(store, &selection, count_series, embedded, NULL), 0);
    assert_int_equal(store_series(memory, &selection, count_series, raw, NULL), 0);
    assert_int_equal(embedded[0], 0);
    assert_true(raw[1] > 10);
    assert_int_equal(embedded[1], raw[1]);
    struct store_stats stats;
    assert_int_equal(store_stats(store, &stats, NULL), 0);
    assert_true(stats.series >= raw[1]);
    assert_int_equal(stats.services, 3);
    store_close(store);
    store = open_embedded(); /* nothing is in memory yet */
    assert_int_equal(store_stats(store, &stats, NULL), 0);
    assert_true(stats.series >= raw[1]);
    assert_true(stats.first_ns[STORE_RAW] >= TODAY_NS - 3 * DAY_NS);
    assert_true(stats.last_ns[STORE_RAW] < test_now_ns);
    /* Days whose raw data went have the rollups' series, the others theirs. */
    assert_int_equal(system("rm data/acme/raw-default-2024-10-01.assay*"), 0);
    store_close(store);
    store = open_embedded();
    memset(embedded, 0, sizeof(embedded));
    assert_int_equal(store_series(store, &selection, count_series, embedded, NULL), 0);
    assert_true(embedded[0] > 0 && embedded[0] <= 3 * 2 * 2);
    assert_true(embedded[1] > 10);
    selection.from_ns = TODAY_NS - 2 * DAY_NS;
    memset(embedded, 0, sizeof(embedded));
    assert_int_equal(store_series(store, &selection, count_series, embedded, NULL), 0);
    assert_int_equal(embedded[0], 0);
    store_close(store);
    store_close(memory);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        CASE(names_are_gone_from_every_file),
        CASE(a_crash_leaves_work_and_no_harm),
        CASE(labels_can_be_deleted_as_long_as_there_is_raw_data),
        CASE(rollups_lose_what_they_can),
        CASE(series_are_raw_ones_where_there_is_raw_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
