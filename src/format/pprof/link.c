// SPDX-License-Identifier: Apache-2.0
// Reading pprof, second part: the tables are complete, so references by id become positions in the
// tables. References to locations and functions that are not there end the reading here. This needs
// no profile, so it runs on the thread that collects.

#include <string.h>

#include "base/memory.h"
#include "format/pprof/reader.h"

/* A table whose messages carry ids, which need not be dense. */
struct id_map {
    bool in_order;   /* ids are 1, 2, 3 and so on, as most writers have it: the rest isn't needed */
    size_t count;    /* of these */
    uint32_t *dense; /* id -> position + 1 */
    uint64_t dense_limit;
    struct id_table sparse;
    uint64_t seed; /* random: ids come from outside and must not be prepared to collide */
};

static void id_map_release(struct id_map *map)
{
    free(map->dense);
    id_table_release(&map->sparse);
}

#define ID_OF(table, i) (*(const uint64_t *)((const char *)(table) + (i)*stride + id_offset))

/* Makes the ids of a table findable; they must be unique and not 0. */
static int id_map_build(struct id_map *map, const void *table, size_t count, size_t stride,
                        size_t id_offset, const char *what, struct error *error)
{
    uint64_t largest = 0;
    map->in_order = true;
    map->count = count;
    for (size_t i = 0; i < count; i++) {
        largest = MAX(largest, ID_OF(table, i));
        map->in_order &= ID_OF(table, i) == i + 1;
    }
    if (map->in_order)
        return 0;
    if (largest <= 8 * (uint64_t)count + 1024) {
        map->dense_limit = largest + 1;
        map->dense = memory_zalloc(map->dense_limit, sizeof(*map->dense));
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t id = ID_OF(table, i);
        bool taken = false;
        if (map->dense) {
            taken = map->dense[id];
            map->dense[id] = (uint32_t)i + 1;
        } else {
            struct id_probe probe = id_probe_start(hash_word(id ^ map->seed));
            uint32_t other;
            while ((other = id_table_next(&map->sparse, &probe)) != ID_NONE)
                taken |= ID_OF(table, other) == id;
            id_table_insert(&map->sparse, hash_word(id ^ map->seed), (uint32_t)i);
        }
        if (!id || taken)
            return error_set(error, -EBADMSG, "%s number %zu has the id %llu, which is %s.", what,
                             i + 1, (unsigned long long)id,
                             id ? "already taken" : "reserved for \"none\"");
    }
    return 0;
}

/* Position in the table, or ID_NONE. */
static inline uint32_t id_map_find(const struct id_map *map, const void *table, size_t stride,
                                   size_t id_offset, uint64_t id)
{
    if (map->in_order)
        return id - 1 < map->count ? (uint32_t)(id - 1) : ID_NONE;
    if (map->dense)
        return id < map->dense_limit ? map->dense[id] - 1 : ID_NONE;
    struct id_probe probe = id_probe_start(hash_word(id ^ map->seed));
    uint32_t at;
    while ((at = id_table_next(&map->sparse, &probe)) != ID_NONE)
        if (ID_OF(table, at) == id)
            return at;
    return ID_NONE;
}

#define BUILD_IDS(reader, map, table, count, what, error)                                          \
    id_map_build(&(map), (reader)->table, (reader)->count, sizeof(*(reader)->table),               \
                 offsetof(__typeof__(*(reader)->table), id), what, error)
#define FIND_ID(reader, map, table, id_value)                                                      \
    id_map_find(&(map), (reader)->table, sizeof(*(reader)->table),                                 \
                offsetof(__typeof__(*(reader)->table), id), id_value)

static int link_locations(struct pprof_reader *reader, struct error *error)
{
    _cleanup_(id_map_release) struct id_map mappings = {.seed = reader->seed},
                                            functions = {.seed = reader->seed};
    int r = BUILD_IDS(reader, mappings, mappings, mapping_count, "Mapping", error);
    if (!r)
        r = BUILD_IDS(reader, functions, functions, function_count, "Function", error);
    if (r < 0)
        return r;
    for (size_t i = 0; i < reader->location_count; i++) {
        struct raw_location *raw = &reader->locations[i];
        /* A mapping that is not there costs a frame its binary, no more; pprof sees it so, too. */
        if (raw->mapping)
            raw->mapping = FIND_ID(reader, mappings, mappings, raw->mapping) + 1u;
        for (uint32_t k = 0; k < raw->line_count; k++) {
            struct raw_line *line = &reader->lines[raw->first_line + k];
            uint32_t at =
                line->function ? FIND_ID(reader, functions, functions, line->function) : ID_NONE;
            if (line->function && at == ID_NONE)
                return error_set(error, -EBADMSG,
                                 "Location %llu refers to function %llu, which doesn't exist.",
                                 (unsigned long long)raw->id, (unsigned long long)line->function);
            line->function = at + 1u;
        }
    }
    return 0;
}

/* Ids of one and two bytes, up to the first that is longer, isn't there, or is the last: nearly all
 * there are. */
static inline __attribute__((always_inline)) void
link_small(struct pprof_reader *reader, const struct id_map *map, bool in_order, struct wire *ids)
{
    if (ids->at == ids->end)
        return;
    const uint8_t *at = ids->at, *const last = ids->end - 1;
    const uint32_t *const dense = map->dense;
    const uint32_t limit =
        (uint32_t)MIN(in_order ? map->count + 1 : map->dense_limit, (uint64_t)UINT16_MAX);
    uint32_t *next = reader->stack_locations + reader->stack_location_count;
    while (at < last) {
        const uint8_t *after = at + 1;
        uint32_t id = at[0];
        if (id >= 0x80) {
            if (unlikely(at[1] >= 0x80))
                break;
            id += ((uint32_t)at[1] << 7) - 0x80;
            after++;
        }
        uint32_t position = likely(id < limit) ? in_order ? id : dense[id] : 0;
        if (unlikely(!position))
            break;
        *next++ = position - 1;
        at = after;
    }
    reader->stack_location_count = (size_t)(next - reader->stack_locations);
    ids->at = at;
}

/* The stacks' raw ids as positions, leaf first; an entry's offset and length then count those. */
static int link_stacks(struct pprof_reader *reader, struct error *error)
{
    _cleanup_(id_map_release) struct id_map locations = {.seed = reader->seed};
    int r = BUILD_IDS(reader, locations, locations, location_count, "Location", error);
    if (r < 0)
        return r;
    size_t capacity = 0;
    /* Most ids are of one or two bytes. */
    array_reserve(reader->stack_locations, capacity, reader->stacks.bytes.length / 2 + 1);
    for (size_t i = 0; i < reader->stacks.count; i++) {
        struct byte_entry *entry = &reader->stacks.entries[i];
        struct wire ids = wire_of(reader->stacks.bytes.data + entry->offset, entry->length);
        entry->offset = reader->stack_location_count;
        /* One more than needed, so that there is a list even when all stacks are empty. */
        array_reserve(reader->stack_locations, capacity,
                      reader->stack_location_count + entry->length + 1);
        if (locations.in_order)
            link_small(reader, &locations, true, &ids);
        else if (locations.dense)
            link_small(reader, &locations, false, &ids);
        while (ids.at < ids.end) {
            uint64_t id;
            if (!wire_varint(&ids, &id))
                return error_set(error, -EBADMSG,
                                 "The sample before offset %llu has a malformed list of locations.",
                                 (unsigned long long)entry->seen_at);
            uint32_t at = FIND_ID(reader, locations, locations, id);
            if (at == ID_NONE)
                return error_set(
                    error, -EBADMSG,
                    "The sample before offset %llu refers to location %llu, which doesn't exist.",
                    (unsigned long long)entry->seen_at, (unsigned long long)id);
            reader->stack_locations[reader->stack_location_count++] = at;
        }
        entry->length = (uint32_t)(reader->stack_location_count - entry->offset);
    }
    buffer_release(&reader->stacks.bytes);
    return 0;
}

int pprof_link(struct pprof_reader *reader, struct error *error)
{
    int r = link_locations(reader, error);
    return r < 0 ? r : link_stacks(reader, error);
}
