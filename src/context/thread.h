/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where threads of a process say what they work on: the thread-local variable `otel_thread_ctx_v1`
 * of OTEP 4947, in an executable or a library, found as the program itself finds it. An
 * executable's variables are at a distance from the thread pointer that its file tells. Of a
 * library's, the loader has written into a slot of the library's how to get there: a descriptor, a
 * distance, or the numbers of module and variable.
 */
#pragma once

#include "bpf/shared.h"
#include "elf/file.h"
#include "runtime/memory.h"

#define THREAD_CONTEXT_SYMBOL "otel_thread_ctx_v1"

enum thread_access {
    THREAD_ACCESS_STATIC,     /* at `offset` from the thread pointer */
    THREAD_ACCESS_DESCRIPTOR, /* a slot with a function and its argument */
    THREAD_ACCESS_DISTANCE,   /* a slot with the distance from the thread pointer */
    THREAD_ACCESS_NUMBERS,    /* two slots: module, and offset in its block */
    THREAD_ACCESS_MODULE,     /* a slot with the module; the offset is `offset` */
};

/* As its file has it. */
struct thread_variable {
    enum thread_access access;
    int64_t offset;
    uint64_t slot; /* file address */
};

/* False when the file doesn't define the variable, or gives no way to it. */
bool thread_variable_find(struct elf_file *file, struct thread_variable *ret_variable);

/* In a process that has the file mapped with this bias. False when the loader has not written the
 * slots yet, or what is there makes no sense. */
bool thread_variable_attach(const struct thread_variable *variable, uint64_t bias, bool musl,
                            const struct runtime_memory *memory,
                            struct bpf_thread_context *ret_context);

/* The address of a thread's record, by its thread pointer; 0: it has none. The same steps as in the
 * kernel. */
uint64_t thread_context_record(const struct bpf_thread_context *context,
                               const struct runtime_memory *memory, uint64_t thread_pointer);
