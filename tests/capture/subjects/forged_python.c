/* SPDX-License-Identifier: Apache-2.0 */
/* A program that pretends to be CPython 3.11, with structures that lead in circles and to nowhere:
 * forged_python HOW SECONDS, of CPU time. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const unsigned long Py_Version = 0x030b02f0;
uint64_t PyCode_Type[51];
uint64_t _PyRuntime[0x28b20 / 8];

static uint64_t interpreter[64], thread[64], cframe[8], frame[32], code[64], text[16];

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

volatile uint64_t work;

__attribute__((noinline, visibility("default"))) void _PyEval_EvalFrameDefault(double end)
{
    uint64_t on_stack[8];
    /* The C frame is on the stack of this call, so that its frames are believed. */
    memcpy(on_stack, cframe, sizeof(on_stack));
    thread[56 / 8] = (uint64_t)(uintptr_t)on_stack;
    while (seconds() < end)
        for (int i = 0; i < 10000; i++)
            work += (uint64_t)i;
    __asm__ volatile("" : : "r"(on_stack) : "memory");
}

#define AT(structure, offset) (structure)[(offset) / 8]
#define ADDRESS(of) ((uint64_t)(uintptr_t)(of))

int main(int argc, char **argv)
{
    int how = argc > 1 ? atoi(argv[1]) : 0;
    pthread_key_t key;
    pthread_key_create(&key, NULL);
    pthread_setspecific(key, thread);
    AT(_PyRuntime, 40) = ADDRESS(interpreter);
    AT(interpreter, 16) = ADDRESS(thread);
    AT(thread, 16) = ADDRESS(interpreter);
    AT(thread, 152) = (uint64_t)pthread_self();
    AT(cframe, 8) = ADDRESS(frame);
    AT(frame, 32) = ADDRESS(code);
    AT(frame, 48) = ADDRESS(frame); /* a circle */
    AT(frame, 56) = ADDRESS(code) + 184;
    AT(code, 8) = ADDRESS(PyCode_Type);
    AT(code, 112) = AT(code, 120) = AT(code, 128) = AT(code, 136) = ADDRESS(text);
    AT(text, 16) = how == 1 ? ~0ull : 4; /* a length */
    AT(text, 32) = 0x65;                 /* compact, ASCII, one byte each */
    memcpy((char *)text + 48, how == 2 ? "\x01\xff\x1b[" : "name", 4);
    if (how == 3)
        AT(frame, 48) = 0xdead0000beef; /* nowhere */
    if (how == 4)
        AT(interpreter, 0) = ADDRESS(interpreter), AT(thread, 8) = ADDRESS(thread);
    if (how == 5)
        AT(code, 120) = AT(code, 128) = 0x1000;
    _PyEval_EvalFrameDefault(seconds() + (argc > 2 ? atof(argv[2]) : 1));
    return 0;
}
