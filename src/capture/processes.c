// SPDX-License-Identifier: Apache-2.0
// Processes and their mappings: see processes.h.

#include "capture/processes.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "base/memory.h"

/* A process that has ended is kept for its last samples. */
#define ENDED_REST_NS 1000000000

void processes_init(struct processes *processes, struct modules *modules)
{
    memset(processes, 0, sizeof(*processes));
    processes->modules = modules;
}

static struct process **seat_of(const struct processes *processes, uint32_t pid)
{
    struct process **page = pid < PIDS_MAX ? processes->pages[pid / PIDS_PER_PAGE] : NULL;
    return page ? &page[pid % PIDS_PER_PAGE] : NULL;
}

static void forget(struct processes *processes, struct process *process)
{
    if (processes->forget)
        processes->forget(processes->context, process);
    struct process *last = processes->list[--processes->count];
    processes->list[process->at] = last;
    last->at = process->at;
    *seat_of(processes, process->pid) = NULL;
    /* Over months every pid comes by once. */
    uint32_t page = process->pid / PIDS_PER_PAGE;
    if (!--processes->page_users[page]) {
        free(processes->pages[page]);
        processes->pages[page] = NULL;
    }
    free(process->mappings);
    free(process);
}

void processes_release(struct processes *processes)
{
    while (processes->count)
        forget(processes, processes->list[processes->count - 1]);
    for (size_t i = 0; i < ARRAY_LENGTH(processes->pages); i++)
        free(processes->pages[i]);
    free(processes->list);
    free(processes->threads);
    id_table_release(&processes->thread_index);
}

struct process *processes_find(const struct processes *processes, uint32_t pid)
{
    struct process **seat = seat_of(processes, pid);
    return seat ? *seat : NULL;
}

struct process *processes_get(struct processes *processes, uint32_t pid)
{
    struct process *process = processes_find(processes, pid);
    if (process)
        return process;
    if (processes->count == PROCESSES_MAX || pid >= PIDS_MAX) {
        processes->refused++;
        return NULL;
    }
    if (!processes->pages[pid / PIDS_PER_PAGE])
        processes->pages[pid / PIDS_PER_PAGE] = memory_zalloc(PIDS_PER_PAGE, sizeof(process));
    process = memory_zalloc(1, sizeof(*process));
    process->pid = pid;
    process->at = processes->count;
    array_reserve(processes->list, processes->capacity, processes->count + 1);
    processes->list[processes->count++] = process;
    processes->page_users[pid / PIDS_PER_PAGE]++;
    *seat_of(processes, pid) = process;
    return process;
}

void processes_start(struct processes *processes, uint32_t pid, const struct process *parent)
{
    struct process *old = processes_find(processes, pid);
    if (old)
        forget(processes, old);
    if (!parent || !parent->known)
        return; /* it is looked up when it is seen */
    struct process *process = processes_get(processes, pid);
    if (!process)
        return;
    array_reserve(process->mappings, process->capacity, parent->count);
    if (parent->count)
        memcpy(process->mappings, parent->mappings, parent->count * sizeof(*process->mappings));
    process->count = parent->count;
    process->known = true;
    process->program = parent->program;
    process->parent = parent->number ? parent->number : parent->parent;
    memcpy(process->name, parent->name, sizeof(process->name));
}

void processes_end(struct processes *processes, uint32_t pid, int64_t now_ns)
{
    struct process *process = processes_find(processes, pid);
    if (process)
        process->ended_ns = now_ns;
}

void processes_tidy(struct processes *processes, int64_t now_ns)
{
    for (size_t i = processes->count; i-- > 0;) {
        struct process *process = processes->list[i];
        if (!process->ended_ns || now_ns - process->ended_ns < ENDED_REST_NS)
            continue;
        /* A main thread can end before the others. */
        if (kill((pid_t)process->pid, 0) == 0 || errno != ESRCH)
            process->ended_ns = 0;
        else
            forget(processes, process);
    }
}

void processes_doubt(struct processes *processes, int64_t now_ns)
{
    for (size_t i = 0; i < processes->count; i++) {
        struct process *process = processes->list[i];
        process->known = false;
        process->caught_up_ns = 0;
        if (!process->ended_ns) /* those that have not are found by processes_tidy */
            process->ended_ns = now_ns;
    }
}

static struct thread *find_thread(const struct processes *processes, uint32_t tid)
{
    struct id_probe probe = id_probe_start(hash_word(tid));
    uint32_t id;
    while ((id = id_table_next(&processes->thread_index, &probe)) != ID_NONE)
        if (processes->threads[id].tid == tid)
            return &processes->threads[id];
    return NULL;
}

void processes_name_thread(struct processes *processes, uint32_t tid, const char *name)
{
    if (processes->no_thread_names)
        return;
    struct thread *thread = find_thread(processes, tid);
    /* Nobody says which of them are gone: all begin anew, with their processes' names. */
    if (!thread && processes->thread_count == THREADS_MAX) {
        processes->thread_count = 0;
        id_table_clear(&processes->thread_index);
    }
    if (!thread) {
        array_reserve(processes->threads, processes->thread_capacity, processes->thread_count + 1);
        id_table_insert(&processes->thread_index, hash_word(tid),
                        (uint32_t)processes->thread_count);
        thread = &processes->threads[processes->thread_count++];
        thread->tid = tid;
    }
    snprintf(thread->name, sizeof(thread->name), "%s", name);
}

const char *processes_thread_name(const struct processes *processes, const struct process *process,
                                  uint32_t tid)
{
    const struct thread *thread = tid == process->pid ? NULL : find_thread(processes, tid);
    return thread ? thread->name : process->name;
}

void process_execute(struct process *process, uint64_t time_ns)
{
    process->count = 0;
    process->known = true;
    process->changed = true;
    process->replaced_ns = time_ns;
    process->program = NULL;
    process->parent = process->number ? process->number : process->parent;
    process->number = 0;
    process->labels_epoch = 0;
}

/* The first mapping that ends after `address`. */
static size_t position_of(const struct process *process, uint64_t address)
{
    size_t low = 0, high = process->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (process->mappings[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct mapping *process_find(const struct process *process, uint64_t address)
{
    size_t at = position_of(process, address);
    if (at == process->count || process->mappings[at].start > address)
        return NULL;
    return &process->mappings[at];
}

bool process_place(void *process, uint64_t address, struct unwind_place *ret_place)
{
    const struct mapping *mapping = process_find(process, address);
    if (!mapping)
        return false;
    struct module *module = mapping->module;
    *ret_place = (struct unwind_place){.rows = module ? module_rows(module->table, module) : NULL,
                                       .bias = mapping->bias};
    return true;
}

/* Takes [start, end) out of what is mapped; a mapping may lose its head, its tail or its middle. */
static void unmap(struct process *process, uint64_t start, uint64_t end)
{
    size_t at = position_of(process, start);
    while (at < process->count && process->mappings[at].start < end) {
        struct mapping *mapping = &process->mappings[at];
        if (mapping->start < start && mapping->end > end) {
            array_reserve(process->mappings, process->capacity, process->count + 1);
            mapping = &process->mappings[at];
            memmove(mapping + 1, mapping, (process->count - at) * sizeof(*mapping));
            process->count++;
            mapping->end = start;
            mapping[1].offset += end - mapping[1].start;
            mapping[1].start = end;
            return;
        }
        if (mapping->start < start) {
            mapping->end = start;
            at++;
        } else if (mapping->end > end) {
            mapping->offset += end - mapping->start;
            mapping->start = end;
            return;
        } else {
            memmove(mapping, mapping + 1, (process->count - at - 1) * sizeof(*mapping));
            process->count--;
        }
    }
}

/* Whether other code than this is there, or was. */
static bool replaces(const struct process *process, const struct mapping *mapping)
{
    for (size_t at = position_of(process, mapping->start);
         at < process->count && process->mappings[at].start < mapping->end; at++)
        if (process->mappings[at].module != mapping->module ||
            process->mappings[at].bias != mapping->bias)
            return true;
    return false;
}

void process_map(struct processes *processes, struct process *process,
                 const struct mapping_event *event)
{
    struct mapping mapping = {.start = event->start, .offset = event->offset};
    if (!event->length || __builtin_add_overflow(event->start, event->length, &mapping.end))
        return;
    mapping.module = modules_get(processes->modules, &(struct module_request){
                                                         .path = event->path,
                                                         .pid = process->pid,
                                                         .start = event->start,
                                                         .end = mapping.end,
                                                         .device = event->device,
                                                         .inode = event->inode,
                                                     });
    if (!process->program)
        process->program = mapping.module;
    if (mapping.module)
        module_bias(mapping.module, event->start, event->offset, &mapping.bias);
    if (replaces(process, &mapping)) {
        process->replaced_ns = MAX(process->replaced_ns, event->time_ns);
        process->churned_ns = process->replaced_ns;
    }
    unmap(process, event->start, mapping.end);
    process->changed = true;
    if (process->count >= MAPPINGS_MAX) {
        processes->refused++;
        return;
    }
    size_t at = position_of(process, event->start);
    array_reserve(process->mappings, process->capacity, process->count + 1);
    memmove(process->mappings + at + 1, process->mappings + at,
            (process->count - at) * sizeof(*process->mappings));
    process->mappings[at] = mapping;
    process->count++;
}

static void read_name(uint32_t pid, uint32_t tid, char ret_name[16])
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/comm", pid, tid);
    FILE *file = fopen(path, "re");
    ret_name[0] = '\0';
    if (!file)
        return;
    if (fgets(ret_name, 16, file))
        ret_name[strcspn(ret_name, "\n")] = '\0';
    fclose(file);
}

/* A process's threads, where they are called something else than the process. */
static void read_names(struct processes *processes, struct process *process)
{
    char path[64], name[16];
    read_name(process->pid, process->pid, process->name);
    if (processes->no_thread_names)
        return;
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", process->pid);
    DIR *folder = opendir(path);
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        uint32_t tid = (uint32_t)atoi(entry->d_name);
        if (!tid || tid == process->pid)
            continue;
        read_name(process->pid, tid, name);
        if (name[0] && strcmp(name, process->name) != 0)
            processes_name_thread(processes, tid, name);
    }
    if (folder)
        closedir(folder);
}

/* "7f00-7f10 r-xp 00000000 fd:01 1234   /usr/lib/x.so"; false for what is not executable. */
static bool parse_mapping(char *line, struct mapping_event *ret_event)
{
    uint64_t end;
    unsigned device_major, device_minor;
    char protection[5];
    int name = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
               &ret_event->start, &end, protection, &ret_event->offset, &device_major,
               &device_minor, &ret_event->inode, &name) < 7 ||
        !name || protection[2] != 'x' || end <= ret_event->start)
        return false;
    ret_event->device = makedev(device_major, device_minor);
    ret_event->length = end - ret_event->start;
    ret_event->path = line + name;
    return true;
}

void process_catch_up(struct processes *processes, struct process *process)
{
    if (!process->name[0])
        read_names(processes, process);
    char path[64], line[4600];
    process->caught_up_ns = monotonic_ns();
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", process->pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    struct mapping *before = process->mappings;
    size_t before_count = process->count;
    process->mappings = NULL;
    process->count = process->capacity = 0;
    while (fgets(line, sizeof(line), file)) {
        struct mapping_event event = {0};
        if (parse_mapping(line, &event))
            process_map(processes, process, &event);
    }
    fclose(file);
    if (!process->count) {
        /* A process that is ending has nothing left: what it had is better. */
        process->mappings = before;
        process->count = process->capacity = before_count;
        return;
    }
    free(before);
    process->known = true;
}
