/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF sampler (src/bpf/sampler.bpf.c): loaded, attached to perf events of a machine, a cgroup
 * or threads, and drained. It needs root, or CAP_BPF and CAP_PERFMON, and a kernel with BTF.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "bpf/shared.h"
#include "capture/bpf/probes.h"
#include "capture/bpf/unwind_pool.h"

#define BPF_POOL_BYTES_DEFAULT (16u << 20)

struct bpf_sampler_options {
    bool all;
    int cgroup;        /* a descriptor of its directory, or -1 */
    const pid_t *pids; /* they, and all that they start from now on */
    size_t pid_count;
    bool enable_on_exec;
    unsigned frequency_hz;
    bool kernel, user;
    uint64_t pool_bytes;     /* 0: the default */
    unsigned copies;         /* samples that may come as copies in each BPF_COPY_TURN_NS */
    bool deep_buffers;       /* room for seconds in which nobody reads, and for long copies */
    bool check;              /* whole walks come as copies too, to compare */
    bool ticks;              /* of the CPU clock */
    bool interpreter_frames; /* native frames of interpreters are wanted */
};

struct bpf_sampler;

/* Whether tests want a feature of the kernel left unused: ASSAY_BPF_WITHOUT is a list of names. */
bool bpf_sampler_without(const char *feature);

/* Loads everything, and takes no samples before bpf_sampler_start. The error says what stands in
 * the way. */
int bpf_sampler_new(const struct bpf_sampler_options *options, struct bpf_sampler **ret_sampler,
                    struct error *error);
int bpf_sampler_start(struct bpf_sampler *sampler, struct error *error);
void bpf_sampler_free(struct bpf_sampler *sampler);

struct unwind_tables bpf_sampler_tables(const struct bpf_sampler *sampler);

/* The state of a process for walks. */
int bpf_sampler_set_process(struct bpf_sampler *sampler, uint32_t pid,
                            const struct bpf_process *process);
void bpf_sampler_forget_process(struct bpf_sampler *sampler, uint32_t pid);
/* Whether what is known of a process is dropped with its end. Without it, another process with the
 * same pid is told by when it was started; it costs less where processes are many. */
int bpf_sampler_follow_ends(struct bpf_sampler *sampler, bool follow);
/* The descriptor of the map of cgroups, for bpf_cgroups.h. */
int bpf_sampler_cgroups(const struct bpf_sampler *sampler);
void bpf_sampler_forget_processes(struct bpf_sampler *sampler);
/* Descriptions of interpreters: BPF_RUNTIMES_MAX of them. */
struct bpf_runtime *bpf_sampler_runtimes(const struct bpf_sampler *sampler);
/* Where threads say what they work on: BPF_CONTEXTS_MAX of them. */
struct bpf_context *bpf_sampler_contexts(const struct bpf_sampler *sampler);
/* Every stack is sent anew, and every code object. */
void bpf_sampler_forget_stacks(struct bpf_sampler *sampler);

/* Takes samples at another rate, or none at all. */
int bpf_sampler_set_rate(struct bpf_sampler *sampler, unsigned frequency_hz);
int bpf_sampler_pause(struct bpf_sampler *sampler, bool pause);
/* No samples after this time (CLOCK_MONOTONIC), however late user space notices; 0: no end. */
void bpf_sampler_set_deadline(struct bpf_sampler *sampler, uint64_t until_ns);
/* Of these processes and what they start from now on; of all with none. For samplers of all. */
int bpf_sampler_narrow(struct bpf_sampler *sampler, const uint32_t *pids, size_t count);

/* Has the kernel measure how long programs run; whether it does for us; and how long the sampler's
 * own have, which doesn't count those of collectors. */
void bpf_sampler_measure(struct bpf_sampler *sampler);
int bpf_sampler_measure_all(void); /* a descriptor: as long as that is open; or -1 */
bool bpf_sampler_is_measuring(const struct bpf_sampler *sampler);
struct bpf_cost bpf_sampler_cost(const struct bpf_sampler *sampler);

/* Becomes readable when enough has come to be worth it. */
int bpf_sampler_descriptor(const struct bpf_sampler *sampler);

/* An event as bpf/shared.h describes it; its length has been checked. */
typedef void (*bpf_event_fn)(void *context, const void *event);

/* Hands over what has come, for at most that long: what is left stays for the next time, and 1 is
 * returned. */
int bpf_sampler_read(struct bpf_sampler *sampler, int64_t limit_ns, bpf_event_fn callback,
                     void *context);

void bpf_sampler_counters(const struct bpf_sampler *sampler, uint64_t ret_counters[BPF_COUNTERS]);

/* Processes that the kernel had no room for when they were forked. */
uint64_t bpf_sampler_fork_full(const struct bpf_sampler *sampler);

/* By the hardware's cycles, or else by the CPU clock. */
bool bpf_sampler_counts_cycles(const struct bpf_sampler *sampler);
