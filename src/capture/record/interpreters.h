/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interpreters in processes: found by what a process has mapped, described to the walk in the
 * kernel, and the code objects that its frames mean. Processes that were forked share one
 * description until they execute another program. One thread at a time.
 */
#pragma once

#include "runtime/python/codes.h"

struct process;

/* One interpreter, shared by the processes that have the same memory layout. */
struct interpreter {
    uint32_t users;
    uint32_t runtime; /* as the kernel knows it (bpf/runtime.h); 0: it doesn't */
    struct interpreters *owner;
    struct bpf_python *place; /* in the kernel's table; NULL: none */
    struct python_process python;
};

/* All processes' together. */
struct interpreters {
    bool off; /* nobody wants frames of interpreters */
    struct runtime_reader reader;
    struct python_codes codes;
    struct bpf_python *table; /* the kernel's, of BPF_RUNTIMES_MAX; NULL: there is none */
    struct interpreter *places[BPF_RUNTIMES_MAX]; /* who is in the table */
    uint32_t next_place, generation;
    uint64_t attached, refused, places_full;
    const char *refusal; /* why the last one was, in a few words; NULL: none was */
};

void interpreters_init(struct interpreters *interpreters);
void interpreters_release(struct interpreters *interpreters);

/* Looks for the interpreter of a process that has none yet, unless it was looked for just now.
 * Returns whether it has been found by this call. */
bool interpreters_look(struct interpreters *interpreters, struct process *process, int64_t now_ns);

/* What a process has mapped, if it is an interpreter, whether or not its frames can be read. */
const struct python_binary *interpreters_binary(const struct process *process);

/* A code object that the kernel has met, also in a process that nobody has been told of yet. */
void interpreters_take_code(struct interpreters *interpreters, const struct bpf_code_event *event);

/* Whether the address is in the evaluation function. NULL is no interpreter. */
bool interpreter_evaluates(const struct interpreter *interpreter, uint64_t address);

struct interpreter *interpreter_ref(struct interpreter *interpreter);
void interpreter_unref(struct interpreter *interpreter);
