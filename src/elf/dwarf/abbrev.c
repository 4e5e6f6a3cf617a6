// SPDX-License-Identifier: Apache-2.0
// Abbreviations of debug information: which attributes an entry has. See dwarf_unit.h.

#include <dwarf.h>

#include "elf/dwarf/unit.h"

#define CACHE_BYTES_MAX (64u << 20)

/* Tables may overlap, so that a small section holds many large ones: reading stops when it adds up
 * to that many times the section. */
#define WORK_FACTOR 64

static bool too_much(const struct debug_unit *unit, const struct debug_abbreviation_cache *cache)
{
    return cache->work / WORK_FACTOR > (uint64_t)unit->abbrev.length + (1u << 20);
}

static void free_table(struct debug_abbreviations *table)
{
    free(table->list);
    free(table->attributes);
    free(table);
}

static void clear_cache(struct debug_abbreviation_cache *cache)
{
    for (size_t i = 0; i < cache->count; i++)
        free_table(cache->list[i]);
    cache->count = cache->bytes = 0;
    id_table_clear(&cache->index);
}

void debug_abbreviation_cache_release(struct debug_abbreviation_cache *cache)
{
    clear_cache(cache);
    free(cache->list);
    id_table_release(&cache->index);
    *cache = (struct debug_abbreviation_cache){0};
}

/* -1 when it depends on the value. */
static int32_t form_bytes(const struct debug_unit *unit, uint16_t form)
{
    switch (form) {
    case DW_FORM_implicit_const:
    case DW_FORM_flag_present:
        return 0;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
        return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
        return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
        return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4:
        return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
        return 8;
    case DW_FORM_data16:
        return 16;
    case DW_FORM_addr:
        return unit->address_bytes;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
        return unit->offset_bytes;
    case DW_FORM_ref_addr:
        return unit->version < 3 ? unit->address_bytes : unit->offset_bytes;
    default:
        return -1;
    }
}

bool debug_attribute_next(struct cursor *cursor, struct debug_attribute *ret_attribute)
{
    uint64_t name = cursor_uleb(cursor), form = cursor_uleb(cursor);
    int64_t constant = form == DW_FORM_implicit_const ? cursor_sleb(cursor) : 0;
    if (form > UINT16_MAX)
        cursor->bad = true;
    *ret_attribute = (struct debug_attribute){
        .name = name > UINT16_MAX ? 0 : (uint16_t)name,
        .form = (uint16_t)form,
        .constant = constant,
    };
    return !cursor->bad && (name || form);
}

bool debug_abbreviation_scan(const struct debug_unit *unit, struct debug_abbreviation_cache *cache,
                             uint64_t code, uint16_t *ret_tag, struct cursor *ret_attributes)
{
    if (!code || unit->abbrev_offset >= unit->abbrev.length || too_much(unit, cache))
        return false;
    const uint8_t *place = unit->abbrev.bytes + unit->abbrev_offset;
    struct cursor cursor = cursor_of(place, (size_t)(unit->abbrev.length - unit->abbrev_offset));
    struct debug_attribute attribute;
    for (;;) {
        uint64_t found = cursor_uleb(&cursor), tag = cursor_uleb(&cursor);
        cursor_u8(&cursor); /* whether it has children */
        *ret_tag = tag > UINT16_MAX ? 0 : (uint16_t)tag;
        *ret_attributes = cursor;
        if (!found || cursor.bad || found == code) {
            cache->work += (uint64_t)(cursor.at - place);
            return found && !cursor.bad;
        }
        while (debug_attribute_next(&cursor, &attribute))
            continue;
    }
}

/* The attributes of one abbreviation; false when they make no sense. */
static bool read_attributes(const struct debug_unit *unit, struct cursor *cursor,
                            struct debug_abbreviations *table,
                            struct debug_abbreviation *abbreviation)
{
    struct debug_attribute attribute;
    while (debug_attribute_next(cursor, &attribute)) {
        if (abbreviation->count == DEBUG_ATTRIBUTES_MAX)
            return false;
        int32_t bytes = form_bytes(unit, attribute.form);
        abbreviation->fixed_bytes =
            abbreviation->fixed_bytes < 0 || bytes < 0 ? -1 : abbreviation->fixed_bytes + bytes;
        array_reserve(table->attributes, table->attribute_capacity, table->attribute_count + 1);
        table->attributes[table->attribute_count++] = attribute;
        abbreviation->count++;
    }
    return !cursor->bad;
}

static int compare_codes(const void *left, const void *right)
{
    const struct debug_abbreviation *a = left, *b = right;
    return a->code < b->code ? -1 : a->code > b->code;
}

static struct debug_abbreviations *read_table(const struct debug_unit *unit, struct cursor cursor)
{
    struct debug_abbreviations *table = memory_zalloc(1, sizeof(*table));
    table->dense = true;
    for (;;) {
        uint64_t code = cursor_uleb(&cursor);
        /* A table that the section cuts off is good as far as it goes. */
        if (!code || cursor.bad)
            break;
        uint64_t tag = cursor_uleb(&cursor);
        struct debug_abbreviation abbreviation = {
            .code = code,
            .first = (uint32_t)table->attribute_count,
            .tag = tag > UINT16_MAX ? 0 : (uint16_t)tag,
            .has_children = cursor_u8(&cursor) == DW_CHILDREN_yes,
        };
        if (!read_attributes(unit, &cursor, table, &abbreviation))
            break;
        array_reserve(table->list, table->capacity, table->count + 1);
        table->list[table->count++] = abbreviation;
        table->dense = table->dense && code == table->count;
    }
    if (!table->dense)
        qsort(table->list, table->count, sizeof(*table->list), compare_codes);
    return table;
}

const struct debug_abbreviations *debug_unit_abbreviations(const struct debug_unit *unit,
                                                           struct debug_abbreviation_cache *cache)
{
    if (unit->abbrev_offset >= unit->abbrev.length)
        return NULL;
    const uint8_t *place = unit->abbrev.bytes + unit->abbrev_offset;
    uint8_t version = unit->version < 3 ? 2 : 3;
    uint64_t hash = hash_word((uint64_t)(uintptr_t)place * 64 + unit->offset_bytes +
                              unit->address_bytes * 4u + version);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&cache->index, &probe)) != ID_NONE) {
        const struct debug_abbreviations *table = cache->list[id];
        if (table->place == place && table->offset_bytes == unit->offset_bytes &&
            table->address_bytes == unit->address_bytes && table->version == version)
            return table;
    }
    if (cache->bytes > CACHE_BYTES_MAX)
        clear_cache(cache);
    if (too_much(unit, cache))
        return NULL;
    struct debug_abbreviations *table =
        read_table(unit, cursor_of(place, (size_t)(unit->abbrev.length - unit->abbrev_offset)));
    table->place = place;
    table->version = version;
    table->offset_bytes = unit->offset_bytes;
    table->address_bytes = unit->address_bytes;
    size_t bytes = sizeof(*table) + table->capacity * sizeof(*table->list) +
                   table->attribute_capacity * sizeof(*table->attributes);
    cache->bytes += bytes;
    cache->work += table->attribute_count * 2 + table->count * 3;
    array_reserve(cache->list, cache->capacity, cache->count + 1);
    cache->list[cache->count] = table;
    id_table_insert(&cache->index, hash, (uint32_t)cache->count++);
    return table;
}
