// SPDX-License-Identifier: Apache-2.0
// What is made of what the store finds: functions with their callers, samples of spans, how good an
// answer is, and which type a short name stands for.

#include "query/links.h"
#include "query/quality.h"
#include "query/query.h"
#include "query/sandwich.h"
#include "sample_profile.h"

#define SECOND 1000000000ll
#define START (1794700000 * SECOND)
#define CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

static int64_t sum(const struct profile *profile)
{
    int64_t total = 0;
    for (size_t i = 0; i < profile->samples.count; i++)
        total += profile->samples.values[0][i];
    return total;
}

/* "a;b 3" lines of a profile in the order of its rows. */
static void to_text(const struct profile *profile, struct buffer *out)
{
    for (size_t i = 0; i < profile->samples.count; i++) {
        const char *names[64];
        size_t depth = 0;
        for (uint32_t node = profile->samples.node[i]; node; node = profile->nodes[node].parent) {
            const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
            names[depth++] = profile_text(profile, profile->functions[frame->function].name);
        }
        while (depth--)
            buffer_printf(out, "%s%s", names[depth], depth ? ";" : "");
        buffer_printf(out, " %lld\n", (long long)profile->samples.values[0][i]);
    }
}

static void expect_text(const struct profile *profile, const char *wanted)
{
    struct buffer text = {0};
    to_text(profile, &text);
    assert_string_equal(buffer_text(&text), wanted);
    buffer_release(&text);
}

static void around_a_function(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    add_stacks(&profile, "main;run;f;leaf 5", "main;f 2", "main;other 7", "f;g;f;leaf 4");
    _cleanup_naming_ struct naming naming = {0};
    naming_init(&naming, &profile);
    struct sandwich sandwich;
    assert_true(sandwich_init(&sandwich, &profile, &naming, "f"));
    assert_int_equal(sandwich.total, 18);
    assert_int_equal(sandwich.cumulative, 11);
    assert_int_equal(sandwich.flat, 2);
    /* The outermost f counts, and what is above and below it adds up to the same. */
    expect_text(&sandwich.above, "f;run;main 5\nf;main 2\nf 4\n");
    expect_text(&sandwich.below, "f;leaf 5\nf 2\nf;g;f;leaf 4\n");
    assert_int_equal(sum(&sandwich.above), sandwich.cumulative);
    assert_int_equal(sum(&sandwich.below), sandwich.cumulative);
    assert_int_equal(sandwich.callers.count, 4); /* run, main, g, and nobody */
    sandwich_release(&sandwich);
    assert_false(sandwich_init(&sandwich, &profile, &naming, "F"));
    sandwich_release(&sandwich);
}

/* ---- a store with a few windows ---- */

static void write_window(struct store *store, const char *type, int64_t time_ns, const char *host,
                         const char *const *lines, size_t count)
{
    _cleanup_profile_ struct profile profile;
    struct labels labels = {0};
    struct store_row rows[8];
    struct store_exemplar exemplars[8];
    profile_init(&profile, PROFILE_ALL);
    for (size_t i = 0; i < count; i++)
        add_stack(&profile, lines[i]);
    for (size_t i = 0; i < profile.samples.count; i++) {
        rows[i] = (struct store_row){profile.samples.node[i], profile.samples.values[0][i]};
        exemplars[i] = (struct store_exemplar){
            .node = rows[i].node,
            .value = rows[i].value,
            .time_ns = time_ns,
            .link = {.trace_id = {1}, .span_id = {0, 0, 0, 0, 0, 0, 0, (uint8_t)(i + 1)}}};
    }
    labels_set(&labels, "service_name", "shop");
    labels_set(&labels, "host", host);
    struct store_profile window = {.labels = &labels,
                                   .type = type,
                                   .time_ns = time_ns,
                                   .duration_ns = 10 * SECOND,
                                   .profile = &profile,
                                   .rows = rows,
                                   .row_count = profile.samples.count,
                                   .exemplars = exemplars,
                                   .exemplar_count = profile.samples.count};
    struct store_batch batch = {.tenant = "t", .profiles = &window, .count = 1};
    struct error error = {0};
    if (store_write(store, &batch, &error))
        fail_msg("%s", error.text);
    labels_release(&labels);
}

static struct store *open_store(void)
{
    static const struct store_class keep = {.name = "default"};
    struct store_options options = {.classes = &keep, .class_count = 1};
    struct store *store = NULL;
    struct error error = {0};
    assert_int_equal(store_open_memory(&options, &store, &error), 0);
    const char *const first[] = {"main;a 3", "main;b 4"}, *const second[] = {"main;a 5"};
    write_window(store, CPU, START, "h1", first, 2);
    write_window(store, CPU, START + 60 * SECOND, "h2", second, 1);
    return store;
}

static const struct store_selection all = {
    .tenant = "t", .type = CPU, .from_ns = START, .to_ns = START + 100 * SECOND};

static void samples_of_spans(void **state)
{
    (void)state;
    struct store *store = open_store();
    struct error error = {0};
    static const struct {
        enum query_link_kind kind;
        const char *id, *wanted;
    } cases[] = {{QUERY_SPAN, "0000000000000001", "main;a 8\n"},
                 {QUERY_SPAN, "0000000000000002", "main;b 4\n"},
                 {QUERY_PROFILE, "0000000000000002", "main;b 4\n"},
                 {QUERY_TRACE, "01000000000000000000000000000000", "main;a 8\nmain;b 4\n"},
                 {QUERY_TRACE, "02000000000000000000000000000000", ""}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _cleanup_query_links_ struct query_links links = {0};
        _cleanup_profile_ struct profile profile;
        struct store_quality quality = {0};
        profile_init(&profile, 0);
        assert_false(query_links_any(&links));
        assert_int_equal(query_links_add(&links, cases[i].kind, cases[i].id, &error), 0);
        assert_true(query_links_any(&links));
        assert_int_equal(query_merge_links(store, &all, NULL, &links, &profile, &quality, &error),
                         0);
        expect_text(&profile, cases[i].wanted);
        assert_int_equal(quality.total, sum(&profile));
    }
    store_close(store);
    struct query_links links = {0};
    static const char *const bad[] = {"", "1", "000000000000000g", "00000000000000001"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        for (int kind = 0; kind < QUERY_LINK_KINDS; kind++)
            assert_int_equal(query_links_add(&links, (enum query_link_kind)kind, bad[i], &error),
                             -EINVAL);
    int r = 0;
    for (int i = 0; i <= QUERY_LINKS_MAX; i++)
        r = query_links_add(&links, QUERY_SPAN, "0000000000000001", &error);
    assert_int_equal(r, -E2BIG);
    query_links_release(&links);
}

static void ids_of_profiles(void **state)
{
    (void)state;
    struct store *store = open_store();
    struct labels h1 = {0}, h2 = {0};
    labels_set(&h1, "service_name", "shop");
    labels_copy(&h2, &h1);
    labels_set(&h1, "host", "h1");
    labels_set(&h2, "host", "h2");
    static const struct {
        int64_t time_ns;
        int host;
        const char *span, *wanted;
    } cases[] = {{START, 1, NULL, "main;a 3\nmain;b 4\n"},
                 {START + 60 * SECOND, 2, NULL, "main;a 5\n"},
                 {START, 1, "0000000000000002", "main;b 4\n"},
                 {START, 2, NULL, ""},
                 {START + 1, 1, NULL, ""},
                 {-1, 1, NULL, ""},
                 {INT64_MAX, 1, NULL, ""},
                 {START + 200 * SECOND, 1, NULL, ""}};
    struct error error = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _cleanup_query_links_ struct query_links links = {0};
        _cleanup_profile_ struct profile profile;
        struct store_quality quality = {0};
        char id[PROFILE_ID_BYTES];
        profile_init(&profile, 0);
        query_profile_id(cases[i].host == 1 ? &h1 : &h2, cases[i].time_ns, id);
        assert_int_equal(strlen(id), 36);
        for (int twice = 0; twice < 2; twice++) /* each window once all the same */
            assert_int_equal(query_links_add(&links, QUERY_PROFILE, id, &error), 0);
        if (cases[i].span)
            assert_int_equal(query_links_add(&links, QUERY_SPAN, cases[i].span, &error), 0);
        assert_int_equal(query_merge_links(store, &all, NULL, &links, &profile, &quality, &error),
                         0);
        expect_text(&profile, cases[i].wanted);
        assert_int_equal(quality.total, sum(&profile));
    }
    labels_release(&h1);
    labels_release(&h2);
    store_close(store);
}

static void how_good(void **state)
{
    (void)state;
    struct store *store = open_store();
    struct error error = {0};
    struct query_quality quality = {.found = {.windows = 2, .covered_ns = 20 * SECOND}};
    int64_t later = START + 1000 * SECOND;
    assert_int_equal(query_quality_measure(store, &all, NULL, later, &quality, &error), 0);
    assert_int_equal(quality.hosts, 2);
    assert_true(quality.covered > 0.199 && quality.covered < 0.201);
    assert_false(quality.has_dropped);
    const char *const lost[] = {"x 6"};
    write_window(store, "agent:lost:count::", START, "h1", lost, 1);
    assert_int_equal(query_quality_measure(store, &all, NULL, later, &quality, &error), 0);
    assert_true(quality.has_dropped);
    assert_int_equal(quality.dropped, 6);
    /* Nothing there: nothing is known of coverage. */
    struct store_selection before = all;
    before.from_ns -= 1000 * SECOND;
    before.to_ns = START;
    quality = (struct query_quality){0};
    assert_int_equal(query_quality_measure(store, &before, NULL, later, &quality, &error), 0);
    assert_true(quality.covered < 0 && !quality.hosts && !quality.has_dropped);
    store_close(store);
}

static void ambiguous_types(void **state)
{
    (void)state;
    struct store *store = open_store();
    struct error error = {0};
    struct query query = {0};
    struct store_selection asked = {.tenant = "t", .from_ns = START, .to_ns = START + SECOND};
    assert_int_equal(query_parse("cpu{host=\"h1\"}", &query, &error), 0);
    assert_int_equal(query_resolve(&query, store, &asked, &error), 0);
    assert_string_equal(query.type, CPU);
    query_release(&query);
    const char *const lines[] = {"x 1"};
    write_window(store, "one:widgets:count::", START, "h1", lines, 1);
    write_window(store, "two:widgets:count::", START, "h1", lines, 1);
    assert_int_equal(query_parse("widgets", &query, &error), 0);
    assert_int_equal(query_resolve(&query, store, &asked, &error), -EINVAL);
    assert_says(&error, "matches 2 types here");
    assert_says(&error, "one:widgets:count::, two:widgets:count::");
    query_release(&query);
    /* A better one settles it, whatever else there is. */
    write_window(store, "wall:cpu:nanoseconds::", START, "h1", lines, 1);
    assert_int_equal(query_parse("cpu", &query, &error), 0);
    assert_int_equal(query_resolve(&query, store, &asked, &error), 0);
    assert_string_equal(query.type, CPU);
    query_release(&query);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(around_a_function), cmocka_unit_test(samples_of_spans),
        cmocka_unit_test(ids_of_profiles),   cmocka_unit_test(how_good),
        cmocka_unit_test(ambiguous_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
