// SPDX-License-Identifier: Apache-2.0
// Samples into a profile: see recorder.h.

#include "capture/recorder.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

/* DWARF numbers of the registers that come with a sample, beside ip, sp and fp. */
enum { REGISTER_BX = 3, REGISTER_DI = 5 };

#define KERNEL_NAME "[kernel.kallsyms]"

void recorder_init(struct recorder *recorder, struct profile *profile, unsigned frequency_hz)
{
    *recorder = (struct recorder){.profile = profile};
    modules_init(&recorder->modules);
    processes_init(&recorder->processes, &recorder->modules);
    recorder->epoch_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
    recorder->samples_type = profile_type(profile, profile_cstring(profile, "samples"),
                                          profile_cstring(profile, "count"));
    recorder->cpu_type = profile_type(profile, profile_cstring(profile, "cpu"),
                                      profile_cstring(profile, "nanoseconds"));
    profile->default_type = profile_cstring(profile, "cpu");
    profile_note_period(profile, profile_cstring(profile, "cpu"),
                        profile_cstring(profile, "nanoseconds"), 1000000000 / frequency_hz);
    recorder->kernel_mapping = profile_mapping(
        profile, &(struct profile_mapping){.limit = UINT64_MAX,
                                           .file = profile_cstring(profile, KERNEL_NAME)});
}

void recorder_release(struct recorder *recorder)
{
    processes_release(&recorder->processes);
    modules_release(&recorder->modules);
}

static uint32_t pseudo_frame(struct profile *profile, const char *name)
{
    struct profile_function function = {.name = profile_cstring(profile, name)};
    return profile_frame(profile,
                         &(struct profile_frame){.function = profile_function(profile, &function)});
}

static uint32_t user_frame(struct recorder *recorder, const struct process *process,
                           uint64_t address)
{
    struct profile *profile = recorder->profile;
    struct profile_frame frame = {.address = address, .kind = FRAME_NATIVE};
    struct mapping *mapping = process_find(process, address);
    if (mapping) {
        struct profile_mapping described = {
            .start = mapping->start, .limit = mapping->end, .offset = mapping->offset};
        if (!mapping->id) {
            described.file =
                profile_cstring(profile, mapping->module ? mapping->module->path : "[anonymous]");
            if (mapping->module)
                described.build_id = profile_cstring(profile, mapping->module->build_id);
            mapping->id = profile_mapping(profile, &described);
        }
        frame.mapping = mapping->id;
        frame.address = profile_file_offset(&described, address);
    }
    return profile_frame(profile, &frame);
}

/* The user's part of a stack, outermost first. Returns how many frames it added. */
static size_t walk_user(struct recorder *recorder, struct process *process,
                        const struct perf_record *record, uint32_t *frames)
{
    struct unwind_frame walked[RECORDER_FRAMES_MAX];
    struct unwind_input input = {
        .registers = unwind_registers_of(record->ip, record->sp, record->fp),
        .stack = record->stack,
        .stack_bytes = record->stack_bytes,
        .stack_address = record->sp,
        .rules = &recorder->modules.rules,
        .find = process_place,
        .context = process,
    };
    input.registers.value[REGISTER_BX] = record->bx;
    input.registers.value[REGISTER_DI] = record->di;
    input.registers.known |= 1u << REGISTER_BX | 1u << REGISTER_DI;
    size_t count = 0, used = 0;
    enum unwind_end end = unwind_walk(&input, walked, ARRAY_LENGTH(walked), &count);
    recorder->ends[end]++;
    recorder->walks++;
    if (end != UNWIND_END_COMPLETE)
        frames[used++] = pseudo_frame(
            recorder->profile,
            end == UNWIND_END_TRUNCATED || end == UNWIND_END_LIMIT ? "[truncated]" : "[unknown]");
    bool below_signal = false; /* the trampoline that a signal's handler returns to */
    while (count) {
        const struct unwind_frame *frame = &walked[--count];
        bool exact = frame->flags & UNWIND_FRAME_EXACT;
        /* A return address is one behind the call: the call itself is meant. */
        frames[used++] = user_frame(recorder, process, frame->address - !(exact || below_signal));
        below_signal = exact;
    }
    return used;
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
        struct profile_frame frame = {.address = address - (i > 1),
                                      .mapping = recorder->kernel_mapping,
                                      .kind = FRAME_KERNEL};
        frames[used++] = profile_frame(recorder->profile, &frame);
    }
    return used;
}

static uint32_t label_sample(struct recorder *recorder, const struct process *process,
                             const struct perf_record *record)
{
    struct profile *profile = recorder->profile;
    struct profile_label labels[] = {
        {.key = profile_cstring(profile, "comm"),
         .text = profile_cstring(
             profile, processes_thread_name(&recorder->processes, process, record->tid))},
        {.key = profile_cstring(profile, "pid"), .number = record->pid},
        {.key = profile_cstring(profile, "tid"), .number = record->tid},
    };
    return profile_label_set(profile, labels, ARRAY_LENGTH(labels));
}

static void take_sample(struct recorder *recorder, const struct perf_record *record)
{
    struct profile *profile = recorder->profile;
    struct process *process = processes_get(&recorder->processes, record->pid);
    if (!process)
        return;
    if (!process->count)
        process_catch_up(&recorder->processes, process);
    uint32_t frames[2 * RECORDER_FRAMES_MAX + 2];
    size_t count = 0;
    if (recorder->root_by_process)
        frames[count++] = pseudo_frame(profile, process->name);
    if (record->has_user)
        count += walk_user(recorder, process, record, frames + count);
    count += add_kernel(recorder, record, frames + count);
    size_t row = profile_sample(profile, profile_stack(profile, frames, count),
                                label_sample(recorder, process, record), 0,
                                record->time_ns + (uint64_t)recorder->epoch_ns);
    profile_add_value(profile, row, recorder->samples_type, 1);
    profile_add_value(profile, row, recorder->cpu_type, (int64_t)record->period);
    recorder->samples++;
}

void recorder_take(void *context, const struct perf_record *record)
{
    struct recorder *recorder = context;
    struct process *process = NULL;
    if (record->kind == PERF_LOST) {
        recorder->lost += record->lost;
        return;
    }
    if (record->kind == PERF_SAMPLE) {
        take_sample(recorder, record);
        return;
    }
    process = processes_get(&recorder->processes, record->pid);
    if (!process)
        return;
    if (record->kind == PERF_MAPPED) {
        process_map(&recorder->processes, process, record->start, record->length, record->offset,
                    record->path);
    } else if (record->kind == PERF_NAMED && record->pid == record->tid) {
        snprintf(process->name, sizeof(process->name), "%s", record->path);
        if (record->executed)
            process_clear(process);
    } else if (record->kind == PERF_NAMED) {
        processes_name_thread(&recorder->processes, record->tid, record->path);
    } else if (record->kind == PERF_STARTED && record->pid != record->parent_pid) {
        struct process *parent = processes_get(&recorder->processes, record->parent_pid);
        /* A pid may come again: the new one has nothing of the old. */
        if (parent)
            process_copy(process, parent);
    }
}
