/* SPDX-License-Identifier: Apache-2.0 */
/* What the handlers of costs share. Private to src/server/cost. */
#pragma once

#include "io/json_write.h"
#include "server/handler/handler.h"
#include "server/query/context.h"

#define COST_MONTH_HOURS 730.0 /* a twelfth of a year */

/* The query of a request: CPU time, unless it says which. The caller releases the text. */
struct cost_query {
    struct buffer text;
    int64_t from_ns, to_ns;
};
int cost_query_read(struct http_request *request, struct server *server,
                    struct cost_query *ret_query, struct error *error);
void cost_query_release(struct cost_query *query);
#define _cleanup_cost_query_ __attribute__((cleanup(cost_query_release)))

/* The same as a context, of the client's tenant. */
int cost_context_read(struct query_context *ret_context, struct http_request *request,
                      struct server *server, struct error *error);

/* Money, or null without a price. */
void cost_put_money(struct json_writer *json, const char *key, double value, double price);
void cost_put_price(struct json_writer *json, const struct server *server);
