// SPDX-License-Identifier: Apache-2.0
// Names of a recording's addresses: see names.h.

#include "symbol/recorded/names.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "profile/address.h"
#include "symbol/kernel.h"
#include "symbol/naming/naming.h"
#include "symbol/recorded/binaries.h"

/* ---- the kernel ---- */

struct recorded_kernel {
    struct kernel_symbols *symbols; /* NULL: no names */
    uint64_t moved;                 /* add it to a recorded address for one of the symbols' */
};

/* Where a list of symbols has the kernel's beginning; 0: it doesn't say. */
static uint64_t text_address(const char *path)
{
    FILE *file = fopen(path, "re");
    char line[512];
    uint64_t found = 0;
    while (file && !found && fgets(line, sizeof(line), file)) {
        char name[256];
        unsigned long long address;
        if (sscanf(line, "%llx %*c %255s", &address, name) == 2 && !strcmp(name, "_text"))
            found = address;
    }
    if (file)
        fclose(file);
    return found;
}

/* The kernel's mapping of all unnamed kernel frames; 0 when there is none, or more than one. */
static uint32_t kernel_mapping(const struct profile *profile)
{
    uint32_t mapping = 0;
    for (uint32_t i = 1; i < profile->frame_count; i++) {
        const struct profile_frame *frame = &profile->frames[i];
        if (frame->kind != FRAME_KERNEL || frame->function || !frame->mapping)
            continue;
        if (mapping && mapping != frame->mapping)
            return 0;
        mapping = frame->mapping;
    }
    return mapping;
}

static void find_kernel(const struct profile *profile, struct recorded_kernel *ret)
{
    uint32_t id = kernel_mapping(profile);
    const struct profile_mapping *mapping = &profile->mappings[id];
    const char *build_id = profile_text(profile, mapping->build_id);
    char running[41], cached[RECORDED_PATH_BYTES];
    const char *path = NULL;
    if (!id || !*build_id)
        return;
    if (recorded_running_kernel(running) && !strcmp(running, build_id))
        path = "/proc/kallsyms";
    else if (recorded_cache_path(build_id, "kallsyms", cached))
        path = cached;
    if (!path || kernel_symbols_load(path, &ret->symbols, NULL) < 0)
        return;
    uint64_t text = text_address(path);
    if (text && mapping->start && !profile_by_address(mapping))
        ret->moved = text - mapping->start;
}

static bool ask_kernel(void *context, uint64_t address, struct symbol *ret_symbol)
{
    const struct recorded_kernel *kernel = context;
    return kernel->symbols &&
           kernel_symbols_find(kernel->symbols, address + kernel->moved, ret_symbol);
}

/* ---- files ---- */

struct place {
    char path[RECORDED_PATH_BYTES];
};

static const char *locate(void *context, const struct profile *from, uint32_t mapping_id)
{
    struct place *place = context;
    const struct profile_mapping *mapping = &from->mappings[mapping_id];
    struct recorded_binary binary = {.path = profile_text(from, mapping->file),
                                     .build_id = profile_text(from, mapping->build_id)};
    struct elf_file file;
    if (!recorded_open(&binary, &file, place->path))
        return NULL;
    elf_release(&file);
    return place->path;
}

int recorded_name(struct profile *profile, enum profile_detail detail, struct error *error)
{
    struct profile named;
    struct place *place = memory_zalloc(1, sizeof(*place));
    struct recorded_kernel kernel = {0};
    struct symbolizer *symbolizer = symbolizer_new();
    struct jit_names *jit = jit_names_new();
    find_kernel(profile, &kernel);
    symbolizer_ask_kernel(symbolizer, ask_kernel, &kernel);
    jit_names_load_mappings(jit, profile, 0);
    symbolizer_set_jit(symbolizer, jit);
    profile_init(&named, detail);
    int r = symbol_name_profile(symbolizer, profile, &named, locate, place, error);
    symbolizer_free(symbolizer);
    jit_names_free(jit);
    kernel_symbols_free(kernel.symbols);
    free(place);
    profile_release(r < 0 ? &named : profile);
    if (r >= 0)
        *profile = named;
    return r;
}
