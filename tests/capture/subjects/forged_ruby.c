// SPDX-License-Identifier: Apache-2.0
// A program that looks like Ruby 3.1 and has structures that make no sense: forged_ruby HOW
// SECONDS.
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED __thread uint64_t *ruby_current_ec;
EXPORTED const char ruby_version[] = "3.1.2";

static uint64_t stack[4096], state[8], code[8], body[32], environment[4];

static double cpu(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void forge(int how)
{
    state[0] = (uint64_t)stack;
    state[1] = how == 1 ? UINT64_MAX / 8 : sizeof(stack) / 8;
    state[2] = how == 2 ? 12345 : (uint64_t)stack;
    code[0] = 0x1a;
    code[2] = how == 3 ? 64 : (uint64_t)body;
    body[0] = (uint64_t)UINT32_MAX << 32; /* four billion instructions */
    body[8] = body[10] = how == 4 ? UINT64_MAX - 7 : (uint64_t)environment;
    environment[0] = 5; /* a string */
    body[15] = body[18] = (uint64_t)body;
    body[17] = UINT32_MAX;
    for (size_t i = 0; i + 8 <= 4096; i += 8) {
        stack[i] = stack[i + 4] = (uint64_t)environment;
        stack[i + 2] = (uint64_t)code;
    }
    ruby_current_ec = state;
}

/* As large as the function with all instructions. */
__attribute__((noinline)) static double work(double end)
{
    volatile unsigned count = 0;
    for (int i = 0; i < 1000; i++)
        count++;
    if (end < 0)
        __asm__ volatile(".fill 9000, 1, 0x90");
    return end - cpu();
}

EXPORTED __attribute__((noinline)) void rb_vm_exec(double end)
{
    while (work(end) > 0)
        ;
}

int main(int count, char **words)
{
    if (count < 3)
        return 2;
    forge(atoi(words[1]));
    rb_vm_exec(cpu() + atof(words[2]));
}
