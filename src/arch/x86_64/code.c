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
#define DEPTH_GUESSED (1 << 20) /* where paths begin in the middle of a function */
#define FP_SOMEWHERE (-1)

/* Functions that align their stack put sp aside before, and take it back at the end. */
enum frame { ENTERED, ALIGNED, RESTORED };

struct state {
    int32_t depth;    /* bytes between the return address and sp; behind an alignment, from there */
    int32_t base;     /* the depth that fp points to; -1: it is not a frame pointer */
    int32_t fp_depth; /* the depth that the caller's fp is saved at; 0: it is in fp; FP_SOMEWHERE:
                         where the code before has put it */
    enum frame frame;
    bool sp_known;
    bool outermost; /* nobody has called this: it clears fp to say so */
    uint32_t seen;  /* in this round */
};

struct analysis {
    const uint8_t *code;
    uint32_t length;
    struct state *states; /* by offset */
    uint32_t *queue;      /* all that was reached, in this order */
    uint32_t queued, followed;
    uint32_t round;
    struct state jumped; /* where an indirect jump, such as a switch's, goes on */
    bool leaf_tables;    /* also with nothing on the stack: else that is a call at the end */
    bool failed;
    enum unwind_cfa unknown; /* where the stack is not known */

    enum { NOWHERE, IN_REGISTER, ON_STACK } aside; /* where sp is put before it is aligned */
    int32_t aside_at;                              /* the register, or the depth */

    /* From the middle of a function: */
    bool guesses;
    const uint8_t *functions; /* or NULL: see struct x86_64_code */
    int32_t returned[3];      /* the depth of all returns, by frame; 0: there are none yet */
    bool returns;             /* there is one, its depth may be unknown */
    int32_t fp_taken;         /* the depth that fp was taken back from; 0: it was not */
    enum frame fp_frame;      /* in this one */
    bool halts;
    uint64_t *steps; /* that may still be taken */
    uint8_t *plain;  /* by offset: the length of an instruction that only goes on to the next one,
                        where one was met; it is not decoded again */
    uint64_t *marks; /* a bit for each offset that was reached, for their order */
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
    if (is_fp && state->fp_depth <= 0 && state->sp_known)
        state->fp_depth = state->depth;
}

static void pop(struct analysis *analysis, struct state *state, bool is_fp)
{
    if (is_fp && state->fp_depth == FP_SOMEWHERE) {
        analysis->failed |= analysis->fp_taken && analysis->fp_taken != state->depth;
        analysis->fp_taken = state->depth;
        analysis->fp_frame = state->frame;
        state->fp_depth = 0;
    } else if (is_fp && state->depth == state->fp_depth) {
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
    bool known = state->fp_depth > 0 && state->sp_known && state->frame != ALIGNED && base >= 0 &&
                 base <= DEPTH_MAX;
    state->base = known ? (int32_t)base : -1;
}

/* and $n,%rsp */
static void align(struct state *state)
{
    if (state->frame != ENTERED || !state->sp_known || state->base >= 0) {
        state->sp_known = false;
        return;
    }
    state->frame = ALIGNED;
    state->depth = DEPTH_GUESSED;
    /* Where it is taken back says where it was. */
    state->fp_depth = state->fp_depth > 0 ? FP_SOMEWHERE : state->fp_depth;
}

/* mov %reg,%rsp; mov n(%rsp),%rsp */
static void take_back(struct analysis *analysis, struct state *state,
                      const struct x86_64_instruction *instruction)
{
    /* As DWARF numbers them. */
    static const uint8_t numbers[8] = {0, 2, 1, 3, 7, 6, 4, 5};
    bool is_register = instruction->opcode == 0x89 || instruction->modrm >> 6 == 3;
    bool on_stack = !is_register && (instruction->modrm & 7) == SP && instruction->sib == 0x24 &&
                    !(instruction->rex & 3);
    unsigned from = instruction->opcode == 0x89 ? field(instruction) : instruction->modrm & 7;
    bool extended = instruction->rex & (instruction->opcode == 0x89 ? REX_R : REX_B);
    int32_t at = is_register ? extended ? (int32_t)from + 8 : numbers[from]
                             : state->depth - (instruction->displacement & (DEPTH_MAX - 1));
    if (state->frame != ALIGNED || !(is_register || (on_stack && state->sp_known))) {
        state->sp_known = false;
        return;
    }
    analysis->failed |=
        analysis->aside &&
        (analysis->aside != (is_register ? IN_REGISTER : ON_STACK) || analysis->aside_at != at);
    analysis->aside = is_register ? IN_REGISTER : ON_STACK;
    analysis->aside_at = at;
    state->frame = RESTORED;
    state->sp_known = true;
    state->depth = DEPTH_GUESSED;
}

/* Instructions that name sp or fp as what they write. */
static void write_registers(struct analysis *analysis, struct state *state,
                            const struct x86_64_instruction *instruction)
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
        take_back(analysis, state, instruction);
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
        else if (field(instruction) == 4)
            align(state);
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

static void step(struct analysis *analysis, struct state *state,
                 const struct x86_64_instruction *instruction)
{
    uint8_t opcode = instruction->opcode;
    bool is_fp = (opcode & 7) == BP && !(instruction->rex & REX_B);
    if (instruction->map)
        return;
    if (clears_fp(instruction) && (!state->fp_depth || analysis->halts))
        state->outermost = true;
    else if (opcode >= 0x50 && opcode <= 0x57)
        push(state, is_fp);
    else if (opcode == 0x5c && !(instruction->rex & REX_B))
        state->sp_known = false;
    else if (opcode >= 0x58 && opcode <= 0x5f)
        pop(analysis, state, is_fp);
    else if (opcode == 0x68 || opcode == 0x6a || opcode == 0x9c ||
             (opcode == 0xff && field(instruction) == 6))
        push(state, false);
    else if (opcode == 0x9d || opcode == 0x8f)
        pop(analysis, state, false);
    else if (opcode == 0xc9) { /* leave */
        restore(state, 0);
        pop(analysis, state, true);
    } else if (opcode == 0xc8) {
        state->sp_known = false;
    } else if (instruction->has_modrm) {
        write_registers(analysis, state, instruction);
    }
}

/* ---- paths ---- */

static bool same(const struct state *a, const struct state *b)
{
    if (a->outermost || b->outermost)
        return a->outermost == b->outermost;
    bool fp = a->fp_depth == b->fp_depth || (a->fp_depth <= 0 && b->fp_depth <= 0);
    return a->sp_known == b->sp_known && a->frame == b->frame && a->base == b->base && fp &&
           (!a->sp_known || a->depth == b->depth);
}

static bool reached(const struct analysis *analysis, uint32_t offset)
{
    return analysis->states[offset].seen == analysis->round;
}

static void visit(struct analysis *analysis, int64_t offset, const struct state *state)
{
    if (offset < 0 || offset >= analysis->length) /* another function's */
        return;
    struct state *there = &analysis->states[offset];
    if (reached(analysis, (uint32_t)offset)) {
        analysis->failed |= !same(there, state);
        return;
    }
    *there = *state;
    there->seen = analysis->round;
    analysis->queue[analysis->queued++] = (uint32_t)offset;
    if (analysis->marks)
        analysis->marks[offset / 64] |= 1ull << offset % 64;
}

bool x86_64_ends_path(const struct x86_64_instruction *instruction)
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

/* Calls and lea n(%rip); in programs that are always at one place, mov $n and push $n, too. */
bool x86_64_takes_address(const struct x86_64_instruction *instruction, uint64_t end, bool is_fixed,
                          uint64_t *ret_address)
{
    uint8_t opcode = instruction->opcode;
    bool lea = opcode == 0x8d && instruction->rex & REX_W && (instruction->modrm & 0xc7) == 5;
    bool constant =
        is_fixed && ((opcode >= 0xb8 && opcode <= 0xbf) || opcode == 0xc7 || opcode == 0x68);
    if (instruction->map || (!lea && !constant && opcode != 0xe8))
        return false;
    if (constant)
        *ret_address = (uint64_t)instruction->immediate;
    else
        *ret_address = end + (uint64_t)(lea ? instruction->displacement : instruction->immediate);
    return true;
}

bool x86_64_is_padding(const struct x86_64_instruction *instruction)
{
    uint8_t opcode = instruction->opcode;
    return instruction->map ? instruction->map == 1 && opcode == 0x1f
                            : opcode == 0x90 || opcode == 0xcc;
}

/* A return takes what is on top of the stack. Where that is not what the function was called with,
 * this is no function, or we are wrong; in the middle of one, it says how deep that is. */
static void look_at_return(struct analysis *analysis, const struct state *state)
{
    analysis->returns = true;
    if (!state->sp_known || state->outermost)
        return;
    if (!analysis->guesses && state->frame == ENTERED) {
        analysis->failed |= state->depth != 0;
        return;
    }
    int32_t *returned = &analysis->returned[state->frame];
    analysis->failed |= state->frame == ALIGNED || (*returned && *returned != state->depth);
    *returned = state->depth;
}

static bool may_step(struct analysis *analysis)
{
    if (!analysis->steps)
        return true;
    if (!*analysis->steps)
        return false;
    --*analysis->steps;
    return true;
}

/* A call behind which another function begins. */
static bool never_comes_back(const struct analysis *analysis,
                             const struct x86_64_instruction *instruction, int64_t next)
{
    bool calls = !instruction->map && (instruction->opcode == 0xe8 ||
                                       (instruction->opcode == 0xff && field(instruction) == 2));
    struct x86_64_instruction behind;
    if (!calls || !analysis->functions)
        return false;
    while (next < analysis->length && !analysis->functions[next] &&
           x86_64_decode(analysis->code + next, analysis->length - (size_t)next, &behind) &&
           x86_64_is_padding(&behind))
        next += behind.length;
    return next < analysis->length && analysis->functions[next];
}

/* Neither names sp or fp as an operand, nor goes elsewhere: step() has nothing to do. */
static bool is_plain(const struct x86_64_instruction *instruction)
{
    uint8_t opcode = instruction->opcode;
    if (instruction->map)
        return !has_target(instruction) && !x86_64_ends_path(instruction);
    unsigned operand = instruction->modrm & 7, other = field(instruction);
    bool to_stack = (operand == SP || operand == BP) && instruction->modrm >> 6 == 3;
    return instruction->has_modrm && opcode != 0xff && opcode != 0x8f && !to_stack && other != SP &&
           other != BP;
}

/* The instruction at an offset; false where there is none. Of a plain one only the length is
 * certain to be given. */
static bool decode(struct analysis *analysis, uint32_t offset,
                   struct x86_64_instruction *ret_instruction)
{
    if (analysis->plain && analysis->plain[offset]) {
        ret_instruction->length = analysis->plain[offset];
        return true;
    }
    if (!x86_64_decode(analysis->code + offset, analysis->length - offset, ret_instruction))
        return false;
    if (analysis->plain && is_plain(ret_instruction))
        analysis->plain[offset] = ret_instruction->length;
    return true;
}

static void follow(struct analysis *analysis)
{
    while (analysis->followed < analysis->queued && !analysis->failed) {
        uint32_t offset = analysis->queue[analysis->followed++];
        struct state state = analysis->states[offset];
        struct x86_64_instruction instruction;
        if (!may_step(analysis) || !decode(analysis, offset, &instruction)) {
            analysis->failed = true;
            return;
        }
        if (analysis->plain && analysis->plain[offset]) {
            visit(analysis, (int64_t)offset + instruction.length, &state);
            continue;
        }
        if (!instruction.map && (instruction.opcode == 0xc2 || instruction.opcode == 0xc3))
            look_at_return(analysis, &state);
        analysis->halts |= analysis->guesses && !instruction.map && instruction.opcode == 0xf4;
        step(analysis, &state, &instruction);
        if (state.sp_known && (state.depth < 0 || state.depth > DEPTH_MAX))
            analysis->failed |= !state.outermost;
        int64_t next = (int64_t)offset + instruction.length;
        if (has_target(&instruction))
            visit(analysis, next + instruction.immediate, &state);
        if (never_comes_back(analysis, &instruction, next))
            continue;
        if (!x86_64_ends_path(&instruction))
            visit(analysis, next, &state);
        else if (instruction.opcode == 0xff && (state.depth || analysis->leaf_tables))
            analysis->jumped = state;
    }
}

/* Code that only a jump through a table leads to, with the stack that it had. */
static void follow_tables(struct analysis *analysis)
{
    for (uint32_t offset = 0; offset < analysis->length && analysis->jumped.seen;) {
        struct x86_64_instruction instruction;
        if (!x86_64_decode(analysis->code + offset, analysis->length - offset, &instruction))
            return;
        if (!reached(analysis, offset) && !x86_64_is_padding(&instruction)) {
            visit(analysis, offset, &analysis->jumped);
            follow(analysis);
        }
        offset += instruction.length;
    }
}

/* ---- rules ---- */

bool x86_64_sets_frame_pointer(const uint8_t *code, size_t length)
{
    /* push %rbp; mov %rsp,%rbp, in both encodings */
    static const uint8_t prologues[][4] = {{0x55, 0x48, 0x89, 0xe5}, {0x55, 0x48, 0x8b, 0xec}};
    for (size_t i = 0; i < ARRAY_LENGTH(prologues); i++)
        if (memmem(code, length, prologues[i], sizeof(prologues[i])))
            return true;
    return false;
}

enum unwind_cfa x86_64_code_unknown(const uint8_t *code, size_t length)
{
    bool by_fp = x86_64_sets_frame_pointer(code, MIN(length, (size_t)PROLOGUE_BYTES_MAX));
    return by_fp ? UNWIND_CFA_NONE : UNWIND_CFA_LOST;
}

/* Between the alignment of the stack and its end: by what was put aside. */
static bool find_aligned(const struct analysis *analysis, const struct state *state,
                         struct unwind_rule *rule)
{
    int32_t above = 8 + DEPTH_GUESSED - analysis->returned[RESTORED];
    if (!analysis->returned[RESTORED] || above < 8 || above / 8 > UINT8_MAX)
        return false;
    if (analysis->aside == IN_REGISTER) {
        rule->cfa = UNWIND_CFA_REGISTER;
        rule->argument = (unsigned char)analysis->aside_at;
        rule->cfa_offset = above;
        return true;
    }
    if (analysis->aside != ON_STACK || !state->sp_known || state->depth < analysis->aside_at)
        return false;
    rule->cfa = UNWIND_CFA_AT_SP;
    rule->argument = (unsigned char)(above / 8);
    rule->cfa_offset = state->depth - analysis->aside_at;
    return true;
}

static bool find_cfa(const struct analysis *analysis, const struct state *state,
                     struct unwind_rule *rule)
{
    int32_t returned = analysis->returned[state->frame];
    if (state->frame == ALIGNED)
        return find_aligned(analysis, state, rule);
    if ((!state->sp_known && state->base < 0) ||
        (!returned && (analysis->guesses || state->frame == RESTORED)))
        return false;
    int32_t offset = 8 + (state->sp_known ? state->depth : state->base) - returned;
    if (offset < 8) /* above the return address: no function's */
        return false;
    rule->cfa = state->sp_known ? UNWIND_CFA_SP : UNWIND_CFA_FP;
    rule->cfa_offset = offset;
    return true;
}

static struct unwind_rule rule_of(const struct analysis *analysis, const struct state *state)
{
    struct unwind_rule rule = {.cfa = analysis->unknown};
    if (state->seen != analysis->round)
        return rule;
    if (state->outermost)
        return (struct unwind_rule){.cfa = UNWIND_CFA_END};
    if (!find_cfa(analysis, state, &rule))
        return rule;
    bool taken = state->fp_depth == FP_SOMEWHERE;
    int32_t fp_depth = taken ? analysis->fp_taken : state->fp_depth;
    if (!fp_depth)
        return rule;
    int slot = -(fp_depth - analysis->returned[taken ? analysis->fp_frame : state->frame] + 8) / 8;
    rule.saved = slot >= INT8_MIN && slot < 0 ? UNWIND_FP_AT_CFA : UNWIND_FP_LOST;
    rule.fp_slot = slot >= INT8_MIN && slot < 0 ? (signed char)slot : 0;
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
        if (reached(analysis, offset))
            x86_64_decode(analysis->code + offset, analysis->length - offset, &instruction);
        offset += instruction.length;
    }
    put(context, start, analysis->length - start, &rule);
}

static void begin(struct analysis *analysis)
{
    /* A new round ignores the values of earlier ones. */
    analysis->round++;
    for (uint32_t i = 0; analysis->marks && i < analysis->queued; i++)
        analysis->marks[analysis->queue[i] / 64] = 0;
    analysis->queued = analysis->followed = 0;
    analysis->jumped.seen = analysis->failed = analysis->returns = false;
    analysis->aside = NOWHERE;
    analysis->fp_taken = 0;
    memset(analysis->returned, 0, sizeof(analysis->returned));
}

static void analyse(struct analysis *analysis, bool is_entry, bool leaf_tables)
{
    begin(analysis);
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
    analysis.states = memory_zalloc(length, sizeof(*analysis.states));
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

/* ---- code without known functions ---- */

struct x86_64_region {
    struct analysis analysis;
    size_t bytes_max;
};

struct x86_64_region *x86_64_region_new(size_t bytes_max)
{
    struct x86_64_region *region = memory_zalloc(1, sizeof(*region));
    region->bytes_max = bytes_max;
    region->analysis.states = memory_zalloc(bytes_max, sizeof(*region->analysis.states));
    region->analysis.queue = memory_alloc(bytes_max * sizeof(*region->analysis.queue));
    region->analysis.plain = memory_zalloc(bytes_max, 1);
    region->analysis.marks = memory_zalloc(bytes_max / 64 + 1, sizeof(*region->analysis.marks));
    region->analysis.guesses = true;
    region->analysis.unknown = UNWIND_CFA_NONE;
    return region;
}

void x86_64_region_free(struct x86_64_region *region)
{
    if (!region)
        return;
    free(region->analysis.states);
    free(region->analysis.queue);
    free(region->analysis.plain);
    free(region->analysis.marks);
    free(region);
}

bool x86_64_region_set(struct x86_64_region *region, const struct x86_64_code *code)
{
    struct analysis *analysis = &region->analysis;
    if (code->length > region->bytes_max)
        return false;
    analysis->code = code->bytes;
    analysis->length = (uint32_t)code->length;
    analysis->functions = code->functions;
    memset(analysis->plain, 0, code->length);
    return true;
}

static void analyse_from(struct analysis *analysis, uint32_t offset, enum x86_64_start start)
{
    begin(analysis);
    visit(analysis, offset,
          &(struct state){.base = -1,
                          .sp_known = true,
                          .depth = DEPTH_GUESSED,
                          .fp_depth = FP_SOMEWHERE,
                          .outermost = start == X86_64_START_PROGRAM});
    follow(analysis);
    /* Nothing is on a function's stack, even if it never returns. */
    if (start == X86_64_START_FUNCTION && !analysis->returned[ENTERED])
        analysis->returned[ENTERED] = DEPTH_GUESSED;
}

/* The next offset from `offset` on that was reached; the first behind `last` when there is none. */
static uint32_t next_reached(const struct analysis *analysis, uint32_t offset, uint32_t last)
{
    for (; offset <= last; offset = (offset / 64 + 1) * 64) {
        uint64_t marks = analysis->marks[offset / 64] >> offset % 64;
        if (marks)
            return offset + (uint32_t)__builtin_ctzll(marks);
    }
    return last + 1;
}

/* The rules of what was reached. Below the deepest return is nothing that can be called. */
static bool report_reached(struct analysis *analysis, x86_64_rule_fn *put, void *context)
{
    uint32_t first = analysis->length, last = 0;
    for (uint32_t i = 0; i < analysis->queued; i++) {
        uint32_t offset = analysis->queue[i];
        const struct state *state = &analysis->states[offset];
        if (state->sp_known && !state->outermost && state->frame != ALIGNED &&
            state->depth < analysis->returned[state->frame])
            return false;
        first = MIN(first, offset);
        last = MAX(last, offset);
    }
    struct unwind_rule rule = {0};
    uint32_t start = 0, end = 0;
    for (uint32_t offset = first; offset <= last;
         offset = next_reached(analysis, offset + 1, last)) {
        struct x86_64_instruction instruction = {0};
        struct unwind_rule next = rule_of(analysis, &analysis->states[offset]);
        if (offset != end || memcmp(&next, &rule, sizeof(rule))) {
            if (start < end)
                put(context, start, end - start, &rule);
            start = offset;
            rule = next;
        }
        decode(analysis, offset, &instruction);
        end = offset + instruction.length;
    }
    if (start < end)
        put(context, start, end - start, &rule);
    return true;
}

bool x86_64_region_rules(struct x86_64_region *region, size_t offset, enum x86_64_start start,
                         uint64_t *steps, x86_64_rule_fn *put, void *context)
{
    struct analysis *analysis = &region->analysis;
    if (offset >= analysis->length)
        return false;
    analysis->steps = steps;
    analysis->halts = false;
    analyse_from(analysis, (uint32_t)offset, start);
    if (analysis->halts && !analysis->failed)
        analyse_from(analysis, (uint32_t)offset, start);
    bool known = start == X86_64_START_PROGRAM || analysis->returned[ENTERED] ||
                 analysis->returned[RESTORED];
    return !analysis->failed && known && report_reached(analysis, put, context);
}

bool x86_64_region_is_lost(const struct x86_64_region *region)
{
    return region->analysis.failed || region->analysis.returns;
}
