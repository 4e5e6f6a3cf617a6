// SPDX-License-Identifier: Apache-2.0
// Looks at Go programs: see collector.h.

#include "capture/goroutines/collector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "runtime/go/goroutines.h"

#define LOOK_HZ 10
#define PROCESSES_MAX_GO 64    /* that are looked at */
#define GOROUTINES_AT_ONCE 256 /* of a process at one look: the others are stood for */
#define COST_SHARE 0.01        /* of one CPU, where no limit is set */
#define COST_SHARE_OF_LIMIT 0.25
#define GAP_NS_MAX 10000000000ll /* a look stands for at most so long */
#define FIND_NS 1000000000ll
#define LABELS_MAX 64   /* of one sample, its own included */
#define VALUES_MAX 1024 /* ids of goroutines as labels, in a recording */

struct watched {
    uint32_t pid;
    uint64_t mapped; /* of the process, when it was attached */
    bool attached, seen;
    int64_t looked_ns;
    struct go_process go;
};

struct goroutines {
    struct recorder *recorder;
    struct runtime_reader reader;
    struct watched *list[PROCESSES_MAX_GO];
    size_t count, next;
    int64_t found_ns, turn_ns, from_ns;
    double share; /* of one CPU that it may take */
    unsigned rate_hz;
    bool off;
    uint32_t epoch;
    unsigned type;
    unsigned ids; /* that are labels in this profile */
    int64_t cost_ns;
    uint64_t rounds, looks, left_out, unread, unsupported;
};

static int goroutines_start(const struct collector_setup *setup, void **ret_state,
                            struct error *error)
{
    (void)error;
    struct goroutines *goroutines = memory_zalloc(1, sizeof(*goroutines));
    goroutines->recorder = setup->recorder;
    goroutines->rate_hz = LOOK_HZ;
    double limit = setup->collect->cost_share;
    goroutines->share = limit > 0 ? limit * COST_SHARE_OF_LIMIT : COST_SHARE;
    goroutines->from_ns = monotonic_ns();
    runtime_reader_init(&goroutines->reader);
    *ret_state = goroutines;
    return 0;
}

static void goroutines_stop(void *state)
{
    struct goroutines *goroutines = state;
    if (!goroutines)
        return;
    for (size_t i = 0; i < goroutines->count; i++)
        free(goroutines->list[i]);
    runtime_reader_release(&goroutines->reader);
    free(goroutines);
}

/* ---- which processes ---- */

static const struct mapping *find_program(const struct process *process)
{
    for (size_t i = 0; i < process->count; i++)
        if (process->mappings[i].module && process->mappings[i].module->go)
            return &process->mappings[i];
    return NULL;
}

static struct watched *find_watched(struct goroutines *goroutines, uint32_t pid)
{
    for (size_t i = 0; i < goroutines->count; i++)
        if (goroutines->list[i]->pid == pid)
            return goroutines->list[i];
    return NULL;
}

/* Its program may not have begun yet: it is tried again at the next round. */
static void attach(struct goroutines *goroutines, struct watched *watched,
                   const struct process *process, const struct mapping *mapping)
{
    struct runtime_memory memory = runtime_reader_of(&goroutines->reader, process->pid);
    const char *reason = NULL;
    bool again = watched->mapped == process->mapped + 1;
    watched->attached =
        go_attach(mapping->module->go, mapping->bias, &memory, &watched->go, &reason);
    goroutines->unsupported += !watched->attached && !again && watched->go.version[0];
    watched->mapped = process->mapped + 1;
    /* Of programs that were there at the beginning, all time counts. */
    if (goroutines->rounds)
        watched->looked_ns = monotonic_ns();
}

static void find_processes(struct goroutines *goroutines)
{
    struct processes *processes = &goroutines->recorder->processes;
    for (size_t i = 0; i < goroutines->count; i++)
        goroutines->list[i]->seen = false;
    for (size_t i = 0; i < processes->count; i++) {
        const struct process *process = processes->list[i];
        const struct mapping *mapping =
            process->program && process->program->go ? find_program(process) : NULL;
        if (!mapping || process->ended_ns)
            continue;
        struct watched *watched = find_watched(goroutines, process->pid);
        if (!watched && goroutines->count == PROCESSES_MAX_GO) {
            goroutines->left_out++;
            continue;
        }
        if (!watched) {
            watched = memory_zalloc(1, sizeof(*watched));
            watched->pid = process->pid;
            goroutines->list[goroutines->count++] = watched;
        }
        watched->seen = true;
        if (!watched->attached || watched->mapped != process->mapped + 1)
            attach(goroutines, watched, process, mapping);
    }
    goroutines->rounds++;
    for (size_t i = goroutines->count; i-- > 0;)
        if (!goroutines->list[i]->seen) {
            free(goroutines->list[i]);
            goroutines->list[i] = goroutines->list[--goroutines->count];
        }
}

/* ---- one look ---- */

static void begin_epoch(struct goroutines *goroutines)
{
    struct profile *profile = goroutines->recorder->profile;
    if (goroutines->epoch == goroutines->recorder->epoch)
        return;
    goroutines->epoch = goroutines->recorder->epoch;
    goroutines->ids = 0;
    goroutines->type = profile_type(profile, profile_cstring(profile, "goroutine_wall"),
                                    profile_cstring(profile, "nanoseconds"));
}

static uint32_t stack_of(struct goroutines *goroutines, const struct process *process,
                         const struct goroutine *goroutine)
{
    struct recorder *recorder = goroutines->recorder;
    uint32_t frames[GO_FRAMES_MAX + 2];
    size_t count = 0;
    if (recorder->root_by_process)
        frames[count++] = recorder_mark(recorder, process->name);
    if (goroutine->cut)
        frames[count++] = recorder_mark(recorder, "[truncated]");
    for (size_t i = goroutine->count; i-- > 0;) /* all are addresses behind calls */
        frames[count++] = recorder_address_frame(recorder, process, goroutine->addresses[i] - 1);
    if (!goroutine->count)
        frames[count++] = recorder_mark(
            recorder, goroutine->status == GO_RUNNING ? "[running]" : "[stack not read]");
    return profile_stack(recorder->profile, frames, count);
}

static uint32_t labels_of(struct goroutines *goroutines, uint32_t labels,
                          const struct goroutine *goroutine)
{
    struct recorder *recorder = goroutines->recorder;
    struct profile *profile = recorder->profile;
    struct profile_label list[LABELS_MAX];
    char id[24];
    size_t count = 0;
    const struct profile_label *own = profile_labels(profile, labels, &count);
    count = MIN(count, (size_t)LABELS_MAX - 3);
    memcpy(list, own, count * sizeof(*own));
    list[count++] = (struct profile_label){.key = profile_cstring(profile, "state"),
                                           .text = profile_cstring(profile, go_state(goroutine))};
    if (goroutine->reason[0])
        list[count++] = (struct profile_label){.key = profile_cstring(profile, "wait_reason"),
                                               .text = profile_cstring(profile, goroutine->reason)};
    if (!recorder->label && goroutines->ids < VALUES_MAX) {
        snprintf(id, sizeof(id), "%llu", (unsigned long long)goroutine->id);
        list[count++] = (struct profile_label){.key = profile_cstring(profile, "goroutine"),
                                               .text = profile_cstring(profile, id)};
    }
    return profile_label_set(profile, list, count);
}

static void look_at(struct goroutines *goroutines, struct watched *watched, int64_t now_ns)
{
    struct recorder *recorder = goroutines->recorder;
    struct process *process = processes_find(&recorder->processes, watched->pid);
    if (recorder->until_ns && now_ns > (int64_t)recorder->until_ns)
        now_ns = (int64_t)recorder->until_ns;
    int64_t passed_ns = MIN(now_ns - MAX(watched->looked_ns, goroutines->from_ns), GAP_NS_MAX);
    watched->looked_ns = now_ns;
    if (!process || passed_ns <= 0 || !recorder_wants(recorder, (uint64_t)now_ns))
        return;
    struct recorder_sample sample = {
        .pid = process->pid, .tid = process->pid, .comm = process->name};
    uint32_t labels = recorder_labels(recorder, &sample);
    if (labels == CAPTURE_UNWANTED)
        return;
    struct runtime_memory memory = runtime_reader_of(&goroutines->reader, process->pid);
    uint64_t list;
    size_t all = go_list(&watched->go, &memory, &list);
    size_t some = MIN(all, (size_t)GOROUTINES_AT_ONCE);
    /* One of each part of the list: every goroutine is as likely. */
    double part = some ? (double)all / (double)some : 0;
    double at = part > 1 ? (double)(random_bits() >> 11) / 9007199254740992.0 * part : 0;
    begin_epoch(goroutines);
    for (size_t i = 0; i < some; i++, at += part) {
        struct goroutine goroutine;
        if ((size_t)at >= all || !go_read(&watched->go, &memory, list, (size_t)at, &goroutine))
            continue;
        goroutines->unread += !goroutine.count && goroutine.status != GO_RUNNING;
        uint32_t own = labels_of(goroutines, labels, &goroutine);
        goroutines->ids = MAX(goroutines->ids, (unsigned)MIN(some, (size_t)VALUES_MAX));
        size_t row = profile_sample(recorder->profile, stack_of(goroutines, process, &goroutine),
                                    own, 0, (uint64_t)(now_ns + recorder->epoch_ns));
        profile_add_value(recorder->profile, row, goroutines->type,
                          (int64_t)((double)passed_ns * part));
    }
    goroutines->looks++;
}

static void look_around(struct goroutines *goroutines, int64_t now_ns)
{
    int64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (now_ns - goroutines->found_ns >= FIND_NS) {
        goroutines->found_ns = now_ns;
        find_processes(goroutines);
    }
    /* One process at a time, each a few times a second, as long as it is within its share. */
    int64_t turns_ns = 1000000000ll / goroutines->rate_hz / (int64_t)MAX(goroutines->count, 1u);
    double spent = (double)goroutines->cost_ns / (double)MAX(now_ns - goroutines->from_ns, 1);
    if (goroutines->recorder->profile && goroutines->count &&
        now_ns - goroutines->turn_ns >= turns_ns && spent <= goroutines->share) {
        struct watched *watched = goroutines->list[goroutines->next++ % goroutines->count];
        goroutines->turn_ns = now_ns;
        if (watched->attached)
            look_at(goroutines, watched, now_ns);
    }
    goroutines->cost_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
}

static void goroutines_turn(void *state, int64_t now_ns)
{
    struct goroutines *goroutines = state;
    if (!goroutines->off)
        look_around(goroutines, now_ns);
}

/* The rest of the time, for each process. */
static void look_last(struct goroutines *goroutines)
{
    int64_t now_ns = monotonic_ns();
    if (goroutines->off || !goroutines->recorder->profile)
        return;
    int64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; i < goroutines->count; i++)
        if (goroutines->list[i]->attached)
            look_at(goroutines, goroutines->list[i], now_ns);
    goroutines->cost_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
}

static void goroutines_settle(void *state)
{
    look_last(state);
}

static void goroutines_begin(void *state)
{
    struct goroutines *goroutines = state;
    goroutines->from_ns = monotonic_ns();
    goroutines->cost_ns = 0;
}

static int goroutines_set_rate(void *state, unsigned rate_hz)
{
    struct goroutines *goroutines = state;
    if (goroutines->off && rate_hz)
        goroutines->from_ns = monotonic_ns(); /* nobody looked until now */
    if (!rate_hz)
        look_last(goroutines);
    goroutines->off = !rate_hz;
    return 0;
}

static unsigned goroutines_rate(const void *state)
{
    return ((const struct goroutines *)state)->rate_hz;
}

static struct bpf_cost goroutines_cost(const void *state)
{
    const struct goroutines *goroutines = state;
    return (struct bpf_cost){.run_ns = (uint64_t)goroutines->cost_ns, .runs = goroutines->looks};
}

static void goroutines_losses(const void *state, struct capture_loss *losses, size_t *count)
{
    const struct goroutines *goroutines = state;
    const struct capture_loss all[] = {
        {"goroutines_left_out", "looks at Go programs beyond the limit", goroutines->left_out},
        {"goroutines_unread", "goroutines whose stack could not be read", goroutines->unread},
        {"goroutines_unsupported", "programs of a version of Go that is not supported",
         goroutines->unsupported},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(all); i++)
        if (all[i].count && *count < CAPTURE_LOSSES_MAX)
            losses[(*count)++] = all[i];
}

const struct collector_kind goroutines_collector = {
    .name = "goroutines",
    .collector = BPF_COLLECTOR_NONE,
    .modes = CAPTURE_GOROUTINES,
    .start = goroutines_start,
    .stop = goroutines_stop,
    .begin = goroutines_begin,
    .turn = goroutines_turn,
    .settle = goroutines_settle,
    .set_rate = goroutines_set_rate,
    .rate = goroutines_rate,
    .cost = goroutines_cost,
    .losses = goroutines_losses,
};
