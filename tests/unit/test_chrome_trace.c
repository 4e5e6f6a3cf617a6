// SPDX-License-Identifier: Apache-2.0
// The reader of the format chrome-trace: its fixtures, wrong input, and damage.

#define READER_FORMAT format_chrome_trace
#define READER_FOLDER "chrome-trace"
#include "reader.h"

static void chunks(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_LABELS, "trace.json");
    assert_folded(&profile, "samples", "main 3\nmain;heavy 2\nworker 1\n");
    assert_folded(&profile, "wall", "main 1500000\nmain;heavy 900000\n");
    profile_release(&profile);
}

static void list_of_events(void **state)
{
    (void)state;
    struct profile profile;
    must_read(&profile, PROFILE_ALL,
              "[{\"ph\":\"I\",\"pid\":1,\"name\":\"CpuProfile\",\"args\":{\"data\":{\"cpuProfile\":"
              "{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"f\"}}],\"samples\":[1],"
              "\"timeDeltas\":[5],\"startTime\":1,\"endTime\":9}}}}]");
    assert_int_equal(total_of(&profile, "samples"), 1);
    profile_release(&profile);
}

/* Developer tools write "metadata" first, with whole source maps. */
static void long_metadata(void **state)
{
    (void)state;
    static const char head[] = "{\"metadata\":{\"source\":\"DevTools\",\"sourceMaps\":\"";
    static const char tail[] =
        "\"},\"traceEvents\":[{\"name\":\"ProfileChunk\",\"args\":{\"data\":{\"cpuProfile\":{"
        "\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"f\"}}],\"samples\":[1]},"
        "\"timeDeltas\":[5]}}}]}";
    _cleanup_buffer_ struct buffer text = {0};
    buffer_add(&text, head, strlen(head));
    for (size_t i = 0; i < 3 * FORMAT_SNIFF_BYTES; i++)
        buffer_add(&text, "x", 1);
    buffer_add(&text, tail, strlen(tail));
    struct profile profile;
    struct error error = {0};
    const struct format *format = NULL;
    profile_init(&profile, PROFILE_ALL);
    if (format_read_memory("trace", text.data, text.length, NULL, &profile, &format, &error) < 0)
        fail_msg("%s", error.text);
    assert_ptr_equal(format, &format_chrome_trace);
    assert_folded(&profile, "samples", "f 1\n");
    profile_release(&profile);
}

/* Pieces that are missing cost what is in them, and no more. */
static void lost_pieces(void **state)
{
    (void)state;
    struct profile profile;
    must_read(&profile, PROFILE_ALL,
              "[{\"name\":\"ProfileChunk\",\"args\":{\"data\":{\"cpuProfile\":{\"nodes\":["
              "{\"id\":5,\"parent\":2,\"callFrame\":{\"functionName\":\"f\"}}],"
              "\"samples\":[7,5,5]},\"timeDeltas\":[1,2,3]}}}]");
    assert_folded(&profile, "samples", "f 2\n");
    profile_release(&profile);
    /* All nodes of one of two profiles are missing: its samples are counted. */
    static const char text[] =
        "[{\"name\":\"ProfileChunk\",\"id\":1,\"args\":{\"data\":{\"cpuProfile\":{\"nodes\":["
        "{\"id\":5,\"callFrame\":{\"functionName\":\"f\"}}],\"samples\":[5]},"
        "\"timeDeltas\":[1]}}},"
        "{\"name\":\"ProfileChunk\",\"id\":2,\"args\":{\"data\":{\"cpuProfile\":{"
        "\"samples\":[5,5,5]},\"timeDeltas\":[1,1,1]}}}]";
    struct source source;
    struct error error = {0};
    profile_init(&profile, PROFILE_ALL);
    assert_int_equal(source_open_memory(&source, "test", text, strlen(text), 0, &error), 0);
    assert_int_equal(format_chrome_trace.read(&source, &profile, &error), 0);
    assert_string_equal(source.warning,
                        "3 samples were left out: their functions are not in the trace.");
    source_release(&source);
    assert_folded(&profile, "samples", "f 1\n");
    profile_release(&profile);
}

/* Old traces have no ids; their profiles are told apart by threads. */
static void profiles_of_threads(void **state)
{
    (void)state;
    struct profile profile;
#define OLD(tid, name)                                                                             \
    "{\"ph\":\"I\",\"pid\":1,\"tid\":" tid ",\"name\":\"CpuProfile\",\"args\":{\"data\":{"         \
    "\"cpuProfile\":{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"" name "\"}}],"        \
    "\"samples\":[1],\"timeDeltas\":[5],\"startTime\":1,\"endTime\":9}}}}"
    must_read(&profile, PROFILE_ALL, "[" OLD("3", "f") "," OLD("4", "g") "]");
#undef OLD
    assert_folded(&profile, "samples", "f 1\ng 1\n");
    profile_release(&profile);
}

/* What is written is read back: a sample lasts until its thread's next. */
static void written(void **state)
{
    (void)state;
    struct profile profile, back;
    struct error error = {0};
    _cleanup_buffer_ struct buffer out = {0};
    profile_init(&profile, PROFILE_ALL);
    unsigned type = profile_type(&profile, profile_cstring(&profile, "cpu"),
                                 profile_cstring(&profile, "nanoseconds"));
    struct profile_function named[2] = {{.name = profile_cstring(&profile, "outer")},
                                        {.name = profile_cstring(&profile, "in\"ner")}};
    uint32_t nodes[3] = {0};
    for (size_t i = 0; i < 2; i++) {
        struct profile_frame frame = {.function = profile_function(&profile, &named[i])};
        nodes[i + 1] = profile_child(&profile, nodes[i], profile_frame(&profile, &frame));
    }
    for (unsigned i = 0; i < 12000; i++) {
        struct profile_label label = {.key = profile_cstring(&profile, "tid"), .number = i % 2 + 1};
        size_t row =
            profile_sample(&profile, nodes[1 + i % 3 % 2], profile_label_set(&profile, &label, 1),
                           0, 1700000000000000000 + i * 1000000ull);
        profile_add_value(&profile, row, type, 1000000);
    }
    assert_int_equal(
        format_chrome_trace.write(&out, &profile, &(struct write_options){.type = -1}, &error), 0);
    must_read(&back, PROFILE_ALL, buffer_text(&out));
    assert_folded(&back, "samples", "outer 8000\nouter;in\"ner 4000\n");
    /* 6,000 samples of each thread, two milliseconds apart; the last ones are one long. */
    assert_int_equal(total_of(&back, "wall"), 2 * (5999ll * 2000000 + 1000000));
    profile_release(&back);
    profile_release(&profile);
}

static void bad_input(void **state)
{
    (void)state;
    must_fail("{\"traceEvents\":[{\"ph\":\"X\"}]}", -ENOTSUP, "no CPU profile");
    must_fail("{\"a\":1}", -EBADMSG, "no \"traceEvents\"");
    must_fail("{\"traceEvents\":[", -EBADMSG, "");
}

static void damage(void **state)
{
    (void)state;
    survives_damage("trace.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks),        cmocka_unit_test(list_of_events),
        cmocka_unit_test(long_metadata), cmocka_unit_test(written),
        cmocka_unit_test(lost_pieces),   cmocka_unit_test(profiles_of_threads),
        cmocka_unit_test(bad_input),     cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
