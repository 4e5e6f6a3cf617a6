// SPDX-License-Identifier: Apache-2.0
// Processes of a recording: their mappings, their threads' names, and the kernel's own mappings.

#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/memory.h"
#include "format/perfdata/perfdata.h"

static uint64_t hash_text(const char *text, uint64_t seed)
{
    uint64_t hash = seed;
    for (; *text; text++)
        hash = hash_word(hash ^ (uint8_t)*text) + 1;
    return hash;
}

/* ---- lists of mappings ---- */

static void list_unref(struct perf_data *data, struct perf_mapping_list *list)
{
    if (!list || --list->users)
        return;
    data->mapping_count -= list->count;
    free(list->items);
    free(list);
}

/* Index of the first mapping that ends behind the address. */
static size_t list_position(const struct perf_mapping_list *list, uint64_t address)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->items[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct perf_mapping *perf_list_find(const struct perf_mapping_list *list, uint64_t address)
{
    size_t at = list ? list_position(list, address) : 0;
    return list && at < list->count && list->items[at].start <= address ? &list->items[at] : NULL;
}

struct perf_mapping *perf_process_find(const struct perf_process *process, uint64_t address)
{
    return process ? perf_list_find(process->mappings, address) : NULL;
}

/* Adds a mapping in place of what was there: what it covers goes, and others are cut. */
static void list_add(struct perf_data *data, struct perf_mapping_list *list,
                     const struct perf_mapping *mapping)
{
    if (list->count + 2 > PERF_MAPPINGS_MAX || data->mapping_count + 2 > PERF_ALL_MAPPINGS_MAX) {
        data->refused++;
        return;
    }
    array_reserve(list->items, list->capacity, list->count + 2);
    size_t first = list_position(list, mapping->start), last = first;
    struct perf_mapping kept[2];
    size_t before = 0, after = 0;
    while (last < list->count && list->items[last].start < mapping->end)
        last++;
    if (last > first && list->items[first].start < mapping->start) {
        kept[0] = list->items[first];
        kept[0].end = mapping->start;
        before = 1;
    }
    if (last > first && list->items[last - 1].end > mapping->end) {
        kept[1] = list->items[last - 1];
        kept[1].offset += mapping->end - kept[1].start;
        kept[1].start = mapping->end;
        kept[1].interned = 0;
        after = 1;
    }
    size_t added = before + 1 + after, removed = last - first;
    memmove(list->items + first + added, list->items + last,
            (list->count - last) * sizeof(*list->items));
    if (before)
        list->items[first] = kept[0];
    list->items[first + before] = *mapping;
    if (after)
        list->items[first + before + 1] = kept[1];
    list->count = list->count - removed + added;
    data->mapping_count = data->mapping_count - removed + added;
}

static struct perf_mapping_list *own_list(struct perf_data *data, struct perf_process *process)
{
    struct perf_mapping_list *shared = process->mappings;
    if (shared && shared->users == 1)
        return shared;
    struct perf_mapping_list *list = memory_zalloc(1, sizeof(*list));
    list->users = 1;
    if (shared && data->mapping_count + shared->count <= PERF_ALL_MAPPINGS_MAX) {
        array_reserve(list->items, list->capacity, shared->count);
        if (shared->count)
            memcpy(list->items, shared->items, shared->count * sizeof(*list->items));
        list->count = shared->count;
        data->mapping_count += shared->count;
    }
    list_unref(data, shared);
    return process->mappings = list;
}

/* ---- processes and threads ---- */

struct perf_process *perf_process(struct perf_data *data, uint32_t pid)
{
    struct id_probe probe = id_probe_start(hash_word(pid ^ data->seed));
    uint32_t found;
    while ((found = id_table_next(&data->process_index, &probe)) != ID_NONE)
        if (data->processes[found].pid == pid)
            return &data->processes[found];
    if (data->process_count >= PERF_PROCESSES_MAX) {
        data->refused++;
        return NULL;
    }
    array_reserve(data->processes, data->process_capacity, data->process_count + 1);
    id_table_insert(&data->process_index, hash_word(pid ^ data->seed),
                    (uint32_t)data->process_count);
    struct perf_process *process = &data->processes[data->process_count++];
    *process = (struct perf_process){.pid = pid};
    return process;
}

static struct perf_thread *find_thread(const struct perf_data *data, uint32_t tid)
{
    struct id_probe probe = id_probe_start(hash_word(tid ^ data->seed));
    uint32_t found;
    while ((found = id_table_next(&data->thread_index, &probe)) != ID_NONE)
        if (data->threads[found].tid == tid)
            return &data->threads[found];
    return NULL;
}

static void name_thread(struct perf_data *data, uint32_t tid, uint32_t comm)
{
    struct perf_thread *thread = find_thread(data, tid);
    if (thread) {
        thread->comm = comm;
        return;
    }
    if (data->thread_count >= PERF_THREADS_MAX) {
        data->refused++;
        return;
    }
    array_reserve(data->threads, data->thread_capacity, data->thread_count + 1);
    id_table_insert(&data->thread_index, hash_word(tid ^ data->seed), (uint32_t)data->thread_count);
    data->threads[data->thread_count++] = (struct perf_thread){.tid = tid, .comm = comm};
}

uint32_t perf_thread_comm(struct perf_data *data, uint32_t pid, uint32_t tid)
{
    const struct perf_thread *thread = find_thread(data, tid);
    if (!thread || !thread->comm)
        thread = find_thread(data, pid);
    if (thread && thread->comm)
        return thread->comm;
    char text[16];
    if (!tid)
        return profile_cstring(data->profile, "swapper");
    snprintf(text, sizeof(text), ":%u", tid); /* as perf calls it */
    return profile_cstring(data->profile, text);
}

/* ---- files ---- */

static bool is_generated(const char *path)
{
    static const char *const prefixes[] = {"//anon",      "[heap]",        "[stack", "[anon",
                                           "anon_inode:", "/memfd:",       "/SYSV",  "/dev/zero",
                                           "/dev/shm/",   "/anon_hugepage"};
    for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++)
        if (!strncmp(path, prefixes[i], strlen(prefixes[i])))
            return true;
    return !*path;
}

static const char *known_build_id(const struct perf_data *data, const char *path)
{
    struct id_probe probe = id_probe_start(hash_text(path, data->seed));
    uint32_t found;
    while ((found = id_table_next(&data->build_id_index, &probe)) != ID_NONE)
        if (!strcmp(data->build_ids[found].path, path))
            return data->build_ids[found].build_id;
    return "";
}

static uint32_t file_number(struct perf_data *data, const char *path, const char *build_id,
                            bool kernel)
{
    if (!*build_id)
        build_id = known_build_id(data, path);
    uint64_t hash = hash_text(path, data->seed) ^ hash_word(hash_text(build_id, data->seed));
    struct id_probe probe = id_probe_start(hash);
    uint32_t found;
    while ((found = id_table_next(&data->file_index, &probe)) != ID_NONE)
        if (!strcmp(data->files[found].path, path) &&
            !strcmp(data->files[found].build_id, build_id))
            return found;
    if (data->file_count >= PERF_FILES_MAX) {
        data->refused++;
        return 0;
    }
    array_reserve(data->files, data->file_capacity, data->file_count + 1);
    struct perf_file *file = &data->files[data->file_count];
    *file = (struct perf_file){
        .path = memory_strdup(path), .kernel = kernel, .generated = !kernel && is_generated(path)};
    snprintf(file->build_id, sizeof(file->build_id), "%s", build_id);
    id_table_insert(&data->file_index, hash, (uint32_t)data->file_count);
    return (uint32_t)data->file_count++;
}

/* ---- records ---- */

struct map_event {
    uint32_t pid;
    uint64_t start, length, offset, inode;
    uint32_t protection;
    char build_id[41];
    const char *path;
};

/* The text at `at`, which must end inside the record. */
static const char *text_at(const struct perf_event_header *header, size_t at)
{
    const char *bytes = (const char *)header;
    return at < header->size && memchr(bytes + at, '\0', header->size - at) ? bytes + at : NULL;
}

static bool decode_map(const struct perf_event_header *header, struct map_event *ret)
{
    const uint8_t *at = (const uint8_t *)(header + 1);
    bool second = header->type == PERF_RECORD_MMAP2;
    size_t fixed = second ? 64 : 32;
    *ret = (struct map_event){.protection = 4};
    ret->path = text_at(header, sizeof(*header) + fixed);
    if (!ret->path)
        return false;
    ret->pid = perf_load_u32(at);
    ret->start = perf_load_u64(at + 8);
    ret->length = perf_load_u64(at + 16);
    ret->offset = perf_load_u64(at + 24);
    if (!second) {
        ret->protection = header->misc & PERF_RECORD_MISC_MMAP_DATA ? 0 : 4;
    } else {
        ret->protection = perf_load_u32(at + 56);
        if (header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
            hex_encode(at + 36, MIN(at[32], 20u), ret->build_id);
        else
            ret->inode = perf_load_u64(at + 40);
    }
    return ret->start + ret->length > ret->start;
}

static void take_map(struct perf_data *data, const struct perf_event_header *header)
{
    struct map_event event;
    if (!decode_map(header, &event)) {
        data->short_records++;
        return;
    }
    unsigned mode = header->misc & PERF_RECORD_MISC_CPUMODE_MASK;
    bool kernel = mode == PERF_RECORD_MISC_KERNEL || event.pid == UINT32_MAX;
    if (mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER)
        return;
    if (!kernel && !(event.protection & 4)) /* not executable */
        return;
    const char *path = event.path;
    if (kernel && !strncmp(path, "[kernel.kallsyms]", 17)) {
        if (!data->kernel_text && (path[17] == '_' || !path[17]))
            data->kernel_text = event.offset ? event.offset : event.start;
        path = "[kernel.kallsyms]";
    }
    struct perf_mapping mapping = {.start = event.start,
                                   .end = event.start + event.length,
                                   .offset = event.offset,
                                   .inode = event.inode,
                                   .file = file_number(data, path, event.build_id, kernel)};
    if (kernel) {
        list_add(data, &data->kernel, &mapping);
        return;
    }
    struct perf_process *process = perf_process(data, event.pid);
    if (process)
        list_add(data, own_list(data, process), &mapping);
}

static void take_comm(struct perf_data *data, const struct perf_event_header *header)
{
    const uint8_t *at = (const uint8_t *)(header + 1);
    const char *name = text_at(header, sizeof(*header) + 8);
    if (!name) {
        data->short_records++;
        return;
    }
    uint32_t pid = perf_load_u32(at), tid = perf_load_u32(at + 4);
    name_thread(data, tid, profile_cstring(data->profile, name));
    if (header->misc & PERF_RECORD_MISC_COMM_EXEC) {
        struct perf_process *process = perf_process(data, pid);
        if (process) {
            list_unref(data, process->mappings);
            process->mappings = NULL;
        }
    }
}

static void take_fork(struct perf_data *data, const struct perf_event_header *header)
{
    const uint8_t *at = (const uint8_t *)(header + 1);
    if (header->size < sizeof(*header) + 16) {
        data->short_records++;
        return;
    }
    uint32_t pid = perf_load_u32(at), parent_pid = perf_load_u32(at + 4);
    uint32_t tid = perf_load_u32(at + 8), parent_tid = perf_load_u32(at + 12);
    if (tid != parent_tid)
        name_thread(data, tid, perf_thread_comm(data, parent_pid, parent_tid));
    /* perf writes such records for processes that it found, too: their mappings follow. */
    if (pid == parent_pid || header->misc & PERF_RECORD_MISC_FORK_EXEC)
        return;
    if (!perf_process(data, pid))
        return;
    struct perf_process *parent = perf_process(data, parent_pid);
    struct perf_process *child = perf_process(data, pid);
    struct perf_mapping_list *shared = parent ? parent->mappings : NULL;
    if (shared)
        shared->users++;
    list_unref(data, child->mappings);
    child->mappings = shared;
}

static void take_kernel_symbol(struct perf_data *data, const struct perf_event_header *header)
{
    const uint8_t *at = (const uint8_t *)(header + 1);
    const char *name = text_at(header, sizeof(*header) + 16);
    if (!name || !*name) {
        data->short_records++;
        return;
    }
    uint64_t start = perf_load_u64(at), length = perf_load_u32(at + 8);
    uint16_t flags;
    memcpy(&flags, at + 14, sizeof(flags));
    if (flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER || start + length <= start)
        return;
    if (data->kernel_symbol_count >= PERF_FILES_MAX) {
        data->refused++;
        return;
    }
    array_reserve(data->kernel_symbols, data->kernel_symbol_capacity,
                  data->kernel_symbol_count + 1);
    data->kernel_symbols[data->kernel_symbol_count] =
        (struct perf_kernel_symbol){.start = start,
                                    .end = start + length,
                                    .name = profile_cstring(data->profile, name),
                                    .serial = (uint32_t)data->kernel_symbol_count};
    data->kernel_symbol_count++;
    data->kernel_symbols_sorted = false;
}

void perf_take_process_record(struct perf_data *data, const struct perf_event_header *header)
{
    switch (header->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        take_map(data, header);
        break;
    case PERF_RECORD_COMM:
        take_comm(data, header);
        break;
    case PERF_RECORD_FORK:
        take_fork(data, header);
        break;
    case PERF_RECORD_KSYMBOL:
        take_kernel_symbol(data, header);
        break;
    case PERF_RECORD_LOST:
        if (header->size >= sizeof(*header) + 16)
            data->lost += perf_load_u64((const uint8_t *)(header + 1) + 8);
        break;
    case PERF_RECORD_LOST_SAMPLES:
        if (header->size >= sizeof(*header) + 8)
            data->lost += perf_load_u64((const uint8_t *)(header + 1));
        break;
    default:
        break;
    }
}

void perf_processes_release(struct perf_data *data)
{
    for (size_t i = 0; i < data->process_count; i++)
        list_unref(data, data->processes[i].mappings);
    for (size_t i = 0; i < data->file_count; i++)
        free(data->files[i].path);
    for (size_t i = 0; i < data->build_id_count; i++)
        free(data->build_ids[i].path);
    free(data->processes);
    free(data->threads);
    free(data->files);
    free(data->build_ids);
    free(data->kernel.items);
    free(data->kernel_symbols);
    id_table_release(&data->process_index);
    id_table_release(&data->thread_index);
    id_table_release(&data->file_index);
    id_table_release(&data->build_id_index);
}
