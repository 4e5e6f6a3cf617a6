/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples without any privilege, where kernel.perf_event_paranoid forbids perf events: of a child
 * process of our own and of all that it starts, by ptrace.
 *
 * A thread of its own traces. At most PTRACE_SAMPLER_HZ times a second it looks for threads that
 * are running (those that sleep are left alone, so that no system call is disturbed), stops each
 * without a signal while registers and the top of the stack are copied, some tens of microseconds,
 * and lets it go on. A sample's period is not the time between looks but the CPU time that the
 * thread has used since its last sample, by the scheduler's own count: sums are exact at any rate,
 * and only the places are sampled. What a thread leaves when it ends is added to the next sample of
 * its process, and what a process leaves to the next process of the same name; where all processes
 * of a name are too short to be met, some are sampled at their end.
 *
 * Known bias: a thread that is in a system call is seen at the call's end, without kernel
 * frames; tracee_asking.h tells how threads that wait for a CPU are treated. What a traced program
 * can notice: exits, forks and signals cost some microseconds more; it cannot be traced by others
 * (strace, gdb) or trace its children, which leak checkers do at the end; programs that are setuid
 * run without that; and a system call that a thread enters in the very moment it is stopped may be
 * interrupted, as by a signal whose handler restarts calls. A program that is stopped by job
 * control stays so.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "capture/perf/perf_event.h"

#define PTRACE_SAMPLER_HZ 49                    /* at most; higher frequencies are lowered to it */
#define PTRACE_SAMPLER_STACK_BYTES (256u << 10) /* deeper stacks are cut and say so */

struct ptrace_sampler;
struct interpreter;

/*
 * Traces our own child, from its next exec on if it is about to execute a program (it may wait for
 * that: see the gate of `assay record`). SIGCHLD is blocked in the calling thread, and has its
 * default action, until ptrace_sampler_free. Until then nobody may wait for the child:
 * ptrace_sampler_exit_status has its status. All functions are called by one thread. The error says
 * what stands in the way.
 */
int ptrace_sampler_new(pid_t child, unsigned frequency_hz, struct ptrace_sampler **ret_sampler,
                       struct error *error);

/* Processes that are still there go on, untraced. Takes NULL. */
void ptrace_sampler_free(struct ptrace_sampler *sampler);

/* Waits for records, at most `timeout_ms`, and hands over those that have come, in the order of
 * time. Returns 0, or 1 when the child and all that it started have ended. Mappings are reported as
 * far as they are known before the sample that needs them. */
int ptrace_sampler_read(struct ptrace_sampler *sampler, int timeout_ms, perf_record_fn callback,
                        void *context);

/* True once the child has ended; the status is as waitpid gives it. Children of its own may be
 * there still. */
bool ptrace_sampler_exit_status(struct ptrace_sampler *sampler, int *ret_status);

/* From now on, samples of this process and of those that it forks have the frames of its
 * interpreter, if that is one whose frames are read while a thread is stopped (tracee_runtime.h).
 */
void ptrace_sampler_read_runtime(struct ptrace_sampler *sampler, pid_t pid,
                                 const struct interpreter *interpreter);

/* Between two looks. */
uint64_t ptrace_sampler_period_ns(const struct ptrace_sampler *sampler);

/* CPU time that no sample stands for, of processes too short to be met; final once
 * ptrace_sampler_read has returned 1. */
uint64_t ptrace_sampler_unsettled_ns(struct ptrace_sampler *sampler);

/* Threads that were not sampled because there were more than TRACEES_MAX. */
uint64_t ptrace_sampler_refused(struct ptrace_sampler *sampler);
