// SPDX-License-Identifier: Apache-2.0
// Triage: sums by kind, idle threads, the holder of a lock, and what is refused.

#include "profile/triage.h"

#include <string.h>

#include "unit.h"

#define MS INT64_C(1000000)

static void add(struct profile *profile, const char *state, int64_t ns, const char *const *stack)
{
    uint32_t frames[16];
    size_t count = 0;
    for (; stack[count]; count++) {
        struct profile_function function = {.name = profile_cstring(profile, stack[count])};
        struct profile_frame frame = {.function = profile_function(profile, &function)};
        frames[count] = profile_frame(profile, &frame);
    }
    struct profile_label label = {.key = profile_cstring(profile, "state"),
                                  .text = profile_cstring(profile, state)};
    unsigned type = profile_type(profile, profile_cstring(profile, "wall"),
                                 profile_cstring(profile, "nanoseconds"));
    size_t row = profile_sample(profile, profile_stack(profile, frames, count),
                                profile_label_set(profile, &label, 1), 0, 0);
    profile_add_value(profile, row, type, ns);
}

static void test_lock(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    struct triage triage;
    struct error error = {0};
    profile_init(&profile, PROFILE_LABELS);
    add(&profile, "lock", 600 * MS,
        (const char *[]){"main", "waiter", "pthread_mutex_lock", TRIAGE_HOLDER_MARK, "main",
                         "holder", "pthread_mutex_unlock", "__lll_lock_wake", NULL});
    add(&profile, "lock", 5000 * MS, (const char *[]){"pool", "pthread_cond_wait", NULL});
    add(&profile, "running", 100 * MS, (const char *[]){"main", "work", NULL});
    add(&profile, "sleep", 2000 * MS, (const char *[]){"main", "nanosleep", NULL});
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_int_equal(triage.verdict, TRIAGE_LOCK);
    assert_int_equal(triage.ns[TRIAGE_LOCK], 600 * MS);
    assert_int_equal(triage.ns[TRIAGE_IDLE], 5000ll * MS);
    assert_int_equal(triage.busy_ns, 2700ll * MS);
    assert_string_equal(profile_text(&profile, profile.functions[triage.holder].name), "holder");
    assert_int_equal(triage.holder_ns, 600 * MS);
}

/* A mutex that a thread of a pool waits for is not work that it waits for. */
static void test_mutex_is_never_idle(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    struct triage triage;
    struct error error = {0};
    profile_init(&profile, PROFILE_LABELS);
    add(&profile, "lock", 10 * MS, (const char *[]){"pool", "pthread_mutex_lock", NULL});
    add(&profile, "network", 10 * MS, (const char *[]){"loop", "epoll_wait", NULL});
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_int_equal(triage.ns[TRIAGE_LOCK], 10 * MS);
    assert_int_equal(triage.ns[TRIAGE_IDLE], 10 * MS);
    assert_int_equal(triage.holder, 0);
}

static void test_only_idle_and_sleep(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    struct triage triage;
    struct error error = {0};
    profile_init(&profile, PROFILE_LABELS);
    add(&profile, "network", 10 * MS, (const char *[]){"loop", "epoll_wait", NULL});
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_int_equal(triage.verdict, TRIAGE_IDLE);
    add(&profile, "sleep", 100 * MS, (const char *[]){"main", "nanosleep", NULL});
    add(&profile, "running", 1 * MS, (const char *[]){"main", NULL});
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_int_equal(triage.verdict, TRIAGE_SLEEPING);
}

static void test_without_states(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    struct triage triage;
    struct error error = {0};
    profile_init(&profile, PROFILE_LABELS);
    assert_int_equal(triage_profile(&profile, &triage, &error), -ENODATA);
    assert_non_null(strstr(error.text, "--mode wall,lock"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_mutex_is_never_idle),
        cmocka_unit_test(test_only_idle_and_sleep),
        cmocka_unit_test(test_without_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
