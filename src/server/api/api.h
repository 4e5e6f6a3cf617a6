/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the answers of our own API. Private to src/server. */
#pragma once

#include "format/format.h"
#include "profile/naming.h"
#include "profile/views/rank.h"
#include "server/handler/parameters.h"
#include "server/query/context.h"

#define API_ROWS 100 /* of a table, unless `limit` says otherwise */
#define API_ROWS_MAX 1000000

/* The requested format; NULL for JSON. */
int api_asked_format(struct http_request *request, const char *otherwise,
                     const struct format **ret_format, struct error *error);
const char *api_content_type(const struct format *format);

/* Answers with the whole profile in a format. */
int api_write_format(struct http_request *request, const struct profile *profile,
                     const struct format *format, const char *title, struct error *error);

/* sort=flat or sort=cum. */
int api_asked_order(struct http_request *request, enum rank_order *ret_order, struct error *error);

/* The members "function", "file" and "binary" of an object. */
void api_put_function(struct json_writer *json, const struct naming_entry *entry);

/* The error of a function that no stack has. */
int api_missing_function(const char *function, struct error *error);

/* The members "type" and "unit" of an object. */
void api_put_unit(struct json_writer *json, const char *type);

/* ---- the handlers ---- */

server_handler api_types, api_labels, api_label_values, api_series, api_senders; /* api.c */
server_handler api_build;
server_handler api_flame, api_profile, api_top; /* api_profiles.c, api_top.c */
server_handler api_callers, api_lines, api_diff;
server_handler api_triage;
server_handler api_files_flame, api_files_diff; /* api_files.c */
server_handler api_recorded;                    /* api_recorded.c */
server_handler api_timeseries, api_exemplars;   /* api_points.c, api_exemplars.c */
server_handler api_document, api_page;          /* api_document.c */
