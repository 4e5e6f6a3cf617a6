// SPDX-License-Identifier: Apache-2.0
// gzip in pieces: see gzip.h. ISA-L's deflate at its first level with tables of its own.

#include "io/gzip.h"

#include <errno.h>
#include <isa-l/igzip_lib.h>

#include "base/memory.h"

#define OUTPUT_BYTES (32u << 10)

struct gzip_stream {
    struct isal_zstream state;
    uint8_t tables[ISAL_DEF_LVL1_DEFAULT];
    uint8_t output[OUTPUT_BYTES];
};

struct gzip_stream *gzip_stream_new(void)
{
    struct gzip_stream *stream = memory_alloc(sizeof(*stream));
    isal_deflate_init(&stream->state);
    stream->state.gzip_flag = IGZIP_GZIP;
    stream->state.level = 1;
    stream->state.level_buf = stream->tables;
    stream->state.level_buf_size = sizeof(stream->tables);
    stream->state.flush = NO_FLUSH;
    return stream;
}

void gzip_stream_free(struct gzip_stream *stream)
{
    free(stream);
}

/* Until all input is taken and, at the end, all output is out. */
static int run(struct gzip_stream *stream, gzip_take_fn *take, void *context)
{
    struct isal_zstream *state = &stream->state;
    int r = 0;
    do {
        state->next_out = stream->output;
        state->avail_out = sizeof(stream->output);
        if (isal_deflate(state) != COMP_OK)
            return -EIO;
        size_t length = sizeof(stream->output) - state->avail_out;
        if (length)
            r = take(context, stream->output, length);
    } while (r >= 0 && (!state->avail_out || state->avail_in));
    return MIN(r, 0);
}

int gzip_stream_put(struct gzip_stream *stream, const void *bytes, size_t length,
                    gzip_take_fn *take, void *context)
{
    int r = 0;
    while (length && r >= 0) {
        size_t piece = MIN(length, (size_t)1 << 30);
        stream->state.next_in = (uint8_t *)bytes;
        stream->state.avail_in = (uint32_t)piece;
        r = run(stream, take, context);
        bytes = (const uint8_t *)bytes + piece;
        length -= piece;
    }
    return r;
}

int gzip_stream_end(struct gzip_stream *stream, gzip_take_fn *take, void *context)
{
    stream->state.next_in = NULL;
    stream->state.avail_in = 0;
    stream->state.end_of_stream = 1;
    return run(stream, take, context);
}
