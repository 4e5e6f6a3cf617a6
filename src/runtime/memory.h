/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of another process, as readers of runtimes see it: exact reads of limited length.
 * Nothing that is read is believed: the process may change it at any moment, or have made it up.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exactly `length` bytes; false when not all of them are there. */
typedef bool (*runtime_read_fn)(void *context, uint64_t address, void *buffer, size_t length);

struct runtime_memory {
    runtime_read_fn read;
    void *context;
};

static inline bool runtime_read(const struct runtime_memory *memory, uint64_t address, void *buffer,
                                size_t length)
{
    return memory->read(memory->context, address, buffer, length);
}

/* 0 where nothing can be read: no object is there. */
static inline uint64_t runtime_read_word(const struct runtime_memory *memory, uint64_t address)
{
    uint64_t word;
    return runtime_read(memory, address, &word, sizeof(word)) ? word : 0;
}

/* Through /proc/PID/mem, which stays open for the process that was asked for last. */
struct runtime_reader {
    uint32_t pid;
    int fd;             /* -1: not open */
    uint64_t reads;     /* so far */
    uint64_t remaining; /* reads that are left to the current budget; see runtime_reader_refill */
    int64_t refilled_ns;
};

void runtime_reader_init(struct runtime_reader *reader);
void runtime_reader_release(struct runtime_reader *reader);
/* Memory of this process, until the next call; reads are limited to a rate per second, where each
 * begun RUNTIME_READ_BYTES count as one, up to RUNTIME_LONG_BYTES; of what is beyond these, as many
 * count as one. */
#define RUNTIME_READS_PER_SECOND 50000
#define RUNTIME_READ_BYTES 32
#define RUNTIME_LONG_BYTES 1024
struct runtime_memory runtime_reader_of(struct runtime_reader *reader, uint32_t pid);
