// SPDX-License-Identifier: Apache-2.0
// Debugging information of compiled methods: see scopes.h. Where its parts are depends on the
// version: behind the code, or (from 23 on) in memory of their own.

#include "runtime/hotspot/scopes.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/hotspot/method.h"

struct part {
    uint64_t start, end;
};

struct reader {
    const struct hotspot_process *machine;
    const struct runtime_memory *memory;
    uint64_t nmethod;
};

/* A field of the method's header: an int, or a short where its version has that. */
static uint64_t field(const struct reader *reader, enum hotspot_field which)
{
    const struct hotspot_structs *structs = &reader->machine->structs;
    uint64_t at = reader->nmethod + structs->value[which];
    uint32_t number = 0;
    if (!hotspot_has(structs, which))
        return 0;
    if (!runtime_read(reader->memory, at, &number, structs->bytes[which] == 2 ? 2 : 4))
        return 0;
    return number;
}

static uint64_t address(const struct reader *reader, enum hotspot_field which)
{
    const struct hotspot_structs *structs = &reader->machine->structs;
    return hotspot_has(structs, which)
               ? runtime_read_word(reader->memory, reader->nmethod + structs->value[which])
               : 0;
}

static void find_parts(const struct reader *reader, struct part *ret_scopes, struct part *ret_pcs,
                       struct part *ret_metadata)
{
    const struct hotspot_structs *structs = &reader->machine->structs;
    uint64_t blob = reader->nmethod;
    if (hotspot_has(structs, HOTSPOT_NMETHOD_IMMUTABLE)) {
        uint64_t base = address(reader, HOTSPOT_NMETHOD_IMMUTABLE);
        uint64_t scopes = base + field(reader, HOTSPOT_NMETHOD_SCOPES);
        *ret_scopes = (struct part){scopes, base + field(reader, HOTSPOT_NMETHOD_IMMUTABLE_SIZE)};
        *ret_pcs = (struct part){base + field(reader, HOTSPOT_NMETHOD_PCS), scopes};
        if (hotspot_has(structs, HOTSPOT_BLOB_MUTABLE)) {
            uint64_t mutable = address(reader, HOTSPOT_BLOB_MUTABLE);
            *ret_metadata = (struct part){mutable + field(reader, HOTSPOT_BLOB_RELOCATION_SIZE),
                                          mutable + field(reader, HOTSPOT_BLOB_MUTABLE_SIZE)};
        } else {
            uint64_t data = blob + field(reader, HOTSPOT_BLOB_DATA_OFFSET);
            *ret_metadata = (struct part){data + field(reader, HOTSPOT_NMETHOD_METADATA),
                                          blob + field(reader, HOTSPOT_BLOB_SIZE)};
        }
        return;
    }
    uint64_t pcs = blob + field(reader, HOTSPOT_NMETHOD_PCS);
    uint64_t scopes = hotspot_has(structs, HOTSPOT_COMPILED_SCOPES)
                          ? address(reader, HOTSPOT_COMPILED_SCOPES)
                          : blob + field(reader, HOTSPOT_NMETHOD_SCOPES);
    *ret_scopes = (struct part){scopes, pcs};
    *ret_pcs = (struct part){pcs, blob + field(reader, HOTSPOT_NMETHOD_DEPENDENCIES)};
    *ret_metadata = (struct part){blob + field(reader, HOTSPOT_NMETHOD_METADATA), scopes};
}

/* Whole elements of a part, none when it is larger than the limit. */
static void *read_part(const struct runtime_memory *memory, const struct part *part,
                       size_t element_bytes, size_t limit, size_t *ret_count)
{
    *ret_count = 0;
    if (part->end <= part->start || (part->end - part->start) / element_bytes > limit)
        return NULL;
    size_t count = (size_t)(part->end - part->start) / element_bytes;
    if (!count)
        return NULL;
    void *bytes = memory_alloc(count * element_bytes);
    if (!runtime_read(memory, part->start, bytes, count * element_bytes)) {
        free(bytes);
        return NULL;
    }
    *ret_count = count;
    return bytes;
}

bool hotspot_debug_read(const struct hotspot_process *machine, const struct runtime_memory *memory,
                        uint64_t nmethod, struct hotspot_debug *ret_debug)
{
    struct reader reader = {.machine = machine, .memory = memory, .nmethod = nmethod};
    struct hotspot_debug debug = {.new_numbers = machine->major >= 20};
    struct part scopes, pcs, metadata;
    find_parts(&reader, &scopes, &pcs, &metadata);
    debug.scopes = read_part(memory, &scopes, 1, HOTSPOT_SCOPES_BYTES_MAX, &debug.scopes_bytes);
    debug.pcs = read_part(memory, &pcs, sizeof(*debug.pcs), HOTSPOT_PCS_MAX, &debug.pc_count);
    debug.metadata = read_part(memory, &metadata, 8, HOTSPOT_METADATA_MAX, &debug.metadata_count);
    *ret_debug = debug;
    if (debug.scopes && debug.pcs && debug.metadata)
        return true;
    hotspot_debug_release(ret_debug);
    return false;
}

void hotspot_debug_release(struct hotspot_debug *debug)
{
    free(debug->scopes);
    free(debug->pcs);
    free(debug->metadata);
    *debug = (struct hotspot_debug){0};
}

bool hotspot_debug_scope(const struct hotspot_debug *debug, uint32_t at,
                         struct hotspot_debug_scope *ret_scope)
{
    size_t place = at;
    uint32_t outer, method, index;
    if (!at ||
        !hotspot_number_read(debug->scopes, debug->scopes_bytes, &place, debug->new_numbers,
                             &outer) ||
        !hotspot_number_read(debug->scopes, debug->scopes_bytes, &place, debug->new_numbers,
                             &method) ||
        !hotspot_number_read(debug->scopes, debug->scopes_bytes, &place, debug->new_numbers,
                             &index))
        return false;
    /* Outer scopes are written first, which also keeps chains from leading in circles. */
    if (outer >= at || !method || method > debug->metadata_count)
        return false;
    *ret_scope = (struct hotspot_debug_scope){
        .outer = outer,
        .method = debug->metadata[method - 1],
        .index = index ? index - 1 : 0, /* -1 is the method's entry */
    };
    return true;
}
