/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interpreters in processes: found by what a process has mapped, described to the walk in the
 * kernel, and the code objects that its frames mean. Processes that were forked share one
 * description until they execute another program. One thread at a time.
 */
#pragma once

#include "runtime/codes.h"
#include "runtime/hotspot/walk.h"
#include "runtime/php/binary.h"
#include "runtime/python/code.h"
#include "runtime/ruby/binary.h"
#include "runtime/v8/code.h"

struct process;
struct module;

/* One interpreter, shared by the processes that have the same memory layout. */
struct interpreter {
    uint32_t users;
    uint32_t runtime; /* as the kernel knows it (bpf/runtimes/runtime.h); 0: it doesn't */
    struct interpreters *owner;
    struct bpf_runtime *place; /* in the kernel's table; NULL: none */
    enum bpf_runtime_kind kind;
    union {
        struct python_process python;
        struct hotspot_process hotspot;
        struct v8_binary v8;
        struct php_binary php;
        struct ruby_binary ruby;
    };
};

/* All processes' together. */
struct interpreters {
    bool off; /* nobody wants frames of interpreters */
    struct runtime_reader reader;
    struct hotspot_codes hotspot_codes;
    struct runtime_codes codes; /* of all other runtimes */
    struct v8_scripts scripts;
    struct v8_context v8;      /* of the function that is being read */
    struct bpf_runtime *table; /* the kernel's, of BPF_RUNTIMES_MAX; NULL: there is none */
    struct interpreter *places[BPF_RUNTIMES_MAX]; /* who is in the table */
    uint32_t next_place, generation;
    uint64_t attached, refused, places_full;
    const char *refusal; /* why the last one was, in a few words; NULL: none was */
    const char *reason;  /* why the last look found none */
};

void interpreters_init(struct interpreters *interpreters);
void interpreters_release(struct interpreters *interpreters);

/* Looks for the interpreter of a process that has none yet, unless it was looked for just now.
 * Returns whether it has been found by this call. */
bool interpreters_look(struct interpreters *interpreters, struct process *process, int64_t now_ns);

/* The same for walks of copied stacks: only a runtime that such walks can step through, or Python
 * and V8 when `stopped` says that their frames come with the copy. Otherwise they have changed by
 * the time that the copy is walked. */
bool interpreters_look_for_walk(struct interpreters *interpreters, struct process *process,
                                bool stopped, int64_t now_ns);

/* The file of a process that holds its runtime; NULL: none does. */
const struct module *interpreters_binary(const struct process *process);

/* The runtime of a process, whether or not its frames can be read: its name ("python") and version,
 * each empty when it has none or that isn't known yet. They live as long as the process. */
void interpreters_describe(const struct process *process, const char **ret_name,
                           const char **ret_version);

/* A code object that the kernel has met, also in a process that nobody has been told of yet. */
void interpreters_take_code(struct interpreters *interpreters, const struct bpf_code_event *event);

/* Lets a walk in user space step through the process's runtime, if that is one whose frames need
 * it. `walk` is for the caller to release, also when false is returned: there is none. */
bool interpreters_walk(struct interpreters *interpreters, const struct process *process,
                       struct unwind_input *input, struct hotspot_walk *walk);
/* The frame of a step of that walk; its code is read when needed. Innermost first; 0: it has no
 * name. */
size_t interpreters_step_frames(struct interpreters *interpreters, const struct process *process,
                                const struct hotspot_step *step,
                                struct hotspot_frame ret_frames[HOTSPOT_INLINED_MAX]);

/* A function of the process's interpreter, Python or V8, that a frame had while its thread was
 * stopped: it is read if need be. NULL: there is no room for it. */
const struct runtime_known *interpreters_code(struct interpreters *interpreters,
                                              const struct process *process,
                                              const struct runtime_mark *mark);

/* Beyond their limits all code objects are forgotten, and read when they are met again. */
void interpreters_clear_codes(struct interpreters *interpreters);
bool interpreters_codes_full(const struct interpreters *interpreters);

/* Whether the address is in Python's evaluation function. NULL is no interpreter. */
bool interpreter_evaluates(const struct interpreter *interpreter, uint64_t address);
/* Whether that function is part of others, so that its calls are where the chain of frames says. */
bool interpreter_evaluates_anywhere(const struct interpreter *interpreter);

struct interpreter *interpreter_ref(struct interpreter *interpreter);
void interpreter_unref(struct interpreter *interpreter);
