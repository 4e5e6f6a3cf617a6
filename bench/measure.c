// SPDX-License-Identifier: Apache-2.0
// Runs a command and writes what it took: wall time, user and system CPU time in seconds, and peak
// resident memory in KiB, on one line. It exists because the memory a shell or an interpreter
// holds when it starts a child is counted as the child's, and this program holds next to none.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: bench-measure RESULT COMMAND [ARGUMENT...]\n", stderr);
        return 2;
    }
    double start = now();
    pid_t child = fork();
    if (child < 0) {
        perror("bench-measure: fork");
        return 2;
    }
    if (child == 0) {
        execvp(argv[2], argv + 2);
        fprintf(stderr, "bench-measure: %s: %s\n", argv[2], strerror(errno));
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (wait4(child, &status, 0, &usage) < 0) {
        perror("bench-measure: wait4");
        return 2;
    }
    double wall = now() - start;
    FILE *result = fopen(argv[1], "w");
    if (!result) {
        perror(argv[1]);
        return 2;
    }
    fprintf(result, "%.6f %.6f %.6f %ld\n", wall, seconds(usage.ru_utime), seconds(usage.ru_stime),
            usage.ru_maxrss);
    fclose(result);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
