// SPDX-License-Identifier: Apache-2.0
// Arena of chained blocks; blocks grow from 4 KiB to 1 MiB so that small users stay small.

#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#include "base/memory.h"

#define FIRST_BLOCK_BYTES 4096
#define LARGEST_BLOCK_BYTES (1024 * 1024)

struct arena_block {
    struct arena_block *older;
    size_t size_bytes;
    char data[];
};

void arena_release(struct arena *arena)
{
    while (arena->blocks) {
        struct arena_block *older = arena->blocks->older;
        free(arena->blocks);
        arena->blocks = older;
    }
    *arena = (struct arena){0};
}

static void add_block_of(struct arena *arena, size_t size)
{
    struct arena_block *block = memory_alloc(sizeof(*block) + size);
    block->older = arena->blocks;
    block->size_bytes = size;
    arena->blocks = block;
    arena->next = block->data;
    arena->end = block->data + size;
    arena->total_bytes += sizeof(*block) + size;
}

static void arena_add_block(struct arena *arena, size_t needed)
{
    size_t size = arena->blocks ? arena->blocks->size_bytes * 2 : 0;
    size = MAX(size, (size_t)FIRST_BLOCK_BYTES);
    add_block_of(arena, MAX(MIN(size, (size_t)LARGEST_BLOCK_BYTES), needed));
}

void arena_begin(struct arena *arena, size_t size_bytes)
{
    if (!arena->blocks && size_bytes)
        add_block_of(arena, size_bytes);
}

void *arena_alloc(struct arena *arena, size_t size_bytes)
{
    size_t pad = -(uintptr_t)arena->next & 7;
    if (!arena->next || (size_t)(arena->end - arena->next) < size_bytes + pad) {
        arena_add_block(arena, size_bytes + 8);
        pad = -(uintptr_t)arena->next & 7;
    }
    void *result = arena->next + pad;
    arena->next += pad + size_bytes;
    return result;
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
    if (!arena->next || (size_t)(arena->end - arena->next) < length + 1)
        arena_add_block(arena, length + 1);
    char *copy = arena->next;
    memcpy(copy, text, length);
    copy[length] = '\0';
    arena->next += length + 1;
    return copy;
}
