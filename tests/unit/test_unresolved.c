// SPDX-License-Identifier: Apache-2.0
// Unresolved stacks are the stacks: settled they give the profile that reading gives, and each has
// the digest that the same stack has in any profile, from whatever format it came. Damaged input is
// refused or read, and what is read can be put together.

#include "profile/unresolved.h"
#include "store/file/catalog.h"
#include "test_otlp.h"

#define DETAIL ((enum profile_detail)(PROFILE_ALL & ~PROFILE_TIMES))
#define SEED 0x5eedull

static const char *const otlp_files[] = {
    "1.8.pb",           "1.8-unpacked.pb",          "1.9.pb",    "1.10.pb",
    "1.10-unpacked.pb", "1.10-dictionary-first.pb", "1.10.json", "1.10-sorted-snake.json"};
static const char *const pprof_files[] = {"cpu-labels.pb.gz", "goroutine.pb.gz",   "heap.pb.gz",
                                          "inlines.pb.gz",    "many-labels.pb.gz", "mutex.pb.gz",
                                          "negative.pb.gz",   "empty.pb.gz"};

static void load(const char *folder, const char *name, struct buffer *content)
{
    char path[512];
    struct error error = {0};
    snprintf(path, sizeof(path), "%s/%s/%s", getenv("FIXTURES"), folder, name);
    if (file_read(path, 1 << 22, content, &error) < 0)
        fail_msg("%s", error.text);
}

static int read_as(const struct format *format, const struct buffer *content, bool unresolved,
                   struct profile *profile, struct error *error)
{
    struct read_options options = {.format = format};
    const struct format *used;
    profile_init(profile, DETAIL);
    if (!unresolved)
        return format_read_memory("input", content->data, content->length, &options, profile, &used,
                                  error);
    _cleanup_source_ struct source source = {0};
    int r = source_open_memory(&source, "input", content->data, content->length, 0, error);
    return r < 0 ? r : format->read_unresolved(&source, SEED, profile, error);
}

/* Puts every stack together, and compares its digest with what a store makes of the result. */
static unsigned check_digests(struct profile *profile)
{
    struct unresolved_stacks *unresolved = profile->unresolved;
    assert_non_null(unresolved);
    assert_ptr_equal(unresolved->profile, profile);
    uint32_t *scratch = calloc(unresolved->deepest + 1ul, sizeof(*scratch));
    uint32_t *nodes = calloc(unresolved->count, sizeof(*nodes));
    for (uint32_t i = 0; i < unresolved->count; i++)
        if (unresolved->digests[i].high)
            nodes[i] = unresolved_node(unresolved, i, scratch);
    struct stack_finder finder;
    stack_finder_init(&finder, profile, SEED);
    unsigned compared = 0;
    for (uint32_t i = 0; i < unresolved->count; i++) {
        struct digest digest = stack_finder_digest(&finder, nodes[i]);
        if (!unresolved->digests[i].high)
            continue;
        assert_true(digest.low == unresolved->digests[i].low &&
                    digest.high == unresolved->digests[i].high);
        compared++;
    }
    stack_finder_release(&finder);
    free(nodes);
    free(scratch);
    return compared;
}

/* What a frame is said to be made of is what it becomes. */
static void check_parts(struct profile *profile)
{
    struct unresolved_stacks *unresolved = profile->unresolved;
    struct unresolved_parts *parts = calloc(unresolved->frame_count + 1ul, sizeof(*parts));
    uint32_t *ids = calloc(unresolved->frame_count + 1ul, sizeof(*ids));
    for (uint32_t i = 0; i < unresolved->frame_count; i++)
        unresolved->parts(unresolved, i, &parts[i]);
    for (uint32_t i = 0; i < unresolved->frame_count; i++) {
        ids[i] = unresolved->frame(unresolved, i);
        struct profile_frame frame = profile->frames[ids[i]];
        assert_int_equal(!frame.function, !parts[i].function);
        assert_int_equal(!frame.mapping, !parts[i].mapping);
        for (uint32_t k = 0; k < i; k++) {
            const struct profile_frame *other = &profile->frames[ids[k]];
            assert_int_equal(frame.function == other->function,
                             parts[i].function == parts[k].function);
            assert_int_equal(frame.mapping == other->mapping, parts[i].mapping == parts[k].mapping);
        }
        frame.function = frame.mapping = 0;
        assert_memory_equal(&frame, &parts[i].frame, sizeof(frame));
    }
    free(ids);
    free(parts);
}

static void check_file(const struct format *format, const char *folder, const char *name)
{
    _cleanup_buffer_ struct buffer content = {0};
    _cleanup_profile_ struct profile plain, unresolved, digested;
    struct error error = {0};
    load(folder, name, &content);
    assert_int_equal(read_as(format, &content, false, &plain, &error), 0);
    assert_int_equal(read_as(format, &content, true, &unresolved, &error), 0);
    assert_int_equal(unresolved.node_count, 1); /* nothing was put together yet */
    profile_settle(&unresolved);
    assert_null(unresolved.unresolved);
    char *expected = describe(&plain), *got = describe(&unresolved);
    assert_string_equal(got, expected);
    free(expected);
    free(got);
    assert_int_equal(read_as(format, &content, true, &digested, &error), 0);
    check_parts(&digested);
    assert_true(check_digests(&digested) > 0 || !plain.samples.count);
}

static void settles_to_what_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(otlp_files); i++)
        check_file(is_json(otlp_files[i]) ? &format_otlp_json : &format_otlp, "otlp",
                   otlp_files[i]);
    for (size_t i = 0; i < ARRAY_LENGTH(pprof_files); i++)
        check_file(&format_pprof, "pprof", pprof_files[i]);
}

/* A set of digests, sorted. */
static int compare_digests(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct digest));
}

static size_t collect_digests(const struct profile *profile, struct digest **ret_digests)
{
    const struct unresolved_stacks *unresolved = profile->unresolved;
    struct digest *digests = calloc(unresolved->count, sizeof(*digests));
    size_t count = 0, distinct = 0;
    for (uint32_t i = 0; i < unresolved->count; i++)
        if (unresolved->digests[i].high)
            digests[count++] = unresolved->digests[i];
    qsort(digests, count, sizeof(*digests), compare_digests);
    for (size_t i = 0; i < count; i++)
        if (!i || compare_digests(&digests[i], &digests[distinct - 1]))
            digests[distinct++] = digests[i];
    *ret_digests = digests;
    return distinct;
}

/* One profile as pprof and as OTLP has the same stacks. */
static void formats_agree(void **state)
{
    (void)state;
    static const char *const files[] = {"inlines.pb.gz", "heap.pb.gz", "cpu-labels.pb.gz"};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        _cleanup_buffer_ struct buffer content = {0}, otlp = {0};
        _cleanup_profile_ struct profile plain, one, other;
        struct error error = {0};
        load("pprof", files[i], &content);
        assert_int_equal(read_as(&format_pprof, &content, false, &plain, &error), 0);
        assert_int_equal(read_as(&format_pprof, &content, true, &one, &error), 0);
        otlp_write(&otlp, &plain);
        assert_int_equal(read_as(&format_otlp, &otlp, true, &other, &error), 0);
        struct digest *a, *b;
        size_t count = collect_digests(&one, &a);
        assert_true(count > 1);
        assert_int_equal(collect_digests(&other, &b), count);
        assert_memory_equal(a, b, count * sizeof(*a));
        free(a);
        free(b);
    }
}

static void damage_is_survived(void **state)
{
    (void)state;
    static const struct {
        const struct format *format;
        const char *folder, *name;
    } files[] = {{&format_otlp, "otlp", "1.10.pb"}, {&format_pprof, "pprof", "inlines.pb.gz"}};
    for (size_t f = 0; f < ARRAY_LENGTH(files); f++) {
        _cleanup_buffer_ struct buffer content = {0}, pprof = {0};
        _cleanup_profile_ struct profile plain;
        struct error error = {0};
        load(files[f].folder, files[f].name, &content);
        if (files[f].format == &format_pprof) { /* without gzip, whose checksum would find it all */
            struct write_options options = {.type = -1};
            assert_int_equal(read_as(&format_pprof, &content, false, &plain, &error), 0);
            assert_int_equal(format_pprof.write(&pprof, &plain, &options, &error), 0);
            content.length = 0;
            buffer_add(&content, pprof.data, pprof.length);
        } else {
            profile_init(&plain, DETAIL);
        }
        size_t length = content.length;
        for (size_t at = 0; at < 2 * length; at++) {
            struct profile unresolved, eager;
            uint8_t kept = (uint8_t)content.data[at % length];
            if (at < length)
                content.length = at;
            else
                content.data[at - length] ^= (char)(1 << at % 8);
            int r = read_as(files[f].format, &content, true, &unresolved, &error);
            int expected = read_as(files[f].format, &content, false, &eager, &error);
            assert_int_equal(r < 0, expected < 0);
            if (!r)
                check_digests(&unresolved);
            profile_release(&unresolved);
            profile_release(&eager);
            content.length = length;
            content.data[at % length] = (char)kept;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settles_to_what_is_read),
        cmocka_unit_test(formats_agree),
        cmocka_unit_test(damage_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
