// SPDX-License-Identifier: Apache-2.0
// Reading the ring: see reader.h.

#include "capture/heap/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

/* After a claim by a process that is gone, or that nobody owns up to. */
#define STALL_NS 2000000000

int heap_reader_init(struct heap_reader *reader, uint64_t mean_bytes, uint64_t samples_per_second,
                     struct error *error)
{
    reader->ring = NULL;
    reader->tail = 0;
    reader->stalled_ns = 0;
    reader->damaged = 0;
    reader->fd = memfd_create("assay-heap", MFD_CLOEXEC);
    if (reader->fd < 0 || ftruncate(reader->fd, sizeof(struct heap_ring)) < 0)
        return error_set_errno(error, -errno, "Failed to create the memory of the heap ring");
    void *mapped =
        mmap(NULL, sizeof(struct heap_ring), PROT_READ | PROT_WRITE, MAP_SHARED, reader->fd, 0);
    if (mapped == MAP_FAILED)
        return error_set_errno(error, -errno, "Failed to map the memory of the heap ring");
    reader->ring = mapped;
    reader->ring->version = HEAP_RING_VERSION;
    reader->ring->slots = HEAP_SLOTS;
    reader->ring->mean_bytes = mean_bytes;
    reader->ring->samples_per_second = samples_per_second;
    reader->ring->magic = HEAP_RING_MAGIC;
    return 0;
}

void heap_reader_release(struct heap_reader *reader)
{
    if (reader->ring) {
        __atomic_store_n(&reader->ring->closed, 1, __ATOMIC_SEQ_CST);
        munmap(reader->ring, sizeof(struct heap_ring));
    }
    if (reader->fd >= 0)
        close(reader->fd);
    reader->ring = NULL;
    reader->fd = -1;
}

static uint64_t state_of(const struct heap_reader *reader, uint64_t position)
{
    return __atomic_load_n(&reader->ring->state[position % HEAP_SLOTS], __ATOMIC_ACQUIRE);
}

static void give_back(struct heap_reader *reader, uint64_t slots)
{
    for (uint64_t i = 0; i < slots; i++) {
        reader->ring->state[(reader->tail + i) % HEAP_SLOTS] = 0;
        reader->ring->owner[(reader->tail + i) % HEAP_SLOTS] = 0;
    }
    reader->tail += slots;
    __atomic_store_n(&reader->ring->tail, reader->tail, __ATOMIC_RELEASE);
}

/* Claimed, but not published, for too long, and not by a living process: on to what is published
 * next. */
static void skip_gap(struct heap_reader *reader, uint64_t head)
{
    uint32_t owner =
        __atomic_load_n(&reader->ring->owner[reader->tail % HEAP_SLOTS], __ATOMIC_ACQUIRE);
    int64_t now_ns = monotonic_ns();
    if (!reader->stalled_ns)
        reader->stalled_ns = now_ns;
    bool alive = owner && owner <= INT32_MAX && kill((pid_t)owner, 0) == 0;
    if (alive || now_ns - reader->stalled_ns < STALL_NS)
        return;
    uint64_t slots = 1, claimed = MIN(head - reader->tail, HEAP_SLOTS);
    while (slots < claimed && state_of(reader, reader->tail + slots) != reader->tail + slots + 1)
        slots++;
    reader->damaged++;
    reader->stalled_ns = 0;
    give_back(reader, slots);
}

/* Copies the record at the tail. False when it can't be one. */
static bool copy_record(struct heap_reader *reader)
{
    uint32_t at = (uint32_t)(reader->tail % HEAP_SLOTS);
    struct heap_record *record = &reader->record;
    memcpy(record, reader->ring->data[at], sizeof(*record));
    uint64_t room = (uint64_t)record->slots * HEAP_SLOT_BYTES - sizeof(*record);
    if (!record->slots || record->slots > HEAP_SLOTS - at || record->kind < HEAP_RECORD_PADDING ||
        record->kind > HEAP_RECORD_FREE) {
        record->slots = 1;
        return false;
    }
    if (record->kind == HEAP_RECORD_PADDING) /* nothing else of it is filled in */
        return true;
    if (record->bytes > room || record->bytes > HEAP_STACK_BYTES || record->pid > INT32_MAX)
        return false;
    memcpy(reader->text, reader->ring->data[at] + sizeof(*record), record->bytes);
    reader->text[record->bytes] = '\0';
    record->comm[sizeof(record->comm) - 1] = '\0';
    return true;
}

bool heap_reader_next(struct heap_reader *reader)
{
    for (;;) {
        uint64_t head = __atomic_load_n(&reader->ring->head, __ATOMIC_ACQUIRE);
        if (head == reader->tail)
            return false;
        if (state_of(reader, reader->tail) != reader->tail + 1) {
            skip_gap(reader, head);
            if (state_of(reader, reader->tail) != reader->tail + 1)
                return false;
        }
        reader->stalled_ns = 0;
        bool good = copy_record(reader);
        give_back(reader, reader->record.slots);
        reader->damaged += !good;
        if (good && reader->record.kind != HEAP_RECORD_PADDING)
            return true;
    }
}

bool heap_map_parse(char *line, struct heap_map *ret_map)
{
    struct heap_map map = {0};
    char protection[5];
    unsigned major, minor;
    int name = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &map.start,
               &map.end, protection, &map.offset, &major, &minor, &map.inode, &name) < 7 ||
        !name || strlen(protection) < 3 || protection[2] != 'x' || map.end <= map.start)
        return false;
    map.device = makedev(major, minor);
    map.path = line + name;
    *ret_map = map;
    return true;
}
