// SPDX-License-Identifier: Apache-2.0
// account COMMAND...: runs a test, and appends to the file $ACCOUNT the CPU time of all its
// processes, those included that outlived their parents, in milliseconds, and the command: words
// with tabs between.

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096

static long milliseconds(struct timeval time)
{
    return time.tv_sec * 1000 + time.tv_usec / 1000;
}

static void tell(const char *path, char **command)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    char line[LINE_MAX_BYTES];
    int length = snprintf(line, sizeof(line), "%ld",
                          milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime));
    for (int i = 0; command[i] && length < LINE_MAX_BYTES - 1; i++)
        length += snprintf(line + length, sizeof(line) - (size_t)length, "\t%s", command[i]);
    if (length >= LINE_MAX_BYTES - 1)
        return;
    line[length++] = '\n';
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, line, (size_t)length) != length)
        perror(path);
}

int main(int argc, char **argv)
{
    const char *path = getenv("ACCOUNT");
    if (argc < 2)
        return 2;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t child = fork();
    if (child == 0) {
        unsetenv("ACCOUNT");
        execvp(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    int status = 0, last;
    pid_t ended;
    while ((ended = wait(&last)) > 0)
        if (ended == child) {
            status = last;
            break;
        }
    while (waitpid(-1, &last, WNOHANG) > 0)
        ;
    if (path)
        tell(path, argv + 1);
    if (WIFSIGNALED(status)) { /* as the test has ended */
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        raise(WTERMSIG(status));
    }
    return WEXITSTATUS(status);
}
