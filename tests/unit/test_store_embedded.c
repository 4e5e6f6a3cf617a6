// SPDX-License-Identifier: Apache-2.0
// The embedded store against the one in memory: the same answers before and after compaction,
// rollups, late data, deletions and reopening; and what happens to its files.

#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "profile/views/calltree.h"
#include "store/store.h"
#include "store_pair.h"
#include "unit.h"

static void answers_as_raw_data_whatever_tier_is_read(void **state)
{
    (void)state;
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    struct store *embedded = open_embedded(), *memory = open_memory();
    int64_t from = TODAY_NS - 3 * DAY_NS, now = test_now_ns;
    write_both(embedded, memory, 1, 60, from, now);
    compare_answers(embedded, memory, 1, 40, from, now);
    maintain(embedded);
    struct store_stats stats;
    assert_int_equal(store_stats(embedded, &stats, NULL), 0);
    assert_true(stats.rolled_slots > 3 * 144 + 3 * 24);
    assert_true(stats.compacted_blocks > 0);
    assert_true(stats.files[STORE_TEN_MINUTES] > 0 && stats.files[STORE_HOUR] > 0);
    assert_int_equal(stats.files[STORE_DAY], 1);
    compare_answers(embedded, memory, 2, 80, from, now);
    /* Late data, for slots that are rolled up: right at once, and after they are made again. */
    write_both(embedded, memory, 2, 10, from, now);
    compare_answers(embedded, memory, 3, 40, from, now);
    maintain(embedded);
    compare_answers(embedded, memory, 4, 40, from, now);
    store_close(embedded);
    embedded = open_embedded();
    assert_int_equal(store_stats(embedded, &stats, NULL), 0);
    assert_int_equal(stats.files[STORE_TEN_MINUTES], 1);
    assert_int_equal(stats.files[STORE_HOUR], 1);
    assert_int_equal(stats.files[STORE_DAY], 1);
    compare_answers(embedded, memory, 5, 20, from, now);
    write_both(embedded, memory, 3, 5, from, now);
    compare_answers(embedded, memory, 6, 20, from, now);
    maintain(embedded);
    check_is_clean(embedded);
    /* Whole days come from the coarsest tier. */
    struct store_selection selection = {
        .tenant = "acme", .type = CPU, .from_ns = TODAY_NS - 2 * DAY_NS, .to_ns = TODAY_NS};
    struct store_quality quality;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    assert_int_equal(store_merge(embedded, &selection, NULL, &profile, &quality, NULL), 0);
    assert_int_equal(quality.tiers, 1 << STORE_DAY);
    store_close(embedded);
    store_close(memory);
}

static void deletes_from_rollups_too(void **state)
{
    (void)state;
    struct store *embedded = open_embedded(), *memory = open_memory();
    int64_t from = TODAY_NS - 2 * DAY_NS, now = test_now_ns;
    write_both(embedded, memory, 7, 40, from, now);
    maintain(embedded);
    _cleanup_selector_ struct selector selector = {0};
    assert_int_equal(selector_parse("{host=\"host1\"}", 14, &selector, NULL), 0);
    struct store_selection selection = {.tenant = "acme",
                                        .selector = &selector,
                                        .from_ns = from + 5 * HOUR_NS + 7 * SECOND_NS,
                                        .to_ns = now - HOUR_NS};
    struct store_deleted a, b;
    assert_int_equal(store_delete(embedded, &selection, true, &a, NULL), 0);
    compare_answers(embedded, memory, 12, 10, from, now);
    assert_int_equal(store_delete(memory, &selection, true, &b, NULL), 0);
    assert_int_equal(a.windows, b.windows);
    assert_int_equal(a.rows, b.rows);
    assert_int_equal(store_delete(embedded, &selection, false, &a, NULL), 0);
    assert_int_equal(store_delete(memory, &selection, false, &b, NULL), 0);
    assert_true(a.windows > 0);
    assert_int_equal(a.windows, b.windows);
    assert_int_equal(a.rows, b.rows);
    compare_answers(embedded, memory, 8, 60, from, now);
    store_close(embedded);
    store_close(memory);
}

static size_t count_files(const char *folder, const char *word)
{
    size_t count = 0;
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing && (entry = readdir(listing));)
        count += strstr(entry->d_name, word) != NULL;
    if (listing)
        closedir(listing);
    return count;
}

static void small_subtrees_can_be_cut(void **state)
{
    (void)state;
    struct store *store = open_embedded(), *memory = open_memory();
    write_both(store, memory, 9, 20, TODAY_NS, TODAY_NS + HOUR_NS);
    struct store_selection selection = {
        .tenant = "acme", .type = CPU, .from_ns = TODAY_NS, .to_ns = TODAY_NS + HOUR_NS};
    struct store_limits limits = {.smallest_share = 0.01};
    struct store_quality all, cut;
    _cleanup_profile_ struct profile full, small;
    profile_init(&full, PROFILE_ALL);
    profile_init(&small, PROFILE_ALL);
    assert_int_equal(store_merge(store, &selection, NULL, &full, &all, NULL), 0);
    assert_int_equal(store_merge(store, &selection, &limits, &small, &cut, NULL), 0);
    assert_true(small.node_count < full.node_count / 2);
    assert_true(cut.cut > 0 && cut.cut < cut.total);
    assert_int_equal(all.cut, 0);
    int64_t sums[2] = {0};
    for (size_t i = 0; i < full.samples.count; i++)
        sums[0] += full.samples.values[0][i];
    for (size_t i = 0; i < small.samples.count; i++)
        sums[1] += small.samples.values[0][i];
    assert_int_equal(sums[0], sums[1]);
    assert_int_equal(sums[0], cut.total);
    store_close(store);
    store_close(memory);
}

static int64_t value_of(const struct profile *profile, const char *name)
{
    int64_t sum = 0;
    for (size_t i = 0; i < profile->samples.count; i++) {
        uint32_t frame = profile->nodes[profile->samples.node[i]].frame;
        uint32_t function = profile->frames[frame].function;
        if (!strcmp(profile_text(profile, profile->functions[function].name), name))
            sum += profile->samples.values[0][i];
    }
    return sum;
}

/* Where addresses and lines don't count, a function is cut by what all its places have together. */
static void what_is_small_alone_may_be_large_together(void **state)
{
    (void)state;
    struct store *store = open_embedded();
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    uint32_t main_frame = sample_frame(&profile, 0), function[2];
    for (unsigned i = 0; i < 2; i++)
        function[i] = profile_function(
            &profile,
            &(struct profile_function){.name = profile_cstring(&profile, i ? "rare" : "often")});
    struct store_row rows[101];
    for (uint32_t i = 0; i < 100; i++) /* 90 places of one function, 10 of the other */
        rows[i] = (struct store_row){
            .node = profile_child(
                &profile, profile_child(&profile, 0, main_frame),
                profile_frame(&profile, &(struct profile_frame){.function = function[i % 10 == 0],
                                                                .address = 16 * i,
                                                                .line = i})),
            .value = 10};
    rows[100] = (struct store_row){.node = profile_child(&profile, 0, main_frame), .value = 9000};
    _cleanup_labels_ struct labels labels = {0};
    labels_set(&labels, "service_name", "x");
    struct store_profile window = {.labels = &labels,
                                   .type = CPU,
                                   .time_ns = TODAY_NS,
                                   .duration_ns = SECOND_NS,
                                   .profile = &profile,
                                   .rows = rows,
                                   .row_count = ARRAY_LENGTH(rows)};
    struct store_batch batch = {.tenant = "acme", .profiles = &window, .count = 1};
    assert_int_equal(store_write(store, &batch, NULL), 0);
    struct store_selection selection = {
        .tenant = "acme", .type = CPU, .from_ns = TODAY_NS, .to_ns = TODAY_NS + HOUR_NS};
    struct store_limits limits = {.smallest_share = 0.015}; /* 150 of 10,000 */
    struct store_quality quality;
    _cleanup_profile_ struct profile plain, exact;
    profile_init(&plain, 0);
    profile_init(&exact, PROFILE_ALL);
    assert_int_equal(store_merge(store, &selection, &limits, &plain, &quality, NULL), 0);
    assert_int_equal(value_of(&plain, "often"), 900);
    assert_int_equal(value_of(&plain, "rare"), 0);
    assert_int_equal(value_of(&plain, CALLTREE_OTHER), 100);
    assert_int_equal(quality.cut, 100);
    assert_int_equal(store_merge(store, &selection, &limits, &exact, &quality, NULL), 0);
    assert_int_equal(value_of(&exact, "often"), 0);
    assert_int_equal(value_of(&exact, CALLTREE_OTHER), 1000);
    store_close(store);
}

static void drops_what_is_too_old(void **state)
{
    (void)state;
    static const char *const short_services[] = {"service0", NULL};
    const struct store_class classes[] = {
        {.name = "short", .services = short_services, .days = {2, 3, 40, 400}},
        {.name = "long", .days = {5, 9, 40, 400}}};
    struct store_options settings = options();
    settings.classes = classes;
    settings.class_count = 2;
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    struct store *store = open_with(&settings);
    for (int i = 0; i < 30; i++) {
        struct sample_batch batch;
        sample_batch_make(&batch, 100 + (uint64_t)i, 8, TODAY_NS - DAY_NS, test_now_ns);
        write_batch(store, &batch);
        sample_batch_release(&batch);
    }
    maintain(store);
    assert_int_equal(count_files("data/acme", "raw-short"), 2 * 3); /* with logs */
    struct store_selection selection = {.tenant = "acme",
                                        .type = CPU,
                                        .from_ns = TODAY_NS - DAY_NS,
                                        .to_ns = TODAY_NS + 12 * HOUR_NS};
    _cleanup_buffer_ struct buffer before = {0}, after = {0};
    /* Whole slots only: the edges of what is left are ten minutes, then hours. */
    selection.to_ns = TODAY_NS + 11 * HOUR_NS;
    describe_merge(store, &selection, NULL, &before);
    test_now_ns = TODAY_NS + 4 * DAY_NS;
    maintain(store);
    assert_int_equal(count_files("data/acme", "raw-short"), 0);
    assert_int_equal(count_files("data/acme", "raw-long") > 0, 1);
    describe_merge(store, &selection, NULL, &after);
    assert_string_equal(buffer_text(&before), buffer_text(&after));
    test_now_ns = TODAY_NS + 30 * DAY_NS;
    maintain(store);
    assert_int_equal(count_files("data/acme", "raw-"), 0);
    assert_int_equal(count_files("data/acme", "ten-"), 0);
    after.length = 0;
    describe_merge(store, &selection, NULL, &after);
    assert_string_equal(buffer_text(&before), buffer_text(&after));
    after.length = 0;
    selection.type = NULL;
    assert_int_equal(
        store_label_values(store, &selection, "service_name", describe_text, &after, NULL), 0);
    assert_string_equal(buffer_text(&after), "service0\nservice1\nservice2\n");
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    store_close(store);
}

static void take_note(void *context, const char *text)
{
    buffer_printf(context, "%s\n", text);
}

static size_t count_stopped(struct store *store)
{
    _cleanup_buffer_ struct buffer problems = {0};
    assert_int_equal(store_problems(store, describe_text, &problems, NULL), 0);
    return problems.length && strstr(buffer_text(&problems), "Retention is stopped") ? 1 : 0;
}

/* A clock that jumps makes nothing old: neither while the store is open, nor before it is. */
static void a_jumping_clock_removes_nothing(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer notes = {0};
    struct store_options settings = options();
    settings.clock_limit_ns = 7 * DAY_NS;
    settings.note = take_note;
    settings.note_context = &notes;
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    struct store *store = open_with(&settings);
    struct store_stats stats;
    struct sample_batch batch;
    sample_batch_make(&batch, 300, 8, TODAY_NS - DAY_NS, test_now_ns);
    write_batch(store, &batch);
    sample_batch_release(&batch);
    maintain(store);
    size_t files = count_files("data/acme", "");
    static const int jumps[] = {400, -400, 8, 400};
    for (size_t i = 0; i < ARRAY_LENGTH(jumps); i++) {
        test_now_ns = TODAY_NS + 12 * HOUR_NS + jumps[i] * DAY_NS;
        maintain(store);
        assert_int_equal(count_stopped(store), 1);
        assert_int_equal(store_stats(store, &stats, NULL), 0);
        assert_int_equal(stats.expired_files, 0);
        assert_true(stats.retention_stopped);
        if (i % 2) { /* it runs on when the clock is right again */
            test_now_ns = TODAY_NS + 13 * HOUR_NS;
            maintain(store);
            assert_int_equal(count_stopped(store), 0);
        } else {
            store_close(store);
            store = open_with(&settings);
        }
    }
    assert_true(count_files("data/acme", "raw-") >= 2);
    assert_true(files > 0);
    /* Without a word of the last run the data has to do. */
    store_close(store);
    unlink("data/retention");
    test_now_ns = TODAY_NS + 400 * DAY_NS;
    store = open_with(&settings);
    maintain(store);
    assert_int_equal(count_stopped(store), 1);
    assert_int_equal(notes.length, 0);
    /* Somebody says that it is so late. */
    assert_int_equal(store_resume_retention(store, NULL), 0);
    assert_int_equal(count_stopped(store), 0);
    maintain(store);
    assert_int_equal(store_stats(store, &stats, NULL), 0);
    assert_true(stats.expired_files >= 2);
    assert_int_equal(count_files("data/acme", "raw-"), 0);
    assert_non_null(strstr(buffer_text(&notes), "Retention deleted data/acme/raw-default-"));
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    store_close(store);
}

static void a_batch_over_several_files_is_whole(void **state)
{
    (void)state;
    static const char *const own[] = {"service0", NULL};
    const struct store_class classes[] = {{.name = "own", .services = own, .days = {9, 9, 9, 9}},
                                          {.name = "rest", .days = {9, 9, 9, 9}}};
    struct store_options settings = options();
    settings.classes = classes;
    settings.class_count = 2;
    struct store *store = open_with(&settings), *memory = open_memory();
    for (unsigned i = 0; i < 20; i++) {
        struct sample_batch batch;
        char id[16];
        snprintf(id, sizeof(id), "batch%u", i);
        sample_batch_make(&batch, 300 + i, 8, TODAY_NS - HOUR_NS, TODAY_NS + HOUR_NS);
        struct store_batch all = {
            .tenant = "acme", .batch_id = id, .profiles = batch.profiles, .count = batch.count};
        assert_int_equal(store_write(store, &all, NULL), 0);
        assert_int_equal(store_write(memory, &all, NULL), 0);
        assert_int_equal(store_write(store, &all, NULL), -EALREADY);
        sample_batch_release(&batch);
    }
    compare_answers(store, memory, 10, 20, TODAY_NS - HOUR_NS, TODAY_NS + HOUR_NS);
    store_close(store);
    store = open_with(&settings);
    compare_answers(store, memory, 11, 20, TODAY_NS - HOUR_NS, TODAY_NS + HOUR_NS);
    store_close(store);
    store_close(memory);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(db, 10000), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* The second file of a batch refuses it, and the first one's part can't be removed just then: it is
 * as soon as anything can be written there, so that a repetition counts once. */
static void a_part_that_stays_is_removed_later(void **state)
{
    (void)state;
    static const char *const first = "data/acme/raw-default-2024-10-03.assay",
                             *const second = "data/acme/raw-default-2024-10-04.assay";
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    struct store *store = open_embedded(), *memory = open_memory();
    struct error error;
    write_both(store, memory, 40, 4, TODAY_NS - HOUR_NS, TODAY_NS + HOUR_NS);
    run_sql(first, "CREATE TRIGGER held BEFORE DELETE ON blocks WHEN OLD.unsure IS NOT NULL "
                   "BEGIN SELECT RAISE(FAIL, 'held'); END");
    run_sql(second, "CREATE TRIGGER refused BEFORE INSERT ON decided "
                    "BEGIN SELECT RAISE(FAIL, 'refused'); END");
    struct sample_batch batch;
    sample_batch_make(&batch, 41, 8, TODAY_NS - HOUR_NS, TODAY_NS + HOUR_NS);
    struct store_batch all = {
        .tenant = "acme", .batch_id = "again", .profiles = batch.profiles, .count = batch.count};
    assert_true(store_write(store, &all, &error) < 0);
    run_sql(first, "DROP TRIGGER held");
    run_sql(second, "DROP TRIGGER refused");
    maintain(store);
    compare_answers(store, memory, 12, 10, TODAY_NS - HOUR_NS, TODAY_NS + HOUR_NS);
    if (store_write(store, &all, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(store_write(memory, &all, NULL), 0);
    compare_answers(store, memory, 13, 10, TODAY_NS - HOUR_NS, TODAY_NS + HOUR_NS);
    sample_batch_release(&batch);
    store_close(store);
    store_close(memory);
}

/* A batch of which one window can't be taken leaves neither series nor a file. */
static void a_refused_batch_leaves_nothing(void **state)
{
    (void)state;
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    struct store *store = open_embedded();
    struct store_stats stats;
    struct error error;
    struct sample_batch batch;
    sample_batch_make(&batch, 310, 8, TODAY_NS, test_now_ns);
    struct store_batch all = {.tenant = "acme", .profiles = batch.profiles, .count = batch.count};
    int64_t good = batch.profiles[7].time_ns;
    batch.profiles[7].time_ns = TODAY_NS - 100 * DAY_NS;
    assert_int_equal(store_write(store, &all, &error), -ERANGE);
    assert_int_equal(store_stats(store, &stats, NULL), 0);
    assert_int_equal(stats.files[STORE_RAW], 0);
    /* What is stored next takes nothing of it along. */
    batch.profiles[7].time_ns = good;
    all.profiles = &batch.profiles[7];
    all.count = 1;
    assert_int_equal(store_write(store, &all, &error), 0);
    assert_int_equal(store_stats(store, &stats, NULL), 0);
    assert_int_equal(stats.series, 1);
    sample_batch_release(&batch);
    store_close(store);
}

static void only_one_process_has_it(void **state)
{
    (void)state;
    struct store *store = open_embedded(), *second;
    struct store_options settings = options();
    struct error error;
    assert_int_equal(store_open_embedded(&settings, &second, &error), -EBUSY);
    assert_says(&error, "in use by another process");
    settings.read_only = true;
    assert_int_equal(store_open_embedded(&settings, &second, &error), 0);
    struct sample_batch batch;
    sample_batch_make(&batch, 1, 1, TODAY_NS, TODAY_NS + HOUR_NS);
    struct store_batch all = {.tenant = "acme", .profiles = batch.profiles, .count = 1};
    assert_int_equal(store_write(second, &all, &error), -EROFS);
    sample_batch_release(&batch);
    store_close(second);
    store_close(store);
    store_close(open_embedded());
}

static void overwrite(const char *path, long at, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

#define YESTERDAY "data/acme/raw-default-2024-10-03.assay"

static void make_two_days(void)
{
    struct store *store = open_embedded(), *memory = open_memory();
    write_both(store, memory, 20, 10, TODAY_NS - DAY_NS, TODAY_NS);
    write_both(store, memory, 21, 10, TODAY_NS, TODAY_NS + HOUR_NS);
    store_close(store);
    store_close(memory);
}

static void a_damaged_file_is_set_aside(void **state)
{
    (void)state;
    char noise[8192];
    memset(noise, 0x5a, sizeof(noise));
    make_two_days();
    overwrite(YESTERDAY, 0, noise, 100); /* no database any more */
    struct store *store = open_embedded();
    assert_int_equal(access(YESTERDAY ".damaged", F_OK), 0);
    assert_int_equal(access(YESTERDAY, F_OK), -1);
    _cleanup_buffer_ struct buffer text = {0};
    assert_int_equal(store_problems(store, describe_text, &text, NULL), 0);
    assert_non_null(strstr(buffer_text(&text), YESTERDAY));
    assert_int_equal(windows_of(store, TODAY_NS - DAY_NS, TODAY_NS), 0);
    assert_true(windows_of(store, TODAY_NS, TODAY_NS + DAY_NS) > 0);
    /* The day can be written to again. */
    struct sample_batch batch;
    sample_batch_make(&batch, 5, 8, TODAY_NS - HOUR_NS, TODAY_NS);
    write_batch(store, &batch);
    sample_batch_release(&batch);
    assert_true(windows_of(store, TODAY_NS - DAY_NS, TODAY_NS) > 0);
    store_close(store);

    /* Damage further in shows when it is read, and answers come from the rest. */
    struct stat status;
    assert_int_equal(stat(YESTERDAY, &status), 0);
    for (long at = 4096; at + 4096 <= status.st_size; at += 4096)
        overwrite(YESTERDAY, at, noise, 4096);
    store = open_embedded();
    assert_int_equal(windows_of(store, TODAY_NS - DAY_NS, TODAY_NS), 0);
    assert_true(windows_of(store, TODAY_NS - DAY_NS, TODAY_NS + DAY_NS) > 0);
    assert_int_equal(access(YESTERDAY ".damaged-2", F_OK), 0);
    store_close(store);

    /* They are there until somebody says that they needn't be, who has to say which. */
    store = open_embedded();
    struct error error;
    char path[PATH_MAX];
    struct store_selection selection = {
        .tenant = "acme", .from_ns = TODAY_NS - DAY_NS, .to_ns = TODAY_NS};
    assert_int_equal(store_damaged_files(store, &selection), 2);
    selection.tenant = "other";
    assert_int_equal(store_damaged_files(store, &selection), 0);
    selection = (struct store_selection){.from_ns = TODAY_NS, .to_ns = TODAY_NS + DAY_NS};
    assert_int_equal(store_damaged_files(store, &selection), 0);
    assert_int_equal(store_acknowledge(store, "acme", YESTERDAY, path, &error), -EINVAL);
    assert_int_equal(store_acknowledge(store, "other", YESTERDAY ".damaged", path, &error),
                     -ENOENT);
    assert_int_equal(store_acknowledge(store, NULL, "acme", path, &error), -ENOENT);
    assert_int_equal(store_acknowledge(store, NULL, "", path, &error), -ENOENT);
    assert_int_equal(store_acknowledge(store, "acme", YESTERDAY ".damaged", path, &error), 0);
    assert_string_equal(path, YESTERDAY ".damaged");
    assert_int_equal(access(YESTERDAY ".acknowledged", F_OK), 0);
    assert_int_equal(store_acknowledge(store, NULL, YESTERDAY ".damaged", path, &error), -ENOENT);
    assert_int_equal(store_acknowledge(store, NULL, YESTERDAY ".damaged-2", path, &error), 0);
    store_close(store);
    store = open_embedded();
    check_is_clean(store);
    store_close(store);
}

static void change_file(const char *path, const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
    sqlite3_close(db);
}

/* What SQLite doesn't notice, the rows' checksums do. */
static void a_damaged_series_is_noticed(void **state)
{
    static const char *const changes[] = {
        "UPDATE series SET type = replace(type, 'cpu', 'cpt') WHERE id IN"
        " (SELECT min(id) FROM series WHERE type LIKE '%cpu%')",
        "UPDATE series SET service = service + 1 WHERE id = 0",
        "UPDATE series SET labels = CAST(substr(labels, 1, length(labels) - 1) AS BLOB)"
        " WHERE id = 1",
        "UPDATE series SET labels = CAST(substr(labels, 1, length(labels) - 8) AS BLOB)"
        " WHERE id = 1",
    };
    (void)state;
    make_two_days();
    struct store *store = open_embedded();
    assert_true(windows_of(store, TODAY_NS - DAY_NS, TODAY_NS) > 0);
    store_close(store);
    assert_int_equal(system("cp -R data good"), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(changes); i++) {
        assert_int_equal(system("rm -rf data && cp -R good data"), 0);
        change_file(YESTERDAY, changes[i]);
        store = open_embedded();
        assert_int_equal(windows_of(store, TODAY_NS - DAY_NS, TODAY_NS), 0);
        assert_true(windows_of(store, TODAY_NS, TODAY_NS + DAY_NS) > 0);
        assert_int_equal(access(YESTERDAY ".damaged", F_OK), 0);
        _cleanup_buffer_ struct buffer text = {0};
        assert_int_equal(store_problems(store, describe_text, &text, NULL), 0);
        assert_non_null(strstr(buffer_text(&text), "the list of series is unreadable"));
        store_close(store);
    }
}

#define WEEK "data/acme/ten-default-2024-09-30.assay"

/* Rollups whose notes are damaged are made again from what they were made of, which stays. */
static void damaged_notes_are_noticed(void **state)
{
    static const char *const changes[] = {
        "DELETE FROM slots WHERE start = (SELECT max(start) FROM slots)",
        "UPDATE slots SET start = start + 1 WHERE start = (SELECT min(start) FROM slots)",
        "INSERT INTO slots VALUES (0)",
        "INSERT INTO late VALUES (0, 1)",
        "UPDATE meta SET value = value + 1 WHERE key = 'rolled_until'",
        "DELETE FROM meta WHERE key = 'seal'",
        "UPDATE meta SET value = value + 1 WHERE key = 'seal'",
    };
    (void)state;
    make_two_days();
    struct store *store = open_embedded();
    maintain(store);
    uint64_t windows = windows_of(store, TODAY_NS - DAY_NS, TODAY_NS);
    assert_true(windows > 0);
    store_close(store);
    assert_int_equal(system("cp -R data good"), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(changes); i++) {
        assert_int_equal(system("rm -rf data && cp -R good data"), 0);
        change_file(WEEK, changes[i]);
        store = open_embedded();
        if (i % 2) /* found by a query; otherwise by maintenance */
            assert_int_equal(windows_of(store, TODAY_NS - DAY_NS, TODAY_NS), windows);
        maintain(store);
        assert_int_equal(access(WEEK ".damaged", F_OK), 0);
        assert_int_equal(access(WEEK, F_OK), 0);
        assert_int_equal(access(YESTERDAY, F_OK), 0);
        assert_int_equal(access(YESTERDAY ".damaged", F_OK), -1);
        assert_int_equal(windows_of(store, TODAY_NS - DAY_NS, TODAY_NS), windows);
        _cleanup_buffer_ struct buffer text = {0};
        assert_int_equal(store_problems(store, describe_text, &text, NULL), 0);
        assert_non_null(strstr(buffer_text(&text), "notes of what is rolled up are damaged"));
        store_close(store);
    }
}

/* An index in another's place: chunks would be there, and nobody would find them. */
static void a_misplaced_index_is_noticed(void **state)
{
    static const char *const indexes[] = {"sqlite_autoindex_chunks_1", "exemplars_series",
                                          "blocks_series"};
    (void)state;
    make_two_days();
    assert_int_equal(system("cp -R data good"), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(indexes); i++) {
        char sql[256];
        assert_int_equal(system("rm -rf data && cp -R good data"), 0);
        snprintf(sql, sizeof(sql),
                 "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage ="
                 " (SELECT rootpage FROM sqlite_schema WHERE name = 'decided') WHERE name = '%s'",
                 indexes[i]);
        change_file(YESTERDAY, sql);
        struct store *store = open_embedded();
        assert_int_equal(windows_of(store, TODAY_NS - DAY_NS, TODAY_NS), 0);
        assert_int_equal(access(YESTERDAY ".damaged", F_OK), 0);
        store_close(store);
    }
}

static bool has_problem(struct store *store, const char *part)
{
    _cleanup_buffer_ struct buffer text = {0};
    assert_int_equal(store_problems(store, describe_text, &text, NULL), 0);
    return strstr(buffer_text(&text), part);
}

static void a_damaged_block_is_left_out(void **state)
{
    (void)state;
    make_two_days();
    sqlite3 *db;
    assert_int_equal(sqlite3_open(YESTERDAY, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "UPDATE blocks SET data = zeroblob(length(data)) WHERE id = 1",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    struct store *store = open_embedded();
    struct store_selection selection = {
        .tenant = "acme", .from_ns = TODAY_NS - DAY_NS, .to_ns = TODAY_NS};
    unsigned damaged = 0;
    const char *const types[] = {CPU, ALLOC};
    for (size_t i = 0; i < 2; i++) {
        struct store_quality quality;
        _cleanup_profile_ struct profile profile;
        profile_init(&profile, PROFILE_ALL);
        selection.type = types[i];
        assert_int_equal(store_merge(store, &selection, NULL, &profile, &quality, NULL), 0);
        damaged += quality.damaged_blocks;
    }
    assert_int_equal(damaged, 1);
    struct error error;
    _cleanup_buffer_ struct buffer text = {0};
    assert_int_equal(store_check(store, describe_text, &text, &error), -EBADMSG);
    assert_non_null(strstr(buffer_text(&text), YESTERDAY ": block 1 is unreadable."));
    /* What a query has met stays visible, also after a start, until it is acknowledged. */
    assert_true(has_problem(store, YESTERDAY));
    store_close(store);
    store = open_embedded();
    assert_true(has_problem(store, YESTERDAY));
    char path[PATH_MAX];
    assert_int_equal(store_acknowledge(store, NULL, YESTERDAY ".damaged", path, &error), 0);
    for (size_t i = 0; i < 2; i++) {
        _cleanup_profile_ struct profile profile;
        profile_init(&profile, PROFILE_ALL);
        selection.type = types[i];
        assert_int_equal(store_merge(store, &selection, NULL, &profile, NULL, NULL), 0);
    }
    assert_false(has_problem(store, YESTERDAY));
    maintain(store);
    store_close(store);
}

static void refuses_other_formats_by_name(void **state)
{
    (void)state;
    make_two_days();
    sqlite3 *db;
    assert_int_equal(sqlite3_open(YESTERDAY, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    struct store_options settings = options();
    struct store *store;
    struct error error;
    assert_int_equal(store_open_embedded(&settings, &store, &error), -ENOTSUP);
    assert_says(&error, YESTERDAY);
    assert_says(&error, "99");
    assert_int_equal(access(YESTERDAY, F_OK), 0);
}

static void keeps_to_the_disk_limit(void **state)
{
    (void)state;
    struct store_options settings = options();
    struct store *store = open_embedded(), *memory = open_memory();
    write_both(store, memory, 40, 40, TODAY_NS - 6 * DAY_NS, test_now_ns);
    maintain(store);
    store_close(store); /* which empties the logs: they count too */
    store = open_embedded();
    struct store_stats stats;
    assert_int_equal(store_stats(store, &stats, NULL), 0);
    store_close(store);
    settings.disk_limit_bytes = 0;
    for (unsigned tier = 0; tier < STORE_TIERS; tier++)
        settings.disk_limit_bytes += stats.bytes[tier];
    settings.disk_limit_bytes -= stats.bytes[STORE_RAW] / 2;
    store = open_with(&settings);
    uint64_t before = windows_of(store, TODAY_NS - 6 * DAY_NS, TODAY_NS - 5 * DAY_NS);
    maintain(store);
    assert_int_equal(store_stats(store, &stats, NULL), 0);
    assert_true(stats.shed_files >= 2);
    assert_true(stats.shed_until_ns > TODAY_NS - 6 * DAY_NS);
    assert_int_equal(access("data/acme/raw-default-2024-09-28.assay", F_OK), -1);
    /* Its rollups serve, and nothing can be added to them. */
    assert_int_equal(windows_of(store, TODAY_NS - 6 * DAY_NS, TODAY_NS - 5 * DAY_NS), before);
    struct sample_batch batch;
    struct error error;
    sample_batch_make(&batch, 5, 8, TODAY_NS - 6 * DAY_NS, TODAY_NS - 5 * DAY_NS);
    struct store_batch all = {.tenant = "acme", .profiles = batch.profiles, .count = 8};
    assert_int_equal(store_write(store, &all, &error), -ERANGE);
    assert_says(&error, "raw data of the profile");
    sample_batch_release(&batch);
    maintain(store);
    assert_int_equal(windows_of(store, TODAY_NS - 6 * DAY_NS, TODAY_NS - 5 * DAY_NS), before);
    _cleanup_buffer_ struct buffer text = {0};
    assert_int_equal(store_problems(store, describe_text, &text, NULL), 0);
    assert_non_null(strstr(buffer_text(&text), "raw-default-2024-09-28.assay was deleted early"));
    /* Nor when only the coarser ones are left. */
    store_close(store);
    (void)unlink("data/acme/raw-default-2024-09-28.assay");
    assert_int_equal(unlink("data/acme/ten-default-2024-09-23.assay"), 0);
    store = open_with(&settings);
    assert_int_equal(windows_of(store, TODAY_NS - 6 * DAY_NS, TODAY_NS - 5 * DAY_NS), before);
    sample_batch_make(&batch, 5, 8, TODAY_NS - 6 * DAY_NS, TODAY_NS - 5 * DAY_NS);
    all.profiles = batch.profiles;
    assert_int_equal(store_write(store, &all, &error), -ERANGE);
    sample_batch_release(&batch);
    store_close(store);
    /* Not even today's fits: nothing more is taken, and it says why. */
    settings.disk_limit_bytes = 1000;
    store = open_with(&settings);
    maintain(store);
    sample_batch_make(&batch, 5, 8, TODAY_NS, TODAY_NS + HOUR_NS);
    all.profiles = batch.profiles;
    assert_int_equal(store_write(store, &all, &error), -ENOSPC);
    assert_says(&error, "disk limit");
    sample_batch_release(&batch);
    store_close(store);
    store_close(memory);
}

static void forgets_what_it_has_no_memory_for(void **state)
{
    (void)state;
    struct store_options settings = options();
    settings.memory_limit_bytes = 1; /* becomes the least there is */
    struct store *store = open_with(&settings), *memory = open_memory();
    write_both(store, memory, 50, 20, TODAY_NS - 3 * DAY_NS, test_now_ns);
    maintain(store);
    compare_answers(store, memory, 12, 10, TODAY_NS - 3 * DAY_NS, test_now_ns);
    struct store_stats stats;
    assert_int_equal(store_stats(store, &stats, NULL), 0);
    assert_true(stats.memory_bytes <= 16u << 20);
    store_close(store);
    store_close(memory);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        CASE(answers_as_raw_data_whatever_tier_is_read),
        CASE(deletes_from_rollups_too),
        CASE(small_subtrees_can_be_cut),
        CASE(what_is_small_alone_may_be_large_together),
        CASE(drops_what_is_too_old),
        CASE(a_jumping_clock_removes_nothing),
        CASE(a_batch_over_several_files_is_whole),
        CASE(a_part_that_stays_is_removed_later),
        CASE(a_refused_batch_leaves_nothing),
        CASE(only_one_process_has_it),
        CASE(a_damaged_file_is_set_aside),
        CASE(a_damaged_series_is_noticed),
        CASE(damaged_notes_are_noticed),
        CASE(a_misplaced_index_is_noticed),
        CASE(a_damaged_block_is_left_out),
        CASE(refuses_other_formats_by_name),
        CASE(keeps_to_the_disk_limit),
        CASE(forgets_what_it_has_no_memory_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
