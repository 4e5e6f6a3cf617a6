// SPDX-License-Identifier: Apache-2.0
// The writing side of the ring: see writer.h and capture/heap/ring.h.

#include "heap/writer.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "capture/heap/ring.h"
#include "heap/registers.h"

#define WAIT_NS 1000000 /* between looks at a full ring, */
#define WAITS_MAX 1000  /* of which there are so many for one record */

static struct heap_ring *ring;
static atomic_bool given_up;           /* waiting for room, until there is some again */
static _Atomic uint32_t announced_pid; /* whose mappings the reader has */

#define HEAD ((_Atomic uint64_t *)&ring->head)
#define TAIL ((_Atomic uint64_t *)&ring->tail)
#define CLOSED ((_Atomic uint32_t *)&ring->closed)

static void count(uint64_t *counter, uint64_t change)
{
    atomic_fetch_add_explicit((_Atomic uint64_t *)counter, change, memory_order_relaxed);
}

static bool is_room(uint64_t position, uint32_t slots)
{
    uint64_t tail = atomic_load(TAIL); /* beyond `position` when that is old */
    return position < tail || position + slots - tail <= HEAP_SLOTS;
}

/* Waits for a reader that is behind; not for ever, and not for one that is gone. */
static bool wait_for_room(uint32_t slots)
{
    const struct timespec pause = {.tv_nsec = WAIT_NS};
    if (atomic_load(&given_up)) /* a reader that hangs costs the program one wait, not many */
        return false;
    count(&ring->waits, 1);
    for (unsigned i = 0; i < WAITS_MAX && !atomic_load(CLOSED); i++) {
        nanosleep(&pause, NULL);
        if (is_room(atomic_load(HEAD), slots))
            return true;
    }
    atomic_store(&given_up, true);
    return false;
}

static void publish(uint64_t position, uint32_t slots, uint32_t kind)
{
    struct heap_record *record = (void *)ring->data[position % HEAP_SLOTS];
    record->kind = kind;
    record->slots = slots;
    atomic_store_explicit((_Atomic uint64_t *)&ring->state[position % HEAP_SLOTS], position + 1,
                          memory_order_release);
}

/* A place for a record of so many slots, or NULL. */
static struct heap_record *claim(uint32_t slots, uint32_t pid, uint64_t *ret_position)
{
    uint64_t position = atomic_load(HEAD);
    for (;;) {
        uint32_t left = HEAP_SLOTS - (uint32_t)(position % HEAP_SLOTS);
        uint32_t wanted = slots <= left ? slots : left;
        if (!is_room(position, wanted)) {
            if (!wait_for_room(wanted))
                return NULL;
            position = atomic_load(HEAD);
            continue;
        }
        if (!atomic_compare_exchange_weak(HEAD, &position, position + wanted))
            continue;
        if (atomic_load_explicit(&given_up, memory_order_relaxed))
            atomic_store(&given_up, false);
        atomic_store((_Atomic uint32_t *)&ring->owner[position % HEAP_SLOTS], pid);
        if (wanted == slots) {
            *ret_position = position;
            return (void *)ring->data[position % HEAP_SLOTS];
        }
        publish(position, wanted, HEAP_RECORD_PADDING);
        position += wanted;
    }
}

static uint32_t slots_for(size_t bytes)
{
    return (uint32_t)((sizeof(struct heap_record) + bytes + HEAP_SLOT_BYTES - 1) / HEAP_SLOT_BYTES);
}

/* A record with room for `bytes` behind it, filled in but for what is particular to its kind. */
static struct heap_record *begin(size_t bytes, uint64_t *ret_position)
{
    uint32_t pid = (uint32_t)getpid();
    struct heap_record *record = claim(slots_for(bytes), pid, ret_position);
    struct timespec now;
    if (!record)
        return NULL;
    clock_gettime(CLOCK_MONOTONIC, &now);
    memset(record, 0, sizeof(*record));
    record->time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    record->pid = pid;
    record->tid = (uint32_t)syscall(SYS_gettid);
    prctl(PR_GET_NAME, record->comm);
    return record;
}

/* ---- mappings ---- */

static void send_text(uint32_t kind, const char *text, size_t bytes)
{
    uint64_t position;
    struct heap_record *record = begin(bytes, &position);
    if (!record)
        return;
    memcpy(record + 1, text, bytes);
    record->bytes = (uint32_t)bytes;
    publish(position, slots_for(bytes), kind);
}

/* A line of /proc/self/maps about memory that may be executed: "7f..-7f.. r-xp". */
static bool is_executable(const char *line, size_t length)
{
    const char *space = memchr(line, ' ', length);
    return space && (size_t)(line + length - space) > 4 && space[3] == 'x';
}

/* The reader may look at /proc too late: short processes tell what they have mapped themselves. */
static void announce_mappings(void)
{
    char text[8192];
    size_t used = 0;
    ssize_t got;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    while ((got = read(fd, text + used, sizeof(text) - used)) > 0) {
        size_t length = used + (size_t)got, done = 0, kept = 0;
        char *end;
        while ((end = memchr(text + done, '\n', length - done))) {
            size_t line = (size_t)(end + 1 - (text + done));
            if (is_executable(text + done, line)) {
                memmove(text + kept, text + done, line);
                kept += line;
            }
            done += line;
        }
        if (kept)
            send_text(HEAP_RECORD_MAPS, text, kept);
        used = length - done;
        memmove(text, text + done, used);
        if (used == sizeof(text)) /* a line that can't be */
            break;
    }
    close(fd);
}

/* After a fork, the child is another process. */
static void announce_child(void)
{
    uint32_t pid = (uint32_t)getpid();
    if (atomic_exchange(&announced_pid, pid) != pid)
        announce_mappings();
}

/* ---- opening ---- */

struct heap_ring *writer_open(void)
{
    const char *path = secure_getenv(HEAP_RING_ENVIRONMENT);
    struct stat found;
    int fd = path && path[0] ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return NULL;
    void *mapped = MAP_FAILED;
    if (fstat(fd, &found) == 0 && found.st_size == (off_t)sizeof(struct heap_ring))
        mapped = mmap(NULL, sizeof(struct heap_ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped == MAP_FAILED)
        return NULL;
    struct heap_ring *opened = mapped;
    if (opened->magic != HEAP_RING_MAGIC || opened->version != HEAP_RING_VERSION ||
        opened->slots != HEAP_SLOTS) {
        munmap(mapped, sizeof(struct heap_ring));
        return NULL;
    }
    ring = opened;
    announced_pid = (uint32_t)getpid();
    send_text(HEAP_RECORD_STARTED, "", 0);
    announce_mappings();
    return ring;
}

/* ---- events ---- */

#define PAGE 4096u

/* Copies the stack as far as it goes, without a fault where it ends: page by page, since the kernel
 * copies each element as a whole. */
static size_t copy_stack(uint64_t sp, void *buffer)
{
    struct iovec to = {buffer, HEAP_STACK_BYTES}, from[HEAP_STACK_BYTES / PAGE + 1];
    size_t pages = 0, bytes = 0;
    while (bytes < HEAP_STACK_BYTES) {
        size_t length = PAGE - (sp + bytes) % PAGE;
        if (length > HEAP_STACK_BYTES - bytes)
            length = HEAP_STACK_BYTES - bytes;
        from[pages++] = (struct iovec){(void *)(sp + bytes), length};
        bytes += length;
    }
    ssize_t got = process_vm_readv(getpid(), &to, 1, from, pages, 0);
    if (got > 0)
        return (size_t)got;
    /* A filter forbids it; what is left of this page is there. */
    memcpy(buffer, from[0].iov_base, from[0].iov_len);
    return from[0].iov_len;
}

__attribute__((noinline)) void writer_alloc(void *pointer, size_t size, uint64_t weight)
{
    uint64_t position;
    announce_child();
    struct heap_record *record = begin(HEAP_STACK_BYTES, &position);
    if (!record) {
        count(&ring->lost_allocs, 1);
        count(&ring->lost_alloc_bytes, weight);
        return;
    }
    struct own_registers own = registers_read();
    record->pointer = (uint64_t)(uintptr_t)pointer;
    record->size = size;
    record->weight = weight;
    record->ip = own.ip;
    record->sp = own.sp;
    record->fp = own.fp;
    record->base = own.base;
    record->bytes = (uint32_t)copy_stack(own.sp, record + 1);
    /* Most stacks are shorter than what was claimed. */
    uint32_t used = slots_for(record->bytes), claimed = slots_for(HEAP_STACK_BYTES);
    if (used < claimed)
        publish(position + used, claimed - used, HEAP_RECORD_PADDING);
    publish(position, used, HEAP_RECORD_ALLOC);
}

void writer_free(void *pointer)
{
    uint64_t position;
    struct heap_record *record = begin(0, &position);
    if (!record) {
        count(&ring->lost_frees, 1);
        return;
    }
    record->pointer = (uint64_t)(uintptr_t)pointer;
    publish(position, slots_for(0), HEAP_RECORD_FREE);
}

void writer_refuse(uint64_t weight)
{
    count(&ring->live_full, 1);
    count(&ring->live_full_bytes, weight);
}
