// SPDX-License-Identifier: Apache-2.0
// gperftools CPU profiles in every word size and byte order, the text profiles of pprof's legacy,
// memory maps and symbols, and files that are cut off or damaged. The fixtures are written by
// fixtures/gperftools/make.py; what they should hold was checked with `go tool pprof -raw`.

#include "unit.h"

#include "base/file.h"
#include "format/format.h"
#include "profile/profile.h"

static void load(const char *name, struct buffer *ret_content)
{
    char path[512];
    struct error error = {0};
    snprintf(path, sizeof(path), "%s/gperftools/%s", getenv("FIXTURES"), name);
    memset(ret_content, 0, sizeof(*ret_content));
    if (file_read(path, 1 << 20, ret_content, &error) < 0)
        fail_msg("%s", error.text);
}

/* From a copy of exact size, so that a sanitizer sees a read past its end. A format that is NULL is
 * detected. */
static int read_bytes(const char *format, const char *data, size_t length, struct profile *profile,
                      struct error *error)
{
    struct read_options options = {.format = format ? format_by_name(format) : NULL};
    char *copy = memory_alloc(length + !length);
    memcpy(copy, data, length);
    profile_init(profile, PROFILE_ALL);
    int r = format_read_memory("test", copy, length, &options, profile, NULL, error);
    free(copy);
    return r;
}

static void read_text(const char *text, struct profile *profile)
{
    struct error error = {0};
    if (read_bytes(NULL, text, strlen(text), profile, &error) < 0)
        fail_msg("%s", error.text);
}

static void read_fixture(const char *name, struct profile *profile)
{
    _cleanup_buffer_ struct buffer content;
    struct error error = {0};
    load(name, &content);
    if (read_bytes(NULL, content.data, content.length, profile, &error) < 0)
        fail_msg("%s: %s", name, error.text);
}

/* All rows as lines "value value: outermost ... innermost", in the order they came. */
static void describe(const struct profile *profile, struct buffer *out)
{
    const struct profile_samples *rows = &profile->samples;
    out->length = 0;
    for (size_t i = 0; i < rows->count; i++) {
        uint32_t path[64];
        size_t depth = 0;
        for (unsigned type = 0; type < profile->type_count; type++)
            buffer_printf(out, "%s%lld", type ? " " : "", (long long)rows->values[type][i]);
        buffer_add_char(out, ':');
        for (uint32_t node = rows->node[i]; node; node = profile->nodes[node].parent) {
            assert_true(depth < 64);
            path[depth++] = profile->nodes[node].frame;
        }
        while (depth--) {
            const struct profile_frame *frame = &profile->frames[path[depth]];
            const struct profile_function *function = &profile->functions[frame->function];
            if (frame->function)
                buffer_printf(out, " %s%s@%s:%u", frame->inlined ? "inlined " : "",
                              profile_text(profile, function->name),
                              profile_text(profile, function->file), frame->line);
            else
                buffer_printf(out, " %s+%llx",
                              profile_text(profile, profile->mappings[frame->mapping].file),
                              (unsigned long long)frame->address);
        }
        buffer_add_char(out, '\n');
    }
}

static void assert_types(const struct profile *profile, const char *expected)
{
    _cleanup_buffer_ struct buffer text = {0};
    for (unsigned i = 0; i < profile->type_count; i++)
        buffer_printf(&text, "%s%s/%s", i ? " " : "", profile_text(profile, profile->types[i].type),
                      profile_text(profile, profile->types[i].unit));
    assert_string_equal(buffer_text(&text), expected);
}

static void assert_rows(const struct profile *profile, const char *expected)
{
    _cleanup_buffer_ struct buffer text = {0};
    describe(profile, &text);
    assert_string_equal(buffer_text(&text), expected);
}

#define SHOPD " /srv/shop/bin/shopd+"

/* The signal handler's frame is gone, and so is the innermost address where it was there twice. */
static void test_cpu_32(void **state)
{
    static const char *const names[] = {"cpu-32le.prof", "cpu-32be.prof"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        _cleanup_profile_ struct profile profile;
        read_fixture(names[i], &profile);
        assert_types(&profile, "samples/count cpu/nanoseconds");
        assert_rows(&profile, "8 80000000:" SHOPD "302f" SHOPD "201f" SHOPD "1010\n"
                              "2 20000000:" SHOPD "302f" SHOPD "201f" SHOPD "1014\n"
                              "1 10000000:" SHOPD "302f" SHOPD "201f" SHOPD "1018\n"
                              "7 70000000:" SHOPD "302f" SHOPD "2020\n");
        assert_int_equal(profile.period, 10000000);
        assert_int_equal(profile.source_count, 1);
    }
}

static void test_cpu_64(void **state)
{
    static const char *const names[] = {"cpu-64le.prof", "cpu-64be.prof"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        _cleanup_profile_ struct profile profile;
        _cleanup_buffer_ struct buffer text = {0};
        read_fixture(names[i], &profile);
        describe(&profile, &text);
        /* Two maps that are one; a name with spaces; an address before its map; and nowhere. */
        assert_non_null(
            strstr(buffer_text(&text),
                   "\n4 40000000:" SHOPD "302f" SHOPD "201f /usr/lib/libm.so.6+1500\n"
                   "1 10000000:" SHOPD "302f" SHOPD "201f /usr/lib/libm.so.6+2500\n"
                   "2 20000000:" SHOPD "302f" SHOPD "201f /usr/lib/lib with spaces.so+4100\n"
                   "1 10000000:" SHOPD "302f" SHOPD "201f /usr/lib/lib with spaces.so+3000\n"
                   "1 10000000:" SHOPD "302f" SHOPD "201f +10\n"));
        assert_string_equal(profile_text(&profile, profile.mappings[1].file),
                            "/srv/shop/bin/shopd");
        assert_int_equal(profile.mapping_count, 4);
    }
}

static void test_cpu_without_trailer(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    read_fixture("cpu-no-trailer.prof", &profile);
    assert_rows(&profile, "8 80000000: +40302f +40201f +401010\n"
                          "2 20000000: +40302f +40201f +401014\n"
                          "1 10000000: +40302f +40201f +401018\n"
                          "7 70000000: +40302f +402020\n");
}

static void test_cpu_java(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    read_fixture("cpu-java.prof", &profile);
    assert_rows(&profile, "3 30000000: com.example.Shop.main@Shop.java:0 "
                          "com.example.Shop.order@Shop.java:12\n"
                          "2 20000000: com.example.Shop.main@Shop.java:0 "
                          "com.example.Shop.order@Shop.java:12 JNI_call@libjvm.so:0\n"
                          "4 40000000: GC@:0\n"
                          "1 10000000: com.example.Shop.main@Shop.java:0 STUB@:0\n"
                          "1 10000000: +6\n");
    assert_int_equal(profile.frames[profile.nodes[1].frame].kind, FRAME_JVM);
}

/* A gap of more than a few samples is no signal handler. */
static void test_cpu_keeps_real_callers(void **state)
{
    (void)state;
    uint32_t words[] = {0, 3, 0, 1000, 0, 1, 2, 0x100, 0x201, 1, 2, 0x100, 0x301, 0, 1, 0};
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    assert_int_equal(read_bytes(NULL, (char *)words, sizeof(words), &profile, &error), 0);
    assert_rows(&profile, "1 1000000: +200 +100\n1 1000000: +300 +100\n");
}

static void test_cpu_saturates(void **state)
{
    (void)state;
    uint64_t words[] = {0, 3, 0, 1000000, 0, UINT64_MAX, 1, 0x100, 0, 1, 0};
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    assert_int_equal(read_bytes(NULL, (char *)words, sizeof(words), &profile, &error), 0);
    assert_int_equal(profile.samples.values[0][0], INT64_MAX);
    assert_int_equal(profile.samples.values[1][0], INT64_MAX);
}

static void test_cpu_bad(void **state)
{
    (void)state;
    uint64_t deep[] = {0, 3, 0, 10000, 0, 1, 1ull << 40, 0x100};
    uint64_t period[] = {0, 3, 0, UINT64_MAX, 0, 1, 1, 0x100};
    struct error error = {0};
    struct profile profile;
    assert_int_equal(read_bytes(NULL, (char *)deep, sizeof(deep), &profile, &error), -EBADMSG);
    assert_says(&error, "sample at offset 40");
    profile_release(&profile);
    assert_int_equal(read_bytes(NULL, (char *)period, sizeof(period), &profile, &error), -EBADMSG);
    assert_says(&error, "period");
    profile_release(&profile);
    assert_int_equal(read_bytes("gperftools-cpu", "hello", 5, &profile, &error), -EBADMSG);
    profile_release(&profile);
}

static void test_heap(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    read_fixture("heap.txt", &profile);
    assert_types(&profile, "alloc_objects/count alloc_space/bytes inuse_objects/count "
                           "inuse_space/bytes");
    assert_rows(&profile, "5 5120 3 3072:" SHOPD "3030" SHOPD "2020" SHOPD "1010\n"
                          "4 4194304 1 1048576:" SHOPD "3030" SHOPD "2020" SHOPD "1014\n"
                          "7 700 0 0:" SHOPD "3030 /usr/lib/libm.so.6+14ff\n");
    assert_string_equal(profile_text(&profile, profile.default_type), "inuse_space");
    size_t count;
    const struct profile_label *label = profile_labels(&profile, profile.samples.labels[0], &count);
    assert_int_equal(count, 1);
    assert_string_equal(profile_text(&profile, label->key), "bytes");
    assert_int_equal(label->number, 1024);
}

/* A sample of a small block stands for many. */
static void test_heap_unbiased(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    read_fixture("heap-v2.txt", &profile);
    assert_rows(&profile, "2562 2624000 1537 1574400:" SHOPD "3030" SHOPD "2020" SHOPD "1010\n"
                          "4 4850786 1 1212696:" SHOPD "3030" SHOPD "2020" SHOPD "1014\n"
                          "36703 3670366 0 0:" SHOPD "3030 /usr/lib/libm.so.6+14ff\n");
    assert_int_equal(profile.period, 524288);
}

static void test_heap_in_use_only(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    read_fixture("heap-inuse.txt", &profile);
    assert_types(&profile, "inuse_objects/count inuse_space/bytes");
    assert_rows(&profile, "2 96: +401010\n");
}

/* The short form of maps, with an offset, a build ID and a log prefix. */
static void test_growth(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    read_fixture("growth.txt", &profile);
    assert_types(&profile, "objects/count space/bytes");
    assert_rows(&profile, "1 1048576:" SHOPD "4030" SHOPD "2010\n"
                          "1 1048576:" SHOPD "4030" SHOPD "3020\n");
    assert_string_equal(profile_text(&profile, profile.mappings[1].build_id), "0123abcd");
}

static void test_go_heap(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    read_fixture("heap-go.txt", &profile);
    assert_int_equal(profile.period, 524288);
    assert_rows(&profile,
                "256 525312 256 525312: runtime.main@/usr/lib/go/src/runtime/proc.go:267 "
                "main.main@/srv/shop/main.go:8 main.order@/srv/shop/price.go:29 "
                "inlined main.cost@/srv/shop/price.go:17\n"
                "492 4228733 10923 1048672: runtime.main@/usr/lib/go/src/runtime/proc.go:267 "
                "main.main@/srv/shop/main.go:8 "
                "main.(*Tree[...]).walk@/srv/shop/my tree.go:9 "
                "main.(*Tree[...]).walk@/srv/shop/my tree.go:9 "
                "main.(*Tree[...]).walk@/srv/shop/my tree.go:9 "
                "main.leaf@/srv/shop/my tree.go:4\n");
}

static void test_go_counts(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    read_fixture("goroutine.txt", &profile);
    assert_types(&profile, "goroutine/count");
    assert_rows(&profile, "7: main.wait@/srv/shop/wait.go:17\n"
                          "1: main.main@/srv/shop/main.go:8 +46b0c0\n");
}

/* All threads of a process, of which some have the stack of the one before. */
static void test_threads(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile, bare;
    read_fixture("threads.txt", &profile);
    assert_types(&profile, "thread/count");
    assert_rows(&profile, "2:" SHOPD "3030" SHOPD "2020" SHOPD "1011\n"
                          "1:" SHOPD "3030 /usr/lib/libm.so.6+1500\n");
    read_text("--- Thread 1f (name: a/7) stack: ---\n0x10\n--- Thread 2f (name: b/8) stack: ---\n",
              &bare);
    assert_rows(&bare, "1: +10\n");
}

static void test_contention(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile go, cpp;
    read_fixture("mutex.txt", &go);
    assert_types(&go, "contentions/count delay/nanoseconds");
    assert_rows(&go, "395 7500002: sync.(*Mutex).Unlock@/usr/lib/go/src/sync/mutex.go:223\n"
                     "10 2500: +4a2c10\n");
    read_fixture("contention.txt", &cpp);
    assert_rows(&cpp, "2700 608881724:" SHOPD "2020" SHOPD "1010\n"
                      "100 23992:" SHOPD "2020" SHOPD "1014\n");
    assert_int_equal(cpp.duration_ns, 16502830000000);
    assert_string_equal(profile_text(&cpp, cpp.default_type), "delay");
}

static void test_java(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile heap, contention;
    read_fixture("java-heap.txt", &heap);
    assert_types(&heap, "inuse_objects/count inuse_space/bytes");
    assert_rows(&heap, "74 527819: com.example.Shop.main@Shop.java:0 "
                       "com.example.Shop.order@Shop.java:12\n"
                       "8941 4720968: com.example.Shop.main@Shop.java:0 JNI_call@libjvm.so:0\n");
    read_fixture("java-contention.txt", &contention);
    assert_types(&contention, "contentions/count delay/microseconds");
    assert_rows(&contention, "100 100: com.example.Shop.main@Shop.java:0 "
                             "com.example.Shop.order@Shop.java:12\n"
                             "200 1400: com.example.Shop.main@Shop.java:0 JNI_call@libjvm.so:0\n");
}

static void test_odd_text(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile, empty;
    /* Comments first, carriage returns, no space around numbers, a count that makes none. */
    read_text("# a comment\r\n\r\nheap profile:1:2[3:4]@heapprofile\r\n"
              "1:2[3:4]@ 0x10\r\n0:0[0:0]@ 0x20\r\n",
              &profile);
    assert_rows(&profile, "3 4 1 2: +f\n0 0 0 0: +1f\n");
    read_text("goroutine profile: total 0\n", &empty);
    assert_int_equal(empty.samples.count, 0);
    assert_types(&empty, "goroutine/count");
}

/* Many lines at one address, and the address many times in a stack: both are bounded. */
static void test_hostile_inlining(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer text = {0};
    _cleanup_profile_ struct profile profile;
    buffer_add_text(&text, "goroutine profile: total 1\n1 @");
    for (int i = 0; i < 1000; i++)
        buffer_add_text(&text, " 0x2");
    buffer_add_char(&text, '\n');
    for (int i = 0; i < 1000; i++)
        buffer_printf(&text, "#\t0x1\tf%d+0x1\tx.go:1\n", i);
    read_text(buffer_text(&text), &profile);
    assert_int_equal(profile.node_count, 64 * 1000 + 1);
}

static void test_bad_text(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"heap profile: 1: 2 [3: 4] @ heapprofile\nnonsense\n", "Line 2"},
        {"heap profile: 1: 2 [3: 4] @ heapprofile\n1: 2 [3: 4] @ 0x1 zz\n", "Line 2"},
        {"heap profile: 1: 2 [3: 4] @ heapprofile\n1: 2 [3: 4] @ 0x10000000000000000\n", "Line 2"},
        {"heap profile: 1: 2 [3: 4] @ heapprofile\n\n0: 2 [3: 4] @ 0x1\n", "Line 3 has 2 bytes"},
        {"heap profile: 1: 2 [3: 4] @ heapprofile\n99999999999999999999: 2 [3: 4] @\n", "Line 2"},
        {"heap profile: 1: 2 [3: 4] @ unheard-of\n", "Line 1"},
        {"goroutine profile: total 1\n1 0x10\n", "Line 2"},
        {"--- mutex:\nsampling period=1\n12 @ 0x10\n", "Line 3"},
        {"", "no header"},
        {"# only\n# comments\n", "no header"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        _cleanup_profile_ struct profile profile;
        struct error error = {0};
        assert_int_equal(
            read_bytes("gperftools-heap", cases[i].text, strlen(cases[i].text), &profile, &error),
            -EBADMSG);
        assert_says(&error, cases[i].words);
    }
}

static void test_every_cut(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer content;
    load("cpu-64le.prof", &content);
    size_t words = 0;
    for (size_t length = 0; length < content.length; length++) {
        _cleanup_profile_ struct profile profile;
        struct error error = {0};
        int r = read_bytes("gperftools-cpu", content.data, length, &profile, &error);
        assert_true(r == 0 || (r == -EBADMSG && error.text[0]));
        /* Between samples and within the text is no way to tell; within a sample there is. */
        words += r < 0;
    }
    assert_in_range(words, 300, 560);
}

static void test_every_flip(void **state)
{
    static const char *const names[] = {"cpu-32be.prof", "cpu-java.prof", "heap-v2.txt",
                                        "heap-go.txt",   "growth.txt",    "java-contention.txt"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        _cleanup_buffer_ struct buffer content;
        load(names[i], &content);
        size_t failed = 0;
        const char *format = strstr(names[i], ".prof") ? "gperftools-cpu" : "gperftools-heap";
        for (size_t at = 0; at < content.length; at++) {
            for (unsigned mask = 1; mask < 256; mask = mask * 2 + 1) {
                _cleanup_profile_ struct profile profile;
                struct error error = {0};
                content.data[at] = (char)(content.data[at] ^ (char)mask);
                int r = read_bytes(format, content.data, content.length, &profile, &error);
                content.data[at] = (char)(content.data[at] ^ (char)mask);
                assert_true(r == 0 || error.text[0]);
                failed += r < 0;
            }
        }
        assert_in_range(failed, 1, content.length * 8 - 1);
    }
}

static void test_detect(void **state)
{
    static const struct {
        const char *text, *format;
    } cases[] = {
        {"heap profile: 1: 2 [3: 4] @ heap/8\n", "gperftools-heap"},
        {"--- contentionz 1 ---\n", "gperftools-heap"},
        {"--- heapz 1 ---\n", "gperftools-heap"},
        {"threadcreate profile: total 3\n", "gperftools-heap"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(format_by_name(cases[i].format)
                             ->detect((const uint8_t *)cases[i].text, strlen(cases[i].text)),
                         3);
    const struct format *heap = format_by_name("gperftools-heap");
    assert_int_equal(heap->detect((const uint8_t *)"main;run 12\n", 12), 0);
    const struct format *cpu = format_by_name("gperftools-cpu");
    assert_int_equal(cpu->detect((const uint8_t *)"\0\0\0\0\3\0\0\0", 8), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_32),
        cmocka_unit_test(test_cpu_64),
        cmocka_unit_test(test_cpu_without_trailer),
        cmocka_unit_test(test_cpu_java),
        cmocka_unit_test(test_cpu_keeps_real_callers),
        cmocka_unit_test(test_cpu_saturates),
        cmocka_unit_test(test_cpu_bad),
        cmocka_unit_test(test_heap),
        cmocka_unit_test(test_heap_unbiased),
        cmocka_unit_test(test_heap_in_use_only),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_go_heap),
        cmocka_unit_test(test_go_counts),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_contention),
        cmocka_unit_test(test_java),
        cmocka_unit_test(test_odd_text),
        cmocka_unit_test(test_hostile_inlining),
        cmocka_unit_test(test_bad_text),
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_every_flip),
        cmocka_unit_test(test_detect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
