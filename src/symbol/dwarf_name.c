// SPDX-License-Identifier: Apache-2.0
// What a function's entry calls it. Names are made readable here, in the child: demangling hostile
// names is no safer than the rest.

#include <dwarf.h>

#include "symbol/demangle.h"
#include "symbol/dwarf_unit.h"

#define ENCLOSING_MAX 32
#define ORIGINS_MAX 16

static const char *linkage_name(Dwarf_Die *function)
{
    static const unsigned int names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        Dwarf_Attribute attribute;
        const char *text = dwarf_formstring(dwarf_attr_integrate(function, names[i], &attribute));
        if (text && text[0])
            return text;
    }
    return NULL;
}

static bool is_cplusplus(Dwarf_Die *function)
{
    Dwarf_Die unit;
    if (!dwarf_diecu(function, &unit, NULL, NULL))
        return false;
    switch (dwarf_srclang(&unit)) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
        return true;
    default:
        return false;
    }
}

/* Where the function is declared: that entry's place says what it is a member of. */
static Dwarf_Die declaration_of(const Dwarf_Die *function)
{
    Dwarf_Die at = *function;
    for (int i = 0; i < ORIGINS_MAX; i++) {
        Dwarf_Attribute attribute;
        Dwarf_Die next;
        if (!(dwarf_attr(&at, DW_AT_abstract_origin, &attribute) ||
              dwarf_attr(&at, DW_AT_specification, &attribute)) ||
            !dwarf_formref_die(&attribute, &next))
            break;
        at = next;
    }
    return at;
}

/* The entries around one, from the outside in, by going down from the unit: of the children of
 * each, the last one that doesn't begin after it. */
static size_t enclosing(Dwarf_Die *die, Dwarf_Die around[ENCLOSING_MAX])
{
    Dwarf_Off wanted = dwarf_dieoffset(die);
    Dwarf_Die at;
    size_t count = 0;
    if (!dwarf_diecu(die, &at, NULL, NULL))
        return 0;
    while (count < ENCLOSING_MAX) {
        Dwarf_Die child, next;
        if (dwarf_child(&at, &child) != 0)
            return 0;
        while (dwarf_siblingof(&child, &next) == 0 && dwarf_dieoffset(&next) <= wanted)
            child = next;
        if (dwarf_dieoffset(&child) == wanted)
            return count;
        if (dwarf_dieoffset(&child) > wanted)
            return 0;
        at = around[count++] = child;
    }
    return 0;
}

/*
 * A C++ function that the linker doesn't know (static, or in an unnamed namespace) has no linkage
 * name: its name is put together as the demangler would, so that it is the same function whether
 * this entry or its symbol gives the name.
 */
static void qualified_name(Dwarf_Die *function, const char *name, struct buffer *text)
{
    Dwarf_Die around[ENCLOSING_MAX], declaration = declaration_of(function);
    size_t count = enclosing(&declaration, around);
    for (size_t i = 0; i < count; i++) {
        int tag = dwarf_tag(&around[i]);
        const char *part = dwarf_diename(&around[i]);
        if (tag == DW_TAG_lexical_block)
            continue;
        if (!part)
            part = tag == DW_TAG_namespace ? "(anonymous namespace)" : "{unnamed}";
        buffer_printf(text, "%.*s::", (int)strnlen(part, DWARF_STRING_MAX), part);
    }
    buffer_add_text(text, name);
}

void dwarf_name_of(Dwarf_Die *function, struct buffer *text, struct dwarf_name *ret_name)
{
    const char *linkage = linkage_name(function), *name = dwarf_diename(function);
    int line = 0;
    *ret_name = (struct dwarf_name){0};
    text->length = 0;
    if (dwarf_decl_line(function, &line) == 0 && line > 0)
        ret_name->start_line = (uint32_t)line;
    if (linkage) {
        bool readable = demangle(linkage, text);
        /* Go and others put what isn't mangled there, C++ what can't be read. */
        ret_name->readable = readable ? buffer_text(text) : name ? name : linkage;
        ret_name->system_name = linkage;
    } else if (name && is_cplusplus(function) &&
               !dwarf_hasattr_integrate(function, DW_AT_external)) {
        qualified_name(function, name, text);
        ret_name->readable = buffer_text(text);
    } else {
        ret_name->readable = name;
    }
    if (ret_name->readable && ret_name->system_name &&
        !strcmp(ret_name->readable, ret_name->system_name))
        ret_name->system_name = NULL;
}
