// SPDX-License-Identifier: Apache-2.0
// Something for perf to record: two threads whose names have spaces and numbers in them, functions
// that call each other, one that is always inlined, page faults, and time in the kernel.

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
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

/* Page faults that are the program's own, without the kernel's part. */
static __attribute__((noinline)) void touch(void)
{
    const size_t bytes = 64 << 12;
    char *fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return;
    for (size_t i = 0; i < bytes; i += 4096)
        fresh[i] = 1;
    munmap(fresh, bytes);
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
        touch();
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
