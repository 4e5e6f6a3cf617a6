/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information as compilers write it, in .eh_frame and .debug_frame: the entries (here)
 * and the programs in them that say, for each address, where the caller's registers are (cfi.h).
 *
 * Compiled code has one FDE per function, which names a CIE that many share. Nothing in a section
 * is believed: an entry is read within its own length, and that within the section.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/cursor.h"
#include "elf/frame_window.h"

/* A section's bytes, borrowed. */
struct frame_section {
    const uint8_t *bytes;
    size_t length;
    struct frame_window *window; /* whose `bytes` they are; NULL when all are in memory */
    uint64_t address;            /* of the first byte, for pointers relative to themselves */
    uint64_t data_base;          /* for pointers relative to the data; 0 when not known */
    bool is_debug_frame;
    bool open_ended; /* the length is an upper limit: a terminator ends it */
};

/* Real ones have about ten bytes. The limit keeps many FDEs of many overlapping CIEs from costing
 * the product of both. */
#define FRAME_CIE_PROGRAM_MAX 1024

struct frame_cie {
    size_t offset; /* of the entry in the section */
    uint8_t pointer_encoding;
    uint8_t address_bytes;
    bool has_augmentation_data;
    bool signal_frame; /* an interrupted frame's address is exact, not a return address */
    uint64_t code_alignment;
    int64_t data_alignment;
    uint64_t return_register;
    struct cursor program;
};

/* An entry's program is good until another entry is read. */
struct frame_fde {
    size_t offset;
    size_t cie_offset;
    uint64_t start; /* address of the first instruction */
    uint64_t end;
    struct cursor program;
};

/* A few CIEs serve all FDEs, one after the other: those used last are kept. */
#define FRAME_CIES_KEPT 64

struct frame_reader {
    struct frame_section section;
    size_t next;          /* offset of the next entry */
    uint64_t bad_entries; /* those that made no sense and were left out */
    struct frame_cie cies[FRAME_CIES_KEPT];
    bool cie_known[FRAME_CIES_KEPT];
    /* Of a section in a window, copies: they are used with entries from all over it. */
    uint8_t cie_programs[FRAME_CIES_KEPT][FRAME_CIE_PROGRAM_MAX];
};

void frame_reader_init(struct frame_reader *reader, const struct frame_section *section);

/*
 * The next FDE: 1, or 0 at the end. Entries that make no sense are counted and skipped; one whose
 * length makes no sense ends the section. FDEs of discarded functions (an address of 0, an empty
 * range) are skipped silently.
 */
int frame_reader_next(struct frame_reader *reader, struct frame_fde *ret_fde);

/* The FDE at an offset that frame_reader_next gave before. */
bool frame_fde_at(struct frame_reader *reader, size_t offset, struct frame_fde *ret_fde);

/* The CIE of an FDE; the pointer is good until the next call. NULL when it makes no sense. */
const struct frame_cie *frame_cie_at(struct frame_reader *reader, size_t offset);

/* A pointer in one of the encodings of .eh_frame; sets cursor->bad when it can't be read or asks
 * for what is not known. `cursor` walks the section's own bytes. */
uint64_t frame_pointer(const struct frame_section *section, struct cursor *cursor, uint8_t encoding,
                       uint8_t address_bytes);
