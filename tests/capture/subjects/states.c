/* SPDX-License-Identifier: Apache-2.0 */
/*
 * states SECONDS: threads that spend their time in known ways. Each prints, in seconds by its own
 * clocks, how long it lived and ran and how long its waits took: `NAME STATE wall cpu waited`. What
 * it waited includes the time until it got a CPU again.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define THREADS 9

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int slow_pipe[2], slow_socket[2], file;
static double end;
static volatile unsigned long sink;

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

__attribute__((noinline)) static void hold_the_lock(void)
{
    pthread_mutex_lock(&lock);
    usleep(40000);
    pthread_mutex_unlock(&lock);
    usleep(1000);
}

static void report(double created, const char *name, const char *state, double waited)
{
    printf("%s %s %.6f %.6f %.6f\n", name, state, seconds(CLOCK_MONOTONIC) - created,
           seconds(CLOCK_THREAD_CPUTIME_ID), waited);
}

/* A thread called NAME that does WORK again and again, of which WAIT is a wait in STATE. */
#define THREAD(name, state, work, wait)                                                            \
    static void *name(void *created)                                                               \
    {                                                                                              \
        double waited = 0;                                                                         \
        pthread_setname_np(pthread_self(), #name);                                                 \
        while (seconds(CLOCK_MONOTONIC) < end) {                                                   \
            work;                                                                                  \
            double from = seconds(CLOCK_MONOTONIC), ran = seconds(CLOCK_THREAD_CPUTIME_ID);        \
            wait;                                                                                  \
            waited += seconds(CLOCK_MONOTONIC) - from - (seconds(CLOCK_THREAD_CPUTIME_ID) - ran);  \
        }                                                                                          \
        report(*(double *)created, #name, state, waited);                                          \
        return NULL;                                                                               \
    }

THREAD(sleeper, "sleep", , usleep(20000))
THREAD(worker, "sleep", compute(0.01), usleep(30000))
THREAD(holder, "sleep", , hold_the_lock())
THREAD(waiter, "lock", usleep(500), pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock))
THREAD(reader, "pipe", , char byte; if (read(slow_pipe[0], &byte, 1) != 1) break)
THREAD(writer, "sleep", if (write(slow_pipe[1], "x", 1) != 1) break, usleep(5000))
THREAD(receiver, "network", , char byte; if (recv(slow_socket[0], &byte, 1, 0) != 1) break)
THREAD(sender, "sleep", if (send(slow_socket[1], "x", 1, 0) != 1) break, usleep(7000))
THREAD(syncer, "disk", if (pwrite(file, "x", 1, 0) != 1) break, fsync(file))

static void *parked(void *unused)
{
    pthread_setname_np(pthread_self(), "parked");
    sleep(3600);
    return unused;
}

int main(int argc, char **argv)
{
    /* Those that others write to end after them. */
    void *(*const bodies[THREADS])(void *) = {sleeper, worker, holder, waiter,  syncer,
                                              writer,  sender, reader, receiver};
    pthread_t threads[THREADS], other;
    double created[THREADS]; /* a new thread may wait for its first CPU */
    FILE *opened = tmpfile();
    if (!opened || pipe(slow_pipe) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, slow_socket) < 0)
        return 1;
    file = fileno(opened);
    end = seconds(CLOCK_MONOTONIC) + (argc > 1 ? atof(argv[1]) : 3);
    pthread_create(&other, NULL, parked, NULL);
    for (int i = 0; i < THREADS; i++) {
        created[i] = seconds(CLOCK_MONOTONIC);
        pthread_create(&threads[i], NULL, bodies[i], &created[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        if (bodies[i] == reader)
            close(slow_pipe[1]);
        if (bodies[i] == receiver)
            close(slow_socket[1]);
        pthread_join(threads[i], NULL);
    }
    return 0;
}
