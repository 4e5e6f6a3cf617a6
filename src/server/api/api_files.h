/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles on the page that aren't stored: files that were dropped on it, and those of `assay
 * view`. Also for src/cli/file/view.c, which has no server around it.
 */
#pragma once

#include "format/format.h"
#include "format/picture/flamedata.h"
#include "http/server/request.h"
#include "profile/views/diff.h"
#include "server/api/tree_part.h"

struct server;

/* Of a file's picture, unless told otherwise. */
#define FILES_NODES FILES_NODES_MAX /* a page adds up what it has */
#define FILES_NODES_MAX FLAME_NODES_MAX

struct file_profile {
    const char *name;            /* for titles */
    const struct format *format; /* what it was read from; NULL: a selection of stored ones */
    const struct profile *profile;
};

/* {"format":...,"quality":{...},"flame":{...}} */
int files_put_flame(struct buffer *out, const struct file_profile *file,
                    const struct tree_part *part, struct error *error);

struct files_comparison {
    const struct file_profile *base, *new_side;
    enum diff_normalize normalize;
    const struct format *format; /* svg or html; NULL: JSON */
};

/* normalize and format among the parameters. */
int files_read_comparison(struct files_comparison *comparison, struct http_request *request,
                          struct error *error);

/* {"base":{...},"new":{...},"flame":{...}}, each side with its format and quality; or a picture.
 * -EINVAL when they have no sample type in common. */
int files_put_diff(struct buffer *out, const struct files_comparison *comparison,
                   const struct tree_part *part, struct error *error);

/* Reads a file that somebody sent, within memory by the limit on what its source expands to.
 * -E2BIG: it takes more. */
int files_read_profile(struct source *source, struct profile *profile,
                       const struct format **ret_format, struct error *error);
uint64_t files_expansion_limit(const struct server *server);

/* Answers about the request's body, which may expand to `limit` bytes. Without a server, it can
 * only be compared with another part of the same body. */
void files_answer_flame(struct http_request *request, uint64_t limit);
void files_answer_diff(struct http_request *request, uint64_t limit, struct server *server);
