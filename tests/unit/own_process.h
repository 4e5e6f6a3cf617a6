/* SPDX-License-Identifier: Apache-2.0 */
/* The unwind rows of all code in the test's own process, for walks of its own stacks and of those
 * of its forks. */
#pragma once

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/memory.h"
#include "elf/file.h"
#include "elf/unwind/rows.h"
#include "elf/unwind/unwind.h"

struct own_object {
    struct unwind_rows rows;
    uint64_t bias, start, end; /* of its executable segments */
    char name[256];
};

struct own_process {
    struct unwind_rules rules;
    struct own_object objects[64];
    size_t count;
    pid_t pid; /* whose memory is read */
};

/* Where the mapping at an address ends. */
static inline uint64_t own_mapping_end(uint64_t address)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    unsigned long start, end, found = 0;
    while (maps && fgets(line, sizeof(line), maps))
        if (sscanf(line, "%lx-%lx", &start, &end) == 2 && address >= start && address < end)
            found = end;
    if (maps)
        fclose(maps);
    return found;
}

static int own_add_object(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct own_process *process = context;
    if (process->count == ARRAY_LENGTH(process->objects))
        return 0;
    struct own_object *object = &process->objects[process->count++];
    *object = (struct own_object){.bias = info->dlpi_addr, .start = UINT64_MAX};
    snprintf(object->name, sizeof(object->name), "%s", info->dlpi_name);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
            continue;
        uint64_t start = info->dlpi_addr + segment->p_vaddr;
        object->start = MIN(object->start, start);
        object->end = MAX(object->end, start + segment->p_memsz);
    }
    struct error error = {0};
    struct elf_file file = {.fd = -1};
    int r;
    if (strstr(info->dlpi_name, "vdso"))
        r = elf_open_memory((void *)info->dlpi_addr,
                            own_mapping_end(info->dlpi_addr) - info->dlpi_addr, ELF_LAYOUT_FILE,
                            &file, &error);
    else
        r = elf_open(info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe", &file, &error);
    if (r == 0)
        r = unwind_rows_compile(&file, &process->rules, &object->rows, &error);
    elf_release(&file);
    if (r < 0)
        fprintf(stderr, "%s: %s\n", info->dlpi_name, error.text);
    return r;
}

static inline int own_process_init(struct own_process *process)
{
    *process = (struct own_process){.pid = getpid()};
    unwind_rules_init(&process->rules);
    return dl_iterate_phdr(own_add_object, process);
}

static inline void own_process_release(struct own_process *process)
{
    for (size_t i = 0; i < process->count; i++)
        unwind_rows_release(&process->objects[i].rows);
    unwind_rules_release(&process->rules);
}

static inline bool own_find(void *context, uint64_t address, struct unwind_place *ret_place)
{
    const struct own_process *process = context;
    for (size_t i = 0; i < process->count; i++) {
        const struct own_object *object = &process->objects[i];
        if (address >= object->start && address < object->end) {
            *ret_place = (struct unwind_place){.rows = &object->rows, .bias = object->bias};
            return true;
        }
    }
    return false;
}

/* As far as it goes: a stack's end may be nearer. */
static inline size_t own_read_bytes(const struct own_process *process, uint64_t address, void *to,
                                    size_t length)
{
    struct iovec local = {to, length}, remote = {(void *)address, length};
    ssize_t got = process_vm_readv(process->pid, &local, 1, &remote, 1, 0);
    return got < 0 ? 0 : (size_t)got;
}

static inline bool own_read(void *context, uint64_t address, uint64_t *ret_word)
{
    return own_read_bytes(context, address, ret_word, 8) == 8;
}

/* The start of the function that an address is in, by its FDE; 0 when there is none. */
static inline uint64_t own_function(struct own_process *process, uint64_t address)
{
    struct unwind_place place;
    uint64_t start, end;
    if (!own_find(process, address, &place) || !place.rows ||
        !unwind_rows_function(place.rows, address - place.bias, &start, &end))
        return 0;
    return start + place.bias;
}
