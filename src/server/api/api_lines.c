// SPDX-License-Identifier: Apache-2.0
// The API's source lines: of one function, or those of a whole selection that cost most.

#include <stdlib.h>
#include <string.h>

#include "server/api/api.h"
#include "server/handler/answer.h"
#include "server/symbols/api/symbols_api.h"
#include "server/symbols/symbols.h"

static int compare_flat(const void *a, const void *b)
{
    const struct line_row *x = a, *y = b;
    if (x->flat != y->flat)
        return x->flat > y->flat ? -1 : 1;
    return (x->cumulative < y->cumulative) - (x->cumulative > y->cumulative);
}

static int compare_cumulative(const void *a, const void *b)
{
    const struct line_row *x = a, *y = b;
    if (x->cumulative != y->cumulative)
        return x->cumulative > y->cumulative ? -1 : 1;
    return (x->flat < y->flat) - (x->flat > y->flat);
}

/* The entries to look at: all, or those of one name. False when the name is unknown. */
static bool choose(const struct naming *naming, const char *function, bool *chosen)
{
    bool any = false;
    for (uint32_t i = 0; i < naming->count; i++) {
        chosen[i] = !function || !strcmp(naming->entries[i].name, function);
        any |= chosen[i];
    }
    return any || !function;
}

static int64_t total_of(const struct profile *profile)
{
    int64_t total = 0;
    for (size_t row = 0; profile->type_count && row < profile->samples.count; row++)
        total = add_saturated(total, profile->samples.values[0][row]);
    return total;
}

static void put_line(struct json_writer *json, const struct profile *profile,
                     const struct naming_entry *entry, const struct line_row *row)
{
    struct naming_entry shown = *entry;
    /* A function may be in several files, as what was inlined into it is. */
    shown.file = profile_text(profile, row->file);
    json_write_line(json);
    json_write_object(json);
    api_put_function(json, &shown);
    json_member_unsigned(json, "line", row->line);
    json_member_signed(json, "flat", row->flat);
    json_member_signed(json, "cum", row->cumulative);
    json_write_object_end(json);
}

static int write_lines(struct http_request *request, struct server *server,
                       const struct profile *profile, const struct query_quality *quality,
                       const char *type, const char *function, int64_t total, enum rank_order order,
                       uint64_t limit, struct error *error)
{
    _cleanup_naming_ struct naming naming = {0};
    _cleanup_answer_ struct answer answer = {0};
    struct json_writer writer = json_writer(&answer.out), *json = &writer;
    size_t count = 0;
    answer_init(&answer, request, "application/json");
    naming_init(&naming, profile);
    _cleanup_free_ bool *chosen = memory_zalloc(naming.count, sizeof(*chosen));
    if (!choose(&naming, function, chosen))
        return api_missing_function(function, error);
    _cleanup_free_ struct line_row *rows =
        profile->type_count ? rank_lines(profile, &naming, 0, chosen, &count) : NULL;
    /* The lines of one function are read from top to bottom, those of many by what they cost. */
    if (!function && count)
        qsort(rows, count, sizeof(*rows),
              order == RANK_BY_CUMULATIVE ? compare_cumulative : compare_flat);
    json_write_object(json);
    api_put_unit(json, type);
    json_member_signed(json, "total", total);
    quality_write(quality, profile, json);
    json_member_unsigned(json, "line_count", count);
    json_write_key(json, "lines");
    json_write_array(json);
    for (size_t i = 0; i < count && i < limit && buffer_pass(json->out); i++)
        put_line(json, profile, &naming.entries[rows[i].entry], &rows[i]);
    json_write_array_end(json);
    _cleanup_free_ bool *wanted = memory_zalloc(profile->string_count, sizeof(*wanted));
    for (size_t i = 0; i < count && i < limit; i++)
        wanted[rows[i].file] = true;
    sources_put_known(symbols_sources(server->symbols), http_request_identity(request)->tenant,
                      profile, wanted, json);
    json_write_object_end(json);
    buffer_add_char(json->out, '\n');
    return answer_end(&answer, 0, error);
}

void api_lines(struct http_request *request, void *server)
{
    _cleanup_query_context_ struct query_context query_context = {0};
    struct error error = {0};
    uint64_t limit = API_ROWS;
    enum rank_order order;
    int64_t total = 0;
    struct query_quality quality = {0};
    const char *function = http_request_query(request, "function");
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_LINES);
    if (!parameters_known(request, "/api/v1/lines"))
        return;
    int r = parameter_number(request, "limit", 1, API_ROWS_MAX, &limit, &error);
    if (!r)
        r = api_asked_order(request, &order, &error);
    if (!r)
        r = query_context_read_level(&query_context, request, server, &error);
    if (!r)
        r = query_context_read_links(&query_context, request, &error);
    query_context.whole = true;
    function = function && *function ? function : NULL;
    if (!r && function) {
        r = query_context_merge_function(&query_context, function, &profile, &quality, &total,
                                         &error);
    } else if (!r) {
        r = query_context_merge(&query_context, &profile, &quality.found, &error);
        total = total_of(&profile);
    }
    if (!r)
        r = query_context_measure(&query_context, &quality, &error);
    if (!r)
        r = write_lines(request, server, &profile, &quality, query_context.query.type, function,
                        total, order, limit, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}
