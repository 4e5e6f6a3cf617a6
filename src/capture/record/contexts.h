/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contexts of threads in processes: which of a process's files has the variable, how the kernel
 * gets to it, what the process publishes about itself, and the attributes that samples name by
 * their hash. Processes that were forked share the way to the variable. One thread at a time.
 */
#pragma once

#include "base/idtable.h"
#include "context/process.h"
#include "context/thread.h"

struct process;
struct processes;
struct module;

/* A way to the contexts of threads, shared by the processes that have the same memory layout. */
struct thread_contexts {
    uint32_t users;
    uint32_t number; /* as in struct bpf_process; 0: the kernel isn't told */
    struct contexts *owner;
    struct bpf_context described;
};

/* Of one process. Zero-initialised knows nothing. */
struct process_contexts {
    struct thread_contexts *threads;   /* NULL: it has none */
    uint64_t seen;                     /* the changes of its mappings that were looked at, + 1 */
    int64_t next_ns;                   /* when to look again, */
    unsigned looks;                    /* after so many times */
    struct process_context *published; /* NULL: nothing was found yet */
    uint64_t published_at;             /* the address of its header; 0: not known */
    int64_t published_next_ns;
    unsigned published_looks;
    struct request_counts *requests; /* requests.c; NULL: none were read */
};

/* Attributes, as they were sent. */
struct attribute_set {
    uint64_t hash;
    const uint8_t *bytes;
    uint16_t length;
    uint16_t source; /* enum bpf_context_kind */
};

struct contexts {
    bool off;
    struct bpf_context *table; /* the kernel's, of BPF_CONTEXTS_MAX; NULL: there is none */
    struct thread_contexts *places[BPF_CONTEXTS_MAX];
    uint32_t next_place, generation;
    struct attribute_set *sets;
    size_t set_count, set_capacity;
    struct id_table index; /* by hash */
    struct arena arena;
    uint64_t attached;    /* processes */
    uint64_t published;   /* processes that publish a context */
    uint64_t unreadable;  /* times that one was not what it has to be */
    uint64_t places_full; /* processes that the kernel could not be told of */
    uint64_t unknown_sets;
};

void contexts_init(struct contexts *contexts);
void contexts_release(struct contexts *contexts);

/* Looks for the ways of a process, if its mappings have changed or nothing was found the last time.
 * Returns whether the kernel has to be told of the process again. */
bool contexts_look(struct contexts *contexts, struct process *process,
                   struct runtime_reader *reader, int64_t now_ns);

/* Looks for what the process publishes, unless that was done just now. True: it has changed. With
 * `wanted`, a number was met that has no name yet. Users whose share of such searches is used up
 * wait: a list of mappings can be long, and whoever made it chose its length. */
bool contexts_look_published(struct contexts *contexts, struct processes *processes,
                             struct process *process, struct runtime_reader *reader, bool wanted,
                             int64_t now_ns);

/* A child has its parent's memory, but for what was published. */
void contexts_share(struct process_contexts *child, const struct process_contexts *parent);
void contexts_leave(struct process_contexts *contexts);

void contexts_take_attributes(struct contexts *contexts, const struct bpf_attributes_event *event);

/* A name and a value. */
struct context_attribute {
    const char *name, *value;
};
#define CONTEXT_ATTRIBUTES_MAX 64
#define CONTEXT_TEXT_BYTES 8192 /* of all names and values of a sample */

/* The attributes of a sample of the process, up to CONTEXT_ATTRIBUTES_MAX; their texts are in
 * `text`. Names of a thread's record that aren't known are left out, and *ret_unnamed is set. */
size_t contexts_attributes(struct contexts *contexts, const struct process *process, uint64_t hash,
                           char text[CONTEXT_TEXT_BYTES],
                           struct context_attribute ret_attributes[CONTEXT_ATTRIBUTES_MAX],
                           bool *ret_unnamed);

/* Beyond their limit all attributes are forgotten, and sent when they are met again. */
void contexts_clear_attributes(struct contexts *contexts);
bool contexts_attributes_full(const struct contexts *contexts);
