/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch: a job of the server that notices deploys (a version of a service that wasn't there
 * before), compares each new version with the one before it, and keeps what grew as findings.
 * docs/watch.md explains what it does when. Private to src/server.
 */
#pragma once

#include <pthread.h>

#include "server/handler/handler.h"
#include "server/watch/book.h"
#include "server/watch/versions.h"

#define WATCH_LOOKS 5                /* at a version, each after twice the time of the one before */
#define WATCH_FALSE_DISCOVERIES 0.05 /* of all looks at a version together */

/* Looks for changes within a version have this each: one in 100 services and 4 days is wrong. */
#define WATCH_CHANGE_DISCOVERIES 0.0001
#define WATCH_CHANGE_HOURS 6 /* (BASE_LOOKS first looks each): the last against those before */

#define WATCH_LIMITS_MAX 1000
#define WATCH_JOBS_PER_ROUND 64 /* of a tenant */

struct watch_options {
    bool enabled;
    int64_t interval_ns;   /* between rounds */
    int64_t first_look_ns; /* after the first profile of a version */
    double min_growth;     /* what grew by less is not a finding */
    double min_share;      /* of the service's total; smaller functions are not looked at */
    double cpu;            /* the share of a core that it may take */
    bool changes;          /* looks for changes within versions, too */
    bool leaks;            /* looks at levels, too */
    int64_t leak_interval_ns, leak_range_ns; /* between looks at a level, and what each looks at */
    double least_rate; /* bytes per hour and process: what climbs by less is not a finding */
    const struct watch_limit {
        const char *service;
        uint64_t bytes; /* of memory, of one process */
    } * limits;         /* the caller's */
    size_t limit_count;
};
#define WATCH_OPTIONS_DEFAULT                                                                      \
    (struct watch_options)                                                                         \
    {                                                                                              \
        .enabled = true, .interval_ns = 60000000000ll, .first_look_ns = 300000000000ll,            \
        .min_growth = 0.05, .min_share = 0.01, .cpu = 0.05, .changes = true, .leaks = true,        \
        .leak_interval_ns = 1800000000000ll, .leak_range_ns = 21600000000000ll,                    \
        .least_rate = 1048576                                                                      \
    }

struct watch_stats {
    _Atomic uint64_t rounds, looks, leak_looks, failed; /* failed: looks that ended with an error */
    _Atomic uint64_t opened, closed;                    /* findings */
    _Atomic uint64_t left_out; /* series and functions with names that don't fit */
    _Atomic uint64_t busy_ns;
};

/* Levels of services, and when each is looked at; only the watch's thread uses them. */
struct leak_levels {
    struct leak_level {
        char *tenant, *service, *type;
        int64_t last_ns, next_ns;
    } * list;
    size_t count, capacity;
};

/* When each version was last looked at for changes; only the watch's thread uses them. */
struct change_looks {
    struct change_look {
        char *tenant, *service, *version;
        int64_t to_ns;
    } * list;
    size_t count, capacity;
};

struct watch {
    struct server *server;
    struct watch_options options;
    struct watch_book book;
    struct watch_stats stats;
    char said[ERROR_TEXT_BYTES]; /* the last failure that was logged */
    struct leak_levels levels;
    struct change_looks changes;
    size_t first_job; /* of a tenant, where there are more than a round has */
    pthread_t thread;
    bool running;
};

/* Reads what was kept; the server's store must be open. */
int watch_open(struct server *server, const struct watch_options *options, const char *directory,
               struct watch **ret_watch, struct error *error);

/* Begins to watch, in a thread that ends when the server is stopping. */
int watch_start(struct watch *watch, struct error *error);
void watch_close(struct watch *watch); /* waits for the thread; takes NULL */

/* One round over all tenants, as of a time; what the thread does, for tests. */
void watch_round(struct watch *watch, int64_t now_ns);

/* The path of a damaged file that was set aside; NULL: none. */
const char *watch_damaged(const struct watch *watch);

/* Of all tenants; open findings are named of one only, unless `tenant` is NULL. */
void watch_write_metrics(struct watch *watch, const char *tenant, struct buffer *out);

/* ---- for its own files ---- */

/* Waits after so much work, so that the share of a core is kept. */
void watch_pause(const struct watch *watch, int64_t busy_ns);

/* Logs a failure, unless it is the same as the last one. */
void watch_failed(struct watch *watch, const struct error *error);

/* The end of a piece of work: counts its time, and rests. */
void watch_rested(struct watch *watch, int64_t begun_ns);

/* With the lock held. */
void watch_close_finding(struct watch *watch, struct watch_finding *finding,
                         enum watch_close closed, int64_t now_ns);

/* ---- leak_looks.c ---- */

/* Looks at the levels of a tenant that are due. */
void watch_leaks(struct watch *watch, const char *tenant, const struct version_list *versions,
                 int64_t now_ns);
void leak_levels_release(struct leak_levels *levels);

/* ---- looks.c ---- */

struct watch_look {
    const char *tenant, *service, *version, *base_version;
    int64_t from_ns, to_ns, base_from_ns, base_to_ns;
    int64_t now_ns;
    const char *finding;  /* id of the only one that is looked at again; NULL: new ones, too */
    enum watch_kind kind; /* of findings: WATCH_CHANGE within a version */
};

/* Compares, and opens, renews and closes findings. -EAGAIN, -ECANCELED: nothing was done. */
int watch_look(struct watch *watch, const struct watch_look *look, struct error *error);

/* ---- watch_api.c ---- */

/* The path of the page that compares two selections. */
void watch_write_comparison(struct buffer *out, const char *query, int64_t from_ns, int64_t to_ns,
                            const char *base_query, int64_t base_from_ns, int64_t base_to_ns);
/* The page that shows what a finding is made of. */
void watch_write_link(struct buffer *out, const struct watch_finding *finding);

server_handler marks_list, marks_post, findings_list;
