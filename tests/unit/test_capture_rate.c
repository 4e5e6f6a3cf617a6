// SPDX-License-Identifier: Apache-2.0
// A capture that goes on: other rates, a pause, one profile after the other, labels by process.

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "capture/capture.h"
#include "unit.h"

static volatile unsigned long sink;

static void use_cpu(double seconds)
{
    int64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + (int64_t)(seconds * 1e9);
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
        for (int i = 0; i < 10000; i++)
            sink += (unsigned long)i * sink;
}

struct labeller {
    unsigned calls;
    bool unwanted;
    uint64_t number;
};

static uint32_t label(void *context, const struct capture_process *process, struct profile *profile)
{
    struct labeller *labeller = context;
    labeller->calls++;
    labeller->number = process->number;
    if (labeller->unwanted)
        return CAPTURE_UNWANTED;
    assert_int_equal(process->pid, getpid());
    struct profile_label one = {.key = profile_cstring(profile, "service_name"),
                                .text = profile_cstring(profile, "test")};
    return profile_label_set(profile, &one, 1);
}

static struct capture *start(enum capture_backend backend, struct labeller *labeller)
{
    pid_t self = getpid();
    struct capture_options options = {.pids = &self,
                                      .pid_count = 1,
                                      .frequency_hz = 100,
                                      .kernel = true,
                                      .user = true,
                                      .backend = backend,
                                      .label = label,
                                      .label_context = labeller};
    struct capture *capture = NULL;
    struct error error = {0};
    if (capture_new(&options, &capture, &error) < 0) {
        print_message("%s\n", error.text);
        return NULL;
    }
    return capture;
}

/* CPU time that is used, and that samples say was. */
static uint64_t measure(struct capture *capture, double seconds, int64_t *ret_cpu_ns)
{
    struct error error = {0};
    struct capture_stats before = capture_stats(capture);
    /* In pieces: an ordinary user's ring holds some fifteen copied stacks. */
    for (int i = 0; i < 25; i++) {
        use_cpu(seconds / 25);
        assert_true(capture_read(capture, 0, true, &error) >= 0);
    }
    struct capture_stats after = capture_stats(capture);
    *ret_cpu_ns = after.cpu_ns - before.cpu_ns;
    return after.samples - before.samples;
}

static void check_rates(enum capture_backend backend)
{
    struct labeller labeller = {0};
    struct error error = {0};
    struct capture *capture = start(backend, &labeller);
    struct profile first, second;
    int64_t cpu_ns;
    if (!capture) {
        skip();
        return;
    }
    profile_init(&first, PROFILE_LABELS | PROFILE_ADDRESSES);
    profile_init(&second, PROFILE_LABELS | PROFILE_ADDRESSES);
    capture_into(capture, &first);
    uint64_t samples = measure(capture, 0.5, &cpu_ns);
    assert_in_range(samples, 25, 100);
    assert_in_range(cpu_ns, 250000000, 1000000000);
    assert_int_equal(labeller.calls, 1);

    /* Four times as many samples stand for the same time. */
    assert_int_equal(capture_set_rate(capture, 400, &error), 0);
    samples = measure(capture, 0.5, &cpu_ns);
    assert_in_range(samples, 100, 400);
    assert_in_range(cpu_ns, 250000000, 1000000000);

    /* What was taken before a change and is read after it stands for what it stood for. */
    struct capture_stats before = capture_stats(capture);
    int64_t used = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < 10; i++) {
        use_cpu(0.05);
        assert_int_equal(capture_set_rate(capture, i % 2 ? 400 : 40, &error), 0);
    }
    assert_true(capture_read(capture, 0, true, &error) >= 0);
    used = clock_ns(CLOCK_THREAD_CPUTIME_ID) - used;
    cpu_ns = capture_stats(capture).cpu_ns - before.cpu_ns;
    assert_in_range(cpu_ns, used / 2, used + used / 4);

    assert_int_equal(capture_pause(capture, true, &error), 0);
    measure(capture, 0.05, &cpu_ns); /* what was on its way */
    assert_int_equal(measure(capture, 0.2, &cpu_ns), 0);
    assert_int_equal(capture_pause(capture, false, &error), 0);
    assert_in_range(measure(capture, 0.3, &cpu_ns), 40, 400);

    /* The next window: all of the process is known, its number is the same, nothing is lost. */
    uint64_t number = labeller.number;
    capture_into(capture, &second);
    assert_in_range(measure(capture, 0.3, &cpu_ns), 40, 400);
    assert_int_equal(labeller.calls, 2);
    assert_int_equal(labeller.number, number);
    assert_true(second.samples.count > 0 && second.mapping_count > 1);
    labeller.unwanted = true;
    struct profile third;
    profile_init(&third, PROFILE_LABELS);
    capture_into(capture, &third);
    assert_int_equal(measure(capture, 0.2, &cpu_ns), 0);
    assert_int_equal(third.samples.count, 0);
    assert_true(capture_stats(capture).unwanted > 0);
    capture_into(capture, NULL);
    capture_free(capture);
    profile_release(&first);
    profile_release(&second);
    profile_release(&third);
}

static void *burn(void *stop)
{
    while (!atomic_load((atomic_bool *)stop))
        use_cpu(0.01);
    return NULL;
}

/* A thread that began before the rate was changed is sampled as it was, or as is said now: what its
 * samples stand for is what it used. */
static void check_inherited(enum capture_backend backend)
{
    struct labeller labeller = {0};
    struct error error = {0};
    struct capture *capture = start(backend, &labeller);
    atomic_bool stop = false;
    struct profile profile;
    pthread_t thread;
    if (!capture) {
        skip();
        return;
    }
    profile_init(&profile, PROFILE_LABELS | PROFILE_ADDRESSES);
    capture_into(capture, &profile);
    assert_int_equal(pthread_create(&thread, NULL, burn, &stop), 0);
    use_cpu(0.05);
    assert_int_equal(capture_set_rate(capture, 10, &error), 0);
    int64_t before_ns = capture_stats(capture).cpu_ns;
    int64_t used_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < used_ns + 1000000000)
        assert_true(capture_read(capture, 10, false, &error) >= 0);
    assert_true(capture_read(capture, 0, true, &error) >= 0);
    used_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - used_ns;
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    int64_t got_ns = capture_stats(capture).cpu_ns - before_ns;
    assert_in_range(got_ns, used_ns / 2, used_ns * 3 / 2);
    capture_into(capture, NULL);
    capture_free(capture);
    profile_release(&profile);
}

static void inherited_by_bpf(void **state)
{
    (void)state;
    check_inherited(CAPTURE_BPF);
}

static void inherited_by_perf_events(void **state)
{
    (void)state;
    check_inherited(CAPTURE_PERF);
}

static void by_bpf(void **state)
{
    (void)state;
    check_rates(CAPTURE_BPF);
}

static void by_perf_events(void **state)
{
    (void)state;
    check_rates(CAPTURE_PERF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_bpf),
        cmocka_unit_test(by_perf_events),
        cmocka_unit_test(inherited_by_bpf),
        cmocka_unit_test(inherited_by_perf_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
