// SPDX-License-Identifier: Apache-2.0
// Byte sources: every way of compressing, cutting off, damaging and trickling the same bytes.

#include "io/source.h"

#include <libdeflate.h>
#include <pthread.h>
#include <zstd.h>

#include "base/file.h"
#include "base/memory.h"
#include "format/format.h"
#include "unit.h"

/* Text that compresses to something with several deflate blocks. */
static struct buffer sample_text(size_t length)
{
    struct buffer text = {0};
    for (unsigned seed = 1; text.length < length; seed = seed * 1664525 + 1013904223)
        buffer_printf(&text, "main;work%u;leaf%u %u\n", seed % 50, (seed >> 8) % 1000, seed >> 20);
    text.length = length;
    return text;
}

static void add_gzip(struct buffer *out, const void *data, size_t length)
{
    struct buffer content = {.data = (char *)data, .length = length}, member = {0};
    assert_int_equal(format_compress_gzip(&content, &member), 0);
    buffer_add(out, member.data, member.length);
    buffer_release(&member);
}

static void add_zstd(struct buffer *out, const void *data, size_t length)
{
    size_t room = ZSTD_compressBound(length);
    size_t got = ZSTD_compress(buffer_reserve(out, room), room, data, length, 3);
    assert_false(ZSTD_isError(got));
    out->length += got;
}

/* Reads all of a source, asking for `step` bytes at a time. */
static int read_all(struct source *source, size_t step, struct buffer *out, struct error *error)
{
    for (;;) {
        int r = source_need(source, step, error);
        if (r < 0)
            return r;
        size_t available = source_available(source);
        assert_true(available >= step || source->ended);
        if (!available)
            return 0;
        assert_int_equal(source_offset(source), out->length);
        size_t taken = MIN(available, step);
        buffer_add(out, source_data(source), taken);
        source_skip(source, taken);
    }
}

static int read_memory(const struct buffer *input, size_t step, uint64_t limit, struct buffer *out,
                       struct error *error)
{
    _cleanup_source_ struct source source = {0};
    /* An exact copy, so that AddressSanitizer sees a read beyond it. */
    _cleanup_free_ void *exact = memory_alloc(input->length);
    memcpy(exact, input->data, input->length);
    int r = source_open_memory(&source, "input", exact, input->length, limit, error);
    return r < 0 ? r : read_all(&source, step, out, error);
}

static void assert_reads_as(const struct buffer *input, const struct buffer *expected)
{
    static const size_t steps[] = {1000, 65536, 99991, 1 << 20};
    for (size_t i = 0; i < ARRAY_LENGTH(steps); i++) {
        _cleanup_buffer_ struct buffer out = {0};
        struct error error = {0};
        int r = read_memory(input, steps[i], 0, &out, &error);
        if (r < 0)
            fail_msg("%s", error.text);
        assert_int_equal(out.length, expected->length);
        assert_memory_equal(out.data, expected->data, expected->length);
    }
}

static void reads_plain_and_compressed(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 5, 4095, 65536, 262144, 262145, 1500000};
    for (size_t i = 0; i < ARRAY_LENGTH(lengths); i++) {
        _cleanup_buffer_ struct buffer text = sample_text(lengths[i]);
        _cleanup_buffer_ struct buffer gzip = {0}, zstd = {0};
        add_gzip(&gzip, text.data, text.length);
        add_zstd(&zstd, text.data, text.length);
        assert_reads_as(&text, &text);
        assert_reads_as(&gzip, &text);
        assert_reads_as(&zstd, &text);
    }
}

static void says_how_it_was_compressed(void **state)
{
    (void)state;
    struct error error = {0};
    _cleanup_buffer_ struct buffer gzip = {0}, zstd = {0};
    add_gzip(&gzip, "x", 1);
    add_zstd(&zstd, "x", 1);
    const struct {
        const char *data;
        size_t length;
        const char *name;
    } cases[] = {{gzip.data, gzip.length, "gzip"},
                 {zstd.data, zstd.length, "zstd"},
                 {"x", 1, "none"},
                 {"\x1f", 1, "none"},
                 {NULL, 0, "none"}};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        _cleanup_source_ struct source source = {0};
        assert_int_equal(
            source_open_memory(&source, "input", cases[i].data, cases[i].length, 0, &error), 0);
        assert_string_equal(source_compression(&source), cases[i].name);
    }
}

static void reads_several_members(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer text = sample_text(700000);
    _cleanup_buffer_ struct buffer gzip = {0}, zstd = {0};
    size_t at = 0;
    /* An empty member in the middle, and zeroes at the end as tape writers leave them. */
    static const size_t parts[] = {1, 300000, 0, 399998, 1};
    for (size_t i = 0; i < ARRAY_LENGTH(parts); at += parts[i++]) {
        add_gzip(&gzip, text.data + at, parts[i]);
        add_zstd(&zstd, text.data + at, parts[i]);
    }
    assert_int_equal(at, text.length);
    assert_reads_as(&gzip, &text);
    assert_reads_as(&zstd, &text);
    buffer_add(&gzip, "\0\0\0\0\0\0\0", 7);
    assert_reads_as(&gzip, &text);
}

static void reads_empty_input(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer nothing = {0}, gzip = {0}, zstd = {0};
    add_gzip(&gzip, "", 0);
    add_zstd(&zstd, "", 0);
    buffer_text(&nothing);
    assert_reads_as(&nothing, &nothing);
    assert_reads_as(&gzip, &nothing);
    assert_reads_as(&zstd, &nothing);
}

static void truncation_is_an_error_at_every_byte(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer text = sample_text(3000);
    _cleanup_buffer_ struct buffer gzip = {0}, zstd = {0};
    add_gzip(&gzip, text.data, text.length);
    add_zstd(&zstd, text.data, text.length);
    const struct buffer *inputs[] = {&gzip, &zstd};
    for (size_t i = 0; i < 2; i++)
        /* Fewer bytes than the magic number's are plain bytes. */
        for (size_t length = i ? 4 : 2; length < inputs[i]->length; length++) {
            struct buffer cut = {.data = inputs[i]->data, .length = length};
            _cleanup_buffer_ struct buffer out = {0};
            struct error error = {0};
            assert_int_equal(read_memory(&cut, 100, 0, &out, &error), -EBADMSG);
            assert_says(&error, "input ");
            assert_says(&error, "truncated");
            assert_true(out.length <= text.length);
            assert_memory_equal(out.data ? out.data : "", text.data, out.length);
        }
}

static void damage_is_never_silent(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer text = sample_text(3000);
    _cleanup_buffer_ struct buffer gzip = {0};
    add_gzip(&gzip, text.data, text.length);
    /* Bytes 4 to 9 of the header are time, flags of the compressor and system: not content. The
     * bits that fill the last byte before the checksum are none either. */
    for (size_t at = 10; at < gzip.length; at++)
        for (int bit = 0; bit < 8; bit++) {
            gzip.data[at] ^= (char)(1 << bit);
            _cleanup_buffer_ struct buffer out = {0};
            struct error error = {0};
            int r = read_memory(&gzip, 100, 0, &out, &error);
            bool same = out.length == text.length && !memcmp(out.data, text.data, text.length);
            assert_true(r == -EBADMSG || (!r && same && at == gzip.length - 9));
            gzip.data[at] ^= (char)(1 << bit);
        }
    gzip.data[gzip.length - 6] ^= 1; /* of the CRC */
    _cleanup_buffer_ struct buffer out = {0};
    struct error error = {0};
    assert_int_equal(read_memory(&gzip, 100, 0, &out, &error), -EBADMSG);
    assert_says(&error, "checksum is wrong");
}

static void expansion_has_a_limit(void **state)
{
    (void)state;
    enum { LENGTH = 2000000 };
    char *zeroes = memory_zalloc(LENGTH, 1);
    _cleanup_buffer_ struct buffer gzip = {0}, zstd = {0};
    add_gzip(&gzip, zeroes, LENGTH);
    add_zstd(&zstd, zeroes, LENGTH);
    free(zeroes);
    const struct buffer *inputs[] = {&gzip, &zstd};
    for (size_t i = 0; i < 2; i++) {
        _cleanup_buffer_ struct buffer out = {0};
        struct error error = {0};
        assert_int_equal(read_memory(inputs[i], 100, LENGTH - 1, &out, &error), -E2BIG);
        assert_says(&error, "input expands to more than 1999999 bytes");
        out.length = 0;
        assert_int_equal(read_memory(inputs[i], 100, LENGTH, &out, &error), 0);
        assert_int_equal(out.length, LENGTH);
    }
}

static void a_length_that_lies_costs_no_memory(void **state)
{
    (void)state;
    struct error error = {0};
    _cleanup_buffer_ struct buffer gzip = {0};
    add_gzip(&gzip, "small", 5);
    _cleanup_source_ struct source source = {0};
    assert_int_equal(source_open_memory(&source, "input", gzip.data, gzip.length, 0, &error), 0);
    assert_int_equal(source_need(&source, SIZE_MAX, &error), 0);
    assert_true(source.ended);
    assert_bytes((const char *)source_data(&source), source_available(&source), "small");
}

static void need_all_has_a_limit(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer text = sample_text(900000);
    _cleanup_buffer_ struct buffer gzip = {0};
    add_gzip(&gzip, text.data, text.length);
    const struct buffer *inputs[] = {&gzip, &text};
    for (size_t i = 0; i < 2; i++) {
        struct error error = {0};
        _cleanup_source_ struct source source = {0}, again = {0};
        const struct buffer *input = inputs[i];
        source_open_memory(&source, "input", input->data, input->length, 0, &error);
        assert_int_equal(source_need_all(&source, 900000, &error), 0);
        assert_int_equal(source_available(&source), 900000);
        assert_memory_equal(source_data(&source), text.data, text.length);
        source_open_memory(&again, "input", input->data, input->length, 0, &error);
        assert_int_equal(source_need_all(&again, 899999, &error), -E2BIG);
        assert_says(&error, "input is larger than 899999 bytes");
    }
}

static void check_lines(const char *text, size_t length, const char *expected)
{
    struct error error = {0};
    _cleanup_source_ struct source source = {0};
    _cleanup_buffer_ struct buffer out = {0};
    assert_int_equal(source_open_memory(&source, "input", text, length, 0, &error), 0);
    const char *line;
    size_t line_length;
    int r;
    while ((r = source_line(&source, &line, &line_length, &error)) > 0) {
        buffer_add(&out, line, line_length);
        buffer_add_char(&out, '|');
    }
    assert_int_equal(r, 0);
    assert_string_equal(buffer_text(&out), expected);
}

static void splits_lines(void **state)
{
    (void)state;
    check_lines("a\nbb\n\nc\n", 8, "a|bb||c|");
    check_lines("a\r\nb\rc\r\n\r\n", 10, "a|b\rc||");
    check_lines("no end", 6, "no end|");
    check_lines("end\r", 4, "end|");
    check_lines("\n", 1, "|");
    check_lines("", 0, "");
}

static void lines_may_cross_the_window(void **state)
{
    (void)state;
    struct error error = {0};
    _cleanup_buffer_ struct buffer text = {0}, gzip = {0};
    for (unsigned i = 0; i < 40; i++) {
        buffer_printf(&text, "%u:", i);
        memset(buffer_reserve(&text, i * 3001), 'a' + (int)(i % 26), i * 3001);
        text.length += i * 3001;
        buffer_add_char(&text, '\n');
    }
    add_gzip(&gzip, text.data, text.length);
    _cleanup_source_ struct source source = {0};
    source_open_memory(&source, "input", gzip.data, gzip.length, 0, &error);
    const char *line, *expected = text.data;
    size_t length;
    for (unsigned i = 0; i < 40; i++) {
        assert_int_equal(source_line(&source, &line, &length, &error), 1);
        assert_memory_equal(line, expected, length);
        assert_int_equal(expected[length], '\n');
        expected += length + 1;
    }
    assert_int_equal(source_line(&source, &line, &length, &error), 0);
}

static void endless_lines_are_an_error(void **state)
{
    (void)state;
    enum { LENGTH = 20 << 20 };
    char *zeroes = memory_zalloc(LENGTH, 1);
    _cleanup_buffer_ struct buffer gzip = {0};
    add_gzip(&gzip, zeroes, LENGTH);
    const struct {
        const char *data;
        size_t length;
    } inputs[] = {{gzip.data, gzip.length}, {zeroes, LENGTH}};
    for (size_t i = 0; i < 2; i++) {
        struct error error = {0};
        _cleanup_source_ struct source source = {0};
        source_open_memory(&source, "input", inputs[i].data, inputs[i].length, 0, &error);
        const char *line;
        size_t length;
        assert_int_equal(source_line(&source, &line, &length, &error), -E2BIG);
        assert_says(&error, "a line longer than 16 MiB");
    }
    free(zeroes);
}

/* The other end of a pipe: writes in pieces so small that every read is short. */
struct trickle {
    int fd;
    const struct buffer *data;
    size_t piece;
};

static void *write_pieces(void *argument)
{
    const struct trickle *trickle = argument;
    for (size_t at = 0; at < trickle->data->length; at += trickle->piece) {
        size_t length = MIN(trickle->piece, trickle->data->length - at);
        if (file_write_all(trickle->fd, trickle->data->data + at, length) < 0)
            break;
        if (at < 16)
            usleep(1000); /* so that the first bytes really arrive one by one */
    }
    close(trickle->fd);
    return NULL;
}

static void check_pipe(const struct buffer *input, size_t piece, const struct buffer *expected)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct trickle trickle = {.fd = ends[1], .data = input, .piece = piece};
    pthread_t writer;
    assert_int_equal(pthread_create(&writer, NULL, write_pieces, &trickle), 0);
    char path[32];
    snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
    struct error error = {0};
    struct source source = {0};
    int r = source_open(&source, path, 0, &error);
    close(ends[0]);
    assert_int_equal(r, 0);
    _cleanup_buffer_ struct buffer out = {0};
    r = read_all(&source, 777, &out, &error);
    source_release(&source);
    pthread_join(writer, NULL);
    if (r < 0)
        fail_msg("%s", error.text);
    assert_int_equal(out.length, expected->length);
    assert_memory_equal(out.data, expected->data, expected->length);
}

static void reads_from_a_pipe_byte_by_byte(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer text = sample_text(20000);
    _cleanup_buffer_ struct buffer gzip = {0}, zstd = {0};
    add_gzip(&gzip, text.data, 8000);
    add_gzip(&gzip, text.data + 8000, 12000);
    add_zstd(&zstd, text.data, text.length);
    static const size_t pieces[] = {1, 2, 3, 1000};
    for (size_t i = 0; i < ARRAY_LENGTH(pieces); i++) {
        check_pipe(&text, pieces[i], &text);
        check_pipe(&gzip, pieces[i], &text);
        check_pipe(&zstd, pieces[i], &text);
    }
}

static void reads_files_larger_than_the_window(void **state)
{
    (void)state;
    struct error error = {0};
    _cleanup_buffer_ struct buffer text = sample_text(1500000);
    assert_int_equal(file_write_atomic("plain", text.data, text.length, &error), 0);
    _cleanup_source_ struct source source = {0};
    _cleanup_buffer_ struct buffer out = {0};
    assert_int_equal(source_open(&source, "plain", 1, &error), 0);
    assert_int_equal(read_all(&source, 4096, &out, &error), 0);
    assert_int_equal(out.length, text.length);
    assert_memory_equal(out.data, text.data, text.length);
}

static void says_what_cannot_be_opened(void **state)
{
    (void)state;
    struct error error = {0};
    struct source source = {0};
    assert_int_equal(source_open(&source, "none.pb.gz", 0, &error), -ENOENT);
    assert_says(&error, "none.pb.gz cannot be opened: No such file");
    assert_int_equal(source_open(&source, ".", 0, &error), -EISDIR);
    assert_says(&error, ". cannot be read: Is a directory");
    assert_null(source.decoder);
}

/* Text as UTF-16, with surrogates and half of a pair; and the mark before UTF-8. */
static void decodes_text(void **state)
{
    static const char little[] = "\xff\xfe"
                                 "a\0;\0\xe4\0\x3d\xd8\x00\xde \0\x3d\xd8"
                                 "7\0\n\0x";
    static const char big[] = "\xfe\xff\0a\0;\0\xe4\xd8\x3d\xde\0\0 \xd8\x3d\0"
                              "7\0\nx";
    static const char expected[] = "a;\xc3\xa4\xf0\x9f\x98\x80 \xef\xbf\xbd"
                                   "7\n\xef\xbf\xbd";
    const struct {
        const char *data;
        size_t length;
        const char *expected;
    } cases[] = {{little, sizeof(little) - 1, expected},
                 {big, sizeof(big) - 1, expected},
                 {"\xef\xbb\xbf"
                  "a;b 1\n",
                  9, "a;b 1\n"},
                 {"\xff\xfe", 2, ""},
                 {"a;b 1\n", 6, "a;b 1\n"},
                 {"", 0, ""}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct source source;
        struct error error = {0};
        assert_int_equal(
            source_open_memory(&source, "text", cases[i].data, cases[i].length, 0, &error), 0);
        assert_int_equal(source_decode_text(&source, &error), 0);
        assert_int_equal(source_decode_text(&source, &error), 0);
        assert_int_equal(source_need_all(&source, 1000, &error), 0);
        assert_int_equal(source_available(&source), strlen(cases[i].expected));
        assert_memory_equal(source_data(&source), cases[i].expected, strlen(cases[i].expected));
        source_release(&source);
    }
}

/* Of files that are read by nobody, what they are and what to do with them. */
static void names_foreign_files(void **state)
{
    static const struct {
        const char *data;
        size_t length;
        const char *words;
    } cases[] = {
        {"PK\x03\x04\x14\0\0\0", 8, "is a ZIP archive; unpack it"},
        {"\x04\x08{\x0d:\x0cversionf", 12, "stackprof --json"},
        {"memray\0\1\2\3\4", 11, "is a memray capture"},
        {"bplist00abcd", 12, "xctrace export"},
        {"MOJ\3abcdefg", 11, "mojo2austin"},
        {"{\"snapshot\":{\"meta\":{\"node_fields\":[]}}}", 40, ".heapsnapshot"},
        {"SQLite format 3\0\1dd_tables", 26, "inferno-collapse-vtune x.csv"},
        {"Function Stack,CPU Time:Self,Module\n", 36, "inferno-collapse-vtune FILE"},
        {"<?xml version=\"1.0\"?><trace-query-result>", 41, "inferno-collapse-xctrace"},
        {"\tTime and Allocation Profiling Report  (Final)", 46, "inferno-collapse-ghcprof"},
        {"v8-version,6,0", 14, "--cpu-prof"},
        {"v 10550 3\nx 3b /a", 17, "heaptrack --interpret"},
        {"PERFFILEh\0\0\0", 12, "version 1"},
        {"SIMPLEPERF\1\0", 12, "stackcollapse.py"},
        {"JAVA PROFILE 1.0.1, created Fri\n\nHeader for -agentlib:hprof ASCII Output", 72,
         "Flight Recorder"},
        {"JAVA PROFILE 1.0.2\0\0\0\0\4", 23, "heap dump"},
        {"gmon\1\0\0\0", 8, "`assay record`"},
        {"Flat profile:\n\n  %   cumulative   self", 37, "gprof"},
        {"{\"version\":1,\"recording\":{\"instrumentTypes\":[]}}", 47, "Safari"},
        {"2ELIFREP\x68\0\0\0", 12, "perf script -i"},
        {"[{\"a\":1}]", 9, "unrecognised format"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct profile profile;
        struct error error = {0};
        profile_init(&profile, PROFILE_ALL);
        assert_int_equal(format_read_memory("file", cases[i].data, cases[i].length, NULL, &profile,
                                            NULL, &error),
                         -ENOTSUP);
        assert_says(&error, cases[i].words);
        profile_release(&profile);
    }
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_plain_and_compressed),
        cmocka_unit_test(says_how_it_was_compressed),
        cmocka_unit_test(reads_several_members),
        cmocka_unit_test(reads_empty_input),
        cmocka_unit_test(truncation_is_an_error_at_every_byte),
        cmocka_unit_test(damage_is_never_silent),
        cmocka_unit_test(expansion_has_a_limit),
        cmocka_unit_test(a_length_that_lies_costs_no_memory),
        cmocka_unit_test(need_all_has_a_limit),
        cmocka_unit_test(decodes_text),
        cmocka_unit_test(names_foreign_files),
        cmocka_unit_test(splits_lines),
        cmocka_unit_test(lines_may_cross_the_window),
        cmocka_unit_test(endless_lines_are_an_error),
        cmocka_unit_test(reads_from_a_pipe_byte_by_byte),
        in_folder(reads_files_larger_than_the_window),
        in_folder(says_what_cannot_be_opened),
    };
    return cmocka_run_group_tests_name("source", tests, NULL, NULL);
}
