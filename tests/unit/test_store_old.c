// SPDX-License-Identifier: Apache-2.0
// A directory that an older program wrote, in format 1: read as it is, written to, and compacted.
// fixtures/store-1 was made by this very program, built with a source tree whose store wrote that
// format (`test_store_old write DIR`); fixtures/README.md says more.

#include <sqlite3.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "store/store.h"
#include "store_pair.h"
#include "unit.h"

#define FROM_NS (TODAY_NS - 3 * HOUR_NS)

/* A part of the answers: how many lines, and a digest of them. */
static void add_part(struct buffer *out, const char *what, int64_t from_ns, struct buffer *part)
{
    size_t lines = 0;
    sort_lines(part);
    for (size_t i = 0; i < part->length; i++)
        lines += part->data[i] == '\n';
    buffer_printf(out, "%s from %lld: %zu lines, %016llx\n", what, (long long)from_ns, lines,
                  (unsigned long long)XXH3_64bits(part->data, part->length));
    part->length = 0;
}

/* All that can be asked of it. */
static void describe_all(struct store *store, struct buffer *out)
{
    static const int64_t starts[] = {FROM_NS, TODAY_NS, TODAY_NS + 2 * HOUR_NS + 1234 * SECOND_NS};
    static const char *const types[] = {CPU, ALLOC};
    struct store_selection all = {
        .tenant = "acme", .from_ns = FROM_NS, .to_ns = TODAY_NS + DAY_NS / 2};
    _cleanup_buffer_ struct buffer part = {0};
    assert_int_equal(store_series(store, &all, describe_series, &part, NULL), 0);
    add_part(out, "series", FROM_NS, &part);
    assert_int_equal(store_exemplars(store, &all, NULL, NULL, describe_exemplar, &part, NULL), 0);
    add_part(out, "exemplars", FROM_NS, &part);
    assert_int_equal(store_scan(store, &all, NULL, describe_window, &part, NULL), 0);
    add_part(out, "windows", FROM_NS, &part);
    for (size_t i = 0; i < ARRAY_LENGTH(starts) * ARRAY_LENGTH(types); i++) {
        struct store_selection selection = all;
        selection.type = types[i % ARRAY_LENGTH(types)];
        selection.from_ns = starts[i / ARRAY_LENGTH(types)];
        describe_merge(store, &selection, NULL, &part);
        add_part(out, selection.type, selection.from_ns, &part);
        const struct store_function function = {.name = "function4"};
        struct store_timeseries_query query = {.step_ns = HOUR_NS, .function = &function};
        assert_int_equal(
            store_timeseries(store, &selection, &query, NULL, describe_points, &part, NULL, NULL),
            0);
        add_part(out, "function4", selection.from_ns, &part);
    }
}

static void write_samples(struct store *store, uint64_t seed, unsigned batches)
{
    for (unsigned i = 0; i < batches; i++) {
        struct sample_batch batch;
        sample_batch_make(&batch, seed * 1000 + i, 8, FROM_NS, test_now_ns - HOUR_NS);
        write_batch(store, &batch);
        sample_batch_release(&batch);
    }
}

/* Compacted blocks and rollups, and some that came late. */
static int write_directory(const char *folder)
{
    struct store_options settings = options();
    settings.directory = folder;
    struct store *store = open_with(&settings);
    _cleanup_buffer_ struct buffer text = {0};
    write_samples(store, 90, 6);
    maintain(store);
    write_samples(store, 91, 1);
    describe_all(store, &text);
    store_close(store);
    printf("%s", buffer_text(&text));
    return 0;
}

static void read_expected(struct buffer *out)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/store-1/expected.txt", getenv("FIXTURES"));
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    char chunk[4096];
    size_t got;
    while ((got = fread(chunk, 1, sizeof(chunk), file)) > 0)
        buffer_add(out, chunk, got);
    fclose(file);
}

static void take_copy(void)
{
    char command[4096];
    assert_non_null(getenv("FIXTURES"));
    snprintf(command, sizeof(command),
             "mkdir data && cp -R '%s/store-1/acme' data && chmod -R u+w data", getenv("FIXTURES"));
    assert_int_equal(system(command), 0);
}

/* How many blocks of a format there are in all files. */
static unsigned count_blocks(unsigned format)
{
    static const char *const names[] = {"raw-default-2024-10-03", "raw-default-2024-10-04",
                                        "ten-default-2024-09-30", "hour-default-2024-10-01"};
    unsigned count = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        char path[128];
        sqlite3 *db;
        sqlite3_stmt *statement;
        snprintf(path, sizeof(path), "data/acme/%s.assay", names[i]);
        assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_prepare_v2(db,
                                            "SELECT count(*) FROM blocks"
                                            " WHERE substr(data, 1, 1) = ?1",
                                            -1, &statement, NULL),
                         SQLITE_OK);
        char byte = (char)format;
        sqlite3_bind_blob(statement, 1, &byte, 1, SQLITE_STATIC);
        assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
        count += (unsigned)sqlite3_column_int(statement, 0);
        sqlite3_finalize(statement);
        sqlite3_close(db);
    }
    return count;
}

static void check_answers(struct store *store)
{
    _cleanup_buffer_ struct buffer text = {0}, expected = {0};
    describe_all(store, &text);
    read_expected(&expected);
    assert_true(expected.length > 500);
    assert_string_equal(buffer_text(&text), buffer_text(&expected));
}

static void is_read_as_it_is(void **state)
{
    (void)state;
    take_copy();
    unsigned blocks = count_blocks(1);
    assert_true(blocks > 20);
    assert_int_equal(count_blocks(2), 0);
    struct store_options settings = options();
    settings.read_only = true;
    struct store *store = open_with(&settings);
    check_answers(store);
    check_is_clean(store);
    store_close(store);
    assert_int_equal(count_blocks(1), blocks);
}

/* What comes is of the new format, what is compacted becomes it, and answers stay. */
static void is_written_to_and_compacted(void **state)
{
    (void)state;
    take_copy();
    unsigned blocks = count_blocks(1);
    struct store *store = open_embedded();
    check_answers(store);
    maintain(store);
    check_answers(store);
    check_is_clean(store);
    write_samples(store, 92, 3);
    maintain(store);
    check_is_clean(store);
    _cleanup_buffer_ struct buffer before = {0}, after = {0};
    describe_all(store, &before);
    store_close(store);
    assert_true(count_blocks(1) < blocks);
    assert_true(count_blocks(2) > 0);
    store = open_embedded();
    describe_all(store, &after);
    assert_string_equal(buffer_text(&before), buffer_text(&after));
    store_close(store);
}

static int64_t ask_number(const char *path, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    int64_t number =
        sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return number;
}

/* Rows of series that were there have no checksum, and are read; those that come have one. */
static void its_series_get_checksums(void **state)
{
    static const char *const raw = "data/acme/raw-default-2024-10-04.assay";
    (void)state;
    take_copy();
    int64_t plain = ask_number(raw, "SELECT count(*) FROM series");
    struct store *store = open_embedded();
    check_answers(store);
    struct sample_batch batch;
    sample_batch_make(&batch, 7, 8, TODAY_NS, test_now_ns - HOUR_NS);
    const struct labels *known = batch.profiles[0].labels;
    struct labels other = {0};
    labels_copy(&other, known);
    labels_set(&other, "new", "label");
    batch.profiles[0].labels = &other;
    write_batch(store, &batch);
    batch.profiles[0].labels = known;
    labels_release(&other);
    sample_batch_release(&batch);
    store_close(store);
    assert_int_equal(ask_number(raw, "PRAGMA user_version"), 4);
    assert_int_equal(ask_number(raw, "SELECT value FROM meta WHERE key = 'plain_series'"), plain);
    assert_true(ask_number(raw, "SELECT count(*) FROM series") > plain);

    ask_number(raw, "UPDATE series SET type = type || 'x' WHERE id = (SELECT max(id) FROM series)");
    store = open_embedded();
    struct store_selection today = {
        .tenant = "acme", .from_ns = TODAY_NS, .to_ns = TODAY_NS + DAY_NS / 2};
    _cleanup_buffer_ struct buffer text = {0};
    assert_int_equal(store_series(store, &today, describe_series, &text, NULL), 0);
    assert_int_equal(access(raw, F_OK), -1);
    store_close(store);
}

/* The same windows in a store of this program: what the old one gave is what we would. */
static void gives_what_a_new_one_would(void **state)
{
    (void)state;
    struct store *store = open_embedded();
    write_samples(store, 90, 6);
    maintain(store);
    write_samples(store, 91, 1);
    check_answers(store);
    store_close(store);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "write"))
        return write_directory(argv[2]);
#define CASE(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        CASE(is_read_as_it_is),
        CASE(is_written_to_and_compacted),
        CASE(its_series_get_checksums),
        CASE(gives_what_a_new_one_would),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
