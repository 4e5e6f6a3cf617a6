// SPDX-License-Identifier: Apache-2.0
// Allocation that never returns NULL: see memory.h for why.

#include "base/memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/allowance.h"

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

/* ---- the reserve ---- */

static size_t reserve_bytes;
static _Atomic(void *) reserve;
static _Atomic uint64_t shortages, refusals;

bool memory_reserved(void)
{
    if (likely(!reserve_bytes || atomic_load_explicit(&reserve, memory_order_relaxed)))
        return true;
    void *expected = NULL, *map = mmap(NULL, reserve_bytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return false;
    if (!atomic_compare_exchange_strong(&reserve, &expected, map))
        munmap(map, reserve_bytes); /* another thread was faster */
    return true;
}

void memory_reserve(size_t bytes)
{
    void *old = atomic_exchange(&reserve, NULL);
    if (old)
        munmap(old, reserve_bytes);
    reserve_bytes = bytes;
    memory_reserved();
}

uint64_t memory_shortages(void)
{
    return atomic_load(&shortages);
}

uint64_t memory_refusals(void)
{
    return atomic_load(&refusals);
}

/* An allocation failed. It is worth trying again even if another thread gave the reserve back. */
static void handle_shortage(size_t size_bytes)
{
    atomic_fetch_add(&shortages, 1);
    if (memory_meter && size_bytes >= MEMORY_NOTED_BYTES)
        memory_meter->full = true;
    void *map = atomic_exchange(&reserve, NULL);
    if (map)
        munmap(map, reserve_bytes);
}

/* ---- the allowance ---- */

static _Thread_local struct {
    bool limited, refused;
    size_t left_bytes;
    uint64_t skipped;
} allowance;

void memory_allow(size_t bytes)
{
    allowance.limited = true;
    allowance.refused = false;
    allowance.skipped = 0;
    allowance.left_bytes = bytes;
}

bool memory_allows(size_t bytes)
{
    if (!allowance.limited || bytes <= allowance.left_bytes / 2)
        return true;
    allowance.skipped++;
    atomic_fetch_add(&refusals, 1);
    return false;
}

void memory_allow_again(size_t bytes)
{
    if (allowance.limited && bytes >= MEMORY_NOTED_BYTES)
        allowance.left_bytes += bytes;
}

bool memory_allow_end(uint64_t *ret_skipped)
{
    bool limited = allowance.limited;
    allowance.limited = false;
    if (ret_skipped)
        *ret_skipped = limited ? allowance.skipped : 0;
    return limited && allowance.refused;
}

/* `before` is what the block has already. */
static bool is_allowed(void *before, size_t count, size_t size_bytes)
{
    size_t bytes, old;
    if (likely(!allowance.limited))
        return true;
    if (__builtin_mul_overflow(count, size_bytes, &bytes))
        return false; /* the allocation fails, too */
    if (bytes < MEMORY_NOTED_BYTES)
        return true;
    old = malloc_usable_size(before);
    bytes -= MIN(bytes, old);
    if (bytes > allowance.left_bytes) {
        allowance.refused = true;
        atomic_fetch_add(&refusals, 1);
        return false;
    }
    allowance.left_bytes -= bytes;
    return true;
}

static void *counted(void *pointer)
{
    if (unlikely(!pointer))
        atomic_fetch_add(&refusals, 1);
    return pointer;
}

static void *checked(void *pointer, size_t size_bytes)
{
    if (unlikely(!pointer)) {
        fprintf(stderr, "assay: out of memory: failed to allocate %zu bytes.\n", size_bytes);
        abort();
    }
    return pointer;
}

/* A shortage of the reserve's size is mostly short: other threads give back what they hold. Small
 * allocations, of which there are many, don't wait. */
#define WAITS 10 /* of 1, 2, 4, ... ms */

static bool wait_for_memory(unsigned waits, size_t size_bytes)
{
    if (size_bytes < MEMORY_NOTED_BYTES || waits == WAITS)
        return false;
    nanosleep(&(struct timespec){.tv_nsec = 1000000l << waits}, NULL);
    return true;
}

void memory_shortage(void)
{
    handle_shortage(MEMORY_NOTED_BYTES);
}

void memory_require(const void *made)
{
    checked((void *)made, MEMORY_NOTED_BYTES);
}

static void *try_alloc(size_t size_bytes)
{
    note_large(size_bytes);
    size_bytes = size_bytes ? size_bytes : 1;
    void *pointer = malloc(size_bytes);
    if (unlikely(!pointer)) {
        handle_shortage(size_bytes);
        pointer = counted(malloc(size_bytes));
    }
    return pointer;
}

void *memory_try_alloc(size_t size_bytes)
{
    return is_allowed(NULL, 1, size_bytes) ? try_alloc(size_bytes) : NULL;
}

void *memory_alloc(size_t size_bytes)
{
    void *pointer = try_alloc(size_bytes);
    for (unsigned i = 0; unlikely(!pointer) && wait_for_memory(i, size_bytes); i++)
        pointer = malloc(size_bytes);
    return checked(pointer, size_bytes);
}

static void *try_zalloc(size_t count, size_t size_bytes)
{
    if (!count || !size_bytes)
        count = size_bytes = 1;
    note_large(count * size_bytes);
    void *pointer = calloc(count, size_bytes);
    if (unlikely(!pointer)) {
        handle_shortage(count * size_bytes);
        pointer = counted(calloc(count, size_bytes));
    }
    return pointer;
}

void *memory_try_zalloc(size_t count, size_t size_bytes)
{
    return is_allowed(NULL, count, size_bytes) ? try_zalloc(count, size_bytes) : NULL;
}

void *memory_zalloc(size_t count, size_t size_bytes)
{
    void *pointer = try_zalloc(count, size_bytes);
    for (unsigned i = 0; unlikely(!pointer) && wait_for_memory(i, count * size_bytes); i++)
        pointer = calloc(count, size_bytes);
    return checked(pointer, count * size_bytes);
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

static void *try_resize(void *pointer, size_t count, size_t size_bytes)
{
    if (!count || !size_bytes)
        count = size_bytes = 1;
    void *resized = reallocarray(pointer, count, size_bytes);
    if (unlikely(!resized)) {
        handle_shortage(count * size_bytes);
        resized = counted(reallocarray(pointer, count, size_bytes));
    }
    return resized;
}

void *memory_try_resize(void *pointer, size_t count, size_t size_bytes)
{
    return is_allowed(pointer, count, size_bytes) ? try_resize(pointer, count, size_bytes) : NULL;
}

void *memory_resize(void *pointer, size_t count, size_t size_bytes)
{
    void *resized = try_resize(pointer, count, size_bytes);
    for (unsigned i = 0; unlikely(!resized) && wait_for_memory(i, count * size_bytes); i++)
        resized = reallocarray(pointer, count, size_bytes);
    return checked(resized, count * size_bytes);
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

size_t memory_resident(void)
{
    char text[128];
    size_t resident = 0;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[MAX(length, 0)] = '\0';
    if (length <= 0 || sscanf(text, "%*u %zu", &resident) != 1)
        return 0;
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

#define DOUBLED_BYTES (64u << 10)

static size_t grown_capacity(const size_t *capacity, size_t needed, size_t element_bytes)
{
    size_t wanted = *capacity ? *capacity : 16;
    /* Small arrays double, since copying is their main cost; large ones grow by half, since memory
     * is. */
    while (wanted < needed && wanted < SIZE_MAX / 2)
        wanted += wanted * element_bytes < DOUBLED_BYTES ? wanted : wanted / 2;
    wanted = MAX(wanted, needed); /* beyond half the address space resizing ends the process */
    if (wanted * element_bytes >= MEMORY_NOTED_BYTES)
        memory_note((wanted - *capacity) * element_bytes);
    return wanted;
}

void *memory_grow(void *array, size_t *capacity, size_t needed, size_t element_bytes)
{
    size_t wanted = grown_capacity(capacity, needed, element_bytes);
    array = memory_resize(array, wanted, element_bytes);
    *capacity = wanted;
    return array;
}

void *memory_try_grow(void *array, size_t *capacity, size_t needed, size_t element_bytes)
{
    size_t wanted = grown_capacity(capacity, needed, element_bytes);
    void *grown = memory_try_resize(array, wanted, element_bytes);
    if (grown)
        *capacity = wanted;
    return grown;
}
