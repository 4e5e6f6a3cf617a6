// SPDX-License-Identifier: Apache-2.0
// Samples into a profile: see recorder.h.

#include "capture/record/recorder.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "arch/x86_64/registers.h"
#include "base/clock.h"
#include "base/memory.h"
#include "capture/record/vocabulary.h"
#include "runtime/python/walk.h"
#include "runtime/v8/walk.h"
#include "symbol/jit/jit.h"

/* DWARF numbers of the registers that come with a sample, beside ip, sp and fp. */

#define KERNEL_NAME "[kernel.kallsyms]"
/* How often /proc is asked for a process whose mappings seem to be incomplete. */
#define CATCH_UP_NS 500000000

void recorder_init(struct recorder *recorder, unsigned frequency_hz)
{
    *recorder = (struct recorder){0};
    modules_init(&recorder->modules);
    processes_init(&recorder->processes, &recorder->modules);
    segments_init(&recorder->segments);
    interpreters_init(&recorder->interpreters);
    contexts_init(&recorder->contexts);
    recorder_set_rate(recorder, frequency_hz, 0);
}

void recorder_set_rate(struct recorder *recorder, unsigned frequency_hz, uint64_t now_ns)
{
    recorder->old_period_ns = recorder->period_ns;
    recorder->changed_ns = now_ns;
    recorder->period_ns = 1000000000 / frequency_hz;
}

int64_t recorder_weight_ns(const struct recorder *recorder, uint64_t time_ns)
{
    return time_ns <= recorder->changed_ns ? recorder->old_period_ns : recorder->period_ns;
}

bool recorder_wants(const struct recorder *recorder, uint64_t time_ns)
{
    return recorder->profile && time_ns >= recorder->from_ns &&
           (!recorder->until_ns || time_ns <= recorder->until_ns);
}

void recorder_release(struct recorder *recorder)
{
    processes_release(&recorder->processes);
    segments_release(&recorder->segments);
    modules_release(&recorder->modules);
    interpreters_release(&recorder->interpreters);
    contexts_release(&recorder->contexts);
}

void recorder_forget_modules(struct recorder *recorder)
{
    struct processes *processes = &recorder->processes;
    for (size_t i = 0; i < processes->count; i++)
        processes->list[i]->count = 0, processes->list[i]->program = NULL;
    processes_doubt(processes, monotonic_ns());
    segments_clear(&recorder->segments);
    struct pace pace = recorder->modules.pace;
    uint64_t postponed = recorder->modules.postponed;
    modules_release(&recorder->modules);
    modules_init(&recorder->modules);
    recorder->modules.pace = pace;
    recorder->modules.postponed = postponed;
}

void recorder_into(struct recorder *recorder, struct profile *profile)
{
    recorder->profile = profile;
    recorder->epoch++;
    recorder->unplaced_mark = 0;
    /* The clocks drift apart: over a long time by more than a sample. */
    recorder->epoch_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
    if (!profile)
        return;
    uint32_t cpu = profile_cstring(profile, "cpu"), ns = profile_cstring(profile, "nanoseconds");
    if (!recorder->no_cpu) {
        recorder->samples_type = profile_type(profile, profile_cstring(profile, "samples"),
                                              profile_cstring(profile, "count"));
        recorder->cpu_type = profile_type(profile, cpu, ns);
        profile->default_type = cpu;
    }
    for (size_t i = 0; recorder->events && i < recorder->events->count; i++) {
        uint32_t name = profile_cstring(profile, recorder->events->list[i].name);
        recorder->event_types[i] = profile_type(profile, name, profile_cstring(profile, "count"));
        if (!profile->default_type)
            profile->default_type = name;
    }
    if (recorder->period_ns && !(recorder->events && recorder->no_cpu))
        profile_note_period(profile, cpu, ns, recorder->period_ns);
    recorder->kernel_mapping = profile_mapping(
        profile, &(struct profile_mapping){.limit = UINT64_MAX,
                                           .file = profile_cstring(profile, KERNEL_NAME)});
}

/* ---- frames ---- */

uint32_t recorder_mark(struct recorder *recorder, const char *word)
{
    struct profile *profile = recorder->profile;
    struct profile_function function = {.name = profile_cstring(profile, word)};
    return profile_frame(profile,
                         &(struct profile_frame){.function = profile_function(profile, &function)});
}

/* Inlined methods count as frames of their own; outermost first. */
static size_t java_frames(struct recorder *recorder, const struct hotspot_frame *frames,
                          size_t count, uint32_t *ret_frames)
{
    struct profile *profile = recorder->profile;
    if (!count) {
        recorder->unread++;
        ret_frames[0] = recorder_mark(recorder, RECORDER_JAVA_UNREAD);
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        const struct hotspot_frame *frame = &frames[count - 1 - i];
        struct profile_function function = {.name = profile_cstring(profile, frame->function),
                                            .file = profile_cstring(profile, frame->file)};
        ret_frames[i] = profile_frame(
            profile, &(struct profile_frame){.function = profile_function(profile, &function),
                                             .line = frame->line,
                                             .kind = FRAME_JVM});
    }
    return count;
}

/* How frames of a runtime are marked, and what stands for those that could not be read. */
static const struct {
    enum frame_kind kind;
    const char *unread;
} runtime_frames[] = {
    [BPF_RUNTIME_PYTHON] = {FRAME_CPYTHON, RECORDER_UNREAD},
    [BPF_RUNTIME_V8] = {FRAME_V8JS, RECORDER_SCRIPT_UNREAD},
    [BPF_RUNTIME_PHP] = {FRAME_PHP, RECORDER_PHP_UNREAD},
    [BPF_RUNTIME_RUBY] = {FRAME_RUBY, RECORDER_RUBY_UNREAD},
};

static uint32_t unread_frame(struct recorder *recorder, uint32_t runtime)
{
    const char *mark =
        runtime < ARRAY_LENGTH(runtime_frames) ? runtime_frames[runtime].unread : NULL;
    recorder->unread++;
    return recorder_mark(recorder, mark ? mark : RECORDER_UNREAD);
}

static uint32_t known_frame(struct recorder *recorder, const struct runtime_known *known,
                            uint32_t unit)
{
    struct profile *profile = recorder->profile;
    if (!known->named || known->ambiguous)
        return unread_frame(recorder, known->kind);
    /* Before its first instruction that counts, a frame is the interpreter's own business. */
    if (unit < known->code.first_unit)
        return RECORDER_NO_FRAME;
    struct profile_function function = {.name = profile_cstring(profile, known->code.function),
                                        .file = profile_cstring(profile, known->code.file),
                                        .start_line = known->code.first_line};
    return profile_frame(profile,
                         &(struct profile_frame){.function = profile_function(profile, &function),
                                                 .line = runtime_code_line(&known->code, unit),
                                                 .kind = runtime_frames[known->kind].kind});
}

size_t recorder_runtime_frames(struct recorder *recorder, uint64_t word, uint32_t *ret_frames)
{
    uint64_t identity = word >> BPF_PYTHON_UNIT_BITS & BPF_PYTHON_IDENTITY_MASK;
    const struct hotspot_known *known =
        identity ? hotspot_codes_find(&recorder->interpreters.hotspot_codes, identity) : NULL;
    if (known) {
        struct hotspot_frame frames[HOTSPOT_INLINED_MAX];
        size_t count = hotspot_codes_frames(&recorder->interpreters.hotspot_codes, known,
                                            (uint32_t)(word & BPF_PYTHON_UNIT_MASK), frames);
        return java_frames(recorder, frames, count, ret_frames);
    }
    const struct runtime_known *code =
        identity ? runtime_codes_find(&recorder->interpreters.codes, identity) : NULL;
    uint32_t unit = (uint32_t)(word & BPF_PYTHON_UNIT_MASK);
    /* Where the walk could not read what is there, the kind of the runtime is in place of the
     * unit. */
    uint32_t frame = code ? known_frame(recorder, code, unit)
                          : unread_frame(recorder, identity ? BPF_RUNTIME_PYTHON : unit);
    if (frame == RECORDER_NO_FRAME)
        return 0;
    *ret_frames = frame;
    return 1;
}

const char *recorder_end_mark(enum unwind_end end)
{
    return end == UNWIND_END_COMPLETE                               ? NULL
           : end == UNWIND_END_TRUNCATED || end == UNWIND_END_LIMIT ? "[truncated]"
                                                                    : "[unknown]";
}

uint32_t recorder_segment_frame(struct recorder *recorder, uint32_t number, uint64_t offset)
{
    struct profile *profile = recorder->profile;
    struct profile_frame frame = {.address = offset, .kind = FRAME_NATIVE};
    if (number < recorder->segments.count) {
        struct segment *segment = &recorder->segments.list[number];
        if (segment->epoch != recorder->epoch) {
            segment->epoch = recorder->epoch;
            segment->mapping = profile_mapping(
                profile, &(struct profile_mapping){
                             .start = segment->start,
                             .limit = segment->end,
                             .offset = segment->offset,
                             .file = profile_cstring(profile, segment->module->path),
                             .build_id = profile_cstring(profile, segment->module->build_id)});
        }
        frame.mapping = segment->mapping;
    }
    return profile_frame(profile, &frame);
}

static uint32_t unplaced_frame(struct recorder *recorder)
{
    if (!recorder->unplaced_mark)
        recorder->unplaced_mark = recorder_mark(recorder, RECORDER_UNPLACED);
    return recorder->unplaced_mark;
}

static uint32_t generated_frame(struct recorder *recorder, uint32_t pid, uint64_t address)
{
    struct profile *profile = recorder->profile;
    char name[JIT_MAPPING_NAME_BYTES];
    jit_mapping_name(name, pid);
    struct profile_mapping mapping = {.limit = UINT64_MAX, .file = profile_cstring(profile, name)};
    return profile_frame(profile,
                         &(struct profile_frame){.address = address,
                                                 .mapping = profile_mapping(profile, &mapping),
                                                 .kind = FRAME_NATIVE});
}

uint32_t recorder_kernel_frame(struct recorder *recorder, uint64_t address)
{
    return profile_frame(recorder->profile,
                         &(struct profile_frame){.address = address,
                                                 .mapping = recorder->kernel_mapping,
                                                 .kind = FRAME_KERNEL});
}

uint32_t recorder_address_frame(struct recorder *recorder, const struct process *process,
                                uint64_t address)
{
    struct mapping *mapping = process ? process_find(process, address) : NULL;
    if (mapping && mapping->generated)
        return generated_frame(recorder, process->pid, address);
    uint32_t segment = mapping ? segments_of(&recorder->segments, mapping) : 0;
    if (!segment)
        return unplaced_frame(recorder);
    return recorder_segment_frame(recorder, segment, address - mapping->start + mapping->offset);
}

/* A program that has just been executed has mapped nothing yet: its events follow, and /proc may
 * know the next one already. */
static bool is_between_programs(const struct process *process)
{
    return process->known && !process->count;
}

void recorder_repair(struct recorder *recorder, struct process *process, uint64_t address,
                     uint64_t time_ns)
{
    if (!is_between_programs(process) && !process_find(process, address) &&
        process->caught_up_ns < (int64_t)time_ns)
        process_catch_up(&recorder->processes, process);
}

/* All of an interpreter's evaluation function is one place, as in the kernel's walk. */
static uint64_t evaluation_start(const struct process *process, uint64_t address)
{
    return interpreter_evaluates(process->interpreter, address)
               ? process->interpreter->python.offsets.walk.evaluate[0]
               : address;
}

static enum runtime_frame kind_of(const struct process *process, uint64_t address)
{
    const struct mapping *mapping = process_find(process, address);
    if (!mapping || !mapping->module)
        return RUNTIME_FRAME_OTHER;
    return module_frame_kind(mapping->module, address - mapping->start + mapping->offset);
}

/* Frames of the process's interpreter that were read while the thread was stopped. */
struct stopped_frames {
    struct python_chain python;
    struct v8_frames v8;
};

/* A walk in user space. */
struct walked {
    const struct process *process;
    struct unwind_frame frames[RECORDER_FRAMES_MAX - 8];
    uint64_t addresses[RECORDER_FRAMES_MAX];
    size_t count;
    struct hotspot_walk runtime;
    const struct stopped_frames *stopped; /* NULL: they are not known */
};

/* The frames of a runtime's walk, outermost first. */
static size_t place_step(struct recorder *recorder, const struct walked *walked, size_t number,
                         uint32_t *ret_frames)
{
    if (recorder->checking || number >= walked->runtime.count)
        return 0;
    const struct hotspot_step *step = &walked->runtime.steps[number];
    struct hotspot_frame frames[HOTSPOT_INLINED_MAX];
    if (step->hidden && !recorder->interpreter_frames)
        return 0;
    size_t count = interpreters_step_frames(&recorder->interpreters, walked->process, step, frames);
    return java_frames(recorder, frames, count, ret_frames);
}

/* The frames of one call of Python's evaluation function, outermost first. */
struct python_call {
    const struct python_frame *frames; /* innermost first */
    size_t count;
};

static size_t place_python(struct recorder *recorder, const struct process *process,
                           const struct python_call *call, size_t room, uint32_t *ret_frames)
{
    size_t used = 0;
    for (size_t i = MIN(call->count, room); i-- > 0;) {
        const struct python_frame *frame = &call->frames[i];
        const struct runtime_known *known =
            frame->mark.address ? interpreters_code(&recorder->interpreters, process, &frame->mark)
                                : NULL;
        uint32_t placed = known ? known_frame(recorder, known, frame->unit)
                                : unread_frame(recorder, BPF_RUNTIME_PYTHON);
        if (placed != RECORDER_NO_FRAME)
            ret_frames[used++] = placed;
    }
    return used;
}

/* The JavaScript function of a frame; NULL: it has none. */
static const struct v8_frame *script_at(const struct walked *walked, size_t i)
{
    return walked->stopped && walked->frames[i].flags & UNWIND_FRAME_ROWLESS
               ? v8_frames_find(&walked->stopped->v8, walked->frames[i].fp)
               : NULL;
}

static uint32_t place_script(struct recorder *recorder, const struct process *process,
                             const struct v8_frame *frame)
{
    const struct runtime_known *known =
        interpreters_code(&recorder->interpreters, process, &frame->mark);
    return known ? known_frame(recorder, known, 0) : unread_frame(recorder, BPF_RUNTIME_V8);
}

/* V8's own code around a function says nothing, but for what runs now. */
static bool hides_script(const struct recorder *recorder, const struct walked *walked, size_t i)
{
    const struct mapping *mapping = process_find(walked->process, walked->addresses[i]);
    return !mapping || mapping->generated || (i && !recorder->interpreter_frames);
}

/* The frames of a walk, outermost first. Where Python's frames didn't come with the copy of the
 * stack, they have changed since: where they belong is a mark. */
static size_t place_frames(struct recorder *recorder, const struct walked *walked,
                           uint32_t *ret_frames)
{
    const struct process *process = walked->process;
    uint8_t kinds[RECORDER_FRAMES_MAX];
    size_t used = 0, steps = walked->runtime.count;
    bool marks = process->interpreter && process->interpreter->kind == BPF_RUNTIME_PYTHON &&
                 !recorder->checking;
    for (size_t i = 0; i < walked->count; i++)
        kinds[i] = (uint8_t)(marks ? kind_of(process, walked->addresses[i]) : RUNTIME_FRAME_OTHER);
    struct python_chain chain =
        walked->stopped ? walked->stopped->python : (struct python_chain){0};
    struct python_chain *python = chain.frames ? &chain : NULL;
    bool evaluates[RECORDER_FRAMES_MAX];
    struct python_call calls[RECORDER_FRAMES_MAX];
    bool anywhere = interpreter_evaluates_anywhere(process->interpreter);
    for (size_t i = 0; i < walked->count; i++) {
        evaluates[i] = kinds[i] == RUNTIME_FRAME_EVALUATE;
        calls[i].count = 0;
        uint64_t high = i + 1 < walked->count ? walked->frames[i + 1].sp : UINT64_MAX;
        if ((evaluates[i] || anywhere) && python)
            calls[i].count =
                python_chain_take(python, walked->frames[i].sp, high, &calls[i].frames);
    }
    for (size_t i = 0; anywhere && i < walked->count; i++)
        if (calls[i].count) {
            kinds[i] = RUNTIME_FRAME_EVALUATE;
            evaluates[i] = true;
        }
    if (!recorder->interpreter_frames)
        runtime_frames_hide(kinds, walked->count);
    for (size_t i = walked->count; i-- > 0;) {
        /* Inlined methods must leave room for the frames that follow. */
        bool fits = used + i + HOTSPOT_INLINED_MAX + 8 < RECORDER_FRAMES_MAX;
        if (walked->frames[i].flags & UNWIND_FRAME_RUNTIME) {
            steps--;
            used += fits ? place_step(recorder, walked, steps, ret_frames + used) : 0;
            continue;
        }
        const struct v8_frame *script = script_at(walked, i);
        if (script)
            ret_frames[used++] = place_script(recorder, process, script);
        bool hidden = script && (!fits || hides_script(recorder, walked, i));
        if (kinds[i] != RUNTIME_FRAME_HIDDEN && !hidden)
            ret_frames[used++] = recorder_address_frame(recorder, process, walked->addresses[i]);
        if (evaluates[i] && python) {
            size_t room = RECORDER_FRAMES_MAX - MIN(used + i + 8, (size_t)RECORDER_FRAMES_MAX);
            used += place_python(recorder, process, &calls[i], room, ret_frames + used);
            continue;
        }
        uint32_t mark = evaluates[i] ? recorder_mark(recorder, RECORDER_UNREAD) : 0;
        if (evaluates[i] && (!used || ret_frames[used - 1] != mark))
            ret_frames[used++] = mark;
    }
    return used;
}

static size_t walk_stopped(struct recorder *recorder, struct unwind_input *input,
                           struct process *process, const struct stopped_frames *stopped,
                           uint32_t *ret_frames)
{
    struct walked walked = {.process = process, .stopped = stopped};
    size_t used = 0;
    interpreters_walk(&recorder->interpreters, process, input, &walked.runtime);
    enum unwind_end end =
        unwind_walk(input, walked.frames, ARRAY_LENGTH(walked.frames), &walked.count);
    /* Perhaps something was mapped that nobody told us of. */
    if (end == UNWIND_END_NO_MAPPING && !is_between_programs(process) &&
        monotonic_ns() - process->caught_up_ns > CATCH_UP_NS) {
        process_catch_up(&recorder->processes, process);
        walked.runtime.count = 0;
        end = unwind_walk(input, walked.frames, ARRAY_LENGTH(walked.frames), &walked.count);
    }
    recorder->ends[end]++;
    recorder->walks++;
    if (recorder_end_mark(end))
        ret_frames[used++] = recorder_mark(recorder, recorder_end_mark(end));
    bool below_signal = false; /* the trampoline that a signal's handler returns to */
    for (size_t i = walked.count; i-- > 0;) {
        const struct unwind_frame *frame = &walked.frames[i];
        bool exact = frame->flags & UNWIND_FRAME_EXACT;
        /* A return address is one behind the call: the call itself is meant. */
        walked.addresses[i] = evaluation_start(process, frame->address - !(exact || below_signal));
        below_signal = exact && !(frame->flags & UNWIND_FRAME_PLANTED);
    }
    used += place_frames(recorder, &walked, ret_frames + used);
    hotspot_walk_release(&walked.runtime);
    return used;
}

size_t recorder_walk(struct recorder *recorder, struct unwind_input *input, struct process *process,
                     uint32_t *ret_frames)
{
    return walk_stopped(recorder, input, process, NULL, ret_frames);
}

/* ---- samples ---- */

static size_t walk_record(struct recorder *recorder, struct process *process,
                          const struct perf_record *record, uint32_t *frames)
{
    struct unwind_input input = {
        .registers = unwind_registers_of(record->ip, record->sp, record->fp),
        .stack = record->stack,
        .stack_bytes = record->stack_bytes,
        .stack_address = record->sp,
        .rules = &recorder->modules.rules,
        .find = process_place,
        .context = process,
    };
    input.registers.value[REGISTER_BASE] = record->base;
    input.registers.value[REGISTER_ARGUMENT] = record->argument;
    input.registers.known |= 1u << REGISTER_BASE | 1u << REGISTER_ARGUMENT;
    bool found = interpreters_look_for_walk(&recorder->interpreters, process,
                                            recorder->read_runtime != NULL, monotonic_ns());
    const struct interpreter *interpreter = process->interpreter;
    /* Also of a process that was forked before its parent's interpreter was found. */
    if (recorder->read_runtime && interpreter && (found || !record->frames))
        recorder->read_runtime(recorder->runtime_context, process->pid, interpreter);
    struct stopped_frames stopped = {0};
    if (record->frames && interpreter && interpreter->kind == BPF_RUNTIME_PYTHON)
        stopped.python =
            (struct python_chain){.frames = (struct python_frame *)record->frames,
                                  .count = record->frame_bytes / sizeof(struct python_frame)};
    if (record->frames && interpreter && interpreter->kind == BPF_RUNTIME_V8)
        stopped.v8 = (struct v8_frames){.list = (struct v8_frame *)record->frames,
                                        .count = record->frame_bytes / sizeof(struct v8_frame)};
    return walk_stopped(recorder, &input, process, record->frames ? &stopped : NULL, frames);
}

static size_t add_kernel(struct recorder *recorder, const struct perf_record *record,
                         uint32_t *frames)
{
    size_t used = 0;
    for (size_t i = record->kernel_count; i-- > 0 && used < RECORDER_FRAMES_MAX;) {
        uint64_t address;
        memcpy(&address, &record->kernel_frames[i], sizeof(address));
        if (address >= PERF_CONTEXT_MAX) /* a marker between parts of the chain */
            continue;
        frames[used++] = recorder_kernel_frame(recorder, address - (i > 1));
    }
    return used;
}

struct process *recorder_process(struct recorder *recorder, uint32_t pid, bool has_user)
{
    struct process *process = processes_get(&recorder->processes, pid);
    if (!process)
        return NULL;
    recorder->sampled_processes += !process->sampled;
    process->sampled = true;
    process->samples++;
    if (has_user && !process->known && monotonic_ns() - process->caught_up_ns > CATCH_UP_NS)
        process_catch_up(&recorder->processes, process);
    return process;
}

/* The labels that somebody has for the sample's process, asked for once per profile. */
static uint32_t process_labels(struct recorder *recorder, const struct recorder_sample *sample)
{
    struct process *process = processes_find(&recorder->processes, sample->pid);
    if (!process)
        return CAPTURE_UNWANTED;
    if (process->labels_epoch == recorder->epoch)
        return process->labels;
    if (!process->number)
        process->number = ++recorder->numbers;
    const char *runtime, *version;
    interpreters_describe(process, &runtime, &version);
    struct capture_attribute attributes[PROCESS_CONTEXT_ATTRIBUTES_MAX];
    const struct process_context *published = process->contexts.published;
    size_t count = published ? published->attribute_count : 0;
    for (size_t i = 0; i < count; i++)
        attributes[i] = (struct capture_attribute){published->attributes[i].key,
                                                   published->attributes[i].value};
    struct capture_process described = {
        .published = published ? published->published_ns : 0,
        .attributes = attributes,
        .attribute_count = count,
        .pid = process->pid,
        .number = process->number,
        .parent = process->parent,
        .name = process->name[0] ? process->name : sample->comm,
        .program = process->program ? process->program->path : NULL,
        .build_id = process->program ? process->program->build_id : "",
        .runtime = runtime,
        .runtime_version = version,
    };
    process->labels_epoch = recorder->epoch;
    process->labels = recorder->label(recorder->label_context, &described, recorder->profile);
    return process->labels;
}

static uint32_t thread_labels(struct profile *profile, const struct recorder_sample *sample)
{
    struct profile_label labels[] = {
        {.key = profile_cstring(profile, "comm"), .text = profile_cstring(profile, sample->comm)},
        {.key = profile_cstring(profile, "pid"), .number = sample->pid},
        {.key = profile_cstring(profile, "tid"), .number = sample->tid},
    };
    return profile_label_set(profile, labels, ARRAY_LENGTH(labels));
}

static uint32_t add_thread(struct profile *profile, uint32_t labels,
                           const struct recorder_sample *sample)
{
    size_t count;
    const struct profile_label *known = profile_labels(profile, labels, &count);
    _cleanup_free_ struct profile_label *list = memory_alloc((count + 2) * sizeof(*list));
    memcpy(list, known, count * sizeof(*list));
    list[count++] = (struct profile_label){.key = profile_cstring(profile, "thread"),
                                           .text = profile_cstring(profile, sample->comm)};
    list[count++] =
        (struct profile_label){.key = profile_cstring(profile, "tid"), .number = sample->tid};
    return profile_label_set(profile, list, count);
}

uint32_t recorder_labels(struct recorder *recorder, const struct recorder_sample *sample)
{
    uint32_t labels = recorder->label ? process_labels(recorder, sample)
                                      : thread_labels(recorder->profile, sample);
    if (recorder->label && recorder->thread_labels && labels != CAPTURE_UNWANTED)
        labels = add_thread(recorder->profile, labels, sample);
    if (labels == CAPTURE_UNWANTED || !sample->context)
        return labels;
    return sample_context_add(recorder->profile, labels,
                              sample_context_set(recorder->profile, sample->context));
}

static size_t add_row(struct recorder *recorder, const struct recorder_sample *sample,
                      uint32_t labels)
{
    struct profile *profile = recorder->profile;
    for (size_t i = 0; recorder->unplaced_mark && i < sample->frame_count; i++)
        if (sample->frames[i] == recorder->unplaced_mark) {
            recorder->unplaced++;
            break;
        }
    return profile_sample(profile, profile_stack(profile, sample->frames, sample->frame_count),
                          labels, sample->context ? sample->context->link : 0,
                          sample->time_ns + (uint64_t)recorder->epoch_ns);
}

size_t recorder_add_event(struct recorder *recorder, const struct recorder_sample *sample,
                          size_t event, uint64_t count)
{
    uint32_t labels = recorder_labels(recorder, sample);
    if (labels == CAPTURE_UNWANTED) {
        recorder->unwanted++;
        return RECORDER_NO_ROW;
    }
    recorder->samples++;
    size_t row = add_row(recorder, sample, labels);
    profile_add_value(recorder->profile, row, recorder->event_types[event],
                      (int64_t)MIN(count, (uint64_t)INT64_MAX));
    return row;
}

void recorder_add(struct recorder *recorder, const struct recorder_sample *sample)
{
    struct profile *profile = recorder->profile;
    uint32_t labels = recorder_labels(recorder, sample);
    if (labels == CAPTURE_UNWANTED) {
        recorder->unwanted++;
        return;
    }
    recorder->samples++;
    recorder->cpu_ns = add_saturated(recorder->cpu_ns, sample->cpu_ns);
    if (recorder->no_cpu)
        return;
    size_t row = add_row(recorder, sample, labels);
    profile_add_value(profile, row, recorder->samples_type, 1);
    profile_add_value(profile, row, recorder->cpu_type, sample->cpu_ns);
}

static void take_sample(struct recorder *recorder, const struct perf_record *record)
{
    struct process *process = recorder_process(recorder, record->pid, record->has_user);
    if (!process || !recorder_wants(recorder, record->time_ns))
        return;
    uint32_t frames[2 * RECORDER_FRAMES_MAX + 2];
    size_t count = 0;
    if (recorder->root_by_process)
        frames[count++] = recorder_mark(recorder, process->name);
    if (record->has_user)
        recorder_repair(recorder, process, record->ip, record->time_ns);
    /* In execve the old program's stack is gone before its registers are. */
    bool no_stack = record->in_kernel && (!record->stack_bytes || is_between_programs(process));
    if (record->has_user && !no_stack)
        count += walk_record(recorder, process, record, frames + count);
    count += add_kernel(recorder, record, frames + count);
    struct recorder_sample sample = {
        .pid = record->pid,
        .tid = record->tid,
        .comm = processes_thread_name(&recorder->processes, process, record->tid),
        .time_ns = record->time_ns,
        .cpu_ns = recorder->period_set && !record->inherited
                      ? recorder_weight_ns(recorder, record->time_ns)
                      : (int64_t)record->period,
        .frames = frames,
        .frame_count = count};
    if (record->event)
        recorder_add_event(recorder, &sample, record->event - 1, record->period);
    else
        recorder_add(recorder, &sample);
}

/* ---- processes ---- */

/* Mappings read from /proc include all earlier events. That is so for events of the
 * time in which a recorder learns of all processes, long when it is short of CPU time. */
static bool is_known_better(const struct process *process, const struct perf_record *record)
{
    return process && process->known && record->time_ns < process->read_ns;
}

static void take_name(struct recorder *recorder, struct process *process,
                      const struct perf_record *record)
{
    if (record->pid == record->tid)
        snprintf(process->name, sizeof(process->name), "%s", record->path);
    else
        processes_name_thread(&recorder->processes, record->tid, record->path);
    if (record->executed && is_known_better(process, record))
        process_note_execution(process, record->time_ns);
    else if (record->executed)
        process_execute(&recorder->processes, process, record->time_ns);
}

static void take_mapping(struct recorder *recorder, struct process *process,
                         const struct perf_record *record)
{
    if (!process->known || is_known_better(process, record)) /* all of it is looked up */
        return;
    process_map(&recorder->processes, process,
                &(struct mapping_event){.start = record->start,
                                        .length = record->length,
                                        .offset = record->offset,
                                        .device = record->device,
                                        .inode = record->inode,
                                        .path = record->path,
                                        .time_ns = record->time_ns});
}

void recorder_take(void *context, const struct perf_record *record)
{
    struct recorder *recorder = context;
    struct processes *processes = &recorder->processes;
    if (record->kind == PERF_SAMPLE) {
        take_sample(recorder, record);
        return;
    }
    if (record->kind == PERF_LOST) {
        recorder->lost_events += record->lost;
        processes_doubt(processes, monotonic_ns());
        return;
    }
    if (record->kind == PERF_STARTED) {
        if (record->pid != record->parent_pid &&
            !is_known_better(processes_find(processes, record->pid), record))
            processes_start(processes, record->pid, processes_find(processes, record->parent_pid));
        return;
    }
    if (record->kind == PERF_ENDED) {
        if (record->pid == record->tid &&
            !is_known_better(processes_find(processes, record->pid), record))
            processes_end(processes, record->pid, monotonic_ns());
        return;
    }
    struct process *process = processes_find(processes, record->pid);
    if (!process && record->kind == PERF_NAMED && record->executed && !recorder->only_known)
        process = processes_get(processes, record->pid);
    if (!process)
        return;
    if (record->kind == PERF_MAPPED)
        take_mapping(recorder, process, record);
    else if (record->kind == PERF_NAMED)
        take_name(recorder, process, record);
}
