// SPDX-License-Identifier: Apache-2.0
// threads MS: a pool of named threads, each with a chain of its own and so much of CPU time times
// its number. Prints what each took by its own clock, in nanoseconds. The last one is started by
// another.

#define _GNU_SOURCE
#include <pthread.h>
#include <sys/prctl.h>

#include "known.h"

static int64_t unit_ns;
static int64_t taken_ns[4];

#define WORKER(letter, index)                                                                      \
    CALL void leaf_##letter(void)                                                                  \
    {                                                                                              \
        spin(UNIT);                                                                                \
    }                                                                                              \
    CALL void inner_##letter(void)                                                                 \
    {                                                                                              \
        leaf_##letter();                                                                           \
        STAY;                                                                                      \
    }                                                                                              \
    CALL void outer_##letter(void)                                                                 \
    {                                                                                              \
        while ((taken_ns[index] = thread_cpu_ns()) < unit_ns * (index + 1))                        \
            for (int i = 0; i < 20; i++)                                                           \
                inner_##letter();                                                                  \
    }

WORKER(a, 0)
WORKER(b, 1)
WORKER(c, 2)
WORKER(d, 3)

static void *run_d(void *name)
{
    prctl(PR_SET_NAME, name);
    outer_d();
    return name;
}
static void *run_c(void *name)
{
    pthread_t thread;
    prctl(PR_SET_NAME, name);
    pthread_create(&thread, NULL, run_d, "pool d");
    outer_c();
    pthread_join(thread, NULL);
    return name;
}
static void *run_b(void *name)
{
    prctl(PR_SET_NAME, name);
    outer_b();
    return name;
}
static void *run_a(void *name)
{
    prctl(PR_SET_NAME, name);
    outer_a();
    return name;
}

int main(int argc, char **argv)
{
    pthread_t threads[3];
    unit_ns = (argc > 1 ? atoi(argv[1]) : 100) * 1000000LL;
    pthread_create(&threads[0], NULL, run_a, "pool a");
    pthread_create(&threads[1], NULL, run_b, "pool b");
    pthread_create(&threads[2], NULL, run_c, "pool c");
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++)
        printf("leaf_%c %lld\n", 'a' + i, (long long)taken_ns[i]);
}
