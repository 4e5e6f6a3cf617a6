// SPDX-License-Identifier: Apache-2.0
// Processes and their mappings: see processes.h.

#include "capture/processes.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

void processes_init(struct processes *processes, struct modules *modules)
{
    *processes = (struct processes){.modules = modules};
}

void processes_release(struct processes *processes)
{
    for (size_t i = 0; i < processes->count; i++) {
        free(processes->list[i]->mappings);
        free(processes->list[i]);
    }
    free(processes->list);
    free(processes->threads);
    id_table_release(&processes->index);
    id_table_release(&processes->thread_index);
}

struct process *processes_get(struct processes *processes, uint32_t pid)
{
    struct id_probe probe = id_probe_start(hash_word(pid));
    uint32_t id;
    while ((id = id_table_next(&processes->index, &probe)) != ID_NONE)
        if (processes->list[id]->pid == pid)
            return processes->list[id];
    if (processes->count == PROCESSES_MAX) {
        processes->refused++;
        return NULL;
    }
    struct process *process = memory_zalloc(1, sizeof(*process));
    process->pid = pid;
    array_reserve(processes->list, processes->capacity, processes->count + 1);
    id_table_insert(&processes->index, hash_word(pid), (uint32_t)processes->count);
    processes->list[processes->count++] = process;
    return process;
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
    struct thread *thread = find_thread(processes, tid);
    if (!thread && processes->thread_count == THREADS_MAX) {
        processes->refused++;
        return;
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

void process_clear(struct process *process)
{
    process->count = 0;
}

void process_copy(struct process *child, const struct process *parent)
{
    array_reserve(child->mappings, child->capacity, parent->count);
    if (parent->count)
        memcpy(child->mappings, parent->mappings, parent->count * sizeof(*child->mappings));
    child->count = parent->count;
    memcpy(child->name, parent->name, sizeof(child->name));
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
    const struct module *module = mapping->module;
    *ret_place = (struct unwind_place){
        .rows = module && module->readable && module->rows.page_count ? &module->rows : NULL,
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

void process_map(struct processes *processes, struct process *process, uint64_t start,
                 uint64_t length, uint64_t offset, const char *path)
{
    struct mapping mapping = {.start = start, .offset = offset};
    if (!length || __builtin_add_overflow(start, length, &mapping.end))
        return;
    unmap(process, start, mapping.end);
    if (process->count >= MAPPINGS_MAX) {
        processes->refused++;
        return;
    }
    /* The process's own view of the file: it may live in another mount namespace. */
    char open_path[4200];
    snprintf(open_path, sizeof(open_path), "/proc/%" PRIu32 "/root%s", process->pid, path);
    mapping.module = modules_get(processes->modules, path, open_path);
    if (!mapping.module && path[0] == '/')
        mapping.module = modules_get(processes->modules, path, path);
    if (mapping.module && mapping.module->readable)
        elf_load_bias(&mapping.module->file, start, offset, &mapping.bias);
    size_t at = position_of(process, start);
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

void process_catch_up(struct processes *processes, struct process *process)
{
    if (!process->name[0])
        read_names(processes, process);
    char path[64], line[4600];
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", process->pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    process_clear(process);
    while (fgets(line, sizeof(line), file)) {
        uint64_t start, end, offset;
        char protection[5];
        int name = 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &start, &end,
                   protection, &offset, &name) >= 4 &&
            name && protection[2] == 'x' && end > start)
            process_map(processes, process, start, end - start, offset, line + name);
    }
    fclose(file);
}
