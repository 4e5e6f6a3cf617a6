// SPDX-License-Identifier: Apache-2.0
// Flight recordings: the types, stacks, labels and times of what fixtures/jfr/make.py writes, and
// recordings that are cut off, flipped or lie about their types.

#include "unit.h"

#include "base/file.h"
#include "format/format.h"
#include "format/jfr/labels.h"
#include "io/wire.h"
#include "profile/profile.h"

static void load(const char *name, struct buffer *ret_content)
{
    char path[512];
    struct error error = {0};
    snprintf(path, sizeof(path), "%s/jfr/%s.jfr", getenv("FIXTURES"), name);
    memset(ret_content, 0, sizeof(*ret_content));
    if (file_read(path, 1 << 20, ret_content, &error) < 0)
        fail_msg("%s", error.text);
}

/* From a copy of exact size, so that a sanitizer sees a read past its end. */
static int read_bytes(const char *data, size_t length, struct profile *profile,
                      enum profile_detail detail, struct error *error)
{
    struct read_options options = {.format = format_by_name("jfr")};
    char *copy = memory_alloc(length + !length);
    memcpy(copy, data, length);
    profile_init(profile, detail);
    int r = format_read_memory("test", copy, length, &options, profile, NULL, error);
    free(copy);
    return r;
}

static void read_fixture(const char *name, enum profile_detail detail, struct profile *profile)
{
    _cleanup_buffer_ struct buffer content;
    struct error error = {0};
    load(name, &content);
    if (read_bytes(content.data, content.length, profile, detail, &error) < 0)
        fail_msg("%s", error.text);
}

#define NO_TIMES (PROFILE_ALL & ~PROFILE_TIMES)

static int64_t total(const struct profile *profile, const char *type)
{
    unsigned index = profile_find_type(profile, type);
    int64_t sum = 0;
    if (index == PROFILE_TYPES_MAX)
        fail_msg("there is no type %s", type);
    for (size_t i = 0; i < profile->samples.count; i++)
        sum += profile->samples.values[index][i];
    return sum;
}

struct expected_total {
    const char *type;
    int64_t value;
};

static void assert_totals(const struct profile *profile, const struct expected_total *expected,
                          size_t count)
{
    assert_int_equal(profile->type_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(profile_find_type(profile, expected[i].type), i);
        assert_int_equal(total(profile, expected[i].type), expected[i].value);
    }
}

/* "main:10 run:20", outermost first, with what is special about a frame in front of it. */
static void describe_stack(const struct profile *profile, size_t row, struct buffer *out)
{
    uint32_t path[16];
    size_t depth = 0;
    for (uint32_t node = profile->samples.node[row]; node; node = profile->nodes[node].parent) {
        assert_true(depth < 16);
        path[depth++] = profile->nodes[node].frame;
    }
    out->length = 0;
    while (depth--) {
        const struct profile_frame *frame = &profile->frames[path[depth]];
        static const char marks[FRAME_KINDS] = {
            [FRAME_UNKNOWN] = '?', [FRAME_NATIVE] = 'n', [FRAME_KERNEL] = 'k', [FRAME_JVM] = 'j'};
        buffer_printf(out, "%s%c%s%s:%u", out->length ? " " : "", marks[frame->kind],
                      frame->inlined ? "i " : " ",
                      profile_text(profile, profile->functions[frame->function].name), frame->line);
    }
}

static const char *label_of(const struct profile *profile, size_t row, const char *key)
{
    size_t count;
    const struct profile_label *labels =
        profile_labels(profile, profile->samples.labels[row], &count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(profile_text(profile, labels[i].key), key))
            return profile_text(profile, labels[i].text);
    return NULL;
}

/* The only row with such a thread and stack that has a value of that type. */
static size_t find_row(const struct profile *profile, const char *type, const char *thread,
                       const char *stack)
{
    unsigned index = profile_find_type(profile, type);
    size_t found = SIZE_MAX;
    _cleanup_buffer_ struct buffer text = {0};
    assert_int_not_equal(index, PROFILE_TYPES_MAX);
    for (size_t i = 0; i < profile->samples.count; i++) {
        const char *name = label_of(profile, i, "thread");
        describe_stack(profile, i, &text);
        if (!profile->samples.values[index][i] || !name || strcmp(name, thread) ||
            strcmp(buffer_text(&text), stack))
            continue;
        assert_int_equal(found, SIZE_MAX);
        found = i;
    }
    if (found == SIZE_MAX)
        fail_msg("no %s sample of %s at %s", type, thread, stack);
    return found;
}

#define MAIN "com.example.Main."
#define STACK_1 "j " MAIN "main:10 j " MAIN "run:20 ji " MAIN "work:30"
#define STACK_2 "j " MAIN "main:11 j " MAIN "run:21"
#define STACK_3 "j " MAIN "main:12 j java.lang.Object.wait0:0 n libc_start:0 k do_syscall_64:0"

static const struct expected_total jdk_totals[] = {
    {"samples/count", 4},
    {"cpu/nanoseconds", 4 * 15000000},
    {"alloc_in_new_tlab_objects/count", 2},
    {"alloc_in_new_tlab_bytes/bytes", 2 * 65536},
    {"alloc_sample_objects/count", 1},
    {"alloc_sample_bytes/bytes", 123456},
    {"alloc_outside_tlab_objects/count", 1},
    {"alloc_outside_tlab_bytes/bytes", 3000000},
    {"lock_contentions/count", 2},
    {"lock_delay/nanoseconds", 1500000 + 500000}, /* two ticks a nanosecond, rounded down */
    {"park_contentions/count", 1},
    {"park_delay/nanoseconds", 2500000},
    {"native_samples/count", 1},
};

static void check_jdk(const char *name)
{
    _cleanup_profile_ struct profile profile;
    read_fixture(name, NO_TIMES, &profile);
    assert_totals(&profile, jdk_totals, sizeof(jdk_totals) / sizeof(*jdk_totals));
    assert_string_equal(profile_text(&profile, profile.default_type), "cpu");
    assert_string_equal(profile_text(&profile, profile.period_type.type), "cpu");
    assert_int_equal(profile.period, 15000000);
    assert_int_equal(profile.time_ns, 1700000000000000000);
    assert_int_equal(profile.duration_ns, 5000000000);
    assert_int_equal(profile.source_count, 1);

    size_t row = find_row(&profile, "samples", "main", STACK_1);
    assert_int_equal(profile.samples.values[0][row], 2);
    find_row(&profile, "samples", "h\xc3\xb6lder \xe2\x9c\x93 \xf0\x9f\x94\xa5", STACK_2);
    find_row(&profile, "samples", "from the pool",
             "? [truncated]:0 j " MAIN "run:22 j " MAIN "work:31");
    find_row(&profile, "native_samples", "worker-os", STACK_3);
    find_row(&profile, "park_delay", "worker-os", "j [unknown]:1");

    row = find_row(&profile, "alloc_in_new_tlab_bytes", "main", STACK_2);
    assert_string_equal(label_of(&profile, row, "class"), "byte[]");
    row = find_row(&profile, "alloc_outside_tlab_bytes", "main", STACK_2);
    assert_string_equal(label_of(&profile, row, "class"), "java.lang.String[][]");
    row = find_row(&profile, "alloc_sample_bytes", "caf\xc3\xa9", "");
    assert_string_equal(label_of(&profile, row, "class"), "java.lang.Object");
    assert_null(label_of(&profile, row, "state"));
}

static void test_jdk(void **state)
{
    (void)state;
    check_jdk("jdk");
}

static void test_fixed_width(void **state)
{
    (void)state;
    check_jdk("fixed-width");
}

static void test_unfinished(void **state)
{
    (void)state;
    check_jdk("unfinished");
    _cleanup_profile_ struct profile profile;
    read_fixture("unfinished", NO_TIMES, &profile);
    assert_int_equal(profile.comment_count, 1);
    assert_non_null(strstr(profile_text(&profile, profile.comments[0]), "not finished"));
}

static void test_async(void **state)
{
    static const struct expected_total totals[] = {
        {"samples/count", 4},          {"cpu/nanoseconds", 3 * 5000000 + 1000000},
        {"wall_samples/count", 3 + 4}, {"wall/nanoseconds", 7 * 20000000},
        {"live_objects/count", 1},     {"live_bytes/bytes", 1024},
        {"malloc_objects/count", 2},   {"malloc_bytes/bytes", 4096 + 100},
    };
    (void)state;
    _cleanup_profile_ struct profile profile;
    read_fixture("async", NO_TIMES, &profile);
    assert_totals(&profile, totals, sizeof(totals) / sizeof(*totals));

    size_t row = find_row(&profile, "wall", "main", STACK_1);
    assert_string_equal(label_of(&profile, row, "state"), "STATE_SLEEPING");
    assert_int_equal(profile.samples.values[3][row], 3 * 20000000);

    row = find_row(&profile, "samples", "main", STACK_3);
    assert_string_equal(label_of(&profile, row, "span_name"), "inline");
    const struct profile_link *link = &profile.links[profile.samples.link[row]];
    assert_memory_equal(link->span_id, "\xff\xff\xff\xff\xff\xff\xff\xfe", 8);
}

static void test_links_and_contexts(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    read_fixture("async", NO_TIMES, &profile);
    size_t found = 0, count;
    for (size_t i = 0; i < profile.samples.count; i++) {
        const char *span = label_of(&profile, i, "span_name");
        if (!span || strcmp(span, "GET /"))
            continue;
        found++;
        const struct profile_label *labels =
            profile_labels(&profile, profile.samples.labels[i], &count);
        const struct profile_link *link = &profile.links[profile.samples.link[i]];
        int64_t context = 0;
        for (size_t j = 0; j < count; j++)
            if (!strcmp(profile_text(&profile, labels[j].key), "context_id"))
                context = labels[j].number;
        assert_int_equal(context, 42);
        assert_memory_equal(link->span_id, "\x11\x22\x33\x44\x55\x66\x77\x88", 8);
    }
    assert_int_equal(found, 1);
}

/* map<int64, ...> entries by hand. */
static void put_number_entry(struct buffer *out, uint32_t field, int64_t key, int64_t value)
{
    size_t mark = wire_begin(out, field);
    wire_put_i64(out, 1, key);
    wire_put_i64(out, 2, value);
    wire_end(out, mark);
}

static void put_content_entry(struct buffer *out, uint32_t field, int64_t key, const void *data,
                              size_t length)
{
    size_t mark = wire_begin(out, field);
    wire_put_i64(out, 1, key);
    wire_put_bytes(out, 2, data, length);
    wire_end(out, mark);
}

/* Context 42 is user=ann and thread=mine; what has no text, or none of its own, is left out. */
static void put_snapshot(struct buffer *out)
{
    static const char *const texts[] = {"user", "ann", "thread", "mine", "other"};
    struct buffer context = {0};
    put_number_entry(&context, 1, 1, 2);
    put_number_entry(&context, 1, 3, 4);
    put_number_entry(&context, 1, 5, 99);
    put_number_entry(&context, 1, 98, 1);
    put_content_entry(out, 1, 7, "", 0);
    put_content_entry(out, 1, 42, context.data, context.length);
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        put_content_entry(out, 2, (int64_t)i + 1, texts[i], strlen(texts[i]));
    buffer_release(&context);
}

static void test_labels_of_contexts(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    _cleanup_buffer_ struct buffer snapshot = {0}, many = {0}, context = {0};
    struct error error = {0};
    read_fixture("async", NO_TIMES, &profile);
    int64_t samples = total(&profile, "samples");
    put_snapshot(&snapshot);
    assert_int_equal(jfr_labels_apply(snapshot.data, snapshot.length, &profile, &error), 0);
    assert_int_equal(total(&profile, "samples"), samples);
    size_t found = 0, others = 0;
    for (size_t i = 0; i < profile.samples.count; i++) {
        const char *span = label_of(&profile, i, "span_name"),
                   *user = label_of(&profile, i, "user");
        if (span && !strcmp(span, "GET /")) {
            found++;
            assert_string_equal(user, "ann");
            assert_string_equal(label_of(&profile, i, "thread"), "mine");
            assert_null(label_of(&profile, i, "context_id"));
            assert_null(label_of(&profile, i, "other"));
        } else {
            others++;
            assert_null(user);
        }
    }
    assert_int_equal(found, 1);
    assert_true(others > 1);

    /* Cut anywhere it is refused or read as what is there; nothing else happens. */
    for (size_t length = 0; length < snapshot.length; length++) {
        char *copy = memory_alloc(length + !length);
        memcpy(copy, snapshot.data, length);
        int r = jfr_labels_apply(copy, length, &profile, &error);
        assert_true(r == 0 || r == -EBADMSG);
        free(copy);
    }
    for (int i = 0; i < 65; i++)
        put_number_entry(&context, 1, 1, 2);
    put_content_entry(&many, 1, 42, context.data, context.length);
    assert_int_equal(jfr_labels_apply(many.data, many.length, &profile, &error), -E2BIG);
}

static void test_wall_mode(void **state)
{
    static const struct expected_total totals[] = {
        {"wall_samples/count", 3},
        {"wall/nanoseconds", 3 * 50000000},
    };
    (void)state;
    _cleanup_profile_ struct profile profile;
    read_fixture("wall", NO_TIMES, &profile);
    assert_totals(&profile, totals, sizeof(totals) / sizeof(*totals));
    assert_string_equal(profile_text(&profile, profile.default_type), "wall");
    assert_string_equal(profile_text(&profile, profile.period_type.type), "wall");
}

static void test_counter_mode(void **state)
{
    static const struct expected_total totals[] = {
        {"samples/count", 3},
        {"cache-misses/count", 3000},
    };
    (void)state;
    _cleanup_profile_ struct profile profile;
    read_fixture("cache-misses", NO_TIMES, &profile);
    assert_totals(&profile, totals, sizeof(totals) / sizeof(*totals));
    assert_string_equal(profile_text(&profile, profile.default_type), "cache-misses");
}

/* The second chunk has other types, constants and settings, and adds up with the first. */
static void test_two_chunks(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile both, first, second;
    read_fixture("two-chunks", NO_TIMES, &both);
    read_fixture("jdk", NO_TIMES, &first);
    read_fixture("async", NO_TIMES, &second);
    struct profile *parts[] = {&first, &second};
    for (unsigned type = 0; type < both.type_count; type++) {
        char name[128];
        int64_t sum = 0;
        snprintf(name, sizeof(name), "%s", profile_text(&both, both.types[type].type));
        for (int i = 0; i < 2; i++)
            if (profile_find_type(parts[i], name) != PROFILE_TYPES_MAX)
                sum += total(parts[i], name);
        assert_int_equal(total(&both, name), sum);
    }
    assert_int_equal(both.duration_ns, 10000000000);
    assert_int_equal(both.source_count, 1);
}

static void test_times(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    read_fixture("jdk", PROFILE_ALL, &profile);
    /* A row per event; the chunk began at tick 1000, and there are two in a nanosecond. */
    assert_int_equal(profile.samples.count, 12);
    assert_int_equal(profile.samples.time_ns[0], 1700000000000000000 + 500);
    assert_int_equal(profile.samples.time_ns[1], 1700000000000000000 + 1000);
    assert_int_equal(total(&profile, "samples"), 4);
}

static void test_little_detail(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    read_fixture("async", 0, &profile);
    assert_int_equal(total(&profile, "samples"), 4);
    assert_int_equal(profile_label_set_count(&profile), 1);
    assert_null(profile.samples.link);
    for (uint32_t i = 0; i < profile.frame_count; i++)
        assert_int_equal(profile.frames[i].line, 0);
}

static void test_hostile_types(void **state)
{
    static const struct {
        const char *name, *words;
    } cases[] = {{"bad-self", "nested too deep"}, {"bad-many", "too many fields"}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        _cleanup_buffer_ struct buffer content;
        _cleanup_profile_ struct profile profile;
        struct error error = {0};
        load(cases[i].name, &content);
        assert_true(read_bytes(content.data, content.length, &profile, NO_TIMES, &error) < 0);
        assert_says(&error, cases[i].words);
    }
}

static void change_and_read(const struct buffer *content, size_t at, const char *bytes,
                            size_t length, int expected, const char *words)
{
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    memcpy(content->data + at, bytes, length);
    assert_int_equal(read_bytes(content->data, content->length, &profile, NO_TIMES, &error),
                     expected);
    assert_says(&error, words);
}

static void test_bad_headers(void **state)
{
    static const struct {
        size_t at;
        const char *bytes;
        size_t length;
        int expected;
        const char *words;
    } cases[] = {
        {0, "FLX", 3, -EBADMSG, "No flight recorder chunk at offset 0"},
        {4, "\0\1", 2, -ENOTSUP, "version 1.1"},
        {8, "\0\0\0\1\0\0\0\0", 8, -EBADMSG, "truncated"},
        {8, "\0\0\0\0\0\0\0\7", 8, -EBADMSG, "invalid size"},
        {8, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, -EBADMSG, "invalid size"},
        {56, "\0\0\0\0\0\0\0\0", 8, -EBADMSG, "clock"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        _cleanup_buffer_ struct buffer content;
        load("jdk", &content);
        change_and_read(&content, cases[i].at, cases[i].bytes, cases[i].length, cases[i].expected,
                        cases[i].words);
    }
}

/* What follows a finished chunk must be another one. */
static void test_garbage_between_chunks(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer content;
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    load("jdk", &content);
    char offset[64];
    snprintf(offset, sizeof(offset), "at offset %zu", content.length);
    buffer_add_text(&content, "garbage");
    assert_int_equal(read_bytes(content.data, content.length, &profile, NO_TIMES, &error),
                     -EBADMSG);
    assert_says(&error, offset);
}

static void test_every_cut(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer content;
    load("jdk", &content);
    for (size_t length = 0; length < content.length; length++) {
        _cleanup_profile_ struct profile profile;
        struct error error = {0};
        assert_int_equal(read_bytes(content.data, length, &profile, NO_TIMES, &error), -EBADMSG);
        assert_true(error.text[0]);
    }
    /* An unfinished recording can be read up to any point after its types. */
    _cleanup_buffer_ struct buffer unfinished;
    load("unfinished", &unfinished);
    for (size_t length = 0; length < unfinished.length; length++) {
        _cleanup_profile_ struct profile profile;
        struct error error = {0};
        int r = read_bytes(unfinished.data, length, &profile, NO_TIMES, &error);
        assert_true(r == 0 ? total(&profile, "samples") == 4 : error.text[0]);
    }
}

/* Damage gives an error or other numbers, and under the sanitizers nothing else. */
static void test_every_flip(void **state)
{
    static const char *const names[] = {"async", "fixed-width"};
    (void)state;
    size_t failed = 0, tried = 0;
    for (size_t i = 0; i < 2; i++) {
        _cleanup_buffer_ struct buffer content;
        load(names[i], &content);
        for (size_t at = 0; at < content.length; at++) {
            for (unsigned mask = 1; mask < 256; mask = mask * 8 + 7) {
                _cleanup_profile_ struct profile profile;
                struct error error = {0};
                content.data[at] = (char)(content.data[at] ^ (char)mask);
                int r = read_bytes(content.data, content.length, &profile, PROFILE_ALL, &error);
                content.data[at] = (char)(content.data[at] ^ (char)mask);
                assert_true(r == 0 || error.text[0]);
                failed += r < 0;
                tried++;
            }
        }
    }
    assert_true(failed > tried / 20 && failed < tried);
}

static void test_detect(void **state)
{
    (void)state;
    const struct format *format = format_by_name("jfr");
    assert_int_equal(format->detect((const uint8_t *)"FLR\0\0\2", 6), 3);
    assert_int_equal(format->detect((const uint8_t *)"FLR\1", 4), 0);
    assert_int_equal(format->detect((const uint8_t *)"FLR", 3), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jdk),
        cmocka_unit_test(test_fixed_width),
        cmocka_unit_test(test_unfinished),
        cmocka_unit_test(test_async),
        cmocka_unit_test(test_links_and_contexts),
        cmocka_unit_test(test_labels_of_contexts),
        cmocka_unit_test(test_wall_mode),
        cmocka_unit_test(test_counter_mode),
        cmocka_unit_test(test_two_chunks),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_little_detail),
        cmocka_unit_test(test_hostile_types),
        cmocka_unit_test(test_bad_headers),
        cmocka_unit_test(test_garbage_between_chunks),
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_every_flip),
        cmocka_unit_test(test_detect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
