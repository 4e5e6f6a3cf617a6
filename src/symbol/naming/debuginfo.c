// SPDX-License-Identifier: Apache-2.0
// Reads the debug information of files in a child, and keeps the results: see debuginfo.h.

#include "symbol/naming/debuginfo.h"

#include "base/clock.h"
#include "symbol/index/build.h"

void debug_info_release(struct debug_info *info)
{
    for (size_t i = 0; i < info->answer_count; i++) {
        symbol_index_close(&info->answers[i].index);
        buffer_release(&info->answers[i].bytes);
    }
    free(info->wanted);
    free(info->answers);
    free(info->asked);
    id_table_release(&info->asked_index);
}

void debug_info_want(struct debug_info *info, uint64_t address)
{
    if (info->over || info->wanted_count == DEBUG_INFO_WANTED_MAX)
        return;
    array_reserve(info->wanted, info->wanted_capacity, info->wanted_count + 1);
    info->wanted[info->wanted_count++] = address;
}

static const struct debug_asked *find_asked(const struct debug_info *info, uint64_t address)
{
    struct id_probe probe = id_probe_start(hash_word(address));
    uint32_t id;
    while ((id = id_table_next(&info->asked_index, &probe)) != ID_NONE)
        if (info->asked[id].address == address)
            return &info->asked[id];
    return NULL;
}

static int compare_addresses(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* The addresses to look up: each once, without earlier ones. */
static void order_wanted(struct debug_info *info)
{
    size_t kept = 0;
    if (info->wanted_count)
        qsort(info->wanted, info->wanted_count, sizeof(*info->wanted), compare_addresses);
    for (size_t i = 0; i < info->wanted_count; i++)
        if ((!kept || info->wanted[i] != info->wanted[kept - 1]) &&
            !find_asked(info, info->wanted[i]))
            info->wanted[kept++] = info->wanted[i];
    info->wanted_count = kept;
}

/* ---- jobs ---- */

struct reading {
    struct debug_info *const *infos;
    size_t count, next, finished;
    int64_t deadline_ms;
    debug_info_watch_fn *watch;
    void *watch_context;
    struct debug_info_stats *stats;
};

static bool goes_on(void *context)
{
    const struct reading *reading = context;
    return !reading->watch ||
           reading->watch(reading->watch_context, reading->finished, reading->count);
}

/* False without debug information: not a failure, unless the file claims to have some. */
static bool ask(struct debug_info *info, struct confined_job *job, struct debug_info_stats *stats)
{
    struct symbol_index_found found;
    bool is_asked = false;
    if (symbol_index_find(info->path, NULL, &found, NULL) == 0 && found.has_debug_info &&
        (!info->build_id[0] || !strcmp(found.build_id, info->build_id))) {
        is_asked = symbol_names_ask(&found.input, info->wanted, info->wanted_count, job, NULL) == 0;
        stats->failed += !is_asked;
    }
    symbol_index_close_input(&found.input);
    return is_asked;
}

static bool next_job(void *context, struct confined_job *job)
{
    struct reading *reading = context;
    while (reading->next < reading->count) {
        struct debug_info *info = reading->infos[reading->next++];
        order_wanted(info);
        if (info->over || !info->wanted_count) {
            reading->finished++;
            continue;
        }
        bool late = monotonic_ns() / 1000000 >= reading->deadline_ms || !goes_on(reading);
        reading->stats->failed += late;
        reading->stats->late += late;
        job->context = info;
        if (!late && ask(info, job, reading->stats))
            return true;
        info->over = true;
        reading->finished++;
    }
    return false;
}

static uint64_t keep_answer(struct debug_info *info, const struct debug_answer *answer)
{
    array_reserve(info->answers, info->answer_capacity, info->answer_count + 1);
    info->answers[info->answer_count++] = *answer;
    array_reserve(info->asked, info->asked_capacity, info->asked_count + info->wanted_count);
    for (size_t i = 0; i < info->wanted_count; i++) {
        id_table_insert(&info->asked_index, hash_word(info->wanted[i]),
                        (uint32_t)info->asked_count);
        info->asked[info->asked_count++] =
            (struct debug_asked){info->wanted[i], (uint32_t)info->answer_count - 1};
    }
    return answer->bytes.capacity + sizeof(*answer) + info->wanted_count * 2 * sizeof(*info->asked);
}

static void take_answer(void *context, struct confined_job *job)
{
    struct reading *reading = context;
    struct debug_info *info = job->context;
    struct debug_answer answer = {0};
    if (symbol_names_take(job, &answer.bytes, &answer.index, NULL) == 0) {
        reading->stats->files++;
        reading->stats->bytes += keep_answer(info, &answer);
    } else {
        reading->stats->failed++;
        reading->stats->late += job->end == CONFINED_LATE;
        info->over = true;
    }
    info->wanted_count = 0;
    reading->finished++;
}

void debug_info_read(struct debug_info *const infos[], size_t count, debug_info_watch_fn *watch,
                     void *watch_context, struct debug_info_stats *stats)
{
    struct reading reading = {.infos = infos,
                              .count = count,
                              .deadline_ms = monotonic_ns() / 1000000 + DEBUG_INFO_TOTAL_MS,
                              .watch = watch,
                              .watch_context = watch_context,
                              .stats = stats};
    confined_run(&(struct confined_jobs){next_job, take_answer, &reading, goes_on});
}

size_t debug_info_frames(const struct debug_info *info, uint64_t address,
                         struct symbol_frame ret_frames[SYMBOL_FRAMES_MAX])
{
    const struct debug_asked *asked = find_asked(info, address);
    return asked ? symbol_index_look_up(&info->answers[asked->answer].index, address, ret_frames,
                                        SYMBOL_FRAMES_MAX, NULL)
                 : 0;
}
