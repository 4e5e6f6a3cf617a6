// SPDX-License-Identifier: Apache-2.0
// The JSON writer: commas, escapes and numbers, and that the pull reader takes what it writes.

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "io/json.h"
#include "io/json_write.h"
#include "io/source.h"

static void nested(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer out = {0};
    struct json_writer json = json_writer(&out);
    json_write_object(&json);
    json_member_unsigned(&json, "most", UINT64_MAX);
    json_member_signed(&json, "least", INT64_MIN);
    json_member_number(&json, "number", 0.1);
    json_member_fixed(&json, "seconds", 1.0005, 3);
    json_write_key(&json, "list");
    json_write_array(&json);
    json_write_bool(&json, true);
    json_write_null(&json);
    json_write_object(&json);
    json_write_object_end(&json);
    json_write_array(&json);
    json_write_array_end(&json);
    json_write_raw(&json, "[1]", 3);
    json_write_array_end(&json);
    json_member_bool(&json, "last", false);
    json_write_object_end(&json);
    assert_string_equal(buffer_text(&out),
                        "{\"most\":18446744073709551615,\"least\":-9223372036854775808,"
                        "\"number\":0.1,\"seconds\":1.000,"
                        "\"list\":[true,null,{},[],[1]],\"last\":false}");
}

static void no_number_is_null(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer out = {0};
    struct json_writer json = json_writer(&out);
    json_write_array(&json);
    json_write_number(&json, NAN);
    json_write_number(&json, -INFINITY);
    json_write_fixed(&json, INFINITY, 2);
    json_write_array_end(&json);
    assert_string_equal(buffer_text(&out), "[null,null,null]");
}

/* Each byte as a key and as a text: the reader must take them all, and give the ASCII ones back. */
static void any_text(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        _cleanup_buffer_ struct buffer out = {0};
        struct json_writer json = json_writer(&out);
        char key[] = {'k', (char)c, 0}, text[] = {(char)c, 'x'};
        json_write_object(&json);
        json_write_key(&json, key);
        json_write_bytes(&json, text, sizeof(text));
        json_write_object_end(&json);

        struct error error = {0};
        struct source source;
        struct json reader;
        struct json_string got;
        assert_int_equal(
            source_open_memory(&source, "written", out.data, out.length, 1 << 20, &error), 0);
        json_init(&reader, &source, &error);
        assert_true(json_object(&reader) >= 0);
        assert_int_equal(json_next_key(&reader, &got), 1);
        assert_true(json_string(&reader, &got) >= 0);
        if (c < 0x80) {
            assert_int_equal(got.length, sizeof(text));
            assert_memory_equal(got.data, text, sizeof(text));
        }
        assert_int_equal(json_next_key(&reader, &got), 0);
        assert_true(json_end(&reader) >= 0);
        json_release(&reader);
        source_release(&source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested),
        cmocka_unit_test(no_number_is_null),
        cmocka_unit_test(any_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
