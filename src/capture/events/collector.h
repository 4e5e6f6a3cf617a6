/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of hardware and software events through BPF: page faults, cycles, context switches. */
#pragma once

#include "capture/bpf/collector.h"

extern const struct collector_kind events_collector;
