/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switches busy SECONDS: computes, and prints the CPU time that it took.
 * switches switch SECONDS: wakes another thread as often as it can, in turn by two functions of
 * which one waits for longer, and prints how long each waited: `NAME seconds`, and how often.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static int there, back;
static volatile unsigned long sink;
static double short_wait, long_wait;
static unsigned long count;

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void compute(double length)
{
    double until = seconds(CLOCK_MONOTONIC) + length;
    while (seconds(CLOCK_MONOTONIC) < until)
        sink++;
}

/* The value says how long to take. */
static void *answer(void *unused)
{
    uint64_t value;
    while (read(there, &value, sizeof(value)) == sizeof(value)) {
        compute((double)value * 1e-6);
        value = 1;
        if (write(back, &value, sizeof(value)) < 0)
            break;
    }
    return unused;
}

/* Without the time that this thread itself runs. */
static double wait_for(uint64_t us)
{
    double from = seconds(CLOCK_MONOTONIC) - seconds(CLOCK_THREAD_CPUTIME_ID);
    if (write(there, &us, sizeof(us)) < 0 || read(back, &us, sizeof(us)) < 0)
        exit(1);
    return seconds(CLOCK_MONOTONIC) - seconds(CLOCK_THREAD_CPUTIME_ID) - from;
}

__attribute__((noinline)) static void waits_short(void)
{
    short_wait += wait_for(1);
    sink++; /* no tail call */
}

__attribute__((noinline)) static void waits_long(void)
{
    long_wait += wait_for(20);
    sink++;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    double until = seconds(CLOCK_MONOTONIC) + (argc > 2 ? atof(argv[2]) : 1);
    if (argc > 1 && !strcmp(argv[1], "busy")) {
        while (seconds(CLOCK_MONOTONIC) < until)
            compute(0.01);
        printf("busy %.6f\n", seconds(CLOCK_PROCESS_CPUTIME_ID));
        return 0;
    }
    there = eventfd(0, 0);
    back = eventfd(0, 0);
    pthread_create(&thread, NULL, answer, NULL);
    while (seconds(CLOCK_MONOTONIC) < until) {
        for (int i = 0; i < 10; i++)
            waits_short();
        waits_long();
        count += 11;
    }
    printf("waits_short %.6f\nwaits_long %.6f\ncount %lu\n", short_wait, long_wait, count);
    return 0;
}
