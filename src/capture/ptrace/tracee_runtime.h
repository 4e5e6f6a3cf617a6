/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of interpreters in samples of stopped threads. The thread that adds samples up finds
 * interpreters of processes, since it knows what they have mapped, and tells this; the thread that
 * traces reads the frames while a thread is stopped. Names are read later.
 */
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include "capture/record/interpreters.h"
#include "runtime/python/walk.h"
#include "runtime/v8/walk.h"

#define TRACEE_RUNTIMES_MAX 4096 /* processes; others have native frames */

struct tracee_runtimes {
    pthread_mutex_t lock;
    struct tracee_runtime *list;
    size_t count, capacity;
    struct runtime_reader reader; /* the tracing thread's */
};

void tracee_runtimes_init(struct tracee_runtimes *runtimes);
void tracee_runtimes_release(struct tracee_runtimes *runtimes);

/* Any thread's. */
void tracee_runtimes_add(struct tracee_runtimes *runtimes, pid_t pid,
                         const struct interpreter *interpreter);

/* The tracing thread's: a process was forked, or has executed another program or ended. */
void tracee_runtimes_fork(struct tracee_runtimes *runtimes, pid_t parent, pid_t child);
void tracee_runtimes_forget(struct tracee_runtimes *runtimes, pid_t pid);

/* A stopped thread, with a copy of its stack. */
struct tracee_stack {
    pid_t pid;
    uint64_t thread_pointer, sp;
    const uint8_t *stack;
    size_t stack_bytes;
};

/* Its frames: an array of struct python_frame or struct v8_frame, which is the caller's, with its
 * size in bytes. NULL when the process has no interpreter that is known. */
void *tracee_runtimes_read(struct tracee_runtimes *runtimes, const struct tracee_stack *stack,
                           size_t *ret_bytes);
