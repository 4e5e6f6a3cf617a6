/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wall-clock time by goroutine: a goroutine's wait is not a thread's wait. Go programs are looked
 * at a few times a second; what each goroutine does then stands for the time since the last look,
 * with its stack. All of it happens in user space, within a part of one CPU.
 */
#pragma once

#include "capture/bpf/collector.h"

extern const struct collector_kind goroutines_collector;
