// SPDX-License-Identifier: Apache-2.0
// Accounts of memory: what fits, what waits, and what the process has besides.

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits/budget.h"
#include "base/memory.h"

static void takes_what_fits(void **state)
{
    (void)state;
    struct budget budget;
    budget_init(&budget, 100);
    assert_true(budget_take(&budget, 60));
    assert_false(budget_take(&budget, 41));
    assert_false(budget_wait(&budget, 41, 1, NULL));
    assert_true(budget_wait_more(&budget, 40, 1, NULL));
    budget_give(&budget, 100);
    assert_true(budget_take(&budget, 1000)); /* alone, at the limit */
    struct budget_stats stats = budget_stats(&budget);
    assert_int_equal(stats.used_bytes, 100);
    assert_int_equal(stats.peak_bytes, 100);
    assert_int_equal(stats.refused, 2);
    budget_release(&budget);
}

static void looks_at_the_process(void **state)
{
    (void)state;
    enum { MIB = 1 << 20 };
    size_t resident = memory_resident();
    assert_true(resident > 0);
    struct budget budget;
    budget_init(&budget, 1024ul * MIB);
    budget_watch_process(&budget, resident + 512ul * MIB);
    /* Nothing of this is ever touched: what others have taken counts, one's own doesn't. */
    assert_false(budget_take(&budget, 600ul * MIB));
    assert_true(budget_take(&budget, 200ul * MIB));
    assert_false(budget_take(&budget, 350ul * MIB));
    assert_true(budget_take(&budget, 100ul * MIB));
    assert_true(budget_wait_more(&budget, 400ul * MIB, 1, NULL));
    budget_give(&budget, 700ul * MIB);
    /* A process that has too much already still works, on one thing at a time. */
    budget_watch_process(&budget, 1);
    assert_true(budget_take(&budget, 300ul * MIB));
    assert_false(budget_take(&budget, 1));
    assert_false(budget_wait_more(&budget, 1, 1, NULL));
    budget_give(&budget, 300ul * MIB);
    assert_false(budget_take(&budget, 400ul * MIB));
    budget_release(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_fits),
        cmocka_unit_test(looks_at_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
