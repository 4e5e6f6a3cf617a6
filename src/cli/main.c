// SPDX-License-Identifier: Apache-2.0
// assay: one binary, one table of subcommands.

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "symbol/symbolizer.h"

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
};

static const struct command commands[] = {
    {"record", command_record, "sample the CPU time of a command, of processes, of everything"},
    {"top", command_top, "which functions the CPU time goes to, live"},
    {"stacks", command_stacks, "what every thread of a process is doing now"},
    {"doctor", command_doctor, "what can be recorded here, and how to get the rest"},
    {"report", command_report, "functions by cost, call trees, callers, lines"},
    {"flame", command_flame, "a flame graph as .html or .svg"},
    {"view", command_view, "a profile, or two against each other, in the browser"},
    {"diff", command_diff, "what changed between two profiles"},
    {"info", command_info, "what a profile file holds"},
    {"convert", command_convert, "from one format to another"},
    {"merge", command_merge, "several profiles into one"},
    {"debuginfo", command_debuginfo, "symbol indexes of binaries, and debug files for a server"},
    {"up", command_up, "server and agent on this machine, in one command"},
    {"demo", command_demo, "a sample service that became slower, to try assay on"},
    {"agent", command_agent, "samples this host all the time, for a server"},
    {"server", command_server, "takes profiles from any tool, keeps them, answers questions"},
    {"query", command_query, "asks a server"},
    {"agents", command_agents, "which agents report to a server, and how they are"},
    {"recording", command_recording, "has agents look closely at a service for a while"},
    {"control", command_control, "turns capture off and on for agents of a server"},
    {"simulate", command_simulate, "sends profiles of a made-up fleet to a server"},
    {"token", command_token, "tokens that a server lets in"},
    {"store", command_store, "checks, deletes, exports and imports what a server has stored"},
};

static void print_help(FILE *out)
{
    fprintf(out, "assay shows where the time and the memory of programs go.\n\n"
                 "Usage: assay COMMAND [options] ...\n\nCommands:\n");
    for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
        fprintf(out, "  %-10s  %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\n`assay COMMAND --help` tells more; `man assay` is the manual.\n");
}

int main(int argc, char **argv)
{
    symbolizer_enter(argc, argv);
    /* A reader that leaves early (`assay report x | head`) ends us quietly. */
    signal(SIGPIPE, SIG_DFL);
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    bool help = !strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h");
    if (help && argc > 2) {
        name = argv[2];
        argv[2] = (char *)"--help";
        argc = 3;
        help = false;
    }
    if (help) {
        print_help(stdout);
        return EXIT_FINE;
    }
    if (!strcmp(name, "version") || !strcmp(name, "--version")) {
        printf("assay %s\n", ASSAY_VERSION);
        return EXIT_FINE;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
        if (!strcmp(name, commands[i].name)) {
            int code = commands[i].run(argc - 1, argv + 1);
            if (fflush(stdout) == EOF && code == EXIT_FINE) {
                perror("assay: standard output cannot be written");
                code = EXIT_FAILED;
            }
            return code;
        }
    fprintf(stderr, "assay: there is no command \"%s\".\nTry `assay --help`.\n", name);
    return EXIT_USAGE;
}
