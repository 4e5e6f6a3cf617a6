// SPDX-License-Identifier: Apache-2.0
// shares SECONDS: spends its CPU time in three sections as 60 : 30 : 10, by the number of rounds of
// one and the same loop, and prints how much each took by the thread's own clock, in nanoseconds.

#include "known.h"

static int64_t taken_ns[3];

#define SECTION(name, index, rounds)                                                               \
    CALL void name##_work(void)                                                                    \
    {                                                                                              \
        spin(rounds);                                                                              \
    }                                                                                              \
    CALL void name(void)                                                                           \
    {                                                                                              \
        int64_t start = thread_cpu_ns();                                                           \
        name##_work();                                                                             \
        taken_ns[index] += thread_cpu_ns() - start;                                                \
    }

SECTION(sixty, 0, 60 * UNIT / 10)
SECTION(thirty, 1, 30 * UNIT / 10)
SECTION(ten, 2, 10 * UNIT / 10)

CALL void work(void)
{
    sixty();
    thirty();
    ten();
    STAY;
}

int main(int argc, char **argv)
{
    int64_t limit = (argc > 1 ? atoi(argv[1]) : 1) * 1000000000LL, start = thread_cpu_ns();
    while (thread_cpu_ns() - start < limit)
        work();
    printf("sixty_work %lld\nthirty_work %lld\nten_work %lld\n", (long long)taken_ns[0],
           (long long)taken_ns[1], (long long)taken_ns[2]);
}
