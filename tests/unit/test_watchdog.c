// SPDX-License-Identifier: Apache-2.0
// A thread that is stuck ends the process; one that only gets little CPU time does not.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/guard/watchdog.h"
#include "base/clock.h"
#include "unit.h"

#define SECOND_NS 1000000000ll
#define LIMIT_NS (2 * SECOND_NS)
#define RIVALS 20
#define WORK_NS (200 * 1000000ll) /* among so many: twice the limit */

static void *compete(void *unused)
{
    (void)unused;
    for (volatile unsigned i = 0;; i++)
        ;
    return NULL;
}

/* All threads of the process on one of its CPUs. */
static void pin(void)
{
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof(allowed), &allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
        if (CPU_ISSET(cpu, &allowed))
            CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
}

/* In a child: the status of wait(). */
static int run(void (*busy)(struct watchdog *))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        struct watchdog *watchdog;
        struct error error = {0};
        signal(SIGABRT, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        if (watchdog_start(LIMIT_NS, &watchdog, &error) < 0)
            _exit(1);
        watchdog_join(watchdog, WATCHDOG_CAPTURE);
        watchdog_beat(watchdog, WATCHDOG_CAPTURE);
        busy(watchdog);
        watchdog_stop(watchdog);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void be_starved(struct watchdog *watchdog)
{
    pthread_t rivals[RIVALS];
    (void)watchdog;
    pin();
    for (int i = 0; i < RIVALS; i++)
        if (pthread_create(&rivals[i], NULL, compete, NULL))
            _exit(2);
    int64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + WORK_NS;
    int64_t start_ns = monotonic_ns();
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
        ;
    _exit(monotonic_ns() - start_ns > LIMIT_NS + SECOND_NS ? 0 : 77);
}

static void test_starved(void **state)
{
    (void)state;
    if (access("/proc/thread-self/schedstat", R_OK) < 0)
        skip();
    int status = run(be_starved);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void be_stuck(struct watchdog *watchdog)
{
    (void)watchdog;
    for (;;)
        pause();
}

static void test_stuck(void **state)
{
    (void)state;
    int status = run(be_stuck);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void be_idle(struct watchdog *watchdog)
{
    watchdog_idle(watchdog, WATCHDOG_CAPTURE);
    nanosleep(&(struct timespec){.tv_sec = 4}, NULL);
}

static void test_idle(void **state)
{
    (void)state;
    int status = run(be_idle);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_starved),
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
