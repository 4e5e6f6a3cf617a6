// SPDX-License-Identifier: Apache-2.0
// Call frame programs, one instruction at a time: see cfi.h. A program costs time in proportion to
// its bytes, whatever is in them.

#include "elf/cfi/cfi.h"

#include "base/memory.h"

/* The instructions; the first three carry an operand in their low six bits. */
enum {
    CFA_ADVANCE = 0x40,
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE1 = 0x02,
    CFA_ADVANCE2 = 0x03,
    CFA_ADVANCE4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_GNU_WINDOW_SAVE = 0x2d,
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET = 0x2f,
};

/* Offsets in a program are unsigned or signed and wrap, as those of a hostile one may. */
static int64_t factored(const struct cfi_run *run, uint64_t offset)
{
    return (int64_t)(offset * (uint64_t)run->cie.data_alignment);
}

static struct cfi_location *location_of(struct cfi_run *run, struct cfi_state *state,
                                        uint64_t number)
{
    if (number == run->cie.return_register)
        return &state->return_address;
    if (number == run->machine.stack_pointer)
        return &state->stack_pointer;
    if (number == run->machine.frame_pointer)
        return &state->frame_pointer;
    return number == run->machine.extra ? &state->extra : NULL;
}

static void set(struct cfi_run *run, uint64_t number, enum cfi_where where, int64_t offset)
{
    struct cfi_location *location = location_of(run, &run->state, number);
    if (location)
        *location = (struct cfi_location){.where = where, .offset = offset};
}

static void restore(struct cfi_run *run, uint64_t number)
{
    struct cfi_location *location = location_of(run, &run->state, number);
    if (location)
        *location = *location_of(run, &run->initial, number);
}

static struct cfi_expression take_expression(struct cfi_run *run)
{
    uint64_t length = cursor_uleb(&run->program);
    const uint8_t *bytes = cursor_take(&run->program, length);
    return (struct cfi_expression){.bytes = bytes, .length = bytes ? (size_t)length : 0};
}

static void set_expression(struct cfi_run *run, enum cfi_where where)
{
    uint64_t number = cursor_uleb(&run->program);
    struct cfi_location *location = location_of(run, &run->state, number);
    struct cfi_expression expression = take_expression(run);
    if (location)
        *location = (struct cfi_location){.where = where, .expression = expression};
}

static void define_cfa(struct cfi_run *run, uint64_t number, int64_t offset)
{
    run->state.cfa_known = true;
    run->state.cfa_is_expression = false;
    run->state.cfa_register = number;
    run->state.cfa_offset = offset;
}

static void remember(struct cfi_run *run)
{
    if (run->remembered_count == CFI_REMEMBERED_MAX)
        run->bad = true;
    else
        run->remembered[run->remembered_count++] = run->state;
}

static void recall(struct cfi_run *run)
{
    if (!run->remembered_count)
        run->bad = true;
    else
        run->state = run->remembered[--run->remembered_count];
}

/* Forward only. In a CIE's program there is nothing to advance over. */
static void move_to(struct cfi_run *run, uint64_t location)
{
    if (run->is_initial || location < run->location)
        run->bad = true;
    else
        run->location = location;
}

static void advance(struct cfi_run *run, uint64_t steps)
{
    uint64_t distance, location;
    if (__builtin_mul_overflow(steps, run->cie.code_alignment, &distance) ||
        __builtin_add_overflow(run->location, distance, &location))
        location = UINT64_MAX; /* far beyond the end, which ends it */
    move_to(run, location);
}

static void execute_registers(struct cfi_run *run, uint8_t instruction)
{
    struct cursor *program = &run->program;
    if (instruction == CFA_EXPRESSION || instruction == CFA_VAL_EXPRESSION) {
        set_expression(run, instruction == CFA_EXPRESSION ? CFI_AT_EXPRESSION : CFI_IS_EXPRESSION);
        return;
    }
    uint64_t number = cursor_uleb(program);
    switch (instruction) {
    case CFA_OFFSET_EXTENDED:
        set(run, number, CFI_AT_CFA, factored(run, cursor_uleb(program)));
        break;
    case CFA_OFFSET_EXTENDED_SF:
        set(run, number, CFI_AT_CFA, factored(run, (uint64_t)cursor_sleb(program)));
        break;
    case CFA_GNU_NEGATIVE_OFFSET:
        set(run, number, CFI_AT_CFA, factored(run, -cursor_uleb(program)));
        break;
    case CFA_VAL_OFFSET:
        set(run, number, CFI_IS_CFA, factored(run, cursor_uleb(program)));
        break;
    case CFA_VAL_OFFSET_SF:
        set(run, number, CFI_IS_CFA, factored(run, (uint64_t)cursor_sleb(program)));
        break;
    case CFA_RESTORE_EXTENDED:
        restore(run, number);
        break;
    case CFA_UNDEFINED:
        set(run, number, CFI_UNDEFINED, 0);
        break;
    case CFA_SAME_VALUE:
        set(run, number, CFI_SAME, 0);
        break;
    case CFA_REGISTER:
        set(run, number, CFI_IN_REGISTER, (int64_t)cursor_uleb(program));
        break;
    default:
        run->bad = true; /* unknown, and so is how long it is */
    }
}

static void execute_cfa(struct cfi_run *run, uint8_t instruction)
{
    struct cursor *program = &run->program;
    struct cfi_state *state = &run->state;
    uint64_t number;
    switch (instruction) {
    case CFA_DEF_CFA:
        number = cursor_uleb(program);
        define_cfa(run, number, (int64_t)cursor_uleb(program));
        break;
    case CFA_DEF_CFA_SF:
        number = cursor_uleb(program);
        define_cfa(run, number, factored(run, (uint64_t)cursor_sleb(program)));
        break;
    case CFA_DEF_CFA_REGISTER:
        define_cfa(run, cursor_uleb(program), state->cfa_offset);
        break;
    case CFA_DEF_CFA_OFFSET:
        define_cfa(run, state->cfa_register, (int64_t)cursor_uleb(program));
        break;
    case CFA_DEF_CFA_OFFSET_SF:
        define_cfa(run, state->cfa_register, factored(run, (uint64_t)cursor_sleb(program)));
        break;
    case CFA_DEF_CFA_EXPRESSION:
        state->cfa_expression = take_expression(run);
        state->cfa_is_expression = state->cfa_known = true;
        break;
    default:
        execute_registers(run, instruction);
    }
}

static void execute(struct cfi_run *run)
{
    struct cursor *program = &run->program;
    uint8_t instruction = cursor_u8(program);
    uint8_t low = instruction & 0x3f;
    switch (instruction & 0xc0 ? instruction & 0xc0 : instruction) {
    case CFA_ADVANCE:
        advance(run, low);
        break;
    case CFA_OFFSET:
        set(run, low, CFI_AT_CFA, factored(run, cursor_uleb(program)));
        break;
    case CFA_RESTORE:
        restore(run, low);
        break;
    case CFA_NOP:
    case CFA_GNU_WINDOW_SAVE: /* of other machines; has no operand */
        break;
    case CFA_SET_LOC:
        move_to(run, frame_pointer(run->section, program, run->cie.pointer_encoding,
                                   run->cie.address_bytes));
        break;
    case CFA_ADVANCE1:
        advance(run, cursor_u8(program));
        break;
    case CFA_ADVANCE2:
        advance(run, cursor_u16(program));
        break;
    case CFA_ADVANCE4:
        advance(run, cursor_u32(program));
        break;
    case CFA_REMEMBER_STATE:
        remember(run);
        break;
    case CFA_RESTORE_STATE:
        recall(run);
        break;
    case CFA_GNU_ARGS_SIZE:
        cursor_uleb(program);
        break;
    default:
        execute_cfa(run, instruction);
    }
    run->bad = run->bad || program->bad;
}

bool cfi_start(struct cfi_run *run, struct frame_reader *reader, const struct frame_fde *fde,
               const struct cfi_machine *machine)
{
    const struct frame_cie *cie = frame_cie_at(reader, fde->cie_offset);
    /* Not all at once: the remembered states are large and need no clearing. */
    run->section = &reader->section;
    run->machine = *machine;
    run->location = fde->start;
    run->end = fde->end;
    run->bad = !cie;
    run->remembered_count = 0;
    run->state = (struct cfi_state){0};
    if (!cie)
        return false;
    run->cie = *cie;
    run->initial = run->state;
    run->program = cie->program;
    run->is_initial = true;
    while (run->program.at != run->program.end && !run->bad)
        execute(run);
    run->is_initial = false;
    run->initial = run->state;
    run->program = fde->program;
    run->remembered_count = 0;
    return !run->bad;
}

int cfi_next(struct cfi_run *run, struct cfi_stretch *ret_stretch)
{
    uint64_t start = run->location;
    if (start >= run->end)
        return 0;
    while (run->program.at != run->program.end && !run->bad) {
        execute(run);
        if (run->bad || run->location == start)
            continue;
        /* A change of the location changes nothing else: the state is still that of the stretch. */
        *ret_stretch = (struct cfi_stretch){
            .start = start, .end = MIN(run->location, run->end), .state = &run->state};
        return 1;
    }
    if (run->bad)
        return -1;
    *ret_stretch = (struct cfi_stretch){.start = start, .end = run->end, .state = &run->state};
    run->location = run->end;
    return 1;
}
