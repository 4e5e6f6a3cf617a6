// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The sampler: at each tick of a perf event, who runs and by which calls it got there. Stacks go to
// user space once, samples as small events; and what is known of a process ends with it.

#include "bpf/walk.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define RING_BYTES (4u << 20) /* unless user space says otherwise */

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, RING_BYTES);
} events SEC(".maps");

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

/* The budget for copies: user space fills it up now and then. */
TABLE(copies_left, long long, 1);

struct kernel_stack {
    struct bpf_stack_event callers; /* frames[0] is the leaf, and no part of what is sent */
    __u64 frames[BPF_KERNEL_FRAMES_MAX + 1];
};

struct copy {
    struct bpf_copy_event event;
    __u8 stack[BPF_COPY_BYTES];
};

struct scratch {
    struct bpf_scratch_head head;
    struct bpf_sample_event sample;
    __u64 registers[UNWIND_REGISTERS]; /* as they were: a walk changes its own */
    struct walk walk;
    struct kernel_stack kernel;
    struct copy copy;
};
_Static_assert(sizeof(struct scratch) <= BPF_SCRATCH_BYTES, "user space knows the size");

/* One for each CPU, by number: user space sets how many. (A map of the per-CPU kind has no room for
 * values of this size.) Perf events don't interrupt each other. */
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

static __always_inline int take_kernel(struct bpf_perf_event_data *ctx, struct scratch *scratch)
{
    struct kernel_stack *kernel = &scratch->kernel;
    struct bpf_sample_event *sample = &scratch->sample;
    long bytes = bpf_get_stack(ctx, kernel->frames, BPF_KERNEL_FRAMES_MAX * 8, 0);
    if (bytes < 8)
        return 1;
    __u32 frames = (__u32)(bytes / 8) - 1;
    __u64 hash = 0;
    for (__u32 i = 1; i < BPF_KERNEL_FRAMES_MAX && i <= frames; i++)
        hash = mix(hash, kernel->frames[i]);
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

struct copy_state {
    struct copy *copy;
    __u64 sp;    /* where the copy begins */
    __u64 first; /* the stack pointer itself */
    __u32 bytes;
};

static long copy_page(__u32 index, void *context)
{
    struct copy_state *state = context;
    __u32 done = state->bytes;
    __u32 length = 4096 - ((state->sp + done) & 4095);
    KEEP(done);
    KEEP(length);
    if (length > 4096 || done > BPF_COPY_BYTES - 4096)
        return 1;
    if (!bpf_probe_read_user(state->copy->stack + done, length, (void *)(state->sp + done))) {
        state->bytes = done + length;
        return 0;
    }
    /* What is below the stack pointer may be in a page that was never touched. */
    if (done || state->sp + length > state->first)
        return 1;
    state->sp += length;
    return 0;
}

static __always_inline int send_copy(struct scratch *scratch)
{
    struct copy *copy = &scratch->copy;
    __builtin_memcpy(copy->event.registers, scratch->registers, sizeof(scratch->registers));
    /* With what is just below the stack pointer: leaf functions keep registers there. */
    __u64 sp = copy->event.registers[REGISTER_SP];
    struct copy_state state = {.copy = copy, .sp = sp - BPF_COPY_BELOW, .first = sp};
    bpf_loop(BPF_COPY_PAGES + 1, copy_page, &state, 0);
    __u32 bytes = state.bytes;
    copy->event.sample = scratch->sample;
    copy->event.sample.kind = BPF_EVENT_COPY;
    copy->event.stack_address = state.sp;
    copy->event.stack_bytes = bytes;
    KEEP(bytes);
    if (bytes > BPF_COPY_BYTES)
        return -1;
    /* At once: the sooner user space knows the process, the fewer copies. */
    return bpf_ringbuf_output(&events, copy, sizeof(copy->event) + bytes, BPF_RB_FORCE_WAKEUP);
}

static __always_inline int may_copy(struct scratch *scratch)
{
    long long *left = table(&copies_left);
    if (!left || *left <= 0 || bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > settings.crowded) {
        COUNT(scratch, BPF_COUNT_COPY_REFUSED);
        return 0;
    }
    __sync_fetch_and_add(left, -1);
    return 1;
}

/* The user's registers: the context's own, or those that the kernel saved on entry. */
static __always_inline int take_registers(struct bpf_perf_event_data *ctx, struct scratch *scratch,
                                          int in_kernel)
{
    __u64 *value = scratch->walk.value;
    scratch->walk.in_system_call = 0;
    if (!in_kernel) {
        LOAD_REGISTERS(ctx, value);
    } else {
        struct user_registers *saved =
            (void *)bpf_task_pt_regs((struct task_struct *)bpf_get_current_task_btf());
        struct user_registers registers;
        if (bpf_probe_read_kernel(&registers, sizeof(registers), saved))
            return -1;
        if ((registers.cs & 3) != 3)
            return -1;
        LOAD_REGISTERS(&registers, value);
        scratch->walk.in_system_call = (__s64)registers.orig_ax >= 0;
        if (scratch->walk.in_system_call)
            scratch->sample.flags |= BPF_SAMPLE_SYSTEM_CALL;
    }
    __builtin_memcpy(scratch->registers, value, sizeof(scratch->registers));
    return 0;
}

/* Returns 1 when the sample went off as a copy, 0 when it is to be sent, -1 when it is lost. */
static __always_inline int take_user(struct scratch *scratch)
{
    struct bpf_sample_event *sample = &scratch->sample;
    struct walk *walk = &scratch->walk;
    sample->flags |= BPF_SAMPLE_USER;
    if (walk_begin(walk, sample->pid, sample->time_ns))
        walk_run(walk);
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

SEC("perf_event")
int assay_sample(struct bpf_perf_event_data *ctx)
{
    __u32 cpu = bpf_get_smp_processor_id();
    struct scratch *scratch = bpf_map_lookup_elem(&scratches, &cpu);
    struct task_struct *task = bpf_get_current_task_btf();
    __u64 id = bpf_get_current_pid_tgid();
    if (!scratch || !(__u32)id) /* 0 is the idle task */
        return 0;
    if (settings.filter && !is_target(id >> 32))
        return 0;
    if (is_narrowed() && !is_target(id >> 32)) {
        COUNT(scratch, BPF_COUNT_LEFT_OUT);
        return 0;
    }
    struct bpf_sample_event *sample = &scratch->sample;
    sample->kind = BPF_EVENT_SAMPLE;
    sample->cpu = (unsigned short)cpu;
    sample->flags = 0;
    sample->time_ns = bpf_ktime_get_ns();
    sample->pid = id >> 32;
    sample->tid = (__u32)id;
    sample->list = 0;
    sample->end = 0;
    sample->user_leaf = sample->user_callers = 0;
    sample->kernel_leaf = sample->kernel_callers = 0;
    bpf_get_current_comm(sample->comm, sizeof(sample->comm));
    COUNT(scratch, BPF_COUNT_SAMPLES);

    int in_kernel = (LOAD(ctx, cs) & 3) != 3;
    if (in_kernel && settings.kernel && !take_kernel(ctx, scratch))
        return 0;
    if (settings.user && task->mm && !take_registers(ctx, scratch, in_kernel) && take_user(scratch))
        return 0;
    if (bpf_ringbuf_output(&events, sample, sizeof(*sample), wake_up()))
        COUNT(scratch, BPF_COUNT_RING_FULL);
    return 0;
}

/* A child begins with its parent's mappings, and is asked for when its parent is. */
SEC("raw_tp/sched_process_fork")
int assay_fork(struct bpf_raw_tracepoint_args *ctx)
{
    struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
    __u32 parent_pid = (__u32)BPF_CORE_READ(parent, tgid), pid = (__u32)BPF_CORE_READ(child, tgid);
    if (pid == parent_pid)
        return 0;
    __u64 *full = table(&fork_full);
    if ((settings.filter || is_narrowed()) && is_target(parent_pid)) {
        __u32 sampled = BPF_TARGET_SAMPLED;
        if (bpf_map_update_elem(&targets, &pid, &sampled, BPF_ANY) && full)
            __sync_fetch_and_add(full, 1);
    }
    struct bpf_process *known = bpf_map_lookup_elem(&processes, &parent_pid);
    if (!known) {
        bpf_map_delete_elem(&processes, &pid);
        return 0;
    }
    struct bpf_process copy = *known;
    if (bpf_map_update_elem(&processes, &pid, &copy, BPF_ANY) && full)
        __sync_fetch_and_add(full, 1);
    return 0;
}

/* Another program in the same process. */
SEC("raw_tp/sched_process_exec")
int assay_exec(struct bpf_raw_tracepoint_args *ctx)
{
    __u32 pid = (__u32)BPF_CORE_READ((struct task_struct *)ctx->args[0], tgid);
    bpf_map_delete_elem(&processes, &pid);
    __u32 *state = settings.filter ? bpf_map_lookup_elem(&targets, &pid) : NULL;
    if (state)
        *state = BPF_TARGET_SAMPLED;
    return 0;
}

/* The last of a process: until here, ending it takes time that belongs to it. */
SEC("raw_tp/sched_process_free")
int assay_free(struct bpf_raw_tracepoint_args *ctx)
{
    struct task_struct *task = (void *)ctx->args[0];
    __u32 pid = (__u32)BPF_CORE_READ(task, tgid);
    if ((__u32)BPF_CORE_READ(task, pid) != pid)
        return 0;
    bpf_map_delete_elem(&processes, &pid);
    if (settings.filter || is_narrowed())
        bpf_map_delete_elem(&targets, &pid);
    return 0;
}
