// SPDX-License-Identifier: Apache-2.0
// perf.data as a file or a pipe: its header, the attributes of its events, its feature sections.
// Build IDs are behind the samples of a file, and are wanted before them: they are read ahead where
// the input can be, and otherwise the whole file is held.

#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/random.h"
#include "format/perfdata/perfdata.h"

#define MAGIC "PERFILE2"
#define PIPE_HEADER_BYTES 16
#define FILE_HEADER_BYTES 104
#define FEATURES 256
#define FEATURE_BYTES_MAX (64u << 20)
#define ATTRS_BYTES_MAX (16u << 20)
#define HELD_BYTES_MAX ((size_t)2 << 30)

enum {
    FEATURE_BUILD_ID = 2,
    FEATURE_HOSTNAME = 3,
    FEATURE_RELEASE = 4,
    FEATURE_ARCH = 6,
    FEATURE_EVENT_DESC = 12,
    FEATURE_CLOCK_DATA = 29,
};

struct section {
    uint64_t offset, size;
};

static struct section section_at(const uint8_t *at)
{
    return (struct section){perf_load_u64(at), perf_load_u64(at + 8)};
}

/* ---- events ---- */

int perf_add_attr(struct perf_data *data, const uint8_t *bytes, size_t length, uint32_t *ret_event)
{
    if (length < PERF_ATTR_SIZE_VER0 || data->event_count >= PERF_EVENTS_MAX)
        return error_set(data->error, -EBADMSG,
                         "The description of an event is too short, or there are more than %d.",
                         PERF_EVENTS_MAX);
    uint32_t said = perf_load_u32(bytes + 4);
    if (said && (said < PERF_ATTR_SIZE_VER0 || said > length))
        return error_set(data->error, -EBADMSG, "The description of event %zu has an invalid size.",
                         data->event_count);
    array_reserve(data->events, data->event_capacity, data->event_count + 1);
    struct perf_event_kind *event = &data->events[data->event_count];
    *event = (struct perf_event_kind){0};
    memcpy(&event->attr, bytes, MIN(sizeof(event->attr), said ? said : PERF_ATTR_SIZE_VER0));
    *ret_event = (uint32_t)data->event_count++;
    return 0;
}

int perf_add_id(struct perf_data *data, uint64_t id, uint32_t event)
{
    if (data->id_count >= PERF_IDS_MAX)
        return error_set(data->error, -E2BIG, "The file has more than %u event ids.", PERF_IDS_MAX);
    array_reserve(data->ids, data->id_capacity, data->id_count + 1);
    id_table_insert(&data->id_index, hash_word(id ^ data->seed), (uint32_t)data->id_count);
    data->ids[data->id_count++] = (struct perf_id){id, event};
    return 0;
}

/* ---- features ---- */

/* A text as features have it: its length, and that many bytes with zeroes at their end. */
static const char *feature_text(const uint8_t **at, const uint8_t *end)
{
    if (end - *at < 4)
        return NULL;
    uint32_t length = perf_load_u32(*at);
    const char *text = (const char *)*at + 4;
    if ((uint64_t)(end - *at) < 4 + (uint64_t)length || !memchr(text, '\0', length))
        return NULL;
    *at += 4 + (size_t)length;
    return text;
}

void perf_add_build_id(struct perf_data *data, const uint8_t *record, size_t length)
{
    enum { SIZE_IS_SAID = 1 << 15, PATH_AT = 36 };
    struct perf_event_header header;
    if (length <= PATH_AT || !memchr(record + PATH_AT, '\0', length - PATH_AT) ||
        data->build_id_count >= PERF_FILES_MAX)
        return;
    memcpy(&header, record, sizeof(header));
    const char *path = (const char *)record + PATH_AT;
    size_t bytes = header.misc & SIZE_IS_SAID ? MIN(record[12 + 20], 20u) : 20;
    uint64_t hash = data->seed;
    for (const char *c = path; *c; c++)
        hash = hash_word(hash ^ (uint8_t)*c) + 1;
    array_reserve(data->build_ids, data->build_id_capacity, data->build_id_count + 1);
    struct perf_build_id *entry = &data->build_ids[data->build_id_count];
    entry->path = memory_strdup(path);
    hex_encode(record + 12, bytes, entry->build_id);
    if (entry->build_id[strspn(entry->build_id, "0")] == '\0') /* not known */
        entry->build_id[0] = '\0';
    id_table_insert(&data->build_id_index, hash, (uint32_t)data->build_id_count++);
}

static void take_build_ids(struct perf_data *data, const uint8_t *bytes, size_t length)
{
    for (size_t at = 0; length - at >= sizeof(struct perf_event_header);) {
        struct perf_event_header header;
        memcpy(&header, bytes + at, sizeof(header));
        if (header.size < sizeof(header) || header.size > length - at)
            return;
        perf_add_build_id(data, bytes + at, header.size);
        at += header.size;
    }
}

/* Names of events, which files have in the order of their attributes. */
static void take_descriptions(struct perf_data *data, const uint8_t *at, size_t length)
{
    const uint8_t *end = at + length;
    if (length < 8)
        return;
    uint32_t count = perf_load_u32(at), attr_bytes = perf_load_u32(at + 4);
    at += 8;
    for (uint32_t i = 0; i < count; i++) {
        if ((uint64_t)(end - at) < (uint64_t)attr_bytes + 4)
            return;
        uint32_t ids = perf_load_u32(at + attr_bytes);
        at += (size_t)attr_bytes + 4;
        const char *name = feature_text(&at, end);
        if (!name || (uint64_t)(end - at) < 8 * (uint64_t)ids)
            return;
        uint32_t event = ids ? perf_find_event(data, perf_load_u64(at)) : i;
        if (event < data->event_count && (!ids || event || i == 0 || data->event_count == 1))
            data->events[event].name = profile_cstring(data->profile, name);
        at += 8 * (size_t)ids;
    }
}

int perf_take_feature(struct perf_data *data, unsigned feature, const uint8_t *bytes, size_t length)
{
    const uint8_t *at = bytes, *end = bytes + length;
    const char *text;
    switch (feature) {
    case FEATURE_BUILD_ID:
        take_build_ids(data, bytes, length);
        break;
    case FEATURE_HOSTNAME:
        if ((text = feature_text(&at, end)))
            snprintf(data->hostname, sizeof(data->hostname), "%s", text);
        break;
    case FEATURE_RELEASE:
        if ((text = feature_text(&at, end)))
            snprintf(data->release, sizeof(data->release), "%s", text);
        break;
    case FEATURE_ARCH:
        if ((text = feature_text(&at, end))) {
            data->has_architecture = true;
            data->x86_64 = !strcmp(text, "x86_64");
        }
        break;
    case FEATURE_EVENT_DESC:
        take_descriptions(data, bytes, length);
        break;
    case FEATURE_CLOCK_DATA:
        /* version, clock, the time of day and that clock's at the same moment */
        if (length >= 24) {
            data->has_clock = true;
            data->wall_offset_ns = (int64_t)(perf_load_u64(bytes + 8) - perf_load_u64(bytes + 16));
        }
        break;
    default:
        break;
    }
    return 0;
}

/* ---- files ---- */

static int short_file(struct perf_data *data, const char *what)
{
    return error_set(data->error, -EBADMSG,
                     "The file ends before its %s: it was cut, or perf did not finish it.", what);
}

/* A section, ahead of the stream or behind it; -ENOTSUP when it can't be had. */
static int read_section(struct perf_data *data, struct section section, size_t limit,
                        const char *what, struct buffer *ret)
{
    if (section.size > limit)
        return error_set(data->error, -E2BIG, "The %s of the file exceed %zu bytes.", what, limit);
    ssize_t got = source_read_at(data->source, section.offset,
                                 buffer_reserve(ret, (size_t)section.size), (size_t)section.size);
    if (got < 0)
        return error_set_errno(data->error, (int)got, "Failed to read the %s", what);
    if ((uint64_t)got < section.size)
        return short_file(data, what);
    ret->length = (size_t)section.size;
    return 0;
}

static int read_attrs(struct perf_data *data, struct section attrs, uint64_t entry_bytes)
{
    _cleanup_buffer_ struct buffer content = {0};
    if (entry_bytes < PERF_ATTR_SIZE_VER0 + 16 || entry_bytes > 4096)
        return error_set(data->error, -EBADMSG, "The file's header has an invalid event size.");
    int r = read_section(data, attrs, ATTRS_BYTES_MAX, "events", &content);
    for (size_t at = 0; r >= 0 && content.length - at >= entry_bytes; at += entry_bytes) {
        const uint8_t *entry = (const uint8_t *)content.data + at;
        _cleanup_buffer_ struct buffer ids = {0};
        uint32_t event;
        r = perf_add_attr(data, entry, (size_t)entry_bytes - 16, &event);
        if (r >= 0)
            r = read_section(data, section_at(entry + entry_bytes - 16), 8 * (size_t)PERF_IDS_MAX,
                             "event ids", &ids);
        for (size_t i = 0; r >= 0 && i + 8 <= ids.length; i += 8)
            r = perf_add_id(data, perf_load_u64((const uint8_t *)ids.data + i), event);
    }
    if (r >= 0 && !data->event_count)
        return error_set(data->error, -EBADMSG, "The file has no events.");
    return r;
}

static bool is_wanted(unsigned feature)
{
    return feature == FEATURE_BUILD_ID || feature == FEATURE_HOSTNAME ||
           feature == FEATURE_RELEASE || feature == FEATURE_ARCH || feature == FEATURE_EVENT_DESC ||
           feature == FEATURE_CLOCK_DATA;
}

/* The table behind the samples has a section for each feature of the header's bitmap. Features
 * help; a file without them, which perf had no time to write, can be read all the same. */
static void read_features(struct perf_data *data, const uint8_t bitmap[FEATURES / 8],
                          uint64_t table)
{
    for (unsigned feature = 0; feature < FEATURES; feature++) {
        uint8_t entry[16];
        if (!(bitmap[feature / 8] >> feature % 8 & 1))
            continue;
        if (source_read_at(data->source, table, entry, sizeof(entry)) != sizeof(entry))
            return;
        table += sizeof(entry);
        if (!is_wanted(feature))
            continue;
        _cleanup_buffer_ struct buffer content = {0};
        struct error *error = data->error;
        data->error = NULL;
        if (read_section(data, section_at(entry), FEATURE_BYTES_MAX, "features", &content) == 0)
            perf_take_feature(data, feature, (const uint8_t *)content.data, content.length);
        data->error = error;
    }
}

static int read_file(struct perf_data *data)
{
    uint8_t header[FILE_HEADER_BYTES];
    memcpy(header, source_data(data->source), sizeof(header));
    /* Without a way to read ahead, all of it has to be here. */
    uint8_t probe;
    if (source_read_at(data->source, 0, &probe, 1) < 0) {
        int r = source_need_all(data->source, HELD_BYTES_MAX, data->error);
        if (r < 0)
            return r;
    }
    int r = read_attrs(data, section_at(header + 24), perf_load_u64(header + 16));
    struct section records = section_at(header + 40);
    if (r < 0)
        return r;
    if (records.offset < FILE_HEADER_BYTES)
        return error_set(data->error, -EBADMSG, "The file's header has no place for samples.");
    /* perf fills the size in when it ends; if it could not, everything up to the end is records. */
    data->data_end = records.size && records.size <= UINT64_MAX - records.offset
                         ? records.offset + records.size
                         : UINT64_MAX;
    data->unfinished = !records.size;
    if (records.size)
        read_features(data, header + 72, data->data_end);
    while (source_offset(data->source) < records.offset) {
        r = source_need(data->source, 1, data->error);
        size_t available = source_available(data->source);
        if (r < 0)
            return r;
        if (!available)
            return short_file(data, "samples");
        source_skip(data->source,
                    (size_t)MIN((uint64_t)available, records.offset - source_offset(data->source)));
    }
    return perf_read_records(data);
}

static int read_pipe(struct perf_data *data)
{
    source_skip(data->source, PIPE_HEADER_BYTES);
    data->data_end = UINT64_MAX;
    return perf_read_records(data);
}

/* ---- the format ---- */

static void perf_data_release(struct perf_data *data)
{
    perf_samples_end(data);
    perf_stream_release(data);
    perf_processes_release(data);
    perf_branches_release(data);
    free(data->events);
    free(data->ids);
    id_table_release(&data->id_index);
    free(data);
}

static void release(struct perf_data **data)
{
    perf_data_release(*data);
}

/* One sentence about everything that is not in the profile. */
static void note_losses(struct perf_data *data)
{
    char *text = data->source->warning;
    size_t room = sizeof(data->source->warning), length = 0;
    if (data->unfinished && !data->cut)
        length = (size_t)snprintf(text, room,
                                  "perf did not end in order: the last samples may be "
                                  "missing");
    const struct {
        uint64_t count;
        const char *what;
    } losses[] = {
        {data->lost, "events were lost while recording"},
        {data->unwalked, "copied stacks were not unwound"},
        {data->short_records, "records are malformed"},
        {data->cut, "record is incomplete, the last one: perf did not end in order"},
        {data->lost_branches, "branches or pieces of code exceed a limit"},
        {data->guest_samples, "samples of guests were left out"},
        {data->refused, "processes or mappings exceed a limit"},
        {data->unordered, "times the records were too many to be put in order"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(losses); i++)
        if (losses[i].count && length < room)
            length +=
                (size_t)snprintf(text + length, room - length, "%s%llu %s", length ? ", " : "",
                                 (unsigned long long)losses[i].count, losses[i].what);
    if (length && length + 1 < room)
        memcpy(text + length, ".", 2);
}

static int perf_data_read(struct source *source, struct profile *profile, struct error *error)
{
    _cleanup_(release) struct perf_data *data = memory_zalloc(1, sizeof(*data));
    *data = (struct perf_data){.source = source, .profile = profile, .error = error};
    data->seed = random_bits();
    array_reserve(data->files, data->file_capacity, 1);
    data->files[data->file_count++] =
        (struct perf_file){.path = memory_strdup(""), .generated = true};
    int r = source_need(source, FILE_HEADER_BYTES, error);
    if (r < 0)
        return r;
    if (source_available(source) < PIPE_HEADER_BYTES ||
        memcmp(source_data(source), MAGIC, strlen(MAGIC)))
        return error_set(error, -EBADMSG, "Not a perf.data file.");
    uint64_t header_bytes = perf_load_u64(source_data(source) + 8);
    if (header_bytes != PIPE_HEADER_BYTES && source_available(source) < FILE_HEADER_BYTES)
        return short_file(data, "header's end");
    r = perf_samples_begin(data);
    if (r < 0)
        return r;
    r = header_bytes == PIPE_HEADER_BYTES ? read_pipe(data) : read_file(data);
    if (r < 0)
        return r;
    r = perf_add_branches(data);
    if (r < 0)
        return r;
    note_losses(data);
    profile_note_source(profile, data->has_clock ? (int64_t)data->first_time : 0,
                        (int64_t)MIN(data->last_time - data->first_time, (uint64_t)INT64_MAX));
    return 0;
}

static int perf_data_detect(const uint8_t *bytes, size_t length)
{
    return length >= strlen(MAGIC) && !memcmp(bytes, MAGIC, strlen(MAGIC)) ? FORMAT_CERTAIN : 0;
}

const struct format format_perf_data = {
    .name = "perf-data",
    .summary = "perf.data of `perf record`, as a file or a pipe",
    .extensions = "",
    .addresses = true,
    .detect = perf_data_detect,
    .read = perf_data_read,
};
