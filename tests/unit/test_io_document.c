// SPDX-License-Identifier: Apache-2.0
// Documents with a version: members in any order after it, newer and missing versions, bad input.

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "io/document.h"
#include "unit.h"

struct sums {
    int64_t list, single;
};

static int read_element(struct json *json, void *context)
{
    int64_t value = 0;
    int r = json_i64(json, &value);
    ((struct sums *)context)->list += value;
    return r;
}

static int read_single(struct json *json, void *context)
{
    return json_i64(json, &((struct sums *)context)->single);
}

static int read_text(const char *text, struct sums *sums, struct error *error)
{
    static const struct document_member members[] = {
        {"list", true, read_element}, {"single", false, read_single}, {0}};
    *sums = (struct sums){0};
    return document_read(text, strlen(text), 1000, 2, members, sums, error);
}

static void test_members(void **state)
{
    struct sums sums;
    struct error error = {0};
    (void)state;
    assert_int_equal(
        read_text("{\"version\":2,\"list\":[1,2,3],\"other\":[{}],\"single\":7}", &sums, &error),
        0);
    assert_int_equal(sums.list, 6);
    assert_int_equal(sums.single, 7);
    assert_int_equal(read_text("{\"version\":2}", &sums, &error), 0);
}

static void test_versions(void **state)
{
    struct sums sums;
    struct error error = {0};
    (void)state;
    assert_int_equal(read_text("{\"version\":3,\"list\":[1]}", &sums, &error), -ENOTSUP);
    assert_non_null(strstr(error.text, "Its version is 3; this program supports version 2"));
    assert_int_equal(sums.list, 0);
    static const char *const wrong[] = {"{}",
                                        "{\"version\":1}",
                                        "{\"list\":[1],\"version\":2}",
                                        "{\"version\":2,\"list\":[1",
                                        "{\"version\":2,\"list\":{}}",
                                        "{\"version\":2,\"list\":[\"a\"]}",
                                        "{\"version\":2} more",
                                        "[]",
                                        ""};
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
        error = (struct error){0};
        assert_true(read_text(wrong[i], &sums, &error) < 0);
        assert_true(error.text[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_versions),
    };
    return cmocka_run_group_tests_name("io_document", tests, NULL, NULL);
}
