// SPDX-License-Identifier: Apache-2.0
// Reading JavaScript functions: see code.h.

#include "runtime/v8/code.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "runtime/v8/object.h"

#define STRINGS_MAX 32 /* parts of one */
#define SCOPE_LOCALS_MAX 4096
#define SCOPE_LOCALS_INLINE 75 /* with more, their names are in a table */
#define SCOPE_WORDS_MORE 8     /* behind the locals: the function's name is among them */

static bool is_string(const struct v8_objects *reader, uint64_t object)
{
    return v8_type_of(reader, object) < reader->binary->first_other_type;
}

/* ---- strings ---- */

struct text {
    char bytes[V8_NAME_MAX * 3 + 1];
    size_t length, characters;
};

static void put(struct text *text, uint32_t c)
{
    if (text->characters >= V8_NAME_MAX)
        return;
    text->characters++;
    if (c < 0x20 || c == 0x7f || (c >= 0xd800 && c < 0xe000))
        c = '?';
    if (c < 0x80) {
        text->bytes[text->length++] = (char)c;
    } else if (c < 0x800) {
        text->bytes[text->length++] = (char)(0xc0 | c >> 6);
        text->bytes[text->length++] = (char)(0x80 | (c & 63));
    } else {
        text->bytes[text->length++] = (char)(0xe0 | c >> 12);
        text->bytes[text->length++] = (char)(0x80 | (c >> 6 & 63));
        text->bytes[text->length++] = (char)(0x80 | (c & 63));
    }
}

static bool put_flat(const struct v8_objects *reader, uint64_t object, uint32_t type, uint64_t from,
                     uint64_t length, struct text *text)
{
    unsigned width = type & V8_STRING_ONE_BYTE ? 1 : 2;
    uint8_t bytes[V8_NAME_MAX * 2];
    size_t count = (size_t)MIN(length, (uint64_t)V8_NAME_MAX - text->characters);
    uint64_t at = object - 1 + reader->binary->string_chars + from * width;
    if (count && !runtime_read(reader->memory, at, bytes, count * width))
        return false;
    for (size_t i = 0; i < count; i++)
        put(text, width == 1 ? bytes[i] : (uint32_t)(bytes[2 * i] | bytes[2 * i + 1] << 8));
    return true;
}

/* Parts that are still to be read, the next on top. */
struct part {
    uint64_t object, from, length;
};

static bool read_string(const struct v8_objects *reader, uint64_t object, struct text *text)
{
    struct part parts[STRINGS_MAX] = {{.object = object, .length = UINT32_MAX}};
    size_t count = 1;
    text->length = text->characters = 0;
    for (unsigned steps = 0; count && steps < 4 * STRINGS_MAX; steps++) {
        struct part part = parts[--count];
        uint32_t type = v8_type_of(reader, part.object), length;
        if (type >= reader->binary->first_other_type ||
            !runtime_read(reader->memory, part.object - 1 + reader->binary->string_length, &length,
                          sizeof(length)) ||
            part.from > length)
            return false;
        part.length = MIN(part.length, length - part.from);
        uint64_t first = v8_load(reader, part.object, V8_STRING_FIRST);
        uint64_t second = v8_load(reader, part.object, V8_STRING_SECOND);
        switch (type & V8_STRING_KIND_MASK) {
        case V8_STRING_FLAT:
            if (!put_flat(reader, part.object, type, part.from, part.length, text))
                return false;
            break;
        case V8_STRING_THIN:
            parts[count++] = (struct part){first, part.from, part.length};
            break;
        case V8_STRING_SLICED:
            parts[count++] = (struct part){first, part.from + (second >> 32), part.length};
            break;
        case V8_STRING_JOINED: /* a slice is never of one */
            if (part.from || count + 2 > STRINGS_MAX)
                return false;
            parts[count++] = (struct part){second, 0, UINT32_MAX};
            parts[count++] = (struct part){first, 0, UINT32_MAX};
            break;
        default: /* outside of the heap */
            return false;
        }
    }
    text->bytes[text->length] = '\0';
    return !count;
}

/* ---- functions ---- */

/* A ScopeInfo has its function's name, or the one that was made up for it, behind its variables. */
static bool read_scope_name(const struct v8_objects *reader, uint64_t scope, struct text *text)
{
    const struct v8_binary *binary = reader->binary;
    uint64_t locals = v8_load(reader, scope, 8 + 8ull * binary->scope_locals) >> 32;
    if (locals > SCOPE_LOCALS_MAX)
        return false;
    uint64_t behind = locals < SCOPE_LOCALS_INLINE ? 2 * locals : locals + 1;
    uint64_t at = 8 + 8 * (binary->scope_first + behind);
    text->length = 0;
    for (unsigned i = 0; i < SCOPE_WORDS_MORE; i++, at += 8) {
        uint64_t word = v8_load(reader, scope, at);
        if ((word & 3) != 1)
            continue;
        if (!is_string(reader, word))
            break; /* it has no name: an outer scope or the like follows */
        if (!read_string(reader, word, text))
            return false;
        if (text->length)
            return true;
    }
    return true;
}

/* Where a function begins in its script. Newer versions have the position before the variables; in
 * others it is behind them and the names, followed by the outer scope: two small integers. */
static bool read_position(const struct v8_objects *reader, uint64_t scope, uint32_t *ret_start)
{
    const struct v8_binary *binary = reader->binary;
    uint64_t locals = v8_load(reader, scope, 8 + 8ull * binary->scope_locals) >> 32;
    uint64_t run[3] = {0}, start, end;
    if (v8_type_of(reader, scope) != binary->scope_type || locals > SCOPE_LOCALS_MAX)
        return false;
    if (binary->scope_first >= binary->scope_locals + 3) {
        start = v8_load(reader, scope, 8 * (2ull + binary->scope_locals));
        end = v8_load(reader, scope, 8 * (3ull + binary->scope_locals));
    } else {
        uint64_t behind = locals < SCOPE_LOCALS_INLINE ? 2 * locals : locals + 1;
        uint64_t at = 8 + 8 * (binary->scope_first + behind);
        unsigned count = 0, i = 0;
        for (; i < SCOPE_WORDS_MORE && !(run[2] & 1 && count > 2); i++, at += 8) {
            run[0] = run[1];
            run[1] = run[2];
            run[2] = v8_load(reader, scope, at);
            count = run[2] & 1 && count < 2 ? 0 : count + 1;
        }
        if (!(run[2] & 1 && count > 2))
            return false;
        start = run[0];
        end = run[1];
    }
    if (start & 1 || end & 1 || start >> 32 >= end >> 32 || end >> 63)
        return false;
    *ret_start = (uint32_t)(start >> 32);
    return true;
}

static bool is_same(const struct v8_objects *reader, const struct runtime_mark *mark)
{
    const struct bpf_v8 *walk = &reader->binary->walk;
    return v8_type_of(reader, mark->address) == reader->binary->shared_type &&
           v8_load(reader, mark->address, walk->shared_name) == mark->name &&
           v8_load(reader, mark->address, walk->shared_script) == mark->file;
}

static bool read_name(const struct v8_objects *reader, uint64_t object, struct text *text)
{
    if ((object & 3) != 1)
        return true;
    uint32_t type = v8_type_of(reader, object);
    if (type == reader->binary->scope_type)
        return read_scope_name(reader, object, text);
    return type >= reader->binary->first_other_type || read_string(reader, object, text);
}

static bool read_file(const struct v8_objects *reader, uint64_t script, struct text *text)
{
    if (v8_type_of(reader, script) != reader->binary->script_type)
        return true;
    uint64_t path = v8_load(reader, script, reader->binary->script_name);
    return !is_string(reader, path) || read_string(reader, path, text);
}

/* "(anonymous) main.js:12" */
static const char *anonymous_name(struct arena *arena, const struct text *file, uint32_t line)
{
    static const char word[] = "(anonymous)";
    const char *base = strrchr(file->bytes, '/');
    base = base ? base + 1 : file->bytes;
    if (!*base || !line)
        return word;
    size_t room = sizeof(word) + strlen(base) + 16;
    char *name = arena_alloc(arena, room);
    snprintf(name, room, "%s %s:%" PRIu32, word, base, line);
    return name;
}

bool v8_code_read(const void *context, const struct runtime_memory *memory,
                  const struct runtime_mark *mark, struct arena *arena,
                  struct runtime_code *ret_code)
{
    const struct v8_context *v8 = context;
    const struct v8_objects reader = {.binary = v8 ? v8->binary : NULL, .memory = memory};
    struct text name = {0}, file = {0};
    uint32_t start, line = 0;
    if (!v8 || !is_same(&reader, mark) || !read_name(&reader, mark->name, &name) ||
        !read_file(&reader, mark->file, &file))
        return false;
    if (v8_type_of(&reader, mark->file) == v8->binary->script_type &&
        read_position(&reader, mark->name, &start))
        line = v8_scripts_line(v8, memory, mark->file, start);
    if (!is_same(&reader, mark))
        return false;
    file.bytes[file.length] = '\0';
    struct runtime_line *lines = arena_alloc(arena, sizeof(*lines));
    *lines = (struct runtime_line){.end = UINT32_MAX, .line = line};
    *ret_code = (struct runtime_code){
        .function = name.length ? arena_strndup(arena, name.bytes, name.length)
                                : anonymous_name(arena, &file, line),
        .file = arena_strndup(arena, file.bytes, file.length),
        .first_line = line,
        .lines = lines,
        .line_count = 1};
    return true;
}
