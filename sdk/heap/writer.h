/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes to the ring of `assay record --mode heap`, where $ASSAY_HEAP_RING names one: for machines
 * and users without BPF. Any thread may write at any time; writers wait for nobody but a reader
 * that is far behind, and for that a bounded time. Nothing here allocates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_ring;

/* Maps the ring and announces the process. NULL: there is none, or it is not usable. */
struct heap_ring *writer_open(void);

void writer_alloc(void *pointer, size_t size, uint64_t weight);
void writer_free(void *pointer);
/* A sampled allocation found the table of live ones full. */
void writer_refuse(uint64_t weight);
