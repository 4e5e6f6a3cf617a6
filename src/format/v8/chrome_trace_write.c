// SPDX-License-Identifier: Apache-2.0
// Writes Chrome's trace format, for Perfetto and Chrome's developer tools: a CPU profile of V8 for
// each thread, in the pieces that a trace has it in. See docs/formats/chrome-trace.md.

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "format/timeline/timeline.h"
#include "format/v8/cpuprofile.h"
#include "io/json_write.h"

#define PIECE_SAMPLES 5000 /* of one event */
#define CATEGORY "disabled-by-default-v8.cpu_profiler"

struct writer {
    struct timeline *timeline;
    struct json_writer json;
    bool *sent; /* nodes of the thread at hand */
    uint32_t *path;
};

/* Viewers subtract times as doubles: those since the epoch have no room for nanoseconds. */
static void write_microseconds(struct json_writer *json, int64_t ns)
{
    json_write_digits(json, (double)ns / 1e3, 15);
}

static void begin_event(struct writer *writer, const struct timeline_thread *thread, size_t index,
                        const char *phase, const char *name, const char *category, int64_t ns)
{
    struct json_writer *json = &writer->json;
    json_write_line(json);
    json_write_object(json);
    json_member_text(json, "ph", phase);
    json_member_text(json, "name", name);
    json_member_text(json, "cat", category);
    json_member_signed(json, "pid", thread->pid ? thread->pid : 1);
    json_member_signed(json, "tid", thread->tid ? thread->tid : (int64_t)index + 1);
    json_write_key(json, "ts");
    write_microseconds(json, ns);
}

static void begin_data(struct json_writer *json, const char *id)
{
    json_member_text(json, "id", id);
    json_write_key(json, "args");
    json_write_object(json);
    json_write_key(json, "data");
    json_write_object(json);
}

static void end_data(struct json_writer *json)
{
    json_write_object_end(json);
    json_write_object_end(json);
    json_write_object_end(json);
}

static void write_name(struct writer *writer, const struct timeline_thread *thread, size_t index,
                       const char *event, const char *name)
{
    struct json_writer *json = &writer->json;
    begin_event(writer, thread, index, "M", event, "__metadata", 0);
    json_write_key(json, "args");
    json_write_object(json);
    json_member_text(json, "name", name);
    json_write_object_end(json);
    json_write_object_end(json);
}

/* Ids of nodes are the model's and 1, which is the root's. */
static void write_node(struct writer *writer, uint32_t node)
{
    const struct profile *profile = writer->timeline->profile;
    const struct naming *naming = &writer->timeline->naming;
    struct json_writer *json = &writer->json;
    json_write_object(json);
    json_member_unsigned(json, "id", node + 1);
    if (node)
        json_member_unsigned(json, "parent", profile->nodes[node].parent + 1);
    json_write_key(json, "callFrame");
    json_write_object(json);
    json_member_text(json, "codeType", "other");
    json_member_unsigned(json, "scriptId", 0);
    json_write_key(json, "functionName");
    if (node) {
        const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
        const struct naming_entry *entry =
            &naming->entries[naming->of_frame[profile->nodes[node].frame]];
        json_write_bytes(json, entry->name, entry->length);
        if (*entry->file)
            json_member_text(json, "url", entry->file);
        /* V8 counts lines from 0. */
        uint32_t line = frame->line ? frame->line : entry->start_line;
        if (line)
            json_member_unsigned(json, "lineNumber", line - 1);
    } else {
        json_write_text(json, "(root)");
    }
    json_write_object_end(json);
    json_write_object_end(json);
}

/* The nodes of these samples that the thread's earlier pieces don't have, parents first. */
static void write_nodes(struct writer *writer, const struct timeline_sample *samples, size_t count)
{
    const struct profile *profile = writer->timeline->profile;
    json_write_key(&writer->json, "nodes");
    json_write_array(&writer->json);
    for (size_t i = 0; i < count; i++) {
        size_t depth = 0;
        uint32_t node = samples[i].node;
        for (; !writer->sent[node]; node = profile->nodes[node].parent) {
            writer->sent[node] = true;
            writer->path[depth++] = node; /* the root's parent is the root */
        }
        while (depth)
            write_node(writer, writer->path[--depth]);
    }
    json_write_array_end(&writer->json);
}

static void write_piece(struct writer *writer, const struct timeline_thread *thread, size_t index,
                        const char *id, size_t from, size_t count, int64_t *before_ns)
{
    struct json_writer *json = &writer->json;
    const struct timeline_sample *samples = writer->timeline->samples + from;
    begin_event(writer, thread, index, "P", "ProfileChunk", CATEGORY, samples[0].time_ns);
    begin_data(json, id);
    json_write_key(json, "cpuProfile");
    json_write_object(json);
    write_nodes(writer, samples, count);
    json_write_key(json, "samples");
    json_write_array(json);
    for (size_t i = 0; i < count; i++)
        json_write_unsigned(json, samples[i].node + 1);
    json_write_array_end(json);
    json_write_object_end(json);
    json_write_key(json, "timeDeltas");
    json_write_array(json);
    for (size_t i = 0; i < count; i++) {
        write_microseconds(json, samples[i].time_ns - *before_ns);
        *before_ns = samples[i].time_ns;
    }
    json_write_array_end(json);
    if (from + count == thread->first + thread->count) {
        json_write_key(json, "endTime");
        write_microseconds(json, samples[count - 1].until_ns);
    }
    end_data(json);
}

static void write_thread(struct writer *writer, size_t index)
{
    const struct timeline_thread *thread = &writer->timeline->threads[index];
    const struct profile *profile = writer->timeline->profile;
    struct json_writer *json = &writer->json;
    char id[32];
    snprintf(id, sizeof(id), "0x%zx", index + 1);
    write_name(writer, thread, index, "thread_name",
               thread->name ? profile_text(profile, thread->name) : "All threads");
    if (thread->process_name)
        write_name(writer, thread, index, "process_name",
                   profile_text(profile, thread->process_name));
    begin_event(writer, thread, index, "P", "Profile", CATEGORY, 0);
    begin_data(json, id);
    json_member_unsigned(json, "startTime", 0);
    end_data(json);
    memset(writer->sent, 0, profile->node_count * sizeof(*writer->sent));
    int64_t before_ns = 0;
    for (size_t at = 0; at < thread->count && buffer_pass(json->out); at += PIECE_SAMPLES)
        write_piece(writer, thread, index, id, thread->first + at,
                    MIN(thread->count - at, (size_t)PIECE_SAMPLES), &before_ns);
}

int chrome_trace_write(struct buffer *out, const struct profile *profile,
                       const struct write_options *options, struct error *error)
{
    _cleanup_timeline_ struct timeline timeline = {0};
    int r = timeline_init(&timeline, profile, options->type, error);
    if (r < 0)
        return r;
    _cleanup_free_ bool *sent = memory_zalloc(profile->node_count, sizeof(*sent));
    _cleanup_free_ uint32_t *path = memory_zalloc(profile->node_count, sizeof(*path));
    struct writer writer = {
        .timeline = &timeline, .json = json_writer(out), .sent = sent, .path = path};
    struct json_writer *json = &writer.json;
    json_write_object(json);
    json_member_text(json, "displayTimeUnit", "ms");
    json_write_key(json, "traceEvents");
    json_write_array(json);
    for (size_t i = 0; i < timeline.thread_count && buffer_pass(out); i++)
        if (timeline.threads[i].count)
            write_thread(&writer, i);
    json_write_array_end(json);
    json_write_object_end(json);
    buffer_add_char(out, '\n');
    return 0;
}
