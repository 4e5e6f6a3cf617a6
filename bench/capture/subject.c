// SPDX-License-Identifier: Apache-2.0
// subject FRAMES [MIB]: works for ever at the bottom of a call chain of known depth. Chains go
// through 64 functions on 8 pages of code by changing call sites, so that a walk has to look each
// frame up. With MIB the work reads through that much memory, so that whoever interrupts it finds
// cold caches. Built with and without frame pointers.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 400000 /* in a leaf: a millisecond, so that it is there nearly always */
#define LINE_BYTES 64
#define PATHS 16

/* Its own page apart, and none that the compiler may make special copies of. */
#define STEP __attribute__((noinline, noclone, aligned(512)))

static unsigned char *memory;
static size_t memory_bytes, memory_at;
static volatile uint64_t sink;

typedef uint64_t step_fn(uint64_t depth, uint64_t path);

static STEP uint64_t leaf(uint64_t path)
{
    uint64_t value = path | 1;
    for (unsigned i = 0; i < ROUNDS; i++) {
        value = value * 6364136223846793005u + 1442695040888963407u;
        if (memory) {
            value ^= memory[memory_at];
            memory_at += LINE_BYTES;
            if (memory_at >= memory_bytes)
                memory_at = 0;
        }
    }
    sink = value;
    return value;
}

static uint64_t next_path(uint64_t path)
{
    return path * 0x9e3779b97f4a7c15u + 12345;
}

static step_fn *const steps[64];

/* Frames of different sizes, several registers that are alive across the calls, two call sites. */
#define FUNCTION(number, words)                                                                    \
    static STEP uint64_t step_##number(uint64_t depth, uint64_t path)                              \
    {                                                                                              \
        volatile uint64_t own[words];                                                              \
        uint64_t a = path ^ number, b = path * 3, c = depth + path, result;                        \
        own[path % (words)] = a;                                                                   \
        if (!depth)                                                                                \
            return leaf(path) + own[0];                                                            \
        if (path & 0x10000000)                                                                     \
            result = steps[path >> 58](depth - 1, next_path(path)) ^ a;                            \
        else                                                                                       \
            result = steps[path >> 52 & 63](depth - 1, next_path(path)) + b;                       \
        return result + a + b * c + own[depth % (words)];                                          \
    }

#define EIGHT(n)                                                                                   \
    FUNCTION(n##0, 2)                                                                              \
    FUNCTION(n##1, 4)                                                                              \
    FUNCTION(n##2, 3)                                                                              \
    FUNCTION(n##3, 8)                                                                              \
    FUNCTION(n##4, 6)                                                                              \
    FUNCTION(n##5, 2)                                                                              \
    FUNCTION(n##6, 12)                                                                             \
    FUNCTION(n##7, 5)

EIGHT(1)
EIGHT(2)
EIGHT(3)
EIGHT(4)
EIGHT(5)
EIGHT(6)
EIGHT(7)
EIGHT(8)

#define NAMES(n)                                                                                   \
    step_##n##0, step_##n##1, step_##n##2, step_##n##3, step_##n##4, step_##n##5, step_##n##6,     \
        step_##n##7

static step_fn *const steps[64] = {NAMES(1), NAMES(2), NAMES(3), NAMES(4),
                                   NAMES(5), NAMES(6), NAMES(7), NAMES(8)};

int main(int argc, char **argv)
{
    long frames = argc > 1 ? atol(argv[1]) : 0;
    long mib = argc > 2 ? atol(argv[2]) : 0;
    if (frames < 3 || mib < 0 || mib > 1024) {
        fprintf(stderr, "usage: subject FRAMES [MIB]; FRAMES is 3 or more, with main's.\n");
        return 2;
    }
    if (mib) {
        memory_bytes = (size_t)mib << 20;
        memory = malloc(memory_bytes);
        if (!memory)
            return 1;
        for (size_t i = 0; i < memory_bytes; i++)
            memory[i] = (unsigned char)i;
    }
    for (uint64_t i = 0;; i++)
        sink = steps[i % 64]((uint64_t)frames - 3, next_path(i % PATHS)) + 1;
}
