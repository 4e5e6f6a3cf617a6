/* SPDX-License-Identifier: Apache-2.0 */
/* Talking to an HTTP server byte by byte, as no client library would. */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "unit.h"

/* `address` is "127.0.0.1:PORT". */
static inline int socket_connect(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

/* False when the server doesn't take it any more. */
static inline bool socket_send(int fd, const void *bytes, size_t length)
{
    for (size_t sent = 0; sent < length;) {
        ssize_t n = send(fd, (const char *)bytes + sent, length - sent, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        sent += (size_t)n;
    }
    return true;
}

static inline bool socket_say(int fd, const char *text)
{
    return socket_send(fd, text, strlen(text));
}

/* Reads until `until` has come, or the stream ends (also by a reset). A minute without a byte is a
 * failure. */
static inline const char *socket_read(int fd, struct buffer *got, const char *until)
{
    for (;;) {
        if (until && got->length && strstr(buffer_text(got), until))
            return got->data;
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, 60000) <= 0)
            fail_msg("nothing comes after \"%s\"", buffer_text(got));
        ssize_t n = recv(fd, buffer_reserve(got, 4096), 4096, 0);
        if (n <= 0)
            return buffer_text(got);
        got->length += (size_t)n;
    }
}

/* Sends and reads to the end of the connection. The caller frees. */
static inline char *socket_exchange(const char *address, const void *bytes, size_t length)
{
    int fd = socket_connect(address);
    socket_send(fd, bytes, length);
    struct buffer got = {0};
    socket_read(fd, &got, NULL);
    close(fd);
    return got.data;
}

static inline char *socket_ask(const char *address, const char *text)
{
    return socket_exchange(address, text, strlen(text));
}

#define assert_answers(address, query_context, words)                                              \
    do {                                                                                           \
        char *answer_ = socket_ask(address, query_context);                                        \
        if (!strstr(answer_, words))                                                               \
            fail_msg("\"%s\" doesn't say \"%s\"", answer_, words);                                 \
        free(answer_);                                                                             \
    } while (0)
