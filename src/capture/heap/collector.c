// SPDX-License-Identifier: Apache-2.0
// Heap profiles through BPF: see collector.h.

#include "capture/heap/collector.h"

#include <bpf/bpf.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "bpf/chance.h"
#include "bpf/heap.h"
#include "capture/bpf/object.h"
#include "capture/heap/attach.h"
#include "capture/heap/functions.h"
#include "capture/heap/heap.h"

/* Of one process in a second, beyond which allocations are left out: the library keeps far below
 * it, and others' may not. */
#define EVENTS_MAX 2000
#define TURN_NS 1000000000
/* Of calls that trap, which are counted for this long before they are sampled. */
#define MEAN_BYTES (512u << 10)
#define COUNT_NS 300000000
#define SLOWDOWN_MAX 0.2

struct heap_collector {
    struct heap heap;
    struct bpf_probes *probes;
    struct heap_attach attach;
    struct bpf_heap_state *state;
    int processes; /* the map */
    bool everybody;
    unsigned rate_hz;
    int64_t turn_ns;
    uint64_t lost_frees; /* that were acted on */
    bool traps;          /* at functions of allocators */
    bool stopped;        /* that cost too much */
    struct heap_functions functions;
    double slowdown_max;
};

static void heap_stop(void *state)
{
    struct heap_collector *collector = state;
    if (!collector)
        return;
    heap_attach_release(&collector->attach);
    bpf_probes_free(collector->probes);
    heap_release(&collector->heap);
    free(collector);
}

/* Those of the other method are left out, and its maps are as small as they are made. */
static int choose_programs(struct bpf_probes *probes, bool traps)
{
    static const char *const of_probes[] = {"assay_alloc", "assay_free"};
    static const char *const of_traps[] = {"assay_enter", "assay_return", "assay_release"};
    int r = 0;
    for (size_t i = 0; !r && traps && i < ARRAY_LENGTH(of_probes); i++)
        r = bpf_probes_leave_out(probes, of_probes[i]);
    for (size_t i = 0; !r && !traps && i < ARRAY_LENGTH(of_traps); i++)
        r = bpf_probes_leave_out(probes, of_traps[i]);
    if (!r && traps)
        r = bpf_probes_set_entries(probes, "heap_calls", BPF_HEAP_CALLS_MAX);
    if (!r && traps)
        r = bpf_probes_set_entries(probes, "heap_sampled", BPF_HEAP_SAMPLED_MAX);
    return r;
}

static int load(struct heap_collector *collector, const struct collector_setup *setup,
                struct error *error)
{
    int r = bpf_probes_open(setup->sampler, "assay_heap", bpf_heap_object, bpf_heap_object_length,
                            &collector->probes, error);
    if (!r && collector->everybody)
        r = heap_attach_choose_all(collector->probes, error);
    if (!r)
        r = choose_programs(collector->probes, collector->traps);
    if (!r)
        r = bpf_probes_load(collector->probes, error);
    if (r < 0)
        return r;
    struct bpf_heap_place *places = bpf_probes_table(collector->probes, "heap_places");
    collector->state = bpf_probes_table(collector->probes, "heap_state");
    collector->processes = bpf_probes_map(collector->probes, "heap_processes");
    heap_attach_init(&collector->attach, collector->probes, places);
    return places && collector->state && collector->processes >= 0
               ? 0
               : error_set_errno(error, -ENOMEM, "Cannot map the tables of the heap collector");
}

static bool any_has_probes(const struct capture_collect *collect)
{
    for (size_t i = 0; i < collect->pid_count; i++)
        if (heap_functions_needless(collect->pids[i]))
            return true;
    return false;
}

/* Says how much longer the processes take, and stops if that is too much. */
static int start_traps(struct heap_collector *collector, const struct collector_setup *setup,
                       struct error *error)
{
    const struct capture_collect *collect = setup->collect;
    struct heap_slowdown slowdown = {0};
    int r = heap_functions_attach(&collector->functions, &collector->attach, collector->state,
                                  collect->pids, collect->pid_count, error);
    if (r < 0)
        return r;
    nanosleep(&(struct timespec){.tv_nsec = COUNT_NS}, NULL);
    heap_functions_measure(&collector->functions, monotonic_ns(), &slowdown);
    if (slowdown.share > collector->slowdown_max)
        return error_set(error, -EBUSY,
                         "Without memory probes every allocation traps: %.0f calls a second would "
                         "slow the process down by %.0f%% (limit %.0f%%, --max-slowdown). Start it "
                         "with LD_PRELOAD=libassay_heap.so instead.",
                         slowdown.calls + slowdown.releases, 100 * slowdown.share,
                         100 * collector->slowdown_max);
    log_warning("Recording by uprobes, since there are no memory probes: %.0f calls a second, %.1f "
                "us each, slow the process down by about %.2g%%.",
                slowdown.calls + slowdown.releases, slowdown.call_ns / 1e3, 100 * slowdown.share);
    collector->state->mean_bytes =
        MIN(collect->mean_bytes ? collect->mean_bytes : MEAN_BYTES, CHANCE_MEAN_MAX);
    return 0;
}

/* Stops above the limit, and keeps what was recorded until then. */
static void watch_traps(struct heap_collector *collector, int64_t now_ns)
{
    struct heap_slowdown slowdown;
    if (collector->stopped || now_ns - collector->functions.looked_ns < TURN_NS ||
        !heap_functions_measure(&collector->functions, now_ns, &slowdown) ||
        slowdown.share <= collector->slowdown_max)
        return;
    collector->stopped = true;
    collector->state->mean_bytes = 0;
    heap_attach_release(&collector->attach);
    log_warning(
        "Recording of allocations stopped early: it slows the process down by %.0f%% (limit "
        "%.0f%%, --max-slowdown).",
        100 * slowdown.share, 100 * collector->slowdown_max);
}

static int heap_start(const struct collector_setup *setup, void **ret_state, struct error *error)
{
    bool everybody = !setup->collect->pid_count;
    if (setup->cgroup >= 0 || (everybody && setup->modes == CAPTURE_HEAP))
        return error_set(error, -ENOTSUP,
                         "Mode heap records a command or processes (--pid), not everything.");
    struct heap_collector *collector = memory_zalloc(1, sizeof(*collector));
    heap_init(&collector->heap, setup->recorder);
    collector->everybody = collector->heap.forgets = everybody;
    collector->rate_hz = EVENTS_MAX;
    const char *library = setup->collect->heap_library;
    collector->traps = !everybody && !library && !any_has_probes(setup->collect);
    collector->slowdown_max =
        setup->collect->slowdown_max > 0 ? setup->collect->slowdown_max : SLOWDOWN_MAX;
    int r = load(collector, setup, error);
    if (!r && collector->traps)
        r = start_traps(collector, setup, error);
    else if (!r && library)
        r = heap_attach_file(&collector->attach, library, error);
    for (size_t i = 0; !r && !collector->traps && !library && i < setup->collect->pid_count; i++)
        r = heap_attach_process(&collector->attach, setup->collect->pids[i], error);
    if (r < 0) {
        heap_stop(collector);
        return r;
    }
    if (everybody)
        collector->state->events_max = EVENTS_MAX;
    collector->state->targets_only = setup->collect->heap_library != NULL;
    *ret_state = collector;
    return 0;
}

/* Processes of which releases were lost: what they hold is not known any more. */
static void distrust(struct heap_collector *collector)
{
    uint32_t pid = 0, next;
    uint64_t lost = collector->state->lost_frees;
    if (lost == collector->lost_frees)
        return;
    collector->lost_frees = lost;
    bool more = bpf_map_get_next_key(collector->processes, NULL, &next) == 0;
    for (unsigned i = 0; more && i < BPF_HEAP_PROCESSES_MAX; i++) {
        struct bpf_heap_process process;
        pid = next;
        more = bpf_map_get_next_key(collector->processes, &pid, &next) == 0;
        if (bpf_map_lookup_elem(collector->processes, &pid, &process) == 0 && process.lost) {
            bpf_map_delete_elem(collector->processes, &pid);
            heap_distrust(&collector->heap, pid);
        }
    }
}

static void heap_turn(void *state, int64_t now_ns)
{
    struct heap_collector *collector = state;
    const struct recorder *recorder = collector->heap.recorder;
    if (collector->traps)
        watch_traps(collector, now_ns);
    if (!collector->everybody)
        return;
    heap_attach_turn(&collector->attach, &recorder->modules, &recorder->processes, now_ns);
    if (now_ns - collector->turn_ns < TURN_NS)
        return;
    collector->turn_ns = now_ns;
    distrust(collector);
}

/* Without a rate nothing is attached, and the programs pay nothing. */
static int heap_set_rate(void *state, unsigned rate_hz)
{
    struct heap_collector *collector = state;
    if (!collector->everybody) /* a recording is short, and not turned down */
        return 0;
    if (!rate_hz)
        heap_forget_all(&collector->heap);
    heap_attach_set(&collector->attach, rate_hz);
    if (rate_hz)
        collector->rate_hz = rate_hz;
    return 0;
}

static unsigned heap_rate(const void *state)
{
    return ((const struct heap_collector *)state)->rate_hz;
}

/* ---- events ---- */

/* Nobody wants this program's: the kernel needn't send any more of it. */
static void refuse(struct heap_collector *collector, uint32_t pid, uint64_t program)
{
    struct bpf_heap_process process = {.unwanted = program};
    bpf_map_update_elem(collector->processes, &pid, &process, BPF_ANY);
}

static void heap_take_sample(void *state, const struct recorder_sample *sample,
                             const struct bpf_sample_event *event)
{
    struct heap_collector *collector = state;
    struct recorder_sample shorter = *sample;
    shorter.frame_count =
        heap_caller_count(collector->heap.recorder, sample->frames, sample->frame_count);
    uint64_t unwanted = collector->heap.recorder->unwanted;
    heap_take_alloc(
        &collector->heap, &shorter,
        &(struct heap_alloc){event->id, event->detail[0], event->value, event->detail[1]});
    if (collector->heap.recorder->unwanted != unwanted && event->detail[1])
        refuse(collector, event->pid, event->detail[1]);
}

static void heap_take_note(void *state, const struct bpf_note *note)
{
    struct heap_collector *collector = state;
    struct bpf_heap_free event;
    if (note->bytes < sizeof(event))
        return;
    memcpy(&event, note, sizeof(event));
    heap_take_free(&collector->heap, event.pid, event.pointer);
}

static void heap_settle_all(void *state)
{
    heap_settle(&((struct heap_collector *)state)->heap);
}

static struct bpf_cost heap_cost(const void *state)
{
    return bpf_probes_cost(((const struct heap_collector *)state)->probes);
}

static void note(struct capture_loss *losses, size_t *count, const char *reason, const char *what,
                 uint64_t number)
{
    if (number && *count < CAPTURE_LOSSES_MAX)
        losses[(*count)++] = (struct capture_loss){reason, what, number};
}

static void heap_losses(const void *state, struct capture_loss *losses, size_t *count)
{
    const struct heap_collector *collector = state;
    const struct heap *heap = &collector->heap;
    note(losses, count, "heap_live_full",
         "allocations don't count as live: too many were live at once", heap->live.refused);
    note(losses, count, "heap_refused",
         "sampled allocations of processes or users with too many of them",
         collector->state->refused);
    if (collector->everybody)
        note(losses, count, "heap_forgotten",
             "times that live memory of a process begins anew: its releases were lost",
             heap->forgotten);
    else
        note(losses, count, "heap_frees_lost",
             "releases lost: as many samples count as live that are not",
             collector->state->lost_frees);
    note(losses, count, "heap_files_refused", "files with memory probes above the limit",
         collector->attach.refused);
}

const struct collector_kind heap_collector = {
    .name = "heap",
    .collector = BPF_COLLECTOR_HEAP,
    .modes = CAPTURE_HEAP,
    .start = heap_start,
    .stop = heap_stop,
    .take_sample = heap_take_sample,
    .take_note = heap_take_note,
    .turn = heap_turn,
    .settle = heap_settle_all,
    .set_rate = heap_set_rate,
    .rate = heap_rate,
    .cost = heap_cost,
    .losses = heap_losses,
};
