// SPDX-License-Identifier: Apache-2.0
// The call tree by function: merging of frames, two sides, totals, order, and folding to a size.

#include "base/memory.h"
#include "profile/views/calltree.h"
#include "profile/views/functions.h"
#include "profile/views/library.h"
#include "unit.h"

static uint32_t frame_of(struct profile *profile, const char *name, uint32_t line, bool inlined)
{
    uint32_t function = profile_function(
        profile, &(struct profile_function){.name = profile_cstring(profile, name)});
    return profile_frame(
        profile, &(struct profile_frame){.function = function, .line = line, .inlined = inlined});
}

/* Adds "main;a:3;b 5", where ":3" is a line and a trailing "^" makes a frame inlined. */
static void add_stack(struct profile *profile, unsigned type, const char *stack, int64_t value)
{
    uint32_t frames[64];
    size_t count = 0;
    char *copy = memory_strdup(stack), *rest = copy, *name;
    while ((name = strsep(&rest, ";"))) {
        size_t length = strlen(name);
        bool inlined = length && name[length - 1] == '^';
        if (inlined)
            name[length - 1] = '\0';
        char *line = strchr(name, ':');
        if (line)
            *line++ = '\0';
        frames[count++] = frame_of(profile, name, line ? (uint32_t)atoi(line) : 0, inlined);
    }
    free(copy);
    size_t row = profile_sample(profile, profile_stack(profile, frames, count), 0, 0, 0);
    profile_add_value(profile, row, type, value);
}

static unsigned type_of(struct profile *profile, const char *type, const char *unit)
{
    return profile_type(profile, profile_cstring(profile, type), profile_cstring(profile, unit));
}

/* The node with this path of names ("main;a"), or 0. */
static uint32_t find_node(const struct calltree *tree, const char *path)
{
    for (uint32_t node = 1; node < tree->node_count; node++) {
        struct buffer text = {0};
        uint32_t chain[64];
        size_t depth = 0;
        for (uint32_t n = node; n; n = tree->nodes[n].parent)
            chain[depth++] = n;
        while (depth-- > 0) {
            const struct calltree_function *f =
                &tree->functions[tree->nodes[chain[depth]].function];
            if (text.length)
                buffer_add_char(&text, ';');
            buffer_add(&text, f->name, f->length);
        }
        bool same = !strcmp(buffer_text(&text), path);
        buffer_release(&text);
        if (same)
            return node;
    }
    return 0;
}

static void test_merges_lines_and_addresses(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    unsigned type = type_of(&profile, "cpu", "nanoseconds");
    add_stack(&profile, type, "main:1;work:10", 5);
    add_stack(&profile, type, "main:2;work:11", 7);
    add_stack(&profile, type, "main:2", 1);
    add_stack(&profile, type, "main:2;idle:4", 0);
    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    assert_int_equal(calltree_add(&tree, &profile, CALLTREE_NEW, NULL), 0);
    profile_release(&profile); /* the tree needs it no more */

    assert_int_equal(tree.node_count, 3); /* no node for what has no value */
    assert_int_equal(tree.type_count, 1);
    assert_string_equal(tree.types[0].name, "cpu");
    assert_string_equal(tree.types[0].unit, "nanoseconds");
    assert_false(tree.has_base);
    assert_null(tree.types[0].self[CALLTREE_BASE]);
    uint32_t work = find_node(&tree, "main;work");
    assert_int_equal(tree.types[0].self[CALLTREE_NEW][work], 12);
    assert_int_equal(tree.types[0].self[CALLTREE_NEW][find_node(&tree, "main")], 1);
    int64_t *totals = calltree_totals(&tree, 0, CALLTREE_NEW);
    assert_int_equal(totals[0], 13);
    assert_int_equal(totals[work], 12);
    free(totals);
    totals = calltree_totals(&tree, 0, CALLTREE_BASE);
    assert_int_equal(totals[0], 0);
    free(totals);
}

static void test_names_addresses_and_kinds(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    unsigned type = type_of(&profile, "samples", "count");
    uint32_t mapping = profile_mapping(
        &profile, &(struct profile_mapping){.file = profile_cstring(&profile, "/usr/lib/libx.so")});
    uint32_t function = profile_function(
        &profile, &(struct profile_function){.name = profile_cstring(&profile, "f"),
                                             .file = profile_cstring(&profile, "src/f.c")});
    uint32_t frames[] = {
        profile_frame(&profile, &(struct profile_frame){.function = function,
                                                        .mapping = mapping,
                                                        .kind = FRAME_KERNEL}),
        profile_frame(&profile, &(struct profile_frame){.mapping = mapping, .address = 0x40}),
    };
    size_t row = profile_sample(&profile, profile_stack(&profile, frames, 2), 0, 0, 0);
    profile_add_value(&profile, row, type, 1);
    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    assert_int_equal(calltree_add(&tree, &profile, CALLTREE_NEW, NULL), 0);
    uint32_t f = tree.nodes[find_node(&tree, "f")].function;
    assert_string_equal(tree.functions[f].file, "src/f.c");
    assert_string_equal(tree.functions[f].binary, "libx.so");
    assert_int_equal(tree.functions[f].kind, FRAME_KERNEL);
    assert_false(tree.functions[f].unnamed);
    uint32_t address = find_node(&tree, "f;libx.so+0x40");
    assert_true(address > 0 && tree.functions[tree.nodes[address].function].unnamed);
}

/* One file name of a mebibyte and a thousand functions in it are not a thousand mebibytes. */
static void test_shared_texts_are_copied_once(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    unsigned type = type_of(&profile, "samples", "count");
    char *long_name = calloc(1, (1 << 20) + 1);
    memset(long_name, 'f', 1 << 20);
    uint32_t file = profile_cstring(&profile, long_name);
    free(long_name);
    for (int i = 0; i < 1000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%d", i);
        uint32_t function = profile_function(
            &profile,
            &(struct profile_function){.name = profile_cstring(&profile, name), .file = file});
        uint32_t frame = profile_frame(&profile, &(struct profile_frame){.function = function});
        uint32_t node = profile_stack(&profile, &frame, 1);
        profile_add_value(&profile, profile_sample(&profile, node, 0, 0, 0), type, 1);
    }
    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    calltree_add(&tree, &profile, CALLTREE_NEW, NULL);
    assert_int_equal(tree.function_count, 1000);
    for (uint32_t i = 1; i < tree.function_count; i++)
        assert_ptr_equal(tree.functions[i].file, tree.functions[0].file);
}

static void test_inlined_only_when_always(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    unsigned type = type_of(&profile, "samples", "count");
    add_stack(&profile, type, "main;always^", 1);
    add_stack(&profile, type, "main;sometimes^", 1);
    add_stack(&profile, type, "main;sometimes", 1);
    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    calltree_add(&tree, &profile, CALLTREE_NEW, NULL);
    assert_true(tree.nodes[find_node(&tree, "main;always")].inlined);
    assert_false(tree.nodes[find_node(&tree, "main;sometimes")].inlined);
    assert_int_equal(tree.node_count, 4);
}

static void test_two_sides(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile new_profile, base;
    profile_init(&new_profile, PROFILE_ALL);
    profile_init(&base, PROFILE_ALL);
    add_stack(&new_profile, type_of(&new_profile, "cpu", "nanoseconds"), "main;a", 10);
    unsigned other = type_of(&base, "samples", "count"); /* in another order, and one more */
    unsigned cpu = type_of(&base, "cpu", "nanoseconds");
    add_stack(&base, cpu, "main;a", 4);
    add_stack(&base, cpu, "main;gone", 6);
    add_stack(&base, other, "main;a", 2);
    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    assert_int_equal(calltree_add(&tree, &new_profile, CALLTREE_NEW, NULL), 0);
    assert_int_equal(calltree_add(&tree, &base, CALLTREE_BASE, NULL), 0);
    assert_true(tree.has_base);
    assert_int_equal(tree.type_count, 2);
    assert_int_equal(calltree_type_of(&tree, &base, cpu), 0);
    assert_int_equal(calltree_type_of(&tree, &base, other), 1);
    assert_int_equal(calltree_type_of(&tree, &base, 2), PROFILE_TYPES_MAX);
    uint32_t a = find_node(&tree, "main;a"), gone = find_node(&tree, "main;gone");
    assert_int_equal(tree.types[0].self[CALLTREE_NEW][a], 10);
    assert_int_equal(tree.types[0].self[CALLTREE_BASE][a], 4);
    assert_int_equal(tree.types[0].self[CALLTREE_NEW][gone], 0);
    assert_int_equal(tree.types[0].self[CALLTREE_BASE][gone], 6);
    assert_int_equal(tree.types[1].self[CALLTREE_NEW][a], 0);
    assert_int_equal(tree.types[1].self[CALLTREE_BASE][a], 2);

    /* A third profile adds up on its side. */
    assert_int_equal(calltree_add(&tree, &new_profile, CALLTREE_NEW, NULL), 0);
    assert_int_equal(tree.types[0].self[CALLTREE_NEW][a], 20);
    assert_int_equal(tree.node_count, 4);
}

static void test_too_many_types(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile first, second;
    profile_init(&first, PROFILE_ALL);
    profile_init(&second, PROFILE_ALL);
    char name[16];
    for (int i = 0; i < PROFILE_TYPES_MAX; i++) {
        snprintf(name, sizeof(name), "t%d", i);
        type_of(&first, name, "count");
    }
    type_of(&second, "one more", "count");
    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    struct error error = {0};
    assert_int_equal(calltree_add(&tree, &first, CALLTREE_NEW, &error), 0);
    assert_int_equal(calltree_add(&tree, &second, CALLTREE_NEW, &error), -E2BIG);
    assert_says(&error, "sample types");
}

static void test_sums_saturate(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    unsigned type = type_of(&profile, "x", "count");
    add_stack(&profile, type, "main;a:1", INT64_MAX);
    add_stack(&profile, type, "main;a:2", INT64_MAX);
    add_stack(&profile, type, "main;b", 7);
    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    calltree_add(&tree, &profile, CALLTREE_NEW, NULL);
    assert_true(tree.types[0].self[CALLTREE_NEW][find_node(&tree, "main;a")] == INT64_MAX);
    int64_t *totals = calltree_totals(&tree, 0, CALLTREE_NEW);
    assert_true(totals[0] == INT64_MAX);
    free(totals);
    assert_true(add_saturated(INT64_MIN, -1) == INT64_MIN);
}

static void assert_children(const struct calltree *tree, const int64_t *order, const char *expected)
{
    uint32_t *first, *children;
    calltree_children(tree, order, &first, &children);
    struct buffer text = {0};
    uint32_t main_node = find_node(tree, "main");
    for (uint32_t i = first[main_node]; i < first[main_node + 1]; i++) {
        const struct calltree_node *child = &tree->nodes[children[i]];
        assert_int_equal(child->parent, main_node);
        buffer_printf(&text, "%s ", tree->functions[child->function].name);
    }
    assert_string_equal(buffer_text(&text), expected);
    assert_int_equal(first[0], 0);
    assert_int_equal(first[tree->node_count], tree->node_count - 1);
    buffer_release(&text);
    free(first);
    free(children);
}

static void test_order_of_children(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    unsigned type = type_of(&profile, "x", "count");
    add_stack(&profile, type, "main;small", 1);
    add_stack(&profile, type, "main;bb", 5);
    add_stack(&profile, type, "main;b", 5);
    add_stack(&profile, type, "main;large;x", 9);
    add_stack(&profile, type, "main;minus", -3);
    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    calltree_add(&tree, &profile, CALLTREE_NEW, NULL);
    int64_t *totals = calltree_totals(&tree, 0, CALLTREE_NEW);
    assert_children(&tree, totals, "large b bb small minus ");
    assert_children(&tree, NULL, "b bb large minus small ");
    free(totals);
}

/* A tree of many nodes with values that follow from their paths. */
static void fill(struct profile *profile, unsigned stacks)
{
    unsigned cpu = type_of(profile, "cpu", "nanoseconds");
    unsigned bytes = type_of(profile, "alloc", "bytes");
    char path[256];
    uint32_t random = 12345;
    for (unsigned i = 0; i < stacks; i++) {
        int length = snprintf(path, sizeof(path), "main");
        unsigned depth = 1 + i % 9;
        for (unsigned d = 0; d < depth; d++) {
            random = random * 1103515245u + 12345u;
            length += snprintf(path + length, sizeof(path) - (size_t)length, ";f%u",
                               (random >> 16) % (2 + 3 * d));
        }
        random = random * 1103515245u + 12345u;
        add_stack(profile, cpu, path, (random >> 8) % 1000);
        add_stack(profile, bytes, path, i % 13 ? 0 : -(int64_t)(random % 77));
    }
}

static void test_limit_keeps_sums(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    fill(&profile, 3000);
    const uint32_t limits[] = {0, 2, 3, 10, 100, 999};
    for (size_t i = 0; i < ARRAY_LENGTH(limits); i++) {
        _cleanup_calltree_ struct calltree tree;
        calltree_init(&tree);
        calltree_add(&tree, &profile, CALLTREE_NEW, NULL);
        calltree_add(&tree, &profile, CALLTREE_BASE, NULL);
        uint32_t before = tree.node_count;
        assert_true(before > 1500);
        int64_t *whole[2] = {calltree_totals(&tree, 0, CALLTREE_NEW),
                             calltree_totals(&tree, 1, CALLTREE_BASE)};
        uint32_t folded = calltree_limit(&tree, limits[i]);
        assert_true(tree.node_count <= MAX(limits[i], 2u));
        assert_true(tree.node_count + folded >= before && folded < before);
        assert_true(limits[i] < 10 || tree.node_count > limits[i] * 9 / 10);
        int64_t *limited[2] = {calltree_totals(&tree, 0, CALLTREE_NEW),
                               calltree_totals(&tree, 1, CALLTREE_BASE)};
        for (uint32_t node = 1; node < tree.node_count; node++)
            assert_true(tree.nodes[node].parent < node);
        for (int k = 0; k < 2; k++) {
            assert_true(whole[k][0] == limited[k][0]);
            free(whole[k]);
            free(limited[k]);
        }
        assert_int_equal(calltree_limit(&tree, MAX(limits[i], 2u)), 0);
    }
}

static void test_limit_keeps_the_largest(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    unsigned cpu = type_of(&profile, "cpu", "nanoseconds");
    unsigned objects = type_of(&profile, "objects", "count");
    add_stack(&profile, cpu, "main;hot", 1000);
    add_stack(&profile, cpu, "main;hot;tiny", 1);
    add_stack(&profile, objects, "main;only objects", 3); /* small number, all of its type */
    for (char c = 'a'; c <= 'z'; c++)
        add_stack(&profile, cpu, (char[]){'m', 'a', 'i', 'n', ';', c, '\0'}, 2);
    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    calltree_add(&tree, &profile, CALLTREE_NEW, NULL);
    assert_int_equal(tree.node_count, 31);
    assert_int_equal(calltree_limit(&tree, 6), 27);
    assert_int_equal(tree.node_count, 6);
    assert_true(find_node(&tree, "main;hot") > 0);
    assert_true(find_node(&tree, "main;only objects") > 0);
    uint32_t other = find_node(&tree, "main;" CALLTREE_OTHER);
    assert_int_equal(tree.types[0].self[CALLTREE_NEW][other], 52);
    assert_int_equal(tree.types[0].self[CALLTREE_NEW][find_node(&tree, "main;hot;" CALLTREE_OTHER)],
                     1);

    /* It can still grow, and what comes meets what is there. */
    assert_int_equal(calltree_add(&tree, &profile, CALLTREE_NEW, NULL), 0);
    assert_int_equal(tree.types[0].self[CALLTREE_NEW][find_node(&tree, "main;hot")], 2000);
}

static void test_deep_and_wide(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    unsigned type = type_of(&profile, "x", "count");
    uint32_t frame = frame_of(&profile, "again", 0, false), node = 0;
    for (int i = 0; i < 200000; i++) {
        node = profile_child(&profile, node, frame);
        if (i % 1000 == 0)
            profile_add_value(&profile, profile_sample(&profile, node, 0, 0, 0), type, 1);
    }
    profile_add_value(&profile, profile_sample(&profile, node, 0, 0, 0), type, 1);
    char name[24];
    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof(name), "leaf %d", i);
        node = profile_child(&profile, 0, frame_of(&profile, name, 0, false));
        profile_add_value(&profile, profile_sample(&profile, node, 0, 0, 0), type, 1);
    }
    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    calltree_add(&tree, &profile, CALLTREE_NEW, NULL);
    assert_int_equal(tree.node_count, 300001);
    int64_t *totals = calltree_totals(&tree, 0, CALLTREE_NEW);
    assert_int_equal(totals[0], 100201);
    uint32_t *first, *children;
    calltree_children(&tree, totals, &first, &children);
    assert_int_equal(first[1] - first[0], 100001);
    free(first);
    free(children);
    free(totals);
    assert_true(calltree_limit(&tree, 1000) > 299000);
    assert_true(tree.node_count <= 1000);
}

static void test_focus_keeps_one_part(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile, base;
    _cleanup_calltree_ struct calltree tree;
    const char *const path[] = {"main", "a", "a"}, *const unknown[] = {"main", "c", "a"};
    profile_init(&profile, 0);
    profile_init(&base, 0);
    type_of(&profile, "cpu", "count");
    type_of(&base, "cpu", "count");
    add_stack(&profile, 0, "main", 1);
    add_stack(&profile, 0, "main;b;a;a;x", 2);
    add_stack(&profile, 0, "main;a", 4);
    add_stack(&profile, 0, "main;a;a;y", 8);
    add_stack(&profile, 0, "main;a;a", 16);
    add_stack(&base, 0, "main;a;a;z;y", 32);
    add_stack(&base, 0, "main;c", 64);
    calltree_init(&tree);
    assert_int_equal(calltree_add(&tree, &profile, CALLTREE_NEW, NULL), 0);
    assert_int_equal(calltree_add(&tree, &base, CALLTREE_BASE, NULL), 0);
    uint32_t before = tree.node_count;
    assert_false(calltree_focus(&tree, unknown, 3));
    assert_false(calltree_focus(&tree, unknown, 0));
    assert_int_equal(tree.node_count, before);
    assert_true(calltree_focus(&tree, path, 3));
    assert_int_equal(tree.node_count, 7); /* the root, the path, y, z and z;y */
    _cleanup_free_ int64_t *now = calltree_totals(&tree, 0, CALLTREE_NEW);
    _cleanup_free_ int64_t *then = calltree_totals(&tree, 0, CALLTREE_BASE);
    assert_int_equal(now[0], 24);
    assert_int_equal(then[0], 32);
    assert_int_equal(now[find_node(&tree, "main;a;a;y")], 8);
    assert_int_equal(then[find_node(&tree, "main;a;a;z;y")], 32);
    assert_int_equal(find_node(&tree, "main;b"), 0);
    /* What is left can be limited like any tree. */
    assert_int_equal(calltree_limit(&tree, 5), 3);
}

static void add_stateful(struct profile *profile, const char *function, const char *word,
                         int64_t value)
{
    uint32_t frame = frame_of(profile, function, 0, false);
    struct profile_label label = {.key = profile_cstring(profile, "state"),
                                  .text = profile_cstring(profile, word)};
    uint32_t labels = word[0] ? profile_label_set(profile, &label, 1) : 0;
    size_t row = profile_sample(profile, profile_stack(profile, &frame, 1), labels, 0, 0);
    profile_add_value(profile, row, 0, value);
}

static void test_states(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    _cleanup_calltree_ struct calltree tree;
    profile_init(&profile, PROFILE_LABELS);
    type_of(&profile, "wall", "nanoseconds");
    add_stateful(&profile, "run", "RUNNING", 5);
    add_stateful(&profile, "run", "", 7);
    calltree_init(&tree);
    assert_int_equal(calltree_add(&tree, &profile, CALLTREE_NEW, NULL), 0);
    add_stateful(&profile, "wait", "SLEEPING", 11);
    add_stateful(&profile, "wait", "RUNNING", 1);
    for (unsigned i = 0; i < 2 * CALLTREE_STATES_MAX; i++) {
        char word[16];
        snprintf(word, sizeof(word), "state-%u", i);
        add_stateful(&profile, "run", word, 1);
    }
    calltree_add_states(&tree, &profile, 0);
    assert_int_equal(tree.type_count, 1 + CALLTREE_STATES_MAX);
    assert_true(tree.types[1].is_state && !tree.types[0].is_state);
    assert_string_equal(tree.types[1].name, "RUNNING");
    assert_string_equal(tree.types[2].name, "SLEEPING");
    uint32_t run = find_node(&tree, "run"), wait = find_node(&tree, "wait");
    assert_int_equal(tree.types[0].self[CALLTREE_NEW][run], 12);
    assert_int_equal(tree.types[1].self[CALLTREE_NEW][run], 5);
    assert_int_equal(tree.types[1].self[CALLTREE_NEW][wait], 1);
    assert_int_equal(tree.types[2].self[CALLTREE_NEW][wait], 11);
    /* A state that is called as a type is none. */
    assert_int_equal(calltree_type_of(&tree, &profile, 0), 0);
    unsigned count = tree.type_count;
    calltree_add_states(&tree, &profile, 1);
    assert_int_equal(tree.type_count, count);
}

/* A store has states as profiles of their own. */
static void test_states_one_by_one(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    _cleanup_profile_ struct profile running;
    _cleanup_profile_ struct profile other;
    _cleanup_calltree_ struct calltree tree;
    profile_init(&profile, PROFILE_LABELS);
    profile_init(&running, 0);
    profile_init(&other, 0);
    type_of(&profile, "samples", "count");
    type_of(&running, "samples", "count");
    type_of(&other, "alloc", "bytes");
    add_stateful(&profile, "run", "", 7);
    add_stateful(&profile, "wait", "", 4);
    add_stateful(&running, "run", "", 5);
    add_stateful(&running, "late", "", 2); /* came when the whole had been read */
    add_stateful(&other, "run", "", 100);
    calltree_init(&tree);
    assert_int_equal(calltree_add(&tree, &profile, CALLTREE_NEW, NULL), 0);
    calltree_add_state(&tree, &running, 0, "RUNNING");
    calltree_add_state(&tree, &other, 0, "WAITING"); /* of another type */
    assert_int_equal(tree.type_count, 2);
    assert_true(tree.types[1].is_state && !strcmp(tree.types[1].unit, "count"));
    uint32_t run = find_node(&tree, "run"), late = find_node(&tree, "late");
    assert_int_equal(tree.types[0].self[CALLTREE_NEW][run], 7);
    assert_int_equal(tree.types[1].self[CALLTREE_NEW][run], 5);
    assert_int_equal(tree.types[1].self[CALLTREE_NEW][find_node(&tree, "wait")], 0);
    assert_int_equal(tree.types[0].self[CALLTREE_NEW][late], 0);
    assert_int_equal(tree.types[1].self[CALLTREE_NEW][late], 2);
    for (unsigned i = 0; i < 2 * CALLTREE_STATES_MAX; i++) {
        char word[16];
        snprintf(word, sizeof(word), "state-%u", i);
        calltree_add_state(&tree, &running, 0, word);
    }
    assert_int_equal(tree.type_count, 1 + CALLTREE_STATES_MAX);
}

/* ---- exact tables ---- */

static const struct function_row *row_of(const struct function_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (!strcmp(function_text(table, table->rows[i].name), name))
            return &table->rows[i];
    return NULL;
}

static void check_row(const struct function_table *table, const char *name, int64_t flat,
                      int64_t cumulative)
{
    const struct function_row *row = row_of(table, name);
    assert_non_null(row);
    assert_int_equal(row->flat[CALLTREE_NEW], flat);
    assert_int_equal(row->cumulative[CALLTREE_NEW], cumulative);
}

static void add_tree(struct function_table *table, const struct calltree *tree,
                     const struct function_choice *choice)
{
    assert_int_equal(function_table_add(table, tree, 0, CALLTREE_NEW, CALLTREE_NEW, choice, NULL),
                     0);
}

static void make_recursive(struct calltree *tree)
{
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    unsigned type = type_of(&profile, "cpu", "nanoseconds");
    add_stack(&profile, type, "main;walk;visit;walk", 5);
    add_stack(&profile, type, "main;walk", 2);
    add_stack(&profile, type, "main;idle", 3);
    assert_int_equal(calltree_add(tree, &profile, CALLTREE_NEW, NULL), 0);
}

static void test_table_counts_a_stack_once(void **state)
{
    (void)state;
    _cleanup_calltree_ struct calltree tree;
    _cleanup_function_table_ struct function_table table;
    _cleanup_regex_ struct regex *search = NULL;
    calltree_init(&tree);
    function_table_init(&table);
    make_recursive(&tree);
    add_tree(&table, &tree, &(struct function_choice){0});
    assert_int_equal(table.total[CALLTREE_NEW], 10);
    check_row(&table, "walk", 7, 7);
    check_row(&table, "main", 0, 10);
    check_row(&table, "visit", 0, 5);
    /* Another tree adds to it; of partitions each function is in one. */
    add_tree(&table, &tree, &(struct function_choice){0});
    check_row(&table, "walk", 14, 14);
    size_t rows = 0;
    for (uint32_t i = 0; i < 4; i++) {
        _cleanup_function_table_ struct function_table part;
        function_table_init(&part);
        add_tree(&part, &tree, &(struct function_choice){.partition = i, .partitions = 4});
        rows += part.count;
    }
    assert_int_equal(rows, table.count);
    function_table_restrict(&table, 0, 1);
    check_row(&table, "walk", 14, 14);
    /* A stack with two matches counts once. */
    assert_int_equal(regex_new("walk|visit", false, "the test", &search, NULL), 0);
    _cleanup_function_table_ struct function_table found;
    function_table_init(&found);
    add_tree(&found, &tree, &(struct function_choice){.search = search});
    assert_int_equal(found.count, 2);
    assert_int_equal(found.matched[CALLTREE_NEW], 7);
    struct function_sorting sorting = {.order = FUNCTIONS_BY_CUMULATIVE};
    function_table_sort(&table, &sorting);
    assert_string_equal(function_text(&table, table.rows[0].name), "main");
}

static void test_simpler_trees(void **state)
{
    (void)state;
    static const char *const hide[] = {"visit"};
    _cleanup_calltree_ struct calltree hidden, once;
    _cleanup_function_table_ struct function_table table, recursion;
    calltree_init(&hidden);
    calltree_init(&once);
    make_recursive(&hidden);
    make_recursive(&once);
    calltree_simplify(&hidden, &(struct calltree_simpler){.hide = hide, .hide_count = 1});
    function_table_init(&table);
    add_tree(&table, &hidden, &(struct function_choice){0});
    assert_null(row_of(&table, "visit"));
    check_row(&table, "walk", 7, 7);
    calltree_simplify(&once, &(struct calltree_simpler){.recursion = true});
    function_table_init(&recursion);
    add_tree(&recursion, &once, &(struct function_choice){0});
    assert_true(find_node(&once, "main;walk") && !find_node(&once, "main;walk;visit;walk"));
    check_row(&recursion, "walk", 7, 7);
}

/* The page has the same table: web/test/transform.test.ts. */
static void test_libraries_of_functions(void **state)
{
    (void)state;
    char path[512], line[1024];
    size_t count = 0;
    snprintf(path, sizeof(path), "%s/libraries.tsv", getenv("FIXTURES"));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        char *rest = line, *fields[4];
        line[strcspn(line, "\n")] = 0;
        for (int i = 0; i < 4; i++)
            assert_non_null(fields[i] = strsep(&rest, "\t"));
        struct calltree_function function = {
            .name = fields[0], .length = strlen(fields[0]), .file = fields[1], .binary = fields[2]};
        struct package library = library_of(&function);
        if (library.length != strlen(fields[3]) ||
            memcmp(library.text, fields[3], library.length) != 0)
            fail_msg("%s: %.*s instead of %s", fields[0], (int)library.length, library.text,
                     fields[3]);
        count++;
    }
    fclose(file);
    assert_true(count > 30);
}

static void test_own_code_has_what_libraries_take(void **state)
{
    (void)state;
    static const char *const none[] = {CALLTREE_NO_LIBRARIES}, *const all[] = {
                                                                   CALLTREE_ALL_LIBRARIES};
    _cleanup_profile_ struct profile profile;
    _cleanup_calltree_ struct calltree own, folded;
    _cleanup_function_table_ struct function_table table;
    profile_init(&profile, PROFILE_ALL);
    unsigned type = type_of(&profile, "cpu", "nanoseconds");
    add_stack(&profile, type, "shop.Main;java.util.HashMap.get;shop.Cart.add;java.lang.String.hash",
              5);
    add_stack(&profile, type, "java.lang.Thread.run;shop.Cart.add", 3);
    calltree_init(&own);
    calltree_init(&folded);
    assert_int_equal(calltree_add(&own, &profile, CALLTREE_NEW, NULL), 0);
    assert_int_equal(calltree_add(&folded, &profile, CALLTREE_NEW, NULL), 0);
    calltree_simplify(&own, &(struct calltree_simpler){.fold = none, .fold_count = 1});
    function_table_init(&table);
    add_tree(&table, &own, &(struct function_choice){0});
    assert_int_equal(table.count, 2);
    check_row(&table, "shop.Cart.add", 8, 8);
    check_row(&table, "shop.Main", 0, 5);
    calltree_simplify(&folded, &(struct calltree_simpler){.fold = all, .fold_count = 1});
    assert_true(find_node(&folded, "shop.Main;java;shop.Cart.add;java"));
}

/* A package counts once for a stack that enters it twice. */
static void test_rows_of_packages(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    _cleanup_calltree_ struct calltree tree;
    _cleanup_function_table_ struct function_table table;
    profile_init(&profile, PROFILE_ALL);
    unsigned type = type_of(&profile, "cpu", "nanoseconds");
    add_stack(&profile, type, "a.run;b/c.go;b/d.x;b/c.stop", 5);
    add_stack(&profile, type, "a.run;b/c.go", 2);
    calltree_init(&tree);
    assert_int_equal(calltree_add(&tree, &profile, CALLTREE_NEW, NULL), 0);
    function_table_init(&table);
    add_tree(&table, &tree, &(struct function_choice){.grouping = FUNCTIONS_BY_PACKAGE});
    assert_int_equal(table.count, 3);
    check_row(&table, "b/c", 7, 7);
    check_row(&table, "b/d", 0, 5);
    check_row(&table, "a", 0, 7);
    assert_int_equal(table.total[CALLTREE_NEW], 7);
}

/* Nodes that were chosen from a part get the values of all. */
static void test_frozen_trees_are_exact(void **state)
{
    (void)state;
    _cleanup_calltree_ struct calltree tree;
    _cleanup_profile_ struct profile part, whole;
    profile_init(&part, 0);
    profile_init(&whole, 0);
    add_stack(&part, type_of(&part, "cpu", "nanoseconds"), "main;large", 9);
    unsigned type = type_of(&whole, "cpu", "nanoseconds");
    add_stack(&whole, type, "main;large", 90);
    add_stack(&whole, type, "main;large;deep;deeper", 4);
    add_stack(&whole, type, "main;small;smaller", 1);
    add_stack(&whole, type, "other", 5);
    calltree_init(&tree);
    assert_int_equal(calltree_add(&tree, &part, CALLTREE_NEW, NULL), 0);
    calltree_freeze(&tree);
    assert_int_equal(calltree_add(&tree, &whole, CALLTREE_NEW, NULL), 0);
    _cleanup_free_ int64_t *totals = calltree_totals(&tree, 0, CALLTREE_NEW);
    assert_int_equal(totals[0], 100);
    assert_int_equal(totals[find_node(&tree, "main")], 95);
    assert_int_equal(totals[find_node(&tree, "main;large")], 94);
    assert_int_equal(totals[find_node(&tree, "main;large;" CALLTREE_OTHER)], 4);
    assert_int_equal(totals[find_node(&tree, "main;" CALLTREE_OTHER)], 1);
    assert_int_equal(totals[find_node(&tree, CALLTREE_OTHER)], 5);
    assert_int_equal(calltree_folded(&tree, 0, CALLTREE_NEW), 10);
}

/* The same stacks below different names are different nodes. */
static void test_trees_are_split(void **state)
{
    (void)state;
    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    for (int i = 0; i < 2; i++) {
        _cleanup_profile_ struct profile profile;
        profile_init(&profile, 0);
        add_stack(&profile, type_of(&profile, "cpu", "nanoseconds"), "main;work", 3 + i);
        calltree_below(&tree, i ? "[thread b]" : "[thread a]");
        assert_int_equal(calltree_add(&tree, &profile, CALLTREE_NEW, NULL), 0);
        calltree_below(&tree, NULL);
        if (i)
            assert_int_equal(calltree_add(&tree, &profile, CALLTREE_NEW, NULL), 0);
    }
    _cleanup_free_ int64_t *totals = calltree_totals(&tree, 0, CALLTREE_NEW);
    assert_int_equal(totals[0], 11);
    assert_int_equal(totals[find_node(&tree, "[thread a];main;work")], 3);
    assert_int_equal(totals[find_node(&tree, "[thread b]")], 4);
    assert_int_equal(totals[find_node(&tree, "main;work")], 4);
    const char *const path[] = {"[thread b]", "main"};
    assert_true(calltree_focus(&tree, path, 2));
    _cleanup_free_ int64_t *left = calltree_totals(&tree, 0, CALLTREE_NEW);
    assert_int_equal(left[0], 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merges_lines_and_addresses),
        cmocka_unit_test(test_names_addresses_and_kinds),
        cmocka_unit_test(test_shared_texts_are_copied_once),
        cmocka_unit_test(test_inlined_only_when_always),
        cmocka_unit_test(test_two_sides),
        cmocka_unit_test(test_too_many_types),
        cmocka_unit_test(test_sums_saturate),
        cmocka_unit_test(test_order_of_children),
        cmocka_unit_test(test_limit_keeps_sums),
        cmocka_unit_test(test_limit_keeps_the_largest),
        cmocka_unit_test(test_deep_and_wide),
        cmocka_unit_test(test_focus_keeps_one_part),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_states_one_by_one),
        cmocka_unit_test(test_table_counts_a_stack_once),
        cmocka_unit_test(test_simpler_trees),
        cmocka_unit_test(test_libraries_of_functions),
        cmocka_unit_test(test_own_code_has_what_libraries_take),
        cmocka_unit_test(test_rows_of_packages),
        cmocka_unit_test(test_frozen_trees_are_exact),
        cmocka_unit_test(test_trees_are_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
