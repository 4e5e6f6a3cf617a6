// SPDX-License-Identifier: Apache-2.0
// Running other programs with posix_spawn and poll: see subprocess.h.

#include "base/process/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define DEFAULT_OUTPUT_LIMIT (64u << 20)

extern char **environ;

static void close_and_forget(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int spawn(const char *const argv[], int input, int output, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    int r = posix_spawnp(ret_pid, argv[0], &actions, &attributes, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return -r;
}

/* Feeds and drains the child until it closes its output. */
static int exchange(int *to_child, int from_child, const struct subprocess_options *options,
                    size_t limit, int64_t deadline, struct buffer *output)
{
    size_t sent = 0;
    for (;;) {
        if (sent == options->input_bytes)
            close_and_forget(to_child);
        struct pollfd fds[] = {{.fd = from_child, .events = POLLIN},
                               {.fd = *to_child, .events = POLLOUT}};
        int64_t left = options->timeout_ms ? deadline - monotonic_ns() / 1000000 : -1;
        if (options->timeout_ms && left <= 0)
            return -ETIME;
        if (poll(fds, 2, (int)left) < 0 && errno != EINTR)
            return -errno;
        if (fds[1].revents) {
            ssize_t wrote =
                write(*to_child, (const char *)options->input + sent, options->input_bytes - sent);
            if (wrote > 0)
                sent += (size_t)wrote;
            else if (wrote < 0 && errno != EAGAIN && errno != EINTR)
                sent = options->input_bytes; /* it doesn't want to read the rest */
        }
        if (fds[0].revents) {
            ssize_t got = read(from_child, buffer_reserve(output, 65536), 65536);
            if (!got)
                return 0;
            if (got < 0 && errno != EINTR && errno != EAGAIN)
                return -errno;
            if (got > 0)
                output->length += (size_t)got;
            if (output->length > limit)
                return -E2BIG;
        }
    }
}

/* A child may close its output and stay; only its end counts. */
static int wait_for_end(pid_t pid, bool has_deadline, int64_t deadline, int *ret_status)
{
    for (int pause_ms = 1;; pause_ms = MIN(pause_ms * 2, 50)) {
        pid_t ended = waitpid(pid, ret_status, has_deadline ? WNOHANG : 0);
        if (ended == pid)
            return 0;
        if (ended < 0 && errno != EINTR)
            return -errno;
        if (has_deadline && monotonic_ns() / 1000000 >= deadline)
            return -ETIME;
        if (has_deadline)
            poll(NULL, 0, pause_ms);
    }
}

static int ended_early(const char *program, int code, const struct subprocess_options *options,
                       size_t limit, struct error *error)
{
    if (code == -ETIME)
        return error_set(error, code, "%s was killed: it took longer than %u ms.", program,
                         options->timeout_ms);
    if (code == -E2BIG)
        return error_set(error, code, "%s was killed: it wrote more than %zu bytes.", program,
                         limit);
    return error_set_errno(error, code, "%s was killed", program);
}

int subprocess_run(const char *const argv[], const struct subprocess_options *options,
                   struct buffer *ret_output, int *ret_status, struct error *error)
{
    static const struct subprocess_options none;
    if (!options)
        options = &none;
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    pid_t pid = -1;
    int r = 0;
    if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
        r = -errno;
    if (!r)
        r = spawn(argv, to[0], from[1], &pid);
    close_and_forget(&to[0]);
    close_and_forget(&from[1]);
    if (r < 0) {
        close_and_forget(&to[1]);
        close_and_forget(&from[0]);
        return error_set_errno(error, r, "Failed to run %s", argv[0]);
    }
    fcntl(to[1], F_SETFL, O_NONBLOCK);
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGPIPE, &ignore, &before);
    _cleanup_buffer_ struct buffer output = {0};
    size_t limit = options->output_limit_bytes ? options->output_limit_bytes : DEFAULT_OUTPUT_LIMIT;
    int64_t deadline = monotonic_ns() / 1000000 + options->timeout_ms;
    r = exchange(&to[1], from[0], options, limit, deadline, &output);
    sigaction(SIGPIPE, &before, NULL);
    close_and_forget(&to[1]);
    close_and_forget(&from[0]);
    int status = 0;
    if (!r)
        r = wait_for_end(pid, options->timeout_ms, deadline, &status);
    if (r < 0) {
        kill(pid, SIGKILL);
        wait_for_end(pid, false, 0, &status);
        return ended_early(argv[0], r, options, limit, error);
    }
    *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    *ret_output = output;
    output = (struct buffer){0};
    return 0;
}
