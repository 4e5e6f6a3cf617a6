// SPDX-License-Identifier: Apache-2.0
// Pieces of evaluation functions: see part.h.

#include "runtime/part.h"

#include <string.h>

#include "arch/x86_64/code.h"
#include "base/memory.h"
#include "elf/cfi/ehframe.h"

#define FUNCTION_BYTES_MAX (1u << 20) /* real ones have 3 to 60 KiB */
#define FRAMES_BYTES_MAX (32u << 20)
#define TARGETS_MAX 4096

/* A function's code, and where it leads. */
struct targets {
    uint64_t list[TARGETS_MAX];
    size_t count;
};

/* Where jumps or calls out of the function lead to. */
static void find_targets(const uint8_t *code, uint64_t start, size_t length, bool calls,
                         struct targets *targets)
{
    for (size_t at = 0; at < length && targets->count < TARGETS_MAX;) {
        struct x86_64_instruction instruction;
        if (!x86_64_decode(code + at, length - at, &instruction)) {
            at++;
            continue;
        }
        at += instruction.length;
        bool jumps = (instruction.map == 0 && instruction.opcode == 0xe9) ||
                     (instruction.map == 1 && (instruction.opcode & 0xf0) == 0x80);
        bool called = instruction.map == 0 && instruction.opcode == 0xe8;
        uint64_t target = start + at + (uint64_t)instruction.immediate;
        if ((calls ? called : jumps) && (target < start || target >= start + length))
            targets->list[targets->count++] = target;
    }
}

static bool read_targets(struct elf_file *file, const uint64_t function[2], bool calls,
                         struct targets *targets)
{
    size_t length = (size_t)(function[1] - function[0]);
    targets->count = 0;
    if (length > FUNCTION_BYTES_MAX)
        return false;
    _cleanup_free_ uint8_t *code = memory_try_alloc(length);
    if (!code || elf_read_address(file, function[0], code, length) < 0)
        return false;
    find_targets(code, function[0], length, calls, targets);
    return targets->count;
}

static bool read_entries(struct elf_file *file, struct buffer *content, struct frame_reader *reader)
{
    struct elf_section section;
    if (!elf_find_section(file, ".eh_frame", &section) ||
        elf_read_section(file, &section, FRAMES_BYTES_MAX, content, NULL) < 0)
        return false;
    frame_reader_init(reader, &(struct frame_section){.bytes = (const uint8_t *)content->data,
                                                      .length = content->length,
                                                      .address = section.address,
                                                      .open_ended = section.open_ended});
    return true;
}

/* Jumps into the middle of another unwind entry: a call at a function's end leads to its start, so
 * this is code of the same function. The entry with the most of them is the part. */
void runtime_find_part(struct elf_file *file, const uint64_t function[2], uint64_t ret_part[2])
{
    _cleanup_free_ struct targets *targets = memory_zalloc(1, sizeof(*targets));
    _cleanup_free_ struct frame_reader *reader = memory_try_zalloc(1, sizeof(*reader));
    _cleanup_buffer_ struct buffer content = {0};
    struct frame_fde entry;
    size_t most = 0;
    if (!reader || !read_targets(file, function, false, targets) ||
        !read_entries(file, &content, reader))
        return;
    while (frame_reader_next(reader, &entry) > 0) {
        size_t inside = 0;
        for (size_t i = 0; i < targets->count; i++)
            inside += targets->list[i] > entry.start && targets->list[i] < entry.end;
        if (inside > most) {
            most = inside;
            ret_part[0] = entry.start;
            ret_part[1] = entry.end;
        }
    }
}

void runtime_find_callee(struct elf_file *file, const uint64_t function[2], uint64_t least,
                         uint64_t ret_callee[2])
{
    _cleanup_free_ struct targets *targets = memory_zalloc(1, sizeof(*targets));
    _cleanup_free_ struct frame_reader *reader = memory_try_zalloc(1, sizeof(*reader));
    _cleanup_buffer_ struct buffer content = {0};
    struct frame_fde entry;
    uint64_t most = least;
    if (!reader || !read_targets(file, function, true, targets) ||
        !read_entries(file, &content, reader))
        return;
    while (frame_reader_next(reader, &entry) > 0) {
        bool called = false;
        for (size_t i = 0; i < targets->count && !called; i++)
            called = targets->list[i] == entry.start;
        if (called && entry.end - entry.start >= most) {
            most = entry.end - entry.start;
            ret_callee[0] = entry.start;
            ret_callee[1] = entry.end;
        }
    }
}
