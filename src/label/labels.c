// SPDX-License-Identifier: Apache-2.0
// Label sets as sorted arrays: they are small, and read far more often than changed.

#include "label/labels.h"

#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "label/quote.h"

void labels_release(struct labels *labels)
{
    free(labels->list);
    arena_release(&labels->arena);
    *labels = (struct labels){0};
}

void labels_clear(struct labels *labels)
{
    labels->count = 0;
    arena_release(&labels->arena);
}

/* The position of the name, or where it belongs. */
static size_t position(const struct labels *labels, const char *name, size_t length,
                       bool *ret_found)
{
    size_t low = 0, high = labels->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *other = labels->list[middle].name;
        /* strncmp stops at the NUL of a shorter name, which is then less. */
        int order = strncmp(other, name, length);
        if (order == 0 && other[length])
            order = 1;
        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_found = false;
    return low;
}

void labels_set_n(struct labels *labels, const char *name, size_t name_length, const char *value,
                  size_t value_length)
{
    /* Parts that are missing in a message are empty, with a NULL address. */
    name_length = name_length ? strnlen(name, name_length) : 0;
    value_length = value_length ? strnlen(value, value_length) : 0;
    if (!name_length)
        return;
    bool found;
    size_t at = position(labels, name, name_length, &found);
    if (!value_length) {
        if (found) {
            struct label *gone = &labels->list[at];
            labels->count--;
            memmove(gone, gone + 1, (labels->count - at) * sizeof(*gone));
        }
        return;
    }
    char *copy = arena_strndup(&labels->arena, value, value_length);
    if (found) {
        labels->list[at].value = copy;
        return;
    }
    array_reserve(labels->list, labels->capacity, labels->count + 1);
    struct label *label = &labels->list[at];
    memmove(label + 1, label, (labels->count - at) * sizeof(*label));
    labels->count++;
    *label = (struct label){arena_strndup(&labels->arena, name, name_length), copy};
}

void labels_set(struct labels *labels, const char *name, const char *value)
{
    labels_set_n(labels, name, strlen(name), value, strlen(value));
}

const char *labels_get(const struct labels *labels, const char *name)
{
    bool found;
    size_t at = position(labels, name, strlen(name), &found);
    return found ? labels->list[at].value : NULL;
}

void labels_copy(struct labels *to, const struct labels *from)
{
    if (to == from)
        return;
    labels_clear(to);
    array_reserve(to->list, to->capacity, from->count);
    size_t bytes = 0;
    for (size_t i = 0; i < from->count; i++)
        bytes += strlen(from->list[i].name) + strlen(from->list[i].value) + 2;
    arena_begin(&to->arena, bytes);
    for (size_t i = 0; i < from->count; i++) {
        const struct label *label = &from->list[i];
        to->list[i].name = arena_strndup(&to->arena, label->name, strlen(label->name));
        to->list[i].value = arena_strndup(&to->arena, label->value, strlen(label->value));
    }
    to->count = from->count;
}

size_t labels_memory(const struct labels *labels)
{
    return labels->arena.total_bytes + labels->capacity * sizeof(*labels->list);
}

uint64_t labels_hash(const struct labels *labels)
{
    /* Each text with its NUL, so that no two sets give the same bytes. */
    uint64_t hash = labels->count;
    for (size_t i = 0; i < labels->count; i++) {
        hash = XXH3_64bits_withSeed(labels->list[i].name, strlen(labels->list[i].name) + 1, hash);
        hash = XXH3_64bits_withSeed(labels->list[i].value, strlen(labels->list[i].value) + 1, hash);
    }
    return hash;
}

int labels_compare(const struct labels *a, const struct labels *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        int order = strcmp(a->list[i].name, b->list[i].name);
        if (order == 0)
            order = strcmp(a->list[i].value, b->list[i].value);
        if (order != 0)
            return order < 0 ? -1 : 1;
    }
    return a->count < b->count ? -1 : a->count > b->count;
}

bool labels_equal(const struct labels *a, const struct labels *b)
{
    return a->count == b->count && labels_compare(a, b) == 0;
}

void labels_write(struct buffer *out, const struct labels *labels)
{
    buffer_add_char(out, '{');
    for (size_t i = 0; i < labels->count; i++) {
        if (i)
            buffer_add_char(out, ',');
        label_write_name(out, labels->list[i].name);
        buffer_add_char(out, '=');
        label_write_quoted(out, labels->list[i].value);
    }
    buffer_add_char(out, '}');
}
