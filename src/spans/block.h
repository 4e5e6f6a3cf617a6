/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block of spans as it is on disk: by trace, in columns, compressed, with checksums and a filter
 * that tells which traces it may have. docs/formats/spans.md describes it.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "spans/span.h"

#define SPAN_BLOCK_SPANS 32768 /* of one block, at most */
#define SPAN_BLOCK_HEAD_BYTES 56
#define SPAN_BLOCK_BYTES_MAX (32u << 20) /* of what follows a head, packed or not */

struct span_block_head {
    uint32_t count, filter_bytes, packed_bytes, plain_bytes;
    int64_t first_ns, last_ns; /* of the spans' starts */
    uint64_t checksum;         /* of filter and columns */
};

/* Appends the spans to `out` as one block, or several if they are too many. Of spans with equal
 * ids and starts, one is kept. */
void span_block_encode(const struct span_batch *batch, struct buffer *out);

/* -EBADMSG: not the head of a block. */
int span_block_head_read(const uint8_t bytes[SPAN_BLOCK_HEAD_BYTES],
                         struct span_block_head *ret_head);

/* The part after the head: the filter, then the columns. */
static inline size_t span_block_body_bytes(const struct span_block_head *head)
{
    return (size_t)head->filter_bytes + head->packed_bytes;
}

/* Whether a trace may be in the block, by its filter; sometimes true for one that isn't. */
bool span_block_may_have(const struct span_block_head *head, const uint8_t *filter,
                         const uint8_t trace_id[SPAN_TRACE_BYTES]);

/* Adds the spans of a block, by its head and what follows it, to the batch. -EBADMSG: the block is
 * damaged; nothing was added. */
int span_block_decode(const struct span_block_head *head, const uint8_t *body,
                      struct span_batch *batch);
