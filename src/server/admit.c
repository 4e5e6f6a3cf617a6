// SPDX-License-Identifier: Apache-2.0
// Memory of pushes and queries, which take it from one account, with housekeeping. A push takes by
// its length, since what it will hold isn't known before, and more when it turns out to hold more.
// A query begins with a small part of what its stacks and the picture of them may need, since most
// need no more, and takes all of it when it turns out to. Who finds nothing left is told to come
// back.
//
// Queries that have begun are at most as many as leave enough for one of them to take all: so those
// that wait for more never wait for each other.

#include "server/admit.h"

#include <string.h>

#include "server/answer.h"
#include "server/receive.h"

#define EXPANSION 12             /* bytes in memory for each that is sent, most of the time */
#define PUSH_BYTES (128u << 10)  /* whatever its length */
#define UNKNOWN_BYTES (1u << 20) /* when the sender doesn't say its length */
#define PUSH_WAIT_MS 250
#define STEP_BYTES (1u << 20) /* taken at once when more is needed */
#define QUERY_WAIT_MS 10000
#define QUERY_PARTS 2   /* as stacks, and as what is sent */
#define LARGEST_PARTS 3 /* of a comparison: the stacks of both sides */
#define FIRST_SHARE 4   /* of a profile's memory: what a query begins with */
#define FIRST_BYTES_MIN (64u << 10)

/* What the query of this thread has, so that it can take more, or give a part back early. */
static _Thread_local struct taken {
    struct server *server; /* NULL: there is none */
    const atomic_bool *cancelled;
    size_t bytes, rest_bytes; /* the rest is what it may still take */
    size_t profile_bytes;     /* of them, for each profile that it merges */
} taken;

static size_t push_memory(struct server *server, struct http_request *request)
{
    int64_t length = http_request_content_length(request);
    uint64_t bytes = length < 0 ? UNKNOWN_BYTES : (uint64_t)length;
    bytes = PUSH_BYTES + EXPANSION * MIN(bytes, ingest_limits(&server->ingest).body_bytes);
    return (size_t)MIN(bytes, (uint64_t)server->memory.limit_bytes / 2);
}

/* ---- memory that grows ---- */

static bool take_more(struct memory_meter *meter)
{
    struct admission *admission = (struct admission *)meter; /* its first member */
    size_t needed = meter->used_bytes - meter->granted_bytes;
    size_t left = budget_fit(admission->budget, SIZE_MAX) - admission->taken_bytes;
    size_t step = MIN(MAX(needed, (size_t)STEP_BYTES), left);
    if (step < needed) {
        admission->too_large = true;
        return false;
    }
    if (!budget_wait(admission->budget, step, PUSH_WAIT_MS, admission->cancelled))
        return false;
    admission->taken_bytes += step;
    meter->granted_bytes += step;
    return true;
}

bool admission_begin(struct admission *admission, struct budget *budget, size_t bytes,
                     unsigned wait_ms, const atomic_bool *cancelled)
{
    bytes = budget_fit(budget, bytes);
    *admission = (struct admission){.budget = budget, .cancelled = cancelled, .taken_bytes = bytes};
    admission->meter = (struct memory_meter){.granted_bytes = bytes, .more = take_more};
    if (!budget_wait(budget, bytes, wait_ms, cancelled))
        return false;
    memory_meter = &admission->meter;
    return true;
}

void admission_end(struct admission *admission)
{
    memory_meter = NULL;
    budget_give(admission->budget, admission->taken_bytes);
}

void admission_kept(size_t before, size_t bytes)
{
    if (!memory_meter)
        return;
    memory_meter->used_bytes = MIN(before + bytes, memory_meter->used_bytes);
    memory_meter->full = false;
}

int admission_explain(int r, struct error *error)
{
    if (r != -E2BIG || !memory_full())
        return r;
    const struct admission *admission = (const struct admission *)memory_meter;
    if (!admission->too_large)
        return error_set(error, -EAGAIN,
                         "Reading it takes more memory than other pushes and queries leave; send "
                         "again in a moment.");
    return error_set(error, -E2BIG,
                     "Reading it takes more than the %zu MiB that the server's memory limit leaves "
                     "for pushes; send less at once, or give the server more memory.",
                     budget_fit(admission->budget, SIZE_MAX) >> 20);
}

/* ---- pushes and queries ---- */

void admit_push(struct http_request *request, void *userdata, server_handler *handler)
{
    struct server *server = userdata;
    struct admission admission;
    if (admission_begin(&admission, &server->memory, push_memory(server, request), PUSH_WAIT_MS,
                        http_request_cancel_flag(request))) {
        handler(request, server);
        admission_end(&admission);
        return;
    }
    _cleanup_receipt_ struct receipt receipt;
    struct error error = {0};
    atomic_fetch_add(&server->pushes_without_memory, 1);
    if (!receipt_init(&receipt, request, server))
        return;
    http_respond_header(request, "Retry-After", "1");
    receipt_finish(&receipt,
                   error_set(&error, -EAGAIN,
                             "Other pushes and queries have used up the server's memory limit; "
                             "send again in a moment."),
                   &error);
}

static unsigned query_parts(const struct http_request *request, server_handler *handler)
{
    bool compares = handler == api_diff || handler == render_diff || handler == api_files_diff ||
                    (handler == querier_call && !strcmp(http_request_rest(request), "Diff"));
    return compares ? LARGEST_PARTS : QUERY_PARTS;
}

/* What a query begins with: nothing less than all where there is no room for several, or where it
 * is known that it will need it. */
static size_t first_bytes(struct server *server, server_handler *handler, size_t profile_bytes)
{
    size_t largest = budget_fit(&server->memory, LARGEST_PARTS * profile_bytes);
    size_t spare = budget_fit(&server->memory, SIZE_MAX) - largest;
    size_t first = MIN(profile_bytes / FIRST_SHARE, spare / ADMIT_STARTERS);
    bool whole = first < FIRST_BYTES_MIN || handler == api_files_flame ||
                 handler == api_files_diff || handler == symbols_missing;
    return whole ? SIZE_MAX : first;
}

static bool wait_for(struct budget *budget, size_t bytes)
{
    return budget_wait(budget, bytes, QUERY_WAIT_MS, taken.cancelled);
}

static bool take_first(struct server *server, const struct http_request *request,
                       server_handler *handler)
{
    unsigned parts = query_parts(request, handler);
    size_t profile = atomic_load(&server->query_memory_bytes);
    size_t all = budget_fit(&server->memory, parts * profile);
    size_t first = MIN(first_bytes(server, handler, profile), all);
    bool starter = first < all;
    if (starter && !wait_for(&server->starters, 1))
        return false;
    if (!wait_for(&server->memory, first)) {
        if (starter)
            budget_give(&server->starters, 1);
        return false;
    }
    taken.server = server;
    taken.bytes = first;
    taken.rest_bytes = all - first;
    taken.profile_bytes = starter ? first / parts : profile;
    return true;
}

/* It has begun, and is no more one of those that may have to wait for the rest. */
static void end_start(struct taken *query)
{
    if (query->rest_bytes)
        budget_give(&query->server->starters, 1);
    query->rest_bytes = 0;
}

static void have_rest(struct taken *query)
{
    query->bytes += query->rest_bytes;
    query->profile_bytes = atomic_load(&query->server->query_memory_bytes);
    end_start(query);
}

void admit_query(struct http_request *request, void *userdata, server_handler *handler)
{
    struct server *server = userdata;
    taken.cancelled = http_request_cancel_flag(request);
    if (!take_first(server, request, handler)) {
        http_respond_header(request, "Retry-After", "1");
        http_respond_error(request, 503,
                           "Other queries and pushes have used up the server's memory limit; ask "
                           "again in a moment.");
        return;
    }
    handler(request, server);
    end_start(&taken);
    budget_give(&server->memory, taken.bytes);
    taken.server = NULL;
    taken.bytes = 0;
}

size_t admit_profile_bytes(struct server *server)
{
    return taken.server ? taken.profile_bytes : atomic_load(&server->query_memory_bytes);
}

bool admit_is_part(void)
{
    return taken.rest_bytes != 0;
}

int admit_rest(struct error *error)
{
    if (!taken.rest_bytes)
        return 0;
    if (!wait_for(&taken.server->memory, taken.rest_bytes))
        return error_set(error, -EAGAIN,
                         "The answer takes more memory than other queries and pushes leave; ask "
                         "again in a moment.");
    have_rest(&taken);
    return 0;
}

static size_t take_rest(void *context)
{
    struct taken *query = context;
    if (query->rest_bytes && budget_take(&query->server->memory, query->rest_bytes))
        have_rest(query);
    return query->profile_bytes;
}

void admit_limits(struct server *server, struct store_limits *limits)
{
    limits->memory_bytes = admit_profile_bytes(server);
    limits->more = taken.rest_bytes ? take_rest : NULL;
    limits->more_context = &taken;
}

void admit_keep(size_t bytes)
{
    size_t kept = MIN(bytes ? bytes : taken.bytes / 2, taken.bytes);
    end_start(&taken);
    if (kept < taken.bytes)
        budget_give(&taken.server->memory, taken.bytes - kept);
    taken.bytes = kept;
}
