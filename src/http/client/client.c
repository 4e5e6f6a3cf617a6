// SPDX-License-Identifier: Apache-2.0
// The HTTP client: see client.h.

#include "http/client/client.h"

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/text.h"
#include "http/client/client_transfer.h"
#include "http/client/client_wait.h"

#define POLL_MS 1000

struct http_client {
    struct http_transfer transfer;
    CURLM *multi;
    atomic_bool cancelled;
};

void http_reply_release(struct http_reply *reply)
{
    buffer_release(&reply->body);
    *reply = (struct http_reply){0};
}

int http_client_new(const struct http_client_options *options, struct http_client **ret_client,
                    struct error *error)
{
    struct http_client *client = memory_zalloc(1, sizeof(*client));
    int r = http_transfer_init(&client->transfer, options, error);
    if (!r && !(client->multi = curl_multi_init()))
        r = error_set(error, -ENOMEM, "Failed to set up libcurl.");
    if (r < 0) {
        http_client_free(client);
        return r;
    }
    *ret_client = client;
    return 0;
}

void http_client_free(struct http_client *client)
{
    if (!client)
        return;
    http_transfer_release(&client->transfer);
    curl_multi_cleanup(client->multi);
    free(client);
}

void http_client_cancel(struct http_client *client)
{
    atomic_store(&client->cancelled, true);
    curl_multi_wakeup(client->multi);
}

int client_wait(struct http_client *client, unsigned wait_ms)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t until_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + wait_ms;
    for (;;) {
        if (atomic_load(&client->cancelled))
            return -ECANCELED;
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t left_ms = until_ms - ((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
        if (left_ms <= 0)
            return 0;
        curl_multi_poll(client->multi, NULL, 0, (int)MIN(left_ms, 60000), NULL);
    }
}

/* Runs the transfer in a way that another thread can interrupt. */
static int perform(struct http_client *client, CURLcode *ret_code)
{
    int running = 1;
    *ret_code = CURLE_FAILED_INIT;
    if (curl_multi_add_handle(client->multi, client->transfer.easy) != CURLM_OK)
        return 0;
    while (!atomic_load(&client->cancelled)) {
        if (curl_multi_perform(client->multi, &running) != CURLM_OK || !running)
            break;
        curl_multi_poll(client->multi, NULL, 0, POLL_MS, NULL);
    }
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(client->multi, &left));)
        if (message->msg == CURLMSG_DONE)
            *ret_code = message->data.result;
    curl_multi_remove_handle(client->multi, client->transfer.easy);
    return atomic_load(&client->cancelled) ? -ECANCELED : 0;
}

int http_client_call(struct http_client *client, const struct http_call *call,
                     struct http_reply *ret_reply, struct error *error)
{
    CURLcode code = CURLE_FAILED_INIT;
    int r = http_transfer_begin(&client->transfer, call, error);
    bool begun = !r;
    if (begun)
        r = perform(client, &code);
    struct error other;
    struct http_reply reply = {0};
    int result = http_transfer_end(&client->transfer, code, &reply, r < 0 ? &other : error);
    if (r < 0) {
        char place[256];
        http_reply_release(&reply);
        return begun ? error_set(error, r, "The request to %s was cancelled.",
                                 http_url_place(call->url, place))
                     : r;
    }
    if (!result)
        *ret_reply = reply;
    return result;
}

int http_reply_error(const struct http_call *call, const struct http_reply *reply,
                     struct error *error)
{
    char place[256];
    _cleanup_buffer_ struct buffer message = {0};
    text_escape_terminal(&message, reply->body.data, MIN(reply->body.length, (size_t)300));
    while (message.length && message.data[message.length - 1] == '\n')
        message.length--;
    int code = reply->status == 401 || reply->status == 403   ? -EACCES
               : reply->status == 404                         ? -ENOENT
               : reply->status == 413                         ? -E2BIG
               : reply->status == 429 || reply->status == 503 ? -EAGAIN
                                                              : -EIO;
    return error_set(error, code, "%s answered %u%s%s", http_url_place(call->url, place),
                     reply->status, message.length ? ": " : ".",
                     message.length ? buffer_text(&message) : "");
}
