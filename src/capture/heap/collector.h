/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector of heap profiles, on the probes otel_memory:alloc and otel_memory:free of files
 * that processes have mapped (attach.h): of the processes of a recording, or of all of them.
 * Any file with such probes works: libassay_heap.so, an allocator, a runtime.
 */
#pragma once

#include "capture/bpf/collector.h"

extern const struct collector_kind heap_collector;
