// SPDX-License-Identifier: Apache-2.0
// Connections to the server: see client.h.

#include "agent/send/client.h"

#include <string.h>

#include "base/file.h"

#define TOKEN_BYTES_MAX 4096

int agent_client_new(const struct agent_settings *settings, unsigned timeout_ms,
                     size_t answer_limit_bytes, struct http_client **ret_client,
                     struct error *error)
{
    _cleanup_buffer_ struct buffer token = {0};
    struct http_client_options options = {.ca_file = settings->ca_file,
                                          .certificate_file = settings->certificate_file,
                                          .key_file = settings->key_file,
                                          .proxy = settings->proxy,
                                          .timeout_ms = timeout_ms,
                                          .answer_limit_bytes = answer_limit_bytes};
    if (settings->token_file) {
        int r = file_read(settings->token_file, TOKEN_BYTES_MAX, &token, error);
        if (r < 0)
            return r;
        while (token.length && strchr(" \t\r\n", token.data[token.length - 1]))
            token.length--;
        options.bearer = buffer_text(&token);
    }
    return http_client_new(&options, ret_client, error);
}

void agent_url(const struct agent_settings *settings, const char *path, struct buffer *ret_url)
{
    size_t length = strlen(settings->server_url);
    while (length && settings->server_url[length - 1] == '/')
        length--;
    buffer_printf(ret_url, "%.*s%s", (int)length, settings->server_url, path);
}
