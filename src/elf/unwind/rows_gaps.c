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
#define LOST_BYTES 64            /* of lost code that are decided on at once */
#define PROLOGUE_BEFORE_BYTES 1024

enum { DONE = 1, LOST = 2 };

struct gap {
    const struct code_rows *rows;
    struct elf_file *file;
    struct x86_64_region *region;
    uint64_t start, end;
    uint64_t *called; /* a bit for each byte */

    /* By distance from `at`: */
    uint64_t at; /* of what has been read */
    uint8_t *bytes;
    uint8_t *functions; /* is called */
    uint8_t *done;      /* DONE: has a rule, or can't have one; LOST: was followed in vain */
    uint32_t length, bytes_max;
};

/* Only where there is no rule yet. */
static void put(void *context, uint32_t offset, uint32_t length, const struct unwind_rule *rule)
{
    struct gap *gap = context;
    uint8_t *done = gap->done;
    uint32_t end = offset + length;
    while (offset < end) {
        uint32_t from = offset;
        bool known = rule->cfa != UNWIND_CFA_NONE;
        while (offset < end && !(done[offset] & DONE))
            done[offset++] = known ? DONE : DONE | LOST;
        if (offset > from && known)
            gap->rows->put(gap->rows->context, gap->at + from, offset - from, rule);
        while (offset < end && done[offset] & DONE)
            offset++;
    }
}

/* Behind code that can't be followed: where the next function may begin. */
static uint32_t skip_function(const struct gap *gap, uint32_t offset, uint32_t end)
{
    struct x86_64_instruction instruction;
    while (offset < end && x86_64_decode(gap->bytes + offset, gap->length - offset, &instruction)) {
        offset += instruction.length;
        if (x86_64_ends_path(&instruction) || (offset < end && gap->functions[offset]))
            return offset;
    }
    return offset + 1;
}

/* Code that was followed in vain: by the frame pointer, if code shortly before it sets one up. */
static void put_lost(struct gap *gap, uint32_t offset, uint32_t end)
{
    while (offset < end) {
        uint32_t from = offset, before = from - MIN(from, (uint32_t)PROLOGUE_BEFORE_BYTES);
        while (offset < end && offset - from < LOST_BYTES && gap->done[offset] & LOST)
            gap->done[offset++] = DONE;
        if (offset == from)
            offset++;
        else if (!x86_64_sets_frame_pointer(gap->bytes + before, offset - before))
            gap->rows->put(gap->rows->context, gap->at + from, offset - from,
                           &(struct unwind_rule){.cfa = UNWIND_CFA_LOST});
    }
}

static void follow(struct gap *gap, uint32_t offset, uint32_t end, uint64_t *steps)
{
    const uint8_t *functions = gap->functions;
    uint8_t *done = gap->done;
    while (offset < end) {
        struct x86_64_instruction instruction;
        enum x86_64_start start = functions[offset] ? X86_64_START_FUNCTION : X86_64_START_ANYWHERE;
        if (gap->at + offset == gap->file->entry)
            start = X86_64_START_PROGRAM;
        if (done[offset] & DONE ||
            !x86_64_decode(gap->bytes + offset, gap->length - offset, &instruction))
            offset++;
        else if (!start && x86_64_is_padding(&instruction))
            offset += instruction.length;
        else if (!x86_64_region_rules(gap->region, offset, start, steps, put, gap)) {
            uint32_t next = MIN(skip_function(gap, offset, end), gap->length);
            for (; offset < next; offset++)
                if (x86_64_region_is_lost(gap->region) && !(done[offset] & DONE))
                    done[offset] |= LOST;
        } else if (!done[offset])
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
            gap->called[(target - gap->start) / 64] |= 1ull << (target - gap->start) % 64;
    }
}

/* The distance of what was read from the start is a multiple of 64. */
static void find_functions(struct gap *gap)
{
    const uint64_t *called = gap->called + (gap->at - gap->start) / 64;
    memset(gap->functions, 0, gap->bytes_max);
    for (uint32_t i = 0; i * 64 < gap->length; i++)
        for (uint64_t bits = called[i]; bits; bits &= bits - 1)
            gap->functions[i * 64 + (uint32_t)__builtin_ctzll(bits)] = 1;
}

typedef void window_fn(struct gap *gap, uint32_t offset, uint32_t end);

static void follow_window(struct gap *gap, uint32_t offset, uint32_t end)
{
    struct x86_64_code code = {gap->bytes, gap->length, gap->functions};
    uint64_t steps = (uint64_t)(end - offset) * STEPS_PER_BYTE;
    find_functions(gap);
    if (!x86_64_region_set(gap->region, &code))
        return;
    follow(gap, offset, end, &steps);
    put_lost(gap, offset, end);
}

/* Moves the window. What was done behind the one before is part of this one. */
static bool read_window(struct gap *gap, uint64_t at)
{
    uint64_t start = at - MIN(at - gap->start, (uint64_t)AROUND_BYTES);
    uint32_t moved = (uint32_t)MIN(start - gap->at, (uint64_t)gap->bytes_max);
    memmove(gap->done, gap->done + moved, gap->bytes_max - moved);
    memset(gap->done + gap->bytes_max - moved, 0, moved);
    gap->at = start;
    gap->length = (uint32_t)MIN(gap->end - start, (uint64_t)gap->bytes_max);
    return elf_read_address(gap->file, start, gap->bytes, gap->length) >= 0;
}

static void each_window(struct gap *gap, window_fn *look)
{
    gap->at = gap->start;
    for (uint64_t at = gap->start; at < gap->end; at += WINDOW_BYTES) {
        if (!read_window(gap, at))
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
    uint64_t bytes = gap.end - start;
    *bytes_left -= bytes;
    gap.bytes_max = (uint32_t)MIN(bytes, (uint64_t)WINDOW_BYTES + 2 * AROUND_BYTES);
    gap.region = x86_64_region_new(gap.bytes_max);
    gap.called = memory_zalloc(bytes / 64 + 1, sizeof(*gap.called));
    gap.bytes = memory_alloc(gap.bytes_max);
    gap.functions = memory_zalloc(gap.bytes_max, 1);
    gap.done = memory_zalloc(gap.bytes_max, 1);
    each_window(&gap, note_calls);
    each_window(&gap, follow_window);
    x86_64_region_free(gap.region);
    free(gap.called);
    free(gap.bytes);
    free(gap.functions);
    free(gap.done);
}
