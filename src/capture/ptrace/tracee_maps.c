// SPDX-License-Identifier: Apache-2.0
// Mappings of traced processes: see tracee_maps.h.

#include "capture/ptrace/tracee_maps.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/idtable.h"
#include "base/memory.h"
#include "capture/record/processes.h"

/* Reading a list of mappings that took T of CPU time is not done again for REREAD_PAUSE times T. */
#define REREAD_PAUSE 20

static bool is_known(const struct tracee_process *process, uint64_t ip)
{
    for (size_t i = 0; i < process->mapping_count; i++)
        if (ip >= process->mappings[i].start && ip < process->mappings[i].end)
            return true;
    return false;
}

/* Pages of the process's memory. The thread's own directory: a main thread that has ended shows
 * nothing under the process's. */
static uint64_t size_pages(pid_t tid)
{
    char path[64], text[128];
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[MAX(length, 0)] = '\0';
    return strtoull(text, NULL, 10);
}

static uint64_t hash_path(const char *path)
{
    uint64_t hash = 0;
    for (; *path; path++)
        hash = hash_word(hash ^ (uint8_t)*path);
    return hash;
}

/* An executable mapping, from a line of /proc/PID/maps; *ret_path points into the line. */
static bool parse_line(char *line, struct tracee_mapping *ret_mapping, const char **ret_path)
{
    struct tracee_mapping mapping = {0};
    char protection[5];
    int name = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &mapping.start,
               &mapping.end, protection, &mapping.offset, &name) < 4 ||
        !name || protection[2] != 'x' || mapping.end <= mapping.start)
        return false;
    mapping.path = hash_path(line + name);
    *ret_mapping = mapping;
    *ret_path = line + name;
    return true;
}

static bool was_there(const struct tracee_mapping *list, size_t count, size_t *at,
                      const struct tracee_mapping *mapping)
{
    /* Both lists are by address. */
    while (*at < count && list[*at].start < mapping->start)
        ++*at;
    const struct tracee_mapping *old = &list[*at];
    return *at < count && old->start == mapping->start && old->end == mapping->end &&
           old->offset == mapping->offset && old->path == mapping->path;
}

static void read_maps(struct tracee *tracee, uint64_t time_ns, perf_record_fn callback,
                      void *context)
{
    struct tracee_process *process = tracee->process;
    char path[64], line[4600];
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)tracee->tid);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    _cleanup_free_ struct tracee_mapping *before = TAKE_PTR(process->mappings);
    size_t before_count = process->mapping_count, at = 0;
    process->mapping_count = process->mapping_capacity = 0;
    while (process->mapping_count < MAPPINGS_MAX && fgets(line, sizeof(line), file)) {
        struct tracee_mapping mapping;
        const char *name;
        if (!parse_line(line, &mapping, &name))
            continue;
        array_reserve(process->mappings, process->mapping_capacity, process->mapping_count + 1);
        process->mappings[process->mapping_count++] = mapping;
        if (was_there(before, before_count, &at, &mapping))
            continue;
        callback(context, &(struct perf_record){.kind = PERF_MAPPED,
                                                .time_ns = time_ns,
                                                .pid = (uint32_t)process->pid,
                                                .tid = (uint32_t)tracee->tid,
                                                .start = mapping.start,
                                                .length = mapping.end - mapping.start,
                                                .offset = mapping.offset,
                                                .path = name});
    }
    fclose(file);
}

void tracee_maps_update(struct tracee *tracee, const struct perf_record *sample,
                        perf_record_fn callback, void *context)
{
    struct tracee_process *process = tracee->process;
    uint64_t size = size_pages(tracee->tid);
    bool known = is_known(process, sample->ip);
    if (known && (size == process->size_pages || monotonic_ns() < process->reread_ns))
        return;
    int64_t cost_ns = -clock_ns(CLOCK_THREAD_CPUTIME_ID);
    read_maps(tracee, sample->time_ns, callback, context);
    cost_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID);
    process->size_pages = size;
    process->reread_ns = monotonic_ns() + REREAD_PAUSE * cost_ns;
}

void tracee_maps_forget(struct tracee_process *process)
{
    process->mapping_count = 0;
    process->size_pages = 0;
    process->reread_ns = 0;
}
