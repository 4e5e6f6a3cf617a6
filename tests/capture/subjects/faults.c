// SPDX-License-Identifier: Apache-2.0
// Touches memory for the first time in two functions, three pages to one, then sleeps often; prints
// the kernel's counts of its page faults and context switches.
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define ROUND_BYTES (16 << 20)

static __attribute__((noinline)) void touch(long rounds)
{
    long page = sysconf(_SC_PAGESIZE);
    for (long round = 0; round < rounds; round++) {
        char *memory =
            mmap(NULL, ROUND_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(memory, ROUND_BYTES, MADV_NOHUGEPAGE);
        for (long i = 0; i < ROUND_BYTES; i += page)
            ((volatile char *)memory)[i] = 1;
        munmap(memory, ROUND_BYTES);
    }
}

__attribute__((noinline)) void touch_much(void)
{
    touch(30);
    __asm__ volatile("");
}

__attribute__((noinline)) void touch_little(void)
{
    touch(10);
    __asm__ volatile("");
}

__attribute__((noinline)) void sleep_often(void)
{
    for (int i = 0; i < 3000; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
    __asm__ volatile("");
}

int main(void)
{
    struct rusage usage;
    touch_much();
    touch_little();
    sleep_often();
    getrusage(RUSAGE_SELF, &usage);
    printf("%ld %ld\n", usage.ru_minflt + usage.ru_majflt, usage.ru_nvcsw + usage.ru_nivcsw);
    return 0;
}
