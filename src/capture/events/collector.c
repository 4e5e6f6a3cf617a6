// SPDX-License-Identifier: Apache-2.0
// Sampled events through BPF: see collector.h.

#include "capture/events/collector.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "bpf/events.h"
#include "capture/bpf/object.h"
#include "capture/bpf/sampler.h"
#include "capture/perf/events.h"

/* One event on one CPU. */
struct opened {
    int fd;
    bool hardware;
    struct bpf_link *link; /* owns the descriptor */
};

_Static_assert(PERF_EVENTS_MAX <= BPF_SAMPLED_EVENTS_MAX, "the kernel has a place for each");

/* The last sample of one event on one CPU. What has happened since then is added to it when the
 * profile ends, and subtracted from the next sample, which has it too. */
struct last {
    size_t row;
    uint32_t epoch; /* of the recorder, when the row was added: rows are a profile's */
    uint64_t added;
};

struct events_collector {
    struct recorder *recorder;
    struct bpf_probes *probes;
    struct opened *opened;
    size_t count, capacity;
    unsigned rate_hz;
    size_t cpu_count;
    struct last *last;            /* of each event, one for each CPU */
    struct bpf_event_pace *paces; /* room for one of each CPU */
};

static void events_stop(void *state)
{
    struct events_collector *collector = state;
    if (!collector)
        return;
    for (size_t i = 0; i < collector->count; i++)
        bpf_link__destroy(collector->opened[i].link);
    bpf_probes_free(collector->probes);
    free(collector->opened);
    free(collector->last);
    free(collector->paces);
    free(collector);
}

static int open_event(const struct perf_event_choice *choice, const struct collector_setup *setup,
                      int cpu)
{
    struct perf_event_attr attr = {
        .type = choice->type,
        .size = sizeof(attr),
        .config = choice->config,
        .freq = choice->type != PERF_TYPE_SOFTWARE,
        .sample_freq = choice->type == PERF_TYPE_SOFTWARE ? 1 : setup->collect->frequency_hz,
        .read_format = PERF_EVENT_READ_FORMAT,
        .disabled = 1,
        .exclude_idle = 1,
        .exclude_hv = 1,
        .exclude_user = choice->kernel_only,
        .exclude_kernel = choice->user_only,
    };
    unsigned long flags = setup->cgroup < 0 ? 0 : PERF_FLAG_PID_CGROUP;
    int fd = (int)syscall(SYS_perf_event_open, &attr, setup->cgroup, cpu, -1,
                          flags | PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* With the program, which counts once the recording begins. */
static int add_event(struct events_collector *collector, const struct collector_setup *setup,
                     size_t event, int cpu)
{
    const struct perf_event_choice *choice = &setup->collect->events->list[event];
    int fd = open_event(choice, setup, cpu);
    if (fd < 0)
        return fd;
    bool software = choice->type == PERF_TYPE_SOFTWARE;
    LIBBPF_OPTS(bpf_perf_event_opts, options,
                .bpf_cookie = event | (software ? BPF_EVENT_CHOSEN_HERE : 0));
    struct bpf_link *link = bpf_program__attach_perf_event_opts(
        bpf_probes_program(collector->probes, "assay_event"), fd, &options);
    if (!link) {
        int r = -errno;
        close(fd);
        return r;
    }
    array_reserve(collector->opened, collector->capacity, collector->count + 1);
    collector->opened[collector->count++] =
        (struct opened){.fd = fd, .hardware = !software, .link = link};
    return 0;
}

static int open_all(struct events_collector *collector, const struct collector_setup *setup,
                    struct error *error)
{
    int cpus = (int)collector->cpu_count;
    for (size_t event = 0; event < setup->collect->events->count; event++)
        for (int cpu = 0; cpu < cpus; cpu++) {
            int r = add_event(collector, setup, event, cpu);
            if (r < 0 && (r != -ENODEV || !collector->count)) /* the CPU is offline */
                return error_set_errno(error, r, "Failed to open the event %s on CPU %d",
                                       setup->collect->events->list[event].name, cpu);
        }
    return 0;
}

static int events_start(const struct collector_setup *setup, void **ret_state, struct error *error)
{
    struct events_collector *collector = memory_zalloc(1, sizeof(*collector));
    collector->recorder = setup->recorder;
    collector->rate_hz = setup->collect->frequency_hz;
    collector->cpu_count = (size_t)MAX(libbpf_num_possible_cpus(), 1);
    collector->last =
        memory_zalloc(BPF_SAMPLED_EVENTS_MAX * collector->cpu_count, sizeof(*collector->last));
    collector->paces = memory_zalloc(collector->cpu_count, sizeof(*collector->paces));
    int r = bpf_probes_open(setup->sampler, "assay_events", bpf_events_object,
                            bpf_events_object_length, &collector->probes, error);
    struct bpf_event_settings settings = {.gap_ns = 1000000000u / setup->collect->frequency_hz};
    if (!r)
        r = bpf_probes_set_constants(collector->probes, ".rodata.events", &settings,
                                     sizeof(settings));
    if (!r)
        r = bpf_probes_load(collector->probes, error);
    if (!r)
        r = open_all(collector, setup, error);
    if (r < 0) {
        events_stop(collector);
        return r;
    }
    *ret_state = collector;
    return 0;
}

static void events_take_sample(void *state, const struct recorder_sample *sample,
                               const struct bpf_sample_event *event)
{
    struct events_collector *collector = state;
    if (event->id >= collector->recorder->events->count || event->cpu >= collector->cpu_count)
        return;
    struct last *last = &collector->last[event->id * collector->cpu_count + event->cpu];
    uint64_t value = event->value - MIN(event->value, last->added);
    *last = (struct last){
        .row = recorder_add_event(collector->recorder, sample, event->id, value),
        .epoch = collector->recorder->epoch,
    };
}

static void settle_event(struct events_collector *collector, uint32_t event)
{
    struct recorder *recorder = collector->recorder;
    int map = bpf_probes_map(collector->probes, "event_paces");
    if (bpf_map_lookup_elem(map, &event, collector->paces) < 0)
        return;
    for (size_t cpu = 0; cpu < collector->cpu_count; cpu++) {
        struct last *last = &collector->last[event * collector->cpu_count + cpu];
        uint64_t passed = collector->paces[cpu].passed;
        if (last->row == RECORDER_NO_ROW || last->epoch != recorder->epoch || passed <= last->added)
            continue;
        profile_add_value(recorder->profile, last->row, recorder->event_types[event],
                          (int64_t)MIN(passed - last->added, (uint64_t)INT64_MAX));
        last->added = passed;
    }
}

static void events_settle(void *state)
{
    struct events_collector *collector = state;
    for (size_t event = 0; event < collector->recorder->events->count; event++)
        settle_event(collector, (uint32_t)event);
}

/* On or off; the rate itself is a constant of the program. */
static int events_set_rate(void *state, unsigned rate_hz)
{
    struct events_collector *collector = state;
    int r = 0;
    for (size_t i = 0; i < collector->count && !r; i++)
        r = ioctl(collector->opened[i].fd, rate_hz ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE,
                  0);
    return r < 0 ? -errno : 0;
}

static unsigned events_rate(const void *state)
{
    return ((const struct events_collector *)state)->rate_hz;
}

static struct bpf_cost events_cost(const void *state)
{
    return bpf_probes_cost(((const struct events_collector *)state)->probes);
}

static void events_losses(const void *state, struct capture_loss *losses, size_t *count)
{
    const struct events_collector *collector = state;
    unsigned most = 0;
    for (size_t i = 0; i < collector->count; i++)
        if (collector->opened[i].hardware)
            most =
                MAX(most, perf_event_uncounted_percent(perf_event_times(collector->opened[i].fd)));
    if (most && *count < CAPTURE_LOSSES_MAX)
        losses[(*count)++] = (struct capture_loss){"events_uncounted", PERF_EVENTS_UNCOUNTED, most};
}

const struct collector_kind events_collector = {
    .name = "events",
    .collector = BPF_COLLECTOR_EVENTS,
    .modes = CAPTURE_EVENTS,
    .start = events_start,
    .stop = events_stop,
    .take_sample = events_take_sample,
    .settle = events_settle,
    .set_rate = events_set_rate,
    .rate = events_rate,
    .cost = events_cost,
    .losses = events_losses,
};
