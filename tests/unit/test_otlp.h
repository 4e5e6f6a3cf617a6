/* SPDX-License-Identifier: Apache-2.0 */
/* What the OTLP tests share: reading, and a profile as sorted text that two can be compared by. */
#pragma once

#include <dirent.h>

#include "base/file.h"
#include "format/format.h"
#include "format/otlp/otlp.h"
#include "unit.h"

static inline int read_bytes(const void *data, size_t length, bool json, struct profile *profile,
                             struct otlp_summary *summary, struct error *error)
{
    struct source source = {0};
    int r = source_open_memory(&source, "input", data, length, 0, error);
    if (!r)
        r = json ? otlp_read_json(&source, profile, summary, error)
                 : otlp_read(&source, profile, summary, error);
    source_release(&source);
    return r;
}

static inline void load_fixture(const char *name, struct buffer *content)
{
    char path[512];
    struct error error = {0};
    snprintf(path, sizeof(path), "%s/otlp/%s", getenv("FIXTURES"), name);
    buffer_release(content);
    if (file_read(path, 1 << 20, content, &error) < 0)
        fail_msg("%s", error.text);
}

static inline bool is_json(const char *name)
{
    return strstr(name, ".json") != NULL;
}

/* Reads a fixture into a new profile. */
static inline int read_fixture(const char *name, enum profile_detail detail,
                               struct profile *profile, struct otlp_summary *summary,
                               struct error *error)
{
    _cleanup_buffer_ struct buffer content = {0};
    load_fixture(name, &content);
    profile_init(profile, detail);
    return read_bytes(content.data, content.length, is_json(name), profile, summary, error);
}

static inline void must_read_fixture(const char *name, enum profile_detail detail,
                                     struct profile *profile, struct otlp_summary *summary)
{
    struct error error = {0};
    if (read_fixture(name, detail, profile, summary, &error) < 0)
        fail_msg("%s: %s", name, error.text);
}

static inline void describe_frames(struct buffer *out, const struct profile *profile, uint32_t node)
{
    static const char *const kinds[FRAME_KINDS] = {"",        "native", "kernel", "jvm",
                                                   "cpython", "php",    "ruby",   "perl",
                                                   "v8js",    "dotnet", "beam",   "go"};
    uint32_t path[64];
    size_t depth = 0;
    for (; node && depth < 64; node = profile->nodes[node].parent)
        path[depth++] = profile->nodes[node].frame;
    while (depth--) {
        const struct profile_frame *frame = &profile->frames[path[depth]];
        const struct profile_function *function = &profile->functions[frame->function];
        const struct profile_mapping *mapping = &profile->mappings[frame->mapping];
        buffer_printf(
            out, "%s(%s)%s:%u+%u:%u %s+%llx[%s]%s%s%s;", profile_text(profile, function->name),
            profile_text(profile,
                         function->system_name == function->name ? 0 : function->system_name),
            profile_text(profile, function->file), function->start_line, frame->line, frame->column,
            profile_text(profile, mapping->file), (unsigned long long)frame->address,
            profile_text(profile, mapping->build_id), kinds[frame->kind],
            frame->inlined ? " inlined" : "", frame->folded ? " folded" : "");
    }
}

static inline void describe_labels(struct buffer *out, const struct profile *profile, uint32_t set)
{
    size_t count;
    const struct profile_label *labels = profile_labels(profile, set, &count);
    /* By key, since the order in a set is that of ids. */
    char *texts[64];
    size_t used = 0;
    for (size_t i = 0; i < count && used < 64; i++) {
        struct buffer text = {0};
        buffer_printf(&text, " %s=", profile_text(profile, labels[i].key));
        if (labels[i].text)
            buffer_printf(&text, "'%s'", profile_text(profile, labels[i].text));
        else
            buffer_printf(&text, "%lld%s", (long long)labels[i].number,
                          profile_text(profile, labels[i].unit));
        buffer_text(&text);
        size_t at = used++;
        for (; at && strcmp(texts[at - 1], text.data) > 0; at--)
            texts[at] = texts[at - 1];
        texts[at] = text.data;
    }
    for (size_t i = 0; i < used; i++) {
        buffer_add_text(out, texts[i]);
        free(texts[i]);
    }
}

static inline int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One line per value that isn't zero: type, time, link, labels, frames, value; sorted. */
static inline char *describe(const struct profile *profile)
{
    const struct profile_samples *samples = &profile->samples;
    size_t count = 0, capacity = samples->count * profile->type_count + 1;
    char **lines = memory_zalloc(capacity, sizeof(*lines));
    for (size_t row = 0; row < samples->count; row++) {
        for (unsigned type = 0; type < profile->type_count; type++) {
            if (!samples->values[type][row])
                continue;
            struct buffer line = {0};
            buffer_printf(&line, "%s/%s", profile_text(profile, profile->types[type].type),
                          profile_text(profile, profile->types[type].unit));
            if (samples->time_ns && samples->time_ns[row])
                buffer_printf(&line, " @%llu", (unsigned long long)samples->time_ns[row]);
            if (samples->link && samples->link[row]) {
                const struct profile_link *link = &profile->links[samples->link[row]];
                buffer_printf(&line, " trace %02x..%02x span %02x..%02x", link->trace_id[0],
                              link->trace_id[15], link->span_id[0], link->span_id[7]);
            }
            describe_labels(&line, profile, samples->labels[row]);
            buffer_add_text(&line, " | ");
            describe_frames(&line, profile, samples->node[row]);
            buffer_printf(&line, " %lld\n", (long long)samples->values[type][row]);
            buffer_text(&line);
            lines[count++] = line.data;
        }
    }
    qsort(lines, count, sizeof(*lines), compare_lines);
    struct buffer out = {0};
    for (size_t i = 0; i < count; i++) {
        buffer_add_text(&out, lines[i]);
        free(lines[i]);
    }
    free(lines);
    buffer_text(&out);
    return out.data;
}

static inline int64_t total_of(const struct profile *profile, const char *name)
{
    unsigned type = profile_find_type(profile, name);
    if (type == PROFILE_TYPES_MAX)
        fail_msg("There is no type %s.", name);
    int64_t total = 0;
    for (size_t row = 0; row < profile->samples.count; row++)
        total += profile->samples.values[type][row];
    return total;
}
