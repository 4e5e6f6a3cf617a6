// SPDX-License-Identifier: Apache-2.0
// Cgroups that start too many processes: see bpf_cgroups.h.

#include "capture/bpf/cgroups.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/memory.h"
#include "bpf/shared.h"
#include "capture/record/excess.h"

/* A cgroup that was left alone is quiet when it starts so much less than it may. */
#define QUIET_PART 2

/* One cgroup, of all CPUs; false: there is nothing to be known of it any more. */
static bool check(uint64_t limit, struct bpf_cgroup *cpus, size_t cpu_count, int64_t now_ns,
                  struct excess_list *excess)
{
    uint64_t forks = 0;
    uint32_t pid = 0;
    bool left_alone = false;
    for (size_t i = 0; i < cpu_count; i++) {
        forks += cpus[i].forks;
        pid = cpus[i].pid ? cpus[i].pid : pid;
        left_alone = left_alone || cpus[i].left_alone;
    }
    if (forks > limit)
        excess_note(excess, pid, "processes started", forks, now_ns);
    else if (!left_alone || forks < limit / QUIET_PART)
        return false;
    for (size_t i = 0; i < cpu_count; i++)
        cpus[i] = (struct bpf_cgroup){.pid = cpus[i].pid, .left_alone = 1};
    return true;
}

void bpf_cgroups_check(int map, unsigned limit, int64_t passed_ns, int64_t now_ns,
                       struct excess_list *excess)
{
    uint64_t ids[BPF_CGROUPS_MAX], limit_now = (uint64_t)((double)limit * (double)passed_ns / 1e9);
    size_t count = 0, cpu_count = (size_t)MAX(libbpf_num_possible_cpus(), 1);
    _cleanup_free_ struct bpf_cgroup *cpus = memory_zalloc(cpu_count, sizeof(*cpus));
    while (count < BPF_CGROUPS_MAX &&
           bpf_map_get_next_key(map, count ? &ids[count - 1] : NULL, &ids[count]) == 0)
        count++;
    for (size_t i = 0; i < count; i++) {
        if (bpf_map_lookup_elem(map, &ids[i], cpus) < 0)
            continue;
        if (check(limit_now, cpus, cpu_count, now_ns, excess))
            bpf_map_update_elem(map, &ids[i], cpus, BPF_ANY);
        else
            bpf_map_delete_elem(map, &ids[i]);
    }
}
