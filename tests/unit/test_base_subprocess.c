// SPDX-License-Identifier: Apache-2.0
// Other programs: their input, output and end, and that none outlives its deadline.

#include "base/process/subprocess.h"
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

struct outcome {
    int result;
    int status;
    struct buffer output;
    struct error error;
};

static struct outcome run(const char *const argv[], const struct subprocess_options *options)
{
    struct outcome outcome = {.status = -1};
    outcome.result =
        subprocess_run(argv, options, &outcome.output, &outcome.status, &outcome.error);
    return outcome;
}

static struct outcome run_shell(const char *script, const struct subprocess_options *options)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    return run(argv, options);
}

static void gives_output_and_status(void **state)
{
    (void)state;
    struct outcome outcome = run_shell("printf 'a b'; exit 3", NULL);
    assert_int_equal(outcome.result, 0);
    assert_int_equal(outcome.status, 3);
    assert_buffer(&outcome.output, "a b");
    buffer_release(&outcome.output);
}

static void passes_arguments_as_they_are(void **state)
{
    (void)state;
    const char *argv[] = {"printf", "%s|", "$HOME; `id` \"'", "*", NULL};
    struct outcome outcome = run(argv, NULL);
    assert_int_equal(outcome.result, 0);
    assert_buffer(&outcome.output, "$HOME; `id` \"'|*|");
    buffer_release(&outcome.output);
}

static void reports_the_signal(void **state)
{
    (void)state;
    struct outcome outcome = run_shell("kill -TERM $$", NULL);
    assert_int_equal(outcome.result, 0);
    assert_int_equal(outcome.status, 128 + SIGTERM);
    buffer_release(&outcome.output);
}

static void says_what_cannot_be_run(void **state)
{
    (void)state;
    const char *argv[] = {"assay-no-such-program", NULL};
    struct outcome outcome = run(argv, NULL);
    assert_int_equal(outcome.result, -ENOENT);
    assert_says(&outcome.error, "Failed to run assay-no-such-program");
    assert_int_equal(outcome.status, -1);
    assert_null(outcome.output.data);
}

static void feeds_and_drains_more_than_a_pipe_holds(void **state)
{
    (void)state;
    enum { LENGTH = 3 << 20 };
    char *input = memory_alloc(LENGTH);
    for (size_t i = 0; i < LENGTH; i++)
        input[i] = (char)(i * 7 + i / 4096);
    struct subprocess_options options = {.input = input, .input_bytes = LENGTH};
    const char *argv[] = {"cat", NULL};
    struct outcome outcome = run(argv, &options);
    assert_int_equal(outcome.result, 0);
    assert_int_equal(outcome.status, 0);
    assert_int_equal(outcome.output.length, LENGTH);
    assert_memory_equal(outcome.output.data, input, LENGTH);
    buffer_release(&outcome.output);
    free(input);
}

static void minds_no_child_that_does_not_read(void **state)
{
    (void)state;
    static const char input[1 << 20];
    struct subprocess_options options = {.input = input, .input_bytes = sizeof(input)};
    struct outcome outcome = run_shell("exec <&-; echo done", &options);
    assert_int_equal(outcome.result, 0);
    assert_buffer(&outcome.output, "done\n");
    buffer_release(&outcome.output);
    /* The caller's SIGPIPE setting is as it was. */
    struct sigaction now;
    sigaction(SIGPIPE, NULL, &now);
    assert_true(now.sa_handler == SIG_DFL);
}

static void child_sees_the_end_of_its_input(void **state)
{
    (void)state;
    struct outcome outcome = run_shell("cat; echo end", NULL);
    assert_int_equal(outcome.result, 0);
    assert_buffer(&outcome.output, "end\n");
    buffer_release(&outcome.output);
}

/* Runs a script that would take a minute, with a timeout of 0.2 s. The script's own process is
 * gone afterwards: there is no child left to wait for. */
static void check_timeout(const char *script)
{
    struct subprocess_options options = {.timeout_ms = 200};
    struct outcome outcome = run_shell(script, &options);
    assert_int_equal(outcome.result, -ETIME);
    assert_says(&outcome.error, "sh was killed");
    assert_says(&outcome.error, "200 ms");
    assert_null(outcome.output.data);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void ends_what_takes_too_long(void **state)
{
    (void)state;
    check_timeout("exec sleep 60");
}

static void ends_what_closed_its_output_but_stays(void **state)
{
    (void)state;
    check_timeout("exec sleep 60 >&-");
}

static void ends_what_ignores_polite_signals(void **state)
{
    (void)state;
    check_timeout("trap '' TERM INT; while :; do read x </dev/zero; done");
}

static void ends_what_writes_too_much(void **state)
{
    (void)state;
    struct subprocess_options options = {.output_limit_bytes = 100000};
    const char *argv[] = {"cat", "/dev/zero", NULL};
    struct outcome outcome = run(argv, &options);
    assert_int_equal(outcome.result, -E2BIG);
    assert_says(&outcome.error, "cat was killed");
    assert_says(&outcome.error, "100000 bytes");
    assert_null(outcome.output.data);
}

static void output_may_be_as_long_as_the_limit(void **state)
{
    (void)state;
    struct subprocess_options options = {.output_limit_bytes = 5};
    struct outcome outcome = run_shell("printf 12345", &options);
    assert_int_equal(outcome.result, 0);
    assert_buffer(&outcome.output, "12345");
    buffer_release(&outcome.output);
    outcome = run_shell("printf 123456", &options);
    assert_int_equal(outcome.result, -E2BIG);
}

static void leaks_no_descriptors(void **state)
{
    (void)state;
    int before = open("/dev/null", O_RDONLY);
    close(before);
    struct subprocess_options options = {.timeout_ms = 10};
    const char *missing[] = {"assay-no-such-program", NULL};
    for (int i = 0; i < 3; i++) {
        struct outcome outcome = run_shell("echo x", NULL);
        buffer_release(&outcome.output);
        run_shell("exec sleep 60", &options);
        run(missing, NULL);
    }
    int after = open("/dev/null", O_RDONLY);
    close(after);
    assert_int_equal(before, after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_output_and_status),
        cmocka_unit_test(passes_arguments_as_they_are),
        cmocka_unit_test(reports_the_signal),
        cmocka_unit_test(says_what_cannot_be_run),
        cmocka_unit_test(feeds_and_drains_more_than_a_pipe_holds),
        cmocka_unit_test(minds_no_child_that_does_not_read),
        cmocka_unit_test(child_sees_the_end_of_its_input),
        cmocka_unit_test(ends_what_takes_too_long),
        cmocka_unit_test(ends_what_closed_its_output_but_stays),
        cmocka_unit_test(ends_what_ignores_polite_signals),
        cmocka_unit_test(ends_what_writes_too_much),
        cmocka_unit_test(output_may_be_as_long_as_the_limit),
        cmocka_unit_test(leaks_no_descriptors),
    };
    return cmocka_run_group_tests_name("subprocess", tests, NULL, NULL);
}
