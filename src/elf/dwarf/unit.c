// SPDX-License-Identifier: Apache-2.0
// Headers of units and their first entries: see dwarf_unit.h.

#include "elf/dwarf/unit.h"

#include <dwarf.h>

/* The header as far as the sizes of its numbers. */
static bool read_start(struct cursor *cursor, struct debug_unit *unit, uint64_t *ret_length)
{
    uint64_t length = cursor_u32(cursor);
    unit->offset_bytes = 4;
    if (length == UINT32_MAX) {
        unit->offset_bytes = 8;
        length = cursor_u64(cursor);
    } else if (length >= 0xfffffff0) {
        return false;
    }
    *ret_length = length;
    return !cursor->bad && length <= cursor_left(cursor);
}

static bool read_header(struct debug_unit *unit, struct cursor *cursor)
{
    unit->version = cursor_u16(cursor);
    if (unit->version < 2 || unit->version > 5)
        return false;
    if (unit->version == 5) {
        unit->type = cursor_u8(cursor);
        unit->address_bytes = cursor_u8(cursor);
        unit->abbrev_offset = cursor_number(cursor, unit->offset_bytes);
        if (unit->type == DW_UT_skeleton || unit->type == DW_UT_split_compile)
            unit->id = cursor_u64(cursor);
        else if (unit->type == DW_UT_type || unit->type == DW_UT_split_type)
            cursor_take(cursor, 8 + unit->offset_bytes);
    } else {
        unit->type = DW_UT_compile;
        unit->abbrev_offset = cursor_number(cursor, unit->offset_bytes);
        unit->address_bytes = cursor_u8(cursor);
    }
    unit->entries = (uint64_t)(cursor->at - unit->info.bytes);
    return !cursor->bad && (unit->address_bytes == 8 || unit->address_bytes == 4);
}

static void keep_attribute(struct debug_unit *unit, uint16_t name, const struct debug_value *value)
{
    switch (name) {
    case DW_AT_name:
        unit->name = *value;
        break;
    case DW_AT_comp_dir:
        unit->folder = *value;
        break;
    case DW_AT_language:
        unit->language = (uint16_t)value->value;
        break;
    case DW_AT_stmt_list:
        unit->lines = value->value;
        unit->has_lines = true;
        break;
    case DW_AT_low_pc:
        unit->low_value = *value;
        break;
    case DW_AT_high_pc:
        unit->high = *value;
        break;
    case DW_AT_ranges:
        unit->ranges = *value;
        break;
    case DW_AT_str_offsets_base:
        unit->str_offsets_base = value->value;
        break;
    case DW_AT_addr_base:
    case DW_AT_GNU_addr_base:
        unit->addr_base = value->value;
        break;
    case DW_AT_rnglists_base:
        unit->rnglists_base = value->value;
        break;
    case DW_AT_GNU_ranges_base:
        unit->ranges_base = value->value;
        break;
    case DW_AT_dwo_name:
    case DW_AT_GNU_dwo_name:
        unit->split_name = *value;
        break;
    case DW_AT_GNU_dwo_id:
        unit->id = value->value;
        break;
    default:
        break;
    }
}

/* The first entry. Bases may come after what is counted from them, so values are looked at last. */
static bool read_first_entry(struct debug_unit *unit, struct debug_abbreviation_cache *cache)
{
    struct cursor cursor = cursor_of(unit->info.bytes, (size_t)unit->end), attributes;
    struct debug_attribute attribute;
    unsigned count = 0;
    cursor.at += unit->entries;
    if (!debug_abbreviation_scan(unit, cache, cursor_uleb(&cursor), &unit->tag, &attributes))
        return false;
    while (debug_attribute_next(&attributes, &attribute)) {
        struct debug_value value;
        if (++count > DEBUG_ATTRIBUTES_MAX || !debug_value_read(unit, &cursor, &attribute, &value))
            return false;
        keep_attribute(unit, attribute.name, &value);
    }
    if (attributes.bad)
        return false;
    /* A split unit has no base of its own, but that of its skeleton. */
    debug_value_address(unit, &unit->low_value, &unit->low);
    return true;
}

/* A split unit has the start of its part of .debug_str_offsets and of .debug_rnglists for a base,
 * behind the header that DWARF 5 puts there. */
static void set_bases(struct debug_unit *unit, const struct debug_unit *skeleton)
{
    if (skeleton && unit->version == 5) {
        bool wide = debug_number(unit->str_offsets, 0, 4) == UINT32_MAX;
        unit->str_offsets_base = wide ? 16 : 8;
        wide = debug_number(unit->rnglists, 0, 4) == UINT32_MAX;
        unit->rnglists_base = wide ? 20 : 12;
    }
    if (skeleton) {
        unit->program = skeleton->program;
        unit->addr_base = skeleton->addr_base;
        unit->ranges_base = skeleton->ranges_base;
        unit->low = skeleton->low;
    }
}

bool debug_unit_skip(struct debug_bytes info, uint64_t offset, uint64_t *ret_next)
{
    struct cursor cursor = cursor_of(info.bytes, info.length);
    struct debug_unit unit;
    uint64_t length;
    if (offset >= info.length)
        return false;
    cursor.at += offset;
    if (!read_start(&cursor, &unit, &length))
        return false;
    *ret_next = (uint64_t)(cursor.at - info.bytes) + length;
    return true;
}

int debug_unit_read(struct debug_unit *ret_unit, struct debug_abbreviation_cache *cache,
                    const struct debug_sections *sections, struct debug_bytes info, uint64_t offset,
                    const struct debug_unit *skeleton, uint64_t *ret_next)
{
    struct debug_unit unit = {.sections = sections,
                              .program = sections,
                              .info = info,
                              .abbrev = sections->list[DEBUG_ABBREV],
                              .str_offsets = sections->list[DEBUG_STR_OFFSETS],
                              .rnglists = sections->list[DEBUG_RNGLISTS],
                              .offset = offset};
    struct cursor cursor = cursor_of(info.bytes, info.length);
    uint64_t length;
    if (offset >= info.length)
        return -EBADMSG;
    cursor.at += offset;
    if (!read_start(&cursor, &unit, &length))
        return -EBADMSG;
    unit.end = (uint64_t)(cursor.at - info.bytes) + length;
    *ret_next = unit.end;
    cursor.end = info.bytes + unit.end;
    /* The next unit may still be good. */
    if (!read_header(&unit, &cursor))
        unit.entries = unit.end;
    set_bases(&unit, skeleton);
    if (unit.entries < unit.end && !read_first_entry(&unit, cache))
        unit.entries = unit.end;
    *ret_unit = unit;
    return 0;
}
