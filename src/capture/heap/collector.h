/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector of heap profiles: finds the probes otel_memory:alloc and otel_memory:free in the
 * files that the processes have mapped, and attaches to them. Whoever has such probes will do:
 * libassay_heap.so, an allocator, a runtime.
 */
#pragma once

#include "capture/bpf/collector.h"

extern const struct collector_kind heap_collector;
