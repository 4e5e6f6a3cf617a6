/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trials: each does in small what a recording does, takes it back, and says how it went. All return
 * 0 or a negative code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Opens an event, ours or everybody's, by the CPU clock or by cycles, with the kernel or without.
 */
struct perf_trial {
    bool everybody, kernel, cycles;
    bool ring; /* also maps a ring buffer of the size that recordings use without privilege */
};
int try_perf_event(const struct perf_trial *trial);

/* Loads a program of two instructions. */
int try_bpf_program(void);
int try_bpf_ring_buffer(void);
/* Loads and attaches the sampler itself. */
int try_bpf_sampler(bool everybody, struct error *error);
/* ... and with it the programs that follow waits. */
int try_bpf_waits(struct error *error);
/* By the kernel's type information. */
bool kernel_has_tracepoint(const char *name);

/* Traces a child of ours, as recordings do. */
int try_ptrace_child(struct error *error);
/* Traces a process that is not a child, as `assay stacks` does. */
int try_ptrace_other(void);

/* The first address in /proc/kallsyms that isn't 0. */
int try_kernel_symbols(void);

/* Capabilities that are in effect: a bit each, as in linux/capability.h. */
uint64_t effective_capabilities(void);
/* A number in a small file; `otherwise` when it can't be read. */
long number_in_file(const char *path, long otherwise);
/* The first line of a small file, "" when it can't be read. */
const char *line_in_file(const char *path, char *line, size_t length);
