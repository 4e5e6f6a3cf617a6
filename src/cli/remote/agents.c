// SPDX-License-Identifier: Apache-2.0
// `assay agents`: who reports to a server, and how they are.

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/input.h"
#include "cli/remote/control.h"
#include "cli/table.h"

static const struct column columns[] = {
    {"cpu", "cpu_percent", COLUMN_PERCENT}, {"MiB", "resident_mib", COLUMN_COUNT},
    {"Hz", "rate_hz", COLUMN_COUNT},        {"lost", "lost", COLUMN_COUNT},
    {"waiting", "waiting", COLUMN_COUNT},   {"capture", "capture", COLUMN_NAME},
    {"heard", "heard", COLUMN_NAME},        {"clock", "clock_offset", COLUMN_NAME},
    {"version", "version", COLUMN_NAME},    {"host", "host", COLUMN_NAME},
    {"agent", "agent", COLUMN_NAME}};

struct row {
    char agent[80], host[256], version[40], capture[8], wanted[8];
    bool silent;
    double last, offset, cpu, resident, rate, lost, waiting;
};

static int read_losses(struct json *json, double *sum)
{
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        double count = 0;
        r = answer_number(json, &count);
        *sum += count;
    }
    return r;
}

static int read_status(struct json *json, struct row *row)
{
    struct json_string key;
    if (json_kind(json) != JSON_OBJECT)
        return json_skip(json);
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "cpu_share"))
            r = answer_number(json, &row->cpu);
        else if (json_is(&key, "resident_bytes"))
            r = answer_number(json, &row->resident);
        else if (json_is(&key, "rate_hz"))
            r = answer_number(json, &row->rate);
        else if (json_is(&key, "spool_batches"))
            r = answer_number(json, &row->waiting);
        else if (json_is(&key, "losses") && json_kind(json) == JSON_OBJECT)
            r = read_losses(json, &row->lost);
    return r;
}

static int read_agent(struct json *json, struct row *row)
{
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "agent"))
            r = answer_text(json, row->agent, sizeof(row->agent));
        else if (json_is(&key, "host"))
            r = answer_text(json, row->host, sizeof(row->host));
        else if (json_is(&key, "version"))
            r = answer_text(json, row->version, sizeof(row->version));
        else if (json_is(&key, "capture"))
            r = answer_text(json, row->capture, sizeof(row->capture));
        else if (json_is(&key, "capture_wanted"))
            r = answer_text(json, row->wanted, sizeof(row->wanted));
        else if (json_is(&key, "silent"))
            r = answer_bool(json, &row->silent);
        else if (json_is(&key, "last"))
            r = answer_number(json, &row->last);
        else if (json_is(&key, "clock_offset_seconds"))
            r = answer_number(json, &row->offset);
        else if (json_is(&key, "status"))
            r = read_status(json, row);
    return r;
}

static void add_row(struct table *table, const struct row *row)
{
    char age[24], heard[48], offset[32];
    snprintf(heard, sizeof(heard), "%s%s", answer_age(row->last, age),
             row->silent ? ", silent" : "");
    snprintf(offset, sizeof(offset), "%+.2f s", row->offset);
    bool known = row->resident > 0;
    bool other = !row->silent && !strcmp(row->wanted, "off") && strcmp(row->capture, "off");
    const struct cell cells[] = {{.real = known ? 100 * row->cpu : 0},
                                 cell_number((int64_t)(row->resident / (1 << 20))),
                                 cell_number((int64_t)row->rate),
                                 cell_number((int64_t)row->lost),
                                 cell_number((int64_t)row->waiting),
                                 cell_text(other ? "on (off wanted)" : row->capture),
                                 cell_text(heard),
                                 cell_text(offset),
                                 cell_text(row->version),
                                 cell_text(row->host),
                                 cell_text(row->agent)};
    table_add(table, cells);
}

static int read_agents(struct json *json, void *context)
{
    struct table *table = context;
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        struct row row = {0};
        r = read_agent(json, &row);
        if (r >= 0)
            add_row(table, &row);
    }
    return r;
}

static int show(const struct buffer *answer, enum table_format format, struct error *error)
{
    _cleanup_table_ struct table table;
    _cleanup_buffer_ struct buffer out = {0};
    table_init(&table, columns, ARRAY_LENGTH(columns), "");
    int r = server_link_read(answer, read_agents, &table, error);
    if (r < 0)
        return r;
    if (!table.row_count && format == TABLE_TEXT)
        buffer_add_text(&out, "No agent has reported.\n");
    else
        table_write(&table, format, false, &out);
    print_buffer(&out);
    return 0;
}

int command_agents(int argc, char **argv)
{
    struct server_link link = {.url = SERVER_LINK_URL};
    const char *format_name = NULL;
    enum table_format format = TABLE_TEXT;
    const struct option own[] = {
        SERVER_LINK_OPTIONS(link),
        {"format", 'f', OPTION_TEXT, "F", "text, csv or json (all fields)", &format_name},
        {0}};
    struct command_line line = {
        .command = "agents",
        .arguments = "",
        .summary = "Lists the agents that report to a server, with their cost and losses.",
        .options = own,
        .least = 0,
        .most = 0,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    if (!table_format_parse(format_name, &format))
        return options_wrong("agents", "--format must be text, json or csv.");
    struct error error = {0};
    _cleanup_buffer_ struct buffer answer = {0};
    r = server_link_open(&link, &error);
    if (!r)
        r = server_link_call(&link, "GET", "/api/v1/agents", NULL, &answer, &error);
    if (!r && format == TABLE_JSON)
        print_buffer(&answer);
    else if (!r)
        r = show(&answer, format, &error);
    server_link_close(&link);
    return r < 0 ? fail(&error) : EXIT_FINE;
}
