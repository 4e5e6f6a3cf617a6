// SPDX-License-Identifier: Apache-2.0
// Framing of requests, byte by byte: what is valid stays as it is, however it is cut; what two
// readers could understand in two ways is found.

#include "http/server/framing.h"
#include "unit.h"

#define BYTES(text) text, sizeof(text) - 1
#define POST "POST /a HTTP/1.1\r\nHost: x\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define NEXT "GET /b HTTP/1.1\r\nHost: x\r\n\r\n"

/* In pieces of this size, in a buffer that has room for more. */
static struct framing pass(const char *bytes, size_t length, size_t piece, struct buffer *out)
{
    struct framing framing = {0};
    for (size_t at = 0; at < length; at += piece) {
        char room[512];
        size_t count = MIN(piece, length - at);
        memcpy(room, bytes + at, count);
        size_t passed = framing_pass(&framing, room, count, sizeof(room));
        assert_true(passed <= count + 6);
        buffer_add(out, room, passed);
    }
    return framing;
}

static void valid_requests_stay_as_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        uint64_t heads;
    } valid[] = {
        {BYTES(NEXT), 1},
        {BYTES("\r\n" NEXT "\r\n" NEXT), 2},
        {BYTES("GET /b HTTP/1.0\r\n\r\n" NEXT), 2},
        {BYTES(POST "Content-Length: 4\r\n\r\n\0\n\r\n" NEXT), 2},
        {BYTES(POST "content-length:0\r\n\r\n" NEXT), 2},
        {BYTES(POST "X: \xc3\xa4\ty\r\nEmpty:\r\n\r\n" NEXT), 2},
        {BYTES(CHUNKED "3\r\n\0\r\n\r\n0A\r\n0123456789\r\n0\r\n\r\n" NEXT), 2},
        {BYTES(CHUNKED "00\r\nX: y\r\nZ: w\r\n\r\n" NEXT NEXT), 3},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(valid); i++) {
        for (size_t piece = 1; piece <= valid[i].length; piece++) {
            struct buffer out = {0};
            struct framing framing = pass(valid[i].bytes, valid[i].length, piece, &out);
            assert_int_equal(framing.state, FRAMING_START);
            assert_int_equal(framing.heads, valid[i].heads);
            assert_int_equal(out.length, valid[i].length);
            assert_memory_equal(out.data, valid[i].bytes, valid[i].length);
            buffer_release(&out);
        }
    }
}

static void extensions_of_chunks_are_removed(void **state)
{
    (void)state;
    static const char given[] =
        CHUNKED "3;\r\n;;\r\r\n0A;a=\"b c\"\r\n0123456789\r\n0;x\r\n\r\n" NEXT;
    static const char wanted[] = CHUNKED "3\r\n;;\r\r\n0A\r\n0123456789\r\n0\r\n\r\n" NEXT;
    for (size_t piece = 1; piece < sizeof(given); piece++) {
        struct buffer out = {0};
        struct framing framing = pass(given, sizeof(given) - 1, piece, &out);
        assert_int_equal(framing.state, FRAMING_START);
        assert_int_equal(framing.heads, 2);
        assert_int_equal(out.length, sizeof(wanted) - 1);
        assert_memory_equal(out.data, wanted, out.length);
        buffer_release(&out);
    }
    /* There is a limit. */
    struct buffer large = {0}, out = {0};
    buffer_add_text(&large, CHUNKED "3;");
    for (int i = 0; i < 5000; i++)
        buffer_add_char(&large, 'x');
    buffer_add_text(&large, "\r\nabc\r\n0\r\n\r\n");
    assert_int_equal(pass(large.data, large.length, 100, &out).state, FRAMING_BROKEN);
    buffer_release(&large);
    buffer_release(&out);
}

/* Whatever a version of libmicrohttpd makes of them, it doesn't see them. */
static void control_characters_of_heads_are_replaced(void **state)
{
    (void)state;
    static const char given[] =
        "GET /a\r\x01 HTTP/1.1\r\nHost: x\rY\r\nX\r\0: \0\x7f\r\n\rZ: a\r\n\r\n";
    static const char wanted[] = "GET /a__ HTTP/1.1\r\nHost: x_Y\r\nX__: __\r\n_Z: a\r\n\r\n";
    struct buffer out = {0};
    struct framing framing = pass(given, sizeof(given) - 1, sizeof(given) - 1, &out);
    assert_int_equal(framing.state, FRAMING_REFUSED);
    assert_int_equal(framing.heads, 0);
    assert_int_equal(out.length, sizeof(wanted) - 1);
    assert_memory_equal(out.data, wanted, out.length);
    buffer_release(&out);
}

static void bad_heads_are_not_counted(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
    } bad[] = {
        {BYTES("\0\0\0\0 nonsense\r\n" NEXT)},
        {BYTES("\0\r\n\r\n" NEXT)},
        {BYTES("\n" NEXT)},
        {BYTES("\r\n\r\n" NEXT)},
        {BYTES("\rX" NEXT)},
        {BYTES(" " NEXT)},
        {BYTES("GET /b HTTP/1.1\nHost: x\r\n\r\n")},
        {BYTES("GET /b\0 HTTP/1.1\r\nHost: x\r\n\r\n")},
        {BYTES("GET /b HTTP/1.1\r\nHost: x\n\n")},
        {BYTES("GET /b HTTP/1.1\r\nHost: x\r\n y\r\n\r\n")},
        {BYTES("GET /b HTTP/1.1\r\nHost : x\r\n\r\n")},
        {BYTES("GET /b HTTP/1.1\r\nHost: x\r\r\n\r\n")},
        {BYTES(POST "Content-Length: +3\r\n\r\nabc")},
        {BYTES(POST "Content-Length: 3,3\r\n\r\nabc")},
        {BYTES(POST "Content-Length: 99999999999999999999\r\n\r\nabc")},
        {BYTES(POST "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc")},
        {BYTES(POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc")},
        {BYTES("POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        for (size_t piece = 1; piece <= bad[i].length; piece++) {
            struct buffer all = {0}, out = {0};
            buffer_add_text(&all, NEXT);
            buffer_add(&all, bad[i].bytes, bad[i].length);
            struct framing framing = pass((char *)all.data, all.length, piece, &out);
            assert_int_equal(framing.heads, 1);
            assert_true(framing.bad_head);
            buffer_release(&all);
            buffer_release(&out);
        }
    }
}

/* Nothing of what follows gets through. */
static void bad_bodies_are_broken_off(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
    } bad[] = {
        {BYTES("3\nabc\r\n0\r\n\r\n" NEXT)},
        {BYTES("3;a\nabc\r\n0\r\n\r\n" NEXT)},
        {BYTES("3;a\0b\r\nabc\r\n0\r\n\r\n" NEXT)},
        {BYTES("3\rabc\r\n0\r\n\r\n" NEXT)},
        {BYTES("3 \r\nabc\r\n0\r\n\r\n" NEXT)},
        {BYTES("\r\n0\r\n\r\n" NEXT)},
        {BYTES("1111111111111111\r\nabc\r\n0\r\n\r\n" NEXT)},
        {BYTES("3\r\nabc\n0\r\n\r\n" NEXT)},
        {BYTES("3\r\nabc0\r\n\r\n" NEXT)},
        {BYTES("3\r\nabc\rX0\r\n\r\n" NEXT)},
        {BYTES("3\r\nabc\r\n0\n\n" NEXT)},
        {BYTES("3\r\nabc\r\n0\r\n\n" NEXT)},
        {BYTES("3\r\nabc\r\n0\r\nX: y\n\r\n" NEXT)},
        {BYTES("3\r\nabc\r\n0\r\nX: y\r\n z\r\n\r\n" NEXT)},
        {BYTES("3\r\nabc\r\n0\r\nX: \0\r\n\r\n" NEXT)},
        {BYTES("3\r\nabc\r\n0\r\n\rX" NEXT)},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        for (size_t piece = 1; piece <= bad[i].length; piece++) {
            struct buffer all = {0}, out = {0};
            buffer_add_text(&all, CHUNKED);
            buffer_add(&all, bad[i].bytes, bad[i].length);
            struct framing framing = pass((char *)all.data, all.length, piece, &out);
            assert_int_equal(framing.heads, 1);
            assert_int_equal(framing.state, FRAMING_BROKEN);
            assert_null(memmem(out.data, out.length, "GET", 3));
            buffer_release(&all);
            buffer_release(&out);
        }
    }
}

static void cookies_are_renamed(void **state)
{
    (void)state;
    static const char text[] =
        "GET / HTTP/1.1\r\nCookie: a=b\r\nCOOKIE: c\r\nX-Cookie: d\r\nCooki: e\r\n\r\n";
    struct buffer out = {0};
    assert_int_equal(pass(text, sizeof(text) - 1, 3, &out).heads, 1);
    assert_string_equal(buffer_text(&out),
                        "GET / HTTP/1.1\r\nCookid: a=b\r\nCOOKId: c\r\nX-Cookie: d\r\nCooki: e"
                        "\r\n\r\n");
    buffer_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_requests_stay_as_they_are),
        cmocka_unit_test(extensions_of_chunks_are_removed),
        cmocka_unit_test(control_characters_of_heads_are_replaced),
        cmocka_unit_test(bad_heads_are_not_counted),
        cmocka_unit_test(bad_bodies_are_broken_off),
        cmocka_unit_test(cookies_are_renamed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
