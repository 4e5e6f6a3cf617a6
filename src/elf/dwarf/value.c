// SPDX-License-Identifier: Apache-2.0
// The values of attributes in all their forms, and the attributes of functions: see dwarf_unit.h.

#include <dwarf.h>

#include "elf/dwarf/unit.h"

/* A form that the entry itself names; one that names another such form makes no sense. */
static uint16_t indirect_form(struct cursor *cursor)
{
    uint64_t form = cursor_uleb(cursor);
    return form == DW_FORM_indirect || form == DW_FORM_implicit_const || form > UINT16_MAX
               ? 0
               : (uint16_t)form;
}

static void skip_string(struct cursor *cursor)
{
    const uint8_t *end = cursor_left(cursor) ? memchr(cursor->at, '\0', cursor_left(cursor)) : NULL;
    if (end) {
        cursor->at = end + 1;
    } else {
        cursor->bad = true;
        cursor->at = cursor->end;
    }
}

bool debug_value_read(const struct debug_unit *unit, struct cursor *cursor,
                      const struct debug_attribute *attribute, struct debug_value *ret_value)
{
    uint16_t form = attribute->form == DW_FORM_indirect ? indirect_form(cursor) : attribute->form;
    uint64_t value;
    switch (form) {
    case DW_FORM_implicit_const:
        value = (uint64_t)attribute->constant;
        break;
    case DW_FORM_flag_present:
        value = 1;
        break;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
        value = cursor_u8(cursor);
        break;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
        value = cursor_u16(cursor);
        break;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
        value = cursor_number(cursor, 3);
        break;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4:
        value = cursor_u32(cursor);
        break;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
        value = cursor_u64(cursor);
        break;
    case DW_FORM_addr:
        value = cursor_number(cursor, unit->address_bytes);
        break;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
        value = cursor_number(cursor, unit->offset_bytes);
        break;
    case DW_FORM_ref_addr:
        value = cursor_number(cursor, unit->version < 3 ? unit->address_bytes : unit->offset_bytes);
        break;
    case DW_FORM_sdata:
        value = (uint64_t)cursor_sleb(cursor);
        break;
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
        value = cursor_uleb(cursor);
        break;
    case DW_FORM_string:
        value = (uint64_t)(cursor->at - unit->info.bytes);
        skip_string(cursor);
        break;
    case DW_FORM_data16:
        value = (uint64_t)(cursor->at - unit->info.bytes);
        cursor_take(cursor, 16);
        break;
    case DW_FORM_block1:
        value = (uint64_t)(cursor->at - unit->info.bytes);
        cursor_take(cursor, cursor_u8(cursor));
        break;
    case DW_FORM_block2:
        value = (uint64_t)(cursor->at - unit->info.bytes);
        cursor_take(cursor, cursor_u16(cursor));
        break;
    case DW_FORM_block4:
        value = (uint64_t)(cursor->at - unit->info.bytes);
        cursor_take(cursor, cursor_u32(cursor));
        break;
    case DW_FORM_block:
    case DW_FORM_exprloc:
        value = (uint64_t)(cursor->at - unit->info.bytes);
        cursor_take(cursor, cursor_uleb(cursor));
        break;
    default:
        return false;
    }
    *ret_value = (struct debug_value){.value = value, .form = form};
    return !cursor->bad;
}

bool debug_value_skip(const struct debug_unit *unit, struct cursor *cursor,
                      const struct debug_attribute *attribute)
{
    struct debug_value ignored;
    return debug_value_read(unit, cursor, attribute, &ignored);
}

bool debug_entry_skip(const struct debug_unit *unit, struct cursor *cursor,
                      const struct debug_abbreviations *table,
                      const struct debug_abbreviation *abbreviation)
{
    if (abbreviation->fixed_bytes >= 0) {
        cursor_take(cursor, (uint64_t)abbreviation->fixed_bytes);
        return !cursor->bad;
    }
    const struct debug_attribute *attributes = &table->attributes[abbreviation->first];
    for (uint32_t i = 0; i < abbreviation->count; i++)
        if (!debug_value_skip(unit, cursor, &attributes[i]))
            return false;
    return true;
}

/* ---- what values stand for ---- */

static const char *indexed_string(const struct debug_unit *unit, uint64_t index)
{
    uint64_t offset;
    if (__builtin_mul_overflow(index, (uint64_t)unit->offset_bytes, &offset) ||
        __builtin_add_overflow(offset, unit->str_offsets_base, &offset) ||
        offset > unit->str_offsets.length || unit->offset_bytes > unit->str_offsets.length - offset)
        return NULL;
    return debug_string(unit->sections, DEBUG_STR,
                        debug_number(unit->str_offsets, offset, unit->offset_bytes));
}

const char *debug_value_string(const struct debug_unit *unit, const struct debug_value *value,
                               const struct debug_sections *shared)
{
    switch (value->form) {
    case DW_FORM_string:
        /* Reading it found its end. */
        return value->value < unit->info.length ? (const char *)unit->info.bytes + value->value
                                                : NULL;
    case DW_FORM_strp:
        return debug_string(unit->sections, DEBUG_STR, value->value);
    case DW_FORM_line_strp:
        return debug_string(unit->sections, DEBUG_LINE_STR, value->value);
    case DW_FORM_GNU_strp_alt:
    case DW_FORM_strp_sup:
        return shared ? debug_string(shared, DEBUG_STR, value->value) : NULL;
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4:
    case DW_FORM_GNU_str_index:
        return indexed_string(unit, value->value);
    default:
        return NULL;
    }
}

bool debug_unit_address(const struct debug_unit *unit, uint64_t index, uint64_t *ret_address)
{
    struct debug_bytes addresses = unit->program->list[DEBUG_ADDR];
    uint64_t offset;
    if (__builtin_mul_overflow(index, (uint64_t)unit->address_bytes, &offset) ||
        __builtin_add_overflow(offset, unit->addr_base, &offset) || offset > addresses.length ||
        unit->address_bytes > addresses.length - offset)
        return false;
    *ret_address = debug_number(addresses, offset, unit->address_bytes);
    return true;
}

bool debug_value_address(const struct debug_unit *unit, const struct debug_value *value,
                         uint64_t *ret_address)
{
    switch (value->form) {
    case DW_FORM_addr:
        *ret_address = value->value;
        return true;
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index:
        return debug_unit_address(unit, value->value, ret_address);
    default:
        return false;
    }
}

bool debug_value_reference(const struct debug_unit *unit, const struct debug_value *value,
                           struct debug_reference *ret_reference)
{
    *ret_reference = (struct debug_reference){.offset = value->value};
    switch (value->form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
        return !__builtin_add_overflow(unit->offset, value->value, &ret_reference->offset);
    case DW_FORM_ref_addr:
        return true;
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_ref_sup4:
    case DW_FORM_ref_sup8:
        ret_reference->is_shared = true;
        return true;
    default:
        return false;
    }
}

/* ---- functions ---- */

static uint32_t small_number(const struct debug_value *value)
{
    return value->value <= UINT32_MAX ? (uint32_t)value->value : 0;
}

bool debug_function_read(const struct debug_unit *unit, struct cursor *cursor,
                         const struct debug_abbreviations *table,
                         const struct debug_abbreviation *abbreviation,
                         struct debug_function *ret_function)
{
    const struct debug_attribute *attributes = &table->attributes[abbreviation->first];
    struct debug_function function = {0};
    for (uint32_t i = 0; i < abbreviation->count; i++) {
        struct debug_value value;
        if (!debug_value_read(unit, cursor, &attributes[i], &value))
            return false;
        switch (attributes[i].name) {
        case DW_AT_name:
            function.name = value;
            break;
        case DW_AT_linkage_name:
        case DW_AT_MIPS_linkage_name:
            function.linkage_name = value;
            break;
        case DW_AT_low_pc:
            function.low = value;
            break;
        case DW_AT_high_pc:
            function.high = value;
            break;
        case DW_AT_ranges:
            function.ranges = value;
            break;
        case DW_AT_abstract_origin:
            function.origin = value;
            break;
        case DW_AT_specification:
            if (!function.origin.form)
                function.origin = value;
            break;
        case DW_AT_sibling:
            function.sibling = value;
            break;
        case DW_AT_decl_line:
            function.declared_line = small_number(&value);
            break;
        case DW_AT_call_file:
            function.call_file = small_number(&value);
            break;
        case DW_AT_call_line:
            function.call_line = small_number(&value);
            break;
        case DW_AT_external:
            function.is_external = value.value != 0;
            break;
        case DW_AT_declaration:
            function.is_declaration = value.value != 0;
            break;
        default:
            break;
        }
    }
    *ret_function = function;
    return true;
}
