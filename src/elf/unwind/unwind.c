// SPDX-License-Identifier: Apache-2.0
// The walk by rows in user space: see unwind.h. One step finds the rule of an address and applies
// it; src/bpf does the same in the kernel.

#include "elf/unwind/unwind.h"

#include <string.h>

#include "arch/x86_64/registers.h"
#include "base/memory.h"

struct walk {
    const struct unwind_input *input;
    struct unwind_registers registers;
    unsigned signal_frames;
    bool exact;            /* ip is an instruction, not a return address */
    bool by_frame_pointer; /* the last step was a guess */
    bool rowless;          /* of the code that is being left */
};

_Static_assert(UNWIND_REGISTERS == REGISTERS, "one machine's registers");

enum step { STEP_DONE = -1, STEP_PLANTED = -2 }; /* otherwise an enum unwind_end */

struct unwind_registers unwind_registers_of(uint64_t ip, uint64_t sp, uint64_t fp)
{
    struct unwind_registers registers = {0};
    registers.value[REGISTER_IP] = ip;
    registers.value[REGISTER_SP] = sp;
    registers.value[REGISTER_FP] = fp;
    registers.known = 1u << REGISTER_IP | 1u << REGISTER_SP | 1u << REGISTER_FP;
    return registers;
}

const char *unwind_end_name(enum unwind_end end)
{
    static const char *const names[UNWIND_END_KINDS] = {
        [UNWIND_END_COMPLETE] = "complete",
        [UNWIND_END_TRUNCATED] = "truncated",
        [UNWIND_END_NO_MAPPING] = "no mapping",
        [UNWIND_END_NO_ROWS] = "no rows",
        [UNWIND_END_UNSUPPORTED] = "unsupported",
        [UNWIND_END_LOOP] = "loop",
        [UNWIND_END_LIMIT] = "limit",
        [UNWIND_END_NO_TABLE] = "no table",
        [UNWIND_END_STALE] = "stale mappings",
    };
    return (size_t)end < UNWIND_END_KINDS ? names[end] : "unknown";
}

const char *unwind_end_reason(enum unwind_end end)
{
    static const char *const reasons[UNWIND_END_KINDS] = {
        [UNWIND_END_COMPLETE] = "it is complete",
        [UNWIND_END_TRUNCATED] = "the stack is deeper than its copy",
        [UNWIND_END_NO_MAPPING] = "a return address is outside all known code",
        [UNWIND_END_NO_ROWS] =
            ("a function has neither an unwind table nor a frame pointer (build it with "
             "-fno-omit-frame-pointer; Java: -XX:+PreserveFramePointer)"),
        [UNWIND_END_UNSUPPORTED] = "the unwind table of a function is unsupported or damaged",
        [UNWIND_END_LOOP] = "the callers repeat",
        [UNWIND_END_LIMIT] = "the stack exceeds the frame limit",
        [UNWIND_END_NO_TABLE] = "too much new code at once (record for longer)",
        [UNWIND_END_STALE] = "the process replaced its code at that moment",
    };
    return (size_t)end < UNWIND_END_KINDS ? reasons[end] : "unknown";
}

static bool read_word(const struct walk *walk, uint64_t address, uint64_t *ret_word)
{
    const struct unwind_input *input = walk->input;
    uint64_t offset = address - input->stack_address;
    if (input->stack_bytes >= 8 && offset <= input->stack_bytes - 8) {
        memcpy(ret_word, input->stack + offset, 8);
        return true;
    }
    return input->read && input->read(input->context, address, ret_word);
}

static bool known(const struct walk *walk, unsigned number)
{
    return walk->registers.known >> number & 1;
}

/* The result of a step: the caller's registers. */
struct caller {
    uint64_t ip, sp, fp, base;
    bool fp_known, base_known;
};

static void become(struct walk *walk, const struct caller *caller)
{
    uint64_t *value = walk->registers.value;
    value[REGISTER_IP] = caller->ip;
    value[REGISTER_SP] = caller->sp;
    value[REGISTER_FP] = caller->fp;
    value[REGISTER_BASE] = caller->base;
    walk->registers.known = 1u << REGISTER_IP | 1u << REGISTER_SP |
                            (unsigned)caller->fp_known << REGISTER_FP |
                            (unsigned)caller->base_known << REGISTER_BASE;
}

/* A frame pointer's frame: the caller's fp where it points to, the return address above. */
static int step_by_frame_pointer(struct walk *walk, const struct unwind_place *from)
{
    uint64_t fp = walk->registers.value[REGISTER_FP], sp = walk->registers.value[REGISTER_SP];
    uint64_t ip, next_fp;
    struct unwind_place place;
    /* Chains of frame pointers end with 0. It counts only after another frame of the chain: code
     * without frame pointers uses the register, and words of the stack, for anything. */
    bool may_end = walk->by_frame_pointer && !from->generated;
    if (may_end && known(walk, REGISTER_FP) && !fp)
        return UNWIND_END_COMPLETE;
    if (!known(walk, REGISTER_FP) || fp < sp || fp % 8 || fp > UINT64_MAX - 16)
        return UNWIND_END_NO_ROWS;
    if (!read_word(walk, fp, &next_fp) || !read_word(walk, fp + 8, &ip))
        return fp - sp < (8u << 20) ? UNWIND_END_TRUNCATED : UNWIND_END_NO_ROWS;
    if (!ip)
        return may_end ? UNWIND_END_COMPLETE : UNWIND_END_NO_ROWS;
    if (!walk->input->find(walk->input->context, ip - 1, &place))
        return UNWIND_END_NO_ROWS;
    become(walk, &(struct caller){.ip = ip, .sp = fp + 16, .fp = next_fp, .fp_known = true});
    walk->exact = false;
    walk->by_frame_pointer = true;
    return STEP_DONE;
}

static int step_by_signal(struct walk *walk, const struct unwind_rule *rule)
{
    uint64_t at = walk->registers.value[REGISTER_SP] + (uint64_t)(int64_t)rule->cfa_offset;
    struct caller caller = {.fp_known = true, .base_known = true};
    if (!read_word(walk, at, &caller.sp) || !read_word(walk, at + 8, &caller.ip) ||
        !read_word(walk, at - 40, &caller.fp) || !read_word(walk, at - 32, &caller.base))
        return UNWIND_END_TRUNCATED;
    if (++walk->signal_frames > UNWIND_SIGNAL_FRAMES_MAX)
        return UNWIND_END_LOOP;
    become(walk, &caller);
    walk->exact = true;
    walk->by_frame_pointer = false;
    return STEP_DONE;
}

static int find_cfa(const struct walk *walk, const struct unwind_rule *rule, uint64_t *ret_cfa)
{
    const uint64_t *value = walk->registers.value;
    uint64_t offset = (uint64_t)(int64_t)rule->cfa_offset;
    uint64_t fp_or_sp = value[REGISTER_SP], word;
    switch (rule->cfa) {
    case UNWIND_CFA_SP:
    case UNWIND_CFA_IP_IN_REGISTER:
    case UNWIND_CFA_CLONE:
        *ret_cfa = value[REGISTER_SP] + offset;
        return STEP_DONE;
    case UNWIND_CFA_PLT:
        *ret_cfa = value[REGISTER_SP] + offset + ((value[REGISTER_IP] & 15) >= rule->argument) * 8;
        return STEP_DONE;
    case UNWIND_CFA_FP:
    case UNWIND_CFA_OTHER_STACK:
        *ret_cfa = value[REGISTER_FP] + offset;
        return known(walk, REGISTER_FP) ? STEP_DONE : UNWIND_END_UNSUPPORTED;
    case UNWIND_CFA_REGISTER:
        if (rule->argument >= UNWIND_REGISTERS || !known(walk, rule->argument))
            return UNWIND_END_UNSUPPORTED;
        *ret_cfa = value[rule->argument] + offset;
        return STEP_DONE;
    case UNWIND_CFA_AT_FP:
        if (!known(walk, REGISTER_FP))
            return UNWIND_END_UNSUPPORTED;
        fp_or_sp = value[REGISTER_FP];
        /* fall through */
    case UNWIND_CFA_AT_SP:
        if (!read_word(walk, fp_or_sp + offset, &word))
            return UNWIND_END_TRUNCATED;
        *ret_cfa = word + 8u * rule->argument;
        return STEP_DONE;
    default:
        return UNWIND_END_UNSUPPORTED;
    }
}

static int find_fp(const struct walk *walk, const struct unwind_rule *rule, struct caller *caller)
{
    uint64_t slot = (uint64_t)((int64_t)rule->fp_slot * 8);
    const uint64_t *value = walk->registers.value;
    caller->fp = value[REGISTER_FP];
    caller->fp_known = known(walk, REGISTER_FP);
    switch (UNWIND_SAVED_FP(rule->saved)) {
    case UNWIND_FP_SAME:
        return STEP_DONE;
    case UNWIND_FP_AT_CFA:
        slot += caller->sp;
        break;
    case UNWIND_FP_AT_FP:
        /* gcc says so an instruction too early and two too late, where fp is the caller's. */
        if (!caller->fp_known || value[REGISTER_FP] >= caller->sp)
            return STEP_DONE;
        slot += value[REGISTER_FP];
        break;
    case UNWIND_FP_AT_SP:
        slot += value[REGISTER_SP];
        break;
    default:
        caller->fp_known = false;
        return STEP_DONE;
    }
    if (read_word(walk, slot, &caller->fp)) {
        caller->fp_known = true;
        return STEP_DONE;
    }
    /* gcc doesn't say when an epilogue has taken a register back: what was below the stack pointer
     * is in the register again, and a copy of the stack doesn't have it. */
    return slot < value[REGISTER_SP] ? STEP_DONE : UNWIND_END_TRUNCATED;
}

static void find_base(const struct walk *walk, const struct unwind_rule *rule,
                      struct caller *caller)
{
    unsigned code = UNWIND_SAVED_BASE(rule->saved);
    uint64_t slot = caller->sp - 8u * code;
    if (code == UNWIND_BASE_UNKNOWN)
        return;
    caller->base_known = code != UNWIND_BASE_SAME && read_word(walk, slot, &caller->base);
    /* Still in the register or, as for fp, there again. */
    if (code == UNWIND_BASE_SAME ||
        (!caller->base_known && slot < walk->registers.value[REGISTER_SP])) {
        caller->base = walk->registers.value[REGISTER_BASE];
        caller->base_known = known(walk, REGISTER_BASE);
    }
}

/* Where a register holds the return address, the call's own is off the stack. */
static int find_ip(struct walk *walk, const struct unwind_rule *rule, struct caller *caller)
{
    uint64_t sp = walk->registers.value[REGISTER_SP];
    if (rule->cfa == UNWIND_CFA_IP_IN_REGISTER) {
        if (rule->argument >= UNWIND_REGISTERS || !known(walk, rule->argument))
            return UNWIND_END_UNSUPPORTED;
        caller->ip = walk->registers.value[rule->argument];
        return caller->sp < sp ? UNWIND_END_LOOP : STEP_DONE;
    }
    if (rule->cfa == UNWIND_CFA_OTHER_STACK) {
        if (++walk->signal_frames > UNWIND_SIGNAL_FRAMES_MAX)
            return UNWIND_END_LOOP;
        return read_word(walk, caller->sp - 8, &caller->ip) ? STEP_DONE : UNWIND_END_TRUNCATED;
    }
    if (rule->cfa == UNWIND_CFA_CLONE) {
        struct unwind_place place;
        bool called = read_word(walk, caller->sp - 8, &caller->ip) && caller->ip &&
                      walk->input->find(walk->input->context, caller->ip - 1, &place);
        return called ? STEP_DONE : UNWIND_END_COMPLETE;
    }
    /* A call leaves at least its return address on the stack, so frames only go up. */
    if (caller->sp <= sp)
        return UNWIND_END_LOOP;
    return read_word(walk, caller->sp - 8, &caller->ip) ? STEP_DONE : UNWIND_END_TRUNCATED;
}

static int step_by_rule(struct walk *walk, const struct unwind_rule *rule)
{
    struct caller caller = {0};
    int r = find_cfa(walk, rule, &caller.sp);
    if (r == STEP_DONE)
        r = find_ip(walk, rule, &caller);
    if (r == STEP_DONE)
        r = find_fp(walk, rule, &caller);
    if (r != STEP_DONE)
        return r;
    if (!caller.ip)
        return UNWIND_END_COMPLETE;
    find_base(walk, rule, &caller);
    become(walk, &caller);
    walk->exact = false;
    walk->by_frame_pointer = false;
    return STEP_DONE;
}

/* Coroutines begin with a return address that no call has left: the start of a function, with no
 * code right before it. Behind it is nothing. */
static bool is_planted(const struct walk *walk, const struct unwind_place *place)
{
    return !walk->exact && place->rows &&
           unwind_rows_find(place->rows, walk->registers.value[REGISTER_IP] - place->bias) !=
               UNWIND_RULE_NONE;
}

static int step(struct walk *walk, const struct unwind_place *place, uint64_t lookup)
{
    const struct unwind_rules *rules = walk->input->rules;
    uint16_t number = UNWIND_RULE_NONE;
    if (place->rows)
        number = unwind_rows_find(place->rows, lookup - place->bias);
    if (number == UNWIND_RULE_NONE && is_planted(walk, place))
        return STEP_PLANTED;
    if (number >= rules->count)
        return UNWIND_END_UNSUPPORTED;
    /* A copy: looking up another file may bring new rules, and the table may move. */
    const struct unwind_rule copy = rules->rules[number], *rule = &copy;
    walk->rowless = rule->cfa == UNWIND_CFA_NONE;
    switch (rule->cfa) {
    case UNWIND_CFA_NONE:
        return step_by_frame_pointer(walk, place);
    case UNWIND_CFA_LOST:
        return UNWIND_END_NO_ROWS;
    case UNWIND_CFA_END:
        return UNWIND_END_COMPLETE;
    case UNWIND_CFA_SIGNAL:
        return step_by_signal(walk, rule);
    default:
        return step_by_rule(walk, rule);
    }
}

static bool read_for_runtime(void *context, uint64_t address, uint64_t *ret_word)
{
    return read_word(context, address, ret_word);
}

/* UNWIND_RUNTIME_NATIVE where no runtime knows the code. */
static int step_by_runtime(struct walk *walk)
{
    const struct unwind_input *input = walk->input;
    if (!input->runtime)
        return UNWIND_RUNTIME_NATIVE;
    int r = input->runtime(input->runtime_context, read_for_runtime, walk, walk->exact,
                           &walk->registers);
    if (r == UNWIND_RUNTIME_DONE)
        walk->exact = walk->by_frame_pointer = false;
    return r;
}

enum unwind_end unwind_walk(const struct unwind_input *input, struct unwind_frame *frames,
                            size_t frame_limit, size_t *ret_count)
{
    struct walk walk = {.input = input, .registers = input->registers, .exact = true};
    uint32_t must = 1u << REGISTER_IP | 1u << REGISTER_SP;
    *ret_count = 0;
    if ((input->registers.known & must) != must)
        return UNWIND_END_UNSUPPORTED;
    for (size_t count = 0;; count++) {
        uint64_t ip = walk.registers.value[REGISTER_IP];
        bool behind = !walk.exact || (!count && input->in_system_call);
        uint64_t lookup = behind ? ip - 1 : ip;
        struct unwind_place place = {0};
        bool mapped = input->find(input->context, lookup, &place);
        if (count && !mapped)
            return UNWIND_END_NO_MAPPING;
        if (count == frame_limit)
            return UNWIND_END_LIMIT;
        frames[count] = (struct unwind_frame){
            .address = ip,
            .sp = walk.registers.value[REGISTER_SP],
            .fp = known(&walk, REGISTER_FP) ? walk.registers.value[REGISTER_FP] : 0,
            .flags = (walk.exact ? UNWIND_FRAME_EXACT : 0u) |
                     (walk.by_frame_pointer ? UNWIND_FRAME_GUESSED : 0u)};
        *ret_count = count + 1;
        if (!mapped)
            return UNWIND_END_NO_MAPPING;
        walk.rowless = false;
        int r = step_by_runtime(&walk);
        if (r != UNWIND_RUNTIME_NATIVE)
            frames[count].flags |= UNWIND_FRAME_RUNTIME;
        else
            r = step(&walk, &place, lookup);
        if (walk.rowless)
            frames[count].flags |= UNWIND_FRAME_ROWLESS;
        if (r == STEP_PLANTED && !(frames[count].flags & UNWIND_FRAME_RUNTIME)) {
            frames[count].flags |= UNWIND_FRAME_EXACT | UNWIND_FRAME_PLANTED;
            return UNWIND_END_COMPLETE;
        }
        if (r != STEP_DONE)
            return (enum unwind_end)r;
    }
}
