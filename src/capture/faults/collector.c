// SPDX-License-Identifier: Apache-2.0
// New memory through BPF: see collector.h.

#include "capture/faults/collector.h"

#include <bpf/libbpf.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "bpf/chance.h"
#include "bpf/faults.h"
#include "capture/bpf/object.h"

#define MEAN_BYTES (512u << 10)      /* of a recording */
#define MEAN_ALWAYS_BYTES (4u << 20) /* where all processes are sampled all the time */
#define RATE_HZ 1000                 /* what a guard divides; the mean grows as much */

struct faults {
    struct recorder *recorder;
    struct bpf_probes *probes;
    struct bpf_faults_state *state;
    uint64_t mean_bytes;
    unsigned rate_hz;
    uint32_t epoch;
    unsigned types[BPF_FAULTS_KINDS];
};

static void faults_stop(void *state)
{
    struct faults *faults = state;
    if (!faults)
        return;
    bpf_probes_free(faults->probes);
    free(faults);
}

static int load(struct faults *faults, const struct collector_setup *setup, struct error *error)
{
    int cpus = libbpf_num_possible_cpus();
    struct bpf_faults_settings settings = {.page_bytes = (unsigned)sysconf(_SC_PAGESIZE),
                                           .cpus = cpus > 0 ? (unsigned)cpus : 1};
    int r = bpf_probes_open(setup->sampler, "assay_faults", bpf_faults_object,
                            bpf_faults_object_length, &faults->probes, error);
    if (!r)
        r = bpf_probes_set_constants(faults->probes, ".rodata.faults", &settings, sizeof(settings));
    if (!r && bpf_probes_load(faults->probes, error) < 0)
        r = error_set(error, -ENOTSUP,
                      "New memory requires BPF and the tracepoint kmem:rss_stat (Linux 5.5).");
    if (r < 0)
        return r;
    faults->state = bpf_probes_table(faults->probes, "faults_state");
    if (!faults->state)
        return error_set_errno(error, -ENOMEM, "Cannot map the table of the faults collector");
    faults->state->mean_bytes = faults->mean_bytes;
    r = bpf_probes_attach(faults->probes, "assay_rss");
    return r < 0 ? error_set_errno(error, r, "Cannot attach to the tracepoint kmem:rss_stat") : 0;
}

static int faults_start(const struct collector_setup *setup, void **ret_state, struct error *error)
{
    bool always = !setup->collect->pid_count && setup->modes & ~(unsigned)CAPTURE_FAULTS;
    if (setup->cgroup >= 0)
        return error_set(error, -ENOTSUP,
                         "Mode faults records a command, processes (--pid) or everything (--all), "
                         "not a cgroup.");
    struct faults *faults = memory_zalloc(1, sizeof(*faults));
    faults->recorder = setup->recorder;
    faults->rate_hz = RATE_HZ;
    faults->mean_bytes = setup->collect->mean_bytes ? setup->collect->mean_bytes
                         : always                   ? MEAN_ALWAYS_BYTES
                                                    : MEAN_BYTES;
    faults->mean_bytes = MIN(faults->mean_bytes, CHANCE_MEAN_MAX);
    int r = load(faults, setup, error);
    if (r < 0) {
        faults_stop(faults);
        return r;
    }
    *ret_state = faults;
    return 0;
}

static void follow_profile(struct faults *faults)
{
    static const char *const names[BPF_FAULTS_KINDS] = {[BPF_FAULTS_FILE] = "faulted_file",
                                                        [BPF_FAULTS_ANON] = "faulted_anon",
                                                        [BPF_FAULTS_SHMEM] = "faulted_shmem"};
    static const unsigned order[] = {BPF_FAULTS_ANON, BPF_FAULTS_FILE, BPF_FAULTS_SHMEM};
    struct profile *profile = faults->recorder->profile;
    if (faults->epoch == faults->recorder->epoch)
        return;
    faults->epoch = faults->recorder->epoch;
    for (size_t i = 0; i < ARRAY_LENGTH(order); i++)
        faults->types[order[i]] = profile_type(profile, profile_cstring(profile, names[order[i]]),
                                               profile_cstring(profile, "bytes"));
    if (faults->recorder->no_cpu)
        profile->default_type = profile_cstring(profile, "faulted_anon");
}

static void faults_take_sample(void *state, const struct recorder_sample *sample,
                               const struct bpf_sample_event *event)
{
    struct faults *faults = state;
    struct recorder *recorder = faults->recorder;
    if (!recorder->profile || event->id >= BPF_FAULTS_KINDS || event->id == BPF_FAULTS_SWAPPED)
        return;
    uint32_t labels = recorder_labels(recorder, sample);
    if (labels == CAPTURE_UNWANTED) {
        recorder->unwanted++;
        return;
    }
    follow_profile(faults);
    recorder->samples++;
    uint32_t stack = profile_stack(recorder->profile, sample->frames, sample->frame_count);
    size_t row = profile_sample(recorder->profile, stack, labels,
                                sample->context ? sample->context->link : 0,
                                sample->time_ns + (uint64_t)recorder->epoch_ns);
    profile_add_value(recorder->profile, row, faults->types[event->id],
                      (int64_t)chance_stands_for(event->value, event->detail[0]));
}

/* With fewer samples, of which each stands for more. */
static int faults_set_rate(void *state, unsigned rate_hz)
{
    struct faults *faults = state;
    if (!rate_hz) {
        faults->state->mean_bytes = 0;
        bpf_probes_detach(faults->probes, "assay_rss");
        return 0;
    }
    faults->rate_hz = rate_hz;
    faults->state->mean_bytes =
        MIN(faults->mean_bytes * MAX(RATE_HZ / rate_hz, 1u), (uint64_t)CHANCE_MEAN_MAX);
    return bpf_probes_attach(faults->probes, "assay_rss");
}

static unsigned faults_rate(const void *state)
{
    return ((const struct faults *)state)->rate_hz;
}

static struct bpf_cost faults_cost(const void *state)
{
    return bpf_probes_cost(((const struct faults *)state)->probes);
}

const struct collector_kind faults_collector = {
    .name = "faults",
    .collector = BPF_COLLECTOR_FAULTS,
    .modes = CAPTURE_FAULTS,
    .start = faults_start,
    .stop = faults_stop,
    .take_sample = faults_take_sample,
    .set_rate = faults_set_rate,
    .rate = faults_rate,
    .cost = faults_cost,
};
