// SPDX-License-Identifier: Apache-2.0
// Code without call frame information and symbols: see rows_gaps.h. It is read in windows; each is
// looked at with code around it, where its jumps lead.

#include "elf/unwind/rows_gaps.h"

#include <elf.h>
#include <string.h>

#include "arch/x86_64/code.h"
#include "base/memory.h"

#define WINDOW_BYTES (64u << 10)
#define AROUND_BYTES (32u << 10) /* before and behind a window */
#define STEPS_PER_BYTE 4         /* that may be taken: code that is reached from many places */

struct gap {
    const struct code_rows *rows;
    struct elf_file *file;
    struct x86_64_region *region;
    uint64_t start, end;
    uint8_t *functions; /* by distance from the start: is called */
    uint8_t *done;      /* has a rule, or can't have one */

    uint64_t at; /* of what has been read */
    uint8_t *bytes;
    uint32_t length;
};

/* Only where there is no rule yet. */
static void put(void *context, uint32_t offset, uint32_t length, const struct unwind_rule *rule)
{
    struct gap *gap = context;
    uint8_t *done = gap->done + (gap->at - gap->start);
    uint32_t end = offset + length;
    while (offset < end) {
        uint32_t from = offset;
        while (offset < end && !done[offset])
            done[offset++] = 1;
        if (offset > from && rule->cfa != UNWIND_CFA_NONE)
            gap->rows->put(gap->rows->context, gap->at + from, offset - from, rule);
        while (offset < end && done[offset])
            offset++;
    }
}

/* Behind code that can't be followed: where the next function may begin. */
static uint32_t skip_function(const struct gap *gap, uint32_t offset, uint32_t end)
{
    struct x86_64_instruction instruction;
    const uint8_t *functions = gap->functions + (gap->at - gap->start);
    while (offset < end && x86_64_decode(gap->bytes + offset, gap->length - offset, &instruction)) {
        offset += instruction.length;
        if (x86_64_ends_path(&instruction) || (offset < end && functions[offset]))
            return offset;
    }
    return offset + 1;
}

static void follow(struct gap *gap, uint32_t offset, uint32_t end, uint64_t *steps)
{
    const uint8_t *functions = gap->functions + (gap->at - gap->start);
    const uint8_t *done = gap->done + (gap->at - gap->start);
    struct x86_64_code code = {gap->bytes, gap->length, functions};
    while (offset < end) {
        struct x86_64_instruction instruction;
        enum x86_64_start start = functions[offset] ? X86_64_START_FUNCTION : X86_64_START_ANYWHERE;
        if (gap->at + offset == gap->file->entry)
            start = X86_64_START_PROGRAM;
        if (done[offset] || !x86_64_decode(gap->bytes + offset, gap->length - offset, &instruction))
            offset++;
        else if (!start && x86_64_is_padding(&instruction))
            offset += instruction.length;
        else if (!x86_64_region_rules(gap->region, &code, offset, start, steps, put, gap))
            offset = skip_function(gap, offset, end);
        else if (!done[offset])
            offset++;
    }
}

/* Calls, and addresses that are taken to be called later. */
static void note_calls(struct gap *gap, uint32_t offset, uint32_t end)
{
    bool is_fixed = gap->file->type == ET_EXEC;
    while (offset < end) {
        struct x86_64_instruction instruction;
        uint64_t target;
        if (!x86_64_decode(gap->bytes + offset, gap->length - offset, &instruction)) {
            offset++;
            continue;
        }
        offset += instruction.length;
        if (x86_64_takes_address(&instruction, gap->at + offset, is_fixed, &target) &&
            target >= gap->start && target < gap->end)
            gap->functions[target - gap->start] = 1;
    }
}

typedef void window_fn(struct gap *gap, uint32_t offset, uint32_t end);

static void follow_window(struct gap *gap, uint32_t offset, uint32_t end)
{
    uint64_t steps = (uint64_t)(end - offset) * STEPS_PER_BYTE;
    follow(gap, offset, end, &steps);
}

static void each_window(struct gap *gap, uint64_t bytes_max, window_fn *look)
{
    for (uint64_t at = gap->start; at < gap->end; at += WINDOW_BYTES) {
        gap->at = at - MIN(at - gap->start, (uint64_t)AROUND_BYTES);
        gap->length = (uint32_t)MIN(gap->end - gap->at, bytes_max);
        if (elf_read_address(gap->file, gap->at, gap->bytes, gap->length) < 0)
            return;
        uint32_t offset = (uint32_t)(at - gap->at);
        look(gap, offset, offset + (uint32_t)MIN(gap->end - at, (uint64_t)WINDOW_BYTES));
    }
}

void gap_rows_compile(struct elf_file *file, uint64_t start, uint64_t end, uint64_t *bytes_left,
                      const struct code_rows *rows)
{
    struct gap gap = {.rows = rows, .file = file, .start = start};
    gap.end = MIN(end, start + *bytes_left);
    if (gap.end == start)
        return;
    *bytes_left -= gap.end - start;
    uint64_t bytes_max = MIN(gap.end - start, (uint64_t)WINDOW_BYTES + 2 * AROUND_BYTES);
    gap.region = x86_64_region_new(bytes_max);
    gap.bytes = memory_alloc(bytes_max);
    gap.functions = memory_zalloc(gap.end - start, 1);
    gap.done = memory_zalloc(gap.end - start, 1);
    each_window(&gap, bytes_max, note_calls);
    each_window(&gap, bytes_max, follow_window);
    x86_64_region_free(gap.region);
    free(gap.bytes);
    free(gap.functions);
    free(gap.done);
}
