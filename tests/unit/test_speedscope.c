// SPDX-License-Identifier: Apache-2.0
// The speedscope codec: both kinds of profile, keys in every order, weights that are fractions,
// broken files, and what is written.

#define READER_FORMAT format_speedscope
#define READER_FOLDER "speedscope"
#include "reader.h"

#include "io/json.h"
#include "profile/naming.h"

/* Every row of one type as "label: a;b;c value@time", in the order of rows. */
static const char *dump(const struct profile *profile, unsigned type, struct buffer *out)
{
    struct naming naming;
    naming_init(&naming, profile);
    out->length = 0;
    for (size_t i = 0; i < profile->samples.count; i++) {
        size_t labels, depth = 0;
        const struct profile_label *label =
            profile_labels(profile, profile->samples.labels[i], &labels);
        uint32_t path[64];
        if (!profile->samples.values[type][i])
            continue;
        if (labels)
            buffer_printf(out, "%s: ", profile_text(profile, label->text));
        for (uint32_t node = profile->samples.node[i]; node; node = profile->nodes[node].parent)
            path[depth++] = profile->nodes[node].frame;
        while (depth) {
            const struct naming_entry *entry = &naming.entries[naming.of_frame[path[--depth]]];
            buffer_add(out, entry->name, entry->length);
            if (depth)
                buffer_add_char(out, ';');
        }
        buffer_printf(out, " %lld", (long long)profile->samples.values[type][i]);
        if (profile->samples.time_ns)
            buffer_printf(out, "@%llu", (unsigned long long)profile->samples.time_ns[i]);
        buffer_add_char(out, '\n');
    }
    naming_release(&naming);
    return buffer_text(out);
}

static void assert_samples(const struct profile *profile, unsigned type, const char *expected)
{
    struct buffer out = {0};
    assert_string_equal(dump(profile, type, &out), expected);
    buffer_release(&out);
}

static void assert_type(const struct profile *profile, unsigned index, const char *type,
                        const char *unit)
{
    assert_true(index < profile->type_count);
    assert_string_equal(profile_text(profile, profile->types[index].type), type);
    assert_string_equal(profile_text(profile, profile->types[index].unit), unit);
}

static void sampled(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_ALL & ~PROFILE_TIMES, "sampled.speedscope.json");
    assert_int_equal(profile.type_count, 1);
    assert_type(&profile, 0, "time", "nanoseconds");
    assert_samples(&profile, 0,
                   "Thread 1: main 10000000\n"
                   "Thread 1: main;parse 20000000\n"
                   "Thread 1: main;parse;read \"all\" 20000000\n"
                   "Thread 2: main;read \"all\" 10000000\n"
                   "Thread 2: main 10000000\n");
    size_t count;
    const struct profile_label *label = profile_labels(&profile, profile.samples.labels[0], &count);
    assert_string_equal(profile_text(&profile, label->key), "profile");
    assert_int_equal(profile.comment_count, 2);
    assert_string_equal(profile_text(&profile, profile.comments[0]), "hand@1.0");
    assert_string_equal(profile_text(&profile, profile.comments[1]), "two threads");
    assert_int_equal(profile.duration_ns, 50000000);
    assert_int_equal(profile.source_count, 1);
    const struct profile_frame *parse = &profile.frames[2];
    assert_int_equal(parse->line, 5);
    assert_int_equal(parse->column, 3);
    assert_string_equal(profile_text(&profile, profile.functions[parse->function].file),
                        "parse.py");
    profile_release(&profile);

    read_fixture(&profile, 0, "sampled.speedscope.json");
    assert_samples(&profile, 0,
                   "main 20000000\nmain;parse 20000000\nmain;parse;read \"all\" 20000000\n"
                   "main;read \"all\" 10000000\n");
    profile_release(&profile);
}

static void evented(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_ALL & ~PROFILE_TIMES, "evented.speedscope.json");
    assert_samples(&profile, 0, "a;b 4500\na;b;c 5000\na 3500\n");
    assert_int_equal(profile.duration_ns, 14000);
    profile_release(&profile);
    read_fixture(&profile, PROFILE_ALL, "evented.speedscope.json");
    assert_samples(&profile, 0,
                   "a;b 2000@1\na;b;c 5000@2000\na;b 2500@7000\na 2500@9500\na 1000@13000\n");
    profile_release(&profile);
}

/* What follows the last event is the open frames' own. */
static void evented_left_open(void **state)
{
    (void)state;
    struct profile profile;
    must_read(
        &profile, PROFILE_ALL & ~PROFILE_TIMES,
        "{\"shared\":{\"frames\":[{\"name\":\"a\"}]},\"profiles\":[{\"endValue\":10,\"events\":["
        "{\"type\":\"O\",\"at\":4,\"frame\":0}]}]}");
    assert_samples(&profile, 0, "a 6\n");
    profile_release(&profile);
}

#define FRAMES "\"shared\":{\"frames\":[{\"name\":\"a\"},{\"name\":\"b\"}]}"

static void evented_mismatches(void **state)
{
    (void)state;
    static const struct {
        const char *events, *words;
    } cases[] = {
        {"{\"type\":\"C\",\"at\":0,\"frame\":0}", "Frame 0 is closed, but no frame is open"},
        {"{\"type\":\"O\",\"at\":0,\"frame\":0},{\"type\":\"C\",\"at\":1,\"frame\":1}",
         "Frame 1 is closed, but the innermost open frame is 0"},
        {"{\"type\":\"O\",\"at\":5,\"frame\":0},{\"type\":\"C\",\"at\":4,\"frame\":0}",
         "Events should be in order"},
        {"{\"type\":\"X\",\"at\":5,\"frame\":0}", "An event should have"},
        {"{\"type\":\"O\",\"frame\":0}", "An event should have"},
        {"{\"type\":\"O\",\"at\":0}", "An event should have"},
        {"{\"type\":\"O\",\"at\":0,\"frame\":2}", "refers to frame 2, but the file has 2"},
        {"{\"type\":\"O\",\"at\":0,\"frame\":-1}", "not an integer from 0"},
        {"{\"type\":\"O\",\"at\":0,\"frame\":4294967296}", "frame number 4294967296 is too large"},
        {"7", "an object, but has a number"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char text[512];
        snprintf(text, sizeof(text), "{" FRAMES ",\"profiles\":[{\"events\":[%s]}]}",
                 cases[i].events);
        must_fail(text, -EBADMSG, cases[i].words);
    }
}

static void sampled_mismatches(void **state)
{
    (void)state;
    static const struct {
        const char *profile, *words;
    } cases[] = {
        {"\"samples\":[[0]],\"weights\":[]", "has 1 samples but 0 weights"},
        {"\"weights\":[1,2],\"samples\":[[0]]", "has 1 samples but 2 weights"},
        {"\"samples\":[[0]],\"weights\":[1,2]", "has 1 samples but 2 weights"},
        {"\"samples\":[[0,2]],\"weights\":[1]", "refers to frame 2, but the file has 2"},
        {"\"samples\":[[0.5]],\"weights\":[1]", "not an integer"},
        {"\"samples\":[0],\"weights\":[1]", "an array, but has a number"},
        {"\"samples\":[[0]],\"weights\":[\"1\"]", "a number, but has a string"},
        {"\"samples\":[[0]],\"weights\":[1],\"samples\":[]", "a second list of samples"},
        {"\"samples\":[[0]],\"weights\":[1],\"weights\":[1]", "a second list of weights"},
        {"\"samples\":[[0]],\"weights\":[1],\"events\":[{\"type\":\"O\",\"at\":0,\"frame\":0}]",
         "both samples and events"},
        {"\"type\":\"folded\"", "\"sampled\" or \"evented\", but one is neither"},
        {"\"unit\":5", "a string, but has a number"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char text[512];
        snprintf(text, sizeof(text), "{" FRAMES ",\"profiles\":[{%s}]}", cases[i].profile);
        must_fail(text, -EBADMSG, cases[i].words);
    }
    must_fail("{}", -EBADMSG, "no \"profiles\"");
    must_fail("[]", -EBADMSG, "an object, but has an array");
    must_fail("{\"profiles\":[]} x", -EBADMSG, "trailing data");
    must_fail("{" FRAMES "," FRAMES ",\"profiles\":[]}", -EBADMSG, "a second list of frames");
}

/* All orders of a list's members, by Heap's algorithm; `visit` gets each. */
static void permute(const char **items, size_t count, void (*visit)(const char **items))
{
    size_t counters[8] = {0};
    visit(items);
    for (size_t i = 0; i < count;) {
        if (counters[i] >= i) {
            counters[i++] = 0;
            continue;
        }
        size_t other = i % 2 ? counters[i] : 0;
        const char *swap = items[other];
        items[other] = items[i];
        items[i] = swap;
        visit(items);
        counters[i]++;
        i = 0;
    }
}

static void check_profile_order(const char **items)
{
    char text[1024];
    struct profile profile;
    snprintf(text, sizeof(text), "{\"profiles\":[{%s,%s,%s,%s,%s}]," FRAMES "}", items[0], items[1],
             items[2], items[3], items[4]);
    must_read(&profile, PROFILE_ALL, text);
    assert_type(&profile, 0, "time", "nanoseconds");
    assert_samples(&profile, 0, "a 1500000@7000000\na;b 2000000@8500000\n");
    profile_release(&profile);
    snprintf(text, sizeof(text), "{" FRAMES ",\"profiles\":[{%s,%s,%s,%s,%s}]}", items[0], items[1],
             items[2], items[3], items[4]);
    must_read(&profile, 0, text);
    assert_samples(&profile, 0, "a 1500000\na;b 2000000\n");
    profile_release(&profile);
}

static void orders(void **state)
{
    (void)state;
    const char *items[] = {
        "\"type\":\"sampled\"",  "\"unit\":\"milliseconds\"", "\"samples\":[[0],[0,1]]",
        "\"weights\":[1.5,2.0]", "\"startValue\":7",
    };
    permute(items, ARRAY_LENGTH(items), check_profile_order);
}

static void units(void **state)
{
    (void)state;
    static const struct {
        const char *unit, *type, *model_unit;
        const char *expected;
    } cases[] = {
        {"none", "samples", "count", "a 2\n"},
        {"bytes", "space", "bytes", "a 2\n"},
        {"nanoseconds", "time", "nanoseconds", "a 2\n"},
        {"microseconds", "time", "nanoseconds", "a 1500\n"},
        {"milliseconds", "time", "nanoseconds", "a 1500000\n"},
        {"seconds", "time", "nanoseconds", "a 1500000000\n"},
        {"fortnights", "samples", "count", "a 2\n"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char text[256];
        struct profile profile;
        snprintf(text, sizeof(text),
                 "{" FRAMES
                 ",\"profiles\":[{\"unit\":\"%s\",\"samples\":[[0]],\"weights\":[1.5]}]}",
                 cases[i].unit);
        must_read(&profile, PROFILE_ALL & ~PROFILE_TIMES, text);
        assert_int_equal(profile.type_count, 1);
        assert_type(&profile, 0, cases[i].type, cases[i].model_unit);
        assert_samples(&profile, 0, cases[i].expected);
        profile_release(&profile);
    }
}

/* A hundred stacks of 0.3 each are 30 together, not 0. */
static void fractions(void **state)
{
    (void)state;
    struct buffer text = {0};
    buffer_add_text(&text, "{\"shared\":{\"frames\":[");
    for (int i = 0; i < 100; i++)
        buffer_printf(&text, "%s{\"name\":\"f%d\"}", i ? "," : "", i);
    buffer_add_text(&text, "]},\"profiles\":[{\"unit\":\"none\",\"samples\":[");
    for (int i = 0; i < 100; i++)
        buffer_printf(&text, "%s[%d]", i ? "," : "", i);
    buffer_add_text(&text, "],\"weights\":[");
    for (int i = 0; i < 100; i++)
        buffer_printf(&text, "%s0.3", i ? "," : "");
    buffer_add_text(&text, "]}]}");
    struct profile profile;
    must_read(&profile, PROFILE_ALL & ~PROFILE_TIMES, buffer_text(&text));
    int64_t total = 0;
    for (size_t i = 0; i < profile.samples.count; i++)
        total += profile.samples.values[0][i];
    assert_int_equal(total, 30);
    profile_release(&profile);
    buffer_release(&text);

    /* Of one stack, they add up before they are rounded. */
    must_read(&profile, 0,
              "{" FRAMES ",\"profiles\":[{\"samples\":[[0],[0],[0],[0]],\"weights\":[0.3,0.3,0.3,"
              "0.2]}]}");
    assert_samples(&profile, 0, "a 1\n");
    profile_release(&profile);
}

static void extremes(void **state)
{
    (void)state;
    struct profile profile;
    must_read(&profile, 0,
              "{" FRAMES
              ",\"profiles\":[{\"unit\":\"bytes\",\"samples\":[[0],[1],[0,1],[1,0],[1,1]],"
              "\"weights\":[9223372036854775807,1e300,-1e300,9007199254740993,1e-300]}]}");
    assert_samples(&profile, 0,
                   "a 9223372036854775807\nb 9223372036854775807\na;b -9223372036854775807\n"
                   "b;a 9007199254740993\n");
    profile_release(&profile);
    must_read(&profile, PROFILE_ALL,
              "{" FRAMES
              ",\"profiles\":[{\"unit\":\"seconds\",\"startValue\":1e300,\"endValue\":-1e300,"
              "\"samples\":[[0],[0],[1]],\"weights\":[1e300,1e300,1]}]}");
    assert_samples(&profile, 0,
                   "a 9223372036854775807@9223372036854775807\n"
                   "a 9223372036854775807@9223372036854775807\n"
                   "b 1000000000@9223372036854775807\n");
    profile_release(&profile);
    /* Nothing at all is fine. */
    must_read(&profile, PROFILE_ALL, "{\"profiles\":[]}");
    assert_int_equal(profile.samples.count, 0);
    profile_release(&profile);
}

static void odd_frames(void **state)
{
    (void)state;
    struct profile profile;
    must_read(&profile, PROFILE_ALL & ~PROFILE_TIMES,
              "{\"shared\":{\"frames\":[{},{\"name\":\"x\",\"line\":null,\"col\":\"no\"},"
              "{\"name\":\"x\",\"line\":-5,\"col\":99999999999},{\"name\":\"x\",\"line\":1e30}]},"
              "\"profiles\":[{\"samples\":[[0],[1],[2],[3]],\"weights\":[1,2,3,4]}]}");
    assert_samples(&profile, 0, "(unknown) 1\nx 2\nx 3\nx 4\n");
    assert_int_equal(profile.frames[3].column, (1 << 24) - 1);
    assert_int_equal(profile.frames[3].line, 0);
    assert_int_equal(profile.frames[4].line, UINT32_MAX);
    profile_release(&profile);
}

static void deep_stack(void **state)
{
    (void)state;
    struct buffer text = {0};
    enum { DEPTH = 100000 };
    buffer_add_text(&text, "{" FRAMES ",\"profiles\":[{\"weights\":[1],\"samples\":[[");
    for (int i = 0; i < DEPTH; i++)
        buffer_add_text(&text, i ? ",0" : "0");
    buffer_add_text(&text, "]]}]}");
    struct profile profile;
    must_read(&profile, PROFILE_ALL, buffer_text(&text));
    assert_int_equal(profile.node_count, DEPTH + 1);
    profile_release(&profile);
    buffer_release(&text);
}

/* A second file adds to what the profile holds. */
static void added_up(void **state)
{
    (void)state;
    struct profile profile;
    struct error error = {0};
    char path[512];
    snprintf(path, sizeof(path), "%s/speedscope/evented.speedscope.json", getenv("FIXTURES"));
    read_fixture(&profile, 0, "evented.speedscope.json");
    assert_int_equal(format_read_file(path, NULL, &profile, NULL, &error), 0);
    assert_samples(&profile, 0, "a;b 9000\na;b;c 10000\na 7000\n");
    assert_int_equal(profile.duration_ns, 28000);
    assert_int_equal(profile.source_count, 2);
    profile_release(&profile);
}

static void damage(void **state)
{
    (void)state;
    static const char *const names[] = {"sampled.speedscope.json", "evented.speedscope.json"};
    for (size_t n = 0; n < ARRAY_LENGTH(names); n++) {
        char path[512], text[4096];
        snprintf(path, sizeof(path), "%s/speedscope/%s", getenv("FIXTURES"), names[n]);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        size_t length = fread(text, 1, sizeof(text), file);
        fclose(file);
        while (text[length - 1] == '\n')
            length--;
        for (size_t cut = 0; cut < length; cut++) {
            struct profile profile;
            struct error error = {0};
            assert_int_equal(read_text(&profile, PROFILE_ALL, text, cut, &error), -EBADMSG);
            assert_says(&error, "at offset");
            profile_release(&profile);
        }
        for (size_t at = 0; at < length * 8; at++) {
            struct profile profile;
            struct error error = {0};
            text[at / 8] ^= (char)(1 << at % 8);
            int r = read_text(&profile, PROFILE_ALL, text, length, &error);
            assert_true(r == 0 || (r < 0 && error.code == r && error.text[0]));
            profile_release(&profile);
            text[at / 8] ^= (char)(1 << at % 8);
        }
    }
}

/* ---- writing ---- */

static uint32_t add_frame(struct profile *profile, const char *name, const char *file,
                          uint32_t line, bool inlined)
{
    struct profile_function function = {.name = profile_cstring(profile, name),
                                        .file = profile_cstring(profile, file)};
    struct profile_frame frame = {
        .function = profile_function(profile, &function), .line = line, .inlined = inlined};
    return profile_frame(profile, &frame);
}

static void make_profile(struct profile *profile, bool times)
{
    profile_init(profile, PROFILE_ALL);
    unsigned count = profile_type(profile, profile_cstring(profile, "samples"),
                                  profile_cstring(profile, "count"));
    unsigned cpu = profile_type(profile, profile_cstring(profile, "cpu"),
                                profile_cstring(profile, "nanoseconds"));
    struct profile_mapping mapping = {
        .start = 0x1000, .limit = 0x2000, .file = profile_cstring(profile, "/usr/bin/app")};
    struct profile_frame unnamed = {.address = 0x1234,
                                    .mapping = profile_mapping(profile, &mapping)};
    uint32_t frames[] = {add_frame(profile, "main", "main.c", 3, false),
                         add_frame(profile, "work \"x\"\n", "", 0, false),
                         add_frame(profile, "inner", "inner.h", 9, true)};
    add_frame(profile, "unused", "", 0, false);
    uint32_t other[] = {frames[0], profile_frame(profile, &unnamed)};
    uint32_t stacks[] = {profile_stack(profile, frames, 2), profile_stack(profile, other, 2),
                         profile_stack(profile, frames, 3)};
    struct profile_label label = {.key = profile_cstring(profile, "thread"),
                                  .text = profile_cstring(profile, "t1")};
    uint32_t labels = profile_label_set(profile, &label, 1);
    for (size_t i = 0; i < 5; i++) {
        size_t row =
            profile_sample(profile, stacks[i % 3], i > 2 ? labels : 0, 0, times ? 100 - 10 * i : 0);
        profile_add_value(profile, row, count, 1);
        profile_add_value(profile, row, cpu, i == 1 ? 0 : 1000 * ((int64_t)i + 1));
    }
}

static void write_profile(const struct profile *profile, int type, const char *title,
                          struct buffer *out)
{
    struct write_options options = {.type = type, .title = title};
    struct error error = {0};
    if (format_speedscope.write(out, profile, &options, &error) < 0)
        fail_msg("%s", error.text);
}

#define HEADER                                                                                     \
    "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","                         \
    "\"exporter\":\"assay@" ASSAY_VERSION "\","
#define OUTPUT_FRAMES                                                                              \
    "\"shared\":{\"frames\":[\n"                                                                   \
    "{\"name\":\"main\",\"file\":\"main.c\",\"line\":3},\n"                                        \
    "{\"name\":\"work \\\"x\\\"\\n\"},\n"                                                          \
    "{\"name\":\"inner\",\"file\":\"inner.h\",\"line\":9},\n"                                      \
    "{\"name\":\"app+0x1234\",\"file\":\"/usr/bin/app\"}]},\n"

static void writing(void **state)
{
    (void)state;
    struct profile profile;
    struct buffer out = {0};
    make_profile(&profile, false);
    write_profile(&profile, -1, "a title", &out);
    /* The tree's order: main;work, main;work;inner, main;app. */
    assert_string_equal(
        buffer_text(&out), HEADER
        "\"name\":\"a title\",\"activeProfileIndex\":1,\n" OUTPUT_FRAMES "\"profiles\":[\n"
        "{\"type\":\"sampled\",\"name\":\"samples\",\"unit\":\"none\",\"samples\":["
        "\n[0,1],\n[0,1,2],\n[0,3]],\n\"weights\":[2,1,2],\"startValue\":0,\"endValue\":5},\n"
        "{\"type\":\"sampled\",\"name\":\"cpu\",\"unit\":\"nanoseconds\",\"samples\":["
        "\n[0,1],\n[0,1,2],\n[0,3]],\n\"weights\":[5000,3000,5000],\"startValue\":0,"
        "\"endValue\":13000}]}\n");
    out.length = 0;
    write_profile(&profile, 1, NULL, &out);
    assert_string_equal(
        buffer_text(&out),
        HEADER "\"activeProfileIndex\":0,\n" OUTPUT_FRAMES "\"profiles\":[\n"
               "{\"type\":\"sampled\",\"name\":\"cpu\",\"unit\":\"nanoseconds\",\"samples\":["
               "\n[0,1],\n[0,1,2],\n[0,3]],\n\"weights\":[5000,3000,5000],\"startValue\":0,"
               "\"endValue\":13000}]}\n");
    buffer_release(&out);
    profile_release(&profile);
}

static void writing_in_time_order(void **state)
{
    (void)state;
    struct profile profile;
    struct buffer out = {0};
    make_profile(&profile, true);
    write_profile(&profile, 1, NULL, &out);
    /* Rows were added with falling times; the one without a value is left out. */
    assert_non_null(strstr(buffer_text(&out), "\"samples\":[\n[0,3],\n[0,1],\n[0,1,2],\n[0,1]],\n"
                                              "\"weights\":[5000,4000,3000,1000]"));
    buffer_release(&out);
    profile_release(&profile);
}

static void round_trip(void **state)
{
    (void)state;
    struct profile profile, again;
    struct buffer out = {0}, second = {0};
    make_profile(&profile, false);
    write_profile(&profile, -1, "t", &out);
    must_read(&again, PROFILE_ALL & ~PROFILE_TIMES, buffer_text(&out));
    assert_int_equal(again.type_count, 2);
    assert_type(&again, 0, "samples", "count");
    assert_type(&again, 1, "cpu", "nanoseconds");
    assert_int_equal(profile_default_type(&again), 1);
    assert_int_equal(again.samples.count, 3);
    assert_samples(&again, 1,
                   "main;work \"x\"\n 5000\nmain;work \"x\"\n;inner 3000\nmain;app+0x1234 5000\n");
    write_profile(&again, -1, "t", &second);
    assert_buffer(&second, buffer_text(&out));
    buffer_release(&second);
    buffer_release(&out);
    profile_release(&again);
    profile_release(&profile);
}

/* A sample without a stack is idle time in other files and a sample in ours. */
static void empty_stacks(void **state)
{
    (void)state;
    static const char profiles[] =
        "\"profiles\":[{\"name\":\"n\",\"samples\":[\n[],[0],[]],\"weights\":[1,2,3]}]";
    char text[256];
    struct profile profile;
    snprintf(text, sizeof(text), "{" FRAMES ",%s}", profiles);
    must_read(&profile, 0, text);
    assert_samples(&profile, 0, "a 2\n");
    profile_release(&profile);
    snprintf(text, sizeof(text), "{" FRAMES ",%s,\"exporter\":\"assay@9\"}", profiles);
    must_read(&profile, 0, text);
    assert_type(&profile, 0, "n", "count");
    assert_samples(&profile, 0, " 4\na 2\n");
    struct buffer out = {0};
    write_profile(&profile, -1, NULL, &out);
    assert_non_null(strstr(buffer_text(&out), "\"samples\":[\n[],\n[0]],\n\"weights\":[4,2]"));
    buffer_release(&out);
    profile_release(&profile);
}

static void writing_refused(void **state)
{
    (void)state;
    struct profile profile;
    struct buffer out = {0};
    struct error error = {0};
    make_profile(&profile, false);
    profile_add_value(&profile, 0, 1, -1000000);
    assert_int_equal(
        format_speedscope.write(&out, &profile, &(struct write_options){.type = 1}, &error),
        -ENOTSUP);
    assert_says(&error, "cannot hold negative values");
    assert_int_equal(
        format_speedscope.write(&out, &profile, &(struct write_options){.type = 2}, &error),
        -EINVAL);
    buffer_release(&out);
    profile_release(&profile);
    /* An empty profile is an empty file, not an error. */
    profile_init(&profile, PROFILE_ALL);
    write_profile(&profile, -1, NULL, &out);
    assert_non_null(strstr(buffer_text(&out), "\"profiles\":[]}"));
    buffer_release(&out);
    profile_release(&profile);
}

static int detect(const char *text)
{
    return format_speedscope.detect((const uint8_t *)text, strlen(text));
}

static void detecting(void **state)
{
    (void)state;
    assert_int_equal(
        detect("{\"$schema\":\"https:\\/\\/www.speedscope.app\\/file-format-schema.json\""), 3);
    assert_int_equal(detect(" {\n \"shared\" : { \"frames\" : [ {\"name\":\"a\"}"), 2);
    assert_int_equal(detect("{\"profiles\":[{\"type\":\"evented\",\"name\":\"x\""), 2);
    assert_int_equal(detect("{\"profiles\":[{\"samples\":[[0,1"), 2);
    assert_int_equal(detect("{\"profiles\":[]}"), 0);
    assert_int_equal(detect("{\"nodes\":[{\"id\":1,\"callFrame\":{}}]"), 0);
    assert_int_equal(detect("{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{"), 0);
    assert_int_equal(detect("[\"shared\":{\"frames\":["), 0);
    assert_int_equal(detect(""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sampled),
        cmocka_unit_test(evented),
        cmocka_unit_test(evented_left_open),
        cmocka_unit_test(evented_mismatches),
        cmocka_unit_test(sampled_mismatches),
        cmocka_unit_test(orders),
        cmocka_unit_test(units),
        cmocka_unit_test(fractions),
        cmocka_unit_test(extremes),
        cmocka_unit_test(odd_frames),
        cmocka_unit_test(deep_stack),
        cmocka_unit_test(added_up),
        cmocka_unit_test(damage),
        cmocka_unit_test(writing),
        cmocka_unit_test(writing_in_time_order),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(empty_stacks),
        cmocka_unit_test(writing_refused),
        cmocka_unit_test(detecting),
    };
    return cmocka_run_group_tests_name("speedscope", tests, NULL, NULL);
}
