// SPDX-License-Identifier: Apache-2.0
// `assay findings`: what a server noticed.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/remote/address.h"
#include "cli/table.h"

#define TEXT_BYTES 4200 /* of a function's name */
#define LINK_BYTES 65536

struct finding {
    char kind[16], state[16], service[300], version[300], base_version[300];
    char function[TEXT_BYTES], link[LINK_BYTES];
    double growth, growth_low, growth_high; /* NAN: unbounded */
    double rate, rate_low, rate_high, left; /* of a leak: bytes per hour, seconds to the limit */
    double share, opened;
};

/* The API has null for what has no bound. */
static int read_number(struct json *json, double *value)
{
    *value = NAN;
    return json_null(json) ? 0 : answer_number(json, value);
}

static int read_members(struct json *json, struct finding *finding)
{
    const struct {
        const char *key;
        char *to;
        size_t room;
    } texts[] = {{"kind", finding->kind, sizeof(finding->kind)},
                 {"state", finding->state, sizeof(finding->state)},
                 {"service", finding->service, sizeof(finding->service)},
                 {"version", finding->version, sizeof(finding->version)},
                 {"base_version", finding->base_version, sizeof(finding->base_version)},
                 {"function", finding->function, sizeof(finding->function)},
                 {"link", finding->link, sizeof(finding->link)}};
    const struct {
        const char *key;
        double *to;
    } numbers[] = {{"growth", &finding->growth},
                   {"growth_low", &finding->growth_low},
                   {"growth_high", &finding->growth_high},
                   {"bytes_per_hour", &finding->rate},
                   {"bytes_per_hour_low", &finding->rate_low},
                   {"bytes_per_hour_high", &finding->rate_high},
                   {"seconds_to_limit", &finding->left},
                   {"share", &finding->share},
                   {"opened", &finding->opened}};
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        bool known = false;
        for (size_t i = 0; !known && i < ARRAY_LENGTH(texts); i++)
            if ((known = json_is(&key, texts[i].key)))
                r = answer_text(json, texts[i].to, texts[i].room);
        for (size_t i = 0; !known && i < ARRAY_LENGTH(numbers); i++)
            if ((known = json_is(&key, numbers[i].key)))
                r = read_number(json, numbers[i].to);
        if (!known)
            r = json_skip(json);
    }
    return r;
}

static void write_leak(const struct finding *finding, char text[96])
{
    int length = snprintf(text, 96, "%+.1f MiB/h (%+.1f to %+.1f)", finding->rate / 1048576,
                          finding->rate_low / 1048576, finding->rate_high / 1048576);
    if (!isnan(finding->left) && length > 0 && length < 96)
        snprintf(text + length, 96 - (size_t)length, ", limit in %.1f h", finding->left / 3600);
}

static void write_growth(const struct finding *finding, char text[96])
{
    if (!strcmp(finding->kind, "leak"))
        write_leak(finding, text);
    else if (isnan(finding->growth))
        snprintf(text, 96, "new");
    else if (isnan(finding->growth_high))
        snprintf(text, 96, "%+.1f%% (from %+.1f%%)", finding->growth * 100,
                 finding->growth_low * 100);
    else
        snprintf(text, 96, "%+.1f%% (%+.1f%% to %+.1f%%)", finding->growth * 100,
                 finding->growth_low * 100, finding->growth_high * 100);
}

static int read_list(struct json *json, void *context)
{
    struct table *table = context;
    _cleanup_free_ struct finding *finding = memory_alloc(sizeof(*finding));
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        char growth[96], share[16], age[24];
        memset(finding, 0, sizeof(*finding));
        finding->left = NAN;
        r = read_members(json, finding);
        if (r < 0)
            break;
        write_growth(finding, growth);
        snprintf(share, sizeof(share), "%.1f%%", finding->share * 100);
        struct cell cells[] = {cell_text(finding->kind),
                               cell_text(finding->state),
                               cell_text(finding->service),
                               cell_text(finding->version),
                               cell_text(finding->base_version),
                               cell_text(growth),
                               cell_text(share),
                               cell_text(answer_age(finding->opened, age)),
                               cell_text(finding->function)};
        table_add(table, cells);
    }
    return r;
}

static int list(struct server_link *link, const char *service, const char *state,
                enum table_format format)
{
    static const struct column columns[] = {
        {"kind", "kind", COLUMN_NAME},
        {"state", "state", COLUMN_NAME},     {"service", "service", COLUMN_NAME},
        {"version", "version", COLUMN_NAME}, {"before", "base_version", COLUMN_NAME},
        {"growth", "growth", COLUMN_NAME},   {"share", "share", COLUMN_NAME},
        {"age", "age", COLUMN_NAME},         {"function", "function", COLUMN_NAME}};
    _cleanup_buffer_ struct buffer url = {0}, answer = {0}, out = {0};
    struct error error = {0};
    struct table table;
    address_begin(&url, link, "/api/v1/findings");
    address_add_parameter(&url, "service", service);
    address_add_parameter(&url, "state", state);
    struct http_call call = {.method = "GET", .url = buffer_text(&url)};
    if (address_call(link, &call, &answer, &error) < 0)
        return fail(&error);
    if (format == TABLE_JSON) { /* as the server has it: with numbers and links */
        print_buffer(&answer);
        return 0;
    }
    table_init(&table, columns, ARRAY_LENGTH(columns), "count");
    int r = server_link_read(&answer, read_list, &table, &error) < 0 ? fail(&error) : 0;
    if (!r) {
        table_write(&table, format, terminal_colour(), &out);
        print_buffer(&out);
    }
    table_release(&table);
    return r;
}

int command_findings(int argc, char **argv)
{
    struct server_link link = {.url = SERVER_LINK_URL};
    const char *service = NULL, *state = "open", *format_name = NULL;
    enum table_format format;
    const struct option own[] = {
        {"Selection", .kind = OPTION_GROUP},
        {"service", 0, OPTION_TEXT, "S", "only findings of this service", &service},
        {"state", 0, OPTION_TEXT, "S", "open (default), closed or all", &state},
        {"Output", .kind = OPTION_GROUP},
        {"format", 'f', OPTION_TEXT, "F", "text, json or csv", &format_name},
        SERVER_URL_OPTIONS(link),
        {0}};
    struct command_line line = {
        .command = "findings",
        .arguments = "",
        .summary = "Lists what a server noticed: functions that grew with a version, and leaks.",
        .options = own,
    };
    struct error error = {0};
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    if (!table_format_parse(format_name, &format))
        return options_wrong("findings", "--format must be text, json or csv, not \"%s\".",
                             format_name);
    if (server_link_open(&link, &error) < 0)
        return fail(&error);
    r = list(&link, service, state, format);
    server_link_close(&link);
    return r;
}
