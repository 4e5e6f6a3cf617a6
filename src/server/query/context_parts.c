// SPDX-License-Identifier: Apache-2.0
// Exact answers about more than fits into the memory of a query: some services at a time.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "profile/naming.h"
#include "query/covered.h"
#include "query/graft.h"
#include "server/query/context.h"

#define BATCH_MAX 64 /* services in one merge; their names are one expression */

struct service_list {
    char **names;
    size_t count, capacity;
};

static void service_list_release(struct service_list *services)
{
    for (size_t i = 0; i < services->count; i++)
        free(services->names[i]);
    free(services->names);
}

static int add_service(void *context, const char *name)
{
    struct service_list *services = context;
    array_reserve(services->names, services->capacity, services->count + 1);
    services->names[services->count++] = memory_strdup(name);
    return 0;
}

struct giving {
    struct query_context *query_context;
    enum profile_detail detail;
    query_context_part_fn *fn;
    void *context;
    struct store_quality found;
    double unnamed, all;
    bool given;
};

static int give(struct giving *giving, struct profile *profile, struct error *error)
{
    giving->given = true;
    quality_count_unnamed(profile, &giving->unnamed, &giving->all);
    return giving->fn(giving->context, profile, error);
}

/* `matcher` NULL: all in one. `counts`: what is found adds to the quality. */
static int give_part(struct giving *giving, const struct matcher *matcher, bool counts,
                     struct error *error)
{
    _cleanup_profile_ struct profile profile;
    struct store_quality quality = {0};
    profile_init(&profile, giving->detail);
    int r = matcher ? query_context_merge_matching(giving->query_context, matcher, &profile,
                                                   &quality, error)
                    : query_context_merge(giving->query_context, &profile, &quality, error);
    if (r < 0)
        return r;
    if (counts)
        query_quality_add(&giving->found, &quality);
    return give(giving, &profile, error);
}

/* A service that is too large by itself: a part of its stacks after the other. Their quality is
 * each time that of all. */
static int give_stacks(struct giving *giving, const struct matcher *matcher, struct error *error)
{
    struct store_limits *limits = &giving->query_context->limits;
    uint32_t part = 0, parts = 2;
    int r = -E2BIG;
    if (query_links_any(&giving->query_context->links))
        return r; /* these are not merged by stacks */
    while (part < parts) {
        limits->stack_part = part;
        limits->stack_parts = parts;
        giving->given = false;
        r = give_part(giving, matcher, part == 0, error);
        if (r == -E2BIG && !giving->given && parts < STORE_STACK_PARTS_MAX) {
            part *= 2; /* the halves of those that were given already */
            parts *= 2;
            continue;
        }
        if (r < 0)
            break;
        part++;
    }
    limits->stack_part = limits->stack_parts = 0;
    giving->given = true;
    return r;
}

static void put_name(struct buffer *out, const char *name)
{
    for (; *name; name++) {
        if (strchr(".*+?^${}()|[]\\", *name))
            buffer_add_char(out, '\\');
        buffer_add_char(out, *name);
    }
}

static int give_some(struct giving *giving, char *const *names, size_t count, struct error *error)
{
    _cleanup_selector_ struct selector selector = {0};
    _cleanup_buffer_ struct buffer expression = {0};
    for (size_t i = 0; i < count; i++) {
        buffer_add_text(&expression, i ? "|" : "");
        put_name(&expression, names[i]);
    }
    int r = count == 1 ? selector_add(&selector, MATCH_EQUAL, LABEL_SERVICE_NAME, names[0], error)
                       : selector_add(&selector, MATCH_REGEX, LABEL_SERVICE_NAME,
                                      buffer_text(&expression), error);
    giving->given = false;
    if (!r)
        r = give_part(giving, &selector.matchers[0], true, error);
    if (r == -E2BIG && !giving->given && count == 1)
        r = give_stacks(giving, &selector.matchers[0], error);
    return r;
}

/* As many at a time as fit, since each merge has a cost of its own. */
static int give_services(struct giving *giving, struct error *error)
{
    _cleanup_(service_list_release) struct service_list services = {0};
    struct query_context *query_context = giving->query_context;
    int r = store_label_values(query_context->server->store, &query_context->selection,
                               LABEL_SERVICE_NAME, add_service, &services, error);
    size_t at = 0, batch = BATCH_MAX;
    while (!r && at < services.count) {
        size_t count = MIN(batch, services.count - at);
        r = give_some(giving, services.names + at, count, error);
        if (r == -E2BIG && !giving->given && count > 1) {
            batch = count / 2;
            r = 0;
        } else {
            at += count;
        }
    }
    return r;
}

int query_context_each(struct query_context *query_context, enum profile_detail detail,
                       query_context_part_fn *fn, void *context, struct query_quality *quality,
                       struct error *error)
{
    struct giving giving = {
        .query_context = query_context, .detail = detail, .fn = fn, .context = context};
    query_context->whole = true;
    query_context->limits.smallest_share = 0;
    int r = give_part(&giving, NULL, true, error);
    if (r == -E2BIG && !giving.given)
        r = give_services(&giving, error);
    quality->found = giving.found;
    quality->has_unnamed = true;
    quality->unnamed_share = giving.all > 0 ? giving.unnamed / giving.all : 0;
    return r;
}

/* ---- the stacks of one function ---- */

struct picking {
    const struct query_context *query_context;
    const char *function;
    struct graft graft;
    unsigned type; /* of the result */
    int64_t total;
};

/* Which nodes have the function at or above them. */
static bool *find_function(const struct profile *profile, const char *function)
{
    _cleanup_naming_ struct naming naming = {0};
    bool *inside = memory_zalloc(profile->node_count, sizeof(*inside));
    naming_init(&naming, profile);
    _cleanup_free_ bool *named = memory_zalloc(naming.count + 1u, sizeof(*named));
    for (uint32_t i = 0; i < naming.count; i++)
        named[i] = !strcmp(naming.entries[i].name, function);
    for (uint32_t node = 1; node < profile->node_count; node++) {
        uint32_t entry = naming.of_frame[profile->nodes[node].frame];
        inside[node] =
            inside[profile->nodes[node].parent] || (entry != NAMING_NONE && named[entry]);
    }
    return inside;
}

static int pick_function(void *context, struct profile *profile, struct error *error)
{
    struct picking *picking = context;
    struct profile *to = picking->graft.to;
    const struct profile_samples *samples = &profile->samples;
    if (!profile->type_count)
        return 0;
    picking->type =
        profile_type(to, profile_cstring(to, profile_text(profile, profile->types[0].type)),
                     profile_cstring(to, profile_text(profile, profile->types[0].unit)));
    _cleanup_free_ bool *inside = find_function(profile, picking->function);
    graft_from(&picking->graft, profile);
    for (size_t row = 0; row < samples->count; row++) {
        int64_t value = samples->values[0][row];
        picking->total = add_saturated(picking->total, value);
        if (!value || !inside[samples->node[row]])
            continue;
        uint32_t node = graft_node(&picking->graft, samples->node[row]);
        profile_add_value(to, profile_sample(to, node, 0, 0, 0), picking->type, value);
    }
    size_t limit = picking->query_context->limits.memory_bytes;
    return limit && profile_memory(to) > limit
               ? query_context_too_large(picking->query_context, error)
               : 0;
}

int query_context_merge_function(struct query_context *query_context, const char *function,
                                 struct profile *profile, struct query_quality *quality,
                                 int64_t *ret_total, struct error *error)
{
    struct picking picking = {
        .query_context = query_context, .function = function, .graft = {.to = profile}};
    int r =
        query_context_each(query_context, profile->detail, pick_function, &picking, quality, error);
    graft_release(&picking.graft);
    profile->time_ns = quality->found.first_ns;
    profile->duration_ns = covered_duration(query_context->selection.type, &quality->found);
    if (!r)
        *ret_total = picking.total;
    return r;
}
