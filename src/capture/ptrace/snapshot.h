/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot of all threads of a process. Each thread is stopped by ptrace, without a signal,
 * only while its registers and the top of its stack are copied; the copies are walked when all run
 * again.
 */
#pragma once

#include "base/error.h"
#include "capture/record/processes.h"
#include "elf/unwind/unwind.h"
#include "runtime/python/walk.h"
#include "runtime/v8/walk.h"

#define SNAPSHOT_THREADS_MAX 65536
#define SNAPSHOT_STACK_BYTES (256u << 10) /* of one thread; deeper stacks are cut and say so */
#define SNAPSHOT_BYTES_MAX (1ull << 30)   /* of all; beyond it, each thread gets one page */
#define SNAPSHOT_FRAMES_MAX 4096          /* of one thread */
#define SNAPSHOT_WAIT_MS 200              /* for a thread that does not stop */

enum snapshot_runtime { SNAPSHOT_NATIVE, SNAPSHOT_PYTHON, SNAPSHOT_JAVA, SNAPSHOT_SCRIPT };

struct snapshot_frame {
    uint64_t address;              /* in the process; of the call, not behind it */
    uint64_t offset;               /* the same in the file */
    const struct module *module;   /* NULL: code of no file */
    enum snapshot_runtime runtime; /* unless native, these count, and not those above: */
    const char *function, *file;   /* as long as the snapshot; NULL: it can't be read */
    uint32_t line;
};

struct snapshot_thread {
    pid_t tid;
    char name[64];
    char state; /* the kernel's letter, as it was before the thread was stopped */
    bool read;  /* false: it could not be stopped; there are no frames */
    bool in_system_call;
    bool holds_lock; /* Python's global interpreter lock, when it was stopped */
    enum unwind_end end;
    struct snapshot_frame *frames; /* innermost first */
    size_t frame_count;

    struct unwind_registers registers;
    struct python_chain python;
    struct v8_frames scripts;
    uint8_t *stack; /* gone once it has been walked */
    size_t stack_bytes;
};

struct snapshot {
    pid_t pid;
    pid_t living_tid; /* under which /proc shows memory and files */
    char name[64];
    struct snapshot_thread *threads; /* by tid */
    size_t count, capacity;
    size_t refused;          /* threads beyond SNAPSHOT_THREADS_MAX */
    int64_t longest_stop_ns; /* from the request to the release */
    struct modules modules;
    struct processes processes;
    struct interpreters interpreters;
    bool interpreter_frames; /* native frames of interpreters are kept */
};

/* `pid` may be any thread's. `interpreter_frames`: native frames of interpreters are kept. What was
 * filled is released by snapshot_release, also after a failure. Uses a thread of its own, and
 * SIGCHLD until it returns. */
int snapshot_take(struct snapshot *snapshot, pid_t pid, bool interpreter_frames,
                  struct error *error);
void snapshot_release(struct snapshot *snapshot);

/* "running", "sleeping", ... */
const char *snapshot_state_name(char state);
