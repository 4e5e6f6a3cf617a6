// SPDX-License-Identifier: Apache-2.0
// Go's table of functions as names: see gonames.h.

#include "symbol/gonames.h"

bool go_covers(const struct gopclntab *table, uint64_t address)
{
    struct gopclntab_function function;
    return gopclntab_find(table, address, &function) && function.file_values && function.name[0];
}

bool go_find(const struct gopclntab *table, uint64_t address, struct symbol *ret_symbol)
{
    struct gopclntab_function function;
    if (!gopclntab_find(table, address, &function) || !function.name[0])
        return false;
    *ret_symbol = (struct symbol){.name = function.name,
                                  .start = function.start,
                                  .size_bytes = function.end - function.start,
                                  .distance = address - function.start};
    return true;
}

size_t go_frames(const struct gopclntab *table, uint64_t address,
                 struct symbol_frame ret_frames[SYMBOL_FRAMES_MAX])
{
    struct gopclntab_frame frames[SYMBOL_FRAMES_MAX];
    size_t count = gopclntab_frames(table, address, frames, SYMBOL_FRAMES_MAX), kept = 0;
    if (count && !frames[count - 1].name[0])
        return 0;
    for (size_t i = 0; i < count; i++)
        if (frames[i].name[0]) /* a damaged record of an inlined call */
            ret_frames[kept++] = (struct symbol_frame){.name = frames[i].name,
                                                       .file = frames[i].file,
                                                       .line = frames[i].line,
                                                       .start_line = frames[i].start_line};
    return kept;
}
