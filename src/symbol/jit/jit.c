// SPDX-License-Identifier: Apache-2.0
// The code of all processes that have some in no file: see jit.h.

#include "symbol/jit/jit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "symbol/jit/internal.h"

/* ---- the mapping's name ---- */

#define MAPPING_PREFIX "[jit "

void jit_mapping_name(char text[JIT_MAPPING_NAME_BYTES], uint32_t pid)
{
    snprintf(text, JIT_MAPPING_NAME_BYTES, MAPPING_PREFIX "%" PRIu32 "]", pid);
}

bool jit_mapping_pid(const char *text, uint32_t *ret_pid)
{
    size_t prefix = strlen(MAPPING_PREFIX), length = strlen(text);
    uint64_t pid;
    if (length <= prefix + 1 || strncmp(text, MAPPING_PREFIX, prefix) || text[length - 1] != ']' ||
        !text_to_u64(text + prefix, length - prefix - 1, &pid) || pid > UINT32_MAX)
        return false;
    *ret_pid = (uint32_t)pid;
    return true;
}

/* ---- processes ---- */

struct jit_names *jit_names_new(void)
{
    return memory_zalloc(1, sizeof(struct jit_names));
}

void jit_source_init(struct jit_source *source, bool has_times)
{
    *source = (struct jit_source){0};
    jit_codes_init(&source->codes, has_times);
}

void jit_source_release(struct jit_source *source)
{
    jit_codes_release(&source->codes);
    arena_release(&source->arena);
    free(source->names);
    *source = (struct jit_source){0};
}

size_t jit_source_bytes(const struct jit_source *source)
{
    return jit_codes_bytes(&source->codes) + source->arena.total_bytes +
           source->name_count * sizeof(*source->names);
}

void jit_process_free(struct jit_process *process)
{
    if (process->dump_fd >= 0)
        close(process->dump_fd);
    jit_place_release(&process->place);
    jit_dump_release(&process->dump);
    jit_source_release(&process->mapped);
    jit_source_release(&process->dumped);
    jit_source_release(&process->map_pass.fresh);
    jit_source_release(&process->dump_pass.fresh);
    jit_wanted_release(&process->wanted);
    free(process);
}

void jit_names_free(struct jit_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < names->count; i++)
        jit_process_free(names->list[i]);
    free(names->list);
    id_table_release(&names->index);
    shares_release(&names->shares);
    shares_release(&names->lost);
    free(names);
}

struct jit_process *jit_find_process(const struct jit_names *names, uint32_t pid)
{
    struct id_probe probe = id_probe_start(hash_word(pid));
    uint32_t id;
    while ((id = id_table_next(&names->index, &probe)) != ID_NONE)
        if (names->list[id]->place.pid == pid)
            return names->list[id];
    return NULL;
}

struct jit_process *jit_get_process(struct jit_names *names, uint32_t pid)
{
    struct jit_process *process = jit_find_process(names, pid);
    if (process)
        return process;
    if (names->count == JIT_PROCESSES_MAX) {
        names->stats.refused++;
        return NULL;
    }
    process = memory_zalloc(1, sizeof(*process));
    jit_place_init(&process->place, pid);
    process->dump_fd = -1;
    jit_source_init(&process->mapped, false);
    jit_source_init(&process->dumped, true);
    array_reserve(names->list, names->capacity, names->count + 1);
    id_table_insert(&names->index, hash_word(pid), (uint32_t)names->count);
    names->list[names->count++] = process;
    return process;
}

size_t jit_descriptors_of(const struct jit_process *process)
{
    return (size_t)(process->place.folder >= 0) + (process->dump_fd >= 0);
}

/* ---- reading ---- */

static void read_map(struct jit_names *names, struct jit_process *process)
{
    int fd = jit_place_open_map(&process->place);
    if (fd < 0)
        return;
    bool first = !process->map.offset && !process->mapped.codes.count;
    perf_map_read(&process->map, fd, !process->place.alive, &process->mapped.codes);
    names->stats.maps += first && process->mapped.codes.count;
    close(fd);
}

ssize_t jit_read_dump_file(void *context, uint64_t offset, void *buffer, size_t length)
{
    const struct jit_process *process = context;
    if (offset > INT64_MAX - length)
        return 0;
    ssize_t got = pread(process->dump_fd, buffer, length, (off_t)offset);
    return got < 0 ? -errno : got;
}

/* A process that runs another program may have another dump. The same one is read on. */
void jit_find_dump(struct jit_process *process, uint64_t *allowance)
{
    struct stat found;
    int fd = jit_place_open_dump(&process->place, allowance);
    if (fd < 0)
        return;
    if (fstat(fd, &found) < 0) {
        close(fd);
        return;
    }
    if (process->dump_fd >= 0)
        close(process->dump_fd);
    process->dump_fd = fd;
    if (process->dump.read && found.st_dev == process->dump_file.st_dev &&
        found.st_ino == process->dump_file.st_ino)
        return;
    jit_dump_release(&process->dump);
    process->dump.read = jit_read_dump_file;
    process->dump.context = process;
    process->dump_file = found;
}

static void read_dump(struct jit_names *names, struct jit_process *process)
{
    uint64_t allowance = UINT64_MAX;
    jit_find_dump(process, &allowance);
    if (process->dump_fd < 0)
        return;
    bool first = !process->dumped.codes.count;
    jit_dump_read(&process->dump, &process->dumped.codes);
    names->stats.dumps += first && process->dumped.codes.count;
}

/* Too many open files: those of this process are not kept for its end. */
void jit_limit_descriptors(struct jit_names *names, struct jit_process *process)
{
    if (names->descriptors <= JIT_DESCRIPTORS_MAX)
        return;
    names->descriptors -= jit_descriptors_of(process);
    names->stats.refused++;
    if (process->place.folder >= 0)
        jit_place_release(&process->place);
    if (process->dump_fd >= 0) {
        close(process->dump_fd);
        process->dump_fd = -1;
    }
}

bool jit_names_load(struct jit_names *names, uint32_t pid)
{
    if (names->stats.bytes > JIT_BYTES_MAX) {
        names->stats.refused++;
        return false;
    }
    struct jit_process *process = jit_get_process(names, pid);
    if (!process)
        return false;
    struct jit_codes *mapped = &process->mapped.codes, *dumped = &process->dumped.codes;
    size_t map_offset = process->map.offset, dump_records = process->dump.records;
    uint64_t refused = mapped->refused + dumped->refused;
    names->descriptors -= jit_descriptors_of(process);
    jit_place_update(&process->place);
    read_map(names, process);
    read_dump(names, process);
    names->descriptors += jit_descriptors_of(process);
    jit_limit_descriptors(names, process);
    names->stats.refused += mapped->refused + dumped->refused - refused;
    size_t bytes =
        sizeof(*process) + jit_source_bytes(&process->mapped) + jit_source_bytes(&process->dumped);
    names->stats.bytes += bytes - process->bytes;
    process->bytes = bytes;
    return process->map.offset != map_offset || process->dump.records != dump_records;
}

void jit_names_load_mappings(struct jit_names *names, const struct profile *profile, uint32_t first)
{
    uint32_t pid;
    for (uint32_t i = first; i < profile->mapping_count; i++)
        if (jit_mapping_pid(profile_text(profile, profile->mappings[i].file), &pid))
            jit_names_load(names, pid);
}

/* ---- finding ---- */

static const struct jit_name *name_of(struct jit_source *source, uint32_t text)
{
    if (text >= source->name_count) {
        size_t count = source->codes.text_count;
        source->names = memory_resize(source->names, count, sizeof(*source->names));
        memset(source->names + source->name_count, 0,
               (count - source->name_count) * sizeof(*source->names));
        source->name_count = count;
    }
    struct jit_name *name = &source->names[text];
    if (!name->name)
        *name = jit_name_read(source->codes.texts[text], &source->arena);
    return name;
}

static bool find_in(struct jit_source *source, uint64_t address, uint64_t time_ns,
                    struct symbol_frame *ret_frame, enum frame_kind *ret_kind)
{
    const struct jit_code *code = jit_codes_find(&source->codes, address, time_ns);
    if (!code)
        return false;
    const struct jit_name *name = name_of(source, code->name);
    *ret_frame = (struct symbol_frame){.name = name->name,
                                       .system_name = name->system_name,
                                       .file = name->file,
                                       .start_line = name->start_line};
    *ret_kind = name->kind;
    const struct jit_line *line = jit_codes_line(&source->codes, code, address);
    if (line) {
        const char *file = source->codes.texts[line->file];
        /* Inlined code of another file says nothing about where the function begins. */
        if (name->file && strcmp(name->file, file))
            ret_frame->start_line = 0;
        ret_frame->file = file;
        ret_frame->line = line->line;
    }
    return true;
}

bool jit_names_find(struct jit_names *names, uint32_t pid, uint64_t address, uint64_t time_ns,
                    struct symbol_frame *ret_frame, enum frame_kind *ret_kind)
{
    struct jit_process *process = jit_find_process(names, pid);
    if (!process)
        return false;
    /* A pass that has not ended may know what none before was asked for. */
    struct jit_source *sources[] = {&process->dumped, &process->mapped, &process->dump_pass.fresh,
                                    &process->map_pass.fresh};
    for (size_t i = 0; i < ARRAY_LENGTH(sources); i++)
        if (sources[i]->codes.count && find_in(sources[i], address, time_ns, ret_frame, ret_kind))
            return true;
    return false;
}

struct jit_stats jit_names_stats(const struct jit_names *names)
{
    struct jit_stats stats = names->stats;
    stats.processes = names->count;
    for (size_t i = 0; i < names->count; i++)
        stats.codes += names->list[i]->mapped.codes.count + names->list[i]->dumped.codes.count;
    return stats;
}
