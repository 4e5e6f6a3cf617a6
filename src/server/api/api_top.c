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
    struct json_writer writer = json_writer(&answer.out), *json = &writer;
    answer_init(&answer, request, "application/json");
    json_write_object(json);
    api_put_unit(json, type);
    json_member_signed(json, "total", table->total[CALLTREE_NEW]);
    quality_write(quality, NULL, json);
    table_put_counts(json, query, table, false);
    json_write_key(json, "functions");
    json_write_array(json);
    for (size_t i = query->offset; i < table->count && i - query->offset < query->limit; i++) {
        const struct function_row *row = &table->rows[i];
        if (!buffer_pass(json->out))
            break;
        json_write_line(json);
        json_write_object(json);
        table_put_function(json, table, row);
        json_member_signed(json, "flat", row->flat[CALLTREE_NEW]);
        json_member_signed(json, "cum", row->cumulative[CALLTREE_NEW]);
        json_write_object_end(json);
    }
    json_write_array_end(json);
    json_write_object_end(json);
    buffer_add_char(json->out, '\n');
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
