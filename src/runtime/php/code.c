// SPDX-License-Identifier: Apache-2.0
// Reading PHP's functions: see code.h.

#include "runtime/php/code.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define CLASS_NAME 8 /* of a class: its name */
#define STRING_LENGTH 16
#define STRING_BYTES 24
#define STRING_LENGTH_MAX (1u << 20)

static const char *read_string(const struct runtime_memory *memory, uint64_t string, size_t limit,
                               struct arena *arena)
{
    uint64_t length;
    if (!string || !runtime_read(memory, string + STRING_LENGTH, &length, sizeof(length)) ||
        length > STRING_LENGTH_MAX)
        return NULL;
    return runtime_read_text(memory, string + STRING_BYTES, length, limit, arena);
}

static uint32_t word32_at(const uint8_t *bytes, size_t at)
{
    uint32_t word;
    memcpy(&word, bytes + at, sizeof(word));
    return word;
}

static bool is_same(const struct bpf_php *walk, const struct runtime_memory *memory,
                    const struct runtime_mark *mark)
{
    uint64_t words[BPF_PHP_FUNCTION_BYTES / 8];
    uint8_t bytes[BPF_PYTHON_CODE_BYTES];
    if (!runtime_read(memory, mark->address, words, sizeof(words)) || words[1] != mark->name ||
        words[2] != mark->lines)
        return false;
    if ((words[0] & 255) == BPF_PHP_BUILT_IN)
        return !mark->file;
    if (walk->function_bytes > sizeof(bytes) || walk->function_file > sizeof(bytes) - 8 ||
        walk->function_first_line > sizeof(bytes) - 4 ||
        !runtime_read(memory, mark->address, bytes, walk->function_bytes))
        return false;
    return !memcmp(bytes + walk->function_file, &mark->file, 8) &&
           word32_at(bytes, walk->function_first_line) == mark->first_line;
}

/* "Shop::total", "render", "index.php:{main}", "index.php:{closure}". */
static const char *function_name(struct arena *arena, const char *class_name, const char *name,
                                 const char *file)
{
    if (!name)
        return runtime_name_in_file(arena, file, "{main}");
    if (!strcmp(name, "{closure}") || !class_name)
        return *name == '{' ? runtime_name_in_file(arena, file, name) : name;
    size_t room = strlen(class_name) + strlen(name) + 3;
    char *text = arena_alloc(arena, room);
    snprintf(text, room, "%s::%s", class_name, name);
    return text;
}

bool php_code_read(const void *context, const struct runtime_memory *memory,
                   const struct runtime_mark *mark, struct arena *arena,
                   struct runtime_code *ret_code)
{
    const struct php_binary *binary = context;
    const char *name = NULL, *class_name = NULL, *file = "";
    if (!is_same(&binary->walk, memory, mark))
        return false;
    if (mark->file && !(file = read_string(memory, mark->file, RUNTIME_FILE_MAX, arena)))
        return false;
    if (mark->name && !(name = read_string(memory, mark->name, RUNTIME_NAME_MAX, arena)))
        return false;
    if (mark->lines) {
        uint64_t string = runtime_read_word(memory, mark->lines + CLASS_NAME);
        if (!(class_name = read_string(memory, string, RUNTIME_NAME_MAX, arena)))
            return false;
    }
    if (!is_same(&binary->walk, memory, mark))
        return false;
    *ret_code = (struct runtime_code){.function = function_name(arena, class_name, name, file),
                                      .file = file,
                                      .first_line = mark->first_line};
    return true;
}
