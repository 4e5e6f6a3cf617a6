// SPDX-License-Identifier: Apache-2.0
// Allocation that never returns NULL: see memory.h for why.

#include "base/memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

_Thread_local struct memory_meter *memory_meter;

void memory_note(size_t bytes)
{
    struct memory_meter *meter = memory_meter;
    if (!meter)
        return;
    meter->used_bytes += bytes;
    if (meter->used_bytes > meter->granted_bytes && !meter->full)
        meter->full = !meter->more(meter);
}

static void note_large(size_t bytes)
{
    if (unlikely(bytes >= MEMORY_NOTED_BYTES))
        memory_note(bytes);
}

static void *checked(void *pointer, size_t size_bytes)
{
    if (unlikely(!pointer)) {
        fprintf(stderr, "assay: out of memory: %zu bytes could not be had.\n", size_bytes);
        abort();
    }
    return pointer;
}

void *memory_alloc(size_t size_bytes)
{
    note_large(size_bytes);
    return checked(malloc(size_bytes ? size_bytes : 1), size_bytes);
}

void *memory_zalloc(size_t count, size_t size_bytes)
{
    if (!count || !size_bytes)
        count = size_bytes = 1;
    note_large(count * size_bytes);
    return checked(calloc(count, size_bytes), count * size_bytes);
}

void *memory_zalloc_scattered(size_t count, size_t size_bytes)
{
    enum { HUGE_PAGE = 2 << 20 };
    char *memory = memory_zalloc(count, size_bytes);
    size_t length = count * size_bytes;
    if (length >= 4 * HUGE_PAGE) {
        /* Fresh memory of this size is not touched yet, so the advice comes in time. */
        uintptr_t first = ((uintptr_t)memory + HUGE_PAGE - 1) & -(uintptr_t)HUGE_PAGE;
        uintptr_t end = ((uintptr_t)memory + length) & -(uintptr_t)HUGE_PAGE;
        madvise((void *)first, end - first, MADV_HUGEPAGE);
    }
    return memory;
}

void *memory_resize(void *pointer, size_t count, size_t size_bytes)
{
    if (!count || !size_bytes)
        count = size_bytes = 1;
    return checked(reallocarray(pointer, count, size_bytes), count * size_bytes);
}

char *memory_strdup(const char *text)
{
    return memory_strndup(text, strlen(text));
}

char *memory_strndup(const char *text, size_t length)
{
    char *copy = memory_alloc(length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

#define DOUBLED_BYTES (64u << 10)

void *memory_grow(void *array, size_t *capacity, size_t needed, size_t element_bytes)
{
    size_t wanted = *capacity ? *capacity : 16;
    /* What is small is doubled, since copying is what it costs; what is large isn't, since memory
     * is. */
    while (wanted < needed && wanted < SIZE_MAX / 2)
        wanted += wanted * element_bytes < DOUBLED_BYTES ? wanted : wanted / 2;
    wanted = MAX(wanted, needed); /* beyond half the address space resizing ends the process */
    if (wanted * element_bytes >= MEMORY_NOTED_BYTES)
        memory_note((wanted - *capacity) * element_bytes);
    array = memory_resize(array, wanted, element_bytes);
    *capacity = wanted;
    return array;
}
