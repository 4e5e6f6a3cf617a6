/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of scraping. Private to src/server/scrape*.c. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "http/client/client_multi.h"
#include "server/scrape/scrape.h"

enum scrape_health { SCRAPE_UNKNOWN, SCRAPE_UP, SCRAPE_DOWN };

enum scrape_failure {
    FAILED_CONNECT,
    FAILED_TIMEOUT,
    FAILED_TLS,
    FAILED_STATUS,    /* another than 2xx */
    FAILED_TOO_LARGE, /* or no memory beside others */
    FAILED_CONTENT,   /* no profile, or one that is refused */
    FAILED_STORE,
    FAILED_OTHER, /* a secret or certificate of ours that can't be read, no HTTP */
    SCRAPE_FAILURES,
};

/* One profile of one target. Labels and URL are part of the key and never change. */
struct scrape_loop {
    uint64_t key;
    char *url;
    struct labels labels;
    /* All else is under the scraper's lock. */
    struct scrape_jobs *jobs; /* a reference; the others point into it */
    const struct scrape_job *job;
    const struct scrape_profile *profile;
    struct scrape_run *run; /* NULL: not under way */
    bool gone;              /* to be freed once it isn't under way */
    int64_t due_ns;         /* monotonic */
    enum scrape_health health;
    char *error;     /* of the last time; NULL: none */
    int64_t last_ns; /* wall clock; 0: never */
    int64_t duration_ns;
    uint64_t scrapes, failures, missed;
};

/* A request and what came of it. */
struct scrape_run {
    struct scrape_run *next; /* in the queue of what is to be stored */
    struct scrape_loop *loop;
    struct scrape_jobs *jobs; /* as when it started */
    const struct scrape_job *job;
    const struct scrape_profile *profile;
    int64_t started_ns, ended_ns; /* monotonic */
    int64_t received_ns;          /* wall clock */
    int result;
    enum scrape_failure failure;
    struct http_reply reply;
    struct error error;
    struct sender seen;
};

struct scraper {
    struct ingest *ingest;
    struct budget *memory;
    struct http_multi *multi;
    atomic_size_t budget; /* of answers */
    size_t active_max;
    pthread_t threads[4];
    unsigned thread_count;
    atomic_bool stopping;

    pthread_mutex_t lock;
    pthread_cond_t queued, wanted;
    struct scrape_jobs *jobs; /* the newest */
    bool reloaded;
    struct scrape_loop **loops; /* sorted by key */
    size_t count, capacity;
    struct scrape_run *queue, **queue_end;
    /* Ever. */
    uint64_t scrapes, failed[SCRAPE_FAILURES], missed, bytes, over_limit;
    int64_t busy_ns;
    /* At present, for metrics. */
    unsigned broken_files;
};

/* ---- scrape_take.c ---- */

/* Stores what was scraped until the scraper stops; a thread. */
void *scrape_take(void *scraper);

/* The lock is held: the loop's request ended so. Frees the run. */
void scrape_finish(struct scraper *scraper, struct scrape_run *run);
enum scrape_failure scrape_failure_of(int code);

/* ---- scrape_find.c ---- */

/* Keeps the loops as jobs and files have it; a thread. */
void *scrape_find(void *scraper);
void scrape_loop_free(struct scrape_loop *loop);
