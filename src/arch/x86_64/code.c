// SPDX-License-Identifier: Apache-2.0
// Unwind rules from code: see x86_64_code.h. Each instruction is visited once, with the state of
// the stack before it.

#include "arch/x86_64/code.h"

#include <string.h>

#include "base/memory.h"

enum { SP = 4, BP = 5 }; /* as instructions number registers */
enum { REX_B = 1, REX_R = 4, REX_W = 8 };

#define DEPTH_MAX (1 << 28)
#define PROLOGUE_BYTES_MAX 256

struct state {
    int32_t depth;    /* bytes between the return address and sp */
    int32_t base;     /* the depth that fp points to; -1: it is not a frame pointer */
    int32_t fp_depth; /* the depth that the caller's fp is saved at; 0: it is in fp */
    bool sp_known;
    bool outermost; /* nobody has called this: it clears fp to say so */
    bool seen;
};

struct analysis {
    const uint8_t *code;
    uint32_t length;
    struct state *states; /* by offset */
    uint32_t *queue;
    uint32_t queued;
    struct state jumped; /* where an indirect jump, such as a switch's, goes on */
    bool leaf_tables;    /* also with nothing on the stack: else that is a call at the end */
    bool failed;
    enum unwind_cfa unknown; /* where the stack is not known */
};

/* ---- steps ---- */

static unsigned field(const struct x86_64_instruction *instruction)
{
    return instruction->modrm >> 3 & 7;
}

static bool is_register(const struct x86_64_instruction *instruction, unsigned number)
{
    return instruction->modrm >> 6 == 3 && (instruction->modrm & 7) == number &&
           !(instruction->rex & REX_B);
}

static bool is_field(const struct x86_64_instruction *instruction, unsigned number)
{
    return field(instruction) == number && !(instruction->rex & REX_R);
}

/* Moves sp by so many bytes, down where they are positive. Distances come from instructions, and
 * may be anything. */
static void move(struct state *state, int64_t bytes)
{
    int64_t depth = state->depth + bytes;
    state->sp_known &= depth >= -DEPTH_MAX && depth <= DEPTH_MAX;
    state->depth = state->sp_known ? (int32_t)depth : 0;
}

static void push(struct state *state, bool is_fp)
{
    move(state, 8);
    if (is_fp && !state->fp_depth && state->sp_known)
        state->fp_depth = state->depth;
}

static void pop(struct state *state, bool is_fp)
{
    if (is_fp && state->depth == state->fp_depth) {
        state->fp_depth = 0;
        state->base = -1;
    }
    move(state, -8);
}

/* sp is what fp says, less a distance. */
static void restore(struct state *state, int64_t distance)
{
    state->sp_known = state->base >= 0;
    state->depth = state->sp_known ? state->base : 0;
    move(state, distance);
}

/* fp is what sp says, and a distance. */
static void set_base(struct state *state, int64_t distance)
{
    int64_t base = state->depth - distance;
    bool known = state->fp_depth && state->sp_known && base >= 0 && base <= DEPTH_MAX;
    state->base = known ? (int32_t)base : -1;
}

/* Instructions that name sp or fp as what they write. */
static void write_registers(struct state *state, const struct x86_64_instruction *instruction)
{
    uint8_t opcode = instruction->opcode;
    bool move_to_rm = opcode == 0x89, move_to_field = opcode == 0x8b;
    bool to_sp = (move_to_rm && is_register(instruction, SP)) ||
                 (move_to_field && is_field(instruction, SP));
    bool to_fp = (move_to_rm && is_register(instruction, BP)) ||
                 (move_to_field && is_field(instruction, BP));
    bool from_sp = (move_to_rm && is_field(instruction, SP)) ||
                   (move_to_field && is_register(instruction, SP));
    bool from_fp = (move_to_rm && is_field(instruction, BP)) ||
                   (move_to_field && is_register(instruction, BP));
    if (to_fp && from_sp) {
        set_base(state, 0);
    } else if (to_sp && from_fp) {
        restore(state, 0);
    } else if (to_sp) {
        state->sp_known = false;
    } else if (to_fp) {
        state->base = -1;
    } else if (opcode == 0x8d && is_field(instruction, SP)) { /* lea */
        unsigned base = instruction->modrm & 7;
        bool plain = instruction->modrm >> 6 && !(instruction->rex & 3);
        if (plain && base == SP && instruction->sib == 0x24)
            move(state, -(int64_t)instruction->displacement);
        else if (plain && base == BP)
            restore(state, -(int64_t)instruction->displacement);
        else
            state->sp_known = false;
    } else if (opcode == 0x8d && is_field(instruction, BP)) {
        /* lea d(%rsp),%rbp: a frame pointer that is not at its saved value's place */
        bool from = instruction->modrm >> 6 && (instruction->modrm & 7) == SP &&
                    instruction->sib == 0x24 && !(instruction->rex & 3);
        state->base = -1;
        if (from)
            set_base(state, instruction->displacement);
    } else if ((opcode == 0x81 || opcode == 0x83) && is_register(instruction, SP)) {
        if (field(instruction) == 0)
            move(state, -instruction->immediate);
        else if (field(instruction) == 5)
            move(state, instruction->immediate);
        else if (field(instruction) != 7) /* a comparison */
            state->sp_known = false;
    } else if ((opcode == 0x81 || opcode == 0x83) && is_register(instruction, BP)) {
        if (field(instruction) != 7)
            state->base = -1;
    } else if (opcode < 0x38 && (opcode & 7) < 4) { /* arithmetic */
        bool rm = !(opcode & 2);
        if (rm ? is_register(instruction, SP) : is_field(instruction, SP))
            state->sp_known = false;
        if (rm ? is_register(instruction, BP) : is_field(instruction, BP))
            state->base = -1;
    } else if (opcode == 0x87 && (is_register(instruction, SP) || is_field(instruction, SP))) {
        state->sp_known = false;
    }
}

static bool clears_fp(const struct x86_64_instruction *instruction)
{
    return !instruction->map && (instruction->opcode == 0x31 || instruction->opcode == 0x33) &&
           is_register(instruction, BP) && is_field(instruction, BP);
}

static void step(struct state *state, const struct x86_64_instruction *instruction)
{
    uint8_t opcode = instruction->opcode;
    bool is_fp = (opcode & 7) == BP && !(instruction->rex & REX_B);
    if (instruction->map)
        return;
    if (clears_fp(instruction) && !state->fp_depth)
        state->outermost = true;
    else if (opcode >= 0x50 && opcode <= 0x57)
        push(state, is_fp);
    else if (opcode == 0x5c && !(instruction->rex & REX_B))
        state->sp_known = false;
    else if (opcode >= 0x58 && opcode <= 0x5f)
        pop(state, is_fp);
    else if (opcode == 0x68 || opcode == 0x6a || opcode == 0x9c ||
             (opcode == 0xff && field(instruction) == 6))
        push(state, false);
    else if (opcode == 0x9d || opcode == 0x8f)
        pop(state, false);
    else if (opcode == 0xc9) { /* leave */
        restore(state, 0);
        pop(state, true);
    } else if (opcode == 0xc8) {
        state->sp_known = false;
    } else if (instruction->has_modrm) {
        write_registers(state, instruction);
    }
}

/* ---- paths ---- */

static bool same(const struct state *a, const struct state *b)
{
    if (a->outermost || b->outermost)
        return a->outermost == b->outermost;
    return a->sp_known == b->sp_known && a->base == b->base && a->fp_depth == b->fp_depth &&
           (!a->sp_known || a->depth == b->depth);
}

static void visit(struct analysis *analysis, int64_t offset, const struct state *state)
{
    if (offset < 0 || offset >= analysis->length) /* another function's */
        return;
    struct state *there = &analysis->states[offset];
    if (there->seen) {
        analysis->failed |= !same(there, state);
        return;
    }
    *there = *state;
    there->seen = true;
    analysis->queue[analysis->queued++] = (uint32_t)offset;
}

static bool ends_path(const struct x86_64_instruction *instruction)
{
    uint8_t opcode = instruction->opcode;
    if (instruction->map == 1)
        return opcode == 0x0b;
    if (instruction->map)
        return false;
    bool jumps = opcode == 0xff && (field(instruction) == 4 || field(instruction) == 5);
    return jumps || opcode == 0xe9 || opcode == 0xeb || opcode == 0xc2 || opcode == 0xc3 ||
           opcode == 0xcc || opcode == 0xf4;
}

static bool has_target(const struct x86_64_instruction *instruction)
{
    uint8_t opcode = instruction->opcode;
    if (instruction->map == 1)
        return opcode >= 0x80 && opcode <= 0x8f;
    return !instruction->map && ((opcode >= 0x70 && opcode <= 0x7f) || opcode == 0xe9 ||
                                 opcode == 0xeb || (opcode >= 0xe0 && opcode <= 0xe3));
}

static void follow(struct analysis *analysis)
{
    while (analysis->queued && !analysis->failed) {
        uint32_t offset = analysis->queue[--analysis->queued];
        struct state state = analysis->states[offset];
        struct x86_64_instruction instruction;
        if (!x86_64_decode(analysis->code + offset, analysis->length - offset, &instruction)) {
            analysis->failed = true;
            return;
        }
        bool returns =
            !instruction.map && (instruction.opcode == 0xc2 || instruction.opcode == 0xc3);
        /* A return takes what is on top of the stack: this is no function, or we are wrong. */
        analysis->failed |= returns && state.sp_known && state.depth && !state.outermost;
        step(&state, &instruction);
        if (state.sp_known && (state.depth < 0 || state.depth > DEPTH_MAX))
            analysis->failed = !state.outermost;
        int64_t next = (int64_t)offset + instruction.length;
        if (has_target(&instruction))
            visit(analysis, next + instruction.immediate, &state);
        if (!ends_path(&instruction))
            visit(analysis, next, &state);
        else if (instruction.opcode == 0xff && (state.depth || analysis->leaf_tables))
            analysis->jumped = state;
    }
}

static bool is_padding(const struct x86_64_instruction *instruction)
{
    uint8_t opcode = instruction->opcode;
    return instruction->map ? instruction->map == 1 && opcode == 0x1f
                            : opcode == 0x90 || opcode == 0xcc;
}

/* Code that only a jump through a table leads to, with the stack that it had. */
static void follow_tables(struct analysis *analysis)
{
    for (uint32_t offset = 0; offset < analysis->length && analysis->jumped.seen;) {
        struct x86_64_instruction instruction;
        if (!x86_64_decode(analysis->code + offset, analysis->length - offset, &instruction))
            return;
        if (!analysis->states[offset].seen && !is_padding(&instruction)) {
            visit(analysis, offset, &analysis->jumped);
            follow(analysis);
        }
        offset += instruction.length;
    }
}

/* ---- rules ---- */

enum unwind_cfa x86_64_code_unknown(const uint8_t *code, size_t length)
{
    /* push %rbp; mov %rsp,%rbp, in both encodings */
    static const uint8_t prologues[][4] = {{0x55, 0x48, 0x89, 0xe5}, {0x55, 0x48, 0x8b, 0xec}};
    size_t room = MIN(length, (size_t)PROLOGUE_BYTES_MAX);
    for (size_t i = 0; i < ARRAY_LENGTH(prologues); i++)
        if (memmem(code, room, prologues[i], sizeof(prologues[i])))
            return UNWIND_CFA_NONE;
    return UNWIND_CFA_UNSUPPORTED;
}

static struct unwind_rule rule_of(const struct analysis *analysis, const struct state *state)
{
    struct unwind_rule rule = {.cfa = analysis->unknown};
    if (!state->seen)
        return rule;
    if (state->outermost)
        return (struct unwind_rule){.cfa = UNWIND_CFA_END};
    if (!state->sp_known && state->base < 0)
        return rule;
    rule.cfa = state->sp_known ? UNWIND_CFA_SP : UNWIND_CFA_FP;
    rule.cfa_offset = 8 + (state->sp_known ? state->depth : state->base);
    if (!state->fp_depth)
        return rule;
    int slot = -(state->fp_depth + 8) / 8;
    rule.saved = slot >= INT8_MIN ? UNWIND_FP_AT_CFA : UNWIND_FP_LOST;
    rule.fp_slot = slot >= INT8_MIN ? (signed char)slot : 0;
    return rule;
}

static void report(const struct analysis *analysis, x86_64_rule_fn *put, void *context)
{
    uint32_t start = 0;
    struct unwind_rule rule = rule_of(analysis, &analysis->states[0]);
    for (uint32_t offset = 0; offset < analysis->length;) {
        struct x86_64_instruction instruction = {.length = 1};
        const struct state *state = &analysis->states[offset];
        struct unwind_rule next = rule_of(analysis, state);
        if (memcmp(&next, &rule, sizeof(rule))) {
            put(context, start, offset - start, &rule);
            start = offset;
            rule = next;
        }
        if (state->seen)
            x86_64_decode(analysis->code + offset, analysis->length - offset, &instruction);
        offset += instruction.length;
    }
    put(context, start, analysis->length - start, &rule);
}

static void analyse(struct analysis *analysis, bool is_entry, bool leaf_tables)
{
    memset(analysis->states, 0, analysis->length * sizeof(*analysis->states));
    analysis->queued = 0;
    analysis->jumped.seen = analysis->failed = false;
    analysis->leaf_tables = leaf_tables;
    visit(analysis, 0, &(struct state){.base = -1, .sp_known = true, .outermost = is_entry});
    follow(analysis);
    follow_tables(analysis);
}

bool x86_64_code_rules(const uint8_t *code, size_t length, bool is_entry, x86_64_rule_fn *put,
                       void *context)
{
    if (!length || length > X86_64_FUNCTION_BYTES_MAX)
        return false;
    struct analysis analysis = {
        .code = code, .length = (uint32_t)length, .unknown = x86_64_code_unknown(code, length)};
    analysis.states = memory_alloc(length * sizeof(*analysis.states));
    analysis.queue = memory_alloc(length * sizeof(*analysis.queue));
    analyse(&analysis, is_entry, true);
    if (analysis.failed)
        analyse(&analysis, is_entry, false);
    if (!analysis.failed)
        report(&analysis, put, context);
    free(analysis.states);
    free(analysis.queue);
    return !analysis.failed;
}
