// SPDX-License-Identifier: Apache-2.0
// `assay up`: server and agent on this machine, as two children of one process that watches over
// both. The server is what must not go away; an agent that ends is started again, less and less
// often. With --demo there is a third, which is something to look at.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits/backoff.h"
#include "base/log.h"
#include "capture/abilities.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/service/agent.h"

#define STOP_MS 12000         /* that a child gets to end by itself */
#define QUICK_NS 5000000000ll /* an agent that ends sooner has not run */
#define QUICK_ENDS_MAX 3
#define ARGUMENTS_MAX 16

struct up_flags {
    const char *listen, *data, *rate, *server_config, *agent_config;
    bool demo;
};

struct up {
    const struct up_flags *flags;
    const char *data;
    pid_t server, agent, demo; /* 0: not running */
    int signals;
    int lines;          /* the server's stderr; -1: it has ended */
    struct buffer line; /* of it, so far */
    char url[256];      /* "": the server isn't ready */
    int64_t agent_began_ns, agent_due_ns;
    unsigned quick_ends; /* in a row */
    bool no_agent;       /* it can't run here */
};

/* ---- children ---- */

static pid_t start(const char *const *arguments, int stderr_fd)
{
    pid_t parent = getpid(), child = fork();
    if (child)
        return child;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* Ctrl-C is the parent's, which ends them in order; if it is gone, they end. */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    if (stderr_fd >= 0)
        dup2(stderr_fd, STDERR_FILENO);
    execv("/proc/self/exe", (char *const *)arguments);
    perror("assay: failed to restart the program");
    _exit(127);
}

static int start_server(struct up *up, struct error *error)
{
    const char *arguments[ARGUMENTS_MAX] = {"assay", "server", "--local-files", "--data"};
    _cleanup_buffer_ struct buffer store = {0};
    size_t count = 4;
    int pipe_ends[2];
    buffer_printf(&store, "%s/store", up->data);
    arguments[count++] = buffer_text(&store);
    if (up->flags->listen) {
        arguments[count++] = "--listen";
        arguments[count++] = up->flags->listen;
    }
    if (up->flags->server_config) {
        arguments[count++] = "--config";
        arguments[count++] = up->flags->server_config;
    }
    if (pipe2(pipe_ends, O_CLOEXEC) < 0)
        return error_set_errno(error, -errno, "Failed to create a pipe");
    up->lines = pipe_ends[0];
    up->server = start(arguments, pipe_ends[1]);
    int r = up->server < 0 ? error_set_errno(error, -errno, "Failed to start a process") : 0;
    close(pipe_ends[1]);
    up->server = MAX(up->server, 0);
    return r;
}

static void start_agent(struct up *up)
{
    const char *arguments[ARGUMENTS_MAX] = {"assay", "agent", "--server", up->url, "--data"};
    _cleanup_buffer_ struct buffer data = {0};
    size_t count = 5;
    buffer_printf(&data, "%s/agent", up->data);
    arguments[count++] = buffer_text(&data);
    if (up->flags->rate) {
        arguments[count++] = "--rate";
        arguments[count++] = up->flags->rate;
    }
    if (up->flags->agent_config) {
        arguments[count++] = "--config";
        arguments[count++] = up->flags->agent_config;
    }
    pid_t child = start(arguments, -1);
    up->agent = MAX(child, 0);
    up->agent_began_ns = monotonic_ns();
}

#define SIDE(version) "cpu%7Bservice_name%3D%22demo-shop%22%2Cversion%3D%22" version "%22%7D"

static void start_demo(struct up *up)
{
    const char *const arguments[] = {"assay", "demo", NULL};
    pid_t child = start(arguments, -1);
    up->demo = MAX(child, 0);
    fprintf(stderr, "assay: in half a minute, compare version 2.0 with 1.0:\n");
    fprintf(stderr, "  %s/compare?base_query=%s&query=%s&base_from=now-1h&from=now-1h\n", up->url,
            SIDE("1.0"), SIDE("2.0"));
    fprintf(stderr, "  assay query diff %s --base %s --base-from now-1h -u %s\n",
            "'cpu{service=\"demo-shop\",version=\"2.0\"}'",
            "'cpu{service=\"demo-shop\",version=\"1.0\"}'", up->url);
    fprintf(stderr, "assay: on a busy machine names arrive later than addresses; the page and "
                    "assay query show how many binaries' symbols are pending.\n");
}

/* Asks a child to end, and sees to it. */
static int stop(pid_t child)
{
    int status = 0;
    if (!child)
        return 0;
    kill(child, SIGTERM);
    for (int waited = 0; waitpid(child, &status, WNOHANG) == 0; waited += 20) {
        if (waited >= STOP_MS)
            kill(child, SIGKILL);
        usleep(20000);
    }
    return status;
}

/* The commands that work where nothing can be sampled continuously. */
static void say_instead(struct up *up)
{
    struct abilities abilities;
    abilities_find(&abilities);
    log_warning("The agent can't run here. The server continues and accepts profiles from other "
                "tools and hosts at %s.",
                up->url);
    for (size_t i = 0; i < ABILITY_COMMANDS; i++) {
        const struct ability_command *command = &abilities.commands[i];
        fprintf(stderr, "assay: `assay %s` %s: %s\n", command->command,
                command->works ? "works" : "failed", command->means);
    }
    fprintf(stderr, "assay: run `assay doctor` to see what is missing, and how to get it\n");
}

static void agent_ended(struct up *up, int status)
{
    bool quick = monotonic_ns() - up->agent_began_ns < QUICK_NS;
    up->agent = 0;
    up->quick_ends = quick ? up->quick_ends + 1 : 0;
    up->no_agent = up->quick_ends >= QUICK_ENDS_MAX;
    if (up->no_agent)
        say_instead(up);
    else if (WIFSIGNALED(status))
        log_warning("The agent was terminated by signal %d; restarting it.", WTERMSIG(status));
    static const struct backoff backoff = {.first_ms = 1000, .longest_ms = 60000};
    up->agent_due_ns = monotonic_ns() + backoff_bound_ms(&backoff, up->quick_ends) * 1000000;
}

/* ---- watching ---- */

static void take_line(struct up *up)
{
    static const char ready[] = "assay: serving on ";
    const char *text = buffer_text(&up->line);
    fprintf(stderr, "%s\n", text);
    if (!up->url[0] && !strncmp(text, ready, sizeof(ready) - 1) &&
        !strncmp(text + sizeof(ready) - 1, "http", 4)) {
        snprintf(up->url, sizeof(up->url), "%s", text + sizeof(ready) - 1);
        fprintf(stderr, "assay: the web page is %s/\nassay: data is in %s; press Ctrl-C to stop\n",
                up->url, up->data);
        if (up->flags->demo)
            start_demo(up);
    }
    up->line.length = 0;
}

/* Passes the server's messages to the user, and notices when it is ready. */
static void take_lines(struct up *up)
{
    char bytes[4096];
    ssize_t got = read(up->lines, bytes, sizeof(bytes));
    if (got <= 0) {
        close(up->lines);
        up->lines = -1;
        return;
    }
    for (ssize_t i = 0; i < got; i++) {
        if (bytes[i] == '\n')
            take_line(up);
        else if (up->line.length < sizeof(bytes))
            buffer_add_char(&up->line, bytes[i]);
    }
}

/* Returns -1 to go on, or the exit code. */
static int take_signal(struct up *up)
{
    struct signalfd_siginfo got;
    if (read(up->signals, &got, sizeof(got)) != sizeof(got))
        return -1;
    if (got.ssi_signo == SIGHUP) {
        kill(up->server, SIGHUP);
        return -1;
    }
    if (got.ssi_signo != SIGCHLD)
        return EXIT_FINE;
    int status;
    if (up->agent && waitpid(up->agent, &status, WNOHANG) == up->agent)
        agent_ended(up, status);
    if (up->demo && waitpid(up->demo, &status, WNOHANG) == up->demo)
        up->demo = 0;
    if (waitpid(up->server, &status, WNOHANG) == up->server) {
        up->server = 0;
        return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : EXIT_FAILED;
    }
    return -1;
}

static int watch(struct up *up)
{
    for (int code = -1; code < 0;) {
        int64_t left_ms = (up->agent_due_ns - monotonic_ns()) / 1000000;
        bool due = up->url[0] && !up->agent && !up->no_agent;
        if (due && left_ms <= 0) {
            start_agent(up);
            due = false;
        }
        struct pollfd polls[] = {{.fd = up->signals, .events = POLLIN},
                                 {.fd = up->lines, .events = POLLIN}};
        if (poll(polls, ARRAY_LENGTH(polls), due ? (int)left_ms + 1 : -1) < 0)
            continue;
        if (polls[1].revents)
            take_lines(up);
        if (polls[0].revents)
            code = take_signal(up);
        if (code >= 0) {
            /* First the agent, whose last window the server takes. */
            stop(up->demo);
            stop(up->agent);
            stop(up->server);
            while (up->lines >= 0)
                take_lines(up);
            return code;
        }
    }
    return EXIT_FAILED;
}

static int run(const struct up_flags *flags)
{
    struct error error = {0};
    sigset_t set;
    _cleanup_buffer_ struct buffer folder = {0};
    struct up up = {.flags = flags, .lines = -1};
    up.data = flags->data ? flags->data : agent_default_data(&folder);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    up.signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (up.signals < 0)
        return fail(&(struct error){.text = "Failed to set up signal handling."});
    if (make_folders(up.data, &error) < 0 || start_server(&up, &error) < 0)
        return fail(&error);
    int code = watch(&up);
    close(up.signals);
    buffer_release(&up.line);
    return code;
}

int command_up(int argc, char **argv)
{
    struct up_flags flags = {0};
    const struct option own[] = {
        {"listen", 'l', OPTION_TEXT, "ADDR", "address of the server (127.0.0.1:4040)",
         &flags.listen},
        {"data", 'd', OPTION_TEXT, "DIR",
         "data directory (/var/lib/assay, or ~/.local/state/assay)", &flags.data},
        {"rate", 'r', OPTION_TEXT, "HZ", "samples per second on each CPU (19)", &flags.rate},
        {"demo", 0, OPTION_FLAG, NULL, "also run a slow sample service: see assay-demo(1)",
         &flags.demo},
        {"server-config", 0, OPTION_TEXT, "FILE", "configuration of the server, YAML",
         &flags.server_config},
        {"agent-config", 0, OPTION_TEXT, "FILE", "configuration of the agent, YAML",
         &flags.agent_config},
        {0}};
    struct command_line line = {
        .command = "up",
        .arguments = "",
        .summary = "Server and agent on this machine: samples it continuously and serves queries.",
        .options = own,
        .least = 0,
        .most = 0,
    };
    int r = options_parse(&line, argc, argv);
    return r >= 0 ? r : run(&flags);
}
