// SPDX-License-Identifier: Apache-2.0
// Error sentences: codes, prefixes, and text that doesn't fit.

#include "unit.h"

static void sets_code_and_text(void **state)
{
    (void)state;
    struct error error = {0};
    assert_int_equal(error_set(&error, -EBADMSG, "Byte %d is wrong.", 7), -EBADMSG);
    assert_int_equal(error.code, -EBADMSG);
    assert_string_equal(error.text, "Byte 7 is wrong.");
}

static void takes_no_error(void **state)
{
    (void)state;
    assert_int_equal(error_set(NULL, -E2BIG, "Nobody reads %s.", "this"), -E2BIG);
    assert_int_equal(error_set_errno(NULL, -ENOENT, "Nor this"), -ENOENT);
}

static void appends_the_reason(void **state)
{
    (void)state;
    struct error error = {0};
    assert_int_equal(error_set_errno(&error, -ENOENT, "%s cannot be opened", "x"), -ENOENT);
    assert_string_equal(error.text, "x cannot be opened: No such file or directory.");
}

static void prefixes_in_front(void **state)
{
    (void)state;
    struct error error = {0};
    error_set(&error, -EBADMSG, "Line 3 is wrong.");
    assert_int_equal(error_prefix(&error, "%s", "a.txt"), -EBADMSG);
    assert_string_equal(error.text, "a.txt: Line 3 is wrong.");
    error_prefix(&error, "outer");
    assert_string_equal(error.text, "outer: a.txt: Line 3 is wrong.");
}

static void cuts_what_does_not_fit(void **state)
{
    (void)state;
    char giant[2 * ERROR_TEXT_BYTES];
    memset(giant, 'x', sizeof(giant) - 1);
    giant[sizeof(giant) - 1] = '\0';
    struct error error = {0};
    error_set(&error, -EBADMSG, "%s", giant);
    assert_int_equal(strlen(error.text), ERROR_TEXT_BYTES - 1);
    error_set_errno(&error, -ENOENT, "%s", giant);
    assert_int_equal(strlen(error.text), ERROR_TEXT_BYTES - 1);
    error_prefix(&error, "%s", "short");
    assert_int_equal(strlen(error.text), ERROR_TEXT_BYTES - 1);
    assert_memory_equal(error.text, "short: xxx", 10);
    error_prefix(&error, "%s", giant);
    assert_int_equal(strlen(error.text), ERROR_TEXT_BYTES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_code_and_text),     cmocka_unit_test(takes_no_error),
        cmocka_unit_test(appends_the_reason),     cmocka_unit_test(prefixes_in_front),
        cmocka_unit_test(cuts_what_does_not_fit),
    };
    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
