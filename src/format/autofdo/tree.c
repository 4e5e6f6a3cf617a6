// SPDX-License-Identifier: Apache-2.0
// From stacks to counts by line: see tree.h.

#include "format/autofdo/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"

#define INLINED_MAX 64
#define TARGETS_MAX 64    /* of one line: compilers use the first few */
#define OFFSET_MAX 0xffff /* lines from a function's first: both formats have 16 bits */

void fdo_tree_release(struct fdo_tree *tree)
{
    for (size_t i = 0; i < tree->function_count; i++)
        free(tree->functions[i].name);
    free(tree->functions);
    free(tree->lines);
    free(tree->places);
    free(tree->order);
    free(tree->targets);
    free(tree->entries);
    id_table_release(&tree->entry_index);
    id_table_release(&tree->function_index);
    id_table_release(&tree->line_index);
    id_table_release(&tree->place_index);
}

/* Compilers look for "f" where the linker has "f.constprop.0" or "f.part.0". */
static size_t original_length(const char *name)
{
    static const char *const suffixes[] = {".constprop.", ".isra.", ".part.",
                                           ".cold",       ".llvm.", ".lto_priv."};
    size_t length = strlen(name);
    for (size_t i = 0; i < ARRAY_LENGTH(suffixes); i++) {
        const char *found = strstr(name + 1, suffixes[i]);
        if (found)
            length = MIN(length, (size_t)(found - name));
    }
    return length;
}

static const char *linker_name(const struct profile *profile, const struct profile_frame *frame)
{
    const struct profile_function *function = &profile->functions[frame->function];
    return profile_text(profile, function->system_name ? function->system_name : function->name);
}

static uint32_t function_of(struct fdo_tree *tree, const char *name, uint32_t parent,
                            uint32_t offset)
{
    size_t length = original_length(name);
    uint64_t hash = hash_word((uint64_t)parent << 32 | offset);
    for (size_t i = 0; i < length; i++)
        hash = hash_word(hash ^ (uint8_t)name[i]) + 1;
    struct id_probe probe = id_probe_start(hash);
    uint32_t found;
    while ((found = id_table_next(&tree->function_index, &probe)) != ID_NONE) {
        const struct fdo_function *known = &tree->functions[found];
        if (known->parent == parent && known->offset == offset && strlen(known->name) == length &&
            !memcmp(known->name, name, length))
            return found;
    }
    array_reserve(tree->functions, tree->function_capacity, tree->function_count + 1);
    found = (uint32_t)tree->function_count++;
    tree->functions[found] = (struct fdo_function){
        .name = memory_strndup(name, length), .parent = parent, .offset = offset};
    if (parent) {
        tree->functions[found].next = tree->functions[parent - 1].first_child;
        tree->functions[parent - 1].first_child = found + 1;
    }
    id_table_insert(&tree->function_index, hash, found);
    return found;
}

static uint32_t line_of(struct fdo_tree *tree, uint32_t function, uint32_t offset)
{
    uint64_t hash = hash_word((uint64_t)function << 32 | offset);
    struct id_probe probe = id_probe_start(hash);
    uint32_t found;
    while ((found = id_table_next(&tree->line_index, &probe)) != ID_NONE)
        if (tree->lines[found].function == function && tree->lines[found].offset == offset)
            return found;
    array_reserve(tree->lines, tree->line_capacity, tree->line_count + 1);
    found = (uint32_t)tree->line_count++;
    tree->lines[found] = (struct fdo_line){.function = function, .offset = offset};
    id_table_insert(&tree->line_index, hash, found);
    /* In order of their offsets. */
    uint32_t *link = &tree->functions[function].first_line;
    while (*link && tree->lines[*link - 1].offset < offset)
        link = &tree->lines[*link - 1].next;
    tree->lines[found].next = *link;
    *link = found + 1;
    return found;
}

/* A line has several instructions, and one execution of it may be seen at any of them: the busiest
 * counts, as in other tools that make such files. */
static void count_place(struct fdo_tree *tree, uint32_t line, uint64_t address, uint64_t count)
{
    uint64_t hash = hash_word(address ^ hash_word(line));
    struct id_probe probe = id_probe_start(hash);
    uint32_t found;
    while ((found = id_table_next(&tree->place_index, &probe)) != ID_NONE)
        if (tree->places[found].line == line && tree->places[found].address == address)
            break;
    if (found == ID_NONE) {
        array_reserve(tree->places, tree->place_capacity, tree->place_count + 1);
        found = (uint32_t)tree->place_count++;
        tree->places[found] = (struct fdo_place){.line = line, .address = address};
        id_table_insert(&tree->place_index, hash, found);
    }
    tree->places[found].count += count;
    tree->lines[line].count = MAX(tree->lines[line].count, tree->places[found].count);
}

static bool offset_of(const struct profile *profile, const struct profile_frame *frame,
                      uint32_t *ret_offset)
{
    uint32_t start = profile->functions[frame->function].start_line;
    if (!frame->function || frame->kind == FRAME_KERNEL || !start || frame->line < start ||
        frame->line - start > OFFSET_MAX)
        return false;
    *ret_offset = frame->line - start;
    return true;
}

/* Where an instruction is: the innermost function, and those that it was inlined into. */
struct place {
    const struct profile_frame *chain[INLINED_MAX];
    uint32_t offsets[INLINED_MAX];
    size_t depth;
    uint32_t outside; /* the node that called it */
};

static bool find_place(const struct profile *profile, uint32_t node, struct place *place)
{
    place->depth = 0;
    for (; node && place->depth < INLINED_MAX; node = profile->nodes[node].parent) {
        const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
        if (!offset_of(profile, frame, &place->offsets[place->depth]))
            return false;
        place->chain[place->depth++] = frame;
        if (!frame->inlined) {
            place->outside = profile->nodes[node].parent;
            return true;
        }
    }
    return false;
}

/* The function that wasn't inlined. */
static uint32_t outer_function(struct fdo_tree *tree, const struct profile *profile,
                               const struct place *place)
{
    return function_of(tree, linker_name(profile, place->chain[place->depth - 1]), 0, 0);
}

static uint32_t inner_function(struct fdo_tree *tree, const struct profile *profile,
                               const struct place *place, uint64_t count)
{
    uint32_t function = outer_function(tree, profile, place);
    tree->functions[function].total += count;
    for (size_t i = place->depth - 1; i-- > 0;) {
        function = function_of(tree, linker_name(profile, place->chain[i]), function + 1,
                               place->offsets[i + 1]);
        tree->functions[function].total += count;
    }
    return function;
}

static bool add_sample(struct fdo_tree *tree, const struct profile *profile, uint32_t node,
                       uint64_t count)
{
    struct place place;
    if (!find_place(profile, node, &place))
        return false;
    uint32_t function = inner_function(tree, profile, &place, count);
    count_place(tree, line_of(tree, function, place.offsets[0]), place.chain[0]->address, count);
    return true;
}

/* ---- branch stacks ---- */

static struct fdo_place *entry_of(struct fdo_tree *tree, uint32_t function, bool add)
{
    uint64_t hash = hash_word(function);
    struct id_probe probe = id_probe_start(hash);
    uint32_t found;
    while ((found = id_table_next(&tree->entry_index, &probe)) != ID_NONE)
        if (tree->entries[found].line == function)
            return &tree->entries[found];
    if (!add)
        return NULL;
    array_reserve(tree->entries, tree->entry_capacity, tree->entry_count + 1);
    found = (uint32_t)tree->entry_count++;
    tree->entries[found] = (struct fdo_place){.line = function, .address = UINT64_MAX};
    id_table_insert(&tree->entry_index, hash, found);
    return &tree->entries[found];
}

/* Called functions are executed from their entry on, so that is their lowest address. */
static void note_entry(struct fdo_tree *tree, const struct profile *profile, uint32_t node)
{
    struct place place;
    if (!find_place(profile, node, &place))
        return;
    struct fdo_place *entry = entry_of(tree, outer_function(tree, profile, &place), true);
    entry->address = MIN(entry->address, place.chain[0]->address);
}

static void count_target(struct fdo_tree *tree, uint32_t line, uint32_t function, uint64_t count)
{
    uint32_t *link = &tree->lines[line].first_target;
    unsigned known = 0;
    for (; *link; link = &tree->targets[*link - 1].next, known++)
        if (tree->targets[*link - 1].function == function) {
            tree->targets[*link - 1].count += count;
            return;
        }
    if (known >= TARGETS_MAX)
        return;
    uint32_t added = (uint32_t)tree->target_count + 1;
    *link = added;
    array_reserve(tree->targets, tree->target_capacity, tree->target_count + 1);
    tree->targets[tree->target_count++] = (struct fdo_target){.function = function, .count = count};
}

/* A branch to a function's entry is a call. Its stack is where it came from and where it went. */
static void add_branch(struct fdo_tree *tree, const struct profile *profile, uint32_t node,
                       uint64_t count)
{
    struct place to, from;
    if (!find_place(profile, node, &to))
        return;
    uint32_t callee = outer_function(tree, profile, &to);
    const struct fdo_place *entry = entry_of(tree, callee, false);
    if (!entry || entry->address != to.chain[0]->address)
        return;
    tree->functions[callee].head += count;
    if (!to.outside || !find_place(profile, to.outside, &from))
        return;
    uint32_t caller = inner_function(tree, profile, &from, 0);
    count_target(tree, line_of(tree, caller, from.offsets[0]), callee, count);
}

/* Each of a line's bytes was counted: what it was executed is what its busiest one was. */
static void add_up_lines(struct fdo_tree *tree)
{
    for (size_t i = 0; i < tree->function_count; i++) {
        tree->functions[i].total = 0;
        for (uint32_t at = tree->functions[i].first_line; at; at = tree->lines[at - 1].next)
            tree->functions[i].total += tree->lines[at - 1].count;
    }
    for (size_t i = tree->function_count; i-- > 0;)
        if (tree->functions[i].parent)
            tree->functions[tree->functions[i].parent - 1].total += tree->functions[i].total;
}

static void add_branches(struct fdo_tree *tree, const struct profile *profile, unsigned executions)
{
    unsigned type = profile_find_type(profile, "taken_branches");
    const struct profile_samples *samples = &profile->samples;
    for (size_t row = 0; row < samples->count; row++)
        if (samples->values[executions][row] > 0)
            note_entry(tree, profile, samples->node[row]);
    for (size_t row = 0; type < profile->type_count && row < samples->count; row++)
        if (samples->values[type][row] > 0)
            add_branch(tree, profile, samples->node[row], (uint64_t)samples->values[type][row]);
    add_up_lines(tree);
}

static int compare_totals(const void *left, const void *right, void *context)
{
    const struct fdo_tree *tree = context;
    const struct fdo_function *a = &tree->functions[*(const uint32_t *)left];
    const struct fdo_function *b = &tree->functions[*(const uint32_t *)right];
    if (a->total != b->total)
        return a->total > b->total ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void sort_functions(struct fdo_tree *tree)
{
    tree->order = memory_zalloc(tree->function_count + 1, sizeof(*tree->order));
    for (size_t i = 0; i < tree->function_count; i++)
        if (!tree->functions[i].parent)
            tree->order[tree->order_count++] = (uint32_t)i;
    qsort_r(tree->order, tree->order_count, sizeof(*tree->order), compare_totals, tree);
}

int fdo_tree_build(struct fdo_tree *tree, const struct profile *profile, int type,
                   struct error *error)
{
    unsigned samples = profile_find_type(profile, "samples");
    unsigned executions = profile_find_type(profile, "executions");
    unsigned used = type >= 0                          ? (unsigned)type
                    : executions < profile->type_count ? executions
                    : samples < profile->type_count    ? samples
                                                       : profile_default_type(profile);
    for (size_t row = 0; used < profile->type_count && row < profile->samples.count; row++) {
        int64_t value = profile->samples.values[used][row];
        if (value <= 0)
            continue;
        if (add_sample(tree, profile, profile->samples.node[row], (uint64_t)value))
            tree->used += (uint64_t)value;
        else
            tree->left_out += (uint64_t)value;
    }
    if (!tree->used)
        return error_set(error, -EINVAL,
                         "No sample has a function with its first line: AutoFDO needs debug "
                         "information (build with -g, and symbolize with `assay convert "
                         "--symbolize`).");
    if (used == executions)
        add_branches(tree, profile, executions);
    sort_functions(tree);
    return 0;
}

uint64_t fdo_head_count(const struct fdo_tree *tree, uint32_t function)
{
    uint32_t line = tree->functions[function].first_line;
    if (tree->functions[function].head)
        return tree->functions[function].head;
    return line ? MAX(tree->lines[line - 1].count, 1ull) : 1;
}
