// SPDX-License-Identifier: Apache-2.0
// Addresses of a server's API: see address.h.

#include "cli/remote/address.h"

#include <ctype.h>
#include <string.h>

void address_begin(struct buffer *url, const struct server_link *link, const char *path)
{
    const char *base = strncmp(link->url, "unix:", 5) ? link->url : "http://localhost";
    size_t length = strlen(base);
    while (length && base[length - 1] == '/')
        length--;
    buffer_printf(url, "%.*s%s", (int)length, base, path);
}

void address_add_escaped(struct buffer *url, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (isalnum(c) || strchr("-_.~", c))
            buffer_add_char(url, (char)c);
        else
            buffer_printf(url, "%%%02X", c);
    }
}

void address_add_parameter(struct buffer *url, const char *name, const char *value)
{
    if (!value)
        return;
    buffer_add_text(url, memchr(url->data, '?', url->length) ? "&" : "?");
    address_add_escaped(url, name);
    buffer_add_char(url, '=');
    address_add_escaped(url, value);
}

static int read_message(struct json *json, void *context)
{
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        r = json_is(&key, "message") ? answer_text(json, context, 1024) : json_skip(json);
    return r;
}

int address_call(struct server_link *link, const struct http_call *call, struct buffer *ret_answer,
                 struct error *error)
{
    static const struct http_retry retry = {.longest_ms = 10000};
    _cleanup_http_reply_ struct http_reply reply = {0};
    char message[1024] = "";
    int r = http_client_call_retrying(link->client, call, &retry, &reply, error);
    if (r < 0)
        return r;
    if (reply.status / 100 == 2) {
        if (ret_answer)
            buffer_add(ret_answer, reply.body.data, reply.body.length);
        return 0;
    }
    server_link_read(&reply.body, read_message, message, NULL);
    return *message ? error_set(error, -EIO, "%s", message) : http_reply_error(call, &reply, error);
}
