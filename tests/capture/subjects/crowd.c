/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd PAIRS SECONDS: pairs of threads that pass a byte to and fro through pipes as fast as they
 * can, and for each pair a thread that sleeps 1 ms at a time. Prints how long the process ran, the
 * CPU time of all, how long threads lived in sum, and how often they were switched: `elapsed S`,
 * `running S`, `lived S`, `switches N`. All begin when all are there.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double until, length, lived;
static pthread_barrier_t all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct way {
    int from, to;
};

static double begin(void)
{
    double now = seconds(CLOCK_MONOTONIC);
    if (pthread_barrier_wait(&all) == PTHREAD_BARRIER_SERIAL_THREAD)
        until = seconds(CLOCK_MONOTONIC) + length;
    pthread_barrier_wait(&all);
    return now;
}

static void end(double began)
{
    pthread_mutex_lock(&lock);
    lived += seconds(CLOCK_MONOTONIC) - began;
    pthread_mutex_unlock(&lock);
}

static void *pass_on(void *context)
{
    double began = begin();
    struct way *way = context;
    char byte = 0;
    while (read(way->from, &byte, 1) == 1 && seconds(CLOCK_MONOTONIC) < until)
        if (write(way->to, &byte, 1) < 0)
            break;
    close(way->to);
    end(began);
    return NULL;
}

static void *nap(void *unused)
{
    double began = begin();
    while (seconds(CLOCK_MONOTONIC) < until)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    end(began);
    return unused;
}

int main(int argc, char **argv)
{
    int pairs = argc > 1 ? atoi(argv[1]) : 1;
    double began = seconds(CLOCK_MONOTONIC);
    pthread_t *threads = calloc((size_t)pairs * 3, sizeof(*threads));
    struct way *ways = calloc((size_t)pairs * 2, sizeof(*ways));
    struct rusage usage;
    length = argc > 2 ? atof(argv[2]) : 1;
    pthread_barrier_init(&all, NULL, (unsigned)pairs * 3);
    for (int i = 0; i < pairs; i++) {
        int there[2], back[2];
        if (pipe(there) < 0 || pipe(back) < 0)
            return 1;
        ways[2 * i] = (struct way){there[0], back[1]};
        ways[2 * i + 1] = (struct way){back[0], there[1]};
        pthread_create(&threads[3 * i], NULL, pass_on, &ways[2 * i]);
        pthread_create(&threads[3 * i + 1], NULL, pass_on, &ways[2 * i + 1]);
        pthread_create(&threads[3 * i + 2], NULL, nap, NULL);
        if (write(there[1], "x", 1) < 0)
            return 1;
    }
    for (int i = 0; i < 3 * pairs; i++)
        pthread_join(threads[i], NULL);
    getrusage(RUSAGE_SELF, &usage);
    printf("elapsed %.6f\nlived %.6f\nrunning %.6f\nswitches %ld\n",
           seconds(CLOCK_MONOTONIC) - began, lived + seconds(CLOCK_MONOTONIC) - began,
           (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6,
           usage.ru_nvcsw + usage.ru_nivcsw);
    return 0;
}
