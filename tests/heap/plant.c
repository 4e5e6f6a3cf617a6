// SPDX-License-Identifier: Apache-2.0
// A leak for any server that waits for events by epoll: preloaded, it loses 2 KiB in plant_leak()
// whenever the server waits again.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/epoll.h>

#define LEAKED_BYTES 2048

static void *volatile lost;

__attribute__((noinline)) static void plant_leak(void)
{
    lost = malloc(LEAKED_BYTES);
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms)
{
    static int (*next)(int, struct epoll_event *, int, int);
    if (!next)
        next = (__typeof__(next))dlsym(RTLD_NEXT, "epoll_wait");
    plant_leak();
    return next(epoll, events, most, timeout_ms);
}

int epoll_pwait(int epoll, struct epoll_event *events, int most, int timeout_ms,
                const sigset_t *signals)
{
    static int (*next)(int, struct epoll_event *, int, int, const sigset_t *);
    if (!next)
        next = (__typeof__(next))dlsym(RTLD_NEXT, "epoll_pwait");
    plant_leak();
    return next(epoll, events, most, timeout_ms, signals);
}
