/* SPDX-License-Identifier: Apache-2.0 */
/* A server with the test's routes, started and stopped by each case. */
#pragma once

#include "../http/routes.h"
#include "http/server/server.h"
#include "http_socket.h"

#define HEAD(line) line " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"

static struct seen seen;

static const char *start_with(struct http_server_options options)
{
    static const char *const listen[] = {"127.0.0.1:0"};
    struct error error = {0};
    memset(&seen, 0, sizeof(seen));
    options.listen = listen;
    options.listen_count = 1;
    options.routes = test_routes;
    options.route_count = ARRAY_LENGTH(test_routes);
    options.userdata = &seen;
    if (http_server_start(&options, &seen.server, &error) < 0)
        fail_msg("%s", error.text);
    return http_server_address(seen.server, 0);
}

static const char *start(void)
{
    return start_with((struct http_server_options){0});
}

static void stop(void)
{
    http_server_stop(seen.server, 10000);
    seen.server = NULL;
}

/* Waits for something that another thread does; a minute is for ever. */
#define wait_until(condition)                                                                      \
    do {                                                                                           \
        unsigned left_ = 6000;                                                                     \
        bool holds_;                                                                               \
        while (!(holds_ = (condition)) && left_--)                                                 \
            sleep_ms(10);                                                                          \
        assert_true(holds_);                                                                       \
    } while (0)
