// SPDX-License-Identifier: Apache-2.0
// Folded stacks: what the reader takes and refuses, and that what is written reads back the same.

#include "format/format.h"
#include "unit.h"

static int read_text(const char *text, size_t length, struct profile *profile, struct error *error)
{
    const struct read_options options = {.format = &format_folded};
    profile_init(profile, PROFILE_ALL);
    return format_read_memory("test", text, length, &options, profile, NULL, error);
}

static void write_text(const struct profile *profile, int type, struct buffer *out)
{
    const struct write_options options = {.type = type};
    assert_int_equal(format_folded.write(out, profile, &options, NULL), 0);
}

/* Reads and writes: the canonical form of a text. */
static void assert_canonical(const char *text, const char *expected)
{
    _cleanup_profile_ struct profile profile;
    _cleanup_buffer_ struct buffer out = {0};
    struct error error = {0};
    if (read_text(text, strlen(text), &profile, &error) < 0)
        fail_msg("%s", error.text);
    write_text(&profile, -1, &out);
    assert_string_equal(buffer_text(&out), expected);
}

static void assert_refused(const char *text, const char *words)
{
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    assert_int_equal(read_text(text, strlen(text), &profile, &error), -EBADMSG);
    assert_says(&error, words);
}

static void test_reads(void **state)
{
    (void)state;
    assert_canonical("main;b 2\nmain;a 1\nmain 4\n", "main 4\nmain;a 1\nmain;b 2\n");
    assert_canonical("a;b 1\na;b 2", "a;b 3\n"); /* no newline at the end */
    assert_canonical("a;b 1\r\na;c 2\r\n", "a;b 1\na;c 2\n");
    assert_canonical("\n  \n# a comment 3\n#!note\n#\na 1\n\n", "a 1\n");
    assert_canonical("operator new(unsigned long);f(int, char) 7\n",
                     "operator new(unsigned long);f(int, char) 7\n");
    assert_canonical("a;b\t5  \n", "a;b 5\n");
    assert_canonical("a;b -5\nb -9223372036854775808\n", "a;b -5\nb -9223372036854775808\n");
    assert_canonical("a 1.5\nb 2.4\nc -1.5\nd 1e3\ne 0.1\n", "a 2\nb 2\nc -2\nd 1000\n");
    assert_canonical("a 9223372036854775807\na 1\n", "a 9223372036854775807\n");
    assert_canonical("a;;b; 3\n", "a;b 3\n");   /* empty frames are none */
    assert_canonical("a;  3\n", "a;  3\n");     /* a frame that is a space */
    assert_canonical(" 3\n", "[no stack] 3\n"); /* no frame at all */
    assert_canonical("a;b 0\n", "");
    assert_canonical("", "");
    assert_canonical("#private;f 3\n", ":private;f 3\n"); /* ends in a count: no comment */
    assert_canonical("a;nan 1\na;0x1p3 2\n", "a;0x1p3 2\na;nan 1\n");
}

static void test_refuses(void **state)
{
    (void)state;
    assert_refused("a;b nan\n", "Line 1");
    assert_refused("a;b inf\n", "Line 1");
    assert_refused("a;b 0x10\n", "Line 1");
    assert_refused("a;b 9223372036854775808\n", "Line 1");
    assert_refused("a;b 1e30\n", "Line 1");
    assert_refused("a;b 1-2\n", "Line 1");
    assert_refused("12\n", "Line 1");
    assert_refused("\n\nx\n", "Line 3");
}

/* Bad lines are left out, counted and reported. */
static void assert_skips(const char *text, size_t rows, const char *warning)
{
    _cleanup_profile_ struct profile profile;
    struct source source;
    struct error error = {0};
    profile_init(&profile, PROFILE_ALL);
    assert_int_equal(source_open_memory(&source, "test", text, strlen(text), 0, &error), 0);
    assert_int_equal(format_folded.read(&source, &profile, &error), 0);
    assert_string_equal(source.warning, warning);
    source_release(&source);
    assert_int_equal(profile.samples.count, rows);
    assert_int_equal(profile.comment_count, *warning != '\0');
    if (*warning)
        assert_string_equal(profile_text(&profile, profile.comments[0]), warning);
}

static void test_skips(void **state)
{
    (void)state;
    assert_skips("a;b 1\na;b\n", 1, "Skipped line 2, which is malformed.");
    assert_skips("bad\na;b 1\nworse\n", 1, "Skipped 2 malformed lines, the first of them line 1.");
    assert_skips("a;b 1\na;c 9223372036854775808\n", 1, "Skipped line 2, which is malformed.");
    assert_skips("// made in 2026\na;b 1\n//anon;f 2\n", 2, "");
    assert_canonical("// made in 2026\na;_ZN3foo3barEv 1\n", "a;foo::bar 1\n");
}

static void test_type_and_kernel(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    const char *text = "app;vfs_read_[k] 3\n";
    assert_int_equal(read_text(text, strlen(text), &profile, NULL), 0);
    assert_int_equal(profile.type_count, 1);
    assert_string_equal(profile_text(&profile, profile.types[0].type), "samples");
    assert_string_equal(profile_text(&profile, profile.types[0].unit), "count");
    assert_int_equal(profile.source_count, 1);
    uint32_t leaf = profile.samples.node[0];
    assert_int_equal(profile.frames[profile.nodes[leaf].frame].kind, FRAME_KERNEL);
    assert_int_equal(profile.frames[profile.nodes[profile.nodes[leaf].parent].frame].kind,
                     FRAME_UNKNOWN);
}

static void test_two_counts(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    const char *text = "a;b 1 2\na;c 0 5\na;c 1 1\n";
    assert_int_equal(read_text(text, strlen(text), &profile, NULL), 0);
    assert_int_equal(profile.type_count, 2);
    assert_string_equal(profile_text(&profile, profile.types[0].type), "base");
    assert_string_equal(profile_text(&profile, profile.types[1].type), "samples");
    _cleanup_buffer_ struct buffer base = {0}, samples = {0};
    write_text(&profile, 0, &base);
    write_text(&profile, -1, &samples);
    assert_string_equal(buffer_text(&base), "a;b 1\na;c 1\n");
    assert_string_equal(buffer_text(&samples), "a;b 2\na;c 6\n");
}

static void test_names_that_end_in_numbers(void **state)
{
    (void)state;
    /* One line with one count is enough to make the other numbers parts of names. */
    assert_canonical("a;thread 1 2\na;main 5\n", "a;main 5\na;thread 1 2\n");
    assert_canonical("thread 1 2\n", "thread 1 2\n");
}

static void test_two_counts_must_stay_two(void **state)
{
    (void)state;
    struct buffer text = {0};
    for (int i = 0; i < 1000; i++)
        buffer_printf(&text, "main;f%d 1 2\n", i);
    buffer_add_text(&text, "main;g 5\n");
    assert_skips(buffer_text(&text), 1000, "Skipped line 1001, which is malformed.");
    buffer_release(&text);
}

static void test_writes_what_can_be_read(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    unsigned type = profile_type(&profile, profile_cstring(&profile, "cpu"),
                                 profile_cstring(&profile, "nanoseconds"));
    const struct profile_string names[] = {{"# a;b", 5}, {"x\ny\r", 4}, {"nul\0l", 5}};
    uint32_t frames[3];
    for (int i = 0; i < 3; i++)
        frames[i] = profile_frame(
            &profile, &(struct profile_frame){
                          .function = profile_function(
                              &profile, &(struct profile_function){
                                            .name = profile_string(&profile, names[i].data,
                                                                   names[i].length)})});
    size_t row = profile_sample(&profile, profile_stack(&profile, frames, 3), 0, 0, 0);
    profile_add_value(&profile, row, type, 9);
    _cleanup_buffer_ struct buffer out = {0};
    write_text(&profile, -1, &out);
    assert_string_equal(buffer_text(&out), ": a:b;x y ;nul l 9\n");

    struct error error = {0};
    const struct write_options none = {.type = 1};
    assert_int_equal(format_folded.write(&out, &profile, &none, &error), -EINVAL);
    _cleanup_profile_ struct profile empty;
    profile_init(&empty, PROFILE_ALL);
    out.length = 0;
    write_text(&empty, -1, &out);
    assert_int_equal(out.length, 0);
}

static void test_detects(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int sure;
    } cases[] = {
        {"a;b;c 1\n", 2},
        {"a;b;c 1", 2},
        {"a;b 1\nc 2\n", 2},
        {"main 1\nidle 2\n", 1},
        {"# note\na;b 1\n", 2},
        {"a;b 1\r\n", 2},
        {"a;b\n", 0},
        {"a;b 1\nx\n", 1},
        {"{\"a;b\": 1}\n", 0},
        {"", 0},
        {"\n\n", 0},
        {"# only\n", 0},
        {"a;b\001 1\n", 1},
        {"// x\na;b 1\n", 2},
        {"a 1\nx\n", 0},
        {"a;b 1\nx\ny\n", 0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        assert_int_equal(
            format_folded.detect((const uint8_t *)cases[i].text, strlen(cases[i].text)),
            cases[i].sure);
    assert_int_equal(format_folded.detect((const uint8_t *)"a;b\0 1\n", 7), 0);

    /* The last line that is cut off counts for nothing; a single endless one for a little. */
    struct buffer text = {0};
    for (int i = 0; text.length < FORMAT_SNIFF_BYTES; i++)
        buffer_printf(&text, "main;function_%d 12\n", i);
    for (size_t cut = 0; cut < 30; cut++) {
        text.length = FORMAT_SNIFF_BYTES;
        memset(text.data + text.length - cut, 'x', cut);
        assert_int_equal(format_folded.detect((uint8_t *)text.data, text.length), 2);
    }
    memset(text.data, ';', text.length);
    assert_int_equal(format_folded.detect((uint8_t *)text.data, text.length), 1);
    buffer_release(&text);
}

/* Whatever is cut off or flipped, the reader ends with success or a sentence. */
static void test_bad_bytes(void **state)
{
    (void)state;
    static const char text[] = "main;a b;c 12\n# c\nmain;x_[k] 3.5\r\n\nx;y -1\nq 1e2\nz;z 5 6\n";
    for (size_t cut = 0; cut <= sizeof(text) - 1; cut++) {
        _cleanup_profile_ struct profile profile;
        struct error error = {0};
        if (read_text(text, cut, &profile, &error) < 0)
            assert_says(&error, "Line ");
    }
    for (size_t at = 0; at < sizeof(text) - 1; at++) {
        for (int bit = 0; bit < 8; bit++) {
            char copy[sizeof(text)];
            memcpy(copy, text, sizeof(text));
            copy[at] ^= (char)(1 << bit);
            _cleanup_profile_ struct profile profile;
            _cleanup_buffer_ struct buffer out = {0}, again = {0};
            struct error error = {0};
            if (read_text(copy, sizeof(text) - 1, &profile, &error) < 0)
                continue;
            write_text(&profile, -1, &out);
            _cleanup_profile_ struct profile reread;
            assert_int_equal(read_text(out.data, out.length, &reread, &error), 0);
            write_text(&reread, -1, &again);
            assert_string_equal(buffer_text(&again), buffer_text(&out));
        }
    }
}

static void test_deep_line(void **state)
{
    (void)state;
    struct buffer text = {0};
    for (int i = 0; i < 300000; i++)
        buffer_add_text(&text, "f;");
    buffer_add_text(&text, "g 1\n");
    _cleanup_profile_ struct profile profile;
    assert_int_equal(read_text(text.data, text.length, &profile, NULL), 0);
    assert_int_equal(profile.node_count, 300002);
    _cleanup_buffer_ struct buffer out = {0};
    write_text(&profile, -1, &out);
    assert_int_equal(out.length, text.length);
    assert_memory_equal(out.data, text.data, text.length);
    buffer_release(&text);
}

/* A small profile whose text would be enormous is refused, not written. */
static void test_too_deep_to_write(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    unsigned type = profile_type(&profile, profile_cstring(&profile, "x"), 0);
    char *name = malloc(1 << 20);
    memset(name, 'x', 1 << 20);
    uint32_t frame = profile_frame(
        &profile, &(struct profile_frame){
                      .function = profile_function(
                          &profile, &(struct profile_function){
                                        .name = profile_string(&profile, name, 1 << 20)})});
    free(name);
    uint32_t node = 0;
    for (int i = 0; i < 20; i++)
        node = profile_child(&profile, node, frame);
    profile_add_value(&profile, profile_sample(&profile, node, 0, 0, 0), type, 1);
    _cleanup_buffer_ struct buffer out = {0};
    struct error error = {0};
    const struct write_options options = {.type = -1};
    assert_int_equal(format_folded.write(&out, &profile, &options, &error), -E2BIG);
    assert_says(&error, "too deep");
}

static void test_fixtures(void **state)
{
    (void)state;
    const char *fixtures = getenv("FIXTURES");
    assert_non_null(fixtures);
    static const struct {
        const char *name;
        int64_t total;
        size_t rows;
    } files[] = {
        {"kernel.folded", 96, 6},
        {"spaces.folded", 1000, 4},
        {"compared.folded", 61, 5},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/folded/%s", fixtures, files[i].name);
        _cleanup_profile_ struct profile profile;
        const struct format *format;
        struct error error = {0};
        profile_init(&profile, PROFILE_ALL);
        if (format_read_file(path, NULL, &profile, &format, &error) < 0)
            fail_msg("%s", error.text);
        assert_ptr_equal(format, &format_folded);
        assert_int_equal(profile.samples.count, files[i].rows);
        int64_t total = 0;
        for (size_t row = 0; row < profile.samples.count; row++)
            total += profile.samples.values[profile.type_count - 1][row];
        assert_int_equal(total, files[i].total);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_skips),
        cmocka_unit_test(test_type_and_kernel),
        cmocka_unit_test(test_two_counts),
        cmocka_unit_test(test_names_that_end_in_numbers),
        cmocka_unit_test(test_two_counts_must_stay_two),
        cmocka_unit_test(test_writes_what_can_be_read),
        cmocka_unit_test(test_detects),
        cmocka_unit_test(test_bad_bytes),
        cmocka_unit_test(test_deep_line),
        cmocka_unit_test(test_too_deep_to_write),
        cmocka_unit_test(test_fixtures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
