/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python's frames in samples of stopped threads. The thread that adds samples up finds interpreters
 * of processes, since it knows what they have mapped, and tells this; the thread that traces reads
 * the frames while a thread is stopped. Names are read later.
 */
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include "runtime/python/walk.h"

#define TRACEE_PYTHONS_MAX 4096 /* processes; others have native frames */

struct tracee_pythons {
    pthread_mutex_t lock;
    struct tracee_python *list;
    size_t count, capacity;
    struct runtime_reader reader; /* the tracing thread's */
};

void tracee_pythons_init(struct tracee_pythons *pythons);
void tracee_pythons_release(struct tracee_pythons *pythons);

/* Any thread's. */
void tracee_pythons_add(struct tracee_pythons *pythons, pid_t pid,
                        const struct python_process *python);

/* The tracing thread's: a process was forked, or has executed another program or ended. */
void tracee_pythons_fork(struct tracee_pythons *pythons, pid_t parent, pid_t child);
void tracee_pythons_forget(struct tracee_pythons *pythons, pid_t pid);

/* The frames of a stopped thread. False when its process has no interpreter that is known. */
bool tracee_pythons_read(struct tracee_pythons *pythons, pid_t pid, uint64_t thread_pointer,
                         struct python_chain *ret_chain);
