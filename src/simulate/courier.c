// SPDX-License-Identifier: Apache-2.0
// Many connections on one thread, by epoll. Answers are small: status, length, Retry-After and the
// beginning of the body are all that is looked at.

#include "simulate/courier.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

#define ANSWER_MAX 65536 /* head and body; what is longer breaks the connection */
#define EVENTS 64

enum stage { IDLE, SENDING, READING };

struct connection {
    int fd; /* -1: none */
    enum stage stage;
    bool reused; /* has carried a request before: the server may have closed it meanwhile */
    struct courier_load load;
    struct buffer head, answer;
    size_t sent;
    int64_t started_ns;
};

struct courier {
    int epoll;
    char host[256], token[512];
    struct sockaddr_storage address;
    socklen_t address_length;
    struct connection *connections;
    uint32_t count;
    struct epoll_event events[EVENTS];
    int event_count, event_next;
    struct courier_answer *ready; /* of sends that failed at once */
    size_t ready_count, ready_capacity;
    uint64_t bytes_sent;
};

static int resolve(struct courier *courier, struct error *error)
{
    char host[256];
    const char *port = "80";
    snprintf(host, sizeof(host), "%s", courier->host);
    char *colon = strrchr(host, ':');
    char *name = host;
    if (colon && !strchr(colon, ']')) {
        *colon = 0;
        port = colon + 1;
    }
    if (*name == '[' && name[strlen(name) - 1] == ']') {
        name[strlen(name) - 1] = 0;
        name++;
    }
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
    int r = getaddrinfo(name, port, &hints, &list);
    if (r || !list)
        return error_set(error, -EHOSTUNREACH, "Failed to resolve %s: %s.", courier->host,
                         gai_strerror(r));
    memcpy(&courier->address, list->ai_addr, list->ai_addrlen);
    courier->address_length = list->ai_addrlen;
    freeaddrinfo(list);
    return 0;
}

int courier_new(const char *url, const char *token, uint32_t connections,
                struct courier **ret_courier, struct error *error)
{
    if (strncmp(url, "http://", 7) || strlen(url) >= sizeof(((struct courier *)0)->host))
        return error_set(error, -EINVAL, "\"%s\" is not a valid address; use http://HOST:PORT.",
                         url);
    if (token && (strlen(token) >= sizeof(((struct courier *)0)->token) || strpbrk(token, "\r\n")))
        return error_set(error, -EINVAL, "Invalid token.");
    struct courier *courier = memory_zalloc(1, sizeof(*courier));
    courier->epoll = -1;
    snprintf(courier->host, sizeof(courier->host), "%s", url + 7);
    courier->host[strcspn(courier->host, "/\r\n ")] = 0;
    snprintf(courier->token, sizeof(courier->token), "%s", token ? token : "");
    int r = resolve(courier, error);
    if (!r && (courier->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0)
        r = error_set_errno(error, -errno, "Failed to set up polling");
    if (r < 0) {
        courier_free(courier);
        return r;
    }
    courier->connections = memory_zalloc(connections, sizeof(*courier->connections));
    courier->count = connections;
    for (uint32_t i = 0; i < connections; i++)
        courier->connections[i].fd = -1;
    *ret_courier = courier;
    return 0;
}

static void drop(struct connection *connection)
{
    if (connection->fd >= 0)
        close(connection->fd);
    connection->fd = -1;
    connection->reused = false;
}

void courier_free(struct courier *courier)
{
    if (!courier)
        return;
    for (uint32_t i = 0; i < courier->count; i++) {
        drop(&courier->connections[i]);
        buffer_release(&courier->connections[i].head);
        buffer_release(&courier->connections[i].answer);
    }
    if (courier->epoll >= 0)
        close(courier->epoll);
    free(courier->connections);
    free(courier->ready);
    free(courier);
}

static void watch(struct courier *courier, uint32_t index, uint32_t events, int operation)
{
    struct epoll_event event = {.events = events, .data.u32 = index};
    epoll_ctl(courier->epoll, operation, courier->connections[index].fd, &event);
}

static struct courier_answer broken(struct courier *courier, uint32_t index, int code)
{
    struct connection *connection = &courier->connections[index];
    struct courier_answer answer = {.connection = index,
                                    .retry_after_ms = -1,
                                    .latency_ns = monotonic_ns() - connection->started_ns};
    snprintf(answer.text, sizeof(answer.text), "%s", strerror(code));
    drop(connection);
    connection->stage = IDLE;
    return answer;
}

/* 0, or a positive errno. */
static int open_connection(struct courier *courier, uint32_t index)
{
    struct connection *connection = &courier->connections[index];
    int one = 1;
    connection->fd =
        socket(courier->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (connection->fd < 0)
        return errno;
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(connection->fd, (struct sockaddr *)&courier->address, courier->address_length) &&
        errno != EINPROGRESS)
        return errno;
    watch(courier, index, EPOLLOUT, EPOLL_CTL_ADD);
    return 0;
}

/* 0: all is sent or the socket is full; else an errno. */
static int send_more(struct courier *courier, uint32_t index)
{
    struct connection *connection = &courier->connections[index];
    size_t head = connection->head.length, all = head + connection->load.length;
    while (connection->sent < all) {
        struct iovec parts[2];
        int count = 0;
        if (connection->sent < head)
            parts[count++] =
                (struct iovec){connection->head.data + connection->sent, head - connection->sent};
        size_t body = connection->sent > head ? connection->sent - head : 0;
        parts[count++] = (struct iovec){(char *)(uintptr_t)connection->load.body + body,
                                        connection->load.length - body};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
        ssize_t got = sendmsg(connection->fd, &message, MSG_NOSIGNAL);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (got < 0)
            return errno;
        connection->sent += (size_t)got;
        courier->bytes_sent += (size_t)got;
    }
    connection->stage = READING;
    watch(courier, index, EPOLLIN, EPOLL_CTL_MOD);
    return 0;
}

static int start(struct courier *courier, uint32_t index)
{
    struct connection *connection = &courier->connections[index];
    connection->stage = SENDING;
    connection->sent = connection->answer.length = 0;
    if (connection->fd < 0)
        return open_connection(courier, index);
    watch(courier, index, EPOLLOUT, EPOLL_CTL_MOD);
    return send_more(courier, index);
}

void courier_send(struct courier *courier, uint32_t index, const struct courier_load *load)
{
    struct connection *connection = &courier->connections[index];
    connection->load = *load;
    connection->started_ns = monotonic_ns();
    connection->head.length = 0;
    buffer_printf(&connection->head,
                  "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: assay-simulate/" ASSAY_VERSION
                  "\r\nContent-Type: %s\r\nContent-Length: %zu\r\nX-Assay-Batch-Id: %s\r\n",
                  load->target, courier->host, load->content_type, load->length, load->batch_id);
    if (load->content_coding)
        buffer_printf(&connection->head, "Content-Encoding: %s\r\n", load->content_coding);
    if (*courier->token)
        buffer_printf(&connection->head, "Authorization: Bearer %s\r\n", courier->token);
    buffer_add_text(&connection->head, "\r\n");
    int code = start(courier, index);
    if (code && connection->reused) { /* closed while it was idle */
        drop(connection);
        code = start(courier, index);
    }
    if (code) {
        array_reserve(courier->ready, courier->ready_capacity, courier->ready_count + 1);
        courier->ready[courier->ready_count++] = broken(courier, index, code);
    }
}

/* The value of a header in a head that ends with an empty line; NULL: it has none. */
static const char *header(const char *head, const char *name)
{
    for (const char *at = strstr(head, "\r\n"); at && at[2] != '\r'; at = strstr(at + 2, "\r\n"))
        if (!strncasecmp(at + 2, name, strlen(name)) && at[2 + strlen(name)] == ':') {
            at += 3 + strlen(name);
            return at + strspn(at, " ");
        }
    return NULL;
}

/* 1: the answer is whole, 0: more has to come, or a negative errno. */
static int take_answer(struct connection *connection, struct courier_answer *answer)
{
    const char *text = buffer_text(&connection->answer);
    const char *end = strstr(text, "\r\n\r\n");
    if (!end)
        return connection->answer.length < ANSWER_MAX ? 0 : -EPROTO;
    if (strncmp(text, "HTTP/1.", 7) || strlen(text) < 12)
        return -EPROTO;
    answer->status = (unsigned)strtoul(text + 9, NULL, 10);
    const char *length = header(text, "Content-Length"), *again = header(text, "Retry-After");
    const char *close = header(text, "Connection");
    size_t head = (size_t)(end + 4 - text), body = length ? strtoul(length, NULL, 10) : 0;
    if (body > ANSWER_MAX)
        return -EPROTO;
    if (connection->answer.length < head + body)
        return 0;
    answer->retry_after_ms = again ? (int64_t)MIN(strtoul(again, NULL, 10), 3600ul) * 1000 : -1;
    snprintf(answer->text, sizeof(answer->text), "%.*s", (int)MIN(body, (size_t)255), end + 4);
    answer->text[strcspn(answer->text, "\r\n")] = 0;
    connection->reused = true;
    if (!length || (close && !strncasecmp(close, "close", 5)))
        drop(connection);
    return 1;
}

/* True: an answer is there, also one that says that the connection broke. */
static bool read_more(struct courier *courier, uint32_t index, struct courier_answer *answer)
{
    struct connection *connection = &courier->connections[index];
    char bytes[4096];
    ssize_t got = recv(connection->fd, bytes, sizeof(bytes), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0 && connection->stage == IDLE) { /* the server doesn't keep it any longer */
        drop(connection);
        return false;
    }
    if (got <= 0) {
        int code = got ? errno : ECONNRESET;
        bool again = connection->reused && !connection->answer.length;
        if (again) {
            drop(connection);
            again = !start(courier, index);
        }
        if (!again)
            *answer = broken(courier, index, code);
        return !again;
    }
    buffer_add(&connection->answer, bytes, (size_t)got);
    *answer = (struct courier_answer){.connection = index, .retry_after_ms = -1};
    int r = take_answer(connection, answer);
    if (r < 0)
        *answer = broken(courier, index, -r);
    if (r > 0) {
        answer->latency_ns = monotonic_ns() - connection->started_ns;
        connection->stage = IDLE;
    }
    return r;
}

bool courier_wait(struct courier *courier, int timeout_ms, struct courier_answer *ret_answer)
{
    if (courier->ready_count) {
        *ret_answer = courier->ready[--courier->ready_count];
        return true;
    }
    for (;;) {
        while (courier->event_next < courier->event_count) {
            uint32_t index = courier->events[courier->event_next++].data.u32;
            struct connection *connection = &courier->connections[index];
            if (connection->fd < 0)
                continue;
            if (connection->stage != SENDING) {
                if (read_more(courier, index, ret_answer))
                    return true;
                continue;
            }
            int code = 0;
            socklen_t size = sizeof(code);
            getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &code, &size);
            if (!code)
                code = send_more(courier, index);
            if (code) {
                *ret_answer = broken(courier, index, code);
                return true;
            }
        }
        courier->event_next = 0;
        courier->event_count = epoll_wait(courier->epoll, courier->events, EVENTS, timeout_ms);
        if (courier->event_count <= 0) {
            courier->event_count = 0;
            return false;
        }
        timeout_ms = 0;
    }
}

uint64_t courier_bytes_sent(const struct courier *courier)
{
    return courier->bytes_sent;
}
