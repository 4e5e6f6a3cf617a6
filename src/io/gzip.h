/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip in pieces, for what is sent while it is being made. What is whole in memory is compressed by
 * format_compress_gzip(), which is better at it.
 */
#pragma once

#include <stddef.h>

struct gzip_stream;

/* Takes some 300 KiB. */
struct gzip_stream *gzip_stream_new(void);
void gzip_stream_free(struct gzip_stream *stream); /* takes NULL */

/* Gets what is compressed; negative ends the call, which returns that. */
typedef int gzip_take_fn(void *context, const void *bytes, size_t length);

/* The output may be of earlier pieces. */
int gzip_stream_put(struct gzip_stream *stream, const void *bytes, size_t length,
                    gzip_take_fn *take, void *context);

/* The rest, and the end of the file; nothing may be put after that. */
int gzip_stream_end(struct gzip_stream *stream, gzip_take_fn *take, void *context);
