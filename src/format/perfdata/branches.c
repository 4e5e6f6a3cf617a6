// SPDX-License-Identifier: Apache-2.0
// Branch stacks of samples (`perf record -b`): between two branches the code ran straight on, so
// each sample says how often a dozen pieces of code were executed, and who called whom. Both are
// added up while reading and become samples of their own at the end. See docs/formats/perf-data.md.

#include <stdlib.h>

#include "base/memory.h"
#include "format/perfdata/perfdata.h"

#define PAIRS_MAX (1u << 22)     /* of each kind */
#define STRAIGHT_MAX (64u << 10) /* bytes: longer runs are gaps in the branch stack */
#define ADDRESSES_MAX (1u << 20)

/* In the flags of an entry: what became of a branch that was taken on speculation. */
#define SPECULATION_SHIFT 24
#define SPECULATION_MASK 3
#define SPECULATION_WRONG_PATH 1

bool perf_wants_branches(const struct perf_data *data)
{
    /* They are for who counts instructions by lines: the others would only see more addresses. */
    enum profile_detail wanted = PROFILE_LINES | PROFILE_ADDRESSES;
    return (data->profile->detail & wanted) == wanted;
}

static void count_pair(struct perf_data *data, struct perf_pairs *pairs, struct perf_pair pair)
{
    uint64_t hash = hash_word(pair.from ^ data->seed) ^ hash_word(pair.to + pair.from_mapping) ^
                    hash_word(pair.to_mapping + 1);
    struct id_probe probe = id_probe_start(hash);
    uint32_t found;
    while ((found = id_table_next(&pairs->index, &probe)) != ID_NONE) {
        struct perf_pair *known = &pairs->items[found];
        if (known->from == pair.from && known->to == pair.to &&
            known->from_mapping == pair.from_mapping && known->to_mapping == pair.to_mapping) {
            known->count++;
            return;
        }
    }
    if (pairs->count >= PAIRS_MAX) {
        data->lost_branches++;
        return;
    }
    array_reserve(pairs->items, pairs->capacity, pairs->count + 1);
    id_table_insert(&pairs->index, hash, (uint32_t)pairs->count);
    pair.count = 1;
    pairs->items[pairs->count++] = pair;
}

/* A user address as a mapping of the profile and an offset; false for kernels' and JITs'. */
static bool place_of(struct perf_data *data, const struct perf_process *process, uint64_t address,
                     uint32_t *ret_mapping, uint64_t *ret_offset)
{
    struct perf_mapping *mapping = perf_process_find(process, address);
    if (!mapping || data->files[mapping->file].generated)
        return false;
    *ret_mapping = perf_file_mapping(data, mapping);
    *ret_offset = address - mapping->start + mapping->offset;
    return true;
}

void perf_take_branches(struct perf_data *data, const struct perf_sample *sample)
{
    struct perf_process *process = perf_process(data, sample->pid);
    uint64_t entry_bytes = sample->branch_bytes, later_from = 0;
    uint32_t later_mapping = 0;
    bool has_later = false;
    /* The latest branch comes first. */
    for (uint64_t i = 0; i < sample->branch_count; i++) {
        const uint8_t *entry = sample->branches + i * entry_bytes;
        if ((perf_load_u64(entry + 16) >> SPECULATION_SHIFT & SPECULATION_MASK) ==
            SPECULATION_WRONG_PATH)
            continue; /* it was taken back: the program never came there */
        struct perf_pair branch = {0};
        bool from_known =
            place_of(data, process, perf_load_u64(entry), &branch.from_mapping, &branch.from);
        bool to_known =
            place_of(data, process, perf_load_u64(entry + 8), &branch.to_mapping, &branch.to);
        if (from_known && to_known)
            count_pair(data, &data->branches, branch);
        if (to_known && has_later && branch.to_mapping == later_mapping &&
            later_from >= branch.to && later_from - branch.to <= STRAIGHT_MAX)
            count_pair(data, &data->ranges,
                       (struct perf_pair){.from = branch.to,
                                          .to = later_from,
                                          .from_mapping = later_mapping,
                                          .to_mapping = later_mapping});
        later_from = branch.from;
        later_mapping = branch.from_mapping;
        has_later = from_known;
    }
}

/* ---- samples of them ---- */

struct edge { /* where a number of ranges begin or end */
    uint32_t mapping;
    uint64_t address;
    int64_t change;
};

static int compare_edges(const void *left, const void *right)
{
    const struct edge *a = left, *b = right;
    if (a->mapping != b->mapping)
        return a->mapping < b->mapping ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

static uint32_t frame_at(struct perf_data *data, uint32_t mapping, uint64_t address)
{
    return profile_frame(
        data->profile,
        &(struct profile_frame){.address = address, .mapping = mapping, .kind = FRAME_NATIVE});
}

static void add_value(struct perf_data *data, const uint32_t *frames, size_t count, unsigned type,
                      int64_t value)
{
    uint32_t node = profile_stack(data->profile, frames, count);
    profile_add_value(data->profile, profile_sample(data->profile, node, 0, 0, 0), type, value);
}

/* How often each address was executed. Which of them begin an instruction is not known here; those
 * in between have the same line. */
static void add_executions(struct perf_data *data, unsigned type)
{
    const struct perf_pairs *ranges = &data->ranges;
    _cleanup_free_ struct edge *edges = memory_zalloc(2 * ranges->count + 1, sizeof(*edges));
    for (size_t i = 0; i < ranges->count; i++) {
        const struct perf_pair *range = &ranges->items[i];
        edges[2 * i] = (struct edge){range->from_mapping, range->from, (int64_t)range->count};
        edges[2 * i + 1] =
            (struct edge){range->from_mapping, range->to + 1, -(int64_t)range->count};
    }
    qsort(edges, 2 * ranges->count, sizeof(*edges), compare_edges);
    int64_t now = 0;
    size_t added = 0;
    for (size_t i = 0; i < 2 * ranges->count; i++) {
        now += edges[i].change;
        if (now <= 0 || i + 1 == 2 * ranges->count)
            continue;
        for (uint64_t at = edges[i].address; at < edges[i + 1].address; at++) {
            if (added++ >= ADDRESSES_MAX || profile_full(data->profile)) {
                data->lost_branches++;
                break;
            }
            uint32_t frame = frame_at(data, edges[i].mapping, at);
            add_value(data, &frame, 1, type, now);
        }
    }
}

int perf_add_branches(struct perf_data *data)
{
    struct profile *profile = data->profile;
    if (!data->branches.count && !data->ranges.count)
        return 0;
    uint32_t count = profile_cstring(profile, "count");
    unsigned executions = profile_type(profile, profile_cstring(profile, PERF_EXECUTIONS), count);
    unsigned branches = profile_type(profile, profile_cstring(profile, PERF_BRANCHES), count);
    if (executions == PROFILE_TYPES_MAX || branches == PROFILE_TYPES_MAX)
        return error_set(data->error, -E2BIG,
                         "Together the profiles have more than %d sample types.",
                         PROFILE_TYPES_MAX);
    add_executions(data, executions);
    for (size_t i = 0; i < data->branches.count; i++) {
        const struct perf_pair *branch = &data->branches.items[i];
        uint32_t frames[2] = {frame_at(data, branch->from_mapping, branch->from),
                              frame_at(data, branch->to_mapping, branch->to)};
        add_value(data, frames, 2, branches, (int64_t)branch->count);
    }
    return profile_full(profile)
               ? error_set(data->error, -E2BIG, "There are more stacks than a profile can hold.")
               : 0;
}

static void release_pairs(struct perf_pairs *pairs)
{
    free(pairs->items);
    id_table_release(&pairs->index);
}

void perf_branches_release(struct perf_data *data)
{
    release_pairs(&data->branches);
    release_pairs(&data->ranges);
}
