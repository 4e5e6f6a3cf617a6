// SPDX-License-Identifier: Apache-2.0
// Names of frames: see naming.h.

#include "profile/naming.h"

#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

struct name_index {
    struct naming *naming;
    struct id_table index;
    size_t capacity;
};

static uint32_t entry_of(struct name_index *names, const struct naming_entry *entry)
{
    struct naming *naming = names->naming;
    uint64_t hash = XXH3_64bits(entry->name, entry->length);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&names->index, &probe)) != ID_NONE) {
        struct naming_entry *known = &naming->entries[id];
        if (known->length != entry->length || memcmp(known->name, entry->name, entry->length))
            continue;
        if (!known->file[0])
            known->file = entry->file;
        if (!known->binary[0])
            known->binary = entry->binary;
        return id;
    }
    array_reserve(naming->entries, names->capacity, (size_t)naming->count + 1);
    id = naming->count++;
    naming->entries[id] = *entry;
    if (entry->unnamed)
        naming->entries[id].name = arena_strndup(&naming->text, entry->name, entry->length);
    id_table_insert(&names->index, hash, id);
    return id;
}

void naming_init(struct naming *naming, const struct profile *profile)
{
    *naming = (struct naming){0};
    struct name_index names = {.naming = naming};
    naming->of_frame = memory_zalloc(profile->frame_count, sizeof(uint32_t));
    naming->of_frame[0] = NAMING_NONE;

    /* Most profiles have many frames of few functions: go through a table by function id. */
    uint32_t *of_function = memory_zalloc(profile->function_count, sizeof(uint32_t));
    memset(of_function, 0xff, profile->function_count * sizeof(uint32_t));
    for (uint32_t i = 1; i < profile->frame_count; i++) {
        const struct profile_frame *frame = &profile->frames[i];
        const struct profile_function *function = &profile->functions[frame->function];
        const char *binary =
            path_base(profile_text(profile, profile->mappings[frame->mapping].file));
        bool named = function->name || function->system_name;
        if (named && of_function[frame->function] != NAMING_NONE) {
            naming->of_frame[i] = of_function[frame->function];
            continue;
        }
        struct naming_entry entry = {.file = "", .binary = binary};
        char address[300];
        if (named) {
            uint32_t name = function->name ? function->name : function->system_name;
            entry.name = profile_text(profile, name);
            entry.length = profile->strings[name].length;
            entry.file = profile_text(profile, function->file);
            entry.start_line = function->start_line;
        } else {
            entry.unnamed = true;
            entry.length =
                (size_t)snprintf(address, sizeof(address), "%.255s%s0x%llx", binary,
                                 binary[0] ? "+" : "", (unsigned long long)frame->address);
            entry.name = address;
        }
        naming->of_frame[i] = entry_of(&names, &entry);
        if (named)
            of_function[frame->function] = naming->of_frame[i];
    }
    free(of_function);
    id_table_release(&names.index);
}

void naming_release(struct naming *naming)
{
    free(naming->entries);
    free(naming->of_frame);
    arena_release(&naming->text);
    *naming = (struct naming){0};
}
