// SPDX-License-Identifier: Apache-2.0
// The responsible functions: see cause.h. Each stack is the set of the functions among the
// candidates that it has, so that what any two of them have in common is a sum over few sets.

#include "server/watch/cause.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

/* A change that is within another function for so much of it belongs to that one. */
#define EXPLAINED 0.8
/* A caller that grew by less than so many times what its callee did is only diluted by it. */
#define DILUTED 0.5

struct set_sum {
    uint64_t set;
    double change; /* new - base of the stacks with exactly this set */
};

struct causes {
    const struct compare_row **grown;
    size_t count;
    struct set_sum *sums;
    size_t sum_count, sum_capacity;
    double depth[CAUSE_CANDIDATES_MAX], depth_weight[CAUSE_CANDIDATES_MAX];
};

static uint64_t bit(size_t candidate)
{
    return 1ull << candidate;
}

/* The candidate that each name is, as a bit; 0: none. */
static uint64_t *bits_of_names(const struct causes *causes, const struct naming *naming)
{
    uint64_t *bits = memory_zalloc(naming->count + 1ul, sizeof(*bits));
    for (uint32_t i = 0; i < naming->count; i++)
        for (size_t k = 0; k < causes->count; k++) {
            const struct compare_function *function = causes->grown[k]->function;
            if (function->length == naming->entries[i].length &&
                !memcmp(function->name, naming->entries[i].name, function->length))
                bits[i] = bit(k);
        }
    return bits;
}

static void add_change(struct causes *causes, uint64_t set, double change)
{
    array_reserve(causes->sums, causes->sum_capacity, causes->sum_count + 1);
    causes->sums[causes->sum_count++] = (struct set_sum){set, change};
}

static int by_set(const void *a, const void *b)
{
    const struct set_sum *x = a, *y = b;
    return x->set < y->set ? -1 : x->set > y->set;
}

/* Sums by set over the nodes: the rows of one node are added up first, and nodes sorted by set. */
static void add_side(struct causes *causes, const struct cause_side *side, double sign)
{
    const struct profile *profile = side->profile;
    uint32_t nodes = profile->node_count;
    _cleanup_free_ uint64_t *bits = bits_of_names(causes, side->naming);
    _cleanup_free_ struct set_sum *of_node = memory_zalloc(nodes + 1ul, sizeof(*of_node));
    _cleanup_free_ uint32_t *depth = memory_zalloc(nodes + 1ul, sizeof(*depth));
    _cleanup_free_ double *total = memory_zalloc(nodes + 1ul, sizeof(*total));
    for (size_t row = 0; row < profile->samples.count; row++)
        of_node[profile->samples.node[row]].change +=
            sign * (double)profile->samples.values[0][row] / side->exposure;
    for (uint32_t node = 0; node < nodes; node++)
        total[node] = fabs(of_node[node].change);
    for (uint32_t node = nodes; node-- > 1;)
        total[profile->nodes[node].parent] += total[node];
    for (uint32_t node = 1; node < nodes; node++) {
        uint32_t parent = profile->nodes[node].parent;
        uint32_t entry = side->naming->of_frame[profile->nodes[node].frame];
        uint64_t own = entry == NAMING_NONE ? 0 : bits[entry];
        depth[node] = depth[parent] + 1;
        of_node[node].set = of_node[parent].set | own;
        if (own & ~of_node[parent].set) {
            size_t k = (size_t)__builtin_ctzll(own);
            causes->depth[k] += depth[node] * total[node];
            causes->depth_weight[k] += total[node];
        }
    }
    if (nodes)
        qsort(of_node, nodes, sizeof(*of_node), by_set);
    double change = 0;
    for (uint32_t node = 0; node < nodes; node++) {
        change += of_node[node].change;
        if (node + 1 < nodes && of_node[node + 1].set == of_node[node].set)
            continue;
        if (of_node[node].set)
            add_change(causes, of_node[node].set, change);
        change = 0;
    }
}

/* The change of the stacks that have all of `with` and none of `without`. */
static double change_of(const struct causes *causes, uint64_t with, uint64_t without)
{
    double change = 0;
    for (size_t i = 0; i < causes->sum_count; i++)
        if ((causes->sums[i].set & with) == with && !(causes->sums[i].set & without))
            change += causes->sums[i].change;
    return change;
}

/* Whether `a` is rather called than calling, in comparison with `b`. */
static bool is_below(const struct causes *causes, size_t a, size_t b)
{
    double own = causes->depth_weight[a] > 0 ? causes->depth[a] / causes->depth_weight[a] : 0;
    double other = causes->depth_weight[b] > 0 ? causes->depth[b] / causes->depth_weight[b] : 0;
    return own > other || (own == other && a > b);
}

/* The functions below `a` that account for its growth: those that have nearly all of it, and those
 * that grew much faster. */
static uint64_t accountable(const struct causes *causes, size_t a)
{
    double own = change_of(causes, bit(a), 0);
    double growth = causes->grown[a]->total.growth;
    uint64_t found = 0;
    for (size_t b = 0; b < causes->count; b++) {
        if (b == a || !is_below(causes, b, a))
            continue;
        bool most = change_of(causes, bit(a) | bit(b), 0) >= EXPLAINED * own;
        if (most || growth < DILUTED * causes->grown[b]->total.growth)
            found |= bit(b);
    }
    return found;
}

/* Drops callers whose growth is that of functions below them. */
static uint64_t without_callers(const struct causes *causes)
{
    uint64_t kept = 0;
    for (size_t a = 0; a < causes->count; a++) {
        double own = change_of(causes, bit(a), 0);
        double left = change_of(causes, bit(a), accountable(causes, a));
        if (own > 0 && left >= (1 - EXPLAINED) * own)
            kept |= bit(a);
    }
    return kept;
}

/* Drops callees whose growth is within a function that was kept. */
static uint64_t without_callees(const struct causes *causes, uint64_t kept)
{
    uint64_t result = kept;
    for (size_t b = 0; b < causes->count; b++)
        for (size_t a = 0; a < causes->count; a++)
            if (a != b && (kept & bit(a)) && (kept & bit(b)) && is_below(causes, b, a) &&
                change_of(causes, bit(a) | bit(b), 0) >= EXPLAINED * change_of(causes, bit(b), 0))
                result &= ~bit(b);
    return result;
}

/* Drops what is known already, and what is the same cause under another name. */
static uint64_t without_known(const struct causes *causes, uint64_t kept, const bool *known)
{
    for (size_t k = 0; k < causes->count; k++) {
        if (!known[k])
            continue;
        kept &= ~bit(k);
        for (size_t a = 0; a < causes->count; a++) {
            double smaller = fmin(change_of(causes, bit(a), 0), change_of(causes, bit(k), 0));
            if (change_of(causes, bit(a) | bit(k), 0) >= EXPLAINED * smaller)
                kept &= ~bit(a);
        }
    }
    return kept;
}

size_t causes_keep(const struct cause_side sides[static COMPARE_SIDES],
                   const struct compare_row **grown, const bool *known, size_t count)
{
    struct causes causes = {.grown = grown, .count = MIN(count, (size_t)CAUSE_CANDIDATES_MAX)};
    add_side(&causes, &sides[COMPARE_BASE], -1);
    add_side(&causes, &sides[COMPARE_NEW], 1);
    uint64_t kept = without_callees(&causes, without_callers(&causes));
    kept = without_known(&causes, kept, known);
    free(causes.sums);
    size_t to = 0;
    for (size_t i = 0; i < causes.count; i++)
        if (kept & bit(i))
            grown[to++] = grown[i];
    return to;
}
