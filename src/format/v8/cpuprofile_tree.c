// SPDX-License-Identifier: Apache-2.0
// From the nodes, samples and times of a .cpuprofile to samples of the model. See cpuprofile.h.

#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "format/v8/cpuprofile.h"

void cpuprofile_init(struct cpuprofile *file, struct source *source, struct profile *profile,
                     struct error *error)
{
    *file = (struct cpuprofile){.profile = profile};
    json_init(&file->json, source, error);
    file->seed = random_bits();
}

void cpuprofile_release(struct cpuprofile *file)
{
    json_release(&file->json);
    id_table_release(&file->node_index);
    free(file->nodes);
    free(file->edges);
    free(file->samples);
    free(file->times_ns);
}

/* ---- the tree ---- */

/* Index of the node with that id, or CPUPROFILE_NONE. */
static uint32_t find_node(const struct cpuprofile *file, uint32_t id)
{
    struct id_probe probe = id_probe_start(hash_word(id ^ file->seed));
    uint32_t index;
    while ((index = id_table_next(&file->node_index, &probe)) != ID_NONE)
        if (file->nodes[index].id == id)
            return index;
    return CPUPROFILE_NONE;
}

int cpuprofile_add_node(struct cpuprofile *file, const struct cpuprofile_node *node,
                        uint32_t *ret_index)
{
    if (file->node_count >= PROFILE_IDS_MAX || profile_full(file->profile))
        return error_set(file->json.error, -E2BIG,
                         "The file has more nodes than a profile can hold.");
    if (node->id != CPUPROFILE_NONE && find_node(file, node->id) != CPUPROFILE_NONE)
        return json_fail(&file->json, "A second node with the id %u ends", node->id);
    array_reserve(file->nodes, file->node_capacity, file->node_count + 1);
    uint32_t index = (uint32_t)file->node_count++;
    file->nodes[index] = *node;
    if (node->id != CPUPROFILE_NONE)
        id_table_insert(&file->node_index, hash_word(node->id ^ file->seed), index);
    if (ret_index)
        *ret_index = index;
    return 0;
}

static int resolve_edges(struct cpuprofile *file)
{
    for (size_t i = 0; i < file->edge_count; i++) {
        uint32_t parent = find_node(file, file->edges[i].parent);
        uint32_t child = find_node(file, file->edges[i].child);
        if (file->partial && (parent == CPUPROFILE_NONE || child == CPUPROFILE_NONE))
            continue;
        if (parent == CPUPROFILE_NONE || child == CPUPROFILE_NONE)
            return error_set(
                file->json.error, -EBADMSG,
                "Node %u should be the parent of node %u, but the file has no node %u.",
                file->edges[i].parent, file->edges[i].child,
                parent == CPUPROFILE_NONE ? file->edges[i].parent : file->edges[i].child);
        uint32_t *known = &file->nodes[child].parent;
        if (*known != CPUPROFILE_NONE && *known != parent)
            return error_set(file->json.error, -EBADMSG,
                             "Node %u has two parents, nodes %u and %u.", file->edges[i].child,
                             file->nodes[*known].id, file->edges[i].parent);
        *known = parent;
    }
    return 0;
}

/* States of a node whose stack isn't known yet. */
#define STACK_UNKNOWN UINT32_MAX
#define STACK_VISITED (UINT32_MAX - 1)

/* Climbs from each node to the nearest ancestor that has a stack. V8's "(root)" at the bottom of
 * all stacks carries no information and is left out. */
int cpuprofile_resolve_stacks(struct cpuprofile *file)
{
    struct cpuprofile_node *nodes = file->nodes;
    _cleanup_free_ uint32_t *path = memory_zalloc(file->node_count, sizeof(*path));
    for (size_t i = 0; i < file->node_count; i++)
        nodes[i].stack = STACK_UNKNOWN;
    for (size_t i = 0; i < file->node_count; i++) {
        size_t depth = 0;
        uint32_t at = (uint32_t)i;
        for (; at != CPUPROFILE_NONE && nodes[at].stack == STACK_UNKNOWN; at = nodes[at].parent) {
            nodes[at].stack = STACK_VISITED;
            path[depth++] = at;
        }
        if (at != CPUPROFILE_NONE && nodes[at].stack == STACK_VISITED)
            return error_set(file->json.error, -EBADMSG, "Node %u is among its own ancestors.",
                             nodes[at].id);
        uint32_t stack = at == CPUPROFILE_NONE ? 0 : nodes[at].stack;
        while (depth) {
            struct cpuprofile_node *node = &nodes[path[--depth]];
            if (!node->root || node->parent != CPUPROFILE_NONE)
                stack = profile_child(file->profile, stack, node->frame);
            node->stack = stack;
        }
    }
    return 0;
}

/* ---- time ---- */

static int64_t add_clamped(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

/* later - earlier, which isn't negative. */
static int64_t elapsed(int64_t earlier, int64_t later)
{
    int64_t difference;
    if (later <= earlier)
        return 0;
    return __builtin_sub_overflow(later, earlier, &difference) ? INT64_MAX : difference;
}

/* part / whole of the duration, without losing digits on the way. */
static int64_t share(int64_t duration_ns, uint64_t part, uint64_t whole)
{
    return (int64_t)((unsigned __int128)duration_ns * part / whole);
}

/* Makes times_ns the time at which each sample was taken. */
static int resolve_times(struct cpuprofile *file, int64_t start_ns, int64_t duration_ns)
{
    if (!file->time_count) {
        /* A file without times: evenly spread. */
        array_reserve(file->times_ns, file->time_capacity, file->sample_count);
        for (size_t i = 0; i < file->sample_count; i++)
            file->times_ns[i] = add_clamped(start_ns, share(duration_ns, i, file->sample_count));
        return 0;
    }
    if (file->time_count < file->sample_count)
        return error_set(file->json.error, -EBADMSG,
                         "The file has %zu samples but times for only %zu of them.",
                         file->sample_count, file->time_count);
    int64_t now = start_ns;
    for (size_t i = 0; i < file->time_count && !file->absolute; i++)
        file->times_ns[i] = now = add_clamped(now, file->times_ns[i]);
    return 0;
}

static int compare_times(const void *a, const void *b, void *context)
{
    const int64_t *times_ns = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (times_ns[x] != times_ns[y])
        return times_ns[x] < times_ns[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* The samples in the order of time, or NULL when they are: V8 writes some out of order, with a
 * negative time since the one before. */
static uint32_t *time_order(const struct cpuprofile *file)
{
    bool ordered = true;
    for (size_t i = 1; i < file->sample_count && ordered; i++)
        ordered = file->times_ns[i - 1] <= file->times_ns[i];
    if (ordered)
        return NULL;
    uint32_t *order = memory_zalloc(file->sample_count, sizeof(*order));
    for (size_t i = 0; i < file->sample_count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, file->sample_count, sizeof(*order), compare_times, file->times_ns);
    return order;
}

/* ---- samples ---- */

struct value_types {
    unsigned count;
    unsigned wall;
};

/* A sample stands for the time until the next; the last, until the end of the recording. */
static int add_samples(struct cpuprofile *file, const struct value_types *types, int64_t end_ns)
{
    struct profile *profile = file->profile;
    _cleanup_free_ uint32_t *order = time_order(file);
    for (size_t i = 0; i < file->sample_count; i++) {
        size_t sample = order ? order[i] : i;
        size_t next = i + 1 < file->sample_count && order ? order[i + 1] : i + 1;
        int64_t now_ns = file->times_ns[sample];
        int64_t until_ns = i + 1 < file->sample_count ? file->times_ns[next] : end_ns;
        uint32_t node = find_node(file, file->samples[sample]);
        if (node == CPUPROFILE_NONE && file->partial) {
            file->missing++;
            continue;
        }
        if (node == CPUPROFILE_NONE)
            return error_set(file->json.error, -EBADMSG,
                             "Sample %zu refers to node %u, which the file doesn't have.", sample,
                             file->samples[sample]);
        /* A time of 0 would mean an unknown time. */
        size_t row =
            profile_sample(profile, file->nodes[node].stack, 0, 0, (uint64_t)MAX(now_ns, 1));
        profile_add_value(profile, row, types->count, 1);
        profile_add_value(profile, row, types->wall, elapsed(now_ns, until_ns));
        if (profile_full(profile))
            return error_set(file->json.error, -E2BIG,
                             "The file has more samples than a profile can hold.");
    }
    return 0;
}

/* A file without samples has how often each node was hit. */
static void add_hits(struct cpuprofile *file, const struct value_types *types, int64_t duration_ns)
{
    struct profile *profile = file->profile;
    uint64_t total = 0, before = 0;
    for (size_t i = 0; i < file->node_count; i++)
        if (__builtin_add_overflow(total, file->nodes[i].hits, &total))
            total = UINT64_MAX;
    for (size_t i = 0; i < file->node_count; i++) {
        uint64_t hits = MIN(file->nodes[i].hits, total - before);
        if (!hits)
            continue;
        size_t row = profile_sample(profile, file->nodes[i].stack, 0, 0, 0);
        profile_add_value(profile, row, types->count, (int64_t)MIN(hits, (uint64_t)INT64_MAX));
        profile_add_value(profile, row, types->wall,
                          share(duration_ns, before + hits, total) -
                              share(duration_ns, before, total));
        before += hits;
    }
}

static bool add_types(struct profile *profile, struct value_types *types)
{
    uint32_t wall = profile_cstring(profile, "wall");
    types->count = profile_type(profile, profile_cstring(profile, "samples"),
                                profile_cstring(profile, "count"));
    types->wall = profile_type(profile, wall, profile_cstring(profile, "nanoseconds"));
    if (!profile->default_type)
        profile->default_type = wall;
    return types->count < PROFILE_TYPES_MAX && types->wall < PROFILE_TYPES_MAX;
}

int cpuprofile_resolve(struct cpuprofile *file)
{
    struct value_types types;
    int power = file->nested ? 9 : 3;
    int64_t start_ns = file->has_start ? json_number_scaled(&file->start, power) : 0;
    int64_t end_ns = file->has_end ? json_number_scaled(&file->end, power) : start_ns;
    int64_t duration_ns = elapsed(start_ns, end_ns);
    if (!add_types(file->profile, &types))
        return error_set(file->json.error, -E2BIG,
                         "Together the profiles have more than %d sample types.",
                         PROFILE_TYPES_MAX);
    int r = resolve_edges(file);
    if (r >= 0)
        r = cpuprofile_resolve_stacks(file);
    if (r >= 0)
        r = resolve_times(file, start_ns, duration_ns);
    if (r < 0)
        return r;
    /* Old files know their end to the second, but have one time more than samples. */
    if (file->time_count > file->sample_count) {
        end_ns = file->times_ns[file->sample_count];
        duration_ns = MAX(duration_ns, elapsed(file->times_ns[0], end_ns));
    }
    /* When it was is not known: the clock starts with the machine, not with the epoch. */
    profile_note_source(file->profile, 0, duration_ns);
    if (file->sample_count)
        return add_samples(file, &types, end_ns);
    add_hits(file, &types, duration_ns);
    return 0;
}
