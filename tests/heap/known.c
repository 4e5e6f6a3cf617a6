// SPDX-License-Identifier: Apache-2.0
// Allocates and frees known amounts at known sites: known CASE [held], which begins with a line on
// standard input and ends with another. Prints "SITE ALLOCATED LIVE OBJECTS
// LIVE_OBJECTS" in bytes and counts for each site, which a heap profile has to agree with.

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SITE __attribute__((noinline, noclone))
#define MIB 1048576ull

static void *volatile sink; /* keeps allocations from being optimised away */

static void *keep(void *pointer)
{
    sink = pointer;
    return pointer;
}

SITE static void *site_small(size_t size)
{
    return keep(malloc(size));
}

SITE static void *site_middle(size_t size)
{
    return keep(calloc(1, size));
}

SITE static void *site_large(size_t size)
{
    void *pointer = NULL;
    return posix_memalign(&pointer, 64, size) ? NULL : keep(pointer);
}

SITE static void *site_grow(void *pointer, size_t size)
{
    return keep(realloc(pointer, size));
}

static void tell(const char *site, uint64_t bytes, uint64_t live, uint64_t objects,
                 uint64_t live_objects)
{
    printf("%s %llu %llu %llu %llu\n", site, (unsigned long long)bytes, (unsigned long long)live,
           (unsigned long long)objects, (unsigned long long)live_objects);
}

/* Sizes from 16 bytes to 1 GiB; a third of the small ones stays. */
static void sizes(void)
{
    const unsigned small = 3000000;
    uint64_t live = 0;
    for (unsigned i = 0; i < small; i++) {
        void *pointer = site_small(16 + i % 3 * 16);
        if (i % 3)
            free(pointer);
        else
            live += 16;
    }
    tell("site_small", small / 3 * (16 + 32 + 48), live, small, small / 3);
    for (unsigned i = 0; i < 4000; i++) {
        void *pointer = site_middle(100000);
        if (i % 2)
            free(pointer);
    }
    tell("site_middle", 400000000, 200000000, 4000, 2000);
    for (size_t size = 16 * MIB; size <= 1024 * MIB; size *= 2)
        free(site_large(size));
    site_large(64 * MIB);
    tell("site_large", (2032 + 64) * MIB, 64 * MIB, 8, 1);
}

/* Chains of reallocation: each step allocates its whole new size. */
static void chains(void)
{
    uint64_t bytes = 0, live = 0, steps = 0;
    for (unsigned chain = 0; chain < 500; chain++) {
        void *pointer = NULL;
        size_t size = 0;
        for (unsigned i = 0; i < 200; i++, steps++) {
            size += 4096;
            pointer = site_grow(pointer, size);
            bytes += size;
        }
        if (chain % 5)
            free(pointer);
        else
            live += size;
    }
    tell("site_grow", bytes, live, steps, 100);
}

/* What one thread allocates another frees. */
#define PAIRS 32
#define HANDED 2000
static void *handed[PAIRS][HANDED];
static pthread_barrier_t meeting;

static void *producer(void *argument)
{
    uintptr_t number = (uintptr_t)argument;
    for (unsigned i = 0; i < HANDED; i++)
        handed[number][i] = site_middle(8192);
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    return NULL;
}

static void *consumer(void *argument)
{
    uintptr_t number = (uintptr_t)argument;
    pthread_barrier_wait(&meeting);
    for (unsigned i = 0; i < HANDED; i++)
        if (i % 4)
            free(handed[number][i]);
    pthread_barrier_wait(&meeting);
    return NULL;
}

static void threads(void)
{
    pthread_t all[2 * PAIRS];
    pthread_barrier_init(&meeting, NULL, 2 * PAIRS);
    for (uintptr_t i = 0; i < PAIRS; i++) {
        pthread_create(&all[2 * i], NULL, producer, (void *)i);
        pthread_create(&all[2 * i + 1], NULL, consumer, (void *)i);
    }
    for (unsigned i = 0; i < 2 * PAIRS; i++)
        pthread_join(all[i], NULL);
    tell("site_middle", 8192ull * PAIRS * HANDED, 8192ull * PAIRS * HANDED / 4, PAIRS * HANDED,
         PAIRS * HANDED / 4);
}

/* Threads that live a moment. */
static void *moment(void *argument)
{
    for (unsigned i = 0; i < 200; i++)
        free(site_small(4096));
    return argument;
}

static void moments(void)
{
    for (unsigned i = 0; i < 1000; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, moment, NULL);
        pthread_join(thread, NULL);
    }
    tell("site_small", 1000ull * 200 * 4096, 0, 200000, 0);
}

/* A child frees what its parent allocated, allocates for itself, and ends. */
static void forks(void)
{
    static void *mine[1000];
    for (unsigned i = 0; i < 1000; i++)
        mine[i] = site_small(65536);
    for (unsigned child = 0; child < 8; child++) {
        if (fork() == 0) {
            for (unsigned i = 0; i < 1000; i++)
                free(mine[i]);
            for (unsigned i = 0; i < 1000; i++)
                free(site_middle(65536));
            for (unsigned i = 0; i < 100; i++)
                site_large(262144);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    tell("site_small", 65536000, 65536000, 1000, 1000);
    tell("site_middle", 8 * 65536000ull, 0, 8000, 0);
    tell("site_large", 8 * 26214400ull, 8 * 26214400ull, 800, 800);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"sizes", sizes},
                 {"chains", chains},
                 {"threads", threads},
                 {"moments", moments},
                 {"forks", forks}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (argc >= 2 && strcmp(argv[1], cases[i].name) == 0) {
            bool held = argc > 2 && strcmp(argv[2], "held") == 0;
            if (held && getchar() == EOF)
                return 1;
            cases[i].run();
            fflush(stdout);
            if (held)
                getchar();
            return 0;
        }
    fprintf(stderr, "usage: known sizes|chains|threads|moments|forks [held]\n");
    return 2;
}
