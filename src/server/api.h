/* SPDX-License-Identifier: Apache-2.0 */
/* What answers of our own API have in common. Private to src/server. */
#pragma once

#include "format/format.h"
#include "profile/naming.h"
#include "profile/rank.h"
#include "server/question.h"

#define API_ROWS 100 /* of a table, unless `limit` says otherwise */
#define API_ROWS_MAX 1000000

/* The format that is asked for; NULL for JSON. */
int api_asked_format(struct http_request *request, const char *otherwise,
                     const struct format **ret_format, struct error *error);
const char *api_content_type(const struct format *format);

/* Answers with the whole profile in a format. */
int api_write_format(struct http_request *request, const struct profile *profile,
                     const struct format *format, const char *title, struct error *error);

/* sort=flat or sort=cum. */
int api_asked_order(struct http_request *request, enum rank_order *ret_order, struct error *error);

/* {"function":...,"file":...,"binary":..., without its end. */
void api_put_function(struct buffer *out, const struct naming_entry *entry);

/* "type":...,"unit":... */
void api_put_unit(struct buffer *out, const char *type);
