// SPDX-License-Identifier: Apache-2.0
// `assay query`: what a server's API answers, from a shell.

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "http/client.h"

struct query_options {
    const char *url, *from, *to, *format, *output, *token_file, *ca, *step, *function, *base_query,
        *base_from, *base_to;
    struct option_list group_by;
    uint64_t limit;
    bool cumulative;
};

static const char *const subjects[] = {"types", "labels",    "values",  "series",
                                       "top",   "flame",     "profile", "timeseries",
                                       "diff",  "exemplars", "senders", "health"};

static void add_escaped(struct buffer *url, const char *text)
{
    for (; *text; text++)
        if (isalnum((unsigned char)*text) || strchr("-_.~", *text))
            buffer_add_char(url, *text);
        else
            buffer_printf(url, "%%%02X", (unsigned char)*text);
}

static void add_parameter(struct buffer *url, const char *name, const char *value)
{
    if (!value)
        return;
    buffer_printf(url, "%s%s=", memchr(url->data, '?', url->length) ? "&" : "?", name);
    add_escaped(url, value);
}

static void build_url(const struct query_options *options, const struct command_line *line,
                      struct buffer *url)
{
    const char *subject = line->values[0];
    bool values = !strcmp(subject, "values");
    const char *base = strncmp(options->url, "unix:", 5) ? options->url : "http://localhost";
    size_t length = strlen(base);
    while (length && base[length - 1] == '/')
        length--;
    buffer_printf(url, "%.*s/api/v1/", (int)length, base);
    if (values) {
        buffer_add_text(url, "label/");
        add_escaped(url, line->values[1]);
        buffer_add_text(url, "/values");
    } else {
        buffer_add_text(url, subject);
    }
    if (line->count > 1 + values)
        add_parameter(url, "query", line->values[1 + values]);
    add_parameter(url, "from", options->from);
    add_parameter(url, "to", options->to);
    add_parameter(url, "format", options->format);
    add_parameter(url, "step", options->step);
    add_parameter(url, "function", options->function);
    add_parameter(url, "base_query", options->base_query);
    add_parameter(url, "base_from", options->base_from);
    add_parameter(url, "base_to", options->base_to);
    for (size_t i = 0; i < options->group_by.count; i++)
        add_parameter(url, "group_by", options->group_by.values[i]);
    if (options->cumulative) {
        add_parameter(url, "sort", "cum");
        add_parameter(url, "count", "cum");
    }
    if (options->limit) {
        char number[24];
        snprintf(number, sizeof(number), "%llu", (unsigned long long)options->limit);
        add_parameter(url, "limit", number);
    }
}

/* The token is in a file or the environment: a command line can be read by everybody. */
static int read_token(const struct query_options *options, struct buffer *token)
{
    const char *text = getenv("ASSAY_TOKEN");
    struct error error = {0};
    if (options->token_file && file_read(options->token_file, 4096, token, &error) < 0)
        return fail(&error);
    if (!options->token_file && text)
        buffer_add_text(token, text);
    while (token->length && isspace((unsigned char)token->data[token->length - 1]))
        token->length--;
    return EXIT_FINE;
}

static int run(const struct query_options *options, const struct command_line *line)
{
    _cleanup_buffer_ struct buffer url = {0}, token = {0};
    struct error error = {0};
    struct http_client *client;
    int r = read_token(options, &token);
    if (r)
        return r;
    build_url(options, line, &url);
    struct http_client_options client_options = {
        .ca_file = options->ca,
        .bearer = token.length ? buffer_text(&token) : NULL,
        .unix_socket = strncmp(options->url, "unix:", 5) ? NULL : options->url + 5,
        .timeout_ms = 120000,
        .answer_limit_bytes = 1u << 30};
    if (http_client_new(&client_options, &client, &error) < 0)
        return fail(&error);
    struct http_call call = {.url = buffer_text(&url)};
    _cleanup_http_reply_ struct http_reply reply = {0};
    r = http_client_call(client, &call, &reply, &error);
    if (!r && reply.status != 200)
        r = http_reply_error(&call, &reply, &error);
    if (!r)
        r = file_write_atomic(options->output ? options->output : "-", reply.body.data,
                              reply.body.length, &error);
    http_client_free(client);
    return r < 0 ? fail(&error) : EXIT_FINE;
}

int command_query(int argc, char **argv)
{
    struct query_options options = {.url = "http://127.0.0.1:4040"};
    const struct option own[] = {
        {"Question", .kind = OPTION_GROUP},
        {"from", 0, OPTION_TEXT, "T", "unix seconds, RFC 3339 or now-1h, which is the default",
         &options.from},
        {"to", 0, OPTION_TEXT, "T", "likewise (now)", &options.to},
        {"limit", 'n', OPTION_COUNT, "N", "how many functions or exemplars (100)", &options.limit},
        {"cum", 'c', OPTION_FLAG, NULL, "by cumulative values", &options.cumulative},
        {"step", 0, OPTION_TEXT, "T", "of a time series, such as 1m", &options.step},
        {"group-by", 0, OPTION_LIST, "LABEL", "a time series for each value of it",
         &options.group_by},
        {"function", 0, OPTION_TEXT, "NAME", "time series or exemplars of that one",
         &options.function},
        {"base", 0, OPTION_TEXT, "QUERY", "of a diff: what to compare with (the same)",
         &options.base_query},
        {"base-from", 0, OPTION_TEXT, "T", "of a diff", &options.base_from},
        {"base-to", 0, OPTION_TEXT, "T", "of a diff", &options.base_to},
        {"Answer", .kind = OPTION_GROUP},
        {"format", 'f', OPTION_TEXT, "F", "json, pprof, folded, svg, html, otlp or speedscope",
         &options.format},
        {"output", 'o', OPTION_TEXT, "OUT", "file to write instead of standard output",
         &options.output},
        {"Server", .kind = OPTION_GROUP},
        {"url", 'u', OPTION_TEXT, "URL", "the server (http://127.0.0.1:4040); also unix:PATH",
         &options.url},
        {"token-file", 0, OPTION_TEXT, "FILE", "file with the token; $ASSAY_TOKEN without it",
         &options.token_file},
        {"ca", 0, OPTION_TEXT, "FILE", "authority of the server's certificate, PEM", &options.ca},
        {0}};
    struct command_line line = {
        .command = "query",
        .arguments = "WHAT [QUERY]",
        .summary =
            "Asks a server. WHAT is types, labels, values LABEL, series, top, flame, profile,\n"
            "timeseries, diff, exemplars, senders or health; a query is as cpu{service=\"x\"}.",
        .options = own,
        .least = 1,
        .most = 3,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    bool known = false;
    for (size_t i = 0; i < ARRAY_LENGTH(subjects); i++)
        known |= !strcmp(line.values[0], subjects[i]);
    bool values = known && !strcmp(line.values[0], "values");
    if (!known)
        return options_wrong("query", "\"%s\" is nothing that can be asked for.", line.values[0]);
    if (values && line.count < 2)
        return options_wrong("query", "Say which label's values, as in: values service_name.");
    if (line.count > 2 + values)
        return options_wrong("query", "There is one query at most.");
    return run(&options, &line);
}
