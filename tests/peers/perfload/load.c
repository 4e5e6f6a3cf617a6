// SPDX-License-Identifier: Apache-2.0
// Something for perf to record: two threads whose names have spaces and numbers in them, functions
// that call each other, one that is always inlined, and time in the kernel.

#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static inline __attribute__((always_inline)) unsigned long mix(unsigned long x)
{
    for (int i = 0; i < 50; i++) {
        x ^= x >> 13;
        x *= 0x9e3779b97f4a7c15ul;
    }
    return x;
}

static __attribute__((noinline)) void heavy(int rounds)
{
    for (int i = 0; i < rounds * 6; i++)
        sink += mix(sink + (unsigned long)i);
}

static __attribute__((noinline)) void light(int rounds)
{
    for (int i = 0; i < rounds; i++)
        for (int k = 0; k < 100; k++)
            sink += (unsigned long)k;
}

static __attribute__((noinline)) void nested(int depth, int rounds)
{
    if (depth > 0)
        nested(depth - 1, rounds);
    light(rounds);
    sink++;
}

static __attribute__((noinline)) void in_kernel(int file)
{
    static char bytes[65536];
    for (int i = 0; i < 20; i++)
        sink += (unsigned long)pread(file, bytes, sizeof(bytes), 0);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *work(void *name)
{
    prctl(PR_SET_NAME, name);
    int file = open("/dev/zero", O_RDONLY);
    for (double end = seconds() + 0.5; seconds() < end;) {
        heavy(200);
        nested(3, 50);
        in_kernel(file);
    }
    close(file);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, work, "load 1 of 2");
    pthread_create(&threads[1], NULL, work, "[k] 7: x");
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
