// SPDX-License-Identifier: Apache-2.0
// Measures answers: hosts, the part of the time that is covered, losses. See quality.h.

#include "query/quality.h"

#include <string.h>

#include "base/memory.h"
#include "label/rules/policy.h"
#include "label/selector.h"
#include "query/covered.h"
#include "query/query.h"

#define SECOND_NS 1000000000ll

void query_quality_add(struct store_quality *sum, const struct store_quality *part)
{
    if (part->windows) {
        sum->first_ns = sum->windows ? MIN(sum->first_ns, part->first_ns) : part->first_ns;
        sum->last_ns = sum->windows ? MAX(sum->last_ns, part->last_ns) : part->last_ns;
    }
    covered_add(sum, part); /* before the totals */
    sum->rows += part->rows;
    sum->windows += part->windows;
    sum->series += part->series;
    sum->blocks += part->blocks;
    sum->total = add_saturated(sum->total, part->total);
    sum->cut = add_saturated(sum->cut, part->cut);
    sum->tiers |= part->tiers;
    sum->damaged_blocks += part->damaged_blocks;
    sum->damaged_files = MAX(sum->damaged_files, part->damaged_files); /* of the same time */
}

static int count_text(void *context, const char *text)
{
    *(uint64_t *)context += *text != 0;
    return 0;
}

static int count_hosts(struct store *store, const struct store_selection *selection,
                       uint64_t *ret_hosts, struct error *error)
{
    static const char *const names[] = {"host", "host.name", "hostname", "instance"};
    int r = 0;
    for (size_t i = 0; !r && !*ret_hosts && i < ARRAY_LENGTH(names); i++)
        r = store_label_values(store, selection, names[i], count_text, ret_hosts, error);
    return r;
}

/* ---- values over the limit ---- */

#define NAMES_MAX 512

struct names {
    char *list[NAMES_MAX];
    size_t count;
};

static int keep_name(void *context, const char *name)
{
    struct names *names = context;
    names->list[names->count++] = memory_strdup(name);
    return names->count == NAMES_MAX;
}

static int find_one(void *context, const char *text)
{
    (void)context;
    (void)text;
    return 1;
}

/* Whether the selection has a series with the label name="other". */
static int has_other(struct store *store, const struct store_selection *selection, const char *name,
                     struct error *error)
{
    const struct selector *asked = selection->selector;
    size_t count = asked ? asked->count : 0;
    if (count >= SELECTOR_MATCHERS_MAX)
        return 0;
    _cleanup_free_ struct matcher *matchers = memory_zalloc(count + 1, sizeof(*matchers));
    if (count)
        memcpy(matchers, asked->matchers, count * sizeof(*matchers));
    matchers[count] = (struct matcher){.kind = MATCH_EQUAL, .name = name, .value = LABEL_OTHER};
    struct selector narrowed = {.matchers = matchers, .count = count + 1};
    struct store_selection own = *selection;
    own.selector = &narrowed;
    return store_label_values(store, &own, name, find_one, NULL, error);
}

static int count_capped(struct store *store, const struct store_selection *selection,
                        uint64_t *ret_capped, struct error *error)
{
    struct names *names = memory_zalloc(1, sizeof(*names));
    int r = store_label_names(store, selection, keep_name, names, error);
    for (size_t i = 0; i < names->count; i++) {
        r = r < 0 ? r : has_other(store, selection, names->list[i], error);
        *ret_capped += r == 1;
        free(names->list[i]);
    }
    free(names);
    return MIN(r, 0);
}

/* ---- losses ---- */

#define LOSS_TYPES_MAX 8

struct losses {
    char types[LOSS_TYPES_MAX][QUERY_TYPE_BYTES];
    size_t count;
};

static int find_losses(void *context, const char *id)
{
    struct losses *losses = context;
    size_t length;
    const char *part = query_type_part(id, 1, &length);
    bool loss =
        (length == 7 && !memcmp(part, "dropped", 7)) || (length == 4 && !memcmp(part, "lost", 4));
    if (loss && losses->count < LOSS_TYPES_MAX && strlen(id) < QUERY_TYPE_BYTES)
        strcpy(losses->types[losses->count++], id);
    return 0;
}

static int ignore_points(void *context, const struct labels *group,
                         const struct store_point *points, size_t count)
{
    (void)context;
    (void)group;
    (void)points;
    (void)count;
    return 0;
}

static int add_losses(struct store *store, const struct store_selection *selection,
                      const struct store_limits *limits, struct query_quality *quality,
                      struct error *error)
{
    struct losses *losses = memory_zalloc(1, sizeof(*losses));
    struct store_selection all = *selection;
    all.type = NULL;
    int r = store_types(store, &all, find_losses, losses, error);
    for (size_t i = 0; !r && i < losses->count; i++) {
        struct store_quality sum = {0};
        struct store_timeseries_query query = {.step_ns = MAX(all.to_ns - all.from_ns, SECOND_NS)};
        all.type = losses->types[i];
        r = store_timeseries(store, &all, &query, limits, ignore_points, NULL, &sum, error);
        quality->has_dropped |= !r && sum.windows;
        quality->dropped = add_saturated(quality->dropped, sum.total);
    }
    free(losses);
    return r;
}

int query_quality_measure(struct store *store, const struct store_selection *selection,
                          const struct store_limits *limits, int64_t now_ns,
                          struct query_quality *quality, struct error *error)
{
    quality->hosts = 0;
    quality->capped_labels = 0;
    quality->has_dropped = false;
    quality->dropped = 0;
    int r = count_hosts(store, selection, &quality->hosts, error);
    if (!r)
        r = count_capped(store, selection, &quality->capped_labels, error);
    quality->covered = covered_share(selection, quality->found.covered_ns, now_ns);
    if (!r)
        r = add_losses(store, selection, limits, quality, error);
    return r;
}
