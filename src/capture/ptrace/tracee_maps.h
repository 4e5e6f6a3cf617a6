/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mappings of a traced process: writes a record for each new executable mapping. ptrace doesn't
 * report mappings, so they are read from /proc when the process's memory size has changed or a
 * sample hits unknown code, at a limited rate.
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
