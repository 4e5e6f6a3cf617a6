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
#include "capture/unwind_pool.h"

#define BPF_POOL_BYTES_DEFAULT (16u << 20)

struct bpf_sampler_options {
    bool all;
    int cgroup;        /* a descriptor of its folder, or -1 */
    const pid_t *pids; /* they, and all that they start from now on */
    size_t pid_count;
    bool enable_on_exec;
    unsigned frequency_hz;
    bool kernel, user;
    uint64_t pool_bytes; /* 0: the default */
    bool check;          /* whole walks come as copies too, to compare */
};

struct bpf_sampler;

/* The error says what stands in the way. */
int bpf_sampler_new(const struct bpf_sampler_options *options, struct bpf_sampler **ret_sampler,
                    struct error *error);
void bpf_sampler_free(struct bpf_sampler *sampler);

struct unwind_tables bpf_sampler_tables(const struct bpf_sampler *sampler);

/* What walks know of a process. */
int bpf_sampler_set_process(struct bpf_sampler *sampler, uint32_t pid,
                            const struct bpf_process *process);
void bpf_sampler_forget_process(struct bpf_sampler *sampler, uint32_t pid);
void bpf_sampler_forget_processes(struct bpf_sampler *sampler);
/* Every stack is sent anew. */
void bpf_sampler_forget_stacks(struct bpf_sampler *sampler);

/* So many samples may be sent as copies from now on. */
void bpf_sampler_allow_copies(struct bpf_sampler *sampler, unsigned count);

/* Takes samples at another rate, or none at all. */
int bpf_sampler_set_rate(struct bpf_sampler *sampler, unsigned frequency_hz);
int bpf_sampler_pause(struct bpf_sampler *sampler, bool pause);
/* Of these processes and what they start from now on; of all with none. For samplers of all. */
int bpf_sampler_narrow(struct bpf_sampler *sampler, const uint32_t *pids, size_t count);

/* Has the kernel measure how long programs run; and how long ours have: -1 when it doesn't. */
void bpf_sampler_measure(struct bpf_sampler *sampler);
int bpf_sampler_measure_all(void); /* a descriptor: as long as that is open; or -1 */
int64_t bpf_sampler_run_ns(const struct bpf_sampler *sampler);

/* Becomes readable when enough has come to be worth it. */
int bpf_sampler_descriptor(const struct bpf_sampler *sampler);

/* An event as bpf/shared.h describes it; its length has been checked. */
typedef void (*bpf_event_fn)(void *context, const void *event);

/* Hands over what has come. */
int bpf_sampler_read(struct bpf_sampler *sampler, bpf_event_fn callback, void *context);

void bpf_sampler_counters(const struct bpf_sampler *sampler, uint64_t ret_counters[BPF_COUNTERS]);

/* Processes that the kernel had no room for when they were forked. */
uint64_t bpf_sampler_fork_full(const struct bpf_sampler *sampler);

/* By the hardware's cycles, or else by the CPU clock. */
bool bpf_sampler_counts_cycles(const struct bpf_sampler *sampler);
