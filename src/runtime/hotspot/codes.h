/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code of HotSpot that samples have met, by identity (bpf/runtimes/runtime.h): methods that are
 * interpreted, compiled methods with the methods that were inlined into them, and stubs. Each is
 * read once, as soon as it is known of. One thread at a time.
 */
#pragma once

#include "base/idtable.h"
#include "runtime/hotspot/method.h"

/* Beyond these, the owner forgets all of them and they are read anew: see hotspot_codes_full. */
#define HOTSPOT_CODES_MAX (1u << 17)
#define HOTSPOT_CODES_BYTES_MAX (32u << 20)

#define HOTSPOT_INLINED_MAX 64 /* methods at one place of compiled code */

/* The members of bpf_code_event. Equal at two times means that it is the same code. */
struct hotspot_mark {
    uint64_t address, file, name, lines;
    uint32_t kind; /* enum bpf_hotspot_code */
};

struct hotspot_pc {
    uint32_t offset; /* from the beginning of the code: the end of a stretch */
    uint32_t scope;
};

#define HOTSPOT_SCOPE_NONE UINT32_MAX

/* A method at a place: inlined into the next, if any. */
struct hotspot_scope {
    uint32_t outer; /* scope */
    uint32_t method;
    uint32_t line;
};

struct hotspot_known {
    uint64_t identity;
    uint32_t pid;
    bool named, ambiguous; /* ambiguous: two pieces of code with one identity */
    struct hotspot_mark mark;
    uint32_t method;              /* HOTSPOT_SCOPE_NONE: a stub */
    const char *stub;             /* its name */
    const struct hotspot_pc *pcs; /* by offset; NULL: interpreted, or without inlined methods */
    const struct hotspot_scope *scopes;
    uint32_t pc_count;
};

struct hotspot_codes {
    struct hotspot_known *list;
    size_t count, capacity;
    struct id_table index; /* by identity */
    struct hotspot_named *methods;
    size_t method_count, method_capacity;
    struct id_table method_index; /* by process and address */
    struct arena arena;
    uint64_t named, unreadable, ambiguous; /* so far */
};

void hotspot_codes_release(struct hotspot_codes *codes);
void hotspot_codes_clear(struct hotspot_codes *codes);
bool hotspot_codes_full(const struct hotspot_codes *codes);

/* Reads code that was met in the process; machine is NULL when that is not known. */
void hotspot_codes_take(struct hotspot_codes *codes, const struct hotspot_process *machine,
                        const struct runtime_memory *memory, uint32_t pid, uint64_t identity,
                        const struct hotspot_mark *mark);
/* NULL: it was never met. */
const struct hotspot_known *hotspot_codes_find(const struct hotspot_codes *codes,
                                               uint64_t identity);

struct hotspot_frame {
    const char *function, *file;
    uint32_t line;
    bool inlined; /* into the next */
};

/* The frames of a place (bpf/runtimes/hotspot.h: unit), innermost first. 0: they have no names. */
size_t hotspot_codes_frames(const struct hotspot_codes *codes, const struct hotspot_known *known,
                            uint32_t unit, struct hotspot_frame ret_frames[HOTSPOT_INLINED_MAX]);
