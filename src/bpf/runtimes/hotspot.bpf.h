/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of the HotSpot virtual machine in a walk: the same steps as src/runtime/hotspot/walk.c.
 * Code in the machine's code cache has no unwind rows. The cache's segment map leads from an
 * address to the header of its code, and that has the size of its frames. The interpreter's frames
 * have a frame pointer, and the method at a fixed distance from it.
 *
 * Only the innermost frame can be where its frame is not, or no longer, complete: there the
 * instructions tell how far it is.
 */
#pragma once

#include "bpf/shared.h"
#include "bpf/types.bpf.h"

enum hotspot_kind {
    HOTSPOT_COMPILED,  /* a method, or the wrapper of a native one */
    HOTSPOT_FRAMELESS, /* jumps on: the return address is on top of the stack */
    HOTSPOT_OTHER,     /* with frames of a fixed size or with a frame pointer */
};

#define HOTSPOT_STACK_MAX (1u << 20) /* one frame */
#define HOTSPOT_REGISTER_BYTECODE 13 /* the interpreter's: r13, the next bytecode */

static __always_inline const struct bpf_hotspot *hotspot_of(const struct walk *walk)
{
    const struct bpf_runtime *runtime = runtime_of(walk, BPF_RUNTIME_HOTSPOT);
    return runtime ? &runtime->hotspot : NULL;
}

static __always_inline void hotspot_begin(struct walk *walk)
{
    const struct bpf_hotspot *machine = hotspot_of(walk);
    walk->hotspot.known_name = 0;
    walk->hotspot.low = machine ? machine->low : 0;
    walk->hotspot.high = machine ? machine->high : 0;
}

static __always_inline int hotspot_covers(const struct walk *walk)
{
    __u64 address = walk->value[REGISTER_IP] - !walk->exact;
    return address >= walk->hotspot.low && address < walk->hotspot.high;
}

/* ---- code ---- */

/* The header of the code that an address is in; 0: there is none. */
static __always_inline __u64 hotspot_find_blob(const struct bpf_hotspot *machine, __u64 address)
{
    __u64 low = 0, segments = 0;
    __u32 shift = 0;
    for (int i = 0; i < BPF_HOTSPOT_HEAPS; i++)
        if (address >= machine->heaps[i].low && address < machine->heaps[i].high) {
            low = machine->heaps[i].low;
            segments = machine->heaps[i].segments;
            shift = machine->heaps[i].shift & 31;
        }
    if (!segments)
        return 0;
    __u64 at = (address - low) >> shift;
    for (int i = 0; i < BPF_HOTSPOT_HOPS; i++) {
        __u8 back;
        if (bpf_probe_read_user(&back, 1, (void *)(segments + at)) ||
            back == BPF_HOTSPOT_SEGMENT_FREE || back > at)
            return 0;
        if (!back)
            return low + (at << shift) + machine->block_header;
        at -= back;
    }
    return 0;
}

#define LETTERS_NMETHOD 0x00646f6874656d6eull /* "nmethod" */
#define LETTERS_NATIVE 0x6e2065766974616eull  /* "native nmethod" */
#define LETTERS_ADAPTERS 0x2f433249ull        /* "I2C/C2I adapters" */
#define LETTERS_VTABLE 0x656c62617476ull      /* "vtable chunks" */
#define LETTERS_HANDLES 0x6148646f6874654dull /* "MethodHandles adapters" */

/* The kind of code, by the first letters of its name. Most frames of a walk have the same. */
static __always_inline __u32 hotspot_kind_of(struct walk *walk, __u64 name)
{
    struct hotspot_walk *state = &walk->hotspot;
    __u64 letters;
    if (name && name == state->known_name)
        return state->known_kind;
    __u32 kind = HOTSPOT_OTHER;
    if (load_word(name, &letters))
        return kind;
    if (letters == LETTERS_NMETHOD || letters == LETTERS_NATIVE)
        kind = HOTSPOT_COMPILED;
    else if ((__u32)letters == LETTERS_ADAPTERS || letters == LETTERS_HANDLES ||
             (letters & 0xffffffffffffull) == LETTERS_VTABLE)
        kind = HOTSPOT_FRAMELESS;
    state->known_name = name;
    state->known_kind = kind;
    return kind;
}

static __always_inline void hotspot_add(struct walk *walk, struct bpf_code_event *code, __u64 unit)
{
    code->kind = BPF_EVENT_CODE;
    code->pid = bpf_get_current_pid_tgid() >> 32;
    code->runtime = walk->runtime;
    __u64 hash = mix(mix(code->pid, code->address), code->file);
    hash = mix(mix(mix(hash, code->name), code->lines), code->first_line);
    code->identity = hash & BPF_PYTHON_IDENTITY_MASK;
    if (!code->identity)
        code->identity = 1;
    send_code(code, hash);
    if (unit > BPF_PYTHON_UNIT_MASK)
        unit = BPF_PYTHON_UNIT_MASK;
    add_frame(walk, BPF_FRAME_PYTHON | code->identity << BPF_PYTHON_UNIT_BITS | unit);
}

/* ---- callers ---- */

static __always_inline int hotspot_leave(struct walk *walk, __u64 cfa, __u64 fp_at)
{
    struct caller caller = {
        .sp = cfa, .fp = walk->value[REGISTER_FP], .fp_known = is_known(walk, REGISTER_FP)};
    __u64 sp = walk->value[REGISTER_SP];
    if (cfa <= sp || cfa - sp > HOTSPOT_STACK_MAX)
        return UNWIND_END_LOOP;
    if (read_word(walk, cfa - 8, &caller.ip))
        return UNWIND_END_TRUNCATED;
    if (fp_at)
        caller.fp_known = !read_word(walk, fp_at, &caller.fp);
    if (!caller.ip)
        return UNWIND_END_COMPLETE;
    become(walk, &caller);
    walk->exact = 0;
    walk->by_frame_pointer = 0;
    return STEP_DONE;
}

/* Code with a frame pointer. `sender` is where the caller's frame begins, if the code has kept it:
 * a caller's stack is extended for more arguments than it has passed. */
static __always_inline int hotspot_leave_by_pointer(struct walk *walk, __u64 sender)
{
    __u64 fp = walk->value[REGISTER_FP];
    int r = hotspot_leave(walk, fp + 16, fp);
    if (r == STEP_DONE && sender > fp + 16 && sender - fp < HOTSPOT_STACK_MAX)
        walk->value[REGISTER_SP] = sender;
    return r;
}

/* How many bytes of its frame a function that is about to return still has; 0: all of them. */
static __always_inline __u32 hotspot_returning(const __u8 *code)
{
    __u32 first = code[0] | code[1] << 8;
    if (code[0] == 0xc3) /* ret */
        return 8;
    if (code[0] == 0x5d) /* pop rbp */
        return 16;
    /* A safepoint's poll, between the two. */
    if (first == 0x3b49 && ((code[2] == 0xa7 && code[7] == 0x0f && code[8] == 0x87) ||
                            (code[2] == 0x67 && code[4] == 0x0f && code[5] == 0x87)))
        return 8; /* cmp rsp, [r15 + poll]; ja */
    if (first == 0x870f && code[6] == 0xc3)
        return 8; /* ja; ret */
    if (first == 0x0585 && code[6] == 0xc3)
        return 8; /* test eax, [poll]; ret */
    if (first == 0x8541 && code[3] == 0xc3)
        return 8; /* test eax, [r10]; ret */
    if ((first == 0x8b4d || first == 0x8b49) && code[7] == 0x41 && code[8] == 0x85 &&
        code[10] == 0xc3)
        return 8; /* mov r10, [r15 + poll]; test eax, [r10]; ret */
    return 0;
}

/* The same of one that has just been called: its instructions before and at the pointer. */
static __always_inline __u32 hotspot_entering(__u8 before, const __u8 *code)
{
    if (before == 0x55) /* push rbp */
        return 16;
    if (code[0] == 0x48 && code[1] == 0x89 && (code[2] == 0x6c || code[2] == 0xac))
        return 0; /* mov [rsp + n], rbp */
    return 8;
}

/* The instructions around the pointer of the innermost frame: code[0] is the one before. */
static __always_inline int hotspot_load_code(struct walk *walk)
{
    return walk->exact && !bpf_probe_read_user(walk->hotspot.code, sizeof(walk->hotspot.code),
                                               (void *)(walk->value[REGISTER_IP] - 1));
}

/* ---- the interpreter ---- */

/* Bytecode index by the address of a bytecode; beyond all of them when it is none of the method. */
static __always_inline __u64 hotspot_bytecode_index(const struct bpf_hotspot *machine,
                                                    __u64 const_method, __u64 address)
{
    __u64 index = address - const_method - machine->const_bytes;
    return index < 65536 ? index : BPF_PYTHON_UNIT_MASK;
}

static __always_inline int hotspot_interpreted(struct walk *walk, const struct bpf_hotspot *machine)
{
    __u64 fp = walk->value[REGISTER_FP], sp = walk->value[REGISTER_SP];
    __u64 method = 0, const_method = 0, bytecode = 0, sender = 0;
    int framed = is_known(walk, REGISTER_FP) && fp > sp && fp - sp < HOTSPOT_STACK_MAX &&
                 !read_word(walk, fp + (__s64)machine->frame_method, &method) &&
                 !read_word(walk, fp + (__s64)machine->frame_bytecode, &bytecode) &&
                 !read_word(walk, fp - 8, &sender) &&
                 !load_word(method + machine->method_const, &const_method) && const_method;
    /* Before its frame is made, a method is in a register, and its caller's stack pointer, too. */
    if (!framed && walk->exact) {
        method = walk->value[REGISTER_BASE];
        if (load_word(method + machine->method_const, &const_method))
            return STEP_NATIVE;
    } else if (!framed) {
        return STEP_NATIVE;
    }
    __u64 unit = hotspot_bytecode_index(machine, const_method, bytecode);
    if (walk->exact && framed) {
        __u64 now =
            hotspot_bytecode_index(machine, const_method, walk->value[HOTSPOT_REGISTER_BYTECODE]);
        if (now != BPF_PYTHON_UNIT_MASK)
            unit = now;
    }
    struct bpf_code_event code = {
        .address = method, .file = const_method, .first_line = BPF_HOTSPOT_INTERPRETED};
    hotspot_add(walk, &code, unit);
    return framed ? hotspot_leave_by_pointer(walk, sender) : hotspot_leave(walk, sp + 8, 0);
}

/* ---- compiled code and stubs ---- */

#define BLOB(offset) field_of(walk->hotspot.bytes, machine->offset, BPF_HOTSPOT_BLOB_BYTES)

static __always_inline int hotspot_leave_framed(struct walk *walk, __u64 size, __u32 entering)
{
    const __u8 *code = walk->hotspot.code;
    __u64 sp = walk->value[REGISTER_SP];
    if (hotspot_load_code(walk)) {
        __u32 left = entering ? hotspot_entering(code[0], code + 1) : hotspot_returning(code + 1);
        if (left == 8)
            return hotspot_leave(walk, sp + 8, 0);
        if (left == 16)
            return hotspot_leave(walk, sp + 16, sp);
        if (entering)
            return hotspot_leave(walk, sp + size, 0);
    }
    return hotspot_leave(walk, sp + size, sp + size - 16);
}

/* Stubs without a size: most have a frame pointer, but for their first and last instructions. */
static __always_inline int hotspot_leave_stub(struct walk *walk, __u32 kind)
{
    const __u8 *code = walk->hotspot.code;
    __u64 fp = walk->value[REGISTER_FP], sp = walk->value[REGISTER_SP];
    int pointed = is_known(walk, REGISTER_FP) && fp >= sp && fp - sp < HOTSPOT_STACK_MAX;
    if (kind == HOTSPOT_FRAMELESS)
        return hotspot_leave(walk, sp + 8, 0);
    if (hotspot_load_code(walk)) {
        if (code[1] == 0x55 || code[1] == 0xc3 || !pointed)
            return hotspot_leave(walk, sp + 8, 0);
        if (code[0] == 0x55)
            return hotspot_leave(walk, sp + 16, sp);
    }
    return pointed ? hotspot_leave_by_pointer(walk, 0) : STEP_NATIVE;
}

/* A method whose code is no longer valid returns to a handler, and has its true place aside. */
static __always_inline void hotspot_find_place(struct walk *walk, const struct bpf_hotspot *machine,
                                               __u64 blob)
{
    __u64 deopt = BLOB(nmethod_deopt), ip;
    if (machine->deopt_offset)
        deopt = blob + (__u32)deopt;
    __u64 at = walk->value[REGISTER_SP] + (__u32)BLOB(nmethod_original_pc);
    if (!walk->exact && walk->value[REGISTER_IP] == deopt && !read_word(walk, at, &ip) &&
        ip >= machine->low && ip < machine->high)
        walk->value[REGISTER_IP] = ip;
}

/* Adds the frame in the code cache that the registers are in, and goes on to its caller. */
__noinline int hotspot_step(struct walk *walk)
{
    if (!walk)
        return UNWIND_END_NO_TABLE;
    const struct bpf_hotspot *machine = hotspot_of(walk);
    if (!machine)
        return STEP_NATIVE;
    if (walk->count > BPF_FRAMES_MAX)
        return UNWIND_END_LIMIT;
    __u64 address = walk->value[REGISTER_IP] - !walk->exact;
    if (address >= machine->interpreter[0] && address < machine->interpreter[1])
        return hotspot_interpreted(walk, machine);
    __u64 blob = hotspot_find_blob(machine, address);
    __u32 bytes = machine->blob_bytes;
    KEEP(bytes);
    if (!blob || bytes > BPF_HOTSPOT_BLOB_BYTES ||
        bpf_probe_read_user(walk->hotspot.bytes, bytes, (void *)blob))
        return STEP_NATIVE;
    __u32 kind = hotspot_kind_of(walk, BLOB(blob_name));
    __s32 words = (__s32)BLOB(blob_frame_size);
    __s32 complete = machine->short_complete ? (__s16)BLOB(blob_frame_complete)
                                             : (__s32)BLOB(blob_frame_complete);
    if (kind == HOTSPOT_COMPILED) {
        hotspot_find_place(walk, machine, blob);
        address = walk->value[REGISTER_IP] - !walk->exact;
        __u64 begin = machine->code_offset ? blob + (__u32)BLOB(blob_code) : BLOB(blob_code);
        struct bpf_code_event code = {.address = blob,
                                      .file = BLOB(nmethod_method),
                                      .lines = (__u32)BLOB(nmethod_compile_id),
                                      .first_line = BPF_HOTSPOT_COMPILED};
        hotspot_add(walk, &code, address - begin);
        return hotspot_leave_framed(walk, (__u64)(__u32)words * 8,
                                    walk->exact && (__s64)(address - begin) < complete);
    }
    if (settings.interpreter || walk->value[REGISTER_IP] != machine->call_stub) {
        struct bpf_code_event code = {
            .address = blob, .name = BLOB(blob_name), .first_line = BPF_HOTSPOT_STUB};
        hotspot_add(walk, &code, 0);
    }
    if (words > 0)
        return hotspot_leave_framed(walk, (__u64)(__u32)words * 8, 0);
    return hotspot_leave_stub(walk, kind);
}
#undef BLOB
