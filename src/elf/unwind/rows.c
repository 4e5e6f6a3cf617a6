// SPDX-License-Identifier: Apache-2.0
// The table of rules, and looking things up in compiled rows: see rows.h.

#include "elf/unwind/rows.h"

#include "base/memory.h"

/* ---- rules ---- */

void unwind_rules_init(struct unwind_rules *rules)
{
    *rules = (struct unwind_rules){0};
    /* In the order of their numbers. */
    unwind_rules_add(rules, (struct unwind_rule){.cfa = UNWIND_CFA_NONE});
    unwind_rules_add(rules, (struct unwind_rule){.cfa = UNWIND_CFA_END});
    unwind_rules_add(rules, (struct unwind_rule){.cfa = UNWIND_CFA_UNSUPPORTED});
}

void unwind_rules_release(struct unwind_rules *rules)
{
    if (!rules)
        return;
    free(rules->rules);
    id_table_release(&rules->index);
    *rules = (struct unwind_rules){0};
}

uint16_t unwind_rules_add(struct unwind_rules *rules, struct unwind_rule rule)
{
    uint64_t word;
    _Static_assert(sizeof(rule) == sizeof(word), "a rule is one word");
    memcpy(&word, &rule, sizeof(word));
    uint64_t hash = hash_word(word);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&rules->index, &probe)) != ID_NONE)
        if (!memcmp(&rules->rules[id], &rule, sizeof(rule)))
            return (uint16_t)id;
    if (rules->count == UNWIND_RULES_MAX) {
        rules->rejected++;
        return UNWIND_RULE_UNSUPPORTED;
    }
    array_reserve(rules->rules, rules->capacity, rules->count + 1);
    id = (uint32_t)rules->count++;
    rules->rules[id] = rule;
    id_table_insert(&rules->index, hash, id);
    return (uint16_t)id;
}

/* ---- looking up ---- */

uint16_t unwind_rows_find(const struct unwind_rows *rows, uint64_t address)
{
    uint64_t page = (address >> UNWIND_PAGE_SHIFT) - rows->first_page;
    if (page >= rows->page_count)
        return UNWIND_RULE_NONE;
    uint32_t low = rows->pages[page], high = rows->pages[page + 1];
    uint32_t offset = address & (UNWIND_PAGE_BYTES - 1);
    if (low == high)
        return UNWIND_RULE_NONE;
    /* The first row has offset 0: there always is one at or before. */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (rows->rows[middle].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    return rows->rows[low].rule;
}

bool unwind_rows_function(const struct unwind_rows *rows, uint64_t address, uint64_t *ret_start,
                          uint64_t *ret_end)
{
    uint64_t base = rows->first_page << UNWIND_PAGE_SHIFT;
    uint64_t distance = address - base;
    size_t low = 0, high = rows->function_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rows->functions[middle].start <= distance)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || distance - rows->functions[low - 1].start >= rows->functions[low - 1].length)
        return false;
    *ret_start = base + rows->functions[low - 1].start;
    *ret_end = *ret_start + rows->functions[low - 1].length;
    return true;
}

size_t unwind_rows_bytes(const struct unwind_rows *rows)
{
    return sizeof(*rows->rows) * rows->row_count +
           sizeof(*rows->pages) * ((size_t)rows->page_count + 1) +
           sizeof(*rows->functions) * rows->function_count;
}

void unwind_rows_release(struct unwind_rows *rows)
{
    if (!rows)
        return;
    free(rows->pages);
    free(rows->rows);
    free(rows->functions);
    *rows = (struct unwind_rows){0};
}
