// SPDX-License-Identifier: Apache-2.0
// Simpler call trees out of one: frames hidden, recursion and libraries collapsed, only the stacks
// through one binary. The page does the same in web/flame/data/transform.ts; a table of all
// functions is made here, where the whole tree is.

#include <string.h>

#include "base/memory.h"
#include "profile/views/calltree_tables.h"
#include "profile/views/library.h"

#define HIDDEN UINT32_MAX

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_among(const char *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(list[i], text))
            return true;
    return false;
}

/* How each function is shown: as itself, HIDDEN, or as a new function for its library. */
static uint32_t *choose_roles(struct calltree *tree, const struct calltree_simpler *simpler)
{
    uint32_t count = tree->function_count;
    bool every = is_among(CALLTREE_ALL_LIBRARIES, simpler->fold, simpler->fold_count);
    bool none = is_among(CALLTREE_NO_LIBRARIES, simpler->fold, simpler->fold_count);
    uint32_t *roles = memory_zalloc(count + 1u, sizeof(*roles));
    for (uint32_t i = 0; i < count; i++) {
        const char *binary = base_name(tree->functions[i].binary);
        struct package shown = {0};
        if (*binary && is_among(binary, simpler->fold, simpler->fold_count))
            shown = (struct package){binary, strlen(binary)};
        else if (every || none)
            shown = library_of(&tree->functions[i]);
        roles[i] = i;
        if (is_among(tree->functions[i].name, simpler->hide, simpler->hide_count) ||
            (none && shown.length))
            roles[i] = HIDDEN;
        else if (shown.length)
            roles[i] = calltree_function_id(
                tree, &(struct calltree_function){.name = shown.text,
                                                  .length = shown.length,
                                                  .file = "",
                                                  .binary = shown.text == binary ? binary : ""});
    }
    return roles;
}

/* Which nodes are at or below a frame of the binary; NULL: all count. */
static bool *find_counted(const struct calltree *tree, const char *only)
{
    if (!only || !*only)
        return NULL;
    bool *counts = memory_zalloc(tree->node_count, sizeof(*counts));
    for (uint32_t node = 1; node < tree->node_count; node++) {
        const struct calltree_node *at = &tree->nodes[node];
        counts[node] =
            counts[at->parent] || !strcmp(base_name(tree->functions[at->function].binary), only);
    }
    return counts;
}

/* The outermost frame of a function above a node; 0 without one. */
static uint32_t find_outermost(const struct calltree_node *nodes, const uint32_t *roles,
                               uint32_t node)
{
    uint32_t role = roles[nodes[node].function], found = 0;
    for (uint32_t at = nodes[node].parent; at; at = nodes[at].parent)
        if (roles[nodes[at].function] == role)
            found = at;
    return found;
}

void calltree_simplify(struct calltree *tree, const struct calltree_simpler *simpler)
{
    uint32_t old_count = tree->node_count, functions = tree->function_count;
    if (!simpler->hide_count && !simpler->fold_count && !simpler->recursion &&
        (!simpler->only || !*simpler->only))
        return;
    _cleanup_free_ bool *counts = find_counted(tree, simpler->only);
    _cleanup_free_ uint32_t *roles = choose_roles(tree, simpler);
    _cleanup_free_ uint32_t *moved = memory_zalloc(old_count, sizeof(*moved));
    _cleanup_free_ struct calltree_node *old = memory_zalloc(old_count, sizeof(*old));
    memcpy(old, tree->nodes, old_count * sizeof(*old));
    calltree_clear_nodes(tree);
    for (uint32_t node = 1; node < old_count; node++) {
        uint32_t above = moved[old[node].parent], role = roles[old[node].function];
        bool own = role < functions && role == old[node].function;
        uint32_t outer =
            simpler->recursion && own && role != HIDDEN ? find_outermost(old, roles, node) : 0;
        if (role == HIDDEN ||
            (!own && above && tree->nodes[above].function == role)) /* one run of a library */
            moved[node] = above;
        else if (outer)
            moved[node] = moved[outer];
        else
            moved[node] = calltree_child(tree, above, role, old[node].inlined);
    }
    for (unsigned type = 0; counts && type < tree->type_count; type++)
        for (int side = 0; side < CALLTREE_SIDES; side++)
            for (uint32_t node = 0; tree->types[type].self[side] && node < old_count; node++)
                if (!counts[node])
                    tree->types[type].self[side][node] = 0;
    calltree_move_columns(tree, moved, old_count);
}
