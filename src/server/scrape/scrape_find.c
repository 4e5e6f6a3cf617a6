// SPDX-License-Identifier: Apache-2.0
// Keeps the loops as the jobs and files of targets have it.

#include <errno.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/log.h"
#include "base/memory.h"
#include "server/scrape/scrape_parts.h"

#define LOOK_NS 5000000000ll /* at files, at least so often */
#define WAIT_NS 200000000ll

/* The thread's own state. */
struct finder {
    struct scraper *scraper;
    struct scrape_jobs *jobs;
    struct discovery *discoveries; /* one per job */
    struct scrape_loop **found;
    size_t count, capacity;
    uint64_t over_limit;
    bool complained;
};

static void run_free(struct scrape_run *run)
{
    http_reply_release(&run->reply);
    scrape_jobs_unref(run->jobs);
    free(run);
}

void scrape_loop_free(struct scrape_loop *loop)
{
    if (loop->run)
        run_free(loop->run);
    labels_release(&loop->labels);
    scrape_jobs_unref(loop->jobs);
    free(loop->url);
    free(loop->error);
    free(loop);
}

/* ---- what there should be ---- */

static uint64_t add_text(uint64_t hash, const char *text)
{
    return XXH3_64bits_withSeed(text, strlen(text), hash);
}

static void add_loop(struct finder *finder, const struct scrape_job *job,
                     const struct scrape_profile *profile, const struct discovered *target)
{
    if (finder->count == SCRAPE_LOOPS_MAX) {
        finder->over_limit++;
        return;
    }
    struct scrape_loop *loop = memory_zalloc(1, sizeof(*loop));
    struct buffer url = {0};
    buffer_printf(&url, "%s%s", target->base, profile->path);
    if (*target->query)
        buffer_printf(&url, "%s%s", strchr(profile->path, '?') ? "&" : "?", target->query);
    buffer_text(&url);
    loop->url = url.data;
    labels_copy(&loop->labels, &target->labels);
    loop->key = add_text(add_text(labels_hash(&loop->labels), loop->url), profile->name);
    loop->key = add_text(add_text(loop->key, job->name), job->tenant);
    loop->jobs = scrape_jobs_ref(finder->jobs);
    loop->job = job;
    loop->profile = profile;
    array_reserve(finder->found, finder->capacity, finder->count + 1);
    finder->found[finder->count++] = loop;
}

static void add_groups(struct finder *finder, const struct scrape_job *job,
                       const struct target_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        for (size_t k = 0; k < groups->list[i].count; k++) {
            struct discovered target;
            struct error error = {0};
            int r = discovery_target(job, &groups->list[i], groups->list[i].addresses[k], &target,
                                     &error);
            if (r < 0)
                log_error("%s", error.text);
            for (size_t p = 0; r > 0 && p < job->profile_count; p++)
                add_loop(finder, job, &job->profiles[p], &target);
            if (r > 0)
                discovered_release(&target);
        }
}

static int by_key(const void *a, const void *b)
{
    const struct scrape_loop *x = *(struct scrape_loop *const *)a,
                             *y = *(struct scrape_loop *const *)b;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* ---- and what there is ---- */

/* A loop that is there already goes on, by the newer settings. */
static void renew(struct scrape_loop *loop, struct scrape_loop *found, int64_t now_ns)
{
    scrape_jobs_unref(loop->jobs);
    loop->jobs = scrape_jobs_ref(found->jobs);
    if (loop->job->interval_ns != found->job->interval_ns)
        loop->due_ns = scrape_slot_ns(loop->key, found->job->interval_ns, now_ns);
    loop->job = found->job;
    loop->profile = found->profile;
    loop->gone = false;
}

static void sync(struct finder *finder)
{
    struct scraper *scraper = finder->scraper;
    struct scrape_loop **merged = NULL;
    size_t count = 0, capacity = 0, old = 0;
    if (finder->count)
        qsort(finder->found, finder->count, sizeof(*finder->found), by_key);
    pthread_mutex_lock(&scraper->lock);
    int64_t now = monotonic_ns();
    array_reserve(merged, capacity, scraper->count + finder->count + 1);
    for (size_t i = 0; i < finder->count; i++) {
        struct scrape_loop *found = finder->found[i];
        for (; old < scraper->count && scraper->loops[old]->key < found->key; old++) {
            scraper->loops[old]->gone = true;
            merged[count++] = scraper->loops[old];
        }
        if (old < scraper->count && scraper->loops[old]->key == found->key) {
            renew(scraper->loops[old], found, now);
            merged[count++] = scraper->loops[old++];
            scrape_loop_free(found);
        } else if (count && merged[count - 1]->key == found->key) {
            scrape_loop_free(found); /* two files have it */
        } else {
            found->due_ns = now;
            merged[count++] = found;
        }
    }
    for (; old < scraper->count; old++) {
        scraper->loops[old]->gone = true;
        merged[count++] = scraper->loops[old];
    }
    free(scraper->loops);
    scraper->loops = merged;
    scraper->count = count;
    scraper->capacity = capacity;
    scraper->over_limit = finder->over_limit;
    pthread_mutex_unlock(&scraper->lock);
    finder->count = 0;
    http_multi_wake(scraper->multi);
}

static void find_all(struct finder *finder)
{
    finder->over_limit = 0;
    for (size_t i = 0; i < finder->jobs->count; i++) {
        const struct scrape_job *job = &finder->jobs->list[i];
        const struct discovery *files = &finder->discoveries[i];
        add_groups(finder, job, &job->groups);
        for (size_t k = 0; k < files->count; k++)
            add_groups(finder, job, &files->files[k].groups);
    }
    if (finder->over_limit && !finder->complained)
        log_error("More than %d profiles to scrape; ignoring the others.", SCRAPE_LOOPS_MAX);
    finder->complained = finder->over_limit;
    sync(finder);
}

/* ---- files and reloads ---- */

/* Jobs that remain keep the targets that their files had before the reload. */
static void take_jobs(struct finder *finder, struct scrape_jobs *jobs)
{
    struct discovery *discoveries = memory_zalloc(MAX(jobs->count, 1u), sizeof(*discoveries));
    size_t old_count = finder->jobs ? finder->jobs->count : 0;
    for (size_t i = 0; i < jobs->count; i++) {
        for (size_t k = 0; k < old_count; k++)
            if (finder->discoveries[k].job &&
                !strcmp(finder->discoveries[k].job, jobs->list[i].name)) {
                discoveries[i] = finder->discoveries[k];
                finder->discoveries[k] = (struct discovery){0};
            }
        if (!discoveries[i].job)
            discoveries[i].job = memory_strdup(jobs->list[i].name);
        discoveries[i].next_ns = 0;
    }
    for (size_t k = 0; k < old_count; k++)
        discovery_release(&finder->discoveries[k]);
    free(finder->discoveries);
    scrape_jobs_unref(finder->jobs);
    finder->jobs = jobs;
    finder->discoveries = discoveries;
}

static bool look_at_files(struct finder *finder)
{
    bool changed = false;
    unsigned broken = 0;
    for (size_t i = 0; finder->jobs && i < finder->jobs->count; i++) {
        const struct scrape_job *job = &finder->jobs->list[i];
        struct discovery *files = &finder->discoveries[i];
        int64_t now = monotonic_ns();
        if (now >= files->next_ns) {
            changed |= discovery_look(files, job);
            files->next_ns = now + MIN(job->refresh_ns, LOOK_NS);
        }
        for (size_t k = 0; k < files->count; k++)
            broken += files->files[k].broken;
    }
    pthread_mutex_lock(&finder->scraper->lock);
    finder->scraper->broken_files = broken;
    pthread_mutex_unlock(&finder->scraper->lock);
    return changed;
}

/* Waits for other jobs; NULL: the jobs are the same, but files may have changed. */
static struct scrape_jobs *wait_for_jobs(struct scraper *scraper)
{
    struct scrape_jobs *jobs = NULL;
    pthread_mutex_lock(&scraper->lock);
    if (!scraper->reloaded && !atomic_load(&scraper->stopping))
        condition_wait_for(&scraper->wanted, &scraper->lock, WAIT_NS);
    if (scraper->reloaded)
        jobs = scrape_jobs_ref(scraper->jobs);
    scraper->reloaded = false;
    pthread_mutex_unlock(&scraper->lock);
    return jobs;
}

void *scrape_find(void *userdata)
{
    struct finder finder = {.scraper = userdata};
    while (!atomic_load(&finder.scraper->stopping)) {
        struct scrape_jobs *jobs = wait_for_jobs(finder.scraper);
        if (jobs)
            take_jobs(&finder, jobs);
        if (look_at_files(&finder) || jobs)
            find_all(&finder);
    }
    for (size_t i = 0; finder.jobs && i < finder.jobs->count; i++)
        discovery_release(&finder.discoveries[i]);
    free(finder.discoveries);
    free(finder.found);
    scrape_jobs_unref(finder.jobs);
    return NULL;
}
