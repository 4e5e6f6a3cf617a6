// SPDX-License-Identifier: Apache-2.0
// Machine code as text: see disassemble.h.

#include "arch/x86_64/disassemble.h"

#include <capstone/capstone.h>
#include <stdio.h>

#include "arch/x86_64/code.h"

enum { CALL = 0xe8, JUMP = 0xe9, JUMP_SHORT = 0xeb };

_Static_assert(CS_MNEMONIC_SIZE + sizeof(((cs_insn *)NULL)->op_str) + 1 <
                   X86_64_INSTRUCTION_TEXT_BYTES,
               "mnemonic and operands fit");

static bool is_direct(const struct x86_64_instruction *instruction)
{
    unsigned opcode = instruction->opcode;
    if (instruction->map == 1)
        return opcode >= 0x80 && opcode <= 0x8f;
    return instruction->map == 0 && (opcode == CALL || opcode == JUMP || opcode == JUMP_SHORT ||
                                     (opcode >= 0x70 && opcode <= 0x7f));
}

static void put_bytes(struct x86_64_line *line, const uint8_t *bytes)
{
    int used = snprintf(line->text, sizeof(line->text), ".byte");
    for (unsigned i = 0; i < line->length; i++)
        used += snprintf(line->text + used, sizeof(line->text) - (size_t)used, "%s0x%02x",
                         i ? ", " : " ", bytes[i]);
}

bool x86_64_disassemble(const uint8_t *code, size_t length, uint64_t address, x86_64_line_fn *put,
                        void *context)
{
    csh capstone;
    if (cs_open(CS_ARCH_X86, CS_MODE_64, &capstone) != CS_ERR_OK)
        return false;
    cs_option(capstone, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
    cs_insn *found = cs_malloc(capstone);
    while (found && length) {
        struct x86_64_line line = {.length = 1};
        struct x86_64_instruction own;
        const uint8_t *rest = code;
        size_t rest_length = length;
        uint64_t rest_address = address;
        bool known = x86_64_decode(code, length, &own);
        if (cs_disasm_iter(capstone, &rest, &rest_length, &rest_address, found) && found->size &&
            found->size <= length) {
            line.length = (uint8_t)found->size;
            snprintf(line.text, sizeof(line.text), "%s%s%s", found->mnemonic,
                     found->op_str[0] ? " " : "", found->op_str);
        } else {
            line.length = known ? own.length : 1;
            put_bytes(&line, code);
        }
        if (known && own.length == line.length && is_direct(&own))
            line.target = address + line.length + (uint64_t)own.immediate;
        put(context, &line);
        code += line.length;
        address += line.length;
        length -= line.length;
    }
    bool fine = found != NULL;
    if (found)
        cs_free(found, 1);
    cs_close(&capstone);
    return fine;
}
