// SPDX-License-Identifier: Apache-2.0
// Comparisons of a recording with itself: pieces of it are the sides, so that every certain change
// is a false alarm. $COMPARE_RECORDINGS has recordings with times, separated by colons, of hosts
// that were recorded at the same time; tests/long/compare-recordings.sh makes them. Without it, a
// small simulated recording shows that pieces are what they should be.

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "compare/compare.h"
#include "compare/numbers.h"
#include "format/format.h"
#include "sample_profile.h"

#define SECOND 1000000000ll
#define HOSTS_MAX 8
#define TURNS 8 /* files of a side */
#define FILES_MAX 16

static uint64_t seed = 0x9e3779b97f4a7c15;

static uint32_t draw(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 33) % below;
}

struct recording {
    struct profile profile; /* its rows are in order of time */
    struct naming naming;
};

static const struct profile_samples *sorting;

static int by_time(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (sorting->time_ns[x] != sorting->time_ns[y])
        return sorting->time_ns[x] < sorting->time_ns[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void sort_rows(struct profile *profile)
{
    struct profile_samples *samples = &profile->samples;
    size_t count = samples->count;
    uint32_t *order = memory_alloc((count + 1) * sizeof(*order));
    uint32_t *node = memory_alloc((count + 1) * sizeof(*node));
    uint32_t *labels = memory_alloc((count + 1) * sizeof(*labels));
    uint64_t *time = memory_alloc((count + 1) * sizeof(*time));
    int64_t *value = memory_alloc((count + 1) * sizeof(*value));
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    sorting = samples;
    qsort(order, count, sizeof(*order), by_time);
    for (size_t i = 0; i < count; i++) {
        node[i] = samples->node[order[i]];
        labels[i] = samples->labels[order[i]];
        time[i] = samples->time_ns[order[i]];
    }
    memcpy(samples->node, node, count * sizeof(*node));
    memcpy(samples->labels, labels, count * sizeof(*labels));
    for (unsigned type = 0; type < profile->type_count; type++) {
        for (size_t i = 0; i < count; i++)
            value[i] = samples->values[type][order[i]];
        memcpy(samples->values[type], value, count * sizeof(*value));
    }
    memcpy(samples->time_ns, time, count * sizeof(*time));
    free(order);
    free(node);
    free(labels);
    free(time);
    free(value);
}

static size_t first_from(const struct profile *profile, uint64_t time_ns)
{
    size_t low = 0, high = profile->samples.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (profile->samples.time_ns[middle] < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A part of a recording, which it lives from. */
static struct profile cut(const struct profile *whole, int64_t from_ns, int64_t length_ns)
{
    struct profile piece = *whole;
    size_t first = first_from(whole, (uint64_t)from_ns);
    size_t last = first_from(whole, (uint64_t)(from_ns + length_ns));
    piece.samples.count = last - first;
    piece.samples.node += first;
    piece.samples.labels += first;
    piece.samples.time_ns += first;
    piece.samples.link = NULL;
    for (unsigned type = 0; type < whole->type_count; type++)
        piece.samples.values[type] += first;
    piece.time_ns = from_ns;
    piece.duration_ns = length_ns;
    return piece;
}

/* Pieces that are the files of both sides. */
struct files {
    struct profile pieces[FILES_MAX];
    struct compare_source sources[FILES_MAX];
    size_t count;
};

static void add_file(struct files *files, const struct recording *recording, enum compare_side side,
                     int64_t from_ns, int64_t length_ns, const char *cluster)
{
    assert_true(files->count < FILES_MAX);
    struct profile *piece = &files->pieces[files->count];
    struct compare_source *source = &files->sources[files->count++];
    *piece = cut(&recording->profile, from_ns, length_ns);
    compare_source_init(source, piece, &recording->naming, 0);
    source->side = side;
    source->cluster = cluster;
}

/* How many changes are certain. */
static size_t judge(const struct files *files, enum compare_normalize normalize, size_t *judged)
{
    _cleanup_compare_table_ struct compare_table table = {0};
    _cleanup_comparison_ struct comparison comparison = {0};
    struct compare_options options = {.normalize = normalize, .false_discovery_rate = 0.05};
    struct error error = {0};
    assert_int_equal(compare_table_build(files->sources, files->count, &table, &error), 0);
    if (compare(&table, &options, &comparison, &error) < 0)
        fail_msg("%s", error.text);
    *judged += comparison.judged;
    return comparison.found;
}

static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                    "i", "j", "k", "l", "m", "n", "o", "p"};

/* One piece against another, of hosts that were recorded at the same time. */
static size_t compare_pieces(const struct recording *recordings, size_t hosts,
                             const int64_t *from_ns, int64_t length_ns,
                             enum compare_normalize normalize, size_t *judged)
{
    struct files files = {.count = 0};
    for (int side = 0; side < COMPARE_SIDES; side++)
        for (size_t host = 0; host < hosts; host++)
            add_file(&files, &recordings[host], (enum compare_side)side, from_ns[side], length_ns,
                     hosts > 1 ? names[host]
                     : side    ? "new"
                               : "base");
    return judge(&files, normalize, judged);
}

/* Recorded in turns, as docs/gate-tutorial.md does it: each file is one piece. */
static size_t compare_turns(const struct recording *recording, int64_t from_ns, int64_t length_ns,
                            enum compare_normalize normalize, size_t *judged)
{
    struct files files = {.count = 0};
    for (int i = 0; i < 2 * TURNS; i++)
        add_file(&files, recording, (enum compare_side)(i & 1), from_ns + i * length_ns, length_ns,
                 names[i]);
    return judge(&files, normalize, judged);
}

static void pieces_hold_their_time(void **state)
{
    (void)state;
    struct recording recording;
    int64_t start = 1700000000 * SECOND;
    profile_init(&recording.profile, PROFILE_ALL);
    unsigned type = profile_type(&recording.profile, profile_cstring(&recording.profile, "samples"),
                                 profile_cstring(&recording.profile, "count"));
    for (int i = 6000; i-- > 0;) { /* from the end, so that sorting has something to do */
        char name[16];
        snprintf(name, sizeof(name), "f%d", i % 7);
        uint32_t function = profile_function(
            &recording.profile,
            &(struct profile_function){.name = profile_cstring(&recording.profile, name)});
        uint32_t frame =
            profile_frame(&recording.profile, &(struct profile_frame){.function = function});
        size_t row =
            profile_sample(&recording.profile, profile_stack(&recording.profile, &frame, 1), 0, 0,
                           (uint64_t)(start + i * SECOND / 100));
        profile_add_value(&recording.profile, row, type, i);
    }
    naming_init(&recording.naming, &recording.profile);
    sort_rows(&recording.profile);
    struct profile piece = cut(&recording.profile, start + 10 * SECOND, 20 * SECOND);
    assert_int_equal(piece.samples.count, 2000);
    for (size_t i = 0; i < piece.samples.count; i++) {
        assert_int_equal(piece.samples.values[0][i], (int64_t)i + 1000);
        assert_int_equal(piece.samples.time_ns[i], start + ((int64_t)i + 1000) * SECOND / 100);
    }
    /* Values grow with time, so that a later piece has certainly more than an earlier one; and a
     * piece compared with itself has not. */
    size_t judged = 0;
    int64_t apart[] = {start, start + 40 * SECOND}, same[] = {start, start};
    assert_true(compare_pieces(&recording, 1, apart, 20 * SECOND, COMPARE_PER_SECOND, &judged) > 0);
    assert_int_equal(compare_pieces(&recording, 1, same, 20 * SECOND, COMPARE_PER_SECOND, &judged),
                     0);
    naming_release(&recording.naming);
    profile_release(&recording.profile);
}

static double number(const char *variable, double usual)
{
    const char *given = getenv(variable);
    return given ? atof(given) : usual;
}

static size_t read_recordings(struct recording *recordings, int64_t *ret_from_ns,
                              int64_t *ret_to_ns)
{
    char *paths = memory_strdup(getenv("COMPARE_RECORDINGS")), *rest = paths;
    size_t count = 0;
    struct error error = {0};
    *ret_from_ns = 0;
    *ret_to_ns = INT64_MAX;
    for (char *path; (path = strsep(&rest, ":")) && *path;) {
        assert_true(count < HOSTS_MAX);
        struct profile *profile = &recordings[count].profile;
        profile_init(profile, PROFILE_ALL & ~PROFILE_ADDRESSES);
        if (format_read_file(path, NULL, profile, NULL, &error) < 0)
            fail_msg("%s", error.text);
        assert_non_null(profile->samples.time_ns);
        naming_init(&recordings[count].naming, profile);
        sort_rows(profile);
        *ret_from_ns = MAX(*ret_from_ns, profile->time_ns);
        *ret_to_ns = MIN(*ret_to_ns, profile->time_ns + profile->duration_ns);
        count++;
    }
    free(paths);
    return count;
}

enum kind { TOGETHER, ALONE, IN_TURNS, ONCE, KINDS };

struct calibration {
    struct recording recordings[HOSTS_MAX];
    size_t hosts;
    int64_t from_ns, to_ns, length_ns;
    uint32_t pieces;
    uint32_t *order; /* of the pieces of ONCE, two for each comparison */
};

/* All pieces in a random order, so that no two comparisons have one in common. */
static uint32_t *shuffle(uint32_t count)
{
    uint32_t *order = memory_alloc((count + 1) * sizeof(*order));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = draw(i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    return order;
}

static size_t compare_once(const struct calibration *calibration, enum kind kind, unsigned run,
                           enum compare_normalize normalize, size_t *judged)
{
    const struct recording *one = &calibration->recordings[run % calibration->hosts];
    int64_t begin = calibration->from_ns, length = calibration->length_ns;
    if (kind == ONCE) {
        const uint32_t *pair = &calibration->order[2 * run];
        int64_t from[] = {begin + pair[0] * length, begin + pair[1] * length};
        return compare_pieces(calibration->recordings, calibration->hosts, from, length, normalize,
                              judged);
    }
    if (kind == IN_TURNS) {
        uint32_t first = draw(calibration->pieces - 2 * TURNS + 1);
        return compare_turns(one, begin + first * length, length, normalize, judged);
    }
    uint32_t a = draw(calibration->pieces), b = draw(calibration->pieces - 1);
    int64_t from[] = {begin + a * length, begin + (b + (b >= a)) * length};
    return compare_pieces(kind == TOGETHER ? calibration->recordings : one,
                          kind == TOGETHER ? calibration->hosts : 1, from, length, normalize,
                          judged);
}

/* False when more alarms were raised than a rate of 5% raises in 999 of 1,000 tests. */
static bool calibrate(const struct calibration *calibration, enum kind kind, unsigned runs,
                      enum compare_normalize normalize)
{
    static const char *const titles[] = {"all hosts, two pieces", "one host, two pieces",
                                         "one host, 8 pieces each in turns",
                                         "all hosts, two pieces of which each is used once"};
    unsigned alarms = 0;
    size_t judged = 0;
    for (unsigned run = 0; run < runs; run++)
        alarms += compare_once(calibration, kind, run, normalize, &judged) > 0;
    print_message("%s of %.2g s, by %s: %u alarms in %u comparisons (%.1f%%), %.0f values each\n",
                  titles[kind], (double)calibration->length_ns / 1e9,
                  compare_normalize_names[normalize], alarms, runs, 100.0 * alarms / runs,
                  (double)judged / runs);
    return judged > runs && numbers_binomial_upper(alarms, runs, 0.05) > 0.001;
}

/* $COMPARE_RUNS comparisons of each kind, of pieces of $COMPARE_PIECE_SECONDS, and as many of
 * pieces that are so short that each is used once. How much time a program gets depends on what
 * else the machine does at that time, so two pieces of different times compare by share, and by
 * time only in turns. $COMPARE_APART=0: not by share either, since the recordings have what the
 * kernel did for other programs. */
static void recordings_against_themselves(void **state)
{
    (void)state;
    struct calibration calibration = {.length_ns =
                                          (int64_t)(number("COMPARE_PIECE_SECONDS", 10) * SECOND)};
    bool fine = true;
    calibration.hosts =
        read_recordings(calibration.recordings, &calibration.from_ns, &calibration.to_ns);
    int64_t all_ns = calibration.to_ns - calibration.from_ns;
    calibration.pieces = (uint32_t)(all_ns / calibration.length_ns);
    unsigned runs = (unsigned)number("COMPARE_RUNS", 500);
    assert_true(calibration.hosts > 0 && calibration.pieces >= 4 * TURNS);
    int64_t length_ns = calibration.length_ns;
    calibration.length_ns = all_ns / (2 * runs);
    calibration.order = shuffle(2 * runs);
    fine &= calibrate(&calibration, ONCE, runs, COMPARE_PER_TOTAL);
    free(calibration.order);
    calibration.length_ns = length_ns;
    enum kind first = calibration.hosts > 1 ? TOGETHER : ALONE;
    for (enum kind kind = number("COMPARE_APART", 1) > 0 ? first : IN_TURNS; kind < ONCE; kind++)
        fine &= calibrate(&calibration, kind, runs, COMPARE_PER_TOTAL);
    fine &= calibrate(&calibration, IN_TURNS, runs, COMPARE_PER_SECOND);
    for (size_t i = 0; i < calibration.hosts; i++) {
        naming_release(&calibration.recordings[i].naming);
        profile_release(&calibration.recordings[i].profile);
    }
    assert_true(fine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_hold_their_time),
        cmocka_unit_test(recordings_against_themselves),
    };
    size_t count = getenv("COMPARE_RECORDINGS") ? ARRAY_LENGTH(tests) : 1;
    return _cmocka_run_group_tests("recordings", tests, count, NULL, NULL);
}
