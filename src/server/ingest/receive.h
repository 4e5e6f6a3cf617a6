/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the handlers that receive profiles. Private to src/server. */
#pragma once

#include "format/format.h"
#include "server/handler/handler.h"
#include "server/ingest/ingest.h"

/* Whose functions are named with their file: see ingest_name_scripts(). */
enum receipt_scripts { SCRIPTS_NONE, SCRIPTS_RELATIVE, SCRIPTS_ALL };

/* One push, from its request to its answer. */
struct receipt {
    struct http_request *request;
    struct server *server;
    struct ingest_batch batch;
    struct ingest_source source; /* what holds for the whole request */
    struct labels labels;        /* source.labels points here */
    struct sender seen;
    const void *context_labels; /* of recordings: see format/jfr/labels.h; NULL: none */
    size_t context_labels_length;
    enum receipt_scripts scripts;
    bool parca;        /* of series: their messages differ a little */
    bool files;        /* of series: uploaded files, not a running process */
    bool unnamed;      /* of series: one of their profiles has no id */
    char batch_id[48]; /* "": what the header says */
};

/* False when the sender is over its quota; then this has answered. */
bool receipt_init(struct receipt *receipt, struct http_request *request, struct server *server);
void receipt_release(struct receipt *receipt);
#define _cleanup_receipt_ _cleanup_(receipt_release)

/* Writes the batch unless `r` is an error already, counts, and answers errors. True: all is well,
 * and the caller answers. */
bool receipt_finish(struct receipt *receipt, int r, struct error *error);

/* Reads one profile, by content where *format is NULL, which then says what it was. */
int receive_format(struct source *source, const struct format **format, struct profile *profile,
                   struct error *error);

/* Reads one profile, by content unless the format is given, and adds it to the batch. */
int receipt_read(struct receipt *receipt, struct source *source, const struct format *format,
                 struct error *error);
int receipt_read_memory(struct receipt *receipt, const void *data, size_t length,
                        const struct format *format, struct error *error);

/* The whole body, decompressed, at most limits.expansion_bytes; it lives until http_source_close.
 * The caller closes *ret_source, also after a failure. */
int receipt_body(struct receipt *receipt, struct http_source **ret_source, const uint8_t **ret_data,
                 size_t *ret_length, struct error *error);

/* ---- receive_series.c ---- */

/* Adds the profiles of a push.v1 message, or of Parca's, to the batch. */
int receipt_read_wire(struct receipt *receipt, const void *body, size_t length,
                      struct error *error);
int receipt_read_json(struct receipt *receipt, struct source *source, struct error *error);

/* ---- multipart.c ---- */

struct multipart {
    const char *at, *end; /* what is not looked at yet */
    char boundary[80];    /* with the two dashes */
    size_t boundary_length;
};

struct multipart_part {
    char name[64];
    const char *data;
    size_t length;
};

/* -EINVAL when the header names no boundary that can be. */
int multipart_init(struct multipart *parts, const char *content_type, const void *body,
                   size_t length, struct error *error);
/* 1 and a part, 0 at the end, or -EBADMSG. */
int multipart_next(struct multipart *parts, struct multipart_part *ret_part, struct error *error);

/* ---- the handlers ---- */

server_handler receive_push, receive_otlp;                          /* receive.c */
server_handler receive_ingest;                                      /* receive_ingest.c */
server_handler receive_connect_push, receive_parca, receive_coroot; /* receive_series.c */

server_handler receive_arrow, receive_arrow_stream; /* receive_arrow.c */

/* Answers and counts a push that doesn't fit into memory now. */
server_handler receive_refuse_memory;
