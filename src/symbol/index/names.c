// SPDX-License-Identifier: Apache-2.0
// Function names from debug information: a name can be in the entry itself, in its abstract origin,
// or in the declaration of that, which can be in another unit or file.

#include <dwarf.h>

#include "symbol/index/builder.h"

#define ORIGINS_MAX 16
#define ENCLOSING_MAX 32
#define NAME_BYTES_MAX 65536
#define CONTEXT_DEPTH_MAX 8

/* ---- entries by place ---- */

static bool is_within(struct debug_bytes bytes, const uint8_t *place)
{
    return bytes.length && place >= bytes.bytes && place < bytes.bytes + bytes.length;
}

static bool find_in_file(struct index_builder *builder, struct index_file_units *file,
                         const uint8_t *place, struct debug_unit *ret_unit)
{
    struct debug_bytes info = file->sections.list[DEBUG_INFO];
    if (!is_within(info, place))
        return false;
    uint64_t offset = (uint64_t)(place - info.bytes), next;
    size_t low = 0, high = file->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (file->starts[middle] <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low &&
           debug_unit_read(ret_unit, &builder->abbreviations, &file->sections, info,
                           file->starts[low - 1], NULL, &next) == 0 &&
           offset >= ret_unit->entries && offset < ret_unit->end;
}

/* The unit that an entry is in. */
static bool find_unit(struct index_builder *builder, const uint8_t *place,
                      struct debug_unit *ret_unit)
{
    const struct debug_unit *unit = &builder->unit;
    if (is_within(unit->info, place)) {
        uint64_t offset = (uint64_t)(place - unit->info.bytes);
        if (offset >= unit->entries && offset < unit->end) {
            *ret_unit = *unit;
            return true;
        }
    }
    return find_in_file(builder, &builder->main, place, ret_unit) ||
           find_in_file(builder, &builder->shared, place, ret_unit);
}

/* Where a value refers to; NULL when that is nowhere. */
static const uint8_t *referred_place(const struct index_builder *builder,
                                     const struct debug_unit *unit, const struct debug_value *value)
{
    struct debug_reference reference;
    if (!value->form || !debug_value_reference(unit, value, &reference))
        return NULL;
    struct debug_bytes info =
        reference.is_shared ? builder->shared.sections.list[DEBUG_INFO] : unit->info;
    return reference.offset < info.length ? info.bytes + reference.offset : NULL;
}

const uint8_t *index_named_place(const struct index_builder *builder,
                                 const struct debug_function *function)
{
    if (function->name.form || function->linkage_name.form || function->declared_line)
        return NULL;
    return referred_place(builder, &builder->unit, &function->origin);
}

/* *ret_tag and *ret_function are what is at the place. */
static bool read_entry(struct index_builder *builder, const struct debug_unit *unit,
                       const uint8_t *place, uint16_t *ret_tag, struct debug_function *ret_function)
{
    const struct debug_abbreviations *table =
        debug_unit_abbreviations(unit, &builder->abbreviations);
    struct cursor cursor = cursor_of(unit->info.bytes, (size_t)unit->end);
    cursor.at = place;
    const struct debug_abbreviation *abbreviation =
        table ? debug_abbreviation_find(table, cursor_uleb(&cursor)) : NULL;
    if (!abbreviation || !debug_function_read(unit, &cursor, table, abbreviation, ret_function))
        return false;
    *ret_tag = abbreviation->tag;
    return true;
}

/* ---- what functions are members of ---- */

void index_contexts_start(struct index_contexts *contexts, const struct debug_unit *unit)
{
    contexts->unit = unit->info.bytes + unit->offset;
    contexts->count = 0;
}

void index_contexts_add(struct index_contexts *contexts,
                        const struct debug_abbreviation *abbreviation, const uint8_t *place,
                        uint32_t *context)
{
    switch (abbreviation->tag) {
    case DW_TAG_subprogram:
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
    case DW_TAG_enumeration_type:
        break;
    default:
        return;
    }
    array_reserve(contexts->list, contexts->capacity, contexts->count + 1);
    contexts->list[contexts->count++] =
        (struct index_context){.place = place, .parent = *context, .tag = abbreviation->tag};
    *context = (uint32_t)contexts->count;
}

/* The same for a unit that isn't being read. */
static void read_contexts(struct index_builder *builder, const struct debug_unit *unit)
{
    struct index_contexts *contexts = &builder->other_contexts;
    const struct debug_abbreviations *table =
        debug_unit_abbreviations(unit, &builder->abbreviations);
    _cleanup_free_ uint32_t *levels = NULL;
    size_t depth = 0, capacity = 0;
    struct cursor cursor = cursor_of(unit->info.bytes, (size_t)unit->end);
    uint64_t bytes = unit->end - unit->entries;
    index_contexts_start(contexts, unit);
    if (!table || bytes > builder->context_budget)
        return;
    builder->context_budget -= bytes;
    cursor.at += unit->entries;
    array_reserve(levels, capacity, 1);
    levels[0] = 0;
    do {
        const uint8_t *place = cursor.at;
        uint64_t code = cursor_uleb(&cursor);
        const struct debug_abbreviation *abbreviation =
            code ? debug_abbreviation_find(table, code) : NULL;
        if (!code && !cursor.bad && depth) {
            depth--;
            continue;
        }
        if (!abbreviation)
            return;
        uint32_t context = levels[depth];
        index_contexts_add(contexts, abbreviation, place, &context);
        if (!debug_entry_skip(unit, &cursor, table, abbreviation))
            return;
        if (abbreviation->has_children) {
            array_reserve(levels, capacity, depth + 2);
            levels[++depth] = context;
        }
    } while (depth);
}

/* The contexts around an entry, from the inside out. */
static size_t enclosing(struct index_builder *builder, const struct debug_unit *unit,
                        const uint8_t *place, struct index_context around[ENCLOSING_MAX])
{
    const uint8_t *start = unit->info.bytes + unit->offset;
    struct index_contexts *contexts = &builder->contexts;
    if (contexts->unit != start) {
        contexts = &builder->other_contexts;
        if (contexts->unit != start)
            read_contexts(builder, unit);
    }
    size_t low = 0, high = contexts->count, count = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (contexts->list[middle].place < place)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == contexts->count || contexts->list[low].place != place)
        return 0;
    for (uint32_t at = contexts->list[low].parent; at && count < ENCLOSING_MAX;
         at = contexts->list[at - 1].parent)
        around[count++] = contexts->list[at - 1];
    return count;
}

static void add_context(struct index_builder *builder, const struct debug_unit *unit,
                        const struct index_context *context, bool is_lambda, struct buffer *text)
{
    struct debug_function entry;
    uint16_t tag;
    const char *part = NULL;
    if (context->tag == DW_TAG_subprogram) {
        /* Contexts of contexts may go in circles through other entries. */
        uint32_t function = 0;
        if (builder->context_depth < CONTEXT_DEPTH_MAX) {
            builder->context_depth++;
            function = index_name_entry(builder, context->place);
            builder->context_depth--;
        }
        uint32_t name = builder->tables.functions[function].name;
        part = builder->tables.strings.data + name;
    } else if (read_entry(builder, unit, context->place, &tag, &entry)) {
        part = debug_value_string(unit, &entry.name, &builder->shared.sections);
    }
    if (!part || !part[0])
        part = context->tag == DW_TAG_namespace ? "(anonymous namespace)"
               : is_lambda                      ? "{lambda}"
                                                : "{unnamed}";
    buffer_add(text, part, strnlen(part, NAME_BYTES_MAX));
}

/*
 * A C++ function that the linker doesn't know (static, or in an unnamed namespace) has no linkage
 * name: its name is put together as the demangler would, so that it is the same function whether
 * its entry or its symbol gives the name.
 */
static uint32_t qualified_name(struct index_builder *builder, const struct debug_unit *unit,
                               const uint8_t *declaration, const char *name)
{
    struct index_context around[ENCLOSING_MAX];
    _cleanup_buffer_ struct buffer text = {0};
    size_t count = enclosing(builder, unit, declaration, around);
    if (!count)
        return index_string(&builder->tables, name);
    /* A function around it has a whole name itself. */
    for (size_t i = 0; i < count; i++)
        if (around[i].tag == DW_TAG_subprogram)
            count = i + 1;
    while (count-- && text.length < NAME_BYTES_MAX) {
        add_context(builder, unit, &around[count], !strncmp(name, "operator()", 10), &text);
        buffer_add_text(&text, "::");
    }
    buffer_add(&text, name, strnlen(name, NAME_BYTES_MAX));
    return index_string(&builder->tables, buffer_text(&text));
}

/* ---- names ---- */

static bool is_cplusplus(const struct debug_unit *unit)
{
    switch (unit->language) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
        return true;
    default:
        return false;
    }
}

static uint32_t find_named(const struct index_builder *builder, const uint8_t *place, bool *found)
{
    struct id_probe probe = id_probe_start(hash_word((uint64_t)(uintptr_t)place));
    uint32_t i;
    while ((i = id_table_next(&builder->named_index, &probe)) != ID_NONE)
        if (builder->named[i].place == place) {
            *found = true;
            return builder->named[i].function;
        }
    *found = false;
    return 0;
}

/* Follows an entry to all that names it. */
static uint32_t name_entry(struct index_builder *builder, const uint8_t *place)
{
    const struct debug_sections *shared = &builder->shared.sections;
    const char *name = NULL, *linkage_name = NULL;
    uint32_t line = 0;
    bool external = false;
    struct debug_unit unit;
    for (int i = 0; i < ORIGINS_MAX; i++) {
        struct debug_function entry;
        uint16_t tag;
        if (!find_unit(builder, place, &unit) || !read_entry(builder, &unit, place, &tag, &entry))
            return 0;
        if (!linkage_name)
            linkage_name = debug_value_string(&unit, &entry.linkage_name, shared);
        if (!name)
            name = debug_value_string(&unit, &entry.name, shared);
        line = line ? line : entry.declared_line;
        external = external || entry.is_external;
        const uint8_t *next = referred_place(builder, &unit, &entry.origin);
        if (!next)
            break;
        place = next;
    }
    if (linkage_name && linkage_name[0])
        return index_linked_function(&builder->tables, linkage_name, name, line);
    if (!name || !name[0])
        return 0;
    uint32_t text = is_cplusplus(&unit) && !external ? qualified_name(builder, &unit, place, name)
                                                     : index_string(&builder->tables, name);
    return index_function(&builder->tables, text, 0, line);
}

/* Static functions of C++ have no linkage name in their entry, but their symbol is one. */
uint32_t index_name_by_symbol(struct index_builder *builder, uint32_t number, uint64_t start)
{
    const struct symbol_index_function function = builder->tables.functions[number];
    struct symbol_table *tables[] = {builder->symbols, builder->debug_symbols};
    struct symbol symbol;
    if (function.system_name || !is_cplusplus(&builder->unit))
        return number;
    for (size_t i = 0; i < ARRAY_LENGTH(tables); i++)
        if (tables[i] && symbol_table_find(tables[i], start, &symbol) && symbol.name &&
            !symbol.distance && symbol.system_name)
            return index_function(&builder->tables, index_string(&builder->tables, symbol.name),
                                  index_string(&builder->tables, symbol.system_name),
                                  function.start_line);
    return number;
}

uint32_t index_name_entry(struct index_builder *builder, const uint8_t *place)
{
    bool found;
    uint32_t function = find_named(builder, place, &found);
    if (found)
        return function;
    function = name_entry(builder, place);
    array_reserve(builder->named, builder->named_capacity, builder->named_count + 1);
    builder->named[builder->named_count] = (struct named_entry){place, function};
    id_table_insert(&builder->named_index, hash_word((uint64_t)(uintptr_t)place),
                    (uint32_t)builder->named_count++);
    return function;
}
