// SPDX-License-Identifier: Apache-2.0
// `assay explain`: a server's explanation of what rose in a service.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/remote/address.h"
#include "cli/table.h"

struct explanation {
    struct buffer text, link;
};

static int read_answer(struct json *json, void *context)
{
    struct explanation *explanation = context;
    struct json_string key, text;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        struct buffer *to = json_is(&key, "text")   ? &explanation->text
                            : json_is(&key, "link") ? &explanation->link
                                                    : NULL;
        if (to && (r = json_string(json, &text)) >= 0)
            buffer_add(to, text.data, text.length);
    }
    return r;
}

/* Names come from profiles: line by line, since lines are ours. */
static void print_escaped(const struct buffer *text, struct buffer *out)
{
    const char *at = text->data, *end = text->data + text->length;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        text_escape_terminal(out, at, (size_t)((stop ? stop : end) - at));
        buffer_add_char(out, '\n');
        at = stop ? stop + 1 : end;
    }
}

/* 14:32 and 14:32:10 are the last such times of this machine's clock; all else is the server's. */
static const char *clock_time(const char *text, char to[32])
{
    time_t now = time(NULL);
    struct tm tm;
    int hour, minute, second = 0, length = 0;
    bool parsed =
        (sscanf(text, "%2d:%2d%n", &hour, &minute, &length) == 2 && !text[length]) ||
        (sscanf(text, "%2d:%2d:%2d%n", &hour, &minute, &second, &length) == 3 && !text[length]);
    if (!parsed || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
        second > 59 || !localtime_r(&now, &tm))
        return text;
    tm.tm_hour = hour;
    tm.tm_min = minute;
    tm.tm_sec = second;
    tm.tm_isdst = -1;
    time_t at = mktime(&tm);
    if (at > now) {
        tm.tm_mday--;
        tm.tm_hour = hour;
        tm.tm_min = minute;
        tm.tm_sec = second;
        tm.tm_isdst = -1;
        at = mktime(&tm);
    }
    snprintf(to, 32, "%lld", (long long)at);
    return to;
}

static int explain(struct server_link *link, const char *service, const char *at,
                   const char *window, bool as_json)
{
    _cleanup_buffer_ struct buffer url = {0}, answer = {0}, out = {0};
    struct explanation explanation = {0};
    struct error error = {0};
    char clock[32];
    address_begin(&url, link, "/api/v1/explain");
    address_add_parameter(&url, "service", service);
    address_add_parameter(&url, "at", at ? clock_time(at, clock) : NULL);
    address_add_parameter(&url, "window", window);
    struct http_call call = {.method = "GET", .url = buffer_text(&url)};
    int r = address_call(link, &call, &answer, &error);
    if (!r && as_json) {
        print_buffer(&answer);
        return EXIT_FINE;
    }
    if (!r)
        r = server_link_read(&answer, read_answer, &explanation, &error);
    if (!r) {
        print_escaped(&explanation.text, &out);
        buffer_add_text(&out, "Comparison: ");
        buffer_add_text(&out, strncmp(link->url, "unix:", 5) ? link->url : "");
        text_escape_terminal(&out, explanation.link.data, explanation.link.length);
        buffer_add_char(&out, '\n');
        print_buffer(&out);
    }
    buffer_release(&explanation.text);
    buffer_release(&explanation.link);
    return r < 0 ? fail(&error) : EXIT_FINE;
}

int command_explain(int argc, char **argv)
{
    struct server_link link = {.url = SERVER_LINK_URL};
    const char *service = NULL, *at = NULL, *window = NULL, *format = NULL;
    const struct option own[] = {
        {"Selection", .kind = OPTION_GROUP},
        {"service", 0, OPTION_TEXT, "S", "the service", &service},
        {"at", 0, OPTION_TEXT, "T", "14:32, unix seconds, RFC 3339 or now-10m (now)", &at},
        {"window", 0, OPTION_TEXT, "T", "length of the time around it: 30s to 6h (5m)", &window},
        {"Output", .kind = OPTION_GROUP},
        {"format", 'f', OPTION_TEXT, "F", "text or json", &format},
        SERVER_URL_OPTIONS(link),
        {0}};
    struct command_line line = {
        .command = "explain",
        .arguments = "",
        .summary = "Explains what rose in a service at a time: which functions are responsible, by "
                   "how much,\nhow certain that is, since which version, and traces that show it.",
        .options = own,
    };
    struct error error = {0};
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    if (!service)
        return options_wrong("explain", "Specify the service with --service.");
    if (format && strcmp(format, "text") != 0 && strcmp(format, "json") != 0)
        return options_wrong("explain", "--format must be text or json, not \"%s\".", format);
    if (server_link_open(&link, &error) < 0)
        return fail(&error);
    r = explain(&link, service, at, window, format && !strcmp(format, "json"));
    server_link_close(&link);
    return r;
}
