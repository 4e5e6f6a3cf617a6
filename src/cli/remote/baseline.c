// SPDX-License-Identifier: Apache-2.0
// `assay baseline`: names good states on a server, for `assay gate --base baseline:NAME`.

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/remote/address.h"
#include "cli/table.h"

#define FILE_BYTES_MAX (256u << 20)

struct baseline_command {
    struct server_link link;
    const char *query, *from, *to, *format;
    bool replace;
};

static int call(struct baseline_command *command, const char *method, struct buffer *url,
                const struct buffer *body, struct buffer *ret_answer)
{
    static const char *const header = "Content-Type: application/octet-stream";
    struct error error = {0};
    struct http_call request = {.method = method,
                                .url = buffer_text(url),
                                .headers = &header,
                                .header_count = body ? 1 : 0,
                                .body = body ? body->data : NULL,
                                .body_length = body ? body->length : 0};
    return address_call(&command->link, &request, ret_answer, &error) < 0 ? fail(&error) : 0;
}

static void begin_save(const struct baseline_command *command, const char *name, struct buffer *url)
{
    url->length = 0;
    address_begin(url, &command->link, "/api/v1/baselines");
    address_add_parameter(url, "name", name);
    address_add_parameter(url, "replace", command->replace ? "true" : NULL);
}

static int save_files(struct baseline_command *command, const char *name, const char *const *paths,
                      int count)
{
    _cleanup_buffer_ struct buffer url = {0};
    char part[16], parts[16];
    snprintf(parts, sizeof(parts), "%d", count);
    for (int i = 0; i < count; i++) {
        _cleanup_buffer_ struct buffer content = {0};
        struct error error = {0};
        if (file_read(paths[i], FILE_BYTES_MAX, &content, &error) < 0)
            return fail(&error);
        if (!content.length) {
            log_error("%s is empty; the baseline was not saved.", paths[i]);
            return EXIT_FAILED;
        }
        snprintf(part, sizeof(part), "%d", i);
        begin_save(command, name, &url);
        address_add_parameter(&url, "part", part);
        address_add_parameter(&url, "parts", parts);
        int r = call(command, "POST", &url, &content, NULL);
        if (r)
            return r;
    }
    printf("Saved %s: %d file%s.\n", name, count, count == 1 ? "" : "s");
    return 0;
}

static int save(struct baseline_command *command, const char *const *values, int count)
{
    _cleanup_buffer_ struct buffer url = {0}, empty = {0};
    if (count < 1)
        return options_wrong("baseline", "save needs a name, and files or --query.");
    if (command->query ? count > 1 : count < 2)
        return options_wrong("baseline", "save takes either files or --query.");
    if (!command->query && (command->from || command->to))
        return options_wrong("baseline", "--from and --to belong to --query.");
    if (!command->query)
        return save_files(command, values[0], values + 1, count - 1);
    begin_save(command, values[0], &url);
    address_add_parameter(&url, "query", command->query);
    address_add_parameter(&url, "from", command->from);
    address_add_parameter(&url, "to", command->to);
    int r = call(command, "POST", &url, &empty, NULL);
    if (!r)
        printf("Saved %s: %s.\n", values[0], command->query);
    return r;
}

struct listing {
    struct table table;
    const char *only; /* NULL: all */
    size_t count;
};

static int read_one(struct json *json, struct listing *listing)
{
    char name[256] = "", about[1025] = "", age[24];
    double saved = 0, bytes = 0, parts = 0;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "name"))
            r = answer_text(json, name, sizeof(name));
        else if (json_is(&key, "about"))
            r = answer_text(json, about, sizeof(about));
        else if (json_is(&key, "saved"))
            r = answer_number(json, &saved);
        else if (json_is(&key, "bytes"))
            r = answer_number(json, &bytes);
        else if (json_is(&key, "parts"))
            r = answer_number(json, &parts);
        else
            r = json_skip(json);
    }
    if (r < 0 || (listing->only && strcmp(listing->only, name)))
        return r;
    struct cell cells[] = {cell_text(name), cell_text(answer_age(saved, age)),
                           cell_number((int64_t)bytes), cell_number((int64_t)parts),
                           cell_text(about)};
    table_add(&listing->table, cells);
    listing->count++;
    return 0;
}

static int read_list(struct json *json, void *context)
{
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0)
        r = read_one(json, context);
    return r;
}

static int list(struct baseline_command *command, const char *only)
{
    static const struct column columns[] = {{"name", "name", COLUMN_NAME},
                                            {"age", "age", COLUMN_NAME},
                                            {"size", "bytes", COLUMN_VALUE},
                                            {"files", "parts", COLUMN_COUNT},
                                            {"made of", "about", COLUMN_NAME}};
    _cleanup_buffer_ struct buffer url = {0}, answer = {0}, out = {0};
    enum table_format format;
    struct listing listing = {.only = only};
    struct error error = {0};
    if (!table_format_parse(command->format, &format))
        return options_wrong("baseline", "--format must be text, json or csv, not \"%s\".",
                             command->format);
    address_begin(&url, &command->link, "/api/v1/baselines");
    int r = call(command, "GET", &url, NULL, &answer);
    if (r)
        return r;
    table_init(&listing.table, columns, ARRAY_LENGTH(columns), "bytes");
    if (server_link_read(&answer, read_list, &listing, &error) < 0) {
        r = fail(&error);
    } else if (only && !listing.count) {
        log_error("The server has no baseline \"%s\".", only);
        r = EXIT_FAILED;
    } else {
        table_write(&listing.table, format, terminal_colour(), &out);
        if (format == TABLE_JSON)
            buffer_add_char(&out, '\n');
        print_buffer(&out);
    }
    table_release(&listing.table);
    return r;
}

static int delete_one(struct baseline_command *command, const char *name)
{
    _cleanup_buffer_ struct buffer url = {0};
    address_begin(&url, &command->link, "/api/v1/baselines/");
    address_add_escaped(&url, name);
    return call(command, "DELETE", &url, NULL, NULL);
}

static int run(struct baseline_command *command, const char *const *values, int count)
{
    if (!strcmp(values[0], "save"))
        return save(command, values + 1, count - 1);
    if (command->query || command->replace)
        return options_wrong("baseline", "--query and --replace belong to save.");
    if (!strcmp(values[0], "list") && count == 1)
        return list(command, NULL);
    if (!strcmp(values[0], "show") && count == 2)
        return list(command, values[1]);
    if (!strcmp(values[0], "delete") && count == 2)
        return delete_one(command, values[1]);
    return options_wrong("baseline", "Use save NAME FILE..., list, show NAME or delete NAME.");
}

int command_baseline(int argc, char **argv)
{
    struct baseline_command command = {.link = {.url = SERVER_LINK_URL}};
    const struct option own[] = {
        {"Saving", .kind = OPTION_GROUP},
        {"query", 0, OPTION_TEXT, "QUERY", "a selection of the server in place of files",
         &command.query},
        {"from", 0, OPTION_TEXT, "T", "start of the selection (now-1h)", &command.from},
        {"to", 0, OPTION_TEXT, "T", "end of the selection (now)", &command.to},
        {"replace", 0, OPTION_FLAG, NULL, "replace a baseline of that name", &command.replace},
        {"Listing", .kind = OPTION_GROUP},
        {"format", 'f', OPTION_TEXT, "F", "text, json or csv", &command.format},
        SERVER_URL_OPTIONS(command.link),
        {0}};
    struct command_line line = {
        .command = "baseline",
        .arguments = "save NAME [FILE...] | list | show NAME | delete NAME",
        .summary = "Names good states on a server, for `assay gate --base baseline:NAME`. They are "
                   "kept until\nthey are deleted, whatever the retention.",
        .options = own,
        .least = 1,
        .most = -1,
    };
    struct error error = {0};
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    if (server_link_open(&command.link, &error) < 0)
        return fail(&error);
    r = run(&command, line.values, line.count);
    server_link_close(&command.link);
    return r;
}
