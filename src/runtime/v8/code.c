// SPDX-License-Identifier: Apache-2.0
// Reading JavaScript functions: see code.h.

#include "runtime/v8/code.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define STRING_KIND_MASK 7u /* of a string's type */
#define STRING_ONE_BYTE 8u
enum { STRING_FLAT = 0, STRING_JOINED = 1, STRING_SLICED = 3, STRING_THIN = 5 };
#define STRING_FIRST 16u  /* joined: its parts; sliced: what it is of; thin: the real one */
#define STRING_SECOND 24u /* joined: the other part; sliced: where it begins, a small integer */
#define STRINGS_MAX 32    /* parts of one */
#define SCOPE_LOCALS_MAX 4096
#define SCOPE_LOCALS_INLINE 75 /* with more, their names are in a table */
#define SCOPE_WORDS_MORE 8     /* behind the locals: the function's name is among them */

struct reader {
    const struct v8_binary *binary;
    const struct runtime_memory *memory;
};

/* ---- objects ---- */

static uint64_t load(const struct reader *reader, uint64_t object, uint64_t offset)
{
    return (object & 3) == 1 ? runtime_read_word(reader->memory, object - 1 + offset) : 0;
}

/* 0xffff: not an object. */
static uint32_t type_of(const struct reader *reader, uint64_t object)
{
    uint64_t map = load(reader, object, 0);
    uint16_t type;
    if ((map & 3) != 1 ||
        !runtime_read(reader->memory, map - 1 + reader->binary->walk.map_type, &type, sizeof(type)))
        return 0xffff;
    return type;
}

static bool is_string(const struct reader *reader, uint64_t object)
{
    return type_of(reader, object) < reader->binary->first_other_type;
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

static bool put_flat(const struct reader *reader, uint64_t object, uint32_t type, uint64_t from,
                     uint64_t length, struct text *text)
{
    unsigned width = type & STRING_ONE_BYTE ? 1 : 2;
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

static bool read_string(const struct reader *reader, uint64_t object, struct text *text)
{
    struct part parts[STRINGS_MAX] = {{.object = object, .length = UINT32_MAX}};
    size_t count = 1;
    text->length = text->characters = 0;
    for (unsigned steps = 0; count && steps < 4 * STRINGS_MAX; steps++) {
        struct part part = parts[--count];
        uint32_t type = type_of(reader, part.object), length;
        if (type >= reader->binary->first_other_type ||
            !runtime_read(reader->memory, part.object - 1 + reader->binary->string_length, &length,
                          sizeof(length)) ||
            part.from > length)
            return false;
        part.length = MIN(part.length, length - part.from);
        uint64_t first = load(reader, part.object, STRING_FIRST);
        uint64_t second = load(reader, part.object, STRING_SECOND);
        switch (type & STRING_KIND_MASK) {
        case STRING_FLAT:
            if (!put_flat(reader, part.object, type, part.from, part.length, text))
                return false;
            break;
        case STRING_THIN:
            parts[count++] = (struct part){first, part.from, part.length};
            break;
        case STRING_SLICED:
            parts[count++] = (struct part){first, part.from + (second >> 32), part.length};
            break;
        case STRING_JOINED: /* a slice is never of one */
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
static bool read_scope_name(const struct reader *reader, uint64_t scope, struct text *text)
{
    const struct v8_binary *binary = reader->binary;
    uint64_t locals = load(reader, scope, 8 + 8ull * binary->scope_locals) >> 32;
    if (locals > SCOPE_LOCALS_MAX)
        return false;
    uint64_t behind = locals < SCOPE_LOCALS_INLINE ? 2 * locals : locals + 1;
    uint64_t at = 8 + 8 * (binary->scope_first + behind);
    text->length = 0;
    for (unsigned i = 0; i < SCOPE_WORDS_MORE; i++, at += 8) {
        uint64_t word = load(reader, scope, at);
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

static bool is_same(const struct reader *reader, const struct runtime_mark *mark)
{
    const struct bpf_v8 *walk = &reader->binary->walk;
    return type_of(reader, mark->address) == reader->binary->shared_type &&
           load(reader, mark->address, walk->shared_name) == mark->name &&
           load(reader, mark->address, walk->shared_script) == mark->file;
}

static bool read_name(const struct reader *reader, uint64_t object, struct text *text)
{
    if ((object & 3) != 1)
        return true;
    uint32_t type = type_of(reader, object);
    if (type == reader->binary->scope_type)
        return read_scope_name(reader, object, text);
    return type >= reader->binary->first_other_type || read_string(reader, object, text);
}

static bool read_file(const struct reader *reader, uint64_t script, struct text *text)
{
    if (type_of(reader, script) != reader->binary->script_type)
        return true;
    uint64_t path = load(reader, script, reader->binary->script_name);
    return !is_string(reader, path) || read_string(reader, path, text);
}

bool v8_code_read(const void *context, const struct runtime_memory *memory,
                  const struct runtime_mark *mark, struct arena *arena,
                  struct runtime_code *ret_code)
{
    static const struct runtime_line unknown;
    const struct reader reader = {.binary = context, .memory = memory};
    struct text name = {0}, file = {0};
    if (!context || !is_same(&reader, mark) || !read_name(&reader, mark->name, &name) ||
        !read_file(&reader, mark->file, &file) || !is_same(&reader, mark))
        return false;
    *ret_code = (struct runtime_code){
        .function = name.length ? arena_strndup(arena, name.bytes, name.length) : "(anonymous)",
        .file = arena_strndup(arena, file.bytes, file.length),
        .lines = &unknown};
    return true;
}
