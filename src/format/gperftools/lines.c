// SPDX-License-Identifier: Apache-2.0
// Lines of the text profiles that several kinds share: stacks of addresses, and the symbols that
// Java agents and Go put beside them. See gperftools.h.

#include "format/gperftools/gperftools.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

static size_t skip_space(const char *text, size_t length, size_t at)
{
    while (at < length && isspace((unsigned char)text[at]))
        at++;
    return at;
}

/* "0x12ab" at *at, which moves behind it. */
static bool take_address(const char *text, size_t length, size_t *at, uint64_t *ret_address)
{
    size_t i = *at;
    if (length - i < 3 || text[i] != '0' || text[i + 1] != 'x')
        return false;
    uint64_t address = 0;
    size_t first = i += 2;
    for (; i < length && isxdigit((unsigned char)text[i]); i++) {
        if (address >> 60)
            return false;
        address = address << 4 |
                  (uint64_t)(isdigit((unsigned char)text[i]) ? text[i] - '0'
                                                             : (text[i] | 0x20) - 'a' + 10);
    }
    if (i == first)
        return false;
    *at = i;
    *ret_address = address;
    return true;
}

bool gperftools_stack(struct gperftools *reader, const char *text, size_t length, int adjust)
{
    reader->frame_count = 0;
    for (size_t at = skip_space(text, length, 0); at < length; at = skip_space(text, length, at)) {
        uint64_t address;
        if (!take_address(text, length, &at, &address) ||
            (at < length && !isspace((unsigned char)text[at])))
            return false;
        gperftools_add_address(reader, address + (uint64_t)(int64_t)adjust);
    }
    return true;
}

bool gperftools_add_addresses(struct gperftools *reader, const char *text, size_t length)
{
    for (size_t at = 0; at + 2 < length;) {
        const char *found = memmem(text + at, length - at, "0x", 2);
        uint64_t address;
        if (!found)
            break;
        at = (size_t)(found - text);
        if (at + 2 >= length || !isxdigit((unsigned char)text[at + 2])) {
            at += 2;
            continue;
        }
        if (!take_address(text, length, &at, &address))
            return false;
        gperftools_add_address(reader, reader->frame_count ? address - 1 : address);
    }
    return true;
}

/* "name (File.java:12)", "name (/path/lib.so)", or a name alone. */
bool gperftools_java_location(struct gperftools *reader, const char *line, size_t length)
{
    uint64_t address, number;
    size_t at = skip_space(line, length, 0);
    while (length > at && isspace((unsigned char)line[length - 1]))
        length--;
    if (!take_address(line, length, &at, &address) || at == length ||
        !isspace((unsigned char)line[at]))
        return false;
    const char *name = line + skip_space(line, length, at), *end = line + length;
    const char *file = "";
    size_t name_length = (size_t)(end - name), file_length = 0;
    uint32_t line_number = 0;
    const char *open = name_length > 2 && end[-1] == ')' ? memrchr(name, '(', name_length) : NULL;
    if (open && open > name && isspace((unsigned char)open[-1])) {
        file = open + 1;
        file_length = (size_t)(end - 1 - file);
        const char *colon = memrchr(file, ':', file_length);
        const char *digits = colon ? colon + 1 : NULL;
        if (colon && *digits == '-')
            digits++;
        if (colon && text_to_u64(digits, (size_t)(end - 1 - digits), &number)) {
            line_number = digits == colon + 1 && number <= UINT32_MAX ? (uint32_t)number : 0;
            file_length = (size_t)(colon - file);
        } else {
            /* A native library: its directory says nothing. */
            const char *slash = memrchr(file, '/', file_length);
            if (slash) {
                file_length -= (size_t)(slash + 1 - file);
                file = slash + 1;
            }
        }
        for (name_length = (size_t)(open - name); isspace((unsigned char)name[name_length - 1]);)
            name_length--;
    } else if (memmem(name, name_length, "generated stub/JIT", 18)) {
        name = "STUB";
        name_length = 4;
    }
    if (!gperftools_is_listed(reader, address))
        gperftools_add_symbol(reader, address, name, name_length, file, file_length, line_number);
    return true;
}

void gperftools_end_symbols(struct gperftools *reader)
{
    reader->group.length = 0;
    reader->group_open = false;
}

/* Lines with one address belong together: the first was inlined into the second, and so on, until
 * the first comes again because a function called itself. An address is explained once; false when
 * this one is already. */
static bool belongs_to_group(struct gperftools *reader, uint64_t address, const char *line,
                             size_t length)
{
    struct buffer *first = &reader->group;
    if (first->length && reader->group_address == address) {
        if (first->length == length && !memcmp(first->data, line, length))
            reader->group_open = false;
        return reader->group_open;
    }
    reader->group_address = address;
    reader->group_open = !gperftools_is_listed(reader, address);
    first->length = 0;
    buffer_add(first, line, length);
    return reader->group_open;
}

bool gperftools_go_symbol(struct gperftools *reader, const char *line, size_t length)
{
    uint64_t address, number;
    if (!length || *line != '#')
        return false;
    size_t at = skip_space(line, length, 1);
    if (!take_address(line, length, &at, &address))
        return false;
    at = skip_space(line, length, at);
    if (!belongs_to_group(reader, address, line, length))
        return true;

    const char *name = line + at, *end = line + length;
    const char *tab = memchr(name, '\t', (size_t)(end - name));
    size_t name_length = (size_t)((tab ? tab : end) - name);
    const char *file = tab ? tab : end;
    while (file < end && isspace((unsigned char)*file))
        file++;
    const char *plus = memrchr(name, '+', name_length);
    if (plus)
        name_length = (size_t)(plus - name);
    const char *colon = file < end ? memrchr(file, ':', (size_t)(end - file)) : NULL;
    uint32_t line_number = 0;
    if (colon && text_to_u64(colon + 1, (size_t)(end - colon - 1), &number))
        line_number = number <= UINT32_MAX ? (uint32_t)number : 0;
    else
        colon = end;
    gperftools_add_symbol(reader, address, name, name_length, file, (size_t)(colon - file),
                          line_number);
    return true;
}
