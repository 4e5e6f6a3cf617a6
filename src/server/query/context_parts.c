// SPDX-License-Identifier: Apache-2.0
// Exact answers about more than fits into the memory of a query: some services at a time.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "profile/naming.h"
#include "query/covered.h"
#include "query/graft.h"
#include "server/query/context.h"

void service_list_release(struct service_list *services)
{
    for (size_t i = 0; i < services->count; i++)
        free(services->names[i]);
    free(services->names);
    *services = (struct service_list){0};
}

static int add_service(void *context, const char *name)
{
    struct service_list *services = context;
    array_reserve(services->names, services->capacity, services->count + 1);
    services->names[services->count++] = memory_strdup(name);
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int service_list_add(struct service_list *services, struct query_context *query_context,
                     struct error *error)
{
    int r = store_label_values(query_context->server->store, &query_context->selection,
                               LABEL_SERVICE_NAME, add_service, services, error);
    if (r < 0 || !services->count)
        return r;
    qsort(services->names, services->count, sizeof(*services->names), compare_names);
    size_t kept = 1;
    for (size_t i = 1; i < services->count; i++) {
        if (strcmp(services->names[kept - 1], services->names[i]))
            services->names[kept++] = services->names[i];
        else
            free(services->names[i]);
    }
    services->count = kept;
    return 0;
}

static void put_name(struct buffer *out, const char *name)
{
    for (; *name; name++) {
        if (strchr(".*+?^${}()|[]\\", *name))
            buffer_add_char(out, '\\');
        buffer_add_char(out, *name);
    }
}

int service_list_select(const struct service_list *services, size_t first, size_t count,
                        struct selector *ret_selector, struct error *error)
{
    _cleanup_buffer_ struct buffer expression = {0};
    char *const *names = services->names + first;
    *ret_selector = (struct selector){0};
    if (count == 1)
        return selector_add(ret_selector, MATCH_EQUAL, LABEL_SERVICE_NAME, names[0], error);
    for (size_t i = 0; i < count; i++) {
        buffer_add_text(&expression, i ? "|" : "");
        put_name(&expression, names[i]);
    }
    return selector_add(ret_selector, MATCH_REGEX, LABEL_SERVICE_NAME, buffer_text(&expression),
                        error);
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

static int give_some(struct giving *giving, const struct service_list *services, size_t first,
                     size_t count, struct error *error)
{
    _cleanup_selector_ struct selector selector = {0};
    int r = service_list_select(services, first, count, &selector, error);
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
    _cleanup_service_list_ struct service_list services = {0};
    int r = service_list_add(&services, giving->query_context, error);
    size_t at = 0, batch = SERVICES_AT_ONCE;
    while (!r && at < services.count) {
        size_t count = MIN(batch, services.count - at);
        r = give_some(giving, &services, at, count, error);
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
