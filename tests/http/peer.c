// SPDX-License-Identifier: Apache-2.0
// A server for other programs to talk to: peer [--tls CERT KEY] [--client-ca FILE] [--tokens FILE]
// [--window MS] [--idle MS] [--unix PATH] [--serve interop: for gRPC's own test clients]. Prints
// its addresses, one per line; reads its certificate again at SIGHUP, and stops at SIGTERM or when
// its standard input ends.

#include "routes.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "http/tls.h"
#include "interop.h"

static int fail(const struct error *error)
{
    fprintf(stderr, "%s\n", error->text);
    return 1;
}

static void log_access(void *userdata, const struct http_access *access)
{
    struct buffer line = {0};
    (void)userdata;
    http_access_line(&line, access);
    fprintf(stderr, "%s\n", buffer_text(&line));
    buffer_release(&line);
}

/* Until told to stop. */
static void serve(int signals, struct http_tls *tls)
{
    for (;;) {
        struct pollfd files[] = {{signals, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
        struct signalfd_siginfo got;
        char byte;
        poll(files, 2, -1);
        if (files[1].revents && read(STDIN_FILENO, &byte, 1) <= 0)
            return;
        if (!files[0].revents || read(signals, &got, sizeof(got)) < 0)
            continue;
        if (got.ssi_signo == SIGTERM)
            return;
        struct error error = {0};
        if (tls && http_tls_reload(tls, &error) < 0)
            fail(&error);
    }
}

int main(int argc, char **argv)
{
    struct seen seen = {0};
    const char *listen[3] = {"127.0.0.1:0"}, *certificate = NULL, *key = NULL, *authority = NULL;
    struct http_server_options options = {
        .listen = listen,
        .listen_count = 1,
        .routes = test_routes,
        .route_count = sizeof(test_routes) / sizeof(test_routes[0]),
        .userdata = &seen,
        .on_access = getenv("PEER_LOG") ? log_access : NULL,
    };
    struct error error = {0};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--tls") && i + 2 < argc) {
            certificate = argv[++i];
            key = argv[++i];
            continue;
        }
        i++;
        if (!strcmp(argv[i - 1], "--client-ca"))
            authority = value;
        else if (!strcmp(argv[i - 1], "--tokens") &&
                 tokens_open(value, &options.tokens, &error) < 0)
            return fail(&error);
        else if (!strcmp(argv[i - 1], "--window"))
            options.rate_window_ms = (unsigned)atoi(value);
        else if (!strcmp(argv[i - 1], "--idle"))
            options.idle_timeout_ms = (unsigned)atoi(value);
        else if (!strcmp(argv[i - 1], "--serve") && !strcmp(value, "interop")) {
            options.http2 = true;
            options.routes = interop_routes;
            options.route_count = sizeof(interop_routes) / sizeof(interop_routes[0]);
        } else if (!strcmp(argv[i - 1], "--unix"))
            listen[options.listen_count++] = value;
    }
    if (certificate && http_tls_open(certificate, key, authority, &options.tls, &error) < 0)
        return fail(&error);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (http_server_start(&options, &seen.server, &error) < 0)
        return fail(&error);
    for (size_t i = 0; i < http_server_address_count(seen.server); i++)
        printf("%s\n", http_server_address(seen.server, i));
    fflush(stdout);
    serve(signals, options.tls);
    http_server_stop(seen.server, 5000);
    http_tls_free(options.tls);
    tokens_free(options.tokens);
    return 0;
}
