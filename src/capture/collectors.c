// SPDX-License-Identifier: Apache-2.0
// All collectors: see bpf/collector.h. The sampler's own ticks of the CPU clock are not one of
// them.

#include "capture/bpf/collector.h"
#include "capture/events/collector.h"
#include "capture/faults/collector.h"
#include "capture/goroutines/collector.h"
#include "capture/heap/collector.h"
#include "capture/rss/collector.h"
#include "capture/wall/wall.h"

const struct collector_kind *const collector_kinds[] = {
    &wall_collector,
    &heap_collector,
    &goroutines_collector,
    &events_collector,
    &faults_collector,
    &rss_collector,
    NULL,
};
