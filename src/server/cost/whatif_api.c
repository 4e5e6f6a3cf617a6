// SPDX-License-Identifier: Apache-2.0
// GET /api/v1/whatif: what a faster function would save.

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/api.h"
#include "server/cost/cost.h"
#include "server/cost/cost_parts.h"
#include "server/query/rates.h"

struct whatif {
    const char *function;
    double faster; /* by this share of its time */
    enum store_count count;
    double cores, part; /* of all, and of the function */
};

/* "30%" or "0.3". */
static int read_faster(struct http_request *request, double *ret_share, struct error *error)
{
    const char *text = http_request_query(request, "faster");
    char *end = NULL;
    double value = text && *text ? strtod(text, &end) : NAN;
    if (end && !strcmp(end, "%"))
        value /= 100;
    else if (!end || *end)
        value = NAN;
    if (!(value > 0 && value <= 1))
        return error_set(error, -EINVAL,
                         "faster must be a share of the function's time, above 0%% and up to "
                         "100%%, such as 30%%.");
    *ret_share = value;
    return 0;
}

static int read_part(struct query_context *context, const struct whatif *whatif, bool all,
                     double *ret_cores, struct store_quality *quality, struct error *error)
{
    struct rate_groups groups = {.most = 1};
    struct store_function function = {.name = whatif->function};
    int64_t length = context->selection.to_ns - context->selection.from_ns;
    struct store_timeseries_query query = {
        .step_ns = length, .function = all ? NULL : &function, .count = whatif->count};
    int r = rate_groups_read(context, &query, &groups, quality, error);
    if (!r && groups.count) {
        const struct rate_group *group = &groups.list[0];
        double rate = isnan(group->rate) ? group->value * 1e9 / (double)length : group->rate;
        *ret_cores = rate * 1e-9;
    }
    rate_groups_release(&groups);
    return r;
}

static void write_savings(const struct server *server, const struct whatif *whatif,
                          struct buffer *out)
{
    double saved = whatif->part * whatif->faster;
    buffer_printf(
        out,
        "%s %s%.3g of %.3g cores. If it were %.4g%% faster, that would save %.3g cores, %.1f%%",
        whatif->function, whatif->count == STORE_FLAT ? "itself takes " : "takes ", whatif->part,
        whatif->cores, whatif->faster * 100, saved,
        whatif->cores > 0 ? saved / whatif->cores * 100 : 0);
    if (server->core_hour > 0)
        buffer_printf(out, ": %.2f %s a month, %.2f %s a year.",
                      saved * COST_MONTH_HOURS * server->core_hour, server->currency,
                      saved * 12 * COST_MONTH_HOURS * server->core_hour, server->currency);
    else
        buffer_add_text(out, ". The server's settings have no price (cost.core_hour).");
}

static void write_whatif(struct http_request *request, const struct server *server,
                         const struct query_context *context, const struct whatif *whatif,
                         const struct query_quality *quality)
{
    struct buffer out = {0};
    _cleanup_buffer_ struct buffer sentence = {0};
    struct json_writer writer = json_writer(&out), *json = &writer;
    double saved = whatif->part * whatif->faster;
    write_savings(server, whatif, &sentence);
    json_write_object(json);
    json_member_text(json, "text", buffer_text(&sentence));
    json_member_text(json, "type", context->query.type);
    json_member_text(json, "function", whatif->function);
    json_member_text(json, "count", whatif->count == STORE_FLAT ? "flat" : "cum");
    json_member_number(json, "faster", whatif->faster);
    cost_put_price(json, server);
    json_member_number(json, "cores", whatif->cores);
    json_member_number(json, "function_cores", whatif->part);
    json_member_number(json, "saved_cores", saved);
    cost_put_money(json, "saved_per_hour", saved, server->core_hour);
    cost_put_money(json, "saved_per_month", saved * COST_MONTH_HOURS, server->core_hour);
    cost_put_money(json, "saved_per_year", saved * 12 * COST_MONTH_HOURS, server->core_hour);
    quality_write(quality, NULL, json);
    json_write_object_end(json);
    buffer_add_char(&out, '\n');
    api_respond(request, "application/json", &out);
    buffer_release(&out);
}

void cost_whatif(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    static const char *const counts[] = {"flat", "cum", NULL};
    _cleanup_query_context_ struct query_context context = {0};
    struct whatif whatif = {.function = http_request_query(request, "function")};
    struct query_quality quality = {0};
    struct error error = {0};
    unsigned count;
    if (!parameters_known(request, "/api/v1/whatif"))
        return;
    int r = parameter_word(request, "count", counts, STORE_CUMULATIVE, &count, &error);
    whatif.count = (enum store_count)count;
    if (!r && (!whatif.function || !*whatif.function))
        r = error_set(&error, -EINVAL, "The parameter function is required.");
    if (!r)
        r = read_faster(request, &whatif.faster, &error);
    if (!r)
        r = cost_context_read(&context, request, server, &error);
    if (!r)
        r = read_part(&context, &whatif, true, &whatif.cores, &quality.found, &error);
    if (!r)
        r = read_part(&context, &whatif, false, &whatif.part, NULL, &error);
    if (!r && !(whatif.part > 0))
        r = api_missing_function(whatif.function, &error);
    if (!r)
        r = query_context_measure(&context, &quality, &error);
    if (r < 0)
        http_respond_failure(request, &error);
    else
        write_whatif(request, server, &context, &whatif, &quality);
}
