/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convoy lock SECONDS: four threads that hold one mutex in turn, in slow_update().
 * convoy owner SECONDS: likewise, but the first never lets go, in keep_it().
 * convoy queue SECONDS: four threads that compute on one CPU.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t kept;
static volatile unsigned long sink;

__attribute__((noinline)) static void slow_update(void)
{
    pthread_mutex_lock(&lock);
    usleep(20000);
    pthread_mutex_unlock(&lock);
}

static void *convoy(void *unused)
{
    for (;;)
        slow_update();
    return unused;
}

__attribute__((noinline)) static void *keep_it(void *unused)
{
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&kept);
    for (;;)
        usleep(10000);
    return unused;
}

static void *compute(void *unused)
{
    for (;;)
        sink++;
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    cpu_set_t one;
    int queue = argc > 1 && !strcmp(argv[1], "queue");
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    if (queue && sched_setaffinity(0, sizeof(one), &one) < 0)
        return 1;
    if (argc > 1 && !strcmp(argv[1], "owner")) {
        pthread_barrier_init(&kept, NULL, 2);
        pthread_create(&thread, NULL, keep_it, NULL);
        pthread_barrier_wait(&kept);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread, NULL, queue ? compute : convoy, NULL);
    sleep(argc > 2 ? (unsigned)atoi(argv[2]) : 10);
    return 0;
}
