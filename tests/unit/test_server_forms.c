// SPDX-License-Identifier: Apache-2.0
// What senders put around profiles: forms, base64, names of applications, messages of calls.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/base64.h"
#include "io/wire.h"
#include "server/ingest/prefix_tree.h"
#include "server/ingest/receive.h"
#include "server/pyroscope/rpc.h"

static const char form[] = "before\r\n--AaB\r\n"
                           "Content-Disposition: form-data; filename=\"n=1\"; name=\"profile\"\r\n"
                           "Content-Type: application/octet-stream\r\n\r\n"
                           "one\r\n--not\r\n\r\n--AaB\r\n"
                           "content-disposition: form-data; name=config\r\n\r\n"
                           "{}\r\n--AaB--\r\n";
static const char type[] = "multipart/form-data; boundary=\"AaB\"";

static void forms(void **state)
{
    (void)state;
    struct multipart parts;
    struct multipart_part part;
    struct error error = {0};
    assert_int_equal(multipart_init(&parts, type, form, sizeof(form) - 1, &error), 0);
    assert_int_equal(multipart_next(&parts, &part, &error), 1);
    assert_string_equal(part.name, "profile");
    assert_int_equal(part.length, strlen("one\r\n--not\r\n"));
    assert_memory_equal(part.data, "one\r\n--not\r\n", part.length);
    assert_int_equal(multipart_next(&parts, &part, &error), 1);
    assert_string_equal(part.name, "config");
    assert_int_equal(part.length, 2);
    assert_int_equal(multipart_next(&parts, &part, &error), 0);
}

static void bad_forms(void **state)
{
    (void)state;
    struct multipart parts;
    struct multipart_part part;
    struct error error = {0};
    assert_int_equal(multipart_init(&parts, "multipart/form-data", form, 5, &error), -EINVAL);
    assert_int_equal(multipart_init(&parts, type, "none", 4, &error), -EBADMSG);
    for (size_t length = 0; length < sizeof(form) - 1; length++) {
        char *copy = malloc(length + 1); /* of the exact size, so that a sanitizer sees all */
        assert_non_null(copy);
        copy = realloc(copy, length ? length : 1);
        memcpy(copy, form, length);
        int r = multipart_init(&parts, type, copy, length, &error);
        for (int i = 0; i < 10 && !r; i++)
            if ((r = multipart_next(&parts, &part, &error)) > 0) {
                assert_true(part.data >= copy && part.data + part.length <= copy + length);
                r = 0;
            } else if (!r) {
                break;
            }
        /* Only when both dashes after the last boundary are there is it whole. */
        if (length < sizeof(form) - 1 - 2)
            assert_int_equal(r, -EBADMSG);
        free(copy);
    }
}

static void base64(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"\xff\xfe", "//4="}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct buffer out = {0};
        base64_encode(pairs[i][0], strlen(pairs[i][0]), &out);
        assert_string_equal(buffer_text(&out), pairs[i][1]);
        out.length = 0;
        assert_true(base64_decode(pairs[i][1], strlen(pairs[i][1]), &out));
        assert_string_equal(buffer_text(&out), pairs[i][0]);
        buffer_release(&out);
    }
    struct buffer out = {0};
    assert_false(base64_decode("Z", 1, &out));
    assert_false(base64_decode("Zm9*", 4, &out));
    assert_false(base64_decode("Zm=v", 4, &out));
    buffer_release(&out);
}

static void names(void **state)
{
    (void)state;
    struct labels labels = {0};
    struct error error = {0};
    assert_int_equal(ingest_parse_name("my.app{ env = prod ,__x__=1,zone=a b}", &labels, &error),
                     0);
    assert_string_equal(labels_get(&labels, "service_name"), "my.app");
    assert_string_equal(labels_get(&labels, "env"), "prod");
    assert_string_equal(labels_get(&labels, "zone"), "a b");
    assert_int_equal(labels.count, 3);
    labels_clear(&labels);
    assert_int_equal(ingest_parse_name("app{service_name=other}", &labels, &error), 0);
    assert_string_equal(labels_get(&labels, "service_name"), "other");
    labels_clear(&labels);
    static const char *const bad[] = {"", "{}", "a b", "app{x}", "app{=v}", "app{a=b,c", "\"app\""};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(ingest_parse_name(bad[i], &labels, &error), -EINVAL);
        labels_clear(&labels);
    }
    labels_release(&labels);
    int64_t factor;
    char application[] = "my.app.wall", plain[] = "app";
    assert_string_equal(ingest_suffix_type(application, 50, &factor),
                        "wall:wall:nanoseconds:cpu:nanoseconds");
    assert_string_equal(application, "my.app");
    assert_int_equal(factor, 20000000);
    assert_string_equal(ingest_suffix_type(plain, 0, &factor),
                        "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
    assert_int_equal(factor, 10000000);
}

#define AT(member) offsetof(struct rpc_request, member)
static const char *const words[] = {"PROFILE_FORMAT_NONE", "PROFILE_FORMAT_TREE", NULL};
static const struct rpc_field inner[] = {{1, "name", NULL, RPC_TEXT, AT(name)}, {0}};
static const struct rpc_field fields[] = {
    {1, "profileTypeID", "profile_typeID", RPC_TEXT, AT(profile_type)},
    {2, "matchers", NULL, RPC_TEXTS, AT(matchers)},
    {3, "start", NULL, RPC_NUMBER, AT(start)},
    {4, "step", NULL, RPC_DOUBLE, AT(step)},
    {5, "format", NULL, RPC_ENUM, AT(format), words},
    {6, "left", NULL, RPC_MESSAGE, AT(left), NULL, inner},
    {0}};

static void check_request(const struct rpc_request *request)
{
    assert_string_equal(request->profile_type, "cpu");
    assert_int_equal(request->matchers.count, 2);
    assert_string_equal(request->matchers.list[1], "{b}");
    assert_int_equal(request->start, 5000000000);
    assert_true(request->step == 1.5);
    assert_int_equal(request->format, 1);
    assert_non_null(request->left);
    assert_string_equal(request->left->name, "inside");
}

static void messages(void **state)
{
    (void)state;
    struct error error = {0};
    struct rpc_request request = {.json = true};
    static const char json[] =
        "{\"profile_typeID\":\"cpu\",\"matchers\":[\"{a}\",\"{b}\"],\"start\":\"5000000000\","
        "\"step\":1.5,\"format\":\"PROFILE_FORMAT_TREE\",\"left\":{\"name\":\"inside\"},"
        "\"unknown\":[{}]}";
    assert_int_equal(rpc_parse(json, sizeof(json) - 1, fields, &request, &error), 0);
    check_request(&request);
    rpc_release(&request);
    for (size_t length = 0; length < sizeof(json) - 1; length++) {
        request.json = true;
        assert_true(rpc_parse(json, length, fields, &request, &error) < 0);
        rpc_release(&request);
    }
    struct buffer out = {0};
    double step = 1.5;
    uint64_t bits;
    memcpy(&bits, &step, sizeof(bits));
    wire_put_bytes(&out, 1, "cpu", 3);
    wire_put_bytes(&out, 2, "{a}", 3);
    wire_put_bytes(&out, 2, "{b}", 3);
    wire_put_i64(&out, 3, 5000000000);
    wire_put_fixed64(&out, 4, bits);
    wire_put_u64(&out, 5, 1);
    size_t mark = wire_begin(&out, 6);
    wire_put_bytes(&out, 1, "inside", 6);
    wire_end(&out, mark);
    wire_put_u64(&out, 99, 7);
    assert_int_equal(rpc_parse(out.data, out.length, fields, &request, &error), 0);
    check_request(&request);
    rpc_release(&request);
    for (size_t length = 0; length < out.length; length++) {
        rpc_parse(out.data, length, fields, &request, &error);
        rpc_release(&request);
    }
    for (size_t i = 0; i < out.length; i++) {
        out.data[i] ^= 0x41;
        rpc_parse(out.data, out.length, fields, &request, &error);
        rpc_release(&request);
        out.data[i] ^= 0x41;
    }
    buffer_release(&out);
}

/* The stacks of both are "main;rest" 2, "main;run" 1 and "main;run;step" 300. */
static const uint8_t tree[] = "\0\0\1"
                              "\4main\0\2"
                              "\4rest\2\0"
                              "\3run\1\1"
                              "\4step\xac\2";
static const uint8_t trie[] = "\0\0\1"
                              "\6main;r\0\2"
                              "\3est\2\0"
                              "\2un\1\1"
                              "\5;step\xac\2";

static void check_tree(const void *data, size_t length, bool is_trie)
{
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    profile_init(&profile, PROFILE_ALL);
    assert_int_equal(prefix_tree_read(data, length, is_trie, 3, &profile, &error), 0);
    assert_int_equal(profile.samples.count, 3);
    int64_t wanted[] = {2, 1, 300};
    const char *leaves[] = {"rest", "run", "step"};
    for (size_t i = 0; i < 3; i++) {
        const struct profile_node *node = &profile.nodes[profile.samples.node[i]];
        uint32_t function = profile.frames[node->frame].function;
        assert_int_equal(profile.samples.values[0][i], wanted[i]);
        assert_string_equal(profile_text(&profile, profile.functions[function].name), leaves[i]);
        while (node->parent)
            node = &profile.nodes[node->parent];
        function = profile.frames[node->frame].function;
        assert_string_equal(profile_text(&profile, profile.functions[function].name), "main");
    }
    /* The limit is of stacks; whatever is cut off or changed is refused, or is another tree. */
    profile_release(&profile);
    profile_init(&profile, PROFILE_ALL);
    assert_int_equal(prefix_tree_read(data, length, is_trie, 2, &profile, &error), -E2BIG);
    for (size_t cut = 1; cut < length; cut++) {
        char *copy = malloc(cut);
        assert_non_null(copy);
        memcpy(copy, data, cut);
        profile_release(&profile);
        profile_init(&profile, PROFILE_ALL);
        assert_int_equal(prefix_tree_read(copy, cut, is_trie, 100, &profile, &error), -EBADMSG);
        copy[cut - 1] ^= 0x41;
        profile_release(&profile);
        profile_init(&profile, PROFILE_ALL);
        prefix_tree_read(copy, cut, is_trie, 100, &profile, &error);
        free(copy);
    }
}

static void trees(void **state)
{
    (void)state;
    check_tree(tree, sizeof(tree), false); /* the literal's NUL is "no children" */
    check_tree(trie, sizeof(trie), true);
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    profile_init(&profile, PROFILE_ALL);
    assert_int_equal(prefix_tree_read("", 0, true, 1, &profile, &error), 0);
    assert_int_equal(profile.samples.count, 0);
    /* A value of nothing at all. */
    assert_int_equal(prefix_tree_read("\0\6\0", 3, true, 1, &profile, &error), 0);
    assert_int_equal(profile.samples.count, 1);
    assert_int_equal(profile.samples.node[0], 0);
    /* More children than bytes, and a length beyond the end. */
    assert_int_equal(prefix_tree_read("\0\0\xff\xff\xff\xff\7", 7, false, 1, &profile, &error),
                     -EBADMSG);
    assert_int_equal(prefix_tree_read("\xff\xff\xff\xff\7x", 6, false, 1, &profile, &error),
                     -EBADMSG);
}

static void call_sites(void **state)
{
    (void)state;
    struct error error = {0};
    const struct rpc_field *merge = querier_fields("SelectMergeStacktraces");
    assert_non_null(merge);
    assert_null(querier_fields("Nothing"));
    static const char json[] =
        "{\"stackTraceSelector\":{\"callSite\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}";
    struct rpc_request request = {.json = true};
    assert_int_equal(rpc_parse(json, sizeof(json) - 1, merge, &request, &error), 0);
    assert_int_equal(request.stack->call_site.count, 2);
    assert_string_equal(request.stack->call_site.list[1], "b");
    rpc_release(&request);
    static const char wire[] = "\x3a\x0a\x0a\x03\x0a\x01"
                               "a\x0a\x03\x0a\x01"
                               "b";
    assert_int_equal(rpc_parse(wire, sizeof(wire) - 1, merge, &request, &error), 0);
    assert_int_equal(request.stack->call_site.count, 2);
    assert_string_equal(request.stack->call_site.list[1], "b");
    rpc_release(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms),      cmocka_unit_test(bad_forms), cmocka_unit_test(base64),
        cmocka_unit_test(names),      cmocka_unit_test(messages),  cmocka_unit_test(trees),
        cmocka_unit_test(call_sites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
