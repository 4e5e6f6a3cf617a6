// SPDX-License-Identifier: Apache-2.0
// A program whose load comes in bursts: `bursts SECONDS SEED`. Every 50 to 150 ms it chooses anew
// how busy it is and which of its functions has how much of the work. Over seconds, nothing
// changes. `bursts SECONDS SEED steady` chooses once, at its start.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned sink = 1;
static uint64_t state;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#define WORK(name)                                                                                 \
    __attribute__((noinline)) static void name(unsigned rounds)                                    \
    {                                                                                              \
        unsigned sum = sink;                                                                       \
        for (unsigned i = 0; i < rounds; i++)                                                      \
            sum = (sum ^ i) * 16777619u + (sum >> 7);                                              \
        sink = sum;                                                                                \
    }
WORK(parse)
WORK(decode) WORK(verify) WORK(lookup) WORK(score) WORK(sort_items) WORK(render) WORK(encode)
    WORK(compress) WORK(hash) WORK(route) WORK(log_line) WORK(copy) WORK(merge_rows) WORK(trim)
        WORK(measure)

            static void (*const functions[])(unsigned) = {
                parse,    decode, verify, lookup,   score, sort_items, render, encode,
                compress, hash,   route,  log_line, copy,  merge_rows, trim,   measure};
enum { FUNCTIONS = sizeof(functions) / sizeof(*functions) };

__attribute__((noinline)) static void handle(const unsigned *weights)
{
    for (int i = 0; i < FUNCTIONS; i++)
        functions[i](weights[i]);
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4)
        return 2;
    double end = seconds() + atof(argv[1]), until = 0;
    unsigned weights[FUNCTIONS], pause_us = 0;
    state = (strtoull(argv[2], NULL, 10) + 1) * 0x9e3779b97f4a7c15ull;
    for (double now = seconds(); now < end; now = seconds()) {
        if (now >= until) {
            until = argc == 4 ? end : now + 0.05 + (double)(next() % 1000) / 10000;
            pause_us = 200 + (unsigned)(next() % 8000);
            for (int i = 0; i < FUNCTIONS; i++) /* a third has three times the work */
                weights[i] = 700000u / ((unsigned)i + 2) * (next() % 3 ? 1 : 3);
        }
        handle(weights);
        nanosleep(&(struct timespec){.tv_nsec = pause_us * 1000l}, NULL);
    }
    printf("%u\n", sink);
}
