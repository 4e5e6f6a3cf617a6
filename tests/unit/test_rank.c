// SPDX-License-Identifier: Apache-2.0
// Ranking: flat and cumulative values, recursion, callers, callees, lines.

#include "profile/views/rank.h"

#include "base/memory.h"
#include "sample_profile.h"

struct ranked {
    struct profile profile;
    struct naming naming;
    struct ranking ranking;
};

static void rank(struct ranked *ranked, enum rank_order order)
{
    naming_init(&ranked->naming, &ranked->profile);
    rank_functions(&ranked->profile, &ranked->naming, 0, order, &ranked->ranking);
}

static void ranked_release(struct ranked *ranked)
{
    ranking_release(&ranked->ranking);
    naming_release(&ranked->naming);
    profile_release(&ranked->profile);
}

static uint32_t entry_called(const struct naming *naming, const char *name)
{
    for (uint32_t i = 0; i < naming->count; i++)
        if (!strcmp(naming->entries[i].name, name))
            return i;
    fail_msg("no function is called %s", name);
    return 0;
}

static const struct rank_row *row_of(const struct ranked *ranked, const char *name)
{
    uint32_t entry = entry_called(&ranked->naming, name);
    for (size_t i = 0; i < ranked->ranking.count; i++)
        if (ranked->ranking.rows[i].entry == entry)
            return &ranked->ranking.rows[i];
    fail_msg("%s has no row", name);
    return NULL;
}

#define assert_row(ranked, name, flat_value, cumulative_value)                                     \
    do {                                                                                           \
        assert_int_equal(row_of(ranked, name)->flat, flat_value);                                  \
        assert_int_equal(row_of(ranked, name)->cumulative, cumulative_value);                      \
    } while (0)

static void flat_and_cumulative(void **state)
{
    (void)state;
    _cleanup_(ranked_release) struct ranked ranked = {0};
    profile_init(&ranked.profile, PROFILE_ALL);
    add_stacks(&ranked.profile, "main;a;c 5", "main;b;c 7", "main;a 2", "main;b 30");
    rank(&ranked, RANK_BY_FLAT);
    assert_row(&ranked, "main", 0, 44);
    assert_row(&ranked, "a", 2, 7);
    assert_row(&ranked, "b", 30, 37);
    assert_row(&ranked, "c", 12, 12);
    assert_int_equal(ranked.ranking.total, 44);
    assert_int_equal(ranked.ranking.count, 4);
    assert_int_equal(ranked.ranking.rows[0].flat, 30);
    assert_int_equal(ranked.ranking.rows[1].flat, 12);
}

static void order_by_cumulative(void **state)
{
    (void)state;
    _cleanup_(ranked_release) struct ranked ranked = {0};
    profile_init(&ranked.profile, PROFILE_ALL);
    add_stacks(&ranked.profile, "main;a;c 5", "main;b 3");
    rank(&ranked, RANK_BY_CUMULATIVE);
    assert_string_equal(ranked.naming.entries[ranked.ranking.rows[0].entry].name, "main");
    /* Equal cumulative values: the larger flat value first. */
    assert_string_equal(ranked.naming.entries[ranked.ranking.rows[1].entry].name, "c");
    assert_string_equal(ranked.naming.entries[ranked.ranking.rows[2].entry].name, "a");
}

static void recursion_counts_once(void **state)
{
    (void)state;
    _cleanup_(ranked_release) struct ranked ranked = {0};
    profile_init(&ranked.profile, PROFILE_ALL);
    add_stacks(&ranked.profile, "main;f;f;f 4", "main;f;g;f;g 6");
    rank(&ranked, RANK_BY_FLAT);
    assert_row(&ranked, "f", 4, 10);
    assert_row(&ranked, "g", 6, 6);
}

static void one_name_is_one_function(void **state)
{
    (void)state;
    _cleanup_(ranked_release) struct ranked ranked = {0};
    profile_init(&ranked.profile, PROFILE_ALL);
    add_stacks(&ranked.profile, "main;f:3 4", "main;f:9 6", "main;0x40 1", "main;0x80 1",
               "main;0x40;f:3 1");
    rank(&ranked, RANK_BY_FLAT);
    assert_row(&ranked, "f", 11, 11);
    assert_row(&ranked, "app+0x40", 1, 2);
    assert_row(&ranked, "app+0x80", 1, 1);
}

static void negative_values_rank_by_size(void **state)
{
    (void)state;
    _cleanup_(ranked_release) struct ranked ranked = {0};
    profile_init(&ranked.profile, PROFILE_ALL);
    add_stacks(&ranked.profile, "main;a 3", "main;b -9");
    rank(&ranked, RANK_BY_FLAT);
    assert_int_equal(ranked.ranking.rows[0].flat, -9);
    assert_int_equal(ranked.ranking.total, -6);
    assert_int_equal(ranked.ranking.absolute, 12);
}

static void sums_stop_at_the_end_of_the_range(void **state)
{
    (void)state;
    _cleanup_(ranked_release) struct ranked ranked = {0};
    profile_init(&ranked.profile, PROFILE_ALL);
    add_stacks(&ranked.profile, "main;a 9223372036854775807", "main;b 9223372036854775807");
    rank(&ranked, RANK_BY_FLAT);
    assert_true(row_of(&ranked, "main")->cumulative == INT64_MAX);
    assert_true(ranked.ranking.total == INT64_MAX);
    assert_true(magnitude(INT64_MIN) == INT64_MAX);
}

static void empty_profile(void **state)
{
    (void)state;
    _cleanup_(ranked_release) struct ranked ranked = {0};
    profile_init(&ranked.profile, PROFILE_ALL);
    rank(&ranked, RANK_BY_FLAT);
    assert_int_equal(ranked.ranking.count, 0);
    assert_int_equal(ranked.ranking.total, 0);
}

static int64_t edge(const struct ranked *ranked, const struct ranking *ranking, const char *name)
{
    uint32_t entry = name ? entry_called(&ranked->naming, name) : RANK_ROOT;
    for (size_t i = 0; i < ranking->count; i++)
        if (ranking->rows[i].entry == entry)
            return ranking->rows[i].cumulative;
    return 0;
}

static void callers_and_callees(void **state)
{
    (void)state;
    _cleanup_(ranked_release) struct ranked ranked = {0};
    profile_init(&ranked.profile, PROFILE_ALL);
    add_stacks(&ranked.profile, "main;a;f;x 5", "main;b;f 7", "f;y 2", "main;a;f;f;x 1");
    rank(&ranked, RANK_BY_FLAT);
    _cleanup_free_ bool *chosen = memory_zalloc(ranked.naming.count, sizeof(bool));
    chosen[entry_called(&ranked.naming, "f")] = true;
    _cleanup_ranking_ struct ranking callers = {0}, callees = {0};
    int64_t self;
    rank_neighbours(&ranked.profile, &ranked.naming, 0, chosen, RANK_CALLERS, &callers, &self);
    assert_int_equal(edge(&ranked, &callers, "a"), 6);
    assert_int_equal(edge(&ranked, &callers, "b"), 7);
    assert_int_equal(edge(&ranked, &callers, NULL), 2);
    assert_int_equal(edge(&ranked, &callers, "f"), 1);
    rank_neighbours(&ranked.profile, &ranked.naming, 0, chosen, RANK_CALLEES, &callees, &self);
    assert_int_equal(self, 7);
    assert_int_equal(edge(&ranked, &callees, "x"), 6);
    assert_int_equal(edge(&ranked, &callees, "y"), 2);
    assert_int_equal(edge(&ranked, &callees, "f"), 1);
}

static void lines_of_a_function(void **state)
{
    (void)state;
    _cleanup_(ranked_release) struct ranked ranked = {0};
    profile_init(&ranked.profile, PROFILE_ALL);
    add_stacks(&ranked.profile, "main:1;f:10 5", "main:1;f:12;g:3 7", "main:1;f:12;f:10 1");
    rank(&ranked, RANK_BY_FLAT);
    _cleanup_free_ bool *chosen = memory_zalloc(ranked.naming.count, sizeof(bool));
    chosen[entry_called(&ranked.naming, "f")] = true;
    size_t count;
    _cleanup_free_ struct line_row *rows =
        rank_lines(&ranked.profile, &ranked.naming, 0, chosen, &count);
    assert_int_equal(count, 2);
    assert_int_equal(rows[0].line, 10);
    assert_int_equal(rows[0].flat, 6);
    assert_int_equal(rows[0].cumulative, 6);
    assert_int_equal(rows[1].line, 12);
    assert_int_equal(rows[1].flat, 0);
    assert_int_equal(rows[1].cumulative, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flat_and_cumulative),
        cmocka_unit_test(order_by_cumulative),
        cmocka_unit_test(recursion_counts_once),
        cmocka_unit_test(one_name_is_one_function),
        cmocka_unit_test(negative_values_rank_by_size),
        cmocka_unit_test(sums_stop_at_the_end_of_the_range),
        cmocka_unit_test(empty_profile),
        cmocka_unit_test(callers_and_callees),
        cmocka_unit_test(lines_of_a_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
