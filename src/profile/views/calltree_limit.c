// SPDX-License-Identifier: Apache-2.0
// Making a call tree small enough to be drawn: small nodes are folded into "(other)" siblings, and
// one part of it is taken by itself, to be drawn in more detail.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "profile/views/calltree_tables.h"

#define ROUNDS_MAX 64

/* Each node's largest share of any column, counting magnitudes: a parent's weight is never less
 * than its child's, so keeping the heaviest nodes never orphans one. */
static double *weigh(const struct calltree *tree)
{
    double *weights = memory_zalloc(tree->node_count, sizeof(*weights));
    _cleanup_free_ double *sums = memory_zalloc(tree->node_count, sizeof(*sums));
    for (unsigned type = 0; type < tree->type_count; type++) {
        for (int side = 0; side < CALLTREE_SIDES; side++) {
            const int64_t *self = tree->types[type].self[side];
            if (!self)
                continue;
            for (uint32_t node = 0; node < tree->node_count; node++)
                sums[node] = fabs((double)self[node]);
            for (uint32_t node = tree->node_count; node-- > 1;)
                sums[tree->nodes[node].parent] += sums[node];
            if (sums[0] <= 0)
                continue;
            for (uint32_t node = 0; node < tree->node_count; node++)
                weights[node] = fmax(weights[node], sums[node] / sums[0]);
        }
    }
    return weights;
}

struct weighed {
    double weight;
    uint32_t node;
};

/* The heaviest first; of equals the first, so that parents come before children. */
static int compare_weights(const void *a, const void *b)
{
    const struct weighed *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Brings the `count` heaviest to the front, in any order. Where pivots are always bad ones, what is
 * left is sorted. */
static void select_heaviest(struct weighed *list, size_t length, size_t count)
{
    size_t first = 0, end = length; /* where the border is */
    for (unsigned round = 0; end - first > 1; round++) {
        if (round == ROUNDS_MAX) {
            qsort(list + first, end - first, sizeof(*list), compare_weights);
            return;
        }
        struct weighed pivot = list[first + (end - first) / 2];
        size_t low = first, high = end - 1;
        for (;;) { /* no two are equal */
            while (compare_weights(&list[low], &pivot) < 0)
                low++;
            while (compare_weights(&list[high], &pivot) > 0)
                high--;
            if (low >= high)
                break;
            struct weighed swap = list[low];
            list[low] = list[high];
            list[high] = swap;
        }
        /* The pivot is at `low`, where it belongs. */
        if (low == count)
            return;
        if (low < count)
            first = low + 1;
        else
            end = low;
    }
}

/*
 * Marks the nodes to keep. A kept node that loses a child costs one more node, its "(other)", so
 * taking a node changes the size by one for itself, one more when it has children of its own, and
 * one less when it was its parent's last child outside. So there are never fewer than are kept, and
 * only as many as may be have to be in order.
 */
static bool *choose_nodes(const struct calltree *tree, uint32_t limit)
{
    _cleanup_free_ double *weights = weigh(tree);
    _cleanup_free_ struct weighed *sorted = memory_zalloc(tree->node_count, sizeof(*sorted));
    _cleanup_free_ uint32_t *outside = memory_zalloc(tree->node_count, sizeof(*outside));
    for (uint32_t node = 0; node < tree->node_count; node++) {
        sorted[node] = (struct weighed){.weight = weights[node], .node = node};
        if (node)
            outside[tree->nodes[node].parent]++;
    }
    size_t most = MIN(limit, tree->node_count);
    select_heaviest(sorted, tree->node_count, most);
    qsort(sorted, most, sizeof(*sorted), compare_weights);
    size_t size = 0, kept = 1;
    for (size_t i = 0; i < most; i++) {
        uint32_t node = sorted[i].node;
        size += 1 + (outside[node] > 0);
        if (node && !--outside[tree->nodes[node].parent])
            size--;
        if (size <= limit)
            kept = i + 1;
    }
    bool *keep = memory_zalloc(tree->node_count, sizeof(*keep));
    for (size_t i = 0; i < kept; i++)
        keep[sorted[i].node] = true;
    return keep;
}

void calltree_move_columns(struct calltree *tree, const uint32_t *moved, uint32_t old_count)
{
    for (unsigned type = 0; type < tree->type_count; type++) {
        for (int side = 0; side < CALLTREE_SIDES; side++) {
            int64_t *self = tree->types[type].self[side];
            if (!self)
                continue;
            int64_t *sums = memory_zalloc(tree->node_count, sizeof(*sums));
            for (uint32_t node = 0; node < old_count; node++)
                sums[moved[node]] = add_saturated(sums[moved[node]], self[node]);
            free(self);
            tree->types[type].self[side] = sums;
        }
    }
    tree->tables->column_length = tree->node_count;
    for (size_t i = 0; i < tree->followed_count; i++)
        tree->followed[i] = moved[tree->followed[i]];
}

uint32_t calltree_limit(struct calltree *tree, uint32_t limit)
{
    limit = MAX(limit, 2u);
    if (tree->node_count <= limit)
        return 0;
    _cleanup_free_ bool *keep = choose_nodes(tree, limit);
    uint32_t other = calltree_other(tree);
    uint32_t old_count = tree->node_count, folded = 0;
    _cleanup_free_ struct calltree_node *old = memory_zalloc(old_count, sizeof(*old));
    memcpy(old, tree->nodes, old_count * sizeof(*old));
    _cleanup_free_ uint32_t *moved = memory_zalloc(old_count, sizeof(*moved));
    calltree_clear_nodes(tree);
    for (uint32_t node = 1; node < old_count; node++) {
        uint32_t parent = old[node].parent;
        if (keep[node])
            moved[node] =
                calltree_child(tree, moved[parent], old[node].function, old[node].inlined);
        else if (keep[parent])
            moved[node] = calltree_child(tree, moved[parent], other, false);
        else
            moved[node] = moved[parent];
        folded += !keep[node];
    }
    calltree_move_columns(tree, moved, old_count);
    return folded;
}

int64_t calltree_folded(const struct calltree *tree, unsigned type, enum calltree_side side)
{
    const int64_t *self = tree->types[type].self[side];
    int64_t folded = 0;
    for (uint32_t node = 1; self && node < tree->node_count; node++)
        if (!strcmp(tree->functions[tree->nodes[node].function].name, CALLTREE_OTHER))
            folded = add_saturated(folded, magnitude(self[node]));
    return folded;
}

/* The node that the names lead to; 0 when none does. */
static uint32_t find_path(const struct calltree *tree, const char *const *names, size_t count)
{
    uint32_t at = 0;
    size_t found = 0;
    for (uint32_t node = 1; node < tree->node_count && found < count; node++)
        if (tree->nodes[node].parent == at &&
            !strcmp(tree->functions[tree->nodes[node].function].name, names[found])) {
            at = node;
            found++;
        }
    return found == count ? at : 0;
}

bool calltree_focus(struct calltree *tree, const char *const *names, size_t count)
{
    uint32_t top = find_path(tree, names, count), old_count = tree->node_count;
    if (!top)
        return false;
    _cleanup_free_ bool *inside = memory_zalloc(old_count, sizeof(*inside));
    _cleanup_free_ bool *above = memory_zalloc(old_count, sizeof(*above));
    _cleanup_free_ uint32_t *moved = memory_zalloc(old_count, sizeof(*moved));
    _cleanup_free_ struct calltree_node *old = memory_zalloc(old_count, sizeof(*old));
    memcpy(old, tree->nodes, old_count * sizeof(*old));
    for (uint32_t node = old[top].parent; node; node = old[node].parent)
        above[node] = true;
    calltree_clear_nodes(tree);
    for (uint32_t node = 1; node < old_count; node++) {
        inside[node] = node == top || inside[old[node].parent];
        if (inside[node] || above[node])
            moved[node] = calltree_child(tree, moved[old[node].parent], old[node].function,
                                         old[node].inlined);
    }
    for (unsigned type = 0; type < tree->type_count; type++)
        for (int side = 0; side < CALLTREE_SIDES; side++)
            for (uint32_t node = 0; tree->types[type].self[side] && node < old_count; node++)
                if (!inside[node])
                    tree->types[type].self[side][node] = 0;
    calltree_move_columns(tree, moved, old_count);
    return true;
}
