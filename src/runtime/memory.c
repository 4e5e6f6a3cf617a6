// SPDX-License-Identifier: Apache-2.0
// Reading another process's memory: see memory.h.

#include "runtime/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

#define SECOND_NS 1000000000

void runtime_reader_init(struct runtime_reader *reader)
{
    *reader = (struct runtime_reader){.fd = -1, .remaining = RUNTIME_READS_PER_SECOND};
}

void runtime_reader_release(struct runtime_reader *reader)
{
    if (reader->fd >= 0)
        close(reader->fd);
    reader->fd = -1;
    reader->pid = 0;
}

/* A long read counts as several: what is made of it takes time, too. In the longest, which are of
 * text, that is less per byte. */
static bool take_read(struct runtime_reader *reader, size_t length)
{
    uint64_t cost = 1 + MIN(length, (size_t)RUNTIME_LONG_BYTES) / RUNTIME_READ_BYTES +
                    length / RUNTIME_LONG_BYTES;
    if (reader->remaining < cost) {
        int64_t now_ns = monotonic_ns();
        if (now_ns - reader->refilled_ns < SECOND_NS)
            return false;
        reader->refilled_ns = now_ns;
        reader->remaining = RUNTIME_READS_PER_SECOND;
    }
    reader->remaining -= MIN(cost, reader->remaining);
    reader->reads++;
    return true;
}

static bool read_process(void *context, uint64_t address, void *buffer, size_t length)
{
    struct runtime_reader *reader = context;
    if (reader->fd < 0 || address > INT64_MAX - length || !take_read(reader, length))
        return false;
    return pread(reader->fd, buffer, length, (off_t)address) == (ssize_t)length;
}

struct runtime_memory runtime_reader_of(struct runtime_reader *reader, uint32_t pid)
{
    /* The descriptor belongs to the memory of a program: after an exec, or the process's end, it
     * reads nothing. So one that can't read any more is opened again. */
    uint8_t byte;
    bool alive = reader->fd >= 0 && reader->pid == pid && pread(reader->fd, &byte, 1, 0) != 0;
    if (!alive) {
        char path[64];
        runtime_reader_release(reader);
        snprintf(path, sizeof(path), "/proc/%u/mem", pid);
        reader->fd = open(path, O_RDONLY | O_CLOEXEC);
        reader->pid = pid;
    }
    return (struct runtime_memory){.read = read_process, .context = reader};
}
