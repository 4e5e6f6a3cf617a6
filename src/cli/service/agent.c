// SPDX-License-Identifier: Apache-2.0
// `assay agent`: reads the configuration, then samples until it is stopped; and shows the status of
// a running agent.

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/service/agent.h"
#include "http/client/client.h"

#define UNIT_SOCKET "/run/assay/agent.sock" /* of the agent that is a service */
#define GRACE_MS 8000 /* less than what those who start us wait before they kill */

struct agent_flags {
    const char *server, *token_file, *config, *data, *status;
    uint64_t rate;
    bool check_config, json, no_symbols;
};

static struct agent *volatile running;

static void on_signal(int number)
{
    (void)number;
    if (running)
        agent_interrupt(running);
}

/* ---- where things are ---- */

const char *agent_default_data(struct buffer *text)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    text->length = 0;
    if (geteuid() == 0)
        buffer_add_text(text, "/var/lib/assay");
    else if (state && *state == '/')
        buffer_printf(text, "%s/assay", state);
    else
        buffer_printf(text, "%s/.local/state/assay", home && *home ? home : "/tmp");
    return buffer_text(text);
}

int make_folders(const char *path, struct error *error)
{
    _cleanup_free_ char *copy = memory_strdup(path);
    for (char *at = copy + 1;; at++) {
        char end = *at;
        if (end && end != '/')
            continue;
        *at = '\0';
        if (mkdir(copy, 0700) < 0 && errno != EEXIST)
            return error_set_errno(error, -errno, "Failed to create the directory %s", copy);
        if (!end)
            return 0;
        *at = end;
    }
}

/* ---- running ---- */

static void replace(char **text, const char *flag)
{
    if (!flag)
        return;
    free(*text);
    *text = memory_strdup(flag);
}

static void apply_flags(const struct agent_flags *flags, struct agent_settings *settings)
{
    _cleanup_buffer_ struct buffer text = {0};
    replace(&settings->server_url, flags->server);
    replace(&settings->token_file, flags->token_file);
    replace(&settings->data, flags->data);
    replace(&settings->status, flags->status);
    if (!settings->data)
        settings->data = memory_strdup(agent_default_data(&text));
    if (!settings->status) {
        text.length = 0;
        buffer_printf(&text, "unix:%s/agent.sock", settings->data);
        settings->status = memory_strdup(buffer_text(&text));
    }
    if (flags->rate)
        settings->rate_hz = flags->rate;
    if (flags->no_symbols)
        settings->symbols = SYMBOLS_NONE;
}

/* Reads the file, if any. What is wrong is on stderr; returns 0 or an exit code. */
static int configure(const struct agent_flags *flags, struct agent_settings *settings)
{
    _cleanup_yaml_tree_ struct yaml_tree tree = {0};
    struct problems problems = {.file = flags->config};
    struct error error = {0};
    if (flags->config && yaml_tree_read_file(flags->config, &tree, &error) < 0)
        return fail(&error);
    agent_settings_read(settings, tree.root, &problems);
    size_t count = problems.count;
    if (count)
        fputs(buffer_text(&problems.text), stderr);
    problems_release(&problems);
    apply_flags(flags, settings);
    return count ? EXIT_FAILED : EXIT_FINE;
}

/* For SIGHUP; the flags apply again. */
static int reload(void *context, struct agent_settings *ret_settings)
{
    const struct agent_flags *flags = context;
    if (!flags->config)
        return -ENOENT;
    return configure(flags, ret_settings) == EXIT_FINE ? 0 : -EINVAL;
}

static int run(struct agent_flags *flags, struct agent_settings *settings)
{
    struct error error = {0};
    struct agent *agent;
    struct sigaction action = {.sa_handler = on_signal};
    signal(SIGPIPE, SIG_IGN);
    agent_control_catch_signals();
    if (make_folders(settings->data, &error) < 0 || agent_start(settings, &agent, &error) < 0)
        return fail(&error);
    running = agent;
    sigaction(SIGTERM, &action, NULL);
    if (signal(SIGINT, SIG_DFL) != SIG_IGN) /* as in a background job */
        sigaction(SIGINT, &action, NULL);
    else
        signal(SIGINT, SIG_IGN);
    if (agent->capture)
        log_info("Sampling by %s, %llu times a second on each CPU, for %s.",
                 capture_backend_name(capture_backend(agent->capture)),
                 (unsigned long long)agent->sampling.rate_hz, settings->server_url);
    if (agent->capture && capture_shortcoming(agent->capture))
        log_warning("%s", capture_shortcoming(agent->capture));
    int r = agent_run(agent, reload, flags, &error);
    running = NULL;
    agent_stop(agent, GRACE_MS);
    return r < 0 ? fail(&error) : EXIT_FINE;
}

/* ---- asking ---- */

static int show_status(const struct agent_settings *settings, bool json)
{
    struct error error = {0};
    struct http_client *client = NULL;
    _cleanup_http_reply_ struct http_reply reply = {0};
    const char *address = settings->status;
    bool is_unix = !strncmp(address, "unix:", 5);
    _cleanup_buffer_ struct buffer url = {0};
    buffer_printf(&url, "http://%s/status%s", is_unix ? "localhost" : address,
                  json ? "" : "?format=text");
    struct http_call call = {.url = buffer_text(&url)};
    int r =
        http_client_new(&(struct http_client_options){.unix_socket = is_unix ? address + 5 : NULL},
                        &client, &error);
    if (!r)
        r = http_client_call(client, &call, &reply, &error);
    if (!r && reply.status != 200)
        r = http_reply_error(&call, &reply, &error);
    http_client_free(client);
    if (r < 0) {
        error_prefix(&error, "No agent is listening at %s", address);
        return fail(&error);
    }
    fwrite(reply.body.data, 1, reply.body.length, stdout);
    return EXIT_FINE;
}

int command_agent(int argc, char **argv)
{
    struct agent_flags flags = {0};
    const struct option own[] = {
        {"Sending", .kind = OPTION_GROUP},
        {"server", 's', OPTION_TEXT, "URL", "URL of the server to send profiles to", &flags.server},
        {"token-file", 0, OPTION_TEXT, "FILE", "file with the token for the server",
         &flags.token_file},
        {"no-upload-symbols", 0, OPTION_FLAG, NULL,
         "don't upload the symbols that the server requests", &flags.no_symbols},
        {"Sampling", .kind = OPTION_GROUP},
        {"rate", 'r', OPTION_COUNT, "HZ", "samples per second on each CPU (19)", &flags.rate},
        {"Settings", .kind = OPTION_GROUP},
        {"config", 'c', OPTION_TEXT, "FILE", "configuration in YAML; options override it",
         &flags.config},
        {"check-config", 0, OPTION_FLAG, NULL, "check the configuration and exit",
         &flags.check_config},
        {"data", 'd', OPTION_TEXT, "DIR", "directory of the spool (/var/lib/assay)", &flags.data},
        {"status", 0, OPTION_TEXT, "ADDR", "status socket (unix:DIR/agent.sock); \"\": none",
         &flags.status},
        {"json", 'j', OPTION_FLAG, NULL, "print `assay agent status` as JSON", &flags.json},
        {0}};
    struct command_line line = {
        .command = "agent",
        .arguments = "[status]",
        .summary = "Samples this host continuously and sends the profiles to a server.",
        .options = own,
        .least = 0,
        .most = 1,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    bool status = line.count == 1;
    if (status && strcmp(line.values[0], "status"))
        return options_wrong("agent", "Unknown action \"%s\".", line.values[0]);
    if (flags.rate > AGENT_RATE_MAX)
        return options_wrong("agent", "--rate must be at most %d.", AGENT_RATE_MAX);
    _cleanup_(agent_settings_release) struct agent_settings settings = {0};
    r = configure(&flags, &settings);
    if (r != EXIT_FINE)
        return r;
    if (flags.check_config) {
        printf("The configuration is valid.\n");
        return EXIT_FINE;
    }
    /* Who doesn't say which one means the one that the system runs, where it does. */
    if (status && !flags.status && !flags.data && !flags.config && access(UNIT_SOCKET, F_OK) == 0)
        replace(&settings.status, "unix:" UNIT_SOCKET);
    if (status)
        return show_status(&settings, flags.json);
    if (!settings.server_url)
        return options_wrong("agent", "Specify the server with --server.");
    log_set_level(LOG_INFO);
    return run(&flags, &settings);
}
