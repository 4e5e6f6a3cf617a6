// SPDX-License-Identifier: Apache-2.0
// Names of registers, and the forms of instructions that Go's compiler and linkers write.

#include <string.h>

#include "arch/x86_64/registers.h"
#include "arch/x86_64/x86_64.h"
#include "base/memory.h"
#include "elf/cursor.h"

static const struct {
    const char *names[4]; /* of 8, 4, 2 and 1 bytes */
    unsigned number;
} registers[] = {
    {{"rax", "eax", "ax", "al"}, 0},       {{"rdx", "edx", "dx", "dl"}, 1},
    {{"rcx", "ecx", "cx", "cl"}, 2},       {{"rbx", "ebx", "bx", "bl"}, 3},
    {{"rsi", "esi", "si", "sil"}, 4},      {{"rdi", "edi", "di", "dil"}, 5},
    {{"rbp", "ebp", "bp", "bpl"}, 6},      {{"rsp", "esp", "sp", "spl"}, 7},
    {{"r8", "r8d", "r8w", "r8b"}, 8},      {{"r9", "r9d", "r9w", "r9b"}, 9},
    {{"r10", "r10d", "r10w", "r10b"}, 10}, {{"r11", "r11d", "r11w", "r11b"}, 11},
    {{"r12", "r12d", "r12w", "r12b"}, 12}, {{"r13", "r13d", "r13w", "r13b"}, 13},
    {{"r14", "r14d", "r14w", "r14b"}, 14}, {{"r15", "r15d", "r15w", "r15b"}, 15},
};

bool register_by_name(const char *name, size_t length, unsigned *ret_number)
{
    for (size_t i = 0; i < ARRAY_LENGTH(registers); i++)
        for (size_t j = 0; j < ARRAY_LENGTH(registers[i].names); j++)
            if (strlen(registers[i].names[j]) == length &&
                memcmp(registers[i].names[j], name, length) == 0) {
                *ret_number = registers[i].number;
                return true;
            }
    return false;
}

bool x86_64_go_saves_fp(const uint8_t code[9], uint32_t frame, uint32_t *ret_bytes)
{
    uint32_t slot = frame - 8;
    if (frame == 8 && code[0] == 0x55) {
        *ret_bytes = 0;
        return true;
    }
    if (code[1] != 0x48 || code[2] != 0x89 || code[4] != 0x24)
        return false;
    if (code[3] == 0x2c && !slot)
        *ret_bytes = 4;
    else if (code[3] == 0x6c && code[5] == slot && slot < 128)
        *ret_bytes = 5;
    else if (code[3] == 0xac && !memcmp(code + 5, &slot, 4))
        *ret_bytes = 8;
    else
        return false;
    return true;
}

size_t x86_64_sp_write_bytes(const uint8_t code[4])
{
    uint8_t prefix = code[0], operation = code[1], form = code[2];
    unsigned mode = form >> 6, base = form & 7;
    if ((prefix & 0xfb) == 0x48 && operation == 0x89 && mode == 3 && base == 4)
        return 3; /* mov %reg,%rsp */
    if (prefix == 0x48 && form == 0xe4 && (operation == 0x83 || operation == 0x81))
        return operation == 0x83 ? 4 : 7; /* and $n,%rsp */
    bool load = operation == 0x8b, compute = operation == 0x8d && base != 4;
    if ((prefix & 0xfe) != 0x48 || (form >> 3 & 7) != 4 || mode == 3 || (!load && !compute))
        return 0;
    size_t displacement = mode == 1 ? 1 : mode == 2 || base == 5 ? 4 : 0;
    return 3 + (base == 4) + displacement;
}

static bool take_bytes(struct cursor *cursor, const char *bytes, size_t length)
{
    if (cursor_left(cursor) < length || memcmp(cursor->at, bytes, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

bool x86_64_plt_stub(const uint8_t *bytes, size_t length, uint64_t address,
                     struct x86_64_plt_stub *ret_stub)
{
    struct cursor cursor = cursor_of(bytes, length);
    take_bytes(&cursor, "\xf3\x0f\x1e\xfa", 4); /* endbr64 */
    if (take_bytes(&cursor, "\x68", 1)) {
        ret_stub->index = cursor_u32(&cursor);
        ret_stub->by_index = true;
        return !cursor.bad;
    }
    if (take_bytes(&cursor, "\x41\xbb", 2))
        cursor_take(&cursor, 4);
    take_bytes(&cursor, "\xf2", 1);
    if (!take_bytes(&cursor, "\xff\x25", 2) && !take_bytes(&cursor, "\x4c\x8b\x1d", 3))
        return false;
    int32_t distance = (int32_t)cursor_u32(&cursor);
    ret_stub->by_index = false;
    ret_stub->slot = address + (uint64_t)(cursor.at - bytes) + (uint64_t)(int64_t)distance;
    return !cursor.bad;
}
