/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a traced process has mapped, told as records whenever something executable is new. Nobody
 * reports mappings to a tracer, so they are read from /proc when the size of the memory has
 * changed or code is met that isn't known, and not more often than is cheap.
 */
#pragma once

#include "capture/perf/perf_event.h"
#include "capture/ptrace/tracees.h"

/* Calls back with what the sample, which is about to be reported, needs to have been reported; with
 * the same time. */
void tracee_maps_update(struct tracee *tracee, const struct perf_record *sample,
                        perf_record_fn callback, void *context);

/* It runs another program: nothing is known. */
void tracee_maps_forget(struct tracee_process *process);
