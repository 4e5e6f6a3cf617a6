/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Levels of memory: what each process holds by the kernel's accounts, which has no stacks, beside
 * what its cgroup uses and may use. Processes are looked at in turn, in user space, within a part
 * of one CPU, and profiles have what was seen last.
 */
#pragma once

#include "capture/bpf/collector.h"

extern const struct collector_kind rss_collector;
