// SPDX-License-Identifier: Apache-2.0
// A command under libassay_heap.so: see preload.h.

#include "capture/heap/preload.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arch/x86_64/registers.h"
#include "base/clock.h"
#include "base/memory.h"
#include "capture/heap/reader.h"

#define LIBRARY HEAP_LIBRARY
#define LOOK_NS 5000000
#define SAMPLES_PER_SECOND 2000

struct heap_preload {
    struct heap_reader reader;
    struct heap heap;
    bool open; /* `heap` is in use */
    char library[PATH_MAX];
    uint64_t mean_bytes; /* 0: the default */
    uint64_t processes;
};

/* ---- finding the library ---- */

/* Beside the program, in a build directory or an installation, or where it was configured to be. */
static int find_library(char *ret_path, struct error *error)
{
    static const char *const beside[] = {"sdk/" LIBRARY, "../lib/assay/" LIBRARY, LIBRARY};
    const char *named = getenv("ASSAY_HEAP_LIBRARY");
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (named && named[0]) {
        snprintf(ret_path, PATH_MAX, "%s", named);
        if (access(ret_path, R_OK) == 0)
            return 0;
        return error_set_errno(error, -errno, "Cannot read %s, which ASSAY_HEAP_LIBRARY names",
                               named);
    }
    program[MAX(length, 0)] = '\0';
    char *slash = strrchr(program, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; slash && i < ARRAY_LENGTH(beside); i++)
        if (snprintf(ret_path, PATH_MAX, "%s/%s", program, beside[i]) < PATH_MAX &&
            access(ret_path, R_OK) == 0)
            return 0;
    snprintf(ret_path, PATH_MAX, "%s", ASSAY_LIBRARY_DIRECTORY "/" LIBRARY);
    if (access(ret_path, R_OK) == 0)
        return 0;
    return error_set(error, -ENOENT,
                     LIBRARY " is neither beside this program nor at %s; install it, or name it in "
                             "ASSAY_HEAP_LIBRARY.",
                     ret_path);
}

int heap_preload_new(uint64_t mean_bytes, struct heap_preload **ret_preload, struct error *error)
{
    struct heap_preload *preload = memory_zalloc(1, sizeof(*preload));
    preload->reader.fd = -1;
    preload->mean_bytes = mean_bytes;
    int r = find_library(preload->library, error);
    if (!r)
        r = heap_reader_init(&preload->reader, mean_bytes, SAMPLES_PER_SECOND, error);
    if (r < 0) {
        heap_preload_free(preload);
        return r;
    }
    *ret_preload = preload;
    return 0;
}

void heap_preload_free(struct heap_preload *preload)
{
    if (!preload)
        return;
    heap_reader_release(&preload->reader);
    if (preload->open)
        heap_release(&preload->heap);
    free(preload);
}

const char *heap_preload_library(const struct heap_preload *preload)
{
    return preload->library;
}

/* The settings that the ring would have; the user's own take precedence. */
static void enter_settings(const struct heap_preload *preload)
{
    char text[32];
    if (preload->mean_bytes) {
        snprintf(text, sizeof(text), "%llu", (unsigned long long)preload->mean_bytes);
        setenv("ASSAY_HEAP_INTERVAL", text, 0);
    }
    snprintf(text, sizeof(text), "%d", SAMPLES_PER_SECOND);
    setenv("ASSAY_HEAP_RATE", text, 0);
}

void heap_preload_enter(const struct heap_preload *preload, bool probes)
{
    const char *before = getenv("LD_PRELOAD");
    char text[2 * PATH_MAX], ring[64];
    /* Opened by its path, since programs close descriptors that they don't know. */
    snprintf(ring, sizeof(ring), "/proc/%d/fd/%d", (int)getppid(), preload->reader.fd);
    snprintf(text, sizeof(text), "%s%s%s", preload->library, before && before[0] ? ":" : "",
             before ? before : "");
    setenv("LD_PRELOAD", text, 1);
    if (probes)
        enter_settings(preload);
    else
        setenv(HEAP_RING_ENVIRONMENT, ring, 1);
}

void heap_preload_into(struct heap_preload *preload, struct recorder *recorder)
{
    heap_init(&preload->heap, recorder);
    preload->open = true;
}

/* ---- what comes ---- */

/* The process ran nothing of what we know before. */
static void take_started(struct heap_preload *preload, const struct heap_record *record)
{
    struct recorder *recorder = preload->heap.recorder;
    preload->processes++;
    heap_take_exec(&preload->heap, record->pid);
    recorder_take(recorder, &(struct perf_record){.kind = PERF_NAMED,
                                                  .time_ns = record->time_ns,
                                                  .pid = record->pid,
                                                  .tid = record->pid,
                                                  .path = record->comm,
                                                  .executed = true});
}

static void take_maps(struct heap_preload *preload, const struct heap_record *record)
{
    struct recorder *recorder = preload->heap.recorder;
    struct process *process = processes_get(&recorder->processes, record->pid);
    char *line = preload->reader.text;
    if (!process)
        return;
    process->known = true; /* this is what it has, whether or not /proc still shows it */
    if (!process->name[0])
        snprintf(process->name, sizeof(process->name), "%s", record->comm);
    while (*line) {
        char *end = strchr(line, '\n');
        struct heap_map map;
        if (end)
            *end = '\0';
        if (heap_map_parse(line, &map))
            process_map(&recorder->processes, process,
                        &(struct mapping_event){.start = map.start,
                                                .length = map.end - map.start,
                                                .offset = map.offset,
                                                .device = map.device,
                                                .inode = map.inode,
                                                .path = map.path,
                                                .time_ns = record->time_ns});
        if (!end)
            break;
        line = end + 1;
    }
}

static void take_alloc(struct heap_preload *preload, const struct heap_record *record)
{
    struct recorder *recorder = preload->heap.recorder;
    struct process *process = recorder_process(recorder, record->pid, true);
    if (!process || !recorder->profile || !recorder_wants(recorder, record->time_ns))
        return;
    struct unwind_input input = {
        .registers = unwind_registers_of(record->ip, record->sp, record->fp),
        .stack = (const uint8_t *)preload->reader.text,
        .stack_bytes = record->bytes,
        .stack_address = record->sp,
        .rules = &recorder->modules.rules,
        .find = process_place,
        .context = process,
    };
    input.registers.value[REGISTER_BASE] = record->base;
    input.registers.known |= 1u << REGISTER_BASE;
    uint32_t frames[RECORDER_FRAMES_MAX];
    size_t count = recorder_walk(recorder, &input, process, frames);
    count = heap_caller_count(recorder, frames, count);
    struct recorder_sample sample = {.pid = record->pid,
                                     .tid = record->tid,
                                     .comm = record->comm,
                                     .time_ns = record->time_ns,
                                     .frames = frames,
                                     .frame_count = count};
    heap_take_alloc(&preload->heap, &sample,
                    &(struct heap_alloc){record->pointer, record->size, record->weight});
}

static void take(struct heap_preload *preload)
{
    const struct heap_record *record = &preload->reader.record;
    switch (record->kind) {
    case HEAP_RECORD_STARTED:
        take_started(preload, record);
        break;
    case HEAP_RECORD_MAPS:
        take_maps(preload, record);
        break;
    case HEAP_RECORD_ALLOC:
        take_alloc(preload, record);
        break;
    default:
        heap_take_free(&preload->heap, record->pid, record->pointer);
    }
}

void heap_preload_read(struct heap_preload *preload, int timeout_ms)
{
    int64_t until_ns = monotonic_ns() + timeout_ms * 1000000ll;
    bool any = false;
    for (;;) {
        while (heap_reader_next(&preload->reader)) {
            take(preload);
            any = true;
        }
        if (any || monotonic_ns() >= until_ns)
            return;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
}

void heap_preload_settle(struct heap_preload *preload)
{
    heap_settle(&preload->heap);
}

struct heap_preload_stats heap_preload_stats(const struct heap_preload *preload)
{
    const struct heap_ring *ring = preload->reader.ring;
    return (struct heap_preload_stats){
        .allocs = preload->heap.allocs,
        .frees = preload->heap.frees,
        .processes = preload->processes,
        .lost_allocs = ring->lost_allocs,
        .lost_frees = ring->lost_frees,
        .live_refused = ring->live_full + preload->heap.live.refused,
        .damaged = preload->reader.damaged,
        .waits = ring->waits,
    };
}
