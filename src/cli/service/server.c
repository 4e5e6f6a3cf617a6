// SPDX-License-Identifier: Apache-2.0
// `assay server`: reads the configuration, then serves until it is stopped.

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "config/settings.h"
#include "server/server.h"

#define GRACE_MS 10000

struct server_flags {
    struct option_list listen;
    const char *otlp_listen;
    const char *data, *store, *config, *tls_certificate, *tls_key, *tokens, *log_format;
    uint64_t memory_limit, disk_limit;
    bool in_memory, insecure, check_config, access_log, local_files;
};

/* A configuration in the making; texts of `options` are in `tree` or argv. */
struct configuration {
    struct yaml_tree tree;
    struct server_options options;
    struct label_rules rules;
};

static void configuration_release(struct configuration *configuration)
{
    label_rules_release(&configuration->rules);
    server_options_release(&configuration->options);
    yaml_tree_release(&configuration->tree);
}

static void apply_flags(const struct server_flags *flags, struct server_options *options)
{
    if (flags->listen.count)
        options->listen_count = 0;
    for (size_t i = 0; i < flags->listen.count && i < SERVER_LISTEN_MAX; i++)
        options->listen[options->listen_count++] = flags->listen.values[i];
    if (!options->listen_count)
        options->listen[options->listen_count++] = SERVER_DEFAULT_LISTEN;
    if (flags->otlp_listen)
        options->otlp_listen = flags->otlp_listen;
    if (options->otlp_listen && *options->otlp_listen && options->listen_count < SERVER_LISTEN_MAX)
        options->listen[options->listen_count++] = options->otlp_listen;
    options->data = flags->data ? flags->data : options->data;
    if (flags->data && !flags->in_memory)
        options->in_memory = false;
    options->in_memory |= flags->in_memory;
    if (flags->store)
        options->store = flags->store;
    if (flags->memory_limit)
        options->memory_limit_bytes = flags->memory_limit;
    if (flags->disk_limit)
        options->disk_limit_bytes = flags->disk_limit;
    if (flags->tls_certificate)
        options->tls_certificate = flags->tls_certificate;
    if (flags->tls_key)
        options->tls_key = flags->tls_key;
    if (flags->tokens)
        options->tokens_file = flags->tokens;
    if (flags->log_format)
        options->log_format = strcmp(flags->log_format, "json") ? SERVER_LOG_TEXT : SERVER_LOG_JSON;
    options->insecure |= flags->insecure;
    options->symbols.local_files |= flags->local_files;
    options->access_log |= flags->access_log;
}

static void say_problems(struct buffer *text)
{
    if (!log_is_json()) {
        fputs(buffer_text(text), stderr);
        return;
    }
    const char *end;
    for (const char *line = buffer_text(text); (end = strchr(line, '\n')); line = end + 1)
        log_error("%.*s", (int)(end - line), line);
}

/* Reads the file, if any. What is wrong is on stderr; returns 0 or an exit code. */
static int configure(const struct server_flags *flags, struct configuration *configuration)
{
    struct problems problems = {.file = flags->config};
    struct settings settings;
    struct error error = {0};
    server_options_defaults(&configuration->options);
    configuration->options.data = "assay-data";
    if (flags->config && yaml_tree_read_file(flags->config, &configuration->tree, &error) < 0)
        return fail(&error);
    settings_open(&settings, &problems, configuration->tree.root, "the configuration");
    server_options_read(&configuration->options, &settings);
    label_rules_read(&settings, &configuration->rules);
    settings_close(&settings);
    apply_flags(flags, &configuration->options);
    log_set_json(configuration->options.log_format == SERVER_LOG_JSON);
    size_t count = problems.count;
    if (count)
        say_problems(&problems.text);
    problems_release(&problems);
    return count ? EXIT_FAILED : EXIT_FINE;
}

/* systemd's protocol: a datagram to the socket that it names. */
static void notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = path ? strlen(path) : 0;
    if (!length || length >= sizeof(address.sun_path) || (*path != '/' && *path != '@'))
        return;
    memcpy(address.sun_path, path, length);
    if (*path == '@')
        address.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, size) < 0)
        log_warning("Failed to notify the service manager: %m.");
    close(fd);
}

static void reload(const struct server_flags *flags, struct server *server)
{
    _cleanup_(configuration_release) struct configuration again = {0};
    struct error error = {0};
    char reloading[64];
    snprintf(reloading, sizeof(reloading), "RELOADING=1\nMONOTONIC_USEC=%lld",
             (long long)monotonic_ns() / 1000);
    notify(reloading);
    if (configure(flags, &again) != EXIT_FINE)
        log_error("The previous configuration stays in effect.");
    else if (server_reload(server, &again.options, &again.rules, &error) < 0)
        log_error("%s", error.text);
    else
        log_info(
            "Reloaded label rules, limits, rates, retention, targets, certificate and tokens.");
    notify("READY=1");
}

/* How long may pass between signs of life that systemd wants, at most; -1: it wants none. */
static int watchdog_ms(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    int64_t us;
    if (!usec || !text_to_i64(usec, strlen(usec), &us) || us <= 0 ||
        (pid && strtoll(pid, NULL, 10) != getpid()))
        return -1;
    return (int)MIN(MAX(us / 2000, 1), 3600000);
}

/* Waits for a signal, and tells the watchdog meanwhile that requests are being looked after. */
static int next_signal(struct server *server, int signals)
{
    int wait_ms = watchdog_ms();
    for (;;) {
        struct pollfd ready = {.fd = signals, .events = POLLIN};
        struct signalfd_siginfo got;
        if (wait_ms >= 0 && http_server_alive(server->http))
            notify("WATCHDOG=1");
        if (poll(&ready, 1, wait_ms) > 0 && read(signals, &got, sizeof(got)) == sizeof(got))
            return (int)got.ssi_signo;
    }
}

static void serve(const struct server_flags *flags, bool tls, struct server *server, int signals)
{
    for (size_t i = 0; i < http_server_address_count(server->http); i++)
        log_info("serving on %s%s",
                 strncmp(http_server_address(server->http, i), "unix:", 5)
                     ? tls ? "https://" : "http://"
                     : "",
                 http_server_address(server->http, i));
    notify("READY=1");
    while (next_signal(server, signals) == SIGHUP)
        reload(flags, server);
    notify("STOPPING=1");
    log_info("stopping");
}

static int run(const struct server_flags *flags)
{
    _cleanup_(configuration_release) struct configuration configuration = {0};
    struct error error = {0};
    struct server *server;
    int r = configure(flags, &configuration);
    if (r != EXIT_FINE)
        return r;
    if (!configuration.options.tls_certificate != !configuration.options.tls_key)
        return options_wrong("server", "--tls-cert and --tls-key must be used together.");
    if (flags->check_config) {
        printf("The configuration is valid.\n");
        return EXIT_FINE;
    }
    log_set_level(LOG_INFO);
    /* Before any thread, so that all have the signals blocked. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (signals < 0 ||
        server_start(&configuration.options, &configuration.rules, &server, &error) < 0) {
        if (signals < 0)
            error_set_errno(&error, -errno, "Failed to set up signal handling");
        log_error("%s", error.text);
        return EXIT_FAILED;
    }
    serve(flags, configuration.options.tls_certificate, server, signals);
    server_stop(server, GRACE_MS);
    close(signals);
    return EXIT_FINE;
}

int command_server(int argc, char **argv)
{
    struct server_flags flags = {0};
    const struct option own[] = {
        {"Serving", .kind = OPTION_GROUP},
        {"listen", 'l', OPTION_LIST, "ADDR", "listen address (127.0.0.1:4040); also unix:PATH",
         &flags.listen},
        {"otlp-listen", 0, OPTION_TEXT, "ADDR",
         "one more address for OTLP senders, such as 127.0.0.1:4317", &flags.otlp_listen},
        {"config", 'c', OPTION_TEXT, "FILE", "configuration in YAML; options override it",
         &flags.config},
        {"check-config", 0, OPTION_FLAG, NULL, "check the configuration and exit",
         &flags.check_config},
        {"Store", .kind = OPTION_GROUP},
        {"data", 'd', OPTION_TEXT, "DIR", "data directory (assay-data)", &flags.data},
        {"store", 0, OPTION_TEXT, "URL", "file:DIR, memory: or clickhouse:... (the data directory)",
         &flags.store},
        {"in-memory", 0, OPTION_FLAG, NULL, "keep data in memory only, until the server stops",
         &flags.in_memory},
        {"memory-limit", 0, OPTION_SIZE, "SIZE", "memory limit for caches and work (256M)",
         &flags.memory_limit},
        {"disk-limit", 0, OPTION_SIZE, "SIZE",
         "disk limit of the store; the oldest data is deleted", &flags.disk_limit},
        {"local-files", 0, OPTION_FLAG, NULL, "also use this host's files for names, by build ID",
         &flags.local_files},
        {"Access", .kind = OPTION_GROUP},
        {"tokens", 0, OPTION_TEXT, "FILE", "token file; requests must have a valid token",
         &flags.tokens},
        {"tls-cert", 0, OPTION_TEXT, "FILE", "certificate and its chain, PEM",
         &flags.tls_certificate},
        {"tls-key", 0, OPTION_TEXT, "FILE", "the certificate's key, PEM", &flags.tls_key},
        {"insecure", 0, OPTION_FLAG, NULL, "serve other hosts without TLS and tokens",
         &flags.insecure},
        {"Logs", .kind = OPTION_GROUP},
        {"access-log", 0, OPTION_FLAG, NULL, "log each request to stderr", &flags.access_log},
        {"log-format", 0, OPTION_TEXT, "F", "log format: text or json", &flags.log_format},
        {0}};
    struct command_line line = {
        .command = "server",
        .arguments = "",
        .summary = "Receives profiles over HTTP from any tool, stores them, and serves queries.",
        .options = own,
        .least = 0,
        .most = 0,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    if (flags.log_format && strcmp(flags.log_format, "text") && strcmp(flags.log_format, "json"))
        return options_wrong("server", "--log-format must be text or json, not \"%s\".",
                             flags.log_format);
    if (flags.listen.count > SERVER_LISTEN_MAX)
        return options_wrong("server", "The server can listen on at most %d addresses.",
                             SERVER_LISTEN_MAX);
    return run(&flags);
}
