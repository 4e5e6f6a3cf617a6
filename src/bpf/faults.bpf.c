// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// New memory: whenever a counter of the current process's resident memory has changed, the growth
// is sampled by its bytes with the stack that caused it. The kernel changes the counters while it
// handles a fault, whoever touched the memory: the program, or a system call for it. A huge page is
// one change of its size.

#include "bpf/faults.h"
#include "bpf/chance.h"
#include "bpf/emit.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct bpf_faults_settings faults_settings SEC(".rodata.faults");

TABLE(faults_state, struct bpf_faults_state, 1);

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, BPF_FAULTS_PROCESSES_MAX);
    __type(key, __u32);
    __type(value, struct bpf_faults_process);
} faults_processes SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct percpu_counter {
    __s64 count;
    __s32 *counters;
};

struct mm_struct___counters { /* since Linux 6.2 */
    struct percpu_counter rss_stat[BPF_FAULTS_KINDS];
};

struct bpf_array___each {
    void *pptrs[1];
};

struct mm_rss_stat___old {
    int unused; /* its counters: a word each */
};

struct mm_struct___old {
    struct mm_rss_stat___old rss_stat;
};
#pragma clang attribute pop

/* Of any variable of each CPU, by which is found what the kernel adds to the address of one to get
 * that of a CPU: it has no symbol that all kernels show. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} faults_anchor SEC(".maps");

static __always_inline __u64 offset_of_cpu(__u32 cpu)
{
    __u32 zero = 0;
    __u64 array = 0, own = 0, each = 0;
    const void *map = &faults_anchor;
    const void *found = bpf_map_lookup_percpu_elem(&faults_anchor, &zero, cpu);
    /* Addresses as numbers, for the verifier. */
    bpf_probe_read_kernel(&array, sizeof(array), &map);
    bpf_probe_read_kernel(&own, sizeof(own), &found);
    array += bpf_core_field_offset(struct bpf_array___each, pptrs);
    bpf_probe_read_kernel(&each, sizeof(each), (const void *)array);
    return found && each ? own - each : 0;
}

/* Each CPU keeps a part of the counter to itself until it is worth adding. */
static __always_inline __s64 sum(const struct percpu_counter *counter)
{
    struct bpf_faults_state *state = table(&faults_state);
    __s64 count = BPF_CORE_READ(counter, count);
    const char *parts = (const char *)BPF_CORE_READ(counter, counters);
    for (__u32 cpu = 0; state && cpu < BPF_FAULTS_CPUS_MAX; cpu++) {
        __s32 part = 0;
        if (cpu >= faults_settings.cpus)
            break;
        if (!state->offsets[cpu])
            state->offsets[cpu] = offset_of_cpu(cpu);
        bpf_probe_read_kernel(&part, sizeof(part), parts + state->offsets[cpu]);
        count += part;
    }
    return count;
}

static __always_inline __s64 pages_of(const void *memory, __u32 kind)
{
    const struct mm_struct___counters *now = memory;
    const struct mm_struct___old *old = memory;
    if (!bpf_core_type_exists(struct mm_rss_stat___old))
        return sum((const void *)((const char *)now->rss_stat +
                                  kind * bpf_core_type_size(struct percpu_counter)));
    __s64 count = 0;
    bpf_probe_read_kernel(&count, sizeof(count), (const __s64 *)&old->rss_stat + kind);
    return count;
}

/* Memory that exists when a process is first seen isn't known to be new. */
static __always_inline void take_in(__u32 pid, const void *memory)
{
    struct bpf_faults_process process = {.memory = (__u64)memory};
    process.pages[BPF_FAULTS_FILE] = pages_of(memory, BPF_FAULTS_FILE);
    process.pages[BPF_FAULTS_ANON] = pages_of(memory, BPF_FAULTS_ANON);
    process.pages[BPF_FAULTS_SHMEM] = pages_of(memory, BPF_FAULTS_SHMEM);
    bpf_map_update_elem(&faults_processes, &pid, &process, BPF_ANY);
}

/* Bytes that were added since the last time; 0 when it shrank. */
static __always_inline __u64 growth(__u32 pid, const void *memory, __u32 kind)
{
    struct bpf_faults_process *process = bpf_map_lookup_elem(&faults_processes, &pid);
    if (!process || process->memory != (__u64)memory) {
        take_in(pid, memory);
        return 0;
    }
    __s64 pages = pages_of(memory, kind);
    kind &= BPF_FAULTS_KINDS - 1;
    __s64 grown = pages - (__s64)__sync_lock_test_and_set(&process->pages[kind], pages);
    return grown > 0 ? (__u64)grown * faults_settings.page_bytes : 0;
}

SEC("tp_btf/rss_stat")
int assay_rss(__u64 *ctx)
{
    const void *memory = (const void *)ctx[0];
    __u32 kind = (__u32)ctx[1], pid = bpf_get_current_pid_tgid() >> 32;
    struct bpf_faults_state *state = table(&faults_state);
    if ((__u64)bpf_get_current_task_btf()->mm != (__u64)memory || kind >= BPF_FAULTS_KINDS ||
        kind == BPF_FAULTS_SWAPPED || !state || !state->mean_bytes)
        return 0;
    if ((settings.filter || is_narrowed()) && !is_target(pid))
        return 0;
    __u64 bytes = growth(pid, memory, kind), now_ns = bpf_ktime_get_ns();
    __u64 chance = bytes ? chance_of(bytes, state->mean_bytes) : 0;
    if (bpf_get_prandom_u32() >= chance || is_over(now_ns))
        return 0;
    struct scratch *scratch = take_scratch();
    if (!scratch)
        return 0;
    begin_sample(scratch, BPF_COLLECTOR_FAULTS, now_ns);
    scratch->sample.id = kind;
    scratch->sample.value = bytes;
    scratch->sample.detail[0] = chance;
    if (!take_saved_registers(scratch) && !take_user(scratch))
        send_sample(scratch);
    release_scratch(scratch);
    return 0;
}
