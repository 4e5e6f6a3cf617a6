// SPDX-License-Identifier: Apache-2.0
// Queries and prices of costs: see cost_parts.h.

#include "server/cost/cost_parts.h"

#include "server/query/rates.h"

void cost_query_release(struct cost_query *query)
{
    buffer_release(&query->text);
}

int cost_query_read(struct http_request *request, struct server *server,
                    struct cost_query *ret_query, struct error *error)
{
    const char *query = http_request_query(request, "query");
    struct query_context whole = {0};
    int r = query_context_read(&whole, request, server, "", false, error);
    *ret_query =
        (struct cost_query){.from_ns = whole.selection.from_ns, .to_ns = whole.selection.to_ns};
    query_context_release(&whole);
    buffer_printf(&ret_query->text, "%s%s", !query || !*query || *query == '{' ? "cpu" : "",
                  query ? query : "");
    return r;
}

int cost_context_read(struct query_context *ret_context, struct http_request *request,
                      struct server *server, struct error *error)
{
    _cleanup_cost_query_ struct cost_query query = {0};
    int r = cost_query_read(request, server, &query, error);
    if (!r)
        r = query_context_init(ret_context, request, server, buffer_text(&query.text),
                               query.from_ns, query.to_ns, true, error);
    return r < 0 ? r : rates_check_cpu(ret_context->query.type, error);
}

void cost_put_money(struct json_writer *json, const char *key, double value, double price)
{
    if (price > 0)
        json_member_number(json, key, value * price);
    else
        json_member_null(json, key);
}

void cost_put_price(struct json_writer *json, const struct server *server)
{
    if (server->core_hour > 0)
        json_member_number(json, "core_hour", server->core_hour);
    else
        json_member_null(json, "core_hour");
    json_member_text(json, "currency", server->currency);
}
