// SPDX-License-Identifier: Apache-2.0
// Memory of pushes and queries, which take it from one account, with housekeeping. A push takes by
// its length, since what it will hold isn't known before; a query as much as its stacks and the
// picture of them may need. Who finds nothing left is told to come back.

#include <string.h>

#include "server/answer.h"
#include "server/receive.h"

#define EXPANSION 12             /* bytes in memory for each that is sent, most of the time */
#define PUSH_BYTES (128u << 10)  /* whatever its length */
#define UNKNOWN_BYTES (1u << 20) /* when the sender doesn't say its length */
#define PUSH_WAIT_MS 250
#define QUERY_WAIT_MS 10000

/* What the query of this thread has, so that it can give a part back early. */
static _Thread_local struct {
    struct budget *budget;
    size_t bytes;
} taken;

static size_t push_memory(struct server *server, struct http_request *request)
{
    int64_t length = http_request_content_length(request);
    uint64_t bytes = length < 0 ? UNKNOWN_BYTES : (uint64_t)length;
    bytes = PUSH_BYTES + EXPANSION * MIN(bytes, ingest_limits(&server->ingest).body_bytes);
    return (size_t)MIN(bytes, (uint64_t)server->memory.limit_bytes / 2);
}

void admit_push(struct http_request *request, void *userdata, server_handler *handler)
{
    struct server *server = userdata;
    size_t bytes = push_memory(server, request);
    if (budget_wait(&server->memory, bytes, PUSH_WAIT_MS, http_request_cancel_flag(request))) {
        handler(request, server);
        budget_give(&server->memory, bytes);
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

void admit_query(struct http_request *request, void *userdata, server_handler *handler)
{
    struct server *server = userdata;
    size_t bytes =
        2 * atomic_load(&server->query_memory_bytes); /* as stacks, and as what is sent */
    if (!budget_wait(&server->memory, bytes, QUERY_WAIT_MS, http_request_cancel_flag(request))) {
        http_respond_header(request, "Retry-After", "1");
        http_respond_error(request, 503,
                           "Other queries and pushes have used up the server's memory limit; ask "
                           "again in a moment.");
        return;
    }
    taken.budget = &server->memory;
    taken.bytes = budget_fit(&server->memory, bytes);
    handler(request, server);
    budget_give(&server->memory, taken.bytes);
    taken.bytes = 0;
}

void admit_keep(size_t bytes)
{
    size_t kept = MIN(bytes ? bytes : taken.bytes / 2, taken.bytes);
    if (kept < taken.bytes)
        budget_give(taken.budget, taken.bytes - kept);
    taken.bytes = kept;
}
