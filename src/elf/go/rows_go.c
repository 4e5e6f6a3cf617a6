// SPDX-License-Identifier: Apache-2.0
// Rules for Go's functions: see rows_go.h. The table gives the distance to the CFA; where the
// caller's frame pointer is, and where a function begins to run on another stack, is read off the
// code, of which Go's assembler writes few forms.

#include "elf/go/rows_go.h"

#include "arch/x86_64/x86_64.h"
#include "base/memory.h"
#include "elf/go/gopclntab.h"

#define CODE_PIECE (64u << 10)
#define FRAME_MAX (1 << 30) /* Go refuses frames of 1 GiB */

struct go_rows {
    struct elf_file *file;
    struct gopclntab table;
    /* Code that was read last: functions come in order. */
    uint64_t code_address;
    size_t code_length;
    uint8_t code[CODE_PIECE];
};

struct go_rows *go_rows_new(struct elf_file *file)
{
    struct gopclntab table;
    if (gopclntab_load(file, &table, NULL) < 0)
        return NULL;
    struct go_rows *go = memory_alloc(sizeof(*go));
    go->file = file;
    go->table = table;
    go->code_length = 0;
    return go;
}

void go_rows_free(struct go_rows *go)
{
    if (!go)
        return;
    gopclntab_release(&go->table);
    free(go);
}

uint32_t go_rows_count(const struct go_rows *go)
{
    return go->table.function_count;
}

/* ---- what is special ---- */

enum kind {
    KIND_USUAL,
    KIND_ROOT,    /* has no caller */
    KIND_SIGNAL,  /* what a signal's handler returns to */
    KIND_SWITCH,  /* goes on on another stack: its frame pointer leads back */
    KIND_LEAVE,   /* continues on another stack for good: the code before isn't a caller */
    KIND_UNKNOWN, /* writes sp in a way that the table can't say */
};

static enum kind kind_of(const struct gopclntab_function *function)
{
    static const struct {
        const char *name;
        enum kind kind;
    } special[] = {
        {"_rt0_amd64", KIND_ROOT},
        {"_rt0_amd64_linux", KIND_ROOT},
        {"gogo", KIND_LEAVE},
        {"runtime.asmcgocall", KIND_SWITCH},
        /* On both its stacks the frame is the same, and on the second it says that the goroutine
         * had called it. */
        {"runtime.cgocallback", KIND_USUAL},
        {"runtime.cgocallback_gofunc", KIND_USUAL},
        {"runtime.goexit", KIND_ROOT},
        {"runtime.gogo", KIND_LEAVE},
        {"runtime.jmpdefer", KIND_LEAVE},
        {"runtime.mcall", KIND_LEAVE},
        {"runtime.morestack", KIND_LEAVE},
        {"runtime.mstart", KIND_ROOT},
        {"runtime.nanotime", KIND_SWITCH},
        {"runtime.nanotime1", KIND_SWITCH},
        {"runtime.rt0_go", KIND_ROOT},
        {"runtime.sigreturn", KIND_SIGNAL},
        {"runtime.sigreturn__sigaction", KIND_SIGNAL},
        /* Go ends its own walks here; the kernel's frame is right behind it. */
        {"runtime.sigtramp", KIND_USUAL},
        {"runtime.systemstack", KIND_SWITCH},
        {"runtime.walltime", KIND_SWITCH},
        {"runtime.walltime1", KIND_SWITCH},
        {"time.now", KIND_SWITCH},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(special); i++)
        if (!strcmp(function->name, special[i].name))
            return special[i].kind;
    if (function->flags & GOPCLNTAB_TOP_FRAME)
        return KIND_ROOT;
    /* The runtime's own keep to the frame pointer's convention; others may use fp for data. */
    if (function->flags & GOPCLNTAB_SP_WRITE)
        return strncmp(function->name, "runtime.", 8) ? KIND_UNKNOWN : KIND_SWITCH;
    return KIND_USUAL;
}

/* Some are returned to without having called: their address is put where a return address would be,
 * and looked up one byte before, as if behind a call. */
static uint64_t first_address(const struct gopclntab_function *function, enum kind kind)
{
    bool planted = kind == KIND_SIGNAL || !strcmp(function->name, "runtime.systemstack_switch");
    return function->start - (planted && function->start);
}

bool go_rows_range(struct go_rows *go, uint32_t number, uint64_t *ret_start, uint64_t *ret_end)
{
    struct gopclntab_function function;
    if (!gopclntab_function(&go->table, number, &function) || function.start >= function.end)
        return false;
    enum kind kind = kind_of(&function);
    if (!function.sp_values && kind != KIND_ROOT && kind != KIND_SIGNAL)
        return false;
    *ret_start = first_address(&function, kind);
    *ret_end = function.end;
    return true;
}

/* ---- reading code ---- */

/* `length` bytes at an address, or NULL. */
static const uint8_t *code_at(struct go_rows *go, uint64_t address, size_t length)
{
    if (address < go->code_address || address - go->code_address > go->code_length ||
        go->code_length - (address - go->code_address) < length) {
        size_t want = sizeof(go->code);
        go->code_length = 0;
        /* Less at the end of a segment. */
        while (want >= length && elf_read_address(go->file, address, go->code, want) < 0)
            want /= 2;
        if (want < length)
            return NULL;
        go->code_address = address;
        go->code_length = want;
    }
    return go->code + (address - go->code_address);
}

/* Where the caller's frame pointer has been saved, given where the frame is first there; 0 when it
 * is not. */
static uint64_t saved_from(struct go_rows *go, uint64_t frame_start, int32_t frame)
{
    const uint8_t *code = code_at(go, frame_start - 1, 9);
    uint32_t bytes;
    return code && x86_64_go_saves_fp(code, (uint32_t)frame, &bytes) ? frame_start + bytes : 0;
}

struct stretch {
    uint64_t start, end;
};

/* From the first write of sp up to behind the last one. Nothing, when none is found; the whole
 * function, when the table says that there is one all the same. */
static struct stretch find_sp_writes(struct go_rows *go, const struct gopclntab_function *function)
{
    struct stretch found = {function->end, function->end};
    unsigned count = 0;
    for (uint64_t at = function->start; at + 4 <= function->end; at++) {
        const uint8_t *code = code_at(go, at, 4);
        size_t length = code ? x86_64_sp_write_bytes(code) : 0;
        if (!code)
            break;
        if (length) {
            found.start = MIN(found.start, at);
            found.end = MIN(at + length, function->end);
            count++;
        }
    }
    if (!count && (function->flags & GOPCLNTAB_SP_WRITE))
        found.start = function->start;
    /* One write never comes back. */
    if (count < 2)
        found.end = function->end;
    return found;
}

/* ---- rules ---- */

struct outline {
    enum kind kind;
    bool has_frame;      /* once it was there, `saved_from` is known */
    uint64_t saved_from; /* 0: fp is not saved */
    bool keeps_fp;       /* while it is on another stack, fp leads back */
    struct stretch away; /* where sp may be another stack's */
};

static struct unwind_rule rule_at(const struct outline *outline, uint64_t address, int32_t frame)
{
    bool saved = outline->saved_from && address >= outline->saved_from && frame >= 8;
    bool away = address >= outline->away.start && address < outline->away.end;
    if (frame < 0 || frame > FRAME_MAX || (away && outline->kind == KIND_UNKNOWN))
        return (struct unwind_rule){.cfa = UNWIND_CFA_NONE};
    if (away && !outline->keeps_fp)
        return (struct unwind_rule){.cfa = UNWIND_CFA_END};
    struct unwind_rule rule = {.cfa = UNWIND_CFA_SP, .cfa_offset = frame + 8};
    if (saved || away) {
        rule.saved = UNWIND_FP_AT_CFA;
        rule.fp_slot = -2;
    }
    /* Without a frame of its own, fp is the caller's and leads to the caller's caller: one frame
     * is missing, which is better than all. */
    if (away) {
        rule.cfa = UNWIND_CFA_OTHER_STACK;
        rule.cfa_offset = 16;
    }
    return rule;
}

static uint64_t next_change(const struct outline *outline, uint64_t address, uint64_t end)
{
    if (outline->saved_from > address)
        end = MIN(end, outline->saved_from);
    if (outline->away.start > address)
        end = MIN(end, outline->away.start);
    if (outline->away.end > address)
        end = MIN(end, outline->away.end);
    return end;
}

void go_rows_compile(struct go_rows *go, uint32_t number, go_rows_put_fn put, void *context)
{
    static const struct unwind_rule root = {.cfa = UNWIND_CFA_END}, none = {.cfa = UNWIND_CFA_NONE};
    /* The kernel's frame, as for C: see x86_64.c. */
    static const struct unwind_rule signal = {.cfa = UNWIND_CFA_SIGNAL, .cfa_offset = 160};
    struct gopclntab_function function;
    struct gopclntab_run run;
    if (!gopclntab_function(&go->table, number, &function))
        return;
    struct outline outline = {.kind = kind_of(&function)};
    if (outline.kind == KIND_ROOT || outline.kind == KIND_SIGNAL) {
        put(context, first_address(&function, outline.kind),
            outline.kind == KIND_ROOT ? root : signal);
        return;
    }
    /* Up to Go 1.15 they kept sp in fp. */
    outline.keeps_fp = outline.kind == KIND_SWITCH && go->table.layout > GOPCLNTAB_1_2;
    if (outline.kind != KIND_USUAL)
        outline.away = find_sp_writes(go, &function);
    if (outline.kind == KIND_LEAVE)
        outline.away.end = function.end;
    gopclntab_run_start(&run, &go->table, &function, function.sp_values);
    while (gopclntab_run_next(&run)) {
        if (!outline.has_frame && run.value > 0) {
            outline.has_frame = true;
            outline.saved_from = saved_from(go, run.start, run.value);
        }
        uint64_t start = run.start;
        if (start == function.start)
            start = first_address(&function, outline.kind);
        for (uint64_t at = start; at < run.end; at = next_change(&outline, at, run.end))
            put(context, at, rule_at(&outline, at, run.value));
    }
    if (run.end < function.end)
        put(context, run.end, none);
}
