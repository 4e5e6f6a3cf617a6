/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A large section of a file, of which only the parts in use are in memory: .eh_frame of a browser
 * has tens of megabytes, and is read twice, mostly in order. All of it has an address, so pointers
 * into it can be computed with; content comes in blocks when it is needed, and goes again.
 *
 * Reads at an address that was not requested, or too long ago, return zero.
 */
#pragma once

#include "elf/file.h"

#define FRAME_WINDOW_BLOCK_SHIFT 16 /* 64 KiB; a multiple of the machine's pages */
#define FRAME_WINDOW_BLOCKS 16
#define FRAME_WINDOW_SECTION_MIN (2u << 20)

struct frame_window {
    struct elf_file *file;
    uint64_t offset; /* of the section in what the file reads */
    uint8_t *bytes;
    size_t length;
    unsigned block_shift;
    size_t block_count;
    size_t blocks_max; /* in memory */
    uint8_t *present;  /* by block */
    size_t *queue;     /* of blocks in memory, the oldest at `first` */
    size_t first, count;
    uint64_t read_bytes;
    bool keep_all; /* the order of use is such that dropping costs too much */
};

/* `block_shift` and `blocks_max` of 0 are the above. The file must outlive the window. */
int frame_window_init(struct frame_window *window, struct elf_file *file, uint64_t offset,
                      size_t length, unsigned block_shift, size_t blocks_max, struct error *error);
/* 1 when the section is one that a window pays for, 0 when it is to be read as a whole. */
int frame_window_open(struct frame_window *window, struct elf_file *file,
                      const struct elf_section *section, size_t limit_bytes, struct error *error);
void frame_window_release(struct frame_window *window);
#define _cleanup_window_ _cleanup_(frame_window_release)

/* Brings in what is missing of a stretch, and keeps it until the next call at least; false when it
 * can't be read or is not all in the section. */
bool frame_window_fetch(struct frame_window *window, size_t offset, size_t length);

/* The same, where nearly always all is there: one block holds hundreds of entries. */
static inline bool frame_window_need(struct frame_window *window, size_t offset, size_t length)
{
    size_t block = offset >> window->block_shift;
    if (length && offset < window->length && length <= window->length - offset &&
        (offset + length - 1) >> window->block_shift == block && window->present[block])
        return true;
    return frame_window_fetch(window, offset, length);
}
