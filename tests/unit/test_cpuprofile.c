// SPDX-License-Identifier: Apache-2.0
// The reader of V8's .cpuprofile: a real file, the old nested form, keys in every order, samples
// out of order, and broken trees.

#define READER_FORMAT format_cpuprofile
#define READER_FOLDER "cpuprofile"
#include "reader.h"

#include "io/json.h"
#include "profile/naming.h"

/* Every row as "a;b;c count wall@time", in the order of rows. */
static void assert_samples(const struct profile *profile, const char *expected)
{
    struct naming naming;
    struct buffer out = {0};
    naming_init(&naming, profile);
    for (size_t i = 0; i < profile->samples.count; i++) {
        uint32_t path[64];
        size_t depth = 0;
        for (uint32_t node = profile->samples.node[i]; node; node = profile->nodes[node].parent)
            path[depth++] = profile->nodes[node].frame;
        while (depth) {
            const struct naming_entry *entry = &naming.entries[naming.of_frame[path[--depth]]];
            buffer_add(&out, entry->name, entry->length);
            if (depth)
                buffer_add_char(&out, ';');
        }
        buffer_printf(&out, " %lld %lld", (long long)profile->samples.values[0][i],
                      (long long)profile->samples.values[1][i]);
        if (profile->samples.time_ns)
            buffer_printf(&out, "@%llu", (unsigned long long)profile->samples.time_ns[i]);
        buffer_add_char(&out, '\n');
    }
    naming_release(&naming);
    assert_string_equal(buffer_text(&out), expected);
    buffer_release(&out);
}

static int64_t total(const struct profile *profile, unsigned type)
{
    int64_t sum = 0;
    for (size_t i = 0; i < profile->samples.count; i++)
        sum += profile->samples.values[type][i];
    return sum;
}

/* The frame of a function, by name and line. */
static const struct profile_frame *find_frame(const struct profile *profile, const char *name,
                                              uint32_t line)
{
    for (uint32_t i = 1; i < profile->frame_count; i++) {
        const struct profile_frame *frame = &profile->frames[i];
        if (frame->line == line &&
            !strcmp(profile_text(profile, profile->functions[frame->function].name), name))
            return frame;
    }
    fail_msg("no frame %s:%u", name, line);
    return NULL;
}

/* What node 20 wrote: 25 samples between startTime + the first of timeDeltas and endTime. */
static void real_file(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_ALL & ~PROFILE_TIMES, "node20.cpuprofile");
    assert_int_equal(profile.type_count, 2);
    assert_string_equal(profile_text(&profile, profile.types[0].type), "samples");
    assert_string_equal(profile_text(&profile, profile.types[0].unit), "count");
    assert_string_equal(profile_text(&profile, profile.types[1].type), "wall");
    assert_string_equal(profile_text(&profile, profile.types[1].unit), "nanoseconds");
    assert_int_equal(profile_default_type(&profile), 1);
    assert_int_equal(total(&profile, 0), 25);
    assert_int_equal(total(&profile, 1), 285830000ll);
    assert_int_equal(profile.duration_ns, 297955000ll);
    const struct profile_frame *callback = find_frame(&profile, "(anonymous) work.js:5", 5);
    assert_int_equal(callback->column, 27);
    assert_int_equal(callback->kind, FRAME_V8JS);
    const struct profile_function *function = &profile.functions[callback->function];
    assert_string_equal(profile_text(&profile, function->file), "file:///app/work.js");
    assert_int_equal(function->start_line, 5);
    find_frame(&profile, "(program)", 0);
    profile_release(&profile);

    read_fixture(&profile, PROFILE_ALL, "node20.cpuprofile");
    assert_int_equal(profile.samples.count, 25);
    assert_int_equal(profile.samples.time_ns[0], 2568734294000ll);
    assert_int_equal(total(&profile, 1), 285830000ll);
    profile_release(&profile);
}

static void nested_file(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_ALL & ~PROFILE_TIMES, "nested.cpuprofile");
    assert_samples(&profile,
                   "main 1 100000\nmain;(anonymous) app.js:7 2 200000\n(program) 1 100000\n");
    assert_int_equal(profile.duration_ns, 400000);
    const struct profile_frame *frame = find_frame(&profile, "(anonymous) app.js:7", 7);
    assert_int_equal(frame->column, 12);
    profile_release(&profile);
}

#define NODE(id, name, rest)                                                                       \
    "{\"id\":" #id ",\"callFrame\":{\"functionName\":\"" name "\",\"url\":\"u\","                  \
    "\"lineNumber\":1,\"columnNumber\":2}" rest "}"
#define NODES                                                                                      \
    "\"nodes\":[" NODE(1, "(root)", ",\"children\":[2,4]") "," NODE(                               \
        2, "f", ",\"children\":[3]") "," NODE(3, "g", "") "," NODE(4, "(idle)", "") "]"

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

static void check_order(const char **items)
{
    char text[1024];
    struct profile profile;
    snprintf(text, sizeof(text), "{%s,%s,%s,%s,%s}", items[0], items[1], items[2], items[3],
             items[4]);
    must_read(&profile, PROFILE_ALL, text);
    assert_samples(&profile, "f;g 1 20000@1010000\nf 1 30000@1030000\n(idle) 1 40000@1060000\n");
    assert_int_equal(profile.duration_ns, 100000);
    profile_release(&profile);
    assert_true(format_cpuprofile.detect((const uint8_t *)text, strlen(text)) >= 2);
}

static void orders(void **state)
{
    (void)state;
    const char *items[] = {NODES, "\"samples\":[3,2,4]", "\"timeDeltas\":[10,20,30]",
                           "\"startTime\":1000", "\"endTime\":1100"};
    permute(items, ARRAY_LENGTH(items), check_order);
}

static void check_node_order(const char **items)
{
    char text[1024];
    struct profile profile;
    snprintf(text, sizeof(text),
             "{\"samples\":[9],\"timeDeltas\":[0],\"startTime\":0,\"endTime\":1,\"nodes\":["
             "{%s,%s,%s,%s},{\"callFrame\":{\"functionName\":\"leaf\"},\"id\":9}]}",
             items[0], items[1], items[2], items[3]);
    must_read(&profile, 0, text);
    assert_samples(&profile, "f;leaf 1 1000\n");
    profile_release(&profile);
}

static void node_orders(void **state)
{
    (void)state;
    const char *items[] = {"\"id\":5", "\"callFrame\":{\"functionName\":\"f\"}", "\"children\":[9]",
                           "\"hitCount\":1"};
    permute(items, ARRAY_LENGTH(items), check_node_order);
}

/* Trace-like files give a parent instead of children. */
static void parents(void **state)
{
    (void)state;
    struct profile profile;
    must_read(&profile, 0,
              "{\"samples\":[3],\"timeDeltas\":[0],\"startTime\":0,\"endTime\":1,\"nodes\":["
              "{\"id\":3,\"parent\":2,\"callFrame\":{\"functionName\":\"b\"}},"
              "{\"id\":2,\"parent\":1,\"callFrame\":{\"functionName\":\"a\"}},"
              "{\"id\":1,\"callFrame\":{\"functionName\":\"(root)\"}}]}");
    assert_samples(&profile, "a;b 1 1000\n");
    profile_release(&profile);
}

/* A negative delta puts a sample before its neighbour: time goes to whom it belongs. */
static void out_of_order(void **state)
{
    (void)state;
    struct profile profile;
    must_read(&profile, PROFILE_ALL,
              "{" NODES ",\"startTime\":0,\"endTime\":100,\"samples\":[2,3,4,2],"
              "\"timeDeltas\":[10,40,-20,50]}");
    /* At 10, 50, 30 and 80. */
    assert_samples(&profile, "f 1 20000@10000\n(idle) 1 20000@30000\nf;g 1 30000@50000\n"
                             "f 1 20000@80000\n");
    profile_release(&profile);
    /* Before the start, and an end before the last sample. */
    must_read(&profile, PROFILE_ALL,
              "{" NODES
              ",\"startTime\":0,\"endTime\":5,\"samples\":[2,3],\"timeDeltas\":[-10,20]}");
    assert_samples(&profile, "f 1 20000@1\nf;g 1 0@10000\n");
    profile_release(&profile);
}

static void without_times(void **state)
{
    (void)state;
    struct profile profile;
    must_read(&profile, 0, "{" NODES ",\"startTime\":0,\"endTime\":9,\"samples\":[2,3,3]}");
    assert_samples(&profile, "f 1 3000\nf;g 2 6000\n");
    profile_release(&profile);
    must_read(&profile, 0, "{" NODES ",\"samples\":[2,3,3]}");
    assert_samples(&profile, "f 1 0\nf;g 2 0\n");
    profile_release(&profile);
}

static void hits_only(void **state)
{
    (void)state;
    struct profile profile;
    must_read(&profile, PROFILE_ALL,
              "{\"startTime\":0,\"endTime\":10,\"samples\":[],\"nodes\":[" NODE(
                  1, "a", ",\"hitCount\":1") "," NODE(2, "b", ",\"hitCount\":2") "]}");
    assert_samples(&profile, "a 1 3333\nb 2 6667\n");
    profile_release(&profile);
    must_read(
        &profile, PROFILE_ALL,
        "{\"startTime\":0,\"endTime\":1e300,\"nodes\":[" NODE(
            1, "a", ",\"hitCount\":18446744073709551615") "," NODE(2, "b", ",\"hitCount\":2") "]}");
    assert_samples(&profile, "a 9223372036854775807 9223372036854775807\n");
    profile_release(&profile);
}

static void extremes(void **state)
{
    (void)state;
    struct profile profile;
    must_read(&profile, PROFILE_ALL,
              "{" NODES ",\"startTime\":-1e300,\"endTime\":1e300,\"samples\":[2,3,4],"
              "\"timeDeltas\":[0,1e300,1e300]}");
    assert_samples(&profile, "f 1 9223372036854775807@1\nf;g 1 9223372036854775807@1\n"
                             "(idle) 1 1@9223372036854775806\n");
    profile_release(&profile);
    must_read(&profile, PROFILE_ALL,
              "{\"nodes\":[{\"id\":4294967294,\"callFrame\":{\"functionName\":\"f\",\"lineNumber\":"
              "9223372036854775807,\"columnNumber\":9223372036854775807}}],\"samples\":[4294967294]"
              "}");
    assert_int_equal(profile.frames[1].line, 0);
    assert_int_equal(profile.frames[1].column, (1 << 24) - 1);
    profile_release(&profile);
}

static void broken_trees(void **state)
{
    (void)state;
    must_fail("{}", -EBADMSG, "neither \"nodes\" nor \"head\"");
    must_fail("{" NODES ",\"samples\":[5],\"timeDeltas\":[0]}", -EBADMSG,
              "Sample 0 refers to node 5");
    must_fail("{" NODES ",\"samples\":[2,3],\"timeDeltas\":[0]}", -EBADMSG,
              "2 samples but times for only 1");
    must_fail("{" NODES "," NODES "}", -EBADMSG, "a second tree of nodes");
    must_fail("{" NODES ",\"head\":{}}", -EBADMSG, "a second tree of nodes");
    must_fail("{\"nodes\":[{\"callFrame\":{}}]}", -EBADMSG, "A node without an id");
    must_fail("{\"nodes\":[" NODE(1, "a", "") "," NODE(1, "b", "") "]}", -EBADMSG,
              "A second node with the id 1");
    must_fail("{\"nodes\":[" NODE(1, "a", ",\"children\":[2]") "]}", -EBADMSG,
              "the file has no node 2");
    must_fail("{\"nodes\":[" NODE(1, "a", ",\"parent\":7") "]}", -EBADMSG,
              "the file has no node 7");
    must_fail("{\"nodes\":[" NODE(1, "a", ",\"children\":[1]") "]}", -EBADMSG,
              "Node 1 is among its own ancestors");
    must_fail("{\"nodes\":[" NODE(1, "a", ",\"children\":[2]") "," NODE(
                  2, "b", ",\"children\":[3]") "," NODE(3, "c", ",\"children\":[1]") "]}",
              -EBADMSG, "among its own ancestors");
    must_fail("{\"nodes\":[" NODE(1, "a", ",\"children\":[3]") "," NODE(
                  2, "b", ",\"children\":[3]") "," NODE(3, "c", "") "]}",
              -EBADMSG, "Node 3 has two parents, nodes 1 and 2");
    must_fail("{\"nodes\":[" NODE(4294967295, "a", "") "]}", -EBADMSG, "is too large");
    must_fail("{" NODES ",\"timeDeltas\":[1],\"timestamps\":[1]}", -EBADMSG,
              "both timeDeltas and timestamps");
    must_fail("{\"head\":[]}", -EBADMSG, "an object, but has an array");
    must_fail("{\"head\":{\"id\":1,\"children\":[{\"id\":1}]}}", -EBADMSG,
              "A second node with the id 1");
}

/* A tree as deep as V8's deepest stack, and deeper than the JSON reader follows. */
static void deep_nesting(void **state)
{
    (void)state;
    for (int depth = 255; depth <= 2000; depth += 1745) {
        struct buffer text = {0};
        buffer_add_text(&text, "{\"head\":");
        for (int i = 0; i < depth; i++)
            buffer_printf(&text, "{\"functionName\":\"f\",\"id\":%d,\"children\":[", i);
        for (int i = 0; i < depth; i++)
            buffer_add_text(&text, "]}");
        buffer_printf(&text, ",\"samples\":[254]}");
        struct profile profile;
        struct error error = {0};
        int r = read_text(&profile, 0, text.data, text.length, &error);
        if (depth == 255) {
            assert_int_equal(r, 0);
            assert_int_equal(profile.node_count, 256);
        } else {
            assert_int_equal(r, -E2BIG);
            assert_says(&error, "nested more than");
        }
        profile_release(&profile);
        buffer_release(&text);
    }
}

/* A second file adds to what the profile holds. */
static void added_up(void **state)
{
    (void)state;
    struct profile profile;
    struct error error = {0};
    char path[512];
    snprintf(path, sizeof(path), "%s/cpuprofile/nested.cpuprofile", getenv("FIXTURES"));
    read_fixture(&profile, 0, "nested.cpuprofile");
    assert_int_equal(format_read_file(path, NULL, &profile, NULL, &error), 0);
    assert_samples(&profile,
                   "main 2 200000\nmain;(anonymous) app.js:7 4 400000\n(program) 2 200000\n");
    assert_int_equal(profile.duration_ns, 800000);
    assert_int_equal(profile.source_count, 2);
    profile_release(&profile);
}

static void damage(void **state)
{
    (void)state;
    static const char *const names[] = {"nested.cpuprofile", "node20.cpuprofile"};
    for (size_t n = 0; n < ARRAY_LENGTH(names); n++) {
        char path[512], text[16384];
        snprintf(path, sizeof(path), "%s/cpuprofile/%s", getenv("FIXTURES"), names[n]);
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
        for (size_t at = 0; at < length * 8; at += 3) {
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

static int detect(const char *text)
{
    return format_cpuprofile.detect((const uint8_t *)text, strlen(text));
}

static void detecting(void **state)
{
    (void)state;
    assert_int_equal(detect("{\"nodes\":[{\"id\":1,\"callFrame\":{"), 3);
    assert_int_equal(detect("{ \"head\" : {\"functionName\" : \"(root)\""), 2);
    assert_int_equal(detect("{\"timeDeltas\":[1,2,3"), 2);
    assert_int_equal(detect("{\"startTime\":1,\"endTime\":2,\"samples\":[1,1,1"), 2);
    assert_int_equal(detect("{\"samples\":[1,1,1"), 1);
    assert_int_equal(detect("{\"head\":{\"callFrame\":{\"functionName\":\"\"},\"selfSize\":1"), 0);
    assert_int_equal(detect("{\"traceEvents\":[{\"nodes\":[{\"callFrame\":{"), 0);
    assert_int_equal(detect("{\"profiles\":[{\"samples\":[[0,1"), 0);
    assert_int_equal(detect("[{\"nodes\":[{\"callFrame\":{"), 0);
    assert_int_equal(detect(""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_file),     cmocka_unit_test(nested_file),
        cmocka_unit_test(orders),        cmocka_unit_test(node_orders),
        cmocka_unit_test(parents),       cmocka_unit_test(out_of_order),
        cmocka_unit_test(without_times), cmocka_unit_test(hits_only),
        cmocka_unit_test(extremes),      cmocka_unit_test(broken_trees),
        cmocka_unit_test(deep_nesting),  cmocka_unit_test(added_up),
        cmocka_unit_test(damage),        cmocka_unit_test(detecting),
    };
    return cmocka_run_group_tests_name("cpuprofile", tests, NULL, NULL);
}
