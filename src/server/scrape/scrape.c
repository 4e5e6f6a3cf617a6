// SPDX-License-Identifier: Apache-2.0
// Asks each target when its time has come: see scrape.h.

#include "server/scrape/scrape.h"

#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "server/scrape/scrape_parts.h"

#define ROUND_MS 20 /* what is due within so much is asked together */
#define LONGEST_WAIT_MS 500
#define STARTS_PER_ROUND 50 /* each may need a thread for its name, for a moment */
#define SECRET_BYTES_MAX 65536
#define REDIRECTS 5
#define CONNECTIONS_KEPT 512

int64_t scrape_slot_ns(uint64_t hash, int64_t interval_ns, int64_t from_ns)
{
    int64_t offset = (int64_t)(hash % (uint64_t)interval_ns);
    int64_t phase = (from_ns - offset) % interval_ns;
    if (phase < 0)
        phase += interval_ns;
    return phase ? from_ns + interval_ns - phase : from_ns;
}

/* Never while the last answer can't be there yet, nor twice in a hurry because the loop is new. */
static int64_t next_due(const struct scrape_loop *loop, int64_t started_ns)
{
    int64_t pause = MAX(loop->job->interval_ns / 2, loop->profile->seconds * 1000000000ll);
    return scrape_slot_ns(loop->key, loop->job->interval_ns, started_ns + pause);
}

/* ---- one request ---- */

static int read_secret(const char *path, struct buffer *ret, struct error *error)
{
    int r = file_read(path, SECRET_BYTES_MAX, ret, error);
    while (!r && ret->length && strchr(" \t\r\n", ret->data[ret->length - 1]))
        ret->length--;
    return r;
}

static char *make_url(const struct scrape_loop *loop)
{
    struct buffer url = {0};
    buffer_add_text(&url, loop->url);
    if (loop->profile->seconds)
        buffer_printf(&url, "%sseconds=%lld", strchr(loop->url, '?') ? "&" : "?",
                      (long long)loop->profile->seconds);
    buffer_text(&url);
    return url.data;
}

static int start_request(struct scraper *scraper, struct scrape_run *run, struct error *error)
{
    const struct scrape_job *job = run->job;
    _cleanup_buffer_ struct buffer secret = {0};
    _cleanup_buffer_ struct buffer header = {0};
    _cleanup_free_ char *url = make_url(run->loop);
    const char *file = job->user ? job->password_file : job->credentials_file;
    int r = file ? read_secret(file, &secret, error) : 0;
    if (r < 0)
        return r;
    const char *given = job->user ? job->password : job->credentials;
    const char *text = file ? buffer_text(&secret) : given, *line;
    struct http_client_options options = {
        .ca_file = job->ca_file,
        .certificate_file = job->certificate_file,
        .key_file = job->key_file,
        .insecure = job->insecure,
        .server_name = job->server_name,
        .user = job->user,
        .password = job->user ? text : NULL,
        .bearer = job->user || job->authorization ? NULL : text,
        .proxy = job->proxy,
        .answer_limit_bytes = ingest_limits(scraper->ingest).body_bytes,
        .redirects = job->redirects ? REDIRECTS : 0,
        .connect_timeout_ms = (unsigned)(job->timeout_ns / 1000000),
    };
    struct http_call call = {
        .url = url,
        .timeout_ms = (unsigned)(job->timeout_ns / 1000000 + run->profile->seconds * 1000),
    };
    if (job->authorization) {
        buffer_printf(&header, "Authorization: %s %s", job->authorization, text ? text : "");
        line = buffer_text(&header);
        call.headers = &line;
        call.header_count = 1;
    }
    return http_multi_start(scraper->multi, &options, &call, run, error);
}

static void start_run(struct scraper *scraper, struct scrape_loop *loop, int64_t now_ns)
{
    struct scrape_run *run = memory_zalloc(1, sizeof(*run));
    run->loop = loop;
    run->jobs = scrape_jobs_ref(loop->jobs);
    run->job = loop->job;
    run->profile = loop->profile;
    run->started_ns = run->ended_ns = now_ns;
    run->failure = FAILED_OTHER;
    loop->run = run;
    loop->due_ns = next_due(loop, now_ns);
    run->result = start_request(scraper, run, &run->error);
    if (run->result < 0) {
        run->received_ns = clock_ns(CLOCK_REALTIME);
        scrape_finish(scraper, run);
    }
}

/* In the thread that runs the requests, without the lock. */
static void request_done(void *context, void *request, int result, struct http_reply *reply,
                         const struct error *error)
{
    struct scraper *scraper = context;
    struct scrape_run *run = request;
    run->result = result;
    run->reply = *reply;
    run->error = *error;
    run->ended_ns = monotonic_ns();
    run->received_ns = clock_ns(CLOCK_REALTIME);
    if (result < 0)
        run->failure = scrape_failure_of(result);
    pthread_mutex_lock(&scraper->lock);
    *scraper->queue_end = run;
    scraper->queue_end = &run->next;
    pthread_cond_signal(&scraper->queued);
    pthread_mutex_unlock(&scraper->lock);
}

/* ---- all of them ---- */

/* Starts what is due; returns when to look again. */
static int64_t start_due(struct scraper *scraper, int64_t now_ns)
{
    int64_t soonest = now_ns + LONGEST_WAIT_MS * 1000000ll;
    size_t kept = 0, started = 0;
    for (size_t i = 0; i < scraper->count; i++) {
        struct scrape_loop *loop = scraper->loops[i];
        if (loop->gone && !loop->run) {
            scrape_loop_free(loop);
            continue;
        }
        scraper->loops[kept++] = loop;
        if (loop->gone)
            continue;
        /* An answer that is a little late, as of a CPU profile that takes almost all of the
         * interval, delays the next one; one that doesn't come makes it miss its turn. */
        if (loop->run && now_ns - loop->due_ns > loop->job->interval_ns / 2) {
            loop->missed++;
            scraper->missed++;
            loop->due_ns = scrape_slot_ns(loop->key, loop->job->interval_ns, now_ns + 1);
        } else if (!loop->run && loop->due_ns <= now_ns && started < STARTS_PER_ROUND &&
                   http_multi_active(scraper->multi) < scraper->active_max) {
            start_run(scraper, loop, now_ns);
            started++;
        }
        soonest = MIN(soonest, loop->due_ns);
    }
    scraper->count = kept;
    return MAX(soonest, now_ns + ROUND_MS * 1000000ll);
}

static void *run_requests(void *userdata)
{
    struct scraper *scraper = userdata;
    int64_t look_ns = 0;
    while (!atomic_load(&scraper->stopping)) {
        int64_t now = monotonic_ns();
        if (now >= look_ns) {
            pthread_mutex_lock(&scraper->lock);
            look_ns = start_due(scraper, now);
            pthread_mutex_unlock(&scraper->lock);
        }
        int64_t wait_ms = (look_ns - monotonic_ns()) / 1000000;
        http_multi_run(scraper->multi, (unsigned)MAX(wait_ms, 1ll));
    }
    return NULL;
}

/* ---- life ---- */

static int start_threads(struct scraper *scraper, struct error *error)
{
    static void *(*const tasks[])(void *) = {run_requests, scrape_find, scrape_take, scrape_take};
    while (scraper->thread_count < ARRAY_LENGTH(tasks)) {
        int r = pthread_create(&scraper->threads[scraper->thread_count], NULL,
                               tasks[scraper->thread_count], scraper);
        if (r)
            return error_set_errno(error, -r, "Failed to start the scrape threads");
        scraper->thread_count++;
    }
    return 0;
}

int scraper_start(struct ingest *ingest, struct budget *memory, struct scrape_jobs *jobs,
                  size_t answer_bytes, struct scraper **ret_scraper, struct error *error)
{
    struct scraper *scraper = memory_zalloc(1, sizeof(*scraper));
    struct rlimit files = {.rlim_cur = 1024};
    getrlimit(RLIMIT_NOFILE, &files);
    scraper->ingest = ingest;
    scraper->memory = memory;
    scraper->active_max = MIN(files.rlim_cur / 4, (rlim_t)SCRAPE_ACTIVE_MAX);
    scraper->queue_end = &scraper->queue;
    atomic_init(&scraper->budget, answer_bytes);
    pthread_mutex_init(&scraper->lock, NULL);
    pthread_cond_init(&scraper->queued, NULL);
    pthread_cond_init(&scraper->wanted, NULL);
    struct http_multi_options options = {.done = request_done,
                                         .context = scraper,
                                         .connections = CONNECTIONS_KEPT,
                                         .budget = &scraper->budget};
    int r = http_multi_new(&options, &scraper->multi, error);
    if (!r)
        r = scraper_reload(scraper, jobs, error);
    if (r < 0) {
        scraper_stop(scraper);
        return r;
    }
    *ret_scraper = scraper;
    return 0;
}

int scraper_reload(struct scraper *scraper, struct scrape_jobs *jobs, struct error *error)
{
    pthread_mutex_lock(&scraper->lock);
    scrape_jobs_unref(scraper->jobs);
    scraper->jobs = scrape_jobs_ref(jobs);
    scraper->reloaded = true;
    pthread_cond_signal(&scraper->wanted);
    pthread_mutex_unlock(&scraper->lock);
    /* Without jobs there are no threads. */
    return jobs->count ? start_threads(scraper, error) : 0;
}

void scraper_stop(struct scraper *scraper)
{
    if (!scraper)
        return;
    pthread_mutex_lock(&scraper->lock);
    atomic_store(&scraper->stopping, true);
    pthread_cond_broadcast(&scraper->queued);
    pthread_cond_broadcast(&scraper->wanted);
    pthread_mutex_unlock(&scraper->lock);
    if (scraper->multi)
        http_multi_wake(scraper->multi);
    for (unsigned i = 0; i < scraper->thread_count; i++)
        pthread_join(scraper->threads[i], NULL);
    http_multi_free(scraper->multi);
    for (size_t i = 0; i < scraper->count; i++)
        scrape_loop_free(scraper->loops[i]);
    free(scraper->loops);
    scrape_jobs_unref(scraper->jobs);
    pthread_cond_destroy(&scraper->queued);
    pthread_cond_destroy(&scraper->wanted);
    pthread_mutex_destroy(&scraper->lock);
    free(scraper);
}
