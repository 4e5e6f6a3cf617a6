// SPDX-License-Identifier: Apache-2.0
// Lengths and operands of x86-64 instructions: see x86_64_code.h.

#include "arch/x86_64/code.h"

#define INSTRUCTION_BYTES_MAX 15

enum { REX_W = 8 };

/* Operands after an opcode. */
enum {
    M = 1,   /* a ModRM byte */
    I8 = 2,  /* immediates */
    I32 = 4, /* 16 bits with the operand-size prefix */
    I16 = 8,
    REL = 16, /* 32 bits, whatever the prefix */
    I64 = 32, /* 64 bits with REX.W, else as I32 */
    BAD = 64,
};

struct bytes {
    const uint8_t *at, *end;
    bool short_of;
};

static uint8_t take(struct bytes *bytes)
{
    if (bytes->at == bytes->end) {
        bytes->short_of = true;
        return 0;
    }
    return *bytes->at++;
}

static int64_t take_signed(struct bytes *bytes, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value |= (uint64_t)take(bytes) << (8 * i);
    unsigned unused = 64 - 8 * count;
    return unused == 64 ? 0 : (int64_t)(value << unused) >> unused;
}

/* Opcodes of one byte. */
static unsigned form_of(uint8_t opcode)
{
    if (opcode < 0x40) {
        static const uint8_t forms[8] = {M, M, M, M, I8, I32, BAD, BAD};
        return forms[opcode & 7];
    }
    switch (opcode) {
    case 0x63:
    case 0x84 ... 0x8f:
    case 0xd0 ... 0xd3:
    case 0xd8 ... 0xdf:
    case 0xf6:
    case 0xf7:
    case 0xfe:
    case 0xff:
        return M;
    case 0x69:
    case 0x81:
    case 0xc7:
        return M | I32;
    case 0x6b:
    case 0x80:
    case 0x83:
    case 0xc0:
    case 0xc1:
    case 0xc6:
        return M | I8;
    case 0x6a:
    case 0x70 ... 0x7f:
    case 0xa8:
    case 0xb0 ... 0xb7:
    case 0xcd:
    case 0xe0 ... 0xe7:
    case 0xeb:
        return I8;
    case 0x68:
    case 0xa9:
        return I32;
    case 0xe8:
    case 0xe9:
        return REL;
    case 0xb8 ... 0xbf:
        return I64;
    case 0xc2:
    case 0xca:
        return I16;
    case 0xc8:
        return I16 | I8;
    case 0x60 ... 0x62:
    case 0x82:
    case 0x9a:
    case 0xa0 ... 0xa3:
    case 0xc4:
    case 0xc5:
    case 0xce:
    case 0xd4 ... 0xd6:
    case 0xea:
        return BAD;
    default:
        return 0;
    }
}

/* Opcodes behind 0f. */
static unsigned second_form_of(uint8_t opcode)
{
    switch (opcode) {
    case 0x05 ... 0x09:
    case 0x0b:
    case 0x0e:
    case 0x30 ... 0x37:
    case 0x77:
    case 0xa0 ... 0xa2:
    case 0xa8 ... 0xaa:
    case 0xc8 ... 0xcf:
        return 0;
    case 0x80 ... 0x8f:
        return REL;
    case 0x0f:
    case 0x70 ... 0x73:
    case 0xa4:
    case 0xac:
    case 0xba:
    case 0xc2:
    case 0xc4 ... 0xc6:
        return M | I8;
    default:
        return M;
    }
}

static unsigned vector_form_of(uint8_t map, uint8_t opcode)
{
    if (map == 1)
        return opcode == 0x77 ? 0 : second_form_of(opcode) & (M | I8);
    return map == 3 ? M | I8 : map == 2 || map == 5 || map == 6 ? M : BAD;
}

static void take_operand(struct bytes *bytes, struct x86_64_instruction *instruction)
{
    instruction->has_modrm = true;
    instruction->modrm = take(bytes);
    unsigned mode = instruction->modrm >> 6, rm = instruction->modrm & 7;
    if (mode == 3)
        return;
    if (rm == 4)
        instruction->sib = take(bytes);
    bool no_base = mode == 0 && (rm == 5 || (rm == 4 && (instruction->sib & 7) == 5));
    if (mode == 1)
        instruction->displacement = (int32_t)take_signed(bytes, 1);
    else if (mode == 2 || no_base)
        instruction->displacement = (int32_t)take_signed(bytes, 4);
}

/* The opcode with all that says which one it is; what follows it. */
static unsigned take_opcode(struct bytes *bytes, struct x86_64_instruction *instruction)
{
    uint8_t byte = take(bytes);
    if ((byte & 0xf0) == 0x40) {
        instruction->rex = byte;
        byte = take(bytes);
    }
    if (byte == 0xc5 || byte == 0xc4 || byte == 0x62) {
        uint8_t second = take(bytes);
        instruction->map = byte == 0xc5 ? 1 : byte == 0xc4 ? second & 31 : second & 7;
        for (int i = 0; i < (byte == 0xc5 ? 0 : byte == 0xc4 ? 1 : 2); i++)
            take(bytes);
        instruction->opcode = take(bytes);
        unsigned form = vector_form_of(instruction->map, instruction->opcode);
        instruction->map |= 16;
        return form;
    }
    if (byte != 0x0f) {
        instruction->opcode = byte;
        return form_of(byte);
    }
    byte = take(bytes);
    instruction->map = byte == 0x38 ? 2 : byte == 0x3a ? 3 : 1;
    instruction->opcode = instruction->map == 1 ? byte : take(bytes);
    return instruction->map == 1 ? second_form_of(byte) : instruction->map == 2 ? M : M | I8;
}

static void take_immediate(struct bytes *bytes, unsigned form, bool is_short,
                           struct x86_64_instruction *instruction)
{
    bool test =
        !instruction->map && (instruction->opcode & 0xfe) == 0xf6 && !(instruction->modrm >> 3 & 6);
    if (test)
        form |= instruction->opcode & 1 ? I32 : I8;
    if (form & I16)
        take_signed(bytes, 2);
    if (form & I8)
        instruction->immediate = take_signed(bytes, 1);
    else if (form & REL)
        instruction->immediate = take_signed(bytes, 4);
    else if (form & I64 && instruction->rex & REX_W)
        instruction->immediate = take_signed(bytes, 8);
    else if (form & (I32 | I64))
        instruction->immediate = take_signed(bytes, is_short ? 2 : 4);
}

bool x86_64_decode(const uint8_t *code, size_t room, struct x86_64_instruction *ret_instruction)
{
    static const bool is_prefix[256] = {
        [0x66] = true, [0x67] = true, [0xf2] = true, [0xf3] = true, [0xf0] = true, [0x2e] = true,
        [0x36] = true, [0x3e] = true, [0x26] = true, [0x64] = true, [0x65] = true,
    };
    struct bytes bytes = {
        .at = code, .end = code + (room < INSTRUCTION_BYTES_MAX ? room : INSTRUCTION_BYTES_MAX)};
    struct x86_64_instruction instruction = {0};
    bool is_short = false;
    while (bytes.at < bytes.end && is_prefix[*bytes.at])
        is_short |= *bytes.at++ == 0x66;
    unsigned form = take_opcode(&bytes, &instruction);
    if (form & BAD)
        return false;
    if (form & M)
        take_operand(&bytes, &instruction);
    take_immediate(&bytes, form, is_short, &instruction);
    if (bytes.short_of)
        return false;
    instruction.length = (uint8_t)(bytes.at - code);
    *ret_instruction = instruction;
    return true;
}
