// SPDX-License-Identifier: Apache-2.0
// Durations of requests, counted in steps that grow with them: see requests.h.

#include <stdlib.h>

#include "base/memory.h"
#include "server/requests/requests.h"

#define STEP_BITS 5

void histogram_release(struct histogram *histogram)
{
    for (size_t i = 0; i < HISTOGRAM_OCTAVES; i++)
        free(histogram->octaves[i]);
    *histogram = (struct histogram){0};
}

/* Durations below HISTOGRAM_STEPS are steps of their own. */
static void place(uint64_t duration, unsigned *octave, unsigned *step)
{
    if (duration < HISTOGRAM_STEPS) {
        *octave = 0;
        *step = (unsigned)duration;
        return;
    }
    unsigned bits = 63 - (unsigned)__builtin_clzll(duration);
    *octave = bits - STEP_BITS + 1;
    *step = (unsigned)(duration >> (bits - STEP_BITS)) & (HISTOGRAM_STEPS - 1);
}

static int64_t edge(unsigned octave, unsigned step)
{
    if (!octave)
        return step;
    return (int64_t)((uint64_t)(HISTOGRAM_STEPS + step) << (octave - 1));
}

int64_t histogram_edge(int64_t duration_ns)
{
    unsigned octave, step;
    place((uint64_t)MAX(duration_ns, 0), &octave, &step);
    return edge(octave, step);
}

static int64_t next_edge(unsigned octave, unsigned step)
{
    return step + 1 < HISTOGRAM_STEPS ? edge(octave, step + 1)
           : octave + 1 < 59          ? edge(octave + 1, 0)
                                      : INT64_MAX;
}

void histogram_add(struct histogram *histogram, int64_t duration_ns, bool error)
{
    unsigned octave, step;
    place((uint64_t)MAX(duration_ns, 0), &octave, &step);
    if (!histogram->octaves[octave])
        histogram->octaves[octave] = memory_zalloc(1, sizeof(**histogram->octaves));
    histogram->octaves[octave]->count[step]++;
    histogram->octaves[octave]->errors[step] += error;
    histogram->count++;
    histogram->errors += error;
    if (__builtin_add_overflow(histogram->sum_ns, duration_ns, &histogram->sum_ns))
        histogram->sum_ns = INT64_MAX;
    histogram->max_ns = MAX(histogram->max_ns, duration_ns);
}

int64_t histogram_percentile(const struct histogram *histogram, double percent)
{
    double wanted = (double)histogram->count * percent / 100, before = 0;
    for (unsigned octave = 0; octave < HISTOGRAM_OCTAVES; octave++)
        for (unsigned step = 0; histogram->octaves[octave] && step < HISTOGRAM_STEPS; step++) {
            double count = (double)histogram->octaves[octave]->count[step];
            if (!count || before + count < wanted) {
                before += count;
                continue;
            }
            double from = (double)edge(octave, step), to = (double)next_edge(octave, step);
            int64_t duration = (int64_t)(from + (to - from) * (wanted - before) / count);
            return MIN(duration, histogram->max_ns);
        }
    return histogram->max_ns;
}

void histogram_write(const struct histogram *histogram, struct json_writer *json)
{
    json_write_array(json);
    for (unsigned octave = 0; octave < HISTOGRAM_OCTAVES; octave++)
        for (unsigned step = 0; histogram->octaves[octave] && step < HISTOGRAM_STEPS; step++) {
            const struct histogram_octave *counts = histogram->octaves[octave];
            if (!counts->count[step])
                continue;
            json_write_object(json);
            json_member_signed(json, "from", edge(octave, step));
            json_member_signed(json, "to", next_edge(octave, step));
            json_member_unsigned(json, "count", counts->count[step]);
            json_member_unsigned(json, "errors", counts->errors[step]);
            json_write_object_end(json);
        }
    json_write_array_end(json);
}

void requests_band_settle(struct requests_band *band, const struct histogram *histogram)
{
    /* Edges, so that the bars of a histogram are in the band or not. */
    if (band->above > 0)
        band->from_ns =
            MAX(band->from_ns, histogram_edge(histogram_percentile(histogram, band->above)));
    if (band->below > 0 && band->below < 100)
        band->to_ns =
            MIN(band->to_ns, histogram_edge(histogram_percentile(histogram, band->below)));
    band->above = band->below = 0;
}

bool requests_band_has(const struct requests_band *band, int64_t duration_ns, bool error)
{
    return duration_ns >= band->from_ns && duration_ns < band->to_ns && (!band->errors || error);
}
