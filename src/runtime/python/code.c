// SPDX-License-Identifier: Apache-2.0
// Reading code objects: see code.h.

#include "runtime/python/code.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/python/lines.h"

static uint64_t field(const uint8_t *bytes, size_t offset)
{
    uint64_t word = 0;
    memcpy(&word, bytes + offset, sizeof(word));
    return word;
}

bool python_code_mark(const struct python_process *python, const struct runtime_memory *memory,
                      uint64_t address, struct runtime_mark *ret_mark)
{
    const struct bpf_python *walk = &python->offsets.walk;
    uint8_t bytes[BPF_PYTHON_CODE_BYTES + 8] = {0};
    if (walk->code_bytes > BPF_PYTHON_CODE_BYTES ||
        !runtime_read(memory, address, bytes, walk->code_bytes) ||
        field(bytes, walk->code_type_at) != walk->code_type)
        return false;
    *ret_mark = (struct runtime_mark){
        .address = address,
        .file = field(bytes, walk->code_file),
        .name = field(bytes, walk->code_name),
        .lines = field(bytes, walk->code_lines),
        .first_line = (uint32_t)field(bytes, walk->code_first_line),
    };
    return true;
}

/* ---- strings ---- */

static size_t put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        c = 0xfffd;
    if (c < 0x10000) {
        to[0] = (char)(0xe0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 63));
        to[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    to[0] = (char)(0xf0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 63));
    to[2] = (char)(0x80 | (c >> 6 & 63));
    to[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* A string object as UTF-8: at most `limit` characters. NULL when it isn't a string. */
static const char *read_text(const struct python_process *python,
                             const struct runtime_memory *memory, uint64_t address, size_t limit,
                             struct arena *arena)
{
    const struct python_offsets *offsets = &python->offsets;
    uint64_t length;
    uint32_t state;
    uint8_t characters[PYTHON_FILE_MAX * 4];
    if (!address ||
        !runtime_read(memory, address + offsets->text_length, &length, sizeof(length)) ||
        !runtime_read(memory, address + offsets->text_state, &state, sizeof(state)))
        return NULL;
    state >>= offsets->text_state_shift;
    unsigned width = state >> 2 & 7;
    bool compact = state >> 5 & 1, ascii = state >> 6 & 1;
    if (!compact || (width != 1 && width != 2 && width != 4) || length > UINT32_MAX)
        return NULL;
    size_t count = MIN((size_t)length, MIN(limit, (size_t)PYTHON_FILE_MAX));
    uint64_t from = address + (ascii ? offsets->text_header : offsets->wide_header);
    if (!runtime_read(memory, from, characters, count * width))
        return NULL;
    char *text = arena_alloc(arena, count * (ascii ? 1 : 4) + 1), *to = text;
    for (size_t i = 0; i < count; i++) {
        uint32_t c = 0;
        memcpy(&c, characters + i * width, width);
        if (!c || (ascii && c > 127)) /* no name has such characters */
            return NULL;
        to += put_utf8(to, c);
    }
    *to = '\0';
    return text;
}

/* ---- code objects ---- */

static bool read_lines(const struct python_process *python, const struct runtime_memory *memory,
                       const struct runtime_mark *mark, struct arena *arena,
                       struct runtime_code *code)
{
    const struct python_offsets *offsets = &python->offsets;
    uint64_t length;
    if (!runtime_read(memory, mark->lines + offsets->bytes_length, &length, sizeof(length)) ||
        length > PYTHON_LINE_TABLE_MAX)
        return false;
    _cleanup_free_ uint8_t *table = memory_alloc((size_t)length + 1);
    _cleanup_free_ struct runtime_line *lines = memory_zalloc(PYTHON_LINES_MAX, sizeof(*lines));
    if (length && !runtime_read(memory, mark->lines + offsets->bytes_header, table, (size_t)length))
        return false;
    size_t count =
        python_lines_decode(offsets->minor, table, (size_t)length, mark->first_line, lines);
    struct runtime_line *kept = arena_alloc(arena, MAX(count, 1u) * sizeof(*kept));
    memcpy(kept, lines, count * sizeof(*kept));
    code->lines = kept;
    code->line_count = (uint32_t)count;
    return true;
}

const char *python_function_name(struct arena *arena, const char *file, const char *name)
{
    const char *base = strrchr(file, '/');
    base = base ? base + 1 : file;
    if (base > file && (!strcmp(base, "__init__.py") || !strcmp(base, "__main__.py"))) {
        base--;
        while (base > file && base[-1] != '/')
            base--;
        base += *base == '/';
    }
    size_t room = strlen(base) + strlen(name) + 2;
    char *text = arena_alloc(arena, room);
    snprintf(text, room, "%s:%s", base, name);
    return text;
}

bool python_code_read(const void *context, const struct runtime_memory *memory,
                      const struct runtime_mark *mark, struct arena *arena,
                      struct runtime_code *ret_code)
{
    const struct python_process *python = context;
    if (!python)
        return false;
    const struct python_offsets *offsets = &python->offsets;
    struct runtime_mark after;
    struct runtime_code code = {.first_line = mark->first_line};
    uint64_t name = mark->name;
    if (offsets->code_qualified_name != BPF_PYTHON_NONE)
        name = runtime_read_word(memory, mark->address + offsets->code_qualified_name);
    if (offsets->code_first_unit != BPF_PYTHON_NONE &&
        !runtime_read(memory, mark->address + offsets->code_first_unit, &code.first_unit,
                      sizeof(code.first_unit)))
        return false;
    const char *own_name = read_text(python, memory, name, PYTHON_NAME_MAX, arena);
    code.file = read_text(python, memory, mark->file, PYTHON_FILE_MAX, arena);
    if (!own_name || !code.file || !read_lines(python, memory, mark, arena, &code) ||
        !python_code_mark(python, memory, mark->address, &after) ||
        !runtime_mark_equal(&after, mark))
        return false;
    code.function = python_function_name(arena, code.file, own_name);
    *ret_code = code;
    return true;
}
