// SPDX-License-Identifier: Apache-2.0
// `assay store compare`: whether two stores have the same raw windows, by their totals: for each
// tenant, service and type, the number of windows and rows, and the sum of values.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/idtable.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "cli/service/store.h"

#define HOUR_NS 3600000000000ll
#define SHOWN_MAX 20

struct total {
    char *tenant, *service, *type;
    struct {
        uint64_t windows, rows, value; /* values wrap, in both alike */
    } side[2];
};

struct totals {
    struct total *list;
    size_t count, capacity;
    struct id_table index;
    struct store *store;
    const struct store_selection *selection;
    const char *tenant;
    struct progress *progress;
    int side;
    struct error *error;
};

static struct total *find_total(struct totals *totals, const char *service, const char *type)
{
    const char *const texts[] = {totals->tenant, service, type};
    uint64_t hash = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        hash = XXH3_64bits_withSeed(texts[i], strlen(texts[i]) + 1, hash);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&totals->index, &probe)) != ID_NONE)
        if (!strcmp(totals->list[id].tenant, totals->tenant) &&
            !strcmp(totals->list[id].service, service) && !strcmp(totals->list[id].type, type))
            return &totals->list[id];
    array_reserve(totals->list, totals->capacity, totals->count + 1);
    struct total *total = &totals->list[totals->count];
    *total = (struct total){.tenant = memory_strdup(totals->tenant),
                            .service = memory_strdup(service),
                            .type = memory_strdup(type)};
    id_table_insert(&totals->index, hash, (uint32_t)totals->count++);
    return total;
}

static int add_window(void *context, const struct store_profile *window)
{
    struct totals *totals = context;
    const char *service = labels_get(window->labels, LABEL_SERVICE_NAME);
    struct total *total = find_total(totals, service ? service : "", window->type);
    total->side[totals->side].windows++;
    total->side[totals->side].rows += window->row_count;
    for (size_t i = 0; i < window->row_count; i++)
        total->side[totals->side].value += (uint64_t)window->rows[i].value;
    return 0;
}

struct span {
    int64_t first_ns, last_ns;
    bool any;
};

static int add_span(void *context, const struct labels *labels, const char *type, int64_t first_ns,
                    int64_t last_ns)
{
    struct span *span = context;
    (void)labels;
    (void)type;
    span->first_ns = span->any ? MIN(span->first_ns, first_ns) : first_ns;
    span->last_ns = span->any ? MAX(span->last_ns, last_ns) : last_ns;
    span->any = true;
    return 0;
}

/* An hour at a time. */
static int read_tenant(void *context, const char *tenant)
{
    struct totals *totals = context;
    struct store_selection selection = *totals->selection;
    struct store_limits limits = {0};
    struct span span = {0};
    selection.tenant = totals->tenant = tenant;
    int r = store_series(totals->store, &selection, add_span, &span, totals->error);
    int64_t at = MAX(selection.from_ns, span.first_ns);
    while (!r && span.any && at <= span.last_ns && at < totals->selection->to_ns) {
        char text[96];
        int64_t next = MIN((at / HOUR_NS + 1) * HOUR_NS, totals->selection->to_ns);
        snprintf(text, sizeof(text), "reading, %zu services and types", totals->count);
        progress_say(totals->progress, text);
        selection.from_ns = at;
        selection.to_ns = next;
        r = store_scan(totals->store, &selection, &limits, add_window, totals, totals->error);
        at = next;
    }
    return r;
}

static int read_store(const struct store_flags *flags, const char *place, struct totals *totals,
                      struct error *error)
{
    _cleanup_query_ struct query query = {0};
    struct store_selection selection;
    int r = store_open_place(place, true, &totals->store, error);
    if (r < 0)
        return r;
    totals->selection = &selection;
    totals->error = error;
    r = store_select(flags, totals->store, &query, &selection, error);
    if (!r)
        r = selection.tenant ? read_tenant(totals, selection.tenant)
                             : store_tenants(totals->store, read_tenant, totals, error);
    store_close(totals->store);
    if (r < 0)
        error_prefix(error, "%s", place);
    return r;
}

static int say(const struct totals *totals, const char *const places[2])
{
    uint64_t windows = 0, rows = 0, different = 0;
    for (size_t i = 0; i < totals->count; i++) {
        const struct total *total = &totals->list[i];
        windows += total->side[0].windows;
        rows += total->side[0].rows;
        if (!memcmp(&total->side[0], &total->side[1], sizeof(total->side[0])))
            continue;
        if (different++ < SHOWN_MAX)
            for (int side = 0; side < 2; side++)
                fprintf(stderr,
                        "%s: %s, %s, %s: %" PRIu64 " windows, %" PRIu64 " rows, value %" PRIu64
                        "\n",
                        places[side], total->tenant, total->service, total->type,
                        total->side[side].windows, total->side[side].rows, total->side[side].value);
    }
    if (different) {
        fprintf(stderr, "assay: %" PRIu64 " of %zu totals differ.\n", different, totals->count);
        return EXIT_FAILED;
    }
    printf("%" PRIu64 " windows with %" PRIu64 " rows: all %zu totals agree.\n", windows, rows,
           totals->count);
    return EXIT_FINE;
}

int store_compare_command(const struct store_flags *flags, const char *first, const char *second)
{
    const char *const places[2] = {first, second};
    struct totals totals = {.progress = progress_start()};
    struct error error = {0};
    int r = 0;
    for (totals.side = 0; !r && totals.side < 2; totals.side++)
        r = read_store(flags, places[totals.side], &totals, &error);
    progress_stop(&totals.progress);
    int result = r < 0 ? fail(&error) : say(&totals, places);
    for (size_t i = 0; i < totals.count; i++) {
        free(totals.list[i].tenant);
        free(totals.list[i].service);
        free(totals.list[i].type);
    }
    free(totals.list);
    id_table_release(&totals.index);
    return result;
}
