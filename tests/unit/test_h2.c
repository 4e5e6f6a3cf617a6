// SPDX-License-Identifier: Apache-2.0
// HTTP/2 and gRPC without a socket: the cost of frames, TLS's first message, and what gRPC has in
// headers. tests/server/grpc.sh and h2-hostile.sh have the rest.

#include "http/grpc/grpc.h"
#include "http/server/h2/frames.h"
#include "unit.h"

static const uint8_t *frame(unsigned type, unsigned flags, size_t length, uint8_t head[9])
{
    memset(head, 0, 9);
    head[0] = (uint8_t)(length >> 16);
    head[1] = (uint8_t)(length >> 8);
    head[2] = (uint8_t)length;
    head[3] = (uint8_t)type;
    head[4] = (uint8_t)flags;
    return head;
}

/* How many frames in a row are taken, up to so many. */
static unsigned taken(struct h2_frames *frames, unsigned type, unsigned flags, unsigned most,
                      int64_t now_ms)
{
    uint8_t head[9];
    for (unsigned i = 0; i < most; i++)
        if (h2_frames_scan(frames, frame(type, flags, 0, head), 9, now_ms))
            return i;
    return most;
}

static void begin(struct h2_frames *frames)
{
    h2_frames_init(frames, 32768, 0);
    assert_null(h2_frames_scan(frames, (const uint8_t *)H2_PREFACE, H2_PREFACE_BYTES, 0));
}

static void test_costs(void **state)
{
    (void)state;
    struct h2_frames frames;
    const struct {
        unsigned type, flags, taken;
    } floods[] = {
        {3, 0, H2_ALLOWANCE_MAX / 10}, /* RST_STREAM */
        {4, 0, H2_ALLOWANCE_MAX / 20}, /* SETTINGS */
        {6, 0, H2_ALLOWANCE_MAX},      /* PING */
        {0, 0, H2_ALLOWANCE_MAX},      /* DATA of nothing */
        {8, 0, H2_ALLOWANCE_MAX},      /* WINDOW_UPDATE */
        {77, 0, H2_ALLOWANCE_MAX},     /* unknown */
        {1, 4, 100000},                /* HEADERS are requests, which have limits of their own */
        {0, 1, 100000},                /* so is the end of one */
        {9, 0, H2_BLOCK_FRAMES_MAX},   /* CONTINUATION */
    };
    for (size_t i = 0; i < ARRAY_LENGTH(floods); i++) {
        begin(&frames);
        assert_int_equal(taken(&frames, floods[i].type, floods[i].flags, 100000, 0),
                         floods[i].taken);
    }
    /* Time, requests and answers give it back, up to a limit. */
    begin(&frames);
    taken(&frames, 6, 0, H2_ALLOWANCE_MAX, 0);
    assert_int_equal(taken(&frames, 6, 0, 100000, 1000), H2_ALLOWANCE_PER_SECOND);
    begin(&frames);
    taken(&frames, 6, 0, H2_ALLOWANCE_MAX, 0);
    h2_frames_request(&frames);
    h2_frames_sent(&frames, 1024);
    assert_int_equal(taken(&frames, 6, 0, 100000, 0), H2_ALLOWANCE_PER_REQUEST + 4);
    begin(&frames);
    h2_frames_sent(&frames, 1 << 30);
    assert_int_equal(taken(&frames, 6, 0, 100000, 0), H2_ALLOWANCE_MAX);
}

static void test_blocks(void **state)
{
    (void)state;
    static uint8_t payload[16384];
    struct h2_frames frames;
    uint8_t head[9];
    begin(&frames);
    assert_null(h2_frames_scan(&frames, frame(1, 0, 16384, head), 9, 0));
    assert_null(h2_frames_scan(&frames, payload, 16384, 0));
    assert_null(h2_frames_scan(&frames, frame(9, 0, 16384, head), 9, 0));
    assert_null(h2_frames_scan(&frames, payload, 16384, 0));
    assert_non_null(h2_frames_scan(&frames, frame(9, 4, 1, head), 9, 0));
}

/* A ClientHello with these extensions, in records of so many bytes. */
static size_t hello(const uint8_t *extensions, size_t length, size_t record, uint8_t *out)
{
    uint8_t message[512] = {1, 0, 0, 0, 3, 3};
    size_t at = 6 + 32, written = 0;
    message[at++] = 0; /* session */
    message[at++] = 0;
    message[at++] = 2; /* ciphers */
    at += 2;
    message[at++] = 1; /* compression */
    message[at++] = 0;
    message[at++] = (uint8_t)(length >> 8);
    message[at++] = (uint8_t)length;
    memcpy(message + at, extensions, length);
    at += length;
    message[2] = (uint8_t)((at - 4) >> 8);
    message[3] = (uint8_t)(at - 4);
    for (size_t from = 0, step; from < at; from += step) {
        step = MIN(at - from, record);
        memcpy(out + written, (uint8_t[]){22, 3, 1, (uint8_t)(step >> 8), (uint8_t)step}, 5);
        memcpy(out + written + 5, message + from, step);
        written += 5 + step;
    }
    return written;
}

static void test_hello(void **state)
{
    (void)state;
    static const uint8_t with[] = {0,   0,   0, 1,   7,   0,   16,  0,   14,  0,   12, 2,
                                   'h', '2', 8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
    static const uint8_t without[] = {0,   16,  0,   11,  0,   9,   8,  'h',
                                      't', 't', 'p', '/', '1', '.', '1'};
    static const uint8_t later[] = {0, 16, 0, 9, 0, 7, 3, 'h', '2', 'c', 2, 'h', '2'};
    const struct {
        const uint8_t *extensions;
        size_t length;
        int offers;
    } cases[] = {{with, sizeof(with), 1},
                 {without, sizeof(without), 0},
                 {later, sizeof(later), 1},
                 {with, 0, 0}};
    uint8_t bytes[4096];
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        for (size_t record = 1; record < 200; record += 13) {
            size_t length = hello(cases[i].extensions, cases[i].length, record, bytes);
            assert_int_equal(h2_hello_offers(bytes, length), cases[i].offers);
            for (size_t cut = 0; cut < length; cut++) {
                int offers = h2_hello_offers(bytes, cut);
                assert_true(offers == -EAGAIN || offers == cases[i].offers);
            }
            for (size_t bit = 0; bit < length * 8; bit++) {
                bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
                h2_hello_offers(bytes, length);
                bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            }
        }
    assert_int_equal(h2_hello_offers((const uint8_t *)"GET / HTTP/1.1\r\n", 16), 0);
    assert_int_equal(h2_hello_offers(bytes, 0), -EAGAIN);
}

static void test_types(void **state)
{
    (void)state;
    const struct {
        const char *type;
        enum grpc_protocol protocol;
        bool json;
    } cases[] = {
        {"application/grpc", GRPC_HTTP2, false},
        {"application/grpc+proto", GRPC_HTTP2, false},
        {"Application/gRPC+JSON; charset=utf-8", GRPC_HTTP2, true},
        {"application/grpc-web", GRPC_WEB, false},
        {"application/grpc-web+proto", GRPC_WEB, false},
        {"application/grpc-web-text", GRPC_WEB_TEXT, false},
        {"application/grpcx", GRPC_NONE, false},
        {"application/proto", GRPC_NONE, false},
        {NULL, GRPC_NONE, false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        bool json;
        assert_int_equal(grpc_protocol_of(cases[i].type, &json), cases[i].protocol);
        assert_int_equal(json, cases[i].json);
    }
}

static void test_timeouts(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int64_t ms;
    } cases[] = {{"1S", 1000},    {"100m", 100},      {"1u", 1},  {"1n", 1},
                 {"2H", 7200000}, {"3M", 180000},     {"0S", 0},  {"99999999H", 359999996400000},
                 {"", -1},        {"S", -1},          {"1", -1},  {"1s", -1},
                 {"-1S", -1},     {"123456789S", -1}, {"1SS", -1}};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        assert_int_equal(grpc_timeout_ms(cases[i].text), cases[i].ms);
}

static void test_status(void **state)
{
    (void)state;
    struct buffer out = {0};
    assert_int_equal(grpc_status_of(HTTP_CANCELED), 1);
    assert_int_equal(grpc_status_of(HTTP_RESOURCE_EXHAUSTED), 8);
    assert_int_equal(grpc_status_of(HTTP_UNAUTHENTICATED), 16);
    assert_int_equal(grpc_code_of(14), HTTP_UNAVAILABLE);
    assert_int_equal(grpc_code_of(0), HTTP_UNKNOWN);
    assert_int_equal(grpc_code_of(17), HTTP_UNKNOWN);
    grpc_put_message(&out, "50% of \xc3\xa4\n");
    assert_string_equal(buffer_text(&out), "50%25 of %C3%A4%0A");
    grpc_message_decode(out.data);
    assert_string_equal(out.data, "50% of \xc3\xa4\n");
    for (int64_t ms = -1; ms < 3000; ms += 500) {
        out.length = 0;
        grpc_put_details(&out, HTTP_UNAVAILABLE, "wait", ms);
        assert_int_equal(grpc_retry_ms(out.data, out.length), ms);
        for (size_t cut = 0; cut < out.length; cut++)
            assert_true(grpc_retry_ms(out.data, cut) >= -1);
    }
    assert_int_equal(grpc_retry_ms("!", 1), -1);
    buffer_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_costs),    cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_hello),    cmocka_unit_test(test_types),
        cmocka_unit_test(test_timeouts), cmocka_unit_test(test_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
