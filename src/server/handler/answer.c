// SPDX-License-Identifier: Apache-2.0
// Answers that may be large: see answer.h.

#include "server/handler/answer.h"

#include "format/format.h"
#include "io/gzip.h"
#include "server/admission/admission.h"
#include "server/handler/handler.h"

#define WHOLE_BYTES (256u << 10) /* what is sent whole */
#define PIECE_BYTES (64u << 10)

static int write_piece(void *request, const void *bytes, size_t length)
{
    return http_write(request, bytes, length);
}

static int begin(struct answer *answer)
{
    http_respond_header(answer->request, "Cache-Control", "no-store");
    int r = http_respond_stream(answer->request, 200, answer->content_type);
    if (r < 0)
        return r;
    answer->streaming = true;
    answer->drain.piece_bytes = PIECE_BYTES;
    if (answer->gzip)
        answer->compressor = gzip_stream_new();
    admit_keep(answer->held_bytes);
    return 0;
}

static int take(void *context, const void *bytes, size_t length)
{
    struct answer *answer = context;
    int r = answer->streaming ? 0 : begin(answer);
    if (r < 0)
        return r;
    return answer->compressor
               ? gzip_stream_put(answer->compressor, bytes, length, write_piece, answer->request)
               : http_write(answer->request, bytes, length);
}

void answer_init(struct answer *answer, struct http_request *request, const char *content_type)
{
    *answer = (struct answer){.request = request, .content_type = content_type};
    answer->drain =
        (struct buffer_drain){.take = take, .context = answer, .piece_bytes = WHOLE_BYTES};
    answer->out.drain = &answer->drain;
}

void answer_release(struct answer *answer)
{
    buffer_release(&answer->out);
    gzip_stream_free(answer->compressor);
}

static int send_whole(struct answer *answer, struct error *error)
{
    struct buffer compressed = {0};
    int r = 0;
    if (answer->gzip && format_compress_gzip(&answer->out, &compressed) < 0)
        r = error_set(error, -ENOMEM, "Failed to compress the profile.");
    else
        api_respond(answer->request, answer->content_type,
                    answer->gzip ? &compressed : &answer->out);
    buffer_release(&compressed);
    return r;
}

int answer_end(struct answer *answer, int r, struct error *error)
{
    struct buffer_drain *drain = &answer->drain;
    if (!answer->streaming && r >= 0 && drain->failure >= 0)
        return send_whole(answer, error);
    if (drain->failure == -EAGAIN)
        return error_set(error, -EAGAIN,
                         "Too many large answers are in progress; try again later.");
    if (r >= 0 && answer->streaming)
        r = buffer_drain(&answer->out) ? 0 : drain->failure;
    if (r >= 0 && answer->compressor)
        r = gzip_stream_end(answer->compressor, write_piece, answer->request);
    if (r < 0 && answer->streaming)
        http_abort(answer->request);
    return r;
}
