// SPDX-License-Identifier: Apache-2.0
// The CPU profiles of gperftools (libprofiler): machine words of either size and byte order, then
// the process's memory map as text. Java agents write the same with a table of methods instead.

#include "format/gperftools/gperftools.h"

#include <string.h>

#include "base/memory.h"
#include "format/format.h"

#define HEADER_WORDS 5

/* Profilers stop at a few hundred frames; a count beyond this is no count. */
#define DEPTH_MAX 65536

/* How often a return address may differ in the guess that the profiler's own frames are there. */
#define SIMILAR_SAMPLES 32

struct words {
    unsigned width; /* in bytes: 4 or 8 */
    bool big_endian;
};

static uint64_t word_at(const struct words *words, const uint8_t *bytes, size_t index)
{
    uint64_t value = 0;
    bytes += index * words->width;
    for (unsigned i = 0; i < words->width; i++)
        value = value << 8 | bytes[words->big_endian ? i : words->width - 1 - i];
    return value;
}

/* 0, 3, 0 (or 1 for Java), the period, 0. */
static bool find_words(const uint8_t *bytes, size_t length, struct words *ret_words)
{
    static const struct words variants[] = {{4, false}, {4, true}, {8, false}, {8, true}};
    for (size_t i = 0; i < ARRAY_LENGTH(variants); i++) {
        const struct words *words = &variants[i];
        if (length >= HEADER_WORDS * words->width && word_at(words, bytes, 0) == 0 &&
            word_at(words, bytes, 1) == 3 && word_at(words, bytes, 2) <= 1 &&
            word_at(words, bytes, 3) > 0 && word_at(words, bytes, 4) == 0) {
            *ret_words = *words;
            return true;
        }
    }
    return false;
}

static int cut_off(const struct source *source, struct error *error)
{
    return error_set(error, -EBADMSG,
                     "The profile ends within the sample at offset %llu: it is truncated; record "
                     "or fetch it again.",
                     (unsigned long long)source_offset(source));
}

enum staged_type { STAGED_SAMPLES, STAGED_TIME, STAGED_RECORDS, STAGED_TYPES };

/* One sample: 1, 0 at the trailer or the end, or an error. */
static int read_sample(struct gperftools *reader, struct source *source, const struct words *words,
                       int64_t period_ns, struct error *error)
{
    int r = source_need(source, 2 * words->width, error);
    if (r < 0)
        return r;
    if (!source_available(source))
        return 0; /* without the trailer: the process ended before it was written */
    if (source_available(source) < 2 * words->width)
        return cut_off(source, error);
    uint64_t count = word_at(words, source_data(source), 0);
    uint64_t depth = word_at(words, source_data(source), 1);
    if (depth > DEPTH_MAX)
        return error_set(error, -EBADMSG,
                         "The sample at offset %llu has %llu frames, which is invalid.",
                         (unsigned long long)source_offset(source), (unsigned long long)depth);
    size_t size = (2 + (size_t)depth) * words->width;
    r = source_need(source, size, error);
    if (r < 0)
        return r;
    if (source_available(source) < size)
        return cut_off(source, error);
    const uint8_t *bytes = source_data(source);
    source_skip(source, size);
    if (count == 0 && depth == 1 && word_at(words, bytes, 2) == 0)
        return 0;
    /* All but the innermost are return addresses: the call is before them. */
    for (uint64_t i = 0; i < depth; i++)
        gperftools_add_address(reader, word_at(words, bytes, 2 + i) - (i && !reader->java));
    struct profile *staged = &reader->staged;
    size_t row = profile_sample(staged, gperftools_take_stack(reader), 0, 0, 0);
    int64_t samples = count > INT64_MAX ? INT64_MAX : (int64_t)count, time;
    if (__builtin_mul_overflow(samples, period_ns, &time))
        time = INT64_MAX;
    profile_add_value(staged, row, STAGED_SAMPLES, samples);
    profile_add_value(staged, row, STAGED_TIME, time);
    profile_add_value(staged, row, STAGED_RECORDS, 1);
    return 1;
}

static void drop_second_frame(struct profile *staged, size_t row)
{
    struct profile_node leaf = staged->nodes[staged->samples.node[row]];
    uint32_t outer = staged->nodes[leaf.parent].parent;
    staged->samples.node[row] = profile_child(staged, outer, leaf.frame);
}

/* When nearly all samples have the same caller of the innermost frame, that caller is the signal
 * handler's frame. Counts records, not samples, as pprof does. */
static void drop_handler_frame(struct profile *staged)
{
    const struct profile_samples *rows = &staged->samples;
    _cleanup_free_ int64_t *records_of = memory_zalloc(staged->frame_count, sizeof(int64_t));
    int64_t records = 0;
    for (size_t i = 0; i < rows->count; i++) {
        uint32_t caller = staged->nodes[rows->node[i]].parent;
        records += rows->values[STAGED_RECORDS][i];
        if (caller)
            records_of[staged->nodes[caller].frame] += rows->values[STAGED_RECORDS][i];
    }
    for (uint32_t frame = 1; frame < staged->frame_count; frame++) {
        if (!records_of[frame] || records_of[frame] < records - records / SIMILAR_SAMPLES)
            continue;
        for (size_t i = 0; i < rows->count; i++) {
            uint32_t caller = staged->nodes[rows->node[i]].parent;
            if (caller && staged->nodes[caller].frame == frame)
                drop_second_frame(staged, i);
        }
        return;
    }
}

/* The innermost address may be there twice, from the signal's context and from the stack. */
static void drop_repeated_leaf(struct profile *staged)
{
    const struct profile_samples *rows = &staged->samples;
    for (size_t i = 0; i < rows->count; i++) {
        struct profile_node leaf = staged->nodes[rows->node[i]];
        if (leaf.parent && staged->frames[leaf.frame].address ==
                               staged->frames[staged->nodes[leaf.parent].frame].address + 1)
            drop_second_frame(staged, i);
    }
}

static int read_locations(struct gperftools *reader, struct source *source, struct error *error)
{
    const char *line;
    size_t length;
    int r;
    while ((r = source_line(source, &line, &length, error)) > 0)
        gperftools_java_location(reader, line, length);
    return r;
}

static int finish(struct gperftools *reader, int64_t period_ns, struct error *error)
{
    struct profile *profile = reader->profile;
    uint32_t cpu = profile_cstring(profile, "cpu");
    uint32_t nanoseconds = profile_cstring(profile, "nanoseconds");
    unsigned types[] = {
        profile_type(profile, profile_cstring(profile, "samples"),
                     profile_cstring(profile, "count")),
        profile_type(profile, cpu, nanoseconds),
    };
    if (types[0] == PROFILE_TYPES_MAX || types[1] == PROFILE_TYPES_MAX)
        return error_set(error, -E2BIG, "Together the files have more than %d sample types.",
                         PROFILE_TYPES_MAX);
    profile_note_period(profile, cpu, nanoseconds, period_ns);
    gperftools_finish(reader, 0, types, ARRAY_LENGTH(types));
    return 0;
}

static int cpu_read(struct source *source, struct profile *profile, struct error *error)
{
    struct words words;
    int r = source_need(source, HEADER_WORDS * 8, error);
    if (r < 0)
        return r;
    if (!find_words(source_data(source), source_available(source), &words))
        return error_set(error, -EBADMSG, "Not a gperftools CPU profile.");
    _cleanup_gperftools_ struct gperftools reader;
    gperftools_init(&reader, profile, STAGED_TYPES);
    reader.java = word_at(&words, source_data(source), 2) == 1;
    uint64_t period_us = word_at(&words, source_data(source), 3);
    if (period_us > INT64_MAX / 1000)
        return error_set(error, -EBADMSG, "Invalid sampling period of %llu us at offset %u.",
                         (unsigned long long)period_us, 3 * words.width);
    int64_t period_ns = (int64_t)period_us * 1000;
    source_skip(source, HEADER_WORDS * words.width);

    size_t count = 0;
    while ((r = read_sample(&reader, source, &words, period_ns, error)) > 0)
        if (++count % 4096 == 0 && (r = gperftools_check_full(&reader, error)) < 0)
            return r;
    if (r < 0)
        return r;
    if (reader.java) {
        r = read_locations(&reader, source, error);
    } else {
        drop_handler_frame(&reader.staged);
        drop_handler_frame(&reader.staged);
        drop_repeated_leaf(&reader.staged);
        r = gperftools_read_maps(&reader, source, error);
    }
    return r < 0 ? r : finish(&reader, period_ns, error);
}

static int cpu_detect(const uint8_t *bytes, size_t length)
{
    struct words words;
    return find_words(bytes, length, &words) ? 3 : 0;
}

const struct format format_gperftools_cpu = {
    .name = "gperftools-cpu",
    .summary = "gperftools CPU profile (libprofiler)",
    .extensions = "",
    .detect = cpu_detect,
    .read = cpu_read,
};
