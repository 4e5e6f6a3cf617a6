// SPDX-License-Identifier: Apache-2.0
// Lines of positions in scripts: see lines.h.

#include "runtime/v8/lines.h"

#include <stdlib.h>

#include "base/memory.h"
#include "runtime/v8/object.h"

#define PIECE_BYTES 16384u
#define SOURCES_DEEP 4 /* strings that stand for another one */
#define EXTERNAL_DATA 24u

/* Text of a script in the memory of its process. */
struct source {
    uint64_t characters; /* an address */
    uint32_t length;
    unsigned width; /* bytes of a character: 1 or 2 */
};

static bool find_source(const struct v8_objects *objects, uint64_t string,
                        struct source *ret_source)
{
    const struct v8_binary *binary = objects->binary;
    for (unsigned deep = 0; deep < SOURCES_DEEP; deep++) {
        uint32_t type = v8_type_of(objects, string), length;
        if (type >= binary->first_other_type ||
            !runtime_read(objects->memory, string - 1 + binary->string_length, &length,
                          sizeof(length)) ||
            length > V8_SOURCE_CHARACTERS_MAX)
            return false;
        struct source source = {.length = length, .width = type & V8_STRING_ONE_BYTE ? 1 : 2};
        switch (type & V8_STRING_KIND_MASK) {
        case V8_STRING_THIN:
            string = v8_load(objects, string, V8_STRING_FIRST);
            continue;
        case V8_STRING_FLAT:
            source.characters = string - 1 + binary->string_chars;
            break;
        case V8_STRING_EXTERNAL:
            if (type & V8_STRING_UNCACHED)
                return false;
            source.characters = v8_load(objects, string, EXTERNAL_DATA);
            break;
        default:
            return false;
        }
        *ret_source = source;
        return true;
    }
    return false;
}

static uint32_t character_at(const uint8_t *bytes, size_t at, unsigned width)
{
    return width == 1 ? bytes[at] : (uint32_t)(bytes[2 * at] | bytes[2 * at + 1] << 8);
}

/* False when not all of it can be read. */
static bool find_ends(const struct runtime_memory *memory, const struct source *source,
                      struct v8_script *script)
{
    uint8_t bytes[PIECE_BYTES];
    size_t capacity = 0;
    bool returned = false; /* the character before was a carriage return */
    for (uint32_t from = 0; from < source->length;) {
        uint32_t count = MIN(source->length - from, PIECE_BYTES / source->width);
        if (!runtime_read(memory, source->characters + (uint64_t)from * source->width, bytes,
                          (size_t)count * source->width))
            return false;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t c = character_at(bytes, i, source->width);
            bool ends = c == '\n' || c == '\r' || c == 0x2028 || c == 0x2029;
            if (ends && c == '\n' && returned && script->count) {
                script->ends[script->count - 1] = from + i; /* both are one end */
            } else if (ends) {
                array_reserve(script->ends, capacity, script->count + 1);
                script->ends[script->count++] = from + i;
            }
            returned = c == '\r';
        }
        from += count;
    }
    return true;
}

static void clear(struct v8_scripts *scripts)
{
    for (size_t i = 0; i < scripts->count; i++)
        free(scripts->list[i].ends);
    scripts->count = scripts->bytes = 0;
}

void v8_scripts_release(struct v8_scripts *scripts)
{
    clear(scripts);
    free(scripts->list);
    *scripts = (struct v8_scripts){0};
}

static const struct v8_script *add(struct v8_scripts *scripts, const struct v8_script *script)
{
    size_t bytes = script->count * sizeof(*script->ends);
    if (scripts->count >= V8_SCRIPTS_MAX || scripts->bytes + bytes > V8_SCRIPTS_BYTES_MAX)
        clear(scripts);
    array_reserve(scripts->list, scripts->capacity, scripts->count + 1);
    scripts->list[scripts->count] = *script;
    scripts->bytes += bytes;
    return &scripts->list[scripts->count++];
}

/* The script's lines; NULL when its source can't be read, or changed meanwhile. */
static const struct v8_script *get(const struct v8_context *context,
                                   const struct v8_objects *objects, uint64_t address)
{
    struct v8_scripts *scripts = context->scripts;
    struct source source, again;
    uint64_t string = v8_load(objects, address, context->binary->script_source);
    if (!find_source(objects, string, &source))
        return NULL;
    for (size_t i = scripts->count; i-- > 0;) {
        const struct v8_script *known = &scripts->list[i];
        if (known->address == address && known->source == string && known->pid == context->pid &&
            known->length == source.length)
            return known;
    }
    struct v8_script script = {
        .pid = context->pid, .length = source.length, .address = address, .source = string};
    if (!find_ends(objects->memory, &source, &script) ||
        v8_load(objects, address, context->binary->script_source) != string ||
        !find_source(objects, string, &again) || again.characters != source.characters ||
        again.length != source.length) {
        free(script.ends);
        return NULL;
    }
    return add(scripts, &script);
}

uint32_t v8_scripts_line(const struct v8_context *context, const struct runtime_memory *memory,
                         uint64_t script_address, uint32_t position)
{
    const struct v8_objects objects = {.binary = context->binary, .memory = memory};
    const struct v8_script *script =
        context->scripts ? get(context, &objects, script_address) : NULL;
    if (!script || position > script->length)
        return 0;
    size_t low = 0, high = script->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (script->ends[middle] < position)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low + 1;
}
