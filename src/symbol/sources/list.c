// SPDX-License-Identifier: Apache-2.0
// Paths of source files, and lists of them with the hashes of their contents. See sources.h.

#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"
#include "symbol/sources/sources.h"

#define HASH_BYTES (SOURCE_HASH_DIGITS / 2)

/* ---- paths ---- */

static bool is_plain(const char *path, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)path[i] < ' ' || path[i] == 0x7f)
            return false;
    return length && length <= SOURCE_PATH_BYTES_MAX;
}

/* One step up; false at the top, which is not an error for absolute paths. */
static bool step_up(struct buffer *path, bool absolute)
{
    if (!path->length)
        return absolute;
    const char *slash = memrchr(path->data, '/', path->length);
    path->length = slash ? (size_t)(slash - path->data) : 0;
    return true;
}

bool source_path(const char *path, size_t length, struct buffer *ret_path)
{
    bool absolute = length && path[0] == '/';
    ret_path->length = 0;
    if (!is_plain(path, length))
        return false;
    for (size_t at = 0; at < length;) {
        const char *slash = memchr(path + at, '/', length - at);
        size_t part = slash ? (size_t)(slash - path) - at : length - at;
        const char *name = path + at;
        at += part + 1;
        if (part == 2 && !memcmp(name, "..", 2)) {
            if (!step_up(ret_path, absolute))
                return false;
        } else if (part && !(part == 1 && *name == '.')) {
            if (ret_path->length || absolute)
                buffer_add_char(ret_path, '/');
            buffer_add(ret_path, name, part);
        }
    }
    buffer_text(ret_path);
    return ret_path->length > 0;
}

/* ---- hashes ---- */

bool source_is_hash(const char *text)
{
    return strspn(text, "0123456789abcdef") == SOURCE_HASH_DIGITS && !text[SOURCE_HASH_DIGITS];
}

bool source_hash(const void *bytes, size_t length, char ret_hash[SOURCE_HASH_DIGITS + 1])
{
    uint8_t digest[HASH_BYTES];
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes ? bytes : "", length, digest) < 0)
        return false;
    hex_encode(digest, HASH_BYTES, ret_hash);
    return true;
}

/* ---- lists ---- */

void source_list_release(struct source_list *list)
{
    free(list->items);
    arena_release(&list->text);
    *list = (struct source_list){0};
}

static int add_line(struct source_list *list, size_t number, const char *line, size_t length,
                    struct buffer *scratch, struct error *error)
{
    struct source_item item = {.order = (uint32_t)list->count};
    if (length > SOURCE_HASH_DIGITS)
        memcpy(item.hash, line, SOURCE_HASH_DIGITS);
    if (!source_is_hash(item.hash) || length < SOURCE_HASH_DIGITS + 3 ||
        memcmp(line + SOURCE_HASH_DIGITS, "  ", 2))
        return error_set(error, -EINVAL,
                         "Line %zu of the list of sources is not a lower-case SHA-256, two spaces "
                         "and a path, as written by sha256sum.",
                         number);
    if (!source_path(line + SOURCE_HASH_DIGITS + 2, length - SOURCE_HASH_DIGITS - 2, scratch))
        return error_set(error, -EINVAL,
                         "The path in line %zu of the list of sources is not a valid file path: it "
                         "is too long, has control characters, or leads out of its root.",
                         number);
    if (number > SOURCE_LIST_FILES_MAX)
        return error_set(error, -E2BIG, "The limit is %d source files per build.",
                         SOURCE_LIST_FILES_MAX);
    item.path = arena_strndup(&list->text, scratch->data, scratch->length);
    array_reserve(list->items, list->capacity, list->count + 1);
    list->items[list->count++] = item;
    return 0;
}

int source_list_read(struct source_list *list, const char *text, size_t length, struct error *error)
{
    _cleanup_buffer_ struct buffer scratch = {0};
    size_t number = 0;
    int r = 0;
    for (size_t at = 0; !r && at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t line = end ? (size_t)(end - text) - at : length - at;
        r = add_line(list, ++number, text + at, line, &scratch, error);
        at += line + 1;
    }
    return r;
}

static int by_path(const void *left, const void *right)
{
    const struct source_item *a = left, *b = right;
    int order = strcmp(a->path, b->path);
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

void source_list_sort(struct source_list *list)
{
    size_t kept = 0;
    if (list->count)
        qsort(list->items, list->count, sizeof(*list->items), by_path);
    for (size_t i = 0; i < list->count; i++) {
        if (kept && !strcmp(list->items[kept - 1].path, list->items[i].path))
            kept--;
        list->items[kept++] = list->items[i];
    }
    list->count = kept;
    for (size_t i = 0; i < kept; i++)
        list->items[i].order = (uint32_t)i;
}

void source_list_write(const struct source_list *list, struct buffer *out)
{
    for (size_t i = 0; i < list->count; i++) {
        buffer_add(out, list->items[i].hash, SOURCE_HASH_DIGITS);
        buffer_add_text(out, "  ");
        buffer_add_text(out, list->items[i].path);
        buffer_add_char(out, '\n');
    }
}

static int compare_path(const void *path, const void *item)
{
    return strcmp(path, ((const struct source_item *)item)->path);
}

const struct source_item *source_list_find(const struct source_list *list, const char *path)
{
    return list->count ? bsearch(path, list->items, list->count, sizeof(*list->items), compare_path)
                       : NULL;
}
