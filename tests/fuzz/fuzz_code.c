// SPDX-License-Identifier: Apache-2.0
// The fuzzer of unwind rules from code: whatever the bytes are, decoding stays within them, rules
// cover the function from its first byte to its last without holes, and the same bytes followed by
// others are the same instruction. The first byte says whether it is the program's entry.

#include <stdlib.h>
#include <string.h>

#include "arch/x86_64/code.h"

#define INSTRUCTION_BYTES_MAX 15
#define FOLLOWED_BYTES_MAX 2048

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

struct reported {
    uint64_t end;
    struct unwind_rule rule;
};

static void put(void *context, uint32_t offset, uint32_t length, const struct unwind_rule *rule)
{
    struct reported *reported = context;
    require(offset == reported->end && length > 0);
    /* Neighbours differ: each row is stored. */
    require(!offset || memcmp(rule, &reported->rule, sizeof(*rule)) != 0);
    require(rule->cfa != UNWIND_CFA_SP || rule->cfa_offset >= 8);
    reported->end = (uint64_t)offset + length;
    reported->rule = *rule;
}

struct placed {
    uint64_t end, length;
};

static void put_at(void *context, uint32_t offset, uint32_t length, const struct unwind_rule *rule)
{
    struct placed *placed = context;
    require(length > 0 && (uint64_t)offset + length <= placed->length);
    require(rule->cfa != UNWIND_CFA_SP || rule->cfa_offset >= 8);
    placed->end = (uint64_t)offset + length;
}

/* As code without known functions, from each of its bytes. */
static void follow_all(const uint8_t *code, size_t length, const uint8_t *functions)
{
    struct x86_64_region *region = x86_64_region_new(length);
    struct x86_64_code all = {code, length, functions};
    uint64_t steps = 16 * length;
    require(x86_64_region_set(region, &all));
    for (size_t at = 0; at < length; at++) {
        struct placed placed = {.length = length};
        bool found =
            x86_64_region_rules(region, at, (enum x86_64_start)(at % 3), &steps, put_at, &placed);
        require(found || !placed.end);
    }
    x86_64_region_free(region);
}

static void decode_all(const uint8_t *code, size_t length)
{
    for (size_t at = 0; at < length;) {
        struct x86_64_instruction instruction, alone;
        size_t room = length - at;
        if (!x86_64_decode(code + at, room, &instruction)) {
            at++;
            continue;
        }
        require(instruction.length > 0 && instruction.length <= INSTRUCTION_BYTES_MAX &&
                instruction.length <= room);
        require(x86_64_decode(code + at, instruction.length, &alone) &&
                alone.length == instruction.length && alone.opcode == instruction.opcode &&
                alone.immediate == instruction.immediate &&
                alone.displacement == instruction.displacement);
        require(!x86_64_decode(code + at, instruction.length - 1u, &alone));
        at += instruction.length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    struct reported reported = {0};
    if (length < 2)
        return 0;
    /* Of exactly this size, so that a byte more is noticed. */
    uint8_t *code = malloc(length - 1);
    require(code);
    memcpy(code, data + 1, length - 1);
    decode_all(code, length - 1);
    bool followed = x86_64_code_rules(code, length - 1, data[0] & 1, put, &reported);
    require(reported.end == (followed ? length - 1 : 0));
    (void)x86_64_code_unknown(code, length - 1);
    if (length <= FOLLOWED_BYTES_MAX)
        follow_all(code, length - 1, code);
    free(code);
    return 0;
}
