// SPDX-License-Identifier: Apache-2.0
// Names as just-in-time compilers write them: see jit_name.h.

#include "symbol/jit/name.h"

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"
#include "profile/names/demangle.h"

static const char *part(struct arena *arena, const char *start, const char *end)
{
    return arena_strndup(arena, start, (size_t)(end - start));
}

/* ---- V8: "JS:*name file:line:column", up to Node.js 18 without the column, and without a name for
 * functions that have none ---- */

static bool take_tag(const char **text)
{
    static const char *const tags[] = {"JS:", "LazyCompile:", "Function:", "Script:", "Eval:"};
    for (size_t i = 0; i < ARRAY_LENGTH(tags); i++)
        if (!strncmp(*text, tags[i], strlen(tags[i]))) {
            *text += strlen(tags[i]);
            return true;
        }
    return false;
}

bool jit_name_is_v8(const char *text)
{
    return take_tag(&text);
}

/* Names and files may have spaces: a file begins where it looks like one, or at the last space. */
static const char *file_start(const char *text, const char *end)
{
    static const char *const starts[] = {
        " /", " file:", " node:", " http:", " https:", " evalmachine."};
    const char *found = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(starts); i++) {
        const char *at = strstr(text, starts[i]);
        if (at && at < end && (!found || at < found))
            found = at;
    }
    return found ? found : memrchr(text, ' ', (size_t)(end - text));
}

/* The end of the file's name, or NULL without a place. */
static const char *place_start(const char *text, uint32_t *ret_line)
{
    uint32_t line;
    const char *last = text_number_before(text, text + strlen(text), ret_line);
    const char *first = last ? text_number_before(text, last, &line) : NULL;
    if (!first)
        return last;
    *ret_line = line; /* and the last number was the column */
    return first;
}

static bool read_v8(const char *text, struct arena *arena, struct jit_name *name)
{
    const char *at = text;
    uint32_t line;
    if (!take_tag(&at))
        return false;
    if (*at && strchr("~^+*", *at))
        at++;
    const char *file_end = place_start(at, &line);
    const char *space = file_end ? file_start(at, file_end) : NULL;
    const char *name_end = space ? space : at + strlen(at);
    name->name = name_end > at ? part(arena, at, name_end) : "(anonymous)";
    if (space && file_end > space + 1) {
        name->file = part(arena, space + 1, file_end);
        name->start_line = line;
    }
    name->kind = FRAME_V8JS;
    return true;
}

/* ---- Java: "int a.b.C.method(int, java.lang.String)" ---- */

static bool read_java(const char *text, struct arena *arena, struct jit_name *name)
{
    const char *bracket = strchr(text, '('), *space = strchr(text, ' ');
    size_t length = strlen(text);
    if (!bracket || !space || space > bracket || text[length - 1] != ')' ||
        memchr(space + 1, ' ', (size_t)(bracket - space - 1)) ||
        !memchr(space + 1, '.', (size_t)(bracket - space - 1)))
        return false;
    name->name = part(arena, space + 1, bracket);
    name->kind = FRAME_JVM;
    return true;
}

/* ---- CPython: "py::Class.method:/srv/file.py" ---- */

static bool read_python(const char *text, struct arena *arena, struct jit_name *name)
{
    if (strncmp(text, "py::", 4))
        return false;
    const char *start = text + 4, *colon = strchr(start, ':');
    if (!colon || colon == start)
        return false;
    name->name = part(arena, start, colon);
    if (colon[1])
        name->file = colon + 1;
    name->kind = FRAME_CPYTHON;
    return true;
}

struct jit_name jit_name_read(const char *text, struct arena *arena)
{
    struct jit_name name = {.name = text, .kind = FRAME_NATIVE};
    _cleanup_buffer_ struct buffer readable = {0};
    if (read_v8(text, arena, &name) || read_java(text, arena, &name) ||
        read_python(text, arena, &name))
        name.system_name = text;
    else if (demangle(text, &readable)) {
        name.name = arena_strndup(arena, readable.data, readable.length);
        name.system_name = text;
    }
    return name;
}
