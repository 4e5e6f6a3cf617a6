// SPDX-License-Identifier: Apache-2.0
// The records of perf.data, in the order of their times: perf writes them ring by ring, and a mark
// after each round over the rings. After the next mark, no record can be older than the newest one
// of this round.

#include <stdlib.h>
#include <zstd.h>

#include "base/memory.h"
#include "format/perfdata/perfdata.h"

/* Records of perf itself, not of the kernel. */
enum {
    HEADER_ATTR = 64,
    HEADER_TRACING_DATA = 66,
    HEADER_BUILD_ID = 67,
    FINISHED_ROUND = 68,
    AUXTRACE = 71,
    EVENT_UPDATE = 78,
    HEADER_FEATURE = 80,
    COMPRESSED = 81,
    COMPRESSED2 = 83,
};

#define UNPACKED_PIECE (64u << 10)

static int bad_record(struct perf_data *data, const char *problem)
{
    return error_set(data->error, -EBADMSG, "%s at offset %llu.", problem,
                     (unsigned long long)source_offset(data->source));
}

/* ---- order ---- */

static int compare_entries(const void *a, const void *b)
{
    const struct perf_entry *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int deliver(struct perf_data *data, const struct perf_event_header *header)
{
    if (header->type == PERF_RECORD_SAMPLE)
        return perf_take_sample(data, header);
    perf_take_process_record(data, header);
    return 0;
}

/* Delivers what is not newer than that, and keeps the rest. */
static int flush(struct perf_data *data, uint64_t limit)
{
    size_t done = 0, kept_bytes = 0;
    int r = 0;
    if (!data->entry_count)
        return 0;
    qsort(data->entries, data->entry_count, sizeof(*data->entries), compare_entries);
    for (; done < data->entry_count && data->entries[done].time <= limit && !r; done++)
        r = deliver(data, (const void *)(data->queue.data + data->entries[done].offset));
    if (r < 0 || !done)
        return r;
    size_t rest = data->entry_count - done;
    if (rest) {
        struct buffer kept = {0};
        for (size_t i = 0; i < rest; i++) {
            struct perf_entry *entry = &data->entries[done + i];
            const struct perf_event_header *header =
                (const void *)(data->queue.data + entry->offset);
            size_t bytes = (header->size + 7u) & ~7u;
            memcpy(buffer_reserve(&kept, bytes), header, header->size);
            entry->offset = kept_bytes;
            kept.length = kept_bytes += bytes;
        }
        memmove(data->entries, data->entries + done, rest * sizeof(*data->entries));
        buffer_release(&data->queue);
        data->queue = kept;
    }
    data->queue.length = kept_bytes;
    data->entry_count = rest;
    return 0;
}

static int queue_record(struct perf_data *data, const struct perf_event_header *header)
{
    uint64_t time;
    perf_record_event(data, header, &time);
    size_t bytes = (header->size + 7u) & ~7u;
    if (data->queue.length + bytes > PERF_QUEUE_BYTES) {
        int r = flush(data, UINT64_MAX);
        if (r < 0)
            return r;
        data->unordered++;
    }
    size_t offset = data->queue.length;
    memcpy(buffer_reserve(&data->queue, bytes), header, header->size);
    data->queue.length += bytes;
    array_reserve(data->entries, data->entry_capacity, data->entry_count + 1);
    data->entries[data->entry_count++] =
        (struct perf_entry){.time = time, .offset = offset, .order = data->entry_order++};
    data->round_time = MAX(data->round_time, time);
    return 0;
}

static int finish_round(struct perf_data *data)
{
    int r = flush(data, data->round_limit);
    data->round_limit = data->round_time;
    return r;
}

/* ---- one record ---- */

static int take_attr(struct perf_data *data, const struct perf_event_header *header)
{
    const uint8_t *at = (const uint8_t *)(header + 1);
    size_t length = header->size - sizeof(*header);
    uint32_t event;
    int r = perf_add_attr(data, at, length, &event);
    if (r < 0)
        return r;
    size_t attr_bytes = perf_load_u32(at + 4);
    for (size_t i = attr_bytes; i + 8 <= length && !r; i += 8)
        r = perf_add_id(data, perf_load_u64(at + i), event);
    return r;
}

/* Newer versions of perf send names of events so. */
static void take_update(struct perf_data *data, const struct perf_event_header *header)
{
    enum { UPDATE_NAME = 2 };
    const uint8_t *at = (const uint8_t *)(header + 1);
    size_t length = header->size - sizeof(*header);
    if (length < 24 || perf_load_u64(at) != UPDATE_NAME || !memchr(at + 16, '\0', length - 16))
        return;
    struct perf_event_kind *event = &data->events[perf_find_event(data, perf_load_u64(at + 8))];
    event->name = profile_cstring(data->profile, (const char *)at + 16);
}

static int take_record(struct perf_data *data, const struct perf_event_header *header)
{
    const uint8_t *at = (const uint8_t *)(header + 1);
    size_t length = header->size - sizeof(*header);
    if (header->type == HEADER_ATTR)
        return take_attr(data, header);
    if (header->type == HEADER_BUILD_ID) {
        perf_add_build_id(data, (const uint8_t *)header, header->size);
        return 0;
    }
    if (header->type == HEADER_FEATURE)
        return length < 8 ? 0
                          : perf_take_feature(data, (unsigned)MIN(perf_load_u64(at), 255u), at + 8,
                                              length - 8);
    if (!data->event_count)
        return header->type < HEADER_ATTR
                   ? bad_record(data, "A record precedes the description of its event")
                   : 0;
    if (header->type == FINISHED_ROUND)
        return finish_round(data);
    if (header->type == EVENT_UPDATE)
        take_update(data, header);
    if (header->type >= HEADER_ATTR)
        return 0;
    return queue_record(data, header);
}

/* ---- compression ---- */

/* Takes the whole records that were unpacked. */
static int take_unpacked(struct perf_data *data)
{
    size_t at = 0;
    int r = 0;
    while (data->unpacked.length - at >= sizeof(struct perf_event_header) && !r) {
        struct perf_event_header header;
        memcpy(&header, data->unpacked.data + at, sizeof(header));
        if (header.size < sizeof(header))
            return bad_record(data, "A compressed record has no size");
        if (header.size > data->unpacked.length - at)
            break;
        /* Aligned, whatever came before it. */
        uint64_t copy[(UINT16_MAX + 8) / 8];
        memcpy(copy, data->unpacked.data + at, header.size);
        r = take_record(data, (const struct perf_event_header *)copy);
        at += header.size;
    }
    memmove(data->unpacked.data, data->unpacked.data + at, data->unpacked.length - at);
    data->unpacked.length -= at;
    return r;
}

static int unpack(struct perf_data *data, const uint8_t *bytes, size_t length)
{
    if (!data->zstd) {
        data->zstd = ZSTD_createDStream();
        ZSTD_DCtx_setParameter(data->zstd, ZSTD_d_windowLogMax, 27);
    }
    ZSTD_inBuffer input = {.src = bytes, .size = length};
    for (bool full = false; input.pos < input.size || full;) {
        ZSTD_outBuffer output = {.dst = buffer_reserve(&data->unpacked, UNPACKED_PIECE),
                                 .size = UNPACKED_PIECE};
        size_t before = input.pos;
        size_t result = ZSTD_decompressStream(data->zstd, &output, &input);
        if (ZSTD_isError(result))
            return bad_record(data, "Malformed zstd data");
        full = output.pos == output.size;
        if (!output.pos && input.pos == before)
            break;
        data->unpacked.length += output.pos;
        data->unpacked_total += output.pos;
        if (data->unpacked_total > data->source->expansion_limit)
            return error_set(data->error, -E2BIG,
                             "The compressed records expand to more than %llu bytes, the limit.",
                             (unsigned long long)data->source->expansion_limit);
        int r = take_unpacked(data);
        if (r < 0)
            return r;
    }
    return 0;
}

static int take_compressed(struct perf_data *data, const struct perf_event_header *header)
{
    const uint8_t *at = (const uint8_t *)(header + 1);
    size_t length = header->size - sizeof(*header);
    if (header->type == COMPRESSED)
        return unpack(data, at, length);
    if (length < 8 || perf_load_u64(at) > length - 8)
        return bad_record(data, "A compressed record is shorter than it says");
    return unpack(data, at + 8, (size_t)perf_load_u64(at));
}

/* ---- the stream ---- */

static int skip_bytes(struct perf_data *data, uint64_t count)
{
    while (count) {
        int r = source_need(data->source, 1, data->error);
        size_t available = source_available(data->source);
        if (r < 0 || !available)
            return r;
        size_t step = (size_t)MIN(count, (uint64_t)available);
        source_skip(data->source, step);
        count -= step;
    }
    return 0;
}

/* Data that follows a record without being part of it. */
static uint64_t bytes_behind(const struct perf_event_header *header)
{
    const uint8_t *at = (const uint8_t *)(header + 1);
    size_t length = header->size - sizeof(*header);
    if (header->type == AUXTRACE && length >= 8)
        return perf_load_u64(at);
    if (header->type == HEADER_TRACING_DATA && length >= 4)
        return ((uint64_t)perf_load_u32(at) + 7) & ~7ull;
    return 0;
}

/* perf was killed, or its disk was full: what it had written is good, and the size of all of it,
 * which it writes last, is not there. */
static int end_in_record(struct perf_data *data)
{
    if (data->data_end != UINT64_MAX || (!data->entry_count && !data->sample_count))
        return bad_record(data, "The file is truncated: it ends in a record");
    data->cut = 1;
    return 0;
}

/* Returns 1, or 0 at the end. */
static int next_record(struct perf_data *data, uint64_t copy[(UINT16_MAX + 8) / 8])
{
    struct source *source = data->source;
    struct perf_event_header header;
    uint64_t left = data->data_end - MIN(data->data_end, source_offset(source));
    if (left < sizeof(header))
        return 0;
    int r = source_need(source, sizeof(header), data->error);
    if (r < 0 || !source_available(source))
        return r;
    if (source_available(source) < sizeof(header))
        return end_in_record(data);
    memcpy(&header, source_data(source), sizeof(header));
    if (header.size < sizeof(header) || header.size > left)
        return bad_record(data, "Invalid record size");
    r = source_need(source, header.size, data->error);
    if (r < 0)
        return r;
    if (source_available(source) < header.size)
        return end_in_record(data);
    memcpy(copy, source_data(source), header.size);
    return 1;
}

int perf_read_records(struct perf_data *data)
{
    uint64_t copy[(UINT16_MAX + 8) / 8];
    const struct perf_event_header *header = (const struct perf_event_header *)copy;
    int r;
    while ((r = next_record(data, copy)) > 0) {
        r = header->type == COMPRESSED || header->type == COMPRESSED2
                ? take_compressed(data, header)
                : take_record(data, header);
        if (r < 0)
            return r;
        source_skip(data->source, header->size);
        r = skip_bytes(data, bytes_behind(header));
        if (r < 0)
            return r;
    }
    if (r == 0 && data->unpacked.length && !data->cut)
        return bad_record(data, "The compressed records end in a record");
    return r < 0 ? r : flush(data, UINT64_MAX);
}

void perf_stream_release(struct perf_data *data)
{
    ZSTD_freeDStream(data->zstd);
    buffer_release(&data->unpacked);
    buffer_release(&data->queue);
    free(data->entries);
}
