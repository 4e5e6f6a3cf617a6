// SPDX-License-Identifier: Apache-2.0
// Lists of address ranges, before and since DWARF 5: see dwarf_ranges.h.

#include "elf/dwarf/ranges.h"

#include <dwarf.h>

static void add(struct debug_range_list *list, uint64_t start, uint64_t end)
{
    if (end <= start)
        return;
    array_reserve(list->list, list->capacity, list->count + 1);
    list->list[list->count++] = (struct debug_range){start, end};
}

static bool may_read(struct debug_range_list *list)
{
    if (!list->budget)
        return false;
    list->budget--;
    return true;
}

/* .debug_ranges: pairs of addresses, relative to the unit's start or to what a pair sets. */
static void add_pairs(const struct debug_unit *unit, uint64_t offset, struct debug_range_list *list)
{
    struct debug_bytes bytes = unit->program->list[DEBUG_RANGES];
    uint64_t base = unit->low;
    uint64_t highest = unit->address_bytes == 4 ? UINT32_MAX : UINT64_MAX;
    if (offset >= bytes.length)
        return;
    struct cursor cursor = cursor_of(bytes.bytes + offset, (size_t)(bytes.length - offset));
    while (may_read(list)) {
        uint64_t start = cursor_number(&cursor, unit->address_bytes);
        uint64_t end = cursor_number(&cursor, unit->address_bytes);
        if (cursor.bad || (!start && !end))
            return;
        if (start == highest)
            base = end;
        else
            add(list, base + start, base + end);
    }
}

/* .debug_rnglists. */
static void add_entries(const struct debug_unit *unit, uint64_t offset,
                        struct debug_range_list *list)
{
    struct debug_bytes bytes = unit->rnglists;
    uint64_t base = unit->low, start = 0, end = 0;
    if (offset >= bytes.length)
        return;
    struct cursor cursor = cursor_of(bytes.bytes + offset, (size_t)(bytes.length - offset));
    while (may_read(list)) {
        bool known = true;
        switch (cursor_u8(&cursor)) {
        case DW_RLE_base_addressx:
            known = debug_unit_address(unit, cursor_uleb(&cursor), &base);
            break;
        case DW_RLE_startx_endx:
            known = debug_unit_address(unit, cursor_uleb(&cursor), &start);
            known = debug_unit_address(unit, cursor_uleb(&cursor), &end) && known;
            break;
        case DW_RLE_startx_length:
            known = debug_unit_address(unit, cursor_uleb(&cursor), &start);
            end = start + cursor_uleb(&cursor);
            break;
        case DW_RLE_offset_pair:
            start = base + cursor_uleb(&cursor);
            end = base + cursor_uleb(&cursor);
            break;
        case DW_RLE_base_address:
            base = cursor_number(&cursor, unit->address_bytes);
            break;
        case DW_RLE_start_end:
            start = cursor_number(&cursor, unit->address_bytes);
            end = cursor_number(&cursor, unit->address_bytes);
            break;
        case DW_RLE_start_length:
            start = cursor_number(&cursor, unit->address_bytes);
            end = start + cursor_uleb(&cursor);
            break;
        default: /* and DW_RLE_end_of_list */
            return;
        }
        if (cursor.bad)
            return;
        if (known)
            add(list, start, end);
        start = end = 0;
    }
}

static void add_list(const struct debug_unit *unit, const struct debug_value *ranges,
                     struct debug_range_list *list)
{
    uint64_t offset = ranges->value;
    if (unit->version < 5) {
        /* In a split unit they are in the program's file, from a base on. */
        if (!__builtin_add_overflow(offset, unit->ranges_base, &offset))
            add_pairs(unit, offset, list);
        return;
    }
    if (ranges->form == DW_FORM_rnglistx) {
        uint64_t place;
        if (__builtin_mul_overflow(offset, (uint64_t)unit->offset_bytes, &place) ||
            __builtin_add_overflow(place, unit->rnglists_base, &place) ||
            place > unit->rnglists.length || unit->offset_bytes > unit->rnglists.length - place)
            return;
        offset = unit->rnglists_base + debug_number(unit->rnglists, place, unit->offset_bytes);
    }
    add_entries(unit, offset, list);
}

void debug_ranges_add(const struct debug_unit *unit, const struct debug_value *low,
                      const struct debug_value *high, const struct debug_value *ranges,
                      struct debug_range_list *list)
{
    uint64_t start, end;
    if (ranges->form) {
        add_list(unit, ranges, list);
        return;
    }
    if (!high->form || !debug_value_address(unit, low, &start) || !may_read(list))
        return;
    if (!debug_value_address(unit, high, &end))
        end = start + high->value;
    add(list, start, end);
}
