// SPDX-License-Identifier: Apache-2.0
// The hash map: finding, collisions, growing and the largest ids.

#include "base/idtable.h"
#include "unit.h"

/* All candidates for a hash, in a bitmap of the first 64 ids. */
static uint64_t candidates(const struct id_table *table, uint64_t hash)
{
    struct id_probe probe = id_probe_start(hash);
    uint64_t found = 0;
    uint32_t id;
    while ((id = id_table_next(table, &probe)) != ID_NONE)
        found |= 1ull << id;
    return found;
}

static bool contains(const struct id_table *table, uint64_t hash, uint32_t wanted)
{
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(table, &probe)) != ID_NONE)
        if (id == wanted)
            return true;
    return false;
}

static void empty_has_nothing(void **state)
{
    (void)state;
    struct id_table table = {0};
    assert_int_equal(candidates(&table, 0), 0);
    assert_int_equal(candidates(&table, UINT64_MAX), 0);
    id_table_clear(&table);
    id_table_release(&table);
}

static void finds_all_that_collide(void **state)
{
    (void)state;
    struct id_table table = {0};
    /* Equal in the half that is used, so only the caller can tell them apart. */
    uint64_t hash = 0xabcdef0000000000;
    for (uint32_t id = 0; id < 10; id++)
        id_table_insert(&table, hash + id, id);
    assert_int_equal(candidates(&table, hash), 0x3ff);
    assert_int_equal(candidates(&table, hash + (1ull << 32)), 0);
    id_table_release(&table);
}

static void survives_hashes_at_the_ends(void **state)
{
    (void)state;
    struct id_table table = {0};
    /* The last slots: probing has to wrap around. */
    for (uint32_t id = 0; id < 20; id++)
        id_table_insert(&table, UINT64_MAX, id);
    id_table_insert(&table, 0, 20);
    assert_int_equal(candidates(&table, UINT64_MAX), 0xfffff);
    assert_int_equal(candidates(&table, 0), 1u << 20);
    id_table_release(&table);
}

static void finds_everything_after_growing(void **state)
{
    (void)state;
    enum { COUNT = 200000 };
    struct id_table table = {0};
    for (uint32_t id = 0; id < COUNT; id++)
        id_table_insert(&table, hash_word(id), id);
    assert_int_equal(table.used, COUNT);
    for (uint32_t id = 0; id < COUNT; id++)
        assert_true(contains(&table, hash_word(id), id));
    for (uint32_t id = COUNT; id < 2 * COUNT; id++)
        assert_false(contains(&table, hash_word(id), id));
    id_table_release(&table);
}

static void stays_between_a_third_and_three_quarters_full(void **state)
{
    (void)state;
    struct id_table table = {0};
    for (uint32_t id = 0; id < 100000; id++) {
        id_table_insert(&table, hash_word(id), id);
        size_t slots = table.mask + 1;
        assert_true(table.used <= slots / 4 * 3);
        assert_true(slots == 64 || table.used > slots / 3);
    }
    id_table_release(&table);
}

static void reserves_once(void **state)
{
    (void)state;
    struct id_table table = {0};
    id_table_reserve(&table, 1000);
    const uint64_t *slots = table.slots;
    for (uint32_t id = 0; id < 1000; id++)
        id_table_insert(&table, hash_word(id), id);
    assert_ptr_equal(table.slots, slots);
    id_table_reserve(&table, 10);
    assert_ptr_equal(table.slots, slots);
    id_table_release(&table);
}

static void clears_for_reuse(void **state)
{
    (void)state;
    struct id_table table = {0};
    for (uint32_t id = 0; id < 50; id++)
        id_table_insert(&table, hash_word(id), id);
    id_table_clear(&table);
    assert_int_equal(table.used, 0);
    for (uint32_t id = 0; id < 50; id++)
        assert_false(contains(&table, hash_word(id), id));
    id_table_insert(&table, hash_word(3), 7);
    assert_true(contains(&table, hash_word(3), 7));
    id_table_release(&table);
}

static void holds_the_largest_id(void **state)
{
    (void)state;
    struct id_table table = {0};
    id_table_insert(&table, 0, ID_MAX);
    id_table_insert(&table, UINT64_MAX, ID_MAX - 1);
    assert_true(contains(&table, 0, ID_MAX));
    assert_true(contains(&table, UINT64_MAX, ID_MAX - 1));
    id_table_release(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_has_nothing),
        cmocka_unit_test(finds_all_that_collide),
        cmocka_unit_test(survives_hashes_at_the_ends),
        cmocka_unit_test(finds_everything_after_growing),
        cmocka_unit_test(stays_between_a_third_and_three_quarters_full),
        cmocka_unit_test(reserves_once),
        cmocka_unit_test(clears_for_reuse),
        cmocka_unit_test(holds_the_largest_id),
    };
    return cmocka_run_group_tests_name("idtable", tests, NULL, NULL);
}
