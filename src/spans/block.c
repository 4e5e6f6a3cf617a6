// SPDX-License-Identifier: Apache-2.0
// Blocks of spans: see block.h. Spans of a trace are together, so that its id is there once and
// parents are mostly small numbers; what is random is kept apart from what compresses.

#include "spans/block.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "io/wire.h"

#define MAGIC 0x314e5053u /* "SPN1" */
#define FILTER_BITS 16    /* per trace: one in 60 others is taken for it */
#define LEVEL 1           /* of zstd */
#define KIND_BITS 3
#define TEXT_BYTES_MAX (16u << 20) /* of one block: all columns stay below SPAN_BLOCK_BYTES_MAX */

/* Parents: no parent, one whose id is in the column of ids, or a span of the trace. */
enum parent { PARENT_NONE, PARENT_ELSEWHERE, PARENT_HERE };

/* ---- writing ---- */

struct columns {
    struct buffer texts, traces, ids, parents, times, facts;
};

/* The texts that the spans of a block name. Others of the batch stay out: they were replaced by the
 * rules for labels, or belong to spans that were deleted. */
struct block_texts {
    const char *const *batch;
    uint32_t *places; /* of the batch's texts in the block, + 1; 0: not there */
    uint32_t *list;   /* the other way round */
    size_t count, bytes;
};

static int by_trace(const void *a, const void *b)
{
    const struct span *x = *(const struct span *const *)a, *y = *(const struct span *const *)b;
    int order = memcmp(x->trace_id, y->trace_id, SPAN_TRACE_BYTES);
    if (order)
        return order;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return memcmp(x->span_id, y->span_id, SPAN_ID_BYTES);
}

static uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static void put_parent(struct columns *columns, const struct span *const *spans, size_t count,
                       const struct span *span)
{
    if (span_id_is_zero(span->parent_id, SPAN_ID_BYTES)) {
        wire_put_varint(&columns->parents, PARENT_NONE);
        return;
    }
    for (size_t i = 0; i < MIN(count, (size_t)64); i++)
        if (!memcmp(spans[i]->span_id, span->parent_id, SPAN_ID_BYTES)) {
            wire_put_varint(&columns->parents, PARENT_HERE + i);
            return;
        }
    wire_put_varint(&columns->parents, PARENT_ELSEWHERE);
    buffer_add(&columns->ids, span->parent_id, SPAN_ID_BYTES);
}

static void put_text(struct columns *columns, const struct block_texts *texts, uint32_t text)
{
    wire_put_varint(&columns->facts, texts->places[text] - 1);
}

static void put_trace(struct columns *columns, const struct block_texts *texts,
                      const struct span *const *spans, size_t count, int64_t *before_ns)
{
    buffer_add(&columns->ids, spans[0]->trace_id, SPAN_TRACE_BYTES);
    wire_put_varint(&columns->traces, count);
    for (size_t i = 0; i < count; i++) {
        const struct span *span = spans[i];
        buffer_add(&columns->ids, span->span_id, SPAN_ID_BYTES);
        put_parent(columns, spans, count, span);
        /* Differences of times are too small to overflow. */
        wire_put_varint(&columns->times, zigzag(span->start_ns - *before_ns));
        wire_put_varint(&columns->times, (uint64_t)span->duration_ns);
        *before_ns = span->start_ns;
        put_text(columns, texts, span->service);
        put_text(columns, texts, span->name);
        put_text(columns, texts, span->method);
        put_text(columns, texts, span->route);
        wire_put_varint(&columns->facts, span->code);
        buffer_add_char(&columns->facts, (char)(span->kind | span->status << KIND_BITS));
    }
}

static void set_bits(uint8_t *filter, uint32_t filter_bytes, uint64_t hash)
{
    uint32_t bits = filter_bytes * 8;
    filter[(uint32_t)hash % bits / 8] |= (uint8_t)(1u << (uint32_t)hash % bits % 8);
    hash >>= 32;
    filter[hash % bits / 8] |= (uint8_t)(1u << hash % bits % 8);
}

static void put_u32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof(value));
}

static void put_column(struct buffer *plain, struct buffer *column)
{
    wire_put_varint(plain, column->length);
    buffer_add(plain, column->data, column->length);
    buffer_release(column);
}

static void put_texts(struct columns *columns, const struct block_texts *texts)
{
    wire_put_varint(&columns->texts, texts->count);
    for (size_t i = 0; i < texts->count; i++) {
        const char *text = texts->batch[texts->list[i]];
        size_t length = strlen(text);
        wire_put_varint(&columns->texts, length);
        buffer_add(&columns->texts, text, length);
    }
}

static void add_text(struct block_texts *texts, uint32_t text)
{
    if (texts->places[text])
        return;
    texts->list[texts->count] = text;
    texts->places[text] = (uint32_t)++texts->count;
    texts->bytes += strlen(texts->batch[text]) + 2;
}

/* How many of the spans fit into one block; gathers their texts. */
static size_t gather_texts(struct block_texts *texts, const struct span *const *spans, size_t count)
{
    size_t taken = 0;
    for (size_t i = 0; i < texts->count; i++)
        texts->places[texts->list[i]] = 0;
    texts->count = texts->bytes = 0;
    add_text(texts, 0);
    while (taken < MIN(count, (size_t)SPAN_BLOCK_SPANS) && texts->bytes < TEXT_BYTES_MAX) {
        const struct span *span = spans[taken++];
        add_text(texts, span->service);
        add_text(texts, span->name);
        add_text(texts, span->method);
        add_text(texts, span->route);
    }
    return taken;
}

/* The head and its own checksum. Integers are little-endian, as on all machines that we run on. */
static void write_head(const struct span_block_head *head, uint8_t bytes[SPAN_BLOCK_HEAD_BYTES])
{
    uint32_t magic = MAGIC;
    put_u32(bytes, magic);
    put_u32(bytes + 4, head->count);
    put_u32(bytes + 8, head->filter_bytes);
    put_u32(bytes + 12, head->packed_bytes);
    put_u32(bytes + 16, head->plain_bytes);
    put_u32(bytes + 20, 0);
    memcpy(bytes + 24, &head->first_ns, 8);
    memcpy(bytes + 32, &head->last_ns, 8);
    memcpy(bytes + 40, &head->checksum, 8);
    uint64_t own = XXH3_64bits(bytes, SPAN_BLOCK_HEAD_BYTES - 8);
    memcpy(bytes + 48, &own, 8);
}

static void encode_some(const struct block_texts *texts, const struct span *const *spans,
                        size_t count, struct buffer *out)
{
    struct columns columns = {0};
    _cleanup_buffer_ struct buffer plain = {0};
    struct span_block_head head = {
        .count = (uint32_t)count, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    int64_t before_ns = 0;
    size_t traces = 0;
    put_texts(&columns, texts);
    for (size_t i = 0, end; i < count; i = end, traces++) {
        for (end = i + 1; end < count; end++)
            if (memcmp(spans[i]->trace_id, spans[end]->trace_id, SPAN_TRACE_BYTES))
                break;
        put_trace(&columns, texts, spans + i, end - i, &before_ns);
    }
    put_column(&plain, &columns.texts);
    put_column(&plain, &columns.traces);
    put_column(&plain, &columns.parents);
    put_column(&plain, &columns.times);
    put_column(&plain, &columns.facts);
    put_column(&plain, &columns.ids);
    head.filter_bytes = (uint32_t)(traces * FILTER_BITS / 8);
    head.plain_bytes = (uint32_t)plain.length;
    size_t bound = ZSTD_compressBound(plain.length), at = out->length;
    memset(buffer_reserve(out, SPAN_BLOCK_HEAD_BYTES + head.filter_bytes + bound), 0,
           SPAN_BLOCK_HEAD_BYTES + head.filter_bytes);
    uint8_t *start = (uint8_t *)out->data + at, *filter = start + SPAN_BLOCK_HEAD_BYTES;
    for (size_t i = 0; i < count; i++) {
        head.first_ns = MIN(head.first_ns, spans[i]->start_ns);
        head.last_ns = MAX(head.last_ns, spans[i]->start_ns);
        if (!i || memcmp(spans[i]->trace_id, spans[i - 1]->trace_id, SPAN_TRACE_BYTES))
            set_bits(filter, head.filter_bytes, span_trace_hash(spans[i]->trace_id, 0));
    }
    head.packed_bytes =
        (uint32_t)ZSTD_compress(filter + head.filter_bytes, bound, plain.data, plain.length, LEVEL);
    head.checksum = XXH3_64bits(filter, span_block_body_bytes(&head));
    write_head(&head, start);
    out->length += SPAN_BLOCK_HEAD_BYTES + span_block_body_bytes(&head);
}

void span_block_encode(const struct span_batch *batch, struct buffer *out)
{
    _cleanup_free_ const struct span **spans = memory_alloc((batch->count + 1) * sizeof(*spans));
    struct block_texts texts = {
        .batch = batch->texts,
        .places = memory_zalloc(batch->text_count + 1, sizeof(*texts.places)),
        .list = memory_alloc((batch->text_count + 1) * sizeof(*texts.list)),
    };
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++)
        spans[i] = &batch->list[i];
    if (batch->count)
        qsort(spans, batch->count, sizeof(*spans), by_trace);
    /* Senders repeat spans; those are equal, so they are neighbours now. */
    for (size_t i = 0; i < batch->count; i++)
        if (!count || by_trace(&spans[count - 1], &spans[i]))
            spans[count++] = spans[i];
    for (size_t i = 0, taken; i < count; i += taken) {
        taken = gather_texts(&texts, spans + i, count - i);
        encode_some(&texts, spans + i, taken, out);
    }
    free(texts.places);
    free(texts.list);
}

/* ---- reading ---- */

static uint32_t get_u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

int span_block_head_read(const uint8_t bytes[SPAN_BLOCK_HEAD_BYTES],
                         struct span_block_head *ret_head)
{
    struct span_block_head head = {.count = get_u32(bytes + 4),
                                   .filter_bytes = get_u32(bytes + 8),
                                   .packed_bytes = get_u32(bytes + 12),
                                   .plain_bytes = get_u32(bytes + 16)};
    uint64_t own;
    memcpy(&head.first_ns, bytes + 24, 8);
    memcpy(&head.last_ns, bytes + 32, 8);
    memcpy(&head.checksum, bytes + 40, 8);
    memcpy(&own, bytes + 48, 8);
    if (get_u32(bytes) != MAGIC || own != XXH3_64bits(bytes, SPAN_BLOCK_HEAD_BYTES - 8) ||
        !head.count || head.count > SPAN_BLOCK_SPANS || !head.filter_bytes ||
        head.filter_bytes > SPAN_BLOCK_BYTES_MAX || head.packed_bytes > SPAN_BLOCK_BYTES_MAX ||
        head.plain_bytes > SPAN_BLOCK_BYTES_MAX)
        return -EBADMSG;
    *ret_head = head;
    return 0;
}

bool span_block_may_have(const struct span_block_head *head, const uint8_t *filter,
                         const uint8_t trace_id[SPAN_TRACE_BYTES])
{
    uint64_t hash = span_trace_hash(trace_id, 0);
    uint32_t bits = head->filter_bytes * 8, first = (uint32_t)hash % bits;
    uint32_t second = (uint32_t)(hash >> 32) % bits;
    return filter[first / 8] >> first % 8 & 1 && filter[second / 8] >> second % 8 & 1;
}

struct reading {
    struct wire texts, traces, parents, times, facts, ids;
    uint32_t *map; /* the block's texts in the batch */
    uint64_t text_count;
    uint32_t *parents_of; /* of the spans of a trace */
    size_t parents_room;
    int64_t before_ns;
};

static bool take_column(struct wire *plain, struct wire *ret_column)
{
    uint64_t length;
    if (!wire_varint(plain, &length) || length > (size_t)(plain->end - plain->at))
        return false;
    *ret_column = wire_of(plain->at, (size_t)length);
    plain->at += length;
    return true;
}

static bool take_bytes(struct wire *column, void *bytes, size_t length)
{
    if ((size_t)(column->end - column->at) < length)
        return false;
    memcpy(bytes, column->at, length);
    column->at += length;
    return true;
}

static bool read_texts(struct reading *reading, struct span_batch *batch)
{
    struct wire *texts = &reading->texts;
    if (!wire_varint(texts, &reading->text_count) ||
        reading->text_count > (size_t)(texts->end - texts->at))
        return false;
    reading->map = memory_zalloc(reading->text_count + 1, sizeof(*reading->map));
    for (uint64_t i = 0; i < reading->text_count; i++) {
        struct wire text;
        if (!take_column(texts, &text))
            return false;
        reading->map[i] =
            span_batch_text(batch, (const char *)text.at, (size_t)(text.end - text.at));
    }
    return true;
}

static bool read_text(struct reading *reading, uint32_t *ret_text)
{
    uint64_t text;
    if (!wire_varint(&reading->facts, &text) || (text && text >= reading->text_count))
        return false;
    *ret_text = reading->map[text];
    return true;
}

static bool read_facts(struct reading *reading, struct span *span)
{
    uint64_t start, duration, code;
    uint8_t kind;
    if (!wire_varint(&reading->times, &start) || !wire_varint(&reading->times, &duration) ||
        __builtin_add_overflow(reading->before_ns, unzigzag(start), &span->start_ns) ||
        span->start_ns < 0 || duration > (uint64_t)(INT64_MAX - span->start_ns))
        return false;
    span->duration_ns = (int64_t)duration;
    reading->before_ns = span->start_ns;
    if (!read_text(reading, &span->service) || !read_text(reading, &span->name) ||
        !read_text(reading, &span->method) || !read_text(reading, &span->route) ||
        !wire_varint(&reading->facts, &code) || code > UINT16_MAX ||
        !take_bytes(&reading->facts, &kind, 1))
        return false;
    span->code = (uint16_t)code;
    span->kind = kind & ((1 << KIND_BITS) - 1);
    span->status = kind >> KIND_BITS;
    return span->kind < SPAN_KINDS && span->status < SPAN_STATUSES;
}

/* Parents are known when all spans of the trace are. */
static bool read_trace(struct reading *reading, struct span_batch *batch, size_t left)
{
    uint8_t trace_id[SPAN_TRACE_BYTES];
    uint64_t count;
    if (!wire_varint(&reading->traces, &count) || !count || count > left ||
        !take_bytes(&reading->ids, trace_id, sizeof(trace_id)))
        return false;
    size_t first = batch->count;
    array_reserve(reading->parents_of, reading->parents_room, (size_t)count);
    uint32_t *parents = reading->parents_of;
    for (size_t i = 0; i < count; i++) {
        uint64_t parent;
        struct span *span = span_batch_add(batch);
        memcpy(span->trace_id, trace_id, sizeof(trace_id));
        if (!take_bytes(&reading->ids, span->span_id, SPAN_ID_BYTES) ||
            !wire_varint(&reading->parents, &parent) || parent >= PARENT_HERE + count ||
            (parent == PARENT_ELSEWHERE &&
             !take_bytes(&reading->ids, span->parent_id, SPAN_ID_BYTES)) ||
            !read_facts(reading, span))
            return false;
        parents[i] = (uint32_t)parent;
    }
    for (size_t i = 0; i < count; i++)
        if (parents[i] >= PARENT_HERE)
            memcpy(batch->list[first + i].parent_id,
                   batch->list[first + parents[i] - PARENT_HERE].span_id, SPAN_ID_BYTES);
    return true;
}

static bool read_columns(struct wire plain, uint32_t count, struct span_batch *batch)
{
    struct reading reading = {0};
    size_t first = batch->count;
    bool good = take_column(&plain, &reading.texts) && take_column(&plain, &reading.traces) &&
                take_column(&plain, &reading.parents) && take_column(&plain, &reading.times) &&
                take_column(&plain, &reading.facts) && take_column(&plain, &reading.ids) &&
                plain.at == plain.end && read_texts(&reading, batch);
    while (good && batch->count - first < count)
        good = read_trace(&reading, batch, count - (batch->count - first));
    free(reading.map);
    free(reading.parents_of);
    if (!good)
        batch->count = first;
    return good;
}

int span_block_decode(const struct span_block_head *head, const uint8_t *body,
                      struct span_batch *batch)
{
    if (head->checksum != XXH3_64bits(body, span_block_body_bytes(head)))
        return -EBADMSG;
    _cleanup_free_ uint8_t *plain = memory_alloc(MAX(head->plain_bytes, 1u));
    size_t length =
        ZSTD_decompress(plain, head->plain_bytes, body + head->filter_bytes, head->packed_bytes);
    if (ZSTD_isError(length) || length != head->plain_bytes)
        return -EBADMSG;
    return read_columns(wire_of(plain, length), head->count, batch) ? 0 : -EBADMSG;
}
