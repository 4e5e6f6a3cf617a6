/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wall-clock time: what each thread did with it. The kernel side (bpf/wall.bpf.h) keeps exact
 * totals of each thread by state, and sends some waits with their stacks, chosen without bias. Here
 * both come together: what is sent is divided by the probability that it was, and then scaled, so
 * that the waits of a thread in one state add up to what it really spent in it.
 *
 * The rows of a profile get the label `state`, and the types of the modes that were asked for. One
 * thread at a time.
 */
#pragma once

#include "bpf/wall.h"
#include "capture/bpf/collector.h"

/* The tracepoint behind context switches (Linux 6.16); without it, that before them is used. */
#define WALL_LATE_HOOK "sched_exit_tp"

/* "running", "runnable", "lock": as the label has it. */
const char *wall_state_name(enum bpf_state state);

extern const struct collector_kind wall_collector;
