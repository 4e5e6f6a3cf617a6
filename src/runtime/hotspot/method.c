// SPDX-License-Identifier: Apache-2.0
// Reading methods: see method.h.

#include "runtime/hotspot/method.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define TAG_TEXT 1        /* of a constant that is a symbol */
#define TAGS_HEADER 4     /* an array's length */
#define FLAG_HAS_LINES 1u /* of a ConstMethod, in all versions */
#define NUMBER_LOW 192u   /* bytes below it end a number; each has 6 bits more than the last */
#define NUMBER_SHIFT 6
#define NUMBER_BYTES_MAX 5

/* ---- compressed numbers and lines ---- */

bool hotspot_number_read(const uint8_t *bytes, size_t length, size_t *at, bool new_numbers,
                         uint32_t *ret_number)
{
    uint32_t number = 0, excluded = new_numbers ? 1 : 0;
    for (unsigned i = 0; i < NUMBER_BYTES_MAX; i++) {
        if (*at >= length || bytes[*at] < excluded)
            return false;
        uint32_t byte = bytes[(*at)++];
        number += (byte - excluded) << (NUMBER_SHIFT * i);
        if (byte < NUMBER_LOW)
            break;
    }
    *ret_number = number;
    return true;
}

static int32_t as_signed(uint32_t number)
{
    return (int32_t)(number >> 1) ^ -(int32_t)(number & 1);
}

size_t hotspot_lines_decode(const uint8_t *table, size_t length, bool new_numbers,
                            struct hotspot_line *ret_lines)
{
    size_t at = 0, count = 0;
    uint32_t index = 0, line = 0;
    while (at < length && count < HOTSPOT_LINES_MAX) {
        uint8_t byte = table[at++];
        if (!byte)
            break;
        if (byte != 0xff) {
            index += byte >> 3;
            line += byte & 7;
        } else {
            uint32_t more_index, more_line;
            if (!hotspot_number_read(table, length, &at, new_numbers, &more_index) ||
                !hotspot_number_read(table, length, &at, new_numbers, &more_line))
                break;
            index += (uint32_t)as_signed(more_index);
            line += (uint32_t)as_signed(more_line);
        }
        ret_lines[count++] = (struct hotspot_line){.index = index, .line = line};
    }
    return count;
}

uint32_t hotspot_method_line(const struct hotspot_method *method, uint32_t index)
{
    /* Tables need not be sorted: the nearest at or before it counts. */
    uint32_t found = 0, nearest = 0;
    for (uint32_t i = 0; i < method->line_count; i++) {
        const struct hotspot_line *line = &method->lines[i];
        if (line->index <= index && (!found || line->index >= nearest)) {
            found = line->line;
            nearest = line->index;
        }
    }
    return found <= INT32_MAX ? found : 0;
}

/* ---- symbols ---- */

static uint64_t value_of(const struct hotspot_process *machine, enum hotspot_field field)
{
    return machine->structs.value[field];
}

/* A symbol as text, `ret_text` having HOTSPOT_NAME_MAX + 1 bytes. Names have no control characters;
 * what isn't UTF-8 has been cut, or is one of Java's own pairs for characters beyond 16 bits. */
static bool read_symbol(const struct hotspot_process *machine, const struct runtime_memory *memory,
                        uint64_t address, char *ret_text)
{
    uint16_t length;
    char bytes[HOTSPOT_NAME_MAX];
    if (!address || address % 8 ||
        !runtime_read(memory, address + value_of(machine, HOTSPOT_SYMBOL_LENGTH), &length,
                      sizeof(length)) ||
        !length)
        return false;
    size_t count = MIN(length, HOTSPOT_NAME_MAX), used = 0;
    if (!runtime_read(memory, address + value_of(machine, HOTSPOT_SYMBOL_BODY), bytes, count))
        return false;
    for (size_t at = 0; at < count;) {
        size_t sequence = utf8_sequence(bytes + at, count - at);
        if ((uint8_t)bytes[at] < 0x20 || bytes[at] == 0x7f)
            return false;
        if (!sequence) {
            ret_text[used++] = '?';
            at++;
            continue;
        }
        memcpy(ret_text + used, bytes + at, sequence);
        used += sequence;
        at += sequence;
    }
    ret_text[used] = '\0';
    return true;
}

/* The constant of this number, if it is text. */
static bool read_constant(const struct hotspot_process *machine,
                          const struct runtime_memory *memory, uint64_t pool, uint32_t number,
                          char *ret_text)
{
    uint32_t length;
    uint8_t tag;
    uint64_t tags = runtime_read_word(memory, pool + value_of(machine, HOTSPOT_POOL_TAGS));
    if (!runtime_read(memory, pool + value_of(machine, HOTSPOT_POOL_LENGTH), &length,
                      sizeof(length)) ||
        !number || number >= length || length > 65536 || !tags ||
        !runtime_read(memory, tags + TAGS_HEADER + number, &tag, sizeof(tag)) || tag != TAG_TEXT)
        return false;
    uint64_t symbol = runtime_read_word(memory, pool + value_of(machine, HOTSPOT_POOL_BYTES) +
                                                    (uint64_t)number * 8);
    return read_symbol(machine, memory, symbol, ret_text);
}

/* ---- methods ---- */

static uint16_t read_short(const struct runtime_memory *memory, uint64_t address)
{
    uint16_t number;
    return runtime_read(memory, address, &number, sizeof(number)) ? number : 0;
}

static void read_lines(const struct hotspot_process *machine, const struct runtime_memory *memory,
                       uint64_t const_method, struct arena *arena, struct hotspot_method *method)
{
    const struct hotspot_structs *structs = &machine->structs;
    enum hotspot_field flags_field =
        hotspot_has(structs, HOTSPOT_CONST_FLAGS) ? HOTSPOT_CONST_FLAGS : HOTSPOT_CONST_NEW_FLAGS;
    uint32_t words;
    if (!hotspot_has(structs, flags_field) ||
        !(read_short(memory, const_method + value_of(machine, flags_field)) & FLAG_HAS_LINES) ||
        !runtime_read(memory, const_method + value_of(machine, HOTSPOT_CONST_SIZE), &words,
                      sizeof(words)))
        return;
    uint64_t before = value_of(machine, HOTSPOT_CONST_BYTES) +
                      read_short(memory, const_method + value_of(machine, HOTSPOT_CONST_CODE_SIZE));
    uint64_t all = (uint64_t)words * 8;
    if (all <= before)
        return;
    size_t length = (size_t)MIN(all - before, (uint64_t)HOTSPOT_LINE_TABLE_MAX);
    _cleanup_free_ uint8_t *table = memory_alloc(length);
    _cleanup_free_ struct hotspot_line *lines = memory_zalloc(HOTSPOT_LINES_MAX, sizeof(*lines));
    if (!runtime_read(memory, const_method + before, table, length))
        return;
    size_t count = hotspot_lines_decode(table, length, machine->major >= 20, lines);
    struct hotspot_line *kept = arena_alloc(arena, MAX(count, 1u) * sizeof(*kept));
    memcpy(kept, lines, count * sizeof(*kept));
    method->lines = kept;
    method->line_count = (uint32_t)count;
}

static uint32_t source_number(const struct hotspot_process *machine,
                              const struct runtime_memory *memory, uint64_t pool, uint64_t holder)
{
    if (hotspot_has(&machine->structs, HOTSPOT_POOL_SOURCE))
        return read_short(memory, pool + value_of(machine, HOTSPOT_POOL_SOURCE));
    if (hotspot_has(&machine->structs, HOTSPOT_CLASS_SOURCE))
        return read_short(memory, holder + value_of(machine, HOTSPOT_CLASS_SOURCE));
    return 0;
}

bool hotspot_method_read(const struct hotspot_process *machine, const struct runtime_memory *memory,
                         uint64_t address, struct arena *arena, struct hotspot_method *ret_method)
{
    char class[HOTSPOT_NAME_MAX + 1], name[HOTSPOT_NAME_MAX + 1], file[HOTSPOT_NAME_MAX + 1];
    struct hotspot_method method = {0};
    uint64_t const_at = address + value_of(machine, HOTSPOT_METHOD_CONST);
    uint64_t const_method = runtime_read_word(memory, const_at);
    uint64_t pool_at = const_method + value_of(machine, HOTSPOT_CONST_CONSTANTS);
    uint64_t pool = const_method ? runtime_read_word(memory, pool_at) : 0;
    if (!pool)
        return false;
    uint64_t holder = runtime_read_word(memory, pool + value_of(machine, HOTSPOT_POOL_HOLDER));
    uint64_t symbol =
        holder ? runtime_read_word(memory, holder + value_of(machine, HOTSPOT_CLASS_NAME)) : 0;
    uint32_t number = read_short(memory, const_method + value_of(machine, HOTSPOT_CONST_NAME));
    if (!read_symbol(machine, memory, symbol, class) ||
        !read_constant(machine, memory, pool, number, name))
        return false;
    if (!read_constant(machine, memory, pool, source_number(machine, memory, pool, holder), file))
        file[0] = '\0';
    read_lines(machine, memory, const_method, arena, &method);
    if (runtime_read_word(memory, const_at) != const_method ||
        runtime_read_word(memory, pool_at) != pool)
        return false;
    for (char *at = class; *at; at++)
        if (*at == '/')
            *at = '.';
    size_t room = strlen(class) + strlen(name) + 2;
    char *text = arena_alloc(arena, room);
    snprintf(text, room, "%s.%s", class, name);
    method.name = text;
    method.file = arena_strndup(arena, file, strlen(file));
    *ret_method = method;
    return true;
}
