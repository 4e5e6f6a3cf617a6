// SPDX-License-Identifier: Apache-2.0
// Answers put together from parts, one for each service and version with maps: with maps that know
// nothing of what is stored, they are those of the whole; and rollups keep what maps need.

#include "query/links.h"
#include "query/naming/maps.h"
#include "store_pair.h"

static struct symbol_maps *open_maps(void)
{
    struct symbol_maps_options options = {.directory = "maps"};
    struct symbol_maps *maps;
    assert_int_equal(symbol_maps_open(&options, &maps, NULL), 0);
    return maps;
}

static void put(struct symbol_maps *maps, const char *service, const char *version,
                const char *name, const char *text)
{
    struct source source;
    struct error error = {0};
    struct symbol_map_key key = {"acme", service, version, name};
    source_open_memory(&source, "test", text, strlen(text), 0, &error);
    if (symbol_maps_put(maps, &source, &key, NULL, NULL, &error) < 0)
        fail_msg("%s", error.text);
    source_release(&source);
}

static int merge(void *context, const struct store_selection *selection,
                 const struct store_limits *limits, struct profile *profile,
                 struct store_quality *ret_quality, struct error *error)
{
    return store_merge(context, selection, limits, profile, ret_quality, error);
}

static void describe_mapped(struct symbol_maps *maps, struct store *store,
                            const struct store_selection *selection,
                            const struct store_limits *limits, struct buffer *out)
{
    struct error error = {0};
    struct store_quality quality;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    if (query_maps_merge(maps, store, selection, limits, merge, store, &profile, &quality, &error) <
        0)
        fail_msg("%s", error.text);
    assert_int_equal(profile.type_count, 1);
    describe_profile(&profile, out);
    describe_quality(&quality, out);
}

static void compare(struct symbol_maps *maps, struct store *store, uint64_t seed, unsigned rounds)
{
    static const char *const by[] = {"version", "service_name"};
    for (unsigned i = 0; i < rounds; i++) {
        const char *text = selectors[sample_random(&seed) % ARRAY_LENGTH(selectors)];
        _cleanup_selector_ struct selector selector = {0};
        _cleanup_buffer_ struct buffer whole = {0}, parts = {0};
        assert_int_equal(selector_parse(text, strlen(text), &selector, NULL), 0);
        struct store_selection selection = {
            .tenant = "acme",
            .type = CPU,
            .selector = &selector,
            .from_ns = TODAY_NS - (1 + sample_random(&seed) % 3) * DAY_NS,
            .to_ns = TODAY_NS + (sample_random(&seed) % 12) * HOUR_NS};
        struct store_limits limits = {.raw_only = sample_random(&seed) % 2};
        describe_merge(store, &selection, &limits, &whole);
        describe_mapped(maps, store, &selection, &limits, &parts);
        assert_string_equal(buffer_text(&parts), buffer_text(&whole));

        struct store_quality one = {0}, other = {0};
        struct store_timeseries_query query = {
            .step_ns = 6 * HOUR_NS,
            .group_by = by,
            .group_count = sample_random(&seed) % 3,
            .function = &(struct store_function){.name = "function4"},
            .count = sample_random(&seed) % 2 ? STORE_CUMULATIVE : STORE_FLAT};
        whole.length = parts.length = 0;
        assert_int_equal(store_timeseries(store, &selection, &query, &limits, describe_points,
                                          &whole, &one, NULL),
                         0);
        assert_int_equal(query_maps_timeseries(maps, NULL, store, &selection, &query, &limits,
                                               describe_points, &parts, &other, NULL),
                         0);
        describe_quality(&one, &whole);
        describe_quality(&other, &parts);
        assert_string_equal(buffer_text(&parts), buffer_text(&whole));

        const struct store_function fourth = {.name = "function4"},
                                    *function = sample_random(&seed) % 2 ? &fourth : NULL;
        whole.length = parts.length = 0;
        assert_int_equal(
            store_exemplars(store, &selection, function, &limits, describe_exemplar, &whole, NULL),
            0);
        assert_int_equal(query_maps_exemplars(maps, NULL, store, &selection,
                                              function ? function->name : NULL, &limits,
                                              describe_exemplar, &parts, NULL),
                         0);
        sort_lines(&whole);
        sort_lines(&parts);
        assert_string_equal(buffer_text(&parts), buffer_text(&whole));
    }
}

static void test_parts_add_up(void **state)
{
    (void)state;
    struct store *embedded = open_embedded(), *memory = open_memory();
    struct symbol_maps *maps = open_maps();
    write_both(embedded, memory, 7, 12, TODAY_NS - 3 * DAY_NS, TODAY_NS + 11 * HOUR_NS);
    maintain(embedded);
    compare(maps, embedded, 1, 3); /* without any */
    static const char nothing[] = "x.Y -> nobody:\n";
    put(maps, "service0", "v0", "", nothing);
    put(maps, "service1", "v1", "", nothing);
    compare(maps, embedded, 2, 8);
    put(maps, "service1", "v0", "", nothing);
    put(maps, "service1", "", "", nothing);
    put(maps, "service2", "v9", "", nothing); /* nothing is stored of that */
    put(maps, "elsewhere", "v0", "", nothing);
    compare(maps, embedded, 3, 8);
    compare(maps, memory, 4, 8);
    symbol_maps_close(maps);
    store_close(embedded);
    store_close(memory);
}

/* A span's samples, from files and services one after the other: each has its own tables. */
static void test_links(void **state)
{
    (void)state;
    struct store *stores[] = {open_embedded(), open_memory()};
    struct buffer texts[2] = {{0}, {0}};
    write_both(stores[0], stores[1], 9, 16, TODAY_NS - 3 * DAY_NS, TODAY_NS + 11 * HOUR_NS);
    for (int i = 0; i < 2; i++) {
        _cleanup_query_links_ struct query_links links = {0};
        _cleanup_profile_ struct profile profile;
        struct store_quality quality = {0};
        struct error error = {0};
        struct store_selection selection = {.tenant = "acme",
                                            .type = CPU,
                                            .from_ns = TODAY_NS - 3 * DAY_NS,
                                            .to_ns = TODAY_NS + DAY_NS};
        profile_init(&profile, PROFILE_ALL);
        assert_int_equal(query_links_add(&links, QUERY_SPAN, "0200000000000000", &error), 0);
        assert_int_equal(
            query_merge_links(stores[i], &selection, NULL, &links, &profile, &quality, &error), 0);
        assert_true(quality.rows > 30);
        describe_profile(&profile, &texts[i]);
        store_close(stores[i]);
    }
    assert_string_equal(buffer_text(&texts[0]), buffer_text(&texts[1]));
    buffer_release(&texts[0]);
    buffer_release(&texts[1]);
}

/* Of one function in each of two versions, a day ago. */
static void write_function(struct store *store)
{
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    uint32_t function = profile_function(
        &profile, &(struct profile_function){.name = profile_cstring(&profile, "p"),
                                             .file = profile_cstring(&profile, "/srv/app.js"),
                                             .start_line = 1});
    uint32_t frame = profile_frame(
        &profile,
        &(struct profile_frame){.function = function, .line = 1, .column = 11, .kind = FRAME_V8JS});
    struct store_row row = {.node = profile_child(&profile, 0, frame), .value = 5};
    struct store_exemplar exemplar = {.node = row.node, .value = 5, .link = {.span_id = {3}}};
    struct labels labels[2] = {{0}, {0}};
    struct store_profile windows[2];
    for (int i = 0; i < 2; i++) {
        labels_set(&labels[i], "service_name", "shop");
        labels_set(&labels[i], "version", i ? "2" : "1");
        windows[i] = (struct store_profile){.labels = &labels[i],
                                            .type = CPU,
                                            .time_ns = TODAY_NS - 30 * HOUR_NS,
                                            .duration_ns = 10 * SECOND_NS,
                                            .profile = &profile,
                                            .rows = &row,
                                            .row_count = 1,
                                            .exemplars = &exemplar,
                                            .exemplar_count = 1};
    }
    struct store_batch batch = {.tenant = "acme", .profiles = windows, .count = 2};
    assert_int_equal(store_write(store, &batch, NULL), 0);
    labels_release(&labels[0]);
    labels_release(&labels[1]);
}

static void test_rollups(void **state)
{
    (void)state;
    struct store *store = open_embedded();
    struct symbol_maps *maps = open_maps();
    struct store_quality quality = {0};
    struct error error = {0};
    _cleanup_buffer_ struct buffer text = {0};
    write_function(store);
    maintain(store);
    put(maps, "shop", "1", "app.js",
        "{\"version\":3,\"sources\":[\"a.ts\"],\"names\":[\"mixBits\"],\"mappings\":\"SAAAA\"}");
    struct store_selection selection = {
        .tenant = "acme", .type = CPU, .from_ns = TODAY_NS - 2 * DAY_NS, .to_ns = TODAY_NS};
    struct store_limits limits = {0};
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, 0); /* without lines, as pictures are asked for */
    assert_int_equal(query_maps_merge(maps, store, &selection, &limits, merge, store, &profile,
                                      &quality, &error),
                     0);
    assert_int_equal(quality.tiers, 1 << STORE_DAY);
    assert_int_equal(quality.total, 10);
    for (uint32_t i = 1; i < profile.frame_count; i++)
        buffer_printf(&text, "%s:%u ",
                      profile_text(&profile, profile.functions[profile.frames[i].function].name),
                      profile.frames[i].line);
    assert_true(!strcmp(buffer_text(&text), "p:0 mixBits:0 ") ||
                !strcmp(buffer_text(&text), "mixBits:0 p:0 "));
    /* Samples of spans have the names, too, and are found by them. */
    text.length = 0;
    assert_int_equal(query_maps_exemplars(maps, NULL, store, &selection, "mixBits", &limits,
                                          describe_exemplar, &text, &error),
                     0);
    assert_string_equal(buffer_text(&text),
                        "{service_name=\"shop\",version=\"1\"};mixBits:1:1:+0 5 0 0 3\n");
    /* What doesn't fit is said. */
    _cleanup_profile_ struct profile small;
    profile_init(&small, 0);
    limits.memory_bytes = 1;
    assert_int_equal(
        query_maps_merge(maps, store, &selection, &limits, merge, store, &small, &quality, &error),
        -E2BIG);
    symbol_maps_close(maps);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_parts_add_up, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_links, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_rollups, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
