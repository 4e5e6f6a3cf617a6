// SPDX-License-Identifier: Apache-2.0
// The digest table.

#include "base/digests.h"

#include "unit.h"

static void finds_what_was_put_in(void **state)
{
    (void)state;
    struct digest_table table = {0};
    assert_int_equal(digest_table_find(&table, (struct digest){1, 2}), ID_NONE);
    for (uint32_t i = 0; i < 10000; i++)
        digest_table_insert(&table, (struct digest){hash_word(i), hash_word(~(uint64_t)i)}, i);
    assert_int_equal(table.used, 10000);
    assert_true(digest_table_bytes(&table) >= 10000 * sizeof(struct digest_slot));
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t id =
            digest_table_find(&table, (struct digest){hash_word(i), hash_word(~(uint64_t)i)});
        assert_int_equal(id, i < 10000 ? i : ID_NONE);
    }
    digest_table_release(&table);
}

/* Equal in the half that gives the position, different in the other: neighbours, not the same. */
static void both_halves_count(void **state)
{
    (void)state;
    struct digest_table table = {0};
    for (uint32_t i = 0; i < 1000; i++)
        digest_table_insert(&table, (struct digest){7, (uint64_t)i << 32}, i);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(digest_table_find(&table, (struct digest){7, (uint64_t)i << 32}), i);
    assert_int_equal(digest_table_find(&table, (struct digest){7, 1000ull << 32}), ID_NONE);
    assert_int_equal(digest_table_find(&table, (struct digest){8, 0}), ID_NONE);
    digest_table_release(&table);
}

static void the_largest_id(void **state)
{
    (void)state;
    struct digest_table table = {0};
    digest_table_insert(&table, (struct digest){0, 0}, ID_MAX);
    assert_int_equal(digest_table_find(&table, (struct digest){0, 0}), ID_MAX);
    digest_table_release(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_was_put_in),
        cmocka_unit_test(both_halves_count),
        cmocka_unit_test(the_largest_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
