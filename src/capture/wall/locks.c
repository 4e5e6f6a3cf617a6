// SPDX-License-Identifier: Apache-2.0
// Names and owners of locks: see locks.h.

#include "capture/wall/locks.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/idtable.h"
#include "base/memory.h"
#include "elf/file.h"

#define THREADS_LOOKED_AT 4096 /* of a process in another pid namespace */

/* Whether a module, loaded with this bias, has the address among its writable memory. */
static bool has_data(const struct module *module, uint64_t address)
{
    for (size_t i = 0; i < module->headers.segment_count; i++) {
        const struct elf_segment *segment = &module->headers.segments[i];
        if (segment->type == PT_LOAD && segment->flags & PF_W && address >= segment->address &&
            address - segment->address < segment->memory_bytes)
            return true;
    }
    return false;
}

static bool name_data(const struct module *module, uint64_t address, char *ret_name, size_t bytes)
{
    char path[MODULE_PATH_BYTES], name[ELF_DATA_NAME_BYTES];
    const char *open_path = module_open_path(module, path);
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    struct error error = {0};
    uint64_t offset = 0;
    if (!open_path || elf_open(open_path, &file, &error) < 0)
        return false;
    if (elf_data_symbol(&file, address, name, &offset)) {
        if (offset)
            snprintf(ret_name, bytes, "%s+0x%" PRIx64, name, offset);
        else
            snprintf(ret_name, bytes, "%s", name);
        return true;
    }
    const char *base = strrchr(module->path, '/');
    snprintf(ret_name, bytes, "%s+0x%" PRIx64, base ? base + 1 : module->path, address);
    return true;
}

static void name_lock(struct recorder *recorder, uint32_t pid, uint64_t address,
                      char ret_name[WALL_LOCK_BYTES])
{
    const struct process *process = processes_find(&recorder->processes, pid);
    char name[WALL_LOCK_BYTES - 16];
    for (size_t i = 0; process && i < process->count; i++) {
        const struct mapping *mapping = &process->mappings[i];
        if (!mapping->module || !has_data(mapping->module, address - mapping->bias) ||
            !name_data(mapping->module, address - mapping->bias, name, sizeof(name)))
            continue;
        snprintf(ret_name, WALL_LOCK_BYTES, "[lock %s]", name);
        return;
    }
    snprintf(ret_name, WALL_LOCK_BYTES, "[lock 0x%" PRIx64 "]", address);
}

struct lock {
    uint32_t pid;
    uint64_t address;
    char name[WALL_LOCK_BYTES];
};

struct wall_locks {
    struct recorder *recorder;
    struct lock *list;
    size_t count, capacity;
    struct id_table index;
};

struct wall_locks *wall_locks_new(struct recorder *recorder)
{
    struct wall_locks *locks = memory_zalloc(1, sizeof(*locks));
    locks->recorder = recorder;
    return locks;
}

void wall_locks_free(struct wall_locks *locks)
{
    if (!locks)
        return;
    free(locks->list);
    id_table_release(&locks->index);
    free(locks);
}

void wall_locks_clear(struct wall_locks *locks)
{
    locks->count = 0;
    id_table_clear(&locks->index);
}

const char *wall_locks_name(struct wall_locks *locks, const struct bpf_sample_event *event)
{
    const struct bpf_wait *wait = (const struct bpf_wait *)event->detail;
    if (!event->id)
        return NULL;
    if (wait->flags & BPF_WAIT_KERNEL)
        return "[kernel lock]";
    uint64_t hash = hash_word(event->id ^ (uint64_t)event->pid << 40);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&locks->index, &probe)) != ID_NONE)
        if (locks->list[id].pid == event->pid && locks->list[id].address == event->id)
            return locks->list[id].name;
    if (locks->count == WALL_LOCKS_MAX)
        return "[lock]";
    array_reserve(locks->list, locks->capacity, locks->count + 1);
    id_table_insert(&locks->index, hash, (uint32_t)locks->count);
    struct lock *lock = &locks->list[locks->count++];
    *lock = (struct lock){.pid = event->pid, .address = event->id};
    name_lock(locks->recorder, event->pid, event->id, lock->name);
    return lock->name;
}

/* The number of a thread in the innermost of its pid namespaces, and how many those are. */
static bool read_numbers(uint32_t pid, const char *tid, uint32_t *ret_inner, unsigned *ret_levels)
{
    char path[96], line[256];
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%u/task/%s/status", pid, tid);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "NSpid:", strlen("NSpid:")) != 0)
            continue;
        char *at = line + strlen("NSpid:"), *end;
        for (*ret_levels = 0;; at = end, ++*ret_levels) {
            unsigned long number = strtoul(at, &end, 10);
            if (end == at)
                break;
            *ret_inner = (uint32_t)number;
        }
        found = *ret_levels > 0;
    }
    if (file)
        fclose(file);
    return found;
}

uint32_t wall_lock_owner(uint32_t pid, uint32_t waiter_tid, uint32_t owner)
{
    char text[16], path[96];
    uint32_t inner = 0;
    unsigned levels = 0;
    snprintf(text, sizeof(text), "%u", waiter_tid);
    if (!owner || !read_numbers(pid, text, &inner, &levels) || inner == owner)
        return 0;
    if (levels == 1) {
        snprintf(path, sizeof(path), "/proc/%u/task/%u", pid, owner);
        return access(path, F_OK) == 0 ? owner : 0;
    }
    snprintf(path, sizeof(path), "/proc/%u/task", pid);
    DIR *threads = opendir(path);
    uint32_t found = 0;
    const struct dirent *entry;
    for (int i = 0; threads && !found && i < THREADS_LOOKED_AT && (entry = readdir(threads)); i++)
        if (entry->d_name[0] != '.' && read_numbers(pid, entry->d_name, &inner, &levels) &&
            inner == owner)
            found = (uint32_t)strtoul(entry->d_name, NULL, 10);
    if (threads)
        closedir(threads);
    return found;
}

void wall_thread_mark(uint32_t pid, uint32_t tid, char ret_mark[WALL_LOCK_BYTES])
{
    char path[96], name[32] = "";
    snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", pid, tid);
    FILE *file = fopen(path, "re");
    if (file && fgets(name, sizeof(name), file))
        name[strcspn(name, "\n")] = '\0';
    if (file)
        fclose(file);
    snprintf(ret_mark, WALL_LOCK_BYTES, "[thread %s]", name[0] ? name : "unknown");
}
