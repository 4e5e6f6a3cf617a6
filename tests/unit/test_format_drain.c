// SPDX-License-Identifier: Apache-2.0
// Files that are written in pieces: the same as those written whole, never much of them at once,
// and no further than anybody wants them.

#include <stdio.h>

#include "format/format.h"
#include "io/gzip.h"
#include "unit.h"

#define PIECE_BYTES 4096

struct taker {
    struct buffer all;
    size_t pieces, largest;
    size_t end; /* wants no more after so many; 0: wants all */
};

static int take(void *context, const void *bytes, size_t length)
{
    struct taker *taker = context;
    buffer_add(&taker->all, bytes, length);
    taker->largest = MAX(taker->largest, length);
    taker->pieces++;
    return taker->end && taker->pieces >= taker->end ? -ECANCELED : 0;
}

/* 30,000 stacks of 2,000 functions, with labels. */
static void fill(struct profile *profile)
{
    profile_init(profile, PROFILE_ALL);
    char name[64];
    uint32_t functions[2000], sets[8];
    profile_type(profile, profile_cstring(profile, "samples"), profile_cstring(profile, "count"));
    profile_type(profile, profile_cstring(profile, "cpu"), profile_cstring(profile, "nanoseconds"));
    for (uint32_t i = 0; i < ARRAY_LENGTH(functions); i++) {
        snprintf(name, sizeof(name), "package%u.function_with_a_name_%u", i % 7, i);
        functions[i] = profile_function(
            profile, &(struct profile_function){.name = profile_cstring(profile, name)});
    }
    for (uint32_t i = 0; i < ARRAY_LENGTH(sets); i++) {
        snprintf(name, sizeof(name), "value %u", i);
        struct profile_label label = {.key = profile_cstring(profile, "thread"),
                                      .text = profile_cstring(profile, name)};
        sets[i] = profile_label_set(profile, &label, 1);
    }
    for (uint32_t i = 0; i < 30000; i++) {
        uint32_t node = 0;
        for (uint32_t depth = 0, mix = i; depth < 12; depth++, mix = mix * 2654435761u + depth) {
            struct profile_frame frame = {.function = functions[(mix >> 7) % 2000], .line = depth};
            node = profile_child(profile, node, profile_frame(profile, &frame));
        }
        size_t row = profile_sample(profile, node, sets[i % 8], 0, 0);
        profile_add_value(profile, row, 0, 1);
        profile_add_value(profile, row, 1, 10 + i % 3);
    }
}

static void read_back(const struct buffer *file, struct buffer *ret_text)
{
    struct profile profile;
    struct error error = {0};
    const struct format *format;
    profile_init(&profile, PROFILE_ALL);
    if (format_read_memory("x", file->data, file->length, NULL, &profile, &format, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(
        format_folded.write(ret_text, &profile, &(struct write_options){.type = -1}, &error), 0);
    profile_release(&profile);
}

static void test_pieces(void **state)
{
    (void)state;
    static const struct format *const formats[] = {&format_pprof, &format_otlp, &format_folded,
                                                   &format_svg,   &format_html, &format_speedscope};
    const struct write_options options = {.type = -1, .title = "drained"};
    struct profile profile;
    struct error error = {0};
    fill(&profile);
    for (size_t i = 0; i < ARRAY_LENGTH(formats); i++) {
        struct buffer whole = {0};
        assert_int_equal(formats[i]->write(&whole, &profile, &options, &error), 0);
        struct taker taker = {0};
        struct buffer_drain drain = {.take = take, .context = &taker, .piece_bytes = PIECE_BYTES};
        struct buffer out = {.drain = &drain};
        assert_int_equal(formats[i]->write(&out, &profile, &options, &error), 0);
        assert_int_equal(buffer_written(&out), drain.taken + out.length);
        assert_true(buffer_drain(&out));
        /* The page's own script is one piece, and a table's part another. */
        assert_in_range(taker.largest, 1, 500000);
        assert_in_range(taker.pieces, formats[i] == &format_svg ? 3 : 10, whole.length);
        if (formats[i] != &format_otlp) {
            assert_int_equal(taker.all.length, whole.length);
            assert_memory_equal(taker.all.data, whole.data, whole.length);
        } else {
            struct buffer a = {0}, b = {0};
            read_back(&whole, &a);
            read_back(&taker.all, &b);
            assert_true(a.length > 100000);
            assert_int_equal(a.length, b.length);
            assert_memory_equal(a.data, b.data, b.length);
            buffer_release(&a);
            buffer_release(&b);
        }
        buffer_release(&whole);
        buffer_release(&taker.all);
        buffer_release(&out);
    }
    profile_release(&profile);
}

/* A writer whose reader has gone ends without writing the rest. */
static void test_unwanted(void **state)
{
    (void)state;
    static const struct format *const formats[] = {&format_pprof, &format_otlp, &format_folded,
                                                   &format_speedscope};
    struct profile profile;
    struct error error = {0};
    fill(&profile);
    for (size_t i = 0; i < ARRAY_LENGTH(formats); i++) {
        struct taker taker = {.end = 2};
        struct buffer_drain drain = {.take = take, .context = &taker, .piece_bytes = PIECE_BYTES};
        struct buffer out = {.drain = &drain};
        assert_int_equal(
            formats[i]->write(&out, &profile, &(struct write_options){.type = -1}, &error), 0);
        assert_int_equal(taker.pieces, 2);
        assert_int_equal(drain.failure, -ECANCELED);
        assert_false(buffer_drain(&out));
        buffer_release(&taker.all);
        buffer_release(&out);
    }
    profile_release(&profile);
}

static void test_gzip_pieces(void **state)
{
    (void)state;
    struct gzip_stream *stream = gzip_stream_new();
    struct taker taker = {0};
    struct buffer plain = {0};
    struct error error = {0};
    uint32_t noise = 1;
    for (size_t i = 0; i < 300000; i++)
        buffer_add_u64(&plain, noise = noise * 1664525 + 1013904223);
    for (size_t at = 0, length = 1; at < plain.length; at += length, length = length * 3 % 70001) {
        length = MIN(length, plain.length - at);
        assert_int_equal(gzip_stream_put(stream, plain.data + at, length, take, &taker), 0);
    }
    assert_int_equal(gzip_stream_end(stream, take, &taker), 0);
    gzip_stream_free(stream);
    assert_true(taker.all.length < plain.length / 2 + plain.length / 10);

    struct source source;
    assert_int_equal(source_open_memory(&source, "x", taker.all.data, taker.all.length, 0, &error),
                     0);
    size_t at = 0;
    while (source_need(&source, 1, &error) == 0 && source_available(&source)) {
        size_t length = source_available(&source);
        assert_true(at + length <= plain.length);
        assert_memory_equal(source_data(&source), plain.data + at, length);
        source_skip(&source, length);
        at += length;
    }
    assert_int_equal(at, plain.length);
    source_release(&source);
    buffer_release(&taker.all);

    /* One that is refused says so. */
    stream = gzip_stream_new();
    taker = (struct taker){.end = 1};
    assert_int_equal(gzip_stream_put(stream, plain.data, plain.length, take, &taker), -ECANCELED);
    gzip_stream_free(stream);
    buffer_release(&taker.all);
    buffer_release(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_unwanted),
        cmocka_unit_test(test_gzip_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
