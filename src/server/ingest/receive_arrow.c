// SPDX-License-Identifier: Apache-2.0
// Takes samples as Parca's agent sends them: Arrow streams, in one message (WriteArrow) or in two,
// between which the agent is asked for stacks (Write).

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "format/parca/parca.h"
#include "io/wire.h"
#include "server/admission/admission.h"
#include "server/ingest/receive.h"

/* They would make a series of each thread on each processor. */
static const char *const unkept[] = {"cpu", "thread_id", NULL};

/* Totals are compared with those before of the same agent, which "node" names. */
static void name_agent(struct receipt *receipt, const struct profile *profile)
{
    size_t count;
    labels_clear(&receipt->labels);
    if (!profile->samples.count)
        return;
    const struct profile_label *list = profile_labels(profile, profile->samples.labels[0], &count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(profile_text(profile, list[i].key), "node"))
            labels_set(&receipt->labels, "node", profile_text(profile, list[i].text));
}

static int take(void *context, struct profile *profile, bool total, struct error *error)
{
    struct receipt *receipt = context;
    if (total)
        name_agent(receipt, profile);
    receipt->source.known_cumulative = total;
    int r = ingest_batch_add(&receipt->batch, &receipt->source, profile, error);
    labels_clear(&receipt->labels);
    return r;
}

static bool begin(struct receipt *receipt, struct http_request *request, struct server *server)
{
    if (!receipt_init(receipt, request, server))
        return false;
    receipt->source.attributes = true;
    receipt->source.unkept = unkept;
    return true;
}

/* The bytes of the message's only field. */
static int find_record(const void *message, size_t length, struct wire_field *ret_record,
                       struct error *error)
{
    return wire_find_bytes(message, length, 1, ret_record) < 0
               ? error_set(error, -EBADMSG, "The request is not a valid protobuf message.")
               : 0;
}

static struct parca_input input_of(struct receipt *receipt, const struct wire_field *samples)
{
    struct ingest_limits limits = ingest_limits(receipt->server->ingest);
    return (struct parca_input){.samples = samples->data,
                                .samples_length = samples->length,
                                .expansion_limit = limits.expansion_bytes,
                                .row_limit = limits.samples};
}

/* Samples have times to the nanosecond, so the same bytes are the same samples, sent again by
 * somebody who saw no answer. */
static int read_input(struct receipt *receipt, const struct parca_input *input, struct error *error)
{
    XXH128_hash_t hash = XXH3_128bits(input->samples, input->samples_length);
    snprintf(receipt->batch_id, sizeof(receipt->batch_id), "arrow-%016llx%016llx",
             (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    return parca_read(input, INGEST_DETAIL, take, receipt, error);
}

void receive_arrow(struct http_request *request, void *server)
{
    _cleanup_receipt_ struct receipt receipt;
    struct error error = {0};
    struct http_source *source = NULL;
    struct wire_field record;
    const uint8_t *body = NULL;
    size_t length = 0;
    if (!begin(&receipt, request, server))
        return;
    int r = 0;
    if (!http_request_is_type(request, "application/proto"))
        r = error_set(&error, -ENOTSUP, "WriteArrow must be gRPC or application/proto.");
    if (!r)
        r = receipt_body(&receipt, &source, &body, &length, &error);
    if (!r)
        r = find_record(body, length, &record, &error);
    if (!r) {
        struct parca_input input = input_of(&receipt, &record);
        r = read_input(&receipt, &input, &error);
    }
    if (receipt_finish(&receipt, r, &error))
        http_respond_text(request, 200, "application/proto", "");
    http_source_close(source);
}

/* ---- the stream ---- */

static int next_record(struct receipt *receipt, struct buffer *message,
                       struct wire_field *ret_record, struct error *error)
{
    size_t limit = (size_t)ingest_limits(receipt->server->ingest).body_bytes;
    int r = http_message_read(receipt->request, limit, message, error);
    if (r <= 0)
        return r < 0 ? r : error_set(error, -EBADMSG, "The stream ends before its samples do.");
    return find_record(message->data, message->length, ret_record, error);
}

/* Asks for the frames of stacks that samples name by ids. All of them: nothing is kept of earlier
 * requests, so that servers can be started again and stand side by side. */
static int fetch_stacks(struct receipt *receipt, struct parca_input *input, struct buffer *message,
                        struct error *error)
{
    _cleanup_buffer_ struct buffer ids = {0}, answer = {0};
    struct wire_field record;
    int64_t count = parca_ask(input, &ids, error);
    if (count <= 0)
        return (int)count;
    wire_put_bytes(&answer, 1, ids.data, ids.length);
    http_request_computed(receipt->request);
    int r = http_message_write(receipt->request, answer.data, answer.length);
    if (r < 0)
        return error_set(error, r, "The agent has gone before it sent its stacks.");
    if ((r = next_record(receipt, message, &record, error)) < 0)
        return r;
    input->stacks = record.data ? record.data : (const void *)"";
    input->stacks_length = record.length;
    return 0;
}

static void receive_stream(struct http_request *request, struct server *server)
{
    _cleanup_receipt_ struct receipt receipt;
    _cleanup_buffer_ struct buffer samples = {0}, stacks = {0};
    struct error error = {0};
    struct wire_field record;
    if (!begin(&receipt, request, server))
        return;
    int r = next_record(&receipt, &samples, &record, &error);
    if (!r) {
        struct parca_input input = input_of(&receipt, &record);
        r = fetch_stacks(&receipt, &input, &stacks, &error);
        if (!r)
            r = read_input(&receipt, &input, &error);
    }
    if (receipt_finish(&receipt, r, &error))
        http_message_end(request);
}

void receive_arrow_stream(struct http_request *request, void *server)
{
    if (http_request_is_grpc(request))
        receive_stream(request, server);
    else
        http_respond_code(request, HTTP_UNIMPLEMENTED, "Write requires gRPC; use WriteArrow.");
}
