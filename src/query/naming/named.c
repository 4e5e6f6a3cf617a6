// SPDX-License-Identifier: Apache-2.0
// How much of a profile has names: see named.h.

#include "query/naming/named.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

void query_named_release(struct query_named *named)
{
    free(named->list);
    *named = (struct query_named){0};
}

static int by_value(const void *a, const void *b)
{
    const struct query_nameless *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? 1 : -1;
    return (x->mapping > y->mapping) - (x->mapping < y->mapping);
}

/* One walk down each sample's stack; a mapping counts once for each. */
static void count_stacks(const struct profile *profile, struct query_named *named,
                         struct query_nameless *of_mapping)
{
    _cleanup_free_ size_t *seen = memory_zalloc(profile->mapping_count + 1, sizeof(*seen));
    for (size_t i = 0; i < profile->samples.count; i++) {
        double value = fabs((double)profile->samples.values[0][i]);
        for (uint32_t node = profile->samples.node[i]; node; node = profile->nodes[node].parent) {
            const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
            named->all += value;
            if (frame->function) {
                named->named += value;
                continue;
            }
            if (seen[frame->mapping] == i + 1)
                continue;
            seen[frame->mapping] = i + 1;
            of_mapping[frame->mapping].value += value;
        }
    }
}

void query_count_named(const struct profile *profile, struct query_named *ret_named)
{
    struct query_named named = {0};
    size_t count = profile->mapping_count ? profile->mapping_count : 1;
    struct query_nameless *list = memory_zalloc(count, sizeof(*list));
    if (profile->type_count)
        count_stacks(profile, &named, list);
    for (uint32_t i = 1; i < profile->frame_count; i++)
        if (!profile->frames[i].function)
            list[profile->frames[i].mapping].frames++;
    for (uint32_t i = 0; i < count; i++)
        list[i].mapping = i;
    qsort(list, count, sizeof(*list), by_value);
    while (named.count < count && list[named.count].value > 0)
        named.count++;
    named.list = list;
    *ret_named = named;
}
