// SPDX-License-Identifier: Apache-2.0
// Where `assay store` does something by the API of a running server: see store.h.

#include <ctype.h>
#include <string.h>

#include "base/file.h"
#include "cli/service/store.h"

#define TIMEOUT_MS 3600000 /* deleting may take long */

void store_address(const struct store_flags *flags, const char *path, struct buffer *url)
{
    const char *base = strncmp(flags->url, "unix:", 5) ? flags->url : "http://localhost";
    size_t length = strlen(base);
    while (length && base[length - 1] == '/')
        length--;
    buffer_printf(url, "%.*s%s", (int)length, base, path);
}

void store_address_add(struct buffer *url, const char *name, const char *value)
{
    buffer_printf(url, "%s%s=", memchr(url->data, '?', url->length) ? "&" : "?", name);
    for (; *value; value++)
        if (isalnum((unsigned char)*value) || strchr("-_.~", *value))
            buffer_add_char(url, *value);
        else
            buffer_printf(url, "%%%02X", (unsigned char)*value);
}

/* The token is in a file or the environment: a command line can be read by everybody. */
static int read_token(const struct store_flags *flags, struct buffer *token, struct error *error)
{
    const char *text = getenv("ASSAY_TOKEN");
    if (flags->token_file && file_read(flags->token_file, 4096, token, error) < 0)
        return error->code;
    if (!flags->token_file && text)
        buffer_add_text(token, text);
    while (token->length && isspace((unsigned char)token->data[token->length - 1]))
        token->length--;
    return 0;
}

int store_client(const struct store_flags *flags, struct http_client **ret_client,
                 struct error *error)
{
    _cleanup_buffer_ struct buffer token = {0};
    int r = read_token(flags, &token, error);
    if (r < 0)
        return r;
    struct http_client_options options = {
        .ca_file = flags->ca,
        .bearer = token.length ? buffer_text(&token) : NULL,
        .unix_socket = strncmp(flags->url, "unix:", 5) ? NULL : flags->url + 5,
        .timeout_ms = TIMEOUT_MS};
    return http_client_new(&options, ret_client, error);
}
