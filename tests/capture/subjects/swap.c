// SPDX-License-Identifier: Apache-2.0
// swap ROUNDS: opens one of two plugins, works in it, closes it and opens the other, which is
// mapped where the first was. Prints how many times that was so. Each is called by a function of
// its own.

#include <dlfcn.h>

#include "known.h"

CALL void call_a(void (*start)(void))
{
    start();
    STAY;
}
CALL void call_b(void (*start)(void))
{
    start();
    __asm__ volatile("nop" ::: "memory");
}

CALL void *use(const char *path, const char *name, void (*call)(void (*)(void)))
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL), *found;
    void (*start)(void);
    if (!handle || !(found = dlsym(handle, name))) {
        fprintf(stderr, "%s\n", dlerror());
        exit(9);
    }
    *(void **)&start = found;
    for (int i = 0; i < 20; i++)
        call(start);
    dlclose(handle);
    return found;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100, same = 0;
    for (int i = 0; i < rounds; i++) {
        void *a = use("./liba.so", "a_start", call_a);
        void *b = use("./libb.so", "b_start", call_b);
        same += a == b;
    }
    printf("%d\n", same);
}
