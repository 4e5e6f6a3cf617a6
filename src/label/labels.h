/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Label sets identify series. A set is sorted by name (byte order), each name is there once, and an
 * empty value removes the label, as in Prometheus. Zero-initialised is empty and ready.
 *
 * The set owns its texts; pointers stay valid until labels_clear or labels_release, also when their
 * label is replaced or removed. Any number of threads can read a set that no thread changes.
 *
 * label/rules/policy.h checks that names and values are UTF-8 and short enough.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include "base/arena.h"
#include "base/buffer.h"

/* The label that every series has. */
#define LABEL_SERVICE_NAME "service_name"

/* Set by the server on every series that comes in: who observed it ("agent", "push", "scrape"). */
#define LABEL_SOURCE "__source__"

/* Recordings on demand: series of their own, which answers leave out unless asked for them. */
#define LABEL_RECORDING "recording"

/* Set by the server: names of labels that samples brought, so that a series is a part of its
 * process's profile only. */
#define LABEL_SPLIT "__split__"
#define LABEL_SPLIT_SEPARATOR "\n"

/* Labels that no list shows. */
static inline bool label_is_internal(const char *name)
{
    return !strcmp(name, LABEL_SOURCE) || !strcmp(name, LABEL_SPLIT);
}

struct label {
    const char *name; /* NUL-terminated, as is the value */
    const char *value;
};

struct labels {
    struct label *list;
    size_t count, capacity;
    struct arena arena;
};

void labels_release(struct labels *labels);
#define _cleanup_labels_ _cleanup_(labels_release)
void labels_clear(struct labels *labels);

/* Sets or replaces; an empty value removes, an empty name does nothing. The texts are copied, and
 * may be of this very set. With lengths, a text ends at its first NUL if there is one. */
void labels_set(struct labels *labels, const char *name, const char *value);
void labels_set_n(struct labels *labels, const char *name, size_t name_length, const char *value,
                  size_t value_length);
static inline void labels_remove(struct labels *labels, const char *name)
{
    labels_set(labels, name, "");
}

/* NULL: not there. */
const char *labels_get(const struct labels *labels, const char *name);

/* `to` becomes a copy of `from`; what it held is gone. */
void labels_copy(struct labels *to, const struct labels *from);

/* Its memory, besides the struct itself. */
size_t labels_memory(const struct labels *labels);

/* The same for equal sets, on every machine and in every version of the program. */
uint64_t labels_hash(const struct labels *labels);
bool labels_equal(const struct labels *a, const struct labels *b);

/* -1, 0 or 1: by the first label that differs, name before value; a prefix comes first. */
int labels_compare(const struct labels *a, const struct labels *b);

/* Appends {a="b","c.d"="e"}: what selector_parse reads. */
void labels_write(struct buffer *out, const struct labels *labels);
