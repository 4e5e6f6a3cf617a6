/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JSON document with a version, as servers keep their state in: an object whose member "version"
 * comes first. Members that nobody reads are skipped.
 */
#pragma once

#include "io/json.h"

struct document_member {
    const char *name; /* NULL: the end of a table */
    bool is_list;     /* `read` is called for each element of an array */
    int (*read)(struct json *json, void *context);
};

/* -ENOTSUP: a newer program wrote it, so it isn't damaged. `version` is the one that is known. */
int document_read(const char *text, size_t length, size_t bytes_max, unsigned version,
                  const struct document_member *members, void *context, struct error *error);

/* A string that is valid UTF-8 without NULs: anything else would be longer when it is written
 * again. Longer ones than fit are refused. */
int document_text(struct json *json, char *to, size_t room);
int document_text_buffer(struct json *json, struct buffer *to, size_t most);
bool document_is_text(const struct json_string *text);
