// SPDX-License-Identifier: Apache-2.0
// The rounds of the watch: which versions there are, which of them to look at, and when. See
// watch.h.

#include "server/watch/watch.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "server/watch/versions.h"
#include "store/store.h"

#define WATCH_THREAD "watch"
#define HOUR_NS 3600000000000ll
#define LATE_NS 30000000000ll /* profiles of a time arrive within this after it */
/* A store may know when a series began to a day only, so the first hour of the range says nothing
 * about deploys. */
#define RANGE_NS (24 * HOUR_NS)
#define BASE_LOOKS 12 /* how many times the first look's time the base is, and later looks are */
#define SLICE_NS 50000000l

/* ---- what to look at ---- */

struct job {
    struct watch_look look; /* its texts are owned */
    uint64_t looks;         /* of its mark, afterwards; 0: an open finding is looked at again */
};

struct jobs {
    struct job *list;
    size_t count, capacity;
};

static void jobs_release(struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++) {
        const struct watch_look *look = &jobs->list[i].look;
        free((char *)look->service);
        free((char *)look->version);
        free((char *)look->base_version);
        free((char *)look->finding);
    }
    free(jobs->list);
}

static void add_job(struct jobs *jobs, struct job job)
{
    struct watch_look *look = &job.look;
    look->service = memory_strdup(look->service);
    look->version = memory_strdup(look->version);
    look->base_version = memory_strdup(look->base_version);
    look->finding = look->finding ? memory_strdup(look->finding) : NULL;
    array_reserve(jobs->list, jobs->capacity, jobs->count + 1);
    jobs->list[jobs->count++] = job;
}

/* The version before one, that ran long enough and until about then; NULL: none. */
static const struct version_span *base_of(const struct version_list *list, size_t position,
                                          int64_t enough_ns)
{
    const struct version_span *now = &list->spans[position];
    while (position-- > 0 && !strcmp(list->spans[position].service, now->service)) {
        const struct version_span *base = &list->spans[position];
        if (base->first_ns + enough_ns <= now->first_ns &&
            base->last_ns >= now->first_ns - BASE_LOOKS * enough_ns)
            return base;
    }
    return NULL;
}

/* The look that is due; those between it and the last one are skipped. 0: none. */
static uint64_t due_look(const struct watch *watch, const struct watch_mark *mark, int64_t first_ns,
                         int64_t now_ns)
{
    uint64_t due = 0;
    for (uint64_t i = mark->looks; i < WATCH_LOOKS; i++)
        if (now_ns >= first_ns + (watch->options.first_look_ns << i) + LATE_NS)
            due = i + 1;
    return due;
}

static void plan_version(struct watch *watch, struct watch_tenant *tenant,
                         const struct version_list *list, size_t position, int64_t now_ns,
                         struct jobs *jobs)
{
    const struct version_span *span = &list->spans[position];
    int64_t first_look_ns = watch->options.first_look_ns;
    bool follows = position && !strcmp(list->spans[position - 1].service, span->service) &&
                   list->spans[position - 1].first_ns < span->first_ns;
    if (!follows || span->first_ns < now_ns - RANGE_NS + HOUR_NS)
        return;
    struct watch_mark deploy = {.time_ns = span->first_ns,
                                .service = span->service,
                                .version = span->version,
                                .text = (char *)"",
                                .by = (char *)""};
    if (!watch_mark_add(&watch->book, tenant, &deploy))
        return;
    const struct watch_mark *mark = watch_mark_of(tenant, span->service, span->version);
    const struct version_span *base = base_of(list, position, first_look_ns);
    uint64_t due = due_look(watch, mark, span->first_ns, now_ns);
    if (!base || !due)
        return;
    int64_t elapsed_ns = first_look_ns << (due - 1);
    if (span->last_ns < span->first_ns + elapsed_ns / 4 * 3)
        return; /* it ran for a while only: an earlier look has seen it */
    /* The first quarter is left out: a program that has just started warms up. */
    add_job(jobs,
            (struct job){.looks = due,
                         .look = {.tenant = tenant->name,
                                  .service = span->service,
                                  .version = span->version,
                                  .base_version = base->version,
                                  .from_ns = span->first_ns + elapsed_ns / 4,
                                  .to_ns = span->first_ns + elapsed_ns,
                                  .base_from_ns = MAX(base->first_ns,
                                                      span->first_ns - BASE_LOOKS * first_look_ns),
                                  .base_to_ns = span->first_ns,
                                  .now_ns = now_ns}});
}

/* ---- open findings ---- */

void watch_close_finding(struct watch *watch, struct watch_finding *finding,
                         enum watch_close closed, int64_t now_ns)
{
    finding->closed = closed;
    finding->closed_ns = now_ns;
    watch->book.unsaved = true;
    atomic_fetch_add(&watch->stats.closed, 1);
    log_info("%s %s: the finding about %s is closed (%s).", finding->service, finding->version,
             finding->function, watch_close_names[closed]);
}

/* The newest version that still sends; NULL: none does. */
static const struct version_span *running(const struct version_list *list, const char *service,
                                          int64_t since_ns)
{
    const struct version_span *found = NULL;
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->spans[i].service, service) && list->spans[i].last_ns >= since_ns)
            found = &list->spans[i];
    return found;
}

static const struct version_span *span_of(const struct version_list *list, const char *service,
                                          const char *version)
{
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->spans[i].service, service) && !strcmp(list->spans[i].version, version))
            return &list->spans[i];
    return NULL;
}

/* While its version's looks go on, they decide; then it is looked at again from time to time, also
 * in later versions: those are compared with the same base. */
static void plan_finding(struct watch *watch, struct watch_tenant *tenant,
                         struct watch_finding *finding, const struct version_list *list,
                         int64_t now_ns, struct jobs *jobs)
{
    int64_t span_ns = BASE_LOOKS * watch->options.first_look_ns;
    const struct watch_mark *mark = watch_mark_of(tenant, finding->service, finding->version);
    const struct version_span *own = span_of(list, finding->service, finding->version);
    const struct version_span *now = running(list, finding->service, now_ns - span_ns);
    if (!now) {
        if (now_ns - finding->to_ns > RANGE_NS)
            watch_close_finding(watch, finding, WATCH_NO_DATA, now_ns);
        return;
    }
    bool change = finding->kind == WATCH_CHANGE;
    if (now != own && ((!change && !strcmp(now->version, finding->base_version)) ||
                       (own && now->first_ns < own->first_ns))) {
        watch_close_finding(watch, finding, WATCH_REPLACED, now_ns);
        return;
    }
    if ((!change && now == own && mark && mark->looks < WATCH_LOOKS) ||
        now_ns < finding->to_ns + span_ns + LATE_NS)
        return;
    add_job(jobs, (struct job){.look = {.tenant = tenant->name,
                                        .service = finding->service,
                                        .version = now->version,
                                        .base_version = finding->base_version,
                                        .from_ns = MAX(now->first_ns, now_ns - LATE_NS - span_ns),
                                        .to_ns = now_ns - LATE_NS,
                                        .base_from_ns = finding->base_from_ns,
                                        .base_to_ns = finding->base_to_ns,
                                        .now_ns = now_ns,
                                        .finding = finding->id,
                                        .kind = finding->kind}});
}

/* ---- changes within a version ---- */

/* The end of the last look at a version; 0: none. */
static int64_t *last_change_look(struct watch *watch, const char *tenant,
                                 const struct version_span *span)
{
    struct change_looks *looks = &watch->changes;
    for (size_t i = 0; i < looks->count; i++)
        if (!strcmp(looks->list[i].service, span->service) &&
            !strcmp(looks->list[i].version, span->version) &&
            !strcmp(looks->list[i].tenant, tenant))
            return &looks->list[i].to_ns;
    array_reserve(looks->list, looks->capacity, looks->count + 1);
    looks->list[looks->count] = (struct change_look){.tenant = memory_strdup(tenant),
                                                     .service = memory_strdup(span->service),
                                                     .version = memory_strdup(span->version)};
    return &looks->list[looks->count++].to_ns;
}

static void free_change_look(struct change_look *look)
{
    free(look->tenant);
    free(look->service);
    free(look->version);
}

/* Those of versions that are gone. */
static void forget_change_looks(struct watch *watch, int64_t before_ns)
{
    struct change_looks *looks = &watch->changes;
    size_t kept = 0;
    for (size_t i = 0; i < looks->count; i++) {
        if (looks->list[i].to_ns >= before_ns)
            looks->list[kept++] = looks->list[i];
        else
            free_change_look(&looks->list[i]);
    }
    looks->count = kept;
}

/* Each hour of a version that has run for some, without its first one: the hour against those
 * before it. */
static void plan_change(struct watch *watch, const char *tenant, const struct version_list *list,
                        size_t position, int64_t now_ns, struct jobs *jobs)
{
    const struct version_span *span = &list->spans[position];
    int64_t hour_ns = BASE_LOOKS * watch->options.first_look_ns;
    int64_t to_ns = (now_ns - LATE_NS) / hour_ns * hour_ns;
    int64_t from_ns = to_ns - hour_ns;
    int64_t base_ns = MAX(span->first_ns + hour_ns, to_ns - WATCH_CHANGE_HOURS * hour_ns);
    if (!watch->options.changes || span->last_ns < from_ns + hour_ns / 4 * 3 ||
        from_ns - base_ns < 2 * hour_ns)
        return;
    int64_t *last_ns = last_change_look(watch, tenant, span);
    if (*last_ns >= to_ns)
        return;
    *last_ns = to_ns;
    add_job(jobs, (struct job){.look = {.tenant = tenant,
                                        .service = span->service,
                                        .version = span->version,
                                        .base_version = span->version,
                                        .from_ns = from_ns,
                                        .to_ns = to_ns,
                                        .base_from_ns = base_ns,
                                        .base_to_ns = from_ns,
                                        .now_ns = now_ns,
                                        .kind = WATCH_CHANGE}});
}

static void plan(struct watch *watch, const char *name, const struct version_list *list,
                 int64_t now_ns, struct jobs *jobs)
{
    pthread_mutex_lock(&watch->book.lock);
    struct watch_tenant *tenant = watch_book_tenant(&watch->book, name);
    for (size_t i = 0; i < list->count; i++)
        plan_version(watch, tenant, list, i, now_ns, jobs);
    for (size_t i = 0; i < list->count; i++)
        plan_change(watch, name, list, i, now_ns, jobs);
    for (size_t i = 0; i < tenant->finding_count; i++)
        if (!tenant->findings[i].closed && tenant->findings[i].kind != WATCH_LEAK)
            plan_finding(watch, tenant, &tenant->findings[i], list, now_ns, jobs);
    pthread_mutex_unlock(&watch->book.lock);
}

/* ---- rounds ---- */

void watch_pause(const struct watch *watch, int64_t busy_ns)
{
    double idle_ns = (double)busy_ns * (1 / watch->options.cpu - 1);
    int64_t until_ns = monotonic_ns() + (int64_t)idle_ns;
    while (watch->running && monotonic_ns() < until_ns && !atomic_load(&watch->server->stopping))
        nanosleep(&(struct timespec){.tv_nsec = SLICE_NS}, NULL);
}

void watch_failed(struct watch *watch, const struct error *error)
{
    atomic_fetch_add(&watch->stats.failed, 1);
    if (strcmp(watch->said, error->text))
        log_warning("The watch failed: %s", error->text);
    snprintf(watch->said, sizeof(watch->said), "%s", error->text);
}

void watch_rested(struct watch *watch, int64_t begun_ns)
{
    int64_t busy_ns = monotonic_ns() - begun_ns;
    atomic_fetch_add(&watch->stats.busy_ns, (uint64_t)busy_ns);
    watch_pause(watch, busy_ns);
}

static void looked(struct watch *watch, const struct job *job)
{
    pthread_mutex_lock(&watch->book.lock);
    struct watch_tenant *tenant = watch_book_tenant(&watch->book, job->look.tenant);
    struct watch_mark *mark = watch_mark_of(tenant, job->look.service, job->look.version);
    if (mark && job->looks > mark->looks) {
        mark->looks = job->looks;
        watch->book.unsaved = true;
    }
    pthread_mutex_unlock(&watch->book.lock);
}

static void run_job(struct watch *watch, const struct job *job)
{
    struct error error = {0};
    int64_t begun_ns = monotonic_ns();
    int r = watch_look(watch, &job->look, &error);
    bool later = r == -EAGAIN || r == -ECANCELED;
    if (!later)
        atomic_fetch_add(&watch->stats.looks, 1);
    /* A service that sends no CPU profiles, or had none in that time, is nothing to complain of. */
    if (r < 0 && !later && r != -ENOENT)
        watch_failed(watch, &error);
    if (!later && job->looks)
        looked(watch, job);
    watch_rested(watch, begun_ns);
}

static void watch_tenant(struct watch *watch, const char *name, int64_t now_ns)
{
    struct jobs jobs = {0};
    struct version_list list;
    struct error error = {0};
    int64_t begun_ns = monotonic_ns();
    if (version_list_read(&list, watch->server->store, name, now_ns - RANGE_NS, now_ns, &error) < 0)
        watch_failed(watch, &error);
    else
        plan(watch, name, &list, now_ns, &jobs);
    atomic_fetch_add(&watch->stats.left_out, list.left_out);
    watch_rested(watch, begun_ns);
    /* Other tenants wait: a tenant with many new versions goes on in the next rounds, with others
     * of them. */
    size_t count = MIN(jobs.count, (size_t)WATCH_JOBS_PER_ROUND);
    for (size_t i = 0; i < count && !atomic_load(&watch->server->stopping); i++)
        run_job(watch, &jobs.list[(watch->first_job + i) % jobs.count]);
    jobs_release(&jobs);
    forget_change_looks(watch, now_ns - RANGE_NS);
    watch_leaks(watch, name, &list, now_ns);
    version_list_release(&list);
}

struct names {
    char **list;
    size_t count, capacity;
};

static int note_name(void *context, const char *text)
{
    struct names *names = context;
    array_reserve(names->list, names->capacity, names->count + 1);
    names->list[names->count++] = memory_strdup(text);
    return 0;
}

void watch_round(struct watch *watch, int64_t now_ns)
{
    struct names tenants = {0};
    struct error error = {0};
    if (store_tenants(watch->server->store, note_name, &tenants, &error) < 0)
        watch_failed(watch, &error);
    for (size_t i = 0; i < tenants.count; i++) {
        if (!atomic_load(&watch->server->stopping))
            watch_tenant(watch, tenants.list[i], now_ns);
        free(tenants.list[i]);
    }
    free(tenants.list);
    /* A full disk is the store's to complain about; what is unsaved is tried again. */
    if (watch_book_save(&watch->book, &error) < 0)
        log_debug("%s", error.text);
    atomic_fetch_add(&watch->stats.rounds, 1);
    watch->first_job += WATCH_JOBS_PER_ROUND;
}

static void *run(void *userdata)
{
    struct watch *watch = userdata;
    int64_t next_ns = monotonic_ns() + watch->options.interval_ns;
    pthread_setname_np(pthread_self(), WATCH_THREAD);
    while (!atomic_load(&watch->server->stopping)) {
        if (monotonic_ns() >= next_ns) {
            watch_round(watch, clock_ns(CLOCK_REALTIME));
            next_ns = monotonic_ns() + watch->options.interval_ns;
        }
        nanosleep(&(struct timespec){.tv_nsec = SLICE_NS}, NULL);
    }
    return NULL;
}

/* ---- life ---- */

int watch_open(struct server *server, const struct watch_options *options, const char *directory,
               struct watch **ret_watch, struct error *error)
{
    struct watch *watch = memory_zalloc(1, sizeof(*watch));
    watch->server = server;
    watch->options = *options;
    int r = watch_book_open(directory, &watch->book, error);
    if (r < 0) {
        watch_close(watch);
        return r;
    }
    *ret_watch = watch;
    return 0;
}

const char *watch_damaged(const struct watch *watch)
{
    return watch->book.damaged;
}

int watch_start(struct watch *watch, struct error *error)
{
    watch->running = watch->options.enabled;
    int r = watch->running ? -pthread_create(&watch->thread, NULL, run, watch) : 0;
    if (r < 0) {
        watch->running = false;
        error_set_errno(error, r, "Failed to start the watch");
    }
    return r;
}

void watch_close(struct watch *watch)
{
    struct error error = {0};
    if (!watch)
        return;
    if (watch->running)
        pthread_join(watch->thread, NULL);
    if (watch->book.path && watch_book_save(&watch->book, &error) < 0)
        log_warning("%s", error.text);
    watch_book_release(&watch->book);
    for (size_t i = 0; i < watch->changes.count; i++)
        free_change_look(&watch->changes.list[i]);
    free(watch->changes.list);
    leak_levels_release(&watch->levels);
    free(watch);
}

/* ---- metrics ---- */

static void metric(struct buffer *out, const char *name, const char *kind, const char *help,
                   double value)
{
    buffer_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, kind, name,
                  value);
}

static void put_label(struct buffer *out, const char *name, const char *value)
{
    buffer_printf(out, "%s=\"", name);
    text_escape_metric(out, value);
    buffer_add_char(out, '"');
}

/* With the lock held. */
static void write_findings(const struct watch_tenant *tenant, struct buffer *out)
{
    for (size_t i = 0; i < tenant->finding_count; i++) {
        const struct watch_finding *finding = &tenant->findings[i];
        if (finding->closed || finding->kind == WATCH_LEAK)
            continue;
        buffer_add_text(out, "assay_finding_growth{");
        put_label(out, "tenant", tenant->name);
        put_label(out, ",service_name", finding->service);
        put_label(out, ",version", finding->version);
        put_label(out, ",base_version", finding->base_version);
        put_label(out, ",function", finding->function);
        put_label(out, ",id", finding->id);
        buffer_add_text(out, "} ");
        if (isfinite(finding->growth))
            buffer_printf(out, "%.6g\n", finding->growth);
        else
            buffer_add_text(out, "+Inf\n");
    }
}

/* Likewise. */
static void write_leaks(const struct watch_tenant *tenant, struct buffer *out)
{
    for (size_t i = 0; i < tenant->finding_count; i++) {
        const struct watch_finding *finding = &tenant->findings[i];
        if (finding->closed || finding->kind != WATCH_LEAK)
            continue;
        buffer_add_text(out, "assay_finding_leak_bytes_per_hour{");
        put_label(out, "tenant", tenant->name);
        put_label(out, ",service_name", finding->service);
        put_label(out, ",version", finding->version);
        put_label(out, ",type", finding->type);
        put_label(out, ",function", finding->function);
        put_label(out, ",id", finding->id);
        buffer_printf(out, "} %.6g\n", finding->slope);
    }
}

void watch_write_metrics(struct watch *watch, const char *only, struct buffer *out)
{
    struct watch_stats *stats = &watch->stats;
    size_t marks = 0, open = 0;
    buffer_add_text(out, "# HELP assay_finding_growth Growth of each open finding's function.\n"
                         "# TYPE assay_finding_growth gauge\n");
    pthread_mutex_lock(&watch->book.lock);
    for (size_t i = 0; i < watch->book.tenant_count; i++) {
        const struct watch_tenant *tenant = &watch->book.tenants[i];
        marks += tenant->mark_count;
        for (size_t k = 0; k < tenant->finding_count; k++)
            open += !tenant->findings[k].closed;
        if (!only || !strcmp(only, tenant->name))
            write_findings(tenant, out);
    }
    buffer_add_text(out,
                    "# HELP assay_finding_leak_bytes_per_hour How fast the memory of each open "
                    "leak climbs.\n# TYPE assay_finding_leak_bytes_per_hour gauge\n");
    for (size_t i = 0; i < watch->book.tenant_count; i++)
        if (!only || !strcmp(only, watch->book.tenants[i].name))
            write_leaks(&watch->book.tenants[i], out);
    uint64_t dropped = watch->book.dropped_marks + watch->book.dropped_findings;
    pthread_mutex_unlock(&watch->book.lock);
    metric(out, "assay_watch_rounds_total", "counter", "Rounds of the watch over all services.",
           (double)atomic_load(&stats->rounds));
    metric(out, "assay_watch_looks_total", "counter",
           "Comparisons of a version with the one before it.", (double)atomic_load(&stats->looks));
    metric(out, "assay_watch_leak_looks_total", "counter", "Looks for leaks at levels of services.",
           (double)atomic_load(&stats->leak_looks));
    metric(out, "assay_watch_failed_total", "counter",
           "Rounds and comparisons of the watch that failed.", (double)atomic_load(&stats->failed));
    metric(out, "assay_watch_seconds_total", "counter", "Time spent on watching.",
           (double)atomic_load(&stats->busy_ns) / 1e9);
    metric(out, "assay_watch_left_out_total", "counter",
           "Series and functions that are not watched because of their names or number.",
           (double)atomic_load(&stats->left_out));
    metric(out, "assay_watch_dropped_total", "counter",
           "Marks and findings dropped for want of room.", (double)dropped);
    metric(out, "assay_watch_marks", "gauge", "Marks of all tenants.", (double)marks);
    metric(out, "assay_findings_open", "gauge", "Open findings of all tenants.", (double)open);
    metric(out, "assay_findings_opened_total", "counter", "Findings opened.",
           (double)atomic_load(&stats->opened));
    metric(out, "assay_findings_closed_total", "counter", "Findings closed.",
           (double)atomic_load(&stats->closed));
}
