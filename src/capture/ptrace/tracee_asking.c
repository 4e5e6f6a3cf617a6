// SPDX-License-Identifier: Apache-2.0
// Chooses the threads to sample, and when: see tracee_asking.h.

#include "capture/ptrace/tracee_asking.h"

#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>

#include "base/clock.h"
#include "base/idtable.h"
#include "base/memory.h"
#include "capture/ptrace/stopped.h"

/* Work that took T of CPU time is followed by a pause of COST_PAUSE times T. */
#define COST_PAUSE 20

#define MANY_THREADS 32 /* of one process */
#define REST_MAX 16u    /* looks */

#define AGAIN_CPU_NS 3000000
#define AGAIN_LOOK_NS 1000000
#define AGAIN_LOOKS_MAX 40
#define AGAIN_MAX 2
/* Waits up to here can be our own doing: we need a CPU to ask. */
#define WAIT_NS 500000
/* Of CPU time, since it last went on: it may not have moved. */
#define FRESH_NS 20000

void asking_init(struct asking *asking, int64_t period_ns)
{
    int64_t now_ns = monotonic_ns();
    *asking = (struct asking){.period_ns = period_ns,
                              .next_ns = now_ns + period_ns,
                              .again_ns = INT64_MAX,
                              .random = (uint64_t)now_ns};
}

int64_t asking_begin_cost(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void asking_end_cost(struct asking *asking, int64_t begin)
{
    asking->cost_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

static uint64_t random_below(struct asking *asking, uint64_t limit)
{
    asking->random = hash_word(asking->random + 1);
    return asking->random % limit;
}

/* ---- one thread ---- */

void asking_resumed(const struct tracees *tracees, struct tracee *tracee)
{
    tracee->resumed_ns = tracee_clock_ns(tracees, tracee);
}

static bool is_fresh(const struct tracees *tracees, const struct tracee *tracee)
{
    return tracee_clock_ns(tracees, tracee) < tracee->resumed_ns + FRESH_NS;
}

/* Also sees what it calls itself. */
static bool is_running(struct tracee *tracee)
{
    struct task_stat stat;
    if (task_stat_read(tracee->process->pid, tracee->tid, &stat) < 0 || stat.state != 'R')
        return false;
    snprintf(tracee->seen_name, sizeof(tracee->seen_name), "%s", stat.name);
    return true;
}

static void ask(const struct tracees *tracees, struct tracee *tracee)
{
    tracee->again_ns = 0;
    tracee_cpu_ns(tracees, tracee, &tracee->wait_ns);
    tracee->interrupted = ptrace(PTRACE_INTERRUPT, tracee->tid, NULL, NULL) == 0;
}

/* When to see about it next: not in step with what it does. */
static void look_again(struct asking *asking, struct tracee *tracee)
{
    tracee->again_ns =
        monotonic_ns() + AGAIN_LOOK_NS / 2 + (int64_t)random_below(asking, AGAIN_LOOK_NS);
    asking->again_ns = MIN(asking->again_ns, tracee->again_ns);
}

static void ask_later(struct asking *asking, const struct tracees *tracees, struct tracee *tracee)
{
    tracee->again_looks = 0;
    tracee->again_cpu_ns = tracee_clock_ns(tracees, tracee) + random_below(asking, AGAIN_CPU_NS);
    look_again(asking, tracee);
}

bool asking_accepts(struct asking *asking, struct tracees *tracees, struct tracee *tracee)
{
    uint64_t wait_ns;
    tracee_cpu_ns(tracees, tracee, &wait_ns);
    if (wait_ns <= tracee->wait_ns + WAIT_NS || tracee->again_count == AGAIN_MAX) {
        tracee->again_count = 0;
        return true;
    }
    tracee->again_count++;
    ask_later(asking, tracees, tracee);
    return false;
}

/* ---- all of them ---- */

/* Where there are many threads, those that are always found asleep are looked at less often. */
static bool has_woken(struct tracee *tracee)
{
    if (tracee->rest) {
        tracee->rest--;
        return false;
    }
    bool running = is_running(tracee);
    tracee->idle_looks = running ? 0 : tracee->idle_looks + 1;
    if (tracee->process->living > MANY_THREADS)
        tracee->rest = MIN(tracee->idle_looks / 4, REST_MAX);
    return running;
}

static void look(struct asking *asking, struct tracees *tracees)
{
    asking->looks++;
    for (size_t i = 0; i < tracees->count; i++) {
        struct tracee *tracee = tracees->list[i];
        if (!tracee_process_active(tracee->process, asking->looks) || tracee->again_ns ||
            tracee->interrupted || tracee->ending || !has_woken(tracee))
            continue;
        tracee->again_count = 0;
        if (is_fresh(tracees, tracee))
            ask_later(asking, tracees, tracee);
        else
            ask(tracees, tracee);
    }
}

/* Those who may have had the CPU meanwhile. */
static void ask_again(struct asking *asking, const struct tracees *tracees, int64_t now_ns)
{
    asking->again_ns = INT64_MAX;
    for (size_t i = 0; i < tracees->count; i++) {
        struct tracee *tracee = tracees->list[i];
        if (!tracee->again_ns)
            continue;
        if (tracee->again_ns > now_ns) {
            asking->again_ns = MIN(asking->again_ns, tracee->again_ns);
        } else if (tracee->ending || tracee->again_looks++ == AGAIN_LOOKS_MAX) {
            tracee->again_ns = 0;
        } else if (is_fresh(tracees, tracee) ||
                   tracee_clock_ns(tracees, tracee) < tracee->again_cpu_ns || !is_running(tracee)) {
            look_again(asking, tracee);
        } else {
            ask(tracees, tracee);
        }
    }
}

int64_t asking_turn(struct asking *asking, struct tracees *tracees)
{
    int64_t now_ns = monotonic_ns();
    if (now_ns >= MAX(asking->again_ns, asking->pause_ns)) {
        int64_t cost_before_ns = asking->cost_ns, begin = asking_begin_cost();
        ask_again(asking, tracees, now_ns);
        asking_end_cost(asking, begin);
        asking->pause_ns = monotonic_ns() + COST_PAUSE * (asking->cost_ns - cost_before_ns);
    }
    if (now_ns >= asking->next_ns) {
        int64_t begin = asking_begin_cost();
        look(asking, tracees);
        asking_end_cost(asking, begin);
        now_ns = monotonic_ns();
        /* No hurry after a time without a CPU. */
        int64_t soonest_ns = now_ns + MAX(asking->period_ns / 2, COST_PAUSE * asking->cost_ns);
        asking->next_ns = MAX(asking->next_ns + asking->period_ns, soonest_ns);
        asking->cost_ns = 0;
    }
    return MIN(asking->next_ns, MAX(asking->again_ns, asking->pause_ns));
}
