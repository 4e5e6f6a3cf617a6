/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that may be large. Up to a few hundred KiB are sent whole, with their length; larger
 * answers go to the client in pieces while the rest is written, so that no answer is ever whole in
 * memory. A client that reads slowly blocks its writer; one that disconnects ends it. Private to
 * src/server.
 */
#pragma once

#include "base/buffer.h"
#include "http/server/request.h"

struct gzip_stream;

struct answer {
    struct buffer out; /* written to; pieces go where its writers call buffer_pass() */
    struct http_request *request;
    const char *content_type;
    bool gzip;         /* the answer is a gzip file of what is written */
    size_t held_bytes; /* memory that is kept while the client reads; 0: half of what was taken */

    struct buffer_drain drain; /* private from here on */
    struct gzip_stream *compressor;
    bool streaming;
};

/* `answer` must stay where it is. `content_type` is kept as it is. */
void answer_init(struct answer *answer, struct http_request *request, const char *content_type);
void answer_release(struct answer *answer);
#define _cleanup_answer_ _cleanup_(answer_release)

/* The end: answers if that wasn't begun, or sends the rest. `r` is what writing ended with: when it
 * is negative, an answer that has begun is cut off, and one that hasn't is left to the caller.
 * Returns `r`, or why the client didn't get it all. */
int answer_end(struct answer *answer, int r, struct error *error);
