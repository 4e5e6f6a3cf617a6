/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units and entries of .debug_info: headers, abbreviations, the values of attributes. A unit is
 * read from its first byte to its last, entry after entry, and an entry that another refers to is
 * read where it is: no tree is ever in memory.
 *
 * The input is hostile: offsets are checked where they are used, and a unit that makes no sense
 * at some place has nothing after it.
 */
#pragma once

#include "base/idtable.h"
#include "elf/dwarf/sections.h"

/* ---- abbreviations ---- */

struct debug_attribute {
    uint16_t name, form;
    int64_t constant; /* the value, where the form is DW_FORM_implicit_const */
};

struct debug_abbreviation {
    uint64_t code;
    uint32_t first, count; /* of the table's attributes */
    uint16_t tag;
    bool has_children;
    int32_t fixed_bytes; /* of all attributes together; -1 when it depends on their values */
};

struct debug_abbreviations {
    struct debug_abbreviation *list;
    size_t count, capacity;
    struct debug_attribute *attributes;
    size_t attribute_count, attribute_capacity;
    bool dense; /* the code of list[i] is i + 1; otherwise they are sorted */
    const uint8_t *place;
    uint8_t address_bytes, offset_bytes, version;
};

/* Tables are kept, since many units share one and entries all over the place are referred to. */
struct debug_abbreviation_cache {
    struct debug_abbreviations **list;
    size_t count, capacity, bytes;
    struct id_table index;
    uint64_t work; /* bytes that were read, for the limit on it */
};

void debug_abbreviation_cache_release(struct debug_abbreviation_cache *cache);

#define DEBUG_ATTRIBUTES_MAX 4096 /* of one abbreviation; real ones have up to 30 */

/* The next attribute of an abbreviation; false at their end, and when they make no sense. */
bool debug_attribute_next(struct cursor *cursor, struct debug_attribute *ret_attribute);

static inline const struct debug_abbreviation *
debug_abbreviation_find(const struct debug_abbreviations *table, uint64_t code)
{
    if (table->dense)
        return code && code <= table->count ? &table->list[code - 1] : NULL;
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->list[middle].code < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < table->count && table->list[low].code == code ? &table->list[low] : NULL;
}

/* ---- units ---- */

/* Reads like an attribute: 0 is what a missing one has. */
struct debug_value {
    uint64_t value; /* of DW_FORM_string and blocks: the offset in the unit's bytes */
    uint16_t form;  /* 0: there is no such attribute */
};

struct debug_unit {
    const struct debug_sections *sections; /* that its strings are in */
    const struct debug_sections *program;  /* that its addresses are in; another file's of a .dwo */
    struct debug_bytes info, abbrev, str_offsets, rnglists;
    uint64_t offset, end; /* of the whole unit in `info` */
    uint64_t entries;     /* offset of its first entry */
    uint64_t abbrev_offset;
    uint64_t id; /* what pairs the halves of a split unit */
    uint16_t version;
    uint8_t type; /* DW_UT_ */
    uint8_t address_bytes, offset_bytes;

    /* Attributes of its first entry. */
    uint16_t tag, language;
    uint64_t low, str_offsets_base, addr_base, rnglists_base, ranges_base, lines;
    bool has_lines;
    struct debug_value name, folder, split_name, ranges, high, low_value;
};

/* The unit at an offset: *ret_next is where the next one is. -EBADMSG when there is none. The bases
 * of a split unit's other half come from `skeleton`, which may be NULL. */
int debug_unit_read(struct debug_unit *ret_unit, struct debug_abbreviation_cache *cache,
                    const struct debug_sections *sections, struct debug_bytes info, uint64_t offset,
                    const struct debug_unit *skeleton, uint64_t *ret_next);

/* Where the unit after the one at an offset is; false when there is none at all. */
bool debug_unit_skip(struct debug_bytes info, uint64_t offset, uint64_t *ret_next);

/* NULL when the unit's table makes no sense. Good until the next call. */
const struct debug_abbreviations *debug_unit_abbreviations(const struct debug_unit *unit,
                                                           struct debug_abbreviation_cache *cache);

/* Where the attributes of an abbreviation begin, without keeping the unit's table: most units need
 * only that of their first entry. */
bool debug_abbreviation_scan(const struct debug_unit *unit, struct debug_abbreviation_cache *cache,
                             uint64_t code, uint16_t *ret_tag, struct cursor *ret_attributes);

/* ---- values ---- */

/* `cursor` walks the unit's `info`. False when the form is not known. */
bool debug_value_read(const struct debug_unit *unit, struct cursor *cursor,
                      const struct debug_attribute *attribute, struct debug_value *ret_value);
bool debug_value_skip(const struct debug_unit *unit, struct cursor *cursor,
                      const struct debug_attribute *attribute);
/* Past all attributes of an entry. */
bool debug_entry_skip(const struct debug_unit *unit, struct cursor *cursor,
                      const struct debug_abbreviations *table,
                      const struct debug_abbreviation *abbreviation);

/* NULL when it isn't a string, or is in a missing file. `shared` may be NULL. */
const char *debug_value_string(const struct debug_unit *unit, const struct debug_value *value,
                               const struct debug_sections *shared);
bool debug_value_address(const struct debug_unit *unit, const struct debug_value *value,
                         uint64_t *ret_address);
/* Entry number `index` of the unit's part of .debug_addr. */
bool debug_unit_address(const struct debug_unit *unit, uint64_t index, uint64_t *ret_address);

/* The target of a reference: an offset in .debug_info, of the file or of the one that it shares
 * parts with others in. */
struct debug_reference {
    uint64_t offset;
    bool is_shared;
};
bool debug_value_reference(const struct debug_unit *unit, const struct debug_value *value,
                           struct debug_reference *ret_reference);

/* ---- entries of functions ---- */

struct debug_function {
    struct debug_value name, linkage_name, low, high, ranges, origin, sibling;
    uint32_t declared_line, call_file, call_line;
    bool is_external, is_declaration;
};

/* At an entry's attributes. False when they make no sense. */
bool debug_function_read(const struct debug_unit *unit, struct cursor *cursor,
                         const struct debug_abbreviations *table,
                         const struct debug_abbreviation *abbreviation,
                         struct debug_function *ret_function);
