/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the handlers of the symbol service. Private to src/server. */
#pragma once

#include "server/handler/handler.h"
#include "server/handler/parameters.h"
#include "server/symbols/symbols.h"

/* One word for a quality: nothing, starts, dynamic, symbols, lines, inlines. */
const char *symbols_quality_word(enum symbol_index_quality quality);

/* Reads the body as a file of that build (NULL: of whichever it is) into the store. */
int symbols_take_body(struct http_request *request, struct server *server, const char *key,
                      const char *name, struct symbol_stored *ret_stored, struct error *error);

/* The text of a source of the request's tenant; -EAGAIN: not enough memory now. */
int sources_read(struct http_request *request, struct server *server, const char *key,
                 const char *path, struct buffer *ret_text, struct error *error);

#define SOURCES_BUILDS_MAX 32 /* of one answer that are looked at */

/* The member "sources":[{"file":...,"build_id":...}] of an object: those of the files
 * wanted[string] whose text is stored. Removes them from `wanted`. */
void sources_put_known(struct source_store *store, const char *tenant,
                       const struct profile *profile, bool *wanted, struct json_writer *json);

/* The key of a build ID that a request names, or -EINVAL. */
int symbols_asked_key(const char *text, char ret_key[SYMBOL_KEY_BYTES], struct error *error);

/* ---- the handlers ---- */

server_handler symbols_upload, symbols_known, symbols_list, symbols_missing, symbols_delete;
server_handler debuginfod_get;                             /* symbols_debuginfod.c */
server_handler sources_put_list, sources_put, sources_get; /* sources_api.c */
server_handler source_links_get;                           /* source_links.c */
server_handler maps_upload, maps_list, maps_delete;        /* maps_api.c */
