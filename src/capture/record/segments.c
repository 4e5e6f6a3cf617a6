// SPDX-License-Identifier: Apache-2.0
// Numbers for what is mapped from files: see segments.h.

#include "capture/record/segments.h"

#include "base/memory.h"

void segments_init(struct segments *segments)
{
    *segments = (struct segments){0};
    segments_clear(segments);
}

void segments_release(struct segments *segments)
{
    free(segments->list);
    id_table_release(&segments->index);
}

void segments_clear(struct segments *segments)
{
    array_reserve(segments->list, segments->capacity, 1);
    segments->list[0] = (struct segment){0};
    segments->count = 1;
    segments->refused = 0;
    id_table_clear(&segments->index);
}

uint32_t segments_of(struct segments *segments, struct mapping *mapping)
{
    if (mapping->segment || !mapping->module)
        return mapping->segment;
    uint64_t hash = hash_word((uint64_t)(uintptr_t)mapping->module ^ hash_word(mapping->offset));
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&segments->index, &probe)) != ID_NONE) {
        const struct segment *segment = &segments->list[id];
        if (segment->module == mapping->module && segment->offset == mapping->offset)
            return mapping->segment = id;
    }
    if (segments->count == SEGMENTS_MAX) {
        segments->refused++;
        return 0;
    }
    id = (uint32_t)segments->count;
    array_reserve(segments->list, segments->capacity, segments->count + 1);
    segments->list[segments->count++] = (struct segment){.module = mapping->module,
                                                         .start = mapping->start,
                                                         .end = mapping->end,
                                                         .offset = mapping->offset};
    id_table_insert(&segments->index, hash, id);
    return mapping->segment = id;
}
