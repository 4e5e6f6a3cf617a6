// SPDX-License-Identifier: Apache-2.0
// Names from maps, as frames of different origin get them: V8's own names of code, CPU profiles,
// profiles without columns, JVMs; and what has to stay as it is.

#include "profile/naming.h"
#include "query/naming/maps.h"
#include "unit.h"

/* function p(e){}var w=e=>{} in line 1; line 3 is all of one line, line 4 of two. */
static const char map_text[] =
    "{\"version\":3,\"sources\":[\"src/a.ts\"],\"names\":[\"mixBits\",\"bits\",\"trips\","
    "\"count\"],\"mappings\":\"SAAAA,EAAAC,QAGAC,EAAAC;;AAGA,IAAA;AAAA,IACA\"}";
static const char jvm_text[] = "com.example.Cart -> a.b:\n"
                               "    1:1:int com.example.Price.round(int):88:88 -> a\n"
                               "    1:1:void checkout():20 -> a\n";

static struct query_maps *open_names(struct symbol_maps **ret_maps)
{
    struct symbol_maps_options options = {.directory = "maps"};
    struct error error = {0};
    const char *const texts[] = {map_text, jvm_text};
    assert_int_equal(symbol_maps_open(&options, ret_maps, &error), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        struct source source;
        struct symbol_map_key key = {"one", "shop", "1", i ? "" : "app.js"};
        source_open_memory(&source, "test", texts[i], strlen(texts[i]), 0, &error);
        if (symbol_maps_put(*ret_maps, &source, &key, NULL, NULL, &error) < 0)
            fail_msg("%s", error.text);
        source_release(&source);
    }
    return query_maps_new(*ret_maps, "one", "shop", "1");
}

struct given {
    const char *name, *system_name, *file;
    uint32_t start_line, line, column;
    enum frame_kind kind;
    const char *wanted; /* "name file:line" of each frame, the outermost first */
};

static uint32_t add_frame(struct profile *profile, const struct given *given)
{
    struct profile_function function = {
        .name = profile_cstring(profile, given->name),
        .system_name = given->system_name ? profile_cstring(profile, given->system_name) : 0,
        .file = given->file ? profile_cstring(profile, given->file) : 0,
        .start_line = given->start_line};
    struct profile_frame frame = {.function = profile_function(profile, &function),
                                  .line = given->line,
                                  .column = given->column & 0xffffff,
                                  .kind = given->kind & 63};
    return profile_frame(profile, &frame);
}

static void put_stack(struct buffer *text, const struct profile *profile, uint32_t node)
{
    const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
    const struct profile_function *function = &profile->functions[frame->function];
    buffer_printf(text, "%s %s:%u%s", profile_text(profile, function->name),
                  profile_text(profile, function->file), frame->line,
                  frame->inlined ? " inlined" : "");
}

static const struct given frames[] = {
    /* As the agent names compiled code: the place is in V8's own name of it. */
    {"p", "JS:*p /srv/app.js:1:11", "/srv/app.js", 1, 0, 0, FRAME_V8JS, "mixBits src/a.ts:1"},
    {"w", "LazyCompile:~w file:///srv/app.js:1:22", "file:///srv/app.js", 1, 0, 0, FRAME_V8JS,
     "trips src/a.ts:4"},
    {"(anonymous)", "JS:~ /srv/app.js:1:22", "/srv/app.js", 1, 0, 0, FRAME_V8JS,
     "(anonymous) a.ts:4 src/a.ts:4"},
    /* As .cpuprofile has it, and what is made of one without its start line. */
    {"p", NULL, "https://x.example/app.js?v=2", 1, 1, 11, FRAME_V8JS, "mixBits src/a.ts:1"},
    {"w", NULL, "app.js", 0, 1, 22, FRAME_UNKNOWN, "trips src/a.ts:4"},
    /* A place in the middle of a function isn't its start: no name comes of it. */
    {"p", NULL, "app.js", 9, 1, 22, FRAME_V8JS, "p src/a.ts:4"},
    /* No column: only where the line is of one line. */
    {"kept", NULL, "app.js", 3, 3, 0, FRAME_UNKNOWN, "kept src/a.ts:7"},
    {"kept", NULL, "app.js", 4, 4, 0, FRAME_UNKNOWN, "kept app.js:4"},
    {"t", NULL, "app.js", 0, 0, 0, FRAME_V8JS, "t app.js:0"},
    /* Not this file; and none. */
    {"p", NULL, "other.js", 1, 1, 11, FRAME_V8JS, "p other.js:1"},
    {"(root)", NULL, NULL, 0, 0, 0, FRAME_V8JS, "(root) :0"},
    {"a.b.a", NULL, NULL, 0, 1, 0, FRAME_JVM,
     "com.example.Cart.checkout :20;com.example.Price.round :88 inlined"},
    {"a.c.a", NULL, NULL, 0, 1, 0, FRAME_JVM, "a.c.a :1"},
    /* Other languages may have such names. */
    {"a.b.a", NULL, "x.go", 0, 1, 0, FRAME_GO, "a.b.a x.go:1"},
    {"a.b.a", NULL, NULL, 0, 1, 0, FRAME_NATIVE, "a.b.a :1"},
    {"p", NULL, "app.js", 1, 1, 11, FRAME_CPYTHON, "p app.js:1"},
};

static void test_frames(void **state)
{
    (void)state;
    struct symbol_maps *maps;
    struct query_maps *names = open_names(&maps);
    struct error error = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(frames); i++) {
        _cleanup_profile_ struct profile from, to;
        _cleanup_buffer_ struct buffer text = {0};
        profile_init(&from, PROFILE_ALL);
        profile_init(&to, PROFILE_ALL);
        uint32_t frame = add_frame(&from, &frames[i]);
        profile_type(&from, profile_cstring(&from, "cpu"), profile_cstring(&from, "count"));
        size_t row = profile_sample(&from, profile_child(&from, 0, frame), 0, 0, 0);
        profile_add_value(&from, row, 0, 7);
        assert_int_equal(query_maps_rename(names, &from, &to, &error), 0);
        assert_int_equal(to.samples.count, 1);
        assert_int_equal(to.samples.values[0][0], 7);
        for (uint32_t node = 1; node < to.node_count; node++) {
            assert_int_equal(to.nodes[node].parent, node - 1);
            buffer_add_text(&text, node > 1 ? ";" : "");
            put_stack(&text, &to, node);
        }
        assert_string_equal(buffer_text(&text), frames[i].wanted);
        /* Only what is used is there, and what it was called stays known. */
        assert_int_equal(to.function_count, to.node_count);
        if (strncmp(frames[i].wanted, frames[i].name, strlen(frames[i].name)) != 0)
            assert_string_equal(profile_text(&to, to.functions[1].system_name),
                                frames[i].system_name ? frames[i].system_name : frames[i].name);
    }
    query_maps_free(names);
    symbol_maps_close(maps);
}

static void test_is(void **state)
{
    (void)state;
    struct symbol_maps *maps;
    struct query_maps *names = open_names(&maps);
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    uint32_t renamed = add_frame(&profile, &frames[0]), kept = add_frame(&profile, &frames[9]);
    uint32_t inlined = add_frame(&profile, &frames[11]);
    assert_true(query_maps_is(names, &profile, renamed, "mixBits"));
    assert_false(query_maps_is(names, &profile, renamed, "p"));
    assert_true(query_maps_is(names, &profile, kept, "p"));
    assert_true(query_maps_is(names, &profile, inlined, "com.example.Price.round"));
    assert_true(query_maps_is(names, &profile, inlined, "com.example.Cart.checkout"));
    assert_false(query_maps_is(names, &profile, inlined, "a.b.a"));
    assert_false(query_maps_is(names, &profile, 0, ""));
    query_maps_free(names);
    symbol_maps_close(maps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_frames, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_is, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
