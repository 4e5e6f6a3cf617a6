// SPDX-License-Identifier: Apache-2.0
// Names of sampled events, and what becomes of those that a machine doesn't count.

#include <linux/perf_event.h>

#include "capture/perf/events.h"
#include "unit.h"

static int counts_all(const struct perf_event_choice *choice)
{
    (void)choice;
    return 0;
}

static int counts_no_hardware(const struct perf_event_choice *choice)
{
    return choice->type == PERF_TYPE_HARDWARE ? -ENOENT : 0;
}

static int is_forbidden(const struct perf_event_choice *choice)
{
    (void)choice;
    return -EACCES;
}

static void names_are_perfs(void **state)
{
    (void)state;
    struct perf_events events;
    struct error error = {0};
    char note[PERF_NOTE_BYTES];
    assert_int_equal(perf_events_parse("cpu-cycles,instructions:u,faults,cs:k,task-clock",
                                       counts_all, &events, note, &error),
                     0);
    assert_string_equal(note, "");
    assert_true(events.cpu);
    assert_int_equal(events.count, 4);
    assert_string_equal(events.list[0].name, "cycles");
    assert_int_equal(events.list[0].period, 0);
    assert_string_equal(events.list[1].name, "instructions");
    assert_true(events.list[1].user_only && !events.list[1].kernel_only);
    assert_string_equal(events.list[2].name, "page-faults");
    assert_int_equal(events.list[2].config, PERF_COUNT_SW_PAGE_FAULTS);
    assert_true(events.list[2].period > 1);
    assert_string_equal(events.list[3].name, "context-switches");
    assert_true(events.list[3].kernel_only && !events.list[3].user_only);
}

static void missing_events_have_a_reason(void **state)
{
    (void)state;
    struct perf_events events;
    struct error error = {0};
    char note[PERF_NOTE_BYTES];
    assert_int_equal(perf_events_parse("cycles,page-faults,cache-misses", counts_no_hardware,
                                       &events, note, &error),
                     0);
    assert_true(events.cpu);
    assert_int_equal(events.count, 1);
    assert_string_equal(events.list[0].name, "page-faults");
    assert_non_null(strstr(note, "cycles, cache-misses"));
    assert_non_null(strstr(note, "Recording cpu-clock instead."));
    /* What a user may not do is said when it is tried: it is not about the machine. */
    assert_int_equal(perf_events_parse("cycles", is_forbidden, &events, note, &error), 0);
    assert_string_equal(note, "");
    assert_int_equal(events.count, 1);
    assert_false(events.cpu);
}

static void wrong_lists_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "cycle",
        "cycles:",
        "cycles:pp",
        "cycles:uk",
        "cycles,cpu-cycles",
        ":u",
        "cpu-clock:u",
        "context-switches:u",
        "page-faults,,cs",
        "cycles,instructions,cache-misses,cache-references,branches,branch-misses,page-faults,cs,"
        "major-faults",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct perf_events events = {.count = 77};
        struct error error = {0};
        char note[PERF_NOTE_BYTES];
        assert_int_equal(perf_events_parse(wrong[i], counts_all, &events, note, &error), -EINVAL);
        assert_true(error.text[0]);
        assert_int_equal(events.count, 77);
    }
}

static void shares_of_uncounted_time(void **state)
{
    (void)state;
    assert_int_equal(perf_event_uncounted_percent((struct perf_event_times){0}), 0);
    assert_int_equal(perf_event_uncounted_percent((struct perf_event_times){1000, 990}), 0);
    assert_int_equal(perf_event_uncounted_percent((struct perf_event_times){1000, 1200}), 0);
    assert_int_equal(perf_event_uncounted_percent((struct perf_event_times){1000, 250}), 75);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_perfs),
        cmocka_unit_test(missing_events_have_a_reason),
        cmocka_unit_test(wrong_lists_are_refused),
        cmocka_unit_test(shares_of_uncounted_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
