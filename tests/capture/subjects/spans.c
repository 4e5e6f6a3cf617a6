// SPDX-License-Identifier: Apache-2.0
// Threads that work in spans of libassay, and what they did: one line per span with its thread,
// ids, and the times between which it began and ended, and between which its thread did other work.
// The first argument is the number of threads, the second that of spans of each, the third their
// work.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "c/assay.h"

static int spans, work_us, route;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t sink;

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* CPU time: a starved machine changes none of the shares. */
static void work(int us)
{
    uint64_t until_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)us * 1000;
    while (now_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
        for (int i = 0; i < 2000; i++)
            sink += (uint64_t)i;
}

struct line {
    unsigned char trace_id[16], span_id[8];
    uint64_t before_ns, begun_ns, ending_ns, ended_ns, until_ns;
    int route;
};

static void hex(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%02x", bytes[i]);
}

static void *run(void *unused)
{
    struct line *lines = calloc((size_t)spans, sizeof(*lines));
    (void)unused;
    for (int i = 0; i < spans; i++) {
        struct line *line = &lines[i];
        struct assay_span span, inner;
        line->route = i % 3;
        line->before_ns = now_ns(CLOCK_REALTIME);
        assay_begin(&span);
        assay_set(route, i % 3 == 0 ? "/cart" : i % 3 == 1 ? "/user/{id}" : "/");
        assay_current(line->trace_id, line->span_id);
        line->begun_ns = now_ns(CLOCK_REALTIME);
        work(work_us);
        line->ending_ns = now_ns(CLOCK_REALTIME);
        if (i % 16 == 0) { /* an inner span, about which nothing is written down, doesn't last */
            assay_begin(&inner);
            assay_end(&inner);
        }
        assay_end(&span);
        line->ended_ns = now_ns(CLOCK_REALTIME);
        work(work_us / 4);
        line->until_ns = now_ns(CLOCK_REALTIME);
    }
    pthread_mutex_lock(&lock);
    for (int i = 0; i < spans; i++) {
        const struct line *line = &lines[i];
        printf("%ld ", syscall(SYS_gettid));
        hex(line->trace_id, sizeof(line->trace_id));
        printf(" ");
        hex(line->span_id, sizeof(line->span_id));
        printf(" %lu %lu %lu %lu %lu %d\n", line->before_ns, line->begun_ns, line->ending_ns,
               line->ended_ns, line->until_ns, line->route);
    }
    pthread_mutex_unlock(&lock);
    free(lines);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    int count = argc > 1 ? atoi(argv[1]) : 2;
    spans = argc > 2 ? atoi(argv[2]) : 100;
    work_us = argc > 3 ? atoi(argv[3]) : 4000;
    assay_init("shop", "1.2.3");
    route = assay_key("http.route");
    work(50000); /* so that the process is known before the first span */
    for (int i = 0; i < count && i < 64; i++)
        pthread_create(&threads[i], NULL, run, NULL);
    for (int i = 0; i < count && i < 64; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
