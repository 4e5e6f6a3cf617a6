/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An arena: many small allocations that live and die together. Pointers stay valid until
 * arena_release. Not for use by two threads at once.
 */
#pragma once

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    char *next;
    char *end;
    size_t total_bytes; /* what the blocks take, for memory accounting */
};

void arena_release(struct arena *arena);

/* Of an arena that is empty yet: the first block is just so large, for what won't grow. */
void arena_begin(struct arena *arena, size_t size_bytes);

/* 8-byte aligned, not zeroed. */
void *arena_alloc(struct arena *arena, size_t size_bytes);

/* A copy with a terminating NUL. No alignment: strings pack tightly. */
char *arena_strndup(struct arena *arena, const char *text, size_t length);
