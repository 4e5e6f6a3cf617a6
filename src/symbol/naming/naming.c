// SPDX-License-Identifier: Apache-2.0
// Naming all frames of a profile: see naming.h.

#include "symbol/naming/naming.h"

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "profile/address.h"
#include "profile/rename.h"

_Static_assert(SYMBOL_FRAMES_MAX <= PROFILE_EXPANSION_MAX, "all frames of an address fit");

/* A mapping's file, and the addresses to look up in it. */
struct named_mapping {
    struct symbolizer_file *file; /* NULL: nothing */
    uint64_t *offsets;
    size_t count, capacity;
    uint32_t jit_pid; /* the process, where the code is in no file; else 0 */
    bool by_address;  /* addresses are the linker's, and not offsets */
};

struct naming {
    struct symbolizer *symbolizer;
    struct named_mapping *mappings; /* by the id in the profile of addresses */
    size_t mapping_count;
};

static void naming_release(struct naming *naming)
{
    for (size_t i = 0; i < naming->mapping_count; i++)
        free(naming->mappings[i].offsets);
    free(naming->mappings);
}

/* It has the name of a symbol, in a file that is known for certain: its debug information may have
 * lines and inlined functions. */
static bool lacks_lines(const struct profile *from, const struct profile_frame *frame)
{
    return frame->function && frame->address && !frame->line && !frame->inlined &&
           !from->functions[frame->function].file && from->mappings[frame->mapping].build_id;
}

static bool is_address_in_file(const struct profile *from, const struct profile_frame *frame)
{
    return frame->mapping && frame->kind != FRAME_KERNEL &&
           (!frame->function || lacks_lines(from, frame));
}

/* The offset in the file that a frame's address is at, or stands for. */
static bool find_offset(const struct named_mapping *mapping, uint64_t address, uint64_t *ret_offset)
{
    *ret_offset = address;
    return !mapping->by_address || symbolizer_file_offset(mapping->file, address, ret_offset);
}

static void want_all(struct named_mapping *mapping)
{
    size_t count = 0;
    for (size_t i = 0; i < mapping->count; i++)
        count += find_offset(mapping, mapping->offsets[i], &mapping->offsets[count]);
    symbolizer_want(mapping->file, mapping->offsets, count);
}

/* Opens the files, and has everything looked up that will be asked for. */
static void prepare(struct naming *naming, const struct profile *from, symbol_locate_fn locate,
                    void *context)
{
    naming->mapping_count = from->mapping_count;
    naming->mappings = memory_zalloc(from->mapping_count, sizeof(*naming->mappings));
    for (uint32_t i = 1; i < from->frame_count; i++) {
        const struct profile_frame *frame = &from->frames[i];
        struct named_mapping *mapping = &naming->mappings[frame->mapping];
        if (!is_address_in_file(from, frame))
            continue;
        array_reserve(mapping->offsets, mapping->capacity, mapping->count + 1);
        mapping->offsets[mapping->count++] = frame->address;
    }
    for (uint32_t i = 1; i < from->mapping_count; i++) {
        struct named_mapping *mapping = &naming->mappings[i];
        const struct profile_mapping *described = &from->mappings[i];
        if (!mapping->count ||
            jit_mapping_pid(profile_text(from, described->file), &mapping->jit_pid))
            continue;
        if (!symbolizer_goes_on(naming->symbolizer, i - 1, from->mapping_count - 1))
            continue;
        const char *path = locate ? locate(context, from, i) : NULL;
        mapping->file =
            symbolizer_file(naming->symbolizer, path ? path : profile_text(from, described->file),
                            profile_text(from, described->build_id));
        mapping->by_address = profile_by_address(described);
        if (mapping->file)
            want_all(mapping);
    }
    symbolizer_look_up(naming->symbolizer);
}

uint32_t symbol_function(struct profile *to, const struct symbol_frame *frame)
{
    struct profile_function function = {.name = profile_cstring(to, frame->name),
                                        .start_line = frame->start_line};
    if (frame->system_name)
        function.system_name = profile_cstring(to, frame->system_name);
    if (frame->file)
        function.file = profile_cstring(to, frame->file);
    return profile_function(to, &function);
}

size_t symbol_put_frames(struct profile *to, const struct symbol_frame *frames, size_t count,
                         struct profile_frame *renamed)
{
    struct profile_frame address = renamed[0];
    for (size_t i = 0; i < count; i++) {
        const struct symbol_frame *frame = &frames[count - 1 - i];
        renamed[i] = address;
        if (frame->name)
            renamed[i].function = symbol_function(to, frame);
        renamed[i].line = frame->line;
        renamed[i].inlined = i > 0;
    }
    return count;
}

/* A module of the kernel is a binary of its own, called as perf calls it. */
static void put_module(struct profile *to, const char *module, struct profile_frame *renamed)
{
    _cleanup_buffer_ struct buffer name = {0};
    buffer_printf(&name, "[%s]", module);
    renamed->mapping = profile_mapping(
        to, &(struct profile_mapping){.limit = UINT64_MAX,
                                      .file = profile_cstring(to, buffer_text(&name))});
}

static bool is_named(const struct profile *from, const struct profile_frame *frame,
                     const struct symbol_frame *symbol)
{
    const struct profile_function *function = &from->functions[frame->function];
    const char *system_name = profile_text(from, function->system_name);
    return !strcmp(profile_text(from, function->name), symbol->name) ||
           (symbol->system_name && !strcmp(system_name, symbol->system_name));
}

static size_t name_frame(void *context, const struct profile *from, uint32_t id, struct profile *to,
                         struct profile_frame renamed[PROFILE_EXPANSION_MAX])
{
    struct naming *naming = context;
    const struct profile_frame *frame = &from->frames[id];
    const struct named_mapping *mapping = &naming->mappings[frame->mapping];
    struct symbolizer_file *file = mapping->file;
    uint32_t jit_pid = mapping->jit_pid;
    uint64_t offset;
    struct symbol_frame frames[SYMBOL_FRAMES_MAX];
    struct symbol symbol;
    size_t count = 0;
    if (frame->function) {
        /* It keeps its name, which the outermost of the functions there must have. */
        bool found = file && lacks_lines(from, frame) &&
                     find_offset(mapping, frame->address, &offset) &&
                     (count = symbolizer_file_frames(file, offset, frames));
        return found && frames[count - 1].file && is_named(from, frame, &frames[count - 1])
                   ? symbol_put_frames(to, frames, count, renamed)
                   : 0;
    }
    if (frame->kind == FRAME_KERNEL) {
        if (!symbolizer_find_kernel(naming->symbolizer, frame->address, &symbol))
            return 1;
        frames[0] = (struct symbol_frame){.name = symbol.name, .system_name = symbol.system_name};
        if (symbol.module)
            put_module(to, symbol.module, &renamed[0]);
        count = 1;
    } else if (jit_pid) {
        enum frame_kind kind;
        count = symbolizer_find_jit(naming->symbolizer, jit_pid, frame->address, frames, &kind);
        if (count)
            renamed[0].kind = (uint32_t)kind & 63;
    } else if (file && find_offset(mapping, frame->address, &offset)) {
        count = symbolizer_file_frames(file, offset, frames);
        /* A function without a name is where it starts. */
        if (!count && symbolizer_file_find(file, offset, &symbol))
            renamed[0].address -= symbol.distance;
    }
    return count ? symbol_put_frames(to, frames, count, renamed) : 1;
}

int symbol_name_profile(struct symbolizer *symbolizer, const struct profile *from,
                        struct profile *to, symbol_locate_fn locate, void *context,
                        struct error *error)
{
    _cleanup_(naming_release) struct naming naming = {.symbolizer = symbolizer};
    prepare(&naming, from, locate, context);
    return profile_rename_all(from, name_frame, &naming, to, error);
}
