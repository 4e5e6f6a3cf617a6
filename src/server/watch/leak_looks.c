// SPDX-License-Identifier: Apache-2.0
// The leak watch: which levels of which services are due, and what the sites that climb in them
// mean for findings. See watch.h.

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "label/quote.h"
#include "profile/level.h"
#include "server/admission/admission.h"
#include "server/compare/replicates.h"
#include "server/watch/leaks.h"
#include "server/watch/watch.h"
#include "store/store.h"

#define STEPS 48
#define QUARTER 4    /* the first and the last one of the range are what the link compares */
#define MISSES_MAX 2 /* looks in a row that don't find it close a finding */
#define DAY_NS 86400000000000ll
#define LEVELS_MAX 20000          /* of all tenants */
#define SILENT_NS 3600000000000ll /* what sent nothing for so long is not looked at */
#define LATE_NS 30000000000ll

/* ---- what is due ---- */

void leak_levels_release(struct leak_levels *levels)
{
    for (size_t i = 0; i < levels->count; i++) {
        free(levels->list[i].tenant);
        free(levels->list[i].service);
        free(levels->list[i].type);
    }
    free(levels->list);
    *levels = (struct leak_levels){0};
}

/* Of resident memory, the whole: a limit that is raised isn't a leak, and the page cache grows by
 * itself. */
static bool is_bytes_level(const char *type)
{
    size_t length;
    const char *name = query_type_part(type, 1, &length);
    if (length > 4 && !memcmp(name, "rss_", 4))
        return false;
    const char *unit = query_type_part(type, 2, &length);
    return level_is_type(type) && length == 5 && !memcmp(unit, "bytes", 5);
}

static bool is_resident(const char *type)
{
    size_t length;
    const char *name = query_type_part(type, 1, &length);
    return length >= 3 && !memcmp(name, "rss", 3);
}

struct listing {
    struct watch *watch;
    const char *tenant;
    int64_t now_ns;
};

static struct leak_level *level_of(struct leak_levels *levels, const char *tenant,
                                   const char *service, const char *type)
{
    for (size_t i = 0; i < levels->count; i++) {
        struct leak_level *level = &levels->list[i];
        if (!strcmp(level->service, service) && !strcmp(level->type, type) &&
            !strcmp(level->tenant, tenant))
            return level;
    }
    if (levels->count >= LEVELS_MAX)
        return NULL;
    array_reserve(levels->list, levels->capacity, levels->count + 1);
    struct leak_level *level = &levels->list[levels->count++];
    *level = (struct leak_level){.tenant = memory_strdup(tenant),
                                 .service = memory_strdup(service),
                                 .type = memory_strdup(type)};
    return level;
}

static int note_level(void *context, const struct labels *labels, const char *type,
                      int64_t first_ns, int64_t last_ns)
{
    struct listing *listing = context;
    const char *service = labels_get(labels, LABEL_SERVICE_NAME);
    (void)first_ns;
    if (!is_bytes_level(type) || !service || !*service || labels_get(labels, LABEL_RECORDING))
        return 0;
    struct leak_level *level = NULL;
    if (strlen(service) < WATCH_NAME_BYTES && utf8_valid(service, strlen(service)))
        level = level_of(&listing->watch->levels, listing->tenant, service, type);
    if (level)
        level->last_ns = MAX(level->last_ns, last_ns);
    else
        atomic_fetch_add(&listing->watch->stats.left_out, 1);
    return 0;
}

/* ---- one look ---- */

struct leak_look {
    struct watch *watch;
    const struct leak_level *level;
    const char *version; /* "": none */
    int64_t from_ns, to_ns, now_ns;
    struct error *error;
    int result;
};

static int count_value(void *context, const char *value)
{
    size_t *count = context;
    *count += *value != 0;
    return 0;
}

/* The label that separates processes best; otherwise the one that replicates are made of. */
static int choose_label(struct query_context *context, struct store_apart *apart,
                        struct error *error)
{
    static const char *const names[] = {"pod", "k8s.pod.name", "instance", "service.instance.id",
                                        "process.pid"};
    int r = 0;
    for (size_t i = 0; !r && i < ARRAY_LENGTH(names); i++) {
        size_t count = 0;
        r = store_label_values(context->server->store, &context->selection, names[i], count_value,
                               &count, error);
        if (!r && count > 1 && count <= STORE_APART_VALUES_MAX) {
            apart->label = names[i];
            return 0;
        }
    }
    return r;
}

static double limit_of(const struct watch *watch, const char *service)
{
    for (size_t i = 0; i < watch->options.limit_count; i++)
        if (!strcmp(watch->options.limits[i].service, service))
            return (double)watch->options.limits[i].bytes;
    return 0;
}

/* With the lock held. */
static void renew(const struct leak_look *look, const struct leak *leak,
                  struct watch_finding *finding)
{
    int64_t quarter_ns = (look->to_ns - look->from_ns) / QUARTER;
    finding->seen_ns = look->now_ns;
    finding->base_from_ns = look->from_ns;
    finding->base_to_ns = look->from_ns + quarter_ns;
    finding->from_ns = look->to_ns - quarter_ns;
    finding->to_ns = look->to_ns;
    finding->share = leak->share;
    finding->slope = leak->trend.slope;
    finding->slope_low = leak->trend.low;
    finding->slope_high = leak->trend.high;
    finding->site_bytes = leak->site_bytes;
    finding->process_bytes = leak->process_bytes;
    finding->limit_bytes = limit_of(look->watch, look->level->service);
    finding->misses = 0;
    snprintf(finding->unit, sizeof(finding->unit), "bytes per hour");
    look->watch->book.unsaved = true;
}

static void open_leak(const struct leak_look *look, struct watch_tenant *tenant,
                      const struct leak *leak, const char *site)
{
    struct watch_finding finding = {.kind = WATCH_LEAK,
                                    .service = look->level->service,
                                    .version = (char *)look->version,
                                    .base_version = (char *)look->version,
                                    .type = look->level->type,
                                    .function = (char *)site,
                                    .opened_ns = look->now_ns};
    renew(look, leak, &finding);
    if (!watch_finding_add(&look->watch->book, tenant, &finding))
        return;
    atomic_fetch_add(&look->watch->stats.opened, 1);
    log_info("%s: memory of %s climbs by %.1f MiB an hour.", look->level->service, site,
             finding.slope / 1048576);
}

static void miss(const struct leak_look *look, struct watch_finding *finding)
{
    look->watch->book.unsaved = true;
    if (++finding->misses >= MISSES_MAX)
        watch_close_finding(look->watch, finding, WATCH_GONE, look->now_ns);
}

/* Resident memory climbs whenever a heap does: it is a finding where nothing else explains it. */
static bool is_explained(const struct leak_look *look, const struct watch_tenant *tenant)
{
    for (size_t i = 0; i < tenant->finding_count; i++) {
        const struct watch_finding *finding = &tenant->findings[i];
        if (!finding->closed && finding->kind == WATCH_LEAK && !is_resident(finding->type) &&
            !strcmp(finding->service, look->level->service))
            return is_resident(look->level->type);
    }
    return false;
}

static void apply(const struct leak_look *look, const struct leak *leaks, size_t count)
{
    struct watch_book *book = &look->watch->book;
    pthread_mutex_lock(&book->lock);
    struct watch_tenant *tenant = watch_book_tenant(book, look->level->tenant);
    if (is_explained(look, tenant))
        count = 0;
    for (size_t i = 0; i < count; i++) {
        char site[WATCH_FUNCTION_BYTES];
        if (leaks[i].site_length >= sizeof(site) ||
            !utf8_valid(leaks[i].site, leaks[i].site_length)) {
            atomic_fetch_add(&look->watch->stats.left_out, 1);
            continue;
        }
        snprintf(site, sizeof(site), "%.*s", (int)leaks[i].site_length, leaks[i].site);
        struct watch_finding *finding =
            watch_finding_open(tenant, WATCH_LEAK, look->level->service, look->level->type, site);
        if (finding)
            renew(look, &leaks[i], finding);
        else
            open_leak(look, tenant, &leaks[i], site);
    }
    for (size_t i = 0; i < tenant->finding_count; i++) {
        struct watch_finding *finding = &tenant->findings[i];
        if (!finding->closed && finding->kind == WATCH_LEAK && finding->seen_ns < look->now_ns &&
            !strcmp(finding->service, look->level->service) &&
            !strcmp(finding->type, look->level->type))
            miss(look, finding);
    }
    pthread_mutex_unlock(&book->lock);
}

static int read_and_judge(struct leak_look *look, struct query_context *context,
                          struct profile *profile)
{
    struct store_apart apart;
    struct leak leaks[LEAKS_MAX];
    int r = replicates_plan(context, STEPS, &apart, look->error);
    if (!r)
        r = choose_label(context, &apart, look->error);
    if (!r)
        r = replicates_merge_planned(context, &apart, NULL, profile, &(struct store_quality){0},
                                     look->error);
    if (!r)
        r = replicates_add_frame(context, &apart, profile, look->error);
    if (r < 0)
        return r;
    _cleanup_naming_ struct naming naming;
    naming_init(&naming, profile);
    size_t count =
        leaks_find(profile, &naming, apart.step_ns, look->watch->options.least_rate, leaks);
    apply(look, leaks, count);
    return 0;
}

static void run(void *userdata)
{
    struct leak_look *look = userdata;
    _cleanup_buffer_ struct buffer query = {0};
    _cleanup_query_context_ struct query_context context = {0};
    _cleanup_profile_ struct profile profile;
    struct query_asker asker = {look->level->tenant, &look->watch->server->stopping, 0};
    profile_init(&profile, REPLICATES_DETAIL);
    buffer_printf(&query, "%s{" LABEL_SERVICE_NAME "=", look->level->type);
    label_write_quoted(&query, look->level->service);
    buffer_add_char(&query, '}');
    look->result = query_context_open(&context, look->watch->server, &asker, buffer_text(&query),
                                      look->from_ns, look->to_ns, true, look->error);
    if (!look->result)
        look->result = read_and_judge(look, &context, &profile);
}

static void look_at(struct watch *watch, struct leak_level *level, const char *version,
                    int64_t now_ns)
{
    struct error error = {0};
    struct leak_look look = {.watch = watch,
                             .level = level,
                             .version = version,
                             .from_ns = now_ns - LATE_NS - watch->options.leak_range_ns,
                             .to_ns = now_ns - LATE_NS,
                             .now_ns = now_ns,
                             .error = &error};
    int64_t begun_ns = monotonic_ns();
    if (!admissions_run_job(watch->server->admissions, ADMIT_QUERY_WHOLE, &watch->server->stopping,
                            run, &look))
        look.result = -EAGAIN;
    if (look.result != -EAGAIN && look.result != -ECANCELED) {
        atomic_fetch_add(&watch->stats.leak_looks, 1);
        level->next_ns = now_ns + watch->options.leak_interval_ns;
    }
    if (look.result < 0 && look.result != -EAGAIN && look.result != -ECANCELED &&
        look.result != -ENOENT)
        watch_failed(watch, &error);
    watch_rested(watch, begun_ns);
}

/* ---- rounds ---- */

static void close_silent(struct watch *watch, const char *name, int64_t now_ns)
{
    pthread_mutex_lock(&watch->book.lock);
    struct watch_tenant *tenant = watch_book_tenant(&watch->book, name);
    for (size_t i = 0; i < tenant->finding_count; i++) {
        struct watch_finding *finding = &tenant->findings[i];
        if (!finding->closed && finding->kind == WATCH_LEAK && now_ns - finding->to_ns > DAY_NS)
            watch_close_finding(watch, finding, WATCH_NO_DATA, now_ns);
    }
    pthread_mutex_unlock(&watch->book.lock);
}

static const char *version_of(const struct version_list *list, const char *service)
{
    const struct version_span *found = NULL;
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->spans[i].service, service) &&
            (!found || list->spans[i].last_ns >= found->last_ns))
            found = &list->spans[i];
    return found ? found->version : "";
}

void watch_leaks(struct watch *watch, const char *tenant, const struct version_list *versions,
                 int64_t now_ns)
{
    struct listing listing = {watch, tenant, now_ns};
    struct store_selection selection = {
        .tenant = tenant, .from_ns = now_ns - watch->options.leak_range_ns, .to_ns = now_ns};
    struct error error = {0};
    size_t looked = 0;
    if (!watch->options.leaks)
        return;
    if (store_series(watch->server->store, &selection, note_level, &listing, &error) < 0)
        watch_failed(watch, &error);
    /* Heaps come before what they explain. */
    for (int resident = 0; resident < 2; resident++)
        for (size_t i = 0; i < watch->levels.count && looked < WATCH_JOBS_PER_ROUND; i++) {
            struct leak_level *level = &watch->levels.list[i];
            if (strcmp(level->tenant, tenant) || is_resident(level->type) != resident ||
                level->next_ns > now_ns || level->last_ns < now_ns - SILENT_NS ||
                atomic_load(&watch->server->stopping))
                continue;
            look_at(watch, level, version_of(versions, level->service), now_ns);
            looked++;
        }
    close_silent(watch, tenant, now_ns);
}
