/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's description of itself for external readers: the process context of OTEP 4719, a
 * mapping that is called OTEL_CTX. It has attributes of the process's resource, such as its
 * service's name, and the names of the attributes in contexts of threads (thread.h). The process
 * may write anything there: texts are limited, and what doesn't fit is left out and counted.
 */
#pragma once

#include "base/arena.h"
#include "runtime/memory.h"

#define PROCESS_CONTEXT_BYTES_MAX (256u << 10)
#define PROCESS_CONTEXT_KEYS_MAX 256
#define PROCESS_CONTEXT_ATTRIBUTES_MAX 64
#define PROCESS_CONTEXT_TEXT_MAX 1024

struct process_attribute {
    const char *key, *value; /* UTF-8; "" is none */
};

enum process_schema {
    PROCESS_SCHEMA_NONE, /* it says nothing of threads */
    PROCESS_SCHEMA_THREADS,
    PROCESS_SCHEMA_GO,
    PROCESS_SCHEMA_UNKNOWN, /* another than we can read: nothing of its threads is */
};

/* Zero-initialised is empty. */
struct process_context {
    uint64_t published_ns; /* another with each change; 0: none was read */
    struct process_attribute attributes[PROCESS_CONTEXT_ATTRIBUTES_MAX];
    size_t attribute_count;
    const char *keys[PROCESS_CONTEXT_KEYS_MAX];
    size_t key_count;
    enum process_schema schema;
    uint64_t requests; /* the address of libassay's counters; 0: it has none */
    size_t left_out;   /* attributes and keys beyond the limits */
    struct arena arena;
};

void process_context_release(struct process_context *context);

/* Of a message. False when it is damaged; what was read before stays. */
bool process_context_parse(const void *bytes, size_t length, struct process_context *ret_context);

enum process_context_read {
    PROCESS_CONTEXT_READ,
    PROCESS_CONTEXT_SAME,     /* as it was */
    PROCESS_CONTEXT_CHANGING, /* it was being written: try again */
    PROCESS_CONTEXT_INVALID,  /* it isn't one */
};

/* Through the header at `address`. `context` is what was read before, and is replaced. */
enum process_context_read process_context_update(const struct runtime_memory *memory,
                                                 uint64_t address, struct process_context *context);

/* The address of the header, by a line of /proc/PID/maps. False: it isn't such a mapping. */
bool process_context_of_mapping(const char *line, uint64_t *ret_address);

/* The value of an attribute; NULL: there is none. */
const char *process_context_attribute(const struct process_context *context, const char *key);
