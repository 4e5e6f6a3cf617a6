/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queues moves SECONDS: a thread that computes and moves to another CPU each millisecond, and one
 * that sleeps in between, too.
 * queues spin SECONDS: four threads that compute on one CPU.
 *
 * Each thread prints, in seconds by its own clocks, how long it lived and how long it ran, and how
 * often it moved: `NAME wall cpu moves`.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SPINNERS 4

struct thread {
    char name[16];
    double created;
    int moves;
    unsigned nap_us;
};

static double end;
static volatile unsigned long sink;
static cpu_set_t all;

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void compute(double length)
{
    double until = seconds(CLOCK_THREAD_CPUTIME_ID) + length;
    while (seconds(CLOCK_THREAD_CPUTIME_ID) < until)
        for (int i = 0; i < 1000; i++)
            sink++;
}

/* The first CPU of those that may be used, from this one on. */
static int pin(int cpu)
{
    cpu_set_t one;
    while (!CPU_ISSET(cpu % CPU_SETSIZE, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu % CPU_SETSIZE, &one);
    sched_setaffinity(0, sizeof(one), &one);
    return cpu % CPU_SETSIZE;
}

static void *run(void *context)
{
    const struct thread *thread = context;
    unsigned long moved = 0;
    int cpu = pin(0);
    pthread_setname_np(pthread_self(), thread->name);
    while (seconds(CLOCK_MONOTONIC) < end) {
        compute(thread->nap_us ? 0.0003 : 0.001);
        if (thread->nap_us)
            usleep(thread->nap_us);
        if (thread->moves) {
            int next = pin(cpu + 1);
            moved += next != cpu;
            cpu = next;
        }
    }
    printf("%s %.6f %.6f %lu\n", thread->name, seconds(CLOCK_MONOTONIC) - thread->created,
           seconds(CLOCK_THREAD_CPUTIME_ID), moved);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct thread moving[] = {{.name = "mover", .moves = 1},
                                     {.name = "napper", .moves = 1, .nap_us = 700}};
    static struct thread spinning[SPINNERS];
    pthread_t threads[SPINNERS];
    if (argc != 3 || sched_getaffinity(0, sizeof(all), &all) < 0)
        return 1;
    int spin = !strcmp(argv[1], "spin"), count = spin ? SPINNERS : 2;
    struct thread *list = spin ? spinning : moving;
    end = seconds(CLOCK_MONOTONIC) + atof(argv[2]);
    for (int i = 0; i < count; i++) {
        if (spin)
            snprintf(list[i].name, sizeof(list[i].name), "spinner-%d", i);
        list[i].created = seconds(CLOCK_MONOTONIC);
        pthread_create(&threads[i], NULL, run, &list[i]);
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
