// SPDX-License-Identifier: Apache-2.0
// Reads mapping files of ProGuard and R8: lines of text that say what classes and methods were
// called before they were renamed, on which lines they were, and what was inlined into them.

#include <ctype.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "io/json.h"
#include "symbol/maps/build.h"

#define COMMENT_BYTES_MAX (64u << 10)

struct span {
    const char *start, *end;
};

static struct span trim(struct span text)
{
    while (text.start < text.end && isspace((unsigned char)*text.start))
        text.start++;
    while (text.end > text.start && isspace((unsigned char)text.end[-1]))
        text.end--;
    return text;
}

static uint32_t intern(struct symbol_map_builder *builder, struct span text)
{
    return symbol_map_intern(builder, text.start, (size_t)(text.end - text.start));
}

static const char *last_of(struct span text, char c)
{
    return text.end > text.start ? memrchr(text.start, c, (size_t)(text.end - text.start)) : NULL;
}

/* "a -> b": what is on both sides. */
static bool split_arrow(struct span line, struct span *ret_left, struct span *ret_right)
{
    const char *arrow = line.end > line.start
                            ? memmem(line.start, (size_t)(line.end - line.start), " -> ", 4)
                            : NULL;
    if (!arrow)
        return false;
    *ret_left = trim((struct span){line.start, arrow});
    *ret_right = trim((struct span){arrow + 4, line.end});
    return ret_left->start < ret_left->end && ret_right->start < ret_right->end;
}

/* ---- classes ---- */

static int read_class(struct symbol_map_builder *builder, struct span line, struct error *error)
{
    struct span original, name;
    struct symbol_map_class class = {.first_method = (uint32_t)builder->method_count};
    if (line.end > line.start && line.end[-1] == ':')
        line.end--;
    if (split_arrow(line, &original, &name)) {
        class.name = intern(builder, name);
        class.original = intern(builder, original);
    }
    if (!class.name || !class.original)
        return error_set(error, -EBADMSG,
                         "Not a source map or a mapping file: \"%.*s\" is not a class.",
                         (int)MIN(line.end - line.start, 60), line.start);
    if (builder->class_count == SYMBOL_MAP_CLASSES_MAX)
        return error_set(error, -E2BIG, "The mapping file has more than %u classes.",
                         SYMBOL_MAP_CLASSES_MAX);
    array_reserve(builder->classes, builder->class_capacity, builder->class_count + 1);
    builder->classes[builder->class_count++] = class;
    return 0;
}

/* # {"id":"sourceFile","fileName":"Shop.kt"}. Other comments say nothing that names need. */
static void read_comment(struct symbol_map_builder *builder, struct span line)
{
    struct source source;
    struct json_string key, text;
    bool is_file = false;
    uint32_t file = 0;
    line.start++;
    line = trim(line);
    if (!builder->class_count || line.start == line.end || *line.start != '{' ||
        line.end - line.start > COMMENT_BYTES_MAX ||
        source_open_memory(&source, "comment", line.start, (size_t)(line.end - line.start), 0,
                           NULL) < 0)
        return;
    _cleanup_json_ struct json json;
    json_init(&json, &source, NULL);
    int r = json_object(&json);
    while (r >= 0 && (r = json_next_key(&json, &key)) > 0)
        if (json_is(&key, "id") && json_kind(&json) == JSON_STRING) {
            r = json_string(&json, &text);
            is_file = r >= 0 && json_is(&text, "sourceFile");
        } else if (json_is(&key, "fileName") && json_kind(&json) == JSON_STRING) {
            r = json_string(&json, &text);
            file = r >= 0 ? symbol_map_intern(builder, text.data, text.length) : 0;
        }
    if (r >= 0 && is_file)
        builder->classes[builder->class_count - 1].file = file;
    source_release(&source);
}

/* ---- methods ---- */

static bool take_number(const char **at, const char *end, uint32_t *ret_number)
{
    const char *start = *at;
    uint64_t number;
    while (*at < end && isdigit((unsigned char)**at))
        (*at)++;
    if (*at == start || !text_to_u64(start, (size_t)(*at - start), &number) || number >= UINT32_MAX)
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

/* "12:34" or "12" at the start of the text, which moves behind it. */
static bool take_range(const char **at, const char *end, uint32_t *ret_first, uint32_t *ret_last)
{
    const char *from = *at;
    if (!take_number(&from, end, ret_first))
        return false;
    *ret_last = *ret_first;
    if (from < end && *from == ':') {
        const char *second = from + 1;
        if (take_number(&second, end, ret_last))
            from = second;
    }
    *at = from;
    return *ret_first <= *ret_last;
}

/* The text after the brackets: nothing, ":line" or ":first:last". */
static void read_original_range(struct span text, struct symbol_map_method *method)
{
    const char *at = text.start + 1;
    uint32_t first, last;
    if (text.end - text.start > 1 && *text.start == ':' &&
        take_range(&at, text.end, &first, &last)) {
        method->original_first = first;
        method->original_last = last;
    } else if (method->last_line != SYMBOL_MAP_ANY_LINE) {
        method->original_first = method->first_line;
        method->original_last = method->last_line;
    }
}

/* "[first:last:]type [class.]method(arguments)[:first[:last]] -> name"; fields have no brackets. */
static int read_member(struct symbol_map_builder *builder, struct span line, struct error *error)
{
    struct span left, name;
    struct symbol_map_method method = {.last_line = SYMBOL_MAP_ANY_LINE};
    if (!builder->class_count || !split_arrow(line, &left, &name))
        return error_set(error, -EBADMSG,
                         "Not a source map or a mapping file: \"%.*s\" is not a member of a class.",
                         (int)MIN(line.end - line.start, 60), line.start);
    const char *open = memchr(left.start, '(', (size_t)(left.end - left.start));
    const char *close = last_of(left, ')');
    if (!open || !close || close < open)
        return 0;
    const char *at = left.start;
    uint32_t first, last;
    if (take_range(&at, open, &first, &last) && at < open && *at == ':') {
        method.first_line = first;
        method.last_line = last;
        left.start = at + 1;
    }
    read_original_range((struct span){close + 1, left.end}, &method);
    struct span path = {left.start, open};
    const char *space = last_of(path, ' ');
    path.start = space ? space + 1 : path.start;
    const char *point = last_of(path, '.');
    method.original_class = point ? intern(builder, (struct span){path.start, point}) : 0;
    method.original = intern(builder, (struct span){point ? point + 1 : path.start, open});
    method.name = intern(builder, name);
    if (!method.name || !method.original)
        return 0;
    if (builder->method_count == SYMBOL_MAP_METHODS_MAX)
        return error_set(error, -E2BIG, "The mapping file has more than %u lines of methods.",
                         SYMBOL_MAP_METHODS_MAX);
    array_reserve(builder->methods, builder->method_capacity, builder->method_count + 1);
    builder->methods[builder->method_count++] = method;
    builder->classes[builder->class_count - 1].method_count++;
    return 0;
}

int proguard_read(struct source *source, struct symbol_map_builder *builder, struct error *error)
{
    const char *text;
    size_t length;
    uint64_t number = 0;
    int r;
    while ((r = source_line(source, &text, &length, error)) > 0) {
        struct span line = {text, text + length}, content = trim(line);
        number++;
        if (content.start == content.end)
            continue;
        if (*content.start == '#')
            read_comment(builder, content);
        else if (isspace((unsigned char)*line.start))
            r = read_member(builder, content, error);
        else
            r = read_class(builder, content, error);
        if (r < 0)
            return error_prefix(error, "Line %llu", (unsigned long long)number);
        if (builder->texts.length > SYMBOL_MAP_TEXT_BYTES_MAX)
            return error_set(error, -E2BIG, "The mapping file's names exceed the limit of %u MiB.",
                             SYMBOL_MAP_TEXT_BYTES_MAX >> 20);
    }
    if (!r && !builder->class_count)
        r = error_set(error, -EBADMSG, "Not a source map or a mapping file: it contains no class.");
    return r;
}
