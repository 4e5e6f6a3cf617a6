// SPDX-License-Identifier: Apache-2.0
// Which code of a unit is in which function, and what is inlined there: see index_builder.h.

#include <dwarf.h>

#include "symbol/index/builder.h"

#define LEVELS_MAX 4096 /* of entries in entries; real ones go to about 60 */

bool index_is_code(struct index_builder *builder, uint64_t address)
{
    const struct symbol_code *last = builder->last_code;
    if (last && address >= last->start && address < last->end)
        return true;
    last = symbol_code_find(builder->symbols->code, builder->symbols->code_count, address);
    if (last)
        builder->last_code = last;
    return last != NULL;
}

uint64_t index_next_wanted(const struct index_builder *builder, uint64_t from)
{
    size_t low = 0, high = builder->wanted_count;
    if (!builder->wanted)
        return from;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (builder->wanted[middle] < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low < builder->wanted_count ? builder->wanted[low] : UINT64_MAX;
}

void index_list_units(struct index_file_units *file)
{
    struct debug_bytes info = file->sections.list[DEBUG_INFO];
    uint64_t next;
    for (uint64_t at = 0; at < info.length; at = next) {
        if (!debug_unit_skip(info, at, &next))
            break;
        array_reserve(file->starts, file->capacity, file->count + 1);
        file->starts[file->count++] = at;
    }
}

/* ---- the walk ---- */

static uint32_t add_scope(struct index_builder *builder, const struct debug_function *function,
                          const uint8_t *place, uint32_t parent)
{
    uint16_t depth = parent ? builder->scopes[parent].depth + 1 : 1;
    builder->ranges.count = 0;
    debug_ranges_add(&builder->unit, &function->low, &function->high, &function->ranges,
                     &builder->ranges);
    /* An inlined function of no code may still have what is inlined into it. */
    if ((!builder->ranges.count && !parent) || builder->scope_count == UINT32_MAX - 2 ||
        depth >= SYMBOL_FRAMES_MAX)
        return 0;
    array_reserve(builder->scopes, builder->scope_capacity, builder->scope_count + 2);
    uint32_t number = (uint32_t)builder->scope_count + 1;
    uint64_t start = UINT64_MAX;
    for (size_t i = 0; i < builder->ranges.count; i++) {
        const struct debug_range *range = &builder->ranges.list[i];
        /* Linkers place discarded code at address 0 or at the end of the address space. */
        if (!index_is_code(builder, range->start))
            continue;
        array_reserve(builder->claims, builder->claim_capacity, builder->claim_count + 1);
        builder->claims[builder->claim_count++] =
            (struct index_stretch){range->start, MIN(range->end, builder->last_code->end), number};
        /* The first range is where a function is entered, unless the entry says otherwise. */
        if (start == UINT64_MAX)
            start = range->start;
    }
    if (start == UINT64_MAX && !parent)
        return 0;
    const uint8_t *named = index_named_place(builder, function);
    builder->scopes[number] =
        (struct index_scope){.place = named ? named : place,
                             .start = start,
                             .parent = parent,
                             .root = parent ? builder->scopes[parent].root : number,
                             .depth = depth,
                             .call_file = function->call_file,
                             .call_line = function->call_line};
    builder->scope_count = number;
    return number;
}

struct walk {
    struct cursor cursor;
    const struct debug_abbreviations *table;
    struct level {
        uint32_t scope, context;
    } levels[LEVELS_MAX]; /* what the entries on each level are in */
    size_t depth;
};

/* Reads past an entry; *scope becomes that of its children. */
static bool visit(struct index_builder *builder, struct walk *walk, const uint8_t *place,
                  const struct debug_abbreviation *abbreviation, uint32_t *scope)
{
    struct debug_function function;
    bool inlined = abbreviation->tag == DW_TAG_inlined_subroutine;
    if (!inlined && abbreviation->tag != DW_TAG_subprogram)
        return debug_entry_skip(&builder->unit, &walk->cursor, walk->table, abbreviation);
    if (!debug_function_read(&builder->unit, &walk->cursor, walk->table, abbreviation, &function))
        return false;
    if (inlined && *scope) {
        uint32_t own = add_scope(builder, &function, place, *scope);
        if (own)
            *scope = own;
    } else if (!inlined) {
        *scope = add_scope(builder, &function, place, 0);
    }
    return true;
}

static void walk_entries(struct index_builder *builder, struct walk *walk)
{
    do {
        const uint8_t *place = walk->cursor.at;
        uint64_t code = cursor_uleb(&walk->cursor);
        if (!code) {
            if (walk->cursor.bad || !walk->depth)
                return;
            walk->depth--;
            continue;
        }
        const struct debug_abbreviation *abbreviation = debug_abbreviation_find(walk->table, code);
        struct level level = walk->levels[walk->depth];
        if (!abbreviation)
            return;
        index_contexts_add(&builder->contexts, abbreviation, place, &level.context);
        if (!visit(builder, walk, place, abbreviation, &level.scope))
            return;
        if (abbreviation->has_children) {
            if (walk->depth + 1 == LEVELS_MAX)
                return;
            walk->levels[++walk->depth] = level;
        }
    } while (walk->depth);
}

/* ---- from ranges to stretches ---- */

/* Of functions with the same code, such as other names of one, the first shall have it, with what
 * is inlined in it: it comes last. */
static int compare_claims(const void *left, const void *right, void *context)
{
    const struct index_builder *builder = context;
    const struct index_stretch *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    uint32_t first = builder->scopes[a->scope].root, second = builder->scopes[b->scope].root;
    if (first != second)
        return first > second ? -1 : 1;
    return a->scope < b->scope ? -1 : a->scope > b->scope;
}

static void add_stretch(struct index_builder *builder, uint64_t start, uint64_t end, uint32_t scope)
{
    if (start >= end)
        return;
    array_reserve(builder->stretches, builder->stretch_capacity, builder->stretch_count + 1);
    builder->stretches[builder->stretch_count++] = (struct index_stretch){start, end, scope};
}

/* Entries of functions contain those of what is inlined in them, and so do their ranges: the last
 * to begin has the code, until it ends. */
static void make_stretches(struct index_builder *builder)
{
    const struct index_stretch *claims = builder->claims;
    _cleanup_free_ uint32_t *open = memory_zalloc(builder->claim_count + 1, sizeof(*open));
    size_t open_count = 0;
    uint64_t at = 0;
    builder->stretch_count = 0;
    if (builder->claim_count)
        qsort_r(builder->claims, builder->claim_count, sizeof(*claims), compare_claims, builder);
    for (size_t i = 0; i <= builder->claim_count; i++) {
        uint64_t start = i < builder->claim_count ? claims[i].start : UINT64_MAX;
        while (open_count && at < start) {
            const struct index_stretch *top = &claims[open[open_count - 1]];
            add_stretch(builder, at, MIN(top->end, start), top->scope);
            if (top->end <= start)
                open_count--;
            at = MAX(at, MIN(top->end, start));
        }
        at = start;
        open[open_count++] = (uint32_t)i;
    }
}

void index_read_functions(struct index_builder *builder)
{
    const struct debug_unit *unit = &builder->unit;
    struct walk walk;
    walk.cursor = cursor_of(unit->info.bytes, (size_t)unit->end);
    walk.depth = 0;
    walk.levels[0] = (struct level){0};
    builder->scope_count = builder->claim_count = 0;
    builder->stretch_count = 0;
    index_contexts_start(&builder->contexts, unit);
    walk.cursor.at += unit->entries;
    walk.table = debug_unit_abbreviations(unit, &builder->abbreviations);
    if (walk.table && unit->entries < unit->end)
        walk_entries(builder, &walk);
    if (builder->claim_count < UINT32_MAX)
        make_stretches(builder);
}
