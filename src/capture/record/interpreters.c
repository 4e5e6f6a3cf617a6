// SPDX-License-Identifier: Apache-2.0
// Interpreters of processes: see interpreters.h.

#include "capture/record/interpreters.h"

#include <stdlib.h>

#include "base/memory.h"
#include "capture/record/processes.h"
#include "runtime/php/code.h"
#include "runtime/ruby/code.h"

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
    hotspot_codes_release(&interpreters->hotspot_codes);
    runtime_codes_release(&interpreters->codes);
    v8_scripts_release(&interpreters->scripts);
}

bool interpreter_evaluates(const struct interpreter *interpreter, uint64_t address)
{
    if (!interpreter || interpreter->kind != BPF_RUNTIME_PYTHON || interpreter->python.tail_calls)
        return false;
    const struct bpf_python *python = &interpreter->python.offsets.walk;
    return (address >= python->evaluate[0] && address < python->evaluate[1]) ||
           (address >= python->cold[0] && address < python->cold[1]);
}

bool interpreter_evaluates_anywhere(const struct interpreter *interpreter)
{
    return interpreter && interpreter->kind == BPF_RUNTIME_PYTHON && interpreter->python.tail_calls;
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
        struct bpf_runtime *place = &interpreters->table[at];
        if (place->generation || interpreters->places[at])
            continue;
        uint32_t generation =
            1 + interpreters->generation++ % ((1u << (32 - BPF_RUNTIME_GENERATION_SHIFT)) - 1);
        place->kind = interpreter->kind;
        if (interpreter->kind == BPF_RUNTIME_PYTHON)
            place->python = interpreter->python.offsets.walk;
        else if (interpreter->kind == BPF_RUNTIME_HOTSPOT)
            place->hotspot = interpreter->hotspot.walk;
        else if (interpreter->kind == BPF_RUNTIME_PHP)
            place->php = interpreter->php.walk;
        else if (interpreter->kind == BPF_RUNTIME_RUBY)
            place->ruby = interpreter->ruby.walk;
        else
            place->v8 = interpreter->v8.walk;
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
    for (size_t i = 0; i < process->count; i++) {
        const struct module *module = process->mappings[i].module;
        if (module &&
            (module->python || module->hotspot || module->v8 || module->php || module->ruby))
            return &process->mappings[i];
    }
    return NULL;
}

const struct module *interpreters_binary(const struct process *process)
{
    const struct mapping *mapping = find_binary(process);
    return mapping ? mapping->module : NULL;
}

void interpreters_describe(const struct process *process, const char **ret_name,
                           const char **ret_version)
{
    const struct mapping *mapping = find_binary(process);
    *ret_name = *ret_version = "";
    if (!mapping)
        return;
    const struct interpreter *interpreter = process->interpreter;
    const struct module *module = mapping->module;
    *ret_name = module->python    ? "python"
                : module->hotspot ? "java"
                : module->v8      ? "v8"
                : module->php     ? "php"
                                  : "ruby";
    if (module->python)
        *ret_version = module->python->version;
    else if (module->v8)
        *ret_version = module->v8->version;
    else if (module->php)
        *ret_version = module->php->version;
    else if (module->ruby)
        *ret_version = module->ruby->version;
    else if (interpreter && interpreter->kind == BPF_RUNTIME_HOTSPOT)
        *ret_version = interpreter->hotspot.version;
}

enum attach { ATTACHED, NOT_YET, REFUSED };

static enum attach attach_python(struct interpreter *interpreter, const struct mapping *mapping,
                                 const struct runtime_memory *memory, const char **ret_reason)
{
    enum python_attach attached = python_attach(mapping->module->python, mapping->bias, memory,
                                                &interpreter->python, ret_reason);
    interpreter->kind = BPF_RUNTIME_PYTHON;
    return attached == PYTHON_ATTACHED ? ATTACHED : attached == PYTHON_NOT_YET ? NOT_YET : REFUSED;
}

static enum attach attach_hotspot(struct interpreter *interpreter, const struct mapping *mapping,
                                  const struct runtime_memory *memory, const char **ret_reason)
{
    enum hotspot_attach attached = hotspot_attach(mapping->module->hotspot, mapping->bias, memory,
                                                  &interpreter->hotspot, ret_reason);
    interpreter->kind = BPF_RUNTIME_HOTSPOT;
    return attached == HOTSPOT_ATTACHED  ? ATTACHED
           : attached == HOTSPOT_NOT_YET ? NOT_YET
                                         : REFUSED;
}

/* All that is needed is in the file. */
static enum attach attach_v8(struct interpreter *interpreter, const struct mapping *mapping)
{
    interpreter->v8 = *mapping->module->v8;
    interpreter->kind = BPF_RUNTIME_V8;
    return ATTACHED;
}

static enum attach attach_php(struct interpreter *interpreter, const struct mapping *mapping,
                              const char **ret_reason)
{
    struct php_binary *php = &interpreter->php;
    interpreter->kind = BPF_RUNTIME_PHP;
    if (!php_binary_known(mapping->module->php, ret_reason))
        return REFUSED;
    *php = *mapping->module->php;
    php->walk.current += mapping->bias;
    for (unsigned i = 0; i < 2; i++) {
        php->walk.evaluate[i] += mapping->bias;
        php->walk.cold[i] += php->walk.cold[i] ? mapping->bias : 0;
    }
    return ATTACHED;
}

static enum attach attach_ruby(struct interpreter *interpreter, const struct mapping *mapping,
                               const struct runtime_memory *memory, const char **ret_reason)
{
    enum ruby_attach attached =
        ruby_attach(mapping->module->ruby, mapping->bias, memory, &interpreter->ruby, ret_reason);
    interpreter->kind = BPF_RUNTIME_RUBY;
    return attached == RUBY_ATTACHED ? ATTACHED : attached == RUBY_NOT_YET ? NOT_YET : REFUSED;
}

bool interpreters_look(struct interpreters *interpreters, struct process *process, int64_t now_ns)
{
    if (interpreters->off || process->interpreter || process->interpreter_looks >= LOOKS_MAX ||
        now_ns < process->interpreter_next_ns)
        return false;
    const struct mapping *mapping = find_binary(process);
    if (!mapping)
        return false;
    process->interpreter_next_ns =
        now_ns + ((int64_t)LOOK_FIRST_NS << process->interpreter_looks++);
    struct runtime_memory memory = runtime_reader_of(&interpreters->reader, process->pid);
    struct interpreter found = {.users = 1, .owner = interpreters};
    const char *reason = NULL;
    enum attach attached =
        mapping->module->python    ? attach_python(&found, mapping, &memory, &reason)
        : mapping->module->hotspot ? attach_hotspot(&found, mapping, &memory, &reason)
        : mapping->module->v8      ? attach_v8(&found, mapping)
        : mapping->module->php     ? attach_php(&found, mapping, &reason)
                                   : attach_ruby(&found, mapping, &memory, &reason);
    interpreters->reason = reason;
    if (attached == REFUSED)
        process->interpreter_looks = LOOKS_MAX;
    if (attached != ATTACHED) {
        if (process->interpreter_looks == LOOKS_MAX) {
            interpreters->refused++;
            interpreters->refusal = reason;
        }
        return false;
    }
    struct interpreter *interpreter = memory_alloc(sizeof(*interpreter));
    *interpreter = found;
    describe(interpreters, interpreter);
    process->interpreter = interpreter;
    interpreters->attached++;
    return true;
}

bool interpreters_look_for_walk(struct interpreters *interpreters, struct process *process,
                                bool stopped, int64_t now_ns)
{
    const struct mapping *mapping =
        process->interpreter || now_ns < process->interpreter_next_ns ? NULL : find_binary(process);
    return mapping &&
           (mapping->module->hotspot ||
            (stopped && (mapping->module->python || mapping->module->v8))) &&
           interpreters_look(interpreters, process, now_ns);
}

/* The runtime that an event is of; NULL: it is gone. */
static const struct interpreter *sender_of(const struct interpreters *interpreters,
                                           const struct bpf_code_event *event)
{
    const struct interpreter *interpreter = interpreters->places[event->runtime % BPF_RUNTIMES_MAX];
    return interpreter && interpreter->runtime == event->runtime ? interpreter : NULL;
}

static void take_hotspot(struct interpreters *interpreters, const struct interpreter *interpreter,
                         const struct bpf_code_event *event)
{
    struct hotspot_mark mark = {.address = event->address,
                                .file = event->file,
                                .name = event->name,
                                .lines = event->lines,
                                .kind = event->first_line};
    struct runtime_memory memory = runtime_reader_of(&interpreters->reader, event->pid);
    hotspot_codes_take(&interpreters->hotspot_codes, &interpreter->hotspot, &memory, event->pid,
                       event->identity, &mark);
}

/* The reader of a runtime's functions, and what it is given. */
static runtime_code_read_fn reader_of(struct interpreters *interpreters,
                                      const struct interpreter *interpreter, uint32_t pid,
                                      const void **ret_context)
{
    switch (interpreter ? interpreter->kind : BPF_RUNTIME_PYTHON) {
    case BPF_RUNTIME_V8:
        interpreters->v8 = (struct v8_context){
            .binary = &interpreter->v8, .scripts = &interpreters->scripts, .pid = pid};
        *ret_context = &interpreters->v8;
        return v8_code_read;
    case BPF_RUNTIME_PHP:
        *ret_context = &interpreter->php;
        return php_code_read;
    case BPF_RUNTIME_RUBY:
        *ret_context = &interpreter->ruby;
        return ruby_code_read;
    default:
        *ret_context = interpreter ? &interpreter->python : NULL;
        return python_code_read;
    }
}

void interpreters_take_code(struct interpreters *interpreters, const struct bpf_code_event *event)
{
    const struct interpreter *interpreter = sender_of(interpreters, event);
    if (interpreter && interpreter->kind == BPF_RUNTIME_HOTSPOT) {
        take_hotspot(interpreters, interpreter, event);
        return;
    }
    const void *context;
    runtime_code_read_fn read = reader_of(interpreters, interpreter, event->pid, &context);
    const struct runtime_known met = {.identity = event->identity,
                                      .pid = event->pid,
                                      .kind = interpreter ? interpreter->kind : BPF_RUNTIME_PYTHON,
                                      .mark = {.address = event->address,
                                               .file = event->file,
                                               .name = event->name,
                                               .lines = event->lines,
                                               .first_line = event->first_line}};
    struct runtime_memory memory = runtime_reader_of(&interpreters->reader, event->pid);
    runtime_codes_take(&interpreters->codes, read, context, &memory, &met);
}

bool interpreters_walk(struct interpreters *interpreters, const struct process *process,
                       struct unwind_input *input, struct hotspot_walk *walk)
{
    const struct interpreter *interpreter = process->interpreter;
    *walk = (struct hotspot_walk){0};
    if (interpreters->off || !interpreter || interpreter->kind != BPF_RUNTIME_HOTSPOT)
        return false;
    walk->machine = &interpreter->hotspot;
    walk->memory = runtime_reader_of(&interpreters->reader, process->pid);
    input->runtime = hotspot_walk_step;
    input->runtime_context = walk;
    return true;
}

size_t interpreters_step_frames(struct interpreters *interpreters, const struct process *process,
                                const struct hotspot_step *step,
                                struct hotspot_frame ret_frames[HOTSPOT_INLINED_MAX])
{
    const struct interpreter *interpreter = process->interpreter;
    uint64_t identity = hotspot_mark_identity(process->pid, &step->mark);
    struct runtime_memory memory = runtime_reader_of(&interpreters->reader, process->pid);
    hotspot_codes_take(&interpreters->hotspot_codes, &interpreter->hotspot, &memory, process->pid,
                       identity, &step->mark);
    const struct hotspot_known *known = hotspot_codes_find(&interpreters->hotspot_codes, identity);
    return known ? hotspot_codes_frames(&interpreters->hotspot_codes, known, step->unit, ret_frames)
                 : 0;
}

const struct runtime_known *interpreters_code(struct interpreters *interpreters,
                                              const struct process *process,
                                              const struct runtime_mark *mark)
{
    const struct runtime_known met = {.identity = runtime_code_identity(process->pid, mark),
                                      .pid = process->pid,
                                      .kind = process->interpreter->kind,
                                      .mark = *mark};
    const struct runtime_known *known = runtime_codes_find(&interpreters->codes, met.identity);
    /* Another one with the same identity makes both ambiguous. */
    if (known && known->named && runtime_mark_equal(&known->mark, mark))
        return known;
    struct runtime_memory memory = runtime_reader_of(&interpreters->reader, process->pid);
    const void *context;
    runtime_code_read_fn read =
        reader_of(interpreters, process->interpreter, process->pid, &context);
    runtime_codes_take(&interpreters->codes, read, context, &memory, &met);
    return runtime_codes_find(&interpreters->codes, met.identity);
}

void interpreters_clear_codes(struct interpreters *interpreters)
{
    hotspot_codes_clear(&interpreters->hotspot_codes);
    runtime_codes_clear(&interpreters->codes);
    v8_scripts_release(&interpreters->scripts);
}

bool interpreters_codes_full(const struct interpreters *interpreters)
{
    return hotspot_codes_full(&interpreters->hotspot_codes) ||
           runtime_codes_full(&interpreters->codes);
}
