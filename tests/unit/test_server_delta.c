// SPDX-License-Identifier: Apache-2.0
// Differences of cumulative values, and stacks that are too deep.

#include "server/ingest/delta.h"

#include "server/ingest/ingest.h"
#include "unit.h"

#define SECOND_NS 1000000000ll

struct stack {
    const char *names; /* "outer;inner" */
    uint64_t address;  /* of the innermost frame */
    int64_t objects, bytes, inuse;
};

/* A memory profile: alloc_objects, alloc_space, inuse_space. */
static void make(struct profile *profile, int64_t time_ns, const struct stack *stacks, size_t count)
{
    static const char *const types[] = {"alloc_objects", "alloc_space", "inuse_space"};
    profile_init(profile, INGEST_DETAIL);
    for (unsigned i = 0; i < 3; i++)
        profile_type(profile, profile_cstring(profile, types[i]),
                     profile_cstring(profile, i ? "bytes" : "count"));
    profile_note_source(profile, time_ns, 0);
    for (size_t i = 0; i < count; i++) {
        uint32_t node = 0;
        for (const char *at = stacks[i].names; *at;) {
            size_t length = strcspn(at, ";");
            struct profile_function function = {.name = profile_string(profile, at, length)};
            at += length + (at[length] == ';');
            struct profile_frame frame = {.function = profile_function(profile, &function),
                                          .address = *at ? 0 : stacks[i].address};
            node = profile_child(profile, node, profile_frame(profile, &frame));
        }
        size_t row = profile_sample(profile, node, 0, 0, 0);
        profile_add_value(profile, row, 0, stacks[i].objects);
        profile_add_value(profile, row, 1, stacks[i].bytes);
        profile_add_value(profile, row, 2, stacks[i].inuse);
    }
}

static const bool cumulative[] = {true, true, false};

static int64_t sum(const struct profile *profile, unsigned type)
{
    int64_t sum = 0;
    for (size_t i = 0; i < profile->samples.count; i++)
        sum += profile->samples.values[type][i];
    return sum;
}

/* Applies and keeps: the sums of the three types, and what came of it. */
static enum delta_outcome apply(struct deltas *deltas, uint64_t key, int64_t time_ns,
                                const struct stack *stacks, size_t count, int64_t sums[3])
{
    struct profile profile;
    make(&profile, time_ns, stacks, count);
    struct delta_step *step = deltas_apply(deltas, key, cumulative, false, &profile);
    enum delta_outcome outcome = step->outcome;
    for (unsigned i = 0; i < 3; i++)
        sums[i] = sum(&profile, i);
    deltas_commit(deltas, step);
    profile_release(&profile);
    return outcome;
}

static void differences(void **state)
{
    (void)state;
    struct deltas *deltas = deltas_new(1 << 20);
    int64_t sums[3];
    struct stack first[] = {{"main;a", 1, 10, 1000, 7}, {"main;b", 2, 1, 50, 3}};
    assert_int_equal(apply(deltas, 1, SECOND_NS, first, 2, sums), DELTA_FIRST);
    assert_int_equal(sums[0], 0);
    assert_int_equal(sums[1], 0);
    assert_int_equal(sums[2], 10); /* a gauge is what it is */

    /* One grew, one stayed, one is new. */
    struct stack second[] = {
        {"main;c", 3, 2, 20, 0}, {"main;a", 1, 13, 1300, 9}, {"main;b", 2, 1, 50, 3}};
    struct profile profile;
    make(&profile, 16 * SECOND_NS, second, 3);
    struct delta_step *step = deltas_apply(deltas, 1, cumulative, false, &profile);
    assert_int_equal(step->outcome, DELTA_KNOWN);
    assert_int_equal(step->since_ns, 15 * SECOND_NS);
    assert_int_equal(profile.samples.values[0][0], 2);
    assert_int_equal(profile.samples.values[1][0], 20);
    assert_int_equal(profile.samples.values[0][1], 3);
    assert_int_equal(profile.samples.values[1][1], 300);
    assert_int_equal(profile.samples.values[2][1], 9);
    assert_int_equal(profile.samples.values[1][2], 0);
    assert_int_equal(profile.samples.values[2][2], 3);
    deltas_commit(deltas, step);
    profile_release(&profile);

    /* Another series knows nothing of it. */
    assert_int_equal(apply(deltas, 2, 17 * SECOND_NS, second, 3, sums), DELTA_FIRST);
    assert_int_equal(deltas_stats(deltas).series, 2);
    deltas_free(deltas);
}

/* Of a runtime that leaves nothing out: a process that shows little yet, and nothing less. */
static void most_of_it_is_gone(void **state)
{
    (void)state;
    struct stack before[] = {{"main;a", 1, 10, 1000, 7}, {"main;b", 2, 1, 50, 3}};
    struct stack after[] = {{"main;b", 2, 1, 50, 3}};
    for (int complete = 0; complete < 2; complete++) {
        struct deltas *deltas = deltas_new(1 << 20);
        int64_t sums[3];
        assert_int_equal(apply(deltas, 1, SECOND_NS, before, 2, sums), DELTA_FIRST);
        for (int i = 0; i < 2; i++) {
            struct profile profile;
            make(&profile, (2 + i) * SECOND_NS, i ? before : after, i ? 2 : 1);
            struct delta_step *step = deltas_apply(deltas, 1, cumulative, complete, &profile);
            assert_int_equal(step->outcome, complete && !i ? DELTA_RESTART : DELTA_KNOWN);
            /* What another process did since is its own, not what the first had done before. */
            assert_int_equal(sum(&profile, 1), complete && i ? 1000 : 0);
            deltas_commit(deltas, step);
            profile_release(&profile);
        }
        assert_int_equal(deltas_stats(deltas).restarts, complete);
        deltas_free(deltas);
    }
}

static void addresses_do_not_matter(void **state)
{
    (void)state;
    struct deltas *deltas = deltas_new(1 << 20);
    int64_t sums[3];
    /* One function at two addresses is one stack, however its values move between them. */
    struct stack first[] = {{"main;a", 1, 10, 1000, 0}, {"main;a", 2, 5, 500, 0}};
    struct stack second[] = {{"main;a", 3, 4, 400, 0}, {"main;a", 1, 12, 1200, 0}};
    assert_int_equal(apply(deltas, 1, 1, first, 2, sums), DELTA_FIRST);
    assert_int_equal(apply(deltas, 1, 2, second, 2, sums), DELTA_KNOWN);
    assert_int_equal(sums[0], 1);
    assert_int_equal(sums[1], 100);
    deltas_free(deltas);
}

static void restarts(void **state)
{
    (void)state;
    struct deltas *deltas = deltas_new(1 << 20);
    int64_t sums[3];
    struct stack before[] = {{"main;a", 1, 10, 1000, 7}, {"main;b", 1, 10, 1000, 7}};
    struct stack after[] = {{"main;a", 1, 1, 100, 5}, {"main;b", 1, 20, 2000, 6}};
    struct stack later[] = {{"main;a", 1, 2, 200, 4}, {"main;b", 1, 20, 2000, 6}};
    apply(deltas, 1, 1, before, 2, sums);
    assert_int_equal(apply(deltas, 1, 2, after, 2, sums), DELTA_RESTART);
    assert_int_equal(sums[0], 0);
    assert_int_equal(sums[1], 0);
    assert_int_equal(sums[2], 11);
    assert_int_equal(apply(deltas, 1, 3, later, 2, sums), DELTA_KNOWN);
    assert_int_equal(sums[1], 100);
    assert_int_equal(deltas_stats(deltas).restarts, 1);
    /* What is older than what is known is no restart, and changes nothing. */
    assert_int_equal(apply(deltas, 1, 2, after, 2, sums), DELTA_STALE);
    assert_int_equal(sums[1], 0);
    assert_int_equal(apply(deltas, 1, 4, later, 2, sums), DELTA_KNOWN);
    assert_int_equal(sums[1], 0);
    deltas_free(deltas);
}

static void vanished_stacks(void **state)
{
    (void)state;
    struct deltas *deltas = deltas_new(1 << 20);
    int64_t sums[3];
    struct stack both[] = {{"main;a", 1, 10, 1000, 0}, {"main;b", 1, 10, 1000, 0}};
    struct stack one[] = {{"main;a", 1, 10, 1000, 0}};
    struct stack back[] = {{"main;a", 1, 10, 1000, 0}, {"main;b", 1, 11, 1100, 0}};
    apply(deltas, 1, 1, both, 2, sums);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(apply(deltas, 1, 2 + i, one, 1, sums), DELTA_KNOWN);
        assert_int_equal(sums[1], 0);
    }
    assert_int_equal(apply(deltas, 1, 10, back, 2, sums), DELTA_KNOWN);
    assert_int_equal(sums[1], 100);
    /* After long enough it is as good as new, and its memory is given back. */
    for (int i = 0; i < 30; i++)
        apply(deltas, 1, 20 + i, one, 1, sums);
    size_t bytes = deltas_stats(deltas).bytes;
    apply(deltas, 2, 1, one, 1, sums);
    assert_int_equal(deltas_stats(deltas).bytes, 2 * bytes);
    deltas_free(deltas);
}

static void taken_back(void **state)
{
    (void)state;
    struct deltas *deltas = deltas_new(1 << 20);
    int64_t sums[3];
    struct stack stacks[] = {{"main;a", 1, 10, 1000, 0}};
    struct profile profile[3];
    struct delta_step *step[3];
    /* A first one that wasn't stored: the next is the first. */
    make(&profile[0], 1, stacks, 1);
    deltas_revert(deltas, deltas_apply(deltas, 1, cumulative, false, &profile[0]));
    profile_release(&profile[0]);
    assert_int_equal(deltas_stats(deltas).series, 0);
    assert_int_equal(deltas_stats(deltas).bytes, 0);
    assert_int_equal(apply(deltas, 1, 2, stacks, 1, sums), DELTA_FIRST);
    /* Three of one batch go back together. */
    for (unsigned i = 0; i < 3; i++) {
        stacks[0].bytes += 100;
        make(&profile[i], 3 + i, stacks, 1);
        step[i] = deltas_apply(deltas, 1, cumulative, false, &profile[i]);
        assert_int_equal(sum(&profile[i], 1), 100);
        profile_release(&profile[i]);
    }
    for (unsigned i = 3; i-- > 0;)
        deltas_revert(deltas, step[i]);
    assert_int_equal(apply(deltas, 1, 9, stacks, 1, sums), DELTA_KNOWN);
    assert_int_equal(sums[1], 300);
    /* When another went on meanwhile, going back would count twice. */
    stacks[0].bytes += 100;
    make(&profile[0], 10, stacks, 1);
    step[0] = deltas_apply(deltas, 1, cumulative, false, &profile[0]);
    profile_release(&profile[0]);
    stacks[0].bytes += 100;
    assert_int_equal(apply(deltas, 1, 11, stacks, 1, sums), DELTA_KNOWN);
    deltas_revert(deltas, step[0]);
    assert_int_equal(apply(deltas, 1, 12, stacks, 1, sums), DELTA_KNOWN);
    assert_int_equal(sums[1], 0);
    deltas_free(deltas);
}

static void bounded(void **state)
{
    (void)state;
    size_t limit = 20000;
    struct deltas *deltas = deltas_new(limit);
    int64_t sums[3];
    struct stack stacks[20];
    char names[20][16];
    for (int i = 0; i < 20; i++) {
        snprintf(names[i], sizeof(names[i]), "main;f%d", i);
        stacks[i] = (struct stack){names[i], 1, 10, 1000, 0};
    }
    for (uint64_t key = 1; key <= 1000; key++) {
        apply(deltas, key, 1, stacks, 20, sums);
        assert_true(deltas_stats(deltas).bytes <= limit);
        if (key > 1) /* this one is used again and again, and stays */
            assert_int_equal(apply(deltas, 1, (int64_t)key, stacks, 20, sums), DELTA_KNOWN);
    }
    struct delta_stats stats = deltas_stats(deltas);
    assert_true(stats.series > 5 && stats.series < 100);
    assert_int_equal(stats.forgotten, 1000 - stats.series);
    assert_int_equal(apply(deltas, 2, 3, stacks, 20, sums), DELTA_FIRST);
    deltas_free(deltas);
    /* One that is too large for itself is refused memory, not the process's. */
    deltas = deltas_new(100);
    assert_int_equal(apply(deltas, 1, 1, stacks, 20, sums), DELTA_FIRST);
    assert_int_equal(deltas_stats(deltas).bytes, 0);
    deltas_free(deltas);
}

static void odd_values(void **state)
{
    (void)state;
    struct deltas *deltas = deltas_new(1 << 20);
    int64_t sums[3];
    struct stack least[] = {{"a", 1, INT64_MIN, INT64_MIN, 0}};
    struct stack most[] = {{"a", 1, INT64_MAX, INT64_MAX, 0}, {"", 1, 1, 1, 0}};
    assert_int_equal(apply(deltas, 1, 0, least, 1, sums), DELTA_FIRST);
    assert_int_equal(apply(deltas, 1, 0, most, 1, sums), DELTA_KNOWN);
    assert_true(sums[0] == INT64_MAX);
    assert_int_equal(apply(deltas, 1, 0, most, 2, sums), DELTA_KNOWN); /* without a stack */
    assert_int_equal(sums[0], 1);
    assert_int_equal(apply(deltas, 1, 0, most, 0, sums), DELTA_KNOWN); /* without samples */
    assert_true(delta_is_known_type("alloc_space") && delta_is_known_type("delay"));
    assert_false(delta_is_known_type("inuse_space") || delta_is_known_type(""));
    deltas_free(deltas);
}

/* ---- depth ---- */

static uint32_t deepen(struct profile *profile, uint32_t node, unsigned frames)
{
    for (unsigned i = 0; i < frames; i++) {
        char name[24];
        snprintf(name, sizeof(name), "f%u", i);
        struct profile_function function = {.name = profile_cstring(profile, name)};
        struct profile_frame frame = {.function = profile_function(profile, &function)};
        node = profile_child(profile, node, profile_frame(profile, &frame));
    }
    return node;
}

static void deep_stacks(void **state)
{
    (void)state;
    struct profile profile;
    make(&profile, 1, NULL, 0);
    for (unsigned depth = 1; depth <= 200; depth++)
        profile_add_value(&profile, profile_sample(&profile, deepen(&profile, 0, depth), 0, 0, 0),
                          0, 1);
    assert_int_equal(ingest_cut_stacks(&profile, 0), 0);
    assert_int_equal(ingest_cut_stacks(&profile, 200), 0);
    uint32_t before = profile.node_count;
    assert_int_equal(ingest_cut_stacks(&profile, 32), 200 - 32);
    assert_true(profile.node_count < 4 * before);
    for (size_t i = 0; i < profile.samples.count; i++) {
        unsigned depth = 0;
        uint32_t outermost = 0, innermost = profile.samples.node[i];
        for (uint32_t node = innermost; node; node = profile.nodes[node].parent, depth++)
            outermost = node;
        const struct profile_frame *frame = &profile.frames[profile.nodes[innermost].frame];
        char name[24];
        snprintf(name, sizeof(name), "f%zu", i);
        assert_string_equal(profile_text(&profile, profile.functions[frame->function].name), name);
        frame = &profile.frames[profile.nodes[outermost].frame];
        assert_string_equal(profile_text(&profile, profile.functions[frame->function].name),
                            i < 32 ? "f0" : "[truncated]");
        assert_true(depth <= 32 && (i < 32 || depth >= 16));
    }
    assert_int_equal(sum(&profile, 0), 200);
    assert_int_equal(ingest_cut_stacks(&profile, 32), 0);
    profile_release(&profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences),
        cmocka_unit_test(most_of_it_is_gone),
        cmocka_unit_test(addresses_do_not_matter),
        cmocka_unit_test(restarts),
        cmocka_unit_test(vanished_stacks),
        cmocka_unit_test(taken_back),
        cmocka_unit_test(bounded),
        cmocka_unit_test(odd_values),
        cmocka_unit_test(deep_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
