// SPDX-License-Identifier: Apache-2.0
// GET /api/v1/cost: CPU time and money by labels, functions, owners or tenants.

#include "server/cost/cost.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "http/access/tokens.h"
#include "query/covered.h"
#include "server/api/api.h"
#include "server/api/table_query.h"
#include "server/cost/cost_parts.h"
#include "server/handler/answer.h"
#include "server/query/rates.h"
#include "server/rules/live.h"

#define BY_MAX 4
#define LIMIT_DEFAULT 1000
#define LIMIT_MAX 10000
#define HOUR_NS 3.6e12

enum cost_rows { COST_BY_LABELS, COST_BY_FUNCTION, COST_BY_OWNER, COST_BY_TENANT };

struct cost_row {
    const struct labels *labels;         /* of a group, or NULL */
    const struct function_row *function; /* likewise */
    char *owner;                         /* or a tenant; likewise, and owned */
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
    char type[QUERY_TYPE_BYTES];
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

static int note_tenant(void *context, const char *tenant)
{
    struct costs *costs = context;
    add_row(costs)->owner = memory_strdup(tenant);
    return 0;
}

/* The tenants whose costs a client may see: an admin of the default one is the operator. */
static int list_tenants(struct costs *costs, struct http_request *request, struct error *error)
{
    const struct http_identity *identity = http_request_identity(request);
    if (!strcmp(identity->tenant, TOKEN_DEFAULT_TENANT) && (identity->roles & HTTP_ROLE_ADMIN))
        return store_tenants(costs->server->store, note_tenant, costs, error);
    return note_tenant(costs, identity->tenant);
}

static void add_quality(struct query_quality *sum, const struct query_quality *part)
{
    query_quality_add(&sum->found, &part->found);
    sum->hosts += part->hosts;
    sum->capped_labels += part->capped_labels;
    sum->covered = -1; /* each tenant has another */
    sum->has_dropped |= part->has_dropped;
    sum->dropped += part->dropped;
}

/* `costs->context` is that of the tenant, and what it adds to the sums is left in `costs`. */
static int add_tenant(struct costs *costs, struct cost_row *row, struct error *error)
{
    struct query_quality sum = costs->quality;
    double cores = costs->cores, core_hours = costs->core_hours;
    costs->quality = (struct query_quality){0};
    costs->cores = costs->core_hours = 0;
    int r = rates_check_cpu(costs->context.query.type, error);
    if (!r)
        r = read_total(costs, error);
    snprintf(costs->type, sizeof(costs->type), "%s", costs->context.query.type);
    if (!r)
        r = query_context_measure(&costs->context, &costs->quality, error);
    row->cores = costs->cores;
    row->core_hours = costs->core_hours;
    add_quality(&sum, &costs->quality);
    sum.sources = NULL; /* its tenant's context is released before the answer is written */
    costs->quality = sum;
    costs->cores += cores;
    costs->core_hours += core_hours;
    return r;
}

static int make_tenants(struct costs *costs, struct http_request *request, struct error *error)
{
    _cleanup_cost_query_ struct cost_query query = {0};
    struct query_asker asker;
    size_t kept = 0;
    int r = query_asker_read(request, &asker, error);
    if (!r)
        r = cost_query_read(request, costs->server, &query, error);
    if (!r)
        r = list_tenants(costs, request, error);
    for (size_t i = 0; !r && i < costs->count; i++) {
        struct cost_row row = costs->rows[i];
        asker.tenant = row.owner;
        query_context_release(&costs->context);
        r = query_context_open(&costs->context, costs->server, &asker, buffer_text(&query.text),
                               query.from_ns, query.to_ns, true, error);
        if (r == -ENOENT) { /* a tenant without CPU time has no row */
            r = 0;
            continue;
        }
        if (!r)
            r = add_tenant(costs, &row, error);
        costs->rows[i] = costs->rows[kept];
        costs->rows[kept++] = row;
    }
    if (r < 0)
        return r;
    if (!kept)
        return error_set(error, -ENOENT, "No profile matches the query in this time.");
    for (size_t i = kept; i < costs->count; i++)
        free(costs->rows[i].owner);
    costs->count = kept;
    qsort(costs->rows, costs->count, sizeof(*costs->rows), by_hours);
    return 0;
}

static int make_rows(struct costs *costs, struct error *error)
{
    int r = read_total(costs, error);
    snprintf(costs->type, sizeof(costs->type), "%s", costs->context.query.type);
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

/* `function`, `owner` and `tenant` aren't labels, and stand alone. */
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
        static const char *const words[] = {[COST_BY_FUNCTION] = "function",
                                            [COST_BY_OWNER] = "owner",
                                            [COST_BY_TENANT] = "tenant"};
        enum cost_rows by = COST_BY_TENANT;
        while (by > COST_BY_LABELS && strcmp(costs->labels[i], words[by]) != 0)
            by--;
        if (by == COST_BY_LABELS)
            continue;
        if (costs->label_count > 1)
            return error_set(error, -EINVAL, "group_by=%s can't be combined with other groups.",
                             costs->labels[i]);
        costs->by = by;
        costs->label_count = 0;
    }
    if (!costs->label_count && (costs->by == COST_BY_LABELS || costs->by == COST_BY_OWNER))
        costs->labels[costs->label_count++] = LABEL_SERVICE_NAME;
    return 0;
}

/* ---- answers ---- */

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
        cost_put_money(json, "own_cost", row->own_core_hours, price);
    }
    json_member_number(json, "cores", row->cores);
    json_member_number(json, "core_hours", row->core_hours);
    json_member_number(json, "share",
                       costs->core_hours > 0 ? row->core_hours / costs->core_hours : NAN);
    cost_put_money(json, "cost", row->core_hours, price);
    cost_put_money(json, "per_hour", row->cores, price);
    json_write_object_end(json);
}

static void write_sentence(const struct costs *costs, struct buffer *out)
{
    const struct server *server = costs->server;
    buffer_printf(out, "%.3g cores, %.3g core hours in the range", costs->cores, costs->core_hours);
    if (server->core_hour > 0)
        buffer_printf(out, ": %.2f %s, at this rate %.2f %s a month.",
                      costs->core_hours * server->core_hour, server->currency,
                      costs->cores * COST_MONTH_HOURS * server->core_hour, server->currency);
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
    json_member_text(json, "type", costs->type);
    cost_put_price(json, costs->server);
    json_member_number(json, "cores", costs->cores);
    json_member_number(json, "core_hours", costs->core_hours);
    cost_put_money(json, "cost", costs->core_hours, price);
    cost_put_money(json, "per_hour", costs->cores, price);
    cost_put_money(json, "per_month", costs->cores * COST_MONTH_HOURS, price);
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
    if (!r && costs.by == COST_BY_TENANT) {
        r = make_tenants(&costs, request, &error);
    } else if (!r) {
        r = cost_context_read(&costs.context, request, server, &error);
        if (!r)
            r = make_rows(&costs, &error);
        if (!r)
            r = query_context_measure(&costs.context, &costs.quality, &error);
    }
    if (!r)
        r = write_costs(request, &costs, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}
