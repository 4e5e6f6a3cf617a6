// SPDX-License-Identifier: Apache-2.0
// storm spawn PER-SECOND SECONDS | tree PROCESSES ALIVE | threads COUNT: many short processes and
// threads, and never more than a bounded number of them. Prints what it and its children took of
// CPU time, in nanoseconds.

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "known.h"

#define SPAWNED_MAX 64

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void reap(int *alive, int most)
{
    while (*alive && waitpid(-1, NULL, *alive > most ? 0 : WNOHANG) > 0)
        --*alive;
}

/* ---- programs ---- */

CALL int spawn_one(void)
{
    char *arguments[] = {"sh", "-c", "true", NULL}, *environment[] = {NULL};
    pid_t pid;
    int r = posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environment);
    STAY;
    return r;
}

CALL int spawn(int per_second, int seconds)
{
    int alive = 0, total = per_second * seconds;
    double start = now_s();
    for (int i = 0; i < total; i++) {
        double ahead = start + (double)i / per_second - now_s();
        if (ahead > 0)
            usleep((useconds_t)(ahead * 1e6));
        if (spawn_one())
            return 9;
        alive++;
        reap(&alive, SPAWNED_MAX - 1);
        if (now_s() - start > 3 * seconds) {
            total = i + 1; /* a slow machine: what there is will do */
        }
    }
    reap(&alive, 0);
    return 0;
}

/* ---- processes: each adds a call to the stack that it has from its parent ---- */

#define LEVELS 8
#define CHILDREN 4

static struct {
    atomic_int left, alive;
} * shared;

CALL void tree_leaf(void)
{
    spin(20 * UNIT);
}

/* One more process, if there may be one. */
static bool claim(int most)
{
    if (atomic_fetch_add(&shared->alive, 1) >= most || atomic_fetch_sub(&shared->left, 1) <= 0) {
        atomic_fetch_sub(&shared->alive, 1);
        return false;
    }
    return true;
}

CALL void grow(int level, int most)
{
    tree_leaf();
    for (int child = 0; level < LEVELS && child < CHILDREN && claim(most); child++) {
        pid_t pid = fork();
        if (!pid) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            grow(level + 1, most);
            STAY;
            while (wait(NULL) > 0)
                ;
        }
        if (pid <= 0)
            atomic_fetch_sub(&shared->alive, 1);
        if (!pid)
            _exit(0);
    }
    STAY;
}

static int tree(int processes, int most)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 9;
    atomic_store(&shared->left, processes);
    while (atomic_load(&shared->left) > 0) {
        grow(0, most);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}

/* ---- threads ---- */

CALL void short_leaf(void)
{
    spin(UNIT);
}
static void *short_thread(void *nothing)
{
    short_leaf();
    return nothing;
}
CALL int start_threads(int count)
{
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, short_thread, NULL))
            return 9;
        pthread_join(thread, NULL);
    }
    return 0;
}

static int64_t cpu_ns(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000LL +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000LL;
}

int main(int argc, char **argv)
{
    int first = argc > 2 ? atoi(argv[2]) : 1, second = argc > 3 ? atoi(argv[3]) : 1, r = 2;
    if (argc > 1 && !strcmp(argv[1], "spawn"))
        r = spawn(first, second);
    if (argc > 1 && !strcmp(argv[1], "tree"))
        r = tree(first, second);
    if (argc > 1 && !strcmp(argv[1], "threads"))
        r = start_threads(first);
    printf("itself %lld\nchildren %lld\n", (long long)cpu_ns(RUSAGE_SELF),
           (long long)cpu_ns(RUSAGE_CHILDREN));
    return r;
}
