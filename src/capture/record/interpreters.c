// SPDX-License-Identifier: Apache-2.0
// Interpreters of processes: see interpreters.h.

#include "capture/record/interpreters.h"

#include <stdlib.h>

#include "base/memory.h"
#include "capture/record/processes.h"

/* An interpreter that is starting is ready after some milliseconds; after so many looks, each later
 * than the one before, it is taken for something else. */
#define LOOK_FIRST_NS 5000000
#define LOOKS_MAX 14

void interpreters_init(struct interpreters *interpreters)
{
    *interpreters = (struct interpreters){0};
    runtime_reader_init(&interpreters->reader);
}

void interpreters_release(struct interpreters *interpreters)
{
    runtime_reader_release(&interpreters->reader);
    python_codes_release(&interpreters->codes);
}

bool interpreter_evaluates(const struct interpreter *interpreter, uint64_t address)
{
    if (!interpreter)
        return false;
    const struct bpf_python *python = &interpreter->python.offsets.walk;
    return (address >= python->evaluate[0] && address < python->evaluate[1]) ||
           (address >= python->cold[0] && address < python->cold[1]);
}

struct interpreter *interpreter_ref(struct interpreter *interpreter)
{
    if (interpreter)
        interpreter->users++;
    return interpreter;
}

void interpreter_unref(struct interpreter *interpreter)
{
    if (!interpreter || --interpreter->users)
        return;
    if (interpreter->place)
        interpreter->place->generation = 0;
    if (interpreter->runtime)
        interpreter->owner->places[interpreter->runtime % BPF_RUNTIMES_MAX] = NULL;
    free(interpreter);
}

/* Tells the kernel. Places are used in turn, so that a walk that has just looked at one that was
 * given back finds it unchanged, or another generation. */
static void describe(struct interpreters *interpreters, struct interpreter *interpreter)
{
    for (uint32_t i = 0; interpreters->table && i < BPF_RUNTIMES_MAX; i++) {
        uint32_t at = interpreters->next_place++ % BPF_RUNTIMES_MAX;
        struct bpf_python *place = &interpreters->table[at];
        if (place->generation || interpreters->places[at])
            continue;
        uint32_t generation =
            1 + interpreters->generation++ % ((1u << (32 - BPF_RUNTIME_GENERATION_SHIFT)) - 1);
        *place = interpreter->python.offsets.walk;
        place->generation = generation;
        interpreter->place = place;
        interpreter->runtime = generation << BPF_RUNTIME_GENERATION_SHIFT | at;
        interpreters->places[at] = interpreter;
        return;
    }
    interpreters->places_full += interpreters->table != NULL;
}

static const struct mapping *find_binary(const struct process *process)
{
    for (size_t i = 0; i < process->count; i++)
        if (process->mappings[i].module && process->mappings[i].module->python)
            return &process->mappings[i];
    return NULL;
}

const struct python_binary *interpreters_binary(const struct process *process)
{
    const struct mapping *mapping = find_binary(process);
    return mapping ? mapping->module->python : NULL;
}

bool interpreters_look(struct interpreters *interpreters, struct process *process, int64_t now_ns)
{
    if (interpreters->off || process->interpreter || process->interpreter_looks >= LOOKS_MAX ||
        now_ns < process->interpreter_next_ns)
        return false;
    const struct mapping *mapping = find_binary(process);
    if (!mapping)
        return false;
    process->interpreter_next_ns = now_ns + (LOOK_FIRST_NS << process->interpreter_looks++);
    struct runtime_memory memory = runtime_reader_of(&interpreters->reader, process->pid);
    struct python_process python;
    const char *reason;
    enum python_attach attached =
        python_attach(mapping->module->python, mapping->bias, &memory, &python, &reason);
    if (attached == PYTHON_REFUSED)
        process->interpreter_looks = LOOKS_MAX;
    if (attached != PYTHON_ATTACHED) {
        if (process->interpreter_looks == LOOKS_MAX) {
            interpreters->refused++;
            interpreters->refusal = reason;
        }
        return false;
    }
    struct interpreter *interpreter = memory_zalloc(1, sizeof(*interpreter));
    interpreter->users = 1;
    interpreter->owner = interpreters;
    interpreter->python = python;
    describe(interpreters, interpreter);
    process->interpreter = interpreter;
    interpreters->attached++;
    return true;
}

void interpreters_take_code(struct interpreters *interpreters, const struct bpf_code_event *event)
{
    struct python_code_mark mark = {.address = event->address,
                                    .file = event->file,
                                    .name = event->name,
                                    .lines = event->lines,
                                    .first_line = event->first_line};
    const struct interpreter *interpreter = interpreters->places[event->runtime % BPF_RUNTIMES_MAX];
    if (interpreter && interpreter->runtime != event->runtime)
        interpreter = NULL;
    struct runtime_memory memory = runtime_reader_of(&interpreters->reader, event->pid);
    python_codes_take(&interpreters->codes, interpreter ? &interpreter->python : NULL, &memory,
                      event->pid, event->identity, &mark);
}
