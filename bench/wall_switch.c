/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wall_switch RATE SECONDS: pairs of threads, one for each CPU, that wake each other through event
 * descriptors, RATE context switches a second in all (0: as many as there can be). Prints how many
 * switches there were and the CPU time, in ns, that they took.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define BATCH 64 /* switches between looks at the clock */
#define CPUS_MAX 256

static double rate, until;

struct pair {
    int there, back, cpu;
    pthread_t first, second;
    uint64_t switches;
};

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void pin(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
}

static void *answer(void *context)
{
    struct pair *pair = context;
    uint64_t value;
    pin(pair->cpu);
    while (read(pair->there, &value, sizeof(value)) == sizeof(value) && value == 1)
        if (write(pair->back, &value, sizeof(value)) < 0)
            break;
    return NULL;
}

static void *ask(void *context)
{
    struct pair *pair = context;
    double start = seconds(CLOCK_MONOTONIC);
    uint64_t value = 1;
    pin(pair->cpu);
    for (double now = start; now < until; now = seconds(CLOCK_MONOTONIC)) {
        if (rate > 0 && (double)pair->switches > (now - start) * rate) {
            usleep(500);
            continue;
        }
        for (int i = 0; i < BATCH; i++) {
            value = 1;
            if (write(pair->there, &value, sizeof(value)) < 0 ||
                read(pair->back, &value, sizeof(value)) < 0)
                return NULL;
        }
        pair->switches += 2 * BATCH;
    }
    value = 2;
    return write(pair->there, &value, sizeof(value)) < 0 ? context : NULL;
}

int main(int argc, char **argv)
{
    static struct pair pairs[CPUS_MAX];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t switches = 0;
    if (argc != 3)
        return 2;
    if (cpus > CPUS_MAX)
        cpus = CPUS_MAX;
    rate = atof(argv[1]) / (double)cpus;
    until = seconds(CLOCK_MONOTONIC) + atof(argv[2]);
    for (int i = 0; i < cpus; i++) {
        pairs[i].there = eventfd(0, 0);
        pairs[i].back = eventfd(0, 0);
        pairs[i].cpu = i;
        pthread_create(&pairs[i].second, NULL, answer, &pairs[i]);
        pthread_create(&pairs[i].first, NULL, ask, &pairs[i]);
    }
    for (int i = 0; i < cpus; i++) {
        pthread_join(pairs[i].first, NULL);
        pthread_join(pairs[i].second, NULL);
        switches += pairs[i].switches;
    }
    printf("%llu %.0f\n", (unsigned long long)switches, seconds(CLOCK_PROCESS_CPUTIME_ID) * 1e9);
    return 0;
}
