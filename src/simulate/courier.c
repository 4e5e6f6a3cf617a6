// SPDX-License-Identifier: Apache-2.0
// Many connections on one thread: see courier.h. Each agent has a host name of its own for the HTTP
// client, so that none uses the connection of another.

#include "simulate/courier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "http/client/client_multi.h"

#define ANSWER_MAX 65536
#define TIMEOUT_MS 600000
#define RETRY_AFTER_MAX_MS 3600000

struct connection {
    uint32_t index;
    int64_t started_ns;
};

struct courier {
    struct http_multi *multi;
    struct buffer url; /* the server's, without a slash at its end */
    char *token;       /* NULL: none */
    bool named;        /* agents have names: TLS would check these */
    struct connection *connections;
    struct courier_answer *ready;
    size_t ready_count, ready_capacity;
};

static void add_answer(struct courier *courier, const struct connection *connection, int result,
                       const struct http_reply *reply, const struct error *error)
{
    struct courier_answer answer = {.connection = connection->index,
                                    .retry_after_ms = -1,
                                    .latency_ns = monotonic_ns() - connection->started_ns};
    if (result < 0) {
        snprintf(answer.text, sizeof(answer.text), "%s", error->text);
    } else {
        answer.status = reply->status;
        answer.retry_after_ms = MIN(reply->retry_after_ms, (int64_t)RETRY_AFTER_MAX_MS);
        snprintf(answer.text, sizeof(answer.text), "%.*s",
                 (int)MIN(reply->body.length, sizeof(answer.text) - 1), reply->body.data);
    }
    answer.text[strcspn(answer.text, "\r\n")] = 0;
    array_reserve(courier->ready, courier->ready_capacity, courier->ready_count + 1);
    courier->ready[courier->ready_count++] = answer;
}

static void take_reply(void *context, void *request, int result, struct http_reply *reply,
                       const struct error *error)
{
    add_answer(context, request, result, reply, error);
    http_reply_release(reply);
}

int courier_new(const char *url, const char *token, uint32_t connections,
                struct courier **ret_courier, struct error *error)
{
    if (strncmp(url, "http://", 7) && strncmp(url, "https://", 8))
        return error_set(error, -EINVAL, "\"%s\" is not a valid address; use http://HOST:PORT.",
                         url);
    if (token && strpbrk(token, "\r\n"))
        return error_set(error, -EINVAL, "Invalid token.");
    struct courier *courier = memory_zalloc(1, sizeof(*courier));
    const struct http_multi_options options = {
        .done = take_reply, .context = courier, .connections = connections};
    courier->named = !strncmp(url, "http://", 7);
    buffer_add_text(&courier->url, url);
    while (courier->url.length && courier->url.data[courier->url.length - 1] == '/')
        courier->url.length--;
    courier->token = token && *token ? memory_strdup(token) : NULL;
    courier->connections = memory_zalloc(connections, sizeof(*courier->connections));
    for (uint32_t i = 0; i < connections; i++)
        courier->connections[i].index = i;
    int r = http_multi_new(&options, &courier->multi, error);
    if (r < 0) {
        courier_free(courier);
        return r;
    }
    *ret_courier = courier;
    return 0;
}

void courier_free(struct courier *courier)
{
    if (!courier)
        return;
    http_multi_free(courier->multi);
    buffer_release(&courier->url);
    free(courier->token);
    free(courier->connections);
    free(courier->ready);
    free(courier);
}

void courier_send(struct courier *courier, uint32_t index, const struct courier_load *load)
{
    struct connection *connection = &courier->connections[index];
    struct error error = {0};
    char name[32], type[128], batch[128], coding[64];
    const char *headers[] = {type, batch, coding};
    _cleanup_buffer_ struct buffer url = {0};
    buffer_printf(&url, "%s%s", buffer_text(&courier->url), load->target);
    snprintf(name, sizeof(name), "agent-%u", index);
    snprintf(type, sizeof(type), "Content-Type: %s", load->content_type);
    snprintf(batch, sizeof(batch), "X-Assay-Batch-Id: %s", load->batch_id);
    snprintf(coding, sizeof(coding), "Content-Encoding: %s",
             load->content_coding ? load->content_coding : "");
    const struct http_client_options options = {.bearer = courier->token,
                                                .server_name = courier->named ? name : NULL,
                                                .user_agent = "assay-simulate/" ASSAY_VERSION,
                                                .timeout_ms = TIMEOUT_MS,
                                                .answer_limit_bytes = ANSWER_MAX};
    const struct http_call call = {.url = buffer_text(&url),
                                   .headers = headers,
                                   .header_count = load->content_coding ? 3 : 2,
                                   .body = load->body,
                                   .body_length = load->length,
                                   .keep_compressed = true};
    connection->started_ns = monotonic_ns();
    int r = http_multi_start(courier->multi, &options, &call, connection, &error);
    if (r < 0)
        add_answer(courier, connection, r, NULL, &error);
}

bool courier_wait(struct courier *courier, int timeout_ms, struct courier_answer *ret_answer)
{
    if (!courier->ready_count)
        http_multi_run(courier->multi, (unsigned)timeout_ms);
    if (!courier->ready_count && timeout_ms) /* that has only waited */
        http_multi_run(courier->multi, 0);
    if (!courier->ready_count)
        return false;
    *ret_answer = courier->ready[--courier->ready_count];
    return true;
}
