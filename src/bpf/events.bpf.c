// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Samples of events: who runs and by which calls it got there. Hardware counters interrupt after a
// number of events that the kernel adjusts, and a sample stands for that number. Of software events
// the kernel's adjustment is unstable where many processes share a CPU, so each one comes here, and
// this program chooses. Only those of targets count then, and sums are exact: user space adds what
// came after the last sample of each CPU to that sample.

#include "bpf/events.h"
#include "bpf/emit.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct bpf_event_settings event_settings SEC(".rodata.events");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, BPF_SAMPLED_EVENTS_MAX);
    __type(key, __u32);
    __type(value, struct bpf_event_pace);
} event_paces SEC(".maps");

/* A sample after so many events that there will be one in each gap, if they go on as they did. It
 * is never many times as far as the last one, which limits what a burst hides; and it is not
 * regular, since programs are. */
static __always_inline void set_pace(struct bpf_event_pace *pace, __u64 now_ns)
{
    __u64 took_ns = now_ns - pace->sample_ns + 1;
    __u64 next = pace->passed * event_settings.gap_ns / took_ns;
    if (next > pace->next * 4)
        next = pace->next * 4;
    pace->next = next / 2 + (next * (bpf_get_prandom_u32() & 1023) >> 10) + 1;
    pace->sample_ns = now_ns;
    pace->passed = 0;
}

/* How many events a sample stands for; 0: this one is not sampled. */
static __always_inline __u64 choose(__u32 event, __u64 now_ns)
{
    struct bpf_event_pace *pace = bpf_map_lookup_elem(&event_paces, &event);
    if (!pace || ++pace->passed < pace->next)
        return 0;
    __u64 passed = pace->passed;
    set_pace(pace, now_ns);
    return passed;
}

SEC("perf_event")
int assay_event(struct bpf_perf_event_data *ctx)
{
    __u64 id = bpf_get_current_pid_tgid(), cookie = bpf_get_attach_cookie(ctx);
    if (!(__u32)id) /* the idle task */
        return 0;
    if ((settings.filter || is_narrowed()) && !is_target(id >> 32))
        return 0;
    __u64 now_ns = bpf_ktime_get_ns();
    __u32 event = (__u32)cookie & (BPF_SAMPLED_EVENTS_MAX - 1);
    if (is_over(now_ns))
        return 0;
    __u64 count = cookie & BPF_EVENT_CHOSEN_HERE ? choose(event, now_ns) : LOAD_PERIOD(ctx);
    struct scratch *scratch = count ? take_scratch() : NULL;
    if (!scratch)
        return 0;
    begin_sample(scratch, BPF_COLLECTOR_EVENTS, now_ns);
    scratch->sample.id = event;
    scratch->sample.value = count;
    if (!take_interrupted(ctx, scratch))
        send_sample(scratch);
    release_scratch(scratch);
    return 0;
}
