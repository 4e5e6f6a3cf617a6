// SPDX-License-Identifier: Apache-2.0
// Spans: OTLP's traces in protobuf and JSON, blocks of the index, and templates of paths. The first
// byte chooses.

#include <stdlib.h>
#include <string.h>

#include "spans/block.h"
#include "spans/otlp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_spans(const struct span_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct span *span = &batch->list[i];
        require(span->service < batch->text_count && span->name < batch->text_count);
        require(span->method < batch->text_count && span->route < batch->text_count);
        require(span->kind < SPAN_KINDS && span->status < SPAN_STATUSES);
        require(span->start_ns >= 0 && span->duration_ns >= 0);
        require(span->duration_ns <= INT64_MAX - span->start_ns);
    }
}

/* What was read comes back from a block. */
static void check_block(const struct span_batch *batch)
{
    struct buffer block = {0};
    struct span_batch again = {0};
    size_t count = 0;
    span_block_encode(batch, &block);
    for (size_t at = 0; at < block.length;) {
        struct span_block_head head;
        const uint8_t *bytes = (const uint8_t *)block.data + at;
        require(!span_block_head_read(bytes, &head));
        require(!span_block_decode(&head, bytes + SPAN_BLOCK_HEAD_BYTES, &again));
        at += SPAN_BLOCK_HEAD_BYTES + span_block_body_bytes(&head);
        count += head.count;
    }
    require(again.count == count && count <= batch->count && !count == !batch->count);
    check_spans(&again);
    span_batch_release(&again);
    buffer_release(&block);
}

static void read_traces(const uint8_t *data, size_t length, bool json)
{
    struct span_batch batch = {0};
    struct span_reader reader = {0};
    struct error error = {0};
    struct source source;
    int r;
    if (json && !source_open_memory(&source, "input", data, length, 1u << 20, &error)) {
        r = span_read_otlp_json(&reader, &source, &batch, &error);
        source_release(&source);
    } else {
        r = span_read_otlp(&reader, data, length, &batch, &error);
    }
    require(r <= 0);
    check_spans(&batch);
    check_block(&batch);
    span_batch_release(&batch);
}

static void read_block(const uint8_t *data, size_t length)
{
    struct span_block_head head;
    struct span_batch batch = {0};
    if (length < SPAN_BLOCK_HEAD_BYTES || span_block_head_read(data, &head) < 0 ||
        span_block_body_bytes(&head) > length - SPAN_BLOCK_HEAD_BYTES)
        return;
    if (!span_block_decode(&head, data + SPAN_BLOCK_HEAD_BYTES, &batch))
        check_spans(&batch);
    span_batch_release(&batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    char folded[TEMPLATE_BYTES];
    if (!length)
        return 0;
    uint8_t kind = *data++ & 3;
    length--;
    if (kind < 2) {
        read_traces(data, length, kind);
    } else if (kind == 2) {
        read_block(data, length);
    } else {
        template_of(NULL, (const char *)data, length, folded);
        require(strlen(folded) < TEMPLATE_BYTES);
    }
    return 0;
}
