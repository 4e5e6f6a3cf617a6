// SPDX-License-Identifier: Apache-2.0
// From call frame states to rules on x86-64: see x86_64.h and unwind_rule.h.

#include "arch/x86_64/x86_64.h"

/* The operations that compilers, assemblers and linkers really use here. */
enum {
    OP_DEREF = 0x06,
    OP_AND = 0x1a,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_SHL = 0x24,
    OP_GE = 0x2a,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
};

/* A frame of a signal as the kernel writes it has the general registers in this order: ..., rbp,
 * rbx, rdx, rax, rcx, rsp, rip. */
#define SIGNAL_RBP_FROM_RSP (-40)
#define SIGNAL_RIP_FROM_RSP 8

const struct cfi_machine x86_64_machine = {
    .frame_pointer = X86_64_RBP, .stack_pointer = X86_64_RSP, .extra = X86_64_RBX};

static const struct unwind_rule unsupported = {.cfa = UNWIND_CFA_UNSUPPORTED};

static bool fits(int64_t value, int64_t *ret_value)
{
    *ret_value = value;
    return value >= INT32_MIN && value <= INT32_MAX;
}

/* "register + offset", all that the expression says or only its beginning. */
static bool take_register(struct cursor *cursor, uint8_t number, int64_t *ret_offset)
{
    return cursor_u8(cursor) == OP_BREG0 + number && fits(cursor_sleb(cursor), ret_offset) &&
           !cursor->bad;
}

static bool take_op(struct cursor *cursor, uint8_t operation)
{
    return cursor_u8(cursor) == operation && !cursor->bad;
}

static struct cursor walk(const struct cfi_expression *expression)
{
    return cursor_of(expression->bytes, expression->length);
}

static bool at_end(const struct cursor *cursor)
{
    return !cursor->bad && cursor->at == cursor->end;
}

/* *(register + offset) + addend. gcc writes it for functions that realign their stack, and
 * hand-written code where it has put its old rsp aside. */
static bool is_indirect(const struct cfi_expression *expression, uint8_t number,
                        int64_t *ret_offset, uint64_t *ret_addend)
{
    struct cursor cursor = walk(expression);
    if (!take_register(&cursor, number, ret_offset) || !take_op(&cursor, OP_DEREF))
        return false;
    *ret_addend = 0;
    if (cursor.at != cursor.end) {
        if (!take_op(&cursor, OP_PLUS_UCONST))
            return false;
        *ret_addend = cursor_uleb(&cursor);
    }
    return at_end(&cursor) && *ret_addend % 8 == 0 && *ret_addend / 8 <= UINT8_MAX;
}

/* rsp + 8 + (((rip & 15) >= N) << 3) */
static bool is_plt(const struct cfi_expression *expression, int64_t *ret_offset, uint8_t *ret_from)
{
    struct cursor cursor = walk(expression);
    int64_t zero;
    if (!take_register(&cursor, X86_64_RSP, ret_offset) ||
        !take_register(&cursor, X86_64_RIP, &zero) || zero || !take_op(&cursor, OP_LIT0 + 15) ||
        !take_op(&cursor, OP_AND))
        return false;
    uint8_t literal = cursor_u8(&cursor);
    if (literal < OP_LIT0 || literal > OP_LIT0 + 15)
        return false;
    *ret_from = literal - OP_LIT0;
    return take_op(&cursor, OP_GE) && take_op(&cursor, OP_LIT0 + 3) && take_op(&cursor, OP_SHL) &&
           take_op(&cursor, OP_PLUS) && at_end(&cursor);
}

static bool at_register(const struct cfi_location *location, uint8_t number, int64_t *ret_offset)
{
    struct cursor cursor = walk(&location->expression);
    return location->where == CFI_AT_EXPRESSION && take_register(&cursor, number, ret_offset) &&
           at_end(&cursor);
}

static bool is_signal_frame(const struct cfi_state *state, int64_t *ret_offset)
{
    uint64_t addend;
    int64_t rip, rbp;
    return state->cfa_is_expression &&
           is_indirect(&state->cfa_expression, X86_64_RSP, ret_offset, &addend) && !addend &&
           at_register(&state->return_address, X86_64_RSP, &rip) &&
           at_register(&state->frame_pointer, X86_64_RSP, &rbp) &&
           rip == *ret_offset + SIGNAL_RIP_FROM_RSP && rbp == *ret_offset + SIGNAL_RBP_FROM_RSP;
}

static bool in_slot(int64_t offset, struct unwind_rule *rule, enum unwind_fp where)
{
    if (offset % 8 || offset / 8 < INT8_MIN || offset / 8 > INT8_MAX)
        return false;
    rule->saved = where;
    rule->fp_slot = (signed char)(offset / 8);
    return true;
}

static void set_frame_pointer(const struct cfi_location *location, struct unwind_rule *rule)
{
    int64_t offset;
    bool known = false;
    if (location->where == CFI_SAME)
        return;
    if (location->where == CFI_AT_CFA)
        known = in_slot(location->offset, rule, UNWIND_FP_AT_CFA);
    else if (at_register(location, X86_64_RBP, &offset))
        known = in_slot(offset, rule, UNWIND_FP_AT_FP);
    else if (at_register(location, X86_64_RSP, &offset))
        known = in_slot(offset, rule, UNWIND_FP_AT_SP);
    if (!known)
        rule->saved = UNWIND_FP_LOST;
}

static bool set_cfa(const struct cfi_state *state, struct unwind_rule *rule)
{
    int64_t offset;
    uint64_t addend;
    uint8_t from;
    const struct cfi_expression *expression = &state->cfa_expression;
    if (!state->cfa_is_expression) {
        if (!fits(state->cfa_offset, &offset) || state->cfa_register >= X86_64_RIP)
            return false;
        rule->cfa = state->cfa_register == X86_64_RSP   ? UNWIND_CFA_SP
                    : state->cfa_register == X86_64_RBP ? UNWIND_CFA_FP
                                                        : UNWIND_CFA_REGISTER;
        if (rule->cfa == UNWIND_CFA_REGISTER)
            rule->argument = (unsigned char)state->cfa_register;
    } else if (is_plt(expression, &offset, &from)) {
        rule->cfa = UNWIND_CFA_PLT;
        rule->argument = from;
    } else if (is_indirect(expression, X86_64_RSP, &offset, &addend)) {
        rule->cfa = UNWIND_CFA_AT_SP;
        rule->argument = (unsigned char)(addend / 8);
    } else if (is_indirect(expression, X86_64_RBP, &offset, &addend)) {
        rule->cfa = UNWIND_CFA_AT_FP;
        rule->argument = (unsigned char)(addend / 8);
    } else {
        return false;
    }
    rule->cfa_offset = (int)offset;
    return true;
}

static unsigned rbx_code(const struct cfi_location *location)
{
    if (location->where == CFI_SAME)
        return UNWIND_BASE_SAME;
    int64_t slot = location->offset / -8;
    bool can_be_said = location->where == CFI_AT_CFA && location->offset < 0 &&
                       location->offset % 8 == 0 && slot > UNWIND_BASE_SAME && slot <= 15;
    return can_be_said ? (unsigned)slot : UNWIND_BASE_UNKNOWN;
}

bool x86_64_needs_base(const struct unwind_rule *rule)
{
    return rule->cfa == UNWIND_CFA_REGISTER && rule->argument == X86_64_RBX;
}

struct unwind_rule x86_64_rule(const struct cfi_state *state, bool signal_frame, bool with_base)
{
    struct unwind_rule rule = {0};
    int64_t offset;
    if (state->return_address.where == CFI_UNDEFINED)
        return (struct unwind_rule){.cfa = UNWIND_CFA_END};
    if (!state->cfa_known)
        return unsupported;
    if (is_signal_frame(state, &offset))
        return (struct unwind_rule){.cfa = UNWIND_CFA_SIGNAL, .cfa_offset = (int)offset};
    /* A signal frame of another kind: taken for a call, the next look-up would be one byte off. */
    if (signal_frame || !set_cfa(state, &rule))
        return unsupported;
    const struct cfi_location *sp = &state->stack_pointer;
    if (sp->where != CFI_SAME && (sp->where != CFI_IS_CFA || sp->offset))
        return unsupported;
    const struct cfi_location *ip = &state->return_address;
    if (ip->where == CFI_IN_REGISTER && rule.cfa == UNWIND_CFA_SP && ip->offset >= 0 &&
        ip->offset < X86_64_RIP) {
        rule.cfa = UNWIND_CFA_IP_IN_REGISTER;
        rule.argument = (unsigned char)ip->offset;
    } else if (ip->where != CFI_AT_CFA || ip->offset != -8) {
        return unsupported;
    }
    set_frame_pointer(&state->frame_pointer, &rule);
    if (with_base)
        rule.saved |= (unsigned char)(rbx_code(&state->extra) << 4);
    return rule;
}

/* ---- linkage stubs ---- */

static const uint8_t landing_pad[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */

static bool has_landing_pad(const uint8_t *stub)
{
    return !memcmp(stub, landing_pad, sizeof(landing_pad));
}

#define AT_SP(bytes)                                                                               \
    {                                                                                              \
        .cfa = UNWIND_CFA_SP, .cfa_offset = (bytes)                                                \
    }

/* One that binding lazily doesn't need: jmp *slot(%rip). */
static bool plain_stubs(const uint8_t *start, struct x86_64_plt *ret_plt)
{
    const uint8_t *code = start + (has_landing_pad(start) ? sizeof(landing_pad) : 0);
    if (code[0] != 0xff || code[1] != 0x25)
        return false;
    *ret_plt = (struct x86_64_plt){1, {{0, AT_SP(8)}}};
    return true;
}

/* mold's: each loads its index into r11, which the common one of 32 bytes pushes. */
static bool mold_stubs(const uint8_t *start, size_t length, struct x86_64_plt *ret_plt)
{
    static const uint8_t common[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x53, 0xff, 0x35};
    static const uint8_t load[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb};
    if (length < 48 || memcmp(start, common, sizeof(common)) ||
        memcmp(start + 32, load, sizeof(load)))
        return false;
    *ret_plt =
        (struct x86_64_plt){4, {{0, AT_SP(8)}, {6, AT_SP(16)}, {12, AT_SP(24)}, {32, AT_SP(8)}}};
    return true;
}

/* Of GNU ld and lld: push $index is five bytes, and with it one more word is on the stack: behind a
 * jump of six bytes, or behind endbr64 where the jump is in .plt.sec. */
static bool lazy_stub(const uint8_t *stub, struct unwind_rule *ret_rule)
{
    bool marked = has_landing_pad(stub) && stub[4] == 0x68;
    if (!marked && !(stub[0] == 0xff && stub[1] == 0x25 && stub[6] == 0x68))
        return false;
    *ret_rule =
        (struct unwind_rule){.cfa = UNWIND_CFA_PLT, .argument = marked ? 9 : 11, .cfa_offset = 8};
    return true;
}

/* Behind a common stub, on entry to which the call and the stub before have pushed a word each. */
static bool lazy_stubs(const uint8_t *start, size_t length, struct x86_64_plt *ret_plt)
{
    struct unwind_rule rule;
    if (length < 32 || !lazy_stub(start + 16, &rule))
        return false;
    *ret_plt = (struct x86_64_plt){3, {{0, AT_SP(16)}, {6, AT_SP(24)}, {16, rule}}};
    return true;
}

bool x86_64_plt_rules(const char *section_name, const uint8_t *start, size_t length,
                      struct x86_64_plt *ret_plt)
{
    struct unwind_rule rule;
    if (length < 16)
        return false;
    if (!strcmp(section_name, ".plt.sec") || !strcmp(section_name, ".plt.got"))
        return plain_stubs(start, ret_plt);
    if (!strcmp(section_name, ".plt"))
        return mold_stubs(start, length, ret_plt) || lazy_stubs(start, length, ret_plt);
    if (strcmp(section_name, ".iplt") || !lazy_stub(start, &rule))
        return false;
    *ret_plt = (struct x86_64_plt){1, {{0, rule}}};
    return true;
}

bool x86_64_is_init(const uint8_t first[8], const uint8_t last[5], uint32_t *ret_entered)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    static const uint8_t enter[] = {0x48, 0x83, 0xec, 0x08};       /* sub $8,%rsp */
    static const uint8_t leave[] = {0x48, 0x83, 0xc4, 0x08, 0xc3}; /* add $8,%rsp; ret */
    uint32_t skip = memcmp(first, endbr64, sizeof(endbr64)) ? 0 : sizeof(endbr64);
    *ret_entered = skip + sizeof(enter);
    return !memcmp(first + skip, enter, sizeof(enter)) && !memcmp(last, leave, sizeof(leave));
}

bool x86_64_clone_rule(const uint8_t *code, size_t length, struct unwind_rule *ret_rule)
{
    static const uint8_t start[] = {0x0f, 0x05, 0x48, 0x85, 0xc0}; /* syscall; test %rax,%rax */
    static const uint8_t clear_fp[] = {0x31, 0xed};                /* xor %ebp,%ebp */
    if (length <= sizeof(start) || memcmp(code, start, sizeof(start)) || code[length - 1] != 0xc3 ||
        memcmp(code + length, clear_fp, sizeof(clear_fp)))
        return false;
    *ret_rule = (struct unwind_rule){.cfa = UNWIND_CFA_CLONE, .cfa_offset = 8};
    return true;
}
