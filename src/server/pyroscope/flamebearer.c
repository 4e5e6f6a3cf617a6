// SPDX-License-Identifier: Apache-2.0
// Lays call trees out in rows of bars.

#include "server/pyroscope/flamebearer.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "io/wire.h"

void flamebearer_release(struct flamebearer *flame)
{
    for (size_t i = 0; i < flame->level_count; i++)
        free(flame->levels[i].values);
    free(flame->levels);
    free(flame->names);
    free(flame->name_of);
    *flame = (struct flamebearer){0};
}

static void put(struct flamebearer_level *level, int64_t value)
{
    array_reserve(level->values, level->capacity, level->count + 1);
    level->values[level->count++] = value;
}

/* A row of nodes, left to right, with where each begins on each side. */
struct row {
    uint32_t *nodes;
    int64_t *x[CALLTREE_SIDES];
    size_t count, capacity;
};

static void row_add(struct row *row, uint32_t node, int64_t left, int64_t right)
{
    if (row->count == row->capacity) {
        row->capacity = row->capacity ? row->capacity * 2 : 64;
        row->nodes = memory_resize(row->nodes, row->capacity, sizeof(*row->nodes));
        for (int i = 0; i < CALLTREE_SIDES; i++)
            row->x[i] = memory_resize(row->x[i], row->capacity, sizeof(*row->x[i]));
    }
    row->nodes[row->count] = node;
    row->x[0][row->count] = left;
    row->x[1][row->count++] = right;
}

static void row_release(struct row *row)
{
    free(row->nodes);
    free(row->x[0]);
    free(row->x[1]);
}

struct layout {
    struct flamebearer *flame;
    int64_t *totals[2], *selves[2]; /* left or only side first */
    uint32_t *first, *children;
    unsigned sides;
};

static bool is_other(const struct calltree *tree, uint32_t node)
{
    return node && !strcmp(tree->functions[tree->nodes[node].function].name, CALLTREE_OTHER);
}

/* By name, so that pictures of one service can be compared by eye; what was folded comes last. */
static void order_children(const struct calltree *tree, uint32_t **ret_first,
                           uint32_t **ret_children)
{
    _cleanup_free_ int64_t *order = memory_zalloc(tree->node_count, sizeof(*order));
    for (uint32_t node = 0; node < tree->node_count; node++)
        order[node] = is_other(tree, node) ? -1 : 0;
    calltree_children(tree, order, ret_first, ret_children);
}

/* Names are numbered as they are met: those of nodes that were folded away aren't sent. */
static int64_t name_index(struct flamebearer *flame, uint32_t function)
{
    if (!flame->name_of[function]) {
        flame->names[flame->name_count++] = function;
        flame->name_of[function] = flame->name_count;
    }
    return flame->name_of[function];
}

/* Writes one row's bars and collects the next row. */
static void lay_row(struct layout *layout, const struct row *row, struct row *next)
{
    struct flamebearer *flame = layout->flame;
    array_reserve(flame->levels, flame->level_capacity, flame->level_count + 1);
    struct flamebearer_level *level = &flame->levels[flame->level_count++];
    *level = (struct flamebearer_level){0};
    int64_t ends[2] = {0, 0};
    next->count = 0;
    for (size_t i = 0; i < row->count; i++) {
        uint32_t node = row->nodes[i];
        int64_t at[2] = {0, 0};
        for (unsigned side = 0; side < layout->sides; side++) {
            int64_t x = row->x[side][i], total = layout->totals[side][node];
            int64_t self = layout->selves[side][node];
            put(level, x - ends[side]);
            put(level, total);
            put(level, self);
            ends[side] = x + total;
            at[side] = x + self;
            flame->max_self = MAX(flame->max_self, self);
        }
        put(level, node ? name_index(flame, flame->tree->nodes[node].function) : 0);
        for (uint32_t k = layout->first[node]; k < layout->first[node + 1]; k++) {
            uint32_t child = layout->children[k];
            row_add(next, child, at[0], at[1]);
            for (unsigned side = 0; side < layout->sides; side++)
                at[side] = add_saturated(at[side], layout->totals[side][child]);
        }
    }
}

void flamebearer_init(struct flamebearer *flame, struct calltree *tree, int64_t nodes)
{
    *flame = (struct flamebearer){.tree = tree, .diff = tree->has_base};
    nodes = nodes <= 0 ? FLAMEBEARER_NODES : MIN(nodes, FLAMEBEARER_NODES_MAX);
    calltree_limit(tree, (uint32_t)MAX(nodes, 2));
    struct layout layout = {.flame = flame, .sides = flame->diff ? 2 : 1};
    if (!tree->type_count)
        return;
    enum calltree_side sides[] = {flame->diff ? CALLTREE_BASE : CALLTREE_NEW, CALLTREE_NEW};
    for (unsigned i = 0; i < layout.sides; i++) {
        layout.totals[i] = calltree_totals(tree, 0, sides[i]);
        layout.selves[i] = tree->types[0].self[sides[i]];
        flame->total = add_saturated(flame->total, layout.totals[i][0]);
    }
    order_children(tree, &layout.first, &layout.children);
    flame->names = memory_alloc((tree->function_count + 1) * sizeof(*flame->names));
    flame->name_of = memory_zalloc(tree->function_count + 1, sizeof(*flame->name_of));
    flame->left = layout.totals[0][0];
    flame->right = flame->diff ? layout.totals[1][0] : 0;
    struct row rows[2] = {0};
    row_add(&rows[0], 0, 0, 0);
    for (unsigned now = 0; rows[now].count; now = !now)
        lay_row(&layout, &rows[now], &rows[!now]);
    row_release(&rows[0]);
    row_release(&rows[1]);
    free(layout.totals[0]);
    free(layout.totals[1]);
    free(layout.first);
    free(layout.children);
}

static const char *shown_name(const struct calltree *tree, uint32_t function)
{
    const char *name = tree->functions[function].name;
    return strcmp(name, CALLTREE_OTHER) ? name : "other";
}

static const char *name_at(const struct flamebearer *flame, uint32_t index)
{
    return shown_name(flame->tree, flame->names[index]);
}

void flamebearer_write_wire(const struct flamebearer *flame, struct buffer *out)
{
    struct buffer packed = {0}, level = {0};
    wire_put_bytes(out, 1, "total", 5);
    for (uint32_t i = 0; i < flame->name_count; i++) {
        const char *name = name_at(flame, i);
        wire_put_bytes(out, 1, name, strlen(name));
    }
    for (size_t i = 0; i < flame->level_count; i++) {
        packed.length = level.length = 0;
        for (size_t k = 0; k < flame->levels[i].count; k++)
            wire_put_varint(&packed, (uint64_t)flame->levels[i].values[k]);
        wire_put_bytes(&level, 1, packed.data, packed.length);
        wire_put_bytes(out, 2, level.data, level.length);
    }
    wire_put_i64(out, 3, flame->total);
    wire_put_i64(out, 4, flame->max_self);
    if (flame->diff) {
        wire_put_i64(out, 5, flame->left);
        wire_put_i64(out, 6, flame->right);
    }
    buffer_release(&packed);
    buffer_release(&level);
}

static void write_names(const struct flamebearer *flame, struct json_writer *json)
{
    json_write_key(json, "names");
    json_write_array(json);
    json_write_text(json, "total");
    for (uint32_t i = 0; i < flame->name_count && buffer_pass(json->out); i++)
        json_write_text(json, name_at(flame, i));
    json_write_array_end(json);
}

/* Millions of numbers, so not one by one through the writer; each between quotes where 64-bit
 * integers are texts. */
static void write_values(const struct flamebearer_level *level, const char *quote,
                         struct json_writer *json)
{
    struct buffer *out = json_write_value(json);
    buffer_add_char(out, '[');
    for (size_t k = 0; k < level->count && buffer_pass(out); k++) {
        buffer_add_text(out, k ? "," : "");
        buffer_add_text(out, quote);
        buffer_add_i64(out, level->values[k]);
        buffer_add_text(out, quote);
    }
    buffer_add_char(out, ']');
}

static void put_i64(struct json_writer *json, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    json_member_text(json, key, text);
}

void flamebearer_write_json(const struct flamebearer *flame, struct json_writer *json)
{
    json_write_object(json);
    write_names(flame, json);
    json_write_key(json, "levels");
    json_write_array(json);
    for (size_t i = 0; i < flame->level_count; i++) {
        json_write_object(json);
        json_write_key(json, "values");
        write_values(&flame->levels[i], "\"", json);
        json_write_object_end(json);
    }
    json_write_array_end(json);
    put_i64(json, "total", flame->total);
    put_i64(json, "maxSelf", flame->max_self);
    if (flame->diff) {
        put_i64(json, "leftTicks", flame->left);
        put_i64(json, "rightTicks", flame->right);
    }
    json_write_object_end(json);
}

void flamebearer_write_render(const struct flamebearer *flame, struct json_writer *json)
{
    json_write_key(json, "flamebearer");
    json_write_object(json);
    write_names(flame, json);
    json_write_key(json, "levels");
    json_write_array(json);
    for (size_t i = 0; i < flame->level_count; i++)
        write_values(&flame->levels[i], "", json);
    json_write_array_end(json);
    json_member_signed(json, "numTicks", flame->total);
    json_member_signed(json, "maxSelf", flame->max_self);
    json_write_object_end(json);
}

void flamebearer_write_ticks(const struct flamebearer *flame, struct json_writer *json)
{
    json_member_signed(json, "leftTicks", flame->left);
    json_member_signed(json, "rightTicks", flame->right);
}

static void write_node(const char *name, int64_t self, uint32_t children, struct buffer *out)
{
    wire_put_varint(out, strlen(name));
    buffer_add_text(out, name);
    wire_put_varint(out, (uint64_t)MAX(self, 0));
    wire_put_varint(out, children);
}

void flamebearer_write_tree(const struct calltree *tree, struct buffer *out)
{
    uint32_t *first, *children, count = 0;
    if (!tree->type_count || tree->node_count < 2)
        return;
    order_children(tree, &first, &children);
    _cleanup_free_ uint32_t *stack = memory_alloc(tree->node_count * sizeof(*stack));
    stack[count++] = 0;
    while (count) {
        uint32_t node = stack[--count];
        write_node(node ? shown_name(tree, tree->nodes[node].function) : "",
                   node ? tree->types[0].self[CALLTREE_NEW][node] : 0,
                   first[node + 1] - first[node], out);
        for (uint32_t k = first[node]; k < first[node + 1]; k++)
            stack[count++] = children[k];
    }
    free(first);
    free(children);
}
