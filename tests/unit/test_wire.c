// SPDX-License-Identifier: Apache-2.0
// The protobuf wire format: what is written is read back, whole and streaming, and nonsense is
// refused without reading beyond it.

#include "base/memory.h"
#include "format/format.h"
#include "io/wire.h"
#include "unit.h"

static bool read_varint(const void *bytes, size_t length, uint64_t *ret_value, size_t *ret_used)
{
    _cleanup_free_ uint8_t *exact = memory_alloc(length);
    memcpy(exact, bytes, length);
    struct wire wire = wire_of(exact, length);
    bool good = wire_varint(&wire, ret_value);
    *ret_used = (size_t)(wire.at - exact);
    return good;
}

static void varints_round_trip(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 64; bit++)
        for (int delta = -1; delta <= 1; delta++) {
            uint64_t value = (1ull << bit) + (uint64_t)delta, got = 0;
            size_t used;
            _cleanup_buffer_ struct buffer out = {0};
            wire_put_varint(&out, value);
            assert_true(out.length <= 10);
            assert_true(read_varint(out.data, out.length, &got, &used));
            assert_true(got == value);
            assert_int_equal(used, out.length);
            for (size_t cut = 0; cut < out.length; cut++)
                assert_false(read_varint(out.data, cut, &got, &used));
        }
}

static void absurd_varints_are_refused(void **state)
{
    (void)state;
    uint64_t value = 1;
    size_t used = 99;
    assert_false(read_varint("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, &value, &used));
    assert_false(
        read_varint("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 12, &value, &used));
    assert_int_equal(used, 0);
    assert_int_equal(value, 1);
    /* Longer than needed, but ten bytes at most: legal. */
    assert_true(read_varint("\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10, &value, &used));
    assert_int_equal(value, 1);
    assert_int_equal(used, 10);
    /* Bits beyond 64 are dropped. */
    assert_true(read_varint("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, &value, &used));
    assert_true(value == UINT64_MAX);
}

static void fields_round_trip(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer out = {0};
    wire_put_u64(&out, 1, 300);
    wire_put_u64(&out, 2, 0); /* not written */
    wire_put_i64(&out, 3, -2);
    wire_put_fixed64(&out, 4, 0x0102030405060708);
    wire_put_bytes(&out, 536870911, "hello", 5);
    wire_put_bytes(&out, 6, NULL, 0);
    wire_put_tag(&out, 7, WIRE_FIXED32);
    buffer_add(&out, "\x01\x02\x03\x04", 4);

    struct wire wire = wire_of(out.data, out.length);
    struct wire_field field;
    assert_int_equal(wire_next(&wire, &field), 1);
    assert_true(field.number == 1 && field.type == WIRE_VARINT && field.value == 300);
    assert_int_equal(wire_next(&wire, &field), 1);
    assert_true(field.number == 3 && (int64_t)field.value == -2);
    assert_int_equal(wire_next(&wire, &field), 1);
    assert_true(field.number == 4 && field.type == WIRE_FIXED64);
    assert_true(field.value == 0x0102030405060708);
    assert_int_equal(wire_next(&wire, &field), 1);
    assert_true(field.number == 536870911 && field.type == WIRE_BYTES);
    assert_bytes(field.data, field.length, "hello");
    assert_int_equal(wire_next(&wire, &field), 1);
    assert_true(field.number == 6 && field.length == 0);
    assert_int_equal(wire_next(&wire, &field), 1);
    assert_true(field.number == 7 && field.value == 0x04030201);
    assert_int_equal(wire_next(&wire, &field), 0);
    assert_int_equal(wire_next(&wire, &field), 0);
}

static void malformed_fields_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
    } cases[] = {
        {"\x00\x01", 2},                                      /* field 0 */
        {"\x0b", 1},                                          /* start of a group */
        {"\x0c", 1},                                          /* end of a group */
        {"\x0e\x01", 2},                                      /* wire type 6 */
        {"\x0f\x01", 2},                                      /* wire type 7 */
        {"\x08", 1},                                          /* no value */
        {"\x08\x80", 2},                                      /* half a value */
        {"\x0d\x01\x02\x03", 4},                              /* fixed32 of three bytes */
        {"\x09\x01\x02\x03\x04\x05\x06\x07", 8},              /* fixed64 of seven */
        {"\x0a\x05hell", 6},                                  /* longer than what there is */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* 2^64 - 1 bytes long */
        {"\x80\x80\x80\x80\x10\x01", 6},                      /* field number 2^29 */
        {"\xf8\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01", 11},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        _cleanup_free_ char *exact = memory_alloc(cases[i].length);
        memcpy(exact, cases[i].bytes, cases[i].length);
        struct wire wire = wire_of(exact, cases[i].length);
        struct wire_field field;
        assert_int_equal(wire_next(&wire, &field), -EBADMSG);

        struct error error = {0};
        _cleanup_source_ struct source source = {0};
        struct wire_stream stream;
        source_open_memory(&source, "input", exact, cases[i].length, 0, &error);
        wire_stream_init(&stream, &source);
        int r = wire_stream_next(&stream, &field, &error);
        if (r > 0)
            r = wire_stream_bytes(&stream, &field, &error);
        assert_int_equal(r, -EBADMSG);
        assert_says(&error, "at offset ");
    }
}

static uint64_t sum(struct wire values)
{
    uint64_t total = 0, value;
    while (values.at < values.end) {
        assert_true(wire_varint(&values, &value));
        total += value;
    }
    return total;
}

static void repeated_numbers_may_be_packed(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer packed = {0}, out = {0};
    for (uint64_t value = 1; value <= 1000; value++)
        wire_put_varint(&packed, value);
    wire_put_bytes(&out, 1, packed.data, packed.length);
    for (uint64_t value = 1; value <= 1000; value++)
        wire_put_u64(&out, 2, value);
    wire_put_bytes(&out, 3, "", 0);
    wire_put_bytes(&out, 4, "\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03", 17);
    wire_put_fixed64(&out, 5, 77);

    struct wire wire = wire_of(out.data, out.length);
    struct wire_field field;
    uint64_t totals[4] = {0}, value;
    while (wire_next(&wire, &field) > 0 && field.number < 4)
        totals[field.number] += sum(wire_repeated(&field));
    assert_int_equal(totals[1], 500500);
    assert_int_equal(totals[2], 500500);
    assert_int_equal(totals[3], 0);

    struct wire fixed = wire_repeated(&field);
    assert_true(wire_fixed64(&fixed, &value) && value == 1);
    assert_true(wire_fixed64(&fixed, &value) && value == 2);
    assert_false(wire_fixed64(&fixed, &value));
    assert_int_equal(wire_next(&wire, &field), 1);
    fixed = wire_repeated(&field);
    assert_true(wire_fixed64(&fixed, &value) && value == 77);
    assert_false(wire_fixed64(&fixed, &value));
}

static void doubles_are_their_bits(void **state)
{
    (void)state;
    assert_true(wire_double(0x3ff8000000000000) == 1.5);
    assert_true(wire_double(0) == 0);
}

static void nested_messages_get_their_length(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 126, 127, 128, 129, 16383, 16384, 16385, 2097152};
    for (size_t i = 0; i < ARRAY_LENGTH(lengths); i++) {
        _cleanup_buffer_ struct buffer out = {0};
        size_t outer = wire_begin(&out, 1);
        size_t inner = wire_begin(&out, 2);
        memset(buffer_reserve(&out, lengths[i]), 'x', lengths[i]);
        out.length += lengths[i];
        wire_end(&out, inner);
        wire_put_u64(&out, 3, 9);
        wire_end(&out, outer);

        struct wire wire = wire_of(out.data, out.length);
        struct wire_field field;
        assert_int_equal(wire_next(&wire, &field), 1);
        assert_true(wire.at == wire.end);
        struct wire nested = wire_of_field(&field);
        assert_int_equal(wire_next(&nested, &field), 1);
        assert_int_equal(field.number, 2);
        assert_int_equal(field.length, lengths[i]);
        for (size_t k = 0; k < field.length; k++)
            assert_int_equal(field.data[k], 'x');
        assert_int_equal(wire_next(&nested, &field), 1);
        assert_true(field.number == 3 && field.value == 9);
        assert_int_equal(wire_next(&nested, &field), 0);
    }
}

/* A message of messages: field 1 is a nested message with a number and filler, field 2 a number. */
enum { PARTS = 300 };

static void build_stream(struct buffer *out, size_t filler_bytes)
{
    _cleanup_free_ char *filler = memory_zalloc(filler_bytes, 1);
    size_t all = wire_begin(out, 5);
    for (uint64_t i = 1; i <= PARTS; i++) {
        size_t part = wire_begin(out, 1);
        wire_put_bytes(out, 9, filler, filler_bytes);
        wire_put_u64(out, 1, i);
        wire_put_bytes(out, 2, "text", 4);
        wire_end(out, part);
        wire_put_u64(out, 2, i);
    }
    wire_end(out, all);
    wire_put_u64(out, 6, 42);
}

struct totals {
    uint64_t nested, direct, texts, last;
};

/* Walks such a stream; fillers are skipped by not asking for them. */
static int walk_part(struct wire_stream *stream, struct totals *totals, struct error *error)
{
    struct wire_field field;
    int r;
    while ((r = wire_stream_next(stream, &field, error)) > 0) {
        if (field.number == 1)
            totals->nested += field.value;
        if (field.number != 2)
            continue;
        r = wire_stream_bytes(stream, &field, error);
        if (r < 0)
            return r;
        assert_bytes(field.data, field.length, "text");
        totals->texts++;
    }
    wire_stream_leave(stream);
    return r;
}

static int walk_all(struct wire_stream *stream, struct totals *totals, struct error *error)
{
    struct wire_field field;
    int r;
    while ((r = wire_stream_next(stream, &field, error)) > 0) {
        if (field.type == WIRE_BYTES && (field.number == 5 || field.number == 1)) {
            r = wire_stream_enter(stream, &field, error);
            if (!r)
                r = field.number == 5 ? walk_all(stream, totals, error)
                                      : walk_part(stream, totals, error);
            if (r < 0)
                return r;
        } else if (field.number == 2) {
            totals->direct += field.value;
        } else if (field.number == 6) {
            totals->last = field.value;
        }
    }
    if (!r && stream->depth)
        wire_stream_leave(stream);
    return r;
}

static int walk(const void *data, size_t length, struct totals *totals, struct error *error)
{
    _cleanup_source_ struct source source = {0};
    struct wire_stream stream;
    int r = source_open_memory(&source, "input", data, length, 0, error);
    if (r < 0)
        return r;
    wire_stream_init(&stream, &source);
    return walk_all(&stream, totals, error);
}

static void check_totals(const struct totals *totals)
{
    assert_int_equal(totals->nested, PARTS * (PARTS + 1) / 2);
    assert_int_equal(totals->direct, PARTS * (PARTS + 1) / 2);
    assert_int_equal(totals->texts, PARTS);
    assert_int_equal(totals->last, 42);
}

static void streams_messages_larger_than_the_window(void **state)
{
    (void)state;
    /* The outer message, and with the largest filler each inner one, exceed the window; gzip makes
     * sure that it slides. */
    static const size_t fillers[] = {0, 100, 5000, 300000};
    for (size_t i = 0; i < ARRAY_LENGTH(fillers); i++) {
        _cleanup_buffer_ struct buffer out = {0}, gzip = {0};
        struct totals plain = {0}, compressed = {0};
        struct error error = {0};
        build_stream(&out, fillers[i]);
        assert_int_equal(walk(out.data, out.length, &plain, &error), 0);
        check_totals(&plain);
        assert_int_equal(format_compress_gzip(&out, &gzip), 0);
        assert_int_equal(walk(gzip.data, gzip.length, &compressed, &error), 0);
        check_totals(&compressed);
    }
}

static void a_cut_off_stream_is_an_error(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer out = {0};
    build_stream(&out, 7);
    struct error error = {0};
    for (size_t length = 1; length < out.length; length++) {
        struct totals totals = {0};
        _cleanup_free_ char *exact = memory_alloc(length);
        memcpy(exact, out.data, length);
        int r = walk(exact, length, &totals, &error);
        /* Between two fields of the top level nothing can be noticed. */
        assert_int_equal(r, length == out.length - 2 ? 0 : -EBADMSG);
    }
}

static void flipped_bits_do_no_harm(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer out = {0};
    build_stream(&out, 7);
    struct error error = {0};
    /* Only the walk's bounds matter here; texts may be anything, so field 2 is not looked at. */
    for (size_t at = 0; at < out.length; at++)
        for (int bit = 0; bit < 8; bit++) {
            out.data[at] ^= (char)(1 << bit);
            struct wire wire = wire_of(out.data, out.length);
            struct wire_field field;
            while (wire_next(&wire, &field) > 0)
                assert_true(field.type != WIRE_BYTES ||
                            field.data + field.length <= (uint8_t *)out.data + out.length);
            _cleanup_source_ struct source source = {0};
            struct wire_stream stream;
            source_open_memory(&source, "input", out.data, out.length, 0, &error);
            wire_stream_init(&stream, &source);
            while (wire_stream_next(&stream, &field, &error) > 0)
                if (field.type == WIRE_BYTES && stream.depth < WIRE_DEPTH_MAX)
                    wire_stream_enter(&stream, &field, &error);
            assert_true(source_offset(&source) <= out.length);
            out.data[at] ^= (char)(1 << bit);
        }
}

static void a_field_longer_than_its_message_is_refused(void **state)
{
    (void)state;
    struct error error = {0};
    struct wire_field field;
    _cleanup_source_ struct source source = {0};
    struct wire_stream stream;
    /* A message of 3 bytes whose field claims 9; the bytes are there, but belong to the outside. */
    source_open_memory(&source, "input", "\x0a\x03\x0a\x09xyzyxzyxzyxz", 16, 0, &error);
    wire_stream_init(&stream, &source);
    assert_int_equal(wire_stream_next(&stream, &field, &error), 1);
    assert_int_equal(wire_stream_enter(&stream, &field, &error), 0);
    assert_int_equal(wire_stream_next(&stream, &field, &error), -EBADMSG);
    assert_says(&error, "longer than its message");
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    struct error error = {0};
    _cleanup_buffer_ struct buffer out = {0};
    for (int length = 2 * WIRE_DEPTH_MAX; length >= 0; length -= 2) {
        buffer_add_char(&out, 0x0a);
        buffer_add_char(&out, (char)length);
    }
    struct wire_field field;
    _cleanup_source_ struct source source = {0};
    struct wire_stream stream;
    source_open_memory(&source, "input", out.data, out.length, 0, &error);
    wire_stream_init(&stream, &source);
    for (int depth = 0; depth < WIRE_DEPTH_MAX; depth++) {
        assert_int_equal(wire_stream_next(&stream, &field, &error), 1);
        assert_int_equal(wire_stream_enter(&stream, &field, &error), 0);
    }
    assert_int_equal(wire_stream_next(&stream, &field, &error), 1);
    assert_int_equal(wire_stream_enter(&stream, &field, &error), -EBADMSG);
    assert_says(&error, "nested too deeply");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varints_round_trip),
        cmocka_unit_test(absurd_varints_are_refused),
        cmocka_unit_test(fields_round_trip),
        cmocka_unit_test(malformed_fields_are_refused),
        cmocka_unit_test(repeated_numbers_may_be_packed),
        cmocka_unit_test(doubles_are_their_bits),
        cmocka_unit_test(nested_messages_get_their_length),
        cmocka_unit_test(streams_messages_larger_than_the_window),
        cmocka_unit_test(a_cut_off_stream_is_an_error),
        cmocka_unit_test(flipped_bits_do_no_harm),
        cmocka_unit_test(a_field_longer_than_its_message_is_refused),
        cmocka_unit_test(nesting_has_a_limit),
    };
    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
