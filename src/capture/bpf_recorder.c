// SPDX-License-Identifier: Apache-2.0
// BPF events into a profile: see bpf_recorder.h.

#include "capture/bpf_recorder.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

#define POLLS_MAX 1025
/* Samples that may be copied in each quarter of a second: all of them at usual rates. */
#define COPIES_MIN 64
#define COPIES_MAX 512
#define COPY_TURN_NS 250000000
#define CHURN_NS 1000000000u
#define STACKS_BYTES_DEFAULT (32u << 20)
/* Of unwind rules the kernel has room for a number; files share them, but they are never fewer. */
#define RULES_MAX (BPF_RULES_MAX - 1024)
/* What a walk or an event on its way in another CPU can take, at the very most. */
#define SETTLE_US 20000

enum { REGISTER_IP = 16 }; /* by DWARF number */

static void forget_process(void *context, struct process *process)
{
    struct bpf_recorder *bpf = context;
    installer_forget(&bpf->installer, process);
}

int bpf_recorder_init(struct bpf_recorder *bpf, struct recorder *recorder,
                      const struct bpf_sampler_options *options, struct error *error)
{
    *bpf = (struct bpf_recorder){.recorder = recorder, .stacks_bytes = STACKS_BYTES_DEFAULT};
    pid_t everybody = -1;
    /* First what happens to processes, then samples, so that no sample lacks its process. */
    int r = perf_sampler_new(&(struct perf_options){.threads = &everybody, .thread_count = 1},
                             &bpf->events, error);
    if (r == -EACCES || r == -EPERM)
        error_set(error, r, "BPF takes root, or CAP_BPF and CAP_PERFMON: `assay doctor` says how.");
    if (!r)
        r = bpf_sampler_new(options, &bpf->sampler, error);
    if (r < 0) {
        perf_sampler_free(bpf->events);
        *bpf = (struct bpf_recorder){0};
        return r;
    }
    installer_init(&bpf->installer, bpf->sampler, &recorder->modules, &recorder->segments);
    recorder->processes.forget = forget_process;
    recorder->processes.context = bpf;
    recorder->only_known = !options->all && options->cgroup < 0;
    uint64_t samples = (uint64_t)options->frequency_hz * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
    bpf->copies = (unsigned)MAX(COPIES_MIN, MIN(samples / 2, COPIES_MAX));
    bpf_sampler_allow_copies(bpf->sampler, bpf->copies);
    return 0;
}

void bpf_recorder_release(struct bpf_recorder *bpf)
{
    if (!bpf->sampler)
        return;
    struct processes *processes = &bpf->recorder->processes;
    for (size_t i = 0; i < processes->count; i++)
        installer_forget(&bpf->installer, processes->list[i]);
    processes->forget = NULL;
    bpf_sampler_free(bpf->sampler);
    perf_sampler_free(bpf->events);
    installer_release(&bpf->installer);
    free(bpf->stacks);
    id_table_release(&bpf->index);
    arena_release(&bpf->arena);
}

/* ---- stacks ---- */

static struct known_stack *find_stack(struct bpf_recorder *bpf, uint64_t hash)
{
    struct id_probe probe = id_probe_start(hash_word(hash));
    uint32_t id;
    while ((id = id_table_next(&bpf->index, &probe)) != ID_NONE)
        if (bpf->stacks[id].hash == hash)
            return &bpf->stacks[id];
    return NULL;
}

static void take_stack(struct bpf_recorder *bpf, const struct bpf_stack_event *event)
{
    if (!event->count || find_stack(bpf, event->hash))
        return;
    struct known_stack stack = {.hash = event->hash,
                                .count = event->count,
                                .end = (uint8_t)MIN(event->end, UNWIND_END_KINDS - 1)};
    uint64_t *words = arena_alloc(&bpf->arena, event->count * sizeof(*words));
    memcpy(words, event + 1, event->count * sizeof(*words));
    stack.words = words;
    stack.frames = arena_alloc(&bpf->arena, event->count * sizeof(uint32_t));
    array_reserve(bpf->stacks, bpf->stack_capacity, bpf->stack_count + 1);
    id_table_insert(&bpf->index, hash_word(stack.hash), (uint32_t)bpf->stack_count);
    bpf->stacks[bpf->stack_count++] = stack;
}

static uint32_t user_frame(struct bpf_recorder *bpf, uint32_t pid, uint64_t word)
{
    if (word & BPF_FRAME_RAW)
        return recorder_raw_frame(bpf->recorder, pid, word & ~BPF_FRAME_RAW);
    return recorder_segment_frame(bpf->recorder, (uint32_t)(word >> BPF_FRAME_SEGMENT_SHIFT),
                                  word & BPF_FRAME_OFFSET_MASK);
}

/* The frames of a stack in the profile of now. */
static void resolve(struct bpf_recorder *bpf, struct known_stack *stack, uint32_t pid, bool kernel)
{
    bool fits = !stack->has_raw || stack->pid == pid;
    if (stack->epoch == bpf->recorder->epoch && fits)
        return;
    stack->epoch = bpf->recorder->epoch;
    stack->pid = pid;
    for (uint32_t i = 0; i < stack->count; i++) {
        uint64_t word = stack->words[stack->count - 1 - i];
        if (kernel) {
            stack->frames[i] = recorder_kernel_frame(bpf->recorder, word - 1);
        } else {
            stack->has_raw |= (word & BPF_FRAME_RAW) != 0;
            stack->frames[i] = user_frame(bpf, pid, word);
        }
    }
}

/* A leaf and its callers, outermost first. Returns how many frames. */
static size_t add_stack(struct bpf_recorder *bpf, const struct bpf_sample_event *event, bool kernel,
                        uint32_t *frames)
{
    uint64_t leaf = kernel ? event->kernel_leaf : event->user_leaf;
    uint64_t callers = kernel ? event->kernel_callers : event->user_callers;
    size_t count = 0;
    struct known_stack *stack = callers ? find_stack(bpf, callers) : NULL;
    if (stack) {
        resolve(bpf, stack, event->pid, kernel);
        memcpy(frames, stack->frames, stack->count * sizeof(*frames));
        count = stack->count;
    } else if (callers) {
        bpf->unknown_stacks++;
        frames[count++] = recorder_mark(bpf->recorder, "[unknown]");
    }
    frames[count++] =
        kernel ? recorder_kernel_frame(bpf->recorder, leaf) : user_frame(bpf, event->pid, leaf);
    return count;
}

/* ---- samples ---- */

/* Whether the kernel walked by mappings that other code had replaced by then. */
static bool is_stale(const struct process *process, const struct bpf_sample_event *event)
{
    if (!process->replaced_ns || event->time_ns < process->replaced_ns)
        return false;
    const struct pool_list *list = process->list;
    return !list || event->list != list->described.list || list->built_ns < process->replaced_ns;
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
        count += add_stack(bpf, event, false, frames + count);
    return count;
}

/* What a process that keeps replacing its code was told to the kernel is wrong in no time: until it
 * is quiet, its stacks are copied and walked by what was mapped then. */
static bool is_churning(const struct process *process, uint64_t now_ns)
{
    return process->churned_ns && now_ns - process->churned_ns < CHURN_NS;
}

static struct unwind_input copied_input(const struct bpf_recorder *bpf,
                                        const struct bpf_copy_event *event,
                                        struct installer_view *view)
{
    struct unwind_input input = {
        .registers.known = (1u << UNWIND_REGISTERS) - 1,
        .stack = (const uint8_t *)(event + 1),
        .stack_bytes = event->stack_bytes,
        .stack_address = event->stack_address,
        .rules = &bpf->recorder->modules.rules,
        .find = installer_place,
        .context = view,
        .in_system_call = event->sample.flags & BPF_SAMPLE_SYSTEM_CALL,
    };
    memcpy(input.registers.value, event->registers, sizeof(event->registers));
    return input;
}

static size_t walk_copy(struct bpf_recorder *bpf, struct process *process,
                        const struct bpf_copy_event *event, uint32_t *frames)
{
    struct installer_view view = {.installer = &bpf->installer, .process = process};
    struct unwind_input input = copied_input(bpf, event, &view);
    size_t count = recorder_walk(bpf->recorder, &input, process, frames);
    /* A walk in the kernel gets farther than the copy reaches. */
    if (event->sample.list)
        installer_load(&bpf->installer, process, event->sample.user_leaf);
    bool told = process->list && process->list->described.list == event->sample.list;
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
    struct installer_view view = {.installer = &bpf->installer, .process = process};
    struct unwind_input input = copied_input(bpf, event, &view);
    struct recorder before = *bpf->recorder;
    size_t our_count = recorder_walk(bpf->recorder, &input, process, ours);
    bool whole = bpf->recorder->ends[UNWIND_END_COMPLETE] > before.ends[UNWIND_END_COMPLETE];
    bool cut = bpf->recorder->ends[UNWIND_END_TRUNCATED] > before.ends[UNWIND_END_TRUNCATED];
    memcpy(bpf->recorder->ends, before.ends, sizeof(before.ends));
    bpf->recorder->walks = before.walks;
    if (cut) /* the copy is shorter than the stack */
        return;
    size_t their_count = add_stack(bpf, &event->sample, false, theirs);
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

static void take_sample(struct bpf_recorder *bpf, const struct bpf_sample_event *event)
{
    struct recorder *recorder = bpf->recorder;
    bool has_user = event->flags & BPF_SAMPLE_USER;
    struct process *process = recorder_process(recorder, event->pid, has_user);
    if (!process || !recorder->profile)
        return;
    char comm[sizeof(event->comm) + 1] = "";
    memcpy(comm, event->comm, sizeof(event->comm));
    if (!process->name[0] && event->pid == event->tid)
        memcpy(process->name, event->comm, sizeof(process->name) - 1);
    uint32_t frames[2 * RECORDER_FRAMES_MAX + 2];
    size_t count = 0;
    if (recorder->root_by_process)
        frames[count++] = recorder_mark(recorder, process->name[0] ? process->name : comm);
    if (has_user && is_between_programs(process, event))
        has_user = false;
    else if (event->kind == BPF_EVENT_COPY)
        count += walk_copy(bpf, process, (const struct bpf_copy_event *)event, frames + count);
    else if (has_user)
        count += add_walked(bpf, process, event, frames + count);
    if (event->flags & BPF_SAMPLE_KERNEL)
        count += add_stack(bpf, event, true, frames + count);
    recorder_add(recorder,
                 &(struct recorder_sample){.pid = event->pid,
                                           .tid = event->tid,
                                           .comm = comm,
                                           .time_ns = event->time_ns,
                                           .cpu_ns = recorder_weight_ns(recorder, event->time_ns),
                                           .frames = frames,
                                           .frame_count = count});
}

/* ---- events ---- */

static void take_record(void *context, const struct perf_record *record)
{
    struct bpf_recorder *bpf = context;
    struct processes *processes = &bpf->recorder->processes;
    recorder_take(bpf->recorder, record);
    bpf->changes = bpf->changes || record->kind == PERF_MAPPED || record->executed;
    if (record->kind == PERF_LOST)
        for (size_t i = 0; i < processes->count; i++)
            installer_forget(&bpf->installer, processes->list[i]);
    if (record->kind == PERF_STARTED && record->pid != record->parent_pid) {
        struct process *child = processes_find(processes, record->pid);
        struct process *parent = processes_find(processes, record->parent_pid);
        if (child && parent)
            installer_share(&bpf->installer, child, parent);
    }
}

/* What happened to a process before a sample of it is in the rings when the sample is in its own.
 */
static void collect(struct bpf_recorder *bpf, uint64_t until_ns)
{
    if (until_ns <= bpf->collected_ns)
        return;
    bpf->collected_ns = (uint64_t)monotonic_ns();
    perf_sampler_collect(bpf->events);
}

static void take_event(void *context, const void *data)
{
    struct bpf_recorder *bpf = context;
    if (*(const uint32_t *)data == BPF_EVENT_STACK) {
        take_stack(bpf, data);
        return;
    }
    const struct bpf_sample_event *event = data;
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
    bpf_sampler_read(bpf->sampler, take_event, bpf);
    for (size_t i = 0; i < processes->count; i++) {
        struct process *process = processes->list[i];
        unwind_pool_leave_list(&bpf->installer.pool, process->list, monotonic_ns());
        process->list = NULL;
        for (size_t m = 0; m < process->count; m++)
            process->mappings[m].segment = 0;
    }
    bpf_sampler_forget_processes(bpf->sampler); /* those that the last copies brought in */
    installer_reset(&bpf->installer);
    if (modules_full(bpf))
        recorder_forget_modules(bpf->recorder);
    bpf_sampler_forget_stacks(bpf->sampler);
    bpf->stack_count = 0;
    id_table_clear(&bpf->index);
    arena_release(&bpf->arena);
    bpf->resets++;
}

static void keep_house(struct bpf_recorder *bpf, int64_t now_ns)
{
    if (now_ns - bpf->allowed_ns >= COPY_TURN_NS) {
        bpf->allowed_ns = now_ns;
        bpf_sampler_allow_copies(bpf->sampler, bpf->copies);
    }
    if (installer_full(&bpf->installer) || modules_full(bpf) ||
        bpf->arena.total_bytes > bpf->stacks_bytes)
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
        if (is_churning(process, until_ns))
            installer_forget(&bpf->installer, process);
        else
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
    bpf_sampler_read(bpf->sampler, take_event, bpf);
    uint64_t until_ns = (uint64_t)monotonic_ns();
    collect(bpf, until_ns);
    perf_sampler_deliver(bpf->events, until_ns, take_record, bpf);
    install_changes(bpf, until_ns);
    keep_house(bpf, monotonic_ns());
    return 0;
}
