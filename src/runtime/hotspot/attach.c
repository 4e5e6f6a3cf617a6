// SPDX-License-Identifier: Apache-2.0
// Finding a virtual machine's code: see attach.h.

#include "runtime/hotspot/attach.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define CACHE_BYTES_MAX (2ull << 30) /* HotSpot's own limit */
#define OFFSETS_MAX 32767

/* Those without which nothing can be walked or named; of alternatives, see has_all. */
static const enum hotspot_field required[] = {
    HOTSPOT_INTERPRETER_CODE,    HOTSPOT_CALL_STUB,          HOTSPOT_HEAP_MEMORY,
    HOTSPOT_HEAP_SEGMENTS,       HOTSPOT_HEAP_SHIFT,         HOTSPOT_SPACE_LOW,
    HOTSPOT_SPACE_LIMIT,         HOTSPOT_STUBS_BUFFER,       HOTSPOT_STUBS_BYTES,
    HOTSPOT_BLOB_NAME,           HOTSPOT_BLOB_SIZE,          HOTSPOT_BLOB_FRAME_SIZE,
    HOTSPOT_BLOB_FRAME_COMPLETE, HOTSPOT_NMETHOD_COMPILE_ID, HOTSPOT_NMETHOD_ORIGINAL_PC,
    HOTSPOT_NMETHOD_PCS,         HOTSPOT_METHOD_CONST,       HOTSPOT_CONST_CONSTANTS,
    HOTSPOT_CONST_SIZE,          HOTSPOT_CONST_CODE_SIZE,    HOTSPOT_CONST_NAME,
    HOTSPOT_POOL_TAGS,           HOTSPOT_POOL_HOLDER,        HOTSPOT_POOL_LENGTH,
    HOTSPOT_CLASS_NAME,          HOTSPOT_SYMBOL_LENGTH,      HOTSPOT_SYMBOL_BODY,
    HOTSPOT_BLOCK_BYTES,         HOTSPOT_CONST_BYTES,        HOTSPOT_POOL_BYTES,
};

static bool has_all(const struct hotspot_structs *structs)
{
    for (size_t i = 0; i < ARRAY_LENGTH(required); i++)
        if (!hotspot_has(structs, required[i]))
            return false;
    /* Offsets are within their structures, all of which are small. */
    for (unsigned i = HOTSPOT_ARRAY_LENGTH; i < HOTSPOT_FIELDS; i++)
        if (hotspot_has(structs, i) && structs->value[i] > OFFSETS_MAX)
            return false;
    return (hotspot_has(structs, HOTSPOT_CACHE_HEAPS) ||
            hotspot_has(structs, HOTSPOT_CACHE_HEAP)) &&
           (hotspot_has(structs, HOTSPOT_NMETHOD_METHOD) ||
            hotspot_has(structs, HOTSPOT_COMPILED_METHOD)) &&
           (hotspot_has(structs, HOTSPOT_BLOB_CODE_BEGIN) ||
            hotspot_has(structs, HOTSPOT_BLOB_CODE_OFFSET)) &&
           (hotspot_has(structs, HOTSPOT_COMPILED_DEOPT) ||
            hotspot_has(structs, HOTSPOT_NMETHOD_DEOPT) ||
            hotspot_has(structs, HOTSPOT_NMETHOD_DEOPTIMIZE));
}

static uint64_t static_word(const struct hotspot_structs *structs,
                            const struct runtime_memory *memory, enum hotspot_field field)
{
    return hotspot_has(structs, field) ? runtime_read_word(memory, structs->value[field]) : 0;
}

/* "17.0.12+7-Debian": the numbers that it begins with. 8 calls itself 25, but has only one heap. */
static void find_version(struct hotspot_process *machine, const struct runtime_memory *memory)
{
    const struct hotspot_structs *structs = &machine->structs;
    char text[24] = "";
    uint64_t release = static_word(structs, memory, HOTSPOT_RELEASE);
    machine->major = (unsigned)(uint32_t)static_word(structs, memory, HOTSPOT_MAJOR_VERSION);
    if (!hotspot_has(structs, HOTSPOT_CACHE_HEAPS)) {
        machine->major = 8;
        snprintf(machine->version, sizeof(machine->version), "8");
        return;
    }
    if (release && runtime_read(memory, release, text, sizeof(text) - 1))
        text[strspn(text, "0123456789.")] = '\0';
    if (text[0])
        snprintf(machine->version, sizeof(machine->version), "%s", text);
    else
        snprintf(machine->version, sizeof(machine->version), "%u", machine->major);
}

static bool read_heap(const struct hotspot_structs *structs, const struct runtime_memory *memory,
                      uint64_t heap, struct bpf_hotspot_heap *ret_heap)
{
    const uint64_t *value = structs->value;
    uint64_t space = heap + value[HOTSPOT_HEAP_MEMORY];
    *ret_heap = (struct bpf_hotspot_heap){
        .low = runtime_read_word(memory, space + value[HOTSPOT_SPACE_LOW]),
        .high = runtime_read_word(memory, space + value[HOTSPOT_SPACE_LIMIT]),
        .segments = runtime_read_word(memory, heap + value[HOTSPOT_HEAP_SEGMENTS] +
                                                  value[HOTSPOT_SPACE_LOW]),
        .shift = (uint32_t)runtime_read_word(memory, heap + value[HOTSPOT_HEAP_SHIFT]),
    };
    return ret_heap->low && ret_heap->high > ret_heap->low &&
           ret_heap->high - ret_heap->low <= CACHE_BYTES_MAX && ret_heap->segments &&
           ret_heap->shift >= 4 && ret_heap->shift <= 16;
}

/* False while the code cache is being made. */
static bool read_heaps(struct hotspot_process *machine, const struct runtime_memory *memory)
{
    const struct hotspot_structs *structs = &machine->structs;
    struct bpf_hotspot *walk = &machine->walk;
    uint64_t heaps[BPF_HOTSPOT_HEAPS];
    size_t count = 1;
    if (hotspot_has(structs, HOTSPOT_CACHE_HEAPS)) {
        uint64_t array = static_word(structs, memory, HOTSPOT_CACHE_HEAPS);
        uint64_t length_at =
            hotspot_has(structs, HOTSPOT_ARRAY_LENGTH) ? structs->value[HOTSPOT_ARRAY_LENGTH] : 0;
        uint64_t data_at =
            hotspot_has(structs, HOTSPOT_ARRAY_DATA) ? structs->value[HOTSPOT_ARRAY_DATA] : 8;
        uint32_t length = (uint32_t)runtime_read_word(memory, array + length_at);
        uint64_t data = runtime_read_word(memory, array + data_at);
        count = MIN(length, (uint32_t)BPF_HOTSPOT_HEAPS);
        if (!array || !count || length > BPF_HOTSPOT_HEAPS ||
            !runtime_read(memory, data, heaps, count * sizeof(heaps[0])))
            return false;
    } else {
        heaps[0] = static_word(structs, memory, HOTSPOT_CACHE_HEAP);
    }
    for (size_t i = 0; i < count; i++) {
        struct bpf_hotspot_heap *heap = &walk->heaps[i];
        if (!heaps[i] || !read_heap(structs, memory, heaps[i], heap))
            return false;
        walk->low = walk->low ? MIN(walk->low, heap->low) : heap->low;
        walk->high = MAX(walk->high, heap->high);
    }
    return walk->high - walk->low <= CACHE_BYTES_MAX;
}

/* The last stub of all that are made before Java runs, so with it everything is there. */
static bool read_interpreter(struct hotspot_process *machine, const struct runtime_memory *memory)
{
    const struct hotspot_structs *structs = &machine->structs;
    struct bpf_hotspot *walk = &machine->walk;
    uint64_t queue = static_word(structs, memory, HOTSPOT_INTERPRETER_CODE);
    if (!queue)
        return false;
    walk->interpreter[0] = runtime_read_word(memory, queue + structs->value[HOTSPOT_STUBS_BUFFER]);
    uint32_t length =
        (uint32_t)runtime_read_word(memory, queue + structs->value[HOTSPOT_STUBS_BYTES]);
    walk->interpreter[1] = walk->interpreter[0] + length;
    walk->call_stub = static_word(structs, memory, HOTSPOT_CALL_STUB);
    return walk->call_stub && length && walk->interpreter[0] >= walk->low &&
           walk->interpreter[1] <= walk->high;
}

static unsigned short offset_of(const struct hotspot_structs *structs, enum hotspot_field first,
                                enum hotspot_field second)
{
    return (unsigned short)structs->value[hotspot_has(structs, first) ? first : second];
}

/* The offsets for the walk. False when a field is beyond the bytes that it copies. */
static bool set_offsets(struct hotspot_process *machine)
{
    const struct hotspot_structs *structs = &machine->structs;
    struct bpf_hotspot *walk = &machine->walk;
    walk->block_header = (unsigned short)structs->value[HOTSPOT_BLOCK_BYTES];
    walk->blob_name = (unsigned short)structs->value[HOTSPOT_BLOB_NAME];
    walk->blob_frame_size = (unsigned short)structs->value[HOTSPOT_BLOB_FRAME_SIZE];
    walk->blob_frame_complete = (unsigned short)structs->value[HOTSPOT_BLOB_FRAME_COMPLETE];
    walk->short_complete = structs->bytes[HOTSPOT_BLOB_FRAME_COMPLETE] == 2;
    walk->code_offset = !hotspot_has(structs, HOTSPOT_BLOB_CODE_BEGIN);
    walk->blob_code = offset_of(structs, HOTSPOT_BLOB_CODE_BEGIN, HOTSPOT_BLOB_CODE_OFFSET);
    walk->nmethod_method = offset_of(structs, HOTSPOT_NMETHOD_METHOD, HOTSPOT_COMPILED_METHOD);
    walk->nmethod_compile_id = (unsigned short)structs->value[HOTSPOT_NMETHOD_COMPILE_ID];
    walk->nmethod_original_pc = (unsigned short)structs->value[HOTSPOT_NMETHOD_ORIGINAL_PC];
    walk->deopt_offset = !hotspot_has(structs, HOTSPOT_COMPILED_DEOPT);
    walk->nmethod_deopt =
        hotspot_has(structs, HOTSPOT_COMPILED_DEOPT)
            ? (unsigned short)structs->value[HOTSPOT_COMPILED_DEOPT]
            : offset_of(structs, HOTSPOT_NMETHOD_DEOPT, HOTSPOT_NMETHOD_DEOPTIMIZE);
    walk->method_const = (unsigned short)structs->value[HOTSPOT_METHOD_CONST];
    walk->const_bytes = (unsigned short)structs->value[HOTSPOT_CONST_BYTES];
    /* The interpreter's frames on x86-64: 9 has put the class's mirror below the method. */
    walk->frame_method = -24;
    walk->frame_bytecode = machine->major >= 9 ? -64 : -56;
    unsigned short last = 0;
    const unsigned short ends[] = {
        walk->blob_name,      walk->blob_frame_size,    walk->blob_frame_complete,
        walk->blob_code,      walk->nmethod_compile_id, walk->nmethod_original_pc,
        walk->nmethod_method, walk->nmethod_deopt,
    };
    for (size_t i = 0; i < ARRAY_LENGTH(ends); i++)
        last = MAX(last, ends[i]);
    walk->blob_bytes = (unsigned short)(last + 8);
    return last + 8 <= BPF_HOTSPOT_BLOB_BYTES;
}

enum hotspot_attach hotspot_attach(const struct hotspot_binary *binary, uint64_t bias,
                                   const struct runtime_memory *memory,
                                   struct hotspot_process *ret_machine, const char **ret_reason)
{
    struct hotspot_process machine = {0};
    *ret_reason = "the virtual machine's tables cannot be read";
    if (!hotspot_structs_read(binary, bias, memory, &machine.structs))
        return HOTSPOT_NOT_YET;
    *ret_reason = "the virtual machine's tables lack fields";
    if (!has_all(&machine.structs))
        return HOTSPOT_REFUSED;
    *ret_reason = "the virtual machine has no code cache";
    if (!read_heaps(&machine, memory) || !read_interpreter(&machine, memory))
        return HOTSPOT_NOT_YET;
    find_version(&machine, memory);
    *ret_reason = "this version of the virtual machine is not known";
    if (machine.major < 8 || machine.major > 40 || !set_offsets(&machine))
        return HOTSPOT_REFUSED;
    *ret_machine = machine;
    return HOTSPOT_ATTACHED;
}
