// SPDX-License-Identifier: Apache-2.0
// Fits names into rectangles. The font has a fixed width, because text can't be measured when a
// static picture is written.

#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "format/picture/svg.h"

/* A name longer than this is never shown whole, and its forms are not worth looking for. */
#define NAME_BYTES_MAX 1024

#define ELLIPSIS "…"
#define CUT_COLUMNS_MIN 5 /* less of a name tells nothing */

/* One shown character: its bytes and its columns. Escapes are those of text_escape_xml. */
static size_t next_character(const char *text, size_t length, size_t *ret_columns)
{
    size_t step = utf8_sequence(text, length);
    unsigned char c = (unsigned char)text[0];
    if (!step || c < 0x20 || c == 0x7f)
        *ret_columns = strlen("\\x00");
    else /* from U+1100 on, scripts may be twice as wide */
        *ret_columns = step >= 3 && (c > 0xe1 || (unsigned char)text[1] >= 0x84) ? 2 : 1;
    return step ? step : 1;
}

size_t svg_columns(const char *text, size_t length)
{
    size_t sum = 0, columns;
    for (size_t i = 0; i < length; sum += columns)
        i += next_character(text + i, length - i, &columns);
    return sum;
}

void svg_add_cut(struct buffer *out, const char *text, size_t length, size_t columns)
{
    size_t used = 0, fits = 0, width;
    for (size_t i = 0; i < length;) {
        i += next_character(text + i, length - i, &width);
        used += width;
        if (used > columns) {
            text_escape_xml(out, text, fits);
            buffer_add_text(out, ELLIPSIS);
            return;
        }
        if (used < columns) /* leaves a column for the ellipsis */
            fits = i;
    }
    text_escape_xml(out, text, length);
}

/* Drops template and call arguments, but keeps Go's "(*T)". */
static void add_without_arguments(struct buffer *out, const char *name, size_t length)
{
    size_t depth = 0;
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        bool pointer = i + 1 < length && name[i + 1] == '*';
        if ((c == '<' || c == '(') && i && name[i - 1] != '.' && !pointer)
            depth++;
        else if ((c == '>' || c == ')') && depth)
            depth--;
        else if (!depth)
            buffer_add_char(out, c);
    }
    while (out->length && out->data[out->length - 1] == ' ')
        out->length--;
}

/* Where the next piece of a name begins: after "::", "." or "/" outside of brackets; or 0. */
static size_t next_piece(const char *name, size_t length)
{
    size_t depth = 0;
    for (size_t i = 0; i + 1 < length; i++) {
        char c = name[i];
        if (strchr("<([{", c) && c)
            depth++;
        else if (strchr(">)]}", c) && c)
            depth -= depth > 0;
        else if (depth)
            continue;
        else if (c == ':' && name[i + 1] == ':' && i + 2 < length)
            return i + 2;
        else if ((c == '.' || c == '/') && i)
            return i + 1;
        else if (c == ' ')
            return 0;
    }
    return 0;
}

/* A place in a binary, "libx.so.1+0x5800": its dots separate nothing. */
static bool is_place(const char *name, size_t length)
{
    size_t digits = 0;
    while (digits < length && isxdigit((unsigned char)name[length - 1 - digits]))
        digits++;
    return digits && length >= digits + 3 && !memcmp(name + length - digits - 3, "+0x", 3);
}

/* The longest of the name's forms that fits, or the shortest. */
static void choose_form(const char **name, size_t *length, struct buffer *bare, size_t columns)
{
    if (*length > NAME_BYTES_MAX || is_place(*name, *length) || strchr("[(<", (*name)[0]) ||
        memmem(*name, *length, "operator", strlen("operator")) ||
        svg_columns(*name, *length) <= columns)
        return;
    add_without_arguments(bare, *name, *length);
    if (bare->length) {
        *name = bare->data;
        *length = bare->length;
    }
    size_t start;
    while (svg_columns(*name, *length) > columns && (start = next_piece(*name, *length))) {
        *name += start;
        *length -= start;
    }
}

void svg_add_label(struct buffer *out, const char *name, size_t length, size_t columns)
{
    _cleanup_buffer_ struct buffer bare = {0};
    if (columns < CUT_COLUMNS_MIN && length > NAME_BYTES_MAX)
        return;
    choose_form(&name, &length, &bare, columns);
    if (columns >= CUT_COLUMNS_MIN || svg_columns(name, length) <= columns)
        svg_add_cut(out, name, length, columns);
}
