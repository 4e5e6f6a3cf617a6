// SPDX-License-Identifier: Apache-2.0
// Triage: sums by kind, idle threads, the holder of a lock, and what is refused.

#include "profile/triage/triage.h"

#include <string.h>

#include "profile/triage/idle.h"
#include "profile/triage/triage_report.h"
#include "unit.h"

#define MS INT64_C(1000000)

static void add_type(struct profile *profile, const char *type_name, const char *state, int64_t ns,
                     const char *const *stack)
{
    uint32_t frames[16];
    size_t count = 0;
    for (; stack[count]; count++) {
        struct profile_function function = {.name = profile_cstring(profile, stack[count])};
        struct profile_frame frame = {.function = profile_function(profile, &function)};
        frames[count] = profile_frame(profile, &frame);
    }
    struct profile_label label = {.key = profile_cstring(profile, "state"),
                                  .text = profile_cstring(profile, state)};
    unsigned type = profile_type(profile, profile_cstring(profile, type_name),
                                 profile_cstring(profile, "nanoseconds"));
    size_t row = profile_sample(profile, profile_stack(profile, frames, count),
                                profile_label_set(profile, &label, *state ? 1 : 0), 0, 0);
    profile_add_value(profile, row, type, ns);
}

static void add(struct profile *profile, const char *state, int64_t ns, const char *const *stack)
{
    add_type(profile, "wall", state, ns, stack);
}

#define HANDLER "net/http.(*conn).serve", "net/http.serverHandler.ServeHTTP", "main.buy"

/* What goroutines wait for counts, and not what the threads do that have none to run. */
static void test_goroutines(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    struct triage triage;
    struct error error = {0};
    profile_init(&profile, PROFILE_LABELS);
    add(&profile, "running", 100 * MS, (const char *[]){HANDLER, NULL});
    add(&profile, "lock", 3000 * MS, (const char *[]){"runtime.stopm", "runtime.futexsleep", NULL});
    /* An answer of another server, behind a channel; a connection that waits for a request; one
     * whose handler reads the rest of its request. */
    add_type(&profile, "goroutine_wall", "channel", 700 * MS,
             (const char *[]){HANDLER, "net/http.(*persistConn).roundTrip", "runtime.selectgo",
                              "runtime.gopark", NULL});
    add_type(&profile, "goroutine_wall", "network", 5000 * MS,
             (const char *[]){"net/http.(*conn).serve", "net/http.(*connReader).Read", NULL});
    add_type(&profile, "goroutine_wall", "network", 60 * MS,
             (const char *[]){HANDLER, "net/http.(*connReader).Read", NULL});
    /* On threads, or of the runtime itself. */
    add_type(&profile, "goroutine_wall", "running", 100 * MS, (const char *[]){"[running]", NULL});
    add_type(&profile, "goroutine_wall", "syscall", 900 * MS, (const char *[]){"main.read", NULL});
    add_type(&profile, "goroutine_wall", "idle", 400 * MS,
             (const char *[]){"runtime.gcBgMarkWorker", NULL});
    add_type(&profile, "goroutine_wall", "channel", 2000 * MS,
             (const char *[]){"main.worker", "runtime.chanrecv1", "runtime.gopark", NULL});
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_int_equal(triage.verdict, TRIAGE_NETWORK);
    assert_int_equal(triage.ns[TRIAGE_NETWORK], 760 * MS);
    assert_int_equal(triage.ns[TRIAGE_IDLE], 8400ll * MS);
    assert_int_equal(triage.ns[TRIAGE_COMPUTING], 100 * MS);
    assert_int_equal(triage.ns[TRIAGE_CHANNEL], 2000ll * MS);
    assert_int_equal(triage.node_ns, 700 * MS);
}

/* Goroutines that only wait for each other; then one of them does something. */
static void test_goroutines_wait_for_each_other(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    _cleanup_buffer_ struct buffer out = {0};
    struct triage triage;
    struct error error = {0};
    profile_init(&profile, PROFILE_LABELS);
    add_type(&profile, "goroutine_wall", "channel", 4000 * MS,
             (const char *[]){"main.producer", "runtime.chansend1", "runtime.gopark", NULL});
    add(&profile, "running", 39 * MS, (const char *[]){"main.consumer", NULL});
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_int_equal(triage.verdict, TRIAGE_CHANNEL);
    triage.target = "-p 12";
    triage_put_text(&profile, &triage, false, &out);
    assert_non_null(strstr(buffer_text(&out), "Mostly waiting for other goroutines: 99.0%"));
    assert_non_null(strstr(buffer_text(&out), "\nNext: assay record -m goroutine -d 10 -p 12 "));
    add(&profile, "running", 10 * MS, (const char *[]){"main.consumer", NULL});
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_int_equal(triage.verdict, TRIAGE_COMPUTING);
}

/* What a Go program says itself: its profiles of blocking, and of who held mutexes. */
static void test_own_profiles(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    _cleanup_buffer_ struct buffer out = {0};
    struct triage triage;
    struct error error = {0};
    profile_init(&profile, PROFILE_LABELS);
    add(&profile, "running", 10 * MS, (const char *[]){HANDLER, NULL});
    add_type(&profile, TRIAGE_BLOCK_TYPE, "", 800 * MS,
             (const char *[]){HANDLER, "main.update", "sync.(*Mutex).Lock", NULL});
    add_type(&profile, TRIAGE_BLOCK_TYPE, "", 300 * MS,
             (const char *[]){"main.worker", "runtime.chanrecv1", NULL});
    add_type(&profile, TRIAGE_MUTEX_TYPE, "", 600 * MS,
             (const char *[]){HANDLER, "main.report", "sync.(*Mutex).Unlock", NULL});
    add_type(&profile, TRIAGE_MUTEX_TYPE, "", 200 * MS,
             (const char *[]){HANDLER, "main.update", "sync.(*Mutex).Unlock",
                              "internal/sync.(*Mutex).Unlock", NULL});
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_int_equal(triage.verdict, TRIAGE_LOCK);
    assert_int_equal(triage.ns[TRIAGE_LOCK], 800 * MS);
    assert_int_equal(triage.ns[TRIAGE_CHANNEL], 300 * MS);
    assert_int_equal(triage.mutex_ns, 800 * MS);
    assert_int_equal(triage.holder_count, 2);
    triage_put_json(&profile, &triage, &out);
    assert_non_null(strstr(buffer_text(&out),
                           "\"locks\":[{\"ns\":800000000,\"waiter\":\"main.update\",\"lock\":\"\","
                           "\"holder\":\"\"}],\"mutex_ns\":800000000,\"mutex_holders\":["
                           "{\"ns\":600000000,\"holder\":\"main.report\"},"
                           "{\"ns\":200000000,\"holder\":\"main.update\"}]"));
    out.length = 0;
    triage_put_text(&profile, &triage, false, &out);
    assert_non_null(strstr(buffer_text(&out), "0.80 s of waiting, for:\n   75.0% main.report\n"));
    /* Where goroutines were looked at, the same waits would count twice. */
    add_type(&profile, "goroutine_wall", "lock", 700 * MS,
             (const char *[]){HANDLER, "main.update", "sync.(*Mutex).Lock", NULL});
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_int_equal(triage.ns[TRIAGE_LOCK], 700 * MS);
    assert_int_equal(triage.ns[TRIAGE_CHANNEL], 0);
}

/* The stack of a lock's holder decides nothing about who waits. */
static void test_holder_is_apart(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    struct triage triage;
    struct error error = {0};
    profile_init(&profile, PROFILE_LABELS);
    add(&profile, "lock", 500 * MS,
        (const char *[]){"pool", "pthread_cond_wait", "[lock 0x12]", TRIAGE_HOLDER_MARK, HANDLER,
                         "pthread_mutex_lock", "futex", NULL});
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_int_equal(triage.ns[TRIAGE_IDLE], 500 * MS);
}

/* A lock of the program's own making, which the kernel sees as a wait for the network. */
static void test_own_lock(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    struct triage triage;
    struct error error = {0};
    profile_init(&profile, PROFILE_LABELS);
    add(&profile, "network", 600 * MS,
        (const char *[]){"main", "heap_update", "ProcSleep", "WaitLatch", "epoll_wait", NULL});
    add(&profile, "network", 900 * MS, (const char *[]){"main", "WaitLatch", "epoll_wait", NULL});
    add(&profile, "running", 100 * MS, (const char *[]){"main", "ProcSleep", NULL});
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_int_equal(triage.verdict, TRIAGE_LOCK);
    assert_int_equal(triage.ns[TRIAGE_LOCK], 600 * MS);
    assert_int_equal(triage.ns[TRIAGE_IDLE], 900 * MS);
    assert_int_equal(triage.ns[TRIAGE_COMPUTING], 100 * MS);
}

static void test_lock(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    struct triage triage;
    struct error error = {0};
    profile_init(&profile, PROFILE_LABELS);
    add(&profile, "lock", 600 * MS,
        (const char *[]){"main", "waiter", "pthread_mutex_lock", TRIAGE_HOLDER_MARK, "main",
                         "holder", "pthread_mutex_unlock", "__lll_lock_wake", NULL});
    add(&profile, "lock", 5000 * MS, (const char *[]){"pool", "pthread_cond_wait", NULL});
    add(&profile, "running", 100 * MS, (const char *[]){"main", "work", NULL});
    add(&profile, "sleep", 2000 * MS, (const char *[]){"main", "nanosleep", NULL});
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_int_equal(triage.verdict, TRIAGE_LOCK);
    assert_int_equal(triage.ns[TRIAGE_LOCK], 600 * MS);
    assert_int_equal(triage.ns[TRIAGE_IDLE], 5000ll * MS);
    assert_int_equal(triage.busy_ns, 2700ll * MS);
    assert_string_equal(profile_text(&profile, profile.functions[triage.holder].name), "holder");
    assert_int_equal(triage.holder_ns, 600 * MS);
    assert_int_equal(triage.edge_count, 1);
    assert_int_equal(triage.edges[0].ns, 600 * MS);
    assert_int_equal(triage.edges[0].holder, triage.holder);
    assert_int_equal(triage.edges[0].lock, 0);
    assert_string_equal(profile_text(&profile, profile.functions[triage.edges[0].waiter].name),
                        "waiter");
}

/* Each pair of a waiter and a holder by itself, most time first. */
static void test_edges(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    _cleanup_buffer_ struct buffer out = {0};
    struct triage triage;
    struct error error = {0};
    profile_init(&profile, PROFILE_LABELS);
    for (int i = 0; i < 2; i++)
        add(&profile, "lock", 200 * MS,
            (const char *[]){"main", i ? "get" : "put", "pthread_mutex_lock", "[lock queue]",
                             TRIAGE_HOLDER_MARK, "main", "flush", "pthread_mutex_unlock", NULL});
    add(&profile, "lock", 100 * MS,
        (const char *[]){"main", "get", "pthread_mutex_lock", "[lock queue]", TRIAGE_HOLDER_MARK,
                         "main", "flush", "pthread_mutex_unlock", NULL});
    add(&profile, "lock", 50 * MS,
        (const char *[]){"main", "put", "pthread_mutex_lock", "[lock queue]", NULL});
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_int_equal(triage.edge_count, 3);
    triage_put_json(&profile, &triage, &out);
    assert_non_null(strstr(buffer_text(&out),
                           "\"locks\":[{\"ns\":300000000,\"waiter\":\"get\",\"lock\":\"queue\","
                           "\"holder\":\"flush\"},{\"ns\":200000000,\"waiter\":\"put\",\"lock\":"
                           "\"queue\",\"holder\":\"flush\"},{\"ns\":50000000,\"waiter\":\"put\","
                           "\"lock\":\"queue\",\"holder\":\"\"}]"));
    out.length = 0;
    triage_put_text(&profile, &triage, false, &out);
    assert_non_null(strstr(buffer_text(&out), " 54.5% get -> queue -> flush\n"));
    assert_non_null(strstr(buffer_text(&out), "  9.1% put -> queue -> (not seen)\n"));
}

/* A mutex that a thread of a pool waits for is not work that it waits for. */
static void test_mutex_is_never_idle(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    struct triage triage;
    struct error error = {0};
    profile_init(&profile, PROFILE_LABELS);
    add(&profile, "lock", 10 * MS, (const char *[]){"pool", "pthread_mutex_lock", NULL});
    add(&profile, "network", 10 * MS, (const char *[]){"loop", "epoll_wait", NULL});
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_int_equal(triage.ns[TRIAGE_LOCK], 10 * MS);
    assert_int_equal(triage.ns[TRIAGE_IDLE], 10 * MS);
    assert_int_equal(triage.holder, 0);
}

/* Runtimes make their locks of the condition variables and semaphores that pools wait with, too. */
static void test_locks_of_runtimes(void **state)
{
    static const struct {
        const char *stack[5];
        bool idle;
    } cases[] = {
        {{"app.py:handler", "time_sleep", "PyEval_RestoreThread", "___pthread_cond_timedwait64"},
         false},
        {{"app.py:handler", "_PyEval_EvalFrameDefault", "take_gil", "pthread_cond_timedwait"},
         false},
        {{"app.py:handler", "PyThread_acquire_lock_timed", "__new_sem_wait_slow64"}, false},
        {{"app.py:main", "threading.py:Condition.wait", "PyThread_acquire_lock_timed",
          "__new_sem_wait_slow64"},
         true},
        {{"app.py:main", "threading.py:Thread._wait_for_tstate_lock", "PyThread_acquire_lock_timed",
          "__new_sem_wait_slow64"},
         true},
        {{"Shop.buy", "ObjectMonitor::enter(JavaThread*)", "ObjectMonitor::EnterI(JavaThread*)",
          "pthread_cond_wait"},
         false},
        {{"Shop.buy", "java.util.concurrent.locks.ReentrantLock.lock", "Unsafe_Park",
          "pthread_cond_wait"},
         false},
        {{"java.util.concurrent.LinkedBlockingQueue.take", "Unsafe_Park", "pthread_cond_wait"},
         true},
        {{"shop::buy", "parking_lot::raw_mutex::RawMutex::lock_slow",
          "parking_lot_core::parking_lot::park"},
         false},
        {{"app.rb:work", "rb_thread_schedule_limits", "thread_sched_to_running",
          "pthread_cond_wait"},
         false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        _cleanup_profile_ struct profile profile;
        struct triage triage;
        struct error error = {0};
        profile_init(&profile, PROFILE_LABELS);
        add(&profile, "lock", 10 * MS, cases[i].stack);
        assert_int_equal(triage_profile(&profile, &triage, &error), 0);
        assert_int_equal(triage.ns[cases[i].idle ? TRIAGE_IDLE : TRIAGE_LOCK], 10 * MS);
    }
}

static void test_only_idle_and_sleep(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    struct triage triage;
    struct error error = {0};
    profile_init(&profile, PROFILE_LABELS);
    add(&profile, "network", 10 * MS, (const char *[]){"loop", "epoll_wait", NULL});
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_int_equal(triage.verdict, TRIAGE_IDLE);
    add(&profile, "sleep", 100 * MS, (const char *[]){"main", "nanosleep", NULL});
    add(&profile, "running", 1 * MS, (const char *[]){"main", NULL});
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_int_equal(triage.verdict, TRIAGE_SLEEPING);
}

static void test_without_states(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    struct triage triage;
    struct error error = {0};
    profile_init(&profile, PROFILE_LABELS);
    assert_int_equal(triage_profile(&profile, &triage, &error), -ENODATA);
    assert_non_null(strstr(error.text, "--mode wall,lock"));
}

static void test_rules(void **state)
{
    struct idle_rules *rules = NULL;
    struct error error = {0};
    struct profile profile;
    (void)state;
    profile_init(&profile, PROFILE_LABELS);
    add(&profile, "lock", 5 * MS, (const char *[]){"main", "pool::take(int)", "futex", NULL});
    add(&profile, "lock", 3 * MS, (const char *[]){"main", "pool::take(int)", "mutex", NULL});
    add(&profile, "sleep", 2 * MS, (const char *[]){"main", "pool::take(int)", NULL});
    static const char text[] = "lock pool::take* # a pool\n\nbusy mutex\r\n";
    assert_int_equal(idle_rules_parse(text, strlen(text), "rules", &rules, &error), 0);
    assert_int_equal(idle_fold(&profile, rules), 1);
    assert_int_equal(idle_fold(&profile, rules), 0); /* it is there already */
    idle_rules_free(rules);
    static const char *const wrong[] = {"lock\n", "fine name\nlock \n", "lock a\0b\n"};
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
        assert_int_equal(
            idle_rules_parse(wrong[i], i == 2 ? 9 : strlen(wrong[i]), "rules", &rules, &error),
            -EINVAL);
        assert_non_null(strstr(error.text, i == 1 ? "line 2" : "line 1"));
    }
    struct triage triage;
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_int_equal(triage.ns[TRIAGE_IDLE], 5 * MS);
    profile_release(&profile);
}

static void test_names_and_errors(void **state)
{
    struct profile profile;
    struct triage triage;
    struct error error = {0};
    size_t length = 0;
    (void)state;
    profile_init(&profile, PROFILE_LABELS);
    add(&profile, "lock", 4 * MS,
        (const char *[]){"main", "waiter", "pthread_mutex_lock", "[lock queue]", NULL});
    profile_add_comment(
        &profile,
        profile_cstring(
            &profile,
            "wall time: lock 0.004000 s, standard error 0.003000 s, effective waits 4.0"));
    profile_add_comment(
        &profile,
        profile_cstring(
            &profile,
            "wall time: lock 0.004000 s, standard error 0.004000 s, effective waits 5.0"));
    profile_add_comment(&profile, profile_cstring(&profile, "wall time: lock nan s, standard error "
                                                            "nan s, effective waits -1"));
    assert_int_equal(triage_profile(&profile, &triage, &error), 0);
    assert_string_equal(profile_text(&profile, profile.functions[triage.lock].name),
                        "[lock queue]");
    assert_int_equal(triage.error_ns[TRIAGE_LOCK], 5 * MS);
    assert_true(triage.waits[TRIAGE_LOCK] == 9);
    assert_true(triage_share_error(&triage, TRIAGE_LOCK, 0.5) > 0.16);
    assert_null(triage_lock_name(TRIAGE_HOLDER_MARK, &length));
    profile_release(&profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_lock),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_mutex_is_never_idle),
        cmocka_unit_test(test_locks_of_runtimes),
        cmocka_unit_test(test_only_idle_and_sleep),
        cmocka_unit_test(test_without_states),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_names_and_errors),
        cmocka_unit_test(test_goroutines),
        cmocka_unit_test(test_goroutines_wait_for_each_other),
        cmocka_unit_test(test_own_profiles),
        cmocka_unit_test(test_holder_is_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
