// SPDX-License-Identifier: Apache-2.0
// Unwinding of recorded stacks: see walk.h.

#include "symbol/recorded/walk.h"

#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "elf/unwind/unwind.h"
#include "symbol/recorded/binaries.h"

#define ROWS_BYTES_MAX (1ull << 30) /* of all files */

/* A binary of the recording. */
struct walked_file {
    bool tried, found;
    struct elf_file file; /* only its segments are used after its rows were compiled */
    struct unwind_rows rows;
};

struct walker {
    struct unwind_rules rules;
    struct walked_file **files; /* by number */
    size_t count, capacity;
    uint64_t rows_bytes;
    char kernel[41]; /* build ID */
};

static void *walker_start(void)
{
    struct walker *walker = memory_zalloc(1, sizeof(*walker));
    unwind_rules_init(&walker->rules);
    return walker;
}

static void walker_stop(void *context)
{
    struct walker *walker = context;
    for (size_t i = 0; i < walker->count; i++)
        if (walker->files[i]) {
            if (walker->files[i]->found) {
                unwind_rows_release(&walker->files[i]->rows);
                elf_release(&walker->files[i]->file);
            }
            free(walker->files[i]);
        }
    free(walker->files);
    unwind_rules_release(&walker->rules);
    free(walker);
}

/* ---- binaries ---- */

static struct walked_file *file_of(struct walker *walker, const struct perf_walk_place *place)
{
    size_t number = place->number;
    if (number >= walker->count) {
        array_reserve(walker->files, walker->capacity, number + 1);
        memset(walker->files + walker->count, 0,
               (number + 1 - walker->count) * sizeof(*walker->files));
        walker->count = number + 1;
    }
    if (!walker->files[number])
        walker->files[number] = memory_zalloc(1, sizeof(struct walked_file));
    struct walked_file *file = walker->files[number];
    if (file->tried)
        return file;
    file->tried = true;
    struct recorded_binary binary = {place->path, place->build_id, place->inode};
    if (walker->rows_bytes > ROWS_BYTES_MAX || !recorded_open(&binary, &file->file, NULL))
        return file;
    if (unwind_rows_compile(&file->file, &walker->rules, &file->rows, NULL) < 0) {
        elf_release(&file->file);
        return file;
    }
    file->found = true;
    walker->rows_bytes += unwind_rows_bytes(&file->rows);
    /* Recordings name thousands of files; their segments are enough from here on. */
    if (file->file.fd >= 0) {
        close(file->file.fd);
        file->file.fd = -1;
    }
    return file;
}

/* ---- walking ---- */

struct walk {
    struct walker *walker;
    const struct perf_walk_request *request;
};

static bool find(void *context, uint64_t address, struct unwind_place *ret_place)
{
    struct walk *walk = context;
    struct perf_walk_place place;
    if (!walk->request->find(walk->request->context, address, &place))
        return false;
    *ret_place = (struct unwind_place){.generated = place.generated};
    if (place.generated)
        return true;
    const struct walked_file *file = file_of(walk->walker, &place);
    uint64_t bias;
    if (file->found && elf_load_bias(&file->file, place.start, place.offset, &bias)) {
        ret_place->rows = &file->rows;
        ret_place->bias = bias;
    }
    return true;
}

static enum perf_walk_end walker_walk(void *context, const struct perf_walk_request *request,
                                      struct perf_walk_frame *ret_frames, size_t limit,
                                      size_t *ret_count)
{
    struct walk walk = {.walker = context, .request = request};
    struct unwind_input input = {
        .stack = request->stack,
        .stack_bytes = request->stack_bytes,
        .stack_address = request->registers[7],
        .rules = &walk.walker->rules,
        .find = find,
        .context = &walk,
    };
    _Static_assert(PERF_WALK_REGISTERS == UNWIND_REGISTERS, "the same registers");
    memcpy(input.registers.value, request->registers, sizeof(input.registers.value));
    input.registers.known = request->known;
    struct unwind_frame frames[PERF_WALK_FRAMES_MAX];
    size_t count = 0;
    enum unwind_end end = unwind_walk(&input, frames, MIN(limit, ARRAY_LENGTH(frames)), &count);
    bool below_signal = false; /* the trampoline that a signal's handler returns to */
    for (size_t i = count; i-- > 0;) {
        bool exact = frames[i].flags & UNWIND_FRAME_EXACT;
        /* A return address is one behind the call: the call itself is meant. */
        ret_frames[i].address = frames[i].address - !(exact || below_signal);
        below_signal = exact && !(frames[i].flags & UNWIND_FRAME_PLANTED);
    }
    *ret_count = count;
    return end == UNWIND_END_COMPLETE                               ? PERF_WALK_COMPLETE
           : end == UNWIND_END_TRUNCATED || end == UNWIND_END_LIMIT ? PERF_WALK_TRUNCATED
                                                                    : PERF_WALK_UNKNOWN;
}

static const char *running_kernel(void *context)
{
    struct walker *walker = context;
    if (!walker->kernel[0] && !recorded_running_kernel(walker->kernel))
        walker->kernel[0] = '\0';
    return walker->kernel;
}

const struct perf_walker symbol_walker = {walker_start, walker_stop, walker_walk, running_kernel};
