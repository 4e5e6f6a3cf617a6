// SPDX-License-Identifier: Apache-2.0
// From a target's answer to the store, by the same way as what is sent to us.

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "format/format.h"
#include "server/admission/admission.h"
#include "server/scrape/scrape_parts.h"

#define BATCH_RUNS 64 /* stored in one commit */
#define BATCH_BYTES (2u << 20)
#define EXPANSION 12 /* bytes in memory for each of an answer, most of the time */
#define RUN_BYTES (128u << 10)
#define MEMORY_WAIT_MS 5000

enum scrape_failure scrape_failure_of(int code)
{
    switch (code) {
    case -ECONNREFUSED:
    case -EHOSTUNREACH:
        return FAILED_CONNECT;
    case -ETIME:
        return FAILED_TIMEOUT;
    case -EPERM:
        return FAILED_TLS;
    case -E2BIG:
    case -ENOBUFS:
        return FAILED_TOO_LARGE;
    default:
        return FAILED_OTHER;
    }
}

/* ---- one answer ---- */

static int refuse(struct scrape_run *run, enum scrape_failure failure, int code,
                  const char *sentence)
{
    run->failure = failure;
    return error_set(&run->error, code, "%s", sentence);
}

static int check_reply(struct scrape_run *run)
{
    struct http_call call = {.url = run->loop->url};
    if (run->reply.status < 200 || run->reply.status > 299) {
        run->failure = FAILED_STATUS;
        return http_reply_error(&call, &run->reply, &run->error);
    }
    if (!run->reply.body.length)
        return refuse(run, FAILED_CONTENT, -EBADMSG, "The answer is empty.");
    if (!strncasecmp(run->reply.content_type, "text/html", 9))
        return refuse(run, FAILED_CONTENT, -EBADMSG, "The answer is a page, not a profile.");
    return 0;
}

static int add_profile(struct scraper *scraper, struct scrape_run *run, struct ingest_batch *batch)
{
    _cleanup_profile_ struct profile profile;
    const struct format *format;
    struct read_options options = {
        .format = &format_pprof, .expansion_limit = ingest_limits(scraper->ingest).expansion_bytes};
    size_t noted = admission_noted();
    profile_init(&profile, INGEST_DETAIL);
    int r = format_read_memory("The answer", run->reply.body.data, run->reply.body.length, &options,
                               &profile, &format, &run->error);
    r = admission_explain(r, &run->error);
    admission_kept(noted, r < 0 ? 0 : profile_memory(&profile));
    if (r < 0)
        return r;
    struct ingest_source source = {.labels = &run->loop->labels,
                                   .name = run->profile->name,
                                   .factor = 1,
                                   .observer = "scrape",
                                   .received_ns = run->received_ns,
                                   .known_cumulative = run->profile->cumulative};
    /* A profile that was taken for this request ended when it was sent. */
    if (profile.time_ns > 0 && profile.duration_ns >= 0)
        source.sent_ns = add_saturated(profile.time_ns, profile.duration_ns);
    batch->seen = &run->seen;
    return ingest_batch_add(batch, &source, &profile, &run->error);
}

static void take_one(struct scraper *scraper, struct scrape_run *run, struct ingest_batch *batch)
{
    run->seen = (struct sender){.last_ns = run->received_ns, .pushes = 1, .agent = "scrape"};
    snprintf(run->seen.tenant, sizeof(run->seen.tenant), "%s", run->job->tenant);
    snprintf(run->seen.name, sizeof(run->seen.name), "scrape:%s", run->job->name);
    run->failure = FAILED_CONTENT;
    run->result = check_reply(run);
    if (run->result < 0)
        return;
    run->result = add_profile(scraper, run, batch);
    if (run->result < 0)
        run->seen.refused[ingest_refusal_of(run->result)]++;
}

/* ---- many ---- */

/* One profile that the store doesn't take mustn't cost the others. */
static bool blames_one(int code)
{
    return code == -E2BIG || code == -EINVAL || code == -ERANGE || code == -EBADMSG;
}

static void take_list(struct scraper *scraper, struct scrape_run **runs, size_t count)
{
    _cleanup_ingest_batch_ struct ingest_batch batch = {
        .ingest = scraper->ingest, .tenant = runs[0]->job->tenant, .seen = &runs[0]->seen};
    struct error error = {0};
    for (size_t i = 0; i < count; i++)
        if (runs[i]->result >= 0)
            take_one(scraper, runs[i], &batch);
    int r = batch.parts ? ingest_batch_write(&batch, NULL, &error) : 0;
    if (r < 0 && count > 1 && blames_one(r)) {
        ingest_batch_release(&batch);
        for (size_t i = 0; i < count; i++)
            if (runs[i]->result >= 0)
                take_list(scraper, &runs[i], 1);
            else if (runs[i]->seen.pushes)
                senders_add(scraper->ingest->senders, &runs[i]->seen);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct scrape_run *run = runs[i];
        if (r < 0 && run->result >= 0) {
            run->result = r;
            run->error = error;
            run->failure = blames_one(r) ? FAILED_CONTENT : FAILED_STORE;
            run->seen.refused[ingest_refusal_of(r)]++;
            run->seen.windows = run->seen.rows = run->seen.exemplars = 0;
        }
        if (run->seen.pushes)
            senders_add(scraper->ingest->senders, &run->seen);
    }
}

/* As for pushes: what runs at once stays within the memory limit. */
static void take_within_memory(struct scraper *scraper, struct scrape_run **runs, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += RUN_BYTES + EXPANSION * runs[i]->reply.body.length;
    bytes = MIN(bytes, scraper->memory->limit_bytes / 2);
    struct admission admission;
    if (admission_begin(&admission, scraper->memory, bytes, MEMORY_WAIT_MS, &scraper->stopping)) {
        take_list(scraper, runs, count);
        admission_end(&admission);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (runs[i]->result >= 0)
            runs[i]->result = refuse(runs[i], FAILED_STORE, -EAGAIN,
                                     "Pushes and queries have used up the server's memory limit.");
}

void scrape_finish(struct scraper *scraper, struct scrape_run *run)
{
    struct scrape_loop *loop = run->loop;
    loop->run = NULL;
    loop->scrapes++;
    scraper->scrapes++;
    scraper->bytes += run->reply.body.length;
    scraper->busy_ns += run->ended_ns - run->started_ns;
    loop->last_ns = run->received_ns;
    loop->duration_ns = run->ended_ns - run->started_ns;
    free(loop->error);
    loop->error = NULL;
    loop->health = run->result < 0 ? SCRAPE_DOWN : SCRAPE_UP;
    if (run->result < 0) {
        loop->failures++;
        scraper->failed[run->failure]++;
        loop->error = memory_strdup(run->error.text);
    }
    atomic_fetch_add(&scraper->budget, run->reply.body.length);
    http_reply_release(&run->reply);
    scrape_jobs_unref(run->jobs);
    free(run);
}

/* The lock is held. Those of one tenant that wait together. */
static size_t take_from_queue(struct scraper *scraper, struct scrape_run **runs)
{
    size_t count = 0, bytes = 0;
    while (scraper->queue && count < BATCH_RUNS) {
        struct scrape_run *run = scraper->queue;
        if (count && (strcmp(run->job->tenant, runs[0]->job->tenant) ||
                      bytes + run->reply.body.length > BATCH_BYTES))
            break;
        scraper->queue = run->next;
        if (!scraper->queue)
            scraper->queue_end = &scraper->queue;
        bytes += run->reply.body.length;
        runs[count++] = run;
    }
    return count;
}

void *scrape_take(void *userdata)
{
    struct scraper *scraper = userdata;
    struct scrape_run *runs[BATCH_RUNS];
    pthread_mutex_lock(&scraper->lock);
    while (!atomic_load(&scraper->stopping)) {
        size_t count = take_from_queue(scraper, runs);
        if (!count) {
            pthread_cond_wait(&scraper->queued, &scraper->lock);
            continue;
        }
        pthread_mutex_unlock(&scraper->lock);
        take_within_memory(scraper, runs, count);
        pthread_mutex_lock(&scraper->lock);
        for (size_t i = 0; i < count; i++)
            scrape_finish(scraper, runs[i]);
    }
    pthread_mutex_unlock(&scraper->lock);
    return NULL;
}
