/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cgroups that start processes faster than the kernel's lists of mappings are worth keeping for
 * them: their children are looked up when they are sampled. BPF counts (src/bpf/sampler.bpf.c).
 */
#pragma once

#include <stdint.h>

struct excess_list;

/* The counts of `passed_ns` since the last call; `limit` is of processes and threads that one
 * cgroup starts in a second. `map` is a descriptor. */
void bpf_cgroups_check(int map, unsigned limit, int64_t passed_ns, int64_t now_ns,
                       struct excess_list *excess);
