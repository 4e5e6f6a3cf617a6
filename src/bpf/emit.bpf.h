/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The probe engine: what a program needs to report something to user space. Scratch memory, walking
 * the stacks of the current task, sending chains of callers that user space has not seen, and the
 * sample itself. Any program can use it, in a perf event, tracepoint, uprobe, timer or iterator:
 *
 *     struct scratch *scratch = take_scratch();
 *     if (!scratch)
 *         return 0;
 *     begin_sample(scratch, BPF_COLLECTOR_..., now_ns);
 *     scratch->sample.value = ...;
 *     if (!take_stacks(ctx, scratch, frames of tracing))
 *         send_sample(scratch);
 *     release_scratch(scratch);
 *
 * Each collector is a BPF object of its own that includes this file. Maps that are declared here
 * and in walk.bpf.h are the sampler's: the loader shares every map whose name the sampler has.
 */
#pragma once

#include "bpf/walk.bpf.h"

#include "bpf/runtimes/context.bpf.h"

TABLE(known_stacks, __u64, BPF_KNOWN_MAX);

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, BPF_TARGETS_MAX);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u32);
    __type(value, __u32);
} targets SEC(".maps");

/* Not 0 while nothing but the targets is sampled. */
TABLE(targets_only, __u32, 1);

TABLE(copy_budget, struct bpf_copy_budget, 1);

/* No samples are taken after this time (CLOCK_MONOTONIC); 0: there is no end. User space may run
 * much later than it asked to. */
TABLE(deadline, __u64, 1);

struct kernel_stack {
    struct bpf_stack_event callers; /* frames[0] is the leaf, and no part of what is sent */
    __u64 frames[BPF_KERNEL_FRAMES_MAX + 1];
};

struct copy {
    struct bpf_copy_event event;
    __u8 stack[BPF_COPY_BYTES];
    __u8 zero[4096]; /* is never written */
};

struct scratch {
    struct bpf_scratch_head head;
    struct bpf_sample_event sample;
    __u64 registers[UNWIND_REGISTERS]; /* as they were: a walk changes its own */
    struct walk walk;
    struct kernel_stack kernel;
    struct context_scratch context;
    struct copy copy;
};
_Static_assert(sizeof(struct scratch) <= BPF_SCRATCH_BYTES, "user space knows the size");

/* BPF_SCRATCHES for each CPU: user space sets how many. (A map of the per-CPU kind has no room for
 * values of this size.) Programs interrupt each other on one CPU: a perf event a tracepoint's, and
 * where programs can be preempted, one of another thread. Each takes a scratch that is free. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __uint(key_size, 4);
    __uint(value_size, BPF_SCRATCH_BYTES);
} scratches SEC(".maps");

/* Of tracepoints, which have no scratch: processes whose list of mappings found no room. */
TABLE(fork_full, __u64, 1);

#define COUNT(scratch, counter) ((scratch)->head.counters[counter]++)

/* A wake-up costs more than an event: one when enough has come together. */
static __always_inline __u64 wake_up(void)
{
    __u64 waiting = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);
    return waiting >= settings.watermark ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* Sends a chain that user space has not seen. False when it will not know it. */
static __always_inline int send_stack(struct scratch *scratch, struct bpf_stack_event *stack,
                                      __u64 hash, __u32 frames, __u32 end)
{
    __u64 *known = table(&known_stacks);
    __u32 place = hash >> (64 - BPF_KNOWN_SHIFT);
    KEEP(place);
    if (!known)
        return 0;
    known += place & (BPF_KNOWN_MAX - 1);
    if (*known == hash)
        return 1;
    stack->kind = BPF_EVENT_STACK;
    stack->count = (unsigned short)frames;
    stack->end = (unsigned short)end;
    stack->hash = hash;
    KEEP(frames);
    if (frames > BPF_FRAMES_MAX)
        return 0;
    if (bpf_ringbuf_output(&events, stack, sizeof(*stack) + frames * 8, BPF_RB_NO_WAKEUP)) {
        COUNT(scratch, BPF_COUNT_STACK_LOST);
        return 0;
    }
    *known = hash;
    return 1;
}

/* A global function, which the verifier looks at once instead of on each way to it. */
__noinline __u64 hash_kernel(struct kernel_stack *kernel, __u32 frames)
{
    __u64 hash = 0;
    if (!kernel)
        return 0;
    for (__u32 i = 1; i < BPF_KERNEL_FRAMES_MAX && i <= frames; i++)
        hash = mix(hash, kernel->frames[i]);
    return hash;
}

/* What bpf_get_stack has put there: `bytes` of it. False when user space will not know it. */
static __always_inline int send_kernel(struct scratch *scratch, long bytes)
{
    struct kernel_stack *kernel = &scratch->kernel;
    struct bpf_sample_event *sample = &scratch->sample;
    if (bytes < 8)
        return 1;
    __u32 frames = (__u32)(bytes / 8) - 1;
    __u64 hash = hash_kernel(kernel, frames);
    sample->flags |= BPF_SAMPLE_KERNEL;
    sample->kernel_leaf = kernel->frames[0];
    sample->kernel_callers = hash;
    if (!frames || frames >= BPF_KERNEL_FRAMES_MAX)
        return 1;
    /* The header is written over the leaf and what is before it, right below the callers. */
    struct bpf_stack_event *stack =
        (void *)((char *)&kernel->frames[1] - sizeof(struct bpf_stack_event));
    return send_stack(scratch, stack, hash, frames, UNWIND_END_COMPLETE);
}

/* Without the innermost `skip` frames: those of tracing itself. */
static __always_inline int take_kernel(void *ctx, struct scratch *scratch, __u64 skip)
{
    return send_kernel(scratch,
                       bpf_get_stack(ctx, scratch->kernel.frames, BPF_KERNEL_FRAMES_MAX * 8, skip));
}

/* Of another task that doesn't run. */
static __always_inline int take_task_kernel(struct task_struct *task, struct scratch *scratch)
{
    return send_kernel(
        scratch, bpf_get_task_stack(task, scratch->kernel.frames, BPF_KERNEL_FRAMES_MAX * 8, 0));
}

/* The sample with `bytes` of its stack, which are in the scratch. */
static __always_inline int send_bytes(struct copy *copy, __u32 kind, __u64 address, __u32 bytes,
                                      __u64 flags)
{
    copy->event.sample.kind = kind;
    copy->event.stack_address = address;
    copy->event.stack_bytes = bytes;
    KEEP(bytes);
    if (bytes > BPF_COPY_BYTES)
        return -1;
    return bpf_ringbuf_output(&events, copy, sizeof(copy->event) + bytes, flags);
}

struct copy_state {
    struct copy *copy;
    __u64 sp; /* where the copy, or its last part, begins */
    __u32 bytes;
    __u32 solid; /* of them, up to the end of the last page that was there */
    __u32 parts; /* that may still be sent before the copy */
    __u32 holes; /* pages in a row that were not there */
};

/* Pages of a large frame that were never touched are not there; a stack goes on behind so many. */
#define COPY_HOLES_MAX 16

/* Sends what is in the scratch, if more may come behind it and there is much room. */
static __always_inline int send_part(struct copy_state *state)
{
    if (!state->parts || bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > settings.crowded / 2 ||
        send_bytes(state->copy, BPF_EVENT_PART, state->sp, state->bytes, BPF_RB_NO_WAKEUP))
        return -1;
    state->parts--;
    state->sp += state->bytes;
    state->bytes = state->solid = 0;
    return 0;
}

static long copy_page(__u32 index, void *context)
{
    struct copy_state *state = context;
    if (state->bytes > BPF_COPY_BYTES - 4096 && send_part(state))
        return 1;
    __u32 done = state->bytes;
    __u32 length = 4096 - ((state->sp + done) & 4095);
    KEEP(done);
    KEEP(length);
    if (length > 4096 || done > BPF_COPY_BYTES - 4096)
        return 1;
    if (!bpf_probe_read_user(state->copy->stack + done, length, (void *)(state->sp + done))) {
        state->bytes = state->solid = done + length;
        state->holes = 0;
        return 0;
    }
    /* Memory below the stack pointer may be in a page that was never touched, and so may be the
     * frame of a function that has just begun. */
    if (!done && state->parts == settings.parts - 1) {
        state->sp += length;
        return 0;
    }
    if (++state->holes > COPY_HOLES_MAX ||
        bpf_probe_read_kernel(state->copy->stack + done, length, state->copy->zero))
        return 1;
    state->bytes = done + length;
    return 0;
}

#define COPY_TURNS ((BPF_COPY_PAGES + 1) * BPF_COPY_PARTS_MAX)

/* Without bpf_loop: see walk_some(). What was copied is in the event. */
__noinline int copy_plainly(struct copy *copy, __u64 address)
{
    struct copy_state state = {.copy = copy, .sp = address, .parts = settings.parts - 1};
    if (!copy)
        return 0;
    for (__u32 i = 0; i < COPY_TURNS; i++)
        if (copy_page(i, &state))
            break;
    copy->event.stack_address = state.sp;
    copy->event.stack_bytes = state.solid;
    return 1;
}

/* The sample with its registers and `bytes` of its stack, which are in the scratch. */
static __always_inline int send_copied(struct scratch *scratch, __u64 started, __u64 address,
                                       __u32 bytes, __u64 flags)
{
    scratch->copy.event.sample = scratch->sample;
    scratch->copy.event.started = started;
    return send_bytes(&scratch->copy, BPF_EVENT_COPY, address, bytes, flags);
}

static __always_inline int send_copy(struct scratch *scratch)
{
    struct copy *copy = &scratch->copy;
    copy->event.sample = scratch->sample;
    copy->event.started = process_started();
    __builtin_memcpy(copy->event.registers, scratch->registers, sizeof(scratch->registers));
    /* With what is just below the stack pointer: leaf functions keep registers there. */
    __u64 sp = copy->event.registers[REGISTER_SP];
    struct copy_state state = {
        .copy = copy, .sp = sp - BPF_COPY_BELOW, .parts = settings.parts - 1};
    if (HAS_LOOP) {
        bpf_loop(COPY_TURNS, copy_page, &state, 0);
    } else {
        copy_plainly(copy, state.sp);
        state.sp = copy->event.stack_address;
        state.solid = copy->event.stack_bytes;
    }
    /* At once: the sooner user space knows the process, the fewer copies. */
    return send_copied(scratch, copy->event.started, state.sp, state.solid, BPF_RB_FORCE_WAKEUP);
}

static __always_inline int may_copy(struct scratch *scratch)
{
    struct bpf_copy_budget *budget = table(&copy_budget);
    __u64 now_ns = scratch->sample.time_ns;
    /* Two CPUs that do it at once grant a few more. */
    if (budget && now_ns - budget->turn_ns >= BPF_COPY_TURN_NS) {
        budget->turn_ns = now_ns;
        budget->left = settings.copies;
    }
    if (!budget || budget->left <= 0 ||
        bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > settings.crowded) {
        COUNT(scratch, BPF_COUNT_COPY_REFUSED);
        return 0;
    }
    __sync_fetch_and_add(&budget->left, -1);
    return 1;
}

/* The user's registers as the kernel saved them on entry. -1 when there is no user stack: also when
 * a program has made way for the next one, whose registers are still to come. */
static __always_inline int take_saved_registers(struct scratch *scratch)
{
    __u64 *value = scratch->walk.value;
    struct user_registers *saved =
        (void *)bpf_task_pt_regs((struct task_struct *)bpf_get_current_task_btf());
    struct user_registers registers;
    if (bpf_probe_read_kernel(&registers, sizeof(registers), saved))
        return -1;
    if ((registers.cs & 3) != 3)
        return -1;
    LOAD_REGISTERS(&registers, value);
    int in_system_call = IN_SYSTEM_CALL(registers), in_exec = IN_EXEC(registers);
    __u64 word;
    if (in_exec && bpf_probe_read_user(&word, sizeof(word), (void *)registers.sp))
        return -1;
    scratch->walk.in_system_call = in_system_call && !in_exec;
    if (in_system_call)
        scratch->sample.flags |= BPF_SAMPLE_SYSTEM_CALL;
    if (in_exec)
        scratch->sample.flags |= BPF_SAMPLE_EXEC;
    __builtin_memcpy(scratch->registers, value, sizeof(scratch->registers));
    return 0;
}

static __always_inline void note_context(struct scratch *scratch, int read)
{
    if (read == CONTEXT_NONE)
        return;
    if (read == CONTEXT_TORN) {
        COUNT(scratch, BPF_COUNT_CONTEXT_TORN);
    } else if (read == CONTEXT_UNREAD) {
        COUNT(scratch, BPF_COUNT_CONTEXT_UNREAD);
    } else {
        COUNT(scratch, BPF_COUNT_CONTEXTS);
        scratch->sample.flags |= BPF_SAMPLE_CONTEXT;
    }
}

/* The context of the current thread. */
static __always_inline void take_context(struct scratch *scratch)
{
    __u32 number = scratch->walk.context;
    struct bpf_sample_context *found = &scratch->sample.context;
    if (!number)
        return;
    __builtin_memset(found, 0, sizeof(*found));
    int read = context_read_thread(&scratch->context, found, number);
    if (read == CONTEXT_NONE)
        read = context_read_go(&scratch->context, found, number);
    note_context(scratch, read);
}

/* Returns 1 when the sample went off as a copy, 0 when it is to be sent, -1 when it is lost. */
static __always_inline int take_user(struct scratch *scratch)
{
    struct bpf_sample_event *sample = &scratch->sample;
    struct walk *walk = &scratch->walk;
    sample->flags |= BPF_SAMPLE_USER;
    if (walk_begin(walk, sample->pid, sample->time_ns)) {
        take_context(scratch);
        walk_run(walk);
    }
    sample->list = walk->list;
    sample->end = walk->end;
    if ((walk->end == UNWIND_END_NO_TABLE || walk->end == UNWIND_END_NO_MAPPING) &&
        may_copy(scratch)) {
        sample->user_leaf = walk->value[REGISTER_IP];
        if (send_copy(scratch)) {
            COUNT(scratch, BPF_COUNT_RING_FULL);
            return -1;
        }
        COUNT(scratch, BPF_COUNT_COPIES);
        return 1;
    }
    sample->user_leaf = walk->leaf;
    sample->user_callers = walk->hash;
    __u32 frames = walk->count - 1;
    if (!walk->count)
        sample->user_leaf = BPF_FRAME_RAW | walk->value[REGISTER_IP];
    else if (frames && !send_stack(scratch, &walk->callers, walk->hash, frames, walk->end))
        return -1;
    if (settings.check && walk->end == UNWIND_END_COMPLETE && may_copy(scratch)) {
        sample->flags |= BPF_SAMPLE_CHECK;
        send_copy(scratch);
        sample->flags &= ~BPF_SAMPLE_CHECK;
    }
    return 0;
}

/* Events of a process start anew with each child and thread, so short ones would hardly be seen:
 * instead everything is sampled, and what is not asked for is left at once. */
static __always_inline int is_target(__u32 pid)
{
    const __u32 *state = bpf_map_lookup_elem(&targets, &pid);
    return state && *state == BPF_TARGET_SAMPLED;
}

/* By how it was started, or because user space has less to spend for now. */
static __always_inline int is_narrowed(void)
{
    const __u32 *only = table(&targets_only);
    return only && *only;
}

static __always_inline int is_over(__u64 now_ns)
{
    const __u64 *until_ns = table(&deadline);
    return until_ns && *until_ns && now_ns > *until_ns;
}

/* Scratch memory until release_scratch; NULL when too many programs are at work on this CPU. */
static __always_inline struct scratch *take_scratch(void)
{
    __u32 first = bpf_get_smp_processor_id() * BPF_SCRATCHES;
    for (__u32 i = 0; i < BPF_SCRATCHES; i++) {
        __u32 at = first + i;
        struct scratch *scratch = bpf_map_lookup_elem(&scratches, &at);
        if (!scratch)
            return NULL;
        if (!__sync_val_compare_and_swap(&scratch->head.taken, 0, 1))
            return scratch;
        if (i == BPF_SCRATCHES - 1)
            __sync_fetch_and_add(&scratch->head.counters[BPF_COUNT_NESTED], 1);
    }
    return NULL;
}

static __always_inline void release_scratch(struct scratch *scratch)
{
    __sync_val_compare_and_swap(&scratch->head.taken, 1, 0);
}

/* Of the current task; without stacks so far. */
static __always_inline void begin_sample(struct scratch *scratch, __u32 collector, __u64 now_ns)
{
    struct bpf_sample_event *sample = &scratch->sample;
    __u64 id = bpf_get_current_pid_tgid();
    sample->kind = BPF_EVENT_SAMPLE;
    sample->collector = (unsigned short)collector;
    sample->cpu = (unsigned short)bpf_get_smp_processor_id();
    sample->flags = 0;
    sample->time_ns = now_ns;
    sample->pid = id >> 32;
    sample->tid = (__u32)id;
    sample->list = 0;
    sample->end = 0;
    sample->user_leaf = sample->user_callers = 0;
    sample->kernel_leaf = sample->kernel_callers = 0;
    sample->second_pid = 0;
    sample->second_leaf = sample->second_callers = 0;
    sample->value = sample->id = 0;
    __builtin_memset(sample->detail, 0, sizeof(sample->detail));
    bpf_get_current_comm(sample->comm, sizeof(sample->comm));
    COUNT(scratch, BPF_COUNT_SAMPLES);
}

static __always_inline void send_sample(struct scratch *scratch)
{
    __u32 bytes =
        scratch->sample.flags & BPF_SAMPLE_CONTEXT ? sizeof(scratch->sample) : BPF_SAMPLE_BYTES;
    if (bpf_ringbuf_output(&events, &scratch->sample, bytes, wake_up()))
        COUNT(scratch, BPF_COUNT_RING_FULL);
}

/* The stacks of the current task, which is in the kernel: as a system call, a fault or a breakpoint
 * saved its registers. `skip` innermost frames of the kernel are tracing's own. Returns 0 when the
 * sample is to be sent, 1 when it went off as a copy or is lost, which is counted. */
static __always_inline int take_stacks(void *ctx, struct scratch *scratch, __u64 skip)
{
    if (settings.kernel && !take_kernel(ctx, scratch, skip))
        return 1;
    return !take_saved_registers(scratch) && settings.user && take_user(scratch);
}

/* Of a perf event, in whatever it interrupts: user code or the kernel's. */
static __always_inline int take_registers(struct bpf_perf_event_data *ctx, struct scratch *scratch,
                                          int in_kernel)
{
    if (in_kernel)
        return take_saved_registers(scratch);
    LOAD_REGISTERS(ctx, scratch->walk.value);
    scratch->walk.in_system_call = 0;
    __builtin_memcpy(scratch->registers, scratch->walk.value, sizeof(scratch->registers));
    return 0;
}

/* The stacks at a perf event. Returns 0 when the sample is to be sent, as take_stacks does. */
static __always_inline int take_interrupted(struct bpf_perf_event_data *ctx,
                                            struct scratch *scratch)
{
    struct task_struct *task = bpf_get_current_task_btf();
    int in_kernel = (LOAD(ctx, cs) & 3) != 3;
    if (in_kernel && settings.kernel && !take_kernel(ctx, scratch, 0))
        return 1;
    return settings.user && task->mm && !take_registers(ctx, scratch, in_kernel) &&
           take_user(scratch);
}
