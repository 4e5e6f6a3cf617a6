// SPDX-License-Identifier: Apache-2.0
// Frames of interpreters in samples of stopped threads: see tracee_runtime.h.

#include "capture/ptrace/tracee_runtime.h"

#include <stdlib.h>

#include "base/memory.h"

struct tracee_runtime {
    pid_t pid;
    enum bpf_runtime_kind kind; /* Python or V8 */
    union {
        struct python_process python;
        struct v8_binary v8;
    };
};

void tracee_runtimes_init(struct tracee_runtimes *runtimes)
{
    *runtimes = (struct tracee_runtimes){.lock = PTHREAD_MUTEX_INITIALIZER};
    runtime_reader_init(&runtimes->reader);
}

void tracee_runtimes_release(struct tracee_runtimes *runtimes)
{
    runtime_reader_release(&runtimes->reader);
    pthread_mutex_destroy(&runtimes->lock);
    free(runtimes->list);
}

/* With the lock. */
static struct tracee_runtime *find(const struct tracee_runtimes *runtimes, pid_t pid)
{
    for (size_t i = 0; i < runtimes->count; i++)
        if (runtimes->list[i].pid == pid)
            return &runtimes->list[i];
    return NULL;
}

static void put(struct tracee_runtimes *runtimes, const struct tracee_runtime *runtime)
{
    pthread_mutex_lock(&runtimes->lock);
    struct tracee_runtime *known = find(runtimes, runtime->pid);
    if (!known && runtimes->count < TRACEE_RUNTIMES_MAX) {
        array_reserve(runtimes->list, runtimes->capacity, runtimes->count + 1);
        known = &runtimes->list[runtimes->count++];
    }
    if (known)
        *known = *runtime;
    pthread_mutex_unlock(&runtimes->lock);
}

void tracee_runtimes_add(struct tracee_runtimes *runtimes, pid_t pid,
                         const struct interpreter *interpreter)
{
    struct tracee_runtime runtime = {.pid = pid, .kind = interpreter->kind};
    if (interpreter->kind == BPF_RUNTIME_PYTHON)
        runtime.python = interpreter->python;
    else if (interpreter->kind == BPF_RUNTIME_V8)
        runtime.v8 = interpreter->v8;
    else
        return;
    put(runtimes, &runtime);
}

static bool get(struct tracee_runtimes *runtimes, pid_t pid, struct tracee_runtime *ret_runtime)
{
    pthread_mutex_lock(&runtimes->lock);
    const struct tracee_runtime *known = find(runtimes, pid);
    if (known)
        *ret_runtime = *known;
    pthread_mutex_unlock(&runtimes->lock);
    return known != NULL;
}

void tracee_runtimes_fork(struct tracee_runtimes *runtimes, pid_t parent, pid_t child)
{
    struct tracee_runtime runtime;
    if (!get(runtimes, parent, &runtime))
        return;
    runtime.pid = child;
    put(runtimes, &runtime);
}

void tracee_runtimes_forget(struct tracee_runtimes *runtimes, pid_t pid)
{
    pthread_mutex_lock(&runtimes->lock);
    struct tracee_runtime *known = find(runtimes, pid);
    if (known)
        *known = runtimes->list[--runtimes->count];
    pthread_mutex_unlock(&runtimes->lock);
    if (runtimes->reader.pid == (uint32_t)pid)
        runtime_reader_release(&runtimes->reader);
}

void *tracee_runtimes_read(struct tracee_runtimes *runtimes, const struct tracee_stack *stack,
                           size_t *ret_bytes)
{
    struct tracee_runtime runtime;
    if (!get(runtimes, stack->pid, &runtime))
        return NULL;
    struct runtime_memory memory = runtime_reader_of(&runtimes->reader, (uint32_t)stack->pid);
    if (runtime.kind == BPF_RUNTIME_V8) {
        struct v8_frames frames;
        v8_frames_read(&runtime.v8, &memory, stack->sp, stack->stack, stack->stack_bytes, &frames);
        *ret_bytes = frames.count * sizeof(*frames.list);
        return frames.list;
    }
    struct python_chain chain;
    python_chain_read(&runtime.python, &memory, stack->thread_pointer, &chain);
    *ret_bytes = chain.count * sizeof(*chain.frames);
    return chain.frames;
}
