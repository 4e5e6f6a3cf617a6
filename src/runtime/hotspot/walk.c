// SPDX-License-Identifier: Apache-2.0
// Steps through HotSpot's frames: see walk.h, and bpf/runtimes/hotspot.bpf.h for the reasons.

#include "runtime/hotspot/walk.h"

#include <stdlib.h>
#include <string.h>

#include "arch/x86_64/registers.h"
#include "base/memory.h"

/* The interpreter's: r13, the next bytecode. */
#define REGISTER_BYTECODE 13

enum kind { COMPILED, FRAMELESS, OTHER };

#define STACK_MAX (1u << 20) /* one frame */
#define CODE_BYTES 32

struct reader {
    struct hotspot_walk *walk;
    const struct bpf_hotspot *machine;
    unwind_read_fn read;
    void *context;
    bool exact;
    struct unwind_registers *registers;
    uint8_t blob[BPF_HOTSPOT_BLOB_BYTES + 8];
    uint8_t code[CODE_BYTES]; /* from the byte before the pointer on */
};

void hotspot_walk_release(struct hotspot_walk *walk)
{
    free(walk->steps);
    *walk = (struct hotspot_walk){0};
}

uint64_t hotspot_mark_identity(uint32_t pid, const struct hotspot_mark *mark)
{
    uint64_t hash = hash_word(pid ^ hash_word(mark->address));
    hash = hash_word(hash ^ hash_word(mark->file)) ^ hash_word(mark->name);
    hash = hash_word(hash ^ hash_word(mark->lines)) ^ mark->kind;
    return (hash & BPF_PYTHON_IDENTITY_MASK) | 1;
}

static uint64_t value_of(const struct reader *reader, unsigned number)
{
    return reader->registers->value[number];
}

static bool is_known(const struct reader *reader, unsigned number)
{
    return reader->registers->known >> number & 1;
}

static bool read_stack(const struct reader *reader, uint64_t address, uint64_t *ret_word)
{
    return reader->read(reader->context, address, ret_word);
}

static void add_step(struct reader *reader, const struct hotspot_mark *mark, uint64_t unit,
                     bool hidden)
{
    struct hotspot_walk *walk = reader->walk;
    array_reserve(walk->steps, walk->capacity, walk->count + 1);
    walk->steps[walk->count++] = (struct hotspot_step){
        .mark = *mark, .unit = (uint32_t)MIN(unit, BPF_PYTHON_UNIT_MASK), .hidden = hidden};
}

/* ---- callers ---- */

static int leave(struct reader *reader, uint64_t cfa, uint64_t fp_at)
{
    struct unwind_registers caller = {.known = 1u << REGISTER_IP | 1u << REGISTER_SP};
    uint64_t sp = value_of(reader, REGISTER_SP);
    if (cfa <= sp || cfa - sp > STACK_MAX)
        return UNWIND_END_LOOP;
    caller.value[REGISTER_SP] = cfa;
    if (!read_stack(reader, cfa - 8, &caller.value[REGISTER_IP]))
        return UNWIND_END_TRUNCATED;
    bool known = is_known(reader, REGISTER_FP);
    caller.value[REGISTER_FP] = value_of(reader, REGISTER_FP);
    if (fp_at)
        known = read_stack(reader, fp_at, &caller.value[REGISTER_FP]);
    caller.known |= (uint32_t)known << REGISTER_FP;
    if (!caller.value[REGISTER_IP])
        return UNWIND_END_COMPLETE;
    *reader->registers = caller;
    return UNWIND_RUNTIME_DONE;
}

static int leave_by_pointer(struct reader *reader, uint64_t sender)
{
    uint64_t fp = value_of(reader, REGISTER_FP);
    int r = leave(reader, fp + 16, fp);
    if (r == UNWIND_RUNTIME_DONE && sender > fp + 16 && sender - fp < STACK_MAX)
        reader->registers->value[REGISTER_SP] = sender;
    return r;
}

static unsigned returning(const uint8_t *code)
{
    unsigned first = code[0] | (unsigned)code[1] << 8;
    if (code[0] == 0xc3)
        return 8;
    if (code[0] == 0x5d)
        return 16;
    bool poll = (first == 0x3b49 && ((code[2] == 0xa7 && code[7] == 0x0f && code[8] == 0x87) ||
                                     (code[2] == 0x67 && code[4] == 0x0f && code[5] == 0x87))) ||
                (first == 0x870f && code[6] == 0xc3) || (first == 0x0585 && code[6] == 0xc3) ||
                (first == 0x8541 && code[3] == 0xc3) ||
                ((first == 0x8b4d || first == 0x8b49) && code[7] == 0x41 && code[8] == 0x85 &&
                 code[10] == 0xc3);
    return poll ? 8 : 0;
}

static unsigned entering(uint8_t before, const uint8_t *code)
{
    if (before == 0x55)
        return 16;
    return code[0] == 0x48 && code[1] == 0x89 && (code[2] == 0x6c || code[2] == 0xac) ? 0 : 8;
}

static bool load_code(struct reader *reader)
{
    return reader->exact && runtime_read(&reader->walk->memory, value_of(reader, REGISTER_IP) - 1,
                                         reader->code, CODE_BYTES);
}

/* ---- the interpreter ---- */

static uint64_t bytecode_index(const struct bpf_hotspot *machine, uint64_t const_method,
                               uint64_t address)
{
    uint64_t index = address - const_method - machine->const_bytes;
    return index < 65536 ? index : BPF_PYTHON_UNIT_MASK;
}

static int step_interpreted(struct reader *reader)
{
    const struct bpf_hotspot *machine = reader->machine;
    const struct runtime_memory *memory = &reader->walk->memory;
    uint64_t fp = value_of(reader, REGISTER_FP), sp = value_of(reader, REGISTER_SP);
    uint64_t method = 0, const_method = 0, bytecode = 0, sender = 0;
    bool framed = is_known(reader, REGISTER_FP) && fp > sp && fp - sp < STACK_MAX &&
                  read_stack(reader, fp + (uint64_t)(int64_t)machine->frame_method, &method) &&
                  read_stack(reader, fp + (uint64_t)(int64_t)machine->frame_bytecode, &bytecode) &&
                  read_stack(reader, fp - 8, &sender);
    if (framed)
        const_method = runtime_read_word(memory, method + machine->method_const);
    framed = framed && const_method;
    if (!framed && reader->exact && is_known(reader, REGISTER_BASE)) {
        method = value_of(reader, REGISTER_BASE);
        const_method = runtime_read_word(memory, method + machine->method_const);
    }
    if (!const_method)
        return UNWIND_RUNTIME_NATIVE;
    uint64_t unit = bytecode_index(machine, const_method, bytecode);
    if (reader->exact && framed && is_known(reader, REGISTER_BYTECODE)) {
        uint64_t now = bytecode_index(machine, const_method, value_of(reader, REGISTER_BYTECODE));
        if (now != BPF_PYTHON_UNIT_MASK)
            unit = now;
    }
    struct hotspot_mark mark = {
        .address = method, .file = const_method, .kind = BPF_HOTSPOT_INTERPRETED};
    add_step(reader, &mark, unit, false);
    return framed ? leave_by_pointer(reader, sender) : leave(reader, sp + 8, 0);
}

/* ---- compiled code and stubs ---- */

static uint64_t find_blob(const struct reader *reader, uint64_t address)
{
    const struct bpf_hotspot *machine = reader->machine;
    for (unsigned i = 0; i < BPF_HOTSPOT_HEAPS; i++) {
        const struct bpf_hotspot_heap *heap = &machine->heaps[i];
        if (address < heap->low || address >= heap->high)
            continue;
        uint64_t at = (address - heap->low) >> heap->shift;
        for (unsigned hop = 0; hop < BPF_HOTSPOT_HOPS; hop++) {
            uint8_t back;
            if (!runtime_read(&reader->walk->memory, heap->segments + at, &back, 1) ||
                back == BPF_HOTSPOT_SEGMENT_FREE || back > at)
                return 0;
            if (!back)
                return heap->low + (at << heap->shift) + machine->block_header;
            at -= back;
        }
    }
    return 0;
}

static uint64_t field(const struct reader *reader, size_t offset)
{
    uint64_t word = 0;
    if (offset <= BPF_HOTSPOT_BLOB_BYTES)
        memcpy(&word, reader->blob + offset, sizeof(word));
    return word;
}

static enum kind kind_of(const struct reader *reader, uint64_t name)
{
    char text[9] = "";
    if (!runtime_read(&reader->walk->memory, name, text, 8))
        return OTHER;
    if (!strcmp(text, "nmethod") || !strcmp(text, "native n"))
        return COMPILED;
    return !strncmp(text, "I2C/", 4) || !strcmp(text, "MethodHa") || !strncmp(text, "vtable", 6)
               ? FRAMELESS
               : OTHER;
}

static int leave_framed(struct reader *reader, uint64_t size, bool enters)
{
    uint64_t sp = value_of(reader, REGISTER_SP);
    if (load_code(reader)) {
        const uint8_t *code = reader->code;
        unsigned left = enters ? entering(code[0], code + 1) : returning(code + 1);
        if (left)
            return leave(reader, sp + left, left == 16 ? sp : 0);
        if (enters)
            return leave(reader, sp + size, 0);
    }
    return leave(reader, sp + size, sp + size - 16);
}

static int leave_stub(struct reader *reader, enum kind kind)
{
    uint64_t fp = value_of(reader, REGISTER_FP), sp = value_of(reader, REGISTER_SP);
    bool pointed = is_known(reader, REGISTER_FP) && fp >= sp && fp - sp < STACK_MAX;
    if (kind == FRAMELESS)
        return leave(reader, sp + 8, 0);
    if (load_code(reader)) {
        if (reader->code[1] == 0x55 || reader->code[1] == 0xc3 || !pointed)
            return leave(reader, sp + 8, 0);
        if (reader->code[0] == 0x55)
            return leave(reader, sp + 16, sp);
    }
    return pointed ? leave_by_pointer(reader, 0) : UNWIND_RUNTIME_NATIVE;
}

static void find_place(struct reader *reader, uint64_t blob)
{
    const struct bpf_hotspot *machine = reader->machine;
    uint64_t deopt = field(reader, machine->nmethod_deopt), ip;
    if (machine->deopt_offset)
        deopt = blob + (uint32_t)deopt;
    uint64_t at =
        value_of(reader, REGISTER_SP) + (uint32_t)field(reader, machine->nmethod_original_pc);
    if (!reader->exact && value_of(reader, REGISTER_IP) == deopt && read_stack(reader, at, &ip) &&
        ip >= machine->low && ip < machine->high)
        reader->registers->value[REGISTER_IP] = ip;
}

static int step_compiled(struct reader *reader, uint64_t blob, uint64_t size, int64_t complete)
{
    const struct bpf_hotspot *machine = reader->machine;
    find_place(reader, blob);
    uint64_t begin = machine->code_offset ? blob + (uint32_t)field(reader, machine->blob_code)
                                          : field(reader, machine->blob_code);
    uint64_t offset = value_of(reader, REGISTER_IP) - !reader->exact - begin;
    struct hotspot_mark mark = {.address = blob,
                                .file = field(reader, machine->nmethod_method),
                                .lines = (uint32_t)field(reader, machine->nmethod_compile_id),
                                .kind = BPF_HOTSPOT_COMPILED};
    add_step(reader, &mark, offset, false);
    return leave_framed(reader, size, reader->exact && (int64_t)offset < complete);
}

int hotspot_walk_step(void *context, unwind_read_fn read, void *read_context, bool exact,
                      struct unwind_registers *registers)
{
    struct hotspot_walk *walk = context;
    const struct bpf_hotspot *machine = &walk->machine->walk;
    struct reader reader = {.walk = walk,
                            .machine = machine,
                            .read = read,
                            .context = read_context,
                            .exact = exact,
                            .registers = registers};
    uint64_t address = registers->value[REGISTER_IP] - !exact;
    if (address < machine->low || address >= machine->high)
        return UNWIND_RUNTIME_NATIVE;
    if (address >= machine->interpreter[0] && address < machine->interpreter[1])
        return step_interpreted(&reader);
    uint64_t blob = find_blob(&reader, address);
    if (!blob || machine->blob_bytes > BPF_HOTSPOT_BLOB_BYTES ||
        !runtime_read(&walk->memory, blob, reader.blob, machine->blob_bytes))
        return UNWIND_RUNTIME_NATIVE;
    uint64_t name = field(&reader, machine->blob_name);
    enum kind kind = kind_of(&reader, name);
    int32_t words = (int32_t)field(&reader, machine->blob_frame_size);
    uint64_t complete = field(&reader, machine->blob_frame_complete);
    uint64_t size = (uint64_t)(uint32_t)words * 8;
    if (kind == COMPILED)
        return step_compiled(&reader, blob, size,
                             machine->short_complete ? (int16_t)complete : (int32_t)complete);
    struct hotspot_mark mark = {.address = blob, .name = name, .kind = BPF_HOTSPOT_STUB};
    add_step(&reader, &mark, 0, registers->value[REGISTER_IP] == machine->call_stub);
    return words > 0 ? leave_framed(&reader, size, false) : leave_stub(&reader, kind);
}
