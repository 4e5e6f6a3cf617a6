// SPDX-License-Identifier: Apache-2.0
// Documents with a version: see document.h.

#include "io/document.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

static int check_version(struct json *json, uint64_t found, unsigned version)
{
    if (found == version)
        return 0;
    int r = json_fail(json, "Its version is %llu; this program supports version %u",
                      (unsigned long long)found, version);
    return found > version ? -ENOTSUP : r;
}

static int read_member(struct json *json, const struct document_member *member, void *context)
{
    if (!member->is_list)
        return member->read(json, context);
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0)
        r = member->read(json, context);
    return r;
}

static int read_members(struct json *json, unsigned version, const struct document_member *members,
                        void *context)
{
    struct json_string key;
    uint64_t found = 0;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "version")) {
            r = json_u64(json, &found);
            continue;
        }
        const struct document_member *member = members;
        while (member->name && !json_is(&key, member->name))
            member++;
        if (!member->name)
            continue;
        r = check_version(json, found, version);
        if (!r)
            r = read_member(json, member, context);
    }
    if (r >= 0)
        r = check_version(json, found, version);
    return r < 0 ? r : json_end(json);
}

int document_read(const char *text, size_t length, size_t bytes_max, unsigned version,
                  const struct document_member *members, void *context, struct error *error)
{
    struct source source;
    struct json json;
    int r = source_open_memory(&source, "the file", text, length, bytes_max, error);
    if (r < 0)
        return r;
    json_init(&json, &source, error);
    r = read_members(&json, version, members, context);
    json_release(&json);
    source_release(&source);
    return r;
}

/* ---- values ---- */

bool document_is_text(const struct json_string *text)
{
    return utf8_valid(text->data, text->length) && !memchr(text->data, 0, text->length);
}

static int read_text(struct json *json, size_t most, struct json_string *ret_text)
{
    int r = json_string(json, ret_text);
    if (r >= 0 && (ret_text->length > most || !document_is_text(ret_text)))
        r = json_fail(json, "A value is too long, or not text");
    return r;
}

int document_text(struct json *json, char *to, size_t room)
{
    struct json_string text;
    int r = read_text(json, room - 1, &text);
    if (r < 0)
        return r;
    memcpy(to, text.data, text.length);
    to[text.length] = 0;
    return 0;
}

int document_text_buffer(struct json *json, struct buffer *to, size_t most)
{
    struct json_string text;
    int r = read_text(json, most, &text);
    if (r < 0)
        return r;
    to->length = 0;
    buffer_add(to, text.data, text.length);
    return 0;
}
