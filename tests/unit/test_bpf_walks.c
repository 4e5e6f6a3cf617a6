// SPDX-License-Identifier: Apache-2.0
// The walker in the kernel against the one in user space, on everything that runs: with a pool so
// small that rows come and go all the time, every whole walk has to be the same.

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/capture.h"
#include "unit.h"

#define LOADS 3
#define CHECKED_MIN 200
#define CHECKED_LEAST 10 /* on a busy machine most copies are of processes that have ended */
#define PATIENCE_NS 60000000000

/* Busy processes of different kinds; each is our own child. */
static pid_t start_load(int kind)
{
    static const char *const scripts[LOADS] = {
        "while :; do :; done",
        "exec python3 -c 'import json,re\nwhile True: json.loads(json.dumps({\"a\":[1,2,3]*50}));"
        "re.sub(\"a+\",\"b\",\"aaab\"*50)'",
        "exec perl -e 'my %h; while (1) { $h{$_ % 1000} .= sprintf(\"%d\", $_) for 1..1000; %h=() "
        "}'",
    };
    pid_t pid = fork();
    if (pid)
        return pid;
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execl("/bin/sh", "sh", "-c", scripts[kind], NULL);
    _exit(127);
}

static void walks_agree(void **state)
{
    (void)state;
    struct capture_options options = {.all = true,
                                      .frequency_hz = 499,
                                      .kernel = true,
                                      .user = true,
                                      .backend = CAPTURE_BPF,
                                      .unwind_pool_bytes = 1, /* as little as there can be */
                                      .check = true};
    struct capture *capture = NULL;
    struct error error = {0};
    if (capture_new(&options, &capture, &error) < 0) {
        print_message("no BPF here: %s\n", error.text);
        skip();
    }
    struct profile profile;
    profile_init(&profile, 0);
    capture_into(capture, &profile);
    pid_t loads[LOADS];
    for (int i = 0; i < LOADS; i++)
        loads[i] = start_load(i);
    struct capture_stats stats = {0};
    int64_t started_ns = monotonic_ns();
    while (stats.checked < CHECKED_MIN && monotonic_ns() - started_ns < PATIENCE_NS) {
        assert_return_code(capture_read(capture, 50, false, &error), 0);
        stats = capture_stats(capture);
    }
    for (int i = 0; i < LOADS; i++) {
        kill(loads[i], SIGKILL);
        waitpid(loads[i], NULL, 0);
    }
    capture_read(capture, 0, true, &error);
    stats = capture_stats(capture);
    print_message("%llu samples, %llu copies, %llu walks compared, %llu differ\n",
                  (unsigned long long)stats.samples, (unsigned long long)stats.copies,
                  (unsigned long long)stats.checked, (unsigned long long)stats.different);
    assert_true(stats.checked >= CHECKED_LEAST);
    assert_int_equal(stats.different, 0);
    assert_true(stats.copies > 0);
    capture_free(capture);
    profile_release(&profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(walks_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
