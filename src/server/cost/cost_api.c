// SPDX-License-Identifier: Apache-2.0
// GET /api/v1/cost: CPU time and money by labels, functions or owners. GET /api/v1/whatif: what a
// faster function would save.

#include "server/cost/cost.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "query/covered.h"
#include "server/api/api.h"
#include "server/api/table_query.h"
#include "server/handler/answer.h"
#include "server/query/rates.h"
#include "server/rules/live.h"

#define BY_MAX 4
#define LIMIT_DEFAULT 1000
#define LIMIT_MAX 10000
#define HOUR_NS 3.6e12
#define MONTH_HOURS 730.0 /* a twelfth of a year */

enum cost_rows { COST_BY_LABELS, COST_BY_FUNCTION, COST_BY_OWNER };

struct cost_row {
    const struct labels *labels;         /* of a group, or NULL */
    const struct function_row *function; /* likewise */
    char *owner;                         /* likewise; owned */
    double cores, core_hours;
    double own_cores, own_core_hours; /* of a function, without what it calls */
};

struct costs {
    struct server *server;
    struct query_context context;
    enum cost_rows by;
    const char *labels[BY_MAX];
    size_t label_count;
    uint64_t limit;
    double cores, core_hours; /* of all */
    struct query_quality quality;
    struct rate_groups groups;
    struct function_table table;
    struct cost_row *rows;
    size_t count, capacity;
    uint64_t left_out;
};

static void costs_release(struct costs *costs)
{
    for (size_t i = 0; i < costs->count; i++)
        free(costs->rows[i].owner);
    free(costs->rows);
    rate_groups_release(&costs->groups);
    function_table_release(&costs->table);
    query_context_release(&costs->context);
}

static struct cost_row *add_row(struct costs *costs)
{
    array_reserve(costs->rows, costs->capacity, costs->count + 1);
    costs->rows[costs->count] = (struct cost_row){0};
    return &costs->rows[costs->count++];
}

/* A rate that isn't known is that of the range: profiles without a duration. */
static double cores_of(const struct costs *costs, double value, double rate)
{
    const struct store_selection *selection = &costs->context.selection;
    return (isnan(rate) ? value * 1e9 / (double)(selection->to_ns - selection->from_ns) : rate) *
           1e-9;
}

/* ---- rows ---- */

static int read_groups(struct costs *costs, struct error *error)
{
    struct store_timeseries_query query = {.step_ns = costs->context.selection.to_ns -
                                                      costs->context.selection.from_ns,
                                           .group_by = costs->labels,
                                           .group_count = costs->label_count,
                                           .greatest_first = true};
    costs->groups.most = STORE_GROUPS_MAX;
    return rate_groups_read(&costs->context, &query, &costs->groups, &costs->quality.found, error);
}

static int read_total(struct costs *costs, struct error *error)
{
    struct rate_groups groups = {.most = 1};
    struct store_timeseries_query query = {.step_ns = costs->context.selection.to_ns -
                                                      costs->context.selection.from_ns};
    int r = rate_groups_read(&costs->context, &query, &groups, &costs->quality.found, error);
    if (!r && groups.count) {
        costs->cores = cores_of(costs, groups.list[0].value, groups.list[0].rate);
        costs->core_hours = groups.list[0].value / HOUR_NS;
    }
    rate_groups_release(&groups);
    return r;
}

static void add_groups(struct costs *costs)
{
    for (size_t i = 0; i < costs->groups.count; i++) {
        const struct rate_group *group = &costs->groups.list[i];
        struct cost_row *row = add_row(costs);
        row->labels = &group->labels;
        row->cores = cores_of(costs, group->value, group->rate);
        row->core_hours = group->value / HOUR_NS;
    }
}

static void add_owners(struct costs *costs)
{
    for (size_t i = 0; i < costs->groups.count; i++) {
        _cleanup_buffer_ struct buffer owner = {0};
        const struct rate_group *group = &costs->groups.list[i];
        const char *service = labels_get(&group->labels, LABEL_SERVICE_NAME);
        struct cost_row *row = NULL;
        if (service && costs->server->rules)
            rules_owner(costs->server->rules, service, &owner);
        for (size_t k = 0; !row && k < costs->count; k++)
            if (!strcmp(costs->rows[k].owner, buffer_text(&owner)))
                row = &costs->rows[k];
        if (!row) {
            row = add_row(costs);
            row->owner = memory_strdup(buffer_text(&owner));
        }
        row->cores += cores_of(costs, group->value, group->rate);
        row->core_hours += group->value / HOUR_NS;
    }
}

static int add_functions(struct costs *costs, struct error *error)
{
    struct table_query query = {.limit = costs->limit,
                                .sorting = {.order = FUNCTIONS_BY_FLAT, .scale = 1}};
    struct table_side side = {&costs->context, CALLTREE_NEW, &costs->quality};
    int r = table_make(&query, &side, 1, NULL, NULL, &costs->table, error);
    double total = (double)costs->table.total[CALLTREE_NEW];
    if (r < 0)
        return r;
    for (size_t i = 0; total > 0 && i < costs->table.count; i++) {
        const struct function_row *function = &costs->table.rows[i];
        struct cost_row *row = add_row(costs);
        double cum = (double)function->cumulative[CALLTREE_NEW];
        double flat = (double)function->flat[CALLTREE_NEW];
        row->function = function;
        row->cores = costs->cores * cum / total;
        row->core_hours = cum / HOUR_NS;
        row->own_cores = costs->cores * flat / total;
        row->own_core_hours = flat / HOUR_NS;
    }
    costs->left_out += costs->table.function_count - costs->count;
    return 0;
}

static int by_hours(const void *a, const void *b)
{
    const struct cost_row *x = a, *y = b;
    return x->core_hours > y->core_hours ? -1 : x->core_hours < y->core_hours;
}

static int make_rows(struct costs *costs, struct error *error)
{
    int r = read_total(costs, error);
    if (r < 0)
        return r;
    if (costs->by == COST_BY_FUNCTION)
        return add_functions(costs, error);
    r = read_groups(costs, error);
    if (r < 0)
        return r;
    if (costs->by == COST_BY_OWNER)
        add_owners(costs);
    else
        add_groups(costs);
    if (costs->count)
        qsort(costs->rows, costs->count, sizeof(*costs->rows), by_hours);
    costs->left_out = costs->groups.left_out;
    return 0;
}

/* ---- parameters ---- */

/* `function` and `owner` are no labels, and stand alone. */
static int read_by(struct costs *costs, struct http_request *request, struct error *error)
{
    for (size_t i = 0; i < http_request_query_count(request); i++) {
        const char *name, *value;
        http_request_query_at(request, i, &name, &value);
        if (strcmp(name, "group_by") || !*value)
            continue;
        if (costs->label_count == BY_MAX)
            return error_set(error, -EINVAL, "The limit of group_by is %d labels.", BY_MAX);
        costs->labels[costs->label_count++] = strcmp(value, "service") ? value : LABEL_SERVICE_NAME;
    }
    for (size_t i = 0; i < costs->label_count; i++) {
        bool function = !strcmp(costs->labels[i], "function");
        if (!function && strcmp(costs->labels[i], "owner") != 0)
            continue;
        if (costs->label_count > 1)
            return error_set(error, -EINVAL, "group_by=%s can't be combined with other groups.",
                             costs->labels[i]);
        costs->by = function ? COST_BY_FUNCTION : COST_BY_OWNER;
        costs->label_count = 0;
    }
    if (!costs->label_count && costs->by != COST_BY_FUNCTION)
        costs->labels[costs->label_count++] = LABEL_SERVICE_NAME;
    return 0;
}

/* CPU time, unless the query says which. */
static int read_context(struct query_context *context, struct http_request *request,
                        struct server *server, struct error *error)
{
    const char *query = http_request_query(request, "query");
    _cleanup_buffer_ struct buffer text = {0};
    buffer_printf(&text, "%s%s", !query || !*query || *query == '{' ? "cpu" : "",
                  query ? query : "");
    struct query_context whole = {0};
    int r = query_context_read(&whole, request, server, "", false, error);
    int64_t from_ns = whole.selection.from_ns, to_ns = whole.selection.to_ns;
    query_context_release(&whole);
    if (!r)
        r = query_context_init(context, request, server, buffer_text(&text), from_ns, to_ns, true,
                               error);
    return r < 0 ? r : rates_check_cpu(context->query.type, error);
}

/* ---- answers ---- */

static void put_money(struct json_writer *json, const char *key, double value, double price)
{
    if (price > 0)
        json_member_number(json, key, value * price);
    else
        json_member_null(json, key);
}

static void put_price(struct json_writer *json, const struct server *server)
{
    if (server->core_hour > 0)
        json_member_number(json, "core_hour", server->core_hour);
    else
        json_member_null(json, "core_hour");
    json_member_text(json, "currency", server->currency);
}

/* Values of the labels, in the order in which they were asked for. */
static void write_name(const struct costs *costs, const struct labels *labels, struct buffer *out)
{
    for (size_t i = 0; i < costs->label_count; i++) {
        const char *value = labels_get(labels, costs->labels[i]);
        buffer_add_text(out, i ? ", " : "");
        if (value && *value)
            buffer_add_text(out, value);
        else
            buffer_printf(out, "(no %s)", costs->labels[i]);
    }
}

static void put_row(struct json_writer *json, const struct costs *costs, const struct cost_row *row)
{
    double price = costs->server->core_hour;
    json_write_line(json);
    json_write_object(json);
    if (row->labels) {
        _cleanup_buffer_ struct buffer name = {0};
        write_name(costs, row->labels, &name);
        json_member_text(json, "name", buffer_text(&name));
        json_write_key(json, "labels");
        labels_write_json(row->labels, json);
    } else if (row->owner) {
        json_member_text(json, "name", *row->owner ? row->owner : "(no owner)");
    } else {
        json_member_text(json, "name", function_text(&costs->table, row->function->name));
        json_member_number(json, "own_cores", row->own_cores);
        json_member_number(json, "own_core_hours", row->own_core_hours);
        put_money(json, "own_cost", row->own_core_hours, price);
    }
    json_member_number(json, "cores", row->cores);
    json_member_number(json, "core_hours", row->core_hours);
    json_member_number(json, "share",
                       costs->core_hours > 0 ? row->core_hours / costs->core_hours : NAN);
    put_money(json, "cost", row->core_hours, price);
    put_money(json, "per_hour", row->cores, price);
    json_write_object_end(json);
}

static void write_sentence(const struct costs *costs, struct buffer *out)
{
    const struct server *server = costs->server;
    buffer_printf(out, "%.3g cores, %.3g core hours in the range", costs->cores, costs->core_hours);
    if (server->core_hour > 0)
        buffer_printf(out, ": %.2f %s, at this rate %.2f %s a month.",
                      costs->core_hours * server->core_hour, server->currency,
                      costs->cores * MONTH_HOURS * server->core_hour, server->currency);
    else
        buffer_add_text(out, ". The server's settings have no price (cost.core_hour).");
}

static int write_costs(struct http_request *request, const struct costs *costs, struct error *error)
{
    _cleanup_answer_ struct answer answer = {0};
    _cleanup_buffer_ struct buffer sentence = {0};
    struct json_writer writer = json_writer(&answer.out), *json = &writer;
    double price = costs->server->core_hour;
    answer_init(&answer, request, "application/json");
    write_sentence(costs, &sentence);
    json_write_object(json);
    json_member_text(json, "text", buffer_text(&sentence));
    json_member_text(json, "type", costs->context.query.type);
    put_price(json, costs->server);
    json_member_number(json, "cores", costs->cores);
    json_member_number(json, "core_hours", costs->core_hours);
    put_money(json, "cost", costs->core_hours, price);
    put_money(json, "per_hour", costs->cores, price);
    put_money(json, "per_month", costs->cores * MONTH_HOURS, price);
    quality_write(&costs->quality, NULL, json);
    json_member_unsigned(json, "left_out",
                         costs->left_out +
                             (costs->count > costs->limit ? costs->count - costs->limit : 0));
    json_write_key(json, "rows");
    json_write_array(json);
    for (size_t i = 0; i < costs->count && i < costs->limit && buffer_pass(json->out); i++)
        put_row(json, costs, &costs->rows[i]);
    json_write_array_end(json);
    json_write_object_end(json);
    buffer_add_char(&answer.out, '\n');
    return answer_end(&answer, 0, error);
}

void cost_list(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    _cleanup_(costs_release) struct costs costs = {.server = server, .limit = LIMIT_DEFAULT};
    struct error error = {0};
    function_table_init(&costs.table);
    if (!parameters_known(request, "/api/v1/cost"))
        return;
    int r = read_by(&costs, request, &error);
    if (!r)
        r = parameter_number(request, "limit", 1, LIMIT_MAX, &costs.limit, &error);
    if (!r)
        r = read_context(&costs.context, request, server, &error);
    if (!r)
        r = make_rows(&costs, &error);
    if (!r)
        r = query_context_measure(&costs.context, &costs.quality, &error);
    if (!r)
        r = write_costs(request, &costs, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}

/* ---- what if ---- */

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
                      saved * MONTH_HOURS * server->core_hour, server->currency,
                      saved * 12 * MONTH_HOURS * server->core_hour, server->currency);
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
    put_price(json, server);
    json_member_number(json, "cores", whatif->cores);
    json_member_number(json, "function_cores", whatif->part);
    json_member_number(json, "saved_cores", saved);
    put_money(json, "saved_per_hour", saved, server->core_hour);
    put_money(json, "saved_per_month", saved * MONTH_HOURS, server->core_hour);
    put_money(json, "saved_per_year", saved * 12 * MONTH_HOURS, server->core_hour);
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
        r = read_context(&context, request, server, &error);
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
