// SPDX-License-Identifier: Apache-2.0
// Tables of comparisons: profiles in parts, more functions than the memory has room for, inlining
// that differs between the sides.

#include "compare/cause.h"

#include <math.h>

#include "base/memory.h"
#include "sample_profile.h"

#define SECOND 1000000000ll
#define START (1700000000 * SECOND)
#define STEPS 16
#define FUNCTIONS 40

struct side {
    struct profile profile;
    struct naming naming;
    struct compare_source source;
};

static void describe(struct side *side, enum compare_side which)
{
    static const char *const names[] = {"base", "new"};
    naming_init(&side->naming, &side->profile);
    compare_source_init(&side->source, &side->profile, &side->naming, 0);
    side->source.side = which;
    side->source.cluster = names[which];
}

static void release(struct side *side)
{
    naming_release(&side->naming);
    profile_release(&side->profile);
}

static void add(struct profile *profile, const char *name, int step, int64_t value)
{
    uint32_t function = profile_function(
        profile, &(struct profile_function){.name = profile_cstring(profile, name)});
    uint32_t frame = profile_frame(profile, &(struct profile_frame){.function = function});
    unsigned type = profile_type(profile, profile_cstring(profile, "samples"),
                                 profile_cstring(profile, "count"));
    size_t row = profile_sample(profile, profile_stack(profile, &frame, 1), 0, 0,
                                (uint64_t)(START + step * SECOND));
    profile_add_value(profile, row, type, value);
}

/* Says that each step is covered. */
static void cover(struct profile *profile)
{
    profile_type(profile, profile_cstring(profile, "samples"), profile_cstring(profile, "count"));
    unsigned type = profile_type(profile, profile_cstring(profile, COMPARE_COVERED_TYPE),
                                 profile_cstring(profile, COMPARE_COVERED_UNIT));
    for (int step = 0; step < STEPS; step++)
        profile_add_value(profile,
                          profile_sample(profile, 0, 0, 0, (uint64_t)(START + step * SECOND)), type,
                          SECOND);
}

/* Functions f0, f1, ... of which each is smaller than the one before; `slow` grew by half. Of
 * `part` and `parts`: every so many-th; all have a function in common. */
static void fill(struct profile *profile, int slow, int part, int parts)
{
    for (int step = 0; step < STEPS; step++) {
        for (int i = part; i < FUNCTIONS; i += parts) {
            char name[16];
            snprintf(name, sizeof(name), "f%d", i);
            int64_t value = 4000 / (i + 1) + (step * 7 + i * 13) % 5;
            add(profile, name, step, i == slow ? value * 3 / 2 : value);
        }
        add(profile, "shared", step, 100 + (step + part) % 3);
    }
}

static const struct compare_row *find(const struct comparison *comparison, const char *name)
{
    for (size_t i = 0; i < comparison->count; i++)
        if (!strcmp(comparison->rows[i].function->name, name))
            return &comparison->rows[i];
    fail_msg("no function %s", name);
    return NULL;
}

static void judge(const struct compare_table *table, struct comparison *comparison)
{
    struct compare_options options = {.normalize = COMPARE_PER_SECOND,
                                      .false_discovery_rate = 0.05};
    struct error error = {0};
    if (compare(table, &options, comparison, &error) < 0)
        fail_msg("%s", error.text);
}

/* The table of sides in so many parts, of at most so many cells. */
static void build_parts(int slow, int parts, size_t cells_max, struct compare_table *ret_table)
{
    struct side frames[COMPARE_SIDES];
    struct compare_source sources[COMPARE_SIDES];
    struct table_builder *builder;
    struct error error = {0};
    for (int i = 0; i < COMPARE_SIDES; i++) {
        profile_init(&frames[i].profile, PROFILE_ALL);
        cover(&frames[i].profile);
        describe(&frames[i], (enum compare_side)i);
        sources[i] = frames[i].source;
    }
    assert_int_equal(compare_table_begin(sources, COMPARE_SIDES, cells_max, &builder, &error), 0);
    compare_table_add(builder, sources, COMPARE_SIDES);
    for (int part = 0; part < parts; part++) {
        struct side sides[COMPARE_SIDES];
        for (int i = 0; i < COMPARE_SIDES; i++) {
            profile_init(&sides[i].profile, PROFILE_ALL);
            fill(&sides[i].profile, i == COMPARE_NEW ? slow : -1, part, parts);
            describe(&sides[i], (enum compare_side)i);
            sources[i] = sides[i].source;
        }
        compare_table_add(builder, sources, COMPARE_SIDES);
        for (int i = 0; i < COMPARE_SIDES; i++)
            release(&sides[i]);
    }
    compare_table_end(builder, ret_table);
    for (int i = 0; i < COMPARE_SIDES; i++)
        release(&frames[i]);
}

static void parts_are_the_whole(void **state)
{
    (void)state;
    _cleanup_compare_table_ struct compare_table whole = {0}, parts = {0};
    _cleanup_comparison_ struct comparison of_whole = {0}, of_parts = {0};
    build_parts(2, 1, 0, &whole);
    build_parts(2, 3, 0, &parts);
    assert_int_equal(whole.window_count[0], parts.window_count[0]);
    assert_true(whole.window_count[0] >= 8);
    assert_int_equal(whole.coarse_count + parts.coarse_count, 0);
    judge(&whole, &of_whole);
    judge(&parts, &of_parts);
    assert_int_equal(of_whole.count, FUNCTIONS + 1);
    assert_int_equal(of_parts.count, FUNCTIONS + 1);
    assert_int_equal(of_parts.method, COMPARE_BY_WINDOWS);
    assert_int_equal(find(&of_parts, "f2")->total.verdict, COMPARE_GREW);
    for (int i = 0; i < FUNCTIONS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%d", i);
        const struct compare_row *a = find(&of_whole, name), *b = find(&of_parts, name);
        assert_true(a->total.base == b->total.base && a->self.new_value == b->self.new_value);
        assert_int_equal(a->total.verdict, b->total.verdict);
    }
    /* What several parts have of one function is its sum: 3 parts of 100 to 102 each second. */
    double shared = find(&of_parts, "shared")->total.base;
    assert_true(shared > 300 && shared < 306);
}

static void small_functions_become_coarse(void **state)
{
    (void)state;
    _cleanup_compare_table_ struct compare_table exact = {0}, tight = {0}, tiny = {0};
    _cleanup_comparison_ struct comparison all = {0}, some = {0}, none = {0};
    build_parts(2, 3, 0, &exact);
    build_parts(2, 3, 600, &tight);
    build_parts(2, 3, 10, &tiny);
    judge(&exact, &all);
    judge(&tight, &some);
    judge(&tiny, &none);
    assert_true(tight.cell_count <= 600);
    assert_true(tight.coarse_count > 0 && tight.coarse_count < FUNCTIONS);
    size_t coarse = 0;
    for (size_t i = 0; i < some.count; i++) {
        const struct compare_row *row = &some.rows[i], *same = find(&all, row->function->name);
        /* Sums are exact whether or not windows were kept. */
        assert_true(row->total.base == same->total.base &&
                    row->self.new_value == same->self.new_value);
        assert_true(row->total.judged == !row->function->coarse);
        coarse += row->function->coarse;
    }
    assert_int_equal(coarse, tight.coarse_count);
    assert_int_equal(find(&some, "f2")->total.verdict, COMPARE_GREW);
    assert_false(find(&some, "f0")->function->coarse);
    assert_true(find(&some, "f39")->function->coarse);
    assert_int_equal(find(&some, "f39")->total.verdict, COMPARE_TOO_FEW);
    /* No room at all: nothing is judged, and nothing is lost. */
    assert_int_equal(none.judged, 0);
    assert_int_equal(none.found, 0);
    assert_true(none.whole.base == all.whole.base && none.whole.new_value == all.whole.new_value);
}

/* ---- inlining ---- */

static void compare_stacks(const char *const *base, const char *const *now,
                           struct compare_table *table, struct comparison *comparison)
{
    struct side sides[COMPARE_SIDES];
    struct compare_source sources[COMPARE_SIDES];
    struct error error = {0};
    for (int i = 0; i < COMPARE_SIDES; i++) {
        profile_init(&sides[i].profile, PROFILE_ALL);
        for (const char *const *line = i ? now : base; *line; line++)
            add_stack(&sides[i].profile, *line);
        profile_note_source(&sides[i].profile, START, 60 * SECOND);
        describe(&sides[i], (enum compare_side)i);
        sources[i] = sides[i].source;
    }
    assert_int_equal(compare_table_build(sources, COMPARE_SIDES, table, &error), 0);
    for (int i = 0; i < COMPARE_SIDES; i++)
        release(&sides[i]); /* the table has its own names */
    judge(table, comparison);
}

static void inlined_on_one_side(void **state)
{
    (void)state;
    static const char *const apart[] = {"main;work;step 5000", "main;work 3000", "main;rest 2000",
                                        NULL};
    static const char *const inlined[] = {"main;work;+step 5000", "main;work 3000",
                                          "main;rest 2000", NULL};
    static const char *const vanished[] = {"main;work 8000", "main;rest 2000", NULL};
    const char *const *const pairs[][2] = {
        {apart, inlined}, {inlined, apart}, {inlined, vanished}, {vanished, inlined}};
    for (size_t i = 0; i < ARRAY_LENGTH(pairs); i++) {
        _cleanup_compare_table_ struct compare_table table = {0};
        _cleanup_comparison_ struct comparison comparison = {0};
        compare_stacks(pairs[i][0], pairs[i][1], &table, &comparison);
        const struct compare_row *work = find(&comparison, "work");
        assert_int_equal(comparison.found, 0);
        assert_true(work->self.change == 0 && work->total.change == 0);
        assert_true(work->self.base == 8000.0 / 60);
        assert_int_equal(table.inlined_pairs, 1);
    }
    /* Inlined on both sides, it is a function like any other. */
    static const char *const slower[] = {"main;work;+step 7500", "main;work 3000", "main;rest 2000",
                                         NULL};
    _cleanup_compare_table_ struct compare_table table = {0};
    _cleanup_comparison_ struct comparison comparison = {0};
    compare_stacks(inlined, slower, &table, &comparison);
    assert_int_equal(find(&comparison, "step")->self.verdict, COMPARE_GREW);
    assert_int_equal(find(&comparison, "work")->self.verdict, COMPARE_NOISE);
    assert_int_equal(find(&comparison, "work")->total.verdict, COMPARE_GREW);
}

/* ---- how much longer ---- */

/* A recording of so many seconds: 30 functions at 50 samples a second each, of which one grew. */
static void fill_steady(struct profile *profile, double seconds, double growth)
{
    for (int i = 0; i < 30; i++) {
        char line[64];
        snprintf(line, sizeof(line), "main;f%d %.0f", i, 50 * seconds * (i ? 1 : 1 + growth));
        add_stack(profile, line);
    }
    profile_note_source(profile, START, (int64_t)(seconds * 1e9));
}

static void compare_steady(double seconds, double growth, struct compare_measure *ret_measure)
{
    struct side sides[COMPARE_SIDES];
    struct compare_source sources[COMPARE_SIDES];
    _cleanup_compare_table_ struct compare_table table = {0};
    _cleanup_comparison_ struct comparison comparison = {0};
    struct error error = {0};
    for (int i = 0; i < COMPARE_SIDES; i++) {
        profile_init(&sides[i].profile, PROFILE_ALL);
        fill_steady(&sides[i].profile, seconds, i ? growth : 0);
        describe(&sides[i], (enum compare_side)i);
        sources[i] = sides[i].source;
    }
    assert_int_equal(compare_table_build(sources, COMPARE_SIDES, &table, &error), 0);
    for (int i = 0; i < COMPARE_SIDES; i++)
        release(&sides[i]);
    judge(&table, &comparison);
    *ret_measure = find(&comparison, "f0")->self;
}

/* An undecided change says how much longer it takes; after that time, it is decided, with the
 * margin that finds it four times out of five. */
static void the_time_that_settles(void **state)
{
    (void)state;
    static const double growths[] = {0.03, 0.05, 0.1};
    for (size_t i = 0; i < ARRAY_LENGTH(growths); i++) {
        struct compare_measure measure;
        double seconds = 10;
        for (; seconds < 10000; seconds *= 1.2) {
            compare_steady(seconds, growths[i], &measure);
            if (measure.verdict == COMPARE_UNDECIDED)
                break;
        }
        assert_int_equal(measure.verdict, COMPARE_UNDECIDED);
        assert_true(measure.more_seconds > 0);
        double longer = seconds + measure.more_seconds;
        compare_steady(longer, growths[i], &measure);
        assert_int_equal(measure.verdict, COMPARE_GREW);
        /* And not much less would do. */
        compare_steady(seconds + (longer - seconds) / 4, growths[i], &measure);
        assert_int_equal(measure.verdict, COMPARE_UNDECIDED);
    }
}

/* ---- more calls, or slower ones ---- */

/* A comparison by second of 30 functions, the first of which takes `cost` times as much for each
 * request, with `requests` times the requests. What is said of it and of another. */
static void check_cause(double cost, double requests, bool counted, enum compare_normalize by,
                        enum compare_cause expected, enum compare_cause expected_other)
{
    struct side sides[COMPARE_SIDES];
    struct compare_source sources[COMPARE_SIDES];
    _cleanup_compare_table_ struct compare_table table = {0};
    _cleanup_comparison_ struct comparison comparison = {0};
    _cleanup_compare_causes_ struct compare_causes causes = {0};
    struct compare_options options = {.normalize = by, .false_discovery_rate = 0.05};
    struct error error = {0};
    for (int i = 0; i < COMPARE_SIDES; i++) {
        profile_init(&sides[i].profile, PROFILE_ALL);
        for (int f = 0; f < 30; f++) {
            char line[64];
            snprintf(line, sizeof(line), "main;f%d %.0f", f,
                     20000 * (i ? requests * (f ? 1 : cost) : 1));
            add_stack(&sides[i].profile, line);
        }
        profile_note_source(&sides[i].profile, START, 60 * SECOND);
        describe(&sides[i], (enum compare_side)i);
        sources[i] = sides[i].source;
    }
    assert_int_equal(compare_table_build(sources, COMPARE_SIDES, &table, &error), 0);
    for (int i = 0; i < COMPARE_SIDES; i++) {
        release(&sides[i]);
        table.requests[i] = counted ? 1000 * (i ? requests : 1) : 0;
    }
    for (size_t i = 0; i < table.replicate_count; i++)
        table.replicates[i].requests = table.requests[table.replicates[i].side];
    assert_int_equal(compare_causes_find(&table, &options, &causes, &error), 0);
    assert_int_equal(compare(&table, &options, &comparison, &error), 0);
    const struct compare_row *first = find(&comparison, "f0"), *other = find(&comparison, "f1");
    for (int total = 0; total < 2; total++) {
        assert_int_equal(
            compare_cause(&causes, &comparison, (size_t)(first - comparison.rows), total),
            expected);
        assert_int_equal(
            compare_cause(&causes, &comparison, (size_t)(other - comparison.rows), total),
            expected_other);
    }
}

static void more_calls_or_slower_ones(void **state)
{
    (void)state;
    /* Slower with the same requests: nothing is said of what didn't change. */
    check_cause(1.5, 1, true, COMPARE_PER_SECOND, COMPARE_CAUSE_COST, COMPARE_CAUSE_UNKNOWN);
    /* Twice the requests: all grew, and one of them by more. */
    check_cause(1.5, 2, true, COMPARE_PER_SECOND, COMPARE_CAUSE_COST, COMPARE_CAUSE_REQUESTS);
    check_cause(1, 2, true, COMPARE_RAW, COMPARE_CAUSE_REQUESTS, COMPARE_CAUSE_REQUESTS);
    check_cause(1, 0.5, true, COMPARE_PER_SECOND, COMPARE_CAUSE_REQUESTS, COMPARE_CAUSE_REQUESTS);
    /* It costs less for each, and still took more. */
    check_cause(0.7, 2, true, COMPARE_PER_SECOND, COMPARE_CAUSE_REQUESTS, COMPARE_CAUSE_REQUESTS);
    check_cause(1.5, 2, true, COMPARE_PER_REQUEST, COMPARE_CAUSE_COST, COMPARE_CAUSE_UNKNOWN);
    /* Nobody counted requests, or shares say nothing about them. */
    check_cause(1.5, 2, false, COMPARE_PER_SECOND, COMPARE_CAUSE_UNKNOWN, COMPARE_CAUSE_UNKNOWN);
    check_cause(1.5, 2, true, COMPARE_PER_TOTAL, COMPARE_CAUSE_UNKNOWN, COMPARE_CAUSE_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_the_whole),
        cmocka_unit_test(small_functions_become_coarse),
        cmocka_unit_test(inlined_on_one_side),
        cmocka_unit_test(the_time_that_settles),
        cmocka_unit_test(more_calls_or_slower_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
