// SPDX-License-Identifier: Apache-2.0
// CPU profiles in Chrome's traces: events "Profile" and "ProfileChunk" bring them in pieces, one
// profile for each thread; older traces have one event "CpuProfile". All other events are skipped.
// See docs/formats/chrome-trace.md.

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "format/v8/cpuprofile.h"

#define PROFILES_MAX 4096
#define ID_BYTES 64

struct traced_profile {
    uint64_t pid;
    char id[ID_BYTES];
    struct cpuprofile file;
};

struct trace {
    struct json json;
    struct source *source;
    struct profile *profile;
    struct error *error;
    struct traced_profile **profiles;
    size_t count, capacity;
};

/* One event, as far as it may be of a profile. */
struct trace_event {
    uint64_t pid, tid;
    char id[ID_BYTES]; /* empty in old traces, which have one profile for each thread */
    bool is_profile;   /* by its name */
    bool has_part;
    struct cpuprofile part;
};

static void trace_release(struct trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        cpuprofile_release(&trace->profiles[i]->file);
        free(trace->profiles[i]);
    }
    free(trace->profiles);
    json_release(&trace->json);
}

static int find_profile(struct trace *trace, const struct trace_event *event,
                        struct cpuprofile **ret_file)
{
    for (size_t i = trace->count; i-- > 0;) {
        struct traced_profile *known = trace->profiles[i];
        if (known->pid == event->pid && !strcmp(known->id, event->id)) {
            *ret_file = &known->file;
            return 0;
        }
    }
    if (trace->count == PROFILES_MAX)
        return json_fail(&trace->json, "There are more than %d CPU profiles", PROFILES_MAX);
    struct traced_profile *added = memory_zalloc(1, sizeof(*added));
    added->pid = event->pid;
    memcpy(added->id, event->id, ID_BYTES);
    cpuprofile_init(&added->file, trace->source, trace->profile, trace->error);
    added->file.partial = true;
    array_reserve(trace->profiles, trace->capacity, trace->count + 1);
    trace->profiles[trace->count++] = added;
    *ret_file = &added->file;
    return 0;
}

/* A piece of a profile at the end of the rest of it. */
static int append(struct trace *trace, const struct trace_event *event)
{
    const struct cpuprofile *part = &event->part;
    struct cpuprofile *file = NULL;
    int r = find_profile(trace, event, &file);
    for (size_t i = 0; i < part->node_count && r >= 0; i++)
        r = cpuprofile_add_node(file, &part->nodes[i], NULL);
    if (r < 0 || !file)
        return r;
    array_reserve(file->edges, file->edge_capacity, file->edge_count + part->edge_count);
    array_reserve(file->samples, file->sample_capacity, file->sample_count + part->sample_count);
    array_reserve(file->times_ns, file->time_capacity, file->time_count + part->time_count);
    for (size_t i = 0; i < part->edge_count; i++)
        file->edges[file->edge_count++] = part->edges[i];
    for (size_t i = 0; i < part->sample_count; i++)
        file->samples[file->sample_count++] = part->samples[i];
    for (size_t i = 0; i < part->time_count; i++)
        file->times_ns[file->time_count++] = part->times_ns[i];
    if (part->has_start && !file->has_start)
        file->start = part->start, file->has_start = true;
    if (part->has_end)
        file->end = part->end, file->has_end = true;
    return 0;
}

/* A member of "data" or of "cpuProfile", which go on reading where the trace is. */
static int read_member(struct trace *trace, struct trace_event *event,
                       const struct json_string *key)
{
    struct cpuprofile *part = &event->part;
    if (!event->has_part) {
        cpuprofile_init(part, trace->source, trace->profile, trace->error);
        event->has_part = true;
    }
    struct json idle = part->json;
    part->json = trace->json;
    int r = cpuprofile_read_member(part, key);
    trace->json = part->json;
    part->json = idle;
    return r;
}

static bool is_part(const struct json_string *key)
{
    static const char *const parts[] = {"nodes",      "head",      "samples", "timeDeltas",
                                        "timestamps", "startTime", "endTime"};
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        if (json_is(key, parts[i]))
            return true;
    return false;
}

static int read_profile(struct trace *trace, struct trace_event *event)
{
    struct json_string key;
    int r = json_object(&trace->json);
    while (r >= 0 && (r = json_next_key(&trace->json, &key)) > 0)
        if (is_part(&key))
            r = read_member(trace, event, &key);
    return r;
}

/* Other events have members of these names with other values, so kinds are checked. */
static int read_data(struct trace *trace, struct trace_event *event)
{
    struct json *json = &trace->json;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "cpuProfile") && json_kind(json) == JSON_OBJECT)
            r = read_profile(trace, event);
        else if (json_is(&key, "timeDeltas") && json_kind(json) == JSON_ARRAY)
            r = read_member(trace, event, &key);
        else if ((json_is(&key, "startTime") || json_is(&key, "endTime")) &&
                 json_kind(json) == JSON_NUMBER)
            r = read_member(trace, event, &key);
    }
    return r;
}

static int read_args(struct trace *trace, struct trace_event *event)
{
    struct json *json = &trace->json;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "data") && json_kind(json) == JSON_OBJECT)
            r = read_data(trace, event);
    return r;
}

static int read_id(struct json *json, struct trace_event *event)
{
    struct json_string text;
    uint64_t number;
    int kind = json_kind(json);
    int r = kind == JSON_STRING   ? json_string(json, &text)
            : kind == JSON_NUMBER ? json_u64(json, &number)
                                  : json_skip(json);
    if (r >= 0 && kind == JSON_STRING)
        snprintf(event->id, ID_BYTES, "%.*s", (int)MIN(text.length, (size_t)ID_BYTES - 1),
                 text.data);
    else if (r >= 0 && kind == JSON_NUMBER)
        snprintf(event->id, ID_BYTES, "%llu", (unsigned long long)number);
    return r;
}

static int read_name(struct json *json, struct trace_event *event)
{
    struct json_string text;
    int r = json_string(json, &text);
    if (r >= 0)
        event->is_profile = json_is(&text, "ProfileChunk") || json_is(&text, "Profile") ||
                            json_is(&text, "CpuProfile");
    return r;
}

static int read_event(struct trace *trace, struct trace_event *event)
{
    struct json *json = &trace->json;
    struct json_string key;
    if (json_kind(json) != JSON_OBJECT)
        return json_skip(json);
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "args") && json_kind(json) == JSON_OBJECT)
            r = read_args(trace, event);
        else if (json_is(&key, "name") && json_kind(json) == JSON_STRING)
            r = read_name(json, event);
        else if (json_is(&key, "id"))
            r = read_id(json, event);
        else if (json_is(&key, "pid") && json_kind(json) == JSON_NUMBER)
            r = json_u64(json, &event->pid);
        else if (json_is(&key, "tid") && json_kind(json) == JSON_NUMBER)
            r = json_u64(json, &event->tid);
    }
    if (!event->id[0])
        snprintf(event->id, ID_BYTES, "thread %llu", (unsigned long long)event->tid);
    if (r >= 0 && event->is_profile && event->has_part)
        r = append(trace, event);
    return r;
}

static int read_events(struct trace *trace)
{
    _cleanup_free_ struct trace_event *event = memory_zalloc(1, sizeof(*event));
    int r = json_array(&trace->json);
    while (r >= 0 && (r = json_next_element(&trace->json)) > 0) {
        event->pid = event->tid = 0;
        event->id[0] = '\0';
        event->is_profile = event->has_part = false;
        r = read_event(trace, event);
        if (event->has_part)
            cpuprofile_release(&event->part);
    }
    return r;
}

static int read_object(struct trace *trace)
{
    struct json_string key;
    bool seen = false;
    int r = json_object(&trace->json);
    while (r >= 0 && (r = json_next_key(&trace->json, &key)) > 0)
        if (json_is(&key, "traceEvents")) {
            seen = true;
            r = read_events(trace);
        }
    if (r >= 0 && !seen)
        return json_fail(&trace->json, "The file has no \"traceEvents\" before its end");
    return r;
}

static int chrome_trace_read(struct source *source, struct profile *profile, struct error *error)
{
    _cleanup_(trace_release) struct trace trace = {
        .source = source, .profile = profile, .error = error};
    json_init(&trace.json, source, error);
    int r = json_kind(&trace.json) == JSON_ARRAY ? read_events(&trace) : read_object(&trace);
    if (r >= 0)
        r = json_end(&trace.json);
    size_t used = 0;
    uint64_t missing = 0;
    for (size_t i = 0; i < trace.count && r >= 0; i++) {
        struct cpuprofile *file = &trace.profiles[i]->file;
        if (file->node_count) {
            r = cpuprofile_resolve(file);
            missing += file->missing;
            used++;
        } else {
            missing += file->sample_count;
        }
    }
    if (missing)
        snprintf(source->warning, sizeof(source->warning),
                 "%llu samples were left out: their functions are not in the trace.",
                 (unsigned long long)missing);
    if (r >= 0 && !used)
        return error_set(error, -ENOTSUP,
                         "The trace has no CPU profile: record it in the performance panel of "
                         "Chrome's developer tools, or with the category "
                         "disabled-by-default-v8.cpu_profiler.");
    return r;
}

static int chrome_trace_detect(const uint8_t *bytes, size_t length)
{
    if (json_sniff_object(bytes, length)) {
        /* Chrome's developer tools put "metadata" first, which can be megabytes. */
        bool saved = json_sniff_key(bytes, length, "metadata") &&
                     json_sniff_key(bytes, length, "source") &&
                     memmem(bytes, length, "\"DevTools\"", 10);
        return saved || json_sniff_key(bytes, length, "traceEvents") ? FORMAT_CERTAIN : 0;
    }
    size_t at = 0;
    while (at < length && strchr(" \t\r\n", (char)bytes[at]) && bytes[at])
        at++;
    if (at == length || bytes[at] != '[')
        return 0;
    return json_sniff_key(bytes, length, "ph") && json_sniff_key(bytes, length, "pid")
               ? FORMAT_CERTAIN
               : 0;
}

const struct format format_chrome_trace = {
    .name = "chrome-trace",
    .text = true,
    .summary = "CPU profiles in traces of Chrome and Node.js; for Perfetto",
    .extensions = ".trace.json .trace.json.gz",
    .detail = PROFILE_LINES | PROFILE_LABELS | PROFILE_TIMES,
    .write = chrome_trace_write,
    .detect = chrome_trace_detect,
    .read = chrome_trace_read,
};
