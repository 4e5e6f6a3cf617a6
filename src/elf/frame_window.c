// SPDX-License-Identifier: Apache-2.0
// Large sections in blocks: see frame_window.h.

#include "elf/frame_window.h"

#include <sys/mman.h>

#include "base/memory.h"

/* Reading the section over and over, as an order of entries made to do harm would, costs at most
 * this many times its size; then what is read stays. */
#define READ_AGAIN_MAX 6

int frame_window_init(struct frame_window *window, struct elf_file *file, uint64_t offset,
                      size_t length, unsigned block_shift, size_t blocks_max, struct error *error)
{
    void *bytes = mmap(NULL, MAX(length, 1), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED)
        return error_set_errno(error, -errno, "failed to reserve %zu bytes of address space",
                               length);
    /* Blocks are dropped one by one, which doesn't go with large pages. */
    madvise(bytes, MAX(length, 1), MADV_NOHUGEPAGE);
    *window = (struct frame_window){
        .file = file,
        .offset = offset,
        .bytes = bytes,
        .length = length,
        .block_shift = block_shift ? block_shift : FRAME_WINDOW_BLOCK_SHIFT,
        .blocks_max = blocks_max ? blocks_max : FRAME_WINDOW_BLOCKS,
    };
    window->block_count = (length >> window->block_shift) + 1;
    window->present = memory_zalloc(window->block_count, sizeof(*window->present));
    window->queue = memory_zalloc(window->block_count, sizeof(*window->queue));
    return 0;
}

int frame_window_open(struct frame_window *window, struct elf_file *file,
                      const struct elf_section *section, size_t limit_bytes, struct error *error)
{
    uint64_t size = section->size_bytes;
    if (file->layout != ELF_LAYOUT_FILE || (section->flags & SHF_COMPRESSED) ||
        size < FRAME_WINDOW_SECTION_MIN || section->type == SHT_NOBITS)
        return 0;
    /* Readers of whole sections report errors in these. */
    if (section->offset > file->size_bytes || size > file->size_bytes - section->offset ||
        size > limit_bytes)
        return 0;
    int r = frame_window_init(window, file, section->offset, (size_t)size, 0, 0, error);
    return r < 0 ? r : 1;
}

void frame_window_release(struct frame_window *window)
{
    if (window->bytes)
        munmap(window->bytes, MAX(window->length, 1));
    free(window->present);
    free(window->queue);
    *window = (struct frame_window){0};
}

static size_t block_bytes(const struct frame_window *window, size_t start)
{
    return MIN((size_t)1 << window->block_shift, window->length - start);
}

/* Takes the oldest block out of memory, or lets it stay a while where it is wanted now. */
static void drop_oldest(struct frame_window *window, size_t first_wanted, size_t last_wanted)
{
    size_t block = window->queue[window->first];
    window->first = (window->first + 1) % window->block_count;
    if (block >= first_wanted && block <= last_wanted) {
        window->queue[(window->first + window->count - 1) % window->block_count] = block;
        return;
    }
    size_t start = block << window->block_shift;
    madvise(window->bytes + start, block_bytes(window, start), MADV_DONTNEED);
    window->present[block] = false;
    window->count--;
}

static bool bring_in(struct frame_window *window, size_t block)
{
    size_t start = block << window->block_shift;
    size_t length = block_bytes(window, start);
    if (elf_read(window->file, window->offset + start, window->bytes + start, length) < 0)
        return false;
    window->read_bytes += length;
    window->present[block] = true;
    window->queue[(window->first + window->count++) % window->block_count] = block;
    return true;
}

bool frame_window_fetch(struct frame_window *window, size_t offset, size_t length)
{
    if (offset > window->length || length > window->length - offset)
        return false;
    if (!length)
        return true;
    size_t first = offset >> window->block_shift;
    size_t last = (offset + length - 1) >> window->block_shift;
    size_t missing = 0;
    for (size_t block = first; block <= last; block++)
        missing += !window->present[block];
    if (!missing)
        return true;
    window->keep_all |= window->read_bytes / READ_AGAIN_MAX > window->length;
    size_t room = MAX(window->blocks_max, last - first + 1);
    while (!window->keep_all && window->count + missing > room)
        drop_oldest(window, first, last);
    for (size_t block = first; block <= last; block++)
        if (!window->present[block] && !bring_in(window, block))
            return false;
    return true;
}
