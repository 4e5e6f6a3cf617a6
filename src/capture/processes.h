/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes and what they have mapped: learned from events, and from /proc to catch up with those
 * that were there before. One thread at a time.
 */
#pragma once

#include <sys/types.h>

#include "capture/modules.h"
#include "elf/unwind.h"

struct mapping {
    uint64_t start, end, offset;
    uint64_t bias;         /* address in the process - address in the file */
    struct module *module; /* NULL: no file, such as a JIT's code */
    uint32_t id;           /* for the owner of the table; 0 at first */
};

struct process {
    uint32_t pid;
    char name[16];            /* of its main thread */
    struct mapping *mappings; /* executable ones, by start */
    size_t count, capacity;
};

/* A thread that has a name of its own. */
struct thread {
    uint32_t tid;
    char name[16];
};

struct processes {
    struct process **list;
    size_t count, capacity;
    struct id_table index; /* by pid */
    struct thread *threads;
    size_t thread_count, thread_capacity;
    struct id_table thread_index; /* by tid */
    struct modules *modules;
    uint64_t refused; /* mappings, processes and threads beyond the limits */
};

#define PROCESSES_MAX 65536
#define THREADS_MAX 262144
#define MAPPINGS_MAX 65536 /* of one process; the kernel's own limit is near it */

void processes_init(struct processes *processes, struct modules *modules);
void processes_release(struct processes *processes);

/* The process, added if it is new: NULL beyond the limit. */
struct process *processes_get(struct processes *processes, uint32_t pid);

/* A thread calls itself something. */
void processes_name_thread(struct processes *processes, uint32_t tid, const char *name);

/* What a thread calls itself, or else its process. */
const char *processes_thread_name(const struct processes *processes, const struct process *process,
                                  uint32_t tid);

/* Its name and what it has mapped now, from /proc. */
void process_catch_up(struct processes *processes, struct process *process);

/* It runs another program: all mappings go. */
void process_clear(struct process *process);

/* A child begins with its parent's mappings. */
void process_copy(struct process *child, const struct process *parent);

/* New executable memory, in place of what was there. */
void process_map(struct processes *processes, struct process *process, uint64_t start,
                 uint64_t length, uint64_t offset, const char *path);

struct mapping *process_find(const struct process *process, uint64_t address);

/* What the walker wants to know of a `struct process`: an unwind_find_fn. */
bool process_place(void *process, uint64_t address, struct unwind_place *ret_place);
