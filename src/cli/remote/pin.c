// SPDX-License-Identifier: Apache-2.0
// `assay pin`: keeps time ranges on a server from its retention.

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/remote/address.h"
#include "cli/table.h"
#include "io/json_write.h"

#define PATH "/api/v1/pins"
#define DAYS_MAX 3660

struct pin_command {
    struct server_link link;
    const char *from, *to, *format;
    uint64_t days;
};

/* ---- adding ---- */

static int read_id(struct json *json, void *context)
{
    char *id = context;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        r = json_is(&key, "id") ? answer_text(json, id, 32) : json_skip(json);
    return r;
}

static int add(struct pin_command *command, const char *reason)
{
    _cleanup_buffer_ struct buffer body = {0}, answer = {0};
    struct json_writer json = json_writer(&body);
    struct error error = {0};
    char id[32] = "";
    if (!command->from || !command->to)
        return options_wrong("pin", "add needs --from and --to.");
    json_write_object(&json);
    json_member_text(&json, "reason", reason);
    json_member_text(&json, "from", command->from);
    json_member_text(&json, "to", command->to);
    json_member_signed(&json, "expires", (int64_t)time(NULL) + (int64_t)command->days * 86400);
    json_write_object_end(&json);
    if (server_link_call(&command->link, "POST", PATH, buffer_text(&body), &answer, &error) < 0 ||
        server_link_read(&answer, read_id, id, &error) < 0)
        return fail(&error);
    printf("%s\n", id);
    return 0;
}

/* ---- listing ---- */

struct pin_row {
    char id[32], reason[1100], why[1100];
    double from, to, expires, dropped;
};

static const char *write_time(double seconds, char text[24])
{
    time_t time = (time_t)seconds;
    struct tm tm;
    if (!gmtime_r(&time, &tm) || !strftime(text, 24, "%Y-%m-%d %H:%M", &tm))
        snprintf(text, 24, "-");
    return text;
}

static int read_pin(struct json *json, struct table *table)
{
    _cleanup_free_ struct pin_row *row = memory_zalloc(1, sizeof(*row));
    struct json_string key;
    char from[24], to[24], expires[24];
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "id"))
            r = answer_text(json, row->id, sizeof(row->id));
        else if (json_is(&key, "reason"))
            r = answer_text(json, row->reason, sizeof(row->reason));
        else if (json_is(&key, "why"))
            r = answer_text(json, row->why, sizeof(row->why));
        else if (json_is(&key, "from"))
            r = answer_number(json, &row->from);
        else if (json_is(&key, "to"))
            r = answer_number(json, &row->to);
        else if (json_is(&key, "expires"))
            r = answer_number(json, &row->expires);
        else if (json_is(&key, "dropped") && !json_null(json))
            r = answer_number(json, &row->dropped);
        else if (!json_is(&key, "dropped"))
            r = json_skip(json);
    if (r < 0)
        return r;
    struct cell cells[] = {cell_text(row->id),
                           cell_text(row->dropped > 0 ? "dropped" : "kept"),
                           cell_text(write_time(row->from, from)),
                           cell_text(write_time(row->to, to)),
                           cell_text(write_time(row->expires, expires)),
                           cell_text(row->reason),
                           cell_text(row->why)};
    table_add(table, cells);
    return 0;
}

static int read_pins(struct json *json, void *context)
{
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (!json_is(&key, "pins")) {
            r = json_skip(json);
            continue;
        }
        r = json_array(json);
        while (r >= 0 && (r = json_next_element(json)) > 0)
            r = read_pin(json, context);
    }
    return r;
}

static int list(struct pin_command *command)
{
    static const struct column columns[] = {
        {"id", "id", COLUMN_NAME},           {"state", "state", COLUMN_NAME},
        {"from (UTC)", "from", COLUMN_NAME}, {"to (UTC)", "to", COLUMN_NAME},
        {"expires", "expires", COLUMN_NAME}, {"reason", "reason", COLUMN_NAME},
        {"dropped", "why", COLUMN_NAME}};
    _cleanup_buffer_ struct buffer answer = {0}, out = {0};
    enum table_format format;
    struct table table;
    struct error error = {0};
    if (!table_format_parse(command->format, &format))
        return options_wrong("pin", "--format must be text, json or csv, not \"%s\".",
                             command->format);
    if (server_link_call(&command->link, "GET", PATH, NULL, &answer, &error) < 0)
        return fail(&error);
    if (format == TABLE_JSON) { /* as the server has it: with bytes and the quota */
        print_buffer(&answer);
        return 0;
    }
    table_init(&table, columns, ARRAY_LENGTH(columns), "count");
    int r = server_link_read(&answer, read_pins, &table, &error) < 0 ? fail(&error) : 0;
    if (!r) {
        table_write(&table, format, terminal_colour(), &out);
        print_buffer(&out);
    }
    table_release(&table);
    return r;
}

/* ---- deleting ---- */

static int delete_one(struct pin_command *command, const char *id)
{
    _cleanup_buffer_ struct buffer path = {0}, answer = {0};
    struct error error = {0};
    buffer_add_text(&path, PATH "/");
    address_add_escaped(&path, id);
    return server_link_call(&command->link, "DELETE", buffer_text(&path), NULL, &answer, &error) < 0
               ? fail(&error)
               : 0;
}

static int run(struct pin_command *command, const char *const *values, int count)
{
    if (!strcmp(values[0], "add") && count == 2)
        return add(command, values[1]);
    if (!strcmp(values[0], "list") && count == 1)
        return list(command);
    if (!strcmp(values[0], "delete") && count == 2)
        return delete_one(command, values[1]);
    return options_wrong("pin", "Use add REASON, list or delete ID.");
}

int command_pin(int argc, char **argv)
{
    struct pin_command command = {.link = {.url = SERVER_LINK_URL}, .days = 90};
    const struct option own[] = {
        {"Adding", .kind = OPTION_GROUP},
        {"from", 0, OPTION_TEXT, "T", "start of the range, such as now-3h", &command.from},
        {"to", 0, OPTION_TEXT, "T", "end of the range", &command.to},
        {"days", 0, OPTION_COUNT, "N", "keep it so long (90)", &command.days},
        {"Listing", .kind = OPTION_GROUP},
        {"format", 'f', OPTION_TEXT, "F", "text, json or csv", &command.format},
        SERVER_URL_OPTIONS(command.link),
        {0}};
    struct command_line line = {
        .command = "pin",
        .arguments = "add REASON --from T --to T | list | delete ID",
        .summary = "Keeps the raw data of a time range on a server from its retention, by whole "
                   "days.",
        .options = own,
        .least = 1,
        .most = 2,
    };
    struct error error = {0};
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    if (!command.days || command.days > DAYS_MAX)
        return options_wrong("pin", "--days must be 1 to %d.", DAYS_MAX);
    if (server_link_open(&command.link, &error) < 0)
        return fail(&error);
    r = run(&command, line.values, line.count);
    server_link_close(&command.link);
    return r;
}
