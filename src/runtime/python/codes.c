// SPDX-License-Identifier: Apache-2.0
// The code objects of samples: see codes.h.

#include "runtime/python/codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void python_codes_release(struct python_codes *codes)
{
    free(codes->list);
    id_table_release(&codes->index);
    arena_release(&codes->arena);
    *codes = (struct python_codes){0};
}

void python_codes_clear(struct python_codes *codes)
{
    codes->count = 0;
    id_table_clear(&codes->index);
    arena_release(&codes->arena);
}

bool python_codes_full(const struct python_codes *codes)
{
    return codes->count >= PYTHON_CODES_MAX || codes->arena.total_bytes > PYTHON_CODES_BYTES_MAX;
}

static struct python_known *find(const struct python_codes *codes, uint64_t identity)
{
    struct id_probe probe = id_probe_start(hash_word(identity));
    uint32_t id;
    while ((id = id_table_next(&codes->index, &probe)) != ID_NONE)
        if (codes->list[id].identity == identity)
            return &codes->list[id];
    return NULL;
}

const struct python_known *python_codes_find(const struct python_codes *codes, uint64_t identity)
{
    return find(codes, identity);
}

/* "main.py:handler"; of a package's own file, "json/__init__.py:loads". */
static const char *function_name(struct arena *arena, const struct python_code *code)
{
    const char *base = strrchr(code->file, '/');
    base = base ? base + 1 : code->file;
    if (!strcmp(base, "__init__.py") || !strcmp(base, "__main__.py"))
        while (base > code->file && base - 1 > code->file && base[-2] != '/')
            base--;
    base += *base == '/' && base == code->file;
    size_t room = strlen(base) + strlen(code->name) + 2;
    char *name = arena_alloc(arena, room);
    snprintf(name, room, "%s:%s", base, code->name);
    return name;
}

static void read_code(struct python_codes *codes, const struct python_process *python,
                      const struct runtime_memory *memory, struct python_known *known)
{
    if (!python || !python_code_read(python, memory, &known->mark, &codes->arena, &known->code)) {
        known->state = PYTHON_KNOWN_UNREADABLE;
        codes->unreadable++;
        return;
    }
    known->state = PYTHON_KNOWN_NAMED;
    known->function = function_name(&codes->arena, &known->code);
    codes->named++;
}

static bool same_mark(const struct python_code_mark *a, const struct python_code_mark *b)
{
    return a->address == b->address && a->file == b->file && a->name == b->name &&
           a->lines == b->lines && a->first_line == b->first_line;
}

void python_codes_take(struct python_codes *codes, const struct python_process *python,
                       const struct runtime_memory *memory, uint32_t pid, uint64_t identity,
                       const struct python_code_mark *mark)
{
    struct python_known *known = find(codes, identity);
    if (known && (known->pid != pid || !same_mark(&known->mark, mark))) {
        codes->ambiguous += known->state != PYTHON_KNOWN_AMBIGUOUS;
        known->state = PYTHON_KNOWN_AMBIGUOUS;
        return;
    }
    if (known) {
        if (known->state == PYTHON_KNOWN_UNREADABLE)
            read_code(codes, python, memory, known);
        return;
    }
    if (codes->count >= PYTHON_CODES_MAX)
        return;
    array_reserve(codes->list, codes->capacity, codes->count + 1);
    id_table_insert(&codes->index, hash_word(identity), (uint32_t)codes->count);
    known = &codes->list[codes->count++];
    *known = (struct python_known){.identity = identity, .pid = pid, .mark = *mark};
    read_code(codes, python, memory, known);
}

uint64_t python_codes_identity(uint32_t pid, const struct python_code_mark *mark)
{
    uint64_t hash = hash_word(pid ^ hash_word(mark->address));
    hash = hash_word(hash ^ hash_word(mark->file)) ^ hash_word(mark->name);
    hash = hash_word(hash ^ hash_word(mark->lines)) ^ mark->first_line;
    return (hash & BPF_PYTHON_IDENTITY_MASK) | 1;
}
