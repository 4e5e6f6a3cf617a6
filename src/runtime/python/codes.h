/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code objects that samples have met, by identity (bpf/runtime.h), with their names: each is read
 * once, as soon as it is known of. One thread at a time.
 */
#pragma once

#include "base/idtable.h"
#include "runtime/python/code.h"

/* Beyond these, the owner forgets all of them and they are read anew: see python_codes_full. */
#define PYTHON_CODES_MAX (1u << 17)
#define PYTHON_CODES_BYTES_MAX (24u << 20)

enum python_known_state {
    PYTHON_KNOWN_NAMED,
    PYTHON_KNOWN_UNREADABLE, /* it had changed, or its process had ended, when it was read */
    PYTHON_KNOWN_AMBIGUOUS,  /* two code objects with one identity */
};

struct python_known {
    uint64_t identity;
    uint32_t pid;
    enum python_known_state state;
    struct python_code_mark mark;
    struct python_code code;
    const char *function; /* "main.py:handler" */
};

struct python_codes {
    struct python_known *list;
    size_t count, capacity;
    struct id_table index; /* by identity */
    struct arena arena;
    uint64_t named, unreadable, ambiguous; /* so far */
};

void python_codes_release(struct python_codes *codes);
void python_codes_clear(struct python_codes *codes);
bool python_codes_full(const struct python_codes *codes);

/* Reads a code object that was met in the process; python is NULL when that is not known. */
void python_codes_take(struct python_codes *codes, const struct python_process *python,
                       const struct runtime_memory *memory, uint32_t pid, uint64_t identity,
                       const struct python_code_mark *mark);
/* NULL: it was never met. */
const struct python_known *python_codes_find(const struct python_codes *codes, uint64_t identity);

/* The identity that user space gives the code objects that it meets itself. */
uint64_t python_codes_identity(uint32_t pid, const struct python_code_mark *mark);
