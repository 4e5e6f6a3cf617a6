// SPDX-License-Identifier: Apache-2.0
// Bodies of forms (multipart/form-data), whole in memory.

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "server/ingest/receive.h"

int multipart_init(struct multipart *parts, const char *content_type, const void *body,
                   size_t length, struct error *error)
{
    const char *found = strcasestr(content_type, "boundary=");
    *parts = (struct multipart){.at = body, .end = (const char *)body + length};
    if (found) {
        found += strlen("boundary=");
        bool quoted = *found == '"';
        found += quoted;
        size_t count = strcspn(found, quoted ? "\"" : "; \t");
        if (count && count <= 70) {
            parts->boundary[0] = parts->boundary[1] = '-';
            memcpy(parts->boundary + 2, found, count);
            parts->boundary_length = count + 2;
        }
    }
    if (!parts->boundary_length)
        return error_set(error, -EINVAL, "The form's Content-Type has no boundary.");
    /* Bytes before the first boundary are ignored. */
    const char *first =
        length ? memmem(body, length, parts->boundary, parts->boundary_length) : NULL;
    if (!first)
        return error_set(error, -EBADMSG,
                         "The form has no parts: it doesn't contain its boundary.");
    parts->at = first + parts->boundary_length;
    return 0;
}

/* The name in `Content-Disposition: form-data; name="profile"; filename="x"`. */
static void read_name(const char *line, size_t length, struct multipart_part *part)
{
    static const char header[] = "Content-Disposition:";
    if (length < sizeof(header) || strncasecmp(line, header, sizeof(header) - 1))
        return;
    const char *at = line, *end = line + length;
    while ((at = memmem(at, (size_t)(end - at), "name=", 5))) {
        bool own = at > line && (at[-1] == ' ' || at[-1] == ';'); /* not that of "filename=" */
        at += 5;
        if (!own)
            continue;
        bool quoted = at < end && *at == '"';
        at += quoted;
        size_t count = 0;
        while (at + count < end && (quoted ? at[count] != '"' : !strchr("; \r", at[count])))
            count++;
        count = MIN(count, sizeof(part->name) - 1);
        memcpy(part->name, at, count);
        part->name[count] = 0;
        return;
    }
}

int multipart_next(struct multipart *parts, struct multipart_part *ret_part, struct error *error)
{
    const char *at = parts->at, *end = parts->end;
    if (end - at >= 2 && at[0] == '-' && at[1] == '-')
        return 0;
    struct multipart_part part = {0};
    for (;;) { /* the rest of the boundary's line, then headers up to an empty line */
        const char *newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        if (!newline)
            return error_set(error, -EBADMSG, "A part of the form ends within its headers.");
        size_t length = (size_t)(newline - at);
        length -= length && at[length - 1] == '\r';
        bool first = at == parts->at, blank = !length;
        read_name(at, length, &part);
        at = newline + 1;
        if (blank && !first)
            break;
    }
    const char *boundary =
        at < end ? memmem(at, (size_t)(end - at), parts->boundary, parts->boundary_length) : NULL;
    while (boundary && boundary > at && boundary[-1] != '\n') {
        const char *next = boundary + 1;
        boundary = memmem(next, (size_t)(end - next), parts->boundary, parts->boundary_length);
    }
    if (!boundary)
        return error_set(error, -EBADMSG, "The form's last part is not terminated.");
    part.data = at;
    part.length = (size_t)(boundary - at);
    part.length -= part.length && at[part.length - 1] == '\n';
    part.length -= part.length && at[part.length - 1] == '\r';
    parts->at = boundary + parts->boundary_length;
    *ret_part = part;
    return 1;
}
