// SPDX-License-Identifier: Apache-2.0
// Python's frames in samples of stopped threads: see tracee_python.h.

#include "capture/ptrace/tracee_python.h"

#include <stdlib.h>

#include "base/memory.h"

struct tracee_python {
    pid_t pid;
    struct python_process python;
};

void tracee_pythons_init(struct tracee_pythons *pythons)
{
    *pythons = (struct tracee_pythons){.lock = PTHREAD_MUTEX_INITIALIZER};
    runtime_reader_init(&pythons->reader);
}

void tracee_pythons_release(struct tracee_pythons *pythons)
{
    runtime_reader_release(&pythons->reader);
    pthread_mutex_destroy(&pythons->lock);
    free(pythons->list);
}

/* With the lock. */
static struct tracee_python *find(const struct tracee_pythons *pythons, pid_t pid)
{
    for (size_t i = 0; i < pythons->count; i++)
        if (pythons->list[i].pid == pid)
            return &pythons->list[i];
    return NULL;
}

void tracee_pythons_add(struct tracee_pythons *pythons, pid_t pid,
                        const struct python_process *python)
{
    pthread_mutex_lock(&pythons->lock);
    struct tracee_python *known = find(pythons, pid);
    if (!known && pythons->count < TRACEE_PYTHONS_MAX) {
        array_reserve(pythons->list, pythons->capacity, pythons->count + 1);
        known = &pythons->list[pythons->count++];
    }
    if (known)
        *known = (struct tracee_python){.pid = pid, .python = *python};
    pthread_mutex_unlock(&pythons->lock);
}

static bool get(struct tracee_pythons *pythons, pid_t pid, struct python_process *ret_python)
{
    pthread_mutex_lock(&pythons->lock);
    const struct tracee_python *known = find(pythons, pid);
    if (known)
        *ret_python = known->python;
    pthread_mutex_unlock(&pythons->lock);
    return known != NULL;
}

void tracee_pythons_fork(struct tracee_pythons *pythons, pid_t parent, pid_t child)
{
    struct python_process python;
    if (get(pythons, parent, &python))
        tracee_pythons_add(pythons, child, &python);
}

void tracee_pythons_forget(struct tracee_pythons *pythons, pid_t pid)
{
    pthread_mutex_lock(&pythons->lock);
    struct tracee_python *known = find(pythons, pid);
    if (known)
        *known = pythons->list[--pythons->count];
    pthread_mutex_unlock(&pythons->lock);
    if (pythons->reader.pid == (uint32_t)pid)
        runtime_reader_release(&pythons->reader);
}

bool tracee_pythons_read(struct tracee_pythons *pythons, pid_t pid, uint64_t thread_pointer,
                         struct python_chain *ret_chain)
{
    struct python_process python;
    if (!get(pythons, pid, &python))
        return false;
    struct runtime_memory memory = runtime_reader_of(&pythons->reader, (uint32_t)pid);
    python_chain_read(&python, &memory, thread_pointer, ret_chain);
    return true;
}
