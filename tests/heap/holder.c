// SPDX-License-Identifier: Apache-2.0
// Holds as much memory as it is told, for tests of agents: commands on standard input, each
// answered by a line. `hold MIB` allocates and keeps, `drop MIB` frees what was allocated first,
// `churn MIB` allocates and frees, `exec` runs the program anew, `burn SECONDS` uses CPU time.

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define CHUNK 16384
#define PER_MIB (1048576 / CHUNK)
#define MAX_MIB 4096

static char *held[MAX_MIB * PER_MIB];
static size_t first, last;
static void *volatile sink;

__attribute__((noinline)) static void *site_hold(void)
{
    sink = malloc(CHUNK);
    return sink;
}

__attribute__((noinline)) static void site_churn(void)
{
    sink = malloc(CHUNK);
    free(sink);
}

static double seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

int main(int argc, char **argv)
{
    char line[64], command[32];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setvbuf(stdin, NULL, _IONBF, 0); /* the next program goes on reading */
    printf("started\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        unsigned long amount = 0;
        if (sscanf(line, "%31s %lu", command, &amount) < 1)
            continue;
        size_t chunks = amount * PER_MIB;
        if (!strcmp(command, "hold"))
            for (size_t i = 0; i < chunks && last < sizeof(held) / sizeof(*held); i++)
                memset(held[last++] = site_hold(), 1, 1);
        else if (!strcmp(command, "drop"))
            for (size_t i = 0; i < chunks && first < last; i++)
                free(held[first++]);
        else if (!strcmp(command, "churn"))
            for (size_t i = 0; i < chunks; i++)
                site_churn();
        else if (!strcmp(command, "burn"))
            for (double end = seconds() + (double)amount; seconds() < end;)
                sink = line;
        else if (!strcmp(command, "exec"))
            execv(argv[0], argv);
        printf("%s\n", command);
        fflush(stdout);
    }
    return 0;
}
