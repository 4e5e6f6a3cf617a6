/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debugging information of a compiled method: for places in its code, the methods that were
 * inlined there, each with its bytecode. Memory of another process: nothing is believed.
 */
#pragma once

#include "runtime/hotspot/attach.h"

#define HOTSPOT_SCOPES_BYTES_MAX (1u << 20)
#define HOTSPOT_PCS_MAX (1u << 16)
#define HOTSPOT_METADATA_MAX (1u << 14)

struct hotspot_debug {
    uint8_t *scopes; /* free() */
    size_t scopes_bytes;
    struct hotspot_debug_pc {
        int32_t offset, scope; /* of the code; in `scopes`, 0: none */
        int32_t object, flags;
    } * pcs; /* by offset; the first and the last mean no place; free() */
    size_t pc_count;
    uint64_t *metadata; /* free() */
    size_t metadata_count;
    bool new_numbers;
};

/* False when it cannot be read. */
bool hotspot_debug_read(const struct hotspot_process *machine, const struct runtime_memory *memory,
                        uint64_t nmethod, struct hotspot_debug *ret_debug);
void hotspot_debug_release(struct hotspot_debug *debug);

struct hotspot_debug_scope {
    uint32_t outer;  /* where in `scopes`: always before this one; 0: none */
    uint64_t method; /* its address */
    uint32_t index;  /* of the bytecode */
};

/* The scope that begins there. */
bool hotspot_debug_scope(const struct hotspot_debug *debug, uint32_t at,
                         struct hotspot_debug_scope *ret_scope);
