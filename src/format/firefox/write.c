// SPDX-License-Identifier: Apache-2.0
// Writes the processed form of the Firefox Profiler's JSON: a track for each thread, with stacks in
// tables that all threads share. See docs/formats/firefox.md.

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "format/firefox/firefox.h"
#include "format/timeline/timeline.h"
#include "io/json_write.h"

#define GECKO_VERSION 24
#define PROCESSED_VERSION 66

struct writer {
    struct timeline *timeline;
    struct json_writer json;
};

/* A column of one value. */
static void write_constant(struct json_writer *json, const char *key, size_t count,
                           const char *value)
{
    json_write_key(json, key);
    json_write_array(json);
    for (size_t i = 0; i < count && buffer_pass(json->out); i++)
        json_write_raw(json, value, strlen(value));
    json_write_array_end(json);
}

static void begin_table(struct json_writer *json, const char *name, size_t length)
{
    json_write_line(json);
    json_write_key(json, name);
    json_write_object(json);
    json_member_unsigned(json, "length", length);
}

static void begin_column(struct json_writer *json, const char *key)
{
    json_write_key(json, key);
    json_write_array(json);
}

static void write_null_or(struct json_writer *json, uint64_t value)
{
    if (value)
        json_write_unsigned(json, value);
    else
        json_write_null(json);
}

/* ---- tables ---- */

static void write_stacks(struct writer *writer)
{
    const struct profile *profile = writer->timeline->profile;
    struct json_writer *json = &writer->json;
    begin_table(json, "stackTable", profile->node_count - 1);
    begin_column(json, "frame");
    for (uint32_t i = 1; i < profile->node_count && buffer_pass(json->out); i++)
        json_write_unsigned(json, profile->nodes[i].frame - 1);
    json_write_array_end(json);
    begin_column(json, "prefixOffset");
    for (uint32_t i = 1; i < profile->node_count && buffer_pass(json->out); i++)
        json_write_unsigned(json, profile->nodes[i].parent ? i - profile->nodes[i].parent : 0);
    json_write_array_end(json);
    json_write_object_end(json);
}

static void write_frames(struct writer *writer)
{
    const struct profile *profile = writer->timeline->profile;
    const struct naming *naming = &writer->timeline->naming;
    struct json_writer *json = &writer->json;
    size_t count = profile->frame_count - 1;
    begin_table(json, "frameTable", count);
    begin_column(json, "func");
    for (uint32_t i = 1; i < profile->frame_count && buffer_pass(json->out); i++)
        json_write_unsigned(json, naming->of_frame[i]);
    json_write_array_end(json);
    begin_column(json, "line");
    for (uint32_t i = 1; i < profile->frame_count && buffer_pass(json->out); i++)
        write_null_or(json, profile->frames[i].line);
    json_write_array_end(json);
    begin_column(json, "inlineDepth");
    for (uint32_t i = 1; i < profile->frame_count && buffer_pass(json->out); i++)
        json_write_unsigned(json, profile->frames[i].inlined);
    json_write_array_end(json);
    write_constant(json, "address", count, "-1");
    write_constant(json, "category", count, "0");
    write_constant(json, "subcategory", count, "0");
    write_constant(json, "column", count, "null");
    write_constant(json, "innerWindowID", count, "0");
    write_constant(json, "nativeSymbol", count, "null");
    write_constant(json, "originalLocation", count, "null");
    json_write_object_end(json);
}

/* Functions are the entries of the naming, and so are the first strings and sources. */
static void write_functions(struct writer *writer)
{
    const struct naming *naming = &writer->timeline->naming;
    struct json_writer *json = &writer->json;
    size_t count = naming->count;
    begin_table(json, "funcTable", count);
    begin_column(json, "name");
    for (size_t i = 0; i < count && buffer_pass(json->out); i++)
        json_write_unsigned(json, i);
    json_write_array_end(json);
    begin_column(json, "source");
    for (size_t i = 0; i < count && buffer_pass(json->out); i++)
        json_write_unsigned(json, i);
    json_write_array_end(json);
    begin_column(json, "lineNumber");
    for (size_t i = 0; i < count && buffer_pass(json->out); i++)
        write_null_or(json, naming->entries[i].start_line);
    json_write_array_end(json);
    write_constant(json, "columnNumber", count, "null");
    write_constant(json, "isJS", count, "false");
    write_constant(json, "relevantForJS", count, "false");
    write_constant(json, "resource", count, "-1");
    write_constant(json, "originalLocation", count, "null");
    json_write_object_end(json);
    begin_table(json, "sources", count);
    begin_column(json, "filename");
    for (size_t i = 0; i < count && buffer_pass(json->out); i++)
        json_write_unsigned(json, count + i);
    json_write_array_end(json);
    write_constant(json, "id", count, "null");
    write_constant(json, "content", count, "null");
    write_constant(json, "sourceMapURL", count, "null");
    write_constant(json, "startColumn", count, "1");
    write_constant(json, "startLine", count, "1");
    json_write_object_end(json);
}

static void write_strings(struct writer *writer)
{
    const struct naming *naming = &writer->timeline->naming;
    struct json_writer *json = &writer->json;
    json_write_line(json);
    begin_column(json, "stringArray");
    for (size_t i = 0; i < naming->count && buffer_pass(json->out); i++)
        json_write_bytes(json, naming->entries[i].name, naming->entries[i].length);
    for (size_t i = 0; i < naming->count && buffer_pass(json->out); i++)
        json_write_text(json, naming->entries[i].file);
    json_write_array_end(json);
}

static void write_empty_tables(struct json_writer *json)
{
    static const char tables[] =
        "\"nativeSymbols\":{\"length\":0,\"address\":[],\"functionSize\":[],\"libIndex\":[],"
        "\"name\":[]},\"resourceTable\":{\"length\":0,\"host\":[],\"lib\":[],\"name\":[],\"type\":"
        "[]},\"sourceLocationTable\":{\"length\":0,\"column\":[],\"line\":[],\"source\":[]}";
    json_write_line(json);
    json_write_raw(json, tables, sizeof(tables) - 1);
}

/* ---- threads ---- */

static void write_milliseconds(struct json_writer *json, int64_t ns)
{
    json_write_digits(json, (double)ns / 1e6, 15);
}

static void write_weights(struct writer *writer, const struct timeline_sample *samples,
                          size_t count)
{
    struct json_writer *json = &writer->json;
    const char *unit = timeline_unit(writer->timeline);
    bool time = !strcmp(unit, "nanoseconds");
    begin_column(json, "weight");
    for (size_t i = 0; i < count && buffer_pass(json->out); i++) {
        if (time)
            write_milliseconds(json, samples[i].value);
        else
            json_write_signed(json, samples[i].value);
    }
    json_write_array_end(json);
    json_member_text(json, "weightType",
                     time                     ? "tracing-ms"
                     : !strcmp(unit, "bytes") ? "bytes"
                                              : "samples");
}

static void write_samples(struct writer *writer, const struct timeline_thread *thread)
{
    struct json_writer *json = &writer->json;
    const struct timeline_sample *samples = writer->timeline->samples + thread->first;
    begin_table(json, "samples", thread->count);
    begin_column(json, "stack");
    for (size_t i = 0; i < thread->count && buffer_pass(json->out); i++) {
        if (samples[i].node)
            json_write_unsigned(json, samples[i].node - 1);
        else
            json_write_null(json);
    }
    json_write_array_end(json);
    begin_column(json, "time");
    for (size_t i = 0; i < thread->count && buffer_pass(json->out); i++)
        write_milliseconds(json, samples[i].time_ns);
    json_write_array_end(json);
    write_weights(writer, samples, thread->count);
    json_write_object_end(json);
}

/* Viewers want ids as texts, and different ones for different threads. */
static void write_id(struct json_writer *json, const char *key, int64_t id, size_t otherwise)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)(id ? id : (int64_t)otherwise));
    json_member_text(json, key, text);
}

static void write_thread(struct writer *writer, size_t index)
{
    static const char markers[] =
        "\"markers\":{\"length\":0,\"category\":[],\"data\":[],\"endTime\":[],\"name\":[],"
        "\"phase\":[],\"startTime\":[]},\"pausedRanges\":[],\"processType\":\"default\","
        "\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,"
        "\"unregisterTime\":null,\"showMarkersInTimeline\":false";
    const struct timeline_thread *thread = &writer->timeline->threads[index];
    const struct profile *profile = writer->timeline->profile;
    struct json_writer *json = &writer->json;
    json_write_line(json);
    json_write_object(json);
    json_member_text(json, "name",
                     thread->name ? profile_text(profile, thread->name) : "All threads");
    if (thread->process_name)
        json_member_text(json, "processName", profile_text(profile, thread->process_name));
    write_id(json, "pid", thread->pid, 0);
    write_id(json, "tid", thread->tid, index);
    json_write_key(json, "isMainThread");
    json_write_bool(json, thread->pid == thread->tid);
    json_write_raw(json, markers, sizeof(markers) - 1);
    write_samples(writer, thread);
    json_write_object_end(json);
}

static void write_meta(struct writer *writer, const char *title)
{
    static const char fixed[] =
        "\"categories\":[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]}],"
        "\"debug\":false,\"extensions\":{\"length\":0,\"baseURL\":[],\"id\":[],\"name\":[]},"
        "\"markerSchema\":[],\"pausedRanges\":[],\"processType\":0,\"sampleUnits\":{\"time\":"
        "\"ms\","
        "\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"},\"sourceCodeIsNotOnSearchfox\":true,"
        "\"symbolicated\":true,\"usesOnlyOneStackType\":true";
    const struct profile *profile = writer->timeline->profile;
    struct json_writer *json = &writer->json;
    const char *unit = profile_text(profile, profile->period_type.unit);
    bool clock = !strcmp(unit, "nanoseconds") && profile->period > 0;
    json_write_key(json, "meta");
    json_write_object(json);
    json_member_unsigned(json, "version", GECKO_VERSION);
    json_member_unsigned(json, "preprocessedProfileVersion", PROCESSED_VERSION);
    json_member_text(json, "product", title ? title : "assay");
    json_write_key(json, "interval");
    write_milliseconds(json, clock ? profile->period : 1000000);
    json_write_key(json, "startTime");
    write_milliseconds(json, writer->timeline->start_ns);
    json_write_raw(json, fixed, sizeof(fixed) - 1);
    json_write_object_end(json);
}

int firefox_write(struct buffer *out, const struct profile *profile,
                  const struct write_options *options, struct error *error)
{
    _cleanup_timeline_ struct timeline timeline = {0};
    int r = timeline_init(&timeline, profile, options->type, error);
    if (r < 0)
        return r;
    struct writer writer = {.timeline = &timeline, .json = json_writer(out)};
    struct json_writer *json = &writer.json;
    json_write_object(json);
    write_meta(&writer, options->title);
    static const char nothing[] =
        "\"libs\":[],\"pages\":[],\"counters\":[],\"profilerOverhead\":[]";
    json_write_raw(json, nothing, sizeof(nothing) - 1);
    json_write_key(json, "shared");
    json_write_object(json);
    write_stacks(&writer);
    write_frames(&writer);
    write_functions(&writer);
    write_empty_tables(json);
    write_strings(&writer);
    json_write_object_end(json);
    json_write_line(json);
    json_write_key(json, "threads");
    json_write_array(json);
    for (size_t i = 0; i < timeline.thread_count && buffer_pass(out); i++)
        if (timeline.threads[i].count)
            write_thread(&writer, i);
    json_write_array_end(json);
    json_write_object_end(json);
    buffer_add_char(out, '\n');
    return 0;
}
