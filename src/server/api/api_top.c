// SPDX-License-Identifier: Apache-2.0
// The API's table of functions: exact, of everything that is selected.

#include "server/api/api.h"
#include "server/api/table_query.h"
#include "server/handler/answer.h"

static int write_top(struct http_request *request, const struct table_query *query,
                     const struct function_table *table, const struct query_quality *quality,
                     const char *type, struct error *error)
{
    _cleanup_answer_ struct answer answer = {0};
    struct buffer *out = &answer.out;
    answer_init(&answer, request, "application/json");
    buffer_add_char(out, '{');
    api_put_unit(out, type);
    buffer_printf(out, ",\"total\":%lld,", (long long)table->total[CALLTREE_NEW]);
    quality_write(quality, NULL, out);
    table_put_counts(out, query, table, false);
    buffer_add_text(out, ",\"functions\":[");
    for (size_t i = query->offset; i < table->count && i - query->offset < query->limit; i++) {
        const struct function_row *row = &table->rows[i];
        if (!buffer_pass(out))
            break;
        buffer_add_text(out, i > query->offset ? ",\n" : "\n");
        table_put_function(out, table, row);
        buffer_printf(out, ",\"flat\":%lld,\"cum\":%lld}", (long long)row->flat[CALLTREE_NEW],
                      (long long)row->cumulative[CALLTREE_NEW]);
    }
    buffer_add_text(out, "]}\n");
    return answer_end(&answer, 0, error);
}

void api_top(struct http_request *request, void *server)
{
    _cleanup_query_context_ struct query_context query_context = {0};
    _cleanup_table_query_ struct table_query query = {0};
    _cleanup_function_table_ struct function_table table;
    struct query_quality quality = {0};
    struct error error = {0};
    function_table_init(&table);
    if (!parameters_known(request, "/api/v1/top"))
        return;
    int r = table_query_read(&query, request, false, &error);
    if (!r)
        r = query_context_read_level(&query_context, request, server, &error);
    if (!r)
        r = query_context_read_links(&query_context, request, &error);
    struct table_side side = {&query_context, CALLTREE_NEW, &quality};
    if (!r)
        r = table_make(&query, &side, 1, NULL, NULL, &table, &error);
    if (!r)
        r = write_top(request, &query, &table, &quality, query_context.query.type, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}
