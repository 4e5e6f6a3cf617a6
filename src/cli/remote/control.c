// SPDX-License-Identifier: Apache-2.0
// `assay control`: turns capture off and on, and sets rates and collectors, for all agents of a
// server or for some.

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

static const struct column sampling_columns[] = {{"sampling", "sampling", COLUMN_NAME},
                                                 {"agents", "selector", COLUMN_NAME},
                                                 {"since", "since", COLUMN_NAME},
                                                 {"by", "by", COLUMN_NAME},
                                                 {"reason", "reason", COLUMN_NAME}};

struct control_answer {
    struct table table, sampling;
    double known, silent, off, wanted_off, not_off_yet;
};

/* {"rate":9,"wall":false,"wall_rate":5} as text. */
static int read_sampling(struct json *json, char *text, size_t room)
{
    struct json_string key;
    double rate = 0, wall_rate = 0;
    bool has_wall = false, wall = false;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "rate"))
            r = answer_number(json, &rate);
        else if (json_is(&key, "wall_rate"))
            r = answer_number(json, &wall_rate);
        else if (json_is(&key, "wall"))
            r = answer_bool(json, &wall), has_wall = true;
    _cleanup_buffer_ struct buffer out = {0};
    if (rate > 0)
        buffer_printf(&out, "%.0f Hz", rate);
    if (has_wall)
        buffer_printf(&out, "%swall time %s", out.length ? ", " : "", wall ? "on" : "off");
    if (wall_rate > 0)
        buffer_printf(&out, "%swaits at %.0f Hz", out.length ? ", " : "", wall_rate);
    snprintf(text, room, "%s", out.length ? buffer_text(&out) : "own settings");
    return r;
}

/* Rules for capture, or for sampling. */
static int read_rules(struct json *json, struct table *table)
{
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        char what[80] = "", selector[2048] = "", by[80] = "", reason[300] = "", age[24];
        double since = 0;
        struct json_string key;
        r = json_object(json);
        while (r >= 0 && (r = json_next_key(json, &key)) > 0)
            if (json_is(&key, "capture"))
                r = answer_text(json, what, sizeof(what));
            else if (json_is(&key, "sampling"))
                r = read_sampling(json, what, sizeof(what));
            else if (json_is(&key, "selector"))
                r = answer_text(json, selector, sizeof(selector));
            else if (json_is(&key, "by"))
                r = answer_text(json, by, sizeof(by));
            else if (json_is(&key, "reason"))
                r = answer_text(json, reason, sizeof(reason));
            else if (json_is(&key, "since"))
                r = answer_number(json, &since);
        const struct cell cells[] = {cell_text(what), cell_text(selector),
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
        } else if (json_is(&key, "sampling")) {
            r = read_rules(json, &answer->sampling);
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
    table_init(&answer.sampling, sampling_columns, ARRAY_LENGTH(sampling_columns), "");
    int r = server_link_read(text, read_control, &answer, error);
    if (!r && answer.table.row_count)
        table_write(&answer.table, TABLE_TEXT, false, &out);
    else if (!r)
        buffer_add_text(&out, "Capture is on for all agents.\n");
    if (!r && answer.sampling.row_count)
        table_write(&answer.sampling, TABLE_TEXT, false, &out);
    if (!r)
        buffer_printf(&out, "%.0f agents known, %.0f of them silent; %.0f don't capture.\n",
                      answer.known, answer.silent, answer.off);
    if (!r && answer.not_off_yet > 0)
        buffer_printf(&out, "%.0f agents have not turned capture off yet.\n", answer.not_off_yet);
    print_buffer(&out);
    table_release(&answer.table);
    table_release(&answer.sampling);
    return r;
}

/* The options of an order. */
struct order {
    const char *selector, *reason, *wall;
    uint64_t rate_hz, wall_rate_hz;
    bool reset;
};

static bool has_sampling(const struct order *order)
{
    return order->rate_hz || order->wall_rate_hz || order->wall || order->reset;
}

/* NULL, or why the options don't make this order. */
static const char *wrong_order(const char *word, const struct order *order)
{
    bool status = !strcmp(word, "status"), sampling = !strcmp(word, "sampling");
    if (status && (order->selector || order->reason))
        return "--agents and --reason are for off, on and sampling.";
    if (!sampling && has_sampling(order))
        return "--rate, --wall, --wall-rate and --reset are for sampling.";
    if (sampling && !has_sampling(order))
        return "Specify --rate, --wall or --wall-rate, or --reset for the agents' own settings.";
    if (order->reset && (order->rate_hz || order->wall_rate_hz || order->wall))
        return "--reset can't be combined with --rate, --wall and --wall-rate.";
    if (order->wall && strcmp(order->wall, "on") && strcmp(order->wall, "off"))
        return "--wall must be on or off.";
    return NULL;
}

static void write_order(const char *word, const struct order *order, struct buffer *out)
{
    struct json_writer json = json_writer(out);
    json_write_object(&json);
    if (has_sampling(order)) {
        json_write_key(&json, "sampling");
        json_write_object(&json);
        if (order->rate_hz)
            json_member_unsigned(&json, "rate", order->rate_hz);
        if (order->wall)
            json_member_bool(&json, "wall", !strcmp(order->wall, "on"));
        if (order->wall_rate_hz)
            json_member_unsigned(&json, "wall_rate", order->wall_rate_hz);
        json_write_object_end(&json);
    } else {
        json_member_text(&json, "capture", word);
    }
    json_member_text(&json, "selector", order->selector ? order->selector : "");
    json_member_text(&json, "reason", order->reason ? order->reason : "");
    json_write_object_end(&json);
}

int command_control(int argc, char **argv)
{
    struct server_link link = {.url = SERVER_LINK_URL};
    struct order order = {0};
    bool json = false;
    const struct option own[] = {
        {"Order", .kind = OPTION_GROUP},
        {"agents", 'a', OPTION_TEXT, "SELECTOR",
         "only matching agents, such as '{host=~\"web.*\"}'", &order.selector},
        {"reason", 'm', OPTION_TEXT, "TEXT", "reason, shown by agents and in the audit log",
         &order.reason},
        {"Sampling", .kind = OPTION_GROUP},
        {"rate", 'r', OPTION_COUNT, "HZ", "samples per second on each CPU", &order.rate_hz},
        {"wall", 'w', OPTION_TEXT, "on|off", "wall-clock time by state", &order.wall},
        {"wall-rate", 0, OPTION_COUNT, "HZ", "waits with their stacks, per second on each CPU",
         &order.wall_rate_hz},
        {"reset", 0, OPTION_FLAG, NULL, "the agents' own settings again", &order.reset},
        {"Server", .kind = OPTION_GROUP},
        SERVER_LINK_OPTIONS(link),
        {"json", 'j', OPTION_FLAG, NULL, "print the answer as JSON", &json},
        {0}};
    struct command_line line = {
        .command = "control",
        .arguments = "off|on|sampling|status",
        .summary =
            "Turns capture off and on, and sets rates and collectors, for agents of a server.",
        .options = own,
        .least = 1,
        .most = 1,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    const char *word = line.values[0];
    bool status = !strcmp(word, "status");
    if (!status && strcmp(word, "on") && strcmp(word, "off") && strcmp(word, "sampling"))
        return options_wrong("control", "Unknown action \"%s\": use off, on, sampling or status.",
                             word);
    const char *wrong = wrong_order(word, &order);
    if (wrong)
        return options_wrong("control", "%s", wrong);
    struct error error = {0};
    _cleanup_buffer_ struct buffer body = {0}, answer = {0};
    write_order(word, &order, &body);
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
