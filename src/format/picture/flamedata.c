// SPDX-License-Identifier: Apache-2.0
// Writes the document that the flame-graph page draws: see docs/formats/flame-data.md.

#include "format/picture/flamedata.h"

#include <math.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "format/picture/times.h"
#include "io/json_write.h"
#include "profile/units.h"
#include "profile/views/functions.h"

/* Every string once. Texts that lie in the same place are known without looking at them: any number
 * of functions may share one long file name. */
struct string_list {
    struct id_table by_content, by_place; /* ids of `texts` */
    struct {
        const char *data;
        size_t length;
        uint32_t number; /* of the equal text that came first */
    } * texts;
    size_t count, capacity;
    uint32_t distinct;
};

/* The text's number, given in the order of first sight. `length` SIZE_MAX: up to its NUL. */
static uint32_t string_number(struct string_list *list, const char *data, size_t length)
{
    uint64_t place = hash_word((uintptr_t)data);
    struct id_probe probe = id_probe_start(place);
    uint32_t id;
    while ((id = id_table_next(&list->by_place, &probe)) != ID_NONE)
        if (list->texts[id].data == data)
            return list->texts[id].number;
    array_reserve(list->texts, list->capacity, list->count + 1);
    uint32_t added = (uint32_t)list->count++;
    list->texts[added].data = data;
    list->texts[added].length = length = length == SIZE_MAX ? strlen(data) : length;
    id_table_insert(&list->by_place, place, added);

    uint64_t hash = XXH3_64bits(data, length);
    probe = id_probe_start(hash);
    while ((id = id_table_next(&list->by_content, &probe)) != ID_NONE)
        if (list->texts[id].length == length && !memcmp(list->texts[id].data, data, length))
            return list->texts[added].number = list->texts[id].number;
    id_table_insert(&list->by_content, hash, added);
    return list->texts[added].number = list->distinct++;
}

/* A member of the document, on a line of its own. */
static void begin_member(struct json_writer *json, const char *key)
{
    json_write_line(json);
    json_write_key(json, key);
}

static void write_column(struct json_writer *json, const char *key, const uint32_t *values,
                         size_t count)
{
    json_write_key(json, key);
    json_write_array(json);
    for (size_t i = 0; i < count && buffer_pass(json->out); i++)
        json_write_unsigned(json, values[i]);
    json_write_array_end(json);
}

static void write_strings(struct json_writer *json, const struct string_list *strings)
{
    begin_member(json, "strings");
    json_write_array(json);
    for (size_t i = 0, next = 0; i < strings->count && buffer_pass(json->out); i++) {
        if (strings->texts[i].number != next)
            continue; /* equal to one that is written already */
        next++;
        json_write_bytes(json, strings->texts[i].data, strings->texts[i].length);
    }
    json_write_array_end(json);
}

static bool has_value(const struct flame_table *table, uint32_t function)
{
    for (unsigned type = 0; type < PROFILE_TYPES_MAX; type++)
        for (int side = 0; side < CALLTREE_SIDES; side++)
            if (table->cumulative[type][side] && table->cumulative[type][side][function])
                return true;
    return false;
}

/* The functions that nodes still have, renumbered in the order of their nodes, and then those that
 * only the table has. */
static uint32_t *write_functions(struct json_writer *json, const struct calltree *tree,
                                 const struct flame_table *table, uint32_t *ret_count)
{
    uint32_t *number = memory_zalloc(tree->function_count + 1u, sizeof(*number));
    memset(number, 0xff, tree->function_count * sizeof(*number));
    uint32_t *columns[3];
    for (int i = 0; i < 3; i++)
        columns[i] = memory_zalloc(tree->function_count + 1u, sizeof(*columns[i]));
    struct string_list strings = {0};
    string_number(&strings, "", 0);
    uint32_t count = 0;
    uint32_t listed = table ? table->function_count : 0;
    for (uint32_t i = 1; i < tree->node_count + listed; i++) {
        uint32_t id = i < tree->node_count ? tree->nodes[i].function : i - tree->node_count;
        if (number[id] != UINT32_MAX || (i >= tree->node_count && !has_value(table, id)))
            continue;
        const struct calltree_function *function = &tree->functions[id];
        columns[0][count] = string_number(&strings, function->name, function->length);
        columns[1][count] = string_number(&strings, function->file, SIZE_MAX);
        columns[2][count] = string_number(&strings, function->binary, SIZE_MAX);
        number[id] = count++;
    }
    *ret_count = count;
    write_strings(json, &strings);
    begin_member(json, "functions");
    json_write_object(json);
    static const char *const keys[3] = {"name", "file", "binary"};
    for (int i = 0; i < 3; i++) {
        write_column(json, keys[i], columns[i], count);
        free(columns[i]);
    }
    json_write_object_end(json);
    free(strings.texts);
    id_table_release(&strings.by_content);
    id_table_release(&strings.by_place);
    return number;
}

static void write_nodes(struct json_writer *json, const struct calltree *tree,
                        const uint32_t *functions)
{
    _cleanup_free_ uint32_t *column = memory_zalloc(tree->node_count, sizeof(*column));
    for (uint32_t node = 1; node < tree->node_count; node++)
        column[node - 1] = node - tree->nodes[node].parent;
    begin_member(json, "nodes");
    json_write_object(json);
    write_column(json, "up", column, tree->node_count - 1);
    for (uint32_t node = 1; node < tree->node_count; node++)
        column[node - 1] = functions[tree->nodes[node].function];
    write_column(json, "function", column, tree->node_count - 1);
    size_t count = 0;
    for (uint32_t node = 1; node < tree->node_count; node++)
        if (tree->nodes[node].inlined)
            column[count++] = node;
    write_column(json, "inlined", column, count);
    json_write_object_end(json);
}

/* The columns of the types from one on to before another. */
static void write_values(struct json_writer *json, const struct calltree *tree, const char *key,
                         enum calltree_side side, unsigned from, unsigned to)
{
    json_write_key(json, key);
    json_write_array(json);
    for (unsigned type = from; type < to; type++) {
        json_write_array(json);
        for (uint32_t node = 0; node < tree->node_count && buffer_pass(json->out); node++)
            json_write_signed(json, tree->types[type].self[side][node]);
        json_write_array_end(json);
    }
    json_write_array_end(json);
}

/* States are behind all types. */
static unsigned count_types(const struct calltree *tree)
{
    unsigned count = 0;
    while (count < tree->type_count && !tree->types[count].is_state)
        count++;
    return count;
}

static void write_head(struct json_writer *json, const struct calltree *tree,
                       const struct flame_options *options)
{
    json_write_object(json);
    json_member_unsigned(json, "version", 1);
    json_member_text(json, "kind", tree->has_base ? "diff" : "flame");
    json_member_text(json, "title", options->title ? options->title : "");
    begin_member(json, "notes");
    json_write_array(json);
    for (size_t i = 0; i < options->note_count; i++)
        json_write_text(json, options->notes[i]);
    json_write_array_end(json);
    begin_member(json, "types");
    json_write_array(json);
    for (unsigned i = 0; i < count_types(tree); i++) {
        json_write_object(json);
        json_member_text(json, "name", tree->types[i].name);
        json_member_text(json, "unit", tree->types[i].unit);
        json_write_object_end(json);
    }
    json_write_array_end(json);
    json_member_unsigned(json, "default_type", MIN(options->default_type, count_types(tree) - 1));
}

static void write_states(struct json_writer *json, const struct calltree *tree)
{
    unsigned first = count_types(tree);
    if (first == tree->type_count)
        return;
    begin_member(json, "states");
    json_write_object(json);
    json_write_key(json, "names");
    json_write_array(json);
    for (unsigned i = first; i < tree->type_count; i++)
        json_write_text(json, tree->types[i].name);
    json_write_array_end(json);
    write_values(json, tree, "self", CALLTREE_NEW, first, tree->type_count);
    json_write_object_end(json);
}

/* ---- changes ---- */

const struct flame_change **flame_changes(const struct calltree *tree,
                                          const struct flame_options *options)
{
    const struct flame_change **found = memory_zalloc(tree->function_count + 1u, sizeof(*found));
    struct id_table by_name = {0};
    for (size_t i = 0; i < MIN(options->change_count, (size_t)ID_MAX); i++) {
        const struct flame_change *change = &options->changes[i];
        id_table_insert(&by_name, XXH3_64bits(change->name, change->length), (uint32_t)i);
    }
    for (uint32_t i = 0; options->change_count && i < tree->function_count; i++) {
        const struct calltree_function *function = &tree->functions[i];
        struct id_probe probe = id_probe_start(XXH3_64bits(function->name, function->length));
        uint32_t id;
        while (!found[i] && (id = id_table_next(&by_name, &probe)) != ID_NONE)
            if (options->changes[id].length == function->length &&
                !memcmp(options->changes[id].name, function->name, function->length))
                found[i] = &options->changes[id];
    }
    id_table_release(&by_name);
    return found;
}

static void write_finding(struct json_writer *json, const struct flame_finding *finding)
{
    if (isfinite(finding->low) && isfinite(finding->high) && finding->low <= finding->high) {
        json_write_key(json, "interval");
        json_write_array(json);
        json_write_digits(json, finding->low, 6);
        json_write_digits(json, finding->high, 6);
        json_write_array_end(json);
    }
    json_member_text(json, "verdict", finding->verdict);
    if (finding->cause)
        json_member_text(json, "cause", finding->cause);
    if (isfinite(finding->more_seconds) && finding->more_seconds > 0)
        json_member_number(json, "more_seconds", finding->more_seconds);
}

static void write_changes(struct json_writer *json, const struct calltree *tree,
                          const struct flame_options *options, const uint32_t *functions)
{
    if (!options->change_count)
        return;
    _cleanup_free_ const struct flame_change **found = flame_changes(tree, options);
    begin_member(json, "changes");
    json_write_array(json);
    for (uint32_t i = 0; i < tree->function_count && buffer_pass(json->out); i++) {
        const struct flame_change *change = found[i];
        if (!change || functions[i] == UINT32_MAX)
            continue;
        json_write_object(json);
        json_member_unsigned(json, "function", functions[i]);
        write_finding(json, &change->total);
        if (change->self.verdict) {
            json_write_key(json, "self");
            json_write_object(json);
            write_finding(json, &change->self);
            json_write_object_end(json);
        }
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

/* ---- the table ---- */

void flame_table_init(struct flame_table *table, const struct calltree *tree)
{
    *table = (struct flame_table){.function_count = tree->function_count};
    for (unsigned type = 0; type < count_types(tree); type++)
        for (int side = 0; side < CALLTREE_SIDES; side++)
            if (tree->types[type].self[side])
                function_values(tree, type, side, &table->flat[type][side],
                                &table->cumulative[type][side]);
}

void flame_table_release(struct flame_table *table)
{
    for (unsigned type = 0; type < PROFILE_TYPES_MAX; type++)
        for (int side = 0; side < CALLTREE_SIDES; side++) {
            free(table->flat[type][side]);
            free(table->cumulative[type][side]);
        }
    *table = (struct flame_table){0};
}

/* Columns of each type, by the document's numbers of functions. */
static void write_table_columns(struct json_writer *json, const char *key, unsigned types,
                                int64_t *const (*values)[CALLTREE_SIDES], enum calltree_side side,
                                const uint32_t *order, uint32_t count)
{
    json_write_key(json, key);
    json_write_array(json);
    for (unsigned type = 0; type < types; type++) {
        json_write_array(json);
        for (uint32_t i = 0; i < count && buffer_pass(json->out); i++)
            json_write_signed(json, order[i] == UINT32_MAX ? 0 : values[type][side][order[i]]);
        json_write_array_end(json);
    }
    json_write_array_end(json);
}

static void write_table(struct json_writer *json, const struct calltree *tree,
                        const struct flame_table *table, const uint32_t *functions, uint32_t count)
{
    unsigned types = count_types(tree);
    _cleanup_free_ uint32_t *order = memory_zalloc(count + 1u, sizeof(*order));
    memset(order, 0xff, count * sizeof(*order));
    for (uint32_t i = 0; i < table->function_count; i++)
        if (functions[i] != UINT32_MAX)
            order[functions[i]] = i;
    begin_member(json, "table");
    json_write_object(json);
    write_table_columns(json, "self", types, table->flat, CALLTREE_NEW, order, count);
    write_table_columns(json, "total", types, table->cumulative, CALLTREE_NEW, order, count);
    if (tree->has_base) {
        write_table_columns(json, "base_self", types, table->flat, CALLTREE_BASE, order, count);
        write_table_columns(json, "base_total", types, table->cumulative, CALLTREE_BASE, order,
                            count);
    }
    json_write_object_end(json);
}

/* The amount of each type under "(other)". */
static void write_folded(struct json_writer *json, const struct calltree *tree, const char *key,
                         enum calltree_side side, unsigned types)
{
    begin_member(json, key);
    json_write_array(json);
    for (unsigned i = 0; i < types; i++)
        json_write_signed(json, calltree_folded(tree, i, side));
    json_write_array_end(json);
}

double flame_scale(const struct flame_options *options, unsigned type)
{
    double scale = options->scale ? options->scale[type] : 1;
    return isfinite(scale) && scale >= 0 ? scale : 1;
}

int flamedata_write(struct buffer *out, const struct calltree *tree,
                    const struct flame_options *options, struct error *error)
{
    static const char *const normalized[] = {"none", "total", "duration", "requests"};
    unsigned types = count_types(tree);
    if (!types)
        return error_set(error, -EINVAL, "Nothing to draw: the profile has no sample type.");
    struct json_writer writer = json_writer(out), *json = &writer;
    write_head(json, tree, options);
    uint32_t count;
    _cleanup_free_ uint32_t *functions = write_functions(json, tree, options->table, &count);
    write_nodes(json, tree, functions);
    json_write_line(json);
    write_values(json, tree, "self", CALLTREE_NEW, 0, types);
    write_states(json, tree);
    if (options->times)
        flame_times_write(json, tree, options->times);
    if (tree->has_base) {
        json_write_line(json);
        write_values(json, tree, "base", CALLTREE_BASE, 0, types);
        begin_member(json, "scale");
        json_write_array(json);
        for (unsigned i = 0; i < types; i++)
            json_write_digits(json, flame_scale(options, i), 17);
        json_write_array_end(json);
        json_member_text(json, "normalize", normalized[options->normalize]);
        write_changes(json, tree, options, functions);
    }
    if (options->table)
        write_table(json, tree, options->table, functions, count);
    write_folded(json, tree, "cut", CALLTREE_NEW, types);
    if (tree->has_base)
        write_folded(json, tree, "base_cut", CALLTREE_BASE, types);
    begin_member(json, "dropped");
    json_write_unsigned(json, options->dropped);
    json_write_object_end(json);
    return 0;
}

/* ---- notes ---- */

static void add_note(struct flame_notes *notes, struct buffer *text)
{
    if (notes->count < FLAME_NOTES_MAX)
        notes->list[notes->count++] = memory_strdup(buffer_text(text));
    text->length = 0;
}

/* "12,034 samples over 30.0 s, from 3 profiles" */
static void note_samples(struct flame_notes *notes, const struct profile *profile,
                         const struct calltree *tree, struct buffer *text)
{
    double samples = -1;
    for (unsigned i = 0; i < tree->type_count && samples < 0; i++) {
        if (strcmp(tree->types[i].name, "samples") || strcmp(tree->types[i].unit, "count"))
            continue;
        samples = 0;
        for (uint32_t node = 0; node < tree->node_count; node++)
            samples += (double)tree->types[i].self[CALLTREE_NEW][node];
    }
    if (samples >= 0) {
        units_add_grouped(text, &units_picture, samples);
        buffer_add_text(text, samples == 1 ? " sample" : " samples");
    } else {
        units_add_grouped(text, &units_picture, (double)profile->samples.count);
        buffer_add_text(text, profile->samples.count == 1 ? " row" : " rows");
    }
    if (profile->duration_ns > 0) {
        buffer_add_text(text, " over ");
        units_add(text, &units_picture, (double)profile->duration_ns, "nanoseconds");
    }
    if (profile->source_count > 1) {
        buffer_add_text(text, ", from ");
        units_add_grouped(text, &units_picture, (double)profile->source_count);
        buffer_add_text(text, " profiles");
    }
    add_note(notes, text);
}

/* "2.1% of the time is in frames without a name" */
static void note_unnamed(struct flame_notes *notes, const struct calltree *tree, unsigned index,
                         struct buffer *text)
{
    const struct calltree_type *type = &tree->types[index];
    double unnamed = 0, all = 0;
    for (uint32_t node = 0; node < tree->node_count; node++) {
        double value = fabs((double)type->self[CALLTREE_NEW][node]);
        all += value;
        if (node && tree->functions[tree->nodes[node].function].unnamed)
            unnamed += value;
    }
    if (unnamed <= 0)
        return;
    units_add_percent(text, &units_picture, unnamed / all);
    buffer_printf(text, " of the %s is missing symbols",
                  !strcmp(type->unit, "nanoseconds") ? "time"
                  : !strcmp(type->unit, "bytes")     ? "memory"
                  : type->name[0]                    ? type->name
                                                     : "total");
    add_note(notes, text);
}

void flame_notes_init(struct flame_notes *notes, const struct profile *profile,
                      const struct calltree *tree, unsigned type)
{
    *notes = (struct flame_notes){0};
    _cleanup_buffer_ struct buffer text = {0};
    note_samples(notes, profile, tree, &text);
    note_unnamed(notes, tree, type, &text);
}

void flame_notes_release(struct flame_notes *notes)
{
    for (size_t i = 0; i < notes->count; i++)
        free(notes->list[i]);
    *notes = (struct flame_notes){0};
}
