// SPDX-License-Identifier: Apache-2.0
// The call tree by function: building it, its totals and the order of its children. See calltree.h.

#include "profile/views/calltree.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/random.h"
#include "profile/views/calltree_tables.h"

void calltree_init(struct calltree *tree)
{
    *tree = (struct calltree){0};
    tree->tables = memory_zalloc(1, sizeof(*tree->tables));
    /* Early in boot there may be no entropy yet; a fixed seed is still correct. */
    tree->tables->seed = random_bits();
    calltree_clear_nodes(tree);
}

void calltree_release(struct calltree *tree)
{
    struct calltree_tables *tables = tree->tables;
    if (!tables)
        return;
    for (unsigned i = 0; i < tree->type_count; i++)
        for (int side = 0; side < CALLTREE_SIDES; side++)
            free(tree->types[i].self[side]);
    free(tree->functions);
    free(tree->nodes);
    free(tree->followed);
    arena_release(&tables->text);
    id_table_release(&tables->function_index);
    id_table_release(&tables->node_index);
    free(tables);
    *tree = (struct calltree){0};
}

void calltree_clear_nodes(struct calltree *tree)
{
    struct calltree_tables *tables = tree->tables;
    id_table_clear(&tables->node_index);
    array_reserve(tree->nodes, tables->node_capacity, 1);
    tree->nodes[0] = (struct calltree_node){0};
    tree->node_count = 1;
}

uint32_t calltree_function_id(struct calltree *tree, const struct calltree_function *function)
{
    struct calltree_tables *tables = tree->tables;
    uint64_t hash = XXH3_64bits_withSeed(function->name, function->length, tables->seed);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&tables->function_index, &probe)) != ID_NONE) {
        const struct calltree_function *known = &tree->functions[id];
        if (known->length == function->length &&
            !memcmp(known->name, function->name, known->length))
            break;
    }
    if (id == ID_NONE && tables->frozen)
        return ID_NONE;
    if (id == ID_NONE) {
        array_reserve(tree->functions, tables->function_capacity, (size_t)tree->function_count + 1);
        id = tree->function_count++;
        tree->functions[id] = (struct calltree_function){
            .name = arena_strndup(&tables->text, function->name, function->length),
            .length = function->length,
            .file = "",
            .binary = "",
            .unnamed = function->unnamed,
        };
        id_table_insert(&tables->function_index, hash, id);
    }
    struct calltree_function *known = &tree->functions[id];
    if (!known->file[0])
        known->file = function->file;
    if (!known->binary[0])
        known->binary = function->binary;
    if (!known->kind)
        known->kind = function->kind;
    return id;
}

static uint64_t child_hash(const struct calltree *tree, uint32_t parent, uint32_t function)
{
    return hash_word(((uint64_t)parent << 32 | function) ^ tree->tables->seed);
}

static uint32_t find_child(const struct calltree *tree, uint32_t parent, uint32_t function)
{
    struct id_probe probe = id_probe_start(child_hash(tree, parent, function));
    uint32_t id;
    while ((id = id_table_next(&tree->tables->node_index, &probe)) != ID_NONE)
        if (tree->nodes[id].parent == parent && tree->nodes[id].function == function)
            break;
    return id;
}

uint32_t calltree_child(struct calltree *tree, uint32_t parent, uint32_t function, bool inlined)
{
    struct calltree_tables *tables = tree->tables;
    uint32_t id = find_child(tree, parent, function);
    if (id != ID_NONE) {
        tree->nodes[id].inlined &= inlined;
        return id;
    }
    array_reserve(tree->nodes, tables->node_capacity, (size_t)tree->node_count + 1);
    id = tree->node_count++;
    tree->nodes[id] =
        (struct calltree_node){.parent = parent, .function = function, .inlined = inlined};
    id_table_insert(&tables->node_index, child_hash(tree, parent, function), id);
    return id;
}

/* Of a frozen tree: the child that is there, or what stands for those that aren't. */
static uint32_t frozen_child(struct calltree *tree, uint32_t parent, uint32_t function)
{
    uint32_t other = tree->tables->other;
    if (parent && tree->nodes[parent].function == other)
        return parent;
    uint32_t id = function == ID_NONE ? ID_NONE : find_child(tree, parent, function);
    return id == ID_NONE ? calltree_child(tree, parent, other, false) : id;
}

void calltree_freeze(struct calltree *tree)
{
    tree->tables->other = calltree_other(tree);
    tree->tables->frozen = true;
    for (unsigned type = 0; type < tree->type_count; type++)
        for (int side = 0; side < CALLTREE_SIDES; side++)
            if (tree->types[type].self[side])
                memset(tree->types[type].self[side], 0,
                       tree->tables->column_length * sizeof(int64_t));
}

uint32_t calltree_other(struct calltree *tree)
{
    return calltree_function_id(tree, &(struct calltree_function){.name = CALLTREE_OTHER,
                                                                  .length = strlen(CALLTREE_OTHER),
                                                                  .file = "",
                                                                  .binary = ""});
}

/* The tree's copies of a profile's strings, by where those lie: any number of functions may share
 * one long file name. */
struct copied_texts {
    struct arena *arena;
    struct id_table index;
    struct {
        const char *from, *to;
    } * list;
    size_t count, capacity;
};

static const char *copy_text(struct copied_texts *texts, const char *text)
{
    if (!text[0])
        return "";
    uint64_t hash = hash_word((uintptr_t)text);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&texts->index, &probe)) != ID_NONE)
        if (texts->list[id].from == text)
            return texts->list[id].to;
    array_reserve(texts->list, texts->capacity, texts->count + 1);
    texts->list[texts->count].from = text;
    texts->list[texts->count].to = arena_strndup(texts->arena, text, strlen(text));
    id_table_insert(&texts->index, hash, (uint32_t)texts->count);
    return texts->list[texts->count++].to;
}

/* The tree's function of each of the naming's entries. */
static uint32_t *add_functions(struct calltree *tree, const struct profile *profile,
                               const struct naming *naming)
{
    uint8_t *kinds = memory_zalloc(naming->count + 1u, 1);
    for (uint32_t i = 1; i < profile->frame_count; i++) {
        uint32_t entry = naming->of_frame[i];
        if (entry != NAMING_NONE && !kinds[entry])
            kinds[entry] = profile->frames[i].kind;
    }
    struct copied_texts texts = {.arena = &tree->tables->text};
    uint32_t *functions = memory_zalloc(naming->count + 1u, sizeof(*functions));
    for (uint32_t i = 0; i < naming->count; i++) {
        const struct naming_entry *entry = &naming->entries[i];
        functions[i] = calltree_function_id(tree, &(struct calltree_function){
                                                      .name = entry->name,
                                                      .length = entry->length,
                                                      .file = copy_text(&texts, entry->file),
                                                      .binary = copy_text(&texts, entry->binary),
                                                      .kind = kinds[i],
                                                      .unnamed = entry->unnamed,
                                                  });
    }
    id_table_release(&texts.index);
    free(texts.list);
    free(kinds);
    return functions;
}

/* Which of the profile's nodes lie on the way to a sample that has a value. */
static bool *used_nodes(const struct profile *profile)
{
    const struct profile_samples *samples = &profile->samples;
    bool *used = memory_zalloc(profile->node_count, sizeof(*used));
    for (unsigned type = 0; type < profile->type_count; type++)
        for (size_t row = 0; row < samples->count; row++)
            if (samples->values[type][row])
                used[samples->node[row]] = true;
    for (uint32_t node = profile->node_count; node-- > 1;)
        if (used[node])
            used[profile->nodes[node].parent] = true;
    return used;
}

/* The tree's node of each of the profile's nodes that are used. */
static uint32_t *add_nodes(struct calltree *tree, const struct profile *profile)
{
    _cleanup_naming_ struct naming naming;
    naming_init(&naming, profile);
    _cleanup_free_ uint32_t *functions = add_functions(tree, profile, &naming);
    _cleanup_free_ bool *used = used_nodes(profile);
    uint32_t *nodes = memory_zalloc(profile->node_count, sizeof(*nodes));
    nodes[0] = tree->tables->below;
    for (uint32_t i = 1; i < profile->node_count; i++) {
        const struct profile_node *node = &profile->nodes[i];
        if (!used[i])
            continue;
        uint32_t entry = naming.of_frame[node->frame];
        uint32_t parent = nodes[node->parent];
        nodes[i] = entry == NAMING_NONE   ? parent
                   : tree->tables->frozen ? frozen_child(tree, parent, functions[entry])
                                          : calltree_child(tree, parent, functions[entry],
                                                           profile->frames[node->frame].inlined);
    }
    return nodes;
}

void calltree_below(struct calltree *tree, const char *name)
{
    tree->tables->below = 0;
    if (!name)
        return;
    struct calltree_function function = {
        .name = name, .length = strlen(name), .file = "", .binary = "", .unnamed = true};
    tree->tables->below = calltree_child(tree, 0, calltree_function_id(tree, &function), false);
}

static unsigned find_type(const struct calltree *tree, const char *name, const char *unit)
{
    for (unsigned i = 0; i < tree->type_count; i++)
        if (!tree->types[i].is_state && !strcmp(tree->types[i].name, name) &&
            !strcmp(tree->types[i].unit, unit))
            return i;
    return PROFILE_TYPES_MAX;
}

static unsigned find_or_add_type(struct calltree *tree, const char *name, const char *unit)
{
    unsigned known = find_type(tree, name, unit);
    if (known != PROFILE_TYPES_MAX || tree->type_count == PROFILE_TYPES_MAX)
        return known;
    struct arena *text = &tree->tables->text;
    tree->types[tree->type_count] = (struct calltree_type){
        .name = arena_strndup(text, name, strlen(name)),
        .unit = arena_strndup(text, unit, strlen(unit)),
    };
    return tree->type_count++;
}

unsigned calltree_type_of(const struct calltree *tree, const struct profile *profile, unsigned type)
{
    if (type >= profile->type_count)
        return PROFILE_TYPES_MAX;
    return find_type(tree, profile_text(profile, profile->types[type].type),
                     profile_text(profile, profile->types[type].unit));
}

/* Gives every column one cell per node; new cells are zero. */
static void fit_columns(struct calltree *tree)
{
    for (unsigned i = 0; i < tree->type_count; i++) {
        struct calltree_type *type = &tree->types[i];
        for (int side = 0; side < CALLTREE_SIDES; side++) {
            if (side == CALLTREE_BASE && !tree->has_base)
                continue;
            uint32_t known = type->self[side] ? tree->tables->column_length : 0;
            type->self[side] =
                memory_resize(type->self[side], tree->node_count, sizeof(*type->self[side]));
            memset(type->self[side] + known, 0,
                   (tree->node_count - known) * sizeof(*type->self[side]));
        }
    }
    tree->tables->column_length = tree->node_count;
}

int calltree_add(struct calltree *tree, const struct profile *profile, enum calltree_side side,
                 struct error *error)
{
    unsigned types[PROFILE_TYPES_MAX];
    for (unsigned i = 0; i < profile->type_count; i++) {
        types[i] = find_or_add_type(tree, profile_text(profile, profile->types[i].type),
                                    profile_text(profile, profile->types[i].unit));
        if (types[i] == PROFILE_TYPES_MAX)
            return error_set(error, -E2BIG, "Together the profiles have more than %d sample types.",
                             PROFILE_TYPES_MAX);
    }
    if (side == CALLTREE_BASE)
        tree->has_base = true;
    _cleanup_free_ uint32_t *nodes = add_nodes(tree, profile);
    fit_columns(tree);
    for (unsigned i = 0; i < profile->type_count; i++) {
        int64_t *self = tree->types[types[i]].self[side];
        for (size_t row = 0; row < profile->samples.count; row++) {
            int64_t *cell = &self[nodes[profile->samples.node[row]]];
            *cell = add_saturated(*cell, profile->samples.values[i][row]);
        }
    }
    return 0;
}

/* ---- states ---- */

/* Of the types, states come last. */
static unsigned first_state(const struct calltree *tree)
{
    unsigned first = tree->type_count;
    while (first && tree->types[first - 1].is_state)
        first--;
    return first;
}

/* The type of a state that may be there already; PROFILE_TYPES_MAX when it is one too many. */
static unsigned state_type(struct calltree *tree, const char *state, const char *unit)
{
    unsigned first = first_state(tree);
    for (unsigned i = first; i < tree->type_count; i++)
        if (!strcmp(tree->types[i].name, state))
            return i;
    if (tree->type_count - first == CALLTREE_STATES_MAX || tree->type_count == PROFILE_TYPES_MAX)
        return PROFILE_TYPES_MAX;
    tree->types[tree->type_count] = (struct calltree_type){
        .name = arena_strndup(&tree->tables->text, state, strlen(state)),
        .unit = unit,
        .is_state = true,
    };
    return tree->type_count++;
}

/* The type of the tree for each label set of the profile; PROFILE_TYPES_MAX where there is no
 * state, no sample, or a state too many. Returns whether there is any. */
static bool add_state_types(struct calltree *tree, const struct profile *profile, const char *unit,
                            unsigned *types)
{
    _cleanup_free_ bool *used = memory_zalloc(profile_label_set_count(profile) + 1u, sizeof(*used));
    for (size_t row = 0; row < profile->samples.count; row++)
        used[profile->samples.labels[row]] = true;
    for (uint32_t set = 0; set < profile_label_set_count(profile); set++) {
        size_t count;
        const struct profile_label *labels = profile_labels(profile, set, &count);
        const char *state = "";
        types[set] = PROFILE_TYPES_MAX;
        for (size_t i = 0; used[set] && i < count; i++)
            if (!strcmp(profile_text(profile, labels[i].key), CALLTREE_STATE_LABEL))
                state = profile_text(profile, labels[i].text);
        if (state[0])
            types[set] = state_type(tree, state, unit);
    }
    return first_state(tree) < tree->type_count;
}

void calltree_add_states(struct calltree *tree, const struct profile *profile, unsigned type)
{
    unsigned whole = calltree_type_of(tree, profile, type);
    if (whole == PROFILE_TYPES_MAX)
        return;
    _cleanup_free_ unsigned *types =
        memory_zalloc(profile_label_set_count(profile) + 1u, sizeof(*types));
    if (!add_state_types(tree, profile, tree->types[whole].unit, types))
        return;
    _cleanup_free_ uint32_t *nodes = add_nodes(tree, profile);
    fit_columns(tree);
    for (size_t row = 0; row < profile->samples.count; row++) {
        unsigned state = types[profile->samples.labels[row]];
        if (state == PROFILE_TYPES_MAX)
            continue;
        int64_t *cell = &tree->types[state].self[CALLTREE_NEW][nodes[profile->samples.node[row]]];
        *cell = add_saturated(*cell, profile->samples.values[type][row]);
    }
}

void calltree_add_state(struct calltree *tree, const struct profile *profile, unsigned type,
                        const char *state)
{
    unsigned own = 0;
    while (own < profile->type_count && calltree_type_of(tree, profile, own) != type)
        own++;
    if (own == profile->type_count || !profile->samples.count)
        return;
    unsigned added = state_type(tree, state, tree->types[type].unit);
    if (added == PROFILE_TYPES_MAX)
        return;
    _cleanup_free_ uint32_t *nodes = add_nodes(tree, profile);
    fit_columns(tree);
    int64_t *self = tree->types[added].self[CALLTREE_NEW];
    for (size_t row = 0; row < profile->samples.count; row++) {
        int64_t *cell = &self[nodes[profile->samples.node[row]]];
        *cell = add_saturated(*cell, profile->samples.values[own][row]);
    }
}

void calltree_follow(struct calltree *tree, const struct profile *profile, uint32_t *nodes,
                     size_t count)
{
    _cleanup_free_ uint32_t *of = add_nodes(tree, profile);
    fit_columns(tree);
    for (size_t i = 0; i < count; i++)
        nodes[i] = of[nodes[i]];
    free(tree->followed);
    tree->followed = nodes;
    tree->followed_count = count;
}

int64_t *calltree_totals(const struct calltree *tree, unsigned type, enum calltree_side side)
{
    int64_t *totals = memory_zalloc(tree->node_count, sizeof(*totals));
    const int64_t *self = tree->types[type].self[side];
    if (!self)
        return totals;
    memcpy(totals, self, tree->node_count * sizeof(*totals));
    for (uint32_t node = tree->node_count; node-- > 1;) {
        int64_t *parent = &totals[tree->nodes[node].parent];
        *parent = add_saturated(*parent, totals[node]);
    }
    return totals;
}

static int compare_names(const void *a, const void *b, void *functions)
{
    const struct calltree_function *x = (struct calltree_function *)functions + *(uint32_t *)a;
    const struct calltree_function *y = (struct calltree_function *)functions + *(uint32_t *)b;
    int order = memcmp(x->name, y->name, MIN(x->length, y->length));
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* The place of every function in the order of names: it makes comparing siblings cheap. */
static uint32_t *rank_functions(const struct calltree *tree)
{
    _cleanup_free_ uint32_t *sorted = memory_zalloc(tree->function_count + 1u, sizeof(*sorted));
    for (uint32_t i = 0; i < tree->function_count; i++)
        sorted[i] = i;
    qsort_r(sorted, tree->function_count, sizeof(*sorted), compare_names, tree->functions);
    uint32_t *rank = memory_zalloc(tree->function_count + 1u, sizeof(*rank));
    for (uint32_t i = 0; i < tree->function_count; i++)
        rank[sorted[i]] = i;
    return rank;
}

struct sibling_order {
    const struct calltree_node *nodes;
    const uint32_t *rank;
    const int64_t *order; /* or NULL */
};

static int compare_siblings(const void *a, const void *b, void *argument)
{
    const struct sibling_order *by = argument;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (by->order && by->order[x] != by->order[y])
        return by->order[x] > by->order[y] ? -1 : 1;
    uint32_t rank_x = by->rank[by->nodes[x].function], rank_y = by->rank[by->nodes[y].function];
    return (rank_x > rank_y) - (rank_x < rank_y);
}

void calltree_children(const struct calltree *tree, const int64_t *order, uint32_t **ret_first,
                       uint32_t **ret_children)
{
    uint32_t *first = memory_zalloc((size_t)tree->node_count + 1, sizeof(*first));
    uint32_t *children = memory_zalloc(tree->node_count, sizeof(*children));
    /* A counting sort by parent: first[p + 1] holds p's next free place while it fills. */
    for (uint32_t node = 1; node < tree->node_count; node++)
        first[tree->nodes[node].parent + 1]++;
    uint32_t start = 0;
    for (uint32_t node = 0; node < tree->node_count; node++) {
        uint32_t count = first[node + 1];
        first[node + 1] = start;
        start += count;
    }
    for (uint32_t node = 1; node < tree->node_count; node++)
        children[first[tree->nodes[node].parent + 1]++] = node;

    _cleanup_free_ uint32_t *rank = rank_functions(tree);
    struct sibling_order by = {.nodes = tree->nodes, .rank = rank, .order = order};
    for (uint32_t node = 0; node < tree->node_count; node++)
        if (first[node + 1] - first[node] > 1)
            qsort_r(children + first[node], first[node + 1] - first[node], sizeof(*children),
                    compare_siblings, &by);
    *ret_first = first;
    *ret_children = children;
}
