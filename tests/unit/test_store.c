// SPDX-License-Identifier: Apache-2.0
// The store's contract: one suite, run against the store in memory and the embedded one; with
// TEST_STORE_URL=clickhouse://HOST:PORT against one on ClickHouse instead, where each test has a
// database of its own.

#include <limits.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store.h"
#include "store_engines.h"
#include "store_pair.h"
#include "store_samples.h"
#include "unit.h"

/* A batch of one window: main calls a and b. */
struct small {
    struct profile profile;
    struct labels labels;
    struct store_row rows[3];
    struct store_exemplar exemplar;
    struct store_profile window;
    struct store_batch batch;
};

static uint32_t named(struct profile *profile, const char *name)
{
    return profile_frame(
        profile,
        &(struct profile_frame){
            .function = profile_function(
                profile, &(struct profile_function){.name = profile_cstring(profile, name)})});
}

static void small_make(struct small *small, const char *service, int64_t time_ns)
{
    memset(small, 0, sizeof(*small));
    profile_init(&small->profile, PROFILE_ALL);
    uint32_t stack[2] = {named(&small->profile, "main"), named(&small->profile, "a")};
    small->rows[0] =
        (struct store_row){.node = profile_stack(&small->profile, stack, 2), .value = 30};
    small->rows[1] =
        (struct store_row){.node = profile_stack(&small->profile, stack, 1), .value = 5};
    stack[1] = named(&small->profile, "b");
    small->rows[2] =
        (struct store_row){.node = profile_stack(&small->profile, stack, 2), .value = 70};
    small->exemplar = (struct store_exemplar){
        .node = small->rows[0].node, .value = 1, .time_ns = time_ns + 3, .link = {{9}, {8}}};
    labels_set(&small->labels, "service_name", service);
    labels_set(&small->labels, "host", "h1");
    small->window = (struct store_profile){.labels = &small->labels,
                                           .type = CPU,
                                           .time_ns = time_ns,
                                           .duration_ns = 10 * SECOND_NS,
                                           .profile = &small->profile,
                                           .rows = small->rows,
                                           .row_count = 3,
                                           .exemplars = &small->exemplar,
                                           .exemplar_count = 1};
    small->batch = (struct store_batch){.tenant = "acme", .profiles = &small->window, .count = 1};
}

static void small_release(struct small *small)
{
    profile_release(&small->profile);
    labels_release(&small->labels);
}

static struct store_selection everything(void)
{
    return (struct store_selection){
        .tenant = "acme", .type = CPU, .from_ns = 0, .to_ns = TODAY_NS + 10 * DAY_NS};
}

static void write_small(struct store *store, const char *service, int64_t time_ns)
{
    struct small small;
    struct error error;
    small_make(&small, service, time_ns);
    if (store_write(store, &small.batch, &error) < 0)
        fail_msg("%s", error.text);
    small_release(&small);
}

static void gives_back_what_was_written(void **state)
{
    struct store *store = ((struct fixture *)*state)->store;
    write_small(store, "web", TODAY_NS);
    write_small(store, "web", TODAY_NS + 10 * SECOND_NS);
    write_small(store, "db", TODAY_NS + 10 * SECOND_NS);
    struct store_selection selection = everything();
    _cleanup_buffer_ struct buffer text = {0};
    describe_merge(store, &selection, NULL, &text);
    assert_string_equal(buffer_text(&text),
                        ";a:0:0:+0;main:0:0:+0 90\n;b:0:0:+0;main:0:0:+0 210\n"
                        ";main:0:0:+0 15\n"
                        "rows 9 windows 3 first 1728000000000000000 last 1728000010000000000 "
                        "duration 30000000000 total 315\n");
    /* A range ends before its end, and holds the windows that start in it. */
    selection.from_ns = TODAY_NS + 1;
    selection.to_ns = TODAY_NS + 10 * SECOND_NS;
    text.length = 0;
    describe_merge(store, &selection, NULL, &text);
    assert_string_equal(buffer_text(&text), "rows 0 windows 0 first 0 last 0 duration 0 total 0\n");
    selection.to_ns++;
    struct selector selector = {0};
    struct error error;
    assert_int_equal(selector_parse("{service_name=~\"w.*\"}", 21, &selector, &error), 0);
    selection.selector = &selector;
    text.length = 0;
    describe_merge(store, &selection, NULL, &text);
    assert_non_null(strstr(buffer_text(&text), "windows 1 "));
    selector_release(&selector);
    selection.selector = NULL;
    selection.tenant = "other";
    text.length = 0;
    describe_merge(store, &selection, NULL, &text);
    assert_non_null(strstr(buffer_text(&text), "windows 0 "));
}

static void forget(void *context)
{
    struct small *small = context;
    small_release(small);
    memset(small, 0xff, sizeof(*small));
}

static void reads_nothing_after_it_said_so(void **state)
{
    struct store *store = ((struct fixture *)*state)->store;
    struct small small;
    struct error error;
    small_make(&small, "web", TODAY_NS);
    struct store_batch batch = small.batch;
    batch.done_reading = forget;
    batch.context = &small;
    assert_int_equal(store_write(store, &batch, &error), 0);
    assert_int_equal(small.rows[0].node, UINT32_MAX); /* it was called */
    struct store_selection selection = everything();
    _cleanup_buffer_ struct buffer text = {0};
    describe_merge(store, &selection, NULL, &text);
    assert_string_equal(buffer_text(&text),
                        ";a:0:0:+0;main:0:0:+0 30\n;b:0:0:+0;main:0:0:+0 70\n"
                        ";main:0:0:+0 5\n"
                        "rows 3 windows 1 first 1728000000000000000 last 1728000000000000000 "
                        "duration 10000000000 total 105\n");
    /* What is refused is still the caller's. */
    small_make(&small, "web", TODAY_NS - 1000 * DAY_NS);
    batch.profiles = &small.window;
    assert_int_equal(store_write(store, &batch, &error), -ERANGE);
    assert_int_equal(small.rows[0].value, 30);
    small_release(&small);
}

static void a_repeated_batch_changes_nothing(void **state)
{
    struct store *store = ((struct fixture *)*state)->store;
    struct small small;
    struct error error;
    small_make(&small, "web", TODAY_NS);
    small.batch.batch_id = "one";
    assert_int_equal(store_write(store, &small.batch, &error), 0);
    assert_int_equal(store_write(store, &small.batch, &error), -EALREADY);
    small.window.time_ns += DAY_NS / 2; /* corrected by another offset */
    assert_int_equal(store_write(store, &small.batch, &error), -EALREADY);
    small.batch.batch_id = "two";
    assert_int_equal(store_write(store, &small.batch, &error), 0);
    small.batch.tenant = "other"; /* ids of tenants have nothing to do with each other */
    assert_int_equal(store_write(store, &small.batch, &error), 0);
    struct store_selection selection = everything();
    _cleanup_buffer_ struct buffer text = {0};
    describe_merge(store, &selection, NULL, &text);
    assert_non_null(strstr(buffer_text(&text), "windows 2 "));
    text.length = 0;
    assert_int_equal(store_tenants(store, describe_text, &text, &error), 0);
    assert_string_equal(buffer_text(&text), "acme\nother\n");
    struct store_stats stats;
    assert_int_equal(store_stats(store, &stats, &error), 0);
    assert_int_equal(stats.windows, 3);
    assert_int_equal(stats.rows, 9);
    assert_int_equal(stats.repeated_batches, 2);
    assert_int_equal(stats.written_batches, 3);
    small_release(&small);
}

static void lists_series_labels_and_types(void **state)
{
    struct store *store = ((struct fixture *)*state)->store;
    struct error error;
    write_small(store, "web", TODAY_NS);
    write_small(store, "web", TODAY_NS + 10 * SECOND_NS);
    write_small(store, "db", TODAY_NS - 5 * HOUR_NS); /* the day before */
    struct store_selection selection = everything();
    selection.type = NULL;
    _cleanup_buffer_ struct buffer text = {0};
    assert_int_equal(store_series(store, &selection, describe_series, &text, &error), 0);
    sort_lines(&text);
    assert_string_equal(buffer_text(&text), "{host=\"h1\",service_name=\"db\"} " CPU
                                            " 1727982000000000000 1727982000000000000\n"
                                            "{host=\"h1\",service_name=\"web\"} " CPU
                                            " 1728000000000000000 1728000010000000000\n");
    text.length = 0;
    assert_int_equal(store_label_names(store, &selection, describe_text, &text, &error), 0);
    assert_string_equal(buffer_text(&text), "host\nservice_name\n");
    text.length = 0;
    assert_int_equal(
        store_label_values(store, &selection, "service_name", describe_text, &text, &error), 0);
    assert_string_equal(buffer_text(&text), "db\nweb\n");
    selection.from_ns = TODAY_NS;
    text.length = 0;
    assert_int_equal(
        store_label_values(store, &selection, "service_name", describe_text, &text, &error), 0);
    assert_string_equal(buffer_text(&text), "web\n");
    text.length = 0;
    assert_int_equal(store_types(store, &selection, describe_text, &text, &error), 0);
    assert_string_equal(buffer_text(&text), CPU "\n");
}

static void adds_up_time_series(void **state)
{
    struct store *store = ((struct fixture *)*state)->store;
    struct error error;
    write_small(store, "web", TODAY_NS);
    write_small(store, "web", TODAY_NS + 10 * SECOND_NS);
    write_small(store, "db", TODAY_NS + 70 * SECOND_NS);
    struct store_selection selection = everything();
    selection.from_ns = TODAY_NS;
    selection.to_ns = TODAY_NS + 10 * MINUTE_NS;
    struct store_timeseries_query query = {.step_ns = MINUTE_NS};
    struct store_quality quality;
    _cleanup_buffer_ struct buffer text = {0};
    assert_int_equal(
        store_timeseries(store, &selection, &query, NULL, describe_points, &text, &quality, &error),
        0);
    assert_string_equal(buffer_text(&text), "{} 1728000000000000000 210 2\n"
                                            "{} 1728000060000000000 105 1\n");
    assert_int_equal(quality.windows, 3);
    const char *by[] = {"service_name"};
    query.group_by = by;
    query.group_count = 1;
    query.function = &(const struct store_function){.name = "a"};
    text.length = 0;
    assert_int_equal(
        store_timeseries(store, &selection, &query, NULL, describe_points, &text, &quality, &error),
        0);
    assert_string_equal(buffer_text(&text), "{service_name=\"db\"} 1728000060000000000 30 1\n"
                                            "{service_name=\"web\"} 1728000000000000000 60 2\n");
    query.group_count = 0;
    query.function = &(const struct store_function){.name = "main"};
    query.count = STORE_CUMULATIVE;
    text.length = 0;
    assert_int_equal(
        store_timeseries(store, &selection, &query, NULL, describe_points, &text, &quality, &error),
        0);
    assert_string_equal(buffer_text(&text), "{} 1728000000000000000 210 2\n"
                                            "{} 1728000060000000000 105 1\n");
    query.step_ns = 1;
    assert_int_equal(
        store_timeseries(store, &selection, &query, NULL, describe_points, &text, &quality, &error),
        -EINVAL);
    query.step_ns = SECOND_NS;
    selection.to_ns = TODAY_NS + 2 * DAY_NS;
    assert_int_equal(
        store_timeseries(store, &selection, &query, NULL, describe_points, &text, &quality, &error),
        -E2BIG);
    assert_says(&error, "longer steps");
}

/* Of more groups than wanted the greatest, and the rest as one; whichever comes first. */
static void adds_up_the_rest_of_groups(void **state)
{
    struct store *store = ((struct fixture *)*state)->store;
    struct error error;
    char name[16];
    for (unsigned i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "s%u", i);
        for (unsigned k = 0; k < 1 + i * 3 % 8; k++)
            write_small(store, name, TODAY_NS + k * 10 * SECOND_NS);
    }
    struct store_selection selection = everything();
    selection.from_ns = TODAY_NS;
    selection.to_ns = TODAY_NS + 2 * MINUTE_NS;
    const char *by[] = {"service_name"};
    struct store_timeseries_query query = {
        .step_ns = 2 * MINUTE_NS, .group_by = by, .group_count = 1, .groups_most = 3};
    struct store_quality quality;
    _cleanup_buffer_ struct buffer text = {0};
    if (store_timeseries(store, &selection, &query, NULL, describe_points, &text, &quality, &error))
        fail_msg("%s", error.text);
    assert_string_equal(buffer_text(&text), "{service_name=\"s2\"} 1728000000000000000 735 7\n"
                                            "{service_name=\"s5\"} 1728000000000000000 840 8\n"
                                            "{service_name=\"s7\"} 1728000000000000000 630 6\n"
                                            "rest 1728000000000000000 1575 15\n");
    assert_int_equal(quality.rest_groups, 5);
    assert_int_equal(quality.windows, 36);
    query.groups_most = 8;
    query.greatest_first = true;
    text.length = 0;
    assert_int_equal(
        store_timeseries(store, &selection, &query, NULL, describe_points, &text, &quality, &error),
        0);
    assert_int_equal(quality.rest_groups, 0);
    assert_null(strstr(buffer_text(&text), "rest"));
    assert_true(!strncmp(buffer_text(&text), "{service_name=\"s5\"}", 19));
}

struct found_frames {
    struct store_frame list[8];
    char names[8][16];
    size_t count;
    const char *wanted; /* NULL: all */
};

static int find_frame(void *context, const struct profile *tables, uint32_t frame)
{
    struct found_frames *found = context;
    struct store_frame read;
    store_frame_read(tables, frame, &read);
    for (size_t i = 0; i < found->count; i++)
        if (!store_frame_compare(&found->list[i], &read))
            return 0;
    if (found->wanted && strcmp(found->wanted, read.function) != 0)
        return 0;
    assert_true(found->count < 8);
    snprintf(found->names[found->count], sizeof(found->names[0]), "%s", read.function);
    read.function = found->names[found->count];
    assert_string_equal(read.system_name, "");
    assert_string_equal(read.source, "");
    assert_string_equal(read.file, "");
    assert_string_equal(read.build_id, "");
    read.system_name = read.source = read.file = read.build_id = "";
    found->list[found->count++] = read;
    return 0;
}

/* A function can also be given by its frames, which a query for frames finds. */
static void filters_by_frames(void **state)
{
    struct store *store = ((struct fixture *)*state)->store;
    struct error error;
    write_small(store, "web", TODAY_NS);
    struct store_selection selection = everything();
    selection.from_ns = TODAY_NS;
    selection.to_ns = TODAY_NS + MINUTE_NS;
    struct found_frames all = {0}, a = {.wanted = "a"}, outside = {0};
    assert_int_equal(store_frames(store, &selection, NULL, NULL, find_frame, &all, &error), 0);
    assert_int_equal(all.count, 3);
    assert_int_equal(store_frames(store, &selection, NULL, NULL, find_frame, &a, &error), 0);
    assert_int_equal(a.count, 1);
    selection.tenant = "other";
    assert_int_equal(store_frames(store, &selection, NULL, NULL, find_frame, &outside, &error), 0);
    assert_int_equal(outside.count, 0);
    selection.tenant = "acme";
    struct store_function function = {.name = "main", .frames = a.list, .frame_count = 1};
    struct store_timeseries_query query = {.step_ns = MINUTE_NS, .function = &function};
    _cleanup_buffer_ struct buffer text = {0};
    static const struct {
        bool frames_only, encloses;
        enum store_count count;
        const char *points;
    } cases[] = {
        {true, false, STORE_FLAT, "30"},         {true, true, STORE_FLAT, "0"},
        {true, true, STORE_CUMULATIVE, "30"},    {true, false, STORE_CUMULATIVE, "30"},
        {false, false, STORE_CUMULATIVE, "105"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char expected[64];
        function.frames_only = cases[i].frames_only;
        a.list[0].encloses = cases[i].encloses;
        query.count = cases[i].count;
        text.length = 0;
        assert_int_equal(
            store_timeseries(store, &selection, &query, NULL, describe_points, &text, NULL, &error),
            0);
        snprintf(expected, sizeof(expected), "{} 1728000000000000000 %s 1\n", cases[i].points);
        assert_string_equal(buffer_text(&text), expected);
    }
    text.length = 0;
    assert_int_equal(
        store_exemplars(store, &selection, &function, NULL, describe_exemplar, &text, &error), 0);
    assert_true(text.length);
}

static void keeps_exemplars(void **state)
{
    struct store *store = ((struct fixture *)*state)->store;
    struct error error;
    write_small(store, "web", TODAY_NS);
    struct store_selection selection = everything();
    _cleanup_buffer_ struct buffer text = {0};
    assert_int_equal(store_exemplars(store, &selection, &(const struct store_function){.name = "a"},
                                     NULL, describe_exemplar, &text, &error),
                     0);
    assert_string_equal(buffer_text(&text),
                        "{host=\"h1\",service_name=\"web\"};a:0:0:+0;main:0:0:+0"
                        " 1 1728000000000000003 9 8\n");
    text.length = 0;
    assert_int_equal(store_exemplars(store, &selection, &(const struct store_function){.name = "b"},
                                     NULL, describe_exemplar, &text, &error),
                     0);
    assert_int_equal(text.length, 0);
}

static void refuse(struct store *store, struct small *small, int code, const char *words)
{
    struct error error = {0};
    assert_int_equal(store_write(store, &small->batch, &error), code);
    assert_says(&error, words);
    small_release(small);
    small_make(small, "web", TODAY_NS);
}

static void refuses_what_can_not_be(void **state)
{
    struct store *store = ((struct fixture *)*state)->store;
    struct small small;
    small_make(&small, "web", TODAY_NS);
    small.batch.tenant = "../up";
    refuse(store, &small, -EINVAL, "tenant");
    small.batch.tenant = ".hidden";
    refuse(store, &small, -EINVAL, "tenant");
    small.batch.tenant = "";
    refuse(store, &small, -EINVAL, "tenant");
    small.window.type = "cpu";
    refuse(store, &small, -EINVAL, "five parts");
    labels_set(&small.labels, "service_name", "");
    refuse(store, &small, -EINVAL, "service_name");
    small.rows[1].node = 4;
    refuse(store, &small, -EINVAL, "stack 4");
    small.exemplar.node = 1000;
    refuse(store, &small, -EINVAL, "stack 1000");
    small.window.time_ns = 0;
    refuse(store, &small, -EINVAL, "no time");
    small.window.time_ns = TODAY_NS - 30 * DAY_NS;
    refuse(store, &small, -ERANGE, "older");
    uint32_t frame = named(&small.profile, "deep"), node = 0;
    for (int i = 0; i < STORE_DEPTH_MAX + 1; i++)
        node = profile_child(&small.profile, node, frame);
    small.rows[0].node = node;
    refuse(store, &small, -E2BIG, "frames");
    char id[STORE_BATCH_ID_BYTES_MAX + 2];
    memset(id, 'x', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    small.batch.batch_id = id;
    refuse(store, &small, -EINVAL, "batch id");
    struct store_selection selection = everything();
    _cleanup_buffer_ struct buffer text = {0};
    describe_merge(store, &selection, NULL, &text);
    assert_non_null(strstr(buffer_text(&text), "windows 0 "));
    small_release(&small);
}

/* A profile whose stacks were cut still has the nodes of the whole ones. */
static void checks_stored_stacks_only(void **state)
{
    struct store *store = ((struct fixture *)*state)->store;
    struct small small;
    small_make(&small, "web", TODAY_NS);
    uint32_t frame = named(&small.profile, "deep"), node = 0;
    for (int i = 0; i < STORE_DEPTH_MAX + 1; i++)
        node = profile_child(&small.profile, node, frame);
    struct error error;
    assert_int_equal(store_write(store, &small.batch, &error), 0);
    small.exemplar.node = node;
    assert_int_equal(store_write(store, &small.batch, &error), -E2BIG);
    small_release(&small);
}

static void stops_when_told_or_at_the_limit(void **state)
{
    struct store *store = ((struct fixture *)*state)->store;
    write_small(store, "web", TODAY_NS);
    struct store_selection selection = everything();
    atomic_bool cancelled = true;
    struct store_limits limits = {.cancelled = &cancelled};
    struct error error;
    struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    assert_int_equal(store_merge(store, &selection, &limits, &profile, NULL, &error), -ECANCELED);
    profile_release(&profile);
    profile_init(&profile, PROFILE_ALL);
    limits = (struct store_limits){.memory_bytes = 1000};
    assert_int_equal(store_merge(store, &selection, &limits, &profile, NULL, &error), -E2BIG);
    assert_says(&error, "shorter time");
    selection.type = NULL;
    assert_int_equal(store_merge(store, &selection, NULL, &profile, NULL, &error), -EINVAL);
    profile_release(&profile);
}

static void deletes_what_is_selected(void **state)
{
    struct store *store = ((struct fixture *)*state)->store;
    struct error error;
    for (int i = 0; i < 6; i++)
        write_small(store, i % 2 ? "web" : "db", TODAY_NS + i * 10 * SECOND_NS);
    struct selector selector = {0};
    assert_int_equal(selector_parse("{service_name=\"web\"}", 20, &selector, &error), 0);
    struct store_selection selection = everything();
    selection.selector = &selector;
    selection.from_ns = TODAY_NS + 30 * SECOND_NS;
    struct store_deleted deleted;
    assert_int_equal(store_delete(store, &selection, true, &deleted, &error), 0);
    assert_int_equal(deleted.windows, 2);
    assert_int_equal(store_delete(store, &selection, false, &deleted, &error), 0);
    assert_int_equal(deleted.windows, 2);
    /* Old replicas leave the part of the last insert with a quorum alone until the next one. */
    if (deleted.pending && getenv("TEST_STORE_SETTINGS"))
        skip();
    assert_false(deleted.pending);
    assert_int_equal(store_delete(store, &selection, false, &deleted, &error), 0);
    assert_int_equal(deleted.windows, 0);
    selection.selector = NULL;
    selection.from_ns = 0;
    _cleanup_buffer_ struct buffer text = {0};
    describe_merge(store, &selection, NULL, &text);
    assert_non_null(strstr(buffer_text(&text), "windows 4 "));
    text.length = 0;
    assert_int_equal(
        store_exemplars(store, &selection, NULL, NULL, describe_exemplar, &text, &error), 0);
    sort_lines(&text);
    size_t lines = 0;
    for (size_t i = 0; i < text.length; i++)
        lines += text.data[i] == '\n';
    assert_int_equal(lines, 4);
    selector_release(&selector);
}

struct copy {
    struct store *to;
    unsigned windows;
};

static int copy_window(void *context, const struct store_profile *window)
{
    struct copy *copy = context;
    struct store_batch batch = {.tenant = "acme", .profiles = window, .count = 1};
    copy->windows++;
    return store_write(copy->to, &batch, NULL);
}

static void gives_windows_that_can_be_written_again(void **state)
{
    struct store *store = ((struct fixture *)*state)->store, *other;
    struct error error;
    struct store_options options = {.now = test_clock};
    assert_int_equal(store_open_memory(&options, &other, &error), 0);
    for (uint64_t seed = 1; seed < 20; seed++) {
        struct sample_batch batch;
        sample_batch_make(&batch, seed, 4, TODAY_NS - HOUR_NS, TODAY_NS + HOUR_NS);
        assert_int_equal(store_write(store,
                                     &(struct store_batch){.tenant = "acme",
                                                           .profiles = batch.profiles,
                                                           .count = batch.count},
                                     &error),
                         0);
        sample_batch_release(&batch);
    }
    struct store_selection selection = everything();
    selection.type = NULL;
    struct copy copy = {.to = other};
    assert_int_equal(store_scan(store, &selection, NULL, copy_window, &copy, &error), 0);
    assert_int_equal(copy.windows, 19 * 4);
    _cleanup_buffer_ struct buffer a = {0}, b = {0};
    assert_int_equal(store_scan(store, &selection, NULL, describe_window, &a, &error), 0);
    assert_int_equal(store_scan(other, &selection, NULL, describe_window, &b, &error), 0);
    sort_lines(&a);
    sort_lines(&b);
    assert_string_equal(buffer_text(&a), buffer_text(&b));
    store_close(other);
}

struct worker {
    struct store *store;
    unsigned number;
    int result;
};

#define WORKERS 6
#define BATCHES 25

static void *write_many(void *context)
{
    struct worker *worker = context;
    for (unsigned i = 0; i < BATCHES && !worker->result; i++) {
        struct small small;
        char id[32], service[32];
        snprintf(id, sizeof(id), "%u-%u", worker->number, i / 2); /* every other is a repeat */
        snprintf(service, sizeof(service), "service%u", worker->number % 3);
        small_make(&small, service, TODAY_NS + i * SECOND_NS - 5 * SECOND_NS);
        small.batch.batch_id = id;
        int r = store_write(worker->store, &small.batch, NULL);
        worker->result = r == (i % 2 ? -EALREADY : 0) ? 0 : -1;
        small_release(&small);
    }
    return NULL;
}

static void *read_many(void *context)
{
    struct worker *worker = context;
    struct store_selection selection = everything();
    for (unsigned i = 0; i < 20 && !worker->result; i++) {
        struct store_quality quality;
        _cleanup_profile_ struct profile profile;
        profile_init(&profile, 0);
        worker->result = store_merge(worker->store, &selection, NULL, &profile, &quality, NULL);
        /* Windows come whole: 105 each. */
        if (!worker->result && quality.total != (int64_t)quality.windows * 105)
            worker->result = -1;
        if (!worker->result && store_maintain(worker->store, NULL, NULL) < 0)
            worker->result = -2;
    }
    return NULL;
}

static void serves_many_threads(void **state)
{
    struct store *store = ((struct fixture *)*state)->store;
    struct worker workers[WORKERS + 2] = {0};
    pthread_t threads[WORKERS + 2];
    for (unsigned i = 0; i < WORKERS + 2; i++) {
        workers[i] = (struct worker){.store = store, .number = i};
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < WORKERS ? write_many : read_many, &workers[i]),
            0);
    }
    for (unsigned i = 0; i < WORKERS + 2; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < WORKERS + 2; i++)
        assert_int_equal(workers[i].result, 0);
    struct store_selection selection = everything();
    struct store_quality quality;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    assert_int_equal(store_merge(store, &selection, NULL, &profile, &quality, NULL), 0);
    assert_int_equal(quality.windows, WORKERS * ((BATCHES + 1) / 2));
    assert_int_equal(quality.total, (int64_t)quality.windows * 105);
}

static int open_url(const char *url, const char *engine)
{
    struct store_options options = {.now = test_clock};
    struct store *store = NULL;
    struct error error = {0};
    int r = store_open(url, &options, &store, &error);
    assert_true(!r == !error.text[0]);
    if (!r)
        assert_string_equal(store_engine(store), engine);
    store_close(store);
    return r;
}

static void opens_by_url(void **state)
{
    const char *folder = ((struct fixture *)*state)->folder;
    char url[128];
    static const char *const files[] = {"%s/a", "file:%s/b", "file://%s/c", "file:%s/a"};
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        snprintf(url, sizeof(url), files[i], folder);
        assert_int_equal(open_url(url, "embedded"), 0);
        snprintf(url, sizeof(url), "%s/%c/lock", folder, "abca"[i]);
        assert_int_equal(access(url, F_OK), 0);
    }
    assert_int_equal(open_url("memory:", "memory"), 0);
    assert_int_equal(open_url("memory:x", NULL), -EINVAL);
    assert_int_equal(open_url("file:", NULL), -EINVAL);
    assert_int_equal(open_url("", NULL), -EINVAL);
    assert_int_equal(open_url("postgres://host/assay", NULL), -ENOTSUP);
    snprintf(url, sizeof(url), "file:%s/no/such", folder);
    assert_int_equal(open_url(url, NULL), -ENOENT);
}

/* An engine need not have files, or a way to export them. */
static void does_without_what_an_engine_lacks(void **state)
{
    struct store *store = ((struct fixture *)*state)->store;
    struct store_selection selection = everything();
    struct store_transfer transfer;
    char path[PATH_MAX];
    struct error error;
    assert_int_equal(store_export(store, &selection, NULL, NULL, NULL, &transfer, &error),
                     -ENOTSUP);
    assert_int_equal(store_import(store, NULL, NULL, NULL, &transfer, &error), -ENOTSUP);
    assert_int_equal(store_acknowledge(store, NULL, "x", path, &error), -ENOENT);
    assert_int_equal(store_files(store, NULL, NULL, &error), 0);
    assert_int_equal(store_check(store, NULL, NULL, &error), 0);
    assert_int_equal(store_problems(store, NULL, NULL, &error), 0);
    assert_int_equal(store_writable(store, &error), 0);
    assert_int_equal(store_resume_retention(store, &error), 0);
    assert_int_equal(store_damaged_files(store, &selection), 0);
}

/* Random data and queries; ranges and selectors as users would ask for them, and others. */
static void answers_like_the_one_in_memory(void **state)
{
    struct store *store = ((struct fixture *)*state)->store, *memory = open_memory();
    for (uint64_t seed = 1; seed <= 2; seed++) {
        int64_t from_ns = TODAY_NS - 3 * DAY_NS, to_ns = TODAY_NS + HOUR_NS;
        write_both(store, memory, seed, 10, from_ns, to_ns);
        compare_answers(store, memory, seed, 20, from_ns, to_ns);
    }
    store_close(memory);
}

#define SUITE(test, setup, name)                                                                   \
    {                                                                                              \
#test " (" name ")", test, setup, close_store, NULL                                        \
    }
#define SUITES(setup, name)                                                                        \
    SUITE(gives_back_what_was_written, setup, name),                                               \
        SUITE(reads_nothing_after_it_said_so, setup, name),                                        \
        SUITE(a_repeated_batch_changes_nothing, setup, name),                                      \
        SUITE(lists_series_labels_and_types, setup, name),                                         \
        SUITE(adds_up_time_series, setup, name), SUITE(adds_up_the_rest_of_groups, setup, name),   \
        SUITE(filters_by_frames, setup, name), SUITE(keeps_exemplars, setup, name),                \
        SUITE(refuses_what_can_not_be, setup, name),                                               \
        SUITE(checks_stored_stacks_only, setup, name),                                             \
        SUITE(stops_when_told_or_at_the_limit, setup, name),                                       \
        SUITE(deletes_what_is_selected, setup, name),                                              \
        SUITE(gives_windows_that_can_be_written_again, setup, name),                               \
        SUITE(serves_many_threads, setup, name)

int main(void)
{
    const struct CMUnitTest here[] = {
        SUITES(in_memory, "in memory"),
        SUITES(embedded, "embedded"),
        {"opens_by_url", opens_by_url, in_memory, close_store, NULL},
        {"does_without_what_an_engine_lacks", does_without_what_an_engine_lacks, in_memory,
         close_store, NULL},
    };
    const struct CMUnitTest there[] = {
        SUITES(on_clickhouse, "ClickHouse"),
        SUITE(answers_like_the_one_in_memory, on_clickhouse, "ClickHouse"),
    };
    return getenv("TEST_STORE_URL") ? cmocka_run_group_tests(there, NULL, NULL)
                                    : cmocka_run_group_tests(here, NULL, NULL);
}
