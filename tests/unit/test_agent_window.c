// SPDX-License-Identifier: Apache-2.0
// From a window of addresses to a request: names that are looked for once, a resource for each set
// of labels, and what must not leave the host.

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/window.h"
#include "base/clock.h"
#include "base/memory.h"
#include "elf/file.h"
#include "format/otlp/otlp.h"
#include "unit.h"

/* Something with a name of its own, in this very file. */
__attribute__((noinline)) int window_test_function(int value);
int window_test_function(int value)
{
    __asm__ volatile("" : "+r"(value));
    return value + 1;
}

static uint64_t own_offset(const void *address)
{
    uint64_t start, end, offset, found = 0;
    char line[4600];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof(line), maps))
        if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
            (uint64_t)(uintptr_t)address >= start && (uint64_t)(uintptr_t)address < end)
            found = (uint64_t)(uintptr_t)address - start + offset;
    fclose(maps);
    return found;
}

static uint32_t mapping(struct profile *profile, const char *file)
{
    return profile_mapping(
        profile,
        &(struct profile_mapping){.limit = UINT64_MAX, .file = profile_cstring(profile, file)});
}

static void add_sample(struct profile *profile, const char *service, uint64_t address,
                       uint32_t mapping_id, enum frame_kind kind)
{
    struct profile_label label = {.key = profile_cstring(profile, "service_name"),
                                  .text = profile_cstring(profile, service)};
    uint32_t frame = profile_frame(profile, &(struct profile_frame){.address = address,
                                                                    .mapping = mapping_id,
                                                                    .kind = (uint32_t)kind & 63});
    size_t row = profile_sample(profile, profile_stack(profile, &frame, 1),
                                profile_label_set(profile, &label, 1), 0, 0);
    profile_add_value(profile, row, 0, 1);
    profile_add_value(profile, row, 1, 52631578);
}

static void add_types(struct profile *profile)
{
    profile_type(profile, profile_cstring(profile, "samples"), profile_cstring(profile, "count"));
    profile_type(profile, profile_cstring(profile, "cpu"), profile_cstring(profile, "nanoseconds"));
}

static bool has_function(const struct profile *profile, const char *name)
{
    for (uint32_t i = 1; i < profile->function_count; i++)
        if (!strcmp(profile_text(profile, profile->functions[i].name), name))
            return true;
    return false;
}

static void fill(struct profile *profile)
{
    add_types(profile);
    uint32_t self = mapping(profile, "/proc/self/exe");
    uint32_t jit = mapping(profile, "[jit 4000000]");
    uint32_t kernel = mapping(profile, "[kernel.kallsyms]");
    add_sample(profile, "a", own_offset((const void *)(uintptr_t)window_test_function), self,
               FRAME_NATIVE);
    add_sample(profile, "a", 0x7f0011223344, jit, FRAME_NATIVE);
    add_sample(profile, "b", 0x7f0055667788, 0, FRAME_NATIVE);
    add_sample(profile, "b", 0x1234, kernel, FRAME_KERNEL);
}

static void names(void **state)
{
    (void)state;
    struct namer *namer = namer_new();
    for (int round = 0; round < 2; round++) {
        _cleanup_profile_ struct profile from, to;
        struct error error = {0};
        profile_init(&from, PROFILE_LABELS | PROFILE_ADDRESSES);
        profile_init(&to, PROFILE_LABELS | PROFILE_ADDRESSES);
        fill(&from);
        _cleanup_free_ struct named_file *files = memory_zalloc(from.mapping_count, sizeof(*files));
        for (uint32_t i = 0; i < from.mapping_count; i++)
            files[i] = (struct named_file){.key = profile_text(&from, from.mappings[i].file)};
        files[1].path = "/proc/self/exe";
        assert_int_equal(namer_name(namer, &from, files, &to, &error), 0);
        assert_true(has_function(&to, "window_test_function"));
        assert_true(has_function(&to, "[jit]"));
        assert_true(has_function(&to, "[unknown]"));
        for (uint32_t i = 1; i < to.frame_count; i++) {
            assert_int_not_equal(to.frames[i].address, 0x7f0011223344);
            assert_int_not_equal(to.frames[i].address, 0x7f0055667788);
            assert_int_not_equal(to.frames[i].address, 0x1234);
        }
        /* The second time nothing has to be looked for. */
        struct namer_stats stats = namer_stats(namer);
        assert_int_equal(stats.frames, 4 * (round + 1));
        assert_int_equal(stats.found, 2);
    }
    namer_free(namer);
}

static void addresses_only(void **state)
{
    (void)state;
    struct namer *namer = namer_new();
    _cleanup_profile_ struct profile from, to;
    struct error error = {0};
    profile_init(&from, PROFILE_LABELS | PROFILE_ADDRESSES);
    profile_init(&to, PROFILE_LABELS | PROFILE_ADDRESSES);
    fill(&from);
    assert_int_equal(namer_name(namer, &from, NULL, &to, &error), 0);
    assert_false(has_function(&to, "window_test_function"));
    assert_true(has_function(&to, "[jit]"));
    namer_free(namer);
}

static void a_resource_for_each_set(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile from, back;
    _cleanup_buffer_ struct buffer out = {0};
    struct otlp_summary summary;
    struct error error = {0};
    struct source source;
    profile_init(&from, PROFILE_ALL);
    profile_init(&back, PROFILE_ALL);
    fill(&from);
    from.time_ns = 1700000000000000000;
    from.duration_ns = 10000000000;
    profile_add_comment(&from, profile_cstring(&from, "assay: 3 lost"));
    otlp_write_by_labels(&out, &from);
    assert_int_equal(source_open_memory(&source, "x", out.data, out.length, 1 << 20, &error), 0);
    assert_int_equal(otlp_read(&source, &back, &summary, &error), 0);
    source_release(&source);
    assert_int_equal(summary.resources, 2);
    assert_int_equal(summary.profiles, 4);
    assert_int_equal(summary.samples, 8);
    assert_int_equal(back.samples.count, 4);
    assert_int_equal(back.time_ns, from.time_ns);
    assert_true(back.comment_count >= 1);
    for (size_t row = 0; row < back.samples.count; row++) {
        size_t count;
        const struct profile_label *labels =
            profile_labels(&back, back.samples.labels[row], &count);
        assert_int_equal(count, 1);
        assert_string_equal(profile_text(&back, labels[0].key), "service_name");
        assert_int_equal(back.samples.values[1][row], 52631578);
    }
}

static uint32_t label(void *context, const struct capture_process *process, struct profile *profile)
{
    (void)context;
    (void)process;
    struct profile_label one = {.key = profile_cstring(profile, "service_name"),
                                .text = profile_cstring(profile, "self")};
    return profile_label_set(profile, &one, 1);
}

static struct capture *capture_self(void)
{
    pid_t self = getpid();
    struct capture_options options = {
        .pids = &self, .pid_count = 1, .frequency_hz = 999, .user = true, .label = label};
    struct capture *capture = NULL;
    struct error error = {0};
    if (capture_new(&options, &capture, &error) < 0)
        print_message("%s\n", error.text);
    return capture;
}

static void use_cpu(void)
{
    int64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 200000000;
    int value = 0;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
        for (int i = 0; i < 100000; i++)
            value = window_test_function(value);
}

static void read_back(const struct buffer *body, struct profile *profile)
{
    struct otlp_summary summary;
    struct error error = {0};
    struct source source;
    assert_int_equal(source_open_memory(&source, "x", body->data, body->length, 1 << 24, &error),
                     0);
    assert_int_equal(otlp_read(&source, profile, &summary, &error), 0);
    source_release(&source);
}

/* Recordings end, and capture is turned off, before what they sampled has names: their files are
 * there all the same, and no others in their places. */
static void names_after_the_capture(void **state)
{
    (void)state;
    struct capture *capture = capture_self();
    struct error error = {0};
    _cleanup_buffer_ struct buffer body = {0};
    _cleanup_profile_ struct profile back;
    int others[64];
    if (!capture) {
        skip();
        return;
    }
    struct window *window = window_new(1700000000000000000);
    capture_into(capture, &window->profile);
    use_cpu();
    assert_true(capture_read(capture, 0, true, &error) >= 0);
    capture_into(capture, NULL);
    window_close(window, capture, 1000000000, true);
    capture_free(capture);
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
        others[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct namer *namer = namer_new();
    assert_int_equal(window_encode(window, namer, &body, &error), 0);
    namer_free(namer);
    window_free(window);
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
        close(others[i]);
    profile_init(&back, PROFILE_ALL);
    read_back(&body, &back);
    assert_true(has_function(&back, "window_test_function"));
}

/* A file that couldn't be opened once has names when it can. */
static void names_the_next_time(void **state)
{
    (void)state;
    struct namer *namer = namer_new();
    for (int round = 0; round < 2; round++) {
        _cleanup_profile_ struct profile from, to;
        struct error error = {0};
        profile_init(&from, PROFILE_LABELS | PROFILE_ADDRESSES);
        profile_init(&to, PROFILE_LABELS | PROFILE_ADDRESSES);
        fill(&from);
        _cleanup_free_ struct named_file *files = memory_zalloc(from.mapping_count, sizeof(*files));
        for (uint32_t i = 0; i < from.mapping_count; i++)
            files[i] = (struct named_file){.key = profile_text(&from, from.mappings[i].file)};
        files[1].path = round ? "/proc/self/exe" : NULL;
        assert_int_equal(namer_name(namer, &from, files, &to, &error), 0);
        assert_int_equal(has_function(&to, "window_test_function"), round);
    }
    namer_free(namer);
}

/* A window without samples says that somebody looked. */
static void nothing_happened(void **state)
{
    (void)state;
    struct window *window = window_new(1700000000000000000);
    struct namer *namer = namer_new();
    _cleanup_buffer_ struct buffer body = {0};
    struct error error = {0};
    window_close(window, NULL, 10000000000, true);
    assert_int_equal(window_encode(window, namer, &body, &error), 0);
    assert_true(body.length > 0);
    namer_free(namer);
    window_free(window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(addresses_only),
        cmocka_unit_test(a_resource_for_each_set),
        cmocka_unit_test(names_after_the_capture),
        cmocka_unit_test(names_the_next_time),
        cmocka_unit_test(nothing_happened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
