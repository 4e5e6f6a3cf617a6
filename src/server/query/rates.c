// SPDX-License-Identifier: Apache-2.0
// Values by labels and steps: see rates.h.

#include "server/query/rates.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "query/covered.h"
#include "query/naming/maps.h"
#include "query/naming/names.h"
#include "server/symbols/symbols.h"

static void clear(struct rate_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        labels_release(&groups->list[i].labels);
        free(groups->list[i].points);
    }
    groups->count = 0;
    groups->left_out = 0;
}

void rate_groups_release(struct rate_groups *groups)
{
    clear(groups);
    free(groups->list);
    *groups = (struct rate_groups){0};
}

static int note_group(void *context, const struct labels *labels, const struct store_point *points,
                      size_t count)
{
    struct rate_groups *groups = context;
    struct store_point sum = {0};
    if (groups->count >= groups->most) {
        groups->left_out++;
        return 0;
    }
    array_reserve(groups->list, groups->capacity, groups->count + 1);
    struct rate_group *group = &groups->list[groups->count++];
    *group = (struct rate_group){.points = memory_zalloc(count + 1, sizeof(*group->points))};
    labels_copy(&group->labels, labels);
    for (size_t i = 0; i < count; i++) {
        sum.value += points[i].value;
        sum.per_ns += points[i].per_ns;
        group->points[group->count++] =
            (struct rate_point){.time_ns = points[i].time_ns,
                                .value = (double)points[i].value,
                                .rate = covered_rate(points[i].value, points[i].per_ns)};
    }
    group->value = (double)sum.value;
    group->rate = covered_rate(sum.value, sum.per_ns);
    return 0;
}

int rate_groups_read(struct query_context *query_context,
                     const struct store_timeseries_query *query, struct rate_groups *ret_groups,
                     struct store_quality *ret_quality, struct error *error)
{
    struct server *server = query_context->server;
    _cleanup_query_symbols_ struct query_symbols symbols = {
        .store = server->symbols ? symbols_store(server->symbols) : NULL,
        .tenant = query_context->selection.tenant};
    int r;
    do {
        clear(ret_groups);
        r = query_maps_timeseries(server->symbols ? symbols_maps(server->symbols) : NULL, &symbols,
                                  server->store, &query_context->selection, query,
                                  &query_context->limits, note_group, ret_groups, ret_quality,
                                  error);
    } while (query_context_again(query_context, &r, error));
    return r;
}

double rates_unit(const char *type)
{
    size_t length;
    const char *unit = query_type_part(type, 2, &length);
    return length == 11 && !memcmp(unit, "nanoseconds", 11) ? 1e-9 : 1;
}

int rates_check_cpu(const char *type, struct error *error)
{
    size_t length;
    const char *sample = query_type_part(type, 1, &length);
    if (length == 3 && !memcmp(sample, "cpu", 3) && rates_unit(type) < 1)
        return 0;
    return error_set(error, -EINVAL, "Costs are those of CPU time, in nanoseconds; %s isn't.",
                     type);
}
