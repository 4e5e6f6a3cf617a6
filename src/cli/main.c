// SPDX-License-Identifier: Apache-2.0
// assay: one binary, one table of subcommands.

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "symbol/naming/symbolizer.h"

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
};

static const struct command commands[] = {
    {"record", command_record, "sample the CPU time of a command, processes or the machine"},
    {"top", command_top, "functions by CPU time, live"},
    {"stacks", command_stacks, "stacks of all threads of a process"},
    {"triage", command_triage, "where the time of a slow program goes, by cause"},
    {"doctor", command_doctor, "what can be recorded here, and how to enable the rest"},
    {"report", command_report, "functions by cost, call trees, callers, lines"},
    {"flame", command_flame, "a flame graph as .html or .svg"},
    {"view", command_view, "a profile, or a diff of two, in the browser"},
    {"diff", command_diff, "differences between two profiles"},
    {"gate", command_gate, "fail a pipeline on a regression that is certain"},
    {"info", command_info, "contents of a profile file"},
    {"convert", command_convert, "convert between formats"},
    {"merge", command_merge, "merge profiles into one"},
    {"debuginfo", command_debuginfo, "symbol indexes, and uploads of debug files to a server"},
    {"up", command_up, "server and agent on this machine, in one command"},
    {"demo", command_simulated, "a sample service with a slow version, to try assay"},
    {"agent", command_agent, "sample this host continuously, for a server"},
    {"server", command_server, "receive profiles from any tool, store and query them"},
    {"query", command_query, "query a server"},
    {"push", command_push, "send profiles from a pipeline to a server"},
    {"baseline", command_baseline, "name good states on a server, for gates"},
    {"pin", command_pin, "keep time ranges on a server from its retention"},
    {"explain", command_explain, "explain what rose in a service at a time, and why"},
    {"findings", command_findings, "list what a server noticed: functions that grew, leaks"},
    {"rules", command_rules, "check SLIs and alerts, and run them on recorded data"},
    {"agents", command_agents, "agents of a server, with their state and cost"},
    {"recording", command_recording, "record a service in detail through its agents"},
    {"control", command_control, "turn capture off and on, and set rates, for agents of a server"},
    {"simulate", command_simulated, "send profiles of a simulated fleet to a server"},
    {"token", command_token, "create, list and revoke tokens of a server"},
    {"store", command_store, "check, delete, export and import a server's data"},
};

static void print_help(FILE *out)
{
    fprintf(out, "assay shows where programs spend time and memory.\n\nUsage: assay COMMAND "
                 "[options] ...\n\nCommands:\n");
    for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
        fprintf(out, "  %-10s  %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\nSee `assay COMMAND --help` and `man assay` for details.\n");
}

/* The command that is most like a word; NULL when none is. */
static const char *meant_command(const char *name)
{
    struct text_meant meant = {.word = name, .length = strlen(name)};
    for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
        text_meant_offer(&meant, commands[i].name);
    return text_meant_best(&meant);
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
        name = argv[1] = argv[2];
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
                perror("assay: failed to write to standard output");
                code = EXIT_FAILED;
            }
            return code;
        }
    const char *meant = meant_command(name);
    if (meant)
        fprintf(stderr, "assay: unknown command \"%s\"; did you mean \"%s\"?\n", name, meant);
    else
        fprintf(stderr, "assay: unknown command \"%s\".\n", name);
    fprintf(stderr, "Try `assay --help`.\n");
    return EXIT_USAGE;
}
