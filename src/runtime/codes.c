// SPDX-License-Identifier: Apache-2.0
// Functions that samples have met: see codes.h.

#include "runtime/codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "bpf/runtimes/runtime.h"

void runtime_codes_release(struct runtime_codes *codes)
{
    free(codes->list);
    id_table_release(&codes->index);
    arena_release(&codes->arena);
    *codes = (struct runtime_codes){0};
}

void runtime_codes_clear(struct runtime_codes *codes)
{
    codes->count = 0;
    id_table_clear(&codes->index);
    arena_release(&codes->arena);
}

bool runtime_codes_full(const struct runtime_codes *codes)
{
    return codes->count >= RUNTIME_CODES_MAX || codes->arena.total_bytes > RUNTIME_CODES_BYTES_MAX;
}

static struct runtime_known *find(const struct runtime_codes *codes, uint64_t identity)
{
    struct id_probe probe = id_probe_start(hash_word(identity));
    uint32_t id;
    while ((id = id_table_next(&codes->index, &probe)) != ID_NONE)
        if (codes->list[id].identity == identity)
            return &codes->list[id];
    return NULL;
}

const struct runtime_known *runtime_codes_find(const struct runtime_codes *codes, uint64_t identity)
{
    return find(codes, identity);
}

bool runtime_mark_equal(const struct runtime_mark *a, const struct runtime_mark *b)
{
    return a->address == b->address && a->file == b->file && a->name == b->name &&
           a->lines == b->lines && a->first_line == b->first_line;
}

void runtime_codes_take(struct runtime_codes *codes, runtime_code_read_fn read, const void *context,
                        const struct runtime_memory *memory, const struct runtime_known *met)
{
    struct runtime_known *known = find(codes, met->identity);
    if (known && (known->pid != met->pid || !runtime_mark_equal(&known->mark, &met->mark))) {
        known->ambiguous = true;
        return;
    }
    if (!known && codes->count >= RUNTIME_CODES_MAX)
        return;
    if (!known) {
        array_reserve(codes->list, codes->capacity, codes->count + 1);
        id_table_insert(&codes->index, hash_word(met->identity), (uint32_t)codes->count);
        known = &codes->list[codes->count++];
        *known = *met;
    }
    if (!known->named) {
        known->named = read(context, memory, &known->mark, &codes->arena, &known->code);
        codes->named += known->named;
        codes->unreadable += !known->named;
    }
}

uint64_t runtime_code_identity(uint32_t pid, const struct runtime_mark *mark)
{
    uint64_t hash = hash_word(pid ^ hash_word(mark->address));
    hash = hash_word(hash ^ hash_word(mark->file)) ^ hash_word(mark->name);
    hash = hash_word(hash ^ hash_word(mark->lines)) ^ mark->first_line;
    return (hash & BPF_PYTHON_IDENTITY_MASK) | 1;
}

uint32_t runtime_code_line(const struct runtime_code *code, uint32_t unit)
{
    if (!code->lines)
        return unit;
    if (unit == BPF_PYTHON_UNIT_MASK)
        return code->first_line;
    size_t low = 0, high = code->line_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (unit < code->lines[middle].end)
            high = middle;
        else
            low = middle + 1;
    }
    return low < code->line_count ? code->lines[low].line : 0;
}

const char *runtime_read_text(const struct runtime_memory *memory, uint64_t address,
                              uint64_t length, size_t limit, struct arena *arena)
{
    char bytes[RUNTIME_FILE_MAX];
    size_t count = (size_t)MIN(length, (uint64_t)MIN(limit, sizeof(bytes)));
    if (count && !runtime_read(memory, address, bytes, count))
        return NULL;
    for (size_t i = 0; i < count;) {
        size_t sequence = utf8_sequence(bytes + i, count - i);
        if (!sequence && count < length && count - i < 4) { /* cut in the middle of one */
            count = i;
            break;
        }
        if (!sequence || (unsigned char)bytes[i] < 0x20 || bytes[i] == 0x7f)
            bytes[i] = '?';
        i += MAX(sequence, (size_t)1);
    }
    return arena_strndup(arena, bytes, count);
}

const char *runtime_name_in_file(struct arena *arena, const char *file, const char *name)
{
    const char *base = strrchr(file, '/');
    base = base ? base + 1 : file;
    size_t room = strlen(base) + strlen(name) + 2;
    char *text = arena_alloc(arena, room);
    snprintf(text, room, "%s:%s", base, name);
    return text;
}
