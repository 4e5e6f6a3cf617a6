// SPDX-License-Identifier: Apache-2.0
// One look at a version of a service: a comparison with the version before it, and what that means
// for findings.

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "label/quote.h"
#include "server/compare/compared.h"
#include "server/watch/cause.h"
#include "server/watch/watch.h"

#define MISSES_MAX 2 /* comparisons in a row that don't find it close a finding */

struct looking {
    struct watch *watch;
    const struct watch_look *look;
    struct compared_query query;
    struct compared compared;
    struct comparison other; /* a second one of the same table */
    const struct comparison *main;
    const struct compare_row **grown; /* the greatest change first */
    size_t grown_count;
};

static void looking_release(struct looking *looking)
{
    comparison_release(&looking->other);
    compared_release(&looking->compared);
    free(looking->grown);
}

static void write_query(struct buffer *out, const char *service, const char *version)
{
    buffer_add_text(out, "cpu{service_name=");
    label_write_quoted(out, service);
    buffer_add_text(out, ",version=");
    label_write_quoted(out, version);
    buffer_add_char(out, '}');
}

/*
 * Cost per request tells growth from traffic. Without numbers of requests, what grew must have
 * grown both in time and in its share: more traffic changes no share, and a function that vanishes
 * leaves the time of all others as it is.
 */
static int compare_again(struct looking *looking, struct error *error)
{
    const struct compare_table *table = &looking->compared.table;
    struct compare_options options = looking->compared.comparison.options;
    bool requests = table->requests[COMPARE_BASE] > 0 && table->requests[COMPARE_NEW] > 0;
    options.normalize = requests ? COMPARE_PER_REQUEST : COMPARE_PER_SECOND;
    int r = compare(table, &options, &looking->other, error);
    looking->main = requests ? &looking->other : &looking->compared.comparison;
    return r;
}

static bool has_grown(const struct looking *looking, const struct comparison *comparison,
                      size_t row)
{
    const struct compare_measure *total = &comparison->rows[row].total;
    return total->verdict == COMPARE_GREW && total->growth >= looking->watch->options.min_growth;
}

static int by_change(const void *a, const void *b)
{
    const struct compare_row *x = *(const struct compare_row *const *)a;
    const struct compare_row *y = *(const struct compare_row *const *)b;
    if (x->total.change != y->total.change)
        return x->total.change > y->total.change ? -1 : 1;
    return strcmp(x->function->name, y->function->name);
}

static void find_grown(struct looking *looking)
{
    const struct comparison *main = looking->main, *other = &looking->other;
    looking->grown = memory_alloc((main->count + 1) * sizeof(*looking->grown));
    for (size_t i = 0; i < main->count; i++) {
        const struct compare_function *function = main->rows[i].function;
        if (!has_grown(looking, main, i) || !has_grown(looking, other, i))
            continue;
        if (function->length >= WATCH_FUNCTION_BYTES ||
            !utf8_valid(function->name, function->length)) {
            atomic_fetch_add(&looking->watch->stats.left_out, 1);
            continue;
        }
        looking->grown[looking->grown_count++] = &main->rows[i];
    }
    if (looking->grown_count)
        qsort(looking->grown, looking->grown_count, sizeof(*looking->grown), by_change);
    looking->grown_count = MIN(looking->grown_count, (size_t)CAUSE_CANDIDATES_MAX);
}

static const struct compare_row *grown_of(const struct looking *looking, const char *function)
{
    for (size_t i = 0; i < looking->grown_count; i++)
        if (!strcmp(looking->grown[i]->function->name, function))
            return looking->grown[i];
    return NULL;
}

static const char *type_of(const struct looking *looking)
{
    return looking->compared.sides[COMPARE_NEW].context.query.type;
}

/* ---- findings; with the lock held ---- */

static void renew(const struct looking *looking, struct watch_finding *finding,
                  const struct compare_row *row)
{
    const struct watch_look *look = looking->look;
    bool requests = looking->main->options.normalize == COMPARE_PER_REQUEST;
    finding->seen_ns = look->now_ns;
    finding->base_from_ns = look->base_from_ns;
    finding->base_to_ns = look->base_to_ns;
    finding->from_ns = look->from_ns;
    finding->to_ns = look->to_ns;
    finding->growth = row->total.growth;
    finding->growth_low = row->total.growth_low;
    finding->growth_high = row->total.growth_high;
    finding->base_share = row->share[COMPARE_BASE];
    finding->share = row->share[COMPARE_NEW];
    finding->misses = 0;
    snprintf(finding->unit, sizeof(finding->unit), "%s", requests ? "per request" : "share");
}

static void miss(const struct looking *looking, struct watch_finding *finding)
{
    finding->to_ns = looking->look->to_ns;
    if (++finding->misses < MISSES_MAX)
        return;
    finding->closed = WATCH_GONE;
    finding->closed_ns = looking->look->now_ns;
    atomic_fetch_add(&looking->watch->stats.closed, 1);
    log_info("%s %s: the growth of %s is gone.", finding->service, finding->version,
             finding->function);
}

/* Those that this look is about: of its version, or the one that it names. */
static void renew_known(const struct looking *looking, struct watch_tenant *tenant)
{
    const struct watch_look *look = looking->look;
    for (size_t i = 0; i < tenant->finding_count; i++) {
        struct watch_finding *finding = &tenant->findings[i];
        bool meant = look->finding ? !strcmp(finding->id, look->finding)
                                   : !strcmp(finding->version, look->version);
        if (finding->closed || finding->kind != look->kind || !meant ||
            strcmp(finding->service, look->service) != 0 ||
            strcmp(finding->type, type_of(looking)) != 0)
            continue;
        const struct compare_row *row = grown_of(looking, finding->function);
        if (row)
            renew(looking, finding, row);
        else
            miss(looking, finding);
    }
}

static void open_one(const struct looking *looking, struct watch_tenant *tenant,
                     const struct compare_row *row)
{
    const struct watch_look *look = looking->look;
    char function[WATCH_FUNCTION_BYTES];
    struct watch_finding finding = {.kind = look->kind,
                                    .service = (char *)look->service,
                                    .version = (char *)look->version,
                                    .base_version = (char *)look->base_version,
                                    .type = (char *)type_of(looking),
                                    .function = function,
                                    .opened_ns = look->now_ns};
    snprintf(function, sizeof(function), "%.*s", (int)row->function->length, row->function->name);
    renew(looking, &finding, row);
    if (!watch_finding_add(&looking->watch->book, tenant, &finding))
        return;
    atomic_fetch_add(&looking->watch->stats.opened, 1);
    if (look->kind == WATCH_CHANGE)
        log_info("%s %s: %s grew by %.1f%% within the version.", look->service, look->version,
                 function, finding.growth * 100);
    else
        log_info("%s %s: %s grew by %.1f%% since %s.", look->service, look->version, function,
                 finding.growth * 100, look->base_version);
}

static void open_new(struct looking *looking, struct watch_tenant *tenant)
{
    bool known[CAUSE_CANDIDATES_MAX];
    struct cause_side sides[COMPARE_SIDES];
    for (size_t i = 0; i < looking->grown_count; i++) {
        const char *service = looking->look->service, *function = looking->grown[i]->function->name;
        known[i] =
            watch_finding_open(tenant, WATCH_REGRESSION, service, type_of(looking), function) ||
            watch_finding_open(tenant, WATCH_CHANGE, service, type_of(looking), function);
    }
    for (int i = 0; i < COMPARE_SIDES; i++)
        sides[i] = (struct cause_side){.profile = &looking->compared.sides[i].profile,
                                       .naming = &looking->compared.sides[i].naming,
                                       .exposure = looking->main->exposure[i]};
    size_t count = causes_keep(sides, looking->grown, known, looking->grown_count);
    for (size_t i = 0; i < MIN(count, (size_t)CAUSES_MAX); i++)
        open_one(looking, tenant, looking->grown[i]);
}

static void apply(struct looking *looking)
{
    struct watch_book *book = &looking->watch->book;
    pthread_mutex_lock(&book->lock);
    struct watch_tenant *tenant = watch_book_tenant(book, looking->look->tenant);
    /* A change is judged by the time before it, and later hours have it in their base. */
    if (looking->look->kind != WATCH_CHANGE || looking->look->finding)
        renew_known(looking, tenant);
    if (!looking->look->finding && looking->grown_count)
        open_new(looking, tenant);
    book->unsaved = true;
    pthread_mutex_unlock(&book->lock);
}

/* Traffic differs from hour to hour, and alike from day to day: of what grew, keeps what also grew
 * against the same time of the day before, where there is data. */
static int since_yesterday(struct looking *looking, struct error *error)
{
    static const int64_t day_ns = 86400000000000ll;
    const struct watch_look *look = looking->look;
    const struct compared_query *today = &looking->query;
    _cleanup_buffer_ struct buffer base = {0};
    struct compared_query query = *today;
    struct looking *other = memory_zalloc(1, sizeof(*other));
    buffer_add_text(&base, "cpu{service_name=");
    label_write_quoted(&base, look->service);
    buffer_add_char(&base, '}');
    query.sides[COMPARE_BASE].query = buffer_text(&base);
    query.sides[COMPARE_BASE].from_ns = look->from_ns - day_ns;
    query.sides[COMPARE_BASE].to_ns = look->to_ns - day_ns;
    other->watch = looking->watch;
    other->look = look;
    int r = compared_run(looking->watch->server, &query, &other->compared, error);
    if (!r)
        r = compare_again(other, error);
    if (!r) {
        size_t kept = 0;
        find_grown(other);
        for (size_t i = 0; i < looking->grown_count; i++)
            if (grown_of(other, looking->grown[i]->function->name))
                looking->grown[kept++] = looking->grown[i];
        looking->grown_count = kept;
    }
    looking_release(other);
    free(other);
    return r == -ENOENT ? 0 : r;
}

int watch_look(struct watch *watch, const struct watch_look *look, struct error *error)
{
    _cleanup_buffer_ struct buffer base = {0}, now = {0};
    struct looking *looking = memory_zalloc(1, sizeof(*looking));
    looking->watch = watch;
    looking->look = look;
    write_query(&base, look->service, look->base_version);
    write_query(&now, look->service, look->version);
    looking->query = (struct compared_query){
        .tenant = look->tenant,
        .cancelled = &watch->server->stopping,
        .sides = {{buffer_text(&base), look->base_from_ns, look->base_to_ns},
                  {buffer_text(&now), look->from_ns, look->to_ns}},
        .options = {.normalize = COMPARE_PER_TOTAL,
                    .false_discovery_rate = look->kind == WATCH_CHANGE
                                                ? WATCH_CHANGE_DISCOVERIES
                                                : WATCH_FALSE_DISCOVERIES / WATCH_LOOKS,
                    .min_share = watch->options.min_share},
    };
    int r = compared_run(watch->server, &looking->query, &looking->compared, error);
    if (!r)
        r = compare_again(looking, error);
    if (!r)
        find_grown(looking);
    if (!r && look->kind == WATCH_CHANGE && !look->finding && looking->grown_count)
        r = since_yesterday(looking, error);
    if (!r)
        apply(looking);
    looking_release(looking);
    free(looking);
    return r;
}
