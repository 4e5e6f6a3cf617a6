// SPDX-License-Identifier: Apache-2.0
// Which functions of a unit have the wanted addresses, and what is inlined there: see dwarf_unit.h.

#include "symbol/dwarf_unit.h"

#include <dwarf.h>

#define LEVELS_MAX 512

/* ---- ranges ---- */

/* The first of the wanted addresses that is not below. */
static size_t first_from(const struct dwarf_unit *unit, uint64_t address)
{
    size_t low = 0, high = unit->wanted_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (unit->addresses[unit->wanted[middle]] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t wanted_address(const struct dwarf_unit *unit, size_t i)
{
    return unit->addresses[unit->wanted[i]];
}

/* How much code the entry has. *ret_any: some of it is wanted; *ret_ranges: it has any at all. */
static uint64_t measure(const struct dwarf_unit *unit, Dwarf_Die *die, bool *ret_any,
                        bool *ret_ranges)
{
    Dwarf_Addr base, start, end;
    uint64_t bytes = 0;
    *ret_any = *ret_ranges = false;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;) {
        *ret_ranges = true;
        if (end <= start)
            continue;
        bytes += end - start;
        size_t i = *ret_any ? 0 : first_from(unit, start);
        if (!*ret_any && i < unit->wanted_count && wanted_address(unit, i) < end)
            *ret_any = true;
    }
    return bytes;
}

static int compare_indexes(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static void want(struct dwarf_unit *unit, uint64_t start, uint64_t end, const bool *answered)
{
    size_t low = 0, high = unit->address_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (unit->addresses[middle] < start)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < unit->address_count && unit->addresses[low] < end; low++) {
        if (answered[low])
            continue;
        array_reserve(unit->wanted, unit->wanted_capacity, unit->wanted_count + 1);
        unit->wanted[unit->wanted_count++] = (uint32_t)low;
    }
}

bool dwarf_unit_wants(struct dwarf_unit *unit, Dwarf_Die *unit_die, const bool *answered)
{
    Dwarf_Addr base, start, end;
    unit->wanted_count = unit->scope_count = 0;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(unit_die, at, &base, &start, &end)) > 0;)
        want(unit, start, end, answered);
    if (!unit->wanted_count)
        return false;
    /* Ranges come in any order, and may say the same twice. */
    qsort(unit->wanted, unit->wanted_count, sizeof(*unit->wanted), compare_indexes);
    size_t kept = 1;
    for (size_t i = 1; i < unit->wanted_count; i++)
        if (unit->wanted[i] != unit->wanted[kept - 1])
            unit->wanted[kept++] = unit->wanted[i];
    unit->wanted_count = kept;
    array_reserve(unit->scope_of, unit->scope_of_capacity, kept);
    memset(unit->scope_of, 0, kept * sizeof(*unit->scope_of));
    return true;
}

/* ---- the walk ---- */

static uint32_t add_scope(struct dwarf_unit *unit, const Dwarf_Die *die, uint32_t parent,
                          uint64_t bytes)
{
    array_reserve(unit->scopes, unit->scope_capacity, unit->scope_count + 2);
    uint32_t scope = (uint32_t)++unit->scope_count;
    unit->scopes[scope] = (struct dwarf_scope){.die = *die,
                                               .parent = parent,
                                               .root = parent ? unit->scopes[parent].root : scope,
                                               .bytes = bytes};
    return scope;
}

/*
 * Gives the scope the wanted addresses in its ranges: a subprogram takes them from nobody or from a
 * larger one, an inlined function only from what it is inlined into. False when it gets none.
 */
static bool claim(struct dwarf_unit *unit, uint32_t scope)
{
    struct dwarf_scope *claiming = &unit->scopes[scope];
    Dwarf_Addr base, start, end;
    bool any = false;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(&claiming->die, at, &base, &start, &end)) > 0;)
        for (size_t i = first_from(unit, start);
             i < unit->wanted_count && wanted_address(unit, i) < end; i++) {
            uint32_t holder = unit->scope_of[i];
            bool gets =
                claiming->parent
                    ? holder == claiming->parent
                    : !holder || unit->scopes[unit->scopes[holder].root].bytes > claiming->bytes;
            if (!gets)
                continue;
            unit->scope_of[i] = scope;
            any = true;
        }
    return any;
}

/* Whether to look at the entry's children, and in which function they are. */
static bool visit(struct dwarf_unit *unit, Dwarf_Die *die, bool thorough, uint32_t *scope)
{
    bool any, ranges;
    uint64_t bytes;
    switch (dwarf_tag(die)) {
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
        bytes = measure(unit, die, &any, &ranges);
        bool inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine;
        if (any && (!inlined || *scope)) {
            uint32_t own = add_scope(unit, die, inlined ? *scope : 0, bytes);
            if (claim(unit, own)) {
                *scope = own;
                return true;
            }
            unit->scope_count--;
        }
        /* Functions may be inside of others that have other addresses. */
        if (!inlined)
            *scope = 0;
        return thorough && !inlined;
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_with_stmt:
        measure(unit, die, &any, &ranges);
        return thorough || (*scope && (any || !ranges));
    case DW_TAG_namespace:
    case DW_TAG_module:
        return true;
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_interface_type:
        return thorough;
    default:
        return false;
    }
}

static void walk(struct dwarf_unit *unit, Dwarf_Die *unit_die, bool thorough)
{
    struct level {
        Dwarf_Die next;
        uint32_t scope;
    } levels[LEVELS_MAX];
    size_t depth = 0;
    if (dwarf_child(unit_die, &levels[0].next) == 0) {
        levels[0].scope = 0;
        depth = 1;
    }
    while (depth) {
        struct level *level = &levels[depth - 1];
        Dwarf_Die die = level->next;
        uint32_t scope = level->scope;
        if (dwarf_siblingof(&die, &level->next) != 0)
            depth--;
        if (!visit(unit, &die, thorough, &scope) || depth == LEVELS_MAX ||
            !dwarf_haschildren(&die) || dwarf_child(&die, &levels[depth].next) != 0)
            continue;
        levels[depth++].scope = scope;
    }
}

static bool all_found(const struct dwarf_unit *unit)
{
    for (size_t i = 0; i < unit->wanted_count; i++)
        if (!unit->scope_of[i])
            return false;
    return true;
}

/* Most functions are on the first level or in namespaces. What is not found there may be in a
 * function's or a type's entry. */
void dwarf_unit_walk(struct dwarf_unit *unit, Dwarf_Die *unit_die)
{
    walk(unit, unit_die, false);
    if (all_found(unit))
        return;
    memset(unit->scope_of, 0, unit->wanted_count * sizeof(*unit->scope_of));
    unit->scope_count = 0;
    walk(unit, unit_die, true);
}

void dwarf_unit_release(struct dwarf_unit *unit)
{
    free(unit->wanted);
    free(unit->scope_of);
    free(unit->scopes);
}
