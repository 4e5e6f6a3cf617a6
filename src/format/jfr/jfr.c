// SPDX-License-Identifier: Apache-2.0
// Java Flight Recorder files, as the JDK and async-profiler write them: chunks and their records.
// A file is read chunk by chunk, and a chunk is whole in memory while it is. See jfr.h.

#include "format/jfr/jfr.h"

#include <string.h>

#include "base/memory.h"
#include "format/format.h"

#define HEADER_BYTES 68
#define TEXT_BUDGET_BYTES (16u << 20)

static const uint8_t magic[4] = {'F', 'L', 'R', 0};

struct header {
    unsigned major, minor;
    int64_t size;
    int64_t metadata_offset;
    int64_t start_ns, duration_ns, start_ticks, ticks_per_second;
    uint8_t generation; /* counts up while the JVM writes; 0 when the chunk is complete */
    bool compressed;
};

static struct header read_header(const uint8_t *bytes)
{
    struct jfr_cursor cursor = {.at = bytes + sizeof(magic), .end = bytes + HEADER_BYTES};
    struct header header = {0};
    header.major = (uint16_t)jfr_read_short(&cursor);
    header.minor = (uint16_t)jfr_read_short(&cursor);
    header.size = jfr_read_long(&cursor);
    jfr_read_long(&cursor); /* the last checkpoint; all of them are met on the way */
    header.metadata_offset = jfr_read_long(&cursor);
    header.start_ns = jfr_read_long(&cursor);
    header.duration_ns = jfr_read_long(&cursor);
    header.start_ticks = jfr_read_long(&cursor);
    header.ticks_per_second = jfr_read_long(&cursor);
    header.generation = bytes[64];
    header.compressed = bytes[67] & 1;
    return header;
}

static bool is_chunk(const struct source *source)
{
    return source_available(source) >= sizeof(magic) &&
           !memcmp(source_data(source), magic, sizeof(magic));
}

int jfr_next_record(const struct jfr_chunk *chunk, size_t *position, struct jfr_record *ret_record,
                    struct error *error)
{
    if (!*position)
        *position = HEADER_BYTES;
    if (*position >= chunk->length)
        return 0;
    const uint8_t *start = chunk->data + *position;
    struct jfr_cursor cursor = {
        .at = start, .end = chunk->data + chunk->length, .compressed = chunk->compressed};
    int32_t size = jfr_read_int(&cursor);
    int64_t type = jfr_read_long(&cursor);
    if (cursor.failed || size < cursor.at - start || size > cursor.end - start) {
        if (chunk->unfinished)
            return 0;
        return error_set(error, -EBADMSG, "The record at offset %llu is truncated or damaged.",
                         (unsigned long long)(chunk->offset + *position));
    }
    cursor.end = start + size;
    *ret_record =
        (struct jfr_record){.offset = chunk->offset + *position, .type = type, .body = cursor};
    *position += (size_t)size;
    return 1;
}

/* Where the header says, or else the last one in the chunk. */
static int read_metadata(struct jfr_chunk *chunk, int64_t offset, struct error *error)
{
    struct jfr_record record, found = {.type = -1};
    size_t position = 0;
    int r = 0;
    if (offset >= HEADER_BYTES && (uint64_t)offset < chunk->length) {
        position = (size_t)offset;
        r = jfr_next_record(chunk, &position, &record, error);
        if (r > 0 && record.type == 0)
            found = record;
        position = 0;
    }
    while (found.type != 0 && r >= 0 && (r = jfr_next_record(chunk, &position, &record, error)) > 0)
        if (record.type == 0)
            found = record;
    if (r < 0)
        return r;
    if (found.type != 0)
        return error_set(error, -EBADMSG,
                         "The chunk at offset %llu has no description of its types%s.",
                         (unsigned long long)chunk->offset,
                         chunk->unfinished ? ": the recording ended before it was written"
                                           : ", which is required");
    struct error inner = {0};
    r = jfr_metadata_read(&chunk->metadata, found.body, &inner);
    if (r < 0)
        return error_set(error, r, "Failed to read the chunk at offset %llu: %s.",
                         (unsigned long long)chunk->offset, inner.text);
    return 0;
}

static int read_checkpoints(struct jfr_chunk *chunk, struct error *error)
{
    struct jfr_record record;
    size_t position = 0;
    int r;
    while ((r = jfr_next_record(chunk, &position, &record, error)) > 0) {
        if (record.type != 1)
            continue;
        struct error inner = {0};
        r = jfr_pools_read(chunk, record.body, &inner);
        if (r < 0)
            return error_set(error, r, "Failed to read the checkpoint at offset %llu: %s.",
                             (unsigned long long)record.offset, inner.text);
    }
    return r;
}

static void release_chunk(struct jfr_chunk *chunk)
{
    jfr_pools_release(chunk);
    jfr_metadata_release(&chunk->metadata);
    buffer_release(&chunk->scratch);
    free(chunk->frames);
}

static int read_chunk(struct source *source, const struct header *header, size_t length,
                      bool unfinished, struct jfr_recording *recording, struct error *error)
{
    _cleanup_(release_chunk) struct jfr_chunk chunk = {
        .profile = recording->profile,
        .data = source_data(source),
        .length = length,
        .offset = source_offset(source),
        .compressed = header->compressed,
        .unfinished = unfinished,
        .start_ns = header->start_ns,
        .start_ticks = header->start_ticks,
        .ticks_per_ns = (double)header->ticks_per_second / 1e9,
        .text_budget = TEXT_BUDGET_BYTES + 8 * (uint64_t)length,
    };
    int r = read_metadata(&chunk, header->metadata_offset, error);
    if (r == 0)
        r = read_checkpoints(&chunk, error);
    return r < 0 ? r : jfr_events_read(recording, &chunk, error);
}

/* Makes the whole chunk available. A chunk without a size was never closed: it is all there is. */
static int need_chunk(struct source *source, const struct header *header, size_t *ret_length,
                      bool *ret_unfinished, struct error *error)
{
    uint64_t offset = source_offset(source);
    if (header->major != 2)
        return error_set(
            error, -ENOTSUP,
            "The chunk at offset %llu has flight recorder version %u.%u (JDK 8 has 1.0), which is "
            "not supported; record with JDK 11 or later, or with async-profiler.",
            (unsigned long long)offset, header->major, header->minor);
    if (header->ticks_per_second <= 0)
        return error_set(error, -EBADMSG, "The chunk at offset %llu has a clock frequency of 0.",
                         (unsigned long long)offset);
    bool no_size = header->size == 0 || header->generation == UINT8_MAX;
    if (!no_size && header->size < HEADER_BYTES)
        return error_set(error, -EBADMSG, "The chunk at offset %llu has the invalid size %lld.",
                         (unsigned long long)offset, (long long)header->size);
    int r = no_size ? source_need_all(source, SIZE_MAX, error)
                    : source_need(source, (size_t)header->size, error);
    if (r < 0)
        return r;
    size_t available = source_available(source);
    if (!no_size && available < (uint64_t)header->size)
        return error_set(error, -EBADMSG,
                         "The chunk at offset %llu should be %lld bytes long, but the file ends "
                         "after %zu of them: it is truncated; fetch or record it again.",
                         (unsigned long long)offset, (long long)header->size, available);
    *ret_length = no_size ? available : (size_t)header->size;
    *ret_unfinished = no_size;
    return 0;
}

static int read_chunks(struct source *source, struct jfr_recording *recording, int64_t *start_ns,
                       int64_t *duration_ns, struct error *error)
{
    bool open_ended = false;
    for (bool first = true;; first = false) {
        int r = source_need(source, HEADER_BYTES, error);
        if (r < 0)
            return r;
        /* A JVM that is killed may leave records behind the part that it had accounted for. */
        if (open_ended && !is_chunk(source)) {
            profile_add_comment(
                recording->profile,
                profile_cstring(
                    recording->profile,
                    "The recording was not finished; its last moments can be missing."));
            return 0;
        }
        if (!source_available(source) && !first)
            return 0;
        if (!is_chunk(source))
            return error_set(error, -EBADMSG, "No flight recorder chunk at offset %llu.",
                             (unsigned long long)source_offset(source));
        if (source_available(source) < HEADER_BYTES)
            return error_set(error, -EBADMSG,
                             "The chunk at offset %llu is truncated within its header.",
                             (unsigned long long)source_offset(source));
        struct header header = read_header(source_data(source));
        size_t length = 0;
        bool unfinished = false;
        r = need_chunk(source, &header, &length, &unfinished, error);
        if (r == 0)
            r = read_chunk(source, &header, length, unfinished, recording, error);
        if (r < 0)
            return r;
        if (first)
            *start_ns = header.start_ns;
        if (header.duration_ns > 0 &&
            __builtin_add_overflow(*duration_ns, header.duration_ns, duration_ns))
            *duration_ns = INT64_MAX;
        open_ended = unfinished || header.generation;
        source_skip(source, length);
    }
}

static int jfr_read(struct source *source, struct profile *profile, struct error *error)
{
    struct jfr_recording recording;
    jfr_recording_init(&recording, profile);
    int64_t start_ns = 0, duration_ns = 0;
    int r = read_chunks(source, &recording, &start_ns, &duration_ns, error);
    if (r < 0)
        return r;
    profile_note_source(profile, start_ns, duration_ns);
    jfr_recording_finish(&recording);
    return 0;
}

static int jfr_detect(const uint8_t *bytes, size_t length)
{
    return length >= sizeof(magic) && !memcmp(bytes, magic, sizeof(magic)) ? 3 : 0;
}

const struct format format_jfr = {
    .name = "jfr",
    .summary = "Java Flight Recorder (JDK and async-profiler)",
    .extensions = ".jfr",
    .detect = jfr_detect,
    .read = jfr_read,
};
