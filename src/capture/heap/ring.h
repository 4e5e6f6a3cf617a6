/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared memory between libassay_heap.so (sdk/heap) and `assay record --mode heap`. The
 * recorder creates it and names it in $ASSAY_HEAP_RING; every process of the command maps it and
 * writes records, the recorder alone reads them. Both sides treat what the other wrote as hostile.
 *
 * The data are slots of HEAP_SLOT_BYTES. A writer claims consecutive slots by moving `head`, fills
 * them, and publishes the record by storing its position + 1 in the first slot's `state`. The
 * reader clears the states and moves `tail`. A record doesn't wrap: a writer that would reach
 * beyond the last slot publishes what is left as HEAP_RECORD_PADDING. A writer that dies between
 * claiming and publishing leaves a gap, which the reader recognises by `owner` and skips.
 */
#pragma once

#include <stdint.h>

#define HEAP_RING_MAGIC 0x3150414548595341ull /* "ASYHEAP1" */
#define HEAP_RING_VERSION 1
#define HEAP_RING_ENVIRONMENT "ASSAY_HEAP_RING"
#define HEAP_SLOT_BYTES 256u
#define HEAP_SLOTS 65536u /* a power of two: 16 MiB, of which only what is used takes memory */
#define HEAP_STACK_BYTES 32768u /* copied of each stack; deeper stacks are cut and say so */
#define HEAP_MAPS_BYTES 16384u  /* of mappings in one record; there may be several */

enum heap_record_kind {
    HEAP_RECORD_PADDING = 1,
    HEAP_RECORD_STARTED, /* the process runs another program now */
    HEAP_RECORD_MAPS,    /* lines of /proc/self/maps follow, of executable memory */
    HEAP_RECORD_ALLOC,   /* the stack follows */
    HEAP_RECORD_FREE,
};

struct heap_record {
    uint32_t kind;
    uint32_t slots;   /* of this record */
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint32_t pid, tid;
    char comm[16];
    uint64_t pointer;
    uint64_t size, weight; /* HEAP_RECORD_ALLOC */
    uint64_t ip, sp, fp, base;
    uint32_t bytes; /* that follow: of the stack from sp on, or of text */
    uint32_t unused;
};

struct heap_ring {
    uint64_t magic;
    uint32_t version;
    uint32_t slots;              /* HEAP_SLOTS */
    uint64_t mean_bytes;         /* between samples; 0: the library's default */
    uint64_t samples_per_second; /* above it the mean grows; 0: the library's default */
    uint32_t closed;             /* the recorder has ended: nobody reads any more */
    uint32_t unused[7];
    _Alignas(64) uint64_t head; /* the next position that a writer claims */
    _Alignas(64) uint64_t tail; /* the first position that is not free yet */
    /* Allocations that writers dropped. */
    _Alignas(64) uint64_t lost_allocs;
    uint64_t lost_alloc_bytes; /* weights of those */
    uint64_t lost_frees;
    uint64_t live_full; /* sampled allocations that found the table of live ones full, */
    uint64_t live_full_bytes;
    uint64_t waits; /* times that a writer found the ring full and waited */
    _Alignas(64) uint64_t state[HEAP_SLOTS]; /* position + 1: a record begins here */
    uint32_t owner[HEAP_SLOTS];              /* pid of who claimed a record here */
    _Alignas(4096) uint8_t data[HEAP_SLOTS][HEAP_SLOT_BYTES];
};
