/* SPDX-License-Identifier: Apache-2.0 */
/* Where the code of an entry is: DW_AT_low_pc with DW_AT_high_pc, .debug_ranges, .debug_rnglists.
 */
#pragma once

#include "elf/dwarf/unit.h"

struct debug_range {
    uint64_t start, end; /* end is behind it, and greater than start */
};

struct debug_range_list {
    struct debug_range *list;
    size_t count, capacity;
    uint64_t
        budget; /* how many more may be read; lists can be shared, and so make few bytes many */
};

/* Appends the ranges that the three attributes of an entry of the unit tell. */
void debug_ranges_add(const struct debug_unit *unit, const struct debug_value *low,
                      const struct debug_value *high, const struct debug_value *ranges,
                      struct debug_range_list *list);
