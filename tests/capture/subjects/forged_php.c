// SPDX-License-Identifier: Apache-2.0
// A program that looks like PHP 8.2 and has structures that make no sense: forged_php HOW SECONDS.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

__attribute__((visibility("default"))) uint64_t executor_globals[225];
static volatile const char version[] = "X-Powered-By: PHP/8.2.1";

static uint64_t calls[64][8], function[32], text[4];

static double cpu(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void forge(int how)
{
    function[0] = how == 1 ? 99 : 2; /* no such type */
    function[1] = function[19] = (uint64_t)text;
    function[2] = how == 2 ? 8 : 0; /* a class that is nowhere */
    text[2] = how == 3 ? UINT64_MAX : 4;
    memcpy(&text[3], "\xff\x01\x80z", 4);
    for (int i = 0; i < 64; i++) {
        calls[i][3] = how == 4 ? UINT64_MAX - 16 : (uint64_t)function;
        calls[i][6] = (uint64_t)calls[(i + 1) % 64]; /* a circle */
    }
    executor_globals[488 / 8] = (uint64_t)calls[0];
}

__attribute__((noinline, visibility("default"))) void execute_ex(double seconds)
{
    volatile unsigned count = 0;
    for (double end = cpu() + seconds; cpu() < end;)
        for (int i = 0; i < 1000; i++)
            count++;
}

int main(int count, char **words)
{
    if (count < 3 || !version[0])
        return 2;
    forge(atoi(words[1]));
    execute_ex(atof(words[2]));
}
