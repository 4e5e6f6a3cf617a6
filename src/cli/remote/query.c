// SPDX-License-Identifier: Apache-2.0
// `assay query`: what a server's API answers, from a shell.

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/remote/query_table.h"
#include "http/client/client.h"
#include "io/json.h"

struct query_options {
    const char *url, *from, *to, *format, *output, *token_file, *ca, *step, *aggregate, *function,
        *base_query, *base_from, *base_to, *normalize, *band, *faster;
    struct option_list group_by, spans, traces;
    uint64_t limit, max_nodes;
    bool cumulative, original_names, own;
};

/* The queries, and their options beside --from and --to. Each takes a query
 * unless it says `plain`. */
struct subject {
    const char *name;
    const char *argument; /* before the query; NULL: none */
    const char *options;
    const char *formats; /* of the server; "" where there is JSON only */
    bool plain;
};

static const struct subject subjects[] = {
    {"types", NULL, "", "", false},
    {"labels", NULL, "", "", false},
    {"values", "LABEL", "", "", false},
    {"series", NULL, "", "", false},
    {"top", NULL, "limit cum span trace original-names agg", "", false},
    {"callers", "FUNCTION", "limit max-nodes span trace original-names agg", "", false},
    {"flame", NULL, "max-nodes span trace original-names agg",
     "json pprof folded svg html otlp speedscope", false},
    {"profile", NULL, "max-nodes span trace original-names agg",
     "json pprof folded svg html otlp speedscope", false},
    {"timeseries", NULL, "step group-by limit function cum agg", "", false},
    {"cost", NULL, "limit group-by", "", false},
    {"whatif", NULL, "function faster self", "", false},
    {"diff", NULL, "base base-from base-to normalize limit cum original-names agg", "json svg html",
     false},
    {"exemplars", NULL, "function limit span trace", "", false},
    {"requests", NULL, "limit band", "", false},
    {"senders", NULL, "", "", true},
    {"targets", NULL, "", "", true},
    {"health", NULL, "", "", true},
};

static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (!at[length] || at[length] == ' '))
            return true;
    return false;
}

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

static void add_list(struct buffer *url, const char *name, const struct option_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        add_parameter(url, name, list->values[i]);
}

static void add_number(struct buffer *url, const char *name, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    add_parameter(url, name, number ? text : NULL);
}

static void build_url(const struct query_options *options, const struct subject *subject,
                      const struct command_line *line, struct buffer *url)
{
    int query = 1 + (subject->argument != NULL);
    const char *base = strncmp(options->url, "unix:", 5) ? options->url : "http://localhost";
    size_t length = strlen(base);
    while (length && base[length - 1] == '/')
        length--;
    buffer_printf(url, "%.*s/api/v1/", (int)length, base);
    if (!strcmp(subject->name, "values")) {
        buffer_add_text(url, "label/");
        add_escaped(url, line->values[1]);
        buffer_add_text(url, "/values");
    } else {
        buffer_add_text(url, subject->name);
    }
    if (!strcmp(subject->name, "callers"))
        add_parameter(url, "function", line->values[1]);
    if (line->count > query)
        add_parameter(url, "query", line->values[query]);
    add_parameter(url, "from", options->from);
    add_parameter(url, "to", options->to);
    if (options->format && has_word(subject->formats, options->format))
        add_parameter(url, "format", options->format);
    add_parameter(url, "step", options->step);
    add_parameter(url, "function", options->function);
    add_parameter(url, "base_query", options->base_query);
    add_parameter(url, "base_from", options->base_from);
    add_parameter(url, "base_to", options->base_to);
    add_parameter(url, "normalize", options->normalize);
    add_parameter(url, "band", options->band);
    add_parameter(url, "faster", options->faster);
    add_parameter(url, "agg", options->aggregate);
    add_list(url, "group_by", &options->group_by);
    add_list(url, "span_id", &options->spans);
    add_list(url, "trace_id", &options->traces);
    if (options->cumulative)
        add_parameter(url, strcmp(subject->name, "timeseries") ? "sort" : "count", "cum");
    if (options->own)
        add_parameter(url, "count", "flat");
    if (options->original_names)
        add_parameter(url, "names", "original");
    add_number(url, "limit", options->limit);
    add_number(url, "max_nodes", options->max_nodes);
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

/* Prints the answer in the requested format: a table unless it is a file. */
static int show(const struct query_options *options, const struct subject *subject,
                struct buffer *answer, struct error *error)
{
    enum table_format format = TABLE_TEXT;
    _cleanup_buffer_ struct buffer out = {0};
    const char *path = options->output ? options->output : "-";
    bool table =
        query_table_known(subject->name) &&
        (!options->format || !strcmp(options->format, "csv") || !strcmp(options->format, "text"));
    if (!table)
        return file_write_atomic(path, answer->data, answer->length, error);
    table_format_parse(options->format, &format);
    const char *view = subject->name;
    if (!strcmp(view, "cost") && options->group_by.count &&
        !strcmp(options->group_by.values[0], "function"))
        view = "cost function";
    int r =
        query_table_write(view, answer, format, !options->output && terminal_colour(), &out, error);
    return r < 0 ? r : file_write_atomic(path, out.data, out.length, error);
}

/* The server's own sentence, where it is one of its errors. */
static int explain(const struct http_call *call, const struct http_reply *reply,
                   struct error *error)
{
    struct source source;
    struct json json;
    struct json_string key, text;
    bool found = false;
    if (source_open_memory(&source, "answer", reply->body.data, reply->body.length, 1u << 20,
                           NULL) < 0)
        return http_reply_error(call, reply, error);
    json_init(&json, &source, NULL);
    int r = json_object(&json);
    while (r >= 0 && !found && (r = json_next_key(&json, &key)) > 0)
        if (json_is(&key, "message") && (r = json_string(&json, &text)) >= 0) {
            error_set(error, -EIO, "%.*s", (int)MIN(text.length, (size_t)2000), text.data);
            found = true;
        }
    json_release(&json);
    source_release(&source);
    return found ? -EIO : http_reply_error(call, reply, error);
}

static int run(const struct query_options *options, const struct subject *subject,
               const struct command_line *line)
{
    _cleanup_buffer_ struct buffer url = {0}, token = {0};
    struct error error = {0};
    struct http_client *client;
    int r = read_token(options, &token);
    if (r)
        return r;
    build_url(options, subject, line, &url);
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
        r = explain(&call, &reply, &error);
    if (!r)
        r = show(options, subject, &reply.body, &error);
    http_client_free(client);
    return r < 0 ? fail(&error) : EXIT_FINE;
}

/* Options that the subject has no use for would be left out without a word. */
static int check_options(const struct query_options *options, const struct subject *subject)
{
    const struct {
        const char *name;
        bool given;
    } given[] = {{"limit", options->limit},
                 {"cum", options->cumulative},
                 {"original-names", options->original_names},
                 {"step", options->step},
                 {"agg", options->aggregate},
                 {"group-by", options->group_by.count},
                 {"function", options->function},
                 {"faster", options->faster},
                 {"self", options->own},
                 {"span", options->spans.count},
                 {"trace", options->traces.count},
                 {"max-nodes", options->max_nodes},
                 {"base", options->base_query},
                 {"base-from", options->base_from},
                 {"base-to", options->base_to},
                 {"normalize", options->normalize},
                 {"band", options->band}};
    for (size_t i = 0; i < ARRAY_LENGTH(given); i++)
        if (given[i].given && !has_word(subject->options, given[i].name))
            return options_wrong("query", "--%s doesn't apply to %s.", given[i].name,
                                 subject->name);
    if (subject->plain && (options->from || options->to))
        return options_wrong("query", "%s shows the current state: it accepts no time range.",
                             subject->name);
    const char *format = options->format;
    bool table = query_table_known(subject->name);
    if (format && !has_word(subject->formats, format) && strcmp(format, "json") &&
        !(table && (!strcmp(format, "csv") || !strcmp(format, "text"))))
        return options_wrong("query", "%s is not available as %s; use %s%s.", subject->name, format,
                             *subject->formats ? subject->formats : "json",
                             table ? " text csv" : "");
    /* A file of bytes on a terminal helps nobody. */
    bool binary = format ? !strcmp(format, "pprof") || !strcmp(format, "otlp")
                         : !strcmp(subject->name, "profile");
    if (binary && !options->output && isatty(STDOUT_FILENO))
        return options_wrong("query", "The output is binary; specify a file with -o.");
    return EXIT_FINE;
}

int command_query(int argc, char **argv)
{
    struct query_options options = {.url = "http://127.0.0.1:4040"};
    const struct option own[] = {
        {"Question", .kind = OPTION_GROUP},
        {"from", 0, OPTION_TEXT, "T", "unix seconds, RFC 3339 or now-1h (default)", &options.from},
        {"to", 0, OPTION_TEXT, "T", "end, in the same formats (now)", &options.to},
        {"limit", 'n', OPTION_COUNT, "N", "number of functions, exemplars or time series",
         &options.limit},
        {"cum", 'c', OPTION_FLAG, NULL, "sort by cumulative values", &options.cumulative},
        {"agg", 0, OPTION_TEXT, "HOW", "value of a level: average, last or max",
         &options.aggregate},
        {"original-names", 0, OPTION_FLAG, NULL, "names as reported by the profiler",
         &options.original_names},
        {"max-nodes", 0, OPTION_COUNT, "N", "nodes of a flame graph (8192)", &options.max_nodes},
        {"span", 0, OPTION_LIST, "ID", "only samples of this span", &options.spans},
        {"trace", 0, OPTION_LIST, "ID", "only samples of this trace", &options.traces},
        {"step", 0, OPTION_TEXT, "T", "step of a time series, such as 1m", &options.step},
        {"group-by", 0, OPTION_LIST, "LABEL", "a time series or cost for each value of this label",
         &options.group_by},
        {"function", 0, OPTION_TEXT, "NAME", "only this function: time series, exemplars, whatif",
         &options.function},
        {"faster", 0, OPTION_TEXT, "SHARE", "whatif: less time by this share, such as 30%",
         &options.faster},
        {"self", 0, OPTION_FLAG, NULL, "whatif: only the function's own time", &options.own},
        {"base", 0, OPTION_TEXT, "QUERY", "diff: query of the base (default: QUERY)",
         &options.base_query},
        {"base-from", 0, OPTION_TEXT, "T", "diff: time range of the base", &options.base_from},
        {"base-to", 0, OPTION_TEXT, "T", "diff: time range of the base", &options.base_to},
        {"normalize", 0, OPTION_TEXT, "BY", "diff: duration (per second, default), total or none",
         &options.normalize},
        {"band", 0, OPTION_TEXT, "BAND", "only requests such as p99, 250ms, 100ms-1s or errors",
         &options.band},
        {"Answer", .kind = OPTION_GROUP},
        {"format", 'f', OPTION_TEXT, "F", "text, csv or json; flame: svg, html, pprof, folded ...",
         &options.format},
        {"output", 'o', OPTION_TEXT, "OUT", "output file (default: standard output)",
         &options.output},
        {"Server", .kind = OPTION_GROUP},
        {"url", 'u', OPTION_TEXT, "URL", "the server (http://127.0.0.1:4040); also unix:PATH",
         &options.url},
        {"token-file", 0, OPTION_TEXT, "FILE", "file with the token; default: $ASSAY_TOKEN",
         &options.token_file},
        {"ca", 0, OPTION_TEXT, "FILE", "certificate authority of the server, PEM", &options.ca},
        {0}};
    struct command_line line = {
        .command = "query",
        .arguments = "WHAT [QUERY]",
        .summary = "Queries a server. WHAT is types, labels, values LABEL, series, top, callers "
                   "FUNCTION,\nflame, profile, timeseries, cost, whatif, diff, exemplars, "
                   "requests, senders,\ntargets or health; a query is like cpu{service=\"x\"}.",
        .options = own,
        .least = 1,
        .most = 3,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    const struct subject *subject = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(subjects); i++)
        if (!strcmp(line.values[0], subjects[i].name))
            subject = &subjects[i];
    if (!subject)
        return options_wrong("query", "Unknown kind of query \"%s\".", line.values[0]);
    int most = subject->plain ? 1 : 2 + (subject->argument != NULL);
    if (subject->argument && line.count < 2)
        return options_wrong("query", "%s requires a %s.", subject->name, subject->argument);
    if (line.count > most)
        return options_wrong("query", most == 1 ? "%s accepts no query." : "%s requires one query.",
                             subject->name);
    r = check_options(&options, subject);
    return r ? r : run(&options, subject, &line);
}
