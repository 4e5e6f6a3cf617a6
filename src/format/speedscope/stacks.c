// SPDX-License-Identifier: Apache-2.0
// The tables of a speedscope file while it is read, and their way into the model once the whole
// file is known. See speedscope.h.

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "base/random.h"
#include "format/speedscope/speedscope.h"

void speedscope_init(struct speedscope *reader, struct source *source, struct profile *profile,
                     struct error *error)
{
    *reader = (struct speedscope){.profile = profile, .active_profile = UINT64_MAX};
    json_init(&reader->json, source, error);
    reader->seed = random_bits();
    array_reserve(reader->nodes, reader->node_capacity, 1);
    reader->nodes[reader->node_count++] = (struct profile_node){0};
}

void speedscope_release(struct speedscope *reader)
{
    json_release(&reader->json);
    id_table_release(&reader->node_index);
    free(reader->frames);
    id_table_release(&reader->stack_index);
    free(reader->nodes);
    free(reader->stacks);
    free(reader->rows);
    free(reader->row_of_node);
    free(reader->profiles);
}

bool speedscope_full(const struct speedscope *reader)
{
    return reader->node_count > PROFILE_IDS_MAX || reader->row_count > PROFILE_IDS_MAX ||
           reader->frame_count > PROFILE_IDS_MAX || profile_full(reader->profile);
}

uint32_t speedscope_child(struct speedscope *reader, uint32_t parent, uint32_t frame)
{
    uint64_t hash = hash_word(((uint64_t)parent << 32 | frame) ^ reader->seed);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&reader->node_index, &probe)) != ID_NONE)
        if (reader->nodes[id].parent == parent && reader->nodes[id].frame == frame)
            return id;
    array_reserve(reader->nodes, reader->node_capacity, reader->node_count + 1);
    id = (uint32_t)reader->node_count++;
    reader->nodes[id] = (struct profile_node){.parent = parent, .frame = frame};
    id_table_insert(&reader->node_index, hash, id);
    return id;
}

uint32_t speedscope_stack(struct speedscope *reader, const uint32_t *frames, size_t count)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(frames, count * sizeof(*frames), reader->seed);
    struct id_probe probe = id_probe_start(hash.high64);
    uint32_t id;
    while ((id = id_table_next(&reader->stack_index, &probe)) != ID_NONE) {
        const struct speedscope_stack *known = &reader->stacks[id];
        if (known->hash[0] == hash.low64 && known->hash[1] == hash.high64)
            return known->node;
    }
    uint32_t node = 0;
    for (size_t i = 0; i < count; i++)
        node = speedscope_child(reader, node, frames[i]);
    array_reserve(reader->stacks, reader->stack_capacity, reader->stack_count + 1);
    reader->stacks[reader->stack_count] =
        (struct speedscope_stack){.hash = {hash.low64, hash.high64}, .node = node};
    id_table_insert(&reader->stack_index, hash.high64, (uint32_t)reader->stack_count++);
    return node;
}

/* The node's row in the last profile, or a new one; with times, always a new one. */
static struct speedscope_row *row_of(struct speedscope *reader, uint32_t node)
{
    uint32_t profile = (uint32_t)reader->profile_count - 1;
    size_t known = reader->row_of_node_capacity;
    array_reserve(reader->row_of_node, reader->row_of_node_capacity, (size_t)node + 1);
    if (reader->row_of_node_capacity > known)
        memset(reader->row_of_node + known, 0xff,
               (reader->row_of_node_capacity - known) * sizeof(*reader->row_of_node));
    size_t *row = &reader->row_of_node[node];
    if (!(reader->profile->detail & PROFILE_TIMES) && *row < reader->row_count &&
        reader->rows[*row].profile == profile)
        return &reader->rows[*row];
    array_reserve(reader->rows, reader->row_capacity, reader->row_count + 1);
    *row = reader->row_count++;
    reader->rows[*row] = (struct speedscope_row){.node = node, .profile = profile};
    return &reader->rows[*row];
}

void speedscope_add(struct speedscope *reader, uint32_t node, speedscope_amount amount,
                    speedscope_amount at)
{
    if (!amount)
        return;
    struct speedscope_row *row = row_of(reader, node);
    row->amount = speedscope_sum(row->amount, amount);
    row->at = at;
}

/* ---- into the model ---- */

/* The file's stacks as nodes of the model. Parents come before children in both. */
static uint32_t *resolve_nodes(struct speedscope *reader)
{
    uint32_t *nodes = memory_zalloc(reader->node_count, sizeof(*nodes));
    for (size_t i = 1; i < reader->node_count; i++)
        nodes[i] = profile_child(reader->profile, nodes[reader->nodes[i].parent],
                                 reader->frames[reader->nodes[i].frame]);
    return nodes;
}

static bool is_ours(const struct speedscope *reader)
{
    return !strncmp(profile_text(reader->profile, reader->exporter), SPEEDSCOPE_EXPORTER,
                    strlen(SPEEDSCOPE_EXPORTER));
}

/* The sample type that a profile of the file becomes. */
static unsigned resolve_type(struct speedscope *reader, const struct speedscope_profile *info)
{
    struct profile *profile = reader->profile;
    const char *type = info->time ? "time" : info->bytes ? "space" : "samples";
    const char *unit = info->time ? "nanoseconds" : info->bytes ? "bytes" : "count";
    uint32_t name = is_ours(reader) && info->name ? info->name : profile_cstring(profile, type);
    return profile_type(profile, name, profile_cstring(profile, unit));
}

/* A label distinguishes threads and the like, when there are several. */
static uint32_t resolve_labels(struct speedscope *reader, const struct speedscope_profile *info)
{
    if (reader->profile_count < 2 || !info->name || is_ours(reader))
        return 0;
    struct profile_label label = {.key = profile_cstring(reader->profile, "profile"),
                                  .text = info->name};
    return profile_label_set(reader->profile, &label, 1);
}

static speedscope_amount power_of_ten(int power)
{
    speedscope_amount result = 1;
    while (power-- > 0)
        result *= 10;
    return result;
}

static int64_t clamp(speedscope_amount value)
{
    return value > INT64_MAX ? INT64_MAX : value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

/* Rounds to the nearest whole unit. The remainder is carried over to the next row, so that the sum
 * stays right however small the single weights are. */
static int64_t round_with_carry(speedscope_amount amount, speedscope_amount divisor,
                                speedscope_amount *carry)
{
    amount += *carry;
    speedscope_amount whole = amount / divisor, rest = amount % divisor;
    if (rest * 2 >= divisor)
        whole++;
    else if (rest * 2 <= -divisor)
        whole--;
    *carry = amount - whole * divisor;
    return clamp(whole);
}

static int resolve_rows(struct speedscope *reader, const uint32_t *nodes)
{
    struct profile *profile = reader->profile;
    const struct speedscope_profile *info = NULL;
    speedscope_amount carry = 0, divisor = 1;
    uint32_t current = UINT32_MAX, labels = 0;
    unsigned type = 0;
    bool ours = is_ours(reader);
    for (size_t i = 0; i < reader->row_count; i++) {
        const struct speedscope_row *row = &reader->rows[i];
        /* With nothing on the stack, speedscope means idle; we, a sample without a stack. */
        if (!row->node && !ours)
            continue;
        if (row->profile != current) { /* rows of one profile are neighbours */
            current = row->profile;
            info = &reader->profiles[current];
            labels = resolve_labels(reader, info);
            type = resolve_type(reader, info);
            if (type == PROFILE_TYPES_MAX)
                return error_set(reader->json.error, -E2BIG,
                                 "Together the profiles have more than %d sample types.",
                                 PROFILE_TYPES_MAX);
            divisor = power_of_ten(SPEEDSCOPE_DIGITS - info->power);
            carry = 0;
        }
        /* A time of 0 would mean an unknown time. */
        int64_t time_ns = info->time ? MAX(clamp((info->origin + row->at) / divisor), 1) : 0;
        int64_t value = round_with_carry(row->amount, divisor, &carry);
        if (!value)
            continue;
        size_t target = profile_sample(profile, nodes[row->node], labels, 0, (uint64_t)time_ns);
        profile_add_value(profile, target, type, value);
        if (profile_full(profile))
            return error_set(reader->json.error, -E2BIG,
                             "The file has more samples than a profile can hold.");
    }
    return 0;
}

static void note_source(struct speedscope *reader)
{
    struct profile *profile = reader->profile;
    int64_t duration_ns = 0;
    for (size_t i = 0; i < reader->profile_count; i++) {
        const struct speedscope_profile *info = &reader->profiles[i];
        if (info->time)
            duration_ns = MAX(
                duration_ns, clamp(info->duration / power_of_ten(SPEEDSCOPE_DIGITS - info->power)));
    }
    profile_note_source(profile, 0, duration_ns);
    if (reader->exporter && !is_ours(reader))
        profile_add_comment(profile, reader->exporter);
    if (reader->name)
        profile_add_comment(profile, reader->name);
    if (is_ours(reader) && !profile->default_type && reader->active_profile < reader->profile_count)
        profile->default_type = reader->profiles[reader->active_profile].name;
}

int speedscope_resolve(struct speedscope *reader)
{
    if (reader->node_count > 1 && reader->largest_frame >= reader->frame_count)
        return error_set(reader->json.error, -EBADMSG,
                         "The stack at offset %llu refers to frame %llu, but the file has %zu.",
                         (unsigned long long)reader->largest_offset,
                         (unsigned long long)reader->largest_frame, reader->frame_count);
    _cleanup_free_ uint32_t *nodes = resolve_nodes(reader);
    /* Types exist even when nothing was sampled. */
    for (size_t i = 0; i < MIN(reader->profile_count, (size_t)PROFILE_TYPES_MAX); i++)
        resolve_type(reader, &reader->profiles[i]);
    note_source(reader);
    return resolve_rows(reader, nodes);
}
