// SPDX-License-Identifier: Apache-2.0
// heap_pair N: N pairs of malloc and free of 64 bytes; prints the nanoseconds that a pair took.
// With `churn`, sizes and lifetimes vary as in a program that does nothing else.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *volatile sink;

static void pairs(long count)
{
    for (long i = 0; i < count; i++) {
        sink = malloc(64);
        free(sink);
    }
}

static void churn(long count)
{
    static void *slots[4096];
    unsigned random = 1;
    for (long i = 0; i < count; i++) {
        random = random * 1664525u + 1013904223u;
        unsigned slot = random >> 20;
        free(slots[slot]);
        slots[slot] = malloc(16 + (random >> 8) % 1000);
    }
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1000000;
    struct timespec from, to;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    if (argc > 2 && strcmp(argv[2], "churn") == 0)
        churn(count);
    else
        pairs(count);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    printf("%.2f\n", ns / (double)count);
    return 0;
}
