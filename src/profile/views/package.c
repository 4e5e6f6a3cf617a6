// SPDX-License-Identifier: Apache-2.0
// Packages of functions: see package.h. The page does the same (web/flame/data/names.ts).

#include "profile/views/package.h"

#include <string.h>

#include "base/memory.h"

#define NAME_BYTES_MAX 1024 /* of a name, what its package follows from */

static struct package leading(const char *text, const char *end)
{
    return (struct package){.text = text, .length = (size_t)(end - text)};
}

struct package package_of(const struct calltree_function *function)
{
    const char *name = function->name;
    size_t length = 0;
    while (length < MIN(function->length, (size_t)NAME_BYTES_MAX) && !strchr("<( \t", name[length]))
        length++;
    const char *scope = memmem(name, length, "::", 2);
    if (scope && scope > name)
        return leading(name, scope);
    /* Go: the package path ends at the first dot after the last slash. */
    const char *slash = memrchr(name, '/', length);
    const char *from = slash ? slash + 1 : name;
    const char *dot = memchr(from, '.', (size_t)(name + length - from));
    if (slash > name && dot)
        return leading(name, dot);
    if (dot && dot > name) {
        /* Java and its kin: com.example.Type.method belongs to com.example. */
        const char *second = memchr(dot + 1, '.', (size_t)(name + length - dot - 1));
        const char *third =
            second ? memchr(second + 1, '.', (size_t)(name + length - second - 1)) : NULL;
        return leading(name, third ? second : dot);
    }
    if (function->binary[0])
        return leading(function->binary,
                       function->binary + strnlen(function->binary, NAME_BYTES_MAX));
    const char *folder = memrchr(function->file, '/', strnlen(function->file, NAME_BYTES_MAX));
    return leading(function->file, folder ? folder : function->file);
}
