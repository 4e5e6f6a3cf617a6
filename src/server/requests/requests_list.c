// SPDX-License-Identifier: Apache-2.0
// GET /api/v1/requests: how many requests there were, by service and route, and how long they took.

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "server/handler/answer.h"
#include "server/handler/parameters.h"
#include "server/requests/requests.h"

#define ROUTES_MAX 1000 /* the requests of further ones are one row */
#define ROUTES_DEFAULT 100

struct route {
    char *service, *method, *route;
    struct histogram durations;
};

struct listing {
    struct requests_query *query;
    struct route *routes;
    size_t count, capacity;
    struct id_table index;
    struct histogram all;
};

static void listing_release(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++) {
        free(listing->routes[i].service);
        free(listing->routes[i].method);
        free(listing->routes[i].route);
        histogram_release(&listing->routes[i].durations);
    }
    free(listing->routes);
    id_table_release(&listing->index);
    histogram_release(&listing->all);
}

static struct route *find_route(struct listing *listing, const char *service, const char *method,
                                const char *name)
{
    uint64_t hash = XXH3_64bits(service, strlen(service));
    hash = XXH3_64bits_withSeed(method, strlen(method), hash);
    hash = XXH3_64bits_withSeed(name, strlen(name), hash);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&listing->index, &probe)) != ID_NONE) {
        struct route *route = &listing->routes[id];
        if (!strcmp(route->service, service) && !strcmp(route->method, method) &&
            !strcmp(route->route, name))
            return route;
    }
    /* The row for the others may be the one that is added. */
    bool other = !strcmp(service, REQUESTS_OTHER) && !*method && !strcmp(name, REQUESTS_OTHER);
    if (listing->count >= ROUTES_MAX && !other)
        return find_route(listing, REQUESTS_OTHER, "", REQUESTS_OTHER);
    array_reserve(listing->routes, listing->capacity, listing->count + 1);
    id = (uint32_t)listing->count++;
    listing->routes[id] = (struct route){.service = memory_strdup(service),
                                         .method = memory_strdup(method),
                                         .route = memory_strdup(name)};
    id_table_insert(&listing->index, hash, id);
    return &listing->routes[id];
}

static int add_request(void *context, const struct span_batch *batch, const struct span *span)
{
    struct listing *listing = context;
    bool failed = span->status == SPAN_ERROR;
    if (!requests_band_has(&listing->query->band, span->duration_ns, failed))
        return 0;
    struct route *route = find_route(listing, batch->texts[span->service],
                                     batch->texts[span->method], batch->texts[span->route]);
    histogram_add(&route->durations, span->duration_ns, failed);
    histogram_add(&listing->all, span->duration_ns, failed);
    return 0;
}

static int by_count(const void *a, const void *b)
{
    const struct route *x = a, *y = b;
    if (x->durations.count != y->durations.count)
        return x->durations.count > y->durations.count ? -1 : 1;
    int order = strcmp(x->service, y->service);
    return order ? order : strcmp(x->route, y->route);
}

static void put_counts(struct json_writer *json, const struct histogram *durations, double seconds)
{
    json_member_unsigned(json, "requests", durations->count);
    json_member_unsigned(json, "errors", durations->errors);
    json_member_number(json, "per_second", (double)durations->count / seconds);
    json_member_number(json, "mean",
                       durations->count ? (double)durations->sum_ns / (double)durations->count : 0);
    json_member_signed(json, "p50", histogram_percentile(durations, 50));
    json_member_signed(json, "p90", histogram_percentile(durations, 90));
    json_member_signed(json, "p99", histogram_percentile(durations, 99));
    json_member_signed(json, "max", durations->max_ns);
    json_write_key(json, "histogram");
    histogram_write(durations, json);
}

static int write_listing(struct http_request *request, struct listing *listing, uint64_t limit,
                         const struct span_read *read, struct error *error)
{
    const struct span_query *spans = &listing->query->spans;
    double seconds = (double)(spans->to_ns - spans->from_ns) / 1e9;
    _cleanup_answer_ struct answer answer = {0};
    answer_init(&answer, request, "application/json");
    struct json_writer json = json_writer(&answer.out);
    if (listing->count)
        qsort(listing->routes, listing->count, sizeof(*listing->routes), by_count);
    json_write_object(&json);
    json_member_text(&json, "unit", "nanoseconds");
    json_member_fixed(&json, "from", (double)spans->from_ns / 1e9, 3);
    json_member_fixed(&json, "to", (double)spans->to_ns / 1e9, 3);
    json_member_unsigned(&json, "spans_read", read->spans);
    json_member_unsigned(&json, "damaged_blocks", read->damaged);
    put_counts(&json, &listing->all, seconds);
    json_member_unsigned(&json, "route_count", listing->count);
    json_write_key(&json, "routes");
    json_write_array(&json);
    for (size_t i = 0; i < MIN(listing->count, limit) && buffer_pass(&answer.out); i++) {
        const struct route *route = &listing->routes[i];
        json_write_line(&json);
        json_write_object(&json);
        json_member_text(&json, "service", route->service);
        json_member_text(&json, "method", route->method);
        json_member_text(&json, "route", route->route);
        put_counts(&json, &route->durations, seconds);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    json_write_object_end(&json);
    buffer_add_char(&answer.out, '\n');
    return answer_end(&answer, 0, error);
}

void requests_list(struct http_request *request, void *server)
{
    _cleanup_requests_query_ struct requests_query query = {0};
    struct error error = {0};
    struct span_read read = {0};
    struct listing listing = {.query = &query};
    uint64_t limit = ROUTES_DEFAULT;
    if (!parameters_known(request, "/api/v1/requests"))
        return;
    int r = parameter_number(request, "limit", 1, ROUTES_MAX + 1, &limit, &error);
    if (!r)
        r = requests_query_read(&query, request, server, &error);
    if (!r)
        r = requests_settle(&query, &error);
    if (!r)
        r = requests_each(&query, add_request, &listing, &read, &error);
    if (!r)
        r = write_listing(request, &listing, limit, &read, &error);
    if (r < 0)
        http_respond_failure(request, &error);
    listing_release(&listing);
}
