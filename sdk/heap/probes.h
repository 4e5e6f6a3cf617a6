/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probes of OpenTelemetry's memory contract, provider otel_memory: alloc(ptr, size, weight) on
 * a sampled allocation, free(ptr) on the release of one. The kernel counts in their semaphores who
 * is attached.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Both in one word, so that the fast path reads one: is anybody interested? */
struct heap_switch {
    uint16_t attached; /* the semaphore of otel_memory:alloc */
    uint16_t ring;     /* `assay record` reads the ring */
} __attribute__((aligned(4)));

extern volatile struct heap_switch assay_heap_alloc_switch __attribute__((visibility("hidden")));

static inline int heap_is_wanted(void)
{
    return *(const volatile uint32_t *)&assay_heap_alloc_switch != 0;
}

void heap_probe_alloc(void *pointer, size_t size, uint64_t weight);
void heap_probe_free(void *pointer);
