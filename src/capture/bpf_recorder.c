// SPDX-License-Identifier: Apache-2.0
// BPF events into a profile: see bpf_recorder.h.

#include "capture/bpf_recorder.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "arch/x86_64/registers.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "capture/bpf/cgroups.h"
#include "capture/record/requests.h"

#define POLLS_MAX 1025
/* Samples that may be copied in each BPF_COPY_TURN_NS: all of them at usual rates. */
#define COPIES_MIN 64
#define COPIES_MAX 512
#define CHURN_NS 1000000000u
#define STACKS_BYTES_DEFAULT (32u << 20)
/* Of unwind rules the kernel has room for a number; files share them, but they are never fewer. */
#define RULES_MAX (BPF_RULES_MAX - 1024)
/* An upper bound for a walk or an event in progress on another CPU. */
#define SETTLE_US 20000
/* Events are read for at most so long: they may come as fast as they are read, and there is more to
 * do. The second is for when all of them are wanted. */
#define READ_NS 250000000ll
#define DRAIN_NS 5000000000ll
/* While there are no events of processes, what is known of them is looked up again so often. */
#define DOUBT_AGAIN_NS 10000000000
#define CGROUPS_NS 1000000000
/* Of CPU time for unwind rows, before the first sample. */
#define PREPARE_CPU_NS 300000000

static void forget_process(void *context, struct process *process)
{
    struct bpf_recorder *bpf = context;
    installer_forget(&bpf->installer, process);
}

/* The kernel's tables go away. */
static void leave_kernel(struct bpf_recorder *bpf, struct process *process)
{
    installer_forget(&bpf->installer, process);
    if (process->interpreter)
        process->interpreter->place = NULL;
}

static int open_sources(struct bpf_recorder *bpf, const struct bpf_sampler_options *options,
                        struct error *error)
{
    pid_t everybody = -1;
    struct perf_options events = {
        .threads = &everybody, .thread_count = 1, .deep_buffers = options->deep_buffers};
    int r = perf_sampler_new(&events, &bpf->events, error);
    if (r == -EACCES || r == -EPERM)
        error_set(error, r, "BPF requires root, or CAP_BPF and CAP_PERFMON: see `assay doctor`.");
    if (r < 0)
        return r;
    uint64_t samples = (uint64_t)options->frequency_hz * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
    struct bpf_sampler_options wanted = *options;
    wanted.copies = (unsigned)MAX(COPIES_MIN, MIN(samples / 2, COPIES_MAX));
    return bpf_sampler_new(&wanted, &bpf->sampler, error);
}

/* At what its runtime and its libraries say. True: the kernel has to be told of it again. */
static bool look(struct bpf_recorder *bpf, struct process *process)
{
    struct recorder *recorder = bpf->recorder;
    struct runtime_reader *reader = &recorder->interpreters.reader;
    int64_t now_ns = monotonic_ns();
    bool found = interpreters_look(&recorder->interpreters, process, now_ns);
    if (contexts_look_published(&recorder->contexts, &recorder->processes, process, reader, false,
                                now_ns))
        process->labels_epoch = 0;
    return contexts_look(&recorder->contexts, process, reader, now_ns) || found;
}

/* The kernel can walk the stacks of a process from its first sample on. Rows of files that no cache
 * has take time to compile: those that come too late are loaded when they are needed. */
static void introduce(struct bpf_recorder *bpf, struct process *process, int64_t until_cpu_ns)
{
    look(bpf, process);
    for (size_t i = 0; i < process->count; i++)
        if (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until_cpu_ns)
            installer_prepare(&bpf->installer, &process->mappings[i]);
    installer_install(&bpf->installer, process, (uint64_t)process->caught_up_ns);
}

/* Now, or it would if it had a CPU. */
static bool is_running(const struct process *process)
{
    char path[64];
    _cleanup_buffer_ struct buffer content = {0};
    snprintf(path, sizeof(path), "/proc/%u/stat", process->pid);
    if (file_read(path, 65536, &content, NULL) < 0)
        return false;
    const char *name_end = strrchr(buffer_text(&content), ')');
    return name_end && !strncmp(name_end, ") R", 3);
}

/* Those that run come first: they will have samples, and the time to prepare is limited. */
static void introduce_all(struct bpf_recorder *bpf, int64_t until_cpu_ns)
{
    struct processes *processes = &bpf->recorder->processes;
    struct process **later = memory_alloc((processes->count + 1) * sizeof(*later));
    size_t later_count = 0, count = processes->count;
    for (size_t i = 0; i < count && !installer_crowded(&bpf->installer); i++) {
        if (processes->list[i]->known && is_running(processes->list[i]))
            introduce(bpf, processes->list[i], until_cpu_ns);
        else if (processes->list[i]->known)
            later[later_count++] = processes->list[i];
    }
    for (size_t i = 0; i < later_count && !installer_crowded(&bpf->installer); i++)
        introduce(bpf, later[i], until_cpu_ns);
    free(later);
}

/* Reads the existing processes; from here on, events report changes. */
static void learn(struct bpf_recorder *bpf, const struct bpf_sampler_options *options,
                  bool learn_all)
{
    struct processes *processes = &bpf->recorder->processes;
    /* One that waits to execute a program is told by events. */
    if (options->enable_on_exec) {
        processes_get(processes, (uint32_t)options->pids[0]);
        return;
    }
    processes_learn(processes, options->pids, options->pid_count, learn_all);
    introduce_all(bpf, clock_ns(CLOCK_THREAD_CPUTIME_ID) + PREPARE_CPU_NS);
}

static void stop_collectors(struct bpf_recorder *bpf)
{
    for (size_t i = 0; i < bpf->collector_count; i++)
        bpf->collectors[i].kind->stop(bpf->collectors[i].state);
    bpf->collector_count = 0;
}

/* The reasons of several follow each other, as far as there is room. */
static void note_missing(struct bpf_recorder *bpf, const struct error *error)
{
    char *text = bpf->missing.text;
    size_t used = strlen(text);
    bpf->missing.code = error->code;
    snprintf(text + used, sizeof(bpf->missing.text) - used, "%s%s", used ? " " : "", error->text);
}

/* Those that may be missing leave a reason. */
static int start_collectors(struct bpf_recorder *bpf, const struct bpf_recorder_options *options,
                            struct error *error)
{
    struct collector_setup setup = {.recorder = bpf->recorder,
                                    .sampler = bpf->sampler,
                                    .modes = options->modes,
                                    .cgroup = options->sampler.cgroup,
                                    .collect = options->collect};
    for (const struct collector_kind *const *kind = collector_kinds; *kind; kind++) {
        unsigned asked = (*kind)->modes & options->modes;
        if (!asked || bpf->collector_count == ARRAY_LENGTH(bpf->collectors))
            continue;
        struct collector *collector = &bpf->collectors[bpf->collector_count];
        *collector = (struct collector){.kind = *kind};
        int r = (*kind)->start(&setup, &collector->state, error);
        if (!r)
            bpf->collector_count++;
        else if (asked & ~options->optional_modes)
            return r;
        else
            note_missing(bpf, error);
    }
    return 0;
}

int bpf_recorder_init(struct bpf_recorder *bpf, struct recorder *recorder,
                      const struct bpf_recorder_options *wanted, struct error *error)
{
    const struct bpf_sampler_options *options = &wanted->sampler;
    *bpf = (struct bpf_recorder){
        .recorder = recorder, .stacks.recorder = recorder, .stacks_bytes = STACKS_BYTES_DEFAULT};
    int r = open_sources(bpf, options, error);
    if (!r)
        r = start_collectors(bpf, wanted, error);
    if (r < 0) {
        stop_collectors(bpf);
        bpf_sampler_free(bpf->sampler);
        perf_sampler_free(bpf->events);
        *bpf = (struct bpf_recorder){0};
        return r;
    }
    installer_init(&bpf->installer, bpf->sampler, &recorder->modules, &recorder->segments);
    recorder->processes.forget = forget_process;
    recorder->processes.context = bpf;
    recorder->interpreters.table = bpf_sampler_runtimes(bpf->sampler);
    recorder->contexts.table = bpf_sampler_contexts(bpf->sampler);
    recorder->only_known = !options->all && options->cgroup < 0;
    /* First what happens to processes, then what they are, then samples: none lacks its process. */
    learn(bpf, options, wanted->learn_all);
    return bpf_sampler_start(bpf->sampler, error);
}

void bpf_recorder_release(struct bpf_recorder *bpf)
{
    if (!bpf->sampler)
        return;
    struct processes *processes = &bpf->recorder->processes;
    for (size_t i = 0; i < processes->count; i++)
        leave_kernel(bpf, processes->list[i]);
    bpf->recorder->interpreters.table = NULL;
    bpf->recorder->contexts.table = NULL;
    processes->forget = NULL;
    stop_collectors(bpf);
    bpf_sampler_free(bpf->sampler);
    perf_sampler_free(bpf->events);
    installer_release(&bpf->installer);
    long_stacks_release(&bpf->long_stacks);
    known_stacks_release(&bpf->stacks);
}

/* ---- samples ---- */

/* Whether the kernel walked, and by mappings that other code had replaced by then. */
static bool is_stale(const struct process *process, const struct bpf_sample_event *event)
{
    return event->list && process_list_is_stale(process, event->list, event->time_ns);
}

static size_t add_walked(struct bpf_recorder *bpf, const struct process *process,
                         const struct bpf_sample_event *event, uint32_t *frames)
{
    struct recorder *recorder = bpf->recorder;
    enum unwind_end end = (enum unwind_end)MIN(event->end, UNWIND_END_KINDS - 1);
    if (is_stale(process, event))
        end = UNWIND_END_STALE;
    recorder->ends[end]++;
    recorder->walks++;
    size_t count = 0;
    if (recorder_end_mark(end))
        frames[count++] = recorder_mark(recorder, recorder_end_mark(end));
    if (end != UNWIND_END_STALE)
        count += known_stacks_add(&bpf->stacks, event, false, frames + count);
    return count;
}

/* What a process that keeps replacing its code was told to the kernel is wrong in no time: until it
 * is quiet, its stacks are copied and walked by what was mapped then. */
static bool is_churning(const struct process *process, uint64_t now_ns)
{
    return process->churned_ns && now_ns - process->churned_ns < CHURN_NS;
}

static struct unwind_input copied_input(struct bpf_recorder *bpf,
                                        const struct bpf_copy_event *event,
                                        struct installer_view *view)
{
    struct unwind_input input = {
        .registers.known = (1u << UNWIND_REGISTERS) - 1,
        .rules = &bpf->recorder->modules.rules,
        .find = installer_place,
        .context = view,
        .in_system_call = event->sample.flags & BPF_SAMPLE_SYSTEM_CALL &&
                          !(event->sample.flags & BPF_SAMPLE_EXEC),
    };
    input.stack =
        long_stacks_join(&bpf->long_stacks, event, &input.stack_address, &input.stack_bytes);
    memcpy(input.registers.value, event->registers, sizeof(event->registers));
    return input;
}

static size_t walk_copy(struct bpf_recorder *bpf, struct process *process,
                        const struct bpf_copy_event *event, uint32_t *frames)
{
    struct installer_view view = {.installer = &bpf->installer, .process = process};
    struct unwind_input input = copied_input(bpf, event, &view);
    size_t count = recorder_walk(bpf->recorder, &input, process, frames);
    process->started = event->started;
    /* A walk in the kernel gets farther than the copy reaches. */
    if (event->sample.list)
        installer_load(&bpf->installer, process, event->sample.user_leaf);
    /* A copy from before the kernel was told says nothing of what it knows now. */
    bool told = process->list && (process->list->described.list == event->sample.list ||
                                  event->sample.time_ns < process->told_ns);
    if ((!told || process->changed) && !is_churning(process, event->sample.time_ns))
        installer_install(&bpf->installer, process, event->sample.time_ns);
    return count;
}

/* The kernel's walk and ours of the same stack have to be the same. */
static void check_walk(struct bpf_recorder *bpf, const struct bpf_copy_event *event)
{
    uint32_t ours[RECORDER_FRAMES_MAX], theirs[RECORDER_FRAMES_MAX];
    struct process *process = recorder_process(bpf->recorder, event->sample.pid, true);
    if (!process || !bpf->recorder->profile || is_stale(process, &event->sample))
        return;
    /* Code that a runtime compiled is walked by its own rules, which a copy alone doesn't have. */
    if (process->interpreter && process->interpreter->kind != BPF_RUNTIME_PYTHON)
        return;
    struct installer_view view = {.installer = &bpf->installer, .process = process};
    struct unwind_input input = copied_input(bpf, event, &view);
    struct recorder before = *bpf->recorder;
    bpf->recorder->checking = true;
    size_t our_count = recorder_walk(bpf->recorder, &input, process, ours);
    bpf->recorder->checking = false;
    bool whole = bpf->recorder->ends[UNWIND_END_COMPLETE] > before.ends[UNWIND_END_COMPLETE];
    bool cut = bpf->recorder->ends[UNWIND_END_TRUNCATED] > before.ends[UNWIND_END_TRUNCATED];
    memcpy(bpf->recorder->ends, before.ends, sizeof(before.ends));
    bpf->recorder->walks = before.walks;
    if (cut) /* the copy is shorter than the stack */
        return;
    size_t their_count = known_stacks_native(&bpf->stacks, &event->sample, theirs);
    bpf->checked++;
    if (!whole || our_count != their_count || memcmp(ours, theirs, our_count * sizeof(*ours)))
        bpf->different++;
}

/* In execve the old program's memory is gone and the new one's first instruction is still to come:
 * there is no user stack. */
static bool is_between_programs(const struct process *process, const struct bpf_sample_event *event)
{
    const struct bpf_copy_event *copy = (const struct bpf_copy_event *)event;
    if (!(event->flags & BPF_SAMPLE_SYSTEM_CALL) || !process->replaced_ns ||
        process->replaced_ns == process->churned_ns || event->time_ns < process->replaced_ns)
        return false;
    return event->kind == BPF_EVENT_COPY ? !process_find(process, copy->registers[REGISTER_IP] - 1)
                                         : is_stale(process, event);
}

/* The place where the thread ran is known, or asked for. */
static void repair(struct bpf_recorder *bpf, struct process *process,
                   const struct bpf_sample_event *event)
{
    const struct bpf_copy_event *copy = (const struct bpf_copy_event *)event;
    if (event->kind == BPF_EVENT_COPY)
        recorder_repair(bpf->recorder, process, copy->registers[REGISTER_IP], event->time_ns);
    else if (event->user_leaf & BPF_FRAME_RAW)
        recorder_repair(bpf->recorder, process, event->user_leaf & ~BPF_FRAME_RAW, event->time_ns);
}

static size_t add_user(struct bpf_recorder *bpf, struct process *process,
                       const struct bpf_sample_event *event, uint32_t *frames)
{
    if (!(event->flags & BPF_SAMPLE_USER) || is_between_programs(process, event))
        return 0;
    repair(bpf, process, event);
    return event->kind == BPF_EVENT_COPY
               ? walk_copy(bpf, process, (const struct bpf_copy_event *)event, frames)
               : add_walked(bpf, process, event, frames);
}

/* Without events, that a pid has another program or is another process by now is seen by the
 * kernel's having dropped its list. */
static void check_identity(struct bpf_recorder *bpf, const struct bpf_sample_event *event)
{
    struct process *process = processes_find(&bpf->recorder->processes, event->pid);
    if (!bpf->flood.deaf || event->kind != BPF_EVENT_COPY || event->list || !process ||
        !process->list)
        return;
    installer_forget(&bpf->installer, process);
    process_execute(&bpf->recorder->processes, process, event->time_ns);
    process->known = false;
    process->caught_up_ns = 0;
    process->name[0] = '\0';
}

/* To the collector that sent it; a tick of the CPU clock to the recorder and all that want it. */
static void hand_over(struct bpf_recorder *bpf, const struct recorder_sample *sample,
                      const struct bpf_sample_event *event)
{
    bool tick = event->collector == BPF_COLLECTOR_CPU;
    if (tick)
        recorder_add(bpf->recorder, sample);
    for (size_t i = 0; i < bpf->collector_count; i++) {
        const struct collector *collector = &bpf->collectors[i];
        if (tick && collector->kind->take_tick)
            collector->kind->take_tick(collector->state, sample);
        else if (collector->kind->collector == event->collector && collector->kind->take_sample)
            collector->kind->take_sample(collector->state, sample, event);
    }
}

static void take_sample(struct bpf_recorder *bpf, const struct bpf_sample_event *event)
{
    struct recorder *recorder = bpf->recorder;
    bool has_user = event->flags & BPF_SAMPLE_USER;
    check_identity(bpf, event);
    struct process *process = recorder_process(recorder, event->pid, has_user);
    if (!process || !recorder_wants(recorder, event->time_ns))
        return;
    if (has_user && look(bpf, process))
        installer_describe(&bpf->installer, process);
    char comm[sizeof(event->comm) + 1] = "";
    memcpy(comm, event->comm, sizeof(event->comm));
    if (!process->name[0] && event->pid == event->tid)
        memcpy(process->name, event->comm, sizeof(process->name) - 1);
    uint32_t frames[2 * RECORDER_FRAMES_MAX + 2];
    size_t count = 0;
    if (recorder->root_by_process)
        frames[count++] = recorder_mark(recorder, process->name[0] ? process->name : comm);
    count += add_user(bpf, process, event, frames + count);
    if (event->flags & BPF_SAMPLE_KERNEL)
        count += known_stacks_add(&bpf->stacks, event, true, frames + count);
    struct recorder_sample sample = {.pid = event->pid,
                                     .tid = event->tid,
                                     .comm = comm,
                                     .time_ns = event->time_ns,
                                     .cpu_ns = recorder_weight_ns(recorder, event->time_ns),
                                     .frames = frames,
                                     .frame_count = count};
    struct sample_context context;
    if (event->flags & BPF_SAMPLE_CONTEXT) {
        sample_context_of(recorder, process, &event->context, &context);
        sample.context = &context;
    }
    uint32_t second[RECORDER_FRAMES_MAX + 2];
    if (event->second_leaf) {
        sample.second_frames = second;
        sample.second_count = known_stacks_add_second(&bpf->stacks, event, second);
    }
    hand_over(bpf, &sample, event);
}

/* ---- events ---- */

/* All that is known of processes may be wrong: it is looked up where it is needed. */
static void doubt(struct bpf_recorder *bpf, int64_t now_ns)
{
    struct processes *processes = &bpf->recorder->processes;
    bpf->doubted_ns = now_ns;
    processes_doubt(processes, now_ns);
    for (size_t i = 0; i < processes->count; i++)
        installer_forget(&bpf->installer, processes->list[i]);
}

static void note_events(struct bpf_recorder *bpf, uint64_t count)
{
    int64_t now_ns = monotonic_ns();
    uint32_t pid;
    if (!flood_note(&bpf->flood, count, now_ns))
        return;
    perf_sampler_pause(bpf->events, true);
    size_t dropped = perf_sampler_discard(bpf->events, &pid);
    if (pid)
        excess_note(bpf->excess, pid, "events", MAX(count, dropped), now_ns);
    bpf_sampler_follow_ends(bpf->sampler, false);
    doubt(bpf, now_ns);
    bpf_sampler_forget_processes(bpf->sampler);
}

/* Whether a flood is over is seen by listening; without events, ends are looked for, and what has
 * changed since. */
static void watch_flood(struct bpf_recorder *bpf, int64_t now_ns)
{
    if (flood_over(&bpf->flood, now_ns)) {
        bpf_sampler_follow_ends(bpf->sampler, true);
        perf_sampler_pause(bpf->events, false);
        doubt(bpf, now_ns);
    } else if (bpf->flood.deaf && now_ns - bpf->doubted_ns >= DOUBT_AGAIN_NS) {
        doubt(bpf, now_ns);
        bpf_sampler_forget_processes(bpf->sampler);
    }
    if (bpf->forks_limit && now_ns - bpf->cgroups_ns >= CGROUPS_NS) {
        bpf_cgroups_check(bpf_sampler_cgroups(bpf->sampler), bpf->forks_limit,
                          now_ns - bpf->cgroups_ns, now_ns, bpf->excess);
        bpf->cgroups_ns = now_ns;
        excess_tidy(bpf->excess, now_ns);
    }
}

void bpf_recorder_limit(struct bpf_recorder *bpf, unsigned events, unsigned forks,
                        struct excess_list *excess)
{
    bpf->excess = excess;
    bpf->forks_limit = forks;
    bpf->cgroups_ns = monotonic_ns();
    flood_init(&bpf->flood, events, bpf->cgroups_ns);
}

static void take_record(void *context, const struct perf_record *record)
{
    struct bpf_recorder *bpf = context;
    struct processes *processes = &bpf->recorder->processes;
    recorder_take(bpf->recorder, record);
    bpf->changes = bpf->changes || record->kind == PERF_MAPPED || record->executed;
    if (record->kind == PERF_LOST) {
        for (size_t i = 0; i < processes->count; i++)
            installer_forget(&bpf->installer, processes->list[i]);
        note_events(bpf, record->lost);
    }
    if (record->kind == PERF_STARTED && record->pid != record->parent_pid) {
        struct process *child = processes_find(processes, record->pid);
        struct process *parent = processes_find(processes, record->parent_pid);
        if (child && parent && child->read_ns <= record->time_ns)
            installer_share(&bpf->installer, child, parent);
    }
}

/* Events of a process before a sample of it are in the rings when the sample is in its own.
 */
static void collect(struct bpf_recorder *bpf, uint64_t until_ns)
{
    if (until_ns <= bpf->collected_ns)
        return;
    bpf->collected_ns = (uint64_t)monotonic_ns();
    size_t before = perf_sampler_waiting(bpf->events);
    perf_sampler_collect(bpf->events);
    note_events(bpf, perf_sampler_waiting(bpf->events) - before);
}

static void take_note(struct bpf_recorder *bpf, const struct bpf_note *note)
{
    for (size_t i = 0; i < bpf->collector_count; i++) {
        const struct collector *collector = &bpf->collectors[i];
        if (collector->kind->collector == note->collector && collector->kind->take_note)
            collector->kind->take_note(collector->state, note);
    }
}

static void take_event(void *context, const void *data)
{
    struct bpf_recorder *bpf = context;
    if (*(const uint32_t *)data == BPF_EVENT_STACK) {
        known_stacks_take(&bpf->stacks, data);
        return;
    }
    if (*(const uint32_t *)data == BPF_EVENT_PART) {
        long_stacks_take(&bpf->long_stacks, data);
        return;
    }
    if (*(const uint32_t *)data == BPF_EVENT_CODE) {
        interpreters_take_code(&bpf->recorder->interpreters, data);
        return;
    }
    if (*(const uint32_t *)data == BPF_EVENT_ATTRIBUTES) {
        contexts_take_attributes(&bpf->recorder->contexts, data);
        return;
    }
    if (*(const uint32_t *)data == BPF_EVENT_NOTE) {
        take_note(bpf, data);
        return;
    }
    const struct bpf_sample_event *event = data;
    bpf->taken_ns = event->time_ns;
    collect(bpf, event->time_ns);
    perf_sampler_deliver(bpf->events, event->time_ns, take_record, bpf);
    if (event->flags & BPF_SAMPLE_CHECK)
        check_walk(bpf, data);
    else
        take_sample(bpf, event);
}

static bool modules_full(const struct bpf_recorder *bpf)
{
    return bpf->recorder->modules.refused || bpf->recorder->modules.rules.count > RULES_MAX;
}

/* All that the kernel was told, and all that it said, is worth nothing any more. */
static void reset(struct bpf_recorder *bpf)
{
    struct processes *processes = &bpf->recorder->processes;
    bpf_sampler_forget_processes(bpf->sampler);
    usleep(SETTLE_US);
    bpf_sampler_read(bpf->sampler, DRAIN_NS, take_event, bpf);
    for (size_t i = 0; i < processes->count; i++) {
        struct process *process = processes->list[i];
        unwind_pool_leave_list(&bpf->installer.pool, process->list, monotonic_ns());
        process->list = NULL;
        process->first_list = 0;
        for (size_t m = 0; m < process->count; m++)
            process->mappings[m].segment = 0;
    }
    bpf_sampler_forget_processes(bpf->sampler); /* those that the last copies brought in */
    installer_reset(&bpf->installer);
    if (modules_full(bpf))
        recorder_forget_modules(bpf->recorder);
    bpf_sampler_forget_stacks(bpf->sampler);
    interpreters_clear_codes(&bpf->recorder->interpreters);
    contexts_clear_attributes(&bpf->recorder->contexts);
    known_stacks_clear(&bpf->stacks);
    bpf->resets++;
}

static void maintain(struct bpf_recorder *bpf)
{
    watch_flood(bpf, monotonic_ns());
    if (installer_full(&bpf->installer) || modules_full(bpf) ||
        bpf->stacks.arena.total_bytes > bpf->stacks_bytes ||
        interpreters_codes_full(&bpf->recorder->interpreters) ||
        contexts_attributes_full(&bpf->recorder->contexts))
        reset(bpf);
}

/* Processes that the kernel knows and whose mappings have changed. */
static void install_changes(struct bpf_recorder *bpf, uint64_t until_ns)
{
    struct processes *processes = &bpf->recorder->processes;
    if (!bpf->changes)
        return;
    bpf->changes = false;
    for (size_t i = 0; i < processes->count; i++) {
        struct process *process = processes->list[i];
        if (!process->changed || !process->list)
            continue;
        if (is_churning(process, until_ns)) {
            installer_forget(&bpf->installer, process);
            continue;
        }
        look(bpf, process);
        installer_install(&bpf->installer, process, until_ns);
    }
}

int bpf_recorder_read(struct bpf_recorder *bpf, int timeout_ms)
{
    struct pollfd polls[POLLS_MAX];
    polls[0] = (struct pollfd){.fd = bpf_sampler_descriptor(bpf->sampler), .events = POLLIN};
    size_t count = 1 + perf_sampler_descriptors(bpf->events, polls + 1, POLLS_MAX - 1);
    if (poll(polls, count, timeout_ms) < 0 && errno != EINTR)
        return -errno;
    /* Events of processes are taken up to where their samples have been read: one that is
     * still in the ring is not to meet the mappings of a later time. */
    uint64_t until_ns = (uint64_t)monotonic_ns();
    bool more = bpf_sampler_read(bpf->sampler, READ_NS, take_event, bpf) > 0;
    if (more || until_ns < bpf->taken_ns)
        until_ns = bpf->taken_ns;
    collect(bpf, until_ns);
    perf_sampler_deliver(bpf->events, until_ns, take_record, bpf);
    install_changes(bpf, until_ns);
    maintain(bpf);
    if (monotonic_ns() >= bpf->requests_ns) {
        bpf->requests_ns = monotonic_ns() + REQUESTS_LOOK_NS;
        requests_look(bpf->recorder, &bpf->recorder->interpreters.reader, monotonic_ns());
    }
    for (size_t i = 0; i < bpf->collector_count; i++)
        if (bpf->collectors[i].kind->turn && !bpf->collectors[i].off)
            bpf->collectors[i].kind->turn(bpf->collectors[i].state, monotonic_ns());
    return 0;
}

void bpf_recorder_settle(struct bpf_recorder *bpf)
{
    requests_look(bpf->recorder, &bpf->recorder->interpreters.reader, monotonic_ns());
    for (size_t i = 0; i < bpf->collector_count; i++)
        if (bpf->collectors[i].kind->look)
            bpf->collectors[i].kind->look(bpf->collectors[i].state);
    /* At the end of a recording all of it counts: code of files that are large takes time. */
    while (bpf_sampler_read(bpf->sampler, DRAIN_NS, take_event, bpf) > 0 && bpf->paused)
        ;
    for (size_t i = 0; i < bpf->collector_count; i++)
        if (bpf->collectors[i].kind->settle)
            bpf->collectors[i].kind->settle(bpf->collectors[i].state);
}

void bpf_recorder_begin(struct bpf_recorder *bpf)
{
    for (size_t i = 0; i < bpf->collector_count; i++)
        if (bpf->collectors[i].kind->begin)
            bpf->collectors[i].kind->begin(bpf->collectors[i].state);
}

/* Those that were turned off one by one stay off. */
int bpf_recorder_pause(struct bpf_recorder *bpf, bool pause)
{
    int r = bpf_sampler_pause(bpf->sampler, pause);
    bpf->paused = pause;
    for (size_t i = 0; i < bpf->collector_count; i++) {
        const struct collector *collector = &bpf->collectors[i];
        if (!collector->kind->set_rate || collector->off)
            continue;
        int done = collector->kind->set_rate(collector->state,
                                             pause ? 0 : collector->kind->rate(collector->state));
        r = r < 0 ? r : done;
    }
    return r;
}

int bpf_recorder_set_collector(struct bpf_recorder *bpf, const char *name, unsigned rate_hz)
{
    for (size_t i = 0; i < bpf->collector_count; i++) {
        struct collector *collector = &bpf->collectors[i];
        if (strcmp(collector->kind->name, name) != 0)
            continue;
        int r = collector->kind->set_rate ? collector->kind->set_rate(collector->state, rate_hz)
                                          : -ENOTSUP;
        if (!r)
            collector->off = !rate_hz;
        return r;
    }
    return -ENOENT;
}

void bpf_recorder_limit_collector(struct bpf_recorder *bpf, const char *name, double cost_share)
{
    for (size_t i = 0; i < bpf->collector_count; i++) {
        struct collector *collector = &bpf->collectors[i];
        if (!strcmp(collector->kind->name, name) && collector->kind->limit)
            collector->kind->limit(collector->state, cost_share);
    }
}
