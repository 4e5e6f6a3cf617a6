// SPDX-License-Identifier: Apache-2.0
// `assay control`: turns capture off and on for all agents of a server, or for some.

#include "cli/remote/control.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/table.h"
#include "http/client/client.h"
#include "io/json_write.h"

#define TOKEN_BYTES_MAX 4096
#define CALL_MS 30000

/* ---- the link ---- */

/* The token is in a file or the environment: a command line can be read by everybody. */
int server_link_open(struct server_link *link, struct error *error)
{
    _cleanup_buffer_ struct buffer token = {0};
    const char *text = getenv("ASSAY_TOKEN");
    if (link->token_file) {
        int r = file_read(link->token_file, TOKEN_BYTES_MAX, &token, error);
        if (r < 0)
            return r;
    } else if (text) {
        buffer_add_text(&token, text);
    }
    while (token.length && isspace((unsigned char)token.data[token.length - 1]))
        token.length--;
    bool is_unix = !strncmp(link->url, "unix:", 5);
    struct http_client_options options = {.ca_file = link->ca,
                                          .bearer = token.length ? buffer_text(&token) : NULL,
                                          .unix_socket = is_unix ? link->url + 5 : NULL,
                                          .timeout_ms = CALL_MS};
    return http_client_new(&options, &link->client, error);
}

void server_link_close(struct server_link *link)
{
    http_client_free(link->client);
    link->client = NULL;
}

struct message {
    char text[1024];
};

static int read_message(struct json *json, void *context)
{
    struct message *message = context;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "message"))
            r = answer_text(json, message->text, sizeof(message->text));
    return r;
}

int server_link_call(struct server_link *link, const char *method, const char *path,
                     const char *body, struct buffer *ret_answer, struct error *error)
{
    _cleanup_buffer_ struct buffer url = {0};
    _cleanup_http_reply_ struct http_reply reply = {0};
    const char *header = "Content-Type: application/json";
    const char *base = strncmp(link->url, "unix:", 5) ? link->url : "http://localhost";
    size_t length = strlen(base);
    while (length && base[length - 1] == '/')
        length--;
    buffer_printf(&url, "%.*s%s", (int)length, base, path);
    struct http_call call = {.method = method,
                             .url = buffer_text(&url),
                             .headers = &header,
                             .header_count = body ? 1 : 0,
                             .body = body,
                             .body_length = body ? strlen(body) : 0};
    int r = http_client_call(link->client, &call, &reply, error);
    if (r < 0)
        return r;
    if (reply.status / 100 != 2) {
        struct message message = {0};
        server_link_read(&reply.body, read_message, &message, NULL);
        return *message.text ? error_set(error, -EIO, "%s", message.text)
                             : http_reply_error(&call, &reply, error);
    }
    buffer_add(ret_answer, reply.body.data, reply.body.length);
    return 0;
}

int server_link_read(const struct buffer *answer, int (*read)(struct json *json, void *context),
                     void *context, struct error *error)
{
    struct source source;
    struct json json;
    int r =
        source_open_memory(&source, "the answer", answer->data, answer->length, 1u << 30, error);
    if (r < 0)
        return r;
    json_init(&json, &source, error);
    r = read(&json, context);
    json_release(&json);
    source_release(&source);
    return MIN(r, 0);
}

int answer_text(struct json *json, char *to, size_t room)
{
    struct json_string text;
    if (json_kind(json) != JSON_STRING)
        return json_skip(json);
    int r = json_string(json, &text);
    if (r >= 0)
        snprintf(to, room, "%.*s", (int)MIN(text.length, room - 1), text.data);
    return r;
}

int answer_number(struct json *json, double *number)
{
    return json_kind(json) == JSON_NUMBER ? json_double(json, number) : json_skip(json);
}

int answer_bool(struct json *json, bool *truth)
{
    return json_kind(json) == JSON_BOOL ? json_bool(json, truth) : json_skip(json);
}

const char *answer_age(double since, char text[24])
{
    double seconds = MAX((double)clock_ns(CLOCK_REALTIME) / 1e9 - since, 0.0);
    if (seconds < 120)
        snprintf(text, 24, "%.0f s", seconds);
    else if (seconds < 7200)
        snprintf(text, 24, "%.0f min", seconds / 60);
    else if (seconds < 172800)
        snprintf(text, 24, "%.0f h", seconds / 3600);
    else
        snprintf(text, 24, "%.0f d", seconds / 86400);
    return text;
}

/* ---- the command ---- */

static const struct column columns[] = {{"capture", "capture", COLUMN_NAME},
                                        {"agents", "selector", COLUMN_NAME},
                                        {"since", "since", COLUMN_NAME},
                                        {"by", "by", COLUMN_NAME},
                                        {"reason", "reason", COLUMN_NAME}};

struct control_answer {
    struct table table;
    double known, silent, off, wanted_off, not_off_yet;
};

static int read_rules(struct json *json, struct table *table)
{
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        char capture[8] = "", selector[2048] = "", by[80] = "", reason[300] = "", age[24];
        double since = 0;
        struct json_string key;
        r = json_object(json);
        while (r >= 0 && (r = json_next_key(json, &key)) > 0)
            if (json_is(&key, "capture"))
                r = answer_text(json, capture, sizeof(capture));
            else if (json_is(&key, "selector"))
                r = answer_text(json, selector, sizeof(selector));
            else if (json_is(&key, "by"))
                r = answer_text(json, by, sizeof(by));
            else if (json_is(&key, "reason"))
                r = answer_text(json, reason, sizeof(reason));
            else if (json_is(&key, "since"))
                r = answer_number(json, &since);
        const struct cell cells[] = {cell_text(capture), cell_text(selector),
                                     cell_text(answer_age(since, age)), cell_text(by),
                                     cell_text(reason)};
        table_add(table, cells);
    }
    return r;
}

static int read_control(struct json *json, void *context)
{
    struct control_answer *answer = context;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "rules")) {
            r = read_rules(json, &answer->table);
        } else if (json_is(&key, "agents")) {
            r = json_object(json);
            while (r >= 0 && (r = json_next_key(json, &key)) > 0)
                r = json_is(&key, "known")         ? answer_number(json, &answer->known)
                    : json_is(&key, "silent")      ? answer_number(json, &answer->silent)
                    : json_is(&key, "off")         ? answer_number(json, &answer->off)
                    : json_is(&key, "wanted_off")  ? answer_number(json, &answer->wanted_off)
                    : json_is(&key, "not_off_yet") ? answer_number(json, &answer->not_off_yet)
                                                   : json_skip(json);
        }
    }
    return r;
}

static int show(const struct buffer *text, struct error *error)
{
    struct control_answer answer = {0};
    _cleanup_buffer_ struct buffer out = {0};
    table_init(&answer.table, columns, ARRAY_LENGTH(columns), "");
    int r = server_link_read(text, read_control, &answer, error);
    if (!r && answer.table.row_count)
        table_write(&answer.table, TABLE_TEXT, false, &out);
    else if (!r)
        buffer_add_text(&out, "Capture is on for all agents.\n");
    if (!r)
        buffer_printf(&out, "%.0f agents known, %.0f of them silent; %.0f don't capture.\n",
                      answer.known, answer.silent, answer.off);
    if (!r && answer.not_off_yet > 0)
        buffer_printf(&out, "%.0f agents have not turned capture off yet.\n", answer.not_off_yet);
    print_buffer(&out);
    table_release(&answer.table);
    return r;
}

int command_control(int argc, char **argv)
{
    struct server_link link = {.url = SERVER_LINK_URL};
    const char *selector = NULL, *reason = NULL;
    bool json = false;
    const struct option own[] = {
        {"Order", .kind = OPTION_GROUP},
        {"agents", 'a', OPTION_TEXT, "SELECTOR",
         "only matching agents, such as '{host=~\"web.*\"}'", &selector},
        {"reason", 'm', OPTION_TEXT, "TEXT", "reason, shown by agents and in the audit log",
         &reason},
        {"Server", .kind = OPTION_GROUP},
        SERVER_LINK_OPTIONS(link),
        {"json", 'j', OPTION_FLAG, NULL, "print the answer as JSON", &json},
        {0}};
    struct command_line line = {
        .command = "control",
        .arguments = "off|on|status",
        .summary = "Turns capture off and on for all agents of a server, or for some.",
        .options = own,
        .least = 1,
        .most = 1,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    const char *word = line.values[0];
    bool status = !strcmp(word, "status");
    if (!status && strcmp(word, "on") && strcmp(word, "off"))
        return options_wrong("control", "Unknown action \"%s\": use off, on or status.", word);
    if (status && (selector || reason))
        return options_wrong("control", "--agents and --reason are for off and on.");
    struct error error = {0};
    _cleanup_buffer_ struct buffer body = {0}, answer = {0};
    struct json_writer writer = json_writer(&body);
    json_write_object(&writer);
    json_member_text(&writer, "capture", word);
    json_member_text(&writer, "selector", selector ? selector : "");
    json_member_text(&writer, "reason", reason ? reason : "");
    json_write_object_end(&writer);
    r = server_link_open(&link, &error);
    if (!r)
        r = server_link_call(&link, status ? "GET" : "POST", "/api/v1/control",
                             status ? NULL : buffer_text(&body), &answer, &error);
    if (!r && json)
        print_buffer(&answer);
    else if (!r)
        r = show(&answer, &error);
    server_link_close(&link);
    return r < 0 ? fail(&error) : EXIT_FINE;
}
