/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that follow from a seed, and stores' answers as text, for the tests of the store. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "label/selector.h"
#include "store/store.h"

#define SECOND_NS 1000000000ll
#define MINUTE_NS (60 * SECOND_NS)
#define HOUR_NS (60 * MINUTE_NS)
#define DAY_NS (24 * HOUR_NS)
#define CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define ALLOC "memory:alloc_space:bytes:space:bytes"
#define TODAY_NS (20000 * DAY_NS) /* 2024-10-04, a Friday */

static _Atomic int64_t test_now_ns = TODAY_NS + 12 * HOUR_NS;

static inline int64_t test_clock(void *context)
{
    (void)context;
    return test_now_ns;
}

/* A small generator of its own: the same numbers everywhere. */
static inline uint32_t sample_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(*seed >> 33);
}

static inline uint32_t sample_frame(struct profile *profile, unsigned number)
{
    char text[32];
    snprintf(text, sizeof(text), "function%u", number);
    if (number % 7 == 3) { /* an address without a name */
        uint32_t mapping = profile_mapping(
            profile, &(struct profile_mapping){.start = 0x1000,
                                               .limit = 0x9000,
                                               .file = profile_cstring(profile, "/bin/x"),
                                               .build_id = profile_cstring(profile, "abcdef")});
        return profile_frame(profile,
                             &(struct profile_frame){.address = number * 16, .mapping = mapping});
    }
    uint32_t function = profile_function(
        profile, &(struct profile_function){.name = profile_cstring(profile, text),
                                            .file = profile_cstring(profile, "x.c"),
                                            .start_line = number});
    return profile_frame(
        profile,
        &(struct profile_frame){.function = function, .line = number % 3, .kind = FRAME_NATIVE});
}

static inline uint32_t sample_stack(struct profile *profile, uint64_t *seed, unsigned functions)
{
    uint32_t frames[24];
    size_t depth = 1 + sample_random(seed) % 12;
    for (size_t i = 0; i < depth; i++)
        frames[i] = sample_frame(profile, sample_random(seed) % functions);
    return profile_stack(profile, frames, depth);
}

struct sample_window {
    struct labels labels;
    struct store_row rows[64];
    struct store_exemplar exemplars[2];
};

struct sample_batch {
    struct profile profile;
    struct sample_window windows[8];
    struct store_profile profiles[8];
    size_t count;
};

/* `count` windows that start within [from, to), of some of three services. */
static inline void sample_batch_make(struct sample_batch *batch, uint64_t seed, size_t count,
                                     int64_t from_ns, int64_t to_ns)
{
    char text[32];
    memset(batch, 0, sizeof(*batch));
    profile_init(&batch->profile, PROFILE_ALL);
    batch->count = count;
    for (size_t i = 0; i < count; i++) {
        struct sample_window *window = &batch->windows[i];
        snprintf(text, sizeof(text), "service%u", sample_random(&seed) % 3);
        labels_set(&window->labels, "service_name", text);
        snprintf(text, sizeof(text), "v%u", sample_random(&seed) % 2);
        labels_set(&window->labels, "version", text);
        snprintf(text, sizeof(text), "host%u", sample_random(&seed) % 3);
        labels_set(&window->labels, "host", text);
        size_t rows = sample_random(&seed) % 40, exemplars = sample_random(&seed) % 2;
        for (size_t k = 0; k < rows; k++)
            window->rows[k] =
                (struct store_row){.node = sample_stack(&batch->profile, &seed, 20),
                                   .value = (int64_t)(1 + sample_random(&seed) % 5) * 10101010};
        for (size_t k = 0; k < exemplars; k++)
            window->exemplars[k] = (struct store_exemplar){
                .node = sample_stack(&batch->profile, &seed, 20),
                .value = 7,
                .time_ns = (int64_t)sample_random(&seed),
                .link = {.trace_id = {(uint8_t)sample_random(&seed), 1}, .span_id = {2}}};
        int64_t range = (to_ns - from_ns) / SECOND_NS;
        batch->profiles[i] = (struct store_profile){
            .labels = &window->labels,
            .type = sample_random(&seed) % 4 ? CPU : ALLOC,
            .time_ns = from_ns + (int64_t)(sample_random(&seed) % (uint64_t)range) * SECOND_NS,
            .duration_ns = 10 * SECOND_NS,
            .profile = &batch->profile,
            .rows = window->rows,
            .row_count = rows,
            .exemplars = window->exemplars,
            .exemplar_count = exemplars};
    }
}

static inline void sample_batch_release(struct sample_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        labels_release(&batch->windows[i].labels);
    profile_release(&batch->profile);
}

/* ---- answers as text, free of ids and of order ---- */

static inline int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the lines of a text in place. */
static inline void sort_lines(struct buffer *text)
{
    size_t count = 0, capacity = 0;
    char **lines = NULL;
    _cleanup_free_ char *copy = memory_strdup(buffer_text(text));
    for (char *line = strtok(copy, "\n"); line; line = strtok(NULL, "\n")) {
        array_reserve(lines, capacity, count + 1);
        lines[count++] = line;
    }
    if (count)
        qsort(lines, count, sizeof(*lines), compare_lines);
    text->length = 0;
    for (size_t i = 0; i < count; i++)
        buffer_printf(text, "%s\n", lines[i]);
    free(lines);
}

static inline void describe_stack(const struct profile *profile, uint32_t node, struct buffer *out)
{
    for (; node; node = profile->nodes[node].parent) {
        const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
        const struct profile_function *function = &profile->functions[frame->function];
        const struct profile_mapping *mapping = &profile->mappings[frame->mapping];
        buffer_printf(out, ";%s:%u:%u:%s+%llx", profile_text(profile, function->name), frame->line,
                      function->start_line, profile_text(profile, mapping->build_id),
                      (unsigned long long)frame->address);
    }
}

static inline void describe_profile(const struct profile *profile, struct buffer *out)
{
    for (size_t row = 0; row < profile->samples.count; row++) {
        describe_stack(profile, profile->samples.node[row], out);
        for (unsigned type = 0; type < profile->type_count; type++)
            buffer_printf(out, " %lld", (long long)profile->samples.values[type][row]);
        buffer_add_char(out, '\n');
    }
    sort_lines(out);
}

static inline void describe_quality(const struct store_quality *quality, struct buffer *out)
{
    buffer_printf(out, "rows %llu windows %llu first %lld last %lld duration %lld total %lld\n",
                  (unsigned long long)quality->rows, (unsigned long long)quality->windows,
                  (long long)quality->first_ns, (long long)quality->last_ns,
                  (long long)quality->duration_ns, (long long)quality->total);
}

/* A merged profile with its stats; what went wrong in place of it. */
static inline void describe_merge(struct store *store, const struct store_selection *selection,
                                  const struct store_limits *limits, struct buffer *out)
{
    struct error error = {0};
    struct store_quality quality;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    if (store_merge(store, selection, limits, &profile, &quality, &error) < 0) {
        buffer_printf(out, "%s\n", error.text);
        return;
    }
    describe_profile(&profile, out);
    describe_quality(&quality, out);
}

struct apart_sum {
    char key[96];
    int64_t value;
};

static inline int compare_apart_sums(const void *a, const void *b)
{
    return strcmp(((const struct apart_sum *)a)->key, ((const struct apart_sum *)b)->key);
}

/* A merge that keeps steps apart, as the sum of each step and value of the label. */
static inline void describe_apart(struct store *store, const struct store_selection *selection,
                                  const struct store_apart *apart, bool raw_only,
                                  struct buffer *out)
{
    struct error error = {0};
    struct store_limits limits = {.apart = apart, .raw_only = raw_only};
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    if (store_merge(store, selection, &limits, &profile, NULL, &error) < 0) {
        buffer_printf(out, "%s\n", error.text);
        return;
    }
    const struct profile_samples *samples = &profile.samples;
    struct apart_sum *sums = memory_zalloc(samples->count + 1, sizeof(*sums));
    for (size_t i = 0; i < samples->count; i++) {
        size_t count;
        const struct profile_label *labels = profile_labels(&profile, samples->labels[i], &count);
        snprintf(sums[i].key, sizeof(sums[i].key), "%s %020llu",
                 count ? profile_text(&profile, labels[0].text) : "",
                 (unsigned long long)samples->time_ns[i]);
        sums[i].value = samples->values[0][i];
    }
    qsort(sums, samples->count, sizeof(*sums), compare_apart_sums);
    for (size_t i = 0; i < samples->count; i++) {
        int64_t value = sums[i].value;
        for (; i + 1 < samples->count && !strcmp(sums[i].key, sums[i + 1].key); i++)
            value += sums[i + 1].value;
        if (value)
            buffer_printf(out, "%s %lld\n", sums[i].key, (long long)value);
    }
    free(sums);
}

/* The same from a time series, for comparing. */
static inline int describe_apart_points(void *context, const struct labels *group,
                                        const struct store_point *points, size_t count)
{
    struct buffer *out = context;
    for (size_t i = 0; i < count; i++)
        if (points[i].value)
            buffer_printf(out, "%s %020lld %lld\n", group->count ? group->list[0].value : "",
                          (long long)points[i].time_ns, (long long)points[i].value);
    return 0;
}

static inline int describe_points(void *context, const struct labels *group,
                                  const struct store_point *points, size_t count)
{
    struct buffer *out = context;
    for (size_t i = 0; i < count; i++) {
        if (group)
            labels_write(out, group);
        else
            buffer_add_text(out, "rest");
        buffer_printf(out, " %lld %lld %llu\n", (long long)points[i].time_ns,
                      (long long)points[i].value, (unsigned long long)points[i].windows);
    }
    return 0;
}

static inline int describe_series(void *context, const struct labels *labels, const char *type,
                                  int64_t first_ns, int64_t last_ns)
{
    labels_write(context, labels);
    buffer_printf(context, " %s %lld %lld\n", type, (long long)first_ns, (long long)last_ns);
    return 0;
}

static inline int describe_text(void *context, const char *text)
{
    buffer_printf(context, "%s\n", text);
    return 0;
}

static inline int describe_exemplar(void *context, const struct labels *labels,
                                    const struct profile *profile,
                                    const struct store_exemplar *exemplar)
{
    labels_write(context, labels);
    describe_stack(profile, exemplar->node, context);
    buffer_printf(context, " %lld %lld %u %u\n", (long long)exemplar->value,
                  (long long)exemplar->time_ns, exemplar->link.trace_id[0],
                  exemplar->link.span_id[0]);
    return 0;
}

static inline int describe_window(void *context, const struct store_profile *window)
{
    labels_write(context, window->labels);
    buffer_printf(context, " %s %lld %lld", window->type, (long long)window->time_ns,
                  (long long)window->duration_ns);
    _cleanup_buffer_ struct buffer rows = {0};
    for (size_t i = 0; i < window->row_count; i++) {
        describe_stack(window->profile, window->rows[i].node, &rows);
        buffer_printf(&rows, " %lld\n", (long long)window->rows[i].value);
    }
    sort_lines(&rows);
    for (size_t i = 0; i < rows.length; i++)
        buffer_add_char(context, rows.data[i] == '\n' ? '|' : rows.data[i]);
    buffer_printf(context, " %zu\n", window->exemplar_count);
    return 0;
}
