// SPDX-License-Identifier: Apache-2.0
// The fuzzer of what is read of a Java process. The first byte chooses the version; the input is
// the process's memory from address 0 on: the machine's tables, a method, a compiled method with
// its debugging information, and a stack that is walked. Whatever it is, reads are limited in
// number and length.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/hotspot/walk.h"

#define READS_MAX 400000
#define STACK 0x3000 /* where a thread's registers point to */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

struct image {
    const uint8_t *bytes;
    size_t length;
    size_t reads;
};

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

static bool read_image(void *context, uint64_t address, void *buffer, size_t length)
{
    struct image *image = context;
    require(++image->reads < READS_MAX && length <= 1u << 20);
    if (address > image->length || length > image->length - address)
        return false;
    memcpy(buffer, image->bytes + address, length);
    return true;
}

static bool read_stack(void *context, uint64_t address, uint64_t *ret_word)
{
    return read_image(context, address, ret_word, sizeof(*ret_word));
}

/* Laid out as in 17, or as in 25. */
static struct hotspot_process make(bool new)
{
    struct hotspot_process machine = {.major = new ? 25 : 17};
    static const struct {
        enum hotspot_field field;
        uint16_t value;
    } fields[] = {
        {HOTSPOT_METHOD_CONST, 8},
        {HOTSPOT_CONST_CONSTANTS, 8},
        {HOTSPOT_CONST_SIZE, 24},
        {HOTSPOT_CONST_FLAGS, 28},
        {HOTSPOT_CONST_CODE_SIZE, 32},
        {HOTSPOT_CONST_NAME, 34},
        {HOTSPOT_CONST_BYTES, 48},
        {HOTSPOT_POOL_TAGS, 8},
        {HOTSPOT_POOL_HOLDER, 24},
        {HOTSPOT_POOL_LENGTH, 60},
        {HOTSPOT_POOL_SOURCE, 54},
        {HOTSPOT_POOL_BYTES, 72},
        {HOTSPOT_CLASS_NAME, 24},
        {HOTSPOT_SYMBOL_LENGTH, 0},
        {HOTSPOT_SYMBOL_BODY, 6},
        {HOTSPOT_NMETHOD_PCS, 268},
        {HOTSPOT_NMETHOD_DEPENDENCIES, 272},
        {HOTSPOT_NMETHOD_METADATA, 260},
    };
    for (unsigned i = 0; i < HOTSPOT_FIELDS; i++)
        machine.structs.value[i] = HOTSPOT_NONE;
    for (size_t i = 0; i < ARRAY_LENGTH(fields); i++)
        machine.structs.value[fields[i].field] = fields[i].value;
    if (new) {
        machine.structs.value[HOTSPOT_NMETHOD_IMMUTABLE] = 120;
        machine.structs.value[HOTSPOT_NMETHOD_IMMUTABLE_SIZE] = 128;
        machine.structs.value[HOTSPOT_NMETHOD_SCOPES] = 132;
        machine.structs.value[HOTSPOT_BLOB_MUTABLE] = 136;
        machine.structs.value[HOTSPOT_BLOB_MUTABLE_SIZE] = 144;
        machine.structs.value[HOTSPOT_BLOB_RELOCATION_SIZE] = 148;
    } else {
        machine.structs.value[HOTSPOT_COMPILED_SCOPES] = 120;
    }
    machine.walk = (struct bpf_hotspot){
        .low = 0x1000,
        .high = 0x3000,
        .interpreter = {0x2800, 0x3000},
        .heaps = {{.low = 0x1000, .high = 0x2800, .segments = 0xf00, .shift = 7}},
        .block_header = 16,
        .blob_bytes = 312,
        .blob_name = 96,
        .blob_frame_size = 28,
        .blob_frame_complete = 20,
        .blob_code = 32,
        .nmethod_method = 112,
        .nmethod_compile_id = 304,
        .nmethod_deopt = 128,
        .nmethod_original_pc = 300,
        .method_const = 8,
        .const_bytes = 48,
        .frame_method = -24,
        .frame_bytecode = -64};
    return machine;
}

static void walk(const struct hotspot_process *machine, struct image *image, uint64_t ip)
{
    struct runtime_memory memory = {.read = read_image, .context = image};
    struct hotspot_walk steps = {.machine = machine, .memory = memory};
    struct unwind_registers registers = {.known = ~0u >> (32 - UNWIND_REGISTERS)};
    struct hotspot_codes codes = {0};
    struct hotspot_frame frames[HOTSPOT_INLINED_MAX];
    registers.value[16] = ip;
    registers.value[7] = STACK;
    registers.value[6] = STACK + 64;
    registers.value[3] = 0x100;
    bool exact = true;
    for (unsigned i = 0; i < 64; i++, exact = false) {
        uint64_t sp = registers.value[7];
        if (hotspot_walk_step(&steps, read_stack, image, exact, &registers) != UNWIND_RUNTIME_DONE)
            break;
        require(registers.value[7] > sp);
    }
    require(steps.count <= 64);
    for (size_t i = 0; i < steps.count; i++) {
        uint64_t identity = hotspot_mark_identity(1, &steps.steps[i].mark);
        hotspot_codes_take(&codes, machine, &memory, 1, identity, &steps.steps[i].mark);
        const struct hotspot_known *known = hotspot_codes_find(&codes, identity);
        require(known);
        size_t count = hotspot_codes_frames(&codes, known, steps.steps[i].unit, frames);
        require(count <= HOTSPOT_INLINED_MAX);
        for (size_t k = 0; k < count; k++)
            require(strlen(frames[k].function) <= 2 * HOTSPOT_NAME_MAX + 1);
    }
    hotspot_codes_release(&codes);
    hotspot_walk_release(&steps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (length < 16)
        return 0;
    struct image image = {.bytes = data, .length = length};
    struct runtime_memory memory = {.read = read_image, .context = &image};
    struct hotspot_process machine = make(data[0] & 1), attached;
    walk(&machine, &image, 0x1400);
    walk(&machine, &image, 0x2900);
    struct hotspot_binary binary;
    const char *reason;
    for (unsigned i = 0; i < HOTSPOT_SYMBOLS; i++)
        binary.symbols[i] = 8 + 8 * i;
    if (hotspot_attach(&binary, 0, &memory, &attached, &reason) == HOTSPOT_ATTACHED)
        require(attached.walk.blob_bytes <= BPF_HOTSPOT_BLOB_BYTES);
    return 0;
}
