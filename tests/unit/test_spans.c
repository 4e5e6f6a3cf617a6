// SPDX-License-Identifier: Apache-2.0
// Spans: what readers of OTLP's traces make of them, templates of paths, and blocks.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/wire.h"
#include "spans/block.h"
#include "spans/otlp.h"
#include "unit.h"

#define START 1794700000000000000ll

/* ---- a request in protobuf ---- */

static void put_attribute(struct buffer *out, const char *key, const char *text, uint64_t number)
{
    size_t attribute = wire_begin(out, text || number ? 9 : 1);
    wire_put_bytes(out, 1, key, strlen(key));
    size_t value = wire_begin(out, 2);
    if (text)
        wire_put_bytes(out, 1, text, strlen(text));
    else
        wire_put_u64(out, 3, number);
    wire_end(out, value);
    wire_end(out, attribute);
}

struct sent {
    uint8_t trace, id, parent; /* the last byte of each id */
    const char *name, *path, *route;
    unsigned kind, status;
    int64_t start_ns, end_ns;
};

static void put_span(struct buffer *out, const struct sent *sent)
{
    uint8_t trace[16] = {[15] = sent->trace}, id[8] = {[7] = sent->id};
    uint8_t parent[8] = {[7] = sent->parent};
    size_t span = wire_begin(out, 2);
    wire_put_bytes(out, 1, trace, sizeof(trace));
    wire_put_bytes(out, 2, id, sizeof(id));
    if (sent->parent)
        wire_put_bytes(out, 4, parent, sizeof(parent));
    wire_put_bytes(out, 5, sent->name, strlen(sent->name));
    wire_put_u64(out, 6, sent->kind);
    wire_put_fixed64(out, 7, (uint64_t)sent->start_ns);
    wire_put_fixed64(out, 8, (uint64_t)sent->end_ns);
    if (sent->path)
        put_attribute(out, "url.path", sent->path, 0);
    if (sent->route)
        put_attribute(out, "http.route", sent->route, 0);
    put_attribute(out, "http.response.status_code", NULL, 200);
    size_t status = wire_begin(out, 15);
    wire_put_u64(out, 3, sent->status);
    wire_end(out, status);
    wire_end(out, span);
}

/* The resource comes last, as it may. */
static void put_request(struct buffer *out, const char *service, const struct sent *spans,
                        size_t count)
{
    size_t resource_spans = wire_begin(out, 1);
    size_t scope = wire_begin(out, 2);
    for (size_t i = 0; i < count; i++)
        put_span(out, &spans[i]);
    wire_end(out, scope);
    size_t resource = wire_begin(out, 1), attribute = wire_begin(out, 1);
    wire_put_bytes(out, 1, "service.name", 12);
    size_t value = wire_begin(out, 2);
    wire_put_bytes(out, 1, service, strlen(service));
    wire_end(out, value);
    wire_end(out, attribute);
    wire_end(out, resource);
    wire_end(out, resource_spans);
}

static const struct sent chain[] = {
    {1, 1, 0, "GET /order/77", "/order/77", NULL, SPAN_SERVER, 0, START, START + 5000},
    {1, 2, 1, "load", NULL, NULL, SPAN_INTERNAL, 2, START + 10, START + 2000},
    {1, 3, 9, "GET", NULL, "/check/{id}", SPAN_SERVER, 1, START + 20, START + 900},
    {2, 1, 0, "nightly job", NULL, NULL, SPAN_INTERNAL, 0, START + 1, START + 1},
};

static void read_chain(struct span_batch *batch)
{
    _cleanup_buffer_ struct buffer request = {0};
    struct span_reader reader = {0};
    struct error error = {0};
    put_request(&request, "shop", chain, ARRAY_LENGTH(chain));
    assert_int_equal(span_read_otlp(&reader, request.data, request.length, batch, &error), 0);
    assert_int_equal(reader.invalid, 0);
    assert_int_equal(batch->count, ARRAY_LENGTH(chain));
}

static const char *text(const struct span_batch *batch, uint32_t id)
{
    return batch->texts[id];
}

static void test_protobuf(void **state)
{
    _cleanup_span_batch_ struct span_batch batch = {0};
    (void)state;
    read_chain(&batch);
    const struct span *spans = batch.list;
    for (size_t i = 0; i < batch.count; i++)
        assert_string_equal(text(&batch, spans[i].service), "shop");
    assert_string_equal(text(&batch, spans[0].route), "/order/{id}");
    assert_string_equal(text(&batch, spans[0].name), "GET /order/{id}");
    assert_int_equal(spans[0].duration_ns, 5000);
    assert_int_equal(spans[0].code, 200);
    assert_true(span_is_request(&spans[0]));
    assert_false(span_is_request(&spans[1]));
    assert_int_equal(spans[1].status, SPAN_ERROR);
    assert_string_equal(text(&batch, spans[1].route), "");
    assert_string_equal(text(&batch, spans[2].route), "/check/{id}");
    assert_true(span_is_request(&spans[3])); /* nobody called it */
    assert_string_equal(text(&batch, spans[3].route), "nightly job");
}

static void test_truncated(void **state)
{
    _cleanup_buffer_ struct buffer request = {0};
    (void)state;
    put_request(&request, "shop", chain, ARRAY_LENGTH(chain));
    for (size_t length = 0; length <= request.length; length++) {
        _cleanup_span_batch_ struct span_batch batch = {0};
        struct span_reader reader = {0};
        _cleanup_free_ uint8_t *copy = memory_alloc(length + 1);
        memcpy(copy, request.data, length);
        int r = span_read_otlp(&reader, copy, length, &batch, NULL);
        assert_true(r == -EBADMSG || (!r && (!length || length == request.length)));
    }
}

static void test_flipped(void **state)
{
    _cleanup_buffer_ struct buffer request = {0};
    (void)state;
    put_request(&request, "shop", chain, ARRAY_LENGTH(chain));
    for (size_t bit = 0; bit < request.length * 8; bit++) {
        _cleanup_span_batch_ struct span_batch batch = {0};
        struct span_reader reader = {0};
        request.data[bit / 8] ^= (char)(1 << bit % 8);
        span_read_otlp(&reader, request.data, request.length, &batch, NULL);
        for (size_t i = 0; i < batch.count; i++) {
            assert_true(batch.list[i].duration_ns >= 0 && batch.list[i].start_ns > 0);
            assert_true(batch.list[i].route < batch.text_count);
        }
        request.data[bit / 8] ^= (char)(1 << bit % 8);
    }
}

static void test_invalid(void **state)
{
    static const struct sent wrong[] = {
        {0, 1, 0, "no trace", NULL, NULL, 2, 0, START, START + 1},
        {1, 0, 0, "no id", NULL, NULL, 2, 0, START, START + 1},
        {1, 1, 0, "backwards", NULL, NULL, 2, 0, START, START - 1},
        {1, 1, 0, "no end", NULL, NULL, 2, 0, START, 0},
        {1, 1, 0, "in 1970", NULL, NULL, 2, 0, 12, START},
        {1, 1, 0, "good", NULL, NULL, 2, 0, START, START},
    };
    _cleanup_buffer_ struct buffer request = {0};
    _cleanup_span_batch_ struct span_batch batch = {0};
    struct span_reader reader = {0};
    (void)state;
    put_request(&request, "", wrong, ARRAY_LENGTH(wrong));
    assert_int_equal(span_read_otlp(&reader, request.data, request.length, &batch, NULL), 0);
    assert_int_equal(reader.invalid, 5);
    assert_string_equal(reader.first_invalid, "its trace id is not 16 bytes, or zero");
    assert_int_equal(batch.count, 1);
    assert_string_equal(text(&batch, batch.list[0].service), "unknown_service");
}

/* ---- JSON ---- */

static int read_json(const char *json, struct span_reader *reader, struct span_batch *batch,
                     struct error *error)
{
    struct source source;
    int r = source_open_memory(&source, "body", json, strlen(json), 1u << 20, error);
    assert_int_equal(r, 0);
    r = span_read_otlp_json(reader, &source, batch, error);
    source_release(&source);
    return r;
}

#define JSON_SPAN                                                                                  \
    "{\"traceId\":\"5B8EFFF798038103D269B633813FC60C\",\"spanId\":\"EEE19B7EC3C1B174\","           \
    "\"parentSpanId\":\"EEE19B7EC3C1B173\",\"name\":\"lookup\",\"kind\":\"SPAN_KIND_SERVER\","     \
    "\"startTimeUnixNano\":\"1794700000000000000\",\"endTimeUnixNano\":1794700000000000500,"       \
    "\"attributes\":[{\"key\":\"rpc.service\",\"value\":{\"stringValue\":\"pkg.Search\"}},"        \
    "{\"key\":\"rpc.method\",\"value\":{\"stringValue\":\"Find\"}},"                               \
    "{\"key\":\"x\",\"value\":{\"arrayValue\":{\"values\":[]}}}],"                                 \
    "\"events\":[{\"name\":\"e\"}],\"status\":{\"code\":2,\"message\":\"m\"}}"
#define JSON                                                                                       \
    "{\"resourceSpans\":[{\"scopeSpans\":[{\"scope\":{},\"spans\":[" JSON_SPAN "]}],"              \
    "\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":"                           \
    "{\"stringValue\":\"search\"}}]}}]}"

static void test_json(void **state)
{
    _cleanup_span_batch_ struct span_batch batch = {0};
    struct span_reader reader = {0};
    struct error error = {0};
    (void)state;
    if (read_json(JSON, &reader, &batch, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(batch.count, 1);
    const struct span *span = &batch.list[0];
    assert_int_equal(span->trace_id[0], 0x5b);
    assert_int_equal(span->parent_id[7], 0x73);
    assert_int_equal(span->kind, SPAN_SERVER);
    assert_int_equal(span->status, SPAN_ERROR);
    assert_int_equal(span->duration_ns, 500);
    assert_string_equal(text(&batch, span->service), "search");
    assert_string_equal(text(&batch, span->route), "pkg.Search/Find");
}

static void test_json_truncated(void **state)
{
    char json[] = JSON;
    (void)state;
    for (size_t length = sizeof(json) - 1; length-- > 0;) {
        _cleanup_span_batch_ struct span_batch batch = {0};
        struct span_reader reader = {0};
        struct error error = {0};
        json[length] = 0;
        if (length) /* an empty source is opened by nobody */
            assert_true(read_json(json, &reader, &batch, &error) < 0);
    }
}

/* ---- templates ---- */

static void test_templates(void **state)
{
    static const struct {
        const char *path, *template;
    } cases[] = {
        {"/user/123", "/user/{id}"},
        {"/", "/"},
        {"", ""},
        {"/user/123/posts/9?page=2#top", "/user/{id}/posts/{id}"},
        {"/v1/oauth2/token", "/v1/oauth2/token"},
        {"/o/3f2504e0-4f89-11d3-9a0c-0305e82c3301", "/o/{uuid}"},
        {"/c/9fceb02d0ae598e95dc970b74767f19372d61af8", "/c/{hash}"},
        {"/c/deadbeef", "/c/deadbeef"},
        {"/m/jane@example.org", "/m/{email}"},
        {"/day/2024-05-01", "/day/{id}"},
        {"/order-12345/x", "/{id}/x"},
        {"https://shop.example:8080/a/1", "/a/{id}"},
        {"https://shop.example", ""},
        {"/a//b/", "/a//b/"},
        {"/users/jane/posts", "/users/{name}/posts"},
        {"/users/jane", "/users/jane"},
        {"/static/js/app.js", "/static/{file...}"},
        {"/static", "/static"},
        {"not a path", "not a path"},
    };
    struct template_rules rules = {0};
    struct error error = {0};
    (void)state;
    assert_int_equal(template_rules_add(&rules, "/users/{name}/posts", &error), 0);
    assert_int_equal(template_rules_add(&rules, "/static/{file...}", &error), 0);
    assert_int_equal(template_rules_add(&rules, "users", &error), -EINVAL);
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char folded[TEMPLATE_BYTES];
        template_of(&rules, cases[i].path, strlen(cases[i].path), folded);
        assert_string_equal(folded, cases[i].template);
    }
    char path[5000], folded[TEMPLATE_BYTES];
    for (size_t i = 0; i < sizeof(path); i++)
        path[i] = "/a1"[i % 3];
    template_of(&rules, path, sizeof(path), folded);
    assert_true(strlen(folded) < TEMPLATE_BYTES);
    template_rules_release(&rules);
}

/* ---- blocks ---- */

static void same_spans(const struct span_batch *a, const struct span_batch *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) { /* blocks are in another order */
        const struct span *x = &a->list[i], *found = NULL;
        for (size_t k = 0; k < b->count; k++)
            if (!memcmp(x->trace_id, b->list[k].trace_id, 16) &&
                !memcmp(x->span_id, b->list[k].span_id, 8))
                found = &b->list[k];
        assert_non_null(found);
        assert_memory_equal(x->parent_id, found->parent_id, 8);
        assert_int_equal(x->start_ns, found->start_ns);
        assert_int_equal(x->duration_ns, found->duration_ns);
        assert_int_equal(x->code, found->code);
        assert_int_equal(x->kind, found->kind);
        assert_int_equal(x->status, found->status);
        assert_string_equal(text(a, x->service), text(b, found->service));
        assert_string_equal(text(a, x->name), text(b, found->name));
        assert_string_equal(text(a, x->method), text(b, found->method));
        assert_string_equal(text(a, x->route), text(b, found->route));
    }
}

static void test_block(void **state)
{
    _cleanup_span_batch_ struct span_batch batch = {0}, twice = {0}, read = {0};
    _cleanup_buffer_ struct buffer block = {0};
    struct span_block_head head;
    (void)state;
    read_chain(&batch);
    span_batch_append(&twice, &batch); /* repeated spans are there once */
    span_batch_append(&twice, &batch);
    span_block_encode(&twice, &block);
    assert_int_equal(span_block_head_read((uint8_t *)block.data, &head), 0);
    assert_int_equal(head.count, ARRAY_LENGTH(chain));
    assert_int_equal(block.length, SPAN_BLOCK_HEAD_BYTES + span_block_body_bytes(&head));
    assert_int_equal(head.first_ns, START);
    assert_int_equal(head.last_ns, START + 20);
    const uint8_t *body = (uint8_t *)block.data + SPAN_BLOCK_HEAD_BYTES;
    assert_int_equal(span_block_decode(&head, body, &read), 0);
    same_spans(&batch, &read);
    for (size_t i = 0; i < batch.count; i++)
        assert_true(span_block_may_have(&head, body, batch.list[i].trace_id));
}

/* What rules or deletion have taken out of the spans is not written. */
static void test_block_texts(void **state)
{
    _cleanup_span_batch_ struct span_batch batch = {0}, read = {0};
    _cleanup_buffer_ struct buffer block = {0};
    struct span_block_head head;
    (void)state;
    read_chain(&batch);
    span_batch_text(&batch, "secret", 6);
    span_block_encode(&batch, &block);
    assert_int_equal(span_block_head_read((uint8_t *)block.data, &head), 0);
    assert_int_equal(span_block_decode(&head, (uint8_t *)block.data + SPAN_BLOCK_HEAD_BYTES, &read),
                     0);
    same_spans(&batch, &read);
    for (size_t i = 0; i < read.text_count; i++)
        assert_string_not_equal(read.texts[i], "secret");
}

static void test_block_damage(void **state)
{
    _cleanup_span_batch_ struct span_batch batch = {0};
    _cleanup_buffer_ struct buffer block = {0};
    (void)state;
    read_chain(&batch);
    span_block_encode(&batch, &block);
    for (size_t bit = 0; bit < block.length * 8; bit++) {
        _cleanup_span_batch_ struct span_batch read = {0};
        struct span_block_head head;
        block.data[bit / 8] ^= (char)(1 << bit % 8);
        if (!span_block_head_read((uint8_t *)block.data, &head))
            assert_int_equal(
                span_block_decode(&head, (uint8_t *)block.data + SPAN_BLOCK_HEAD_BYTES, &read),
                -EBADMSG);
        assert_int_equal(read.count, 0);
        block.data[bit / 8] ^= (char)(1 << bit % 8);
    }
}

/* The filter says yes to what is there, and rarely to what isn't. */
static void test_filter(void **state)
{
    _cleanup_span_batch_ struct span_batch batch = {0};
    _cleanup_buffer_ struct buffer block = {0};
    struct span_block_head head;
    unsigned wrong = 0;
    (void)state;
    for (uint32_t i = 0; i < 2000; i++) {
        struct span *span = span_batch_add(&batch);
        memcpy(span->trace_id, &i, sizeof(i));
        span->trace_id[15] = 1;
        span->span_id[0] = 1;
        span->start_ns = START;
    }
    span_block_encode(&batch, &block);
    assert_int_equal(span_block_head_read((uint8_t *)block.data, &head), 0);
    for (uint32_t i = 0; i < 4000; i++) {
        uint8_t id[16] = {[15] = 1};
        memcpy(id, &i, sizeof(i));
        bool may = span_block_may_have(&head, (uint8_t *)block.data + SPAN_BLOCK_HEAD_BYTES, id);
        assert_true(may || i >= 2000);
        wrong += may && i >= 2000;
    }
    assert_true(wrong < 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_protobuf),    cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_flipped),     cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_json),        cmocka_unit_test(test_json_truncated),
        cmocka_unit_test(test_templates),   cmocka_unit_test(test_block),
        cmocka_unit_test(test_block_texts), cmocka_unit_test(test_block_damage),
        cmocka_unit_test(test_filter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
